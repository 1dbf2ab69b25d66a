//! Compiles `tests/c/*.c`, `tests/c/portals3/*.c`, `tests/c/cnos/*.c`, `tests/c/collectives/*.c`
//! `tests/c/job/*.c` and `tests/c/cci/*.c` as a user would, and starts them, all but the last
//! with yod.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::networks::Setting;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

/// Longer than any of them takes on a loaded machine; the programs' own waits
/// are shorter, so that a lost message is reported by the program that misses it.
const LIMIT: Duration = Duration::from_secs(90);

/// How a program gets at the library.
#[derive(Clone, Copy)]
enum Link {
    Shared,
    Static,
    /// Not at all: the program loads it.
    Loaded,
    /// With libportals_job, and libportals.
    Job,
    /// With libcci alone.
    Cci,
    /// Programs of collective operations, linked with libptlcoll.
    Collectives,
    /// Programs for Portals 3.3, linked with libportals3.
    Portals3,
    /// The same with libcnos.
    Cnos,
}

/// Of `tests/c/collectives`: the others need more than a successful end, which
/// `cargo test -p ptlcoll-c` looks after.
const COLLECTIVES: [&str; 2] = ["results", "busy"];

/// Runs every program, or the one that is named, against `target/dist`.
pub fn run(tree: &Tree, only: Option<&str>, report: &mut Report) {
    run_in(tree, &Setting::default(), only, report);
    jobs(tree, only, report);
    cci(tree, only, report);
    if only.is_none() {
        examples(tree, &tree.dist(), report);
    }
}

/// Launchers that programs of `tests/c/job` are started by; "none" starts one process.
const LAUNCHERS: [(&str, &[&str]); 3] = [
    ("yod", &["-n", "3"]),
    ("mpiexec.hydra", &["-n", "3"]),
    ("none", &[]),
];

/// `tests/c/job`, whose programs ask their launcher.
fn jobs(tree: &Tree, only: Option<&str>, report: &mut Report) {
    for source in shell::files(&tree.path("tests/c/job"), "c") {
        let full = format!("job/{}", stem(&source));
        if only.is_some_and(|only| only != full) {
            continue;
        }
        for (launcher, words) in LAUNCHERS {
            let title = format!("C: {full}, launcher: {launcher}");
            if launcher.starts_with("mpiexec") && shell::find_program(launcher).is_none() {
                report.not_applicable(&title);
                continue;
            }
            report.check(&title, || start_job(tree, &source, launcher, words));
        }
    }
}

fn start_job(tree: &Tree, source: &Path, launcher: &str, words: &[&str]) -> Outcome {
    let program = compile(tree, &tree.dist(), source, Link::Job)?;
    let mut command = match launcher {
        "none" => Command::new(&program),
        "yod" => Command::new(tree.dist().join("bin/yod")),
        other => Command::new(other),
    };
    if !words.is_empty() {
        command.args(words).arg(&program);
    }
    shell::run_within(command.env_remove("LD_LIBRARY_PATH"), LIMIT)
}

/// Devices that CCI programs run on: the whole of a configuration file.
const CCI_DEVICES: [(&str, &str); 2] = [
    ("sm", "[node]\ntransport = sm\n"),
    ("sock", "[loopback]\ntransport = sock\nip = 127.0.0.1\n"),
];

/// `tests/c/cci`, whose programs start their own processes.
fn cci(tree: &Tree, only: Option<&str>, report: &mut Report) {
    for source in shell::files(&tree.path("tests/c/cci"), "c") {
        let full = format!("cci/{}", stem(&source));
        if only.is_some_and(|only| only != full) {
            continue;
        }
        for (transport, config) in CCI_DEVICES {
            report.check(&format!("C: {full} over {transport}"), || {
                start_cci(tree, &source, transport, config)
            });
        }
    }
}

fn start_cci(tree: &Tree, source: &Path, transport: &str, config: &str) -> Outcome {
    let program = compile(tree, &tree.dist(), source, Link::Cci)?;
    let file = program.with_extension(format!("{transport}.ini"));
    std::fs::write(&file, config).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(program);
    command
        .env("CCI_CONFIG", file)
        .env("CCI_DEBUG", "warn")
        .env_remove("LD_LIBRARY_PATH");
    shell::run_within(&mut command, LIMIT)
}

/// The same without the examples, in a setting.
pub fn run_in(tree: &Tree, setting: &Setting, only: Option<&str>, report: &mut Report) {
    for source in shell::files(&tree.path("tests/c"), "c") {
        let name = stem(&source);
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let title = title(setting, &name);
        if !setting.suits(&name) {
            report.not_applicable(&title);
            continue;
        }
        let link = if name.starts_with("dlopen") {
            Link::Loaded
        } else {
            Link::Shared
        };
        report.check(&title, || compile_and_start(tree, setting, &source, link));
        if ["put_pingpong", "late_end"].contains(&name.as_str()) {
            report.check(&format!("{title}, linked statically"), || {
                compile_and_start(tree, setting, &source, Link::Static)
            });
        }
    }
    portals3(tree, setting, only, report);
    for name in COLLECTIVES {
        let full = format!("collectives/{name}");
        if only.is_none_or(|only| only == full) {
            let source = tree.path(&format!("tests/c/{full}.c"));
            report.check(&title(setting, &full), || {
                compile_and_start(tree, setting, &source, Link::Collectives)
            });
        }
    }
}

/// The programs for Portals 3.3.
fn portals3(tree: &Tree, setting: &Setting, only: Option<&str>, report: &mut Report) {
    for (folder, link) in [("portals3", Link::Portals3), ("cnos", Link::Cnos)] {
        for source in shell::files(&tree.path("tests/c").join(folder), "c") {
            let name = format!("{folder}/{}", stem(&source));
            let title = title(setting, &name);
            if only.is_some_and(|only| only != name) {
                continue;
            }
            report.check(&title, || compile_and_start(tree, setting, &source, link));
        }
    }
}

fn title(setting: &Setting, name: &str) -> String {
    match *setting == Setting::default() {
        true => format!("C: {name}"),
        false => format!("{setting}: C: {name}"),
    }
}

/// What README.md and the packaging promise.
fn examples(tree: &Tree, dist: &Path, report: &mut Report) {
    report.check("C: the example of README.md", || readme_example(tree, dist));
    for source in shell::files(&tree.path("examples/c"), "c") {
        report.check(&format!("C: examples/c/{}", stem(&source)), || {
            let program = compile(tree, dist, &source, Link::Job)?;
            let mut yod = yod(dist, &Setting::default(), "3", &program);
            shell::run_within(&mut yod, LIMIT)
        });
    }
    rust_examples(tree, dist, report);
    if shell::find_program("cmake").is_some() {
        report.check("C: a CMake project", || cmake_project(tree, dist));
    }
}

/// `examples/rust`, each started as its twin in `examples/c`.
fn rust_examples(tree: &Tree, dist: &Path, report: &mut Report) {
    let built = report.check("Rust: examples/rust", || {
        let words = ["build", "--quiet", "--package", "portals-examples"];
        shell::run(tree.cargo().args(words))
    });
    let sources = shell::files(&tree.path("examples/rust/src/bin"), "rs");
    for source in sources.iter().filter(|_| built) {
        let name = stem(source);
        report.check(&format!("Rust: examples/rust, {name}"), || {
            let program = tree.target.join("debug").join(&name);
            shell::run_within(&mut yod(dist, &Setting::default(), "3", &program), LIMIT)
        });
    }
}

fn compile_and_start(tree: &Tree, setting: &Setting, source: &Path, link: Link) -> Outcome {
    let dist = &tree.dist();
    let program = compile(tree, dist, source, link)?;
    let ranks = match link {
        Link::Collectives => "3",
        Link::Cnos => "4",
        _ => "2",
    };
    let mut yod = yod(dist, setting, ranks, &program);
    if matches!(link, Link::Loaded) {
        yod.env("LD_LIBRARY_PATH", dist.join("lib"));
    }
    shell::run_within(&mut yod, LIMIT)
}

fn compile(tree: &Tree, dist: &Path, source: &Path, link: Link) -> Result<PathBuf, String> {
    let folder = tree.target.join("c-tests");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let suffix = if matches!(link, Link::Static) {
        "-static"
    } else {
        ""
    };
    let program = folder.join(format!("{}{suffix}", stem(source)));
    let package = match link {
        Link::Collectives => "ptlcoll",
        Link::Portals3 => "portals3",
        Link::Cnos => "cnos",
        Link::Cci => "cci",
        Link::Job => "portals4_job",
        _ => "portals4",
    };
    let flags = |words: &[&str]| pkg_config(dist, package, words);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(flags(&["--cflags"])?);
    match link {
        // A program for the reference names its library; the other name is found as well.
        Link::Job if stem(source) == "reference_names" => cc
            .args(flags(&["--libs-only-L"])?)
            .args(flags(&["--libs-only-other"])?)
            .arg("-lportals_runtime"),
        Link::Static => cc.args(static_flags(&flags(&["--static", "--libs"])?)),
        Link::Loaded => cc.arg("-ldl"),
        _ => cc.args(flags(&["--libs"])?),
    };
    shell::output(&mut cc)?;
    Ok(program)
}

/// pkg-config names libraries the same either way; the archive's exact file
/// name makes the linker not take the shared one.
fn static_flags(flags: &[String]) -> Vec<String> {
    flags
        .iter()
        .map(|flag| match flag.as_str() {
            "-lportals" => "-l:libportals.a".into(),
            other => other.into(),
        })
        .collect()
}

fn pkg_config(dist: &Path, package: &str, words: &[&str]) -> Result<Vec<String>, String> {
    let flags = shell::output(
        Command::new("pkg-config")
            .env("PKG_CONFIG_PATH", dist.join("lib/pkgconfig"))
            .args(words)
            .arg(package),
    )?;
    Ok(flags.split_whitespace().map(String::from).collect())
}

/// Ranks of a program, which finds the library by the run path that pkg-config gave it.
fn yod(dist: &Path, setting: &Setting, ranks: &str, program: &Path) -> Command {
    let mut yod = Command::new(dist.join("bin/yod"));
    yod.args(["-n", ranks]);
    if setting.has_nodes() {
        yod.args(["--nodes", "2"]);
    }
    yod.arg(program).env_remove("LD_LIBRARY_PATH");
    setting.apply_to(&mut yod);
    yod
}

/// The program that README.md shows does what README.md says.
fn readme_example(tree: &Tree, dist: &Path) -> Outcome {
    greets(dist, &readme_program(tree, dist)?)
}

/// The program that README.md shows, compiled.
pub fn readme_program(tree: &Tree, dist: &Path) -> Result<PathBuf, String> {
    let source = readme_source(tree, &tree.target.join("c-tests"))?;
    compile(tree, dist, &source, Link::Job)
}

fn readme_source(tree: &Tree, folder: &Path) -> Result<PathBuf, String> {
    let text = shell::read(&tree.path("README.md"))?;
    let body = text
        .split_once("```c\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .ok_or("README.md shows no C program")?
        .0;
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let source = folder.join("hello.c");
    std::fs::write(&source, body).map_err(|e| e.to_string())?;
    Ok(source)
}

fn greets(dist: &Path, program: &Path) -> Outcome {
    let said = shell::output(&mut yod(dist, &Setting::default(), "2", program))?;
    match said.matches("hello, portals").count() {
        2 => Ok(()),
        _ => Err(format!("two ranks should have greeted: {said:?}")),
    }
}

/// The same program, built by a project that uses CMake.
fn cmake_project(tree: &Tree, dist: &Path) -> Outcome {
    let folder = tree.fresh_folder("c-tests/cmake")?;
    readme_source(tree, &folder)?;
    for (file, text) in [
        ("CMakeLists.txt", CMAKE_PROJECT),
        ("cci.c", CCI_PROGRAM),
        ("collectives.c", COLLECTIVES_PROGRAM),
    ] {
        std::fs::write(folder.join(file), text).map_err(|e| e.to_string())?;
    }
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", dist.display());
    let cmake = |words: &[&str]| {
        shell::output(Command::new("cmake").args(words).current_dir(&folder)).map(drop)
    };
    cmake(&["-S", ".", "-B", "build", &prefix])?;
    cmake(&["--build", "build"])?;
    greets(dist, &folder.join("build/shared"))?;
    greets(dist, &folder.join("build/static"))?;
    for program in ["build/cci", "build/collectives"] {
        shell::run_within(&mut Command::new(folder.join(program)), LIMIT)?;
    }
    Ok(())
}

const CMAKE_PROJECT: &str = "\
cmake_minimum_required(VERSION 3.13)
project(hello C)
find_package(portals4 4.3 REQUIRED)
add_executable(shared hello.c)
target_link_libraries(shared PRIVATE portals4::portals4 portals4::job)
add_executable(static hello.c)
target_link_libraries(static PRIVATE portals4::portals4_static portals4::job)
find_package(cci 2.2 REQUIRED)
add_executable(cci cci.c)
target_link_libraries(cci PRIVATE cci::cci)
find_package(ptlcoll 1.0 REQUIRED)
add_executable(collectives collectives.c)
target_link_libraries(collectives PRIVATE ptlcoll::ptlcoll)
";

/// A group of one rank needs no launcher.
const COLLECTIVES_PROGRAM: &str = "\
#include <portals4.h>
#include <ptlcoll.h>
#include <stddef.h>
int main(void) {
    ptl_handle_ni_t ni;
    ptl_process_t me;
    ptlcoll_group_t group;
    int options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
    if (PtlInit() != PTL_OK) return 1;
    if (PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) return 2;
    if (PtlGetPhysId(ni, &me) != PTL_OK) return 3;
    if (ptlcoll_group_create(ni, 20, &me, 1, 0, 0, &group) != PTL_OK) return 4;
    if (ptlcoll_barrier(group, PTLCOLL_AUTO) != PTL_OK) return 5;
    ptlcoll_group_free(group);
    PtlNIFini(ni);
    PtlFini();
    return 0;
}
";

const CCI_PROGRAM: &str = "\
#include <cci.h>
int main(void) { uint32_t caps; return cci_init(CCI_ABI_VERSION, 0, &caps); }
";

fn stem(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
