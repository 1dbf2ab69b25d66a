//! What a datagram says: the format byte by byte, and the one parser.
//!
//! Little-endian; version 2.
//!
//! ```text
//!  byte        0        1        2        3        4        5        6        7
//!     0 | version |  kind  | class  | flags  | user of the sender (uid)          |
//!     8 | source node                        | destination node                  |
//!    16 | source pid       | destination pid | bytes that the sender can buffer  |
//!    24 | incarnation of the sender                                              |
//!    32 | incarnation that it takes the receiver to have; 0: doesn't know        |
//!    40 | sequence number                    | the next one that it awaits       |
//!    48 | bit i: the one i + 1 after that has come already; of a reset: see there |
//!    56 | CRC-32C of the payload             | bytes of payload                  |
//!    64 | parts (16): length of the message, offset of the payload               |
//!       | first or whole (48): the six words of the message                      |
//!       | authenticator (16)                                                     |
//!       | payload                                                                |
//! ```
//!
//! **Kinds**: 1 data, 2 acknowledgement, 3 probe (wants one), 4 farewell (the
//! sender ends), 5 reset. Only data has a class, flags FIRST and LAST, a checksum, payload
//! and what follows byte 64; in other kinds these are zero. **Classes**: 0 reliable and
//! ordered, 1 reliable, 2 neither.
//!
//! **First contact**: a packet counts only if byte 32 names the present incarnation of its
//! receiver. Data and probes that don't are answered by a reset, and nothing is kept of
//! them. A reset tells the incarnation of its sender in byte 24, the one that it answers in
//! byte 32, and in byte 48 the latest one of its receiver's name that its sender has known
//! before, or 0. So who has something to send to a stranger sends a probe with 0 in byte 32,
//! and the data when the reset has come. Who finds a later life of its own name in byte 48
//! goes on in an incarnation behind that one.
//!
//! ```text
//!   probe  incarnation 7, peer 0          ──▶
//!                                         ◀──  reset  incarnation 9, peer 7
//!   data   incarnation 7, peer 9          ──▶
//!                                         ◀──  acknowledgement
//! ```
//!
//! **Flags**: 1 FIRST, the first part of a message; 2 LAST, the last part; 4 ACK_REQUESTED, to
//! be acknowledged at once; 8 SUMMED, byte 56 has a CRC, else it is zero; 16 VOID, the
//! sender has the message's bytes from here on no longer: there is no payload, the message
//! is never whole, and LAST ends it wherever it was. A datagram with FIRST and LAST is a
//! whole message and has no parts field. Bits that aren't named here are zero, and a
//! datagram that has others is malformed.
//!
//! **Sequence numbers** count the data of the classes 0 and 1 from one process to
//! another, from 2³² - 1000 on, modulo 2³². An acknowledgement counts only where byte 32 names
//! the incarnation that it is for.
//!
//! **Authenticator**: SipHash-2-4, 128 bits, with the first 16 bytes of the job's key,
//! over everything before it. It keeps out whoever doesn't have the key: other jobs,
//! other users, strayed and forged datagrams; addresses, user and incarnations can't
//! be changed or invented. Who has recorded datagrams can send them again, to the same life
//! of their receiver or to a later one: the former knows their sequence numbers and their
//! sender's incarnation, the latter isn't the one that they name, as long as no two lives of
//! a name have the same incarnation.
//! The payload is covered by its CRC, which is covered by the authenticator: that finds
//! accidents, but who can change datagrams *on their way* can change a payload so
//! that its CRC stays. Nothing is encrypted. (A keyed hash over all bytes would close
//! that gap; BLAKE3 takes as long for a page as the kernel takes to carry it.)

use core::hash::Hasher;
use core::hint::black_box;
use lintel_types::ProcessId;
use lintel_wire::{WORDS, Words};
use siphasher::sip128::{Hasher128, SipHasher24};

/// The version of the format that this module speaks.
pub const VERSION: u8 = 2;
/// Bytes of an authenticator.
pub const TAG_BYTES: usize = 16;
/// Bytes ahead of the payload of a whole message.
pub const WHOLE_BYTES: usize = BASE_BYTES + WORDS_BYTES + TAG_BYTES;
/// Bytes ahead of the payload of a message's first part.
pub const FIRST_BYTES: usize = BASE_BYTES + PARTS_BYTES + WORDS_BYTES + TAG_BYTES;
/// Bytes ahead of the payload of a further part.
pub const FURTHER_BYTES: usize = BASE_BYTES + PARTS_BYTES + TAG_BYTES;
/// Bytes of the longest header, authenticator included.
pub const MAX_HEADER_BYTES: usize = FIRST_BYTES;

const BASE_BYTES: usize = 64;
const PARTS_BYTES: usize = 16;
const WORDS_BYTES: usize = WORDS * 8;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const ACK_REQUESTED: u8 = 4;
const SUMMED: u8 = 8;
const VOID: u8 = 16;

/// What order and certainty a message gets.
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
    /// Its message's class.
    pub class: Class,
    /// The message's words, in its first part.
    pub words: Option<Words>,
    /// The message ends here.
    pub last: bool,
    /// Length of the message, bytes.
    pub total: u64,
    /// Where in the message the payload begins.
    pub offset: u64,
    /// Bytes of payload.
    pub length: u32,
    /// CRC-32C of the payload, unless nothing on the way can change it.
    pub checksum: Option<u32>,
    /// Its payload was taken back: the message never gets whole.
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
    /// Says what has come.
    Ack,
    /// Asks for an acknowledgement.
    Probe,
    /// The sender ends.
    Close,
    /// Answers a packet that doesn't name the sender's present life, or isn't of the
    /// receiver's.
    Reset {
        /// The latest incarnation of the receiver's name that the sender has known, other
        /// than the one that it is talking to; 0: none.
        latest: u64,
    },
}

/// Everything in a packet but its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// The sender wants an acknowledgement at once.
    pub ack_requested: bool,
    /// User of the sender.
    pub uid: u32,
    /// The sender.
    pub source: ProcessId,
    /// The receiver.
    pub destination: ProcessId,
    /// Bytes that the sender's socket can hold.
    pub recv_window: u32,
    /// The sender's incarnation: the newer, the larger.
    pub incarnation: u64,
    /// The receiver's, as the sender knows it; 0: not at all.
    pub peer_incarnation: u64,
    /// Number of this packet among the reliable ones from the sender to the receiver.
    pub sequence: u32,
    /// The next number that the sender awaits.
    pub acknowledged: u32,
    /// Bit i: number `acknowledged + 1 + i` has come. Nothing in a reset.
    pub selective: u64,
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is no packet, or one of another version.
    Malformed,
    /// Its authenticator is wrong: whoever sent it doesn't have the key.
    Forged,
}

/// A job's key.
#[derive(Clone)]
pub struct Key(SipHasher24);

impl Key {
    /// From the job's secret.
    pub fn new(secret: &[u8; 32]) -> Key {
        let mut half = [0; 16];
        half.copy_from_slice(&secret[..16]);
        Key(SipHasher24::new_with_key(&half))
    }

    #[inline]
    fn tag(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let mut hasher = self.0;
        hasher.write(bytes);
        hasher.finish128().as_u128().to_le_bytes()
    }
}

impl Header {
    /// Bytes of the header, authenticator included.
    #[inline]
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Data(fragment) => match (&fragment.words, fragment.last) {
                (Some(_), true) => WHOLE_BYTES,
                (Some(_), false) => FIRST_BYTES,
                (None, _) => FURTHER_BYTES,
            },
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

    /// Bytes of the datagram that begins so, as it says itself: nobody has vouched for it
    /// yet. Nothing where there aren't as many bytes as it takes to tell. Datagrams that
    /// the system has put together are taken apart by it.
    #[inline]
    pub fn claimed_bytes(beginning: &[u8]) -> Option<usize> {
        let base: &[u8; BASE_BYTES] = beginning.first_chunk()?;
        let length = u32::from_le_bytes([base[60], base[61], base[62], base[63]]);
        let ahead = match (base[1], base[3] & FIRST != 0, base[3] & LAST != 0) {
            (1, true, true) => WHOLE_BYTES,
            (1, true, false) => FIRST_BYTES,
            (1, false, _) => FURTHER_BYTES,
            _ => BASE_BYTES + TAG_BYTES,
        };
        ahead.checked_add(length as usize)
    }

    /// Writes the header and its authenticator; tells how many bytes they are.
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
        of_fragment | flag(self.ack_requested, ACK_REQUESTED)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        let mut selective = self.selective;
        let (kind, fragment) = match &self.kind {
            Kind::Data(fragment) => (1, Some(fragment)),
            Kind::Ack => (2, None),
            Kind::Probe => (3, None),
            Kind::Close => (4, None),
            Kind::Reset { latest } => {
                selective = *latest;
                (5, None)
            }
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
        writer.put(selective.to_le_bytes());
        let checksum = fragment.and_then(|fragment| fragment.checksum);
        writer.put(checksum.unwrap_or(0).to_le_bytes());
        writer.put(fragment.map_or(0, |f| f.length).to_le_bytes());
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
    /// [`MAX_HEADER_BYTES`]; tells where its payload begins. Any bytes give a header or
    /// a refusal.
    ///
    /// # Errors
    /// [`Refusal`]
    #[inline]
    pub fn parse(beginning: &[u8], length: usize, key: &Key) -> Result<(Header, usize), Refusal> {
        let mut reader = Reader { rest: beginning };
        let header = read(&mut reader).ok_or(Refusal::Malformed)?;
        let covered = beginning.len() - reader.rest.len();
        let tag = reader.take::<TAG_BYTES>().ok_or(Refusal::Malformed)?;
        if !is_same(key.tag(&beginning[..covered]), tag) {
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

/// Compares all bytes, whichever differ: how long it takes tells a forger nothing.
#[inline]
fn is_same(one: [u8; TAG_BYTES], other: [u8; TAG_BYTES]) -> bool {
    let differing = u128::from_ne_bytes(one) ^ u128::from_ne_bytes(other);
    black_box(differing) == 0
}

#[inline]
fn read(reader: &mut Reader<'_>) -> Option<Header> {
    let [version, kind, class, flags] = reader.take()?;
    if version != VERSION || flags & !(FIRST | LAST | ACK_REQUESTED | SUMMED | VOID) != 0 {
        return None;
    }
    let mut header = read_base(reader, flags & ACK_REQUESTED != 0)?;
    let (checksum, length) = (reader.u32()?, reader.u32()?);
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
        5 => Kind::Reset {
            latest: core::mem::take(&mut header.selective),
        },
        _ => return None,
    };
    Some(header)
}

/// What every packet says in bytes 4 to 56.
#[inline]
fn read_base(reader: &mut Reader<'_>, ack_requested: bool) -> Option<Header> {
    let uid = reader.u32()?;
    let (source_nid, destination_nid) = (reader.u32()?, reader.u32()?);
    let (source_pid, destination_pid) = (reader.u16()?, reader.u16()?);
    Some(Header {
        kind: Kind::Ack,
        ack_requested,
        uid,
        source: ProcessId::new(source_nid, source_pid.into()),
        destination: ProcessId::new(destination_nid, destination_pid.into()),
        recv_window: reader.u32()?,
        incarnation: reader.u64()?,
        peer_incarnation: reader.u64()?,
        sequence: reader.u32()?,
        acknowledged: reader.u32()?,
        selective: reader.u64()?,
    })
}

#[inline]
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
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    #[inline(always)]
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    #[inline(always)]
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    #[inline(always)]
    fn words(&mut self) -> Option<Words> {
        let mut words = [0; WORDS];
        for word in &mut words {
            *word = self.u64()?;
        }
        Some(words)
    }
}
