//! `DEBIAN/`: what dpkg has to know of each package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::{build_id, files_of, is_elf};
use super::{Build, PACKAGES, Package};
use crate::dist;
use crate::report::Outcome;
use crate::shell;

const LIBRARIES: &str = "libportals4";

/// Writes all control files; returns the folder and the full name of each package.
pub fn write(build: &Build) -> Result<Vec<(String, String)>, String> {
    // What dpkg's tools look for in their working directory.
    let stanzas = PACKAGES.iter().map(|package| {
        let name = package.name;
        format!("\nPackage: {name}\nArchitecture: any\nDescription: {name}\n")
    });
    let source = format!("Source: lintel\nMaintainer: {}\n", maintainer());
    let own: String = std::iter::once(source).chain(stanzas).collect();
    dist::write(&build.work.join("debian/control"), &own)?;
    write_shared_library_files(build)?;
    let mut names = Vec::new();
    for package in &PACKAGES {
        let architecture = match package.is_binary {
            true => build.architecture.as_str(),
            false => "all",
        };
        let depends = depends(build, package)?;
        write_one(
            build,
            package.name,
            &fields(build, package, architecture, &depends),
        )?;
        names.push((package.name.to_owned(), architecture.to_owned()));
        let symbols = format!("{}-dbgsym", package.name);
        if build.root(&symbols).is_dir() {
            write_one(build, &symbols, &symbols_fields(build, package.name)?)?;
            names.push((symbols, build.architecture.clone()));
        }
    }
    let full = |(name, architecture): (String, String)| {
        let full = format!("{name}_{}_{architecture}", build.version);
        (name, full)
    };
    Ok(names.into_iter().map(full).collect())
}

fn maintainer() -> String {
    let given = |name| std::env::var(name).ok();
    let name = given("DEBFULLNAME").unwrap_or("Lintel developers".into());
    let address = given("DEBEMAIL").unwrap_or("root@localhost".into());
    format!("{name} <{address}>")
}

fn fields(build: &Build, package: &Package, architecture: &str, depends: &str) -> String {
    let mut text = format!(
        "Package: {}\nSource: lintel\nVersion: {}\nArchitecture: {architecture}\n\
         Multi-Arch: {}\nMaintainer: {}\nSection: {}\nPriority: optional\n",
        package.name,
        build.version,
        package.multi_arch,
        maintainer(),
        package.section
    );
    for (field, value) in [("Depends", depends), ("Suggests", package.suggests)] {
        if !value.is_empty() {
            text.push_str(&format!("{field}: {value}\n"));
        }
    }
    let description = package.description.join("\n ");
    text.push_str(&format!("Description: {description}\n"));
    text
}

fn symbols_fields(build: &Build, of: &str) -> Result<String, String> {
    let elf = files_of(&build.root(of))
        .into_iter()
        .filter(|path| !path.is_symlink() && is_elf(path));
    let ids: Result<Vec<String>, String> = elf.map(|path| build_id(&path)).collect();
    Ok(format!(
        "Package: {of}-dbgsym\nSource: lintel\nVersion: {0}\nArchitecture: {1}\n\
         Maintainer: {2}\nSection: debug\nPriority: optional\nDepends: {of} (= {0})\n\
         Auto-Built-Package: debug-symbols\nBuild-Ids: {3}\nDescription: debug symbols for {of}\n",
        build.version,
        build.architecture,
        maintainer(),
        ids?.join(" ")
    ))
}

/// Writes `control` and the checksums.
fn write_one(build: &Build, name: &str, fields: &str) -> Outcome {
    let root = build.root(name);
    let files: Vec<PathBuf> = files_of(&root)
        .into_iter()
        .filter(|path| !path.starts_with(root.join("DEBIAN")))
        .collect();
    let length = |path: &PathBuf| fs::symlink_metadata(path).map_or(0, |found| found.len());
    let kib: u64 = files.iter().map(|path| length(path).div_ceil(1024)).sum();
    let (first, rest) = fields.split_once("Description:").unwrap_or((fields, ""));
    let text = format!("{first}Installed-Size: {kib}\nDescription:{rest}");
    dist::write(&root.join("DEBIAN/control"), &text)?;
    let regular = files.iter().filter(|path| !path.is_symlink());
    let names = regular.map(|path| path.strip_prefix(&root).unwrap_or(path));
    let sums = shell::output(Command::new("md5sum").args(names).current_dir(&root))?;
    dist::write(&root.join("DEBIAN/md5sums"), &sums)
}

/// Which package serves whom: `shlibs` by the name of a library, `symbols` by its functions.
fn write_shared_library_files(build: &Build) -> Outcome {
    let root = build.root(LIBRARIES);
    let folder = root.join(build.libdir());
    let upstream = build.version.split('-').next().unwrap_or(&build.version);
    let mut shlibs = String::new();
    for path in files_of(&folder).iter().filter(|path| !path.is_symlink()) {
        let said = shell::output(Command::new("readelf").arg("-d").arg(path))?;
        let soname = said
            .split_once("Library soname: [")
            .and_then(|(_, rest)| rest.split_once(']'));
        let (soname, _) = soname.ok_or(format!("{} has no SONAME", path.display()))?;
        let (library, major) = soname.split_once(".so.").ok_or(soname)?;
        shlibs.push_str(&format!("{library} {major} {LIBRARIES} (>= {upstream})\n"));
    }
    dist::write(&root.join("DEBIAN/shlibs"), &shlibs)?;
    dist::write(&root.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    let mut gensymbols = Command::new("dpkg-gensymbols");
    gensymbols
        .arg(format!("-p{LIBRARIES}"))
        .arg(format!("-v{upstream}"))
        .arg(format!("-P{}", root.display()))
        .arg(format!("-O{}", root.join("DEBIAN/symbols").display()))
        .current_dir(&build.work);
    shell::output(&mut gensymbols).map(drop)
}

/// What a package needs: what its binaries load, and what is listed.
fn depends(build: &Build, package: &Package) -> Result<String, String> {
    let listed = package.depends.replace("VERSION", &build.version);
    let root = build.root(package.name);
    let binaries: Vec<PathBuf> = files_of(&root)
        .into_iter()
        .filter(|path| !path.is_symlink() && is_elf(path))
        .collect();
    if binaries.is_empty() {
        return Ok(listed);
    }
    let found = loaded(build, package.name, &binaries)?;
    let all = [found, listed];
    let all: Vec<String> = all.into_iter().filter(|one| !one.is_empty()).collect();
    Ok(all.join(", "))
}

fn loaded(build: &Build, package: &str, binaries: &[PathBuf]) -> Result<String, String> {
    let libraries = build.root(LIBRARIES);
    let option = |letter: &str, path: &Path| format!("-{letter}{}", path.display());
    let mut shlibdeps = Command::new("dpkg-shlibdeps");
    shlibdeps
        .args(["-O", &format!("-x{package}")])
        .arg(option("S", &libraries))
        .arg(option("l", &libraries.join(build.libdir())))
        .args(binaries)
        .current_dir(&build.work);
    let said = shell::output(&mut shlibdeps)?;
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(line.unwrap_or_default().to_owned())
}
