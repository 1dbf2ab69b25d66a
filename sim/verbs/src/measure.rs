//! The measurements of the XRC seed, between two nodes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lintel_sim_kernel::{Bytes, Duration, SimTime, Simulation};

use crate::Transport;
use crate::constants::MTU;
use crate::machine::{Answer, Arrived, Machine, Post, Process};
use crate::trace::Observer;

/// A pattern of streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// So many processes of one node each send to one of the other.
    Pairs(u32),
    /// Each of two sends to the other.
    BothWays,
    /// Each of so many processes of either node sends to each of the other node.
    ManyToMany(u32),
}

/// What a measurement found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// 10^6 bytes a second, all processes and ways together.
    pub megabytes_per_second: f64,
    /// Contexts that weren't in an adapter's cache.
    pub misses: u64,
    /// The hash of all that happened.
    pub trace_hash: u64,
}

/// A measurement that is set up, to be run in pieces or whole.
pub struct Measurement<T> {
    /// The nodes, at the start of time.
    pub simulation: Simulation<Machine>,
    /// How much of it is done, 0 to 1.
    pub done: Box<dyn Fn() -> f64>,
    /// What it has found, when nothing is to happen any more.
    pub read: Read<T>,
}

/// Returns what a measurement has found.
pub type Read<T> = Box<dyn FnOnce(&Simulation<Machine>) -> T>;

impl<T> Measurement<T> {
    fn run(mut self) -> T {
        self.simulation.run();
        (self.read)(&self.simulation)
    }
}

/// Half a round trip of a message of this length, the contexts there.
///
/// # Panics
///
/// With UD, above a packet.
pub fn latency(transport: Transport, bytes: Bytes) -> Duration {
    prepare_latency(transport, bytes, None).run()
}

/// Sets [`latency`] up; the observer receives spans.
///
/// # Panics
///
/// As that.
pub fn prepare_latency(
    transport: Transport,
    bytes: Bytes,
    observer: Option<Observer>,
) -> Measurement<Duration> {
    let rounds = Rc::new(RefCell::new(Vec::new()));
    let arrived = Rc::new(Cell::new(0u64));
    let (recorded, count) = (Rc::clone(&rounds), Rc::clone(&arrived));
    let answer: Answer = Box::new(move |Arrived { post, when }| {
        let mut rounds = recorded.borrow_mut();
        rounds.push(when);
        count.set(count.get() + 1);
        let back = Post {
            from: post.to,
            to: post.from,
            bytes,
        };
        (rounds.len() < 2 * ROUNDS).then_some(back)
    });
    let first = Post {
        from: process(0, 0),
        to: process(1, 0),
        bytes,
    };
    let read = move |_: &Simulation<Machine>| {
        let rounds = rounds.borrow();
        // The first round fetches the contexts.
        let round = rounds[3].since(rounds[1]);
        Duration::from_ps(round.as_ps() / 2)
    };
    Measurement {
        simulation: begin(transport, &[first], answer, observer),
        done: Box::new(move || arrived.get() as f64 / (2 * ROUNDS) as f64),
        read: Box::new(read),
    }
}

/// What streams of messages of this length carry.
///
/// # Panics
///
/// As [`latency`].
pub fn bandwidth(transport: Transport, pattern: Pattern, bytes: Bytes) -> Found {
    prepare_bandwidth(transport, pattern, bytes, None).run()
}

/// Sets [`bandwidth`] up; the observer receives spans.
///
/// # Panics
///
/// As [`latency`].
pub fn prepare_bandwidth(
    transport: Transport,
    pattern: Pattern,
    bytes: Bytes,
    observer: Option<Observer>,
) -> Measurement<Found> {
    let streams = streams(pattern);
    let each = messages(bytes).div_ceil(streams.len() as u64).max(2);
    let all = u64::try_from(streams.len()).expect("few") * each;
    let posts: Vec<Post> = (0..each)
        .flat_map(|_| streams.iter().copied())
        .map(|(from, to)| Post { from, to, bytes })
        .collect();
    let ended = Rc::new(Cell::new(SimTime::START));
    let arrived = Rc::new(Cell::new(0u64));
    let (recorded, count) = (Rc::clone(&ended), Rc::clone(&arrived));
    let answer: Answer = Box::new(move |Arrived { when, .. }| {
        recorded.set(when.max(recorded.get()));
        count.set(count.get() + 1);
        None
    });
    let read = move |simulation: &Simulation<Machine>| {
        let took = ended.get().since(SimTime::START).as_ps();
        Found {
            megabytes_per_second: (all * bytes.0) as f64 / (took as f64 / 1e6),
            misses: simulation.world.misses(),
            trace_hash: simulation.events.trace_hash(),
        }
    };
    Measurement {
        simulation: begin(transport, &posts, answer, observer),
        // Far below 2^53.
        done: Box::new(move || arrived.get() as f64 / all as f64),
        read: Box::new(read),
    }
}

fn begin(
    transport: Transport,
    posts: &[Post],
    answer: Answer,
    observer: Option<Observer>,
) -> Simulation<Machine> {
    let mut machine = Machine::new(2, transport, answer).expect("a switch joins two nodes");
    if let Some(observer) = observer {
        machine.observe(observer);
    }
    let mut simulation = Simulation::new(machine);
    let Simulation { world, events } = &mut simulation;
    for &post in posts {
        Machine::post(world, post, events);
    }
    simulation
}

fn streams(pattern: Pattern) -> Vec<(Process, Process)> {
    let one_way = |rank| (process(0, rank), process(1, rank));
    match pattern {
        Pattern::Pairs(pairs) => (0..pairs).map(one_way).collect(),
        Pattern::BothWays => {
            let (here, there) = one_way(0);
            vec![(here, there), (there, here)]
        }
        Pattern::ManyToMany(count) => {
            let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
            pairs
                .flat_map(|(a, b)| {
                    let (here, there) = (process(0, a), process(1, b));
                    [(here, there), (there, here)]
                })
                .collect()
        }
    }
}

/// As many as move some megabytes; of short ones fewer bytes, so that it ends.
fn messages(bytes: Bytes) -> u64 {
    (STREAMED / bytes.0.max(MTU.0)).max(32)
}

const fn process(node: u32, rank: u32) -> Process {
    Process { node, rank }
}

/// Rounds of a ping-pong; all after the first are alike.
const ROUNDS: usize = 3;
/// Bytes of a measurement.
const STREAMED: u64 = 16 << 20;
