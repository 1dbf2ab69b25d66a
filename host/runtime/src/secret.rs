//! The secret that the processes of a job share.

use std::fmt;
use std::str::FromStr;

/// Bytes of a secret.
pub(crate) const BYTES: usize = 32;

/// What only the processes of a job share. As text it is 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) [u8; BYTES]);

/// Text that is no [`Secret`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedSecret;

impl FromStr for Secret {
    type Err = MalformedSecret;

    fn from_str(digits: &str) -> Result<Secret, MalformedSecret> {
        let digits = digits.as_bytes();
        if digits.len() != 2 * BYTES {
            return Err(MalformedSecret);
        }
        let mut secret = [0; BYTES];
        for (byte, digits) in secret.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).ok_or(MalformedSecret);
            *byte = (value(digits[0])? << 4 | value(digits[1])?) as u8;
        }
        Ok(Secret(secret))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

impl fmt::Display for MalformedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a secret has {} hexadecimal digits", 2 * BYTES)
    }
}

impl std::error::Error for MalformedSecret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_a_secret_or_none_and_are_not_shown() {
        let parsed = "0f".repeat(BYTES).parse::<Secret>();
        assert_eq!(parsed, Ok(Secret([15; BYTES])));
        assert_eq!("0f".parse::<Secret>(), Err(MalformedSecret));
        assert_eq!("+f".repeat(BYTES).parse::<Secret>(), Err(MalformedSecret));
        assert_eq!(format!("{parsed:?}"), "Ok(Secret(not shown))");
    }
}
