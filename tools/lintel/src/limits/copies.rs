//! Copies: within a process, out of another one by cross-memory attach, and through shared
//! memory, into it by one process and out of it by the other.

use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::error::{During, Result};
use crate::harness::Workload;
use crate::raw::Region;
use crate::team::{Team, WORDS, spin_until};

/// `memcpy` within rank 0, from and to memory that is in the cache or isn't.
pub struct Memcpy {
    from: Vec<Region>,
    to: Vec<Region>,
    bytes: usize,
    next: usize,
}

impl Memcpy {
    /// Over and over between the same two buffers.
    pub fn hot(team: &Team, bytes: usize) -> Result<Self> {
        Self::among(team, bytes, 1)
    }

    /// Between buffers that together are larger than the caches.
    pub fn cold(team: &Team, bytes: usize) -> Result<Self> {
        Self::among(team, bytes, (COLD / bytes).max(2))
    }

    fn among(team: &Team, bytes: usize, pairs: usize) -> Result<Self> {
        let pairs = if team.leads() { pairs } else { 0 };
        let buffers = || -> Result<Vec<Region>> {
            (0..pairs)
                .map(|_| Region::private(bytes).during("allocating"))
                .collect()
        };
        Ok(Self {
            from: buffers()?,
            to: buffers()?,
            bytes,
            next: 0,
        })
    }
}

impl Workload for Memcpy {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.to[self.next].copy_from(&self.from[self.next], self.bytes);
            std::hint::black_box(&self.to[self.next]);
            self.next = (self.next + 1) % self.from.len();
        }
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// One rank copies out of the other's buffer with `process_vm_readv`.
pub struct CrossMemory {
    buffer: Rc<Region>,
    pid: u32,
    address: u64,
    bytes: usize,
    /// Copies so far; where rank 1 makes them it says there how many they are.
    copies: u64,
    made_by_other: Option<Region>,
}

impl CrossMemory {
    /// By rank 0, over buffers of its own.
    pub fn new(team: &Team, bytes: usize) -> Result<Self> {
        let buffer = Rc::new(Region::private(bytes).during("allocating")?);
        Self::between(team, &buffer, &buffer, bytes, 0)
    }

    /// From the `source` of the other rank to the `landing` of rank `reader`, the benchmark's own
    /// buffers: which pages they have matters where they fill a cache.
    pub fn between(
        team: &Team,
        source: &Region,
        landing: &Rc<Region>,
        bytes: usize,
        reader: u32,
    ) -> Result<Self> {
        let mut words = [0; WORDS];
        words[0] = std::process::id().into();
        words[1] = source.address();
        let words = team.swap(words)?;
        Ok(Self {
            buffer: Rc::clone(landing),
            pid: words[0] as u32,
            address: words[1],
            bytes,
            copies: 0,
            made_by_other: match reader {
                0 => None,
                _ => Some(team.share(WORDS * 8)?),
            },
        })
    }

    /// Whether rank 0 may do this here; the answer is the same in every rank.
    pub fn is_allowed(team: &Team) -> Result<bool> {
        let probe = Self::new(team, 64)?;
        let mut words = [0; WORDS];
        words[0] = (team.leads() && probe.copy().is_ok()).into();
        Ok(team.broadcast(words)?[0] != 0)
    }

    fn copy(&self) -> Result<()> {
        self.buffer
            .read_process(self.pid, self.address, self.bytes)
            .during("process_vm_readv")
    }
}

impl Workload for CrossMemory {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.copies += n;
        match &self.made_by_other {
            None => (0..n).try_for_each(|_| self.copy()),
            Some(made) => spin_until(|| made.words()[0].load(Acquire) == self.copies),
        }
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.copies += n;
        if let Some(made) = &self.made_by_other {
            (0..n).try_for_each(|_| self.copy())?;
            made.words()[0].store(self.copies, Release);
        }
        Ok(())
    }
}

/// One writer, one reader: each copies its bytes into shared memory and raises a flag, and the
/// other one copies them out. The least that a message costs if both sides copy.
pub struct SharedCopy {
    shared: Region,
    memory: Region,
    there: usize,
    back: usize,
    turn: u64,
}

impl SharedCopy {
    /// `there` bytes by rank 0, then `back` bytes by rank 1.
    pub fn new(team: &Team, there: usize, back: usize) -> Result<Self> {
        let data = there.next_multiple_of(DATA) + back.next_multiple_of(DATA);
        Ok(Self {
            shared: team.share(DATA + data)?,
            memory: Region::private(there.max(back)).during("allocating")?,
            there,
            back,
            turn: 0,
        })
    }

    /// Offset of the bytes of rank 1.
    fn back_at(&self) -> usize {
        DATA + self.there.next_multiple_of(DATA)
    }

    fn write(&self, flag: usize, at: usize, bytes: usize, turn: u64) {
        self.shared.copy_between(at, &self.memory, 0, bytes);
        self.shared.lines()[flag].0[0].store(turn, Release);
    }

    fn read(&self, flag: usize, at: usize, bytes: usize, turn: u64) -> Result<()> {
        let flag = &self.shared.lines()[flag].0[0];
        spin_until(|| flag.load(Acquire) == turn)?;
        self.memory.copy_between(0, &self.shared, at, bytes);
        Ok(())
    }
}

impl Workload for SharedCopy {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.write(0, DATA, self.there, self.turn + 1);
            self.read(2, self.back_at(), self.back, self.turn + 1)?;
            self.turn += 1;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.read(0, DATA, self.there, self.turn + 1)?;
            self.write(2, self.back_at(), self.back, self.turn + 1);
            self.turn += 1;
        }
        Ok(())
    }
}

/// As [`SharedCopy`], one way and many in flight: a ring of slots, each a line with a flag and
/// the bytes behind it. The reader returns the slots a quarter of the ring at a time.
pub struct SharedStream {
    shared: Region,
    memory: Region,
    bytes: usize,
    slots: u64,
    position: u64,
}

impl SharedStream {
    /// Of messages of `bytes`, from rank 0 to rank 1.
    pub fn new(team: &Team, bytes: usize) -> Result<Self> {
        let slots = (RING / Self::stride(bytes)).clamp(4, 256);
        Ok(Self {
            shared: team.share(DATA + slots * Self::stride(bytes))?,
            memory: Region::private(bytes).during("allocating")?,
            bytes,
            slots: slots as u64,
            position: 0,
        })
    }

    fn stride(bytes: usize) -> usize {
        LINE + bytes.next_multiple_of(LINE)
    }

    /// Offset of the slot at the position.
    fn slot(&self) -> usize {
        DATA + (self.position % self.slots) as usize * Self::stride(self.bytes)
    }

    fn consumed(&self) -> &AtomicU64 {
        &self.shared.lines()[0].0[0]
    }
}

impl Workload for SharedStream {
    fn lead(&mut self, n: u64) -> Result<()> {
        let mut consumed = self.consumed().load(Acquire);
        for _ in 0..n {
            if self.position - consumed >= self.slots {
                spin_until(|| {
                    consumed = self.consumed().load(Acquire);
                    self.position - consumed < self.slots
                })?;
            }
            let at = self.slot();
            let (to, from) = (&self.shared, &self.memory);
            to.copy_between(at + LINE, from, 0, self.bytes);
            to.lines()[at / LINE].0[0].store(self.position + 1, Release);
            self.position += 1;
        }
        spin_until(|| self.consumed().load(Acquire) == self.position)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            let at = self.slot();
            let flag = &self.shared.lines()[at / LINE].0[0];
            spin_until(|| flag.load(Acquire) == self.position + 1)?;
            let (to, from) = (&self.memory, &self.shared);
            to.copy_between(0, from, at + LINE, self.bytes);
            self.position += 1;
            if self.position % (self.slots / 4) == 0 {
                self.consumed().store(self.position, Release);
            }
        }
        self.consumed().store(self.position, Release);
        Ok(())
    }

    fn fewest(&self) -> u64 {
        2 * self.slots
    }
}

/// Where the bytes begin, behind the flags: a page.
const DATA: usize = 4096;
const LINE: usize = 64;
/// Bytes of a ring: within a second-level cache.
const RING: usize = 256 << 10;

const COLD: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::WaitMode;

    /// Both sides of `workload` in two threads; what rank 1 then has in its memory.
    fn moved<W: Workload + 'static>(make: fn(&Team) -> W, memory: fn(&W) -> &Region) -> [u64; 2] {
        let first = Team::create(2, WaitMode::Spin).expect("memory");
        let ticket = first.ticket();
        let other = std::thread::spawn(move || {
            let second = Team::join(ticket, 1, 2, WaitMode::Spin).expect("joins");
            let mut follower = make(&second);
            second.barrier().expect("meets");
            follower.follow(1000).expect("follows");
            [0, 12].map(|place| memory(&follower).words()[place].load(Acquire))
        });
        let mut leader = make(&first);
        for (place, word) in [(0, 7), (12, 8)] {
            memory(&leader).words()[place].store(word, Release);
        }
        first.barrier().expect("meets");
        leader.lead(1000).expect("leads");
        other.join().expect("ends")
    }

    #[test]
    fn bytes_go_through_shared_memory_to_the_other_side() {
        let copy = |team: &Team| SharedCopy::new(team, 104, 104).expect("memory");
        assert_eq!(moved(copy, |copy| &copy.memory), [7, 8]);
        let stream = |team: &Team| SharedStream::new(team, 104).expect("memory");
        assert_eq!(moved(stream, |stream| &stream.memory), [7, 8]);
    }

    #[test]
    fn bytes_are_read_by_the_other_side_if_it_is_to() {
        let copy = |team: &Team| {
            let buffer = Rc::new(Region::private(104).expect("memory"));
            CrossMemory::between(team, &buffer, &buffer, 104, 1).expect("memory")
        };
        assert_eq!(moved(copy, |copy| &copy.buffer), [7, 8]);
    }
}
