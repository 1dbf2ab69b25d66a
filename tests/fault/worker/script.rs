//! Does what it is told, line by line, and answers each with a line.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::ptl::{self, ACK, Code, Interface, PATIENCE, Target};
use lintel_types::{EventKind, Handle, NiFail, options};
use std::io::BufRead;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Puts go here.
const PUT: u64 = 1;
/// Gets come from here.
const GET: u64 = 2;
const AREA: usize = 4 << 20;

struct Script {
    interface: Interface,
    queue: Handle,
    counter: Handle,
    pattern: Handle,
    got: Memory,
    sink: Handle,
    received: Memory,
}

pub fn run(pid: u32) -> Done {
    let interface = match Interface::open(pid) {
        Ok(interface) => interface,
        Err(Code(code)) => {
            println!("refused {code}");
            return Ok(());
        }
    };
    let mut script = Script::new(interface).map_err(|why| format!("{why:?}"))?;
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["quit"] => {
                script.interface.close().map_err(|why| format!("{why:?}"))?;
                println!("bye");
                return Ok(());
            }
            ["return"] => return Ok(()),
            ["exit"] => std::process::exit(0),
            // SAFETY: ends the process; there is nothing to be careful about.
            ["vanish"] => unsafe { libc::_exit(0) },
            words => println!("{}", script.obey(words)),
        }
    }
    Ok(())
}

impl Script {
    fn new(interface: Interface) -> Result<Script, Code> {
        let (queue, counter) = (interface.queue(1024)?, interface.counter()?);
        interface.portal(Handle::EQ_NONE)?;
        let (source, got, received) = (
            Memory::patterned(AREA),
            Memory::new(AREA),
            Memory::new(AREA),
        );
        let counting = options::ME_EVENT_COMM_DISABLE | options::ME_EVENT_CT_COMM;
        interface.expose_counted(received, PUT, counting, counter)?;
        interface.expose(source, GET, options::ME_EVENT_COMM_DISABLE)?;
        Ok(Script {
            queue,
            counter,
            pattern: interface.bind(source, queue)?,
            got,
            sink: interface.bind(got, queue)?,
            received,
            interface,
        })
    }

    fn obey(&mut self, words: &[&str]) -> String {
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|w| w.parse::<u64>().ok())
                .unwrap_or(0)
        };
        match words.first().copied().unwrap_or("") {
            "put" => self.put(number(1) as u32, number(2), number(3)),
            "get" => self.get(number(1) as u32, number(2), number(3)),
            "received" => self.check(number(1) as usize, number(2) as usize),
            "compute" => self.compute(Duration::from_millis(number(1))),
            "dumpable" => dumpable(number(1) as i32),
            "wait-event" => format!("{:?}", ptl::wait_event(self.queue).map(|e| e.kind)),
            "wait-count" => {
                println!("waiting");
                format!(
                    "{:?}",
                    ptl::wait_count(self.counter, number(1)).map(|c| c.success)
                )
            }
            "silent-put" => self.silent_put(number(1) as u32, number(2)),
            word => format!("no such word: {word}"),
        }
    }

    fn target(peer: u32, bits: u64, offset: u64) -> Target {
        Target {
            process: ptl::process(peer),
            bits,
            offset,
        }
    }

    /// Waits for the end of one operation.
    fn end(&self, last: EventKind) -> String {
        loop {
            match ptl::event_within(self.queue, PATIENCE) {
                Ok(event) if event.kind == last => return format!("{:?}", event.ni_fail),
                Ok(_) => {}
                Err(code) => return format!("{code:?}"),
            }
        }
    }

    fn put(&self, peer: u32, offset: u64, length: u64) -> String {
        match ptl::put(
            self.pattern,
            length,
            ACK,
            Self::target(peer, PUT, offset),
            1,
        ) {
            Ok(()) => self.end(EventKind::Ack),
            Err(code) => format!("{code:?}"),
        }
    }

    /// A put that nobody acknowledges.
    fn silent_put(&self, peer: u32, length: u64) -> String {
        match ptl::put(self.pattern, length, 0, Self::target(peer, PUT, 0), 1) {
            Ok(()) => self.end(EventKind::Send),
            Err(code) => format!("{code:?}"),
        }
    }

    fn get(&self, peer: u32, offset: u64, length: u64) -> String {
        if let Err(code) = ptl::get(self.sink, length, Self::target(peer, GET, offset), 1) {
            return format!("{code:?}");
        }
        let end = self.end(EventKind::Reply);
        let range = offset as usize..(offset + length) as usize;
        match self.got.unlike(range) {
            Some(at) if end == format!("{:?}", NiFail::Ok) => format!("wrong at {at}"),
            _ => end,
        }
    }

    /// Whether others have put the pattern here.
    fn check(&self, offset: usize, length: usize) -> String {
        match self.received.unlike(offset..offset + length) {
            Some(at) => format!("wrong at {at}"),
            None => "right".into(),
        }
    }

    /// Calls nothing for so long; tells when the first byte of the area came.
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

/// Whether others may look into this process.
fn dumpable(yes: i32) -> String {
    // SAFETY: prctl takes numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, yes, 0, 0, 0) };
    format!("dumpable {done}")
}
