//! Writes what follows from the programs' command lines below the folder that is named: man
//! pages, one per command and subcommand, and completions for bash, zsh and fish.

#![forbid(unsafe_code)]

mod sections;

use std::fs;
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
        if let Err(error) = write(&command, Path::new(&prefix)) {
            eprintln!("cli-files: {name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(command: &Command, prefix: &Path) -> Result<(), String> {
    write_completions(command.clone(), prefix).map_err(|why| why.to_string())?;
    let man1 = prefix.join("share/man/man1");
    let written =
        fs::create_dir_all(&man1).and_then(|()| clap_mangen::generate_to(command.clone(), &man1));
    written.map_err(|why| format!("{}: {why}", man1.display()))?;
    add_sections(command, command.get_name(), command, &man1)
}

fn write_completions(mut command: Command, prefix: &Path) -> std::io::Result<()> {
    let name = command.get_name().to_string();
    for (shell, folder) in SHELLS {
        let folder = prefix.join(folder);
        fs::create_dir_all(&folder)?;
        let written = generate_to(shell, &mut command, &name, &folder)?;
        if shell == Shell::Bash {
            // bash finds it by the name of the program.
            fs::rename(written, folder.join(&name))?;
        }
    }
    Ok(())
}

/// Adds what a command line doesn't have to the page of a command and of its subcommands, and
/// has roff name characters beyond ASCII, which it would read byte by byte.
fn add_sections(
    program: &Command,
    page: &str,
    command: &Command,
    man1: &Path,
) -> Result<(), String> {
    let more = sections::of(page, program)?;
    let path = man1.join(format!("{page}.1"));
    let failed = |why: std::io::Error| format!("{}: {why}", path.display());
    let text = fs::read_to_string(&path).map_err(failed)?;
    fs::write(&path, in_ascii(&before_version(&text, &more))).map_err(failed)?;
    for below in command.get_subcommands() {
        let page = format!("{page}-{}", below.get_name());
        add_sections(program, &page, below, man1)?;
    }
    Ok(())
}

/// The page with `more` ahead of its last section, the version.
fn before_version(page: &str, more: &str) -> String {
    let at = page.rfind(".SH VERSION").unwrap_or(page.len());
    let (before, after) = page.split_at(at);
    format!("{before}{more}{after}")
}

/// The text with roff's names for what isn't ASCII.
fn in_ascii(text: &str) -> String {
    let named = |letter: char| match letter.is_ascii() {
        true => letter.to_string(),
        false => format!("\\[u{:04X}]", u32::from(letter)),
    };
    text.chars().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_beyond_ascii_are_named() {
        assert_eq!(in_ascii("1, 2, \u{2026}."), "1, 2, \\[u2026].");
    }
}
