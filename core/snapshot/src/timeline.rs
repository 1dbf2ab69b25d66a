//! What a process did with messages, and when: the file that it leaves for tools.

use crate::Awaited;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use lintel_types::ProcessId;
use serde::{Deserialize, Serialize};

/// The records of a process, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// The form of this file.
    pub form: u32,
    /// Names the run of the machine whose clock the records use.
    pub boot: String,
    /// What that clock's 0 was in nanoseconds since 1970, as this process saw it.
    pub clock_zero_ns: u64,
    /// Its node and process identifiers.
    pub process: ProcessId,
    /// The system's number of it.
    pub os_process: u32,
    /// Its rank, as its launcher says.
    pub rank: Option<u32>,
    /// Older records that later ones have replaced.
    pub lost: u64,
    /// What it did.
    pub records: Vec<Record>,
}

/// The present form.
pub const FORM: u32 = 2;

/// One thing that a process did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When it began, in nanoseconds of the machine's monotonic clock.
    pub at_ns: u64,
    /// How long it took, in nanoseconds.
    pub length_ns: u64,
    /// What it was.
    pub what: What,
}

/// What a process did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum What {
    /// Handed a message to the network.
    Sent(Message),
    /// Took a message from the network and handled it.
    Handled(Message),
    /// Posted an event.
    Event {
        /// Its kind (`ptl_event_kind_t`).
        kind: u8,
        /// The message that was handled meanwhile.
        cause: Option<(ProcessId, u64)>,
    },
    /// Slept in a call.
    Waited(Awaited),
    /// Returned from a call.
    Called {
        /// The function.
        name: Cow<'static, str>,
        /// The system's number of the thread.
        thread: i32,
    },
}

/// A message on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The process at the other end.
    pub peer: ProcessId,
    /// Which of the messages from the one process to the other it is.
    pub number: u64,
    /// Its header, as far as it is kept: verb and portal, length, match bits (words 0, 2 and 3); 0
    /// elsewhere.
    pub words: [u64; 6],
}

/// What the specification calls an event, without `PTL_EVENT_`.
pub fn event_name(kind: u8) -> &'static str {
    EVENTS.get(usize::from(kind)).copied().unwrap_or("?")
}

const EVENTS: [&str; 16] = [
    "GET",
    "GET_OVERFLOW",
    "PUT",
    "PUT_OVERFLOW",
    "ATOMIC",
    "ATOMIC_OVERFLOW",
    "FETCH_ATOMIC",
    "FETCH_ATOMIC_OVERFLOW",
    "REPLY",
    "SEND",
    "ACK",
    "PT_DISABLED",
    "LINK",
    "AUTO_UNLINK",
    "AUTO_FREE",
    "SEARCH",
];

impl Timeline {
    /// As bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("plain data on the heap")
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written; nothing if it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Timeline> {
        let timeline: Timeline = postcard::from_bytes(bytes).ok()?;
        (timeline.form == FORM).then_some(timeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::EventKind;

    #[test]
    fn events_have_the_specifications_names() {
        let names = [EventKind::Get, EventKind::Send, EventKind::Search];
        let names = names.map(|kind| event_name(kind as u8));
        assert_eq!(names, ["GET", "SEND", "SEARCH"]);
        assert_eq!(event_name(99), "?");
    }
}
