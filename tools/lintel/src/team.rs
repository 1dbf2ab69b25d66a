//! The processes of one measurement: their ranks, and barriers that don't use Portals,
//! so that synchronising costs the measured path nothing.
//!
//! Rank 0 makes a little shared memory; the others find it by its [`Ticket`],
//! passed on by the launcher's key-value store. Each rank writes one line of it.
//! Two ranks on two cores wait by spinning; more ranks than cores sleep, so that
//! those that wait leave the cores to those that are measured. Two ranks on two machines meet
//! over a [`Connection`].

use std::net::Ipv4Addr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::connection::Connection;
use crate::error::{During, Error, Result};
use crate::raw::{Region, Ticket};

/// A process among those of a measurement.
pub struct Team {
    rank: usize,
    size: usize,
    mode: WaitMode,
    barriers_passed: std::cell::Cell<u64>,
    words_passed: std::cell::Cell<u64>,
    meets: Meets,
}

/// Where the ranks of a team meet.
enum Meets {
    InMemory(Region),
    Over(Connection),
}

/// How the ranks of a team wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Each on a core of its own.
    Spin,
    /// Sleeping on a futex, so that ranks may share cores.
    Sleep,
}

/// In the line behind the ranks' lines, whose first word is the barrier of those that sleep.
const WORD_PLACE: usize = 2;

/// As many words as a rank can hand to the others at once.
pub const WORDS: usize = 7;

impl Team {
    /// Rank 0's side: makes the memory that the others join.
    pub fn create(size: usize, mode: WaitMode) -> Result<Self> {
        // A line for each rank, and one for their barrier.
        let shared = Region::shared((size + 1) * 64).during("making shared memory")?;
        Ok(Self::over(shared, 0, size, mode))
    }

    /// The other ranks' side.
    pub fn join(ticket: Ticket, rank: usize, size: usize, mode: WaitMode) -> Result<Self> {
        let shared = Region::open(ticket).during("joining rank 0's shared memory")?;
        Ok(Self::over(shared, rank, size, mode))
    }

    /// Two ranks on two machines.
    pub fn over_connection(connection: Connection, rank: usize) -> Self {
        Self::meeting(Meets::Over(connection), rank, 2, WaitMode::Spin)
    }

    /// Names the shared memory for [`Team::join`].
    ///
    /// # Panics
    /// The ranks are on two machines.
    pub fn ticket(&self) -> Ticket {
        let ticket = match &self.meets {
            Meets::InMemory(shared) => shared.ticket(),
            Meets::Over(_) => None,
        };
        ticket.expect("the team's memory is shared")
    }

    /// Whether the ranks are on two machines, and share no memory.
    pub fn is_remote(&self) -> bool {
        matches!(self.meets, Meets::Over(_))
    }

    /// The addresses by which sockets of this rank and of the other one of two are reached.
    pub fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        match &self.meets {
            Meets::InMemory(_) => (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST),
            Meets::Over(connection) => connection.addresses(),
        }
    }

    /// This process's rank in the team.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this process times and reports.
    pub fn leads(&self) -> bool {
        self.rank == 0
    }

    /// Returns when every rank has called it as often.
    ///
    /// What a rank wrote to shared memory before is visible to all after.
    pub fn barrier(&self) -> Result<()> {
        match (&self.meets, self.mode) {
            (Meets::Over(connection), _) => connection.swap([0; WORDS]).map(drop),
            (Meets::InMemory(shared), WaitMode::Spin) => self.spin_barrier(shared),
            (Meets::InMemory(shared), WaitMode::Sleep) => {
                FutexBarrier::over(shared, self.size).wait(self.size)
            }
        }
    }

    /// A barrier after which each rank has the word that the leader gave; words of others
    /// are ignored.
    pub fn barrier_with(&self, word: u64) -> Result<u64> {
        let shared = match &self.meets {
            Meets::InMemory(shared) => shared,
            Meets::Over(_) => {
                let mut words = [0; WORDS];
                words[0] = word;
                return Ok(self.broadcast(words)?[0]);
            }
        };
        let spoken = self.words_passed.get();
        self.words_passed.set(spoken + 1);
        // Two places in turns: the leader may give the next word before others have read
        // this one, but not the one after that.
        let place = &shared.lines()[self.size].0[WORD_PLACE + (spoken % 2) as usize];
        if self.leads() {
            place.store(word, Release);
        }
        self.barrier()?;
        Ok(place.load(Acquire))
    }

    fn spin_barrier(&self, shared: &Region) -> Result<()> {
        let meeting = self.barriers_passed.get() + 1;
        self.barriers_passed.set(meeting);
        let lines = shared.lines();
        lines[self.rank].0[0].store(meeting, Release);
        for line in &lines[..self.size] {
            spin_until(|| line.0[0].load(Acquire) >= meeting)?;
        }
        Ok(())
    }

    /// Hands `words` to every rank and returns those of all, by rank.
    pub fn exchange(&self, words: [u64; WORDS]) -> Result<Vec<[u64; WORDS]>> {
        let shared = match &self.meets {
            Meets::InMemory(shared) => shared,
            Meets::Over(connection) => {
                let mut all = vec![words, connection.swap(words)?];
                if !self.leads() {
                    all.reverse();
                }
                return Ok(all);
            }
        };
        let lines = shared.lines();
        for (slot, word) in lines[self.rank].0[1..].iter().zip(words) {
            slot.store(word, Release);
        }
        self.barrier()?;
        let all = lines[..self.size]
            .iter()
            .map(|line| std::array::from_fn(|i| line.0[i + 1].load(Acquire)))
            .collect();
        self.barrier()?;
        Ok(all)
    }

    /// Sends the leader's words to every rank.
    pub fn broadcast(&self, words: [u64; WORDS]) -> Result<[u64; WORDS]> {
        Ok(self.exchange(words)?[0])
    }

    /// The words of the other one of two.
    pub fn swap(&self, words: [u64; WORDS]) -> Result<[u64; WORDS]> {
        let other = 1 - self.rank;
        Ok(self.exchange(words)?[other])
    }

    /// Shared memory of at least `length` bytes, the same for all.
    ///
    /// # Errors
    /// The ranks are on two machines, or what the system refused.
    pub fn share(&self, length: usize) -> Result<Region> {
        if self.is_remote() {
            return Err(Error::Usage("two machines share no memory".into()));
        }
        let made = match self.leads() {
            true => Some(Region::shared(length).during("making shared memory")?),
            false => None,
        };
        let mut words = [0; WORDS];
        if let Some(ticket) = made.as_ref().and_then(Region::ticket) {
            words[0] = ticket.pid.into();
            words[1] = ticket.fd.into();
        }
        let words = self.broadcast(words)?;
        let region = match made {
            Some(region) => region,
            None => Region::open(Ticket {
                pid: words[0] as u32,
                fd: words[1] as u32,
            })
            .during("opening shared memory")?,
        };
        self.barrier()?;
        Ok(region)
    }

    fn over(shared: Region, rank: usize, size: usize, mode: WaitMode) -> Self {
        Self::meeting(Meets::InMemory(shared), rank, size, mode)
    }

    fn meeting(meets: Meets, rank: usize, size: usize, mode: WaitMode) -> Self {
        Self {
            rank,
            size,
            mode,
            barriers_passed: std::cell::Cell::new(0),
            words_passed: std::cell::Cell::new(0),
            meets,
        }
    }
}

/// A barrier of two ranks within a measured batch.
pub struct SpinBarrier {
    shared: Region,
    rank: usize,
    passed: u64,
}

impl SpinBarrier {
    /// Between the ranks of a team of two.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            rank: team.rank,
            passed: 0,
        })
    }

    /// Returns when the other one has called it as often.
    pub fn wait(&mut self) -> Result<()> {
        self.passed += 1;
        // Two lines apart, so that no prefetcher couples them.
        let lines = self.shared.lines();
        lines[2 * self.rank].0[0].store(self.passed, Release);
        let other = &lines[2 * (1 - self.rank)].0[0];
        spin_until(|| other.load(Acquire) >= self.passed)
    }
}

/// A barrier of processes that sleep: a line of shared memory.
pub struct FutexBarrier<'a> {
    arrived: &'a AtomicU32,
    generation: &'a AtomicU32,
}

impl<'a> FutexBarrier<'a> {
    /// Over line `line` of `shared`, which nothing else uses.
    pub fn over(shared: &'a Region, line: usize) -> Self {
        let words = &shared.halves()[line * 16..];
        Self {
            arrived: &words[0],
            generation: &words[1],
        }
    }

    /// Returns when `size` processes have called it.
    ///
    /// What one wrote to shared memory before is visible to all after.
    ///
    /// # Errors
    /// One of them doesn't come.
    pub fn wait(&self, size: usize) -> Result<()> {
        let generation = self.generation.load(Acquire);
        // The last one's store of the generation is what the others wait for; it
        // has seen every other's addition here.
        if self.arrived.fetch_add(1, AcqRel) as usize + 1 == size {
            self.arrived.store(0, Relaxed);
            self.generation.store(generation.wrapping_add(1), Release);
            futex::wake(self.generation, futex::Flags::empty(), size as u32)
                .during("futex_wake")?;
            return Ok(());
        }
        let patience = rustix::time::Timespec {
            tv_sec: BARRIER_TIMEOUT.as_secs() as i64,
            tv_nsec: 0,
        };
        while self.generation.load(Acquire) == generation {
            let flags = futex::Flags::empty();
            match futex::wait(self.generation, flags, generation, Some(&patience)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::TIMEDOUT) => return Err(Error::PeerStalled),
                Err(error) => return Err(error).during("futex_wait"),
            }
        }
        Ok(())
    }
}

/// Spins until `done`, at most [`BARRIER_TIMEOUT`]; without a pause instruction, whose
/// length would show in a hand-over.
pub fn spin_until(mut done: impl FnMut() -> bool) -> Result<()> {
    let mut deadline = None;
    loop {
        for _ in 0..SPINS_PER_CLOCK_CHECK {
            if done() {
                return Ok(());
            }
        }
        match deadline {
            None => deadline = Some(Instant::now() + BARRIER_TIMEOUT),
            Some(deadline) if Instant::now() > deadline => return Err(Error::PeerStalled),
            Some(_) => std::thread::yield_now(),
        }
    }
}

const SPINS_PER_CLOCK_CHECK: u32 = 1 << 14;
/// How long one process waits for another before it gives up.
pub const BARRIER_TIMEOUT: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_swap_their_words_spinning_and_asleep() {
        for mode in [WaitMode::Spin, WaitMode::Sleep] {
            let first = Team::create(2, mode).expect("memory");
            let ticket = first.ticket();
            let other = std::thread::spawn(move || {
                let second = Team::join(ticket, 1, 2, mode).expect("joins");
                let words: Vec<u64> = (0..100)
                    .map(|_| second.barrier_with(7).expect("meets"))
                    .collect();
                assert_eq!(words, (0..100).collect::<Vec<u64>>());
                second.swap([2; WORDS]).expect("meets")
            });
            for word in 0..100 {
                assert_eq!(first.barrier_with(word).expect("meets"), word);
            }
            assert_eq!(first.swap([1; WORDS]).expect("meets"), [2; WORDS]);
            assert_eq!(other.join().expect("ends"), [1; WORDS]);
        }
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_entered() {
        const SIZE: usize = 8;
        let shared = Region::shared(4096).expect("memory");
        let come = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SIZE {
                scope.spawn(|| {
                    for round in 1..=200 {
                        come.fetch_add(1, AcqRel);
                        FutexBarrier::over(&shared, 3).wait(SIZE).expect("all come");
                        assert!(come.load(Acquire) >= round * SIZE);
                    }
                });
            }
        });
        assert_eq!(come.load(Acquire), 200 * SIZE);
    }
}
