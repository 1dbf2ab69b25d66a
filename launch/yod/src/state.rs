//! What the processes of a job wait for, for a person who asks why it hangs.

use lintel_inspect::{Process, look, reasons, text};

/// With more processes than this, only the reasons are printed: they fit on a screen.
const MOST_WITH_DETAILS: usize = 4;

/// In lines: what each process of the job on this machine waits for. May take a second, if
/// one doesn't answer.
pub(crate) fn of_job(job: &str) -> String {
    match look(Some(job)) {
        Ok(processes) => lines(&processes),
        Err(error) => format!("yod: the ranks can't be asked what they wait for: {error}\n"),
    }
}

fn lines(processes: &[Process]) -> String {
    if processes.is_empty() {
        return "yod: no rank has a Portals interface open here\n".into();
    }
    let mut lines = String::from("yod: what the ranks wait for:\n");
    for reason in reasons(processes) {
        lines += &format!("yod: {reason}\n");
    }
    match processes.len() {
        0..=MOST_WITH_DETAILS => lines += &text(processes),
        _ => lines += "yod: `lintel info --queues` shows lists, queues and counters\n",
    }
    lines
}
