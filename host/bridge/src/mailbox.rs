//! One command at a time goes to the agent, its answer comes back. Both are bytes
//! here; those that need no answer go [another way](crate::posts). And the activity:
//! something was posted or counted.
//!
//! Whoever waits looks for a moment, then sleeps for as long as it takes: where the
//! other side goes, somebody [ends his wait](SharedRegion::wake_all). Whoever rings looks
//! whether the other sleeps; that the one or the other is seen is the doing of `SeqCst`.

use crate::region::{Doorbell, MESSAGE_BYTES, SharedRegion};
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
pub struct Disconnected;

impl Doorbell {
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
    fn announce(&self, length: u32) {
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
        is_alive: impl Fn() -> bool,
    ) -> Result<(), Disconnected> {
        for _ in 0..SPINS {
            if something() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let since = Instant::now();
        while !something() {
            if !is_alive() {
                return Err(Disconnected);
            }
            if since.elapsed() < PATIENCE {
                std::thread::yield_now();
            } else {
                self.sleep_unless(|| something() || !is_alive(), None);
            }
        }
        Ok(())
    }
}

/// What an agent has seen of a client's commands.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    pub(crate) requests: u32,
    pub(crate) posts: u64,
}

/// A client's next command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientCommand {
    /// It needs no answer.
    Posted(Vec<u8>),
    /// It is to be [answered](SharedRegion::reply).
    Requested(Vec<u8>),
}

/// The client's side. One thread at a time may have a command under way.
impl SharedRegion {
    /// Carries a command to the agent and waits for the answer; `lives` tells
    /// whether the agent does, which no longer does where waits are
    /// [ended](Self::wake_all).
    ///
    /// # Errors
    /// [`Disconnected`]
    ///
    /// # Panics
    /// Where the command is longer than [`MESSAGE_BYTES`].
    pub fn request(
        &self,
        command: &[u8],
        is_alive: impl Fn() -> bool,
    ) -> Result<Vec<u8>, Disconnected> {
        assert!(command.len() <= MESSAGE_BYTES, "the caller has looked");
        let layout = self.layout();
        let before = layout.replies.messages();
        self.message().write(command);
        layout.requests.announce(command.len() as u32);
        let answered = || layout.replies.messages() != before;
        layout.replies.wait_for(answered, is_alive)?;
        Ok(self.read(layout.replies.length.load(Ordering::Relaxed)))
    }

    /// A number that changes when something was posted or counted.
    #[inline]
    pub fn activity(&self) -> u32 {
        self.layout().activity.rings.load(Ordering::Acquire)
    }

    /// Sleeps until something is posted or counted, unless it was since `activity`; at
    /// most for `most`.
    pub fn sleep(&self, activity: u32, most: Option<Duration>) {
        let bell = &self.layout().activity;
        bell.sleep_unless(|| bell.rings() != activity, most);
    }

    /// The agent has gone, and is known not to live: wakes all who wait for it.
    pub fn wake_all(&self) {
        self.layout().replies.ring();
        self.layout().activity.ring();
    }

    /// Wakes those who sleep on the activity.
    pub fn note_activity(&self) {
        self.layout().activity.ring();
    }
}

/// The agent's side.
impl SharedRegion {
    /// Takes the next command after those that were seen. One that was posted comes
    /// before one that was asked later.
    pub fn next_command(&self, cursor: &mut Cursor) -> Option<ClientCommand> {
        let layout = self.layout();
        // Before the look at the posts, so that none is overtaken.
        let requests = layout.requests.messages();
        if let Some(post) = self.take_post(&mut cursor.posts) {
            return Some(ClientCommand::Posted(post));
        }
        if requests == cursor.requests {
            return None;
        }
        cursor.requests = requests;
        let length = layout.requests.length.load(Ordering::Relaxed);
        Some(ClientCommand::Requested(self.read(length)))
    }

    /// Answers the command that was taken; an answer too long is cut.
    pub fn reply(&self, answer: &[u8]) {
        let written = self.message().write(answer);
        self.layout().replies.announce(written as u32);
    }

    /// Sleeps until a command comes, unless one has that wasn't seen, or until
    /// [interrupted](Self::interrupt); not at all where it `is_over`.
    pub fn await_command(&self, cursor: &Cursor, is_over: impl FnOnce() -> bool) {
        let bell = &self.layout().requests;
        let comes =
            || bell.messages() != cursor.requests || self.has_posts(cursor.posts) || is_over();
        bell.sleep_unless(comes, None);
    }

    /// Wakes whoever awaits a command: there is something else to do. To be repeated
    /// until he has heard it, for a client may spoil the bell meanwhile.
    pub fn interrupt(&self) {
        self.layout().requests.ring();
        let rings = &self.layout().requests.rings;
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
        let region = Arc::new(SharedRegion::create().expect("the system has memory"));
        let (agent, done) = (region.clone(), Arc::new(AtomicBool::new(false)));
        let end = done.clone();
        let agent = std::thread::spawn(move || {
            let mut cursor = Cursor::default();
            let is_over = || end.load(Ordering::SeqCst);
            while !is_over() {
                match agent.next_command(&mut cursor) {
                    Some(ClientCommand::Requested(command)) => {
                        agent.reply(&[command.as_slice(), b"!"].concat());
                    }
                    Some(ClientCommand::Posted(post)) => panic!("nobody has posted {post:?}"),
                    None => agent.await_command(&cursor, is_over),
                }
            }
        });
        for number in 0..1000u32 {
            let command = number.to_ne_bytes();
            let answer = region.request(&command, || true).expect("the agent lives");
            assert_eq!(answer, [command.as_slice(), b"!"].concat());
        }
        done.store(true, Ordering::SeqCst);
        region.interrupt();
        agent.join().expect("nothing has failed");
    }

    #[test]
    fn waits_end_where_the_agent_does() {
        let region = Arc::new(SharedRegion::create().expect("the system has memory"));
        let lives = Arc::new(AtomicBool::new(true));
        let (shared, alive) = (region.clone(), lives.clone());
        let asks = move || shared.request(b"anyone?", || alive.load(Ordering::Relaxed));
        let (asks, shared) = (std::thread::spawn(asks), region.clone());
        let activity = region.activity();
        let listens = std::thread::spawn(move || shared.sleep(activity, None));
        let asleep = |bell: &Doorbell| bell.asleep.load(Ordering::SeqCst) > 0;
        while !asleep(&region.layout().replies) || !asleep(&region.layout().activity) {
            std::thread::yield_now();
        }
        lives.store(false, Ordering::SeqCst);
        region.wake_all();
        assert_eq!(asks.join().expect("nothing has failed"), Err(Disconnected));
        listens.join().expect("nothing has failed");
    }

    #[test]
    fn a_command_to_an_agent_that_has_gone_comes_back() {
        let region = SharedRegion::create().expect("the system has memory");
        assert_eq!(region.request(b"anyone?", || false), Err(Disconnected));
    }

    #[test]
    fn a_length_beyond_the_message_is_cut() {
        let region = SharedRegion::create().expect("the system has memory");
        region.layout().requests.announce(u32::MAX);
        match region.next_command(&mut Cursor::default()) {
            Some(ClientCommand::Requested(command)) => assert_eq!(command.len(), MESSAGE_BYTES),
            other => panic!("it was asked: {other:?}"),
        }
    }
}
