//! Starts the ranks of a test's job: yod, where only libraries are built.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use yod::{Error, Options};

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    let start = || Ok(yod::run(&Options::from_command_line().job()?)?.exit_code());
    match start() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let error: Error = error;
            eprintln!("start: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
