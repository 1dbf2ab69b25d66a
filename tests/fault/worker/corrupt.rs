//! Writes random words into the lanes of this process in the segments of its peers.

use lintel_fault::job::PATIENCE;
use lintel_fault::random::Random;
use lintel_fault::rig;
use lintel_nal_shm::layout::{LANE_BYTES, LANES, lane_offset, ring_lines, ring_offset};
use lintel_ring::{LINE, ring_bytes};
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Words written before the thread ends.
const WRITES: u32 = 200_000;
/// Offset of a lane's state, and the state of a lane that its sender has closed.
const STATE: usize = 0;
const CLOSED: u32 = 3;
/// Pause between two searches for a lane.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Starts a thread that corrupts the lanes at these peers.
pub fn start(peers: &[u32], seed: u64) {
    let segments: Vec<Mapped> = peers.iter().map(|peer| mapped(*peer)).collect();
    let mut random = Random::new(seed ^ 0x6a7b);
    std::thread::spawn(move || {
        for _ in 0..WRITES {
            let which = random.below(segments.len() as u64) as usize;
            segments[which].corrupt(&mut random);
            if random.below(64) == 0 {
                std::thread::yield_now();
            }
        }
        println!("corrupted");
    });
}

/// A peer's segment, once this process has a lane there.
fn mapped(peer: u32) -> Mapped {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(mapped) = Mapped::open(peer) {
            return mapped;
        }
        assert!(Instant::now() < until, "no lane at {peer}");
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// A peer's segment, and the lane of this process in it.
struct Mapped {
    memory: *mut u8,
    lane: usize,
}

// SAFETY: the mapping lives for ever and is written to atomically.
unsafe impl Send for Mapped {}

impl Mapped {
    fn open(peer: u32) -> Option<Mapped> {
        let job = std::env::var("LINTEL_JOB").ok()?;
        let ProcessId { nid, pid } = rig::process(peer);
        let segment = lintel_presence::shared_memory_of(&job, ProcessId { nid, pid })?;
        // SAFETY: attached at an address of the system's choice, and never detached.
        let memory = unsafe { libc::shmat(segment, std::ptr::null(), 0) };
        if memory.addr() == usize::MAX {
            return None;
        }
        let mut mapped = Mapped {
            memory: memory.cast(),
            lane: 0,
        };
        let own = std::process::id();
        // The second word of a lane is its sender's number.
        let is_mine =
            |lane: &usize| mapped.half(lane_offset(*lane) + 4).load(Ordering::Relaxed) == own;
        mapped.lane = (0..LANES).find(is_mine)?;
        Some(mapped)
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: an aligned place inside the mapping, which lives for ever.
        unsafe { AtomicU32::from_ptr(self.memory.add(offset).cast()) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `half`.
        unsafe { AtomicU64::from_ptr(self.memory.add(offset).cast()) }
    }

    fn corrupt(&self, random: &mut Random) {
        let (ring, bytes) = (ring_offset(self.lane), ring_bytes(ring_lines(self.lane)));
        match random.below(100) {
            // Any word of the ring.
            0..40 => {
                let at = random.below(bytes as u64 / 8) as usize * 8;
                self.word(ring + at)
                    .store(random.number(), Ordering::Relaxed);
            }
            // A plausible commit word: a likely sequence number, some length.
            40..70 => {
                let at = random.below((bytes / LINE) as u64) as usize * LINE;
                let (lap, bytes) = (random.below(1 << 16), random.below(10_000));
                let (wraps, words) = (random.below(2), random.number());
                let commit = lap | bytes << 16 | wraps << 31 | words << 32;
                self.word(ring + at).store(commit, Ordering::Relaxed);
            }
            // A valid commit word with a changed header.
            70..95 => {
                let line = random.below((bytes / LINE) as u64) as usize * LINE;
                let at = 8 * (1 + random.below(5) as usize);
                let bit = 1 << random.below(64);
                self.word(ring + line + at)
                    .fetch_xor(bit, Ordering::Relaxed);
            }
            // The lane's own fields; sometimes a valid state.
            _ => {
                let at = random.below(LANE_BYTES as u64 / 4) as usize * 4;
                let value = match random.below(2) {
                    0 => random.below(5) as u32,
                    _ => random.number() as u32,
                };
                // A sender may close its lane, so nobody would report that.
                if (at, value) != (STATE, CLOSED) {
                    let at = lane_offset(self.lane) + at;
                    self.half(at).store(value, Ordering::Relaxed);
                }
            }
        }
    }
}
