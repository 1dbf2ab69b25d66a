//! Events, as `PtlEQGet` returns them.

use crate::portals3::{MdOptions, MemoryDescriptor};
use crate::{Handle, ProcessId};

/// `PTL_NI_OK`: the operation succeeded.
pub const NI_OK: u32 = 0;
/// `PTL_NI_FAIL`: the operation began and couldn't complete.
pub const NI_FAIL: u32 = 1;

/// The kind of an event: `ptl_event_kind_t`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(i32)]
#[allow(missing_docs)] // the specification's own names
pub enum EventKind {
    GetStart = 0,
    GetEnd = 1,
    PutStart = 2,
    PutEnd = 3,
    GetPutStart = 4,
    GetPutEnd = 5,
    ReplyStart = 6,
    ReplyEnd = 7,
    SendStart = 8,
    SendEnd = 9,
    Ack = 10,
    Unlink = 11,
}

impl EventKind {
    /// Every kind, in the order of their values.
    pub const ALL: [EventKind; 12] = [
        EventKind::GetStart,
        EventKind::GetEnd,
        EventKind::PutStart,
        EventKind::PutEnd,
        EventKind::GetPutStart,
        EventKind::GetPutEnd,
        EventKind::ReplyStart,
        EventKind::ReplyEnd,
        EventKind::SendStart,
        EventKind::SendEnd,
        EventKind::Ack,
        EventKind::Unlink,
    ];

    /// The kind with this number, `Unlink` for a number that isn't one.
    pub const fn from_bits(bits: u32) -> Self {
        if bits < Self::ALL.len() as u32 {
            Self::ALL[bits as usize]
        } else {
            EventKind::Unlink
        }
    }
}

/// An event, field for field `ptl_event_t` (144 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Event {
    /// Which of the twelve events it is.
    pub kind: EventKind,
    /// The process that started the operation; in an acknowledgement or reply, the target.
    pub initiator: ProcessId,
    /// The initiator's user.
    pub uid: u32,
    /// The initiator's job.
    pub jid: u32,
    /// Portal table index at the target.
    pub pt_index: u32,
    /// Match bits of the request.
    pub match_bits: u64,
    /// Requested length, bytes.
    pub rlength: u64,
    /// Manipulated length, bytes.
    pub mlength: u64,
    /// Bytes from the start of the descriptor's memory.
    pub offset: u64,
    /// The descriptor that the event is about.
    pub md_handle: Handle,
    /// The descriptor's state after the operation.
    pub md: MemoryDescriptor,
    /// Out-of-band data of the initiator.
    pub hdr_data: u64,
    /// Joins the END event of an operation to its START event.
    pub link: u32,
    /// [`NI_OK`], or [`NI_FAIL`].
    pub ni_fail: u32,
    /// Number of the event in its queue.
    pub sequence: u32,
}

impl Event {
    /// Number of 64-bit words in an event.
    pub const WORDS: usize = 18;

    /// An event about a descriptor; everything else is 0.
    pub const fn new(kind: EventKind, md_handle: Handle, md: MemoryDescriptor) -> Self {
        Event {
            kind,
            initiator: ProcessId { nid: 0, pid: 0 },
            uid: 0,
            jid: 0,
            pt_index: 0,
            match_bits: 0,
            rlength: 0,
            mlength: 0,
            offset: 0,
            md_handle,
            md,
            hdr_data: 0,
            link: 0,
            ni_fail: NI_OK,
            sequence: 0,
        }
    }

    /// The event as words, for queues that hold atomics: the bytes of `ptl_event_t`.
    #[inline]
    pub const fn to_words(&self) -> [u64; Self::WORDS] {
        [
            pair(self.kind as u32, self.initiator.nid),
            pair(self.initiator.pid, self.uid),
            pair(self.jid, self.pt_index),
            self.match_bits,
            self.rlength,
            self.mlength,
            self.offset,
            self.md_handle.0 as u64,
            self.md.start,
            self.md.length,
            self.md.threshold as u32 as u64,
            self.md.max_size,
            self.md.options.bits() as u64,
            self.md.user_ptr,
            self.md.queue.0 as u64,
            self.hdr_data,
            pair(self.link, self.ni_fail),
            self.sequence as u64,
        ]
    }

    /// The event that [`to_words`](Self::to_words) took apart.
    #[inline]
    pub const fn from_words(words: &[u64; Self::WORDS]) -> Self {
        Event {
            kind: EventKind::from_bits(words[0] as u32),
            initiator: ProcessId {
                nid: (words[0] >> 32) as u32,
                pid: words[1] as u32,
            },
            uid: (words[1] >> 32) as u32,
            jid: words[2] as u32,
            pt_index: (words[2] >> 32) as u32,
            match_bits: words[3],
            rlength: words[4],
            mlength: words[5],
            offset: words[6],
            md_handle: Handle(words[7] as u32),
            md: MemoryDescriptor {
                start: words[8],
                length: words[9],
                threshold: words[10] as u32 as i32,
                max_size: words[11],
                options: MdOptions::from_bits_retain(words[12] as u32),
                user_ptr: words[13],
                queue: Handle(words[14] as u32),
            },
            hdr_data: words[15],
            link: words[16] as u32,
            ni_fail: (words[16] >> 32) as u32,
            sequence: words[17] as u32,
        }
    }
}

/// Two fields in a word, the first in its low half.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn an_event_has_the_layout_of_the_header() {
        assert_eq!(size_of::<Event>(), 144);
        for (offset, expected) in [
            (offset_of!(Event, kind), 0),
            (offset_of!(Event, initiator), 4),
            (offset_of!(Event, uid), 12),
            (offset_of!(Event, jid), 16),
            (offset_of!(Event, pt_index), 20),
            (offset_of!(Event, match_bits), 24),
            (offset_of!(Event, rlength), 32),
            (offset_of!(Event, mlength), 40),
            (offset_of!(Event, offset), 48),
            (offset_of!(Event, md_handle), 56),
            (offset_of!(Event, md), 64),
            (offset_of!(Event, hdr_data), 120),
            (offset_of!(Event, link), 128),
            (offset_of!(Event, ni_fail), 132),
            (offset_of!(Event, sequence), 136),
        ] {
            assert_eq!(offset, expected);
        }
    }

    #[test]
    fn an_event_survives_its_words() {
        for (number, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let md = MemoryDescriptor {
                start: 1,
                length: 2,
                threshold: -1,
                max_size: 3,
                options: MdOptions::from(u32::MAX),
                user_ptr: 4,
                queue: Handle(5),
            };
            let event = Event {
                initiator: ProcessId::new(6, 7),
                uid: 8,
                jid: 9,
                pt_index: 10,
                match_bits: 11,
                rlength: 12,
                mlength: 13,
                offset: 14,
                hdr_data: 15,
                link: 16,
                ni_fail: NI_FAIL,
                sequence: 17,
                ..Event::new(kind, Handle(18), md)
            };
            assert_eq!(Event::from_words(&event.to_words()), event);
        }
        assert_eq!(EventKind::from_bits(12), EventKind::Unlink);
    }
}
