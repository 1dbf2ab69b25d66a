//! Asks the scheduler to run a thread soon after it wakes.

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
    // SAFETY: a processor set of zeros is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is the calling thread; the set has the size that is stated.
    let told = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    // SAFETY: the set is filled; processor numbers are below its size.
    let is_in = |processor: &usize| unsafe { libc::CPU_ISSET(*processor, &set) };
    let mut processors = (0..libc::CPU_SETSIZE as usize).filter(is_in);
    match (told, processors.next(), processors.next()) {
        (0, Some(only), None) => Some(only),
        _ => None,
    }
}

/// The calling thread works for moments at a time: it asks for short turns, which
/// come sooner than long ones. And it may run on any processor of the process's
/// set but `busy`, where the application computes; on that too where there is no
/// other. All are requests; where the system knows no short turns nothing changes.
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
    // SAFETY: a processor set of zeros is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for processor in (0..libc::CPU_SETSIZE as usize).filter(|processor| wanted(*processor)) {
        // SAFETY: the number is below the set's size.
        unsafe { libc::CPU_SET(processor, &mut set) };
    }
    // SAFETY: 0 is the calling thread; the set has the size that is stated.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0 }
}
