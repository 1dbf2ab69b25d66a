//! Endpoints that nobody uses.

use crate::rig::{CHILD, join, own_sm, sm, wait};
use lintel_cci_endpoint::{Attribute, Device, Endpoint};
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const TEST: &str = "idle::two_connected_endpoints_with_descriptors_sleep_while_nothing_comes";
/// How long a process is watched at a time.
const WATCHED: Duration = Duration::from_millis(500);
/// Sleeps of all its threads together in that time. Each endpoint's helper looks at its peers some
/// tens of times a second; a thread that polls yields or naps thousands of times, and one that
/// doesn't even sleep uses up its processor.
const MOST_SLEEPS: u64 = 100;
/// The same for processor time, in the system's ticks of 10 ms.
const MOST_TICKS: u64 = 2;

#[test]
fn two_connected_endpoints_with_descriptors_sleep_while_nothing_comes() {
    match std::env::var(CHILD) {
        Ok(place) => idle(&place),
        Err(_) => {
            watch(&own_sm("idle").path);
            watch("udp");
        }
    }
}

/// Opens and connects two endpoints, and waits until the parent ends that.
fn idle(place: &str) {
    let device = match place {
        "udp" => Device::at_address(Ipv4Addr::LOCALHOST),
        group => sm(group),
    };
    let open = || Endpoint::open(&device, None, true).expect("the system has room");
    let (a, b) = (open(), open());
    join(&a, &b, Attribute::Ro);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("it is a pipe");
}

fn watch(place: &str) {
    let program = std::env::current_exe().expect("a test is a program");
    let mut child = Command::new(program)
        .args([TEST, "--exact", "--nocapture"])
        .env(CHILD, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it can be started");
    let pid = child.id();
    wait("rest of an idle process", || {
        let before = (sleeps(pid), ticks(pid));
        thread::sleep(WATCHED);
        let after = (sleeps(pid), ticks(pid));
        // Two endpoints have a helper each, and are connected by then.
        let is_up = threads(pid) >= 4;
        let rests = after.0.saturating_sub(before.0) <= MOST_SLEEPS
            && after.1.saturating_sub(before.1) <= MOST_TICKS;
        (is_up && rests).then_some(())
    });
    drop(child.stdin.take());
    assert!(child.wait().expect("it was started").success());
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// How often the threads of a process have given up their processors of themselves.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let statuses = tasks.flatten().map(|task| task.path().join("status"));
    let of_task = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    // A thread may end meanwhile.
    statuses
        .filter_map(|path| of_task(fs::read_to_string(path).ok()?))
        .sum()
}

/// Processor time of a process, in user code and in the system.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("its name comes before");
    let number = |field: &str| field.parse::<u64>().expect("the system writes numbers");
    fields.split(' ').skip(11).take(2).map(number).sum()
}
