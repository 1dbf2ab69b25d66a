//! Every algorithm gives what a plain computation gives, whatever the number of
//! ranks, the length, and the order in which a network delivers.

use lintel_collectives::interpreter::{Bytes, Carrier, Reduction, World};
use lintel_collectives::{Algorithm, Collective, ConfigError, Order, Reuse, Shape, Tree};
use proptest::prelude::*;

/// Wraps: associative and commutative, and no element is as good as nothing.
fn add(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = into.wrapping_add(*from);
    }
}

const SUM: Reduction<'static> = Reduction {
    identity: &[0],
    combine: &add,
};

/// SplitMix64: small, and the same everywhere.
struct Rng(u64);

impl Rng {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    fn inputs(&mut self, collective: &Collective, epochs: usize) -> Bytes {
        let ranks = collective.shape().ranks;
        let mut bytes = |rank| {
            let bytes = 0..collective.input_bytes(rank);
            bytes.map(|_| self.draw() as u8).collect::<Vec<u8>>()
        };
        (0..epochs)
            .map(|_| (0..ranks).map(&mut bytes).collect())
            .collect()
    }
}

/// Runs some operations in random order, and compares with `expected` of each one's inputs.
fn holds(
    collective: &Collective,
    carrier: Carrier,
    seed: u64,
    expected: impl Fn(&[Vec<u8>]) -> Vec<Vec<u8>>,
) {
    let mut rng = Rng(seed);
    let inputs = rng.inputs(collective, 5);
    let want: Bytes = inputs.iter().map(|inputs| expected(inputs)).collect();
    let mut world = World::new(collective, carrier, SUM, inputs);
    // Some choices come again and again, so that some ranks fall far behind.
    let favour = rng.draw();
    let pick = |choices: usize| match rng.below(4) {
        0 => 0,
        1 => choices - 1,
        2 => (favour % choices as u64) as usize,
        _ => rng.below(choices),
    };
    let results = world
        .run(pick)
        .unwrap_or_else(|stuck| panic!("{collective:?}: {stuck}"));
    assert_eq!(results, want, "{collective:?} by {carrier:?}, seed {seed}");
}

fn total(inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut total = vec![0; inputs[0].len()];
    inputs.iter().for_each(|input| add(&mut total, input));
    total
}

fn only(ranks: u32, root: u32, result: Vec<u8>) -> Vec<Vec<u8>> {
    let mut results = vec![Vec::new(); ranks as usize];
    results[root as usize] = result;
    results
}

fn trees() -> impl Strategy<Value = Tree> {
    prop_oneof![
        (2..9u32).prop_map(Tree::KNomial),
        (1..5u32).prop_map(Tree::KAry),
        Just(Tree::KAry(1000)),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Arrival), Just(Order::Ranks)]
}

fn carriers() -> impl Strategy<Value = Carrier> {
    prop_oneof![Just(Carrier::Triggered), Just(Carrier::Host)]
}

fn separators() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::Dissemination),
        Just(Algorithm::RecursiveDoubling),
        trees().prop_map(Algorithm::Tree)
    ]
}

fn reducers() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::Halving), trees().prop_map(Algorithm::Tree)]
}

fn broadcasters() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        trees().prop_map(Algorithm::Tree),
        (trees(), 1..40u64).prop_map(|(tree, piece)| Algorithm::Pipelined(tree, piece)),
    ]
}

/// Few bytes, and enough that each rank has a part of some lines.
fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, 0..3000u64]
}

prop_compose! {
    fn shapes()(ranks in 1..41u32, bytes in lengths(), root in any::<u32>())
        -> (Shape, u32) {
        (Shape { ranks, bytes }, root % ranks)
    }
}

/// Runs barriers in random order: one that a rank has ended, all have begun.
fn separates(barrier: &Collective, carrier: Carrier, seed: u64) {
    let mut rng = Rng(seed);
    let nothing = rng.inputs(barrier, 5);
    let mut world = World::new(barrier, carrier, SUM, nothing);
    while world.advance(|choices| rng.below(choices)) {
        let begun = world.progress().map(|(begun, _)| begun).min();
        let ended = world.progress().map(|(_, ended)| ended).max();
        assert!(begun >= ended, "{barrier:?} by {carrier:?}, seed {seed}");
    }
    let run = world.run(|_| 0);
    assert!(
        run.is_ok(),
        "{barrier:?} by {carrier:?}, seed {seed}: {run:?}"
    );
}

fn add_floats(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        let number = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        into.copy_from_slice(&(number(into) + number(from)).to_ne_bytes());
    }
}

/// The sum of floating-point numbers of very different size, in random order.
fn float_sum(allreduce: &Collective, seed: u64) -> Vec<Vec<u8>> {
    let identity = (-0.0f64).to_ne_bytes();
    let reduction = Reduction {
        identity: &identity,
        combine: &add_floats,
    };
    let number = |rank: u32, place: u64| 10f64.powi(rank as i32 % 17) / (3 + place) as f64;
    let Shape { ranks, bytes } = allreduce.shape();
    let numbers = |rank| (0..bytes / 8).flat_map(move |place| number(rank, place).to_ne_bytes());
    let inputs = (0..ranks).map(|rank| numbers(rank).collect()).collect();
    let mut world = World::new(allreduce, Carrier::Triggered, reduction, vec![inputs]);
    let mut rng = Rng(seed);
    world
        .run(|choices| rng.below(choices))
        .expect("a right schedule")
        .remove(0)
}

/// With this order of arrival, another sum: else the two below would show nothing.
#[test]
fn floats_summed_as_they_arrive_give_all_ranks_one_sum_but_not_the_same_each_time() {
    let shape = Shape {
        ranks: 37,
        bytes: 8,
    };
    let allreduce = Collective::allreduce(shape, Algorithm::Tree(Tree::KNomial(8))).unwrap();
    let sums: Vec<_> = (0..20).map(|seed| float_sum(&allreduce, seed)).collect();
    assert!(
        sums.iter()
            .all(|sum| sum.iter().all(|of_rank| *of_rank == sum[0]))
    );
    assert!(sums.iter().any(|sum| *sum != sums[0]));
}

#[test]
fn floats_summed_in_the_order_of_ranks_give_the_same_bits_each_time() {
    let shape = Shape {
        ranks: 37,
        bytes: 8,
    };
    for tree in [Tree::KNomial(8), Tree::KAry(2), Tree::KAry(5)] {
        let allreduce = Collective::allreduce(shape, Algorithm::Tree(tree)).unwrap();
        let allreduce = allreduce.in_order(Order::Ranks);
        let first = float_sum(&allreduce, 0);
        (1..20).for_each(|seed| assert_eq!(float_sum(&allreduce, seed), first, "{tree:?}"));
    }
}

#[test]
fn floats_summed_between_pairs_give_all_ranks_the_same_bits_each_time() {
    for ranks in [16, 37] {
        for algorithm in [Algorithm::RecursiveDoubling, Algorithm::Halving] {
            let shape = Shape { ranks, bytes: 8 };
            let allreduce = Collective::allreduce(shape, algorithm).unwrap();
            let first = float_sum(&allreduce, 0);
            assert!(first.iter().all(|of_rank| *of_rank == first[0]));
            (1..20).for_each(|seed| assert_eq!(float_sum(&allreduce, seed), first));
        }
    }
}

/// So a caller may change from one to the other between two calls.
#[test]
fn doubling_and_halving_give_the_same_bits() {
    for ranks in 1..20 {
        let bytes = 64 * 21; // parts of several lines
        let shape = Shape { ranks, bytes };
        let sum = |algorithm| float_sum(&Collective::allreduce(shape, algorithm).unwrap(), 0);
        let doubling = sum(Algorithm::RecursiveDoubling);
        assert_eq!(doubling, sum(Algorithm::Halving), "{ranks} ranks");
    }
}

#[test]
fn a_flat_tree_gives_the_same_bits_as_a_binomial_one_and_so_does_halving_among_a_power_of_two() {
    for ranks in 1..20 {
        let bytes = 64 * 21;
        for root in [0, ranks - 1] {
            let sum = |algorithm| {
                let reduce = Collective::reduce(Shape { ranks, bytes }, root, algorithm).unwrap();
                let sums = float_sum(&reduce.in_order(Order::Ranks), 0);
                sums[root as usize].clone()
            };
            let binomial = sum(Algorithm::Tree(Tree::KNomial(2)));
            let flat = sum(Algorithm::Tree(Tree::KAry(64)));
            assert_eq!(binomial, flat, "{ranks} ranks, root {root}");
            if ranks.is_power_of_two() {
                let halving = sum(Algorithm::Halving);
                assert_eq!(binomial, halving, "{ranks} ranks, root {root}");
            }
        }
    }
}

#[test]
fn an_unsound_collective_is_refused_with_what_is_wrong() {
    let shape = Shape { ranks: 4, bytes: 8 };
    let message = |refused: Result<Collective, ConfigError>| refused.unwrap_err().to_string();
    let tree = Algorithm::Tree(Tree::KNomial(1));
    let chain = Algorithm::Tree(Tree::KAry(1));
    assert!(message(Collective::broadcast(shape, 0, tree)).contains("base of 2"));
    assert!(message(Collective::broadcast(shape, 4, chain)).contains("4 ranks, from 0"));
    assert!(message(Collective::allreduce(shape, Algorithm::Dissemination)).contains("a tree"));
    assert!(message(Collective::barrier(0, chain)).contains("one rank"));
    let long = Shape {
        ranks: 4,
        bytes: u64::MAX / 4,
    };
    assert!(message(Collective::gather(long, 0, chain)).contains("2^64"));
    let pieces = Algorithm::Pipelined(Tree::KAry(1), 0);
    assert!(message(Collective::broadcast(shape, 0, pieces)).contains("one byte"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_allreduce_gives_all_ranks_the_sum(
        (shape, _) in shapes(), algorithm in prop_oneof![Just(Algorithm::RecursiveDoubling), reducers()],
        order in orders(), pieces in 1..9u64, carrier in carriers(), seed in any::<u64>(),
    ) {
        let allreduce = Collective::allreduce(shape, algorithm).unwrap().in_order(order);
        let allreduce = allreduce.combining_at_most(shape.bytes / pieces + 1).unwrap();
        let all = |inputs: &[Vec<u8>]| vec![total(inputs); inputs.len()];
        holds(&allreduce, carrier, seed, all);
    }

    #[test]
    fn a_reduce_gives_the_root_the_sum(
        (shape, root) in shapes(), algorithm in reducers(), order in orders(),
        pieces in 1..9u64, carrier in carriers(), seed in any::<u64>(),
    ) {
        let reduce = Collective::reduce(shape, root, algorithm).unwrap();
        let reduce = reduce.in_order(order).combining_at_most(shape.bytes / pieces + 1).unwrap();
        let at_root = |inputs: &[Vec<u8>]| only(shape.ranks, root, total(inputs));
        holds(&reduce, carrier, seed, at_root);
    }

    #[test]
    fn a_broadcast_gives_all_ranks_what_the_root_has(
        (shape, root) in shapes(), algorithm in broadcasters(), carrier in carriers(),
        seed in any::<u64>(),
    ) {
        let broadcast = Collective::broadcast(shape, root, algorithm).unwrap();
        let copies = |inputs: &[Vec<u8>]| vec![inputs[root as usize].clone(); inputs.len()];
        holds(&broadcast, carrier, seed, copies);
    }

    #[test]
    fn a_gather_puts_all_parts_side_by_side(
        (shape, root) in shapes(), tree in trees(), carrier in carriers(),
        seed in any::<u64>(),
    ) {
        let gather = Collective::gather(shape, root, Algorithm::Tree(tree)).unwrap();
        let at_root = |inputs: &[Vec<u8>]| only(shape.ranks, root, inputs.concat());
        holds(&gather, carrier, seed, at_root);
    }

    #[test]
    fn a_scatter_gives_each_rank_its_part(
        (shape, root) in shapes(), tree in trees(), carrier in carriers(),
        seed in any::<u64>(),
    ) {
        let scatter = Collective::scatter(shape, root, Algorithm::Tree(tree)).unwrap();
        let bytes = shape.bytes as usize;
        let parts = |inputs: &[Vec<u8>]| {
            let part = |rank| inputs[root as usize][rank * bytes..][..bytes].to_vec();
            (0..inputs.len()).map(part).collect()
        };
        holds(&scatter, carrier, seed, parts);
    }

    #[test]
    fn a_fenced_operation_needs_no_identity_and_notifies_nobody_of_free_slots(
        (shape, root) in shapes(), tree in trees(), pieces in 1..9u64,
        carrier in carriers(), seed in any::<u64>(), kind in 0..7,
    ) {
        let tree = Algorithm::Tree(tree);
        let collective = match kind {
            0 => Collective::allreduce(shape, Algorithm::RecursiveDoubling),
            1 => Collective::reduce(shape, root, tree),
            2 => Collective::broadcast(shape, root, tree),
            3 => Collective::gather(shape, root, tree),
            4 => Collective::allreduce(shape, Algorithm::Halving),
            5 => Collective::reduce(shape, root, Algorithm::Halving),
            _ => Collective::scatter(shape, root, tree),
        };
        let plain = collective.unwrap().combining_at_most(shape.bytes / pieces + 1).unwrap();
        let by_caller = plain.in_order(Order::Ranks).with_reuse(Reuse::ByCaller);
        for rank in 0..shape.ranks {
            let schedule = by_caller.schedule(rank);
            prop_assert!(schedule.resets.is_empty() && schedule.releases.is_empty());
        }
        let mut rng = Rng(seed);
        let inputs = rng.inputs(&by_caller, 1);
        let run = |collective: &Collective, rng: &mut Rng| {
            World::new(collective, carrier, SUM, inputs.clone()).run(|choices| rng.below(choices))
        };
        let want = run(&plain, &mut rng).unwrap();
        prop_assert_eq!(run(&by_caller, &mut rng).unwrap(), want);
    }

    #[test]
    fn nobody_ends_a_barrier_before_all_have_begun_it(
        ranks in 1..41u32, carrier in carriers(), seed in any::<u64>(),
        algorithm in separators(),
    ) {
        separates(&Collective::barrier(ranks, algorithm).unwrap(), carrier, seed);
    }
}
