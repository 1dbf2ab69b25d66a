//! What yod prints of ranks that seem to hang.

mod rig;

use rig::{Running, line_of};
use rustix::process::Signal;

/// Ranks that say that they run, and end when they get SIGUSR1.
const UNTIL_USR1: &str = "trap 'exit 0' USR1; echo runs; while :; do sleep 0.1; done";

#[test]
fn a_quit_signal_asks_what_ranks_wait_for_and_the_job_goes_on() {
    let mut job = Running::start(&["-n", "2", "sh", "-c", UNTIL_USR1]);
    job.lines(2);
    job.signal(Signal::QUIT);
    let answer = line_of(&mut job.stderr);
    assert_eq!(answer, "yod: no rank has a Portals interface open here");
    job.signal(Signal::USR1);
    assert_eq!(job.finish().0.code(), Some(0));
}

#[test]
fn after_a_time_ranks_are_asked_once_what_they_wait_for() {
    let mut job = Running::start(&["--dump-after", "0.01", "sh", "-c", UNTIL_USR1]);
    job.lines(1);
    let answer = line_of(&mut job.stderr);
    assert_eq!(answer, "yod: no rank has a Portals interface open here");
    job.signal(Signal::USR1);
    let (status, _, err) = job.finish();
    // The shell reports its child's end on standard error.
    assert!(!err.contains("yod:"), "{err}");
    assert_eq!(status.code(), Some(0));
}
