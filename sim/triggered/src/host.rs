//! A host: one state machine, which does one thing after the other.

use std::collections::VecDeque;

use lintel_sim_fabric::Fabric;
use lintel_sim_kernel::{Duration, EventQueue, SimTime};
use lintel_sim_node::Noise;

use crate::machine::{Action, Inside, Machine, MachineEvent, after};
use crate::measure::Entry;
use crate::program::{Command, Counter, Do, Program};
use crate::timing::{self, STEP};
use crate::trace::Track;

/// The host of a node, which executes its program.
#[derive(Debug)]
pub(crate) struct Host {
    program: Program,
    noise: Noise,
    /// What it does next.
    at: usize,
    /// Work up to the next pause.
    work: Duration,
    is_waiting: bool,
    gathers: bool,
    ended: Option<SimTime>,
    counts: Vec<u32>,
    messages: Messages,
    bus: Bus,
}

/// Messages that the host itself takes in, by their senders.
#[derive(Default, Debug)]
struct Messages {
    expected: Vec<u32>,
    arrived: VecDeque<u32>,
    unexpected: Vec<u32>,
}

/// What waits to be carried to the interface.
#[derive(Default, Debug)]
struct Bus {
    commands: VecDeque<Command>,
    /// Bytes that were asked for: they go first.
    data: u32,
    is_awake: bool,
}

impl Host {
    pub(crate) fn new(program: Program, noise: Noise) -> Self {
        let counter = |step: &Do| match *step {
            Do::Await(counter, _) => usize::from(counter) + 1,
            _ => 0,
        };
        let counters = program.iter().map(counter).max().unwrap_or(0);
        Host {
            program,
            noise,
            at: 0,
            work: Duration::ZERO,
            is_waiting: false,
            gathers: false,
            ended: None,
            counts: vec![0; counters],
            messages: Messages::default(),
            bus: Bus::default(),
        }
    }

    pub(crate) fn begin(&mut self, start: SimTime, entry: Entry) {
        if entry == Entry::Undisturbed {
            self.noise.end_by(start);
        }
        self.at = 0;
        self.ended = None;
        self.counts.fill(0);
    }

    pub(crate) fn ended(&self) -> Option<SimTime> {
        self.ended
    }

    /// Begins work now; when it is done.
    fn begin_work(&mut self, work: Duration, now: SimTime) -> SimTime {
        self.is_waiting = false;
        self.work = Duration::ZERO;
        timing::rounded_up(self.noise.stretch(now, work.max(STEP)))
    }
}

impl Messages {
    /// Takes in what has arrived, up to one that is expected. Whether there was one:
    /// it costs time.
    fn take_expected(&mut self) -> bool {
        while let Some(from) = self.arrived.pop_front() {
            if let Some(place) = self.expected.iter().position(|&e| e == from) {
                self.expected.remove(place);
                return true;
            }
            self.unexpected.push(from);
        }
        false
    }

    /// Expects a message from a node; whether it is there already.
    fn expect(&mut self, from: u32) -> bool {
        match self.unexpected.iter().position(|&u| u == from) {
            Some(place) => {
                self.unexpected.remove(place);
                true
            }
            None => {
                self.expected.push(from);
                false
            }
        }
    }
}

impl<F: Fabric> Machine<F> {
    /// The host goes on with its program up to the next pause or wait.
    pub(crate) fn resume(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let receive = self.timing.receive;
        loop {
            let host = &mut self.hosts[node as usize];
            let Some(&step) = host.program.get(host.at) else {
                host.ended = Some(events.now());
                return;
            };
            match step {
                Do::Work(work) => host.work += work,
                Do::Post(command) => self.post(node, command, events),
                Do::Gather => host.gathers = true,
                Do::Fence => {
                    host.gathers = false;
                    host.work += self.timing.fence;
                }
                Do::Pause => {
                    host.at += 1;
                    let work = host.work;
                    return self.go_on(node, "work", work, events);
                }
                Do::Await(counter, count) => {
                    if host.counts[usize::from(counter)] < count {
                        host.is_waiting = true;
                        return;
                    }
                }
                Do::Receive(_) | Do::AwaitAll if host.messages.take_expected() => {
                    let work = host.work + receive;
                    return self.go_on(node, "receive", work, events);
                }
                Do::Receive(from) => {
                    if host.messages.expect(from) {
                        host.work += receive;
                    }
                }
                Do::AwaitAll => {
                    if !host.messages.expected.is_empty() {
                        host.is_waiting = true;
                        return;
                    }
                }
            }
            self.hosts[node as usize].at += 1;
        }
    }

    /// The host goes on when work is done that begins now.
    fn go_on(
        &mut self,
        node: u32,
        name: &'static str,
        work: Duration,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let now = events.now();
        let done = self.hosts[node as usize].begin_work(work, now);
        if let Some(trace) = &mut self.trace {
            trace.report((node, Track::Host), name, now, done);
        }
        events.at(done, MachineEvent::Node(Inside(Action::Resume(node))));
    }

    fn post(&mut self, node: u32, command: Command, events: &mut EventQueue<MachineEvent>) {
        let host = &mut self.hosts[node as usize];
        host.work += match host.gathers {
            true => self.timing.write,
            false => self.timing.command(),
        };
        let written = self.timing.write + timing::BUS;
        after(events, written, Action::Written(node, command));
    }

    pub(crate) fn on_notified(
        &mut self,
        node: u32,
        counter: Counter,
        value: u32,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let host = &mut self.hosts[node as usize];
        // No program waits for a counter beyond these.
        if let Some(count) = host.counts.get_mut(usize::from(counter)) {
            *count = value;
        }
        if host.is_waiting {
            self.go_on(node, "wake up", STEP, events);
        }
    }

    pub(crate) fn on_heard(&mut self, node: u32, from: u32, events: &mut EventQueue<MachineEvent>) {
        let host = &mut self.hosts[node as usize];
        host.messages.arrived.push_back(from);
        if host.is_waiting {
            self.go_on(node, "wake up", STEP, events);
        }
    }

    pub(crate) fn on_written(
        &mut self,
        node: u32,
        command: Command,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let bus = &mut self.hosts[node as usize].bus;
        bus.commands.push_back(command);
        if !bus.is_awake {
            bus.is_awake = true;
            after(events, timing::BUS_WAKE, Action::Bus(node));
        }
    }

    pub(crate) fn on_fetched(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let bus = &mut self.hosts[node as usize].bus;
        bus.data += 1;
        if !bus.is_awake {
            bus.is_awake = true;
            after(events, timing::BUS, Action::Bus(node));
        }
    }

    pub(crate) fn on_bus(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let bus = &mut self.hosts[node as usize].bus;
        if bus.data > 0 {
            bus.data -= 1;
            after(events, self.timing.link, Action::Data(node));
        } else if let Some(command) = bus.commands.pop_front() {
            let way = self.timing.write_latency + self.timing.link;
            after(events, way, Action::Queued(node, command));
        }
        bus.is_awake = bus.data > 0 || !bus.commands.is_empty();
        if bus.is_awake {
            after(events, timing::BUS, Action::Bus(node));
        }
    }
}
