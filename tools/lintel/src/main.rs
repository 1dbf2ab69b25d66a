//! The command `lintel`; everything is in the library.
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    lintel::cli::Cli::parse().run()
}
