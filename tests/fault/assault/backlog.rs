//! Memory that is held for peers which don't read.

use crate::Options;
use crate::peer::{BITS, Peer, command, job, meet};
use crate::sandbox::{Outcome, resident};
use lintel_fault::job::Job;
use std::time::{Duration, Instant};

const PUTS: u64 = 20_000;
const LENGTH: u64 = 60_000;
/// By so much a process may grow, MiB.
const BOUND: u64 = 64;
/// Seconds that the peer is stopped at most.
const STOPPED: u64 = 8;
/// Milliseconds: longer than a peer is stopped here.
const PEER_TIMEOUT: &str = "120000";
const ROUNDS: u32 = 4;
const LENT: usize = 60 << 20;

/// A pair of which the second is no client of an agent.
fn half_generic(job: &Job, bytes: usize) -> Result<(Peer, Peer), String> {
    let start = |number: u32, mode: Option<&str>| {
        let mut command = command(job, number);
        command.env("PTL_PEER_TIMEOUT", PEER_TIMEOUT);
        if let Some(mode) = mode {
            command.env("PTL_MODE", mode);
        }
        Peer::from(job, number, command)
    };
    let (mut one, mut two) = (start(0, None), start(1, Some("accelerated")));
    for peer in [&mut one, &mut two] {
        peer.open_interface()?;
        peer.area(0, bytes, b'A')?;
        peer.area(3, 256 << 10, b'A')?;
        peer.ok("offer 3 1 quiet")?;
        peer.ok("bind 0")?;
        peer.ok("bind 3")?;
    }
    meet(&mut one, &mut two)?;
    Ok((one, two))
}

/// Puts without end to a process that is stopped: they are refused at last, or held where
/// they are; and all that were accepted arrive.
pub fn sender(options: &Options) -> Outcome {
    let job = job();
    let (mut one, mut two) = half_generic(&job, LENGTH as usize)?;
    two.ok(&format!("offer 0 {BITS} quiet"))?;
    let acknowledged_before = acknowledgements(&mut one, 0, 0)?;
    let before = held(&job, &one)?;
    two.stop();
    let to = two.process;
    one.send(&format!(
        "flood 0 {LENGTH} {} {} {BITS} {PUTS}",
        to.nid, to.pid
    ));
    let stopped = if options.short { STOPPED / 2 } else { STOPPED };
    let (answer, most) = watch(&job, &mut one, stopped)?;
    two.resume();
    let answer = answer.unwrap_or_else(|| one.line());
    let grown = most.saturating_sub(before) >> 10;
    println!("{answer}; grown by {grown} MiB");
    if grown > BOUND {
        return Err(format!("the sender has grown by {grown} MiB"));
    }
    let accepted = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    let accepted: u64 = accepted.ok_or(answer)?;
    let (arrived, failed) = acknowledgements(&mut one, accepted, 60_000)?;
    match arrived - acknowledged_before.0 {
        all if all == accepted => Ok(()),
        some => Err(format!("{some} of {accepted} arrived, {failed} failed")),
    }
}

/// Its answer, where it comes while the other one is stopped, and the most memory held.
fn watch(job: &Job, sender: &mut Peer, seconds: u64) -> Result<(Option<String>, u64), String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut most = 0;
    loop {
        let answer = sender.try_line();
        most = most.max(held(job, sender)?);
        if answer.is_some() {
            return Ok((answer, most));
        }
        if Instant::now() > until {
            println!("{PUTS} puts take longer than {seconds} s");
            return Ok((None, most));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Successes and failures, once there are so many or the time is over.
fn acknowledgements(peer: &mut Peer, count: u64, ms: u32) -> Result<(u64, u64), String> {
    // Asked for in pieces that are shorter than what a driver waits for.
    let until = Instant::now() + Duration::from_millis(ms.into());
    loop {
        let answer = peer.request(&format!("count {count} 1000"));
        let numbers: Vec<u64> = answer.split(' ').flat_map(str::parse).collect();
        let [success, failure] = numbers[..] else {
            return Err(answer);
        };
        if success + failure >= count || Instant::now() > until {
            return Ok((success, failure));
        }
    }
}

/// Memory of a process, and of its agent, KiB.
fn held(job: &Job, peer: &Peer) -> Result<u64, String> {
    let agent = job.agent(0).map_or(Ok(0), resident)?;
    Ok(resident(peer.id())? + agent)
}

/// A client that closes while a long put is under way to a process that is stopped leaves
/// the agent with memory that is lent, which goes with the peer.
pub fn agent(_: &Options) -> Outcome {
    for ends in [false, true] {
        let job = job();
        let agent = job.agent(0).ok_or("there is no agent")?;
        let before = resident(agent)?;
        let (mut client, mut other) = half_generic(&job, LENT)?;
        other.ok(&format!("offer 0 {BITS}"))?;
        other.stop();
        for round in 0..ROUNDS {
            if round > 0 {
                client = again(&job)?;
            }
            client.put(0, LENT, other.process, BITS);
            client.close()?;
            client.kill();
        }
        let most = resident(agent)?.saturating_sub(before);
        println!("grown by {} MiB while the peer is stopped", most >> 10);
        match ends {
            true => other.kill(),
            false => other.resume(),
        }
        shrinks(agent, before).map_err(|why| format!("{why}; the peer ended: {ends}"))?;
    }
    Ok(())
}

fn again(job: &Job) -> Result<Peer, String> {
    let mut client = Peer::open(job, 0)?;
    client.area(0, LENT, b'A')?;
    client.ok("bind 0")?;
    Ok(client)
}

fn shrinks(agent: u32, before: u64) -> Outcome {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let grown = resident(agent)?.saturating_sub(before) >> 10;
        if grown < BOUND {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("the agent has grown by {grown} MiB"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
