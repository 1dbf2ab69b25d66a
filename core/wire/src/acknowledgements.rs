//! Acknowledgements of puts that landed as they were asked to, several in one message.

use crate::{ACKS, Request, Response, WORDS, Words};
use lintel_types::{AckRequest, InterfaceNumber, List, NiFail};

/// The tokens of puts of one initiator that landed whole on the priority list, in the order of
/// landing. Their acknowledgements have nothing more to say: the manipulated length is the
/// requested one, and the offset, if an event reports it, is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgements(Words);

impl Acknowledgements {
    /// The most that one message carries.
    pub const MOST: usize = 2 * (WORDS - 1);

    /// None yet, of requests to that interface.
    #[inline(always)]
    pub fn new(interface: InterfaceNumber) -> Acknowledgements {
        let kind = (ACKS as u64) << 32 | (interface.bits() as u64) << 40;
        Acknowledgements([kind, 0, 0, 0, 0, 0])
    }

    /// The interface of the requests.
    #[inline(always)]
    pub fn interface(&self) -> InterfaceNumber {
        InterfaceNumber::from_bits((self.0[0] >> 40) as u8)
    }

    /// Whether the response to a request that lands whole on the priority list has nothing to say
    /// but that one's token.
    #[inline(always)]
    pub fn can_acknowledge(request: &Request) -> bool {
        // Only an event reports the offset.
        request.remote_offset == 0 || request.ack != AckRequest::Full
    }

    /// Adds a token other than 0 behind so many others.
    ///
    /// # Panics
    /// Where those are as many as one message carries.
    #[inline(always)]
    pub fn push(&mut self, token: u32, behind: usize) {
        self.0[1 + behind / 2] |= (token as u64) << (behind % 2 * 32);
    }

    /// The tokens, in the order of landing.
    #[inline(always)]
    pub fn tokens(&self) -> impl Iterator<Item = u32> {
        let halves = |word: &u64| [*word as u32, (word >> 32) as u32];
        let tokens = self.0[1..].iter().flat_map(halves);
        tokens.take_while(|token| *token != 0)
    }

    /// The response that a token stands for, to a request to move so many bytes.
    #[inline(always)]
    pub fn response(interface: InterfaceNumber, token: u32, length: u64) -> Response {
        Response {
            reply: false,
            interface,
            placed: false,
            silent: false,
            token,
            mlength: length,
            offset: 0,
            list: List::Priority,
            fail: NiFail::Ok,
        }
    }

    /// As words; the low half of word 0 is zero.
    #[inline(always)]
    pub fn to_words(&self) -> Words {
        self.0
    }

    /// The acknowledgements in the words, if they are some. What lies behind a token of 0 is none.
    #[inline(always)]
    pub fn parse(words: &Words) -> Option<Acknowledgements> {
        let [first, tokens @ ..] = *words;
        let none = Acknowledgements::new(InterfaceNumber::from_bits((first >> 40) as u8));
        let [a, b, c, d, e] = tokens;
        ((first >> 32) as u8 == ACKS).then_some(Acknowledgements([none.0[0], a, b, c, d, e]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn of_tokens(tokens: &[u32]) -> Acknowledgements {
        let mut all = Acknowledgements::new(InterfaceNumber::new(true, true));
        for (behind, token) in tokens.iter().enumerate() {
            all.push(*token, behind);
        }
        all
    }

    #[test]
    fn acknowledgements_survive_their_words() {
        let tokens: [u32; Acknowledgements::MOST] = core::array::from_fn(|at| u32::MAX - at as u32);
        for count in 0..=Acknowledgements::MOST {
            let sent = of_tokens(&tokens[..count]);
            let mut words = sent.to_words();
            assert_eq!(words[0], 8 << 32 | 3 << 40);
            assert_eq!(Acknowledgements::parse(&words), Some(sent));
            let parsed = Message::parse(&words);
            assert_eq!(parsed, Ok(Message::Acknowledgements(sent)));
            assert_eq!(parsed.map(|message| message.to_words()), Ok(words));
            assert!(sent.tokens().eq(tokens[..count].iter().copied()));
            assert_eq!(sent.interface(), InterfaceNumber::new(true, true));
            words[0] |= 0xffff_ffff | 0xfc << 40;
            let of_a_nal = Acknowledgements::parse(&words);
            assert_eq!(of_a_nal, Some(sent), "other bits aren't theirs");
        }
    }

    #[test]
    fn each_token_has_its_half_of_a_word() {
        let words = of_tokens(&[1, 2, 3]).to_words();
        assert_eq!(words[1..], [1 | 2 << 32, 3, 0, 0, 0]);
    }

    #[test]
    fn what_lies_behind_a_token_of_0_is_none() {
        let mut words = of_tokens(&[7]).to_words();
        words[2] = 9;
        let parsed = Acknowledgements::parse(&words);
        assert!(parsed.is_some_and(|all| all.tokens().eq([7])));
    }

    #[test]
    fn words_of_another_kind_are_no_acknowledgements() {
        let response = Acknowledgements::response(InterfaceNumber::default(), 5, 8);
        assert_eq!(Acknowledgements::parse(&response.to_words()), None);
    }

    #[test]
    fn an_offset_that_an_event_reports_is_more_than_a_token_says() {
        for (ack, offset, is_enough) in [
            (AckRequest::Full, 0, true),
            (AckRequest::Full, 8, false),
            (AckRequest::Counting, 8, true),
            (AckRequest::OperationCompleted, 8, true),
        ] {
            let words = [(ack as u64) << 42 | 1 << 32, 5, 8, 0, offset, 0];
            let put = Request::parse_put(&words).unwrap();
            assert_eq!(put.ack, ack);
            assert_eq!(Acknowledgements::can_acknowledge(&put), is_enough);
        }
    }
}
