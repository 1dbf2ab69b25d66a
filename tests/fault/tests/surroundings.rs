//! What the system forbids, forks, ends and keeps apart.

use lintel_fault::job::{Job, Worker};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WORKER: &str = env!("CARGO_BIN_EXE_fault-worker");
/// Nobody's, on every Linux.
const NOBODY: u32 = 65534;

/// The superuser may look into every process: where this is one, the workers
/// belong to another user, who must be able to read the program.
struct Plain {
    job: Job,
    folder: PathBuf,
}

impl Plain {
    fn new() -> Plain {
        let mut job = Job::new(WORKER);
        let folder = std::env::temp_dir().join(format!("workers-{}", job.name()));
        std::fs::create_dir(&folder).expect("there is room for a folder");
        // By another process: a worker that is forked here meanwhile would inherit
        // the copy open for writing, and nobody could run it until that one execs.
        let mut cp = Command::new("cp");
        cp.arg(WORKER)
            .arg(Path::new(WORKER).with_file_name("lintel-agent"));
        let copied = cp.arg(&folder).stderr(Stdio::null()).status();
        copied.expect("cp is there");
        job.set_program(&folder.join("fault-worker"));
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } == 0 {
            job.set_user(NOBODY);
        }
        Plain { job, folder }
    }

    fn start(&self, pid: &str) -> Worker {
        let mut worker = self.job.start(&["script", pid]);
        worker.expect("ready");
        worker
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_sender_killed_in_a_stream_leaves_its_target_working() {
    let plain = Plain::new();
    let mut target = plain.start("12");
    for round in 0..20 {
        let mut sender = plain.start("11");
        sender.send("dumpable 0");
        sender.expect("dumpable 0");
        sender.send("put 12 0 4000000");
        std::thread::sleep(std::time::Duration::from_micros(round * 150));
        sender.kill();
        let mut next = plain.start("11");
        next.send("put 12 0 100000");
        next.expect("Ok");
        target.send("received 0 100000");
        target.expect("right");
        next.send("quit");
        next.expect("bye");
    }
}

#[test]
fn a_forks_child_gets_an_error_and_its_parent_goes_on() {
    let job = Job::new(WORKER);
    let mut other = job.start(&["script", "12"]);
    other.expect("ready");
    let mut parent = job.start(&["fork", "11", "12"]);
    parent.expect("ready");
    let before = job.shared_memory_names();
    parent.expect("done");
    assert_eq!(
        job.shared_memory_names(),
        before,
        "the child took something away"
    );
    other.send("put 11 0 8");
    other.expect("Dropped");
    parent.send("end");
    parent.succeed();
    other.send("quit");
    other.expect("bye");
    other.succeed();
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn the_name_of_one_that_vanished_is_free() {
    let job = Job::new(WORKER);
    let mut worker = job.start(&["script", "11"]);
    worker.expect("ready");
    worker.send("vanish");
    worker.succeed();
    let mut next = job.start(&["script", "11"]);
    next.expect("ready");
    let mut third = job.start(&["script", "11"]);
    third.expect("refused 11");
    next.send("quit");
    next.expect("bye");
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn processes_of_different_jobs_dont_see_each_other() {
    let (one_job, two_job) = (Job::new(WORKER), Job::new(WORKER));
    let mut one = one_job.start(&["script", "11"]);
    let mut two = two_job.start(&["script", "12"]);
    let mut twin = two_job.start(&["script", "11"]);
    for worker in [&mut one, &mut two, &mut twin] {
        worker.expect("ready");
    }
    one.send("put 12 0 8");
    one.expect("Undeliverable");
    two.send("put 11 0 8");
    two.expect("Ok");
    twin.send("received 0 8");
    twin.expect("right");
    one.send("received 0 8");
    one.expect("wrong at 0");
}

#[test]
fn a_variable_that_isnt_understood_is_named_with_its_values() {
    let job = Job::new(WORKER);
    for (name, value, says) in [
        ("PTL_NAL", "foo", "a list of shm, udp, ofi"),
        ("PTL_MODE", "foo", "accelerated, generic"),
        ("PTL_CONN", "foo", "rc, xrc, node"),
        ("PTL_PEER_TIMEOUT", "soon", "milliseconds"),
        ("PTL_LOG", "loud", "off, warn, info, trace"),
    ] {
        let mut command = job.command(&["script", "11"]);
        command.env(name, value);
        let mut worker = Worker::start(command);
        assert_eq!(worker.expect("refused"), "5", "PTL_FAIL of PtlInit");
        worker.await_stderr(&format!("{name}={value} isn't understood; it takes {says}"));
        worker.succeed();
    }
}

mod only_shm {
    use super::*;

    // An agent has no other way to its clients' memory.
    mod only_accelerated {
        use super::*;

        #[test]
        fn long_messages_stream_where_cross_memory_is_denied() {
            let plain = Plain::new();
            for who in 0..3 {
                let (mut one, mut two) = (plain.start("11"), plain.start("12"));
                if who != 1 {
                    one.send("dumpable 0");
                    one.expect("dumpable 0");
                }
                if who != 0 {
                    two.send("dumpable 0");
                    two.expect("dumpable 0");
                }
                for (length, offset) in [(3_000_000, 0), (8193, 3_100_000), (100_000, 3_500_000)] {
                    one.send(&format!("put 12 {offset} {length}"));
                    one.expect("Ok");
                    two.send(&format!("received {offset} {length}"));
                    two.expect("right");
                    one.send(&format!("get 12 {offset} {length}"));
                    one.expect("Ok");
                    two.send(&format!("put 11 {offset} {length}"));
                    two.expect("Ok");
                    two.send(&format!("get 11 {offset} {length}"));
                    two.expect("Ok");
                }
                let denied = if who == 1 { &one } else { &two };
                denied.await_stderr("denies cross-memory");
                for mut worker in [one, two] {
                    worker.send("quit");
                    worker.expect("bye");
                    worker.succeed();
                }
            }
            assert_eq!(plain.job.shared_memory_names(), Vec::<String>::new());
        }
    }

    #[test]
    fn an_end_without_ptlfini_leaves_nothing_in_shared_memory() {
        let job = Job::new(WORKER);
        for how in ["exit", "return"] {
            let mut worker = job.start(&["script", "11"]);
            worker.expect("ready");
            assert!(job.segment(11).exists());
            worker.send(how);
            worker.succeed();
            assert_eq!(job.shared_memory_names(), Vec::<String>::new(), "{how}");
        }
    }
}
