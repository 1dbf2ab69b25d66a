//! Endpoints joined by queues that keep the order, and a clock that stands until it is set.

use lintel_cci::{
    Access, Action, Attribute, Completion, ConnectionId, Direction, Endpoint, Event, Host, Message,
    NoWay, Notify, Outgoing, Region, Request, RmaRequest, Status, Time,
};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::{BTreeMap, VecDeque};

pub(crate) const MAX_SEND: u32 = 64;

/// What an application is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reported {
    Core(Event),
    Received(ConnectionId, Vec<u8>),
    Request(ConnectionId, Attribute, Vec<u8>),
}

#[derive(Clone)]
enum Bytes {
    None,
    Copied(Vec<u8>),
    /// Memory of the sender: key, offset, length.
    Read(Region),
    Fill(Region),
}

struct Frame {
    from: usize,
    to: ProcessId,
    words: Words,
    bytes: Bytes,
}

#[derive(Default)]
pub(crate) struct Wires {
    me: usize,
    now: Time,
    pub(crate) is_congested: bool,
    pub(crate) has_no_room: bool,
    pub(crate) groups: Vec<(ProcessId, Vec<u8>)>,
    out: Vec<Frame>,
    pub(crate) reported: VecDeque<Reported>,
    ended: Vec<ProcessId>,
}

impl Host for Wires {
    type Fresh<'a> = &'a [u8];
    type Body = Vec<u8>;

    fn hold(&self, message: &[u8]) -> Vec<u8> {
        message.to_vec()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_, &[u8], Vec<u8>>,
    ) -> Result<(), NoWay> {
        if self.ended.contains(&to) {
            return Err(NoWay);
        }
        let bytes = match body {
            Outgoing::Nothing => Bytes::None,
            Outgoing::Fresh(bytes) => Bytes::Copied(bytes.to_vec()),
            Outgoing::Held(bytes) => Bytes::Copied(bytes.clone()),
            Outgoing::LentToRead(region) => Bytes::Read(region),
            Outgoing::LentToFill(region) => Bytes::Fill(region),
        };
        self.out.push(Frame {
            from: self.me,
            to,
            words: *words,
            bytes,
        });
        Ok(())
    }

    fn multicast(&mut self, group: ProcessId, message: &[u8]) -> Result<(), NoWay> {
        self.groups.push((group, message.to_vec()));
        Ok(())
    }

    fn is_congested(&self, _: ProcessId) -> bool {
        self.is_congested
    }

    fn post(&mut self, event: Event) {
        self.reported.push_back(Reported::Core(event));
    }

    fn has_room(&self) -> bool {
        !self.has_no_room
    }
}

pub(crate) struct Member {
    pub(crate) core: Endpoint<Wires>,
    pub(crate) wires: Wires,
    pub(crate) memory: BTreeMap<u64, Vec<u8>>,
}

pub(crate) struct Rig {
    pub(crate) now: Time,
    pub(crate) members: Vec<Member>,
    flying: VecDeque<Frame>,
    /// Lent memory is filled in place, as within a node; otherwise bytes come with answers.
    pub(crate) fills: bool,
}

pub(crate) fn name(member: usize) -> ProcessId {
    ProcessId::new(1, member as u32 + 1)
}

pub(crate) fn event(context: u64) -> Completion {
    Completion {
        context,
        notify: Notify::Event,
    }
}

impl Rig {
    pub(crate) fn new(members: usize) -> Rig {
        let member = |me| Member {
            core: Endpoint::new(MAX_SEND, 7),
            wires: Wires {
                me,
                ..Wires::default()
            },
            memory: BTreeMap::new(),
        };
        Rig {
            now: Time(1),
            members: (0..members).map(member).collect(),
            flying: VecDeque::new(),
            fills: true,
        }
    }

    /// A rig of two with a connection; its names at both ends.
    pub(crate) fn connected(attribute: Attribute) -> (Rig, ConnectionId, ConnectionId) {
        let mut rig = Rig::new(2);
        let (a, b) = rig.join(0, 1, attribute);
        (rig, a, b)
    }

    pub(crate) fn join(
        &mut self,
        from: usize,
        to: usize,
        attribute: Attribute,
    ) -> (ConnectionId, ConnectionId) {
        self.connect(from, to, attribute, None);
        self.run();
        let Some(Reported::Request(asked, ..)) = self.members[to].wires.reported.pop_front() else {
            panic!("the request arrives");
        };
        self.with(to, |core, wires| core.accept(asked, 2, wires))
            .expect("it wasn't answered");
        self.run();
        let at = |rig: &mut Rig, member: usize| match rig.reported(member) {
            Some(Reported::Core(
                Event::Connected { result, .. } | Event::Accepted { result, .. },
            )) => result.expect("it was accepted").0,
            other => panic!("expected a connection, not {other:?}"),
        };
        (at(self, from), at(self, to))
    }

    pub(crate) fn with<R>(
        &mut self,
        member: usize,
        call: impl FnOnce(&mut Endpoint<Wires>, &mut Wires) -> R,
    ) -> R {
        let member = &mut self.members[member];
        member.wires.now = self.now;
        let result = call(&mut member.core, &mut member.wires);
        self.flying.extend(member.wires.out.drain(..));
        result
    }

    pub(crate) fn connect(
        &mut self,
        from: usize,
        to: usize,
        attribute: Attribute,
        timeout: Option<Time>,
    ) {
        let data = b"hello";
        let request = Request {
            to: name(to),
            attribute,
            context: 1,
            timeout,
        };
        self.with(from, |core, wires| core.connect(request, data, wires))
            .expect("there is room");
    }

    pub(crate) fn send(
        &mut self,
        from: usize,
        on: ConnectionId,
        bytes: &[u8],
        completion: Completion,
    ) -> Result<(), Status> {
        let (length, body) = (bytes.len() as u32, bytes);
        self.with(from, |core, wires| {
            core.send(on, Message { length, body }, completion, wires)
        })
    }

    pub(crate) fn rma(
        &mut self,
        from: usize,
        on: ConnectionId,
        request: RmaRequest,
        message: Option<&[u8]>,
    ) -> Result<(), Status> {
        let message = message.map(|bytes| Message {
            length: bytes.len() as u32,
            body: bytes,
        });
        self.with(from, |core, wires| {
            core.rma(on, request, message, event(9), wires)
        })
    }

    pub(crate) fn register(&mut self, member: usize, key: u64, bytes: &[u8], access: Access) {
        let member = &mut self.members[member];
        assert!(member.core.register(key, bytes.len() as u64, access));
        member.memory.insert(key, bytes.to_vec());
    }

    pub(crate) fn reported(&mut self, member: usize) -> Option<Reported> {
        self.members[member].wires.reported.pop_front()
    }

    pub(crate) fn reported_core(&mut self, member: usize) -> Option<Event> {
        match self.reported(member)? {
            Reported::Core(event) => Some(event),
            other => panic!("expected an event of the endpoint, not {other:?}"),
        }
    }

    /// The statuses of all sends that have ended, by context.
    pub(crate) fn ended(&mut self, member: usize) -> Vec<(u64, Status)> {
        let mut ended = Vec::new();
        while let Some(Event::Sent {
            context, status, ..
        }) = self.reported_core(member)
        {
            ended.push((context, status));
        }
        ended
    }

    pub(crate) fn end(&mut self, member: usize) {
        self.cut_off(member);
        self.report_loss(member);
    }

    /// There is no way to a member any more; what it has sent still arrives.
    pub(crate) fn cut_off(&mut self, member: usize) {
        self.drop_frames_to(member);
        for other in (0..self.members.len()).filter(|other| *other != member) {
            self.members[other].wires.ended.push(name(member));
        }
    }

    pub(crate) fn report_loss(&mut self, member: usize) {
        for other in (0..self.members.len()).filter(|other| *other != member) {
            self.with(other, |core, wires| core.on_lost(name(member), wires));
        }
    }

    pub(crate) fn pass(&mut self, time: u64) {
        self.now = self.now.after(Time(time));
        for member in 0..self.members.len() {
            self.with(member, |core, wires| core.on_time(wires));
        }
    }

    /// Drops everything that is under way to a member: it hangs.
    pub(crate) fn drop_frames_to(&mut self, member: usize) {
        self.flying.retain(|frame| frame.to != name(member));
    }

    /// Delivers one frame. False if none is under way.
    pub(crate) fn step(&mut self) -> bool {
        let Some(to) = self.step_of_batch() else {
            return false;
        };
        self.finish(to);
        true
    }

    /// Delivers one frame, after which others may come before the receiver acknowledges;
    /// returns the receiver.
    pub(crate) fn step_of_batch(&mut self) -> Option<usize> {
        let frame = self.flying.pop_front()?;
        let to = frame.to.pid as usize - 1;
        self.deliver(to, frame);
        Some(to)
    }

    pub(crate) fn finish(&mut self, member: usize) {
        self.with(member, |core, wires| core.finish(wires));
    }

    /// Frames that are under way.
    pub(crate) fn flying(&self) -> usize {
        self.flying.len()
    }

    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    fn deliver(&mut self, to: usize, frame: Frame) {
        let (bytes, length) = match &frame.bytes {
            Bytes::None | Bytes::Fill(_) => (Vec::new(), 0),
            Bytes::Copied(bytes) => (bytes.clone(), bytes.len() as u64),
            Bytes::Read(region) => (self.read(frame.from, *region), region.length),
        };
        let action = self.with(to, |core, wires| {
            core.on_message(name(frame.from), &frame.words, length, wires)
        });
        match action {
            Action::Nothing => {}
            Action::Deliver(id) => self.tell(to, Reported::Received(id, bytes)),
            Action::Request {
                connection,
                attribute,
            } => self.tell(to, Reported::Request(connection, attribute, bytes)),
            Action::Write(transfer) => {
                self.write(to, transfer.region, &bytes);
                self.with(to, |core, wires| {
                    core.on_written(transfer, Status::Success, wires);
                });
            }
            Action::Read(transfer) => {
                let lent = match frame.bytes {
                    Bytes::Fill(region) if self.fills => Some(region),
                    _ => None,
                };
                if let Some(region) = lent {
                    let bytes = self.read(to, transfer.region);
                    self.write(frame.from, region, &bytes);
                }
                self.with(to, |core, wires| {
                    core.on_read(transfer, Status::Success, lent.is_none(), wires);
                });
            }
            Action::Fetched(transfer) => {
                self.write(to, transfer.region, &bytes);
                self.with(to, |core, wires| {
                    core.on_fetched(transfer, Status::Success, wires);
                });
            }
        }
    }

    fn tell(&mut self, member: usize, reported: Reported) {
        self.members[member].wires.reported.push_back(reported);
    }

    fn read(&self, member: usize, region: Region) -> Vec<u8> {
        let (start, end) = (region.offset, region.offset + region.length);
        self.members[member].memory[&region.key][start as usize..end as usize].to_vec()
    }

    fn write(&mut self, member: usize, region: Region, bytes: &[u8]) {
        let memory = self.members[member].memory.get_mut(&region.key);
        let memory = memory.expect("only registered memory is written");
        memory[region.offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn give_back(&mut self, member: usize) {
        self.with(member, |core, wires| core.on_returned(wires));
    }
}

pub(crate) const BOTH: Access = Access {
    read: true,
    write: true,
};

pub(crate) fn request(direction: Direction, length: u64) -> RmaRequest {
    RmaRequest {
        direction,
        local: Region {
            key: 1,
            offset: 0,
            length,
        },
        remote_key: 2,
        remote_offset: 0,
        fence: false,
    }
}
