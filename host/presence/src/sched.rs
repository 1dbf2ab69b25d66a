//! How the library's own threads run: soon after they wake, and without signals.

use rustix::thread::{
    CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

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

/// How much later than asked the system may wake the thread from a sleep; 50 µs else.
const TIMER_SLACK: Duration = Duration::from_micros(1);

/// Sleeps of which one is disturbed by nothing else, as a rule, and the time after which none begins.
const TIMED_SLEEPS: u32 = 4;
const TIMED_AT_MOST: Duration = Duration::from_micros(500);

/// The processor that the calling thread runs on; nothing where the system doesn't say.
pub fn this_processor() -> Option<u32> {
    // rustix's own reads the vDSO, which valgrind hides in a way that it doesn't expect.
    // SAFETY: takes nothing and returns a number.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

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
/// come sooner than long ones, and to be woken on time. And it may run on any processor of the
/// process's set but `busy`, where the application computes; on that too if there is no other.
/// All are requests; if the system knows no short turns nothing changes.
pub fn favour_latency(busy: Option<usize>) {
    take_short_turns(None, libc::SCHED_OTHER);
    set_timer_slack(TIMER_SLACK);
    if !run_on(|processor| Some(processor) != busy) {
        run_on(|_| true);
    }
}

/// Has a thread of this process, or the calling one, take short turns under that policy.
fn take_short_turns(thread: Option<Pid>, policy: libc::c_int) {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        runtime: SHORT_TURN,
        ..Attributes::default()
    };
    let thread = Pid::as_raw(thread);
    // SAFETY: 0 is the calling thread; the structure has the size that it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &attributes, 0) };
}

/// A thread that others can have wake without preempting any: under the policy `SCHED_BATCH` (sched(7))
/// it waits for the end of a turn where all its processors are in use.
#[derive(Default)]
pub(crate) struct BatchThread {
    /// 0 until it is known.
    thread: AtomicI32,
    is_batch: AtomicBool,
}

impl BatchThread {
    /// The calling thread is the one.
    pub(crate) fn is_this(&self) {
        let thread = gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
    }

    /// When it wakes next, it preempts no thread. The caller wakes it after that.
    pub(crate) fn set_batch(&self) {
        if let Some(thread) = Pid::from_raw(self.thread.load(Ordering::Acquire)) {
            take_short_turns(Some(thread), libc::SCHED_BATCH);
            // In this order: it may be awake, and takes back only what it finds here.
            self.is_batch.store(true, Ordering::Release);
        }
    }

    /// The thread, which calls this, is awake: it preempts others again when it wakes.
    pub(crate) fn end_batch(&self) {
        if self.is_batch.swap(false, Ordering::Acquire) {
            take_short_turns(None, libc::SCHED_OTHER);
        }
    }
}

/// Calls `sleep`, in which the sleeps of the calling thread, which has timers [on
/// time](favour_latency), may end so much later than asked. One that ends with an interrupt that comes
/// anyway, as that of the system's clock, needs no timer of its own. In a virtual machine whose timers
/// trap, that is most of what it takes from the thread that uses the processor.
pub fn with_timer_slack<R>(slack: Duration, sleep: impl FnOnce() -> R) -> R {
    if slack.is_zero() {
        return sleep();
    }
    set_timer_slack(slack);
    let slept = sleep();
    set_timer_slack(TIMER_SLACK);
    slept
}

fn set_timer_slack(slack: Duration) {
    // One that the system refuses leaves sleeps as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(slack.as_nanos() as u64));
}

/// What it takes to sleep for a moment and to be woken by the timer, which a thread that is
/// interrupted for it loses: 27 to 41 µs in a virtual machine whose timers trap. The least of some
/// sleeps, to be asked by a thread that has timers [on time](favour_latency).
pub fn timed_sleep_cost() -> Duration {
    let begun = Instant::now();
    let sleeps = (0..TIMED_SLEEPS).map_while(|_| {
        let falls_asleep = Instant::now();
        if falls_asleep - begun > TIMED_AT_MOST {
            return None;
        }
        std::thread::sleep(Duration::from_nanos(1));
        Some(falls_asleep.elapsed())
    });
    sleeps.min().unwrap_or_default()
}

/// Calls `start` while the calling thread blocks all signals. A thread that it starts inherits
/// that: signals are for the application's own threads.
pub fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the pointer is to a sigset_t, which the call initialises.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::uninit();
    // SAFETY: `all` is initialised above, and `before` has room for a sigset_t, which a call
    // that succeeds initialises.
    let result =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let started = start();
    if result == 0 {
        // SAFETY: the call above has initialised `before`; a null pointer asks for nothing.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    }
    started
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals that a thread blocks, as the system shows them.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.expect("Linux shows it").trim(), 16).expect("hexadecimal")
    }

    #[test]
    fn a_thread_started_without_signals_blocks_all_and_its_starter_none_more() {
        let before = blocked();
        let inside = with_signals_blocked(|| std::thread::spawn(blocked));
        let inside = inside.join().expect("nothing has failed");
        let terminate = 1 << (libc::SIGTERM - 1);
        assert_eq!(inside & terminate, terminate, "{inside:#x}");
        assert_eq!(blocked(), before);
    }

    fn policy() -> libc::c_int {
        // SAFETY: takes a number, and changes nothing.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_is_a_batch_thread_until_it_is_awake() {
        let thread = BatchThread::default();
        thread.set_batch();
        assert_eq!(
            policy(),
            libc::SCHED_OTHER,
            "it isn't known which one it is"
        );
        thread.is_this();
        thread.set_batch();
        assert_eq!(policy(), libc::SCHED_BATCH);
        thread.end_batch();
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
