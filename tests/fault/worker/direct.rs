//! Exposes memory that peers can map by an entry that neither posts nor counts, and operates on
//! that of others.

use crate::{Done, number};
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor, SUM};
use lintel_types::{EventKind, Handle, NiFail, ProcessId, UID_ANY};
use portals4_abi::{AckRequest, Interface, Queue, Sink, options};
use std::io::BufRead;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BITS: u64 = 9;
/// Bytes of the exposed memory.
const AREA: usize = 1 << 20;
/// Where long puts go, behind the words that are added to.
const LONG: (u64, u64) = (4096, 300_000);
/// Looks after an entry was unlinked.
const LOOKS: usize = 2000;

struct Worker {
    interface: Interface,
    queue: Queue,
    local: Descriptor,
    memory: Memory,
    ones: Memory,
    entry: Handle,
}

/// Opens an interface as process `pid`, and executes commands until stdin ends.
pub fn run(pid: u32) -> Done {
    let mut worker = Worker::new(pid).map_err(|why| why.to_string())?;
    worker.append()?;
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["fetch", peer] => println!("{}", worker.fetch(number(peer))),
            ["operate", peer] => worker.operate(number(peer))?,
            ["unlink", rounds] => {
                worker.unlink_again_and_again(number(rounds))?;
                println!("unlinked");
            }
            ["quit"] => {
                worker.interface.close().map_err(|why| why.to_string())?;
                println!("bye");
                return Ok(());
            }
            words => return Err(format!("unknown command: {words:?}")),
        }
    }
    Ok(())
}

impl Worker {
    fn new(pid: u32) -> portals4_abi::Result<Worker> {
        let interface = rig::open(pid)?;
        let queue = interface.queue(1024)?;
        let ones = Memory::new(AREA);
        ones.word(0).store(1, Ordering::Relaxed);
        rig::portal(&interface, None)?;
        Ok(Worker {
            local: rig::bind(&interface, ones, &queue)?,
            memory: Memory::shareable(AREA),
            entry: Handle::INVALID,
            ones,
            queue,
            interface,
        })
    }

    fn append(&mut self) -> Done {
        let me = portals::Me {
            start: self.memory.address().cast(),
            length: AREA as u64,
            ct_handle: Handle::CT_NONE.0,
            uid: UID_ANY,
            options: options::ME_OP_PUT | options::ME_OP_GET,
            match_id: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            match_bits: BITS,
            ignore_bits: 0,
            min_free: 0,
        };
        let (interface, none) = (self.interface.handle(), std::ptr::null_mut());
        // SAFETY: the structure and the output outlive the call, and the memory the process.
        let code =
            unsafe { portals::PtlMEAppend(interface, rig::PORTAL, &me, 0, none, &mut self.entry) };
        (code == 0)
            .then_some(())
            .ok_or(format!("PtlMEAppend returned {code}"))
    }

    /// Adds 1 to a peer's first word, and reports what it was, or how that failed.
    fn fetch(&self, peer: u32) -> String {
        let old = Sink {
            descriptor: &self.local,
            offset: 64,
        };
        let started = self
            .local
            .fetch_atomic(&rig::transfer(peer, BITS, 8), SUM, old);
        match started {
            Ok(()) => match rig::await_end(&self.queue, EventKind::Reply) {
                Ok(NiFail::Ok) => self.ones.word(8).load(Ordering::Relaxed).to_string(),
                Ok(fail) => format!("{fail:?}"),
                Err(why) => why,
            },
            Err(why) => why.to_string(),
        }
    }

    /// Adds to a peer's memory and puts to it, until that fails because the peer has ended.
    fn operate(&self, peer: u32) -> Done {
        println!("operating");
        let words = |why: portals4_abi::CallError| why.to_string();
        let (offset, length) = LONG;
        loop {
            for _ in 0..50 {
                let add = rig::transfer(peer, BITS, 8);
                self.local
                    .atomic(&add, SUM, AckRequest::None)
                    .map_err(words)?;
                while matches!(rig::next_event(&self.queue, 0), Ok(Some(_))) {}
            }
            let long = rig::transfer_at(peer, BITS, length, offset);
            self.local.put(&long, AckRequest::Full).map_err(words)?;
            match rig::await_end(&self.queue, EventKind::Ack)? {
                // Between two entries a message is dropped.
                NiFail::Ok | NiFail::Dropped => {}
                NiFail::Undeliverable => {
                    println!("lost");
                    return Ok(());
                }
                fail => return Err(format!("a put ended with {fail:?}")),
            }
        }
    }

    /// Unlinks the entry while peers access it; then nobody changes its memory.
    fn unlink_again_and_again(&mut self, rounds: u32) -> Done {
        for round in 0..rounds {
            self.unlink()?;
            let places = [0, LONG.0 as usize / 8, (LONG.0 + LONG.1) as usize / 8 - 1];
            let value = 1_000_000 * u64::from(round) + 7;
            for place in places {
                self.memory.word(place).store(value, Ordering::Relaxed);
            }
            for _ in 0..LOOKS {
                for place in places {
                    let seen = self.memory.word(place).load(Ordering::Relaxed);
                    if seen != value {
                        return Err(format!("word {place} became {seen} in round {round}"));
                    }
                }
            }
            self.append()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    fn unlink(&self) -> Done {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match portals::PtlMEUnlink(self.entry) {
                0 => return Ok(()),
                code if Instant::now() > until => return Err(format!("PtlMEUnlink: {code}")),
                // A message is landing.
                _ => std::thread::yield_now(),
            }
        }
    }
}
