//! What is in a message, and the bytes of a pattern.

use lintel_fault::random::Random;

/// A message's meaning; its bytes are words of eight, the pattern of data behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Bytes of the pattern of this seed follow.
    Data { sequence: u64, seed: u64 },
    /// The accepting side's memory for writes and reads.
    Handle { key: u64 },
    /// The pattern of this seed was written there.
    Wrote {
        sequence: u64,
        seed: u64,
        offset: u64,
        length: u64,
    },
    /// It was found there.
    Verified { seed: u64 },
}

/// Bytes of a message before data.
pub const HEADER: usize = 24;

impl Message {
    /// As bytes; of `Data` without the pattern.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = match self {
            Message::Data { sequence, seed } => vec![1, sequence, seed],
            Message::Handle { key } => vec![2, key],
            Message::Wrote {
                sequence,
                seed,
                offset,
                length,
            } => vec![3, sequence, seed, offset, length],
            Message::Verified { seed } => vec![4, seed],
        };
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads a message, and checks the pattern of data.
    pub fn parse(bytes: &[u8]) -> Result<Message, String> {
        let word = |at: usize| {
            let word = bytes.get(at * 8..at * 8 + 8);
            let word = word.and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes)
                .ok_or(format!("a message of {} bytes is cut off", bytes.len()))
        };
        Ok(match word(0)? {
            1 => {
                let (sequence, seed) = (word(1)?, word(2)?);
                check(&bytes[HEADER..], seed)?;
                Message::Data { sequence, seed }
            }
            2 => Message::Handle { key: word(1)? },
            3 => Message::Wrote {
                sequence: word(1)?,
                seed: word(2)?,
                offset: word(3)?,
                length: word(4)?,
            },
            4 => Message::Verified { seed: word(1)? },
            kind => return Err(format!("a message is of kind {kind}, which there isn't")),
        })
    }
}

/// The pattern of a seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = length.div_ceil(8);
    let mut bytes: Vec<u8> = (0..words)
        .flat_map(|_| random.number().to_le_bytes())
        .collect();
    bytes.truncate(length);
    bytes
}

/// Whether bytes are the pattern of a seed.
pub fn check(bytes: &[u8], seed: u64) -> Result<(), String> {
    match pattern(seed, bytes.len())
        .iter()
        .zip(bytes)
        .position(|(a, b)| a != b)
    {
        None => Ok(()),
        Some(at) => Err(format!("byte {at} of {} is wrong", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_bytes_and_wrong_data_are_found() {
        let wrote = Message::Wrote {
            sequence: 1,
            seed: 2,
            offset: 3,
            length: 4,
        };
        let handle = Message::Handle { key: u64::MAX };
        for message in [wrote, handle, Message::Verified { seed: 5 }] {
            assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
        }
        let data = Message::Data {
            sequence: 7,
            seed: 8,
        };
        let mut bytes = data.to_bytes();
        bytes.extend(pattern(8, 13));
        assert_eq!(Message::parse(&bytes), Ok(data));
        bytes[HEADER + 12] ^= 1;
        assert!(Message::parse(&bytes).is_err());
    }
}
