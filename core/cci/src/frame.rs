//! What one endpoint sends another, as the six words of a header.
//!
//! ```text
//!   word 0  high half: kind in the lowest byte, attribute or status above it
//!        1  the connection, by the receiver's name for it
//!        2  sequence number, low half
//!        3  the connection by the sender's name · handle's key · count · status · what the
//!           sender of a message has itself received
//!        4  largest message that the sender takes · offset
//!        5  length of a remote memory access
//! ```
//! The low half of word 0 is the network's.

use crate::connection::ConnectionId;
use crate::status::{Attribute, Status};
use lintel_wire::Words;

/// A frame; its bytes, if it has any, go beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// Asks for a connection; the request's data are its bytes.
    Connect {
        from: ConnectionId,
        attribute: Attribute,
        max_send: u32,
    },
    /// The server has accepted.
    Accept {
        to: ConnectionId,
        from: ConnectionId,
        max_send: u32,
    },
    /// The server has rejected.
    Reject { to: ConnectionId },
    /// The initiator has learned that it was accepted.
    Established { to: ConnectionId },
    /// A message on a reliable connection; as an [`Ack`](Self::Ack) of `received` it counts too.
    Message {
        to: ConnectionId,
        sequence: u32,
        received: u32,
    },
    /// A message on an unreliable connection.
    Unreliable { to: ConnectionId },
    /// All up to, without, `sequence` are in the receiver's library.
    Ack { to: ConnectionId, sequence: u32 },
    /// There was no buffer for `sequence`; it and what followed is to be retransmitted.
    NotReady { to: ConnectionId, sequence: u32 },
    /// There is a buffer again.
    Ready { to: ConnectionId },
    /// `count` numbers from `sequence` on are given up by the sender.
    Skip {
        to: ConnectionId,
        sequence: u32,
        count: u32,
    },
    /// Remote memory access; a write's data are its bytes, a read lends room for them.
    Rma {
        to: ConnectionId,
        sequence: u32,
        is_read: bool,
        key: u64,
        offset: u64,
        length: u64,
    },
    /// How the access `sequence` has ended; what a read returns are its bytes.
    RmaDone {
        to: ConnectionId,
        sequence: u32,
        status: Status,
    },
    /// The sender of this has no connection of that name.
    Reset { unknown: ConnectionId },
    /// Asks for a sign of life.
    Probe { to: ConnectionId },
    /// Is one.
    Alive { to: ConnectionId },
}

/// Whether the words are an acknowledgement of messages, for a host to which it costs more
/// than other frames without bytes.
pub fn is_acknowledgement(words: &Words) -> bool {
    matches!(Frame::parse(words), Ok(Frame::Ack { .. }))
}

/// The words are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

fn words(kind: u64, extra: u64, rest: [u64; 5]) -> Words {
    let [a, b, c, d, e] = rest;
    [(kind | extra << 8) << 32, a, b, c, d, e]
}

impl Frame {
    pub(crate) fn to_words(self) -> Words {
        let name = ConnectionId::bits;
        match self {
            Frame::Connect {
                from,
                attribute,
                max_send,
            } => words(1, attribute as u64, [0, 0, name(from), max_send.into(), 0]),
            Frame::Accept { to, from, max_send } => {
                words(2, 0, [name(to), 0, name(from), max_send.into(), 0])
            }
            Frame::Reject { to } => words(3, 0, [name(to), 0, 0, 0, 0]),
            Frame::Established { to } => words(4, 0, [name(to), 0, 0, 0, 0]),
            Frame::Message {
                to,
                sequence,
                received,
            } => words(5, 0, [name(to), sequence.into(), received.into(), 0, 0]),
            Frame::Unreliable { to } => words(6, 0, [name(to), 0, 0, 0, 0]),
            Frame::Ack { to, sequence } => words(7, 0, [name(to), sequence.into(), 0, 0, 0]),
            Frame::NotReady { to, sequence } => words(8, 0, [name(to), sequence.into(), 0, 0, 0]),
            Frame::Ready { to } => words(9, 0, [name(to), 0, 0, 0, 0]),
            Frame::Skip {
                to,
                sequence,
                count,
            } => words(10, 0, [name(to), sequence.into(), count.into(), 0, 0]),
            Frame::Rma {
                to,
                sequence,
                is_read,
                key,
                offset,
                length,
            } => words(
                11,
                is_read.into(),
                [name(to), sequence.into(), key, offset, length],
            ),
            Frame::RmaDone {
                to,
                sequence,
                status,
            } => words(12, 0, [name(to), sequence.into(), status as u64, 0, 0]),
            Frame::Reset { unknown } => words(13, 0, [name(unknown), 0, 0, 0, 0]),
            Frame::Probe { to } => words(14, 0, [name(to), 0, 0, 0, 0]),
            Frame::Alive { to } => words(15, 0, [name(to), 0, 0, 0, 0]),
        }
    }

    /// The frame in the words.
    ///
    /// # Errors
    /// [`Malformed`]
    pub(crate) fn parse(words: &Words) -> Result<Frame, Malformed> {
        let (kind, extra) = (words[0] >> 32 & 0xff, words[0] >> 40 & 0xff);
        let narrow = |word: u64| u32::try_from(word).map_err(|_| Malformed);
        let to = ConnectionId::from_bits(words[1]);
        let sequence = words[2] as u32;
        Ok(match kind {
            1 => Frame::Connect {
                from: ConnectionId::from_bits(words[3]),
                attribute: Attribute::from_value(extra)
                    .filter(|attribute| !attribute.is_multicast())
                    .ok_or(Malformed)?,
                max_send: narrow(words[4])?,
            },
            2 => Frame::Accept {
                to,
                from: ConnectionId::from_bits(words[3]),
                max_send: narrow(words[4])?,
            },
            3 => Frame::Reject { to },
            4 => Frame::Established { to },
            5 => Frame::Message {
                to,
                sequence,
                received: narrow(words[3])?,
            },
            6 => Frame::Unreliable { to },
            7 => Frame::Ack { to, sequence },
            8 => Frame::NotReady { to, sequence },
            9 => Frame::Ready { to },
            10 => Frame::Skip {
                to,
                sequence,
                count: narrow(words[3])?,
            },
            11 => Frame::Rma {
                to,
                sequence,
                is_read: extra != 0,
                key: words[3],
                offset: words[4],
                length: words[5],
            },
            12 => Frame::RmaDone {
                to,
                sequence,
                status: Status::from_value(narrow(words[3])?).ok_or(Malformed)?,
            },
            13 => Frame::Reset { unknown: to },
            14 => Frame::Probe { to },
            15 => Frame::Alive { to },
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_survives_its_words() {
        let to = ConnectionId::from_bits(0x0102_0304_0506_0708);
        let from = ConnectionId::from_bits(9);
        let sequence = u32::MAX;
        let frames = [
            Frame::Connect {
                from,
                attribute: Attribute::Uu,
                max_send: 7,
            },
            Frame::Accept {
                to,
                from,
                max_send: 8,
            },
            Frame::Reject { to },
            Frame::Established { to },
            Frame::Message {
                to,
                sequence,
                received: 5,
            },
            Frame::Unreliable { to },
            Frame::Ack { to, sequence },
            Frame::NotReady { to, sequence },
            Frame::Ready { to },
            Frame::Skip {
                to,
                sequence,
                count: 3,
            },
            Frame::Rma {
                to,
                sequence,
                is_read: true,
                key: 1,
                offset: u64::MAX,
                length: 3,
            },
            Frame::RmaDone {
                to,
                sequence,
                status: Status::RmaOperation,
            },
            Frame::Reset { unknown: to },
            Frame::Probe { to },
            Frame::Alive { to },
        ];
        for frame in frames {
            let mut words = frame.to_words();
            words[0] |= 0xffff_ffff;
            assert_eq!(Frame::parse(&words), Ok(frame));
        }
    }

    #[test]
    fn words_that_are_no_frame_are_refused() {
        for kind in (16..256).chain([0]) {
            assert_eq!(Frame::parse(&[kind << 32, 0, 0, 0, 0, 0]), Err(Malformed));
        }
        let connect_with_attribute_3 = [(1 | 3 << 8) << 32, 0, 0, 0, 0, 0];
        assert_eq!(Frame::parse(&connect_with_attribute_3), Err(Malformed));
        let done_with_status_9 = [12 << 32, 0, 0, 9, 0, 0];
        assert_eq!(Frame::parse(&done_with_status_9), Err(Malformed));
    }
}
