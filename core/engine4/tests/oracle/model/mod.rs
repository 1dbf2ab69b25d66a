//! A slow, obvious Portals 4 interface: everything is a `Vec` that is walked
//! from its front, objects are known by the handle that the engine gave them,
//! and nothing is ever reused.

mod initiator;
mod target;

use crate::rig::Sent;
use lintel_engine4::{DescriptorSpec, EntrySpec, Registers, SearchOp, Transfer};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::{
    CountingEvent, Datatype, Error, Event, EventKind, Handle, InterfaceNumber, Limits, List,
    MeOptions, NiFail, NiOptions, PT_ANY, PortalIndex, ProcessId, PtOptions, Result,
};
use lintel_wire::{Request, Verb};
use std::collections::VecDeque;

pub type Spec = EntrySpec<Ghost>;

/// What waits for a counter.
#[derive(Clone, Debug)]
pub enum Later {
    Transfer(Transfer),
    Increment(Handle, CountingEvent),
    Set(Handle, CountingEvent),
    Append(Handle),
    Unlink(Handle),
}

#[derive(Clone)]
struct Portal {
    flow: bool,
    queue: Option<Handle>,
    enabled: bool,
    announce: bool,
}

#[derive(Clone)]
struct Entry {
    name: Handle,
    spec: Spec,
    list: List,
    counter: Option<Handle>,
    /// When it was linked; nothing before and after.
    linked: Option<u64>,
    local_offset: u64,
}

/// A request that has been accepted and is landing.
#[derive(Clone, Debug)]
pub struct Arrival {
    number: u64,
    request: Request,
    from: ProcessId,
    uid: u32,
    entry: Handle,
    list: List,
    unlinks: bool,
    silent: bool,
    pub mlength: u64,
    offset: u64,
    start: u64,
}

struct Header {
    arrival: Arrival,
    landed: Option<NiFail>,
    receiver: Option<OverflowReceiver>,
}

#[derive(Clone)]
struct OverflowReceiver {
    user_ptr: u64,
    options: MeOptions,
    counter: Option<Handle>,
}

struct Counter {
    name: Handle,
    value: CountingEvent,
    waiting: Vec<(u64, Later)>,
}

struct Md {
    name: Handle,
    spec: DescriptorSpec<Ghost>,
}

#[derive(Clone)]
struct Operation {
    transfer: Transfer,
    target: ProcessId,
    /// The descriptors that it uses.
    source: Option<Handle>,
    sink: Option<Handle>,
    sending: bool,
    /// Its reply is being moved.
    filling: bool,
    serial: u64,
    token: u32,
}

pub struct Model {
    pub matching: bool,
    pub logical: bool,
    pub map: Vec<ProcessId>,
    pub rank: u32,
    pub number: InterfaceNumber,
    pub limits: Limits,
    pub eager: u64,
    /// Each queue, how many events it holds at most, and those.
    pub queues: Vec<(Handle, usize, Vec<Event>)>,
    pub unreachable: Vec<ProcessId>,
    pub sent: Vec<(Sent, Option<u64>)>,
    pub registers: Registers,
    portals: Vec<Option<Portal>>,
    entries: Vec<Entry>,
    headers: Vec<Header>,
    arrivals: Vec<Arrival>,
    counters: Vec<Counter>,
    mds: Vec<Md>,
    operations: Vec<Operation>,
    ready: VecDeque<Later>,
    clock: u64,
}

/// A buffer's pieces.
fn spans(buffer: &Buffer<Ghost>) -> Vec<Ghost> {
    match buffer {
        Buffer::Contiguous(span) => vec![*span],
        Buffer::Vector(spans, _) => spans.to_vec(),
    }
}

/// The run of `length` bytes from `offset`, piece by piece.
pub fn run(buffer: &Buffer<Ghost>, offset: u64, length: u64) -> Vec<Ghost> {
    let (mut passed, mut found) = (0, Vec::new());
    let end = offset.saturating_add(length);
    for span in spans(buffer) {
        let (from, to) = (offset.max(passed), end.min(passed + span.length()));
        if from < to {
            found.push(Ghost::new(span.address() + (from - passed), to - from));
        }
        passed += span.length();
    }
    found
}

/// Where the byte at `offset` lies, or would.
fn place(buffer: &Buffer<Ghost>, offset: u64) -> u64 {
    match (buffer, run(buffer, offset, 1).first()) {
        (_, Some(span)) => span.address(),
        (Buffer::Contiguous(span), None) => span.address() + span.length(),
        (Buffer::Vector(..), None) => 0,
    }
}

fn size_of(datatype: Datatype) -> u64 {
    [1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32][datatype as usize]
}

fn is_reply(verb: Verb) -> bool {
    matches!(verb, Verb::Get | Verb::FetchAtomic | Verb::Swap)
}

impl Model {
    pub fn new(options: NiOptions, limits: Limits, eager: u64) -> Self {
        let matching = options.contains(NiOptions::MATCHING);
        let logical = options.contains(NiOptions::LOGICAL);
        Model {
            matching,
            logical,
            map: Vec::new(),
            rank: ProcessId::RANK_ANY,
            number: InterfaceNumber::new(matching, logical),
            limits,
            eager,
            queues: Vec::new(),
            unreachable: Vec::new(),
            sent: Vec::new(),
            registers: Registers::default(),
            portals: vec![None; limits.max_pt_index as usize + 1],
            entries: Vec::new(),
            headers: Vec::new(),
            arrivals: Vec::new(),
            counters: Vec::new(),
            mds: Vec::new(),
            operations: Vec::new(),
            ready: VecDeque::new(),
            clock: 0,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    // Events and counters

    fn post(&mut self, queue: Option<Handle>, event: Event) {
        if let Some((.., events)) = self
            .queues
            .iter_mut()
            .find(|(name, ..)| Some(*name) == queue)
        {
            events.push(event);
        }
    }

    fn room(&self, queue: Handle) -> usize {
        let found = self.queues.iter().find(|(name, ..)| *name == queue);
        found.map_or(0, |(_, most, events)| most.saturating_sub(events.len()))
    }

    fn queue(&self, name: Handle) -> Result<Option<Handle>> {
        if name == Handle::EQ_NONE {
            return Ok(None);
        }
        let live = self.queues.iter().any(|(queue, ..)| *queue == name);
        if live {
            Ok(Some(name))
        } else {
            Err(Error::ArgInvalid)
        }
    }

    fn counter(&self, name: Handle) -> Result<Option<Handle>> {
        if name == Handle::CT_NONE {
            return Ok(None);
        }
        self.value(name).map(|_| Some(name))
    }

    pub fn value(&self, name: Handle) -> Result<CountingEvent> {
        let found = self.counters.iter().find(|counter| counter.name == name);
        found.map(|counter| counter.value).ok_or(Error::ArgInvalid)
    }

    pub fn counter_alloc(&mut self, name: Handle) -> Result<()> {
        if self.counters.len() as i32 >= self.limits.max_cts {
            return Err(Error::NoSpace);
        }
        self.counters.push(Counter {
            name,
            value: CountingEvent::default(),
            waiting: Vec::new(),
        });
        Ok(())
    }

    /// Whether something would go on counting with a counter that is freed.
    pub fn counter_is_used(&self, name: Handle) -> bool {
        self.mds.iter().any(|md| md.spec.counter == name)
            || self.entries.iter().any(|entry| entry.counter == Some(name))
            || self.headers.iter().any(|header| {
                header
                    .receiver
                    .as_ref()
                    .is_some_and(|receiver| receiver.counter == Some(name))
            })
    }

    pub fn counter_free(&mut self, name: Handle) -> Result<()> {
        self.cancel(name)?;
        self.counters.retain(|counter| counter.name != name);
        Ok(())
    }

    pub fn cancel(&mut self, name: Handle) -> Result<()> {
        self.value(name)?;
        for counter in self
            .counters
            .iter_mut()
            .filter(|counter| counter.name == name)
        {
            for (_, later) in std::mem::take(&mut counter.waiting) {
                if let Later::Append(entry) = later {
                    self.entries.retain(|other| other.name != entry);
                }
            }
        }
        Ok(())
    }

    pub fn counter_set(&mut self, name: Handle, value: CountingEvent) -> Result<()> {
        self.value(name)?;
        self.change(name, value);
        self.settle();
        Ok(())
    }

    pub fn counter_inc(&mut self, name: Handle, by: CountingEvent) -> Result<()> {
        self.value(name)?;
        self.add(name, by);
        self.settle();
        Ok(())
    }

    fn add(&mut self, name: Handle, by: CountingEvent) {
        if let Ok(old) = self.value(name) {
            let success = old.success.wrapping_add(by.success);
            let failure = old.failure.wrapping_add(by.failure);
            self.change(name, CountingEvent { success, failure });
        }
    }

    fn change(&mut self, name: Handle, value: CountingEvent) {
        let Some(counter) = self
            .counters
            .iter_mut()
            .find(|counter| counter.name == name)
        else {
            return;
        };
        counter.value = value;
        let sum = value.success.wrapping_add(value.failure);
        counter.waiting.sort_by_key(|(threshold, _)| *threshold); // stable
        let due = counter
            .waiting
            .iter()
            .take_while(|(threshold, _)| *threshold <= sum)
            .count();
        self.ready
            .extend(counter.waiting.drain(..due).map(|(_, later)| later));
    }

    fn count(&mut self, counter: Option<Handle>, fail: NiFail, bytes: bool, length: u64) {
        let Some(counter) = counter else { return };
        let by = match (fail, bytes) {
            (NiFail::Ok, true) => CountingEvent {
                success: length,
                failure: 0,
            },
            (NiFail::Ok, false) => CountingEvent {
                success: 1,
                failure: 0,
            },
            _ => CountingEvent {
                success: 0,
                failure: 1,
            },
        };
        self.add(counter, by);
    }

    // Triggered operations

    pub fn triggered(&self) -> usize {
        self.counters
            .iter()
            .map(|counter| counter.waiting.len())
            .sum()
    }

    pub fn trigger(&mut self, later: Later, on: Handle, threshold: u64) -> Result<()> {
        self.value(on)?;
        match &later {
            Later::Transfer(transfer) => self.check(transfer).map(drop)?,
            Later::Increment(name, _) | Later::Set(name, _) => self.value(*name).map(drop)?,
            Later::Append(_) => {}
            Later::Unlink(name) => self.known(*name)?,
        }
        if self.triggered() as i32 >= self.limits.max_triggered_ops {
            return Err(Error::NoSpace);
        }
        let Some(counter) = self.counters.iter_mut().find(|counter| counter.name == on) else {
            return Err(Error::ArgInvalid);
        };
        counter.waiting.push((threshold, later));
        let value = counter.value;
        self.change(on, value);
        self.settle();
        Ok(())
    }

    pub fn trigger_append(
        &mut self,
        name: Handle,
        spec: Spec,
        list: List,
        on: Handle,
        threshold: u64,
    ) -> Result<()> {
        self.value(on)?;
        self.reserve(name, spec, list)?;
        let posted = self.trigger(Later::Append(name), on, threshold);
        if posted.is_err() {
            self.entries.retain(|entry| entry.name != name);
        }
        posted
    }

    fn settle(&mut self) {
        while let Some(later) = self.ready.pop_front() {
            match later {
                Later::Transfer(transfer) => {
                    if let Ok(target) = self.check(&transfer) {
                        self.launch(&transfer, target);
                    }
                }
                Later::Increment(name, by) => self.add(name, by),
                Later::Set(name, value) => self.change(name, value),
                Later::Append(name) => {
                    if self.known(name).is_ok() {
                        self.link(name);
                    }
                }
                Later::Unlink(name) => drop(self.unlink(name)),
            }
        }
    }

    // The portal table

    fn portal(&self, index: PortalIndex) -> Result<&Portal> {
        self.portals
            .get(index.position())
            .and_then(Option::as_ref)
            .ok_or(Error::ArgInvalid)
    }

    fn portal_mut(&mut self, index: PortalIndex) -> Result<&mut Portal> {
        self.portals
            .get_mut(index.position())
            .and_then(Option::as_mut)
            .ok_or(Error::ArgInvalid)
    }

    fn queue_of(&self, portal: PortalIndex) -> Option<Handle> {
        self.portal(portal).ok().and_then(|portal| portal.queue)
    }

    pub fn portal_alloc(
        &mut self,
        options: PtOptions,
        queue: Handle,
        wanted: u32,
    ) -> Result<PortalIndex> {
        let queue = self.queue(queue)?;
        let flow = options.contains(PtOptions::FLOWCTRL);
        if flow && queue.is_none() {
            return Err(Error::PtEqNeeded);
        }
        let index = if wanted == PT_ANY {
            self.portals
                .iter()
                .position(Option::is_none)
                .ok_or(Error::PtFull)?
        } else {
            wanted as usize
        };
        if index >= self.portals.len() {
            return Err(Error::ArgInvalid);
        }
        if self.portals[index].is_some() {
            return Err(Error::PtInUse);
        }
        let enabled = !options.contains(PtOptions::ALLOC_DISABLED);
        self.portals[index] = Some(Portal {
            flow,
            queue,
            enabled,
            announce: false,
        });
        Ok(PortalIndex(index as u16))
    }

    fn landing_at(&self, portal: PortalIndex) -> usize {
        self.arrivals
            .iter()
            .filter(|arrival| arrival.request.portal == portal)
            .count()
    }

    pub fn portal_free(&mut self, index: PortalIndex) -> Result<()> {
        self.portal(index)?;
        let here = |entry: &&Entry| entry.spec.portal == index && entry.linked.is_some();
        if self.entries.iter().find(here).is_some() || self.landing_at(index) > 0 {
            return Err(Error::PtInUse);
        }
        self.headers
            .retain(|header| header.arrival.request.portal != index);
        self.entries.retain(|entry| entry.spec.portal != index);
        self.portals[index.position()] = None;
        Ok(())
    }

    pub fn portal_disable(&mut self, index: PortalIndex) -> Result<bool> {
        let portal = self.portal_mut(index)?;
        (portal.enabled, portal.announce) = (false, false);
        Ok(self.landing_at(index) == 0)
    }

    pub fn portal_enable(&mut self, index: PortalIndex) -> Result<()> {
        let portal = self.portal_mut(index)?;
        (portal.enabled, portal.announce) = (true, false);
        Ok(())
    }

    fn announce(&mut self, index: PortalIndex) {
        let landing = self.landing_at(index);
        let Ok(portal) = self.portal_mut(index) else {
            return;
        };
        if portal.announce && landing == 0 {
            portal.announce = false;
            let queue = portal.queue;
            let mut event = Event::new(EventKind::PtDisabled);
            (event.pt_index, event.ni_fail) = (index.into(), NiFail::PtDisabled);
            self.post(queue, event);
        }
    }

    // Entries

    fn known(&self, name: Handle) -> Result<()> {
        let known = self.entries.iter().any(|entry| entry.name == name);
        if known {
            Ok(())
        } else {
            Err(Error::ArgInvalid)
        }
    }

    fn entry(&self, name: Handle) -> &Entry {
        self.entries
            .iter()
            .find(|entry| entry.name == name)
            .expect("the model knows its entries")
    }

    fn entry_mut(&mut self, name: Handle) -> &mut Entry {
        let found = self.entries.iter_mut().find(|entry| entry.name == name);
        found.expect("the model knows its entries")
    }

    fn receiver(&self, spec: &Spec) -> Result<OverflowReceiver> {
        self.portal(spec.portal)?;
        let counts = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW;
        let counter = match spec.options.intersects(counts) {
            true => self.counter(spec.counter)?,
            false => None,
        };
        Ok(OverflowReceiver {
            user_ptr: spec.user_ptr,
            options: spec.options,
            counter,
        })
    }

    fn reserve(&mut self, name: Handle, spec: Spec, list: List) -> Result<()> {
        let counter = self.receiver(&spec)?.counter;
        if self.entries.len() as i32 >= self.limits.max_entries {
            return Err(Error::NoSpace);
        }
        let beside = |entry: &&Entry| {
            entry.linked.is_some() && entry.list == list && entry.spec.portal == spec.portal
        };
        if self.entries.iter().filter(beside).count() as i32 >= self.limits.max_list_size {
            return Err(Error::ListTooLong);
        }
        self.entries.push(Entry {
            name,
            spec,
            list,
            counter,
            linked: None,
            local_offset: 0,
        });
        Ok(())
    }

    pub fn append(&mut self, name: Handle, spec: Spec, list: List) -> Result<()> {
        self.reserve(name, spec, list)?;
        self.link(name);
        self.settle();
        Ok(())
    }

    fn link(&mut self, name: Handle) {
        if self.entry(name).list == List::Priority && self.use_up(name) {
            self.post_own(name, EventKind::AutoUnlink, MeOptions::EVENT_UNLINK_DISABLE);
            self.entries.retain(|entry| entry.name != name);
            return;
        }
        if self.portal(self.entry(name).spec.portal).is_err() {
            self.entries.retain(|entry| entry.name != name);
            return;
        }
        self.entry_mut(name).linked = Some(self.clock + 1);
        self.tick();
        self.post_own(name, EventKind::Link, MeOptions::EVENT_LINK_DISABLE);
    }

    /// Gives an entry what came before it; true where that leaves it no use.
    fn use_up(&mut self, name: Handle) -> bool {
        while let Some(at) = {
            let entry = self.entry(name);
            self.waiting_for(&entry.spec, entry.local_offset)
        } {
            let rlength = self.headers[at].arrival.request.length;
            let OverflowReceiver { options, .. } = {
                let entry = self.entry(name);
                let (user_ptr, options) = (entry.spec.user_ptr, entry.spec.options);
                let receiver = OverflowReceiver {
                    user_ptr,
                    options,
                    counter: entry.counter,
                };
                self.claim(at, receiver.clone());
                receiver
            };
            let entry = self.entry_mut(name);
            let managed = options.contains(MeOptions::MANAGE_LOCAL);
            let mut full = false;
            if managed && options.contains(MeOptions::LOCAL_INC_UH_RLENGTH) {
                entry.local_offset += rlength;
                let left = entry
                    .spec
                    .buffer
                    .length()
                    .saturating_sub(entry.local_offset);
                full = entry.spec.min_free > 0 && left < entry.spec.min_free;
            }
            if full || options.contains(MeOptions::USE_ONCE) {
                return true;
            }
        }
        false
    }

    pub fn unlink(&mut self, name: Handle) -> Result<()> {
        self.known(name)?;
        if self.arrivals.iter().any(|arrival| arrival.entry == name)
            || self
                .headers
                .iter()
                .any(|header| header.arrival.entry == name)
        {
            return Err(Error::InUse);
        }
        self.entries.retain(|entry| entry.name != name);
        Ok(())
    }

    fn post_own(&mut self, name: Handle, kind: EventKind, disabled_by: MeOptions) {
        let entry = self.entry(name);
        if !entry.spec.options.contains(disabled_by) {
            let mut event = Event::new(kind);
            event.user_ptr = entry.spec.user_ptr;
            event.pt_index = entry.spec.portal.into();
            event.list = entry.list;
            self.post(self.queue_of(entry.spec.portal), event);
        }
    }

    /// Whether a message is for what a spec describes.
    fn suits(&self, spec: &Spec, local: u64, from: ProcessId, request: &Request) -> bool {
        let bits = !self.matching
            || (spec.match_bits | spec.ignore_bits) == (request.match_bits | spec.ignore_bits);
        let source = if !self.matching {
            true // a list entry asks nobody who they are
        } else if self.logical {
            [ProcessId::RANK_ANY, request.rank].contains(&spec.source.rank())
        } else {
            [ProcessId::NID_ANY, from.nid].contains(&spec.source.nid)
                && [ProcessId::PID_ANY, from.pid].contains(&spec.source.pid)
        };
        let managed = spec.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if managed {
            local
        } else {
            request.remote_offset
        };
        let fits = !spec.options.contains(MeOptions::NO_TRUNCATE)
            || offset as u128 + request.length as u128 <= spec.buffer.length() as u128;
        bits && source && fits
    }

    /// The earliest unexpected message that suits.
    fn waiting_for(&self, spec: &Spec, local: u64) -> Option<usize> {
        self.headers.iter().position(|header| {
            let arrival = &header.arrival;
            header.receiver.is_none()
                && arrival.request.portal == spec.portal
                && self.suits(spec, local, arrival.from, &arrival.request)
        })
    }

    fn claim(&mut self, at: usize, receiver: OverflowReceiver) {
        self.headers[at].receiver = Some(receiver);
        if self.headers[at].landed.is_some() {
            self.hand_out(at);
        }
    }

    /// Posts the events of the receiver of a header that has landed.
    fn hand_out(&mut self, at: usize) {
        let header = self.headers.remove(at);
        let (Some(receiver), Some(fail)) = (header.receiver, header.landed) else {
            unreachable!("only what is claimed and has landed is handed out")
        };
        let arrival = header.arrival;
        if !receiver.options.contains(MeOptions::EVENT_OVER_DISABLE) {
            let kind = match arrival.request.verb {
                Verb::Put => EventKind::PutOverflow,
                Verb::Get => EventKind::GetOverflow,
                Verb::Atomic => EventKind::AtomicOverflow,
                Verb::FetchAtomic | Verb::Swap => EventKind::FetchAtomicOverflow,
            };
            let event = self.arrival_event(&arrival, kind, receiver.user_ptr, fail);
            self.post(self.queue_of(arrival.request.portal), event);
        }
        if receiver.options.contains(MeOptions::EVENT_CT_OVERFLOW) {
            let bytes = receiver.options.contains(MeOptions::EVENT_CT_BYTES);
            self.count(receiver.counter, fail, bytes, arrival.mlength);
        }
        self.free_if_spent(arrival.entry);
    }

    fn arrival_event(&self, a: &Arrival, kind: EventKind, user_ptr: u64, fail: NiFail) -> Event {
        Event {
            start: a.start,
            user_ptr,
            hdr_data: a.request.hdr_data,
            match_bits: a.request.match_bits,
            rlength: a.request.length,
            mlength: a.mlength,
            remote_offset: a.request.remote_offset,
            initiator: if self.logical {
                ProcessId::from_rank(a.request.rank)
            } else {
                a.from
            },
            uid: a.uid,
            pt_index: a.request.portal.into(),
            kind,
            list: a.list,
            ni_fail: fail,
            operation: a.request.operation.into(),
            datatype: a.request.datatype.into(),
        }
    }

    fn free_if_spent(&mut self, name: Handle) {
        let used = self.entry(name).linked.is_some()
            || self.arrivals.iter().any(|arrival| arrival.entry == name)
            || self
                .headers
                .iter()
                .any(|header| header.arrival.entry == name);
        if used {
            return;
        }
        if self.entry(name).list == List::Overflow {
            self.post_own(name, EventKind::AutoFree, MeOptions::EVENT_UNLINK_DISABLE);
        }
        self.entries.retain(|entry| entry.name != name);
    }

    pub fn search(&mut self, spec: Spec, op: SearchOp) -> Result<()> {
        let receiver = self.receiver(&spec)?;
        let (counts, bytes) = (
            spec.options.contains(MeOptions::EVENT_CT_OVERFLOW),
            spec.options.contains(MeOptions::EVENT_CT_BYTES),
        );
        let once = spec.options.contains(MeOptions::USE_ONCE);
        let silent = spec.options.contains(MeOptions::EVENT_COMM_DISABLE);
        let queue = self.queue_of(spec.portal);
        let mut found = 0;
        match op {
            SearchOp::Delete => {
                while let Some(at) = self.waiting_for(&spec, 0) {
                    self.claim(at, receiver.clone());
                    found += 1;
                    if once {
                        break;
                    }
                }
            }
            SearchOp::Only => {
                let most = if once { 1 } else { usize::MAX };
                let fitting = |header: &&Header| {
                    let arrival = &header.arrival;
                    header.receiver.is_none()
                        && arrival.request.portal == spec.portal
                        && self.suits(&spec, 0, arrival.from, &arrival.request)
                };
                let shown: Vec<Arrival> = self
                    .headers
                    .iter()
                    .filter(fitting)
                    .take(most)
                    .map(|header| header.arrival.clone())
                    .collect();
                found = shown.len();
                for arrival in shown {
                    let kind = EventKind::Search;
                    let event = self.arrival_event(&arrival, kind, spec.user_ptr, NiFail::Ok);
                    if !silent {
                        self.post(queue, event);
                    }
                    if counts {
                        self.count(receiver.counter, NiFail::Ok, bytes, arrival.mlength);
                    }
                }
            }
        }
        if found == 0 && !silent {
            let mut event = Event::new(EventKind::Search);
            event.user_ptr = spec.user_ptr;
            (event.pt_index, event.ni_fail) = (spec.portal.into(), NiFail::NoMatch);
            self.post(queue, event);
        }
        if counts && (found == 0 || !once) {
            self.count(receiver.counter, NiFail::NoMatch, false, 0);
        }
        self.settle();
        Ok(())
    }
}

/// A message's own event, and that of an entry that unlinks; on the overflow list also that of memory
/// that is free, and that of a header that is received.
fn most_events(spec: &Spec, list: List) -> usize {
    let once = spec.options.contains(MeOptions::USE_ONCE);
    let may_fill = spec.options.contains(MeOptions::MANAGE_LOCAL) && spec.min_free > 0;
    let posts = !spec.options.contains(MeOptions::EVENT_UNLINK_DISABLE);
    let unlinking = usize::from((once || may_fill) && posts);
    let remembered = !spec.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
    match list {
        List::Priority => 1 + unlinking,
        List::Overflow => 1 + 2 * unlinking + usize::from(remembered),
    }
}
