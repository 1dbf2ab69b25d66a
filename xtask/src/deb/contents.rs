//! Which package a file goes into; stripping, compression, licences.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Build, PACKAGES};
use crate::dist;
use crate::licences;
use crate::report::Outcome;
use crate::shell;

/// Distributes the installed files over the packages.
pub fn split(build: &Build, staged: &Path) -> Outcome {
    for path in files_of(staged) {
        let name = path.strip_prefix(staged).unwrap_or(&path);
        let name = name.display().to_string();
        if name.starts_with(&format!("usr/{}", licences::FOLDER)) {
            continue;
        }
        let package = package_of(&name).ok_or(format!("no package takes {name}"))?;
        let to = build.root(package).join(&name);
        place(&path, &to)?;
        match () {
            () if name.contains("/share/man/") => compress(&to)?,
            () if name.ends_with(".a") => strip(&["--strip-debug"], &to)?,
            () if !to.is_symlink() && is_elf(&to) => take_symbols(build, package, &to)?,
            () => {}
        }
    }
    for package in &PACKAGES {
        write_licences(build, package.name, package.is_binary, staged)?;
    }
    Ok(())
}

/// All files and links below a folder.
pub fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(files_of(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// The package of a file, by its path.
fn package_of(name: &str) -> Option<&'static str> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_in = |folder: &str| name.contains(folder);
    Some(match () {
        () if is_in("usr/share/doc/") => "lintel-doc",
        () if is_in("/pkgconfig/") || is_in("/cmake/") || is_in("usr/include/") => {
            "libportals4-dev"
        }
        () if is_in("/man/man3/") || is_in("/man/man7/") => "libportals4-dev",
        () if file.ends_with(".so") || file.ends_with(".a") => "libportals4-dev",
        () if file.contains(".so.") => "libportals4",
        () if is_in("usr/bin/") || is_in("/systemd/") || is_in("/man/man1/") => "lintel-tools",
        () if is_in("usr/share/lintel/") => "lintel-tools",
        () if is_in("completion") || is_in("site-functions") => "lintel-tools",
        () => return None,
    })
}

/// Copies a file, or makes the same link.
fn place(from: &Path, to: &Path) -> Outcome {
    let failed = |e: std::io::Error| format!("{}: {e}", to.display());
    if !from.is_symlink() {
        let mode = fs::metadata(from).map_err(failed)?.permissions().mode();
        return dist::install(from, to, mode & 0o755);
    }
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    symlink(fs::read_link(from).map_err(failed)?, to).map_err(failed)
}

fn compress(file: &Path) -> Outcome {
    shell::output(Command::new("gzip").arg("-9n").arg(file)).map(drop)
}

fn strip(how: &[&str], file: &Path) -> Outcome {
    shell::output(Command::new("strip").args(how).arg(file)).map(drop)
}

pub fn is_elf(file: &Path) -> bool {
    let mut start = [0; 4];
    let read = fs::File::open(file).and_then(|mut file| {
        use std::io::Read;
        file.read_exact(&mut start)
    });
    read.is_ok() && start == *b"\x7fELF"
}

/// Moves debug symbols to where debuggers look for them by build id, in a package of their own.
fn take_symbols(build: &Build, package: &str, file: &Path) -> Outcome {
    let id = build_id(file)?;
    let (folder, rest) = id.split_at(2);
    let symbols = format!("usr/lib/debug/.build-id/{folder}/{rest}.debug");
    let symbols = build.root(&format!("{package}-dbgsym")).join(symbols);
    dist::install(file, &symbols, 0o644)?;
    let objcopy = |words: &[&str], files: &[&Path]| {
        shell::output(Command::new("objcopy").args(words).args(files)).map(drop)
    };
    objcopy(
        &["--only-keep-debug", "--compress-debug-sections"],
        &[&symbols],
    )?;
    let how: &[&str] = match is_library(file) {
        true => &["--strip-unneeded", "--remove-section=.comment"],
        false => &["--remove-section=.comment"],
    };
    strip(how, file)
}

fn is_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".so")
}

/// The build id of a file, as hexadecimal digits.
pub fn build_id(file: &Path) -> Result<String, String> {
    let said = shell::output(Command::new("readelf").arg("-n").arg(file))?;
    let id = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.map(String::from)
        .ok_or(format!("{} has no build id", file.display()))
}

/// `copyright`, and for binaries the notices of Rust's standard library.
fn write_licences(build: &Build, package: &str, is_binary: bool, staged: &Path) -> Outcome {
    let from = staged.join("usr").join(licences::FOLDER);
    let to = build.root(package).join("usr/share/doc").join(package);
    let mut text = String::from(HEADER);
    for line in shell::read(&from.join("LICENSE-MIT"))?.lines() {
        text.push_str(if line.is_empty() { " ." } else { " " });
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(APACHE);
    if is_binary {
        text.push('\n');
        text.push_str(&shell::read(&from.join("THIRD-PARTY.txt"))?);
    }
    dist::write(&to.join("copyright"), &text)?;
    let changelog = shell::read(&build.tree.path("CHANGELOG.md"))?;
    write_compressed(&to.join("changelog.gz"), &changelog)?;
    let rust = from.join("RUST-STANDARD-LIBRARY.html");
    match is_binary && rust.is_file() {
        true => write_compressed(
            &to.join("RUST-STANDARD-LIBRARY.html.gz"),
            &shell::read(&rust)?,
        ),
        false => Ok(()),
    }
}

fn write_compressed(to: &Path, text: &str) -> Outcome {
    let failed = |e: std::io::Error| format!("{}: {e}", to.display());
    let file = fs::File::create(to).map_err(failed)?;
    let mut gzip = Command::new("gzip");
    let gzip = gzip.arg("-9nc").stdin(Stdio::piped()).stdout(file);
    let mut child = gzip.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    child.wait().map_err(failed).map(drop)
}

const HEADER: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: lintel

Files: *
Copyright: the Lintel developers
License: Expat or Apache-2.0
Comment:
 Crates that are linked into libraries and programs have licences of their own, which follow
 the last paragraph. Those of Rust's standard library are in RUST-STANDARD-LIBRARY.html.gz.

License: Expat
";

const APACHE: &str = "
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_has_its_package() {
        let lib = "usr/lib/x86_64-linux-gnu";
        for (name, package) in [
            (format!("{lib}/libportals.so.4"), "libportals4"),
            (format!("{lib}/libportals.so.4.3.0"), "libportals4"),
            (format!("{lib}/libportals.so"), "libportals4-dev"),
            (format!("{lib}/libportals.a"), "libportals4-dev"),
            (format!("{lib}/pkgconfig/cci.pc"), "libportals4-dev"),
            ("usr/include/portals4/pmi.h".into(), "libportals4-dev"),
            ("usr/share/man/man3/PtlPut.3".into(), "libportals4-dev"),
            ("usr/share/man/man1/yod.1".into(), "lintel-tools"),
            ("usr/bin/yod".into(), "lintel-tools"),
            ("usr/share/doc/lintel/examples/ring.c".into(), "lintel-doc"),
        ] {
            assert_eq!(package_of(&name), Some(package), "{name}");
        }
        assert_eq!(package_of("usr/share/surprise"), None);
    }
}
