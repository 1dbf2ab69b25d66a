//! Hosts that execute a schedule.
//!
//! ```text
//!            ready              processor and gap free        L, or a fabric
//!  waits ──▶ Ready ──▶ waiting ──▶ begin ────────────▶ Leave ─────▶ Arrive
//!    ▲                   ▲          │ end                             │
//!    └── followers ◀─────┼──────────┘       processor and gap free ◀──┘
//!                        └── Wake                      │
//!                                                      ▼ meets a receive, or waits
//! ```
//!
//! A processor does one thing after the other. Among those that want it at the same
//! time, the one that was put on the event queue first comes first: a message from the moment it
//! was sent, an operation from the moment its last predecessor was through; what became
//! free in one go is ordered by host and kind. This is LogGOPSim's order, so that both
//! give the same times.
//!
//! Where this departs from LogGOPSim: what follows an operation waits for its end also
//! on another processor, noise delays what it stretches, and a message of no bytes has
//! no bytes (there it has 2^32 − 1 after the first). Of two sends that begin at the same
//! time on different hosts, one that waited for its processor may go behind one that
//! became free later; that shows in few schedules with messages above `S`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use lintel_sim_fabric::FabricEvent;
use lintel_sim_kernel::{Bytes, Duration, Event, EventQueue, SimTime, Simulation, Streams, World};
use lintel_sim_node::{Core, Noise, NoiseParameters};

use crate::compiled::{Compiled, Step, place};
use crate::goal::{Act, Goal, Order, Rank};
use crate::hosts::Hosts;
use crate::matching::{Matching, PostedReceive, SourceTag};
use crate::network::{Envelope, Network, after_the_first};
use crate::spans::{Observer, Span, Track};

/// An event of the machine; numbers are those of steps, messages and units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineEvent {
    /// An event within the fabric.
    Fabric(FabricEvent),
    /// An operation waits for nothing any more.
    Ready(u32),
    /// A message leaves its host.
    Leave(u32),
    /// A message is at its host, or its first byte is.
    Arrive(u32),
    /// A processor or an interface may be free for those that wait.
    Wake(u32),
}

/// Hosts and a network, with a schedule to execute.
pub struct Machine<N> {
    schedule: Compiled,
    hosts: Hosts,
    network: N,
    /// What each step still waits for.
    pending: Vec<Pending>,
    /// Each host's processors, then each way of its interfaces; one host's after the
    /// other's.
    cores: Vec<Core>,
    units: Vec<Unit>,
    matching: Vec<Matching>,
    messages: Vec<Transit>,
    unused: Vec<u32>,
    ends: Vec<SimTime>,
    undone: usize,
    /// Steps that wait for nothing any more and aren't on the event queue yet.
    freed: Vec<u32>,
    /// Something would have ended later than [`LAST`].
    is_too_long: bool,
    sent: u64,
    /// Numbers whatever is put on the event queue, for the order of those who wait.
    sequence: u64,
    observer: Option<Observer>,
}

#[derive(Clone, Copy)]
struct Pending {
    waits: u32,
    ready: SimTime,
    sequence: u64,
}

/// What one thing after the other takes.
#[derive(Clone, Default)]
struct Unit {
    free_at: SimTime,
    /// Waiting items, the lowest sequence number first.
    waiting: BinaryHeap<Reverse<(u64, Item)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Item {
    Step(u32),
    Message(u32),
}

/// A message that no rank has received.
#[derive(Clone, Copy)]
struct Transit {
    envelope: Envelope,
    /// The step that sent it.
    step: u32,
    tag: u32,
    cpu: u8,
    nic: u8,
    sequence: u64,
    left: SimTime,
    /// When its host is through with it.
    received: SimTime,
}

/// What a schedule left undone: others never sent or received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// It takes longer than time is here, so what else is said may be wrong.
    pub is_too_long: bool,
    /// Operations that never ended.
    pub operations: usize,
    /// Messages that no rank received.
    pub messages: usize,
    /// Some of them, in words.
    pub examples: Vec<String>,
}

impl<N: Network> Machine<N> {
    /// A machine at the start of time.
    pub fn new(schedule: Compiled, hosts: Hosts, network: N) -> Self {
        let ranks = schedule.ranks as usize;
        let pending = |waits| Pending {
            waits,
            ready: SimTime::START,
            sequence: 0,
        };
        Machine {
            pending: schedule.steps.iter().map(|s| pending(s.waits)).collect(),
            cores: vec![Core::new(Noise::NONE); ranks * schedule.cpus],
            units: vec![Unit::default(); ranks * (schedule.cpus + 2 * schedule.nics)],
            matching: vec![Matching::default(); ranks],
            messages: Vec::new(),
            unused: Vec::new(),
            ends: vec![SimTime::START; ranks],
            undone: schedule.steps.len(),
            freed: Vec::new(),
            is_too_long: false,
            sent: 0,
            sequence: 0,
            observer: None,
            schedule,
            hosts,
            network,
        }
    }

    /// Lets noise disturb each processor, by streams of its own.
    ///
    /// # Errors
    ///
    /// Noise that leaves no time for work.
    pub fn with_noise(
        mut self,
        noise: NoiseParameters,
        streams: Streams,
    ) -> Result<Self, lintel_sim_node::ConfigError> {
        let cpus = self.schedule.cpus;
        for (number, core) in self.cores.iter_mut().enumerate() {
            let path = format!("node/{}/core/{}/noise", number / cpus, number % cpus);
            *core = Core::new(Noise::new(noise, streams.stream(&path))?);
        }
        Ok(self)
    }

    /// Reports each span to the observer.
    #[must_use]
    pub fn observed(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Puts on the event queue what waits for nothing.
    pub fn start(&mut self, events: &mut EventQueue<MachineEvent>) {
        let free = |step: &u32| self.pending[*step as usize].waits == 0;
        let mut free: Vec<u32> = (0..self.pending.len() as u32).filter(free).collect();
        free.sort_by_key(|&step| {
            let step = &self.schedule.steps[step as usize];
            (step.rank, place(step.operation.act))
        });
        for step in free {
            self.make_ready(step, events);
        }
    }

    /// When each rank ended its last operation.
    pub fn ends(&self) -> &[SimTime] {
        &self.ends
    }

    /// How long the schedule took.
    pub fn end(&self) -> Duration {
        let last = self.ends.iter().max();
        last.map_or(Duration::ZERO, |end| end.since(SimTime::START))
    }

    /// How many operations have not ended.
    pub fn undone(&self) -> usize {
        self.undone
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.pending.len()
    }

    /// How many messages were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The network that carries messages between ranks.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// What is left undone, when nothing is to happen any more.
    pub fn unfinished(&self) -> Option<Unfinished> {
        let messages = self.messages.len() - self.unused.len();
        if self.undone == 0 && messages == 0 && !self.is_too_long {
            return None;
        }
        let receives = (0..).zip(&self.matching).flat_map(|(rank, m)| {
            m.receives().map(move |w| {
                format!(
                    "rank {rank} waits for a message from {} with {}",
                    named("rank", w.from),
                    named("tag", w.tag)
                )
            })
        });
        let lost = (0..).zip(&self.matching).flat_map(|(rank, m)| {
            m.messages().map(move |s| {
                let SourceTag { from, tag } = s;
                format!("rank {rank} never receives a message from rank {from} with tag {tag}")
            })
        });
        Some(Unfinished {
            is_too_long: self.is_too_long,
            operations: self.undone,
            messages,
            examples: receives.take(EXAMPLES).chain(lost.take(EXAMPLES)).collect(),
        })
    }

    /// The host comes to it when its processor has ended what it does now: a receive,
    /// too, isn't posted earlier.
    fn make_ready(&mut self, step: u32, events: &mut EventQueue<MachineEvent>) {
        let sequence = self.next_sequence();
        let Step {
            operation, rank, ..
        } = self.schedule.steps[step as usize];
        let idle_at = self.units[self.processor(rank, operation.cpu)].free_at;
        let pending = &mut self.pending[step as usize];
        pending.sequence = sequence;
        let when = pending.ready.max(idle_at).max(events.now());
        events.at(when, MachineEvent::Ready(step));
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Whatever waited for this step waits no longer, from `when` on.
    fn release(&mut self, step: u32, order: Order, when: SimTime) {
        for at in 0..self.schedule.followers(step).len() {
            let follower = self.schedule.followers(step)[at];
            if follower.order != order {
                continue;
            }
            let pending = &mut self.pending[follower.step as usize];
            pending.waits -= 1;
            pending.ready = pending.ready.max(when);
            if pending.waits == 0 {
                self.freed.push(follower.step);
            }
        }
    }

    /// What became free in one go is put on the event queue by host, as [`place`] says.
    fn make_freed_ready(&mut self, events: &mut EventQueue<MachineEvent>) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.sort_by_key(|&step| {
            let step = &self.schedule.steps[step as usize];
            (step.rank, place(step.operation.act))
        });
        for step in freed.drain(..) {
            self.make_ready(step, events);
        }
        self.freed = freed;
    }

    fn on_end(&mut self, step: u32, when: SimTime) {
        let rank = self.schedule.steps[step as usize].rank as usize;
        self.ends[rank] = self.ends[rank].max(when);
        self.undone -= 1;
        self.release(step, Order::AfterEnd, when);
    }

    /// Begins it, or lets it wait for its processor or its interface. `woken` is the
    /// one at which it is first in turn.
    fn attempt(&mut self, item: Item, woken: Option<usize>, events: &mut EventQueue<MachineEvent>) {
        let now = events.now();
        let taken = |unit: &usize| {
            let Unit { free_at, waiting } = &self.units[*unit];
            *free_at > now || !waiting.is_empty() && Some(*unit) != woken
        };
        match self.units_of(item).into_iter().flatten().find(taken) {
            Some(unit) => self.wait(unit, item, events),
            None => self.begin(item, events),
        }
    }

    /// The processor, and the way through the interface, that it takes.
    fn units_of(&self, item: Item) -> [Option<usize>; 2] {
        match item {
            Item::Step(step) => {
                let Step {
                    operation, rank, ..
                } = self.schedule.steps[step as usize];
                let nic_unit = match operation.act {
                    Act::Send(_) => Some(self.nic_unit(rank, operation.nic, OUT)),
                    Act::Calc => None,
                    Act::Recv(_) => return [None, None],
                };
                [Some(self.processor(rank, operation.cpu)), nic_unit]
            }
            Item::Message(message) => {
                let Transit {
                    envelope, cpu, nic, ..
                } = self.messages[message as usize];
                let nic_unit = self.nic_unit(envelope.to, nic, IN);
                [Some(self.processor(envelope.to, cpu)), Some(nic_unit)]
            }
        }
    }

    fn wait(&mut self, unit: usize, item: Item, events: &mut EventQueue<MachineEvent>) {
        let sequence = match item {
            Item::Step(step) => self.pending[step as usize].sequence,
            Item::Message(message) => self.messages[message as usize].sequence,
        };
        let waited_for = &mut self.units[unit];
        if waited_for.waiting.is_empty() {
            events.at(waited_for.free_at, MachineEvent::Wake(unit as u32));
        }
        waited_for.waiting.push(Reverse((sequence, item)));
    }

    fn on_ready(&mut self, step: u32, events: &mut EventQueue<MachineEvent>) {
        let Step {
            operation, rank, ..
        } = self.schedule.steps[step as usize];
        if let Act::Recv(_) = operation.act {
            // It waits for no processor, but comes after those that have waited longer
            // and may go on at this same time.
            let unit = self.processor(rank, operation.cpu);
            let first = self.units[unit].waiting.peek();
            if first.is_some_and(|Reverse((sequence, _))| {
                *sequence < self.pending[step as usize].sequence
            }) {
                self.on_wake(unit, events);
            }
        }
        self.attempt(Item::Step(step), None, events);
    }

    /// Waiting items go on, until the unit is taken again.
    fn on_wake(&mut self, unit: usize, events: &mut EventQueue<MachineEvent>) {
        // Another item was quicker, and is to be waited for.
        if self.units[unit].free_at > events.now() {
            return;
        }
        while self.units[unit].free_at <= events.now() {
            let Some(Reverse((_, item))) = self.units[unit].waiting.pop() else {
                return;
            };
            self.attempt(item, Some(unit), events);
        }
        if !self.units[unit].waiting.is_empty() {
            let wake = MachineEvent::Wake(unit as u32);
            events.at(self.units[unit].free_at, wake);
        }
    }

    fn begin(&mut self, item: Item, events: &mut EventQueue<MachineEvent>) {
        match item {
            Item::Step(step) => match self.schedule.steps[step as usize].operation.act {
                Act::Send(to) => self.send(step, to, events),
                Act::Recv(_) => self.receive(step, events.now()),
                Act::Calc => self.compute(step, events.now()),
            },
            Item::Message(message) => self.take_in(message, events.now()),
        }
        self.make_freed_ready(events);
    }

    fn compute(&mut self, step: u32, now: SimTime) {
        let planned = self.schedule.steps[step as usize];
        let operation = planned.operation;
        let work = Duration::from_ns(operation.size);
        let done = self.work(planned.rank, operation.cpu, now, work);
        self.report(Span {
            at: planned.rank,
            track: Track::Cpu(operation.cpu),
            name: "calc",
            bytes: None,
            start: now,
            end: done,
        });
        self.release(step, Order::AfterBegin, now);
        self.on_end(step, done);
    }

    fn send(&mut self, step: u32, to: Rank, events: &mut EventQueue<MachineEvent>) {
        let planned = self.schedule.steps[step as usize];
        let operation = planned.operation;
        let bytes = operation.size;
        let now = events.now();
        let left = self.work(planned.rank, operation.cpu, now, self.hosts.overhead);
        let done = self.work(planned.rank, operation.cpu, left, self.per_byte(bytes));
        let nic_unit = self.nic_unit(planned.rank, operation.nic, OUT);
        self.occupy_nic(nic_unit, now, self.network.tail(bytes));
        self.report(Span {
            at: planned.rank,
            track: Track::Cpu(operation.cpu),
            name: "send",
            bytes: Some(Bytes(bytes)),
            start: now,
            end: done,
        });
        let sequence = self.next_sequence();
        let envelope = Envelope {
            number: 0,
            from: planned.rank,
            to,
            bytes,
        };
        let envelope = self.keep(Transit {
            envelope,
            step,
            tag: operation.tag.unwrap_or(0),
            cpu: operation.cpu,
            nic: operation.nic,
            sequence,
            left,
            received: SimTime::NEVER,
        });
        self.network.carry(envelope, left, events);
        self.release(step, Order::AfterBegin, now);
        if bytes <= self.hosts.eager {
            self.on_end(step, done);
        }
    }

    /// Gives a message a number.
    fn keep(&mut self, mut transit: Transit) -> Envelope {
        self.sent += 1;
        let number = self.unused.pop();
        let number = number.unwrap_or(self.messages.len() as u32);
        transit.envelope.number = number;
        match self.messages.get_mut(number as usize) {
            Some(place) => *place = transit,
            None => self.messages.push(transit),
        }
        transit.envelope
    }

    fn on_arrive(&mut self, message: u32, events: &mut EventQueue<MachineEvent>) {
        let Transit { envelope, left, .. } = self.messages[message as usize];
        self.report(Span {
            at: envelope.to,
            track: Track::Network,
            name: "message",
            bytes: Some(Bytes(envelope.bytes)),
            start: left,
            end: events.now(),
        });
        self.attempt(Item::Message(message), None, events);
    }

    /// The host takes a message from its interface.
    fn take_in(&mut self, message: u32, now: SimTime) {
        let transit = self.messages[message as usize];
        let Envelope { to, bytes, .. } = transit.envelope;
        let tail = self.network.tail(bytes);
        let work = self.hosts.overhead + self.per_byte(bytes).max(tail);
        let done = self.work(to, transit.cpu, now, work);
        let nic_unit = self.nic_unit(to, transit.nic, IN);
        self.occupy_nic(nic_unit, now, tail);
        self.messages[message as usize].received = done;
        self.report(Span {
            at: to,
            track: Track::Cpu(transit.cpu),
            name: "receive",
            bytes: Some(Bytes(bytes)),
            start: now,
            end: done,
        });
        let sent = SourceTag {
            from: transit.envelope.from,
            tag: transit.tag,
        };
        if let Some(step) = self.matching[to as usize].on_message(sent, message) {
            self.complete_receive(step, message, now);
        }
    }

    fn receive(&mut self, step: u32, now: SimTime) {
        let planned = self.schedule.steps[step as usize];
        let Act::Recv(from) = planned.operation.act else {
            unreachable!("only receives get here");
        };
        let wanted = PostedReceive {
            from,
            tag: planned.operation.tag,
        };
        self.release(step, Order::AfterBegin, now);
        let matching = &mut self.matching[planned.rank as usize];
        if let Some(message) = matching.on_receive(wanted, step) {
            self.complete_receive(step, message, now);
        }
    }

    /// A receive has its message.
    fn complete_receive(&mut self, step: u32, message: u32, now: SimTime) {
        let transit = self.messages[message as usize];
        self.unused.push(message);
        if transit.envelope.bytes > self.hosts.eager {
            self.on_end(transit.step, now);
        }
        self.on_end(step, transit.received.max(now));
    }

    /// Takes a processor's time; when it is done.
    fn work(&mut self, rank: Rank, cpu: u8, from: SimTime, work: Duration) -> SimTime {
        if from > LAST || work > LAST.since(from) {
            self.is_too_long = true;
            return from;
        }
        let core = rank as usize * self.schedule.cpus + usize::from(cpu);
        let done = self.cores[core].run(from, work);
        let unit = self.processor(rank, cpu);
        self.units[unit].free_at = done;
        done
    }

    /// Takes a way through an interface for a message whose bytes follow for so long.
    fn occupy_nic(&mut self, nic_unit: usize, now: SimTime, tail: Duration) {
        self.is_too_long |= now > LAST;
        if !self.is_too_long {
            self.units[nic_unit].free_at = now + self.hosts.gap + tail;
        }
    }

    fn per_byte(&self, bytes: u64) -> Duration {
        after_the_first(self.hosts.overhead_per_byte, bytes)
    }

    fn processor(&self, rank: Rank, cpu: u8) -> usize {
        self.first_unit(rank) + usize::from(cpu)
    }

    fn nic_unit(&self, rank: Rank, nic: u8, direction: usize) -> usize {
        self.first_unit(rank) + self.schedule.cpus + 2 * usize::from(nic) + direction
    }

    fn first_unit(&self, rank: Rank) -> usize {
        rank as usize * (self.schedule.cpus + 2 * self.schedule.nics)
    }

    fn report(&mut self, span: Span) {
        if let Some(observer) = &mut self.observer {
            observer(span);
        }
    }
}

impl<N: Network> World for Machine<N> {
    type Event = MachineEvent;

    fn on_event(&mut self, event: MachineEvent, events: &mut EventQueue<MachineEvent>) {
        match event {
            MachineEvent::Fabric(event) => {
                if let Some(message) = self.network.on_event(event, events) {
                    self.on_arrive(message, events);
                }
            }
            MachineEvent::Ready(step) => self.on_ready(step, events),
            MachineEvent::Leave(message) => {
                let envelope = self.messages[message as usize].envelope;
                self.network.on_leave(envelope, events);
            }
            MachineEvent::Arrive(message) => self.on_arrive(message, events),
            MachineEvent::Wake(unit) => self.on_wake(unit as usize, events),
        }
    }

    fn foresee(&self, event: &MachineEvent) {
        if let MachineEvent::Fabric(event) = event {
            self.network.foresee(event);
        }
    }
}

impl From<FabricEvent> for MachineEvent {
    fn from(event: FabricEvent) -> Self {
        MachineEvent::Fabric(event)
    }
}

impl Event for MachineEvent {
    #[inline]
    fn word(&self) -> u64 {
        match *self {
            MachineEvent::Fabric(event) => event.word(),
            MachineEvent::Ready(step) => 1 << 40 | u64::from(step),
            MachineEvent::Leave(message) => 2 << 40 | u64::from(message),
            MachineEvent::Arrive(message) => 3 << 40 | u64::from(message),
            MachineEvent::Wake(unit) => 4 << 40 | u64::from(unit),
        }
    }
}

/// Runs a schedule to its end, without noise.
///
/// # Errors
///
/// Operations that wait for each other, or for what never comes.
pub fn run<N: Network>(
    goal: &Goal,
    hosts: Hosts,
    network: N,
) -> Result<Simulation<Machine<N>>, Box<dyn std::error::Error>> {
    let mut simulation = Simulation::new(Machine::new(goal.compile()?, hosts, network));
    let Simulation { world, events } = &mut simulation;
    world.start(events);
    simulation.run();
    match simulation.world.unfinished() {
        None => Ok(simulation),
        Some(unfinished) => Err(unfinished.into()),
    }
}

fn named(what: &str, number: Option<u32>) -> String {
    match number {
        Some(number) => format!("{what} {number}"),
        None => format!("any {what}"),
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_too_long {
            return write!(f, "the schedule takes more than 53 days of simulated time");
        }
        let Unfinished {
            operations,
            messages,
            examples,
            ..
        } = self;
        write!(
            f,
            "the schedule ends with {operations} operations undone and {messages} messages unreceived: {}",
            examples.join("; ")
        )
    }
}

impl std::error::Error for Unfinished {}

/// The latest that anything ends, 53 days: what comes on top still fits.
const LAST: SimTime = SimTime::from_ps(1 << 62);

/// The two ways of an interface.
const OUT: usize = 0;
const IN: usize = 1;

/// So many examples of what is left undone are listed, of each kind.
const EXAMPLES: usize = 3;
