//! Frames: what one endpoint sends another. All numbers are little-endian.
//!
//! ```text
//!  0  tag                    keyed hash of what follows, up to the messages' bytes, and of the
//!                            receiver
//!  8  version | kind | flags | messages | length of what follows the words (32)
//! 16  nid | pid              of the sender
//! 24  uid | sequence         of the sender; the message's number between the two processes
//! 32  incarnation            of the sender: nanoseconds of the clock when it started
//! 40  incarnation            of the receiver, as the sender knows it; 0 if it doesn't
//! 48  arrived | consumed     messages of the receiver's that have arrived; that were consumed
//! 56  fetched | recalled     bodies of the receiver's that aren't needed any more; of a recall
//!                            and its answer: which body, by how many were announced before
//! 64  words                  of a message: six, as it has them
//! 112 payload                its bytes; or for each piece of them address, length, key
//! ```
//!
//! A batch has no words of its own. Its payload is, for each of its messages, the length of the
//! message's bytes (64) and its words; then the bytes of all. They are numbered from `sequence` on.
//!
//! The three counts are of the whole life of the two incarnations, modulo 2^32.

use lintel_types::ProcessId;
use lintel_wire::{BYTES as WORDS_BYTES, WORDS, Words};
use siphasher::sip::SipHasher24;
use std::hash::Hasher as _;
use std::ops::Range;

/// Bytes ahead of the words.
pub(crate) const HEADER: usize = 64;
/// Bytes ahead of a message's payload.
pub(crate) const PREFIX: usize = HEADER + WORDS_BYTES;
/// Bytes that describe one piece of a body.
pub(crate) const PIECE: usize = 24;
/// Pieces that a body may have; those of more are brought together first.
pub(crate) const MAX_PIECES: usize = 64;

/// Bytes that a message takes in a batch beside its own.
pub(crate) const ENTRY: usize = 8 + WORDS_BYTES;
/// Messages of one batch, at most.
pub(crate) const MAX_BATCH: usize = 16;

const VERSION: u8 = 5;
/// Requests a frame in answer, of any kind.
const ACK_REQUESTED: u8 = 1;

/// What a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A message with its bytes.
    Inline = 1,
    /// A message whose bytes the receiver reads from the sender's memory.
    Rendezvous = 2,
    /// The counts alone: an acknowledgement, or a probe.
    Status = 3,
    /// The sender closes: nothing more comes from it.
    Close = 4,
    /// A body that was announced is recalled: it is to be read no further.
    Recall = 5,
    /// The answer to a recall if the body hasn't been read: it won't be.
    RecallAck = 6,
    /// Several short messages with their bytes.
    Batch = 7,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Inline,
            2 => Kind::Rendezvous,
            3 => Kind::Status,
            4 => Kind::Close,
            5 => Kind::Recall,
            6 => Kind::RecallAck,
            7 => Kind::Batch,
            _ => return None,
        })
    }

    /// Whether it carries messages, which have numbers and take room.
    pub(crate) fn is_message(self) -> bool {
        self.has_words() || self == Kind::Batch
    }

    /// Whether the words of a message follow the header.
    fn has_words(self) -> bool {
        matches!(self, Kind::Inline | Kind::Rendezvous)
    }

    /// Whether it may be the first of its sender: the others presuppose a conversation.
    pub(crate) fn opens(self) -> bool {
        !matches!(self, Kind::Close | Kind::Recall | Kind::RecallAck)
    }

    /// Bytes ahead of its payload.
    pub(crate) fn prefix(self) -> usize {
        if self.has_words() { PREFIX } else { HEADER }
    }
}

/// What every frame begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) ack_requested: bool,
    /// Messages in it.
    pub(crate) messages: u8,
    /// Bytes of payload, or of the table that describes it.
    pub(crate) length: u32,
    pub(crate) from: ProcessId,
    pub(crate) uid: u32,
    pub(crate) sequence: u32,
    pub(crate) incarnation: u64,
    pub(crate) to_incarnation: u64,
    pub(crate) arrived: u32,
    pub(crate) consumed: u32,
    pub(crate) fetched: u32,
    pub(crate) recalled: u32,
}

impl Header {
    /// Bytes at the payload's beginning that describe messages or a body, and so are under the tag.
    fn sealed(&self) -> usize {
        match self.kind {
            Kind::Rendezvous => self.length as usize,
            Kind::Batch => usize::from(self.messages) * ENTRY,
            _ => 0,
        }
    }

    /// Whether what it says of the frame agrees.
    fn is_consistent(&self) -> bool {
        let (messages, length) = (usize::from(self.messages), self.length as usize);
        match self.kind {
            Kind::Inline => messages == 1,
            Kind::Rendezvous => {
                messages == 1 && length % PIECE == 0 && (1..=MAX_PIECES).contains(&(length / PIECE))
            }
            Kind::Batch => (1..=MAX_BATCH).contains(&messages) && self.sealed() <= length,
            Kind::Status | Kind::Close | Kind::Recall | Kind::RecallAck => {
                messages == 0 && length == 0
            }
        }
    }
}

/// Why bytes are no frame for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reject {
    /// They are no frame at all, or of another version.
    Malformed,
    /// Their tag is wrong: another job's, another process's, or forged.
    Forged,
}

/// Makes and checks tags, under a job's key.
#[derive(Clone)]
pub(crate) struct Seal(SipHasher24);

/// A frame's beginning, header and words.
pub(crate) type Prefix = [u8; PREFIX];

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Seal {
        let (used, _) = key
            .split_first_chunk()
            .expect("sixteen of thirty-two bytes");
        Seal(SipHasher24::new_with_key(used))
    }

    /// The tag of a frame to `receiver`: `sealed` is all of it but the tag, up to the
    /// bytes of an enclosed message.
    pub(crate) fn tag(&self, receiver: ProcessId, sealed: &[&[u8]]) -> u64 {
        let mut hash = self.0;
        hash.write_u32(receiver.nid);
        hash.write_u32(receiver.pid);
        sealed.iter().for_each(|part| hash.write(part));
        hash.finish()
    }

    /// A frame's beginning; `table` is what of its payload is [sealed](Header::sealed).
    pub(crate) fn write(
        &self,
        receiver: ProcessId,
        header: &Header,
        words: &Words,
        table: &[u8],
    ) -> Prefix {
        debug_assert_eq!(table.len(), header.sealed(), "its reader seals as much");
        let mut bytes = [0; PREFIX];
        let mut writer = Writer {
            bytes: &mut bytes,
            at: 8,
        };
        let flags = if header.ack_requested {
            ACK_REQUESTED
        } else {
            0
        };
        writer.put(&[VERSION, header.kind as u8, flags, header.messages]);
        writer.put(&header.length.to_le_bytes());
        writer.put(&header.from.nid.to_le_bytes());
        writer.put(&header.from.pid.to_le_bytes());
        writer.put(&header.uid.to_le_bytes());
        writer.put(&header.sequence.to_le_bytes());
        writer.put(&header.incarnation.to_le_bytes());
        writer.put(&header.to_incarnation.to_le_bytes());
        writer.put(&header.arrived.to_le_bytes());
        writer.put(&header.consumed.to_le_bytes());
        writer.put(&header.fetched.to_le_bytes());
        writer.put(&header.recalled.to_le_bytes());
        for word in words {
            writer.put(&word.to_le_bytes());
        }
        let sealed = &bytes[8..header.kind.prefix()];
        let tag = self.tag(receiver, &[sealed, table]);
        bytes[..8].copy_from_slice(&tag.to_le_bytes());
        bytes
    }

    /// Reads the beginning of a frame of `length` bytes that has arrived at `receiver`;
    /// `table` gives those bytes of it, which are [sealed](Header::sealed), too.
    pub(crate) fn read(
        &self,
        receiver: ProcessId,
        bytes: &Prefix,
        length: usize,
        table: impl FnOnce(Range<usize>) -> Vec<u8>,
    ) -> Result<(Header, Words, Vec<u8>), Reject> {
        let (header, words) = parse(bytes, length).ok_or(Reject::Malformed)?;
        let prefix = header.kind.prefix();
        let table = match header.sealed() {
            0 => Vec::new(),
            sealed => table(prefix..prefix + sealed),
        };
        let mut reader = Reader { bytes, at: 0 };
        if reader.u64() != self.tag(receiver, &[&bytes[8..prefix], &table]) {
            return Err(Reject::Forged);
        }
        Ok((header, words, table))
    }
}

fn parse(bytes: &Prefix, length: usize) -> Option<(Header, Words)> {
    let mut reader = Reader { bytes, at: 8 };
    let [version, kind, flags, messages] = reader.take();
    if version != VERSION || flags & !ACK_REQUESTED != 0 {
        return None;
    }
    let kind = Kind::of(kind).filter(|kind| length >= kind.prefix())?;
    let header = Header {
        kind,
        ack_requested: flags & ACK_REQUESTED != 0,
        messages,
        length: reader.u32(),
        from: ProcessId::new(reader.u32(), reader.u32()),
        uid: reader.u32(),
        sequence: reader.u32(),
        incarnation: reader.u64(),
        to_incarnation: reader.u64(),
        arrived: reader.u32(),
        consumed: reader.u32(),
        fetched: reader.u32(),
        recalled: reader.u32(),
    };
    let mut words = [0; WORDS];
    let mut reader = Reader { bytes, at: HEADER };
    words.fill_with(|| reader.u64());
    let whole = kind.prefix() + header.length as usize == length;
    (whole && header.is_consistent()).then_some((header, words))
}

/// A piece of a body in its sender's memory, as `fi_read` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) name: u64,
    pub(crate) length: u64,
    pub(crate) key: u64,
}

pub(crate) fn write_table(pieces: &[Piece]) -> Vec<u8> {
    let numbers = pieces
        .iter()
        .flat_map(|piece| [piece.name, piece.length, piece.key]);
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// The pieces and their length; `None` if they are empty or too long.
pub(crate) fn read_table(bytes: &[u8]) -> Option<(Vec<Piece>, u64)> {
    let number = |entry: &[u8], place: usize| {
        let bytes = entry[place * 8..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let pieces: Vec<Piece> = bytes
        .chunks_exact(PIECE)
        .map(|entry| Piece {
            name: number(entry, 0),
            length: number(entry, 1),
            key: number(entry, 2),
        })
        .collect();
    let total = pieces
        .iter()
        .try_fold(0u64, |sum, piece| sum.checked_add(piece.length))?;
    (total > 0).then_some((pieces, total))
}

/// A message of a batch, and where its bytes lie in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) words: Words,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// Appends what the table of a batch says of a message with so many bytes.
pub(crate) fn write_entry(table: &mut Vec<u8>, words: &Words, length: usize) {
    table.extend((length as u64).to_le_bytes());
    words
        .iter()
        .for_each(|word| table.extend(word.to_le_bytes()));
}

/// The messages of a batch with that table and a payload of so many bytes; `None` if the two don't
/// agree.
pub(crate) fn read_batch(table: &[u8], payload: usize) -> Option<Vec<Entry>> {
    let mut offset = HEADER + table.len();
    let end = HEADER + payload;
    let mut entries = Vec::with_capacity(table.len() / ENTRY);
    for entry in table.chunks_exact(ENTRY) {
        let mut numbers = entry.chunks_exact(8).map(|number| {
            let bytes = number.try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        });
        let length = usize::try_from(numbers.next()?).ok()?;
        let length = Some(length).filter(|length| *length <= end - offset)?;
        let mut words = [0; WORDS];
        words.fill_with(|| numbers.next().expect("an entry has all words"));
        entries.push(Entry {
            words,
            offset: offset as u32,
            length: length as u32,
        });
        offset += length;
    }
    (offset == end).then_some(entries)
}

struct Writer<'a> {
    bytes: &'a mut Prefix,
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

struct Reader<'a> {
    bytes: &'a Prefix,
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.bytes[self.at..][..N]
            .try_into()
            .expect("so many were taken");
        self.at += N;
        bytes
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVER: ProcessId = ProcessId::new(0x7f00_0001, 7);
    const WORDS: Words = [1, 2, 3, 4, 5, u64::MAX];

    fn header(kind: Kind, length: u32) -> Header {
        Header {
            kind,
            ack_requested: true,
            messages: u8::from(kind.is_message()),
            length,
            from: ProcessId::new(0x7f00_0002, 9),
            uid: 1000,
            sequence: 77,
            incarnation: 0x1122_3344_5566_7788,
            to_incarnation: 5,
            arrived: 1,
            consumed: u32::MAX,
            fetched: 3,
            recalled: 4,
        }
    }

    fn seal() -> Seal {
        Seal::new(&[7; 32])
    }

    #[test]
    fn what_was_written_is_read() {
        for (kind, length) in [
            (Kind::Inline, 100),
            (Kind::Status, 0),
            (Kind::Close, 0),
            (Kind::Recall, 0),
            (Kind::RecallAck, 0),
        ] {
            let header = header(kind, length);
            let bytes = seal().write(RECEIVER, &header, &WORDS, &[]);
            let whole = kind.prefix() + length as usize;
            let read = seal().read(RECEIVER, &bytes, whole, |_| Vec::new());
            let (read, words, _) = read.expect("it is whole");
            assert_eq!(read, header);
            assert!(words == WORDS || !kind.is_message());
        }
    }

    #[test]
    fn a_frame_that_has_no_bytes_and_names_some_is_refused() {
        for kind in [Kind::Status, Kind::Close, Kind::Recall, Kind::RecallAck] {
            let bytes = seal().write(RECEIVER, &header(kind, 8), &WORDS, &[]);
            let read = seal().read(RECEIVER, &bytes, kind.prefix() + 8, |_| Vec::new());
            assert!(read.is_err(), "{kind:?}");
        }
    }

    #[test]
    fn every_sealed_bit_counts() {
        let table = write_table(&[Piece {
            name: 1,
            length: 2,
            key: 3,
        }]);
        let header = header(Kind::Rendezvous, table.len() as u32);
        let bytes = seal().write(RECEIVER, &header, &WORDS, &table);
        let whole = PREFIX + table.len();
        assert!(
            seal()
                .read(RECEIVER, &bytes, whole, |_| table.clone())
                .is_ok()
        );
        for bit in 0..PREFIX * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(
                seal()
                    .read(RECEIVER, &changed, whole, |_| table.clone())
                    .is_err(),
                "bit {bit}"
            );
        }
        for bit in 0..table.len() * 8 {
            let mut changed = table.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let read = seal().read(RECEIVER, &bytes, whole, |_| changed);
            assert_eq!(read, Err(Reject::Forged), "bit {bit} of the table");
        }
    }

    /// The table of a batch of messages with so many bytes.
    fn batch_table(lengths: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut table = Vec::new();
        for length in lengths {
            write_entry(&mut table, &[length as u64; 6], length);
        }
        table
    }

    #[test]
    fn every_bit_of_a_batchs_table_counts() {
        let table = batch_table([5, 0, 3]);
        let header = Header {
            messages: 3,
            ..header(Kind::Batch, table.len() as u32 + 8)
        };
        let bytes = seal().write(RECEIVER, &header, &[0; 6], &table);
        let whole = HEADER + table.len() + 8;
        let read = |table: &[u8]| {
            let place = |range| {
                assert_eq!(range, HEADER..HEADER + table.len());
                table.to_vec()
            };
            seal().read(RECEIVER, &bytes, whole, place)
        };
        let (read_header, _, read_table) = read(&table).expect("it is whole");
        assert_eq!((read_header, &read_table), (header, &table));
        for bit in 0..table.len() * 8 {
            let mut changed = table.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&changed), Err(Reject::Forged), "bit {bit}");
        }
    }

    #[test]
    fn a_batch_gives_its_messages_and_where_their_bytes_lie() {
        let table = batch_table(0..MAX_BATCH);
        let bytes: usize = (0..MAX_BATCH).sum();
        let entries = read_batch(&table, table.len() + bytes).expect("it is whole");
        let mut offset = HEADER + table.len();
        for (length, entry) in entries.iter().enumerate() {
            let expected = Entry {
                words: [length as u64; 6],
                offset: offset as u32,
                length: length as u32,
            };
            assert_eq!(*entry, expected);
            offset += length;
        }
        assert_eq!(entries.len(), MAX_BATCH);
        for other in (table.len()..table.len() + 2 * bytes).filter(|n| *n != table.len() + bytes) {
            assert_eq!(read_batch(&table, other), None, "{other} bytes");
        }
        let endless = [u64::MAX.to_le_bytes(); ENTRY / 8].concat();
        assert_eq!(read_batch(&endless, ENTRY), None);
    }

    #[test]
    fn a_number_of_messages_that_its_kind_cant_have_is_malformed() {
        let read = |kind, messages, length| {
            let header = Header {
                messages,
                ..header(kind, length)
            };
            let table = vec![0; header.sealed()];
            let bytes = seal().write(RECEIVER, &header, &WORDS, &table);
            let whole = kind.prefix() + length as usize;
            seal().read(RECEIVER, &bytes, whole, |_| table).map(|_| ())
        };
        let entry = ENTRY as u32;
        let most = MAX_BATCH as u8;
        assert_eq!(read(Kind::Batch, 1, entry), Ok(()));
        assert_eq!(read(Kind::Batch, most, 20 * entry), Ok(()));
        for (kind, messages, length) in [
            (Kind::Batch, 0, entry),
            (Kind::Batch, 2, 2 * entry - 1),
            (Kind::Batch, most + 1, 20 * entry),
            (Kind::Inline, 0, 8),
            (Kind::Inline, 2, 8),
            (Kind::Rendezvous, 2, PIECE as u32),
            (Kind::Status, 1, 0),
        ] {
            let expected = Err(Reject::Malformed);
            assert_eq!(read(kind, messages, length), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_frame_is_for_one_receiver_and_one_job() {
        let bytes = seal().write(RECEIVER, &header(Kind::Status, 0), &WORDS, &[]);
        let other = ProcessId::new(RECEIVER.nid, RECEIVER.pid + 1);
        let read = seal().read(other, &bytes, HEADER, |_| Vec::new());
        assert_eq!(read, Err(Reject::Forged));
        let read = Seal::new(&[8; 32]).read(RECEIVER, &bytes, HEADER, |_| Vec::new());
        assert_eq!(read, Err(Reject::Forged));
    }

    #[test]
    fn lengths_that_dont_agree_are_malformed() {
        let bytes = seal().write(RECEIVER, &header(Kind::Inline, 100), &WORDS, &[]);
        for length in [0, HEADER, PREFIX, PREFIX + 99, PREFIX + 101] {
            let read = seal().read(RECEIVER, &bytes, length, |_| Vec::new());
            assert_eq!(read, Err(Reject::Malformed), "{length} bytes");
        }
        assert_eq!(read_table(&write_table(&[])), None);
        let endless = Piece {
            name: 0,
            length: u64::MAX,
            key: 0,
        };
        assert_eq!(read_table(&write_table(&[endless, endless])), None);
    }
}
