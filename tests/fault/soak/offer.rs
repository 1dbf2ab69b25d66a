//! The memory that a rank exposes to others, and the checks of what they put there.

use crate::Done;
use crate::bits::{self, Kind};
use crate::session::{PLAIN_SLOT, SLOTS};
use lintel_fault::memory::Memory;
use lintel_fault::rig;
use lintel_types::Event;
use portals4_abi::{EntrySpec, Portal, Result as PtlResult, options};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Size of a slot, bytes.
pub const SLOT: usize = 1 << 20;
/// Words that belong to each rank, for its atomics.
pub const WORDS: usize = 8;
/// The index of the word that all ranks add to, behind those of the ranks.
pub fn shared_word(ranks: u32) -> u64 {
    u64::from(ranks) * WORDS as u64
}

/// The portal table index on the interface without matching; each incarnation has its own,
/// so that messages for an earlier one are dropped.
pub fn plain_portal(incarnation: u32) -> u32 {
    10 + incarnation % 128
}

/// The random numbers of a rank in an incarnation: the source of its puts, and of others' gets.
pub fn pool(rank: u32, incarnation: u32) -> Memory {
    let memory = Memory::new(SLOT + POOL_MORE);
    memory.scatter(pool_seed(rank, incarnation));
    memory
}

/// Overwrites a pool with the numbers of another incarnation.
pub fn refill(pool: Memory, rank: u32, incarnation: u32) {
    pool.scatter(pool_seed(rank, incarnation));
}

fn pool_seed(rank: u32, incarnation: u32) -> u64 {
    bits::header(rank + 1, incarnation)
}

/// Extra bytes, so that the longest message can start at many offsets.
const POOL_MORE: usize = 64 << 10;

/// Memory that peers write to.
pub struct Offer {
    ranks: u32,
    slots: Memory,
    words: Memory,
    /// The number of the last put, by rank and slot.
    last: Vec<[u32; SLOTS]>,
}

impl Offer {
    /// Exposes all of the memory; gets read `pool`.
    pub fn new(
        (matching, plain): (&Portal, &Portal),
        pool: Memory,
        (me, incarnation, ranks): (u32, u32, u32),
    ) -> PtlResult<Offer> {
        let offer = Offer {
            ranks,
            slots: Memory::new(ranks as usize * SLOTS * SLOT),
            words: Memory::new((ranks as usize + 1) * WORDS * 8),
            last: vec![[0; SLOTS]; ranks as usize],
        };
        offer.append_control(matching, incarnation)?;
        offer.append_slots(matching, plain, (me, incarnation))?;
        let quiet = |kind| {
            let bits = bits::bits(kind, incarnation, 0, 0);
            rig::entry(bits, options::ME_EVENT_COMM_DISABLE)
        };
        matching.append(pool, &quiet(Kind::Pool))?;
        matching.append(offer.words, &quiet(Kind::Words))?;
        matching.append(Memory::new(SLOT), &quiet(Kind::Counted))?;
        Ok(offer)
    }

    fn append_control(&self, matching: &Portal, incarnation: u32) -> PtlResult<()> {
        let control = |kind, incarnation, ignore_bits| {
            let spec = EntrySpec {
                range: Some(0..0),
                ignore_bits,
                ..rig::entry(bits::bits(kind, incarnation, 0, 0), 0)
            };
            matching.append(self.words, &spec).map(drop)
        };
        control(Kind::Hello, 0, bits::ALL_BUT_KIND)?;
        control(Kind::HelloReply, incarnation, bits::RANK_AND_SLOT)?;
        control(Kind::Credit, incarnation, bits::RANK_AND_SLOT)
    }

    fn append_slots(
        &self,
        matching: &Portal,
        plain: &Portal,
        (me, incarnation): (u32, u32),
    ) -> PtlResult<()> {
        let spec = |bits, range| EntrySpec {
            range: Some(range),
            ..rig::entry(bits, 0)
        };
        for rank in (0..self.ranks).filter(|rank| *rank != me) {
            for slot in 0..PLAIN_SLOT {
                let bits = bits::bits(Kind::Put, incarnation, rank, slot);
                matching.append(self.slots, &spec(bits, self.place(rank, slot)))?;
            }
        }
        // One entry for all ranks, which use different offsets.
        let range = self.place(0, PLAIN_SLOT).start..self.slots.bytes();
        plain.append(self.slots, &spec(0, range)).map(drop)
    }

    /// The slots of the interface without matching come last, contiguously.
    fn place(&self, rank: u32, slot: usize) -> Range<usize> {
        let index = match slot {
            PLAIN_SLOT => self.ranks as usize * PLAIN_SLOT + rank as usize,
            slot => rank as usize * PLAIN_SLOT + slot,
        };
        index * SLOT..(index + 1) * SLOT
    }

    /// A rank opens a session: nothing of its earlier incarnations counts.
    pub fn begin(&mut self, rank: u32) {
        self.last[rank as usize] = [0; SLOTS];
        for word in 0..WORDS {
            let word = self.words.word(rank as usize * WORDS + word);
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Checks a put that has arrived: its bytes, its place, and that its number is new.
    pub fn check(&mut self, event: &Event, rank: u32, slot: usize) -> Done {
        let (sum, number) = bits::halves(event.hdr_data);
        let name = || format!("put {number} of rank {rank} in slot {slot}");
        if event.mlength != event.rlength {
            return Err(format!("{} was truncated: {event:?}", name()));
        }
        let last = &mut self.last[rank as usize][slot];
        if number <= *last {
            return Err(format!("{} came after {last}", name()));
        }
        *last = number;
        let place = self.place(rank, slot);
        let start = (event.start as usize).wrapping_sub(self.slots.address().addr());
        let range = start..start.wrapping_add(event.mlength as usize);
        if event.mlength == 0 {
            return Ok(());
        }
        if range.start < place.start || range.end > place.end {
            return Err(format!("{} landed outside its slot: {event:?}", name()));
        }
        let seen = self.slots.checksum(range);
        if seen != sum {
            let length = event.mlength;
            return Err(format!(
                "{} of {length} bytes has the checksum {seen:08x}, not {sum:08x}",
                name()
            ));
        }
        Ok(())
    }
}
