//! Standard output whose reader has left, or whose disk is full.
#![forbid(unsafe_code)]

use std::fs::File;
use std::process::{Command, Output, Stdio};

/// Commands that print much and soon.
const COMMANDS: [&[&str]; 5] = [
    &["info", "--env"],
    &["info"],
    &["info", "--paths"],
    &["sim", "list"],
    &["info", "--resources", "--json"],
];

fn run(words: &[&str], out: Stdio) -> Output {
    let mut lintel = Command::new(env!("CARGO_BIN_EXE_lintel"));
    lintel.args(words).stdin(Stdio::null()).stdout(out);
    lintel.stderr(Stdio::piped()).output().expect("it starts")
}

#[test]
fn a_command_whose_reader_has_left_ends_silently_as_by_sigpipe() {
    for words in COMMANDS {
        let (reader, writer) = std::io::pipe().expect("the system has pipes");
        drop(reader);
        let output = run(words, writer.into());
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), text.as_str()), (Some(141), ""));
    }
}

#[test]
fn a_full_disk_is_reported() {
    for words in COMMANDS {
        let full = File::options().write(true).open("/dev/full");
        let output = run(words, full.expect("Linux has it").into());
        let text = String::from_utf8(output.stderr).expect("text");
        let start = "lintel: writing to standard output: No space left on device";
        assert!(text.starts_with(start), "{words:?}: {text}");
        assert_eq!(output.status.code(), Some(1));
    }
}
