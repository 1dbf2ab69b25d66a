//! The wire format: lines of `key=value` words, and their limits.
//!
//! A line ends with a newline. Words are separated by spaces; a word's key ends
//! at its first `=`, so a value may hold more of them. A word without `=`
//! continues the value before it, because error texts carry spaces.

use std::fmt;

/// Longest accepted line in bytes, newline included.
///
/// Simple clients cut theirs at 1024; the rest is room for newer ones.
pub const MAX_LINE: usize = 8192;
/// Bytes of a key-value store's name, its terminating NUL included.
pub const KVS_NAME_MAX: usize = 256;
/// Bytes of a key, its terminating NUL included.
pub const KEY_MAX: usize = 64;
/// Bytes of a value, its terminating NUL included.
pub const VALUE_MAX: usize = 1024;

/// One parsed line.
///
/// ```
/// use lintel_pmi::wire::Message;
///
/// let put = Message::parse("cmd=put kvsname=k key=addr value=tcp://a?b=c").unwrap();
/// assert_eq!(put.command(), "put");
/// assert_eq!(put.get("value"), Some("tcp://a?b=c"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    words: Vec<(String, String)>,
    command: usize,
}

impl Message {
    /// Parses one line, with or without its newline.
    ///
    /// # Errors
    /// [`ParseError`] if the line is no message.
    pub fn parse(line: &str) -> Result<Message, ParseError> {
        let mut words: Vec<(String, String)> = Vec::new();
        for word in line
            .split([' ', '\t', '\r', '\n'])
            .filter(|w| !w.is_empty())
        {
            match word.split_once('=') {
                Some(("", _)) => return Err(ParseError::NoKey),
                Some((key, value)) => words.push((key.into(), value.into())),
                None => {
                    let (_, value) = words.last_mut().ok_or(ParseError::NoKey)?;
                    value.push(' ');
                    value.push_str(word);
                }
            }
        }
        let command = words
            .iter()
            .position(|(key, _)| key == "cmd" || key == "mcmd")
            .ok_or(ParseError::NoCommand)?;
        Ok(Message { words, command })
    }

    /// The value of `cmd` or `mcmd`.
    pub fn command(&self) -> &str {
        &self.words[self.command].1
    }

    /// Whether the message opens a block that ends with `endcmd`.
    pub fn is_multi_line(&self) -> bool {
        self.words[self.command].0 == "mcmd"
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.words
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of `key` as a number; `None` if absent or no number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }
}

/// Why a line, a message or a stream is not PMI. The peer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// A word begins with `=`, or a word that must be `key=value` is other text.
    NoKey,
    /// Neither `cmd=` nor `mcmd=` is on the line.
    NoCommand,
    /// The line is longer than [`MAX_LINE`].
    TooLong,
    /// The line is not UTF-8.
    NotText,
    /// A message of PMI-2 begins with something else than its length.
    NoLength,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NoKey => write!(f, "a word is not of the form key=value"),
            ParseError::NoCommand => write!(f, "the line has no cmd="),
            ParseError::TooLong => write!(f, "a line or message is longer than may be"),
            ParseError::NotText => write!(f, "the line is not UTF-8 text"),
            ParseError::NoLength => write!(f, "a message does not begin with its length"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Cuts a byte stream into lines, holding at most [`MAX_LINE`] bytes of an
/// unfinished one.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
}

impl Lines {
    /// Passes each line that `bytes` completes to `each`, without its newline.
    ///
    /// # Errors
    /// The first error; nothing behind it can be parsed.
    pub fn on_bytes(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let mut rest = bytes;
        while let Some(line) = self.take_line(&mut rest)? {
            each(&line)?;
        }
        Ok(())
    }

    /// Takes bytes off the front of `bytes`, up to the end of a line, and returns the line
    /// without its newline; `None` if all is taken and no line is complete.
    ///
    /// # Errors
    /// The rest of the stream can't be parsed.
    pub fn take_line(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, ParseError> {
        let end = bytes.iter().position(|&b| b == b'\n');
        let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        *bytes = rest;
        if self.held.len() + piece.len() > MAX_LINE {
            return Err(ParseError::TooLong);
        }
        self.held.extend_from_slice(piece);
        if end.is_none() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.held);
        let text = std::str::from_utf8(&line).map_err(|_| ParseError::NotText)?;
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_equals_continue_the_value_before() {
        let abort = Message::parse("cmd=abort exitcode=3 message=out of memory").unwrap();
        assert_eq!(abort.number("exitcode"), Some(3));
        assert_eq!(abort.get("message"), Some("out of memory"));
    }

    #[test]
    fn lines_that_are_no_messages_are_refused_by_reason() {
        assert_eq!(Message::parse("=x"), Err(ParseError::NoKey));
        assert_eq!(Message::parse("hello cmd=init"), Err(ParseError::NoKey));
        assert_eq!(Message::parse("key=x"), Err(ParseError::NoCommand));
        assert_eq!(Message::parse(""), Err(ParseError::NoCommand));
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_without_being_held() {
        let mut lines = Lines::default();
        let chunk = [b'a'; 1000];
        let mut outcome = Ok(());
        for _ in 0..100 {
            outcome = lines.on_bytes(&chunk, |_| Ok(()));
        }
        assert_eq!(outcome, Err(ParseError::TooLong));
        assert!(lines.held.len() <= MAX_LINE);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let mut lines = Lines::default();
        assert_eq!(
            lines.on_bytes(b"cmd=\xff\n", |_| Ok(())),
            Err(ParseError::NotText)
        );
    }
}
