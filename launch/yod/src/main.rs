//! The launcher's command.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    let options = yod::Options::from_command_line();
    let job = options.job();
    if options.show {
        // A reader that left early, as head does, is no failure.
        let _ = io::stdout().write_all(job.describe().as_bytes());
        return ExitCode::SUCCESS;
    }
    match yod::run(&job) {
        Ok(outcome) => {
            if options.timing {
                // Without standard error there is nobody to tell.
                let _ = io::stderr().write_all(outcome.timing().as_bytes());
            }
            ExitCode::from(outcome.exit_code())
        }
        Err(error) => {
            eprintln!("yod: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
