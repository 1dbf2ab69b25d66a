//! `lintel-agent`

#![forbid(unsafe_code)]

use clap::Parser;
use lintel_agent::{Agent, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let agent = match Agent::open(&Options::parse()) {
        Ok(agent) => agent,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Fails if the launcher has closed the pipe: it doesn't wait for the line then.
    let _ = agent.announce(&mut std::io::stdout());
    match agent.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
