//! The coarse model of the machine, for large machines and for many operations.
//!
//! A host runs ahead up to its next wait, and a message is one event: it counts or
//! notifies the host. What an interface or the bus does in between is added up by the same
//! constants; packets that leave a node wait for each other, those that cross in
//! the network don't. `tests/agreement.rs` holds it against [`crate::Machine`].

use std::hint::black_box;
use std::ops::Range;

use lintel_sim_fabric::{Node as Place, Torus};
use lintel_sim_kernel::{Duration, Event, EventQueue, SimTime, Simulation, World};
use lintel_sim_node::Noise;

use crate::measure::Entry;
use crate::program::{Act, Command, Counter, Do, Message, Program};
use crate::timing::{self, BUS, HOP, NOTIFY, STEP, Timing, later, next_edge};
use crate::trace::{Observer, Trace, Track};

/// Nodes that execute programs, in the coarse model.
pub struct CoarseMachine {
    timing: Timing,
    torus: Torus,
    nodes: Vec<Node>,
    /// All programs, one behind the other: large machines wait for memory.
    steps: Vec<Do>,
    /// All counters, so many a node.
    counters: Vec<Counting>,
    counters_each: usize,
    trace: Option<Trace>,
}

/// A message has arrived at its node.
#[derive(Clone, Copy, Debug)]
pub struct MessageArrived {
    to: u32,
    payload: Payload,
}

#[derive(Clone, Copy, Debug)]
enum Payload {
    Count(Counter),
    ToHost(u32),
}

/// What each message needs comes first, in two cache lines: large machines wait for
/// memory.
#[repr(C, align(64))]
struct Node {
    noise: Noise,
    /// The host's time, which may be ahead.
    clock: SimTime,
    at: usize,
    line_free: SimTime,
    work: Duration,
    ended: Option<SimTime>,
    is_waiting: bool,
    gathers: bool,
    /// Where its steps are.
    program: Range<usize>,
    bus_free: SimTime,
    read_free: SimTime,
    expected: Vec<u32>,
    /// Ranks whose messages have arrived before they were expected.
    unexpected: Vec<u32>,
    /// Arrival times of expected messages that aren't taken in yet.
    arrived: Vec<SimTime>,
}

#[derive(Default)]
struct Counting {
    value: u32,
    /// When it counted last.
    last: SimTime,
    waiting: Vec<Waiting>,
}

struct Waiting {
    count: u32,
    act: Act,
    posted: SimTime,
}

impl Event for MessageArrived {
    fn word(&self) -> u64 {
        let payload = match self.payload {
            Payload::Count(counter) => u64::from(counter),
            Payload::ToHost(from) => 1 << 31 | u64::from(from),
        };
        payload << 32 | u64::from(self.to)
    }
}

impl CoarseMachine {
    /// As [`crate::Machine::new`], in a torus.
    ///
    /// # Panics
    ///
    /// If there aren't as many programs as noises.
    pub fn new(timing: Timing, torus: Torus, programs: Vec<Program>, noises: Vec<Noise>) -> Self {
        assert_eq!(programs.len(), noises.len());
        let counters_each = programs
            .iter()
            .flatten()
            .map(counters_in)
            .max()
            .unwrap_or(0);
        let counters = programs.len() * counters_each;
        let mut coarse = CoarseMachine {
            timing,
            torus,
            nodes: Vec::with_capacity(programs.len()),
            steps: Vec::new(),
            counters: (0..counters).map(|_| Counting::default()).collect(),
            counters_each,
            trace: None,
        };
        for (program, noise) in programs.iter().zip(noises) {
            let first = coarse.steps.len();
            coarse.steps.extend(program);
            let last = coarse.steps.len();
            coarse.nodes.push(Node::new(first..last, noise));
        }
        coarse
    }

    /// Reports each span from now on: hosts' work, and messages from
    /// their first packet's leaving to their counting.
    pub fn observe(&mut self, observer: Observer) {
        self.trace = Some(Trace::new(observer));
    }

    /// As [`crate::operate`].
    ///
    /// # Panics
    ///
    /// As that.
    pub fn operate(
        simulation: &mut Simulation<CoarseMachine>,
        start: SimTime,
        entry: Entry,
    ) -> Duration {
        let start = later(start, Duration::ZERO);
        let Simulation { world, events } = simulation;
        for number in 0..world.nodes.len() as u32 {
            world.begin(number, start, entry);
            world.run_ahead(number, events);
        }
        simulation.run();
        let ended = simulation.world.nodes.iter().map(|node| node.ended);
        let last = ended
            .map(|ended| ended.expect("no program waits in vain"))
            .max();
        last.unwrap_or(start).since(start)
    }

    fn begin(&mut self, number: u32, start: SimTime, entry: Entry) {
        self.nodes[number as usize].begin(start, entry);
        let first = number as usize * self.counters_each;
        for counting in &mut self.counters[first..first + self.counters_each] {
            counting.value = 0;
            counting.waiting.clear();
        }
    }

    fn counting(&mut self, number: u32, counter: Counter) -> &mut Counting {
        &mut self.counters[number as usize * self.counters_each + usize::from(counter)]
    }

    /// The host does what it can without knowing what comes.
    fn run_ahead(&mut self, number: u32, events: &mut EventQueue<MessageArrived>) {
        loop {
            let node = &mut self.nodes[number as usize];
            if node.at == node.program.end {
                node.ended = Some(node.clock);
                return;
            }
            match self.steps[node.at] {
                Do::Work(work) => node.work += work,
                Do::Gather => node.gathers = true,
                Do::Fence => {
                    node.gathers = false;
                    node.work += self.timing.fence;
                }
                Do::Pause => {
                    let begun = node.clock;
                    node.pause();
                    if let Some(trace) = &mut self.trace {
                        trace.report((number, Track::Host), "work", begun, node.clock);
                    }
                }
                Do::Post(command) => self.post(number, command, events),
                Do::Await(counter, count) => {
                    let link = self.timing.link;
                    let counting = self.counting(number, counter);
                    let (value, known) = (counting.value, counting.last + NOTIFY + link);
                    let node = &mut self.nodes[number as usize];
                    if value < count {
                        node.is_waiting = true;
                        return;
                    }
                    node.wait_until(known);
                }
                Do::Receive(from) => node.receive(from, self.timing.receive),
                Do::AwaitAll => {
                    let begun = node.clock;
                    node.take_arrived(self.timing.receive);
                    if let (Some(trace), true) = (&mut self.trace, node.clock > begun) {
                        trace.report((number, Track::Host), "receive", begun, node.clock);
                    }
                    if !node.expected.is_empty() {
                        node.is_waiting = true;
                        return;
                    }
                }
            }
            self.nodes[number as usize].at += 1;
        }
    }

    fn post(&mut self, number: u32, command: Command, events: &mut EventQueue<MessageArrived>) {
        let Timing {
            write,
            link,
            write_latency,
            ..
        } = self.timing;
        let node = &mut self.nodes[number as usize];
        node.work += match node.gathers {
            true => write,
            false => self.timing.command(),
        };
        let carried = (node.clock + write + BUS + timing::BUS_WAKE).max(node.bus_free);
        node.bus_free = carried + BUS;
        let queued = next_edge(carried + write_latency + link);
        match command {
            Command::Resource => {}
            Command::Send(message) => self.send(number, message, 1, queued, events),
            Command::Trigger(counter, count, act) => {
                let posted = queued + timing::COMMAND;
                let counting = self.counting(number, counter);
                if counting.value >= count {
                    self.act(number, act, posted + timing::RELEASE, events);
                } else {
                    counting.waiting.push(Waiting { count, act, posted });
                }
            }
        }
    }

    /// Does what a counter has released.
    fn act(
        &mut self,
        number: u32,
        act: Act,
        when: SimTime,
        events: &mut EventQueue<MessageArrived>,
    ) {
        let Timing { link, count, .. } = self.timing;
        match act {
            Act::Send(message) => self.send(number, message, 1, when, events),
            Act::Fetch(message) => {
                let node = &mut self.nodes[number as usize];
                let read = (when + timing::READ).max(node.read_free);
                node.read_free = read + timing::NEXT_READ;
                let data = read + timing::READ + link + timing::MEMORY + BUS + link;
                let packets = if message.atomic { 1 } else { 2 };
                self.send(number, message, packets, next_edge(data), events);
            }
            Act::Count(counter) => {
                let payload = Payload::Count(counter);
                events.at(
                    when + count,
                    MessageArrived {
                        to: number,
                        payload,
                    },
                );
            }
        }
    }

    /// Sends a message of some packets, the last of which counts.
    fn send(
        &mut self,
        from: u32,
        message: Message,
        packets: u64,
        when: SimTime,
        events: &mut EventQueue<MessageArrived>,
    ) {
        let Timing {
            message: interface_time,
            link,
            unit,
            count,
            ..
        } = self.timing;
        let node = &mut self.nodes[from as usize];
        let left = timing::edge_from(later(when, interface_time)).max(node.line_free);
        node.line_free = left + BUS * packets;
        let hops = self.torus.distance(Place(from), Place(message.to));
        let path = timing::ROUTER + HOP * u64::from(hops) + link * 2;
        let at_unit = next_edge(left + BUS * (packets - 1) + path) + unit;
        let (wait, payload) = match message.counter {
            Some(counter) if message.atomic => (count + timing::ATOMIC, Payload::Count(counter)),
            Some(counter) => (count, Payload::Count(counter)),
            None => (interface_time + link, Payload::ToHost(from)),
        };
        let arrives = later(at_unit, wait);
        if let Some(trace) = &mut self.trace {
            let name = if message.atomic { "atomic" } else { "put" };
            trace.report((from, Track::Interface), name, when, left);
            trace.report((message.to, Track::Link), name, left, arrives);
        }
        let to = message.to;
        events.at(arrives, MessageArrived { to, payload });
    }

    fn on_count(&mut self, number: u32, counter: Counter, events: &mut EventQueue<MessageArrived>) {
        let now = events.now();
        let node = &mut self.nodes[number as usize];
        // The reply to what has come takes its place in the line.
        node.line_free = node.line_free.max(now) + BUS;
        let counting = self.counting(number, counter);
        counting.value += 1;
        counting.last = now;
        let mut released = now;
        loop {
            let released_one = self.counting(number, counter).take_released();
            let Some(Waiting { act, posted, .. }) = released_one else {
                return;
            };
            released = released.max(posted) + timing::RELEASE;
            self.act(number, act, released, events);
        }
    }
}

impl Node {
    fn new(program: Range<usize>, noise: Noise) -> Self {
        Node {
            noise,
            clock: SimTime::START,
            at: program.start,
            program,
            work: Duration::ZERO,
            gathers: false,
            is_waiting: false,
            ended: None,
            bus_free: SimTime::START,
            line_free: SimTime::START,
            read_free: SimTime::START,
            expected: Vec::new(),
            unexpected: Vec::new(),
            arrived: Vec::new(),
        }
    }

    fn begin(&mut self, start: SimTime, entry: Entry) {
        if entry == Entry::Undisturbed {
            self.noise.end_by(start);
        }
        self.clock = start;
        self.at = self.program.start;
        self.ended = None;
    }

    fn work(&mut self, work: Duration) {
        self.clock = self.noise.stretch(self.clock, work);
    }

    fn pause(&mut self) {
        let work = std::mem::take(&mut self.work);
        self.work(work.max(STEP));
    }

    /// Goes on at the notification, if that is still to come.
    fn wait_until(&mut self, heard: SimTime) {
        if heard > self.clock {
            self.clock = heard;
            self.work(STEP);
        }
    }

    fn receive(&mut self, from: u32, cost: Duration) {
        self.take_arrived(cost);
        match self.unexpected.iter().position(|&u| u == from) {
            Some(place) => {
                self.unexpected.swap_remove(place);
                self.work += cost;
            }
            None => self.expected.push(from),
        }
    }

    fn take_arrived(&mut self, cost: Duration) {
        for when in std::mem::take(&mut self.arrived) {
            self.wait_until(when);
            self.work(cost);
        }
    }

    fn on_heard(&mut self, from: u32, when: SimTime) {
        match self.expected.iter().position(|&e| e == from) {
            Some(place) => {
                self.expected.swap_remove(place);
                self.arrived.push(when);
            }
            None => self.unexpected.push(from),
        }
    }
}

impl Counting {
    fn take_released(&mut self) -> Option<Waiting> {
        let value = self.value;
        let place = self.waiting.iter().position(|w| w.count <= value)?;
        Some(self.waiting.remove(place))
    }
}

/// How many counters a step takes for granted.
fn counters_in(step: &Do) -> usize {
    let counter_of = |message: Message| message.counter;
    let of_act = |act| match act {
        Act::Send(message) | Act::Fetch(message) => counter_of(message),
        Act::Count(counter) => Some(counter),
    };
    let last = match *step {
        Do::Await(counter, _) => Some(counter),
        Do::Post(Command::Send(message)) => counter_of(message),
        Do::Post(Command::Trigger(counter, _, act)) => of_act(act).max(Some(counter)),
        _ => None,
    };
    last.map_or(0, |last| usize::from(last) + 1)
}

impl World for CoarseMachine {
    type Event = MessageArrived;

    fn on_event(
        &mut self,
        MessageArrived { to, payload }: MessageArrived,
        events: &mut EventQueue<MessageArrived>,
    ) {
        match payload {
            Payload::Count(counter) => self.on_count(to, counter, events),
            Payload::ToHost(from) => self.nodes[to as usize].on_heard(from, events.now()),
        }
        let node = &mut self.nodes[to as usize];
        if std::mem::take(&mut node.is_waiting) {
            self.run_ahead(to, events);
        }
    }

    fn foresee(&self, MessageArrived { to, payload }: &MessageArrived) {
        let node = &self.nodes[*to as usize];
        black_box((node.clock, node.is_waiting));
        if let Payload::Count(counter) = payload {
            let counting = *to as usize * self.counters_each + usize::from(*counter);
            black_box(self.counters[counting].value);
        }
    }
}
