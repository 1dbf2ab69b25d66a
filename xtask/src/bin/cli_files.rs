//! Writes what follows from the programs' command lines below the folder that is named: man
//! pages, one per command and subcommand, and completions for bash, zsh and fish.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};

/// Where each shell looks, below the prefix.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions"),
    (Shell::Zsh, "share/zsh/site-functions"),
    (Shell::Fish, "share/fish/vendor_completions.d"),
];

fn main() -> ExitCode {
    let Some(prefix) = std::env::args_os().nth(1) else {
        eprintln!("usage: cli-files PREFIX");
        return ExitCode::FAILURE;
    };
    let agent = lintel_agent::Options::command();
    for command in [yod::command(), lintel::command(), agent] {
        let name = command.get_name().to_string();
        if let Err(error) = write(command, Path::new(&prefix)) {
            eprintln!("cli-files: {name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(mut command: Command, prefix: &Path) -> std::io::Result<()> {
    let name = command.get_name().to_string();
    for (shell, folder) in SHELLS {
        let folder = prefix.join(folder);
        std::fs::create_dir_all(&folder)?;
        let written = generate_to(shell, &mut command, &name, &folder)?;
        if shell == Shell::Bash {
            // bash finds it by the name of the program.
            std::fs::rename(written, folder.join(&name))?;
        }
    }
    let man1 = prefix.join("share/man/man1");
    std::fs::create_dir_all(&man1)?;
    clap_mangen::generate_to(command, man1)
}
