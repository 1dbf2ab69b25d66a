//! Threads that put, get and add on one interface, to entries of each kind, while entries come and go.

use crate::{Done, serve, unknown};
use lintel_fault::memory::Memory;
use lintel_fault::random::Random;
use lintel_fault::rig::{self, Descriptor, SUM};
use lintel_types::{EventKind, NiFail};
use portals4_abi::{
    AckRequest, CallError, Counter, EntrySpec, Interface, Queue, Sink, Transfer, Trigger, options,
};
use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::Ordering::Relaxed;

const THREADS: usize = 3;
/// Steps of each thread.
const STEPS: u32 = 300;
/// Entries that stay, by match bits: in ordinary and in shareable memory, counted, reported by events, or
/// neither.
const KINDS: usize = 4;
/// The kind whose operations are reported by events.
const BY_EVENTS: usize = 1;
/// The kind of which operations aren't reported, so that none are tallied.
const UNREPORTED: usize = 2;
/// Entries that come and go have these match bits and the number of their thread.
const PASSING: u64 = 100;
/// Bytes of an entry for each thread of each process, behind a page of words that are added to.
const SLICE: u64 = 128 << 10;
const PAGE: u64 = 4096;
/// What a thread operates with: what it puts, what it gets, a one, and an old value.
const ONE: u64 = 2 * SLICE;
const OLD: u64 = ONE + 64;
/// Words of an entry that comes and goes.
const PASSING_WORDS: u64 = 512;
/// Looks after it was unlinked.
const LOOKS: usize = 200;

/// Operations of each kind that were carried out, and how much they added.
#[derive(Clone, Copy, Default)]
struct Tally {
    operations: [u64; KINDS],
    added: [u64; KINDS],
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = [self.operations, self.added].concat();
        let words: Vec<_> = all.iter().map(u64::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        for kind in 0..KINDS {
            self.operations[kind] += other.operations[kind];
            self.added[kind] += other.added[kind];
        }
    }
}

struct Worker {
    interface: Interface,
    areas: [Memory; KINDS],
    counters: [Counter; KINDS],
    events: Queue,
}

/// Opens an interface as process `pid`, operates on itself and on `other` at the word `go`, and
/// says what was done to each, then what was done to it.
pub fn run(pid: u32, other: u32, seed: u32) -> Done {
    let worker = Worker::new(pid).map_err(|why| why.to_string())?;
    println!("ready");
    serve(&worker.interface, |words| {
        match words {
            ["go"] => {
                for (target, tally) in worker.operate(pid, other, seed.into())? {
                    println!("did {target} {tally}");
                }
            }
            ["totals"] => println!("{}", worker.totals()?),
            words => return unknown(words),
        }
        Ok(())
    })
}

impl Worker {
    fn new(pid: u32) -> portals4_abi::Result<Worker> {
        let interface = rig::open(pid)?;
        let bytes = (PAGE + SLICE * 2 * THREADS as u64) as usize;
        let areas = [
            Memory::new(bytes),
            Memory::new(bytes),
            Memory::shareable(bytes),
            Memory::shareable(bytes),
        ];
        let events = interface.queue(1 << 17)?;
        let portal = rig::portal(&interface, Some(&events))?;
        let mut counters = Vec::new();
        for (kind, area) in areas.into_iter().enumerate() {
            let counter = interface.counter()?;
            let quiet = options::ME_EVENT_COMM_DISABLE;
            let spec = match kind {
                BY_EVENTS => rig::entry(kind as u64, 0),
                UNREPORTED => rig::entry(kind as u64, quiet),
                _ => EntrySpec::counted(kind as u64, &counter),
            };
            portal.append(area, &spec)?;
            counters.push(counter);
        }
        let counters = counters.try_into().expect("one for each kind");
        Ok(Worker {
            interface,
            areas,
            counters,
            events,
        })
    }

    /// What all threads have done to each process.
    fn operate(&self, pid: u32, other: u32, seed: u64) -> Result<[(u32, Tally); 2], String> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| {
                    let slice = (number + usize::from(pid > other) * THREADS) as u64;
                    let mut random = Random::new(seed ^ (slice + 1) << 32);
                    scope.spawn(move || {
                        let thread = Thread::new(&self.interface, number as u64, slice);
                        let mut thread = thread.map_err(|why| why.to_string())?;
                        (0..STEPS).try_for_each(|_| thread.step(&mut random, [pid, other]))?;
                        Ok(thread.done)
                    })
                })
                .collect();
            let mut all = [(pid, Tally::default()), (other, Tally::default())];
            for thread in threads {
                let done: Result<[Tally; 2], String> = thread.join().expect("no panic");
                for (sum, one) in all.iter_mut().zip(done?) {
                    sum.1 += one;
                }
            }
            Ok(all)
        })
    }

    /// What was done to this process: all that peers have seen end.
    fn totals(&self) -> Result<Tally, String> {
        let mut operations = [0; KINDS];
        for (sum, counter) in operations.iter_mut().zip(&self.counters) {
            *sum = counter.get().map_err(|why| why.to_string())?.success;
        }
        while let Some(event) = rig::next_event(&self.events, 0).map_err(|why| why.to_string())? {
            if event.ni_fail != NiFail::Ok {
                return Err(format!("{event:?}"));
            }
            operations[BY_EVENTS] += 1;
        }
        let added = self.areas.map(|area| area.word(0).load(Relaxed));
        Ok(Tally { operations, added })
    }
}

/// A thread's own descriptor, and what it has done.
struct Thread<'a> {
    interface: &'a Interface,
    number: u64,
    /// Where its part of an entry begins.
    begin: u64,
    memory: Memory,
    queue: Queue,
    counter: Counter,
    local: Descriptor,
    /// For operations that may fail, which aren't counted.
    uncounted: Descriptor,
    /// Counts what triggered operations wait for, and how many there were.
    trigger: Counter,
    triggered: u64,
    ended: u64,
    /// To each of the two targets.
    done: [Tally; 2],
}

impl Thread<'_> {
    fn new(interface: &Interface, number: u64, slice: u64) -> portals4_abi::Result<Thread<'_>> {
        let memory = Memory::new(OLD as usize + 64);
        memory.word(ONE as usize / 8).store(1, Relaxed);
        let (queue, counter) = (interface.queue(1024)?, interface.counter()?);
        let more = options::MD_EVENT_CT_REPLY | options::MD_EVENT_SEND_DISABLE;
        let local = rig::bind_counted(interface, memory, (Some(&queue), &counter), more)?;
        Ok(Thread {
            interface,
            number,
            begin: PAGE + slice * SLICE,
            memory,
            uncounted: rig::bind(interface, memory, &queue)?,
            trigger: interface.counter()?,
            triggered: 0,
            queue,
            counter,
            local,
            ended: 0,
            done: Default::default(),
        })
    }

    fn step(&mut self, random: &mut Random, targets: [u32; 2]) -> Done {
        let which = random.below(2) as usize;
        let kind = random.below(KINDS as u64) as usize;
        let target = targets[which];
        let operations = match random.below(7) {
            0 | 1 => self.put_and_get(random, target, kind)?,
            2 => self.add(target, kind)?,
            3 => self.fetch_and_add(target, kind)?,
            4 => self.add_triggered(target, kind)?,
            5 => return self.pass(targets[0]),
            _ => return self.put_to_passing(random, target),
        };
        if operations == 1 {
            self.done[which].added[kind] += 1;
        }
        if kind != UNREPORTED {
            self.done[which].operations[kind] += operations;
        }
        Ok(())
    }

    /// Puts some messages to the thread's part of an entry, and gets them back.
    fn put_and_get(
        &mut self,
        random: &mut Random,
        target: u32,
        kind: usize,
    ) -> Result<u64, String> {
        let count = 1 + random.below(8);
        let most = [8, 64, 4096, SLICE / count / 8 * 8][random.below(4) as usize];
        let length = 8 * (1 + random.below(most / 8));
        let salt = random.number();
        for word in 0..count * length / 8 {
            let value = salt.wrapping_mul(word | 1);
            self.memory.word(word as usize).store(value, Relaxed);
        }
        let transfer = |at: u64, local: u64| Transfer {
            local_offset: local + at * length,
            remote_offset: self.begin + at * length,
            ..rig::transfer(target, kind as u64, length)
        };
        for at in 0..count {
            let put = self.local.put(&transfer(at, 0), AckRequest::Full);
            put.map_err(|why| why.to_string())?;
        }
        self.ended += count;
        self.await_all(random, count, EventKind::Ack)?;
        for at in 0..count {
            let get = self.local.get(&transfer(at, SLICE));
            get.map_err(|why| why.to_string())?;
        }
        self.ended += count;
        self.await_all(random, count, EventKind::Reply)?;
        match self.first_difference((count * length / 8) as usize) {
            None => Ok(2 * count),
            Some(word) => Err(format!(
                "word {word} of {count} times {length} B from {target}, kind {kind}, isn't what was put"
            )),
        }
    }

    /// The first of so many words that differ between what was put and what was got.
    fn first_difference(&self, words: usize) -> Option<usize> {
        let got_at = SLICE as usize / 8;
        let differs = |word: &usize| {
            let [put, got] = [*word, *word + got_at].map(|at| self.memory.word(at).load(Relaxed));
            put != got
        };
        (0..words).find(differs)
    }

    /// Waits for operations by their count, or for their events; takes the events.
    fn await_all(&self, random: &mut Random, count: u64, last: EventKind) -> Done {
        let by_counter = random.below(2) == 0;
        if by_counter {
            let reached = self.counter.poll(self.ended, rig::PATIENCE);
            match reached.map_err(|why| why.to_string())? {
                Some(value) if value.success == self.ended && value.failure == 0 => {}
                other => return Err(format!("{other:?} of {} operations", self.ended)),
            }
        }
        for _ in 0..count {
            match rig::await_end(&self.queue, last)? {
                NiFail::Ok => {}
                fail => return Err(format!("{last:?} with {fail:?}")),
            }
        }
        Ok(())
    }

    fn one(&self, target: u32, kind: usize) -> Transfer {
        Transfer {
            local_offset: ONE,
            remote_offset: 0,
            ..rig::transfer(target, kind as u64, 8)
        }
    }

    fn add(&mut self, target: u32, kind: usize) -> Result<u64, String> {
        let one = self.one(target, kind);
        let added = self.local.atomic(&one, SUM, AckRequest::Full);
        added.map_err(|why| why.to_string())?;
        self.end_one(EventKind::Ack)
    }

    fn fetch_and_add(&mut self, target: u32, kind: usize) -> Result<u64, String> {
        let old = Sink {
            descriptor: &self.local,
            offset: OLD,
        };
        let added = self.local.fetch_atomic(&self.one(target, kind), SUM, old);
        added.map_err(|why| why.to_string())?;
        self.end_one(EventKind::Reply)
    }

    /// Adds by an operation that waits for a counter.
    fn add_triggered(&mut self, target: u32, kind: usize) -> Result<u64, String> {
        let in_words = |why: CallError| why.to_string();
        self.triggered += 1;
        let when = Trigger {
            counter: &self.trigger,
            threshold: self.triggered,
        };
        let one = self.one(target, kind);
        let added = self
            .local
            .triggered_atomic(&one, SUM, AckRequest::Full, when);
        added.map_err(in_words)?;
        self.trigger.increment().map_err(in_words)?;
        self.end_one(EventKind::Ack)
    }

    fn end_one(&mut self, last: EventKind) -> Result<u64, String> {
        self.ended += 1;
        match rig::await_end(&self.queue, last)? {
            NiFail::Ok => Ok(1),
            fail => Err(format!("{last:?} of an atomic with {fail:?}")),
        }
    }

    /// Appends an entry, puts to it, and unlinks it; then nobody writes to its memory.
    fn pass(&mut self, me: u32) -> Done {
        const VALUE: u64 = 1_000_007;
        let memory = Memory::new(8 * PASSING_WORDS as usize);
        let bits = PASSING + self.number;
        let entry = rig::append_quietly(self.interface, bits, (memory.address(), memory.bytes()))?;
        let put = rig::transfer(me, bits, memory.bytes() as u64);
        let put = self.local.put(&put, AckRequest::Full);
        put.map_err(|why| why.to_string())?;
        self.end_one(EventKind::Ack)?;
        rig::unlink(entry)?;
        let ends = [memory.word(0), memory.word(PASSING_WORDS as usize - 1)];
        ends.iter().for_each(|word| word.store(VALUE, Relaxed));
        for _ in 0..LOOKS {
            if ends.iter().any(|word| word.load(Relaxed) != VALUE) {
                return Err("an entry was written to after it was unlinked".into());
            }
        }
        Ok(())
    }

    /// Puts to an entry that comes and goes, if it is there.
    fn put_to_passing(&mut self, random: &mut Random, target: u32) -> Done {
        let bits = PASSING + random.below(THREADS as u64);
        let length = 8 * (1 + random.below(PASSING_WORDS));
        let put = rig::transfer(target, bits, length);
        let put = self.uncounted.put(&put, AckRequest::Full);
        put.map_err(|why| why.to_string())?;
        match rig::await_end(&self.queue, EventKind::Ack)? {
            NiFail::Ok | NiFail::Dropped => {}
            fail => return Err(format!("a put to an entry that comes and goes: {fail:?}")),
        }
        Ok(())
    }
}
