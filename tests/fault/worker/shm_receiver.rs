//! Receives by the shared-memory NAL alone, and reports corrupt lanes.

use crate::Done;
use lintel_fault::rig;
use lintel_nal::{Arrival, Nal, Wake};
use lintel_nal_shm::ShmNal;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

/// Opens the NAL as process `pid`, and counts messages by sender.
pub fn run(pid: u32) -> Done {
    let job = std::env::var("LINTEL_JOB").map_err(|why| why.to_string())?;
    let log = |words: &str| eprintln!("{words}");
    let me = rig::process(pid);
    let mut nal = ShmNal::open(&job, me.nid, me.pid, log).map_err(|why| why.to_string())?;
    println!("ready");
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let mut messages: BTreeMap<u32, u64> = BTreeMap::new();
    let mut checked = Instant::now();
    loop {
        while let Some(arrival) = nal.next() {
            if let Arrival::Message(origin, ..) = arrival {
                *messages
                    .entry(rig::places().number(origin.process))
                    .or_default() += 1;
                nal.done(origin);
            }
        }
        if checked.elapsed() > Duration::from_millis(50) {
            checked = Instant::now();
            nal.check_peers();
        }
        match commands.try_recv() {
            Ok(command) => match command.strip_prefix("from ") {
                Some(pid) => {
                    let pid = pid.parse::<u32>().map_err(|why| why.to_string())?;
                    println!("from {}", messages.get(&pid).copied().unwrap_or(0));
                }
                None => println!("{} corrupt", nal.diagnostics().corrupt_lanes),
            },
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}
