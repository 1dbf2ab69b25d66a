//! Files of a job in `/dev/shm` that one of its own user truncates.

use crate::Options;
use crate::peer::{BITS, Peer, job, pair, process_of};
use crate::sandbox::{Outcome, in_shared_memory};
use crate::space::agent_lives;
use std::fs::OpenOptions;
use std::path::Path;

const BYTES: usize = 1 << 20;
/// To how much of their length files are cut, in 1024ths.
const SHARES: [u64; 4] = [512, 4, 1, 0];

/// Before, amid and after operations: they may fail, but no signal ends a process.
pub fn all(_: &Options) -> Outcome {
    for share in SHARES {
        at(share).map_err(|why| format!("cut to {share}/1024: {why}"))?;
    }
    Ok(())
}

fn at(share: u64) -> Outcome {
    let job = job();
    let (mut one, mut two) = pair(&job, BYTES)?;
    let mut third = Peer::open(&job, 2)?;
    two.ok(&format!("offer 0 {BITS} quiet"))?;
    let to = two.process;
    one.send(&format!("flood 0 4000 {} {} {BITS} 20000", to.nid, to.pid));
    cut(share)?;
    // The answer of the flood.
    one.answers_or_ended_by_itself("event 100")?;
    for peer in [&mut one, &mut two, &mut third] {
        for process in [to, process_of(&job, 0)] {
            let words = format!("put 3 100 {} {} 1", process.nid, process.pid);
            peer.answers_or_ended_by_itself(&words)?;
        }
        peer.answers_or_ended_by_itself("event 500")?;
    }
    let mut late = Peer::start(&job, 3);
    late.answers_or_ended_by_itself(&format!("open {}", late.process.pid))?;
    agent_lives(&job)?;
    for peer in [&mut one, &mut two, &mut third, &mut late] {
        peer.answers_or_ended_by_itself("close 0")?;
        peer.answers_or_ended_by_itself("event 0")?;
        peer.lives()?;
    }
    Ok(())
}

/// What has a length.
fn cut(share: u64) -> Outcome {
    for name in in_shared_memory() {
        let path = Path::new("/dev/shm").join(name);
        let Ok(file) = OpenOptions::new().write(true).open(&path) else {
            // A socket.
            continue;
        };
        let length = file.metadata().map_err(|why| why.to_string())?.len();
        let cut = file.set_len(length * share / 1024);
        cut.map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(())
}
