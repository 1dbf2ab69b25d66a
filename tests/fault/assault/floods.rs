//! Messages that nothing takes.

use crate::Options;
use crate::peer::{Peer, job, pair};
use crate::sandbox::{Outcome, resident};
use crate::space::agent_lives;

/// Match bits of no entry.
const NOBODY: u64 = 99;
/// Match bits of an entry of the overflow list.
const OVERFLOW: u64 = 98;
/// By so much a target may grow, KiB.
const BOUND: u64 = 64 << 10;

/// Short and long ones, dropped and kept.
pub fn all(_: &Options) -> Outcome {
    let job = job();
    let (mut one, mut two) = pair(&job, 60_000)?;
    two.ok(&format!("offer 0 {OVERFLOW} overflow quiet"))?;
    let before = resident(two.id())? + job.agent(0).map_or(Ok(0), resident)?;
    let mut sent = 0;
    for (length, count) in [(8, 100_000), (60_000, 3_000)] {
        for bits in [NOBODY, OVERFLOW] {
            sent += flood(&mut one, &two, length, bits, count)?;
            until_reported(&mut one, sent)?;
        }
    }
    let now = resident(two.id())? + job.agent(0).map_or(Ok(0), resident)?;
    let grown = now.saturating_sub(before);
    println!("{sent} messages; grown by {} KiB", grown);
    if grown > BOUND {
        return Err(format!("the target has grown by {} MiB", grown >> 10));
    }
    agent_lives(&job)?;
    two.events(0);
    crate::peer::meet(&mut one, &mut two)
}

fn flood(one: &mut Peer, two: &Peer, length: u32, bits: u64, count: u64) -> Result<u64, String> {
    let to = two.process;
    let words = format!("flood 0 {length} {} {} {bits} {count}", to.nid, to.pid);
    let answer = one.request(&words);
    let accepted = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    accepted.ok_or(format!("{words:?}: {answer}"))
}

/// Every message comes to its end.
fn until_reported(one: &mut Peer, sent: u64) -> Outcome {
    let answer = one.request(&format!("count {sent} 25000"));
    let ends: u64 = answer.split(' ').flat_map(str::parse::<u64>).sum();
    match ends >= sent {
        true => Ok(()),
        false => Err(format!("{ends} of {sent} messages came to an end")),
    }
}
