//! A rank's life: it starts operations, answers those of others, obeys the driver.

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

/// Events that a queue holds: more than all ranks can have under way here.
const QUEUE: u64 = 8192;
/// How long a rank with nothing to start waits for an event, milliseconds.
const REST: u32 = 1;
/// How often it looks after operations that don't end.
const LOOK: Duration = Duration::from_millis(200);

struct Rank {
    interfaces: Interfaces,
    initiator: Initiator,
    offer: Offer,
    /// By rank, the life of the one that said hello last.
    lives: Vec<u32>,
    limit: Duration,
}

/// `rank ME LIFE RANKS SEED LARGEST LIMIT`: the last in seconds, for an operation.
pub fn run(words: &[&str]) -> Done {
    let numbers = words.iter().map(|word| word.parse::<u64>());
    let numbers = numbers.collect::<Result<Vec<u64>, _>>();
    let Ok([me, life, ranks, seed, largest, limit]) = numbers.as_deref() else {
        return Err(format!("a rank wants six numbers: {words:?}"));
    };
    let who = (*me as u32, *life as u32, *ranks as u32);
    let limit = Duration::from_secs(*limit);
    let opened = Rank::open(who, (*seed, *largest), limit);
    let mut rank = opened.map_err(|why| format!("a rank begins: {why}"))?;
    println!("ready");
    rank.work(&orders())?;
    rank.close()
}

/// Lines from the driver; "quit" at their end.
fn orders() -> Receiver<String> {
    let (sender, orders) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        let _ = sender.send("quit".into());
    });
    orders
}

impl Rank {
    fn open(who: (u32, u32, u32), how: (u64, u64), limit: Duration) -> PtlResult<Rank> {
        let (me, life, ranks) = who;
        let (matching, plain) = (rig::open(me)?, rig::open_without_matching(me)?);
        let (queue, plain_queue) = (matching.queue(QUEUE)?, plain.queue(QUEUE)?);
        let portals = (
            rig::portal(&matching, Some(&queue))?,
            plain.portal(plain_portal(life), Some(&plain_queue))?,
        );
        let own = pool(me, life);
        let interfaces = Interfaces {
            matching,
            queue,
            plain,
            plain_queue,
        };
        let offer = Offer::new((&portals.0, &portals.1), own, who)?;
        Ok(Rank {
            initiator: Initiator::new(&interfaces, own, who, how)?,
            interfaces,
            offer,
            lives: vec![0; ranks as usize],
            limit,
        })
    }

    fn work(&mut self, orders: &Receiver<String>) -> Done {
        let (mut stopping, mut stopped) = (false, false);
        let mut looked = Instant::now();
        loop {
            match orders.try_recv().as_deref() {
                Ok("count") => self.tell("count"),
                Ok("stop") => stopping = true,
                Ok(_) => return Ok(()),
                Err(_) => {}
            }
            let begun = !stopping && self.initiator.start()?;
            self.take_events(if begun { 0 } else { REST })?;
            self.initiator.on_counter()?;
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                self.initiator.overdue(self.limit)?;
            }
            if stopping && !stopped && self.initiator.is_idle() {
                stopped = true;
                self.tell("stopped");
            }
        }
    }

    fn tell(&self, what: &str) {
        let tally = &self.initiator.tally;
        println!(
            "{what} {} {} {}",
            tally.succeeded, tally.failed, tally.bytes
        );
    }

    /// All events that are there; waits for the first one at most so long.
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
            return Err(format!("nobody sends that: {event:?}"));
        };
        if rig::process(peer) != event.initiator {
            return Err(format!("rank {peer} is somewhere else: {event:?}"));
        }
        match kind {
            Kind::Hello => self.on_hello(peer, event.hdr_data),
            Kind::Welcome => {
                self.initiator.on_welcome(peer, event.hdr_data);
                Ok(())
            }
            Kind::Credit => {
                let session = &mut self.initiator.sessions[peer as usize];
                session.on_credit(slot, event.hdr_data as u32);
                Ok(())
            }
            Kind::Put => self.on_put(event, peer, slot),
            Kind::Pool | Kind::Words | Kind::Counted => {
                Err(format!("an event that was disabled: {event:?}"))
            }
        }
    }

    fn on_hello(&mut self, peer: u32, header: u64) -> Done {
        // What came before on the other interface is of the peer's past.
        self.take_plain_events()?;
        self.offer.begin(peer);
        self.lives[peer as usize] = bits::halves(header).0;
        self.initiator.on_hello(peer, header)
    }

    fn on_put(&mut self, event: &Event, peer: u32, slot: usize) -> Done {
        let life = self.lives[peer as usize];
        if event.ni_fail == NiFail::Undeliverable {
            // Its rest will never come.
            println!("failed {peer} {life} {:?} arrival", event.ni_fail);
            return Ok(());
        }
        self.offer.check(event, peer, slot)?;
        let (_, sequence) = bits::halves(event.hdr_data);
        self.initiator.credit(peer, life, slot, sequence)
    }

    fn close(self) -> Done {
        let told = |why| format!("a rank ends: {why}");
        self.interfaces.plain.close().map_err(told)?;
        self.interfaces.matching.close().map_err(told)
    }
}

/// The next event of a queue; waits for it at most so long.
fn next(queue: &Queue, milliseconds: u32) -> Result<Option<Event>, String> {
    rig::next_event(queue, milliseconds).map_err(|why| format!("the next event: {why}"))
}
