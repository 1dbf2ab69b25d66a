//! Asks the scheduler to run a thread soon after it wakes.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// `struct sched_attr` of the system, in its first published form.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For an ordinary thread the length of its turns, ns (Linux 6.12).
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest turn that the system grants, ns.
const SHORT_TURN: u64 = 100_000;

/// The processor that the calling thread is bound to, if it is bound to one.
pub fn pinned_processor() -> Option<usize> {
    let set = sched_getaffinity(None).ok()?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor));
    match (processors.next(), processors.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The calling thread works for moments at a time: it asks for short turns, which
/// come sooner than long ones. And it may run on any processor of the process's
/// set but `busy`, where the application computes; on that too if there is no
/// other. All are requests; if the system knows no short turns nothing changes.
pub fn favour_latency(busy: Option<usize>) {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        runtime: SHORT_TURN,
        ..Attributes::default()
    };
    // SAFETY: 0 is the calling thread; the structure has the size that it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
    if !run_on(|processor| Some(processor) != busy) {
        run_on(|_| true);
    }
}

/// Whether the system has a processor of that kind for the calling thread; it
/// leaves out those that aren't allowed.
fn run_on(wanted: impl Fn(usize) -> bool) -> bool {
    let mut set = CpuSet::new();
    for processor in (0..CpuSet::MAX_CPU).filter(|processor| wanted(*processor)) {
        set.set(processor);
    }
    sched_setaffinity(None, &set).is_ok()
}
