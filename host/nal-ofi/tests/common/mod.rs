//! Endpoints for tests, where libfabric is.
#![allow(dead_code)] // each test program uses some of it

use lintel_nal::{Arrival, Nal, Origin, Outgoing, Payload, Wake};
use lintel_nal_ofi::{Config, OfiNal, OpenError};
use lintel_types::ProcessId;
use lintel_wire::{WORDS, Words};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const NID: u32 = 0x7f00_0001;
pub const KEY: [u8; 32] = [0x5a; 32];
/// Longer than anything here takes on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(20);

pub fn config<'a>(provider: &str, job: &'a str) -> Config<'a> {
    Config {
        nid: NID,
        port: None,
        provider: Some(provider.to_owned()),
        key: KEY,
        uid: 1000,
        model_is_xrc: false,
        // Short, for a peer that was dropped unseen is reported lost only then.
        peer_timeout: Duration::from_secs(1),
        job,
        log: |words| eprintln!("{words}"),
    }
}

/// Why there is nothing to test here, if there isn't; said aloud.
pub fn reason_to_skip(provider: &str) -> Option<String> {
    let reason = match OfiNal::open(config(provider, "probe")) {
        Ok(_) => return None,
        Err(error @ (OpenError::NoLibrary(_) | OpenError::TooOld(..))) => error.to_string(),
        Err(error @ OpenError::NoProvider { .. }) => error.to_string(),
        Err(error) => panic!("{provider}: {error}"),
    };
    eprintln!("SKIPPED, nothing was tested over {provider}: {reason}");
    Some(reason)
}

pub fn open(config: Config<'_>) -> OfiNal {
    OfiNal::open(config).unwrap_or_else(|error| panic!("{error}"))
}

/// Words that carry a number.
pub fn words(number: u64) -> Words {
    let mut words = [7; WORDS];
    words[1] = number;
    words
}

pub fn send_number(nal: &mut OfiNal, to: ProcessId, number: u64) {
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    let sent = nal.send(to, &words(number), nothing);
    sent.expect("the peer is there");
}

/// The next arrival at the last one, while the others go on.
pub fn arrival(others: &mut [&mut OfiNal], at: &mut OfiNal) -> Arrival {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(arrival) = at.next() {
            return arrival;
        }
        at.flush();
        at.check_peers();
        others.iter_mut().for_each(|other| {
            other.flush();
        });
        assert!(Instant::now() < until, "nothing arrives");
        std::thread::yield_now();
    }
}

/// The number of the next message, which has no bytes.
pub fn receive_number(others: &mut [&mut OfiNal], at: &mut OfiNal) -> (Origin, u64) {
    match arrival(others, at) {
        Arrival::Message(origin, words, Payload::Inline(nothing)) => {
            assert!(nothing.is_empty());
            at.done(origin);
            (origin, words[1])
        }
        other => panic!("a number was to come, not {other:?}"),
    }
}

/// Waits until the condition holds, and panics if that takes too long.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "{what} doesn't come about");
        std::thread::yield_now();
    }
}

/// A segment of provider shm that would stay behind, because its endpoint stays open.
pub struct Segment(PathBuf);

/// Leaves an endpoint of provider shm open, as it must be when there are two in one
/// process.
pub fn stay_open(nal: &OfiNal) -> Segment {
    let address = nal.stay_open();
    let address = String::from_utf8_lossy(&address).into_owned();
    let name = address.trim_end_matches('\0').rsplit('/').next();
    Segment(Path::new("/dev/shm").join(name.expect("a last part")))
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
