//! One command at a time goes to the agent, its answer comes back. Both are bytes
//! here; those that need no answer go [another way](crate::posts). And the noise:
//! something was posted or counted.
//!
//! Whoever waits looks for a moment, then sleeps for as long as it takes: where the
//! other side goes, somebody [ends his wait](Page::end_waits). Whoever rings looks
//! whether the other sleeps; that the one or the other is seen is the doing of `SeqCst`.

use crate::page::{Bell, MESSAGE_BYTES, Page};
use rustix::thread::futex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Looks in vain before a caller lets others have the processor. They are few: whoever
/// answers may wait for this very one.
const SPINS: u32 = 20;
/// How long it looks from then on before it sleeps. A time, for on a busy machine the
/// processor comes back late, and sooner to who is woken.
const PATIENCE: Duration = Duration::from_micros(100);

/// The other side has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl Bell {
    /// Rings, whoever sleeps.
    pub(crate) fn ring(&self) {
        // Pairs with the load in `rings` ("what the ring tells of is there").
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) != 0 {
            let _ = futex::wake(&self.rings, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Rings where somebody sleeps. What it rings for was stored `SeqCst`.
    pub(crate) fn ring_sleepers(&self) {
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Says that there is another message.
    fn tell(&self, length: u32) {
        self.length.store(length, Ordering::Relaxed);
        // Pairs with the load in `messages` ("the message is there").
        self.messages.fetch_add(1, Ordering::SeqCst);
        self.ring_sleepers();
    }

    fn messages(&self) -> u32 {
        self.messages.load(Ordering::SeqCst)
    }

    /// Sleeps until it rings, at most for `most`; not at all where there is something.
    pub(crate) fn sleep_unless(&self, something: impl FnOnce() -> bool, most: Option<Duration>) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let rings = self.rings();
        if !something() {
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

    /// Waits for something, which rings: looks for a moment, then sleeps.
    pub(crate) fn wait_for(
        &self,
        something: impl Fn() -> bool,
        lives: impl Fn() -> bool,
    ) -> Result<(), Gone> {
        for _ in 0..SPINS {
            if something() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let since = Instant::now();
        while !something() {
            if !lives() {
                return Err(Gone);
            }
            if since.elapsed() < PATIENCE {
                std::thread::yield_now();
            } else {
                self.sleep_unless(|| something() || !lives(), None);
            }
        }
        Ok(())
    }
}

/// What an agent has seen of a client's commands.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    pub(crate) asked: u32,
    pub(crate) posts: u64,
}

/// A client's next command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// It needs no answer.
    Posted(Vec<u8>),
    /// It is to be [answered](Page::answer).
    Asked(Vec<u8>),
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
        let before = front.answered.messages();
        self.message().write(command);
        front.asked.tell(command.len() as u32);
        let answered = || front.answered.messages() != before;
        front.answered.wait_for(answered, lives)?;
        Ok(self.read(front.answered.length.load(Ordering::Relaxed)))
    }

    /// A number that changes when something was posted or counted.
    #[inline]
    pub fn noise(&self) -> u32 {
        self.front().noise.rings.load(Ordering::Acquire)
    }

    /// Sleeps until something is posted or counted, unless it was since `noise`; at
    /// most for `most`.
    pub fn sleep(&self, noise: u32, most: Option<Duration>) {
        let bell = &self.front().noise;
        bell.sleep_unless(|| bell.rings() != noise, most);
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
    /// Takes the next command after those that were seen. One that was posted comes
    /// before one that was asked later.
    pub fn next(&self, seen: &mut Seen) -> Option<Next> {
        let front = self.front();
        // Before the look at the posts, so that none is overtaken.
        let asked = front.asked.messages();
        if let Some(post) = self.take_post(&mut seen.posts) {
            return Some(Next::Posted(post));
        }
        if asked == seen.asked {
            return None;
        }
        seen.asked = asked;
        let length = front.asked.length.load(Ordering::Relaxed);
        Some(Next::Asked(self.read(length)))
    }

    /// Answers the command that was taken; an answer too long is cut.
    pub fn answer(&self, answer: &[u8]) {
        let written = self.message().write(answer);
        self.front().answered.tell(written as u32);
    }

    /// Sleeps until a command comes, unless one has that wasn't seen, or until
    /// [interrupted](Self::interrupt); not at all where it `is_over`.
    pub fn await_command(&self, seen: &Seen, is_over: impl FnOnce() -> bool) {
        let bell = &self.front().asked;
        let comes = || bell.messages() != seen.asked || self.has_posts(seen.posts) || is_over();
        bell.sleep_unless(comes, None);
    }

    /// Wakes whoever awaits a command: there is something else to do. To be repeated
    /// until he has heard it, for a client may spoil the bell meanwhile.
    pub fn interrupt(&self) {
        self.front().asked.ring();
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
            let mut seen = Seen::default();
            let is_over = || end.load(Ordering::SeqCst);
            while !is_over() {
                match agent.next(&mut seen) {
                    Some(Next::Asked(command)) => {
                        agent.answer(&[command.as_slice(), b"!"].concat());
                    }
                    Some(Next::Posted(post)) => panic!("nobody has posted {post:?}"),
                    None => agent.await_command(&seen, is_over),
                }
            }
        });
        for number in 0..1000u32 {
            let command = number.to_ne_bytes();
            let answer = page.ask(&command, || true).expect("the agent lives");
            assert_eq!(answer, [command.as_slice(), b"!"].concat());
        }
        done.store(true, Ordering::SeqCst);
        page.interrupt();
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
        lives.store(false, Ordering::SeqCst);
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
        page.front().asked.tell(u32::MAX);
        match page.next(&mut Seen::default()) {
            Some(Next::Asked(command)) => assert_eq!(command.len(), MESSAGE_BYTES),
            other => panic!("it was asked: {other:?}"),
        }
    }
}
