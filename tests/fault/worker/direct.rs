//! Exposes memory that peers can map, or private memory if `PTL_SHARE_MEMORY` is set, by an entry that neither posts nor counts, and operates on
//! that of others.

use crate::{Done, number, serve, unknown};
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor, SUM};
use lintel_presence::{PeerMemory, shareable};
use lintel_types::{Error, EventKind, Handle, NiFail};
use portals4_abi::{AckRequest, Interface, Queue, ShareableMemory, Sink, UserMemory};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BITS: u64 = 9;
/// Bytes of the exposed memory.
const AREA: usize = 1 << 20;
/// Where long puts go, behind the words that are added to.
const LONG: (u64, u64) = (4096, 300_000);
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
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
    worker.append(worker.memory.address())?;
    println!("ready");
    let interface = worker.interface.clone();
    serve(&interface, |words| {
        match words {
            ["fetch", peer] => println!("{}", worker.fetch(number(peer))),
            ["operate", peer] => worker.operate(number(peer))?,
            ["try-unlink"] => match portals::PtlMEUnlink(worker.entry) {
                0 => println!("unlinked"),
                code if code == Error::InUse as i32 => println!("in use"),
                code => return Err(format!("PtlMEUnlink: {code}")),
            },
            ["append"] => {
                worker.append(worker.memory.address())?;
                println!("appended");
            }
            ["unlink", rounds] => {
                worker.unlink_again_and_again(number(rounds))?;
                println!("unlinked");
            }
            ["free", rounds] => {
                worker.free_again_and_again(number(rounds))?;
                println!("freed");
            }
            ["close"] => {
                worker.interface.close().map_err(|why| why.to_string())?;
                worker.stays_as_written("the interface was closed")?;
                println!("closed");
            }
            words => return unknown(words),
        }
        Ok(())
    })
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
            memory: Memory::exposed(AREA),
            entry: Handle::INVALID,
            ones,
            queue,
            interface,
        })
    }

    fn append(&mut self, start: *mut u8) -> Done {
        self.entry = rig::append_quietly(&self.interface, BITS, (start, AREA))?;
        Ok(())
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

    /// Adds to a peer's memory, puts to it and gets from it, until that fails because the peer
    /// has ended.
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
            let put = rig::await_end(&self.queue, EventKind::Ack)?;
            self.local.get(&long).map_err(words)?;
            let got = rig::await_end(&self.queue, EventKind::Reply)?;
            match if put == NiFail::Ok { got } else { put } {
                // Between two entries a message is dropped.
                NiFail::Ok | NiFail::Dropped => {}
                NiFail::Undeliverable => {
                    println!("lost");
                    return Ok(());
                }
                fail => return Err(format!("a put or get ended with {fail:?}")),
            }
        }
    }

    /// Unlinks the entry while peers access it; then nobody changes its memory.
    fn unlink_again_and_again(&mut self, rounds: u32) -> Done {
        for round in 0..rounds {
            rig::unlink(self.entry)?;
            self.stays_as_written(&format!("unlink {round}"))?;
            self.append(self.memory.address())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Exposes memory of its own in each round, and frees it while peers still operate; then
    /// nobody changes it, as another mapping shows.
    fn free_again_and_again(&mut self, rounds: u32) -> Done {
        rig::unlink(self.entry)?;
        for round in 0..rounds {
            let memory = ShareableMemory::new(AREA).map_err(|why| why.to_string())?;
            let start = memory.address().cast::<u8>();
            let place = shareable().find(start.expose_provenance() as u64, AREA as u64);
            let place = place.ok_or("it isn't shareable")?;
            let other = PeerMemory::attach(place.id, place.nonce, place.bytes);
            let other = other.map_err(|why| why.to_string())?;
            // SAFETY: so many bytes are mapped, aligned to a page, and only ever touched as
            // atomics, until `other` is dropped behind the last use.
            let words = unsafe { std::slice::from_raw_parts(other.start().cast(), AREA / 8) };
            self.append(start)?;
            await_change(words)?;
            rig::unlink(self.entry)?;
            drop(memory);
            stay_as_written(words, &format!("free {round}"))?;
        }
        self.append(self.memory.address())
    }

    fn stays_as_written(&self, after: &str) -> Done {
        stay_as_written(self.memory.words(), after)
    }
}

/// Waits until a peer has added to the first word.
fn await_change(words: &[AtomicU64]) -> Done {
    let until = Instant::now() + PATIENCE;
    while words[0].load(Ordering::Relaxed) == 0 {
        if Instant::now() > until {
            return Err("no peer operates on the entry".into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Whether memory that peers have operated on stays as it is written now.
fn stay_as_written(words: &[AtomicU64], after: &str) -> Done {
    const VALUE: u64 = 1_000_007;
    let places = [0, LONG.0 as usize / 8, (LONG.0 + LONG.1) as usize / 8 - 1];
    for place in places {
        words[place].store(VALUE, Ordering::Relaxed);
    }
    for _ in 0..LOOKS {
        for place in places {
            let seen = words[place].load(Ordering::Relaxed);
            if seen != VALUE {
                return Err(format!("word {place} became {seen} after {after}"));
            }
        }
    }
    Ok(())
}
