//! Executes commands, line by line, and replies to each with a line.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor};
use lintel_types::{Event, EventKind, NiFail};
use portals4_abi::{
    AckRequest, Counter, EntrySpec, Interface, Portal, Queue, Result as PtlResult, Transfer,
    options,
};
use std::io::BufRead;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Match bits of the entry for puts.
const PUT: u64 = 1;
/// Match bits of the entry for gets.
const GET: u64 = 2;
const AREA: usize = 4 << 20;
/// Portal table index of an entry that peers don't access by themselves.
const POSTING: u32 = rig::PORTAL + 1;

struct Script {
    interface: Interface,
    queue: Queue,
    counter: Counter,
    posting: Portal,
    /// Events of what arrives there.
    arrived: Queue,
    /// How the messages ended whose events were taken.
    ends: Vec<String>,
    pattern: Descriptor,
    got: Memory,
    sink: Descriptor,
    received: Memory,
}

/// Opens an interface as process `pid`, and executes commands until stdin ends.
pub fn run(pid: u32) -> Done {
    let interface = match rig::open(pid) {
        Ok(interface) => interface,
        Err(why) => {
            println!("refused {}", why.code);
            return Ok(());
        }
    };
    let mut script = Script::new(interface).map_err(|why| why.to_string())?;
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["quit"] => {
                script.interface.close().map_err(|why| why.to_string())?;
                println!("bye");
                return Ok(());
            }
            ["return"] => return Ok(()),
            ["exit"] => std::process::exit(0),
            // SAFETY: ends the process at once, and has no preconditions.
            ["vanish"] => unsafe { libc::_exit(0) },
            words => println!("{}", script.execute(words)),
        }
    }
    Ok(())
}

impl Script {
    fn new(interface: Interface) -> PtlResult<Script> {
        let (queue, counter) = (interface.queue(1024)?, interface.counter()?);
        let portal = rig::portal(&interface, None)?;
        let arrived = interface.queue(1024)?;
        let posting = interface.portal(POSTING, Some(&arrived))?;
        let (source, got, received) = (
            Memory::patterned(AREA),
            Memory::new(AREA),
            Memory::new(AREA),
        );
        portal.append(received, &EntrySpec::counted(PUT, &counter))?;
        portal.append(source, &rig::entry(GET, options::ME_EVENT_COMM_DISABLE))?;
        Ok(Script {
            pattern: rig::bind(&interface, source, &queue)?,
            got,
            sink: rig::bind(&interface, got, &queue)?,
            received,
            queue,
            counter,
            posting,
            arrived,
            ends: Vec::new(),
            interface,
        })
    }

    fn execute(&mut self, words: &[&str]) -> String {
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|w| w.parse::<u64>().ok())
                .unwrap_or(0)
        };
        match words.first().copied().unwrap_or("") {
            "put" => self.put(number(1) as u32, number(2), number(3)),
            "get" => self.get(number(1) as u32, number(2), number(3)),
            "received" => self.check_received(number(1) as usize, number(2) as usize),
            "compute" => self.compute(Duration::from_millis(number(1))),
            "dumpable" => dumpable(number(1) as i32),
            "wait-event" => format!("{:?}", self.queue.wait().map(|e| Event::from(e).kind)),
            "wait-count" => {
                println!("waiting");
                format!("{:?}", self.counter.wait(number(1)).map(|c| c.success))
            }
            "accept" => self.accept(number(1) as u32),
            "put-accepted" => self.put_accepted(number(1) as u32, number(2)),
            "poll-arrived" => self.poll_arrived(Duration::from_millis(number(1))),
            "arrived" => self.arrived(),
            "silent-put" => self.silent_put(number(1) as u32, number(2)),
            word => format!("unknown command: {word}"),
        }
    }

    /// Waits for the end of an operation, if it was started.
    fn end(&self, started: PtlResult<()>, last: EventKind) -> String {
        match started {
            Ok(()) => {
                rig::await_end(&self.queue, last).map_or_else(|why| why, |f| format!("{f:?}"))
            }
            Err(why) => why.to_string(),
        }
    }

    fn put(&self, peer: u32, offset: u64, length: u64) -> String {
        let transfer = rig::transfer_at(peer, PUT, length, offset);
        self.end(
            self.pattern.put(&transfer, AckRequest::Full),
            EventKind::Ack,
        )
    }

    /// A put without acknowledgement; returns at its SEND event.
    fn silent_put(&self, peer: u32, length: u64) -> String {
        let transfer = rig::transfer(peer, PUT, length);
        self.end(
            self.pattern.put(&transfer, AckRequest::None),
            EventKind::Send,
        )
    }

    /// Appends an entry for what that peer puts, which it doesn't access by itself, since others
    /// may not.
    fn accept(&self, peer: u32) -> String {
        let entry = EntrySpec {
            source: rig::process(peer),
            ..EntrySpec::default()
        };
        let appended = self.posting.append(self.received, &entry);
        appended.map_or_else(|why| why.to_string(), |_| "accepts".into())
    }

    /// Puts the whole area so many times to what a peer accepts, one after the other, up to the
    /// first that fails.
    fn put_accepted(&self, peer: u32, times: u64) -> String {
        println!("putting");
        let transfer = Transfer {
            portal: POSTING,
            ..rig::transfer(peer, 0, AREA as u64)
        };
        let put = |_| {
            let started = self.pattern.put(&transfer, AckRequest::Full);
            self.end(started, EventKind::Ack)
        };
        let failed = (0..times).map(put).find(|end| end != "Ok");
        failed.unwrap_or_else(|| "Ok".into())
    }

    /// Polls for so long for messages that arrive with an event.
    fn poll_arrived(&mut self, how_long: Duration) -> String {
        println!("polling");
        let begin = Instant::now();
        while begin.elapsed() < how_long {
            self.take_arrived(0);
        }
        "polled".into()
    }

    /// Waits so long for an event, and takes those that are there.
    fn take_arrived(&mut self, milliseconds: u32) {
        let next = |milliseconds| rig::next_event(&self.arrived, milliseconds).ok().flatten();
        let events = std::iter::successors(next(milliseconds), |_| next(0));
        let ends = events.map(|event| format!("{:?}", event.ni_fail));
        self.ends.extend(ends);
    }

    /// How the messages ended that have arrived with an event since this was last asked, once one has
    /// ended well: its initiator may hear of that before the event is posted.
    fn arrived(&mut self) -> String {
        let well = format!("{:?}", NiFail::Ok);
        let until = Instant::now() + Duration::from_millis(rig::PATIENCE.into());
        self.take_arrived(0);
        while !self.ends.contains(&well) && Instant::now() < until {
            self.take_arrived(10);
        }
        std::mem::take(&mut self.ends).join(" ")
    }

    fn get(&self, peer: u32, offset: u64, length: u64) -> String {
        let transfer = rig::transfer_at(peer, GET, length, offset);
        let end = self.end(self.sink.get(&transfer), EventKind::Reply);
        let range = offset as usize..(offset + length) as usize;
        match self.got.first_mismatch(range) {
            Some(at) if end == format!("{:?}", NiFail::Ok) => format!("wrong at {at}"),
            _ => end,
        }
    }

    /// Whether peers have put the pattern here.
    fn check_received(&self, offset: usize, length: usize) -> String {
        match self.received.first_mismatch(offset..offset + length) {
            Some(at) => format!("wrong at {at}"),
            None => "right".into(),
        }
    }

    /// Makes no call for so long; reports when the first byte of the area arrived.
    fn compute(&self, how_long: Duration) -> String {
        println!("computing");
        let (begin, mut seen) = (Instant::now(), None);
        while begin.elapsed() < how_long {
            if seen.is_none() && self.received.flag().load(Ordering::Relaxed) != 0 {
                seen = Some(begin.elapsed());
            }
            std::hint::spin_loop();
        }
        format!(
            "computed {}",
            seen.map_or(-1, |time| time.as_millis() as i64)
        )
    }
}

/// Sets whether processes of the same user may read this one's memory.
fn dumpable(yes: i32) -> String {
    // SAFETY: prctl takes numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, yes, 0, 0, 0) };
    format!("dumpable {done}")
}
