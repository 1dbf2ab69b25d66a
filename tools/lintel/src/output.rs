//! Standard output, whose reader may leave and whose disk may be full.

use std::io::{self, ErrorKind, Write};

use crate::error::{During, Error, Result};

/// Writes `text` to standard output, all of it.
///
/// # Errors
/// `OutputClosed` if nobody reads it any more, `System` if it can't be written.
pub fn print(text: &str) -> Result<()> {
    write_all(&mut io::stdout().lock(), text.as_bytes())
}

/// As [`print()`], bytes.
///
/// # Errors
/// As [`print()`].
pub fn write(bytes: &[u8]) -> Result<()> {
    write_all(&mut io::stdout().lock(), bytes)
}

fn write_all(out: &mut impl Write, bytes: &[u8]) -> Result<()> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Error::OutputClosed),
        written => written.during("writing to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error_of_the_system() {
        let left = write_all(&mut Refusing(ErrorKind::BrokenPipe), b"x");
        assert!(matches!(left, Err(Error::OutputClosed)));
        let full = write_all(&mut Refusing(ErrorKind::StorageFull), b"x");
        assert!(matches!(full, Err(Error::System { .. })));
    }
}
