//! The format of datagrams byte by byte, and its one parser.
//!
//! Little-endian; version 4.
//!
//! ```text
//!  byte        0        1        2        3        4        5        6        7
//!     0 | version |  kind  | class  | flags  | user of the sender (uid)          |
//!     8 | source node                        | destination node                  |
//!    16 | source pid       | destination pid | bytes that the sender can buffer  |
//!    24 | incarnation of the sender                                              |
//!    32 | incarnation of the receiver as the sender knows it; 0: not at all      |
//!    40 | sequence number                    | the next one that it expects      |
//!    48 | CRC-32C of the payload             | bytes of payload                  |
//!    56 | gap (8): bit i: the one i + 1 after that has arrived                   |
//!       | reset (8): see there                                                   |
//!       | parts (16): length of the message, offset of the payload               |
//!       | first or whole (48): the six words of the message                      |
//!       | authenticator (16)                                                     |
//!       | payload                                                                |
//! ```
//!
//! **Kinds**: 1 data, 2 acknowledgement, 3 probe (requests one), 4 close (the sender ends),
//! 5 reset. Only data has a class, flags FIRST and LAST, a checksum, payload, parts and words; in
//! other kinds what there is of them in the first 56 bytes is zero. **Classes**: 0 reliable and ordered, 1 reliable,
//! 2 neither.
//!
//! **First contact**: a packet counts only if byte 32 names the present incarnation of its
//! receiver. Data and probes that don't are answered by a reset, and nothing is kept of
//! them. A reset has the incarnation of its sender in byte 24, the one that it answers in
//! byte 32, and in byte 56 the latest one of its receiver's name that its sender has known
//! before, or 0. A process that has something to send to a stranger sends a probe with 0 in
//! byte 32, and the data once the reset has arrived. A process that finds a later incarnation
//! of its own name in byte 56 goes on in one behind that.
//!
//! ```text
//!   probe  incarnation 7, peer 0          ──▶
//!                                         ◀──  reset  incarnation 9, peer 7
//!   data   incarnation 7, peer 9          ──▶
//!                                         ◀──  acknowledgement
//! ```
//!
//! **Flags**: 1 FIRST, the first part of a message; 2 LAST, the last part; 4 ACK_REQUESTED, to
//! be acknowledged at once; 8 SUMMED, byte 48 has a CRC, otherwise it is zero; 16 VOID, the
//! sender has recalled the message's bytes from here on: there is no payload, the message is
//! never whole, and LAST ends it wherever it was; 32 GAP, a packet is missing before others that have
//! arrived, which byte 56 names: at least one. Without GAP and in a reset there are no such bytes: so a message of 8 bytes
//! takes 128, up to which processors copy fastest. A datagram with FIRST and LAST is a whole
//! message and has no parts field. Bits that aren't named here are zero, and a datagram that
//! has others is malformed.
//!
//! **Sequence numbers** count the data of the classes 0 and 1 from one process to
//! another, from 2³² - 1000 on, modulo 2³². An acknowledgement counts only if byte 32 names
//! the incarnation that it is for.
//!
//! **Authenticator**: SipHash-2-4, 128 bits, with the first 16 bytes of the job's key,
//! over everything before it. It keeps out senders without the key: other jobs,
//! other users, strayed and forged datagrams; addresses, user and incarnations can't
//! be changed or invented. Recorded datagrams can be replayed, to the same incarnation of
//! their receiver or to a later one: the former knows their sequence numbers and their
//! sender's incarnation, the latter isn't the one that they name, as long as no two
//! incarnations of a name are the same.
//! The payload is covered by its CRC, which is covered by the authenticator: that finds
//! accidents, but an attacker who can change datagrams *on their way* can change a payload so
//! that its CRC stays. Nothing is encrypted. (A keyed hash over all bytes would close
//! that gap; BLAKE3 takes as long for a page as the kernel takes to carry it.)

use crate::authenticator::{Key, TAG_BYTES};
use lintel_types::ProcessId;
use lintel_wire::{WORDS, Words};

/// The version of the format that this module speaks.
pub const VERSION: u8 = 4;
/// Bytes ahead of the payload of a whole message, unless there is a gap.
pub const WHOLE_BYTES: usize = BASE_BYTES + WORDS_BYTES + TAG_BYTES;
/// Bytes ahead of the payload of a message's first part, unless there is a gap.
pub const FIRST_BYTES: usize = BASE_BYTES + PARTS_BYTES + WORDS_BYTES + TAG_BYTES;
/// Bytes ahead of the payload of a further part, unless there is a gap.
pub const FURTHER_BYTES: usize = BASE_BYTES + PARTS_BYTES + TAG_BYTES;
/// Bytes that a header has more if there is a gap.
pub const GAP_BYTES: usize = 8;
/// Bytes of the longest header, authenticator included.
pub const MAX_HEADER_BYTES: usize = FIRST_BYTES + GAP_BYTES;

const BASE_BYTES: usize = 56;
const RESET_BYTES: usize = 8;
const PARTS_BYTES: usize = 16;
const WORDS_BYTES: usize = WORDS * 8;

/// The number of a reset among the kinds.
const RESET: u8 = 5;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const ACK_REQUESTED: u8 = 4;
const SUMMED: u8 = 8;
const VOID: u8 = 16;
const GAP: u8 = 32;

/// How a message is delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Arrives once, after everything of this class that was sent before.
    Ordered = 0,
    /// Arrives once, as soon as it can; fits one datagram.
    Reliable = 1,
    /// May get lost, arrive twice, and overtake; fits one datagram.
    Unreliable = 2,
}

/// The payload of a data packet, and its place in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// How its message is delivered.
    pub class: Class,
    /// The message's header words, if it is the first part.
    pub words: Option<Words>,
    /// Whether the message ends here.
    pub last: bool,
    /// Bytes of the whole message.
    pub total: u64,
    /// Where in the message the payload begins, bytes.
    pub offset: u64,
    /// Bytes of payload that follow the header.
    pub length: u32,
    /// CRC-32C of the payload, unless nothing on the way can change it.
    pub checksum: Option<u32>,
    /// Its payload was recalled: the message never gets whole.
    pub is_void: bool,
}

impl Fragment {
    /// Whether it is a message by itself.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.words.is_some() && self.last
    }
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Part of a message, or all of it.
    Data(Fragment),
    /// Says what has arrived.
    Ack,
    /// Requests an acknowledgement, and with it the receiver's incarnation.
    Probe,
    /// The sender ends, and will send nothing any more.
    Close,
    /// Answers a packet that doesn't name the sender's present incarnation, or isn't from a
    /// present one of the receiver's.
    Reset {
        /// The latest incarnation of the receiver's name that the sender has known, other
        /// than the one that it is talking to; 0: none.
        latest: u64,
    },
}

/// Everything in a packet but its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// The sender requests an acknowledgement at once.
    pub ack_requested: bool,
    /// The user that runs the sender.
    pub uid: u32,
    /// The process that has sent it.
    pub source: ProcessId,
    /// The process that it is for.
    pub destination: ProcessId,
    /// Bytes that the sender can buffer: its receive window.
    pub recv_window: u32,
    /// The sender's incarnation: the newer, the larger.
    pub incarnation: u64,
    /// The receiver's, as the sender knows it; 0: not at all.
    pub peer_incarnation: u64,
    /// Number of this packet among the reliable ones from the sender to the receiver.
    pub sequence: u32,
    /// The next number that the sender expects.
    pub acknowledged: u32,
    /// Bit i: number `acknowledged + 1 + i` has arrived. 0 in a reset.
    pub selective: u64,
}

/// Why a datagram is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is no packet of this version.
    Malformed,
    /// Its authenticator is wrong: the sender doesn't have the key.
    Forged,
}

impl Header {
    /// Bytes of the header, authenticator included.
    #[inline]
    pub fn bytes(&self) -> usize {
        let gap = if self.selective == 0 { 0 } else { GAP_BYTES };
        gap + match &self.kind {
            Kind::Data(fragment) => match (&fragment.words, fragment.last) {
                (Some(_), true) => WHOLE_BYTES,
                (Some(_), false) => FIRST_BYTES,
                (None, _) => FURTHER_BYTES,
            },
            Kind::Reset { .. } => BASE_BYTES + RESET_BYTES + TAG_BYTES,
            _ => BASE_BYTES + TAG_BYTES,
        }
    }

    /// Bytes of the whole datagram.
    #[inline]
    pub fn datagram_bytes(&self) -> usize {
        match &self.kind {
            Kind::Data(fragment) => self.bytes() + fragment.length as usize,
            _ => self.bytes(),
        }
    }

    /// Bytes of the datagram that begins so, as it says itself: it isn't authenticated yet.
    /// `None` if there aren't enough bytes. Coalesced datagrams are split by it.
    #[inline]
    pub fn claimed_bytes(beginning: &[u8]) -> Option<usize> {
        let base: &[u8; BASE_BYTES] = beginning.first_chunk()?;
        let length = u32::from_le_bytes([base[52], base[53], base[54], base[55]]);
        let ahead = match (base[1], base[3] & FIRST != 0, base[3] & LAST != 0) {
            (1, true, true) => WHOLE_BYTES,
            (1, true, false) => FIRST_BYTES,
            (1, false, _) => FURTHER_BYTES,
            (RESET, _, _) => BASE_BYTES + RESET_BYTES + TAG_BYTES,
            _ => BASE_BYTES + TAG_BYTES,
        };
        let gap = if base[3] & GAP == 0 { 0 } else { GAP_BYTES };
        (ahead + gap).checked_add(length as usize)
    }

    /// Writes the header and its authenticator; returns their length in bytes.
    #[inline]
    pub fn seal(&self, key: &Key, into: &mut [u8; MAX_HEADER_BYTES]) -> usize {
        let mut writer = Writer { into, at: 0 };
        self.write(&mut writer);
        let at = writer.at;
        let tag = key.tag(&into[..at]);
        into[at..at + TAG_BYTES].copy_from_slice(&tag);
        at + TAG_BYTES
    }

    /// The flags in byte 3.
    #[inline]
    fn flags(&self, fragment: Option<&Fragment>) -> u8 {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let of_fragment = fragment.map_or(0, |fragment| {
            flag(fragment.words.is_some(), FIRST)
                | flag(fragment.last, LAST)
                | flag(fragment.checksum.is_some(), SUMMED)
                | flag(fragment.is_void, VOID)
        });
        of_fragment | flag(self.ack_requested, ACK_REQUESTED) | flag(self.selective != 0, GAP)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        let (kind, fragment) = match &self.kind {
            Kind::Data(fragment) => (1, Some(fragment)),
            Kind::Ack => (2, None),
            Kind::Probe => (3, None),
            Kind::Close => (4, None),
            Kind::Reset { .. } => (RESET, None),
        };
        let class = fragment.map_or(0, |fragment| fragment.class as u8);
        writer.put([VERSION, kind, class, self.flags(fragment)]);
        writer.put(self.uid.to_le_bytes());
        writer.put(self.source.nid.to_le_bytes());
        writer.put(self.destination.nid.to_le_bytes());
        writer.put((self.source.pid as u16).to_le_bytes());
        writer.put((self.destination.pid as u16).to_le_bytes());
        writer.put(self.recv_window.to_le_bytes());
        writer.put(self.incarnation.to_le_bytes());
        writer.put(self.peer_incarnation.to_le_bytes());
        writer.put(self.sequence.to_le_bytes());
        writer.put(self.acknowledged.to_le_bytes());
        let checksum = fragment.and_then(|fragment| fragment.checksum);
        writer.put(checksum.unwrap_or(0).to_le_bytes());
        writer.put(fragment.map_or(0, |f| f.length).to_le_bytes());
        if self.selective != 0 {
            writer.put(self.selective.to_le_bytes());
        }
        if let Kind::Reset { latest } = self.kind {
            writer.put(latest.to_le_bytes());
        }
        let Some(fragment) = fragment else { return };
        if !fragment.is_whole() {
            writer.put(fragment.total.to_le_bytes());
            writer.put(fragment.offset.to_le_bytes());
        }
        for word in fragment.words.iter().flatten() {
            writer.put(word.to_le_bytes());
        }
    }

    /// Reads the beginning of a datagram of `length` bytes, as much of it as there is or
    /// [`MAX_HEADER_BYTES`]; returns where its payload begins, too. Any bytes give a header
    /// or a refusal.
    ///
    /// # Errors
    /// [`Refusal`]
    #[inline(always)]
    pub fn parse(beginning: &[u8], length: usize, key: &Key) -> Result<(Header, usize), Refusal> {
        let mut reader = Reader { rest: beginning };
        let header = read(&mut reader).ok_or(Refusal::Malformed)?;
        let covered = beginning.len() - reader.rest.len();
        let tag = reader.take::<TAG_BYTES>().ok_or(Refusal::Malformed)?;
        if !key.verifies(&beginning[..covered], tag) {
            return Err(Refusal::Forged);
        }
        let ahead = covered + TAG_BYTES;
        let payload = match header.kind {
            Kind::Data(fragment) => fragment.length as usize,
            _ => 0,
        };
        if ahead.checked_add(payload) != Some(length) {
            return Err(Refusal::Malformed);
        }
        Ok((header, ahead))
    }
}

#[inline(always)]
fn read(reader: &mut Reader<'_>) -> Option<Header> {
    let base = reader.take::<BASE_BYTES>()?;
    let [version, kind, class, flags] = field(&base, 0);
    if version != VERSION || flags & !(FIRST | LAST | ACK_REQUESTED | SUMMED | VOID | GAP) != 0 {
        return None;
    }
    let mut header = read_base(&base, flags & ACK_REQUESTED != 0);
    let checksum = u32::from_le_bytes(field(&base, 48));
    let length = u32::from_le_bytes(field(&base, 52));
    if flags & GAP != 0 {
        header.selective = reader.u64().filter(|selective| *selective != 0)?;
    }
    if kind == 1 {
        let fragment = read_fragment(reader, class, flags, length)?;
        let summed = flags & SUMMED != 0;
        if !summed && checksum != 0 || summed && fragment.is_void {
            return None;
        }
        header.kind = Kind::Data(Fragment {
            checksum: summed.then_some(checksum),
            ..fragment
        });
        return Some(header);
    }
    let of_data = flags & (FIRST | LAST | SUMMED | VOID);
    if class != 0 || of_data != 0 || checksum != 0 || length != 0 {
        return None;
    }
    header.kind = match kind {
        2 => Kind::Ack,
        3 => Kind::Probe,
        4 => Kind::Close,
        RESET if header.selective != 0 => return None,
        RESET => Kind::Reset {
            latest: reader.u64()?,
        },
        _ => return None,
    };
    Some(header)
}

/// So many bytes from that one on.
#[inline(always)]
fn field<const N: usize>(base: &[u8; BASE_BYTES], at: usize) -> [u8; N] {
    let field = base[at..at + N].first_chunk();
    *field.expect("the slice has that length")
}

/// What every packet says in bytes 4 to 48.
#[inline(always)]
fn read_base(base: &[u8; BASE_BYTES], ack_requested: bool) -> Header {
    let half = |at| u32::from(u16::from_le_bytes(field(base, at)));
    let word = |at| u32::from_le_bytes(field(base, at));
    let long = |at| u64::from_le_bytes(field(base, at));
    Header {
        kind: Kind::Ack,
        ack_requested,
        uid: word(4),
        source: ProcessId::new(word(8), half(16)),
        destination: ProcessId::new(word(12), half(18)),
        recv_window: word(20),
        incarnation: long(24),
        peer_incarnation: long(32),
        sequence: word(40),
        acknowledged: word(44),
        selective: 0,
    }
}

#[inline(always)]
fn read_fragment(reader: &mut Reader<'_>, class: u8, flags: u8, length: u32) -> Option<Fragment> {
    let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
    let is_void = flags & VOID != 0;
    let class = match class {
        0 => Class::Ordered,
        1 => Class::Reliable,
        2 => Class::Unreliable,
        _ => return None,
    };
    let whole = first && last;
    if class != Class::Ordered && !whole {
        return None;
    }
    let (total, offset) = match whole {
        true => (u64::from(length), 0),
        false => (reader.u64()?, reader.u64()?),
    };
    let end = offset.checked_add(length.into())?;
    // A part of several is never empty unless it is void, and only the last one ends the
    // message.
    let ends = is_void || (end == total) == last;
    let sound = (offset == 0) == first && ends && end <= total;
    if !whole && (!sound || (length == 0) != is_void) || is_void && length != 0 {
        return None;
    }
    Some(Fragment {
        class,
        words: if first { Some(reader.words()?) } else { None },
        last,
        total,
        offset,
        length,
        checksum: None,
        is_void,
    })
}

struct Writer<'a> {
    into: &'a mut [u8; MAX_HEADER_BYTES],
    at: usize,
}

impl Writer<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.into[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    #[inline(always)]
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    #[inline(always)]
    fn words(&mut self) -> Option<Words> {
        let bytes = self.take::<WORDS_BYTES>()?;
        let mut each = Reader { rest: &bytes };
        let mut words = [0; WORDS];
        for word in &mut words {
            *word = each.u64()?;
        }
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::tests::whole_tag;
    use alloc::vec::Vec;

    fn key() -> Key {
        Key::new(&[3; 32])
    }

    fn header(kind: Kind) -> Header {
        Header {
            kind,
            ack_requested: false,
            uid: 0x0403_0201,
            source: ProcessId::new(0x1413_1211, 0x2221),
            destination: ProcessId::new(0x1817_1615, 0x2423),
            recv_window: 0x3433_3231,
            incarnation: 0x4847_4645_4443_4241,
            peer_incarnation: 0x5857_5655_5453_5251,
            sequence: 0x6463_6261,
            acknowledged: 0x6867_6665,
            selective: 0x7877_7675_7473_7271,
        }
    }

    fn fragment(is_first: bool, is_last: bool) -> Fragment {
        Fragment {
            class: Class::Ordered,
            words: is_first.then_some([1, 2, 3, 4, 5, 6]),
            last: is_last,
            total: match (is_first, is_last) {
                (true, true) => 10,
                _ => 100,
            },
            offset: match (is_first, is_last) {
                (true, _) => 0,
                (_, true) => 90,
                _ => 50,
            },
            length: 10,
            checksum: None,
            is_void: false,
        }
    }

    fn sealed(header: &Header) -> Vec<u8> {
        let mut bytes = [0; MAX_HEADER_BYTES];
        let length = header.seal(&key(), &mut bytes);
        bytes[..length].to_vec()
    }

    /// Parses what has those bytes ahead of a right authenticator, and so much payload.
    fn parse(covered: &[u8], payload: usize) -> Result<(Header, usize), Refusal> {
        let mut bytes = covered.to_vec();
        bytes.extend(whole_tag(&key(), covered));
        Header::parse(&bytes, bytes.len() + payload, &key())
    }

    /// The bytes of a header without the authenticator.
    fn covered(header: &Header) -> Vec<u8> {
        let bytes = sealed(header);
        bytes[..bytes.len() - TAG_BYTES].to_vec()
    }

    #[test]
    fn the_format_is_what_it_says() {
        let mut header = header(Kind::Data(Fragment {
            checksum: Some(0xa4a3_a2a1),
            ..fragment(true, false)
        }));
        header.ack_requested = true;
        let bytes = sealed(&header);
        assert_eq!(bytes.len(), 144);
        assert_eq!(bytes[..8], [4, 1, 0, 1 | 4 | 8 | 32, 1, 2, 3, 4]);
        let counted = |from: u8| (0..8).map(|i| from + i).collect::<Vec<u8>>();
        assert_eq!(bytes[8..16], counted(0x11));
        assert_eq!(
            bytes[16..24],
            [0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34]
        );
        assert_eq!(bytes[24..32], counted(0x41));
        assert_eq!(bytes[32..40], counted(0x51));
        assert_eq!(bytes[40..48], counted(0x61));
        assert_eq!(bytes[48..56], [0xa1, 0xa2, 0xa3, 0xa4, 10, 0, 0, 0]);
        assert_eq!(bytes[56..64], counted(0x71));
        assert_eq!(
            bytes[64..80],
            [100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        for word in 0..6 {
            assert_eq!(bytes[80 + 8 * word..][..8], (word as u64 + 1).to_le_bytes());
        }
        assert_eq!(bytes[128..], whole_tag(&key(), &bytes[..128]));
    }

    #[test]
    fn without_a_gap_nothing_is_written_of_it() {
        let gap = header(Kind::Data(fragment(true, false)));
        let none = Header {
            selective: 0,
            ..gap
        };
        let (gap, none) = (covered(&gap), covered(&none));
        assert_eq!((gap[3], none[3]), (1 | 32, 1));
        assert_eq!(gap[4..56], none[4..56]);
        assert_eq!(gap[64..], none[56..]);
    }

    #[test]
    fn lengths_are_those_of_the_format() {
        assert_eq!((WHOLE_BYTES, FIRST_BYTES, FURTHER_BYTES), (120, 136, 88));
        for (is_first, is_last, selective, bytes) in [
            (true, true, 0, WHOLE_BYTES),
            (true, false, 0, FIRST_BYTES),
            (false, false, 0, FURTHER_BYTES),
            (false, true, 0, FURTHER_BYTES),
            (true, true, 1, WHOLE_BYTES + GAP_BYTES),
            (true, false, 1, MAX_HEADER_BYTES),
            (false, true, 1, FURTHER_BYTES + GAP_BYTES),
        ] {
            let mut header = header(Kind::Data(fragment(is_first, is_last)));
            header.selective = selective;
            assert_eq!(header.bytes(), bytes);
            assert_eq!(header.datagram_bytes(), bytes + 10);
            let sealed = sealed(&header);
            assert_eq!(sealed.len(), bytes);
            assert_eq!(Header::claimed_bytes(&sealed), Some(bytes + 10));
            assert_eq!(Header::claimed_bytes(&sealed[..56]), Some(bytes + 10));
            assert_eq!(Header::claimed_bytes(&sealed[..55]), None);
            let is_whole = is_first && is_last;
            assert_eq!(fragment(is_first, is_last).is_whole(), is_whole);
        }
        for (kind, selective, bytes) in [
            (Kind::Ack, 0, 72),
            (Kind::Ack, 1, 80),
            (Kind::Probe, 0, 72),
            (Kind::Reset { latest: 0 }, 0, 80),
        ] {
            let mut header = header(kind);
            header.selective = selective;
            assert_eq!((header.bytes(), header.datagram_bytes()), (bytes, bytes));
            assert_eq!(Header::claimed_bytes(&sealed(&header)), Some(bytes));
        }
    }

    #[test]
    fn every_kind_and_class_is_read_as_it_was_written() {
        let void = Fragment {
            is_void: true,
            length: 0,
            ..fragment(false, false)
        };
        let of_class = |class| Fragment {
            class,
            ..fragment(true, true)
        };
        let summed = Fragment {
            checksum: Some(0),
            ..fragment(false, true)
        };
        let kinds = [
            Kind::Data(fragment(true, true)),
            Kind::Data(fragment(true, false)),
            Kind::Data(fragment(false, false)),
            Kind::Data(fragment(false, true)),
            Kind::Data(of_class(Class::Reliable)),
            Kind::Data(of_class(Class::Unreliable)),
            Kind::Data(void),
            Kind::Data(summed),
            Kind::Ack,
            Kind::Probe,
            Kind::Close,
            Kind::Reset { latest: 9 },
        ];
        for kind in kinds {
            for (ack_requested, selective) in [(false, 0), (true, 0), (false, 5)] {
                let mut header = header(kind);
                header.ack_requested = ack_requested;
                header.selective = match kind {
                    Kind::Reset { .. } => 0,
                    _ => selective,
                };
                let bytes = sealed(&header);
                let read = Header::parse(&bytes, header.datagram_bytes(), &key());
                assert_eq!(read, Ok((header, bytes.len())), "{kind:?}");
                for length in 0..bytes.len() {
                    let read = Header::parse(&bytes[..length], length, &key());
                    assert!(read.is_err(), "{length} bytes of {kind:?}");
                }
            }
        }
    }

    #[test]
    fn a_length_that_isnt_the_datagrams_is_malformed() {
        let header = header(Kind::Data(fragment(true, true)));
        let bytes = sealed(&header);
        for length in [
            bytes.len(),
            header.datagram_bytes() - 1,
            header.datagram_bytes() + 1,
        ] {
            let read = Header::parse(&bytes, length, &key());
            assert_eq!(read, Err(Refusal::Malformed), "{length}");
        }
    }

    #[test]
    fn what_the_format_doesnt_have_is_malformed_though_its_authenticator_is_right() {
        let without_gap = |kind| {
            covered(&Header {
                selective: 0,
                ..header(kind)
            })
        };
        let data = without_gap(Kind::Data(fragment(true, true)));
        let ack = without_gap(Kind::Ack);
        assert!(parse(&data, 10).is_ok() && parse(&ack, 0).is_ok());
        let changed = |bytes: &[u8], at: usize, to: u8| {
            let mut bytes = bytes.to_vec();
            bytes[at] = to;
            bytes
        };
        for (at, to) in [(0, 3), (0, 5), (1, 0), (1, 6), (2, 3), (3, 3 | 64), (48, 1)] {
            let read = parse(&changed(&data, at, to), 10);
            assert_eq!(read, Err(Refusal::Malformed), "byte {at}: {to}");
        }
        // What only data has.
        for (at, to) in [(2, 1), (3, 1), (3, 2), (3, 8), (3, 16), (48, 1), (52, 1)] {
            let read = parse(&changed(&ack, at, to), usize::from(at == 52));
            assert_eq!(read, Err(Refusal::Malformed), "byte {at}: {to}");
        }
    }

    #[test]
    fn a_gap_that_names_no_packet_is_malformed() {
        let mut ack = covered(&header(Kind::Ack));
        assert!(parse(&ack, 0).is_ok());
        ack[56..64].fill(0);
        assert_eq!(parse(&ack, 0), Err(Refusal::Malformed));
        let mut reset = Header {
            selective: 0,
            ..header(Kind::Reset { latest: 9 })
        };
        assert!(parse(&covered(&reset), 0).is_ok());
        reset.selective = 1;
        assert_eq!(parse(&covered(&reset), 0), Err(Refusal::Malformed));
    }

    #[test]
    fn parts_that_cant_be_are_malformed() {
        let unsound = |change: &dyn Fn(&mut Fragment)| {
            let mut part = fragment(false, false);
            change(&mut part);
            let read = parse(&covered(&header(Kind::Data(part))), part.length as usize);
            assert_eq!(read, Err(Refusal::Malformed), "{part:?}");
        };
        unsound(&|part| part.offset = 0);
        unsound(&|part| part.offset = 90);
        unsound(&|part| part.offset = 91);
        unsound(&|part| part.offset = u64::MAX);
        unsound(&|part| part.last = true);
        unsound(&|part| part.length = 0);
        unsound(&|part| part.class = Class::Reliable);
        unsound(&|part| part.words = Some([0; 6]));
        unsound(&|part| part.is_void = true);
        unsound(&|part| {
            part.is_void = true;
            part.length = 0;
            part.checksum = Some(1);
        });
        unsound(&|part| {
            part.is_void = true;
            part.length = 0;
            part.offset = 101;
        });
        // A whole message is never void and full, either.
        let whole = Fragment {
            is_void: true,
            ..fragment(true, true)
        };
        let read = parse(&covered(&header(Kind::Data(whole))), 10);
        assert_eq!(read, Err(Refusal::Malformed));
        // A void part ends the message wherever it is.
        for last in [false, true] {
            let void = Fragment {
                is_void: true,
                length: 0,
                last,
                ..fragment(false, false)
            };
            assert!(parse(&covered(&header(Kind::Data(void))), 0).is_ok());
        }
    }

    #[test]
    fn authenticators_dont_depend_on_the_datagrams_before() {
        let key = key();
        let first = header(Kind::Data(fragment(true, true)));
        let others = [
            Header { uid: 1, ..first },
            Header {
                peer_incarnation: 1,
                ..first
            },
            Header {
                sequence: 1,
                ..first
            },
            header(Kind::Ack),
        ];
        for other in others {
            for sent in [&first, &other, &other, &first] {
                let mut bytes = [0; MAX_HEADER_BYTES];
                let length = sent.seal(&key, &mut bytes);
                let (covered, tag) = bytes[..length].split_at(length - TAG_BYTES);
                assert_eq!(tag, whole_tag(&key, covered), "{sent:?}");
                let read = Header::parse(&bytes[..length], sent.datagram_bytes(), &key);
                assert_eq!(read, Ok((*sent, length)));
            }
        }
    }

    #[test]
    fn a_forged_beginning_doesnt_pass_for_the_one_before() {
        let key = key();
        let sound = sealed(&header(Kind::Ack));
        for bit in 0..sound.len() * 8 {
            let mut forged = sound.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            for _ in 0..2 {
                assert!(Header::parse(&sound, sound.len(), &key).is_ok());
                assert!(
                    Header::parse(&forged, sound.len(), &key).is_err(),
                    "bit {bit}"
                );
            }
            assert!(
                Header::parse(&forged, sound.len(), &key).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn another_key_is_another_job() {
        let header = header(Kind::Ack);
        let bytes = sealed(&header);
        let other = Key::new(&[4; 32]);
        let read = Header::parse(&bytes, bytes.len(), &other);
        assert_eq!(read, Err(Refusal::Forged));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Header::parse(&changed, bytes.len(), &key()).is_err(),
                "bit {bit}"
            );
        }
    }
}
