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

/// The calling thread works for moments at a time: it asks for short turns, which
/// come sooner than long ones, and may run on any processor of the process's
/// set, not just on the one whose work it interrupts. Both are requests; where
/// the system knows no short turns nothing changes.
pub fn run_soon() {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        runtime: SHORT_TURN,
        ..Attributes::default()
    };
    // SAFETY: 0 is the calling thread; the structure has the size that it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
    // SAFETY: a processor set of ones; the system leaves out what isn't allowed.
    unsafe {
        let mut every: libc::cpu_set_t = std::mem::zeroed();
        for processor in 0..libc::CPU_SETSIZE as usize {
            libc::CPU_SET(processor, &mut every);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &every);
    }
}
