//! Operations in shared memory: what they do that those by messages needn't.

mod rig;

use lintel_group::{
    Call, Error, Group, InPlace, Progress, Reduction, Region, Separate, SharedMemory,
};
use rig::plain::{Random, SUM, any_call, any_call_below, expected, given};
use rig::{
    By, LIMIT, Library, Network, job, memories, nothing, on_threads, run, share, share_all,
    share_in_vain,
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// All that operations in shared memory may be carried out by.
const ANY_PROTOCOL: [By; 4] = [
    By::SharedMemory,
    By::Measured,
    By::SingleCopy,
    By::SomeSingleCopy,
];

/// Bytes of a rank that it has no room for in its shared memory at once.
const MORE_THAN_AREAS_HOLD: usize = 270_000;

/// Any operation of so few bytes that it is short.
fn any_short_call(random: &mut Random, ranks: u32) -> Call {
    any_call_below(49, random, ranks)
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

/// Operations in which one of two ranks gives so many bytes to the other.
fn one_way_calls(root: u32, bytes: u64) -> [Call; 3] {
    [
        Call::Broadcast { root, bytes },
        Call::Gather { root, bytes },
        Call::Scatter { root, bytes },
    ]
}

#[test]
fn long_bytes_of_two_ranks_are_right_whichever_of_them_copies_them() {
    let seed = 8;
    job(2, By::SingleCopy, |_, mut group| {
        let rank = group.rank();
        let mut random = Random(seed + u64::from(rank));
        let lengths = [262_143, 262_144, 262_145, 266_240, 400_001, 1_048_579];
        for salt in 0..10 {
            for bytes in lengths {
                for call in [one_way_calls(0, bytes), one_way_calls(1, bytes)].concat() {
                    // Sometimes one rank is late, and sometimes the other.
                    let late = random.below(4) * random.below(30_000);
                    (0..late).for_each(|_| std::hint::spin_loop());
                    let (gives, _) = group.lengths(call, None).unwrap();
                    let got = run(&mut group, call, &given(rank, salt, gives));
                    let want = expected(call, rank, 2, salt);
                    assert!(got == want, "seed {seed}: {call:?} at rank {rank}");
                }
            }
        }
        group.free().unwrap();
    });
}

#[test]
fn a_rank_gets_all_bytes_itself_if_the_other_cant_copy_its_half() {
    let network = Network::new(2);
    let memories = memories(2);
    on_threads(2, |rank| {
        let mut group = network.group(rank, Progress::Offloaded).unwrap();
        match rank {
            0 => share_all(&mut group, &memories, Some(0)),
            _ => share_in_vain(&mut group, &memories),
        }
        let bytes = 300_000;
        for salt in 0..50 {
            for call in [
                Call::Broadcast { root: 1, bytes },
                Call::Gather { root: 0, bytes },
                Call::Scatter { root: 1, bytes },
            ] {
                let (gives, _) = group.lengths(call, None).unwrap();
                let got = run(&mut group, call, &given(rank as u32, salt, gives));
                let want = expected(call, rank as u32, 2, salt);
                assert!(got == want, "{call:?} at rank {rank}");
            }
        }
        group.free().unwrap();
    });
}

#[test]
fn a_gather_or_scatter_in_place_leaves_the_roots_part_where_it_is() {
    for (by, bytes) in ANY_PROTOCOL
        .map(|by| [40_000, MORE_THAN_AREAS_HOLD].map(|bytes| (by, bytes)))
        .concat()
    {
        job(3, by, |_, mut group| {
            let (root, own) = (1, group.rank() as usize * bytes);
            let bytes_of_all = 0..3 * bytes;
            let mut all = vec![group.rank() as u8 + 1; bytes_of_all.end];
            let mut buffers = InPlace {
                bytes: &mut all,
                input: own..own + bytes,
                output: bytes_of_all.clone(),
            };
            let bytes = bytes as u64;
            let gather = Call::Gather { root, bytes };
            group.run(gather, None, &mut buffers).unwrap();
            if group.rank() == root {
                let parts = all.chunks(bytes as usize).zip(1..);
                parts.for_each(|(part, value)| assert!(part.iter().all(|byte| *byte == value)));
            } else {
                all.fill(0);
            }
            let mut buffers = InPlace {
                bytes: &mut all,
                input: bytes_of_all,
                output: own..own + bytes as usize,
            };
            let scatter = Call::Scatter { root, bytes };
            group.run(scatter, None, &mut buffers).unwrap();
            let part = &all[own..own + bytes as usize];
            let value = group.rank() as u8 + 1;
            assert!(part.iter().all(|byte| *byte == value), "{by:?}");
            group.free().unwrap();
        });
    }
}

#[test]
fn a_rank_that_gives_to_a_gather_of_several_returns_before_the_root_calls() {
    let returned = AtomicU32::new(0);
    job(3, By::SingleCopy, |_, mut group| {
        let rank = group.rank();
        let call = Call::Gather {
            root: 0,
            bytes: 200_000,
        };
        let begun = Instant::now();
        while rank == 0 && returned.load(Relaxed) < 2 {
            assert!(begun.elapsed() < LIMIT, "they wait for the root");
            std::thread::yield_now();
        }
        let got = run(&mut group, call, &given(rank, 1, 200_000));
        returned.fetch_add(1, Relaxed);
        assert!(got == expected(call, rank, 3, 1));
        group.free().unwrap();
    });
}

#[test]
fn a_gather_of_more_ranks_than_a_word_has_bits_knows_who_gives_how() {
    job(70, By::SomeSingleCopy, |_, mut group| {
        let rank = group.rank();
        let (root, bytes) = (3, MORE_THAN_AREAS_HOLD as u64);
        let call = Call::Gather { root, bytes };
        let got = run(&mut group, call, &given(rank, 1, bytes));
        let want = expected(call, rank, 70, 1);
        assert!(got == want);
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
