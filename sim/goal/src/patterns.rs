//! Schedules that are asked for often.

use lintel_sim_kernel::Stream;

use crate::goal::{Goal, Label, Operation, Order, Rank};

/// Rank 0 and the last one send to each other in turn, so many times there and back.
pub fn ping_pong(ranks: u32, bytes: u64, repeats: u32) -> Goal {
    let mut goal = Goal::new(ranks);
    let (near, far) = (0, ranks.saturating_sub(1));
    let (mut asked, mut answered) = (None, None);
    for _ in 0..repeats {
        let ask = goal.then(near, answered, Operation::send(far, bytes));
        answered = Some(goal.then(near, Some(ask), Operation::recv(far, bytes)));
        asked = Some(goal.then(far, asked, Operation::recv(near, bytes)));
        asked = Some(goal.then(far, asked, Operation::send(near, bytes)));
    }
    goal
}

/// Each rank sends so many messages to random ranks, never to itself, and computes
/// `gap_ns` before each.
pub fn uniform(ranks: u32, messages: u32, bytes: u64, gap_ns: u64, stream: &mut Stream) -> Goal {
    let mut goal = Goal::new(ranks);
    if ranks < 2 {
        return goal;
    }
    for rank in 0..ranks {
        let mut last = None;
        for _ in 0..messages {
            let other = stream.below(u64::from(ranks) - 1) as u32;
            let to = other + u32::from(other >= rank);
            let computed = goal.then(rank, last, Operation::calc(gap_ns));
            last = Some(goal.then(rank, Some(computed), Operation::send(to, bytes)));
            goal.add(to, Operation::recv_any(bytes));
        }
    }
    goal
}

/// All others send to rank 0 at once, so many messages each.
pub fn incast(ranks: u32, messages: u32, bytes: u64) -> Goal {
    let mut goal = Goal::new(ranks);
    for rank in 1..ranks {
        let mut last = None;
        for _ in 0..messages {
            last = Some(goal.then(rank, last, Operation::send(0, bytes)));
            goal.add(0, Operation::recv(rank, bytes));
        }
    }
    goal
}

/// Each rank sends to each other one, the next one first, and receives from all.
pub fn all_to_all(ranks: u32, bytes: u64) -> Goal {
    let mut goal = Goal::new(ranks);
    for rank in 0..ranks {
        let mut last = None;
        for distance in 1..ranks {
            let to = (rank + distance) % ranks;
            last = Some(goal.then(rank, last, Operation::send(to, bytes)));
            let from = (rank + ranks - distance) % ranks;
            goal.add(rank, Operation::recv(from, bytes));
        }
    }
    goal
}

/// Ranks of a 3D grid that is closed in each dimension exchange messages with their six
/// neighbours, then compute, so many times.
pub fn halo(places: [u32; 3], bytes: u64, compute_ns: u64, repeats: u32) -> Goal {
    let [x, y, z] = places;
    let mut goal = Goal::new(x * y * z);
    for rank in 0..goal.ranks() {
        let neighbours = neighbours(rank, places);
        let mut last = None;
        for _ in 0..repeats {
            last = Some(exchange(&mut goal, rank, &neighbours, bytes, last));
            last = Some(goal.then(rank, last, Operation::calc(compute_ns)));
        }
    }
    goal
}

/// Sends to all neighbours and waits for theirs; a tag says from which side it comes.
fn exchange(
    goal: &mut Goal,
    rank: Rank,
    neighbours: &[Rank; 6],
    bytes: u64,
    last: Option<Label>,
) -> Label {
    let mut parts = Vec::new();
    for (side, &other) in (0..).zip(neighbours) {
        let receive = Operation::recv(other, bytes).tagged(side);
        parts.push(goal.then(rank, last, receive));
    }
    let mut sent = last;
    for (side, &other) in (0u32..).zip(neighbours) {
        let send = Operation::send(other, bytes).tagged(side ^ 1);
        sent = Some(goal.then(rank, sent, send));
    }
    let together = goal.then(rank, sent, Operation::calc(0));
    for part in parts {
        goal.require(rank, together, part, Order::AfterEnd);
    }
    together
}

/// Up and down in each dimension.
fn neighbours(rank: Rank, [x, y, z]: [u32; 3]) -> [Rank; 6] {
    let at = [rank % x, rank / x % y, rank / (x * y)];
    let sizes = [x, y, z];
    std::array::from_fn(|side| {
        let (dimension, step) = (side / 2, side % 2);
        let size = sizes[dimension];
        let mut to = at;
        to[dimension] = (at[dimension] + if step == 0 { 1 } else { size - 1 }) % size;
        to[0] + x * (to[1] + y * to[2])
    })
}
