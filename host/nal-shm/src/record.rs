//! What a record in a ring is, and how it names lent memory.

use lintel_claim::{Claim, Key, RemoteSpan};
use lintel_nal::{Arrival, Origin, Payload, RemoteLoan};
use lintel_wire::Words;

/// The form of a record's payload, in bits of word 0 that messages leave free.
pub(crate) const FORM_SHIFT: u32 = 36;
pub(crate) const FORM_MASK: u64 = 7 << FORM_SHIFT;

/// What a record's payload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// All bytes of the message (eager).
    Inline = 0,
    /// Key, addresses and lengths in the sender (rendezvous).
    Lent = 1,
    /// The length of a stream that follows.
    Announced = 2,
    /// A part of it.
    Chunk = 3,
    /// The stream ends here, incomplete.
    Aborted = 4,
    /// No message: whether it is read shows whether the receiver polls.
    Probe = 5,
    /// Nothing: its bytes were copied to a direct entry, or from one.
    Placed = 6,
}

impl Form {
    pub(crate) fn of(words: &Words) -> Option<Form> {
        Some(match (words[0] & FORM_MASK) >> FORM_SHIFT {
            0 => Form::Inline,
            1 => Form::Lent,
            2 => Form::Announced,
            3 => Form::Chunk,
            4 => Form::Aborted,
            5 => Form::Probe,
            6 => Form::Placed,
            _ => return None,
        })
    }

    pub(crate) fn on(self, words: &Words) -> Words {
        let mut words = *words;
        words[0] |= (self as u64) << FORM_SHIFT;
        words
    }
}

/// The content of a record of lent memory: the key, and then the spans, two words each.
pub(crate) fn remote_loan(payload: Claim) -> Option<RemoteLoan> {
    let pair = |index| {
        let at = index * 16;
        Some((payload.load_u64(at)?, payload.load_u64(at + 8)?))
    };
    let (address, nonce) = pair(0)?;
    let spans = (1..payload.len() / 16).filter_map(pair);
    let spans = spans.map(|(address, length)| RemoteSpan { address, length });
    Some(RemoteLoan {
        key: Key { address, nonce },
        spans: spans.collect(),
    })
}

pub(crate) fn message(origin: Origin, mut words: Words, payload: Payload) -> Arrival {
    words[0] &= !FORM_MASK;
    Arrival::Message(origin, words, payload)
}
