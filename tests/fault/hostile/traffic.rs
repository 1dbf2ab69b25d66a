//! Messages between the victim and its peer while the attack goes on.

use crate::{KEY, Processes, open};
use lintel_claim::{Claim, Lease, Region};
use lintel_fault::random::Random;
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::UdpNal;
use lintel_types::ProcessId;
use std::time::{Duration, Instant};

/// The longest message, bytes.
const LONGEST: u64 = 60_000;
/// Messages exchanged before the attack.
const WARM_UP: u64 = 1000;
/// Messages of the peer in flight, at most.
const WINDOW: u64 = 4;
/// Flushes of which at least one polls the socket.
const FLUSHES: u32 = 8;
/// How long any step may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbered messages one way, their numbers back.
pub struct Traffic {
    /// The NAL under attack.
    pub victim: UdpNal,
    peer: UdpNal,
    names: [ProcessId; 2],
    random: Random,
    pool: Region,
    place: Region,
    lease: Lease,
    /// A long message that is arriving: number, length, checksum.
    arriving: Option<[u64; 3]>,
    sent: u64,
    /// Messages that the victim has received, in order.
    pub received: u64,
    answered: u64,
}

impl Traffic {
    /// Opens both NALs, and exchanges messages until they are connected.
    pub fn open(processes: &Processes) -> Result<Traffic, String> {
        let pool = Region::new(2 * LONGEST);
        let mut random = Random::new(1);
        for word in 0..pool.len() / 8 {
            pool.claim().store_u64(word * 8, random.number());
        }
        let mut traffic = Traffic {
            victim: open(processes.victim, KEY)?,
            peer: open(processes.peer, KEY)?,
            names: [processes.victim, processes.peer],
            random,
            pool,
            place: Region::new(LONGEST),
            lease: Lease::new(),
            arriving: None,
            sent: 0,
            received: 0,
            answered: 0,
        };
        while traffic.answered < WARM_UP {
            traffic.step()?;
        }
        traffic.fill_buffers()?;
        Ok(traffic)
    }

    /// As many messages as there ever are come before the victim asks for one: it then has
    /// all buffers that it will ever need.
    fn fill_buffers(&mut self) -> Result<(), String> {
        for length in [8, 1000, LONGEST] {
            self.drain()?;
            for _ in 0..WINDOW {
                self.send_next(length)?;
            }
            self.peer.flush();
            (0..FLUSHES).for_each(|_| {
                self.victim.flush();
            });
        }
        self.drain()
    }

    /// The peer sends another message if the window has room, and both NALs make progress.
    pub fn step(&mut self) -> Result<(), String> {
        if self.sent < self.answered + WINDOW {
            let most = [8, 1000, LONGEST][self.random.below(3) as usize];
            let length = self.random.below(most + 1);
            self.send_next(length)?;
        }
        self.progress()
    }

    fn send_next(&mut self, length: u64) -> Result<(), String> {
        self.sent += 1;
        let from = self.pool.claim().slice(self.random.below(LONGEST), length);
        let words = [self.sent, length, checksum(from), 0, 0, 0];
        send(&mut self.peer, self.names[0], &words, &[from])
    }

    /// Waits until nothing is in flight.
    pub fn drain(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let mut quiet = 0;
        while quiet < 100 {
            let before = (self.received, self.answered);
            self.progress()?;
            let calm = self.answered == self.sent
                && before == (self.received, self.answered)
                && self.peer.all_delivered()
                && self.victim.all_delivered();
            quiet = if calm { quiet + 1 } else { 0 };
            if Instant::now() > until {
                let Traffic {
                    sent,
                    received,
                    answered,
                    ..
                } = self;
                return Err(format!(
                    "{sent} sent, {received} received, {answered} answered"
                ));
            }
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<(), String> {
        while let Some(arrival) = next(&mut self.victim) {
            self.on_victim_arrival(arrival)?;
        }
        while let Some(arrival) = next(&mut self.peer) {
            self.on_peer_arrival(&arrival)?;
        }
        Ok(())
    }

    fn on_victim_arrival(&mut self, arrival: Arrival) -> Result<(), String> {
        match arrival {
            Arrival::Message(origin, words, payload) if origin.process == self.names[1] => {
                let [number, length, sum, ..] = words;
                match payload {
                    Payload::Inline(bytes) => {
                        self.check([number, length, sum], bytes)?;
                        self.victim.done(origin);
                        self.answer(number)
                    }
                    Payload::Streamed(_) => {
                        self.arriving = Some([number, length, sum]);
                        let place = [self.place.claim()];
                        let loan = self.lease.lend(&place).keep();
                        self.victim.receive_into(origin, loan);
                        self.victim.done(origin);
                        Ok(())
                    }
                    Payload::Lent(_) => Err("the peer lends nothing".into()),
                    Payload::Placed => Err("the victim has no direct entry".into()),
                }
            }
            Arrival::Streamed(origin) if origin.process == self.names[1] => {
                let message = self
                    .arriving
                    .take()
                    .ok_or("the end of a stream that never began")?;
                self.check(message, self.place.claim().slice(0, message[1]))?;
                self.answer(message[0])
            }
            other => Err(format!("the victim got {other:?}")),
        }
    }

    fn check(&mut self, [number, length, sum]: [u64; 3], bytes: Claim) -> Result<(), String> {
        if number != self.received + 1 {
            let received = self.received;
            return Err(format!("the victim got message {number} after {received}"));
        }
        self.received = number;
        if bytes.len() != length || checksum(bytes) != sum {
            return Err(format!("message {number} of {length} bytes has changed"));
        }
        Ok(())
    }

    fn answer(&mut self, number: u64) -> Result<(), String> {
        let words = [number, 0, 0, 0, 0, 0];
        send(&mut self.victim, self.names[1], &words, &[])
    }

    fn on_peer_arrival(&mut self, arrival: &Arrival) -> Result<(), String> {
        match arrival {
            Arrival::Message(origin, [number, ..], _) if *number == self.answered + 1 => {
                self.answered = *number;
                self.peer.done(*origin);
                Ok(())
            }
            other => Err(format!("the peer got {other:?}")),
        }
    }
}

/// The next arrival, as found by a thread that sleeps on the descriptor.
fn next(nal: &mut UdpNal) -> Option<Arrival> {
    nal.flush();
    if nal.is_idle() {
        nal.on_readable();
    }
    nal.next()
}

fn send(nal: &mut UdpNal, to: ProcessId, words: &[u64; 6], pieces: &[Claim]) -> Result<(), String> {
    let body = Outgoing::Copied {
        operand: None,
        pieces,
    };
    let sent = nal.send(to, words, body);
    sent.map_err(|why| format!("a message to {to:?}: {why:?}"))
}

fn checksum(bytes: Claim) -> u64 {
    let mut sum = 0;
    bytes.each_part(|part| sum = crc32c::crc32c_append(sum, part));
    sum.into()
}
