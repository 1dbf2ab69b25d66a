//! Builds for release and installs everything that a user needs.

mod place;
mod templates;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{book, licences, man, prerequisites};

pub use place::Place;

/// The interface version that the library's file name carries.
const VERSION: &str = "4.3.0";

/// What a static link needs besides the archive: the native libraries of
/// Rust's standard library on glibc (`rustc --print native-static-libs`).
const STATIC_LIBRARIES: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// The version of the Portals 3.3 specification, which its packages carry.
const PORTALS3_VERSION: &str = "3.3.0";

/// The public library's release that libcci is compatible with, for packages.
const CCI_PACKAGE_VERSION: &str = "2.2";

/// The version of `ptlcoll.h`, which libptlcoll's packages carry.
const COLLECTIVES_VERSION: &str = "1.0.0";

/// What is built for users.
pub const PACKAGES: [&str; 9] = [
    "portals4-c",
    "portals3-c",
    "cnos-c",
    "job-c",
    "ptlcoll-c",
    "cci-c",
    "yod",
    "lintel",
    "lintel-agent",
];

const PROGRAMS: [&str; 3] = ["yod", "lintel", "lintel-agent"];

/// Shared libraries: the name, the number of the SONAME, and the file's further version.
/// libportals3 and libcci carry those of the reference and of the public library's release 2.2.
const LIBRARIES: [(&str, &str, &str); 6] = [
    ("libportals.so", "4", "3.0"),
    ("libportals3.so", "0", "3.0"),
    ("libcnos.so", "0", "1.0"),
    ("libportals_job.so", "1", "0.0"),
    ("libptlcoll.so", "1", "0.0"),
    ("libcci.so", "2", "0.1"),
];

/// Installs below a prefix.
pub fn run(tree: &Tree, prefix: &Path) -> Outcome {
    install_all(tree, &Place::at(prefix))
}

/// Builds, and installs everything below the prefix; nothing beside it, which packagers may not
/// want: what is missing is named.
pub fn install_all(tree: &Tree, place: &Place) -> Outcome {
    prerequisites::named(&prerequisites::BUILD)?;
    build(tree)?;
    let root = place.root();
    install_libraries(tree, &place.lib())?;
    install_headers(tree, &root)?;
    templates::install(tree, place)?;
    install_examples(tree, &root)?;
    install(
        &tree.path("tools/lintel/wireshark/lintel.lua"),
        &root.join("share/lintel/wireshark/lintel.lua"),
        0o644,
    )?;
    for program in PROGRAMS {
        let from = tree.target.join("release").join(program);
        install(&from, &root.join("bin").join(program), 0o755)?;
    }
    man::install(tree, &root)?;
    book::install(tree, &root)?;
    licences::install(tree, &root)?;
    println!("   installed in {}", root.display());
    Ok(())
}

/// Builds all that is installed, together: one library without the others has other features of
/// what they share, and would be made anew.
pub fn build(tree: &Tree) -> Outcome {
    let mut cargo = tree.cargo();
    cargo.args(["build", "--quiet", "--release"]);
    for package in PACKAGES {
        if !tree.has_package(package) {
            return Err(format!("the workspace has no package {package} yet"));
        }
        cargo.args(["--package", package]);
    }
    shell::run(&mut cargo)
}

fn install_libraries(tree: &Tree, lib: &Path) -> Outcome {
    let release = tree.target.join("release");
    for (name, major, minor) in LIBRARIES {
        let soname = format!("{name}.{major}");
        let real = format!("{soname}.{minor}");
        install(&release.join(name), &lib.join(&real), 0o755)?;
        link(&real, &lib.join(&soname))?;
        link(&soname, &lib.join(name))?;
    }
    // The reference's name of a library with these functions.
    link("libportals_job.so.1", &lib.join("libportals_runtime.so.1"))?;
    link(
        "libportals_runtime.so.1",
        &lib.join("libportals_runtime.so"),
    )?;
    install(
        &release.join("libportals.a"),
        &lib.join("libportals.a"),
        0o644,
    )
}

fn install_headers(tree: &Tree, prefix: &Path) -> Outcome {
    let include = tree.path("include");
    for header in shell::files_below(&include, "h") {
        let name = header.strip_prefix(&include).unwrap_or(&header);
        install(&header, &prefix.join("include").join(name), 0o644)?;
    }
    Ok(())
}

/// Programs and scenarios to start from, and the README.
fn install_examples(tree: &Tree, prefix: &Path) -> Outcome {
    let doc = prefix.join("share/doc/lintel");
    install(&tree.path("README.md"), &doc.join("README.md"), 0o644)?;
    for (from, ending, to) in [
        ("examples/c", "c", "examples"),
        ("examples/c", "h", "examples"),
        ("examples/rust/src", "rs", "examples/rust/src"),
        ("examples/rust/src/bin", "rs", "examples/rust/src/bin"),
        ("examples/scenarios", "toml", "scenarios"),
        ("examples/scenarios", "goal", "scenarios"),
    ] {
        for file in shell::files(&tree.path(from), ending) {
            let name = file.file_name().unwrap_or_default();
            install(&file, &doc.join(to).join(name), 0o644)?;
        }
    }
    Ok(())
}

/// Copies beside the old file and renames over it, so that a program which
/// has the old one mapped keeps it.
pub fn install(from: &Path, to: &Path, mode: u32) -> Outcome {
    make_parent(to)?;
    let beside = beside(to);
    let failed = |e: std::io::Error| format!("{} → {}: {e}", from.display(), to.display());
    fs::copy(from, &beside).map_err(failed)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(mode)).map_err(failed)?;
    fs::rename(&beside, to).map_err(failed)
}

/// Writes a file, and the folders that it is in.
pub fn write(to: &Path, text: &str) -> Outcome {
    make_parent(to)?;
    fs::write(to, text).map_err(|e| format!("{}: {e}", to.display()))
}

fn link(target: &str, at: &Path) -> Outcome {
    let beside = beside(at);
    let failed = |e: std::io::Error| format!("{}: {e}", at.display());
    if beside.is_symlink() {
        fs::remove_file(&beside).map_err(failed)?;
    }
    symlink(target, &beside).map_err(failed)?;
    fs::rename(&beside, at).map_err(failed)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

/// The name of a file without its last ending.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn make_parent(path: &Path) -> Outcome {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_installed_with_the_files_that_it_reads() {
        let tree = Tree::find().expect("cargo describes the tree");
        let prefix = tempfile::tempdir().expect("a folder");
        install_examples(&tree, prefix.path()).expect("all of it is there");
        let doc = prefix.path().join("share/doc/lintel");
        for (from, to) in [("c", "examples"), ("scenarios", "scenarios")] {
            let files = fs::read_dir(tree.path("examples").join(from)).expect("examples");
            for file in files.flatten() {
                let installed = doc.join(to).join(file.file_name());
                assert!(installed.is_file(), "{}", installed.display());
            }
        }
    }
}
