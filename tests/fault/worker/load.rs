//! Random operations among processes; each must complete or fail in time.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::random::Random;
use lintel_fault::rig::{self, Descriptor};
use lintel_types::{Event, EventKind, NiFail};
use portals4_abi::{AckRequest, Interface, Queue, Result as PtlResult, Sink, Transfer, options};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PUT: u64 = 1;
const GET: u64 = 2;
const ADD: u64 = 3;
/// Bytes of the memory that is put to and got from.
const AREA: usize = 512 << 10;
/// Operations in flight at a time.
const WINDOW: usize = 24;
/// How long an operation may take: a dead target is noticed within a tenth of a second
/// on the same node, within four seconds on another.
const OVERDUE: Duration = Duration::from_secs(20);

/// What corrupts the exchange from within, by peers and seed.
pub type Corrupt = fn(&[u32], u64);

/// The arguments of a load.
pub struct Work {
    /// The number of this process in its job.
    pub pid: u32,
    /// The numbers of the processes to exchange with.
    pub peers: Vec<u32>,
    /// Repeats the random choices.
    pub seed: u64,
    /// A peer that corrupts its lanes: its messages may hold anything.
    pub suspect: Option<u32>,
    /// Corrupts the exchange when the driver says so.
    pub corrupt: Option<Corrupt>,
}

struct Load {
    peers: Vec<u32>,
    suspect: Option<u32>,
    random: Random,
    queue: Queue,
    pattern: Descriptor,
    into: Memory,
    sink: Descriptor,
    numbers: Descriptor,
    fetched: Descriptor,
    target_of_puts: Memory,
    in_flight: BTreeMap<usize, Operation>,
    next: usize,
    /// Operations that succeeded, and that could not be delivered, by peer.
    ok: BTreeMap<u32, u64>,
    lost: BTreeMap<u32, u64>,
}

struct Operation {
    peer: u32,
    since: Instant,
    what: &'static str,
    /// Kinds of events that the operation still awaits.
    awaits: Vec<EventKind>,
    /// Offset and length of the bytes that a get fills.
    filled: Option<(u64, u64)>,
    fail: NiFail,
}

/// Works until the driver says stop; then waits for what is in flight.
pub fn run(work: &Work) -> Done {
    let interface = rig::open(work.pid).map_err(|why| why.to_string())?;
    let mut load = Load::new(&interface, work).map_err(|why| why.to_string())?;
    println!("ready");
    let commands = commands();
    loop {
        match commands.try_recv().as_deref() {
            Ok("count") => load.report(),
            Ok("corrupt") => {
                if let Some(corrupt) = work.corrupt {
                    corrupt(&work.peers, work.seed);
                    println!("corrupting");
                }
            }
            Ok(_) => break,
            Err(_) => {}
        }
        load.step()?;
    }
    while !load.in_flight.is_empty() {
        load.take_events(1)?;
    }
    match load.target_of_puts.first_foreign(0..AREA) {
        Some(at) if work.suspect.is_none() => {
            return Err(format!("what peers put here is wrong at {at}"));
        }
        _ => {}
    }
    load.report();
    interface.close().map_err(|why| why.to_string())
}

/// Lines from the driver; "stop" at their end.
fn commands() -> Receiver<String> {
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        let _ = sender.send("stop".into());
    });
    commands
}

impl Load {
    fn new(interface: &Interface, work: &Work) -> PtlResult<Load> {
        let queue = interface.queue(4096)?;
        let portal = rig::portal(interface, None)?;
        let (source, into) = (Memory::patterned(AREA), Memory::new(AREA));
        let target_of_puts = Memory::new(AREA);
        let numbers = Memory::new(64);
        (0..8).for_each(|at| {
            numbers
                .word(at)
                .store(1, std::sync::atomic::Ordering::Relaxed)
        });
        let quiet = options::ME_EVENT_COMM_DISABLE;
        portal.append(target_of_puts, &rig::entry(PUT, quiet))?;
        portal.append(source, &rig::entry(GET, quiet))?;
        portal.append(Memory::new(64), &rig::entry(ADD, quiet))?;
        let bind = |memory| rig::bind(interface, memory, &queue);
        Ok(Load {
            peers: work.peers.clone(),
            suspect: work.suspect,
            random: Random::new(work.seed),
            pattern: bind(source)?,
            into,
            sink: bind(into)?,
            numbers: bind(numbers)?,
            fetched: bind(Memory::new(64))?,
            queue,
            target_of_puts,
            in_flight: BTreeMap::new(),
            next: 1,
            ok: BTreeMap::new(),
            lost: BTreeMap::new(),
        })
    }

    fn report(&self) {
        let counts = |of: &BTreeMap<u32, u64>| {
            let each: Vec<String> = self
                .peers
                .iter()
                .map(|peer| format!("{peer}:{}", of.get(peer).copied().unwrap_or(0)))
                .collect();
            each.join(",")
        };
        println!("count {} {}", counts(&self.ok), counts(&self.lost));
    }

    fn step(&mut self) -> Done {
        if self.in_flight.len() < WINDOW {
            self.start()?;
        }
        let full = self.in_flight.len() >= WINDOW;
        self.take_events(if full { 1 } else { 0 })
    }

    fn start(&mut self) -> Done {
        let peer = self.peers[self.random.below(self.peers.len() as u64) as usize];
        let length = match self.random.below(10) {
            0..5 => self.random.below(65),
            5..8 => self.random.below(8193),
            _ => 8193 + self.random.below(AREA as u64 - 8193),
        };
        let offset = self.random.below(AREA as u64 - length + 1);
        let user = self.next;
        self.next += 1;
        let to = |bits, length, offset| Transfer {
            user_ptr: user,
            ..rig::transfer_at(peer, bits, length, offset)
        };
        use EventKind::{Ack, Reply, Send};
        // Bytes that an operation in flight fills may hold anything, so no other may overlap them.
        let may_fill = !self.is_being_filled(offset, length);
        let (what, awaits, filled, started) = match self.random.below(10) {
            5..8 if may_fill => {
                let started = self.sink.get(&to(GET, length, offset));
                ("get", vec![Reply], Some((offset, length)), started)
            }
            0..8 => {
                let started = self.pattern.put(&to(PUT, length, offset), AckRequest::Full);
                ("put", vec![Send, Ack], None, started)
            }
            8 => {
                let started = self
                    .numbers
                    .atomic(&to(ADD, 8, 0), rig::SUM, AckRequest::Full);
                ("atomic", vec![Send, Ack], None, started)
            }
            _ => {
                let started = {
                    let old = Sink {
                        descriptor: &self.fetched,
                        offset: 0,
                    };
                    self.numbers.fetch_atomic(&to(ADD, 64, 0), rig::SUM, old)
                };
                ("fetch", vec![Send, Reply], None, started)
            }
        };
        started.map_err(|why| format!("{what} of {length} bytes to {peer}: {why}"))?;
        let operation = Operation {
            peer,
            since: Instant::now(),
            what,
            awaits,
            filled,
            fail: NiFail::Ok,
        };
        self.in_flight.insert(user, operation);
        Ok(())
    }

    fn is_being_filled(&self, offset: u64, length: u64) -> bool {
        let mut filled = self.in_flight.values().filter_map(|o| o.filled);
        filled.any(|(start, bytes)| start < offset + length && offset < start + bytes)
    }

    /// Takes the queued events; waits for the first `least` ones.
    fn take_events(&mut self, least: usize) -> Done {
        let mut taken = 0;
        loop {
            let milliseconds = if taken < least { 100 } else { 0 };
            match rig::next_event(&self.queue, milliseconds) {
                Ok(Some(event)) => self.on_event(&event)?,
                Ok(None) if taken < least => return self.check_overdue(),
                Ok(None) => return Ok(()),
                Err(why) => return Err(why.to_string()),
            }
            taken += 1;
        }
    }

    fn check_overdue(&self) -> Done {
        match self
            .in_flight
            .values()
            .find(|o| o.since.elapsed() > OVERDUE)
        {
            Some(_) => {
                let each = self.in_flight.values().map(|o| {
                    let age = o.since.elapsed().as_millis();
                    format!(
                        "{} to {} awaits {:?} for {age} ms",
                        o.what, o.peer, o.awaits
                    )
                });
                let each: Vec<String> = each.collect();
                Err(format!("overdue: {}", each.join(", ")))
            }
            None => Ok(()),
        }
    }

    fn on_event(&mut self, event: &Event) -> Done {
        let user = event.user_ptr as usize;
        let Some(operation) = self.in_flight.get_mut(&user) else {
            return Err(format!("an event of no operation: {event:?}"));
        };
        let Some(at) = operation.awaits.iter().position(|k| *k == event.kind) else {
            return Err(format!("{} got {event:?}", operation.what));
        };
        operation.awaits.swap_remove(at);
        match event.ni_fail {
            NiFail::Ok => {}
            NiFail::Undeliverable => operation.fail = event.ni_fail,
            // A process that starts has no interface or entries yet.
            NiFail::Dropped => operation.fail = event.ni_fail,
            fail if self.suspect == Some(operation.peer) => operation.fail = fail,
            fail => return Err(format!("{} failed: {fail:?}", operation.what)),
        }
        if operation.awaits.is_empty() {
            return self.finish(user);
        }
        Ok(())
    }

    fn finish(&mut self, user: usize) -> Done {
        let Some(operation) = self.in_flight.remove(&user) else {
            return Ok(());
        };
        let count = match operation.fail {
            NiFail::Ok => &mut self.ok,
            _ => &mut self.lost,
        };
        *count.entry(operation.peer).or_default() += 1;
        if self.suspect == Some(operation.peer) {
            return Ok(());
        }
        if let (Some((offset, length)), NiFail::Ok) = (operation.filled, operation.fail) {
            // Both ends only: checking every byte would take most of the time.
            let (begin, end) = (offset as usize, (offset + length) as usize);
            let (first, last) = (begin..end.min(begin + 64), end.max(begin + 64) - 64..end);
            let wrong = self
                .into
                .first_mismatch(first)
                .or(self.into.first_mismatch(last));
            if let Some(at) = wrong {
                let peer = operation.peer;
                return Err(format!("what was got from {peer} is wrong at {at}"));
            }
        }
        Ok(())
    }
}
