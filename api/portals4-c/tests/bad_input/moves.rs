//! Data movement, at once and triggered.

use crate::calls::{Args, CSWAP, Call, SUM, SWAP, all};
use crate::handles::{CT, MD, not_a, not_a_of};
use crate::rig::{INVALID, World};
use lintel_types::ProcessId;
use std::ptr::null;

const DOUBLE: u8 = 9;
const BOR: u8 = 6;
/// The descriptor's bytes.
const BYTES: u64 = 512;

pub fn refusals(world: &World) {
    for call in all() {
        handles(world, &call);
        ranges(world, &call);
        targets(world, &call);
        if call.acknowledged {
            acknowledgements(world, &call);
        }
        if call.atomic {
            operations(world, &call);
        }
    }
}

fn refuse(call: &Call, what: &str, args: Args) {
    assert_eq!(
        (call.run)(&args),
        INVALID as i32,
        "{} with {what}",
        call.name
    );
}

fn handles(world: &World, call: &Call) {
    let good = Args::good(world, call);
    for (what, md) in not_a(MD, world) {
        if call.sink {
            refuse(call, &what, Args { sink: md, ..good });
        }
        if call.source {
            refuse(call, &what, Args { source: md, ..good });
        }
    }
    let foreign = world.other.md;
    if call.sink && call.source {
        refuse(
            call,
            "a foreign sink",
            Args {
                sink: foreign,
                ..good
            },
        );
        refuse(
            call,
            "a foreign source",
            Args {
                source: foreign,
                ..good
            },
        );
    }
    if call.triggered {
        for (what, trigger) in not_a_of(CT, world, &world.matching) {
            refuse(call, &what, Args { trigger, ..good });
        }
    }
}

fn ranges(world: &World, call: &Call) {
    let good = Args::good(world, call);
    for offset in [BYTES - 7, BYTES + 1, u64::MAX - 3, u64::MAX] {
        if call.sink {
            refuse(
                call,
                "bytes outside",
                Args {
                    sink_offset: offset,
                    ..good
                },
            );
        }
        if call.source {
            refuse(
                call,
                "bytes outside",
                Args {
                    source_offset: offset,
                    ..good
                },
            );
        }
    }
    for length in [BYTES + 8, 1 << 48, u64::MAX - 7] {
        refuse(call, "too long", Args { length, ..good });
    }
}

fn targets(world: &World, call: &Call) {
    let good = Args::good(world, call);
    let me = world.me;
    for target in [
        ProcessId::new(ProcessId::NID_ANY, me.pid),
        ProcessId::new(me.nid, ProcessId::PID_ANY),
    ] {
        refuse(call, "a wildcard", Args { target, ..good });
    }
}

/// The descriptor has neither queue nor counter.
fn acknowledgements(world: &World, call: &Call) {
    let good = Args::good(world, call);
    for (what, ack) in [
        ("a full ack", 1),
        ("a counting ack", 2),
        ("ack 4", 4),
        ("ack 255", 255),
    ] {
        refuse(call, what, Args { ack, ..good });
    }
}

fn operations(world: &World, call: &Call) {
    let good = Args::good(world, call);
    for datatype in [14, 255] {
        refuse(call, "an unknown datatype", Args { datatype, ..good });
    }
    let swaps = call.operation == CSWAP;
    let foreign = if swaps { [SUM, BOR] } else { [SWAP, CSWAP] };
    for operation in foreign.into_iter().chain([18, 255]) {
        refuse(
            call,
            "an operation of another call",
            Args { operation, ..good },
        );
    }
    refuse(call, "no whole number of items", Args { length: 7, ..good });
    let (operation, datatype) = (if swaps { 17 } else { BOR }, DOUBLE);
    refuse(
        call,
        "bits of a double",
        Args {
            operation,
            datatype,
            ..good
        },
    );
    if swaps {
        refuse(
            call,
            "no operand",
            Args {
                operand: null(),
                ..good
            },
        );
        refuse(call, "two items", Args { length: 16, ..good });
    }
}
