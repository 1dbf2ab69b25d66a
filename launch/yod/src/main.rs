//! The launcher's command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    let options = yod::Options::from_command_line();
    let job = options.job();
    if options.show {
        print!("{}", job.describe());
        return ExitCode::SUCCESS;
    }
    match yod::run(&job) {
        Ok(outcome) => {
            if options.timing {
                eprint!("{}", outcome.timing());
            }
            ExitCode::from(outcome.exit_code())
        }
        Err(error) => {
            eprintln!("yod: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
