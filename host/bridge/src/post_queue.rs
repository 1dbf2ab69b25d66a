//! Commands that need no answer: the client posts them one after the other, the agent
//! takes them in that order. They are short; the slots are few, and
//! stay in the cache.
//!
//! ```text
//!   client: tail ──▶ │ 7 │ 8 │ 9 │   │   │ 6 │ ◀── head: agent
//! ```

use crate::doorbell::{Disconnected, Doorbell};
use crate::sync::{AtomicU64, Ordering};

/// Commands that can wait.
pub(crate) const POSTS: u64 = if cfg!(loom) { 2 } else { 256 };
/// Words of the longest command; a slot has one more, for the length.
const WORDS: usize = if cfg!(loom) { 1 } else { 31 };
/// Bytes of the longest command that can be posted.
pub const POST_BYTES: usize = WORDS * 8;

/// A word in cache lines of its own.
#[repr(C, align(128))]
struct End(AtomicU64);

#[repr(C)]
struct Slot {
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The queue as it lies in the shared region. The client writes the tail and the slots,
/// the agent the head; the agent trusts neither.
#[repr(C)]
pub(crate) struct PostQueue {
    /// Commands that the client has posted so far.
    tail: End,
    /// Commands that the agent has taken so far.
    head: End,
    slots: [Slot; POSTS as usize],
}

impl PostQueue {
    /// A queue outside shared memory, whose zeros are an empty one.
    #[cfg(test)]
    pub(crate) fn new() -> PostQueue {
        let slot = || Slot {
            length: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        PostQueue {
            tail: End(AtomicU64::new(0)),
            head: End(AtomicU64::new(0)),
            slots: std::array::from_fn(|_| slot()),
        }
    }

    /// Called by the client: posts a command once a slot is free, and rings `requests`. Waits
    /// on `replies`. One thread at a time may post.
    pub(crate) fn post(
        &self,
        command: &[u8],
        requests: &Doorbell,
        replies: &Doorbell,
        is_alive: impl Fn() -> bool,
    ) -> Result<(), Disconnected> {
        let tail = self.tail.0.load(Ordering::Relaxed);
        replies.wait_for(|| self.has_free_slot(tail), is_alive)?;
        self.slot(tail).write(command);
        // Pairs with the load in `has_posts` ("the command is there").
        self.tail.0.store(tail.wrapping_add(1), Ordering::SeqCst);
        requests.ring_sleepers();
        Ok(())
    }

    fn has_free_slot(&self, tail: u64) -> bool {
        // Pairs with the store in `take` ("the slot was read").
        tail.wrapping_sub(self.head.0.load(Ordering::SeqCst)) < POSTS
    }

    /// Whether there are posts beyond those that were taken.
    pub(crate) fn has_posts(&self, taken: u64) -> bool {
        self.tail.0.load(Ordering::SeqCst) != taken
    }

    /// Called by the agent: takes the next post, if there is one. A client that waits for a
    /// free slot is rung by `replies`.
    pub(crate) fn take(&self, taken: &mut u64, replies: &Doorbell) -> Option<Vec<u8>> {
        if !self.has_posts(*taken) {
            return None;
        }
        let command = self.slot(*taken).read();
        *taken = taken.wrapping_add(1);
        // Pairs with the load in `has_free_slot` ("the slot was read").
        self.head.0.store(*taken, Ordering::SeqCst);
        replies.ring_sleepers();
        Some(command)
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[(number % POSTS) as usize]
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn post(posts: &PostQueue, command: &[u8]) -> Result<(), Disconnected> {
        posts.post(command, &Doorbell::new(), &Doorbell::new(), || false)
    }

    fn take(posts: &PostQueue, taken: &mut u64) -> Option<Vec<u8>> {
        posts.take(taken, &Doorbell::new())
    }

    #[test]
    fn posts_are_taken_in_order_and_whole_whatever_their_length() {
        let (posts, mut taken) = (PostQueue::new(), 0);
        for length in 0..=POST_BYTES {
            let command: Vec<u8> = (0..length).map(|at| (at + length) as u8).collect();
            post(&posts, &command).expect("there is a free slot");
            assert_eq!(take(&posts, &mut taken), Some(command));
        }
        assert_eq!(take(&posts, &mut taken), None);
    }

    #[test]
    fn a_full_queue_refuses_one_post_if_the_agent_has_gone() {
        let posts = PostQueue::new();
        let posted = (0..=POSTS).map(|_| post(&posts, b"anyone?"));
        assert_eq!(posted.filter(|posted| posted.is_err()).count(), 1);
    }

    #[test]
    fn whatever_a_client_writes_a_post_is_short() {
        let posts = PostQueue::new();
        posts.slot(0).length.store(u64::MAX, Ordering::Relaxed);
        posts.tail.0.store(u64::MAX, Ordering::Relaxed);
        let post = take(&posts, &mut 0).expect("the tail says so");
        assert_eq!(post.len(), POST_BYTES);
    }
}
