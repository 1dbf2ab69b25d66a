//! What a rank offers to others, and how it checks what they put there.

use crate::Done;
use crate::bits::{self, Kind};
use crate::session::{PLAIN_SLOT, SLOTS};
use lintel_fault::memory::Memory;
use lintel_fault::rig;
use lintel_types::Event;
use portals4_abi::{EntrySpec, Portal, Result as PtlResult, options};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes of a slot.
pub const SLOT: usize = 1 << 20;
/// Words for atomics of each rank.
pub const WORDS: usize = 8;
/// The word that all ranks add to, after those of the ranks.
pub fn shared_word(ranks: u32) -> u64 {
    u64::from(ranks) * WORDS as u64
}

/// The portal table index on the interface without matching; each life has its own,
/// so that what was meant for an earlier one is dropped.
pub fn plain_portal(life: u32) -> u32 {
    10 + life % 128
}

/// The numbers of a rank in a life, from which it puts and which others get.
pub fn pool(rank: u32, life: u32) -> Memory {
    let memory = Memory::new(SLOT + POOL_MORE);
    memory.scatter(pool_seed(rank, life));
    memory
}

/// Begins anew what was another life's pool.
pub fn refill(pool: Memory, rank: u32, life: u32) {
    pool.scatter(pool_seed(rank, life));
}

fn pool_seed(rank: u32, life: u32) -> u64 {
    bits::header(rank + 1, life)
}

/// So that the longest message begins at many places.
const POOL_MORE: usize = 64 << 10;

/// Memory that others write to.
pub struct Offer {
    ranks: u32,
    slots: Memory,
    words: Memory,
    /// By rank and slot, the number of the last put.
    last: Vec<[u32; SLOTS]>,
}

impl Offer {
    /// Offers all of it; `pool` can be got.
    pub fn new(
        (matching, plain): (&Portal, &Portal),
        pool: Memory,
        (me, life, ranks): (u32, u32, u32),
    ) -> PtlResult<Offer> {
        let offer = Offer {
            ranks,
            slots: Memory::new(ranks as usize * SLOTS * SLOT),
            words: Memory::new((ranks as usize + 1) * WORDS * 8),
            last: vec![[0; SLOTS]; ranks as usize],
        };
        offer.append_talk(matching, life)?;
        offer.append_slots(matching, plain, (me, life))?;
        let quiet = |kind| {
            let bits = bits::bits(kind, life, 0, 0);
            rig::entry(bits, options::ME_EVENT_COMM_DISABLE)
        };
        matching.append(pool, &quiet(Kind::Pool))?;
        matching.append(offer.words, &quiet(Kind::Words))?;
        matching.append(Memory::new(SLOT), &quiet(Kind::Counted))?;
        Ok(offer)
    }

    fn append_talk(&self, matching: &Portal, life: u32) -> PtlResult<()> {
        let talk = |kind, life, ignore_bits| {
            let spec = EntrySpec {
                range: Some(0..0),
                ignore_bits,
                ..rig::entry(bits::bits(kind, life, 0, 0), 0)
            };
            matching.append(self.words, &spec).map(drop)
        };
        talk(Kind::Hello, 0, bits::ALL_BUT_KIND)?;
        talk(Kind::Welcome, life, bits::WHO)?;
        talk(Kind::Credit, life, bits::WHO)
    }

    fn append_slots(
        &self,
        matching: &Portal,
        plain: &Portal,
        (me, life): (u32, u32),
    ) -> PtlResult<()> {
        let spec = |bits, range| EntrySpec {
            range: Some(range),
            ..rig::entry(bits, 0)
        };
        for rank in (0..self.ranks).filter(|rank| *rank != me) {
            for slot in 0..PLAIN_SLOT {
                let bits = bits::bits(Kind::Put, life, rank, slot);
                matching.append(self.slots, &spec(bits, self.place(rank, slot)))?;
            }
        }
        // One entry for all ranks: offsets tell them apart.
        let range = self.place(0, PLAIN_SLOT).start..self.slots.bytes();
        plain.append(self.slots, &spec(0, range)).map(drop)
    }

    /// Slots of the interface without matching come last, next to each other.
    fn place(&self, rank: u32, slot: usize) -> Range<usize> {
        let index = match slot {
            PLAIN_SLOT => self.ranks as usize * PLAIN_SLOT + rank as usize,
            slot => rank as usize * PLAIN_SLOT + slot,
        };
        index * SLOT..(index + 1) * SLOT
    }

    /// A rank begins to talk: nothing of its past counts.
    pub fn begin(&mut self, rank: u32) {
        self.last[rank as usize] = [0; SLOTS];
        for word in 0..WORDS {
            let word = self.words.word(rank as usize * WORDS + word);
            word.store(0, Ordering::Relaxed);
        }
    }

    /// A put has come: its bytes are right, and it is no earlier one's copy.
    pub fn check(&mut self, event: &Event, rank: u32, slot: usize) -> Done {
        let (sum, number) = bits::halves(event.hdr_data);
        let told = || format!("put {number} of rank {rank} in slot {slot}");
        if event.mlength != event.rlength {
            return Err(format!("{} was cut: {event:?}", told()));
        }
        let last = &mut self.last[rank as usize][slot];
        if number <= *last {
            return Err(format!("{} came after {last}", told()));
        }
        *last = number;
        let place = self.place(rank, slot);
        let start = (event.start as usize).wrapping_sub(self.slots.address().addr());
        let range = start..start.wrapping_add(event.mlength as usize);
        if event.mlength == 0 {
            return Ok(());
        }
        if range.start < place.start || range.end > place.end {
            return Err(format!("{} landed elsewhere: {event:?}", told()));
        }
        let seen = self.slots.checksum(range);
        if seen != sum {
            let length = event.mlength;
            return Err(format!(
                "{} of {length} bytes has the checksum {seen:08x}, not {sum:08x}",
                told()
            ));
        }
        Ok(())
    }
}
