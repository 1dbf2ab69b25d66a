//! Writes the man pages of the programs, one per command and subcommand, into
//! the folder that is named.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::CommandFactory;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: man1 FOLDER");
        return ExitCode::FAILURE;
    };
    let agent = lintel_agent::Options::command();
    for command in [yod::command(), lintel::command(), agent] {
        let name = command.get_name().to_string();
        if let Err(error) = clap_mangen::generate_to(command, &folder) {
            eprintln!("man1: {name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
