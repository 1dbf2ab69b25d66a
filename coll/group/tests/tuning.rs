//! Operations by messages whose algorithm is measured while they run: whatever is tried and chosen, their
//! results are right, and have the same bits each time.

mod rig;

use lintel_group::{
    Call, Combine, Datatype, Error, Group, Operation, Progress, Reduction, Separate,
};
use rig::plain::{Random, SUM, any_call_below, check, expected, given};
use rig::{By, Library, job, job_on_nodes, nothing, run};

/// More calls of an operation than come before it is measured, and while it is.
const CALLS: u64 = 50;

fn calls(bytes: u64, root: u32) -> [Call; 6] {
    let reduction = Reduction {
        combine: SUM,
        count: bytes / 4,
    };
    [
        Call::Barrier,
        Call::Broadcast { root, bytes },
        Call::Allreduce(reduction),
        Call::Reduce { root, reduction },
        Call::Gather { root, bytes },
        Call::Scatter { root, bytes },
    ]
}

#[test]
fn every_operation_gives_what_plain_loops_give_before_while_and_after_it_is_measured() {
    for (ranks, progress) in [
        (2, Progress::Offloaded),
        (3, Progress::Host),
        (4, Progress::Host),
        (6, Progress::Offloaded),
    ] {
        job(ranks, progress, |_, mut group| {
            for (bytes, rounds) in [(4, CALLS), (2000, CALLS), (20_000, 36)] {
                for round in 0..rounds {
                    let root = round as u32 % group.ranks();
                    for call in calls(bytes, root) {
                        check(&mut group, call, round);
                    }
                }
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn a_long_broadcast_gives_all_ranks_the_same_by_a_chain_too() {
    job(3, Progress::Host, |_, mut group| {
        for round in 0..36 {
            let (root, bytes) = (round as u32 % 3, 300_000);
            check(&mut group, Call::Broadcast { root, bytes }, round);
        }
        group.free().unwrap();
    });
}

#[test]
fn leaders_of_nodes_measure_their_operations_too() {
    for nodes in [&[0, 0, 1][..], &[0, 1, 1, 2, 2, 3]] {
        job_on_nodes(nodes, |_, mut group| {
            for round in 0..CALLS {
                for bytes in [8, 5000] {
                    for call in calls(bytes, 1) {
                        check(&mut group, call, round);
                    }
                }
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn a_random_sequence_with_nonblocking_ones_gives_what_plain_loops_give() {
    for (ranks, seed) in [(2, 11), (3, 12), (5, 13), (8, 14)] {
        println!("seed {seed}");
        job(ranks, Progress::Offloaded, |_, mut group| {
            let (rank, ranks) = (group.rank(), group.ranks());
            let mut random = Random(seed);
            for salt in 0..600 {
                let call = any_call_below(200, &mut random, ranks);
                if random.below(4) > 0 {
                    check(&mut group, call, salt);
                    continue;
                }
                let (gives, gets) = group.lengths(call, None).unwrap();
                let mut output = vec![0; gets as usize];
                let mut buffers = Separate {
                    input: &given(rank, salt, gives),
                    output: &mut output,
                };
                let request = group.begin(call, None, &mut buffers).unwrap();
                check(&mut group, any_call_below(200, &mut random, ranks), salt);
                group.wait(request, &mut buffers).unwrap();
                assert!(output == expected(call, rank, ranks, salt), "{call:?}");
            }
            group.free().unwrap();
        });
    }
}

/// Numbers whose sum depends on the order in which they are added.
fn numbers(rank: u32, count: u64) -> Vec<u8> {
    let number = |place: u64| 10f64.powi(rank as i32 * 3) / (3 + place) as f64;
    (0..count).flat_map(|i| number(i).to_ne_bytes()).collect()
}

#[test]
fn sums_of_floats_have_the_same_bits_before_while_and_after_they_are_measured() {
    let combine = Combine {
        operation: Operation::Sum,
        datatype: Datatype::Double,
    };
    for ranks in [3, 4, 5, 7, 8] {
        job(ranks, Progress::Host, |_, mut group| {
            let root = group.ranks() - 1;
            for count in [1, 200, 30_000] {
                let reduction = Reduction { combine, count };
                let given = numbers(group.rank(), count);
                for call in [Call::Allreduce(reduction), Call::Reduce { root, reduction }] {
                    let first = run(&mut group, call, &given);
                    for round in 1..36 {
                        let sum = run(&mut group, call, &given);
                        assert!(sum == first, "{call:?}, call {round} of {ranks} ranks");
                    }
                }
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn a_rank_that_fails_before_while_or_after_an_operation_is_measured_is_named() {
    let each = |progress| [3, 18, 25, 30, 40, 60].map(|calls| (progress, calls));
    for (progress, calls) in [Progress::Offloaded, Progress::Host]
        .into_iter()
        .flat_map(each)
    {
        job(3, progress, |network, mut group| {
            let barrier =
                |group: &mut Group<Library>| group.run(Call::Barrier, None, &mut nothing());
            for _ in 0..calls {
                barrier(&mut group).unwrap();
            }
            if group.rank() == 2 {
                return network.kill(2);
            }
            let failed = barrier(&mut group);
            assert_eq!(failed, Err(Error::ProcFailed { rank: 2 }), "{calls} calls");
            group.free().unwrap();
        });
    }
}

#[test]
fn a_call_that_one_rank_makes_wrong_is_not_counted() {
    job(3, By::Messages(Progress::Offloaded), |_, mut group| {
        for round in 0..CALLS {
            if group.rank() == 1 {
                let call = Call::Allreduce(Reduction {
                    combine: SUM,
                    count: 8,
                });
                let refused = group.run(call, None, &mut nothing());
                assert!(matches!(refused, Err(Error::InvalidArgument(_))));
            }
            for call in calls(32, 2) {
                check(&mut group, call, round);
            }
        }
        group.free().unwrap();
    });
}
