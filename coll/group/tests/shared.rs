//! Operations in shared memory: what they do that those by messages needn't.

mod rig;

use lintel_claim::combine;
use lintel_group::{
    Call, Combine, Datatype, Error, Group, InPlace, Operation, Progress, Reduction, Region,
    Separate, SharedMemory,
};
use rig::{By, Library, Network, job, memories, nothing, on_threads, run, share};

const SUM: Combine = Combine {
    operation: Operation::Sum,
    datatype: Datatype::Float,
};

/// All that operations in shared memory may be carried out by.
const ANY_PROTOCOL: [By; 4] = [
    By::SharedMemory,
    By::Measured,
    By::SingleCopy,
    By::SomeSingleCopy,
];

/// Random numbers, the same at all ranks (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What a rank gives to an operation: floats with exact sums.
fn given(rank: u32, salt: u64, bytes: u64) -> Vec<u8> {
    let value = |i: u64| (u64::from(rank) * 7 + i + salt) as f32;
    let sixty: Vec<u8> = (0..60).flat_map(|i| value(i).to_ne_bytes()).collect();
    sixty.into_iter().cycle().take(bytes as usize).collect()
}

/// What a rank is to get, by a plain loop.
fn expected(call: Call, rank: u32, ranks: u32, salt: u64) -> Vec<u8> {
    let all = |bytes| {
        (0..ranks)
            .flat_map(move |of| given(of, salt, bytes))
            .collect()
    };
    let sum = |count: u64| {
        let region = |rank| {
            let region = Region::new(count * 4);
            region.write(0, &given(rank, salt, count * 4));
            region
        };
        let sum = region(0);
        for rank in 1..ranks {
            combine(
                SUM.operation,
                SUM.datatype,
                region(rank).claim(),
                sum.claim(),
            );
        }
        let mut bytes = vec![0; sum.len() as usize];
        sum.read(0, &mut bytes);
        bytes
    };
    match call {
        Call::Allreduce(Reduction { count, .. }) => sum(count),
        Call::Reduce { root, reduction } if root == rank => sum(reduction.count),
        Call::Broadcast { root, bytes } if root != rank => given(root, salt, bytes),
        Call::Gather { root, bytes } if root == rank => all(bytes),
        Call::Scatter { root, bytes } => {
            let all = given(root, salt, bytes * u64::from(ranks));
            let begin = (u64::from(rank) * bytes) as usize;
            all[begin..begin + bytes as usize].to_vec()
        }
        _ => Vec::new(),
    }
}

/// Any operation, of few or many bytes.
fn any_call(random: &mut Random, ranks: u32) -> Call {
    let most = [13, 200, 20_000, 300_000][random.below(4) as usize];
    any_call_below(most, random, ranks)
}

/// Any operation of so few bytes that it is short.
fn any_short_call(random: &mut Random, ranks: u32) -> Call {
    any_call_below(49, random, ranks)
}

fn any_call_below(most: u64, random: &mut Random, ranks: u32) -> Call {
    let root = random.below(ranks.into()) as u32;
    let bytes = random.below(most);
    let reduction = Reduction {
        combine: SUM,
        count: bytes / 4,
    };
    match random.below(6) {
        0 => Call::Barrier,
        1 => Call::Allreduce(reduction),
        2 => Call::Reduce { root, reduction },
        3 => Call::Broadcast { root, bytes },
        4 => Call::Gather { root, bytes },
        _ => Call::Scatter { root, bytes },
    }
}

#[test]
fn a_random_sequence_gives_what_plain_loops_give() {
    let cases = [(1, 1), (2, 2), (3, 3), (4, 4), (7, 5), (9, 6)];
    for ((ranks, seed), by) in cases.map(|case| ANY_PROTOCOL.map(|by| (case, by))).concat() {
        job(ranks, by, |_, mut group| {
            let mut random = Random(seed);
            for salt in 0..40 {
                let call = any_call(&mut random, ranks as u32);
                let (gives, _) = group.lengths(call, None).unwrap();
                let input = given(group.rank(), salt, gives);
                let got = run(&mut group, call, &input);
                let want = expected(call, group.rank(), ranks as u32, salt);
                assert!(
                    got == want,
                    "seed {seed}: {call:?} at rank {}",
                    group.rank()
                );
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn a_rank_that_runs_short_calls_gets_what_it_gets_by_any() {
    for (ranks, seed) in [(1, 1), (2, 2), (3, 3), (7, 4), (9, 5)] {
        job(ranks, By::SharedMemory, |_, mut group| {
            let mut random = Random(seed);
            for salt in 0..300 {
                let call = any_short_call(&mut random, ranks as u32);
                let (gives, gets) = group.lengths(call, None).unwrap();
                let (input, mut output) =
                    (given(group.rank(), salt, gives), vec![0; gets as usize]);
                let mut buffers = Separate {
                    input: &input,
                    output: &mut output,
                };
                // Some ranks one way, and some the other, in the same operation.
                let is_short = (u64::from(group.rank()) + salt) % 3 > 0;
                match group.short(call) {
                    Some(short) if is_short => group.run_short(short, &mut buffers).unwrap(),
                    Some(_) => group.run(call, None, &mut buffers).unwrap(),
                    None => panic!("seed {seed}: {call:?} isn't short"),
                }
                let want = expected(call, group.rank(), ranks as u32, salt);
                assert!(output == want, "seed {seed}: {call:?} at {}", group.rank());
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn a_call_that_is_long_or_wrong_is_not_short() {
    job(2, By::SharedMemory, |_, mut group| {
        let broadcast = |root, bytes| Call::Broadcast { root, bytes };
        assert!(group.short(broadcast(1, 48)).is_some());
        assert!(group.short(broadcast(1, 49)).is_none());
        assert!(group.short(broadcast(2, 8)).is_none());
        let short = group.short(broadcast(1, 8)).unwrap();
        let refused = group.run_short(short, &mut Separate::default());
        assert!(matches!(refused, Err(Error::InvalidArgument(_))));
        group.free().unwrap();
    });
    job(2, Progress::Offloaded, |_, group: Group<Library>| {
        assert!(group.short(Call::Barrier).is_none());
        group.free().unwrap();
    });
}

#[test]
fn a_long_reduction_in_place_gives_what_separate_buffers_give() {
    let reduction = Reduction {
        combine: SUM,
        count: 100_000,
    };
    let calls = [
        Call::Reduce { root: 1, reduction },
        Call::Allreduce(reduction),
    ];
    let cases = [2, 3].map(|ranks| ANY_PROTOCOL.map(|by| (ranks, by)));
    for ((ranks, by), call) in cases
        .concat()
        .into_iter()
        .flat_map(|case| calls.map(|call| (case, call)))
    {
        job(ranks, by, |_, mut group| {
            let rank = group.rank();
            // In place at no rank, at one, and at all.
            for salt in 0..=ranks as u32 {
                let want = expected(call, rank, ranks as u32, salt.into());
                let mut given = given(rank, salt.into(), 400_000);
                let got = match rank < salt {
                    false => run(&mut group, call, &given),
                    true => {
                        let mut buffers = InPlace {
                            bytes: &mut given,
                            input: 0..400_000,
                            output: 0..400_000,
                        };
                        group.run(call, None, &mut buffers).unwrap();
                        given
                    }
                };
                assert!(
                    want.is_empty() || got == want,
                    "{by:?}: {call:?} at {rank}, in place below {salt}"
                );
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn all_ranks_get_the_same_bits_of_sums_that_depend_on_their_order() {
    let cases = [
        (5, By::SharedMemory),
        (2, By::SingleCopy),
        (2, By::SomeSingleCopy),
    ];
    for (count, (ranks, by)) in [1, 40, 3000, 100_000]
        .into_iter()
        .flat_map(|count| cases.map(|case| (count, case)))
    {
        let sums = job(ranks, by, |_, mut group| {
            let value = |i: u64| 1.3f32.powi(((u64::from(group.rank()) * 17 + i) % 60) as i32);
            let input: Vec<u8> = (0..count).flat_map(|i| value(i).to_ne_bytes()).collect();
            let reduction = Reduction {
                combine: SUM,
                count,
            };
            let sum = run(&mut group, Call::Allreduce(reduction), &input);
            group.free().unwrap();
            sum
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{count} floats");
    }
}

#[test]
fn a_root_that_runs_ahead_overwrites_nothing_that_is_not_read() {
    job(3, By::SharedMemory, |_, mut group| {
        for turn in 0..500u64 {
            let call = Call::Broadcast { root: 0, bytes: 8 };
            let input = if group.rank() == 0 {
                turn.to_ne_bytes()
            } else {
                [0; 8]
            };
            let got = run(&mut group, call, &input);
            if group.rank() > 0 {
                assert_eq!(got, turn.to_ne_bytes());
            }
            if group.rank() == 2 && turn % 50 == 0 {
                (0..100).for_each(|_| std::thread::yield_now());
            }
        }
        group.free().unwrap();
    });
}

#[test]
fn a_nonblocking_operation_goes_on_while_its_rank_waits_in_shared_memory() {
    job(2, By::SharedMemory, |_, mut group| {
        // More segments than can be begun at once: calls have to begin the others.
        let call = Call::Broadcast {
            root: 0,
            bytes: 8 << 20,
        };
        let (gives, gets) = group.lengths(call, None).unwrap();
        let (input, mut output) = (vec![7; gives as usize], vec![0; gets as usize]);
        let mut buffers = Separate {
            input: &input,
            output: &mut output,
        };
        let request = group.begin(call, None, &mut buffers).unwrap();
        if group.rank() == 0 {
            group.run(Call::Barrier, None, &mut nothing()).unwrap();
            group.wait(request, &mut buffers).unwrap();
        } else {
            group.wait(request, &mut buffers).unwrap();
            group.run(Call::Barrier, None, &mut nothing()).unwrap();
            assert!(output.iter().all(|byte| *byte == 7));
        }
        group.free().unwrap();
    });
}

#[test]
fn a_rank_that_dies_ends_the_waits_of_the_others() {
    let network = Network::new(3);
    let memories = memories(3);
    on_threads(3, |rank| {
        let mut group = network.group(rank, Progress::Offloaded).unwrap();
        share(&mut group, &memories);
        group.run(Call::Barrier, None, &mut nothing()).unwrap();
        if rank == 2 {
            network.kill(2);
            return;
        }
        let done = group.run(Call::Barrier, None, &mut nothing());
        assert_eq!(done, Err(Error::ProcFailed { rank: 2 }));
        let again = group.run(Call::Barrier, None, &mut nothing());
        assert_eq!(again, Err(Error::Revoked));
        group.free().unwrap();
    });
}

#[test]
fn a_gather_in_place_leaves_the_roots_part_where_it_is() {
    job(3, By::SingleCopy, |_, mut group| {
        let mut bytes = vec![group.rank() as u8 + 1; 120_000];
        let own = group.rank() as usize * 40_000;
        let mut buffers = InPlace {
            bytes: &mut bytes,
            input: own..own + 40_000,
            output: 0..120_000,
        };
        let call = Call::Gather {
            root: 1,
            bytes: 40_000,
        };
        group.run(call, None, &mut buffers).unwrap();
        if group.rank() == 1 {
            let parts = bytes.chunks(40_000).zip(1..);
            parts.for_each(|(part, value)| assert!(part.iter().all(|byte| *byte == value)));
        }
        group.free().unwrap();
    });
}

#[test]
fn memory_of_another_number_of_ranks_is_refused() {
    job(2, Progress::Offloaded, |_, mut group: Group<Library>| {
        let memories = memories(3);
        let claims = memories.iter().map(Region::claim).collect();
        let refused = group.share(SharedMemory::new(claims, Box::new(memories.clone())));
        assert!(matches!(refused, Err(Error::InvalidArgument(_))));
        assert!(!group.is_sharing());
        group.free().unwrap();
    });
}
