//! The command as a user starts it.
#![allow(dead_code)] // Each test file takes what it needs.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A started `lintel` that ends with this value at the latest; its launcher's guard
/// ends what it started.
pub struct Running(Child);

impl Running {
    /// Starts it with these words.
    pub fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped());
        Self(command.spawn().expect("lintel starts"))
    }

    /// What it wrote as JSON, once it has ended well.
    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What it wrote, once it has ended well.
    pub fn text(mut self) -> String {
        let output = self.0.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || std::io::read_to_string(output));
        let deadline = Instant::now() + PATIENCE;
        while !reader.is_finished() {
            assert!(Instant::now() < deadline, "lintel doesn't end");
            std::thread::sleep(LOOK_AGAIN);
        }
        let text = reader.join().expect("reads").expect("text");
        assert!(self.0.wait().expect("ends").success(), "{text}");
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Longer than any run here takes.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait before a condition is checked again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);
