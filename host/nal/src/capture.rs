//! Middleware that captures messages: each is a packet of a pcapng file, which Wireshark shows
//! with the project's dissector (`tools/lintel/wireshark/lintel.lua`). Networks have authenticated
//! what is captured, and put it in order.
//!
//! A packet, little-endian, version 1:
//!
//! ```text
//!  byte        0        1        2        3        4        5        6        7
//!     0 | version |  what  |  body  |   0    | user of the sender (uid)          |
//!     8 | source node                        | source pid                        |
//!    16 | destination node                   | destination pid                   |
//!    24 | bytes of the body                                                      |
//!    32 | the six words of the message (48), the first with a low half of 0      |
//!    80 | the body's first bytes, if they came with the message                  |
//! ```
//!
//! **What**: 1 a message was sent; 2 one has arrived; 3 one couldn't be sent, for its destination
//! is unknown; 4 a body that a peer lent was fetched; 5 one was filled; 6 a stream is whole; 7 a
//! stream was broken off; 8 a process is lost. From 4 on a packet ends at byte 32.
//! **Body**: 0 with the message; 1 it stays where it is, for the receiver to fetch or fill; 2 it
//! follows as a stream.

use crate::pcapng::{Direction, Writer};
use crate::{Arrival, MoveError, Nal, Origin, Outgoing, Payload, RemoteLoan, Unreachable};
use crate::{Wake, forward};
use lintel_claim::{Claim, Lent};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::io::Write;
use std::time::SystemTime;

/// Bytes of a body that are captured.
pub const BODY_BYTES: usize = 256;
/// Bytes of the longest packet: what is ahead of a message's words, the words, and the body.
const MOST_BYTES: usize = 32 + lintel_wire::BYTES + BODY_BYTES;

const VERSION: u8 = 1;

/// What a packet is about.
#[derive(Clone, Copy)]
enum What {
    Sent = 1,
    Arrived = 2,
    Unreachable = 3,
    Fetched = 4,
    Filled = 5,
    Streamed = 6,
    Broken = 7,
    Lost = 8,
}

/// Where a body is.
#[derive(Clone, Copy)]
enum Place {
    WithMessage = 0,
    Lent = 1,
    Streamed = 2,
    Placed = 3,
}

/// The first bytes of a packet.
struct Header {
    what: What,
    place: Place,
    uid: u32,
    from: ProcessId,
    to: ProcessId,
    length: u64,
}

/// A NAL whose messages are captured.
pub struct Capture<N, W> {
    inner: N,
    /// This process, and its user.
    me: ProcessId,
    uid: u32,
    /// Nothing once it has failed.
    packets: Option<Writer<W>>,
    /// Hears why the capture ends before the process does.
    warn: fn(&str),
    /// The packet that is being put together, and bytes of its body beyond what is captured.
    packet: Vec<u8>,
    left_out: u64,
    /// The message that is next was captured.
    is_captured: bool,
}

impl<N, W: Write> Capture<N, W> {
    /// Wraps the NAL of that process and user. `warn` is called once if the capture ends early.
    pub fn new(
        inner: N,
        (me, uid): (ProcessId, u32),
        packets: Writer<W>,
        warn: fn(&str),
    ) -> Capture<N, W> {
        Capture {
            inner,
            me,
            uid,
            packets: Some(packets),
            warn,
            packet: Vec::new(),
            left_out: 0,
            is_captured: false,
        }
    }

    fn on_sent(&mut self, at: SystemTime, what: What, to: ProcessId, message: (&Words, &Outgoing)) {
        let (words, body) = message;
        let (place, pieces, operand) = match body {
            Outgoing::Copied { operand, pieces } => (Place::WithMessage, *pieces, *operand),
            Outgoing::LentToRead(lent) | Outgoing::LentToFill(lent) => {
                (Place::Lent, lent.pieces(), None)
            }
        };
        let operand = operand.map_or(&[][..], |operand| operand);
        self.begin(Header {
            what,
            place,
            uid: self.uid,
            from: self.me,
            to,
            length: lintel_memory::length(pieces) + operand.len() as u64,
        });
        self.put_words(words);
        if matches!(place, Place::WithMessage) {
            self.packet.extend_from_slice(operand);
            pieces.iter().for_each(|piece| self.put_body(*piece));
        }
        self.end(at, Direction::Out);
    }

    fn on_next(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Message(..) if self.is_captured => {}
            Arrival::Message(origin, words, payload) => {
                self.is_captured = true;
                self.on_message(*origin, words, payload);
            }
            Arrival::Streamed(from) => self.on_change(What::Streamed, from.process, from.uid),
            Arrival::Broken(from) => self.on_change(What::Broken, from.process, from.uid),
            Arrival::Lost(process) => self.on_change(What::Lost, *process, 0),
            Arrival::Returned(_) | Arrival::Moved(..) => {}
        }
    }

    fn on_message(&mut self, from: Origin, words: &Words, payload: &Payload) {
        let (place, length) = match payload {
            Payload::Inline(claim) => (Place::WithMessage, claim.len()),
            Payload::Lent(loan) => (Place::Lent, loan.spans.length()),
            Payload::Streamed(length) => (Place::Streamed, *length),
            Payload::Placed => (Place::Placed, 0),
        };
        self.begin(Header {
            what: What::Arrived,
            place,
            uid: from.uid,
            from: from.process,
            to: self.me,
            length,
        });
        self.put_words(words);
        if let Payload::Inline(claim) = payload {
            self.put_body(*claim);
        }
        self.end(SystemTime::now(), Direction::In);
    }

    fn on_change(&mut self, what: What, from: ProcessId, uid: u32) {
        self.begin(Header {
            what,
            place: Place::Streamed,
            uid,
            from,
            to: self.me,
            length: 0,
        });
        self.end(SystemTime::now(), Direction::In);
    }

    /// A body was fetched from its lender.
    fn on_fetched(&mut self, lender: Origin, length: u64) {
        self.begin(Header {
            what: What::Fetched,
            place: Place::Lent,
            uid: lender.uid,
            from: lender.process,
            to: self.me,
            length,
        });
        self.end(SystemTime::now(), Direction::In);
    }

    /// Memory that a peer had lent was filled.
    fn on_filled(&mut self, lender: Origin, length: u64) {
        self.begin(Header {
            what: What::Filled,
            place: Place::Lent,
            uid: self.uid,
            from: self.me,
            to: lender.process,
            length,
        });
        self.end(SystemTime::now(), Direction::Out);
    }

    fn begin(&mut self, header: Header) {
        let Header { from, to, .. } = header;
        self.left_out = 0;
        self.packet.clear();
        let kinds = [VERSION, header.what as u8, header.place as u8, 0];
        self.packet.extend(kinds);
        for field in [header.uid, from.nid, from.pid, to.nid, to.pid] {
            self.packet.extend(field.to_le_bytes());
        }
        self.packet.extend(header.length.to_le_bytes());
    }

    fn put_words(&mut self, words: &Words) {
        let of_message = words[0] & !u64::from(u32::MAX);
        for word in [of_message].iter().chain(&words[1..]) {
            self.packet.extend(word.to_le_bytes());
        }
    }

    /// As much of the body's next bytes as is captured.
    fn put_body(&mut self, piece: Claim) {
        let at = self.packet.len();
        let room = MOST_BYTES.saturating_sub(at);
        self.packet.resize(at + room, 0);
        let read = piece.read(&mut self.packet[at..]);
        self.packet.truncate(at + read);
        self.left_out += piece.len() - read as u64;
    }

    fn end(&mut self, at: SystemTime, direction: Direction) {
        let Some(packets) = &mut self.packets else {
            return;
        };
        let length = self.packet.len() as u64 + self.left_out;
        if let Err(error) = packets.add(at, direction, &self.packet, length) {
            self.packets = None;
            (self.warn)(&format!("the capture of messages ends: {error}"));
        }
    }
}

impl<N: Nal, W: Write> Nal for Capture<N, W> {
    // Not `next_inline`: each message goes through `next`.
    forward!(self { Capture { inner, .. } => inner }: capabilities, leave_to, begin_parts,
        take_part, revoke_grant, note_moved, receive_into, recall, backlog,
        lends, resources, traffic, arrivals);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let at = SystemTime::now();
        let sent = self.inner.send(to, words, body);
        let what = sent.map_or(What::Unreachable, |()| What::Sent);
        self.on_sent(at, what, to, (words, &body));
        sent
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        let at = SystemTime::now();
        let sent = self.inner.send_lent(to, words, body, number);
        let message = (words, &Outgoing::LentToRead(body));
        match sent {
            Ok(true) => self.on_sent(at, What::Sent, to, message),
            Ok(false) => {}
            Err(Unreachable) => self.on_sent(at, What::Unreachable, to, message),
        }
        sent
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(arrival) = &arrival {
            self.on_next(arrival);
        }
        arrival
    }

    fn done(&mut self, origin: Origin) {
        self.is_captured = false;
        self.inner.done(origin);
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        let fetched = self.inner.fetch(from, remote, to)?;
        self.on_fetched(from, fetched);
        Ok(fetched)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        let filled = self.inner.fill(to, from, remote)?;
        self.on_filled(to, filled);
        Ok(filled)
    }
}

impl<N: Nal, W: Write> Wake for Capture<N, W> {
    forward!(self { Capture { inner, .. } => inner }: ..Wake);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loopback;
    use lintel_claim::Region;
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;

    const ME: ProcessId = ProcessId::new(0x7f00_0001, 7);

    /// A file in memory that a test looks into; broken from some length on.
    #[derive(Clone, Default)]
    struct File(Rc<RefCell<Vec<u8>>>);

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn capture(most: u64) -> (Capture<Loopback, File>, File) {
        let file = File::default();
        let writer = Writer::new(file.clone(), "test", "loopback", most);
        let writer = writer.expect("memory takes it");
        let nal = Loopback::new(ME, 5);
        (Capture::new(nal, (ME, 5), writer, |_| {}), file)
    }

    /// The packets of a capture, with the lengths that they had.
    fn packets(file: &File) -> Vec<(Vec<u8>, u32)> {
        let file = file.0.borrow();
        let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().expect("a word"));
        let (mut at, mut packets) = (0, Vec::new());
        while at < file.len() {
            if word(at) == 6 {
                let captured = word(at + 20) as usize;
                packets.push((file[at + 28..][..captured].to_vec(), word(at + 24)));
            }
            at += word(at + 4) as usize;
        }
        packets
    }

    fn send(nal: &mut impl Nal, bytes: u64) {
        let region = Region::new(bytes);
        region.write(0, &vec![7; bytes as usize]);
        let body = Outgoing::Copied {
            operand: None,
            pieces: &[region.claim()],
        };
        let words = [0x2_0000_0001, 2, 3, 4, 5, 6];
        nal.send(ME, &words, body).expect("it reaches itself");
    }

    #[test]
    fn a_message_is_captured_when_it_is_sent_and_once_when_it_arrives() {
        let (mut nal, file) = capture(1 << 20);
        send(&mut nal, 3);
        for _ in 0..2 {
            assert!(nal.next().is_some());
        }
        let origin = match nal.next() {
            Some(Arrival::Message(origin, ..)) => origin,
            other => panic!("{other:?}"),
        };
        nal.done(origin);
        assert!(nal.next().is_none());
        let mut expected = vec![VERSION, What::Sent as u8, 0, 0, 5, 0, 0, 0];
        for _ in ["source", "destination"] {
            expected.extend([1, 0, 0, 0x7f, 7, 0, 0, 0]);
        }
        expected.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        for word in [0x2_0000_0000_u64, 2, 3, 4, 5, 6] {
            expected.extend(word.to_le_bytes());
        }
        expected.extend([7, 7, 7]);
        let mut arrived = expected.clone();
        arrived[1] = What::Arrived as u8;
        assert_eq!(packets(&file), [(expected, 83), (arrived, 83)]);
    }

    #[test]
    fn of_a_long_body_the_beginning_is_captured() {
        let (mut nal, file) = capture(1 << 20);
        send(&mut nal, 1000);
        let packets = packets(&file);
        let (packet, whole) = &packets[0];
        assert_eq!((packet.len(), *whole), (80 + BODY_BYTES, 80 + 1000));
    }

    #[test]
    fn a_full_capture_leaves_messages_alone() {
        let (mut nal, file) = capture(300);
        for _ in 0..10 {
            send(&mut nal, 8);
        }
        assert!(file.0.borrow().len() <= 300);
        assert!(nal.packets.is_none());
        assert!(nal.next().is_some());
    }
}
