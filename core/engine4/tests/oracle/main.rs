//! The engine against a slow, obvious model: on random commands and arrivals
//! both must return, post, count, send, land and answer the same.
//!
//! A failure names its seed; `LINTEL_SEED=n` runs that sequence alone and prints
//! its steps, `LINTEL_SEQUENCES=n` runs more of them.

mod model;
#[path = "../rig/mod.rs"]
mod rig;
mod world;

use lintel_types::NiOptions;
use world::{Met, World};

const SEQUENCES: u64 = 20_000;
const STEPS: usize = 200;

/// What random sequences meet on every kind of interface.
const MUST_MEET: [&str; 66] = [
    "one step: reply",
    "one step: Put",
    "one step: Get",
    "one step: Atomic",
    "one step: FetchAtomic",
    "one step: Swap",
    "a put like an earlier one",
    "an acknowledgement by its token",
    "Get Ok",
    "Get Segv",
    "GetOverflow Ok",
    "Put Ok",
    "Put Segv",
    "PutOverflow Ok",
    "PutOverflow Segv",
    "Atomic Ok",
    "AtomicOverflow Ok",
    "FetchAtomic Ok",
    "FetchAtomicOverflow Ok",
    "Reply Ok",
    "Reply Dropped",
    "Reply OpViolation",
    "Reply PermViolation",
    "Reply PtDisabled",
    "Reply Segv",
    "Reply Undeliverable",
    "Send Ok",
    "Send Undeliverable",
    "Ack Ok",
    "Ack Dropped",
    "Ack OpViolation",
    "Ack PermViolation",
    "Ack PtDisabled",
    "Ack Segv",
    "Ack Undeliverable",
    "PtDisabled PtDisabled",
    "Link Ok",
    "AutoUnlink Ok",
    "AutoFree Ok",
    "Search Ok",
    "Search NoMatch",
    "append Ok",
    "append ArgInvalid",
    "append ListTooLong",
    "append NoSpace",
    "bind ArgInvalid",
    "bind NoSpace",
    "cancel Ok",
    "count ArgInvalid",
    "count NoSpace",
    "portal_alloc PtEqNeeded",
    "portal_alloc PtFull",
    "portal_alloc PtInUse",
    "portal_disable Ok",
    "portal_enable Ok",
    "portal_free Ok",
    "portal_free PtInUse",
    "release InUse",
    "release Ok",
    "start ArgInvalid",
    "start Ok",
    "trigger ArgInvalid",
    "trigger NoSpace",
    "trigger Ok",
    "unlink InUse",
    "unlink Ok",
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn run(seeds: impl Iterator<Item = u64>, options: NiOptions, verbose: bool) -> Met {
    let mut met = Met::new();
    for seed in seeds {
        let mut world = World::new(seed, options, verbose);
        for step in 0..STEPS {
            world.step(step);
        }
        world.finish();
        met.append(&mut world.met);
    }
    met
}

fn compare(options: NiOptions, place: u64) {
    if let Some(seed) = number("LINTEL_SEED") {
        run(std::iter::once(seed), options, true);
        return;
    }
    let sequences = number("LINTEL_SEQUENCES").unwrap_or(SEQUENCES) / 4;
    let met = run(
        place * 1_000_000..place * 1_000_000 + sequences,
        options,
        false,
    );
    for wanted in MUST_MEET {
        assert!(
            met.contains(wanted),
            "no sequence meets {wanted}; the generator has lost it"
        );
    }
}

#[test]
fn a_matching_physical_interface_does_what_the_model_does() {
    compare(rig::MATCHING, 1);
}

#[test]
fn a_matching_logical_interface_does_what_the_model_does() {
    compare(rig::LOGICAL, 2);
}

#[test]
fn a_non_matching_physical_interface_does_what_the_model_does() {
    compare(rig::NON_MATCHING, 3);
}

#[test]
fn a_non_matching_logical_interface_does_what_the_model_does() {
    compare(NiOptions::NO_MATCHING | NiOptions::LOGICAL, 4);
}
