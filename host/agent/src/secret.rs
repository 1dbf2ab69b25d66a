//! The job's secret, as a launcher hands it to its agents: one line through a pipe. An
//! environment or a command line would show it to other processes.

use lintel_runtime::Secret;
use std::io::{BufRead, BufReader, Read};

/// Digits of a secret, and the newline of its line; a longer line is no secret.
const LONGEST: u64 = 66;

/// Reads the secret. Blocks until the line or the input ends.
///
/// # Errors
/// What is wrong with the input of the launcher.
pub(crate) fn read(from: impl Read) -> Result<Secret, String> {
    let mut line = String::new();
    let read = BufReader::new(from.take(LONGEST)).read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    let digits = line.strip_suffix('\n').unwrap_or(&line);
    if digits.is_empty() {
        return Err("nothing is there".into());
    }
    digits
        .parse()
        .map_err(|malformed: lintel_runtime::MalformedSecret| malformed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_digits_is_a_secret_and_anything_else_is_refused_without_being_shown() {
        let digits = "5e".repeat(32);
        let secret: Secret = digits.parse().expect("these are digits");
        for line in [
            digits.clone(),
            format!("{digits}\n"),
            format!("{digits}\nmore"),
        ] {
            assert_eq!(read(line.as_bytes()), Ok(secret.clone()));
        }
        for line in ["", "\n", "5e", &format!("{digits}5e\n"), &"z".repeat(64)] {
            let refusal = read(line.as_bytes()).expect_err("it is none");
            assert!(
                !refusal.contains("5e") && !refusal.contains('z'),
                "{refusal}"
            );
        }
        assert!(read(&[255; 64][..]).is_err(), "it is no text");
    }
}
