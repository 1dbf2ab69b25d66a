//! Output on its way from the ranks to the launcher's own streams.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

/// One of the launcher's output streams. Bytes are held until it takes them, so
/// that a slow reader stops the ranks' output but nothing else.
pub(crate) struct Sink<F> {
    stream: F,
    held: Vec<u8>,
    closed: bool,
}

impl<F: AsFd> Sink<F> {
    pub(crate) fn new(stream: F) -> Sink<F> {
        Sink {
            stream,
            held: Vec::new(),
            closed: false,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether no more should be added for now.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() > MAX_QUEUED
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Writes as much as can't block; call it when the stream is writable.
    ///
    /// # Errors
    /// The stream accepts nothing any more; what is held is dropped. Reported once.
    pub(crate) fn on_writable(&mut self) -> io::Result<()> {
        // A writable pipe takes at least this much at once (PIPE_BUF).
        let piece = &self.held[..self.held.len().min(4096)];
        match rustix::io::write(&self.stream, piece) {
            Ok(count) => drop(self.held.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => {
                self.held.clear();
                self.closed = true;
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Cuts a rank's output into whole lines.
#[derive(Default)]
pub(crate) struct Lines {
    held: Vec<u8>,
    label: Option<String>,
    /// Pass bytes on as they come: only one rank writes.
    raw: bool,
}

impl Lines {
    /// Lines of `rank`, one of `ranks`, labelled or not.
    pub(crate) fn new(rank: usize, ranks: usize, label: bool) -> Lines {
        Lines {
            held: Vec::new(),
            label: label.then(|| format!("[{rank}] ")),
            raw: ranks == 1 && !label,
        }
    }

    /// Takes what the rank wrote, or `None` if it writes no more, and passes whole lines
    /// on.
    pub(crate) fn pass_on(&mut self, bytes: Option<&[u8]>, pass: impl FnMut(&[u8])) {
        match bytes {
            Some(bytes) => self.on_bytes(bytes, pass),
            None => self.on_end(pass),
        }
    }

    fn on_bytes(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        if self.raw {
            return pass(bytes);
        }
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            self.held.extend_from_slice(line);
            if line.ends_with(b"\n") || self.held.len() > MAX_LINE {
                self.pass_held(&mut pass);
            }
        }
    }

    /// The rank writes no more: passes an unfinished line on.
    fn on_end(&mut self, mut pass: impl FnMut(&[u8])) {
        if self.held.is_empty() {
            return;
        }
        if self.label.is_some() {
            self.held.push(b'\n');
        }
        self.pass_held(&mut pass);
    }

    fn pass_held(&mut self, pass: &mut impl FnMut(&[u8])) {
        if let Some(label) = &self.label {
            self.held.splice(0..0, label.bytes());
        }
        pass(&self.held);
        self.held.clear();
    }
}

const MAX_QUEUED: usize = 1 << 20;
/// Bytes; a longer line is passed on in pieces.
const MAX_LINE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &mut Lines, pieces: &[&str]) -> String {
        let mut all = Vec::new();
        for piece in pieces {
            lines.on_bytes(piece.as_bytes(), |bytes| all.extend_from_slice(bytes));
        }
        lines.on_end(|bytes| all.extend_from_slice(bytes));
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn lines_are_passed_whole_and_labelled() {
        let text = passed(&mut Lines::new(3, 4, true), &["a", "b\nc\n", "", "d"]);
        assert_eq!(text, "[3] ab\n[3] c\n[3] d\n");
    }

    #[test]
    fn bytes_stay_as_they_are_without_labels() {
        assert_eq!(
            passed(&mut Lines::new(0, 2, false), &["a", "b\nc"]),
            "ab\nc"
        );
        assert_eq!(
            passed(&mut Lines::new(0, 1, false), &["prompt: "]),
            "prompt: "
        );
    }
}
