//! Commands and answers, as bytes: one request at a time goes to the agent and its answer
//! comes back; commands that need no answer go through the [queue of
//! posts](crate::post_queue), in the same order. And the activity counter, which shows that
//! something was posted to a queue or counted.

use crate::doorbell::Disconnected;
use crate::post_queue::POST_BYTES;
use crate::region::{MESSAGE_BYTES, SharedRegion};
use std::time::Duration;

/// How far an agent has taken a client's commands.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    requests: u32,
    posts: u64,
}

/// A client's next command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientCommand {
    /// A command that needs no answer.
    Posted(Vec<u8>),
    /// A command that the agent must [answer](SharedRegion::reply).
    Requested(Vec<u8>),
}

/// What the client calls. One thread at a time may have a command in flight.
impl SharedRegion {
    /// Sends a command to the agent and waits for the answer. `is_alive` says whether the
    /// agent is known to have gone; a waiter asks it again after
    /// [`wake_all`](Self::wake_all).
    ///
    /// # Errors
    /// [`Disconnected`]
    ///
    /// # Panics
    /// If the command is longer than [`MESSAGE_BYTES`].
    pub fn request(
        &self,
        command: &[u8],
        is_alive: impl Fn() -> bool,
    ) -> Result<Vec<u8>, Disconnected> {
        assert!(command.len() <= MESSAGE_BYTES, "the caller checks");
        let layout = self.layout();
        let before = layout.replies.messages();
        self.message().write(command);
        layout.requests.announce(command.len() as u32);
        let answered = || layout.replies.messages() != before;
        layout.replies.wait_for(answered, is_alive)?;
        Ok(self.read_message(layout.replies.length()))
    }

    /// Posts a command, once a slot is free. `is_alive` as in [`request`](Self::request).
    ///
    /// # Errors
    /// [`Disconnected`]
    ///
    /// # Panics
    /// If the command is longer than [`POST_BYTES`].
    pub fn post(&self, command: &[u8], is_alive: impl Fn() -> bool) -> Result<(), Disconnected> {
        assert!(command.len() <= POST_BYTES, "the caller checks");
        let layout = self.layout();
        let (requests, replies) = (&layout.requests, &layout.replies);
        layout.posts.post(command, requests, replies, is_alive)
    }

    /// A number that changes when something is posted or counted.
    #[inline]
    pub fn activity(&self) -> u32 {
        self.layout().activity.rings_relaxed()
    }

    /// Sleeps until something is posted or counted, unless it was since `activity`; at
    /// most for `most`.
    pub fn sleep(&self, activity: u32, most: Option<Duration>) {
        let bell = &self.layout().activity;
        bell.sleep_unless(|| bell.rings() != activity, most);
    }

    /// Wakes all that wait for the agent, which is known to have gone.
    pub fn wake_all(&self) {
        self.layout().replies.ring();
        self.layout().activity.ring();
    }

    /// Something was posted or counted: wakes the client's waiters.
    pub fn note_activity(&self) {
        self.layout().activity.ring();
    }
}

/// What the agent calls: it takes commands and answers them.
impl SharedRegion {
    /// Takes the next command after those that the cursor has passed. A posted one comes
    /// before one that was requested later.
    pub fn next_command(&self, cursor: &mut Cursor) -> Option<ClientCommand> {
        let layout = self.layout();
        // Loaded before the posts are looked at, so that no request overtakes a post.
        let requests = layout.requests.messages();
        if let Some(post) = layout.posts.take(&mut cursor.posts, &layout.replies) {
            return Some(ClientCommand::Posted(post));
        }
        if requests == cursor.requests {
            return None;
        }
        cursor.requests = requests;
        let command = self.read_message(layout.requests.length());
        Some(ClientCommand::Requested(command))
    }

    /// Answers the command that was taken; an answer that doesn't fit is cut.
    pub fn reply(&self, answer: &[u8]) {
        let written = self.message().write(answer);
        self.layout().replies.announce(written as u32);
    }

    /// Sleeps until a command is there that the cursor hasn't passed, or until
    /// [interrupted](Self::interrupt); not at all if `is_over`.
    pub fn await_command(&self, cursor: &Cursor, is_over: impl FnOnce() -> bool) {
        let layout = self.layout();
        let arrived = || {
            layout.requests.messages() != cursor.requests
                || layout.posts.has_posts(cursor.posts)
                || is_over()
        };
        layout.requests.sleep_unless(arrived, None);
    }

    /// Wakes the thread that awaits a command, for another reason. Repeat it until the thread
    /// reacts: the client may overwrite the doorbell meanwhile.
    pub fn interrupt(&self) {
        self.layout().requests.ring_always();
    }

    fn read_message(&self, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; (length as usize).min(MESSAGE_BYTES)];
        self.message().read(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post_queue::POSTS;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn region() -> Arc<SharedRegion> {
        Arc::new(SharedRegion::create().expect("the system has memory"))
    }

    #[test]
    fn commands_are_answered_one_by_one() {
        let region = region();
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
        let region = region();
        let lives = Arc::new(AtomicBool::new(true));
        let (shared, alive) = (region.clone(), lives.clone());
        let asks = move || shared.request(b"anyone?", || alive.load(Ordering::Relaxed));
        let (asks, shared) = (std::thread::spawn(asks), region.clone());
        let activity = region.activity();
        let listens = std::thread::spawn(move || shared.sleep(activity, None));
        let layout = region.layout();
        while !layout.replies.has_sleepers() || !layout.activity.has_sleepers() {
            std::thread::yield_now();
        }
        lives.store(false, Ordering::SeqCst);
        region.wake_all();
        assert_eq!(asks.join().expect("nothing has failed"), Err(Disconnected));
        listens.join().expect("nothing has failed");
    }

    #[test]
    fn a_command_to_an_agent_that_has_gone_comes_back() {
        let region = region();
        assert_eq!(region.request(b"anyone?", || false), Err(Disconnected));
    }

    #[test]
    fn a_length_beyond_the_message_is_cut() {
        let region = region();
        region.layout().requests.announce(u32::MAX);
        match region.next_command(&mut Cursor::default()) {
            Some(ClientCommand::Requested(command)) => assert_eq!(command.len(), MESSAGE_BYTES),
            other => panic!("it was asked: {other:?}"),
        }
    }

    #[test]
    fn posts_are_taken_in_order_however_many_there_are() {
        const COUNT: u64 = 20 * POSTS;
        let region = region();
        let agent = region.clone();
        let agent = std::thread::spawn(move || {
            let (mut cursor, mut taken) = (Cursor::default(), 0);
            while taken < COUNT {
                match agent.next_command(&mut cursor) {
                    Some(ClientCommand::Posted(post)) => {
                        assert_eq!(post, vec![taken as u8; (taken % 249) as usize]);
                        taken += 1;
                    }
                    Some(ClientCommand::Requested(command)) => {
                        panic!("nobody has asked {command:?}")
                    }
                    None => agent.await_command(&cursor, || false),
                }
            }
        });
        for number in 0..COUNT {
            let command = vec![number as u8; (number % 249) as usize];
            region.post(&command, || true).expect("the agent lives");
        }
        agent.join().expect("nothing has failed");
    }

    #[test]
    fn what_is_asked_comes_after_what_was_posted() {
        let region = region();
        for number in 0..3 {
            region.post(&[number], || true).expect("there is room");
        }
        assert_eq!(region.request(b"then", || false), Err(Disconnected));
        let mut cursor = Cursor::default();
        for number in 0..3 {
            assert_eq!(
                region.next_command(&mut cursor),
                Some(ClientCommand::Posted(vec![number]))
            );
        }
        assert_eq!(
            region.next_command(&mut cursor),
            Some(ClientCommand::Requested(b"then".to_vec()))
        );
        assert_eq!(region.next_command(&mut cursor), None);
    }
}
