//! Operations of ranks on several nodes, which share memory within each and send messages among the
//! leaders, the lowest rank of each node.

mod rig;

use lintel_group::{
    Algorithm, Call, Error, Group, InPlace, Progress, Reduction, Region, Request, Separate,
};
use rig::plain::{Random, SUM, any_call, check, expected, given};
use rig::{
    Library, Network, job, job_on_nodes, memories, nothing, on_threads, run, share_on_nodes,
    shared_memory,
};
use std::sync::atomic::{AtomicU32, Ordering};

/// The node of each rank. Of those with an odd number, ranks copy long bytes from each other's memory.
const LAYOUTS: [&[u32]; 6] = [
    &[0, 0, 1, 1],
    &[1, 2, 2, 2],
    &[3, 3, 3, 1, 1, 2, 2],
    &[0, 1, 0, 1, 0],
    &[5, 5, 5, 5, 5, 5, 4],
    &[0, 1, 2, 3, 0],
];

fn barrier(group: &mut Group<Library>) -> lintel_group::Result<()> {
    group.run(Call::Barrier, None, &mut nothing())
}

fn sum(bytes: u64) -> Reduction {
    Reduction {
        combine: SUM,
        count: bytes / 4,
    }
}

#[test]
fn every_operation_from_and_to_every_rank_gives_what_plain_loops_give() {
    for nodes in LAYOUTS {
        job_on_nodes(nodes, |_, mut group| {
            for (bytes, salt) in [0, 4, 48, 52, 20_000, 140_000].into_iter().zip(0..) {
                check(&mut group, Call::Allreduce(sum(bytes)), salt);
                for root in 0..group.ranks() {
                    check(&mut group, Call::Broadcast { root, bytes }, salt);
                    let reduction = sum(bytes);
                    check(&mut group, Call::Reduce { root, reduction }, salt);
                }
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn bytes_of_more_segments_than_can_be_under_way_give_the_same() {
    for nodes in &LAYOUTS[..3] {
        job_on_nodes(nodes, |_, mut group| {
            let (bytes, root) = (3 << 20, group.ranks() - 1);
            let reduction = sum(bytes);
            check(&mut group, Call::Allreduce(reduction), 1);
            check(&mut group, Call::Broadcast { root, bytes }, 2);
            check(&mut group, Call::Reduce { root, reduction }, 3);
            group.free().unwrap();
        });
    }
}

#[test]
fn a_random_sequence_gives_what_plain_loops_give() {
    for (nodes, seed) in LAYOUTS.into_iter().zip(1..) {
        job_on_nodes(nodes, |_, mut group| {
            let mut random = Random(seed);
            for salt in 0..100 {
                let call = any_call(&mut random, group.ranks());
                check(&mut group, call, salt);
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_entered_it() {
    for nodes in LAYOUTS {
        let entered = AtomicU32::new(0);
        job_on_nodes(nodes, |_, mut group| {
            for round in 1..=40 {
                entered.fetch_add(1, Ordering::SeqCst);
                barrier(&mut group).unwrap();
                assert!(entered.load(Ordering::SeqCst) >= round * nodes.len() as u32);
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn reductions_in_place_give_what_separate_buffers_give() {
    for (nodes, bytes) in LAYOUTS
        .into_iter()
        .flat_map(|it| [40, 200_000].map(|n| (it, n)))
    {
        job_on_nodes(nodes, |_, mut group| {
            let (rank, ranks) = (group.rank(), group.ranks());
            let reduction = sum(bytes);
            let reduces = (0..ranks).map(|root| Call::Reduce { root, reduction });
            for (call, salt) in reduces.chain([Call::Allreduce(reduction)]).zip(0..) {
                let mut given = given(rank, salt, bytes);
                let all = 0..given.len();
                let mut buffers = InPlace {
                    bytes: &mut given,
                    input: all.clone(),
                    output: all,
                };
                group.run(call, None, &mut buffers).unwrap();
                let want = expected(call, rank, ranks, salt);
                assert!(want.is_empty() || given == want, "{call:?} at rank {rank}");
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn all_ranks_get_the_same_bits_of_sums_that_depend_on_their_order() {
    for (nodes, count) in LAYOUTS
        .into_iter()
        .flat_map(|it| [1, 3000, 100_000].map(|n| (it, n)))
    {
        let sums = job_on_nodes(nodes, |_, mut group| {
            let value = |i: u64| 1.3f32.powi(((u64::from(group.rank()) * 17 + i) % 60) as i32);
            let input: Vec<u8> = (0..count).flat_map(|i| value(i).to_ne_bytes()).collect();
            let sum = run(&mut group, Call::Allreduce(sum(4 * count)), &input);
            group.free().unwrap();
            sum
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{count} floats");
    }
}

#[test]
fn only_leaders_send_messages() {
    let messages = job_on_nodes(&[0, 0, 0, 1, 1, 2], |network, mut group| {
        let rank = group.rank() as usize;
        barrier(&mut group).unwrap();
        let before = network.sent(rank);
        // Fewer than those after which lanes are recycled.
        for _ in 0..10 {
            barrier(&mut group).unwrap();
        }
        let sent = network.sent(rank) - before;
        group.free().unwrap();
        sent
    });
    // Three leaders, so two rounds.
    assert_eq!(messages, [20, 0, 0, 20, 0, 20]);
}

#[test]
fn gathers_and_named_algorithms_go_by_messages_of_all_ranks() {
    job_on_nodes(&[0, 0, 1], |network, mut group| {
        let rank = group.rank() as usize;
        let algorithm = Some(Algorithm::Dissemination);
        for _ in 0..3 {
            let before = network.sent(rank);
            group.run(Call::Barrier, algorithm, &mut nothing()).unwrap();
            assert_eq!(network.sent(rank) - before, 2);
            check(&mut group, Call::Gather { root: 1, bytes: 9 }, 1);
        }
        group.free().unwrap();
    });
}

/// An operation that was begun, and what it is to give.
struct Begun {
    request: Request,
    call: Call,
    salt: u64,
    output: Vec<u8>,
}

fn begin(group: &mut Group<Library>, call: Call, salt: u64) -> Begun {
    let (gives, gets) = group.lengths(call, None).unwrap();
    let (input, mut output) = (given(group.rank(), salt, gives), vec![0; gets as usize]);
    let mut buffers = Separate {
        input: &input,
        output: &mut output,
    };
    let request = group.begin(call, None, &mut buffers).unwrap();
    Begun {
        request,
        call,
        salt,
        output,
    }
}

fn finish(group: &mut Group<Library>, mut begun: Begun) {
    let mut buffers = Separate {
        input: &[],
        output: &mut begun.output,
    };
    group.wait(begun.request, &mut buffers).unwrap();
    let want = expected(begun.call, group.rank(), group.ranks(), begun.salt);
    assert!(
        begun.output == want,
        "{:?} at rank {}",
        begun.call,
        group.rank()
    );
}

#[test]
fn operations_that_were_begun_end_between_blocking_ones() {
    for (nodes, seed) in LAYOUTS.into_iter().zip(11..) {
        job_on_nodes(nodes, |_, mut group| {
            // When each rank waits is its own matter.
            let (mut random, mut own) = (Random(seed), Random(group.rank().into()));
            let mut begun = Vec::new();
            for salt in 0..60 {
                let call = any_call(&mut random, group.ranks());
                match random.below(2) {
                    0 => check(&mut group, call, salt),
                    _ => begun.push(begin(&mut group, call, salt)),
                }
                if !begun.is_empty() && own.below(3) == 0 {
                    let which = own.below(begun.len() as u64) as usize;
                    finish(&mut group, begun.swap_remove(which));
                }
            }
            for left in begun {
                finish(&mut group, left);
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn what_was_begun_goes_on_while_its_rank_waits_on_its_node_or_for_leaders() {
    // Rank 0 waits for another leader, rank 2 for its own.
    for (nodes, root) in [(&[0, 1, 1], 0), (&[0, 1, 1], 2), (&[0, 0, 1], 1)] {
        job_on_nodes(nodes, |_, mut group| {
            // More segments than can be begun at once: calls of the root have to begin the others.
            let bytes = 8 << 20;
            let begun = begin(&mut group, Call::Broadcast { root, bytes }, 3);
            if group.rank() == root {
                barrier(&mut group).unwrap();
                finish(&mut group, begun);
            } else {
                finish(&mut group, begun);
                barrier(&mut group).unwrap();
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn groups_of_the_same_ranks_run_side_by_side() {
    let nodes = [0, 0, 1, 1, 2];
    let networks = [1, 2, 3].map(|_| Network::on_nodes(&nodes));
    let all = [1, 2, 3].map(|_| memories(nodes.len()));
    on_threads(3 * nodes.len(), |thread| {
        let (which, rank) = (thread % 3, thread / 3);
        let group = networks[which].group(rank, Progress::Offloaded);
        let mut group = group.unwrap();
        share_on_nodes(&mut group, &nodes, &all[which]);
        let mut random = Random(which as u64);
        for salt in 0..40 {
            let call = any_call(&mut random, group.ranks());
            check(&mut group, call, salt);
        }
        group.free().unwrap();
    });
}

#[test]
fn a_rank_that_dies_is_reported_at_all_ranks_whether_it_leads_or_not() {
    let nodes = [0, 0, 1, 1, 2];
    let all = Call::Allreduce(sum(200_000));
    for (dead, call) in (0..5).flat_map(|dead| [Call::Barrier, all].map(|call| (dead, call))) {
        job_on_nodes(&nodes, |network, mut group| {
            barrier(&mut group).unwrap();
            if group.rank() == dead {
                network.kill(dead as usize);
                return;
            }
            let input = vec![0; 200_000];
            let mut output = vec![0; 200_000];
            let mut buffers = Separate {
                input: &input,
                output: &mut output,
            };
            let done = group.run(call, None, &mut buffers);
            assert_eq!(done, Err(Error::ProcFailed { rank: dead }));
            assert_eq!(group.failed_rank(), Some(dead));
            assert_eq!(barrier(&mut group), Err(Error::Revoked));
            // Doesn't wait for anyone.
            group.free().unwrap();
        });
    }
}

#[test]
fn a_freed_group_has_no_message_in_flight_and_gives_all_back() {
    let nodes = [0, 0, 1, 2, 2];
    // Barriers that recycle lanes are under way at the end, or aren't.
    for operations in [0, 1, 15, 16, 17, 31, 32, 33, 50] {
        let network = Network::on_nodes(&nodes);
        let memories = memories(nodes.len());
        on_threads(nodes.len(), |rank| {
            let mut group = network.group(rank, Progress::Offloaded).unwrap();
            share_on_nodes(&mut group, &nodes, &memories);
            for salt in 0..operations {
                check(&mut group, Call::Allreduce(sum(8)), salt);
            }
            begin(&mut group, Call::Allreduce(sum(8)), 1);
            group.free().unwrap();
        });
        assert_eq!(network.dropped(), 0);
        (0..nodes.len()).for_each(|rank| assert_eq!(network.resources(rank), 0));
    }
}

#[test]
fn if_a_leader_lacks_counters_all_ranks_go_on_by_messages() {
    let nodes = [0, 0, 1, 1];
    let network = Network::on_nodes(&nodes);
    let memories = memories(nodes.len());
    on_threads(nodes.len(), |rank| {
        let mut group = network.group(rank, Progress::Offloaded).unwrap();
        if rank == 2 {
            network.limit_counters(2, 5);
        }
        share_on_nodes(&mut group, &nodes, &memories);
        assert!(!group.is_sharing_on_nodes());
        check(&mut group, Call::Allreduce(sum(100)), 1);
        group.free().unwrap();
    });
    assert_eq!(network.dropped(), 0);
}

#[test]
fn ranks_of_one_node_or_on_a_node_each_have_no_leaders() {
    for nodes in [&[4, 4, 4], &[4, 5, 6]] {
        let network = Network::on_nodes(nodes);
        let memories = memories(3);
        on_threads(3, |rank| {
            let mut group = network.group(rank, Progress::Offloaded).unwrap();
            share_on_nodes(&mut group, nodes, &memories);
            assert!(!group.is_sharing_on_nodes());
            check(&mut group, Call::Allreduce(sum(100)), 1);
            group.free().unwrap();
        });
    }
}

#[test]
fn memory_of_another_number_of_ranks_is_refused_and_so_are_names_and_a_short_region() {
    let is_refused = |group: &mut Group<Library>, ranks, names: &[u32]| {
        let memory = shared_memory(&memories(ranks));
        let refused: lintel_group::Result<()> = group.share_on_nodes(memory, names);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))));
        assert!(!group.is_sharing_on_nodes());
    };
    job(3, Progress::Offloaded, |_, mut group| {
        is_refused(&mut group, 3, &[1, 1, 2]);
        is_refused(&mut group, 1, &[1, 1, 1, 2]);
        group.free().unwrap();
    });
    let network = Network::new(3);
    on_threads(3, |rank| {
        let region = Region::new(Group::<Library>::region_bytes(3));
        let spec = network.spec(rank, Progress::Offloaded);
        let mut group = Group::create(network.library(rank), region, spec).unwrap();
        is_refused(&mut group, [2, 2, 1][rank], &[1, 1, 2]);
    });
}
