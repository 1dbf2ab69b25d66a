//! Commands that need no answer: the client posts them one after the other, the agent
//! takes them in that order when it comes to it. They are short; the slots are few, and
//! stay in the cache.
//!
//! ```text
//!   client: tail ──▶ │ 7 │ 8 │ 9 │   │   │ 6 │ ◀── head: agent
//! ```

use crate::mailbox::Disconnected;
use crate::region::SharedRegion;
use std::sync::atomic::{AtomicU64, Ordering};

/// Commands that wait at most.
const POSTS: u64 = 256;
/// Words of one, and one for its length.
const WORDS: usize = 31;
/// Bytes of the longest.
pub const POST_BYTES: usize = WORDS * 8;

/// A word in cache lines of its own.
#[repr(C, align(128))]
struct End(AtomicU64);

#[repr(C)]
struct Slot {
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The posts of a client.
#[repr(C)]
pub(crate) struct Posts {
    /// How many the client has posted.
    tail: End,
    /// How many the agent has taken.
    head: End,
    slots: [Slot; POSTS as usize],
}

impl Posts {
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[(number % POSTS) as usize]
    }

    fn has_room(&self, tail: u64) -> bool {
        // Pairs with the store in take_post ("the slot was read").
        tail.wrapping_sub(self.head.0.load(Ordering::SeqCst)) < POSTS
    }
}

impl Slot {
    fn write(&self, command: &[u8]) {
        for (word, bytes) in self.words.iter().zip(command.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.length.store(command.len() as u64, Ordering::Relaxed);
    }

    fn read(&self) -> Vec<u8> {
        let length = self.length.load(Ordering::Relaxed).min(POST_BYTES as u64) as usize;
        let mut bytes = Vec::with_capacity(POST_BYTES);
        for word in &self.words[..length.div_ceil(8)] {
            bytes.extend(word.load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

impl SharedRegion {
    /// Posts a command, once there is room; `lives` tells whether the agent does. One
    /// thread at a time may post.
    ///
    /// # Errors
    /// [`Disconnected`]
    ///
    /// # Panics
    /// Where the command is longer than [`POST_BYTES`].
    pub fn post(&self, command: &[u8], is_alive: impl Fn() -> bool) -> Result<(), Disconnected> {
        assert!(command.len() <= POST_BYTES, "the caller has looked");
        let (posts, layout) = (&self.layout().posts, self.layout());
        let tail = posts.tail.0.load(Ordering::Relaxed);
        layout.replies.wait_for(|| posts.has_room(tail), is_alive)?;
        posts.slot(tail).write(command);
        // Pairs with the load in has_posts ("the command is there").
        posts.tail.0.store(tail.wrapping_add(1), Ordering::SeqCst);
        layout.requests.ring_sleepers();
        Ok(())
    }

    /// Whether there are posts beyond those that were taken.
    pub(crate) fn has_posts(&self, taken: u64) -> bool {
        self.layout().posts.tail.0.load(Ordering::SeqCst) != taken
    }

    /// Takes the next post, where there is one.
    pub(crate) fn take_post(&self, taken: &mut u64) -> Option<Vec<u8>> {
        if !self.has_posts(*taken) {
            return None;
        }
        let posts = &self.layout().posts;
        let command = posts.slot(*taken).read();
        *taken = taken.wrapping_add(1);
        posts.head.0.store(*taken, Ordering::SeqCst);
        // Whoever waits for room.
        self.layout().replies.ring_sleepers();
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{ClientCommand, Cursor};
    use std::sync::Arc;

    fn region() -> Arc<SharedRegion> {
        Arc::new(SharedRegion::create().expect("the system has memory"))
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

    #[test]
    fn posts_to_an_agent_that_has_gone_come_back() {
        let region = region();
        let posted = (0..=POSTS).map(|_| region.post(b"anyone?", || false));
        assert_eq!(posted.filter(|posted| posted.is_err()).count(), 1);
    }

    #[test]
    fn whatever_a_client_writes_a_post_is_short() {
        let region = region();
        let posts = &region.layout().posts;
        posts.slot(0).length.store(u64::MAX, Ordering::Relaxed);
        posts.tail.0.store(u64::MAX, Ordering::Relaxed);
        match region.next_command(&mut Cursor::default()) {
            Some(ClientCommand::Posted(post)) => assert_eq!(post.len(), POST_BYTES),
            other => panic!("it was posted: {other:?}"),
        }
    }
}
