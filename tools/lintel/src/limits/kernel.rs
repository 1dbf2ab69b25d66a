//! What the kernel charges: a system call, waking the other core, idle or busy.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::error::{During, Result};
use crate::harness::{Workload, is_past};
use crate::raw::{self, Region};
use crate::team::{BARRIER_TIMEOUT, Team, spin_until};

/// Each side sleeps on a futex until the other wakes it.
pub struct FutexWake {
    shared: Region,
    turn: u32,
}

impl FutexWake {
    /// A word at zero.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            turn: 0,
        })
    }

    fn word(&self) -> &AtomicU32 {
        &self.shared.halves()[0]
    }

    fn signal(&mut self) -> Result<()> {
        self.turn = self.turn.wrapping_add(1);
        self.word().store(self.turn, Release);
        futex::wake(self.word(), futex::Flags::empty(), 1).during("futex_wake")?;
        Ok(())
    }

    fn sleep(&mut self) -> Result<()> {
        let awaited = self.turn.wrapping_add(1);
        while self.word().load(Acquire) != awaited {
            sleep_at(self.word(), self.turn)?;
        }
        self.turn = awaited;
        Ok(())
    }
}

impl Workload for FutexWake {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.signal()?;
            self.sleep()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.sleep()?;
            self.signal()?;
        }
        Ok(())
    }
}

/// Sleeps until the word is woken, if it has that value; perhaps not for so long.
fn sleep_at(word: &AtomicU32, value: u32) -> Result<()> {
    match futex::wait(word, futex::Flags::empty(), value, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error).during("futex_wait"),
    }
}

/// Rank 1 sleeps on a futex until rank 0 wakes it, and answers by a word for which rank 0 spins.
pub struct FutexCall {
    shared: Region,
    calls: u32,
}

impl FutexCall {
    /// No call so far.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            calls: 0,
        })
    }

    fn word(&self, place: usize) -> &AtomicU32 {
        &self.shared.halves()[place]
    }
}

impl Workload for FutexCall {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.calls = self.calls.wrapping_add(1);
            self.word(CALL).store(self.calls, Release);
            futex::wake(self.word(CALL), futex::Flags::empty(), 1).during("futex_wake")?;
            spin_until(|| self.word(AWAKE).load(Acquire) == self.calls)?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            let seen = self.calls;
            self.calls = seen.wrapping_add(1);
            while self.word(CALL).load(Acquire) == seen {
                sleep_at(self.word(CALL), seen)?;
            }
            self.word(AWAKE).store(self.calls, Release);
        }
        Ok(())
    }
}

/// Rank 0 wakes a futex on which no thread waits.
#[derive(Default)]
pub struct FutexWakeWithoutWaiter(AtomicU32);

impl Workload for FutexWakeWithoutWaiter {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            futex::wake(&self.0, futex::Flags::empty(), 1).during("futex_wake")?;
        }
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Rank 0 enters the kernel and comes back.
pub struct SystemCall;

impl Workload for SystemCall {
    fn lead(&mut self, n: u64) -> Result<()> {
        (0..n).for_each(|_| raw::smallest_system_call());
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Rank 0 wakes a thread that sleeps on a core which another thread keeps busy: what
/// a message to a process that computes costs at least.
pub struct BusyWake {
    shared: Region,
}

/// Places in the shared memory of [`FutexCall`] and [`BusyWake`], one line each.
const CALL: usize = 0;
const ASLEEP: usize = 16;
const AWAKE: usize = 32;

impl BusyWake {
    /// Allocates the shared words; no thread sleeps yet.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
        })
    }

    /// Nanoseconds from the call to the woken thread's first store, one value a
    /// trial in which the thread slept; in rank 0, nothing elsewhere. The trials end at
    /// rank 0's `deadline`.
    pub fn repeat(&self, team: &Team, deadline: Instant) -> Result<Vec<f64>> {
        let mut samples = Vec::new();
        for trial in 1..=BUSY_TRIALS {
            match team.leads() {
                true => samples.extend(self.wake(trial)?),
                false => self.compute_beside_a_sleeper(trial)?,
            }
            if team.barrier_with(is_past(deadline))? != 0 {
                break;
            }
        }
        Ok(samples)
    }

    fn word(&self, place: usize) -> &AtomicU32 {
        &self.shared.halves()[place]
    }

    fn wake(&self, trial: u32) -> Result<Option<f64>> {
        spin_until(|| self.word(ASLEEP).load(Acquire) == trial)?;
        busy_for(FALLING_ASLEEP);
        let start = Instant::now();
        self.word(CALL).store(trial, Release);
        let woken = futex::wake(self.word(CALL), futex::Flags::empty(), 1).during("futex_wake")?;
        spin_until(|| self.word(AWAKE).load(Acquire) == trial)?;
        let took = start.elapsed().as_nanos() as f64;
        Ok((woken == 1).then_some(took))
    }

    /// The thread that computes is this one; both are bound to one core.
    fn compute_beside_a_sleeper(&self, trial: u32) -> Result<()> {
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| self.sleep(trial));
            let end = Instant::now() + BARRIER_TIMEOUT;
            while self.word(AWAKE).load(Acquire) != trial && Instant::now() < end {
                busy_for(COMPUTING);
            }
            sleeper.join().expect("the sleeper doesn't panic")
        })
    }

    fn sleep(&self, trial: u32) -> Result<()> {
        self.word(ASLEEP).store(trial, Release);
        while self.word(CALL).load(Acquire) != trial {
            sleep_at(self.word(CALL), trial - 1)?;
        }
        self.word(AWAKE).store(trial, Release);
        Ok(())
    }
}

fn busy_for(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {}
}

const BUSY_TRIALS: u32 = 300;
/// From saying that one is about to sleep to sleeping, by far.
const FALLING_ASLEEP: Duration = Duration::from_micros(300);
const COMPUTING: Duration = Duration::from_micros(5);
