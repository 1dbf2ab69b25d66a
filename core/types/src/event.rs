//! Events, as `PtlEQGet` returns them.

use crate::ProcessId;

/// The kind of an event: `ptl_event_kind_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)] // the specification's own names
pub enum EventKind {
    Get = 0,
    GetOverflow = 1,
    Put = 2,
    PutOverflow = 3,
    Atomic = 4,
    AtomicOverflow = 5,
    FetchAtomic = 6,
    FetchAtomicOverflow = 7,
    Reply = 8,
    Send = 9,
    Ack = 10,
    PtDisabled = 11,
    Link = 12,
    AutoUnlink = 13,
    AutoFree = 14,
    Search = 15,
}

/// How an operation ended: `ptl_ni_fail_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum NiFail {
    /// The operation succeeded; the lengths of the event are what was moved.
    #[default]
    Ok = 0,
    /// The message could not reach its target.
    Undeliverable = 1,
    /// No entry at the target matched.
    Dropped = 2,
    /// The portal table entry was disabled.
    PtDisabled = 3,
    /// The entry belongs to another user.
    PermViolation = 4,
    /// The entry doesn't allow the operation.
    OpViolation = 5,
    /// The search found nothing.
    NoMatch = 6,
    /// The memory at the target can't be touched.
    Segv = 7,
}

impl NiFail {
    /// The failure with this number, `Undeliverable` for a number that isn't one.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        const ALL: [NiFail; 8] = [
            NiFail::Ok,
            NiFail::Undeliverable,
            NiFail::Dropped,
            NiFail::PtDisabled,
            NiFail::PermViolation,
            NiFail::OpViolation,
            NiFail::NoMatch,
            NiFail::Segv,
        ];
        match bits < 8 {
            true => ALL[bits as usize],
            false => Self::Undeliverable,
        }
    }
}

/// Which list of a portal table entry: `ptl_list_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum List {
    /// `PTL_PRIORITY_LIST`: searched first, for messages that were expected.
    #[default]
    Priority = 0,
    /// `PTL_OVERFLOW_LIST`: for messages that no priority entry matches.
    Overflow = 1,
}

/// A full event, field for field `ptl_event_t` (80 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Event {
    /// Address of the first byte that was touched, 0 if none was.
    pub start: u64,
    /// The caller's value, given with the entry or operation.
    pub user_ptr: u64,
    /// Out-of-band data of the initiator.
    pub hdr_data: u64,
    /// Match bits of the message.
    pub match_bits: u64,
    /// Bytes that the initiator asked for.
    pub rlength: u64,
    /// Bytes that were moved: less than `rlength` if the message was truncated.
    pub mlength: u64,
    /// At the target the requested offset, at the initiator the one used; bytes.
    pub remote_offset: u64,
    /// The process or rank that started the operation.
    pub initiator: ProcessId,
    /// The user that the initiator's process belongs to.
    pub uid: u32,
    /// Portal table index at the target.
    pub pt_index: u32,
    /// Which of the sixteen events it is.
    pub kind: EventKind,
    /// The list whose entry the message matched.
    pub list: List,
    /// Success, or the reason of the failure.
    pub ni_fail: NiFail,
    /// `ptl_op_t` of an atomic.
    pub operation: u8,
    /// `ptl_datatype_t` of an atomic.
    pub datatype: u8,
}

impl Event {
    /// Number of 64-bit words in an event.
    pub const WORDS: usize = 10;

    /// An event with its kind; everything else is 0.
    pub const fn new(kind: EventKind) -> Self {
        Event {
            start: 0,
            user_ptr: 0,
            hdr_data: 0,
            match_bits: 0,
            rlength: 0,
            mlength: 0,
            remote_offset: 0,
            initiator: ProcessId { nid: 0, pid: 0 },
            uid: 0,
            pt_index: 0,
            kind,
            list: List::Priority,
            ni_fail: NiFail::Ok,
            operation: 0,
            datatype: 0,
        }
    }

    /// The event as words, for queues that hold atomics.
    #[inline]
    pub const fn to_words(&self) -> [u64; Self::WORDS] {
        [
            self.start,
            self.user_ptr,
            self.hdr_data,
            self.match_bits,
            self.rlength,
            self.mlength,
            self.remote_offset,
            self.initiator.nid as u64 | (self.initiator.pid as u64) << 32,
            self.uid as u64 | (self.pt_index as u64) << 32,
            self.kind as u64
                | (self.list as u64) << 8
                | (self.ni_fail as u64) << 16
                | (self.operation as u64) << 24
                | (self.datatype as u64) << 32,
        ]
    }

    /// The event that [`to_words`](Self::to_words) took apart.
    #[inline]
    pub const fn from_words(words: &[u64; Self::WORDS]) -> Self {
        Event {
            start: words[0],
            user_ptr: words[1],
            hdr_data: words[2],
            match_bits: words[3],
            rlength: words[4],
            mlength: words[5],
            remote_offset: words[6],
            initiator: ProcessId {
                nid: words[7] as u32,
                pid: (words[7] >> 32) as u32,
            },
            uid: words[8] as u32,
            pt_index: (words[8] >> 32) as u32,
            kind: EventKind::from_bits(words[9] as u8),
            list: if words[9] & 0x100 == 0 {
                List::Priority
            } else {
                List::Overflow
            },
            ni_fail: NiFail::from_bits((words[9] >> 16) as u8),
            operation: (words[9] >> 24) as u8,
            datatype: (words[9] >> 32) as u8,
        }
    }
}

impl EventKind {
    const ALL: [EventKind; 16] = [
        EventKind::Get,
        EventKind::GetOverflow,
        EventKind::Put,
        EventKind::PutOverflow,
        EventKind::Atomic,
        EventKind::AtomicOverflow,
        EventKind::FetchAtomic,
        EventKind::FetchAtomicOverflow,
        EventKind::Reply,
        EventKind::Send,
        EventKind::Ack,
        EventKind::PtDisabled,
        EventKind::Link,
        EventKind::AutoUnlink,
        EventKind::AutoFree,
        EventKind::Search,
    ];

    /// The kind with this number; only the low four bits count.
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 15) as usize]
    }
}

/// A counting event's value: `ptl_ct_event_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct CountingEvent {
    /// Successful operations, or bytes.
    pub success: u64,
    /// Number of failed operations.
    pub failure: u64,
}

impl CountingEvent {
    /// Successes and failures: the value that a threshold is compared with.
    #[inline]
    pub const fn sum(self) -> u64 {
        self.success.wrapping_add(self.failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_its_words() {
        let event = Event {
            start: 1,
            user_ptr: 2,
            hdr_data: 3,
            match_bits: 4,
            rlength: 5,
            mlength: 6,
            remote_offset: 7,
            initiator: ProcessId::new(8, 9),
            uid: 10,
            pt_index: 11,
            kind: EventKind::Search,
            list: List::Overflow,
            ni_fail: NiFail::Segv,
            operation: 17,
            datatype: 13,
        };
        assert_eq!(Event::from_words(&event.to_words()), event);
    }

    #[test]
    fn an_event_has_the_size_of_the_c_structure() {
        assert_eq!(size_of::<Event>(), 80);
    }

    #[test]
    fn fields_with_all_bits_set_stay_apart() {
        let event = Event {
            initiator: ProcessId::new(u32::MAX, u32::MAX),
            uid: u32::MAX,
            pt_index: u32::MAX,
            kind: EventKind::Search,
            list: List::Priority,
            ni_fail: NiFail::Segv,
            operation: 0xff,
            datatype: 0xff,
            ..Event::new(EventKind::Get)
        };
        assert_eq!(Event::from_words(&event.to_words()), event);
    }

    #[test]
    fn a_failure_is_known_by_its_number_and_others_are_undeliverable() {
        for number in 0..=u8::MAX {
            let expected = if number < 8 { number } else { 1 };
            assert_eq!(NiFail::from_bits(number) as u8, expected, "{number}");
        }
    }

    #[test]
    fn a_kind_is_known_by_the_low_four_bits_of_its_number() {
        for number in 0..=u8::MAX {
            assert_eq!(EventKind::from_bits(number) as u8, number & 15);
        }
    }

    #[test]
    fn a_threshold_is_compared_with_successes_and_failures() {
        let value = CountingEvent {
            success: 3,
            failure: 4,
        };
        assert_eq!(value.sum(), 7);
    }
}
