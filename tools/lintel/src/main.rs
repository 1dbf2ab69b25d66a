//! The command `lintel`; everything is in the library.
#![deny(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    lintel::cli::run()
}
