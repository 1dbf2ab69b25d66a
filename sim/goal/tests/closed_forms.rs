//! Times that can be written down: the machine gives them to the tick.
#![forbid(unsafe_code)]

use lintel_collectives::{Algorithm, Collective, Shape, Tree};
use lintel_sim_goal::{Goal, Hosts, LogGp, Operation, patterns, run};
use lintel_sim_kernel::Duration;

const L: u64 = 800;
const O: u64 = 130;
const G: u64 = 2;

fn hosts() -> Hosts {
    Hosts {
        overhead: Duration::from_ns(O),
        gap: Duration::from_ns(70),
        ..Hosts::FREE
    }
}

fn wire() -> LogGp {
    LogGp::new(Duration::from_ns(L)).per_byte(Duration::from_ns(G))
}

fn took_ns(goal: &Goal, hosts: Hosts) -> u64 {
    let done = run(goal, hosts, wire()).expect("it ends");
    done.world.end().as_ps() / 1_000
}

#[test]
fn ping_pong_takes_both_overheads_the_latency_and_each_byte_after_the_first() {
    for bytes in [1, 8, 1000] {
        let one_way = O + L + O + (bytes - 1) * G;
        let goal = patterns::ping_pong(2, bytes, 5);
        assert_eq!(took_ns(&goal, hosts()), 10 * one_way);
    }
}

#[test]
fn a_chain_adds_its_links() {
    let ranks = 9;
    let shape = Shape { ranks, bytes: 8 };
    let chain = Collective::broadcast(shape, 0, Algorithm::Tree(Tree::KAry(1))).expect("sound");
    let goal = Goal::of_collective(&chain, 1);
    let link = O + L + O + 7 * G;
    // The last one's word that its memory is free again comes behind.
    let release = O + L + O;
    assert_eq!(
        took_ns(&goal, hosts()),
        u64::from(ranks - 1) * link + release
    );
}

#[test]
fn recursive_doubling_takes_its_rounds() {
    for log in 1..8 {
        let shape = Shape {
            ranks: 1 << log,
            bytes: 8,
        };
        let doubling = Collective::allreduce(shape, Algorithm::RecursiveDoubling);
        let goal = Goal::of_collective(&doubling.expect("sound"), 1);
        let round = O + L + O + 7 * G;
        assert_eq!(took_ns(&goal, hosts()), log * round, "2^{log} ranks");
    }
}

/// When a binomial tree of so many ranks is through, where each rank sends to its
/// largest branch first: written down as the recursion it is.
fn binomial(ranks: u32, between: u64, link: u64) -> u64 {
    let mut branches = Vec::new();
    let mut step = 1;
    while step < ranks {
        branches.push((step, (ranks - step).min(step)));
        step *= 2;
    }
    branches
        .into_iter()
        .rev()
        .enumerate()
        .map(|(number, (_, size))| number as u64 * between + link + binomial(size, between, link))
        .max()
        .unwrap_or(0)
}

#[test]
fn a_binomial_tree_sends_to_the_largest_branch_first() {
    for ranks in [2, 3, 7, 8, 32, 33, 64] {
        let mut goal = Goal::new(ranks);
        let mut last = vec![None; ranks as usize];
        let mut step = ranks.next_power_of_two() / 2;
        while step > 0 {
            for from in (0..ranks).step_by(2 * step as usize) {
                let to = from + step;
                if to < ranks {
                    let sent = goal.then(from, last[from as usize], Operation::send(to, 1));
                    last[from as usize] = Some(sent);
                    last[to as usize] = Some(goal.add(to, Operation::recv(from, 1)));
                }
            }
            step /= 2;
        }
        assert_eq!(
            took_ns(&goal, hosts()),
            binomial(ranks, O, O + L + O),
            "{ranks}"
        );
    }
}

#[test]
fn overhead_per_byte_is_paid_on_both_sides() {
    let hosts = Hosts {
        overhead_per_byte: Duration::from_ns(5),
        ..hosts()
    };
    let goal = patterns::ping_pong(2, 11, 1);
    // The message leaves after o; its bytes' overhead outlasts their gap.
    assert_eq!(took_ns(&goal, hosts), 2 * (O + L + O + 10 * 5));
}

#[test]
fn messages_of_one_interface_stand_a_gap_apart() {
    let wide = Hosts {
        gap: Duration::from_ns(400),
        ..hosts()
    };
    let goal = patterns::incast(2, 4, 1);
    assert_eq!(took_ns(&goal, wide), 3 * 400 + O + L + O);
}

#[test]
fn a_long_message_waits_for_its_receive() {
    let rendezvous = Hosts {
        eager: 10,
        ..hosts()
    };
    let mut goal = Goal::new(2);
    let sent = goal.add(0, Operation::send(1, 11));
    goal.then(0, Some(sent), Operation::calc(50));
    let busy = goal.add(1, Operation::calc(5_000));
    goal.then(1, Some(busy), Operation::recv(0, 11));
    let done = run(&goal, rendezvous, wire()).expect("it ends");
    // The message takes the receiver's processor behind its computing.
    assert_eq!(done.world.ends()[0].as_ps(), (5_000 + 50) * 1_000);
}

#[test]
fn an_operation_begins_with_the_one_that_it_irequires() {
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 30 cpu 1\nb irequires a\nc: calc 7 cpu 1\nc requires a\n}";
    let goal = Goal::parse(text).expect("sound");
    assert_eq!(took_ns(&goal, Hosts::FREE), 107);
}

#[test]
fn operations_repeat_without_waiting_for_anybody_in_vain() {
    for algorithm in [
        Algorithm::RecursiveDoubling,
        Algorithm::Tree(Tree::KNomial(4)),
        Algorithm::Tree(Tree::KAry(2)),
    ] {
        for ranks in [1, 2, 5, 8, 13] {
            let shape = Shape { ranks, bytes: 64 };
            let allreduce = Collective::allreduce(shape, algorithm).expect("sound");
            let once = took_ns(&Goal::of_collective(&allreduce, 1), hosts());
            let five = took_ns(&Goal::of_collective(&allreduce, 5), hosts());
            assert!(
                (4 * once..=6 * once).contains(&five),
                "{algorithm:?} {ranks}: {once} {five}"
            );
        }
    }
}

/// What LogGOPSim (commit 76451de) says with `-L 2500 -o 1500 -g 1000 -G 6 -O 0 -S 100`.
/// Messages above `S` come at the same time as others, so that order shows.
#[test]
fn messages_that_wait_for_their_receives_take_the_times_of_loggopsim() {
    let hosts = Hosts {
        eager: 100,
        ..Hosts::LOGGOPSIM
    };
    let wire = LogGp::new(Duration::from_ns(2_500)).per_byte(Duration::from_ns(6));
    for (text, expected) in LOGGOPSIM {
        let goal = Goal::parse(text).expect("sound");
        let done = run(&goal, hosts, wire).expect("it ends");
        let ends = done.world.ends().iter().map(|end| end.as_ps() / 1_000);
        assert_eq!(ends.collect::<Vec<_>>(), expected, "{text}");
    }
}

const LOGGOPSIM: [(&str, &[u64]); 3] = [
    (
        "num_ranks 3
rank 0 {
a: recv 1b from 2 tag 8
b: recv 3000b from 2 tag 9
c: recv 1000b from 1 tag 15
b requires a
c irequires b
}
rank 1 {
send 1000b to 0 tag 15
}
rank 2 {
send 1b to 0 tag 8
send 3000b to 0 tag 9
}",
        &[32_488, 32_488, 12_994],
    ),
    (
        "num_ranks 4
rank 0 {
a: recv 8b from 2 tag 7
b: recv 3000b from 3 tag 8
recv 1b from 3 tag 9
c: recv 200b from 1 tag 12
b requires a
c requires b
}
rank 1 {
send 200b to 0 tag 12
}
rank 2 {
a: recv 64b from 3 tag 2
b: send 8b to 0 tag 7
b requires a
}
rank 3 {
send 64b to 2 tag 2
send 3000b to 0 tag 8
send 1b to 0 tag 9
}",
        &[29_230, 29_230, 7_378, 27_730],
    ),
    (
        "num_ranks 2
rank 0 {
send 200b to 1 tag 0
recv 200b from 1 tag 1
send 200b to 1 tag 9
}
rank 1 {
a: recv 200b from 0 tag 0
b: send 200b to 0 tag 1
c: calc 5000
d: recv 200b from 0 tag 9
e: calc 2965
b requires a
d irequires c
e irequires d
}",
        &[17_082, 14_853],
    ),
];
