//! The wire format of PMI-2: `key=value;` words behind a length.
//!
//! ```text
//!   "    29cmd=kvs-put;key=a;value=b;;c;"
//!    └─6──┘└──────── 29 bytes ─────────┘
//! ```
//!
//! Six characters give the number of bytes that follow, in decimal, padded with
//! blanks. A semicolon within a word is written twice. The greeting before the first
//! such message is a line of PMI-1.

use crate::wire::ParseError;

/// Bytes of the length before each message.
pub const LENGTH_DIGITS: usize = 6;
/// Longest accepted message in bytes, its length not counted.
pub const MAX_MESSAGE: usize = 65536;

/// One message.
///
/// ```
/// use lintel_pmi::wire2::Message;
///
/// let put = Message::new("kvs-put").with("key", "a").with("value", "b;c");
/// assert_eq!(put.encode(), b"    29cmd=kvs-put;key=a;value=b;;c;");
/// let read = Message::parse(b"cmd=kvs-put;key=a;value=b;;c;").unwrap();
/// assert_eq!(read, put);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    words: Vec<(String, String)>,
}

impl Message {
    /// A message of the command alone.
    pub fn new(command: &str) -> Message {
        let words = Vec::new();
        Message { words }.with("cmd", command)
    }

    /// With a further word.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Message {
        self.words.push((key.into(), value.into()));
        self
    }

    /// The number of bytes that the length `digits` announces.
    ///
    /// # Errors
    /// No number, or more than [`MAX_MESSAGE`].
    pub fn length(digits: &[u8]) -> Result<usize, ParseError> {
        let text = std::str::from_utf8(digits).map_err(|_| ParseError::NotText)?;
        let length = text.trim().parse().map_err(|_| ParseError::NoLength)?;
        match length <= MAX_MESSAGE {
            true => Ok(length),
            false => Err(ParseError::TooLong),
        }
    }

    /// Parses a message, its length already taken off.
    ///
    /// # Errors
    /// [`ParseError`] if it is none.
    pub fn parse(bytes: &[u8]) -> Result<Message, ParseError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ParseError::NotText)?;
        let mut words = Vec::new();
        let mut rest = text.trim_end_matches(['\n', '\0']);
        while !rest.is_empty() {
            let (word, after) = split_word(rest);
            match word.split_once('=') {
                Some(("", _)) | None => return Err(ParseError::NoKey),
                Some((key, value)) => words.push((key.into(), value.into())),
            }
            rest = after;
        }
        let message = Message { words };
        match message.get("cmd") {
            Some(_) => Ok(message),
            None => Err(ParseError::NoCommand),
        }
    }

    /// The value of `cmd`.
    pub fn command(&self) -> &str {
        self.get("cmd").unwrap_or_default()
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.words.iter().filter(|(k, _)| k == key);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The first value of `key` as a number; `None` if absent or no number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }

    /// To bytes, with the length before them.
    pub fn encode(&self) -> Vec<u8> {
        let words = self.words.iter();
        let body: String = words
            .map(|(key, value)| format!("{};", format!("{key}={value}").replace(';', ";;")))
            .collect();
        format!("{:LENGTH_DIGITS$}{body}", body.len()).into_bytes()
    }
}

/// Cuts a byte stream into messages, holding no more than an unfinished one.
#[derive(Debug, Default)]
pub struct Messages {
    held: Vec<u8>,
}

impl Messages {
    /// Takes bytes off the front of `bytes`, up to the end of a message; `None` if all
    /// is taken and no message is complete.
    ///
    /// # Errors
    /// The rest of the stream can't be parsed.
    pub fn take_message(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, ParseError> {
        if !self.fill(LENGTH_DIGITS, bytes) {
            return Ok(None);
        }
        let length = Message::length(&self.held[..LENGTH_DIGITS])?;
        if !self.fill(LENGTH_DIGITS + length, bytes) {
            return Ok(None);
        }
        let whole = std::mem::take(&mut self.held);
        Message::parse(&whole[LENGTH_DIGITS..]).map(Some)
    }

    /// Whether `count` bytes are held, after taking what is missing.
    fn fill(&mut self, count: usize, bytes: &mut &[u8]) -> bool {
        let missing = count.saturating_sub(self.held.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(missing);
        self.held.extend_from_slice(taken);
        *bytes = rest;
        self.held.len() >= count
    }
}

/// The first word of `text`, its doubled semicolons made single, and what follows it.
fn split_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut rest = text;
    loop {
        let (piece, after) = rest.split_once(';').unwrap_or((rest, ""));
        word.push_str(piece);
        let Some(after) = after.strip_prefix(';') else {
            return (word, after);
        };
        word.push(';');
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_survive_at_every_place_of_a_word() {
        for value in ["", ";", "a;", ";b", ";;", "a;;b;", "plain"] {
            let message = Message::new("x").with("v", value).with("w;w;", "1");
            let bytes = message.encode();
            let (length, body) = bytes.split_at(LENGTH_DIGITS);
            assert_eq!(Message::length(length), Ok(body.len()));
            assert_eq!(Message::parse(body), Ok(message), "{value:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_by_reason() {
        assert_eq!(Message::length(b"   12x"), Err(ParseError::NoLength));
        assert_eq!(Message::length(b"999999"), Err(ParseError::TooLong));
        assert_eq!(Message::parse(b"cmd=x;=1;"), Err(ParseError::NoKey));
        assert_eq!(Message::parse(b"cmd=x;word;"), Err(ParseError::NoKey));
        assert_eq!(Message::parse(b"key=x;"), Err(ParseError::NoCommand));
        assert_eq!(Message::parse(b"cmd=\xff;"), Err(ParseError::NotText));
    }
}
