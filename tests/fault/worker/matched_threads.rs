//! Threads that exchange matched messages as MPI does: receives that are used once, unexpected messages
//! on the overflow list, and one event queue for all threads of a process.

use crate::{Done, serve, unknown};
use lintel_fault::memory::Memory;
use lintel_fault::random::Random;
use lintel_fault::rig::{self, Descriptor, PATIENCE, PORTAL};
use lintel_types::{Event, EventKind, Handle, List, NiFail, UID_ANY};
use portals4_abi::{AckRequest, EntrySpec, Interface, Queue, Transfer, options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each thread exchanges messages with the one of its number in the other process.
const THREADS: usize = 3;
/// Bursts of messages that each thread sends and receives.
const BURSTS: u64 = 200;
/// Messages of a burst at most.
const BURST: u64 = 6;
/// Bytes of a message at most.
const LONGEST: u64 = 64 << 10;
/// Memory for unexpected messages: two bursts of each thread, and a message at the end of each block.
const BLOCKS: u64 = 8;
const BLOCK: usize = 1 << 20;
/// What user pointers name, above a thread and the number of its receive, or of a block.
const RECEIVE: u64 = 1 << 62;
const SEARCH: u64 = 2 << 62;
const OVERFLOW: u64 = 3 << 62;
const KIND: u64 = 3 << 62;
/// The match bits of no message.
const NOBODY: u64 = 1 << 40;
/// What the last search of a thread has found.
const NOTHING: u64 = 1;
const MESSAGE: u64 = 2;

/// The thread and the number that a user pointer names.
fn named(user: u64) -> (usize, u64) {
    let thread = (user & !KIND) >> 32;
    (thread as usize, user & u64::from(u32::MAX))
}

/// The length and the salt of a message of that thread.
fn message(tag: u64, number: u64) -> (u64, u64) {
    let mut random = Random::new(tag << 40 ^ number);
    let most = [8, 64, 512, 4096, 16384, LONGEST][random.below(6) as usize];
    (8 * (1 + random.below(most / 8)), random.number() | 1)
}

/// Messages of a burst, the same at both ends.
fn burst(seed: u64, tag: u64, number: u64) -> u64 {
    1 + Random::new(seed ^ tag << 40 ^ number << 20).below(BURST)
}

struct Process {
    interface: Interface,
    queue: Queue,
    blocks: Memory,
    /// Whether a thread takes events.
    is_taking: AtomicBool,
    /// Messages received, and what was found, by each thread.
    received: [AtomicU64; THREADS],
    found: [AtomicU64; THREADS],
}

/// Opens an interface as process `pid`, and exchanges messages with `other` at the word `go`.
pub fn run(pid: u32, other: u32, seed: u32) -> Done {
    let process = Process::new(pid)?;
    println!("ready");
    serve(&process.interface, |words| match words {
        ["go"] => {
            process.exchange(other, seed.into())?;
            println!("done");
            Ok(())
        }
        words => unknown(words),
    })
}

impl Process {
    fn new(pid: u32) -> Result<Process, String> {
        let open = || {
            let interface = rig::open(pid)?;
            let queue = interface.queue(1 << 14)?;
            rig::portal(&interface, Some(&queue))?;
            Ok((interface, queue))
        };
        let (interface, queue) = open().map_err(|why: portals4_abi::CallError| why.to_string())?;
        let process = Process {
            interface,
            queue,
            blocks: Memory::new(BLOCKS as usize * BLOCK),
            is_taking: AtomicBool::new(false),
            received: Default::default(),
            found: Default::default(),
        };
        (0..BLOCKS).try_for_each(|block| process.append_block(block))?;
        Ok(process)
    }

    fn exchange(&self, other: u32, seed: u64) -> Done {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|tag| scope.spawn(move || Thread::new(self, tag, other)?.run(seed)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic"))
        })
    }

    /// An entry for puts with those match bits.
    fn entry(&self, start: *mut u8, length: u64, match_bits: u64, more: u32) -> portals::Me {
        portals::Me {
            start: start.cast(),
            length,
            ct_handle: Handle::CT_NONE.0,
            uid: UID_ANY,
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE | more,
            match_id: EntrySpec::default().source,
            match_bits,
            ignore_bits: 0,
            min_free: 0,
        }
    }

    fn append(&self, me: &portals::Me, list: List, user: u64) -> Result<Handle, String> {
        let mut handle = Handle::INVALID;
        let (ni, list, user) = (self.interface.handle(), list as u8, user as usize as *mut _);
        // SAFETY: the structure and the output outlive the call, and the memory the entry.
        match unsafe { portals::PtlMEAppend(ni, PORTAL, me, list, user, &mut handle) } {
            0 => Ok(handle),
            code => Err(format!("PtlMEAppend returned {code}")),
        }
    }

    /// Appends a block of memory for unexpected messages.
    fn append_block(&self, block: u64) -> Done {
        // SAFETY: the block lies in that memory.
        let start = unsafe { self.blocks.address().add(block as usize * BLOCK) };
        let quiet = options::ME_MANAGE_LOCAL | options::ME_EVENT_COMM_DISABLE;
        let me = portals::Me {
            ignore_bits: u64::MAX,
            min_free: LONGEST,
            ..self.entry(start, BLOCK as u64, 0, quiet)
        };
        self.append(&me, List::Overflow, OVERFLOW | block).map(drop)
    }

    /// Takes the events that are there, or waits a moment for one, unless another thread does.
    fn take_events(&self, milliseconds: u32) -> Done {
        if self.is_taking.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
            return Ok(());
        }
        let taken = self.take_all(milliseconds);
        self.is_taking.store(false, Ordering::Release);
        taken
    }

    fn take_all(&self, mut milliseconds: u32) -> Done {
        let next = |milliseconds| rig::next_event(&self.queue, milliseconds);
        while let Some(event) = next(milliseconds).map_err(|why| why.to_string())? {
            self.on_event(&event)
                .map_err(|why| format!("{why}: {event:?}"))?;
            milliseconds = 0;
        }
        Ok(())
    }

    fn on_event(&self, event: &Event) -> Done {
        let (tag, number) = named(event.user_ptr);
        match (event.kind, event.user_ptr & KIND, event.ni_fail) {
            (EventKind::Put | EventKind::PutOverflow, RECEIVE, NiFail::Ok) => {
                check(event)?;
                // Its thread uses the memory again once it knows.
                self.received[tag].fetch_add(1, Ordering::Release);
            }
            (EventKind::Search, SEARCH, NiFail::Ok) => {
                if event.hdr_data != number {
                    return Err("a search finds another message than the next".into());
                }
                self.found[tag].store(MESSAGE, Ordering::Relaxed);
            }
            (EventKind::Search, SEARCH, NiFail::NoMatch) => {
                self.found[tag].store(NOTHING, Ordering::Relaxed);
            }
            (EventKind::AutoUnlink, OVERFLOW, NiFail::Ok) => {}
            (EventKind::AutoFree, OVERFLOW, NiFail::Ok) => {
                self.append_block(number)?;
            }
            _ => return Err("nobody expects this event".into()),
        }
        Ok(())
    }
}

/// Whether a receive has got the message of its number, whole.
fn check(event: &Event) -> Done {
    let number = event.hdr_data;
    if number != named(event.user_ptr).1 {
        return Err(format!("a receive has matched message {number}"));
    }
    let (length, salt) = message(event.match_bits, number);
    if (event.rlength, event.mlength) != (length, length) {
        return Err(format!("it should have {length} B"));
    }
    let start = event.start as *const AtomicU64;
    let is_wrong = |word: &u64| {
        // SAFETY: so many bytes of the entry, in whole words, which live for ever.
        let word_there = unsafe { &*start.add(*word as usize) };
        word_there.load(Ordering::Relaxed) != salt.wrapping_mul(word + 1)
    };
    match (0..length / 8).find(is_wrong) {
        None => Ok(()),
        Some(word) => Err(format!("word {word} of message {number} is wrong")),
    }
}

struct Thread<'a> {
    process: &'a Process,
    tag: u64,
    other: u32,
    /// A message of each number of a burst, to be sent and to be received.
    source: Memory,
    target: Memory,
    descriptor: Descriptor,
    queue: Queue,
    sent: u64,
    posted: u64,
}

impl<'a> Thread<'a> {
    fn new(process: &'a Process, tag: usize, other: u32) -> Result<Thread<'a>, String> {
        let source = Memory::new((BURST * LONGEST) as usize);
        let open = || {
            let queue = process.interface.queue(64)?;
            let descriptor = rig::bind(&process.interface, source, &queue)?;
            Ok((queue, descriptor))
        };
        let (queue, descriptor) = open().map_err(|why: portals4_abi::CallError| why.to_string())?;
        Ok(Thread {
            process,
            tag: tag as u64,
            other,
            source,
            target: Memory::new((BURST * LONGEST) as usize),
            descriptor,
            queue,
            sent: 0,
            posted: 0,
        })
    }

    fn run(&mut self, seed: u64) -> Done {
        let mut random = Random::new(seed ^ self.tag << 8 ^ u64::from(self.other) << 16);
        for number in 0..BURSTS {
            let count = burst(seed, self.tag, number);
            let way = random.below(4);
            if way == 0 {
                self.post(count)?;
            }
            self.send(count)?;
            match way {
                1 => self.search()?,
                2 => self.append_and_unlink()?,
                _ => {}
            }
            if way != 0 {
                self.post(count)?;
            }
            self.await_acknowledgements(count)?;
            let milliseconds = random.below(2) as u32;
            self.process_until("message", milliseconds, |it| {
                it.process.received[it.tag as usize].load(Ordering::Acquire) == it.posted
            })?;
        }
        Ok(())
    }

    fn send(&mut self, count: u64) -> Done {
        for at in 0..count {
            let (length, salt) = message(self.tag, self.sent);
            let begin = at * LONGEST;
            for word in 0..length / 8 {
                let place = self.source.word((begin / 8 + word) as usize);
                place.store(salt.wrapping_mul(word + 1), Ordering::Relaxed);
            }
            let put = Transfer {
                local_offset: begin,
                hdr_data: self.sent,
                ..rig::transfer(self.other, self.tag, length)
            };
            let sent = self.descriptor.put(&put, AckRequest::Full);
            sent.map_err(|why| why.to_string())?;
            self.sent += 1;
        }
        Ok(())
    }

    fn await_acknowledgements(&self, count: u64) -> Done {
        for _ in 0..count {
            match rig::await_end(&self.queue, EventKind::Ack)? {
                NiFail::Ok => {}
                fail => return Err(format!("an acknowledgement with {fail:?}")),
            }
        }
        Ok(())
    }

    /// A receive of this thread's messages, into the memory of that message of a burst.
    fn receive(&self, at: u64) -> portals::Me {
        // SAFETY: the memory has room for a whole burst.
        let start = unsafe { self.target.address().add((at * LONGEST) as usize) };
        let once = options::ME_USE_ONCE | options::ME_EVENT_UNLINK_DISABLE;
        self.process.entry(start, LONGEST, self.tag, once)
    }

    fn post(&mut self, count: u64) -> Done {
        for at in 0..count {
            let user = RECEIVE | self.tag << 32 | self.posted;
            self.process
                .append(&self.receive(at), List::Priority, user)?;
            self.posted += 1;
        }
        Ok(())
    }

    /// Looks whether the next message has come, while no receive waits for it.
    fn search(&self) -> Done {
        let found = &self.process.found[self.tag as usize];
        found.store(0, Ordering::Relaxed);
        let (ni, me) = (self.process.interface.handle(), self.receive(0));
        let user = (SEARCH | self.tag << 32 | self.posted) as usize as *mut _;
        // SAFETY: the structure outlives the call.
        match unsafe { portals::PtlMESearch(ni, PORTAL, &me, 0, user) } {
            0 => {}
            code => return Err(format!("PtlMESearch returned {code}")),
        }
        let has_ended = |_: &Self| [NOTHING, MESSAGE].contains(&found.load(Ordering::Relaxed));
        self.process_until("end of a search", 0, has_ended)
    }

    /// An entry that nothing matches comes and goes.
    fn append_and_unlink(&self) -> Done {
        let me = portals::Me {
            match_bits: NOBODY,
            ..self.receive(0)
        };
        rig::unlink(self.process.append(&me, List::Priority, RECEIVE)?)
    }

    /// Takes events until that has happened.
    fn process_until(
        &self,
        what: &str,
        milliseconds: u32,
        has_happened: impl Fn(&Self) -> bool,
    ) -> Done {
        let until = Instant::now() + Duration::from_millis(PATIENCE.into());
        while !has_happened(self) {
            if Instant::now() > until {
                return Err(format!("thread {}: no {what} for {PATIENCE} ms", self.tag));
            }
            self.process.take_events(milliseconds)?;
        }
        Ok(())
    }
}
