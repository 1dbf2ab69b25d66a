//! What a command prints that is asked how it is used.

use std::process::Command;

#[test]
fn help_of_a_command_is_the_usage_and_no_error() {
    let xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["dist", "--help"])
        .output()
        .expect("it was built");
    let text = String::from_utf8_lossy(&xtask.stdout);
    assert!(xtask.status.success(), "{xtask:?}");
    assert!(text.contains("dist --prefix DIR"), "{text}");
}
