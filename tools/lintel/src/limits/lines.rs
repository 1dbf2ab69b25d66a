//! Cache lines between two cores: hand-over, a ring of slots, contended words.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, compiler_fence};

use crate::error::Result;
use crate::harness::Workload;
use crate::raw::{Line, Region};
use crate::team::{SpinBarrier, Team, spin_until};

/// A line with flag and payload goes to the other core and comes back: over itself,
/// or over a second one.
pub struct Handover {
    shared: Region,
    back: usize,
    turn: u64,
}

impl Handover {
    /// One line for both directions: the least that two cores can do.
    pub fn one_line(team: &Team) -> Result<Self> {
        Self::over(team, 0)
    }

    /// A line for each direction.
    pub fn two_lines(team: &Team) -> Result<Self> {
        Self::over(team, 2)
    }

    fn over(team: &Team, back: usize) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            back,
            turn: 0,
        })
    }
}

impl Workload for Handover {
    fn lead(&mut self, n: u64) -> Result<()> {
        let (there, back) = (&self.shared.lines()[0], &self.shared.lines()[self.back]);
        for _ in 0..n {
            write(there, self.turn + 1);
            read(back, self.turn + 2)?;
            self.turn += 2;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        let (there, back) = (&self.shared.lines()[0], &self.shared.lines()[self.back]);
        for _ in 0..n {
            read(there, self.turn + 1)?;
            write(back, self.turn + 2);
            self.turn += 2;
        }
        Ok(())
    }
}

/// Messages of 8 B through a ring of 64-byte slots, one producer, one consumer. The
/// consumer returns the slots by telling its position once in a quarter of the ring.
pub struct Slots {
    shared: Region,
    position: u64,
}

impl Slots {
    /// Allocates an empty ring that both ranks see.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share((SLOTS as usize + 2) * 64)?,
            position: 0,
        })
    }

    fn slot(&self, position: u64) -> &Line {
        &self.shared.lines()[2 + (position % SLOTS) as usize]
    }

    fn consumed(&self) -> &AtomicU64 {
        &self.shared.lines()[0].0[0]
    }
}

impl Workload for Slots {
    fn lead(&mut self, n: u64) -> Result<()> {
        let mut consumed = self.consumed().load(Acquire);
        for _ in 0..n {
            if self.position - consumed >= SLOTS {
                let counter = self.consumed();
                spin_until(|| {
                    consumed = counter.load(Acquire);
                    self.position - consumed < SLOTS
                })?;
            }
            write(self.slot(self.position), self.position + 1);
            self.position += 1;
        }
        let counter = self.consumed();
        spin_until(|| counter.load(Acquire) == self.position)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            read(self.slot(self.position), self.position + 1)?;
            self.position += 1;
            if self.position % (SLOTS / 4) == 0 {
                self.consumed().store(self.position, Release);
            }
        }
        self.consumed().store(self.position, Release);
        Ok(())
    }

    fn fewest(&self) -> u64 {
        4 * SLOTS
    }
}

/// Both cores add to one word. A batch ends when both are through, so that neither
/// ever has the word to itself.
pub struct FetchAdd {
    shared: Region,
    barrier: SpinBarrier,
}

impl FetchAdd {
    /// A word at zero.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            barrier: SpinBarrier::new(team)?,
        })
    }

    fn add(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.shared.words()[0].fetch_add(1, Relaxed);
        }
        self.barrier.wait()
    }
}

impl Workload for FetchAdd {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.add(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.add(n)
    }

    fn fewest(&self) -> u64 {
        20_000
    }
}

/// Both cores xor random words of one table: what RandomAccess could reach.
pub struct LockedXor {
    table: Region,
    barrier: SpinBarrier,
    random: u64,
}

impl LockedXor {
    /// A table of `bytes`, a power of two.
    pub fn new(team: &Team, bytes: usize) -> Result<Self> {
        let table = team.share(bytes)?;
        for word in table.words() {
            word.fetch_or(0, Relaxed);
        }
        Ok(Self {
            table,
            barrier: SpinBarrier::new(team)?,
            random: 0x9e37_79b9_7f4a_7c15 ^ team.rank() as u64,
        })
    }

    fn update(&mut self, n: u64) -> Result<()> {
        let words = self.table.words();
        let mask = words.len() as u64 - 1;
        for _ in 0..n {
            self.random = next_random(self.random);
            words[(self.random & mask) as usize].fetch_xor(self.random, Relaxed);
        }
        self.barrier.wait()
    }
}

impl Workload for LockedXor {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.update(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.update(n)
    }

    fn fewest(&self) -> u64 {
        20_000
    }
}

/// HPCC RandomAccess' sequence: a shift register over x^63 + x^2 + x + 1.
pub fn next_random(value: u64) -> u64 {
    (value << 1) ^ if value >> 63 == 1 { 7 } else { 0 }
}

fn write(line: &Line, turn: u64) {
    line.0[1].store(!turn, Relaxed);
    compiler_fence(Release);
    line.0[0].store(turn, Release);
}

fn read(line: &Line, turn: u64) -> Result<()> {
    if line.0[0].load(Acquire) != turn {
        spin_until(|| line.0[0].load(Acquire) == turn)?;
    }
    debug_assert_eq!(line.0[1].load(Relaxed), !turn);
    std::hint::black_box(line.0[1].load(Relaxed));
    Ok(())
}

/// Slots of the ring: 16 KiB, half of a first-level cache.
const SLOTS: u64 = 256;
