//! What hosts do in an operation.
//!
//! Four programs are the public model's, step by step, pauses included: by them its
//! times come out to the nanosecond. [`posted`] and [`gone_through`] run any schedule
//! of `lintel-collectives`; `tests/schedules.rs` holds both kinds against each other.

use std::iter::repeat_n;

use lintel_collectives::{Act as StepAct, CounterId, Family, Movement, Schedule, Transfer, When};
use lintel_sim_kernel::Duration;

use crate::timing::{BIND, COMBINE, SETUP};

/// A counter of an interface.
pub type Counter = u16;

/// A message of up to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The node that gets it, perhaps the sender.
    pub to: u32,
    /// Where it counts; none: the host takes it itself.
    pub counter: Option<Counter>,
    /// Whether it is combined with what is there.
    pub atomic: bool,
}

/// What an interface does when a counter says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Sends what lies in the interface: the result of atomic operations, or nothing.
    Send(Message),
    /// Reads from the host's memory, and sends that.
    Fetch(Message),
    /// Increments one of the node's own counters.
    Count(Counter),
}

/// A command of a host to its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Of a counter or a list entry.
    Resource,
    /// Sends a message at once.
    Send(Message),
    /// When the counter has counted so much, do this.
    Trigger(Counter, u32, Act),
}

/// What a host does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Do {
    /// Works so long, up to the next pause.
    Work(Duration),
    /// Posts a command to its interface, and works for it up to the next pause.
    Post(Command),
    /// Commands from here on are written together.
    Gather,
    /// They are pushed out.
    Fence,
    /// What comes next happens when the work is done, a nanosecond later at least.
    Pause,
    /// Waits until a counter has counted so much.
    Await(Counter, u32),
    /// Expects a message from a node.
    Receive(u32),
    /// Waits for all that it expects.
    AwaitAll,
}

/// What one host does in an operation.
pub type Program = Vec<Do>;

const fn to_host(to: u32) -> Message {
    Message {
        to,
        counter: None,
        atomic: false,
    }
}

const fn put(to: u32, counter: Counter) -> Message {
    Message {
        to,
        counter: Some(counter),
        atomic: false,
    }
}

const fn atomic(to: u32, counter: Counter) -> Message {
    Message {
        to,
        counter: Some(counter),
        atomic: true,
    }
}

/// Recursive doubling by hosts (`allreduce_recdbl`), for a power of two.
pub fn doubling_by_host(rank: u32, ranks: u32) -> Program {
    let mut program = vec![Do::Work(SETUP), Do::Pause];
    for round in 0..ranks.ilog2() {
        let partner = rank ^ (1 << round);
        program.extend([
            Do::Receive(partner),
            Do::Post(Command::Send(to_host(partner))),
            Do::Pause,
            Do::AwaitAll,
            Do::Work(COMBINE),
            Do::Pause,
        ]);
    }
    program.push(Do::Pause);
    program
}

/// Up and down a tree by hosts (`allreduce_tree`), for the rank whose family that is. Down to
/// the children in their order.
pub fn tree_by_host(family: &Family) -> Program {
    let children = || family.children.iter().map(|child| child.first);
    let mut program = vec![Do::Work(SETUP), Do::Pause];
    program.extend(children().map(Do::Receive));
    program.push(Do::AwaitAll);
    let lines = family.children.len() / 8 + 1;
    program.extend(repeat_n([Do::Work(COMBINE), Do::Pause], lines).flatten());
    if let Some(parent) = family.parent {
        let up = Do::Post(Command::Send(to_host(parent)));
        program.extend([up, Do::Pause, Do::Receive(parent), Do::AwaitAll]);
    }
    let down = |child| [Do::Post(Command::Send(to_host(child))), Do::Pause];
    program.extend(children().flat_map(down));
    program.push(Do::Pause);
    program
}

/// Recursive doubling by interfaces (`allreduce_recdbl_trig`), for a power of two.
///
/// Where it differs from the schedule of `lintel-collectives`: a rank's own share of
/// a round is posted before its partner's; the interface itself clears each
/// round's place, with zeros from the host's memory, and moves the result to the
/// caller's, where it counts once more.
pub fn doubling_by_interface(rank: u32, ranks: u32) -> Program {
    let rounds = ranks.ilog2() as Counter;
    let partner = |round: Counter| rank ^ (1 << round);
    let post = |command| [Do::Post(command), Do::Pause];
    let mut program = vec![
        Do::Work(SETUP),
        Do::Pause,
        Do::Post(Command::Resource),
        Do::Post(Command::Resource),
        Do::Work(BIND),
    ];
    program.extend(post(Command::Send(atomic(rank, 0))));
    program.extend(post(Command::Send(atomic(partner(0), 0))));
    program.extend([Do::Gather, Do::Pause]);
    for round in 1..rounds {
        let when = |act| Command::Trigger(round - 1, 2, act);
        program.extend(post(when(Act::Send(atomic(rank, round)))));
        program.extend(post(when(Act::Send(atomic(partner(round), round)))));
        program.extend(post(when(Act::Fetch(atomic(rank, round - 1)))));
    }
    let (last, result) = (rounds - 1, rounds);
    let when = |act| Command::Trigger(last, 2, act);
    program.extend(post(when(Act::Fetch(put(rank, result)))));
    program.extend(post(when(Act::Fetch(atomic(rank, last)))));
    program.extend([
        Do::Fence,
        Do::Pause,
        Do::Await(result, 1),
        Do::Await(last, 3),
    ]);
    program.extend([Do::Pause, Do::Pause]);
    program
}

/// Up and down a tree by interfaces (`allreduce_tree_trig`), for the rank whose family that
/// is. Down to the children in their order.
///
/// Where it differs from the schedule of `lintel-collectives`: the interface clears
/// the sum's place, and the root's result goes to the caller's place, where it
/// counts, before it goes down.
pub fn tree_by_interface(family: &Family, rank: u32) -> Program {
    const UP: Counter = 0;
    const RESULT: Counter = 1;
    let children = family.children.len() as u32;
    let post = |command| [Do::Post(command), Do::Pause];
    let mut program = vec![Do::Work(SETUP), Do::Pause];
    program.extend(post(Command::Resource));
    program.extend(post(Command::Resource));
    let descriptors = 1 + usize::from(children > 0);
    program.extend(repeat_n([Do::Work(BIND), Do::Pause], descriptors).flatten());
    program.extend([Do::Gather, Do::Pause]);
    let when = |act| Command::Trigger(UP, children + 1, act);
    match family.parent {
        Some(parent) if children == 0 => {
            program.extend(post(Command::Send(atomic(parent, UP))));
        }
        parent => {
            program.extend(post(Command::Send(atomic(rank, UP))));
            let summed = match parent {
                Some(parent) => Act::Send(atomic(parent, UP)),
                None => Act::Fetch(put(rank, RESULT)),
            };
            program.extend(post(when(summed)));
            program.extend(post(when(Act::Fetch(atomic(rank, UP)))));
        }
    }
    for child in &family.children {
        let down = Act::Fetch(put(child.first, RESULT));
        program.extend(post(Command::Trigger(RESULT, 1, down)));
    }
    program.extend([Do::Fence, Do::Pause, Do::Await(RESULT, 1)]);
    if children > 0 {
        program.push(Do::Await(UP, children + 2));
    }
    program.extend([Do::Pause, Do::Pause]);
    program
}

/// The first operation of any schedule, posted whole. Messages take what 8 bytes
/// take, however long they are.
pub fn posted(schedule: &Schedule) -> Program {
    let mut program = vec![Do::Work(SETUP), Do::Pause, Do::Gather, Do::Pause];
    for step in &schedule.steps {
        // What waits for earlier operations only, waits for nothing in the first.
        let when = step.when.filter(|when| when.count > 0);
        let command = match (when, step.act) {
            (None, StepAct::Send(transfer)) => Command::Send(message(&transfer)),
            (when, act) => {
                let (trigger, count) = when.map_or((0, 0), reached);
                Command::Trigger(trigger, count, in_interface(act))
            }
        };
        program.extend([Do::Post(command), Do::Pause]);
    }
    program.extend([Do::Fence, Do::Pause]);
    let done = schedule.done.iter().map(|&when| reached(when));
    program.extend(done.map(|(counter, count)| Do::Await(counter, count)));
    program.push(Do::Pause);
    program
}

/// The first operation of any schedule, gone through by the host of `rank`: it waits
/// for counters, and combines its own bytes itself.
pub fn gone_through(schedule: &Schedule, rank: u32) -> Program {
    let mut program = vec![Do::Work(SETUP), Do::Pause];
    // What the host has counted itself needs no message.
    let mut own = vec![0; schedule.counters.len()];
    let awaited = |own: &[u32], when| {
        let (counter, count) = reached(when);
        Do::Await(counter, count.saturating_sub(own[usize::from(counter)]))
    };
    for step in &schedule.steps {
        program.extend(step.when.map(|when| awaited(&own, when)));
        match step.act {
            StepAct::Count(counter) => own[counter.0 as usize] += 1,
            StepAct::Send(transfer) if transfer.to.rank == rank => {
                own[transfer.to.counter.0 as usize] += 1;
                program.extend([Do::Work(COMBINE), Do::Pause]);
            }
            StepAct::Send(transfer) => {
                let send = Command::Send(message(&transfer));
                program.extend([Do::Post(send), Do::Pause]);
            }
        }
    }
    program.extend(schedule.done.iter().map(|&when| awaited(&own, when)));
    program.push(Do::Pause);
    program
}

fn message(transfer: &Transfer) -> Message {
    Message {
        to: transfer.to.rank,
        counter: Some(number(transfer.to.counter)),
        atomic: transfer.movement == Movement::Combine,
    }
}

/// Atomic operations' results lie in the interface, other bytes in the host's memory.
fn in_interface(act: StepAct) -> Act {
    match act {
        StepAct::Count(counter) => Act::Count(number(counter)),
        StepAct::Send(transfer) => {
            let message = message(&transfer);
            match message.atomic || transfer.from.bytes == 0 {
                true => Act::Send(message),
                false => Act::Fetch(message),
            }
        }
    }
}

fn reached(when: When) -> (Counter, u32) {
    let count = u32::try_from(when.count).expect("one operation counts below 2^32");
    (number(when.counter), count)
}

fn number(counter: CounterId) -> Counter {
    Counter::try_from(counter.0).expect("a schedule has below 2^16 counters")
}

/// Both nodes put 8 bytes to each other, and once more when they have got them
/// (`ping_pong`).
pub fn ping_pong(rank: u32) -> Program {
    let ping = Do::Post(Command::Send(put(1 - rank, 0)));
    vec![
        ping,
        Do::Pause,
        Do::Await(0, 1),
        Do::Pause,
        ping,
        Do::Pause,
        Do::Await(0, 2),
    ]
}
