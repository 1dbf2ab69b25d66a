//! The launcher's command.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use yod::{Error, Job, Options};

fn main() -> ExitCode {
    yod::become_helper_if_asked();
    let options = Options::from_command_line();
    match execute(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("yod: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn execute(options: &Options) -> Result<ExitCode, Error> {
    let job = options.job()?;
    match options.show {
        true => show(&job),
        false => run(&job, options.timing),
    }
}

fn show(job: &Job) -> Result<ExitCode, Error> {
    // A reader that left early, as head does, is no failure.
    let _ = io::stdout().write_all(job.describe()?.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn run(job: &Job, timing: bool) -> Result<ExitCode, Error> {
    let outcome = yod::run(job)?;
    if timing {
        // Without standard error there is no way to report it.
        let _ = io::stderr().write_all(outcome.timing().as_bytes());
    }
    Ok(ExitCode::from(outcome.exit_code()))
}
