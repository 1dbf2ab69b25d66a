//! The processor's counter of ticks, which is read in less time than the system's clocks.

/// Ticks of the processor's time stamp counter; 0 on processors of which none is read here. The
/// counters of a machine's processors agree, and tick evenly, only if
/// [`ticks_are_steady`].
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads a register. Linux lets programs use it unless they forbid it
    // to themselves (PR_SET_TSC).
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Whether the kernel has found the counter good enough for its own clock: invariant, and the same
/// on all processors.
pub fn ticks_are_steady() -> bool {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_tsc = |clock: String| clock.trim() == "tsc";
    cfg!(target_arch = "x86_64") && std::fs::read_to_string(CLOCK).is_ok_and(is_tsc)
}
