//! The engine against a slow, obvious model: on random commands and arrivals
//! both must return, post, count, send, land and answer the same.
//!
//! A failure names its seed; `LINTEL_SEED=n` runs that sequence alone and prints
//! its steps, `LINTEL_SEQUENCES=n` runs more of them.

mod model;
#[path = "../rig/mod.rs"]
mod rig;
mod world;

use lintel_engine3::Dialect;
use world::{Met, World};

const SEQUENCES: u64 = 6_000;
const STEPS: usize = 200;

/// What random sequences meet in both dialects.
const MUST_MEET: [&str; 93] = [
    "Ack Fail",
    "Ack Ok",
    "Get MdIllegal",
    "Get MdInvalid",
    "Get Ok",
    "Get ProcessInvalid",
    "Get dropped",
    "GetEnd Fail",
    "GetEnd Ok",
    "GetPut MdIllegal",
    "GetPut MdInvalid",
    "GetPut Ok",
    "GetPut ProcessInvalid",
    "GetPut dropped",
    "GetPutEnd Fail",
    "GetPutEnd Ok",
    "GetPutStart Ok",
    "GetStart Ok",
    "Put MdIllegal",
    "Put MdInvalid",
    "Put Ok",
    "Put ProcessInvalid",
    "Put dropped",
    "PutEnd Fail",
    "PutEnd Ok",
    "PutStart Ok",
    "ReplyEnd Fail",
    "ReplyEnd Ok",
    "ReplyStart Ok",
    "SendEnd Fail",
    "SendEnd Ok",
    "SendStart Ok",
    "Unlink Ok",
    "acknowledged in one step",
    "delivered Ok",
    "delivered Segv",
    "access_entry AcIndexInvalid",
    "access_entry Ok",
    "access_entry PtIndexInvalid",
    "attach MeInvalid",
    "attach MeListTooLong",
    "attach NoSpace",
    "attach Ok",
    "attach PtIndexInvalid",
    "attach_any NoSpace",
    "attach_any Ok",
    "attach_any PtFull",
    "attach_md EqInvalid",
    "attach_md MdIllegal",
    "attach_md MeInUse",
    "attach_md MeInvalid",
    "attach_md NoSpace",
    "attach_md Ok",
    "attach_with EqInvalid",
    "attach_with MdIllegal",
    "attach_with MeListTooLong",
    "attach_with NoSpace",
    "attach_with Ok",
    "attach_with PtIndexInvalid",
    "bind EqInvalid",
    "bind MdIllegal",
    "bind NoSpace",
    "bind Ok",
    "insert_with EqInvalid",
    "insert_with MdIllegal",
    "insert_with MeInvalid",
    "insert_with MeListTooLong",
    "insert_with NoSpace",
    "insert_with Ok",
    "lose Dropped",
    "lose Undeliverable",
    "post EqInvalid",
    "post MdIllegal",
    "post MdNoUpdate",
    "post MeInvalid",
    "post MeListTooLong",
    "post NoSpace",
    "post Ok",
    "queue_alloc NoSpace",
    "queue_alloc Ok",
    "queue_free EqInvalid",
    "queue_free Ok",
    "unlink_entry MeInUse",
    "unlink_entry MeInvalid",
    "unlink_entry Ok",
    "unlink_md MdInUse",
    "unlink_md MdInvalid",
    "unlink_md Ok",
    "update EqInvalid",
    "update MdIllegal",
    "update MdInvalid",
    "update MdNoUpdate",
    "update Ok",
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn run(seeds: impl Iterator<Item = u64>, dialect: Dialect, verbose: bool) -> Met {
    let mut met = Met::new();
    for seed in seeds {
        let mut world = World::new(seed, dialect, verbose);
        for step in 0..STEPS {
            world.step(step);
        }
        world.finish();
        met.append(&mut world.met);
    }
    met
}

fn compare(dialect: Dialect, place: u64) {
    if let Some(seed) = number("LINTEL_SEED") {
        run(std::iter::once(seed), dialect, true);
        return;
    }
    let sequences = number("LINTEL_SEQUENCES").unwrap_or(SEQUENCES) / 2;
    let first = place * 1_000_000;
    let met = run(first..first + sequences, dialect, false);
    for wanted in MUST_MEET {
        assert!(
            met.contains(wanted),
            "no sequence meets {wanted}; the generator has lost it"
        );
    }
}

#[test]
fn an_interface_of_the_specifications_dialect_does_what_the_model_does() {
    compare(Dialect::Specification, 1);
}

#[test]
fn an_interface_of_crays_dialect_does_what_the_model_does() {
    compare(Dialect::Cray, 2);
}
