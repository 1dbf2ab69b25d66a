//! One incarnation of a rank: it starts operations, replies to others, and follows the driver.

use crate::Done;
use crate::bits::{self, Kind};
use crate::initiator::{Initiator, Interfaces};
use crate::offer::{Offer, plain_portal, pool};
use crate::session::PLAIN_SLOT;
use lintel_fault::rig;
use lintel_types::{Event, EventKind, NiFail};
use portals4_abi::{Queue, Result as PtlResult};
use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Events that a queue holds: more than all ranks together have in flight to this one.
const QUEUE: u64 = 8192;
/// How long a rank that can't start an operation waits for an event, milliseconds.
const IDLE_WAIT: u32 = 1;
/// Pause between two checks for overdue operations.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

struct Rank {
    interfaces: Interfaces,
    initiator: Initiator,
    offer: Offer,
    /// The incarnation of each rank that said hello last.
    incarnations: Vec<u32>,
    limit: Duration,
}

/// `rank ME LIFE RANKS SEED LARGEST LIMIT`; the limit of an operation is in seconds.
pub fn run(words: &[&str]) -> Done {
    let numbers = words.iter().map(|word| word.parse::<u64>());
    let numbers = numbers.collect::<Result<Vec<u64>, _>>();
    let Ok([me, incarnation, ranks, seed, largest, limit]) = numbers.as_deref() else {
        return Err(format!("a rank takes six numbers: {words:?}"));
    };
    let identity = (*me as u32, *incarnation as u32, *ranks as u32);
    let limit = Duration::from_secs(*limit);
    let opened = Rank::open(identity, (*seed, *largest), limit);
    let mut rank = opened.map_err(|why| format!("a rank starts: {why}"))?;
    println!("ready");
    rank.work(&commands())?;
    rank.close()
}

/// Commands from the driver, and "quit" at their end.
fn commands() -> Receiver<String> {
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        let _ = sender.send("quit".into());
    });
    commands
}

impl Rank {
    fn open(identity: (u32, u32, u32), how: (u64, u64), limit: Duration) -> PtlResult<Rank> {
        let (me, incarnation, ranks) = identity;
        let (matching, plain) = (rig::open(me)?, rig::open_without_matching(me)?);
        let (queue, plain_queue) = (matching.queue(QUEUE)?, plain.queue(QUEUE)?);
        let portals = (
            rig::portal(&matching, Some(&queue))?,
            plain.portal(plain_portal(incarnation), Some(&plain_queue))?,
        );
        let own = pool(me, incarnation);
        let interfaces = Interfaces {
            matching,
            queue,
            plain,
            plain_queue,
        };
        let offer = Offer::new((&portals.0, &portals.1), own, identity)?;
        Ok(Rank {
            initiator: Initiator::new(&interfaces, own, identity, how)?,
            interfaces,
            offer,
            incarnations: vec![0; ranks as usize],
            limit,
        })
    }

    fn work(&mut self, commands: &Receiver<String>) -> Done {
        let (mut stopping, mut stopped) = (false, false);
        let mut checked = Instant::now();
        loop {
            match commands.try_recv().as_deref() {
                Ok("count") => self.report("count"),
                Ok("stop") => stopping = true,
                Ok(_) => return Ok(()),
                Err(_) => {}
            }
            let begun = !stopping && self.initiator.start()?;
            self.take_events(if begun { 0 } else { IDLE_WAIT })?;
            self.initiator.on_counter()?;
            if checked.elapsed() > CHECK_PERIOD {
                checked = Instant::now();
                self.initiator.overdue(self.limit)?;
            }
            if stopping && !stopped && self.initiator.is_idle() {
                stopped = true;
                self.report("stopped");
            }
        }
    }

    fn report(&self, what: &str) {
        let tally = &self.initiator.tally;
        println!(
            "{what} {} {} {}",
            tally.succeeded, tally.failed, tally.bytes
        );
    }

    /// Takes all queued events; waits for the first one at most so long.
    fn take_events(&mut self, mut milliseconds: u32) -> Done {
        while let Some(event) = next(&self.interfaces.queue, milliseconds)? {
            milliseconds = 0;
            self.on_event(&event)?;
        }
        self.take_plain_events()
    }

    fn take_plain_events(&mut self) -> Done {
        while let Some(event) = next(&self.interfaces.plain_queue, 0)? {
            match event.kind {
                EventKind::Put => {
                    let peer = rig::places().number(event.initiator);
                    self.on_put(&event, peer, PLAIN_SLOT)?;
                }
                _ => self.initiator.on_event(&event)?,
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: &Event) -> Done {
        if event.kind != EventKind::Put {
            return self.initiator.on_event(event);
        }
        let Some((kind, peer, slot)) = bits::read(event.match_bits) else {
            return Err(format!("an unknown message: {event:?}"));
        };
        if rig::process(peer) != event.initiator {
            return Err(format!("rank {peer} has another process name: {event:?}"));
        }
        match kind {
            Kind::Hello => self.on_hello(peer, event.hdr_data),
            Kind::HelloReply => {
                self.initiator.on_reply(peer, event.hdr_data);
                Ok(())
            }
            Kind::Credit => {
                let session = &mut self.initiator.sessions[peer as usize];
                session.on_credit(slot, event.hdr_data as u32);
                Ok(())
            }
            Kind::Put => self.on_put(event, peer, slot),
            Kind::Pool | Kind::Words | Kind::Counted => Err(format!("a disabled event: {event:?}")),
        }
    }

    fn on_hello(&mut self, peer: u32, header: u64) -> Done {
        // Earlier events of the other interface are those of the peer's last incarnation.
        self.take_plain_events()?;
        self.offer.begin(peer);
        self.incarnations[peer as usize] = bits::halves(header).0;
        self.initiator.on_hello(peer, header)
    }

    fn on_put(&mut self, event: &Event, peer: u32, slot: usize) -> Done {
        let incarnation = self.incarnations[peer as usize];
        if event.ni_fail == NiFail::Undeliverable {
            // The rest of the message will never arrive.
            println!("failed {peer} {incarnation} {:?} arrival", event.ni_fail);
            return Ok(());
        }
        self.offer.check(event, peer, slot)?;
        let (_, sequence) = bits::halves(event.hdr_data);
        self.initiator.credit(peer, incarnation, slot, sequence)
    }

    fn close(self) -> Done {
        let name = |why| format!("a rank ends: {why}");
        self.interfaces.plain.close().map_err(name)?;
        self.interfaces.matching.close().map_err(name)
    }
}

/// The next event of a queue, if there is one within so many milliseconds.
fn next(queue: &Queue, milliseconds: u32) -> Result<Option<Event>, String> {
    rig::next_event(queue, milliseconds).map_err(|why| format!("the next event: {why}"))
}
