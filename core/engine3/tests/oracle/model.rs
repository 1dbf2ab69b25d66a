//! The rules of Portals 3.3 in their plainest form: lists that are walked, nothing that is
//! counted twice. Objects bear the handles that the engine has given them.

mod initiator;
mod target;

use crate::rig::{JID, UID};
use lintel_engine3::{AccessEntry, DescriptorSpec, EntrySpec};
use lintel_memory::{Buffer, Ghost};
use lintel_types::portals3::{
    EQ_NONE, Error, Event, EventKind, Limits, MdOptions, MemoryDescriptor, NI_FAIL, NID_ANY,
    PID_ANY, PT_INDEX_ANY, Position, Result, Unlink,
};
use lintel_types::{Handle, NiFail, PortalIndex, ProcessId};
use lintel_wire::portals3::Verb;

pub struct Model {
    pub cray: bool,
    pub me: ProcessId,
    pub limits: Limits,
    access: Vec<AccessEntry>,
    /// The match lists, each from its head to its tail.
    lists: Vec<Vec<Me>>,
    mds: Vec<Md>,
    pub queues: Vec<Queue>,
    running: Vec<Running>,
    operations: Vec<Operation>,
    pub drops: u64,
    next: u64,
}

struct Me {
    name: Handle,
    spec: EntrySpec,
}

struct Md {
    name: Handle,
    /// The entry that it is attached to.
    me: Option<Handle>,
    spec: DescriptorSpec<Ghost>,
    /// The local offset.
    used: u64,
}

pub struct Queue {
    pub name: Handle,
    posted: u32,
    pub events: Vec<Event>,
}

/// Between START and END.
struct Running {
    id: u64,
    md: Handle,
    end: EventKind,
    about: Event,
    start: Option<u32>,
}

/// Sent, and not yet answered.
struct Operation {
    token: u32,
    target: ProcessId,
    verb: Verb,
    ack: bool,
    source: Handle,
    sink: Handle,
    sink_offset: u64,
    sink_length: u64,
    about: Event,
    /// What runs at the source until the response, and at the sink from there on.
    sending: Option<u64>,
    filling: Option<u64>,
}

/// Where an entry goes.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Portal(u32, Position),
    Beside(Handle, Position),
}

/// What a request does at its target.
#[derive(Debug)]
pub struct Arrival {
    pub id: u64,
    pub pieces: Vec<Ghost>,
    pub mlength: u64,
    pub offset: u64,
    pub silent: bool,
}

impl Md {
    fn has(&self, options: MdOptions) -> bool {
        self.spec.md.options.contains(options)
    }

    fn length(&self) -> u64 {
        self.spec.buffer.length()
    }

    fn active(&self) -> bool {
        let limited = self.has(MdOptions::MAX_SIZE) && !self.has(MdOptions::MANAGE_REMOTE);
        let full = limited && self.length() - self.used < self.spec.md.max_size;
        self.spec.md.threshold != 0 && !full
    }

    fn pieces(&self, offset: u64, length: u64) -> Vec<Ghost> {
        self.spec.buffer.pieces(offset, length).as_slice().to_vec()
    }
}

fn fits(pattern: ProcessId, process: ProcessId) -> bool {
    [NID_ANY, process.nid].contains(&pattern.nid) && [PID_ANY, process.pid].contains(&pattern.pid)
}

fn blank() -> Event {
    Event::new(
        EventKind::Unlink,
        Handle::INVALID,
        MemoryDescriptor::default(),
    )
}

impl Model {
    pub fn new(me: ProcessId, cray: bool, limits: Limits) -> Model {
        Model {
            cray,
            me,
            limits,
            access: vec![AccessEntry::OPEN; limits.max_ac_index as usize + 1],
            lists: (0..=limits.max_pt_index).map(|_| Vec::new()).collect(),
            mds: Vec::new(),
            queues: Vec::new(),
            running: Vec::new(),
            operations: Vec::new(),
            drops: 0,
            next: 0,
        }
    }

    pub fn queue_alloc(&mut self, name: Handle) -> Result<()> {
        if self.queues.len() == self.limits.max_eqs as usize {
            return Err(Error::NoSpace);
        }
        self.queues.push(Queue {
            name,
            posted: 0,
            events: Vec::new(),
        });
        Ok(())
    }

    pub fn queue_free(&mut self, name: Handle) -> Result<()> {
        let place = self.queues.iter().position(|queue| queue.name == name);
        self.queues.remove(place.ok_or(Error::EqInvalid)?);
        Ok(())
    }

    pub fn access_entry(&mut self, index: u32, entry: AccessEntry) -> Result<()> {
        if entry.portal != PT_INDEX_ANY && entry.portal > self.limits.max_pt_index as u32 {
            return Err(Error::PtIndexInvalid);
        }
        if index > self.limits.max_ac_index as u32 {
            return Err(Error::AcIndexInvalid);
        }
        self.access[index as usize] = entry;
        Ok(())
    }

    /// The list, and the place in it.
    fn locate(&self, place: Place) -> Result<(usize, usize)> {
        match place {
            Place::Portal(portal, position) => {
                let list = self.lists.get(portal as usize);
                let length = list.ok_or(Error::PtIndexInvalid)?.len();
                Ok((
                    portal as usize,
                    if position == Position::Before {
                        0
                    } else {
                        length
                    },
                ))
            }
            Place::Beside(base, position) => {
                let (list, at) = self.find_me(base)?;
                Ok((
                    list,
                    if position == Position::Before {
                        at
                    } else {
                        at + 1
                    },
                ))
            }
        }
    }

    fn find_me(&self, name: Handle) -> Result<(usize, usize)> {
        for (list, entries) in self.lists.iter().enumerate() {
            if let Some(at) = entries.iter().position(|me| me.name == name) {
                return Ok((list, at));
            }
        }
        Err(Error::MeInvalid)
    }

    pub fn has_entry(&self, name: Handle) -> bool {
        self.find_me(name).is_ok()
    }

    pub fn has_queue(&self, name: Handle) -> bool {
        self.queues.iter().any(|queue| queue.name == name)
    }

    pub fn attach(&mut self, name: Handle, place: Place, spec: EntrySpec) -> Result<()> {
        let (list, at) = self.locate(place)?;
        if self.lists[list].len() == self.limits.max_me_list as usize {
            return Err(Error::MeListTooLong);
        }
        if self.lists.iter().map(Vec::len).sum::<usize>() == self.limits.max_mes as usize {
            return Err(Error::NoSpace);
        }
        self.lists[list].insert(at, Me { name, spec });
        Ok(())
    }

    pub fn attach_any(&mut self, name: Handle, spec: EntrySpec) -> Result<PortalIndex> {
        let free = self
            .lists
            .iter()
            .position(Vec::is_empty)
            .ok_or(Error::PtFull)?;
        self.attach(name, Place::Portal(free as u32, Position::After), spec)?;
        Ok(PortalIndex(free as u16))
    }

    pub fn attach_with(
        &mut self,
        (me, md): (Handle, Handle),
        place: Place,
        entry: EntrySpec,
        spec: &DescriptorSpec<Ghost>,
    ) -> Result<()> {
        self.locate(place)?;
        self.check(spec)?;
        self.check_room()?;
        self.attach(me, place, entry)?;
        self.attach_md(md, me, spec)
    }

    pub fn post(
        &mut self,
        names: (Handle, Handle),
        place: Place,
        entry: EntrySpec,
        spec: &DescriptorSpec<Ghost>,
        test: Handle,
    ) -> Result<()> {
        self.locate(place)?;
        self.check(spec)?;
        self.check_quiet(test)?;
        self.attach_with(names, place, entry, spec)
    }

    pub fn unlink_me(&mut self, name: Handle) -> Result<()> {
        let (list, at) = self.find_me(name)?;
        if let Some(place) = self.mds.iter().position(|md| md.me == Some(name)) {
            if self.pending(self.mds[place].name) {
                return Err(Error::MeInUse);
            }
            self.mds.remove(place);
        }
        self.lists[list].remove(at);
        Ok(())
    }

    fn check(&self, spec: &DescriptorSpec<Ghost>) -> Result<()> {
        let illegal = spec.md.threshold < -1
            || spec.md.options.bits() > 0x7fff
            || spec.md.length > 0 && spec.md.start == 0
            || matches!(&spec.buffer, Buffer::Vector(pieces, _)
                if pieces.len() > self.limits.max_md_iovecs as usize);
        if illegal {
            return Err(Error::MdIllegal);
        }
        let queue = spec.md.queue;
        if queue != EQ_NONE && !self.has_queue(queue) {
            return Err(Error::EqInvalid);
        }
        Ok(())
    }

    fn check_room(&self) -> Result<()> {
        if self.mds.len() == self.limits.max_mds as usize {
            return Err(Error::NoSpace);
        }
        Ok(())
    }

    pub fn attach_md(
        &mut self,
        name: Handle,
        me: Handle,
        spec: &DescriptorSpec<Ghost>,
    ) -> Result<()> {
        self.find_me(me)?;
        if self.mds.iter().any(|md| md.me == Some(me)) {
            return Err(Error::MeInUse);
        }
        self.bind(name, spec)?;
        self.mds.last_mut().expect("it was just bound").me = Some(me);
        Ok(())
    }

    pub fn bind(&mut self, name: Handle, spec: &DescriptorSpec<Ghost>) -> Result<()> {
        self.check(spec)?;
        self.check_room()?;
        self.mds.push(Md {
            name,
            me: None,
            spec: spec.clone(),
            used: 0,
        });
        Ok(())
    }

    fn md(&self, name: Handle) -> Result<&Md> {
        let found = self.mds.iter().find(|md| md.name == name);
        found.ok_or(Error::MdInvalid)
    }

    fn md_mut(&mut self, name: Handle) -> Option<&mut Md> {
        self.mds.iter_mut().find(|md| md.name == name)
    }

    pub fn state(&self, name: Handle) -> Result<MemoryDescriptor> {
        Ok(self.md(name)?.spec.md)
    }

    pub fn update(
        &mut self,
        name: Handle,
        spec: &DescriptorSpec<Ghost>,
        test: Handle,
    ) -> Result<()> {
        self.md(name)?;
        self.check(spec)?;
        self.check_quiet(test)?;
        if self.pending(name) {
            return Err(Error::MdNoUpdate);
        }
        let md = self.md_mut(name).expect("it was just found");
        let unlink = md.spec.unlink;
        md.spec = DescriptorSpec {
            unlink,
            ..spec.clone()
        };
        md.used = 0;
        Ok(())
    }

    fn check_quiet(&self, test: Handle) -> Result<()> {
        if test == EQ_NONE {
            return Ok(());
        }
        let queue = self.queues.iter().find(|queue| queue.name == test);
        let full = !queue.ok_or(Error::EqInvalid)?.events.is_empty();
        let coming = self.running.iter().any(|running| {
            let md = self.md(running.md);
            md.is_ok_and(|md| md.spec.md.queue == test)
        });
        if full || coming {
            return Err(Error::MdNoUpdate);
        }
        Ok(())
    }

    /// Whether anything runs at a descriptor, or a reply to it is awaited.
    fn pending(&self, md: Handle) -> bool {
        self.running.iter().any(|running| running.md == md)
            || self.operations.iter().any(|operation| operation.sink == md)
    }

    pub fn unlink_md(&mut self, name: Handle) -> Result<()> {
        let reported = self.cray && self.md(name)?.has(MdOptions::EVENT_MANUAL_UNLINK_ENABLE);
        self.md(name)?;
        if self.pending(name) {
            return Err(Error::MdInUse);
        }
        if reported {
            let about = Event {
                initiator: self.me,
                uid: UID,
                jid: JID,
                ..blank()
            };
            self.report(name, EventKind::Unlink, &about, None);
        }
        self.take_md(name);
        Ok(())
    }

    /// Takes a descriptor away, and its entry if that has PTL_UNLINK.
    fn take_md(&mut self, name: Handle) {
        let place = self.mds.iter().position(|md| md.name == name);
        let md = self.mds.remove(place.expect("it is there"));
        let Some(me) = md.me else { return };
        for list in &mut self.lists {
            list.retain(|entry| entry.name != me || entry.spec.unlink == Unlink::Retain);
        }
    }

    /// Posts an event, and returns its number.
    fn report(
        &mut self,
        md: Handle,
        kind: EventKind,
        about: &Event,
        link: Option<u32>,
    ) -> Option<u32> {
        let state = self.state(md).ok()?;
        let queue = self.queues.iter_mut();
        let queue = queue.into_iter().find(|queue| queue.name == state.queue)?;
        let sequence = queue.posted;
        queue.posted += 1;
        queue.events.push(Event {
            kind,
            md_handle: md,
            md: state,
            link: link.unwrap_or(sequence),
            sequence,
            ..*about
        });
        Some(sequence)
    }

    fn count(&mut self, md: Handle) {
        if let Some(md) = self.md_mut(md) {
            md.spec.md.threshold -= i32::from(md.spec.md.threshold > 0);
        }
    }

    /// Begins a pair of events; `end` is its second kind, and its first has the number before.
    fn begin(&mut self, md: Handle, end: EventKind, about: Event) -> u64 {
        self.count(md);
        let quiet = self
            .md(md)
            .is_ok_and(|md| md.has(MdOptions::EVENT_START_DISABLE));
        let kind = EventKind::ALL[end as usize - 1];
        let start = match quiet {
            true => None,
            false => self.report(md, kind, &about, None),
        };
        self.next += 1;
        self.running.push(Running {
            id: self.next,
            md,
            end,
            about,
            start,
        });
        self.next
    }

    fn end(&mut self, id: u64, fail: NiFail) {
        let place = self.running.iter().position(|running| running.id == id);
        let ended = self.running.remove(place.expect("it runs"));
        let mut about = ended.about;
        if fail != NiFail::Ok {
            (about.mlength, about.ni_fail) = (0, NI_FAIL);
        }
        let quiet = self
            .md(ended.md)
            .is_ok_and(|md| md.has(MdOptions::EVENT_END_DISABLE));
        let posted = match quiet {
            true => None,
            false => self.report(ended.md, ended.end, &about, ended.start),
        };
        self.unlink_if_spent(ended.md, &about, posted.or(ended.start));
    }

    fn unlink_if_spent(&mut self, name: Handle, about: &Event, link: Option<u32>) {
        let pending = self.pending(name);
        let Ok(md) = self.md(name) else { return };
        if md.spec.unlink == Unlink::Retain || md.active() || pending {
            return;
        }
        if !self.cray || md.has(MdOptions::EVENT_AUTO_UNLINK_ENABLE) {
            let about = Event {
                ni_fail: 0,
                ..*about
            };
            self.report(name, EventKind::Unlink, &about, link);
        }
        self.take_md(name);
    }
}
