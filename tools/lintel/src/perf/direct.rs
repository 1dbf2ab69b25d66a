//! `direct`: operations on memory that the other side can map, while that computes and makes no
//! call.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::atomics::{Atomic, Call};
use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup};
use super::session::Session;
use crate::error::Result;
use crate::harness::Workload;
use crate::portals::{Counted, Transfer};
use crate::raw::Region;
use crate::report::Row;
use crate::team::spin_until;

/// Get, fetch-atomic, conditional swap and acknowledged put of 8 B, each waited for; gets and
/// puts of the other sizes up to 1 MiB.
pub fn run(session: &mut Session) -> Result<()> {
    let sizes = session.options.sizes.iter().copied();
    let sizes: Vec<u64> = sizes.filter(|size| (9..=LONGEST).contains(size)).collect();
    let all = [
        ("get", Operation::Get),
        ("put, acknowledged", Operation::Put),
        ("fetch-atomic", Operation::Atomic(Call::Fetch)),
        ("conditional swap", Operation::Atomic(Call::CompareSwap)),
    ];
    for (variant, operation) in all {
        point(session, variant, operation, 8)?;
        if !matches!(operation, Operation::Atomic(_)) {
            for bytes in &sizes {
                point(session, variant, operation, *bytes)?;
            }
        }
    }
    session.team.barrier()
}

fn point(session: &mut Session, variant: &str, operation: Operation, bytes: u64) -> Result<()> {
    session.announce(variant, bytes);
    let stage = match operation {
        Operation::Put => Counted::Acks,
        _ => Counted::Replies,
    };
    let endpoint = Endpoint::direct(session, Setup::simple(session, LONGEST, stage))?;
    let limit = Baseline::new(session, &endpoint, bytes, Span::RoundTrip)?;
    let mut workload = Computing {
        endpoint: &endpoint,
        operation,
        transfer: endpoint.transfer(bytes),
        flags: session.team.share(4096)?,
        round: 0,
    };
    let measured = limit.measure(&session.team, session.plan, &mut [&mut workload])?;
    session.record(|| {
        let row = Row::new("direct", variant, bytes).timed(&measured.own[0], 1.0);
        measured.compare(row.with_bandwidth(bytes), 0, 1.0)
    });
    session.team.barrier()
}

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Put,
    Atomic(Call),
}

/// Operations by rank 0 one after the other; rank 1 computes until they are over.
struct Computing<'a> {
    endpoint: &'a Endpoint,
    operation: Operation,
    transfer: Transfer,
    flags: Region,
    round: u64,
}

impl Workload for Computing<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        let (endpoint, transfer) = (self.endpoint, &self.transfer);
        for _ in 0..n {
            match self.operation {
                Operation::Get => endpoint.descriptor.get(transfer)?,
                Operation::Put => {
                    let ack = endpoint.completions.ack();
                    endpoint.descriptor.put(transfer, ack)?;
                }
                Operation::Atomic(call) => Atomic(endpoint, call).issue()?,
            }
            endpoint.completions.next()?;
        }
        self.round += 1;
        self.flags.words()[0].store(self.round, Release);
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        self.round += 1;
        let (over, round, mut value) = (&self.flags.words()[0], self.round, 1_u64);
        spin_until(|| {
            for i in 0..ROUNDS {
                value = black_box(value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(i));
            }
            over.load(Acquire) >= round
        })
    }
}

/// The longest message that is carried out without its target, bytes.
const LONGEST: u64 = 1 << 20;
/// Steps of computing between two looks at whether the other side is through.
const ROUNDS: u64 = 1000;
