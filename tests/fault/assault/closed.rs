//! Memory after `PtlNIFini`: the program's alone again.
//!
//! Each attack runs with one interface and with two, of which the second one stays open,
//! and with the memory kept and unmapped.

use crate::Options;
use crate::peer::{BITS, Peer, SECRET, job, pair, strangers};
use crate::sandbox::Outcome;

/// Long enough that it can't be done before `PtlNIFini` begins.
const BYTES: usize = 64 << 20;
/// A stream that lasts for a while.
const STREAM: usize = 192 << 20;
/// Milliseconds without an event after which none is expected any more.
const QUIET: u32 = 700;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Interfaces {
    One,
    Two,
}

/// What the program does with its memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum After {
    Reuse,
    Unmap,
}

const CASES: [(Interfaces, After); 4] = [
    (Interfaces::One, After::Reuse),
    (Interfaces::Two, After::Reuse),
    (Interfaces::One, After::Unmap),
    (Interfaces::Two, After::Unmap),
];

/// One of each kind.
const SHORT_CASES: [(Interfaces, After); 2] = [CASES[1], CASES[2]];

fn in_each_case(options: &Options, attack: fn(Interfaces, After) -> Outcome) -> Outcome {
    let cases = if options.short {
        &SHORT_CASES[..]
    } else {
        &CASES
    };
    for (interfaces, after) in cases.iter().copied() {
        attack(interfaces, after)
            .map_err(|why| format!("{interfaces:?} interface(s), {after:?}: {why}"))?;
    }
    Ok(())
}

/// A put is under way to a process that is stopped.
pub fn put(options: &Options) -> Outcome {
    in_each_case(options, |interfaces, after| {
        let job = job();
        let (mut one, mut other) = pair(&job, BYTES)?;
        other.ok(&format!("offer 0 {BITS}"))?;
        second(&mut one, interfaces)?;
        other.stop();
        accepted(&one.put(0, BYTES, other.process, BITS))?;
        one.close()?;
        reuse(&mut one, after)?;
        other.resume();
        let events = other.events(QUIET);
        let leaked = other.like(0, SECRET)?;
        if leaked > 0 {
            let bytes = format!("{leaked} bytes written after PtlNIFini were sent");
            return Err(format!("{bytes}; {events:?}"));
        }
        alive(&mut one, interfaces)
    })
}

/// A get is under way from a process that is stopped.
pub fn get(options: &Options) -> Outcome {
    in_each_case(options, |interfaces, after| {
        let job = job();
        let (mut one, mut other) = pair(&job, BYTES)?;
        other.ok(&format!("offer 0 {BITS}"))?;
        second(&mut one, interfaces)?;
        other.stop();
        accepted(&one.get(0, BYTES, other.process, BITS))?;
        one.close()?;
        reuse(&mut one, after)?;
        other.resume();
        other.events(QUIET);
        unchanged(&mut one, BYTES, after)?;
        alive(&mut one, interfaces)
    })
}

/// A put of another process arrives, the first one of that process: where the two don't
/// know yet how they reach each other it comes as a stream.
pub fn target(options: &Options) -> Outcome {
    in_each_case(options, |interfaces, after| {
        let job = job();
        let (mut one, mut other) = strangers(&job, STREAM)?;
        one.ok(&format!("offer 0 {BITS}"))?;
        second(&mut one, interfaces)?;
        one.send("close-amid 0");
        accepted(&other.put(0, STREAM, one.process, BITS))?;
        one.expect("closed 0");
        reuse(&mut one, after)?;
        other.events(QUIET);
        unchanged(&mut one, STREAM, after)?;
        alive(&mut one, interfaces)
    })
}

fn second(peer: &mut Peer, interfaces: Interfaces) -> Outcome {
    match interfaces {
        Interfaces::One => Ok(()),
        Interfaces::Two => peer.ok("open-second"),
    }
}

fn accepted(answer: &str) -> Outcome {
    match answer {
        "ok" => Ok(()),
        answer => Err(format!("the operation was refused: {answer}")),
    }
}

fn reuse(peer: &mut Peer, after: After) -> Outcome {
    match after {
        After::Reuse => peer.ok(&format!("fill 0 {SECRET}")),
        After::Unmap => peer.ok("unmap 0"),
    }
}

fn unchanged(peer: &mut Peer, bytes: usize, after: After) -> Outcome {
    if after == After::Unmap {
        return Ok(());
    }
    match peer.like(0, SECRET)? {
        kept if kept == bytes => Ok(()),
        kept => Err(format!(
            "{} bytes were written after PtlNIFini",
            bytes - kept
        )),
    }
}

/// No signal has ended it, and its other interface works.
fn alive(peer: &mut Peer, interfaces: Interfaces) -> Outcome {
    peer.lives()?;
    if interfaces == Interfaces::Two {
        let answer = peer.request("close 1");
        if !answer.starts_with("closed 0") {
            return Err(format!("the other interface: {answer}"));
        }
    }
    peer.ok("end")
}
