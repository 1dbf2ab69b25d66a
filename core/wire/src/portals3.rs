//! Portals 3.3 messages in the same six words. Their kinds begin at 9, so that no message of
//! one protocol is ever taken for one of the other; like those of Portals 4 they leave the
//! four high bits of their byte to the NAL.
//!
//! ```text
//!        63          48 47    40 39  32 31              16 15              0
//! word 0 | portal       | flags  | kind | left to the NAL                  |
//! word 1 | initiator's job              | token of the initiator           |
//! word 2 | access index | length (48 bits)                                 |
//! word 3 | match bits                                                      |
//! word 4 | remote offset                                                   |
//! word 5 | header data                                                     |
//! ```
//!
//! A response has its failure in the place of the access index, and leaves words 3 and 5
//! empty. Flags are those of Portals 4; of the acknowledgements only none and full.

use crate::{MAX_LENGTH, Malformed, Words};
use lintel_types::{InterfaceNumber, NiFail, PortalIndex};

/// The operation that a request asks the target for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Verb {
    /// `PtlPut`, `PtlPutRegion`: write the body to the target.
    Put = 0x9,
    /// `PtlGet`, `PtlGetRegion`: read from the target.
    Get = 0xa,
    /// `PtlGetPut`: exchange the body with the target.
    GetPut = 0xb,
}

const ACK: u8 = 0xe;
const REPLY: u8 = 0xf;

const ACK_REQUESTED: u8 = 1 << 2;
const SILENT: u8 = 1 << 2;
const REFERENCED: u8 = 1 << 4;
const PLACED: u8 = 1 << 4;

/// A request, from an initiator to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The operation.
    pub verb: Verb,
    /// The interface that sends and that is addressed, the same number in each process.
    pub interface: InterfaceNumber,
    /// The initiator asks for an acknowledgement.
    pub ack: bool,
    /// The body stays with the initiator until the target fetches or fills it.
    pub referenced: bool,
    /// Portal table index at the target.
    pub portal: PortalIndex,
    /// Index of the target's access control table.
    pub access: u16,
    /// Names the operation at the initiator; 0 if no response is awaited.
    pub token: u32,
    /// Job of the initiator.
    pub jid: u32,
    /// Requested length, bytes.
    pub length: u64,
    /// Match bits of the message.
    pub match_bits: u64,
    /// Offset at the target, bytes.
    pub remote_offset: u64,
    /// Out-of-band data of the initiator, for the target's events.
    pub hdr_data: u64,
}

/// A response, from a target to an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// It answers a get or an exchange, and carries or has placed data.
    pub reply: bool,
    /// The interface of the request.
    pub interface: InterfaceNumber,
    /// The target has written the reply's data to the initiator's memory.
    pub placed: bool,
    /// No acknowledgement is due; the response only ends the operation at the initiator.
    pub silent: bool,
    /// The token of the request.
    pub token: u32,
    /// Manipulated length: bytes moved at the target.
    pub mlength: u64,
    /// Offset used at the target, bytes.
    pub offset: u64,
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
}

impl Request {
    /// The request as words; the low half of word 0 is zero.
    #[inline]
    pub fn to_words(&self) -> Words {
        let flags = self.interface.bits()
            | if self.ack { ACK_REQUESTED } else { 0 }
            | if self.referenced { REFERENCED } else { 0 };
        [
            (self.verb as u64) << 32 | u64::from(flags) << 40 | u64::from(self.portal.0) << 48,
            u64::from(self.token) | u64::from(self.jid) << 32,
            self.length | u64::from(self.access) << 48,
            self.match_bits,
            self.remote_offset,
            self.hdr_data,
        ]
    }

    /// The response of a target that drops the request, if one is awaited.
    pub fn refusal(&self) -> Option<Response> {
        (self.token != 0).then(|| Response {
            reply: self.verb != Verb::Put,
            interface: self.interface,
            placed: false,
            silent: false,
            token: self.token,
            mlength: 0,
            offset: self.remote_offset,
            fail: NiFail::Dropped,
        })
    }

    /// The put in the words, if they are one.
    #[inline(always)]
    pub fn parse_put(words: &Words) -> Option<Request> {
        let is_put = (words[0] >> 32) as u8 == Verb::Put as u8;
        is_put.then(|| Request::parse(words, Verb::Put, (words[0] >> 40) as u8))
    }

    #[inline(always)]
    fn parse(words: &Words, verb: Verb, flags: u8) -> Request {
        Request {
            verb,
            interface: InterfaceNumber::from_bits(flags),
            ack: flags & ACK_REQUESTED != 0,
            referenced: flags & REFERENCED != 0,
            portal: PortalIndex((words[0] >> 48) as u16),
            access: (words[2] >> 48) as u16,
            token: words[1] as u32,
            jid: (words[1] >> 32) as u32,
            length: words[2] & MAX_LENGTH,
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
        let flags = self.interface.bits()
            | if self.silent { SILENT } else { 0 }
            | if self.placed { PLACED } else { 0 };
        [
            u64::from(kind) << 32 | u64::from(flags) << 40,
            u64::from(self.token),
            self.mlength | (self.fail as u64) << 48,
            0,
            self.offset,
            0,
        ]
    }

    /// The response to a put in the words, if they are one.
    #[inline(always)]
    pub fn parse_acknowledgement(words: &Words) -> Option<Response> {
        let is_answer_to_put = (words[0] >> 32) as u8 == ACK;
        let flags = (words[0] >> 40) as u8;
        is_answer_to_put.then(|| Response::parse(words, false, flags).ok())?
    }

    #[inline(always)]
    fn parse(words: &Words, reply: bool, flags: u8) -> Result<Response, Malformed> {
        let fail = words[2] >> 48;
        if fail > NiFail::Segv as u64 {
            return Err(Malformed);
        }
        Ok(Response {
            reply,
            interface: InterfaceNumber::from_bits(flags),
            placed: flags & PLACED != 0,
            silent: flags & SILENT != 0,
            token: words[1] as u32,
            mlength: words[2] & MAX_LENGTH,
            offset: words[4],
            fail: NiFail::from_bits(fail as u8),
        })
    }
}

impl Message {
    /// The message in the words; the low half of word 0 is ignored.
    ///
    /// # Errors
    /// The words are no message of Portals 3.3.
    #[inline]
    pub fn parse(words: &Words) -> Result<Message, Malformed> {
        let flags = (words[0] >> 40) as u8;
        let verb = match (words[0] >> 32) as u8 {
            0x9 => Verb::Put,
            0xa => Verb::Get,
            0xb => Verb::GetPut,
            ACK => return Response::parse(words, false, flags).map(Message::Response),
            REPLY => return Response::parse(words, true, flags).map(Message::Response),
            _ => return Err(Malformed),
        };
        Ok(Message::Request(Request::parse(words, verb, flags)))
    }

    /// As words; the low half of word 0 is zero.
    #[inline]
    pub fn to_words(&self) -> Words {
        match self {
            Message::Request(request) => request.to_words(),
            Message::Response(response) => response.to_words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            verb: Verb::Put,
            interface: InterfaceNumber::from_bits(0),
            ack: false,
            referenced: false,
            portal: PortalIndex(0),
            access: 0,
            token: 0,
            jid: 0,
            length: 0,
            match_bits: 0,
            remote_offset: 0,
            hdr_data: 0,
        }
    }

    fn response() -> Response {
        Response {
            reply: false,
            interface: InterfaceNumber::from_bits(0),
            placed: false,
            silent: false,
            token: 0,
            mlength: 0,
            offset: 0,
            fail: NiFail::Ok,
        }
    }

    #[test]
    fn each_field_of_a_request_has_its_bits() {
        let (get, exchange) = (Verb::Get, Verb::GetPut);
        let flagged = Request {
            verb: get,
            interface: InterfaceNumber::from_bits(3),
            ack: true,
            referenced: true,
            ..request()
        };
        let addressed = Request {
            verb: exchange,
            portal: PortalIndex(0x8001),
            access: 0x8002,
            token: 5,
            jid: 6,
            length: 7,
            ..request()
        };
        let matched = Request {
            match_bits: 8,
            remote_offset: 9,
            hdr_data: 10,
            ..request()
        };
        for (request, words) in [
            (request(), [0x9 << 32, 0, 0, 0, 0, 0]),
            (flagged, [0xa << 32 | 0x17 << 40, 0, 0, 0, 0, 0]),
            (
                addressed,
                [
                    0xb << 32 | 0x8001 << 48,
                    5 | 6 << 32,
                    7 | 0x8002 << 48,
                    0,
                    0,
                    0,
                ],
            ),
            (matched, [0x9 << 32, 0, 0, 8, 9, 10]),
        ] {
            assert_eq!(request.to_words(), words);
            assert_eq!(Message::Request(request).to_words(), words);
            assert_eq!(Message::parse(&words), Ok(Message::Request(request)));
            let put = (request.verb == Verb::Put).then_some(request);
            assert_eq!(Request::parse_put(&words), put);
        }
    }

    #[test]
    fn each_field_of_a_response_has_its_bits() {
        let reply = Response {
            reply: true,
            interface: InterfaceNumber::from_bits(3),
            placed: true,
            mlength: 6,
            offset: 7,
            ..response()
        };
        let silent = Response {
            silent: true,
            token: 5,
            fail: NiFail::Segv,
            ..response()
        };
        for (response, words) in [
            (response(), [0xe << 32, 0, 0, 0, 0, 0]),
            (reply, [0xf << 32 | 0x13 << 40, 0, 6, 0, 7, 0]),
            (silent, [0xe << 32 | 4 << 40, 5, 7 << 48, 0, 0, 0]),
        ] {
            assert_eq!(response.to_words(), words);
            assert_eq!(Message::Response(response).to_words(), words);
            assert_eq!(Message::parse(&words), Ok(Message::Response(response)));
            let answer = (!response.reply).then_some(response);
            assert_eq!(Response::parse_acknowledgement(&words), answer);
        }
    }

    #[test]
    fn no_kind_is_a_message_of_both_protocols() {
        for kind in 0..=u8::MAX {
            let words = [u64::from(kind) << 32, 0, 0, 0, 0, 0];
            let portals4 = crate::Message::parse(&words).is_ok();
            let portals3 = Message::parse(&words).is_ok();
            assert!(!(portals4 && portals3), "kind {kind:#x}");
            assert_eq!(portals4, (1..=8).contains(&kind), "kind {kind:#x}");
            let expected = [0x9, 0xa, 0xb, 0xe, 0xf].contains(&kind);
            assert_eq!(portals3, expected, "kind {kind:#x}");
        }
    }

    #[test]
    fn a_response_with_an_unknown_failure_is_refused() {
        for fail in [8, 0xff, 0x100, 0xffff_u64] {
            let mut words = response().to_words();
            words[2] |= fail << 48;
            assert_eq!(Message::parse(&words), Err(Malformed));
        }
    }
}
