//! Every operation among several ranks, progressed by the library and by the caller, and in
//! shared memory: each result equals that of a plain loop.

mod rig;

use std::sync::atomic::{AtomicU32, Ordering};

use lintel_claim::{AtomicCall, atomic, valid};
use lintel_group::{
    Algorithm, Call, Combine, Datatype, InPlace, Operation, Progress, Reduction, Region, Separate,
    Tree,
};
use rig::{By, Network, job, nothing, on_threads, run};

const ALL_WAYS: [By; 3] = [
    By::Messages(Progress::Offloaded),
    By::Messages(Progress::Host),
    By::SharedMemory,
];

const OPERATIONS: [Operation; 10] = [
    Operation::Min,
    Operation::Max,
    Operation::Sum,
    Operation::Prod,
    Operation::Lor,
    Operation::Land,
    Operation::Bor,
    Operation::Band,
    Operation::Lxor,
    Operation::Bxor,
];

const DATATYPES: [Datatype; 14] = [
    Datatype::Int8,
    Datatype::Uint8,
    Datatype::Int16,
    Datatype::Uint16,
    Datatype::Int32,
    Datatype::Uint32,
    Datatype::Float,
    Datatype::Int64,
    Datatype::Uint64,
    Datatype::Double,
    Datatype::FloatComplex,
    Datatype::DoubleComplex,
    Datatype::LongDouble,
    Datatype::LongDoubleComplex,
];

/// 0, 1 or 2 as an element: sums and products of a few are exact in every type.
fn element(datatype: Datatype, value: u8) -> Vec<u8> {
    let real = |datatype, value| element(datatype, value);
    match datatype {
        Datatype::Float => f32::from(value).to_ne_bytes().to_vec(),
        Datatype::Double => f64::from(value).to_ne_bytes().to_vec(),
        Datatype::LongDouble => {
            // x87: the leading bit of the mantissa is explicit, the exponent's bias 16383.
            let mut bytes = vec![0; 16];
            if value > 0 {
                bytes[7] = 0x80;
                bytes[8..10].copy_from_slice(&(0x3fff + u16::from(value > 1)).to_le_bytes());
            }
            bytes
        }
        Datatype::FloatComplex => [real(Datatype::Float, value), real(Datatype::Float, 0)].concat(),
        Datatype::DoubleComplex => {
            [real(Datatype::Double, value), real(Datatype::Double, 0)].concat()
        }
        Datatype::LongDoubleComplex => [
            real(Datatype::LongDouble, value),
            real(Datatype::LongDouble, 0),
        ]
        .concat(),
        integer => u64::from(value).to_le_bytes()[..integer.size()].to_vec(),
    }
}

/// The elements that a rank contributes.
fn elements(datatype: Datatype, rank: u32, count: u64) -> Vec<u8> {
    let value = |i: u64| ((u64::from(rank) * 7 + i * 5 + i / 3) % 3) as u8;
    (0..count)
        .flat_map(|i| element(datatype, value(i)))
        .collect()
}

/// What a plain loop over the ranks gives.
fn combined(combine: Combine, ranks: u32, count: u64) -> Vec<u8> {
    let Combine {
        operation,
        datatype,
    } = combine;
    let sum = Region::new(count * datatype.size() as u64);
    sum.write(0, &elements(datatype, 0, count));
    for rank in 1..ranks {
        let operand = elements(datatype, rank, count);
        atomic(operation, datatype, &[sum.claim()], &operand);
    }
    let mut bytes = vec![0; sum.len() as usize];
    sum.read(0, &mut bytes);
    bytes
}

/// Bytes that differ by rank and place.
fn bytes_of(rank: u32, length: u64) -> Vec<u8> {
    (0..length)
        .map(|i| (i * 31 + i / 251 + u64::from(rank) * 89) as u8)
        .collect()
}

fn sum(datatype: Datatype, count: u64) -> Reduction {
    let operation = Operation::Sum;
    let combine = Combine {
        operation,
        datatype,
    };
    Reduction { combine, count }
}

#[test]
fn an_allreduce_of_every_operation_on_every_type_gives_all_ranks_the_result() {
    for by in ALL_WAYS {
        job(5, by, |_, mut group| {
            for (operation, datatype) in OPERATIONS
                .iter()
                .flat_map(|&o| DATATYPES.map(move |d| (o, d)))
            {
                if !valid(operation, datatype, AtomicCall::Atomic) {
                    continue;
                }
                let combine = Combine {
                    operation,
                    datatype,
                };
                let call = Call::Allreduce(Reduction { combine, count: 9 });
                let input = elements(datatype, group.rank(), 9);
                let got = run(&mut group, call, &input);
                assert_eq!(got, combined(combine, 5, 9), "{operation:?} {datatype:?}");
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_entered_it() {
    for by in ALL_WAYS {
        for ranks in [1, 2, 3, 8] {
            let entered = AtomicU32::new(0);
            job(ranks, by, |_, mut group| {
                for round in 1..=40 {
                    entered.fetch_add(1, Ordering::SeqCst);
                    group.run(Call::Barrier, None, &mut nothing()).unwrap();
                    assert!(entered.load(Ordering::SeqCst) >= round * ranks as u32);
                }
                group.free().unwrap();
            });
        }
    }
}

#[test]
fn reductions_of_every_length_and_algorithm_give_the_sum() {
    let algorithms = [
        None,
        Some(Algorithm::RecursiveDoubling),
        Some(Algorithm::Halving),
        Some(Algorithm::Tree(Tree::KNomial(3))),
        Some(Algorithm::Tree(Tree::KAry(1))),
    ];
    for by in ALL_WAYS {
        job(3, by, |_, mut group| {
            for count in [0, 1, 1000, 20_000] {
                let reduction = sum(Datatype::Int32, count);
                let want = combined(reduction.combine, 3, count);
                for algorithm in algorithms {
                    let input = elements(Datatype::Int32, group.rank(), count);
                    let mut output = vec![0; input.len()];
                    let mut buffers = Separate {
                        input: &input,
                        output: &mut output,
                    };
                    let call = Call::Allreduce(reduction);
                    group.run(call, algorithm, &mut buffers).unwrap();
                    assert_eq!(output, want, "{count} elements by {algorithm:?}");
                }
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn only_the_root_of_a_reduce_gets_the_result() {
    job(4, Progress::Offloaded, |_, mut group| {
        for (root, count) in [(0, 3), (3, 100), (1, 5000)] {
            let reduction = sum(Datatype::Double, count);
            let input = elements(Datatype::Double, group.rank(), count);
            let got = run(&mut group, Call::Reduce { root, reduction }, &input);
            let want = combined(reduction.combine, 4, count);
            assert_eq!(
                got,
                if group.rank() == root {
                    want
                } else {
                    Vec::new()
                }
            );
        }
        group.free().unwrap();
    });
}

#[test]
fn bytes_of_many_segments_reach_their_ranks() {
    for by in ALL_WAYS {
        job(3, by, |_, mut group| {
            let own = group.rank();
            for (root, bytes) in [(0, 0), (1, 1), (2, 70_000), (0, 3 << 20)] {
                let root_only = |bytes: Vec<u8>| if own == root { bytes } else { Vec::new() };
                let all: Vec<u8> = (0..3).flat_map(|rank| bytes_of(rank, bytes)).collect();

                let got = run(
                    &mut group,
                    Call::Broadcast { root, bytes },
                    &root_only(bytes_of(9, bytes)),
                );
                assert!(
                    own == root || got == bytes_of(9, bytes),
                    "broadcast of {bytes}"
                );
                let got = run(
                    &mut group,
                    Call::Gather { root, bytes },
                    &bytes_of(own, bytes),
                );
                assert!(got == root_only(all.clone()), "gather of {bytes}");
                let got = run(
                    &mut group,
                    Call::Scatter { root, bytes },
                    &root_only(all.clone()),
                );
                assert!(got == bytes_of(own, bytes), "scatter of {bytes}");
            }
            group.free().unwrap();
        });
    }
}

#[test]
fn requests_complete_in_any_order() {
    job(4, Progress::Offloaded, |_, mut group| {
        let reduction = sum(Datatype::Uint64, 2);
        let input = elements(Datatype::Uint64, group.rank(), 2);
        let mut outputs = vec![vec![0; 16]; 50];
        let mut requests = Vec::new();
        for output in &mut outputs {
            let mut buffers = Separate {
                input: &input,
                output,
            };
            let call = Call::Allreduce(reduction);
            requests.push(group.begin(call, None, &mut buffers).unwrap());
        }
        for (request, output) in requests.into_iter().zip(&mut outputs).rev() {
            let mut buffers = Separate {
                input: &input,
                output,
            };
            assert_eq!(group.request_lengths(request).unwrap(), (16, 16));
            group.wait(request, &mut buffers).unwrap();
        }
        let want = combined(reduction.combine, 4, 2);
        assert!(outputs.iter().all(|output| *output == want));
        group.free().unwrap();
    });
}

#[test]
fn a_request_that_is_tested_completes_without_waiting() {
    job(2, Progress::Host, |_, mut group| {
        let bytes = 100_000;
        let root_input = bytes_of(0, bytes);
        let input = if group.rank() == 0 {
            &root_input[..]
        } else {
            &[]
        };
        let mut output = vec![0; if group.rank() == 0 { 0 } else { bytes as usize }];
        let mut buffers = Separate {
            input,
            output: &mut output,
        };
        let call = Call::Broadcast { root: 0, bytes };
        let request = group.begin(call, None, &mut buffers).unwrap();
        while !group.test(request, &mut buffers).unwrap() {
            std::thread::yield_now();
        }
        assert!(group.rank() == 0 || output == root_input);
        group.free().unwrap();
    });
}

#[test]
fn an_allreduce_in_place_replaces_the_input() {
    job(3, Progress::Offloaded, |_, mut group| {
        let reduction = sum(Datatype::Int16, 4);
        let mut bytes = elements(Datatype::Int16, group.rank(), 4);
        let mut buffers = InPlace {
            bytes: &mut bytes,
            input: 0..8,
            output: 0..8,
        };
        group
            .run(Call::Allreduce(reduction), None, &mut buffers)
            .unwrap();
        assert_eq!(bytes, combined(reduction.combine, 3, 4));
        group.free().unwrap();
    });
}

#[test]
fn a_freed_group_gives_counters_and_entries_back() {
    let network = Network::new(3);
    on_threads(3, |rank| {
        let mut group = network.group(rank, Progress::Offloaded).unwrap();
        assert!(network.resources(rank) > 0);
        assert_eq!((group.rank(), group.ranks()), (rank as u32, 3));
        group.begin(Call::Barrier, None, &mut nothing()).unwrap();
        // The barrier is completed, though no one waits for it.
        group.free().unwrap();
    });
    (0..3).for_each(|rank| assert_eq!(network.resources(rank), 0));
}

#[test]
fn a_rank_that_is_late_is_waited_for() {
    let network = Network::new(2);
    on_threads(2, |rank| {
        if rank == 1 {
            network.wait_until_probed(1, 3);
        }
        let group = network.group(rank, Progress::Offloaded).unwrap();
        group.free().unwrap();
    });
}
