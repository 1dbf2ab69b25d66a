//! `lintel doctor`: looks for what keeps Portals programs from running, or from running fast, and
//! says how to mend it.
//!
//! Each check is a function that returns [`Finding`]s; none changes anything.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::error::{During, Error, Result};
use crate::info::copy_refusal;
use crate::{machine, output, portals};

/// Options of `lintel doctor`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A program: also show which Portals libraries it loads
    program: Option<PathBuf>,

    /// Write the findings as JSON
    #[arg(long)]
    json: bool,
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    verdict: Verdict,
    /// What was looked at.
    about: &'static str,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and could be better.
    Slow,
    /// Programs will fail.
    Wrong,
}

fn ok(about: &'static str, text: impl Into<String>) -> Finding {
    finding(Verdict::Ok, about, text)
}

fn slow(about: &'static str, text: impl Into<String>) -> Finding {
    finding(Verdict::Slow, about, text)
}

fn wrong(about: &'static str, text: impl Into<String>) -> Finding {
    finding(Verdict::Wrong, about, text)
}

fn finding(verdict: Verdict, about: &'static str, text: impl Into<String>) -> Finding {
    let text = text.into();
    Finding {
        verdict,
        about,
        text,
    }
}

/// Prints the findings; whether nothing is wrong.
///
/// # Errors
/// The program can't be looked at; standard output.
pub fn run(options: &Options) -> Result<bool> {
    let mut findings = vec![
        interface(),
        shared_memory(&ProcFile::of("/proc/sys/kernel/shmmni")),
        registrations(Path::new("/dev/shm")),
        cross_memory(),
        datagrams(),
        secret(),
        cores(),
        load(&ProcFile::of("/proc/loadavg")),
        clock(&ProcFile::of(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )),
    ];
    if let Some(program) = &options.program {
        findings.extend(libraries(program)?);
    }
    output::print(&match options.json {
        true => serde_json::to_string_pretty(&findings).expect("plain data") + "\n",
        false => text(&findings),
    })?;
    Ok(findings.iter().all(|one| one.verdict != Verdict::Wrong))
}

fn text(findings: &[Finding]) -> String {
    let line = |one: &Finding| {
        let verdict = match one.verdict {
            Verdict::Ok => "ok",
            Verdict::Slow => "slow",
            Verdict::Wrong => "WRONG",
        };
        format!("{verdict:<6} {:<22} {}\n", one.about, one.text)
    };
    findings.iter().map(line).collect()
}

/// A file of /proc or /sys.
struct ProcFile(String);

impl ProcFile {
    fn of(path: &str) -> ProcFile {
        ProcFile(fs::read_to_string(path).unwrap_or_default())
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace()
    }
}

/// An interface opens as programs open it.
fn interface() -> Finding {
    let about = "interface";
    match portals::open_default().and_then(|interface| interface.physical_id()) {
        Ok(id) => ok(
            about,
            format!("opens as {}, pid {}", Ipv4Addr::from(id.nid), id.pid),
        ),
        Err(error) => wrong(
            about,
            format!("doesn't open ({error}); PTL_LOG=info shows what was tried"),
        ),
    }
}

/// Segments are System V shared memory, one a process.
fn shared_memory(most: &ProcFile) -> Finding {
    let about = "shared memory";
    let most: usize = most
        .words()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    let used = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let used = used.lines().count().saturating_sub(1);
    match most.saturating_sub(used) {
        0..=1 => wrong(
            about,
            format!(
                "{used} of {most} segments are in use; remove stale ones (ipcs -m, ipcrm) or raise \
                 kernel.shmmni"
            ),
        ),
        _ => ok(
            about,
            format!("{used} of {most} System V segments in use, one a process"),
        ),
    }
}

/// Registrations are small files there.
fn registrations(folder: &Path) -> Finding {
    let about = "registrations";
    match try_file(&folder.join(format!("lintel-doctor-{}", std::process::id()))) {
        Ok(()) => ok(about, format!("{} takes files", folder.display())),
        Err(error) => wrong(
            about,
            format!(
                "{} takes no file ({error}); mount a tmpfs there, in a container with \
                 --shm-size, and free what fills it",
                folder.display()
            ),
        ),
    }
}

/// Makes a file, writes a page and removes it. Everybody may write to such a folder: a file or a
/// link that is there already is neither followed nor removed.
fn try_file(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(&[0; 4096]);
    fs::remove_file(path)?;
    written
}

fn cross_memory() -> Finding {
    let about = "cross-memory copies";
    match copy_refusal() {
        None => ok(about, "long messages are copied once"),
        Some(why) => slow(about, format!("long messages are copied twice: {why}")),
    }
}

/// A datagram to this node's own address arrives.
fn datagrams() -> Finding {
    let about = "UDP";
    let address = match std::env::var("PTL_IFACE") {
        Err(_) => Ipv4Addr::LOCALHOST,
        Ok(text) => match text.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => address,
            _ => {
                return ok(
                    about,
                    format!("not tried: PTL_IFACE={text} is an interface"),
                );
            }
        },
    };
    match send_to_self(address) {
        Ok(()) => ok(
            about,
            format!("a datagram from {address} to {address} arrives"),
        ),
        Err(error) => wrong(
            about,
            format!(
                "a datagram from {address} to {address} doesn't arrive ({error}); PTL_IFACE must be \
                 an address of this machine, and no packet filter may drop it"
            ),
        ),
    }
}

fn send_to_self(address: Ipv4Addr) -> std::io::Result<()> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send_to(b"lintel", socket.local_addr()?)?;
    socket.recv(&mut [0; 16]).map(drop)
}

/// The secret of jobs that yod doesn't start.
fn secret() -> Finding {
    let about = "secret file";
    let named = std::env::var_os("PTL_SECRET_FILE").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config/lintel/secret"));
    let Some(path) = named.or_else(home) else {
        return slow(
            about,
            "neither PTL_SECRET_FILE nor HOME is set: programs need yod between nodes",
        );
    };
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => {
            wrong(about, format!("{} is no regular file", path.display()))
        }
        Ok(found) if found.mode() & 0o177 != 0 => wrong(
            about,
            format!("{} may be used by others; chmod 600 {0}", path.display()),
        ),
        Ok(_) => ok(about, format!("{}; the same on all nodes?", path.display())),
        Err(_) => ok(
            about,
            format!(
                "{} doesn't exist; it is made when a program without yod needs it",
                path.display()
            ),
        ),
    }
}

fn cores() -> Finding {
    let about = "cores";
    match machine::allowed_cores().map(|cores| cores.len()) {
        Ok(1) => slow(
            about,
            "one core: ranks take turns; a message waits for its receiver's turn",
        ),
        Ok(count) => ok(about, format!("{count} allowed; yod --bind pins ranks")),
        Err(error) => wrong(about, error.to_string()),
    }
}

/// Processes that run now make figures worthless.
fn load(file: &ProcFile) -> Finding {
    let about = "load";
    let cores = machine::allowed_cores().map_or(1, |cores| cores.len());
    let load = file
        .words()
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    match load {
        Some(load) if load > cores as f64 * 0.5 => slow(
            about,
            format!("{load} on {cores} cores: measure when the machine is quiet"),
        ),
        Some(load) => ok(about, format!("{load} on {cores} cores")),
        None => ok(about, "unknown"),
    }
}

/// Reading another clock than the processor's costs a system call.
fn clock(file: &ProcFile) -> Finding {
    let about = "clock";
    match file.words().next() {
        Some(name @ ("tsc" | "arch_sys_counter" | "kvm-clock")) => ok(about, name),
        Some(name) => slow(
            about,
            format!("{name}: each look at the clock is slow; the kernel may distrust the TSC"),
        ),
        None => ok(about, "unknown"),
    }
}

/// The dynamic loader: started by itself, it runs no program that it can't load, a static one for
/// instance.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Which libraries with Portals' names a program loads, and whether they are Lintel's.
fn libraries(program: &Path) -> Result<Vec<Finding>> {
    let path = fs::canonicalize(program).during(format!("looking at {}", program.display()))?;
    let listed = Command::new(LOADER)
        .arg(path)
        // List, and run nothing, although a library is missing.
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .during(format!("running {LOADER}"))?;
    if !listed.status.success() {
        return Err(Error::Usage(format!(
            "{} isn't a dynamically linked program of this machine",
            program.display()
        )));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let found: Vec<Finding> = listed.lines().filter_map(library).collect();
    Ok(match found.is_empty() {
        true => vec![ok(
            "program",
            "loads no library of Portals: linked statically, or by dlopen",
        )],
        false => found,
    })
}

/// A line of the loader's list: `libportals.so.4 => /path (0x…)`, or `=> not found`.
fn library(line: &str) -> Option<Finding> {
    let about = "program";
    let (name, place) = line.trim().split_once(" => ")?;
    if !["libportals", "libcci", "libptlcoll"]
        .iter()
        .any(|ours| name.starts_with(ours))
    {
        return None;
    }
    let Some((path, _)) = place.rsplit_once(" (") else {
        return Some(wrong(
            about,
            format!("{name} isn't found; link with pkg-config's flags or set LD_LIBRARY_PATH"),
        ));
    };
    Some(match is_lintels(Path::new(path)) {
        true => ok(about, format!("{name} is Lintel's, {path}")),
        false => slow(
            about,
            format!("{name} is another library, {path}; LD_LIBRARY_PATH or the run path decides"),
        ),
    })
}

/// Lintel's libraries name their variables.
fn is_lintels(library: &Path) -> bool {
    let text = fs::read(library).unwrap_or_default();
    let mark = b"LINTEL_JOB";
    text.windows(mark.len()).any(|window| window == mark)
        || text
            .windows(8)
            .any(|window| window == b"ptlcoll_" || window == b"ptljob_i")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ProcFile {
        ProcFile(text.into())
    }

    #[test]
    fn a_machine_at_work_and_a_slow_clock_differ_from_good_ones() {
        assert_eq!(load(&file("0.00 0.1 0.2 1/99 7")).verdict, Verdict::Ok);
        assert_eq!(load(&file("4096.5 1 1 1/99 7")).verdict, Verdict::Slow);
        assert_eq!(clock(&file("tsc\n")).verdict, Verdict::Ok);
        assert_eq!(clock(&file("hpet\n")).verdict, Verdict::Slow);
        assert_eq!(shared_memory(&file("1\n")).verdict, Verdict::Wrong);
    }

    #[test]
    fn a_folder_that_takes_no_file_is_wrong_and_says_how_to_mend_it() {
        let found = registrations(Path::new("/proc/nowhere"));
        assert_eq!(found.verdict, Verdict::Wrong);
        assert!(found.text.contains("--shm-size"), "{found:?}");
    }

    #[test]
    fn a_link_in_the_place_of_the_probe_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        assert!(try_file(&link).is_err());
        assert_eq!(fs::read_to_string(&target).expect("it is there"), "kept");
        assert!(link.is_symlink());
        assert!(try_file(&folder.path().join("free")).is_ok());
    }

    #[test]
    fn lines_of_the_loader_are_understood() {
        assert_eq!(library("\tlibc.so.6 => /lib/libc.so.6 (0x7f00)"), None);
        assert_eq!(library("\tlinux-vdso.so.1 (0x7ffd)"), None);
        let missing = library("\tlibportals.so.4 => not found").unwrap();
        assert_eq!(missing.verdict, Verdict::Wrong);
        let other = library("\tlibportals.so.4 => /proc/self/cmdline (0x7f00)").unwrap();
        assert_eq!(other.verdict, Verdict::Slow);
    }

    #[test]
    fn an_address_of_another_machine_is_no_place_to_send_from() {
        assert!(send_to_self(Ipv4Addr::new(192, 0, 2, 1)).is_err());
        assert!(send_to_self(Ipv4Addr::LOCALHOST).is_ok());
    }
}
