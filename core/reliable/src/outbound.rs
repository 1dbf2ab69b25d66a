//! [`Outbound`]: a message that is cut into parts.

use crate::packet::{Class, FIRST_BYTES, FURTHER_BYTES, Fragment, GAP_BYTES, WHOLE_BYTES};
use lintel_wire::Words;

/// A message to be sent.
pub struct Message<B> {
    /// How it is delivered.
    pub class: Class,
    /// The header words that arrive with it, unread by this crate.
    pub words: Words,
    /// Bytes of its body.
    pub length: u64,
    /// Bytes of memory that it takes until it is acknowledged.
    pub memory: u64,
    /// Its sender waits for the acknowledgement: the last packet requests it.
    pub is_awaited: bool,
    /// Where the body is; returned by `Endpoint::take_finished` once it is acknowledged.
    pub body: B,
}

/// A message that isn't acknowledged yet.
pub(crate) struct Outbound<B> {
    pub(crate) message: Message<B>,
    /// Bytes that were sent at least once.
    pub(crate) sent: u64,
    /// Every part was sent at least once.
    pub(crate) is_sent: bool,
    /// All of it is acknowledged, or was sent without wanting to be.
    pub(crate) is_finished: bool,
    /// It may answer a stream that is still arriving, and waits for its end.
    pub(crate) is_held: bool,
    /// Its body was recalled after a part was sent.
    pub(crate) is_void: bool,
}

impl<B> Outbound<B> {
    pub(crate) fn new(message: Message<B>, is_held: bool) -> Self {
        Outbound {
            message,
            sent: 0,
            is_sent: false,
            is_finished: false,
            is_held,
            is_void: false,
        }
    }

    /// The body, of which parts are sent.
    pub(crate) fn body(&self) -> &B {
        &self.message.body
    }

    /// Length of the next part in datagrams of that size. The first of several takes what
    /// would be left over for the last: it is the one that a receiver must copy.
    #[inline]
    fn next_length(&self, max_datagram: u32) -> u32 {
        let room = |ahead: usize| u64::from(max_datagram) - (ahead + GAP_BYTES) as u64;
        let rest = self.message.length - self.sent;
        let most = match self.sent {
            0 if rest <= room(WHOLE_BYTES) => rest,
            0 => match rest % room(FURTHER_BYTES) {
                0 => room(FIRST_BYTES),
                over => over.min(room(FIRST_BYTES)),
            },
            _ => room(FURTHER_BYTES),
        };
        rest.min(most) as u32
    }

    #[inline]
    pub(crate) fn take_part(&mut self, length: u32) -> u64 {
        let offset = self.sent;
        self.sent += u64::from(length);
        self.is_sent = self.is_void || self.sent == self.message.length;
        offset
    }

    /// The next part that wasn't sent yet; of a void message, all that is left.
    #[inline]
    pub(crate) fn next_part(&self, message: usize, max_datagram: u32) -> Part {
        let length = match self.is_void {
            true => 0,
            false => self.next_length(max_datagram),
        };
        Part {
            message,
            offset: self.sent,
            length,
            is_last: self.is_void || self.sent + u64::from(length) == self.message.length,
            retransmitted: None,
        }
    }

    #[inline]
    pub(crate) fn fragment(&self, part: &Part) -> Fragment {
        let is_whole = part.offset == 0 && part.is_last;
        let length = if self.is_void { 0 } else { part.length };
        Fragment {
            class: self.message.class,
            words: (part.offset == 0).then_some(self.message.words),
            last: part.is_last,
            total: match is_whole {
                true => length.into(),
                false => self.message.length,
            },
            offset: part.offset,
            length,
            checksum: None,
            is_void: self.is_void,
        }
    }
}

/// What to send next.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Index of its message among those that aren't acknowledged.
    pub(crate) message: usize,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The message ends with it.
    pub(crate) is_last: bool,
    /// Index among the unacknowledged packets, if it was sent before.
    pub(crate) retransmitted: Option<usize>,
}
