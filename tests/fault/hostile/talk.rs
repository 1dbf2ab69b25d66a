//! The victim and its friend, who talk all the while.

use crate::{Cast, KEY, open};
use lintel_claim::{Claim, Lease, Region};
use lintel_fault::random::Random;
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::UdpNal;
use lintel_types::ProcessId;
use std::time::{Duration, Instant};

/// The longest message, bytes.
const LONGEST: u64 = 60_000;
/// Messages before anything is measured.
const WARM: u64 = 1000;
/// Messages of the friend that the victim hasn't answered.
const WINDOW: u64 = 4;
/// Flushes of which one looks into the socket.
const LOOKS: u32 = 8;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbered messages one way, their numbers back.
pub struct Talk {
    pub victim: UdpNal,
    friend: UdpNal,
    names: [ProcessId; 2],
    random: Random,
    pool: Region,
    place: Region,
    lease: Lease,
    /// A long message that isn't whole yet: number, length, checksum.
    coming: Option<[u64; 3]>,
    said: u64,
    /// Messages that the victim has had.
    pub heard: u64,
    answered: u64,
}

impl Talk {
    /// Opens both, and has them know each other.
    pub fn begin(cast: &Cast) -> Result<Talk, String> {
        let pool = Region::new(2 * LONGEST);
        let mut random = Random::new(1);
        for word in 0..pool.len() / 8 {
            pool.claim().store_u64(word * 8, random.number());
        }
        let mut talk = Talk {
            victim: open(cast.victim, KEY)?,
            friend: open(cast.friend, KEY)?,
            names: [cast.victim, cast.friend],
            random,
            pool,
            place: Region::new(LONGEST),
            lease: Lease::new(),
            coming: None,
            said: 0,
            heard: 0,
            answered: 0,
        };
        while talk.answered < WARM {
            talk.go_on()?;
        }
        talk.fill_buffers()?;
        Ok(talk)
    }

    /// As many messages as there ever are come before the victim asks for one: it then has
    /// all buffers that it will ever need.
    fn fill_buffers(&mut self) -> Result<(), String> {
        for length in [8, 1000, LONGEST] {
            self.settle()?;
            for _ in 0..WINDOW {
                self.say(length)?;
            }
            self.friend.flush();
            (0..LOOKS).for_each(|_| {
                self.victim.flush();
            });
        }
        self.settle()
    }

    /// The friend says something more, and both look at all that is there.
    pub fn go_on(&mut self) -> Result<(), String> {
        if self.said < self.answered + WINDOW {
            let most = [8, 1000, LONGEST][self.random.below(3) as usize];
            let length = self.random.below(most + 1);
            self.say(length)?;
        }
        self.look()
    }

    fn say(&mut self, length: u64) -> Result<(), String> {
        self.said += 1;
        let from = self.pool.claim().slice(self.random.below(LONGEST), length);
        let words = [self.said, length, checksum(from), 0, 0, 0];
        send(&mut self.friend, self.names[0], &words, &[from])
    }

    /// Until nothing is on its way.
    pub fn settle(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let mut quiet = 0;
        while quiet < 100 {
            let before = (self.heard, self.answered);
            self.look()?;
            let calm = self.answered == self.said
                && before == (self.heard, self.answered)
                && self.friend.all_delivered()
                && self.victim.all_delivered();
            quiet = if calm { quiet + 1 } else { 0 };
            if Instant::now() > until {
                let Talk {
                    said,
                    heard,
                    answered,
                    ..
                } = self;
                return Err(format!("{said} said, {heard} heard, {answered} answered"));
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        while let Some(arrival) = next(&mut self.victim) {
            self.on_victims(arrival)?;
        }
        while let Some(arrival) = next(&mut self.friend) {
            self.on_friends(&arrival)?;
        }
        Ok(())
    }

    fn on_victims(&mut self, arrival: Arrival) -> Result<(), String> {
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
                        self.coming = Some([number, length, sum]);
                        let place = [self.place.claim()];
                        let loan = self.lease.lend(&place).keep();
                        self.victim.receive_into(origin, loan);
                        self.victim.done(origin);
                        Ok(())
                    }
                    Payload::Lent(_) => Err("the friend lends nothing".into()),
                }
            }
            Arrival::Streamed(origin) if origin.process == self.names[1] => {
                let message = self.coming.take().ok_or("a stream that nobody began")?;
                self.check(message, self.place.claim().slice(0, message[1]))?;
                self.answer(message[0])
            }
            other => Err(format!("the victim got {other:?}")),
        }
    }

    fn check(&mut self, [number, length, sum]: [u64; 3], bytes: Claim) -> Result<(), String> {
        if number != self.heard + 1 {
            let heard = self.heard;
            return Err(format!("the victim got message {number} after {heard}"));
        }
        self.heard = number;
        if bytes.len() != length || checksum(bytes) != sum {
            return Err(format!("message {number} of {length} bytes has changed"));
        }
        Ok(())
    }

    fn answer(&mut self, number: u64) -> Result<(), String> {
        let words = [number, 0, 0, 0, 0, 0];
        send(&mut self.victim, self.names[1], &words, &[])
    }

    fn on_friends(&mut self, arrival: &Arrival) -> Result<(), String> {
        match arrival {
            Arrival::Message(origin, [number, ..], _) if *number == self.answered + 1 => {
                self.answered = *number;
                self.friend.done(*origin);
                Ok(())
            }
            other => Err(format!("the friend got {other:?}")),
        }
    }
}

/// The next arrival, looked for as by who sleeps on the descriptor.
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
