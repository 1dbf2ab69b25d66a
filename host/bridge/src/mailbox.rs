//! One command at a time goes to the agent, its answer comes back. Both are bytes
//! here. And the noise: something was posted or counted.
//!
//! Whoever waits looks for a moment, then sleeps for as long as it takes: where the
//! other side goes, somebody [ends his wait](Page::end_waits). Whoever rings looks
//! whether the other sleeps; that the one or the other is seen is the doing of `SeqCst`.

use crate::page::{Bell, MESSAGE_BYTES, Page};
use rustix::thread::futex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Looks in vain before a caller lets others have the processor, and before it sleeps.
/// The first are few: whoever answers may wait for this very processor.
const SPINS: u32 = 20;
const PATIENCE: u32 = 200;

/// The other side has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl Bell {
    fn ring(&self) {
        // Pairs with the load in `rings` ("what the ring tells of is there").
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) != 0 {
            let _ = futex::wake(&self.rings, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Sleeps until it rings, unless it has since `rings`; at most for `most`.
    fn sleep(&self, rings: u32, most: Option<Duration>) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        if self.rings() == rings {
            let timeout = most.map(|most| futex::Timespec {
                tv_sec: most.as_secs() as i64,
                tv_nsec: i64::from(most.subsec_nanos()),
            });
            // Too early, too late, or by a signal: whoever sleeps looks again.
            let flags = futex::Flags::empty();
            let _ = futex::wait(&self.rings, flags, rings, timeout.as_ref());
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The client's side. One thread at a time may have a command under way.
impl Page {
    /// Carries a command to the agent and waits for the answer; `lives` tells
    /// whether the agent does, which no longer does where waits are
    /// [ended](Self::end_waits).
    ///
    /// # Errors
    /// [`Gone`]
    ///
    /// # Panics
    /// Where the command is longer than [`MESSAGE_BYTES`].
    pub fn ask(&self, command: &[u8], lives: impl Fn() -> bool) -> Result<Vec<u8>, Gone> {
        assert!(command.len() <= MESSAGE_BYTES, "the caller has looked");
        let front = self.front();
        let before = front.answered.rings();
        self.message().write(command);
        let length = command.len() as u32;
        front.asked.length.store(length, Ordering::Relaxed);
        front.asked.ring();
        let mut looks = 0;
        while front.answered.rings() == before {
            looks += 1;
            if looks < SPINS {
                std::hint::spin_loop();
            } else if looks < PATIENCE {
                std::thread::yield_now();
            } else if lives() {
                front.answered.sleep(before, None);
            } else {
                return Err(Gone);
            }
        }
        match lives() {
            true => Ok(self.read(front.answered.length.load(Ordering::Relaxed))),
            false => Err(Gone),
        }
    }

    /// A number that changes when something was posted or counted.
    #[inline]
    pub fn noise(&self) -> u32 {
        self.front().noise.rings.load(Ordering::Acquire)
    }

    /// Sleeps until something is posted or counted, unless it was since `noise`; at
    /// most for `most`.
    pub fn sleep(&self, noise: u32, most: Option<Duration>) {
        self.front().noise.sleep(noise, most);
    }

    /// The agent has gone, and is known not to live: wakes all who wait for it.
    pub fn end_waits(&self) {
        self.front().answered.ring();
        self.front().noise.ring();
    }

    /// Wakes those who sleep on the noise.
    pub fn make_noise(&self) {
        self.front().noise.ring();
    }
}

/// The agent's side.
impl Page {
    /// Takes the next command, where one came after the `seen`-th.
    pub fn command(&self, seen: &mut u32) -> Option<Vec<u8>> {
        let front = self.front();
        let now = front.asked.rings();
        if now == *seen {
            return None;
        }
        *seen = now;
        Some(self.read(front.asked.length.load(Ordering::Relaxed)))
    }

    /// Answers the command that was taken; an answer too long is cut.
    pub fn answer(&self, answer: &[u8]) {
        let written = self.message().write(answer);
        let front = self.front();
        front
            .answered
            .length
            .store(written as u32, Ordering::Relaxed);
        front.answered.ring();
    }

    /// Sleeps until a command comes, unless one has since `seen`, or until
    /// [interrupted](Self::interrupt).
    pub fn await_command(&self, seen: u32) {
        self.front().asked.sleep(seen, None);
    }

    /// Wakes whoever awaits a command: there is something else to do. Who is just about
    /// to sleep doesn't notice, so it is to be repeated.
    pub fn interrupt(&self) {
        let rings = &self.front().asked.rings;
        let _ = futex::wake(rings, futex::Flags::empty(), i32::MAX as u32);
    }

    fn read(&self, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; (length as usize).min(MESSAGE_BYTES)];
        self.message().read(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn commands_are_answered_one_by_one() {
        let page = Arc::new(Page::create().expect("the system has memory"));
        let (agent, done) = (page.clone(), Arc::new(AtomicBool::new(false)));
        let end = done.clone();
        let agent = std::thread::spawn(move || {
            let mut seen = 0;
            while !end.load(Ordering::Relaxed) {
                match agent.command(&mut seen) {
                    Some(command) => agent.answer(&[command.as_slice(), b"!"].concat()),
                    None => agent.await_command(seen),
                }
            }
        });
        for number in 0..1000u32 {
            let command = number.to_ne_bytes();
            let answer = page.ask(&command, || true).expect("the agent lives");
            assert_eq!(answer, [command.as_slice(), b"!"].concat());
        }
        done.store(true, Ordering::Relaxed);
        while !agent.is_finished() {
            page.interrupt();
        }
        agent.join().expect("nothing has failed");
    }

    #[test]
    fn waits_end_where_the_agent_does() {
        let page = Arc::new(Page::create().expect("the system has memory"));
        let lives = Arc::new(AtomicBool::new(true));
        let (shared, alive) = (page.clone(), lives.clone());
        let asks = move || shared.ask(b"anyone?", || alive.load(Ordering::Relaxed));
        let (asks, shared) = (std::thread::spawn(asks), page.clone());
        let noise = page.noise();
        let listens = std::thread::spawn(move || shared.sleep(noise, None));
        let asleep = |bell: &Bell| bell.asleep.load(Ordering::SeqCst) > 0;
        while !asleep(&page.front().answered) || !asleep(&page.front().noise) {
            std::thread::yield_now();
        }
        lives.store(false, Ordering::Relaxed);
        page.end_waits();
        assert_eq!(asks.join().expect("nothing has failed"), Err(Gone));
        listens.join().expect("nothing has failed");
    }

    #[test]
    fn a_command_to_an_agent_that_has_gone_comes_back() {
        let page = Page::create().expect("the system has memory");
        assert_eq!(page.ask(b"anyone?", || false), Err(Gone));
    }

    #[test]
    fn a_length_beyond_the_message_is_cut() {
        let page = Page::create().expect("the system has memory");
        let asked = &page.front().asked;
        asked.length.store(u32::MAX, Ordering::Relaxed);
        asked.ring();
        let command = page.command(&mut 0).expect("it rang");
        assert_eq!(command.len(), MESSAGE_BYTES);
    }
}
