//! A `/dev/shm` in which there is no room.

use crate::Options;
use crate::peer::{Peer, command, job, meet};
use crate::sandbox::{Mounted, Outcome, not_ended_by_signal, program};
use lintel_fault::job::{Job, Worker};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// How much is free, KiB.
const FREE: [u32; 6] = [0, 4, 64, 256, 400, 600];
/// Of which that is a part: enough for an agent that began before.
const WHOLE: u32 = 64 << 10;
const PEERS: u32 = 4;
const NO_SPACE: &str = "refused 10";

/// Processes that begin where nearly nothing is free: they work, or are refused.
pub fn full(_: &Options) -> Outcome {
    for free in FREE {
        begin(free).map_err(|why| format!("{free} KiB free: {why}"))?;
    }
    Ok(())
}

fn begin(free: u32) -> Outcome {
    let _mounted = Mounted::shared_memory_of(WHOLE)?;
    let job = job();
    job.agent(0);
    fill_but(free)?;
    agent_begins(free)?;
    let mut peers: Vec<Peer> = (0..PEERS).map(|n| Peer::start(&job, n)).collect();
    let mut opened = 0;
    for peer in &mut peers {
        let answer = peer.request(&format!("open {}", peer.process.pid));
        match answer.as_str() {
            "ok" => opened += 1,
            NO_SPACE => reported(peer)?,
            other => {
                let said = peer.stderr();
                return Err(format!(
                    "PtlNIInit: {other}, not PTL_NO_SPACE; it said: {said}"
                ));
            }
        }
    }
    use_all(&mut peers)?;
    println!("{free} KiB free: {opened} of {PEERS} opened");
    agent_lives(&job)
}

/// A refused process reports the reason.
fn reported(peer: &Peer) -> Outcome {
    match peer.complains() {
        true => Ok(()),
        false => Err("PTL_NO_SPACE without a line that says why".into()),
    }
}

/// Each puts to each; what isn't open is reported so.
fn use_all(peers: &mut [Peer]) -> Outcome {
    let processes: Vec<_> = peers.iter().map(|peer| peer.process).collect();
    for peer in &mut *peers {
        peer.area(0, 100_000, b'A')?;
        peer.request("offer 0 7 quiet");
        peer.request("bind 0");
    }
    for peer in &mut *peers {
        for to in &processes {
            for bytes in [8, 4000, 100_000] {
                let words = format!("put 0 {bytes} {} {} 7", to.nid, to.pid);
                peer.answers_or_ended_by_itself(&words)?;
            }
        }
    }
    for peer in &mut *peers {
        for _ in 0..2 * processes.len() {
            peer.answers_or_ended_by_itself("event 100")?;
        }
    }
    peers.iter_mut().try_for_each(Peer::lives)
}

/// An agent of another job that begins now.
fn agent_begins(free: u32) -> Outcome {
    if std::env::var_os("PTL_MODE").is_none() {
        return Ok(());
    }
    let mut command = std::process::Command::new(program("lintel-agent"));
    command.args(["--iface", "127.0.0.1"]);
    command.env("LINTEL_JOB", format!("late{free}"));
    let mut agent = Worker::start(command);
    let until = Instant::now() + Duration::from_secs(10);
    while agent.try_line().is_none() && agent.ended().is_none() {
        if Instant::now() > until {
            return Err("lintel-agent neither begins nor ends".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    not_ended_by_signal("an agent that begins", &mut agent)?;
    agent.terminate();
    Ok(())
}

/// Another process fills it after processes have started.
pub fn filled(_: &Options) -> Outcome {
    let _mounted = Mounted::shared_memory_of(WHOLE)?;
    let job = job();
    let mut peers = Vec::new();
    for number in 0..PEERS {
        peers.push(Peer::from(&job, number, command(&job, number)));
    }
    for peer in &mut peers {
        peer.open_interface()?;
    }
    fill_but(0)?;
    use_all(&mut peers)?;
    agent_lives(&job)?;
    // Where nothing had to be allocated any more, everything works.
    std::fs::remove_file(FILLER).map_err(|why| why.to_string())?;
    let (one, rest) = peers.split_at_mut(1);
    for peer in [&mut one[0], &mut rest[0]] {
        peer.area(3, 256 << 10, b'A')?;
        peer.ok("offer 3 1 quiet")?;
        peer.ok("bind 3")?;
        peer.events(100);
    }
    meet(&mut one[0], &mut rest[0])
}

const FILLER: &str = "/dev/shm/filler";

fn fill_but(free: u32) -> Outcome {
    let mut file = File::create(FILLER).map_err(|why| why.to_string())?;
    let page = [0xff; 4096];
    let mut length: u64 = 0;
    while file.write_all(&page).is_ok() {
        length += 4096;
    }
    let length = length.saturating_sub(u64::from(free) << 10);
    file.set_len(length).map_err(|why| why.to_string())
}

/// The agent of the job, where it has one.
pub fn agent_lives(job: &Job) -> Outcome {
    let Some(agent) = job.agent(0) else {
        return Ok(());
    };
    let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap_or_default();
    match stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next())
    {
        None | Some('Z' | 'X') => Err("the agent has ended".into()),
        Some(_) => Ok(()),
    }
}
