//! A job that ends by `ptljob_abort`, in a process of its own.

use portals_job::ptljob_abort;
use std::process::{Command, Output};

/// In the environment of the process that aborts: its message.
const MESSAGE: &str = "ABORT_WITH";

/// Runs this test in a process of its own, where it aborts with that message.
fn abort_with(message: &str) -> Output {
    let this = std::env::current_exe().expect("a test has a file");
    Command::new(this)
        .args([
            "--exact",
            "a_message_of_no_letters_is_no_line",
            "--nocapture",
        ])
        .env(MESSAGE, message)
        .output()
        .expect("this program runs again")
}

#[test]
fn a_message_of_no_letters_is_no_line() {
    if let Ok(message) = std::env::var(MESSAGE) {
        let message = std::ffi::CString::new(message).expect("it has no zero");
        // SAFETY: a text that ends with a zero.
        unsafe { ptljob_abort(3, message.as_ptr()) };
    }
    let (silent, spoken) = (abort_with(""), abort_with("out of memory"));
    assert_eq!(silent.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&silent.stderr), "");
    assert_eq!(String::from_utf8_lossy(&spoken.stderr), "out of memory\n");
}
