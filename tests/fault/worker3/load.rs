//! Random operations among processes; each must complete, be dropped, or fail in time.

use crate::Done;
use crate::operation::{Operation, PORTAL, Plan, descriptor, match_bits, pattern};
use lintel_claim::Region;
use lintel_engine3::EntrySpec;
use lintel_fault::random::Random;
use lintel_runtime::{EntryWith, Opening, process3};
use lintel_types::portals3::{
    EQ_NONE, Error, Event, MdOptions, NI_OK, NID_ANY, PID_ANY, Position, Result as PtlResult,
    Unlink,
};
use lintel_types::{Handle, ProcessId};
use lintel_wire::portals3::Verb;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// PTL_IFACE_DEFAULT
const IFACE: u32 = 0xf0f0_f000;
/// Bytes of the memory that is put to and got from.
const AREA: u64 = 512 << 10;
/// Bytes of an exchange.
const EXCHANGE: u64 = 64;
/// Operations in flight at a time.
const WINDOW: usize = 24;
/// How long an operation may be silent before its descriptors are looked at: one whose message
/// was dropped stays so.
const SILENT: Duration = Duration::from_millis(200);
/// How long an operation may be pending: a dead target is noticed within a tenth of a second
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
    interface: Handle,
    queue: Handle,
    source: Region,
    target_of_puts: Region,
    /// The target of exchanges.
    _words: Region,
    in_flight: BTreeMap<u64, Operation>,
    next: u64,
    /// Operations that succeeded, and those that were dropped or failed, by peer.
    ok: BTreeMap<u32, u64>,
    lost: BTreeMap<u32, u64>,
}

/// Works until the driver says stop; then waits for what is in flight.
pub fn run(work: &Work) -> Done {
    let mut load = Load::open(work).map_err(|error| error.name().to_string())?;
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
        load.end_silent()?;
    }
    if work.suspect.is_none() {
        load.check_target()?;
    }
    load.report();
    let closed = process3().close3(load.interface);
    closed.map_err(|error| error.name().to_string())
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
    fn open(work: &Work) -> PtlResult<Load> {
        process3().init()?;
        let (interface, _) = process3().open(Opening {
            iface: IFACE,
            pid: work.pid,
            limits: None,
            jid: 0,
        })?;
        let (source, words) = (Region::new(AREA), Region::new(EXCHANGE));
        let bytes: Vec<u8> = (0..AREA).map(pattern).collect();
        source.write(0, &bytes);
        let target_of_puts = Region::new(AREA);
        let both = MdOptions::OP_PUT | MdOptions::OP_GET;
        for (verb, memory, options) in [
            (Verb::Put, &target_of_puts, MdOptions::OP_PUT),
            (Verb::Get, &source, MdOptions::OP_GET),
            (Verb::GetPut, &words, both),
        ] {
            let options = options | MdOptions::MANAGE_REMOTE;
            let entry = EntryWith {
                entry: EntrySpec {
                    source: ProcessId::new(NID_ANY, PID_ANY),
                    match_bits: match_bits(verb),
                    ignore_bits: 0,
                    unlink: Unlink::Retain,
                },
                position: Position::After,
                md: descriptor(memory.claim(), options, (EQ_NONE, 0)),
            };
            process3().entry_attach_with3(interface, PORTAL, entry)?;
        }
        Ok(Load {
            peers: work.peers.clone(),
            suspect: work.suspect,
            random: Random::new(work.seed),
            interface,
            queue: process3().queue_alloc(interface, 4096, None)?,
            source,
            target_of_puts,
            _words: words,
            in_flight: BTreeMap::new(),
            next: 1,
            ok: work.peers.iter().map(|peer| (*peer, 0)).collect(),
            lost: work.peers.iter().map(|peer| (*peer, 0)).collect(),
        })
    }

    fn report(&self) {
        let list = |counts: &BTreeMap<u32, u64>| {
            let each = counts.iter().map(|(peer, count)| format!("{peer}:{count}"));
            each.collect::<Vec<_>>().join(",")
        };
        println!("count {} {}", list(&self.ok), list(&self.lost));
    }

    fn step(&mut self) -> Done {
        while self.in_flight.len() < WINDOW {
            self.start()?;
        }
        self.take_events(1)?;
        self.end_silent()
    }

    fn start(&mut self) -> Done {
        let plan = self.plan();
        let what = format!("{:?} of {} bytes to {}", plan.verb, plan.length, plan.peer);
        let (source, user) = (self.source.claim(), self.next);
        self.next += 1;
        let started = Operation::start(self.interface, self.queue, user, source, plan);
        let operation = started.map_err(|error| format!("{what}: {}", error.name()))?;
        self.in_flight.insert(user, operation);
        Ok(())
    }

    fn plan(&mut self) -> Plan {
        let peer = self.peers[self.random.below(self.peers.len() as u64) as usize];
        let verb = match self.random.below(5) {
            0 | 1 => Verb::Put,
            2 | 3 => Verb::Get,
            _ => Verb::GetPut,
        };
        let most = match verb {
            Verb::GetPut => EXCHANGE,
            _ => 1 << self.random.below(18),
        };
        let length = self.random.below(most + 1);
        let area = if verb == Verb::GetPut { EXCHANGE } else { AREA };
        Plan {
            verb,
            peer,
            offset: self.random.below(area - length + 1),
            length,
        }
    }

    /// Takes the queued events; waits for the first `least` ones.
    fn take_events(&mut self, least: usize) -> Done {
        let mut taken = 0;
        loop {
            let milliseconds = if taken < least { 100 } else { 0 };
            match process3().queue_poll(&[self.queue], milliseconds) {
                Ok((taken, _)) => self.on_event(&taken.event())?,
                Err(Error::EqEmpty) => return Ok(()),
                Err(error) => return Err(format!("PtlEQPoll: {}", error.name())),
            }
            taken += 1;
        }
    }

    fn on_event(&mut self, event: &Event) -> Done {
        let user = event.md.user_ptr;
        let Some(operation) = self.in_flight.get_mut(&user) else {
            let is_late = user < self.next;
            let unknown = || format!("an event of no operation: {event:?}");
            return is_late.then_some(()).ok_or_else(unknown);
        };
        let Some(at) = operation.awaits.iter().position(|k| *k == event.kind) else {
            return Err(format!("{:?} got {event:?}", operation.plan.verb));
        };
        operation.awaits.swap_remove(at);
        operation.failed |= event.ni_fail != NI_OK;
        if operation.awaits.is_empty() || operation.failed {
            return self.finish(user);
        }
        Ok(())
    }

    /// An operation has ended: nothing is pending on its descriptors any more.
    fn finish(&mut self, user: u64) -> Done {
        let Some(mut operation) = self.in_flight.remove(&user) else {
            return Ok(());
        };
        let (peer, failed) = (operation.plan.peer, operation.failed);
        match operation.unlink() {
            Ok(true) => {}
            // The other descriptor of an exchange that has failed.
            Ok(false) if failed => {
                self.in_flight.insert(user, operation);
                return Ok(());
            }
            unlinked => {
                let verb = operation.plan.verb;
                return Err(format!("{verb:?} ended, but PtlMDUnlink: {unlinked:?}"));
            }
        }
        let count = if failed { &mut self.lost } else { &mut self.ok };
        *count.entry(peer).or_default() += 1;
        match operation.first_wrong() {
            Some(at) if !failed && self.suspect != Some(peer) => {
                Err(format!("what was got from {peer} is wrong at {at}"))
            }
            _ => Ok(()),
        }
    }

    /// Ends operations that have been silent for long: those whose messages were dropped.
    fn end_silent(&mut self) -> Done {
        let long = |operation: &&mut Operation| operation.since.elapsed() > SILENT;
        let mut ended = Vec::new();
        for (user, operation) in &mut self.in_flight {
            let Some(operation) = Some(operation).filter(long) else {
                continue;
            };
            match operation.unlink() {
                Ok(true) => ended.push(*user),
                Ok(false) if operation.since.elapsed() < OVERDUE => {}
                unlinked => {
                    let Plan { verb, peer, .. } = operation.plan;
                    let awaits = &operation.awaits;
                    return Err(format!(
                        "overdue: {verb:?} to {peer} awaits {awaits:?}, unlinked {unlinked:?}"
                    ));
                }
            }
        }
        for user in ended {
            if let Some(operation) = self.in_flight.remove(&user) {
                *self.lost.entry(operation.plan.peer).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Peers put bytes of the pattern only.
    fn check_target(&self) -> Done {
        let mut bytes = vec![0; AREA as usize];
        self.target_of_puts.read(0, &mut bytes);
        let foreign = |(at, byte): &(u64, u8)| *byte != 0 && *byte != pattern(*at);
        match (0..).zip(bytes).find(foreign) {
            Some((at, _)) => Err(format!("what peers put here is wrong at {at}")),
            None => Ok(()),
        }
    }
}
