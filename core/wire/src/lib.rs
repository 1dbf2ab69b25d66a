//! Portals messages as six 64-bit words, the form in which every NAL carries
//! them. Parsing is total: any words give a message or an error.
//!
//! ```text
//!        63          48 47    40 39  32 31              16 15              0
//! word 0 | portal       | flags  | kind | left to the NAL                  |
//! word 1 | initiator's rank             | token of the initiator           |
//! word 2 | datatype | operation | length (48 bits)                         |
//! word 3 | match bits                                                      |
//! word 4 | remote offset                                                   |
//! word 5 | header data                                                     |
//! ```
//!
//! A response has its failure and list in the place of operation and datatype,
//! and leaves words 3 and 5 empty. Flags: bits 0–1 interface, 2–3
//! acknowledgement requested, 4 body referenced (rendezvous), not inline (eager).
//!
//! These are the messages of Portals 4; those of Portals 3.3, in [`portals3`], have kinds of
//! their own.
#![no_std]
#![forbid(unsafe_code)]

mod acknowledgements;
pub mod portals3;

pub use acknowledgements::Acknowledgements;

use lintel_types::{AckRequest, Datatype, InterfaceNumber, List, NiFail, Operation, PortalIndex};

/// Words in a header.
pub const WORDS: usize = 6;
/// Bytes in a header.
pub const BYTES: usize = WORDS * 8;
/// The highest length that a header can carry, bytes.
pub const MAX_LENGTH: u64 = (1 << 48) - 1;
/// Bytes that a swap's operand takes ahead of its data.
pub const OPERAND_BYTES: usize = 32;

/// A header as words.
pub type Words = [u64; WORDS];

/// The operation that a request asks the target for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Verb {
    /// `PtlPut`: write the body to the target.
    Put = 1,
    /// `PtlGet`: read from the target.
    Get = 2,
    /// `PtlAtomic`: combine the body with the target.
    Atomic = 3,
    /// `PtlFetchAtomic`: combine, and return the earlier value.
    FetchAtomic = 4,
    /// `PtlSwap`: exchange, perhaps under a condition or mask.
    Swap = 5,
}

const ACK: u8 = 6;
const REPLY: u8 = 7;
const ACKS: u8 = 8;

/// A request, from an initiator to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What the target is to do.
    pub verb: Verb,
    /// The interface that sends and that is addressed, the same number in each process.
    pub interface: InterfaceNumber,
    /// The acknowledgement that the initiator asks for.
    pub ack: AckRequest,
    /// The body stays with the initiator until the target fetches or fills it.
    pub referenced: bool,
    /// Portal table index at the target.
    pub portal: PortalIndex,
    /// Names the operation at the initiator; 0 if no response is awaited.
    pub token: u32,
    /// Rank of the initiator, on a logical interface.
    pub rank: u32,
    /// Bytes that the initiator asks to move.
    pub length: u64,
    /// `ptl_op_t` of an atomic, the default otherwise.
    pub operation: Operation,
    /// `ptl_datatype_t` of an atomic, the default otherwise.
    pub datatype: Datatype,
    /// Match bits of the message; 0 on a non-matching interface.
    pub match_bits: u64,
    /// Offset at the target, bytes.
    pub remote_offset: u64,
    /// Out-of-band data of the initiator, for the target's events.
    pub hdr_data: u64,
}

/// A response, from a target to an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// It answers a get, fetch or swap, and carries or has placed data.
    pub reply: bool,
    /// The interface of the request.
    pub interface: InterfaceNumber,
    /// The target has written the reply's data to the initiator's memory.
    pub placed: bool,
    /// No acknowledgement is due; the response only ends the loan of the body.
    pub silent: bool,
    /// The token of the request.
    pub token: u32,
    /// Manipulated length: bytes moved at the target.
    pub mlength: u64,
    /// Offset used at the target, bytes.
    pub offset: u64,
    /// The list whose entry matched.
    pub list: List,
    /// Success, or the reason of the failure.
    pub fail: NiFail,
}

/// A message of either direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// From an initiator to a target.
    Request(Request),
    /// From a target to an initiator.
    Response(Response),
    /// From a target to an initiator, for several puts.
    Acknowledgements(Acknowledgements),
}

/// The words are no Portals message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the peer sent words that are no Portals message")
    }
}

impl Request {
    /// The request as words; the low half of word 0 is zero.
    #[inline]
    pub fn to_words(&self) -> Words {
        let flags =
            self.interface.bits() as u64 | (self.ack as u64) << 2 | (self.referenced as u64) << 4;
        [
            (self.verb as u64) << 32 | flags << 40 | (self.portal.0 as u64) << 48,
            self.token as u64 | (self.rank as u64) << 32,
            self.length | (self.operation as u64) << 48 | (self.datatype as u64) << 56,
            self.match_bits,
            self.remote_offset,
            self.hdr_data,
        ]
    }

    /// The put that the words are, if they are one.
    #[inline(always)]
    pub fn parse_put(words: &Words) -> Option<Request> {
        let (operation, datatype) = Default::default();
        Request::is_put(words[0]).then(|| Request::of(words, Verb::Put, operation, datatype))
    }

    /// Whether a message is a put that begins with this word.
    #[inline(always)]
    pub fn is_put(first: u64) -> bool {
        (first >> 32) as u8 == Verb::Put as u8
    }

    #[inline(always)]
    fn of(words: &Words, verb: Verb, operation: Operation, datatype: Datatype) -> Request {
        let flags = (words[0] >> 40) as u8;
        Request {
            verb,
            interface: InterfaceNumber::from_bits(flags),
            ack: match (flags >> 2) & 3 {
                0 => AckRequest::None,
                1 => AckRequest::Full,
                2 => AckRequest::Counting,
                _ => AckRequest::OperationCompleted,
            },
            referenced: flags & 0x10 != 0,
            portal: PortalIndex((words[0] >> 48) as u16),
            token: words[1] as u32,
            rank: (words[1] >> 32) as u32,
            length: words[2] & MAX_LENGTH,
            operation,
            datatype,
            match_bits: words[3],
            remote_offset: words[4],
            hdr_data: words[5],
        }
    }
}

impl Response {
    /// The response as words; the low half of word 0 is zero.
    #[inline]
    pub fn to_words(&self) -> Words {
        let kind = if self.reply { REPLY } else { ACK };
        let flags =
            self.interface.bits() as u64 | (self.silent as u64) << 2 | (self.placed as u64) << 4;
        [
            (kind as u64) << 32 | flags << 40,
            self.token as u64,
            self.mlength | (self.fail as u64) << 48 | (self.list as u64) << 56,
            0,
            self.offset,
            0,
        ]
    }

    /// Whether a message is a response that begins with this word.
    #[inline]
    pub fn is_response(first: u64) -> bool {
        matches!((first >> 32) as u8, ACK | REPLY)
    }

    /// The response to a put or an atomic in the words, if they are one.
    #[inline(always)]
    pub fn parse_acknowledgement(words: &Words) -> Option<Response> {
        let is_acknowledgement = (words[0] >> 32) as u8 == ACK;
        let flags = (words[0] >> 40) as u8;
        is_acknowledgement.then(|| Response::parse(words, false, flags).ok())?
    }
}

/// The kinds of messages, as far as receivers tell them apart at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A put.
    Put,
    /// A get, an atomic, or the reply to either.
    Exchange,
    /// The response to a put or an atomic.
    Acknowledgement,
    /// Several of these.
    Acknowledgements,
    /// None of this format.
    Unknown,
}

/// The operation and the datatype that word 2 of an atomic carries.
#[inline]
fn atomic_of(word: u64) -> Result<(Operation, Datatype), Malformed> {
    let operation = Operation::try_from((word >> 48) as u8);
    let datatype = Datatype::try_from((word >> 56) as u8);
    match (operation, datatype) {
        (Ok(operation), Ok(datatype)) => Ok((operation, datatype)),
        _ => Err(Malformed),
    }
}

impl Message {
    /// What a message is that begins with this word, if it is one at all.
    #[inline(always)]
    pub fn kind(first: u64) -> Kind {
        match (first >> 32) as u8 {
            1 => Kind::Put,
            2..=5 | REPLY => Kind::Exchange,
            ACK => Kind::Acknowledgement,
            ACKS => Kind::Acknowledgements,
            _ => Kind::Unknown,
        }
    }

    /// The message in the words; the low half of word 0 is ignored.
    #[inline]
    pub fn parse(words: &Words) -> Result<Message, Malformed> {
        let flags = (words[0] >> 40) as u8;
        // A put or get ignores the operation and the datatype.
        let none = <(Operation, Datatype)>::default();
        let (verb, (operation, datatype)) = match (words[0] >> 32) as u8 {
            1 => (Verb::Put, none),
            2 => (Verb::Get, none),
            3 => (Verb::Atomic, atomic_of(words[2])?),
            4 => (Verb::FetchAtomic, atomic_of(words[2])?),
            5 => (Verb::Swap, atomic_of(words[2])?),
            ACK => return Response::parse(words, false, flags).map(Message::Response),
            REPLY => return Response::parse(words, true, flags).map(Message::Response),
            ACKS => {
                let parsed = Acknowledgements::parse(words).ok_or(Malformed)?;
                return Ok(Message::Acknowledgements(parsed));
            }
            _ => return Err(Malformed),
        };
        let request = Request::of(words, verb, operation, datatype);
        Ok(Message::Request(request))
    }

    /// As words; the low half of word 0 is zero.
    #[inline]
    pub fn to_words(&self) -> Words {
        match self {
            Message::Request(request) => request.to_words(),
            Message::Response(response) => response.to_words(),
            Message::Acknowledgements(acknowledgements) => acknowledgements.to_words(),
        }
    }
}

impl Response {
    #[inline(always)]
    fn parse(words: &Words, reply: bool, flags: u8) -> Result<Response, Malformed> {
        let (fail, list) = ((words[2] >> 48) as u8, (words[2] >> 56) as u8);
        if fail > NiFail::Segv as u8 || list > 1 {
            return Err(Malformed);
        }
        Ok(Response {
            reply,
            interface: InterfaceNumber::from_bits(flags),
            placed: flags & 0x10 != 0,
            silent: flags & 4 != 0,
            token: words[1] as u32,
            mlength: words[2] & MAX_LENGTH,
            offset: words[4],
            list: if list == 0 {
                List::Priority
            } else {
                List::Overflow
            },
            fail: NiFail::from_bits(fail),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_what_a_message_is() {
        let words = |kind: u64| [kind << 32, 0, 8, 0, 0, 0];
        for number in 0..=255 {
            let kind = match Message::parse(&words(number)) {
                Ok(Message::Request(request)) if request.verb == Verb::Put => Kind::Put,
                Ok(Message::Request(_)) => Kind::Exchange,
                Ok(Message::Response(response)) if response.reply => Kind::Exchange,
                Ok(Message::Response(_)) => Kind::Acknowledgement,
                Ok(Message::Acknowledgements(_)) => Kind::Acknowledgements,
                Err(Malformed) => Kind::Unknown,
            };
            assert_eq!(Message::kind(words(number)[0]), kind, "{number}");
        }
    }

    #[test]
    fn a_request_survives_its_words() {
        let request = Request {
            verb: Verb::Swap,
            interface: InterfaceNumber::new(true, true),
            ack: AckRequest::OperationCompleted,
            referenced: true,
            portal: PortalIndex(0xfffe),
            token: 0xdead_beef,
            rank: 7,
            length: MAX_LENGTH,
            operation: Operation::Mswap,
            datatype: Datatype::LongDoubleComplex,
            match_bits: u64::MAX,
            remote_offset: 1 << 63,
            hdr_data: 42,
        };
        assert_eq!(
            Message::parse(&request.to_words()),
            Ok(Message::Request(request))
        );
    }

    #[test]
    fn a_response_survives_its_words() {
        for bits in 0..8u8 {
            let response = Response {
                reply: bits & 1 != 0,
                interface: InterfaceNumber::new(false, true),
                placed: bits & 2 != 0,
                silent: bits & 4 != 0,
                token: 9,
                mlength: 1234,
                offset: 77,
                list: List::Overflow,
                fail: NiFail::from_bits(bits),
            };
            let words = response.to_words();
            assert_eq!(Message::parse(&words), Ok(Message::Response(response)));
            let acknowledgement = (!response.reply).then_some(response);
            assert_eq!(Response::parse_acknowledgement(&words), acknowledgement);
        }
        assert_eq!(Response::parse_acknowledgement(&request().to_words()), None);
    }

    #[test]
    fn a_put_alone_is_parsed_as_one() {
        for verb in [Verb::Put, Verb::Get, Verb::Swap] {
            let sent = Request { verb, ..request() };
            let expected = (verb == Verb::Put).then_some(sent);
            assert_eq!(Request::parse_put(&sent.to_words()), expected);
        }
        assert_eq!(Request::parse_put(&response().to_words()), None);
    }

    #[test]
    fn words_that_are_no_message_are_refused() {
        assert_eq!(Message::parse(&[0; WORDS]), Err(Malformed));
        assert_eq!(Message::parse(&[u64::MAX; WORDS]), Err(Malformed));
    }

    fn request() -> Request {
        Request {
            verb: Verb::Put,
            interface: InterfaceNumber::new(true, false),
            ack: AckRequest::None,
            referenced: false,
            portal: PortalIndex(0),
            token: 0,
            rank: 0,
            length: 0,
            operation: Operation::default(),
            datatype: Datatype::default(),
            match_bits: 0,
            remote_offset: 0,
            hdr_data: 0,
        }
    }

    fn response() -> Response {
        Response {
            reply: false,
            interface: InterfaceNumber::default(),
            placed: false,
            silent: false,
            token: 0,
            mlength: 0,
            offset: 0,
            list: List::Priority,
            fail: NiFail::Ok,
        }
    }

    /// The layout as the crate's picture has it, word by word.
    #[test]
    fn each_field_of_a_request_has_its_bits() {
        let atomic = Request {
            verb: Verb::Atomic,
            operation: Operation::Sum,
            datatype: Datatype::Int64,
            ..request()
        };
        let flagged = Request {
            ack: AckRequest::Counting,
            referenced: true,
            ..request()
        };
        let addressed = Request {
            portal: PortalIndex(0x8001),
            token: 5,
            rank: 6,
            length: 7,
            ..request()
        };
        let matched = Request {
            match_bits: 8,
            remote_offset: 9,
            hdr_data: 10,
            ..request()
        };
        let plain = 1 << 32 | 1 << 40;
        for (request, words) in [
            (request(), [plain, 0, 0, 0, 0, 0]),
            (atomic, [3 << 32 | 1 << 40, 0, 2 << 48 | 7 << 56, 0, 0, 0]),
            (flagged, [plain | 2 << 42 | 1 << 44, 0, 0, 0, 0, 0]),
            (addressed, [plain | 0x8001 << 48, 5 | 6 << 32, 7, 0, 0, 0]),
            (matched, [plain, 0, 0, 8, 9, 10]),
        ] {
            assert_eq!(request.to_words(), words);
            assert_eq!(Message::Request(request).to_words(), words);
            assert_eq!(Message::parse(&words), Ok(Message::Request(request)));
        }
    }

    #[test]
    fn each_field_of_a_response_has_its_bits() {
        let reply = Response {
            reply: true,
            interface: InterfaceNumber::new(true, true),
            ..response()
        };
        let silent = Response {
            silent: true,
            token: 5,
            ..response()
        };
        let placed = Response {
            placed: true,
            mlength: 6,
            offset: 7,
            ..response()
        };
        let failed = Response {
            fail: NiFail::Segv,
            list: List::Overflow,
            ..response()
        };
        for (response, words) in [
            (response(), [6 << 32, 0, 0, 0, 0, 0]),
            (reply, [7 << 32 | 3 << 40, 0, 0, 0, 0, 0]),
            (silent, [6 << 32 | 1 << 42, 5, 0, 0, 0, 0]),
            (placed, [6 << 32 | 1 << 44, 0, 6, 0, 7, 0]),
            (failed, [6 << 32, 0, 7 << 48 | 1 << 56, 0, 0, 0]),
        ] {
            assert_eq!(response.to_words(), words);
            assert_eq!(Message::Response(response).to_words(), words);
            assert_eq!(Message::parse(&words), Ok(Message::Response(response)));
        }
    }

    #[test]
    fn every_verb_and_acknowledgement_survives_its_words() {
        for verb in [
            Verb::Put,
            Verb::Get,
            Verb::Atomic,
            Verb::FetchAtomic,
            Verb::Swap,
        ] {
            for ack in (0..4).map(|ack| AckRequest::try_from(ack).unwrap()) {
                let sent = Request {
                    verb,
                    ack,
                    ..request()
                };
                let parsed = Message::parse(&sent.to_words());
                assert_eq!(parsed, Ok(Message::Request(sent)));
            }
        }
    }

    #[test]
    fn an_atomic_with_an_unknown_operation_or_datatype_is_refused() {
        let swap = Request {
            verb: Verb::Swap,
            ..request()
        };
        for (operation, datatype) in [(18, 0), (255, 0), (0, 14), (0, 255), (18, 14)] {
            let mut words = swap.to_words();
            words[2] |= operation << 48 | datatype << 56;
            assert_eq!(Message::parse(&words), Err(Malformed));
            words[0] = request().to_words()[0];
            assert_eq!(Message::parse(&words), Ok(Message::Request(request())));
        }
    }

    #[test]
    fn a_response_with_an_unknown_failure_or_list_is_refused() {
        for word in [8 << 48, 255 << 48, 2 << 56] {
            let mut words = response().to_words();
            words[2] = word;
            assert_eq!(Message::parse(&words), Err(Malformed), "{word:#x}");
        }
    }

    #[test]
    fn every_kind_that_is_no_message_is_refused() {
        for kind in (9..256).chain([0]) {
            assert_eq!(Message::parse(&[kind << 32, 0, 0, 0, 0, 0]), Err(Malformed));
        }
    }

    #[test]
    fn a_header_is_six_words_of_eight_bytes() {
        assert_eq!((WORDS, BYTES), (6, 48));
        assert_eq!(BYTES, size_of::<Words>());
    }

    #[test]
    fn the_low_half_of_word_0_is_the_nals() {
        let mut words = request().to_words();
        words[0] |= 0xffff_ffff;
        assert_eq!(Message::parse(&words), Ok(Message::Request(request())));
    }

    #[test]
    fn a_malformed_message_blames_the_peer() {
        extern crate alloc;
        let text = alloc::string::ToString::to_string(&Malformed);
        assert!(text.contains("peer"), "{text}");
    }
}
