//! What schedules cost: messages, bytes, counters and slots, as the algorithms promise.

use lintel_collectives::{
    Act, Algorithm, Collective, ConfigError, Counter, CounterId, Epoch, Order, Reuse, Schedule,
    Shape, Threshold, Tree, When,
};

const CHAIN: Algorithm = Algorithm::Tree(Tree::KAry(1));
const BINOMIAL: Algorithm = Algorithm::Tree(Tree::KNomial(2));

fn shape(ranks: u32, bytes: u64) -> Shape {
    Shape { ranks, bytes }
}

/// Messages to other ranks, and their bytes.
fn sent(schedule: &Schedule, rank: u32) -> (usize, u64) {
    let others = schedule.steps.iter().filter_map(|step| match step.act {
        Act::Send(transfer) if transfer.to.rank != rank => Some(transfer.from.bytes),
        _ => None,
    });
    others.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

#[test]
fn each_rank_gives_and_gets_what_its_operation_says() {
    let of = |collective: &Collective, rank| {
        (collective.input_bytes(rank), collective.result_bytes(rank))
    };
    let shape = shape(3, 8);
    let cases = [
        (Collective::barrier(3, CHAIN), (0, 0), (0, 0)),
        (Collective::allreduce(shape, CHAIN), (8, 8), (8, 8)),
        (Collective::broadcast(shape, 1, CHAIN), (8, 8), (0, 8)),
        (Collective::reduce(shape, 1, CHAIN), (8, 8), (8, 0)),
        (Collective::gather(shape, 1, CHAIN), (8, 24), (8, 0)),
        (Collective::scatter(shape, 1, CHAIN), (24, 8), (0, 8)),
    ];
    for (collective, at_root, elsewhere) in cases {
        let collective = collective.unwrap();
        assert_eq!(of(&collective, 1), at_root, "{collective:?}");
        assert_eq!(of(&collective, 0), elsewhere, "{collective:?}");
        assert_eq!(of(&collective, 2), elsewhere, "{collective:?}");
    }
}

#[test]
fn dissemination_sends_a_message_per_round() {
    for (ranks, rounds) in [(1, 0), (2, 1), (5, 3), (8, 3), (9, 4)] {
        let barrier = Collective::barrier(ranks, Algorithm::Dissemination).unwrap();
        for rank in 0..ranks {
            let schedule = barrier.schedule(rank);
            assert_eq!(schedule.messages(), rounds, "rank {rank} of {ranks}");
            assert_eq!(schedule.counters.len(), rounds, "rank {rank} of {ranks}");
        }
    }
}

#[test]
fn releases_count_as_messages_unless_the_caller_recycles_slots() {
    let gather = Collective::gather(shape(4, 8), 0, BINOMIAL).unwrap();
    // The root puts its own block and releases two children.
    assert_eq!(gather.schedule(0).messages(), 3);
    assert_eq!(gather.schedule(0).releases.len(), 2);
    let by_caller = gather.with_reuse(Reuse::ByCaller);
    assert_eq!(by_caller.schedule(0).messages(), 1);
    assert_eq!(gather.shape(), shape(4, 8));
}

#[test]
fn halving_sends_less_than_twice_the_bytes_of_a_rank() {
    for ranks in [2, 4, 8, 16] {
        let bytes = 64 * 128;
        let allreduce = Collective::allreduce(shape(ranks, bytes), Algorithm::Halving).unwrap();
        for rank in 0..ranks {
            let (messages, sum) = sent(&allreduce.schedule(rank), rank);
            let part = bytes / u64::from(ranks);
            assert_eq!(sum, 2 * (bytes - part), "rank {rank} of {ranks}");
            assert_eq!(
                messages,
                2 * ranks.ilog2() as usize,
                "rank {rank} of {ranks}"
            );
        }
    }
}

#[test]
fn recursive_doubling_sends_all_bytes_in_each_round() {
    for order in [Order::Arrival, Order::Ranks] {
        let allreduce = Collective::allreduce(shape(8, 100), Algorithm::RecursiveDoubling).unwrap();
        let schedule = allreduce.in_order(order).schedule(3);
        assert_eq!(sent(&schedule, 3), (3, 300), "{order:?}");
    }
}

#[test]
fn slots_are_as_many_as_the_algorithm_needs() {
    let slots = |collective: Result<Collective, ConfigError>, rank| {
        let collective = collective.unwrap().in_order(Order::Ranks);
        collective.schedule(rank).slot_bytes
    };
    let eight = shape(8, 512);
    // One for the input of a rank without a partner, and one for each of three rounds.
    let doubling = Algorithm::RecursiveDoubling;
    assert_eq!(slots(Collective::allreduce(eight, doubling), 0), 4 * 512);
    // The result, half and a quarter of it for the earlier rounds, and one for a rank
    // without a partner.
    let halving = Algorithm::Halving;
    assert_eq!(
        slots(Collective::allreduce(eight, halving), 0),
        512 + 256 + 128 + 512
    );
    // The sum, and one for each of three children; below the root also the result.
    assert_eq!(slots(Collective::reduce(eight, 0, BINOMIAL), 0), 4 * 512);
    assert_eq!(
        slots(Collective::allreduce(eight, BINOMIAL), 4),
        (1 + 2 + 1) * 512
    );
    // The blocks of the branch.
    assert_eq!(slots(Collective::gather(eight, 0, BINOMIAL), 4), 4 * 512);
    assert_eq!(slots(Collective::scatter(eight, 0, BINOMIAL), 4), 4 * 512);
    assert_eq!(slots(Collective::scatter(eight, 0, BINOMIAL), 0), 0);
    assert_eq!(slots(Collective::broadcast(eight, 0, BINOMIAL), 4), 512);
}

#[test]
fn slots_begin_at_cache_lines() {
    let allreduce = Collective::allreduce(shape(4, 65), Algorithm::RecursiveDoubling).unwrap();
    assert_eq!(allreduce.schedule(0).slot_bytes, 3 * 128);
    let resets: Vec<u64> = allreduce
        .schedule(0)
        .resets
        .iter()
        .map(|r| r.start)
        .collect();
    assert_eq!(resets, [128, 256]);
}

#[test]
fn a_pipeline_has_a_counter_for_each_of_64_pieces_at_most() {
    let counters = |bytes, piece| {
        let pipeline = Algorithm::Pipelined(Tree::KAry(1), piece);
        let broadcast = Collective::broadcast(shape(3, bytes), 0, pipeline).unwrap();
        broadcast.schedule(1).counters.len() - 1
    };
    assert_eq!(counters(64, 1), 64);
    assert_eq!(counters(65, 1), 33);
    assert_eq!(counters(1000, 300), 4);
    assert_eq!(counters(0, 300), 1);
}

#[test]
fn a_combining_message_has_no_more_bytes_than_the_network_takes() {
    let reduce = Collective::reduce(shape(2, 100), 0, BINOMIAL).unwrap();
    let pieces = |most: u64| {
        let limited = reduce.combining_at_most(most).unwrap();
        sent(&limited.schedule(1), 1)
    };
    assert_eq!(pieces(100), (1, 100));
    assert_eq!(pieces(99), (2, 100));
    assert_eq!(pieces(32), (4, 100));
    assert_eq!(reduce.combining_at_most(0), Err(ConfigError::NoBytes));
}

#[test]
fn a_counter_continues_from_what_earlier_operations_counted() {
    let schedule = Schedule {
        counters: vec![Counter { each: 3 }],
        ..Schedule::default()
    };
    let counter = CounterId(0);
    let when = When { counter, count: 2 };
    let at = |epoch| schedule.threshold(when, Epoch(epoch));
    let threshold = |side, value| Threshold {
        counter,
        side,
        value,
    };
    assert_eq!(at(0), threshold(0, 2));
    assert_eq!(at(1), threshold(1, 2));
    assert_eq!(at(4), threshold(0, 8));
    assert_eq!(at(5), threshold(1, 8));
    assert_eq!(Epoch(4).next(), Epoch(5));
}

#[test]
fn all_slots_together_stay_below_2_to_the_64() {
    // (bytes + a line) times (ranks + 1) is u64::MAX.
    let bytes = u64::MAX / 3 - 64;
    assert!(Collective::gather(shape(2, bytes), 0, CHAIN).is_ok());
    let longer = Collective::gather(shape(2, bytes + 1), 0, CHAIN);
    assert_eq!(longer, Err(ConfigError::TooLong));
}

#[test]
fn each_algorithm_is_refused_where_it_does_not_apply() {
    let (shape, piece) = (shape(4, 8), Algorithm::Pipelined(Tree::KAry(2), 1));
    let (spread, doubling, halving) = (
        Algorithm::Dissemination,
        Algorithm::RecursiveDoubling,
        Algorithm::Halving,
    );
    let refused = [
        (Collective::barrier(4, halving), halving),
        (Collective::barrier(4, piece), piece),
        (Collective::allreduce(shape, spread), spread),
        (Collective::allreduce(shape, piece), piece),
        (Collective::broadcast(shape, 0, doubling), doubling),
        (Collective::reduce(shape, 0, doubling), doubling),
        (Collective::gather(shape, 0, halving), halving),
        (Collective::scatter(shape, 0, piece), piece),
    ];
    for (refused, algorithm) in refused {
        assert_eq!(refused, Err(ConfigError::NotBy(algorithm)));
    }
}

#[test]
fn a_root_is_one_of_the_ranks() {
    let shape = shape(4, 8);
    let error = Err(ConfigError::NoSuchRoot { root: 4, ranks: 4 });
    assert_eq!(Collective::reduce(shape, 4, CHAIN), error);
    assert_eq!(Collective::scatter(shape, 4, CHAIN), error);
    assert!(Collective::gather(shape, 3, CHAIN).is_ok());
}

#[test]
fn a_tree_that_does_not_branch_is_refused() {
    for narrow in [Tree::KNomial(0), Tree::KNomial(1), Tree::KAry(0)] {
        let error = Collective::barrier(4, Algorithm::Tree(narrow)).unwrap_err();
        assert_eq!(error, ConfigError::Narrow(narrow));
    }
    let piped = Algorithm::Pipelined(Tree::KAry(0), 1);
    let error = Collective::broadcast(shape(4, 8), 0, piped).unwrap_err();
    assert!(error.to_string().contains("1 child or more"), "{error}");
}
