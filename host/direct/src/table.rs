//! The table of a process's direct entries, in shared memory.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use lintel_types::{InterfaceNumber, PortalIndex};

/// Entries that a process can publish; peers reach others by messages.
#[cfg(not(loom))]
pub const SLOTS: usize = 53;
/// As few as loom can explore.
#[cfg(loom)]
pub const SLOTS: usize = 2;
/// Words of a slot, which is a cache line: those of an entry, and its count.
const WORDS: usize = 8;
const COUNT: usize = WORDS - 1;

/// Bits of a slot's first word.
const USED: u64 = 1;
const TAKES_PUTS: u64 = 1 << 1;
const TAKES_GETS: u64 = 1 << 2;
const COUNTS: u64 = 1 << 3;
const COUNTS_BYTES: u64 = 1 << 4;
const OF_PROGRAM: u64 = 1 << 5;
const PRIVATE: u64 = 1 << 6;
const ANNOUNCED: u64 = 1 << 7;
const INTERFACE_SHIFT: u32 = 8;
const PORTAL_SHIFT: u32 = 16;
const MEMORY_SHIFT: u32 = 32;

/// Shared memory as the system and its maker name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryName {
    /// The system's number of it, which may come to mean another one.
    pub id: i32,
    /// Whether a Portals library has made it, and not the program.
    pub is_made: bool,
    /// Shows that the name means this one: a number that stands in the memory, or what the
    /// system says of a program's.
    pub nonce: u64,
    /// Its length.
    pub bytes: u64,
}

/// What a peer names when the system copies memory for it: where a page is in the owner, and the
/// number that stands there. Another process in the owner's place has no such page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyKey {
    /// The page's address in the owner.
    pub address: u64,
    /// The number that the page holds.
    pub nonce: u64,
}

/// How peers reach the memory of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// They map it; the entry begins at an offset of it.
    Shared(MemoryName),
    /// The system copies from it and to it; the entry begins at an address of the owner.
    Private(CopyKey),
}

/// A direct entry: which messages it takes, and where its memory lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The interface of its process.
    pub interface: InterfaceNumber,
    /// The portal table index that it is linked to.
    pub portal: PortalIndex,
    /// Whether puts and atomics are allowed.
    pub takes_puts: bool,
    /// Whether gets are allowed; with puts, fetching atomics too.
    pub takes_gets: bool,
    /// Match bits that a message must carry.
    pub match_bits: u64,
    /// Bits that don't matter; all of them for a list entry.
    pub ignore_bits: u64,
    /// The memory that it lies in.
    pub memory: Memory,
    /// Bytes from the start of that memory; an address if that is private.
    pub offset: u64,
    /// Bytes of the entry.
    pub length: u64,
    /// What peers count when they have changed or read its memory.
    pub counts: Counts,
    /// Whether they announce that to its owner, too, by a message without bytes.
    pub is_announced: bool,
}

/// What is counted of the operations on an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Nothing.
    Nothing,
    /// Each operation.
    Operations,
    /// Their bytes.
    Bytes,
}

impl Counts {
    /// How much an operation of that length counts, if it is counted.
    #[inline(always)]
    pub fn of(self, length: u64) -> Option<u64> {
        match self {
            Counts::Nothing => None,
            Counts::Operations => Some(1),
            Counts::Bytes => Some(length),
        }
    }
}

/// The direct entries of a process. The process alone writes it; peers check what they read.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Table {
    version: Version,
    slots: [Slot; SLOTS],
}

/// Odd while entries change; 0 if there never was one.
#[repr(C, align(64))]
#[derive(Debug)]
struct Version(AtomicU32);

/// The words of an [`Entry`].
#[repr(C, align(64))]
#[derive(Debug)]
struct Slot([AtomicU64; WORDS]);

impl Default for Table {
    fn default() -> Self {
        let slot = |_| Slot(std::array::from_fn(|_| AtomicU64::new(0)));
        Table {
            version: Version(AtomicU32::new(0)),
            slots: std::array::from_fn(slot),
        }
    }
}

impl Table {
    /// Changes whenever an entry does; 0 as long as there was none.
    #[inline(always)]
    pub fn version(&self) -> u32 {
        // Pairs with the Release store in `change` ("table version").
        self.version.0.load(Ordering::Acquire)
    }

    /// Adds an entry, and returns its slot; nothing if all are taken.
    pub fn publish(&self, entry: &Entry) -> Option<usize> {
        let is_free = |slot: &Slot| slot.0[0].load(Ordering::Relaxed) & USED == 0;
        let slot = self.slots.iter().position(is_free)?;
        self.change(slot, &entry.to_words());
        Some(slot)
    }

    /// Takes an entry out. Peers may still access its memory; see the crate's documentation.
    pub fn withdraw(&self, slot: usize) {
        self.change(slot, &[0; COUNT]);
    }

    /// What peers have counted at a slot since the table was made, modulo 2^64.
    pub fn count(&self, slot: usize) -> u64 {
        // Pairs with the Release addition in `add` ("entry count").
        self.slots[slot].0[COUNT].load(Ordering::Acquire)
    }

    /// Where peers count at a slot, for those who only look whether it has [changed](Self::count).
    pub fn count_word(&self, slot: usize) -> &AtomicU64 {
        &self.slots[slot].0[COUNT]
    }

    /// Counts what this peer has done with the entry in a slot. The owner who sees it sees
    /// what was written ("entry count").
    #[inline]
    pub fn add(&self, slot: usize, by: u64) {
        self.slots[slot].0[COUNT].fetch_add(by, Ordering::Release);
    }

    /// The version and the entries of that version with their slots; nothing while they change.
    pub fn read(&self) -> Option<(u32, Vec<(usize, Entry)>)> {
        let version = self.version();
        if version & 1 == 1 {
            return None;
        }
        let slots = self.slots.iter().enumerate();
        let entries = slots.filter_map(|(index, slot)| Some((index, slot.entry()?)));
        let entries = entries.collect();
        // Pairs with the fence in `change` ("table entries"): if a word of a later version
        // was read, so is its number.
        fence(Ordering::Acquire);
        (self.version.0.load(Ordering::Relaxed) == version).then_some((version, entries))
    }

    fn change(&self, slot: usize, words: &[u64; COUNT]) {
        let version = self.version.0.load(Ordering::Relaxed);
        self.version
            .0
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // "table entries"
        fence(Ordering::Release);
        for (place, word) in self.slots[slot].0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // "table version": who sees it sees the words. Never 0 again, which says "no entry yet".
        let next = match version.wrapping_add(2) {
            0 => 2,
            next => next,
        };
        self.version.0.store(next, Ordering::Release);
    }
}

impl Slot {
    fn entry(&self) -> Option<Entry> {
        let word = |index: usize| self.0[index].load(Ordering::Relaxed);
        Entry::of_words(std::array::from_fn(word))
    }
}

impl Entry {
    /// Whether it takes a message for that interface and portal table index with those bits.
    #[inline(always)]
    pub fn takes(&self, interface: InterfaceNumber, portal: PortalIndex, match_bits: u64) -> bool {
        self.portal == portal
            && self.interface == interface
            && (self.match_bits ^ match_bits) & !self.ignore_bits == 0
    }

    /// Whether it allows what a message does.
    #[inline(always)]
    pub fn grants(&self, puts: bool, gets: bool) -> bool {
        (self.takes_puts || !puts) && (self.takes_gets || !gets)
    }

    /// Whether so many bytes from that offset lie in it.
    #[inline(always)]
    pub fn contains(&self, offset: u64, length: u64) -> bool {
        let end = offset.checked_add(length);
        end.is_some_and(|end| end <= self.length)
    }

    fn to_words(self) -> [u64; COUNT] {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let (kind, id, nonce, bytes) = match self.memory {
            Memory::Shared(name) => (
                flag(!name.is_made, OF_PROGRAM),
                name.id,
                name.nonce,
                name.bytes,
            ),
            Memory::Private(key) => (PRIVATE, 0, key.nonce, key.address),
        };
        let first = USED
            | flag(self.takes_puts, TAKES_PUTS)
            | flag(self.takes_gets, TAKES_GETS)
            | flag(self.counts != Counts::Nothing, COUNTS)
            | flag(self.counts == Counts::Bytes, COUNTS_BYTES)
            | flag(self.is_announced, ANNOUNCED)
            | kind
            | u64::from(self.interface.bits()) << INTERFACE_SHIFT
            | u64::from(u32::from(self.portal)) << PORTAL_SHIFT
            | u64::from(id as u32) << MEMORY_SHIFT;
        [
            first,
            self.match_bits,
            self.ignore_bits,
            nonce,
            bytes,
            self.offset,
            self.length,
        ]
    }

    /// The entry that the words are; nothing for a free slot, and for one that exceeds its
    /// memory.
    fn of_words(words: [u64; WORDS]) -> Option<Entry> {
        let [
            first,
            match_bits,
            ignore_bits,
            nonce,
            bytes,
            offset,
            length,
            _,
        ] = words;
        let (memory, room) = match first & PRIVATE {
            0 => {
                let name = MemoryName {
                    id: (first >> MEMORY_SHIFT) as u32 as i32,
                    is_made: first & OF_PROGRAM == 0,
                    nonce,
                    bytes,
                };
                (Memory::Shared(name), bytes)
            }
            _ => {
                let address = bytes;
                (Memory::Private(CopyKey { address, nonce }), u64::MAX)
            }
        };
        let fits = offset.checked_add(length).is_some_and(|end| end <= room);
        (first & USED != 0 && fits).then_some(Entry {
            interface: InterfaceNumber::from_bits((first >> INTERFACE_SHIFT) as u8),
            portal: PortalIndex::from((first >> PORTAL_SHIFT) as u16),
            takes_puts: first & TAKES_PUTS != 0,
            takes_gets: first & TAKES_GETS != 0,
            match_bits,
            ignore_bits,
            memory,
            offset,
            length,
            counts: match first & (COUNTS | COUNTS_BYTES) {
                0 => Counts::Nothing,
                COUNTS => Counts::Operations,
                _ => Counts::Bytes,
            },
            is_announced: first & ANNOUNCED != 0,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn entry(portal: u16) -> Entry {
        Entry {
            interface: InterfaceNumber::new(true, false),
            portal: portal.into(),
            takes_puts: true,
            takes_gets: false,
            match_bits: 0xab,
            ignore_bits: 0xf0,
            memory: Memory::Shared(MemoryName {
                id: -7,
                is_made: portal % 2 == 0,
                nonce: 9,
                bytes: 8192,
            }),
            offset: 4096,
            length: 100,
            counts: Counts::Bytes,
            is_announced: portal % 3 == 0,
        }
    }

    #[test]
    fn entries_are_read_as_they_were_published() {
        let table = Table::default();
        assert_eq!(table.version(), 0);
        let slot = table.publish(&entry(4095)).expect("there is room");
        table.publish(&entry(3)).expect("there is room");
        let (version, entries) = table.read().expect("nobody changes it");
        assert_eq!(entries, [(0, entry(4095)), (1, entry(3))]);
        table.withdraw(slot);
        assert_ne!(table.version(), version);
        assert_eq!(
            table.read().expect("nobody changes it").1,
            vec![(1, entry(3))]
        );
    }

    #[test]
    fn an_entry_in_private_memory_may_be_anywhere_in_its_owner() {
        let table = Table::default();
        let key = CopyKey {
            address: 0x7000,
            nonce: u64::MAX,
        };
        let private = Entry {
            memory: Memory::Private(key),
            offset: 0x7fff_0000_1000,
            ..entry(1)
        };
        table.publish(&private).expect("there is room");
        assert_eq!(table.read().expect("nobody changes it").1, [(0, private)]);
        let beyond = Entry {
            offset: u64::MAX,
            ..private
        };
        table.publish(&beyond).expect("there is room");
        assert_eq!(table.read().expect("nobody changes it").1, [(0, private)]);
    }

    #[test]
    fn a_table_takes_no_more_than_it_has_room_for() {
        let table = Table::default();
        for portal in 0..SLOTS as u16 {
            assert!(table.publish(&entry(portal)).is_some());
        }
        let version = table.version();
        assert_eq!(table.publish(&entry(99)), None);
        assert_eq!(table.version(), version);
        table.withdraw(20);
        assert_eq!(table.publish(&entry(99)), Some(20));
    }

    #[test]
    fn an_entry_takes_its_own_messages_alone() {
        let entry = entry(3);
        let (own, other) = (entry.interface, InterfaceNumber::new(false, false));
        assert!(entry.takes(own, 3.into(), 0xab) && entry.takes(own, 3.into(), 0x5b));
        assert!(!entry.takes(own, 3.into(), 0xaa));
        assert!(!entry.takes(own, 4.into(), 0xab));
        assert!(!entry.takes(other, 3.into(), 0xab));
    }

    #[test]
    fn an_entry_that_exceeds_its_memory_is_none() {
        let table = Table::default();
        for (offset, length) in [(8192, 1), (u64::MAX, 2)] {
            table.publish(&Entry {
                offset,
                length,
                ..entry(1)
            });
        }
        assert_eq!(table.read().expect("nobody changes it").1, Vec::new());
    }

    #[test]
    fn counts_go_on_from_one_entry_to_the_next() {
        let table = Table::default();
        for by in [5, 7] {
            let slot = table.publish(&entry(1)).expect("there is room");
            let before = table.count(slot);
            table.add(slot, by);
            table.withdraw(slot);
            assert_eq!(table.count(slot), before + by);
        }
        let of = |counts: Counts| counts.of(8);
        let all = [Counts::Nothing, Counts::Operations, Counts::Bytes];
        assert_eq!(all.map(of), [None, Some(1), Some(8)]);
    }

    #[test]
    fn a_table_and_a_header_fill_the_page_behind_the_lanes() {
        assert_eq!(size_of::<Table>(), 3456);
    }
}
