//! Debian packages of what `dist` installs.
//!
//! ```text
//!   dist below a DESTDIR ──▶ contents: a folder per package, stripped, debug symbols apart
//!                                └─▶ control: names, dependencies, symbols ──▶ dpkg-deb
//!   --try: a fresh Debian ──▶ apt-get install ──▶ a program is compiled and run ──▶ purge
//! ```

mod contents;
mod control;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::{self, Place};
use crate::prerequisites;
use crate::report::Outcome;
use crate::shell::{self, Tree};

/// One package.
struct Package {
    name: &'static str,
    section: &'static str,
    /// Whether packages of several architectures may be installed beside each other.
    multi_arch: &'static str,
    /// Whether it holds code of one architecture.
    is_binary: bool,
    /// Further dependencies; `VERSION` stands for the packages' version.
    depends: &'static str,
    suggests: &'static str,
    /// The first line, then the lines of the long description.
    description: &'static [&'static str],
}

/// In the order in which they claim files.
const PACKAGES: [Package; 4] = [
    Package {
        name: "lintel-doc",
        section: "doc",
        multi_arch: "foreign",
        is_binary: false,
        depends: "",
        suggests: "libportals4-dev, lintel-tools",
        description: &[
            "Portals 4, Portals 3.3 and CCI in software: book and examples",
            "The book as Markdown and, if it was built with mdbook, as HTML; programs in C and",
            "Rust; scenarios of the simulator.",
        ],
    },
    Package {
        name: "libportals4-dev",
        section: "libdevel",
        multi_arch: "same",
        is_binary: true,
        depends: "libportals4 (= VERSION), libc6-dev",
        suggests: "lintel-doc",
        description: &[
            "Portals 4, Portals 3.3 and CCI in software: headers",
            "Headers, the static library, files for pkg-config and CMake, and the functions'",
            "man pages.",
        ],
    },
    Package {
        name: "lintel-tools",
        section: "net",
        multi_arch: "foreign",
        is_binary: true,
        depends: "",
        suggests: "openssh-client, lintel-doc, tshark | wireshark",
        description: &[
            "Portals 4, Portals 3.3 and CCI in software: launcher and tools",
            "yod starts parallel programs. lintel informs, measures and simulates. lintel-agent",
            "runs the engines of processes in generic placement.",
        ],
    },
    Package {
        name: "libportals4",
        section: "libs",
        multi_arch: "same",
        is_binary: true,
        depends: "",
        suggests: "lintel-tools",
        description: &[
            "Portals 4, Portals 3.3 and CCI in software: libraries",
            "One-sided communication with matching, over shared memory, UDP and libfabric. The",
            "libraries are those of Portals 4.3 (libportals), Portals 3.3 (libportals3, libcnos),",
            "CCI 2 (libcci), collective operations (libptlcoll) and jobs (libportals_job).",
        ],
    },
];

/// What is needed to make them.
const NEEDS: [(&str, &str, &str); 4] = [
    ("dpkg-deb", "packages", "dpkg"),
    ("dpkg-shlibdeps", "dependencies of packages", "dpkg-dev"),
    ("objcopy", "debug symbols", "binutils"),
    ("gzip", "man pages", "gzip"),
];

/// Folders and names that all steps use.
struct Build<'a> {
    tree: &'a Tree,
    /// Where packages are put together.
    work: PathBuf,
    version: String,
    /// As dpkg names it: `amd64`.
    architecture: String,
    /// The folder of this architecture's libraries: `x86_64-linux-gnu`.
    multiarch: String,
}

impl Build<'_> {
    /// The tree of a package.
    fn root(&self, package: &str) -> PathBuf {
        self.work.join(package)
    }

    /// The folder of libraries, below a package's root.
    fn libdir(&self) -> String {
        format!("usr/lib/{}", self.multiarch)
    }
}

/// `cargo xtask deb [--out DIR] [--try]`.
pub fn run(tree: &Tree, words: &[&str]) -> Outcome {
    let is_tried = words.contains(&"--try");
    let rest: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--try")
        .collect();
    let options = shell::Arguments::new(&rest)?.only(&["--out"])?;
    let out = options
        .get("--out")
        .map_or(tree.target.join("deb/out"), PathBuf::from);
    prerequisites::programs(&NEEDS)?;
    let made = make(tree, &out)?;
    for path in &made {
        println!("   {}", path.display());
    }
    match is_tried {
        true => trial::run(tree, &made),
        false => Ok(()),
    }
}

/// Makes all packages; returns their files.
fn make(tree: &Tree, out: &Path) -> Result<Vec<PathBuf>, String> {
    let asked = |program: &str, word: &str| {
        shell::output(Command::new(program).arg(word)).map(|said| said.trim().to_owned())
    };
    let build = Build {
        tree,
        work: tree.fresh_folder("deb/work")?,
        version: format!("{}-1", tree.version()?),
        architecture: asked("dpkg", "--print-architecture")?,
        multiarch: asked("dpkg-architecture", "-qDEB_HOST_MULTIARCH")?,
    };
    let staged = build.work.join("staged");
    let libdir = format!("lib/{}", build.multiarch);
    dist::install_all(tree, &Place::packaged(&libdir, &staged))?;
    contents::split(&build, &staged)?;
    let mut made = Vec::new();
    std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    for (name, package) in control::write(&build)? {
        let file = out.join(format!("{package}.deb"));
        let words = ["--root-owner-group", "--uniform-compression", "--build"];
        let mut dpkg = Command::new("dpkg-deb");
        shell::output(dpkg.args(words).arg(build.root(&name)).arg(&file))?;
        made.push(file);
    }
    Ok(made)
}
