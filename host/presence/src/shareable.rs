//! Memory of a process that peers of its user can map: System V shared memory, as segments are.
//! It can't shrink, so nobody who maps it dies of SIGBUS, and it stays for those who have mapped
//! it when its maker frees it or ends.
//!
//! Behind the bytes that were asked for, rounded up to pages, is one more page, which begins
//! with a number at random: by that a peer knows that it has mapped what was meant, although
//! the system's numbers are used again.
//!
//! Memory that the program has mapped itself can be [converted](Shareable::convert): a segment
//! with the same bytes takes its place, and the page behind lies elsewhere. A System V segment
//! that the program has attached itself is [adopted](Shareable::adopt) as it is: it has no such
//! page, and peers compare what the system says of it.

use crate::mappings::{is_private, is_segment, segment_of, used_pages};
use crate::segment::random;
use crate::shared_memory::{Identity, Mode, SharedMemory};
use lintel_claim::Claim;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;
/// Bytes of the shortest memory that is converted.
const LEAST: u64 = 64 << 10;

/// Where memory lies in what peers can map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareablePlace {
    /// The system's number of the mapping.
    pub id: i32,
    /// Whether this library has made it: else it is a segment of the program's.
    pub is_made: bool,
    /// The number behind its bytes, or of a segment of the program's the system's words on it.
    pub nonce: u64,
    /// Its bytes; if this library has made it, whole pages, without the page behind them.
    pub bytes: u64,
    /// Bytes from its start.
    pub offset: u64,
}

/// What this process has made, by address.
pub struct Shareable {
    memories: Mutex<BTreeMap<u64, Made>>,
    /// Segments that the program has attached.
    adopted: Mutex<Vec<Adopted>>,
    /// Whether there ever was one, or may be by conversion.
    used: AtomicBool,
    /// Whether memory of the program is converted.
    converts: AtomicBool,
}

struct Made {
    memory: SharedMemory,
    bytes: u64,
    nonce: u64,
    /// The program has mapped it, and may unmap it at any time.
    is_converted: bool,
}

/// Part of a segment that the program has attached, and may detach at any time.
struct Adopted {
    address: u64,
    length: u64,
    place: ShareablePlace,
}

impl Adopted {
    /// The part that a range lies in.
    fn around(address: u64, length: u64) -> Option<Adopted> {
        let range = address..address.checked_add(length).filter(|_| length >= LEAST)?;
        let mapping = segment_of(&range)?;
        let (bytes, Identity(nonce)) = SharedMemory::of_program(mapping.id)?;
        let bytes = bytes as u64;
        let mapped = mapping.range.end - mapping.range.start;
        let part = Adopted {
            address: mapping.range.start,
            // Its last page may be longer than it.
            length: mapped.min(bytes.checked_sub(mapping.offset)?),
            place: ShareablePlace {
                id: mapping.id,
                is_made: false,
                nonce,
                bytes,
                offset: mapping.offset,
            },
        };
        part.place_of(&range).is_some().then_some(part)
    }

    /// Where that range of addresses lies in the segment, if it is in this part of it.
    fn place_of(&self, range: &Range<u64>) -> Option<ShareablePlace> {
        let is_in = self.address <= range.start && range.end <= self.address + self.length;
        is_in.then(|| ShareablePlace {
            offset: self.place.offset + (range.start - self.address),
            ..self.place
        })
    }
}

/// Why memory isn't converted.
#[derive(Debug)]
pub enum ConvertError {
    /// It isn't whole pages of private memory without a file, or short.
    Unsuitable,
    /// The system refuses.
    System(io::Error),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Unsuitable => write!(f, "it is no long private memory of whole pages"),
            ConvertError::System(error) => error.fmt(f),
        }
    }
}

/// The one [`Shareable`] of this process.
#[inline]
pub fn shareable() -> &'static Shareable {
    static SHAREABLE: Shareable = Shareable {
        memories: Mutex::new(BTreeMap::new()),
        adopted: Mutex::new(Vec::new()),
        used: AtomicBool::new(false),
        converts: AtomicBool::new(false),
    };
    &SHAREABLE
}

impl Shareable {
    /// Whether this process has ever allocated any.
    #[inline(always)]
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Zeroed memory of at least so many bytes, aligned to a page.
    ///
    /// # Errors
    /// `EINVAL`, `ENOMEM`, `ENOSPC`: more than the system allows.
    pub fn allocate(&self, bytes: u64) -> io::Result<*mut u8> {
        let too_long = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or_else(too_long)?;
        let all = bytes
            .checked_add(PAGE)
            .filter(|all| *all <= isize::MAX as u64);
        let memory =
            SharedMemory::create_detachable(all.ok_or_else(too_long)? as usize, random() as u32)?;
        let (start, nonce) = (memory.start(), random());
        nonce_of(&memory, bytes).store(nonce, Ordering::Relaxed);
        let made = Made {
            memory,
            bytes,
            nonce,
            is_converted: false,
        };
        self.memories()
            .insert(start.expose_provenance() as u64, made);
        self.used.store(true, Ordering::Relaxed);
        Ok(start)
    }

    /// The length of the memory that [`allocate`](Self::allocate) has returned that address
    /// for; nothing for any other address.
    pub fn length(&self, start: u64) -> Option<u64> {
        let memories = self.memories();
        let made = memories.get(&start).filter(|made| !made.is_converted);
        made.map(|made| made.bytes)
    }

    /// Frees what [`allocate`](Self::allocate) has returned; false for any other address.
    pub fn free(&self, start: u64) -> bool {
        let mut memories = self.memories();
        let is_one = memories.get(&start).is_some_and(|made| !made.is_converted);
        is_one && memories.remove(&start).is_some()
    }

    /// From now on, memory of the program is converted.
    pub fn set_converts(&self) {
        self.converts.store(true, Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
    }

    /// Whether memory of the program is converted.
    #[inline(always)]
    pub fn converts(&self) -> bool {
        self.converts.load(Ordering::Relaxed)
    }

    /// Makes private memory of this process shareable: its pages are replaced by those of a
    /// segment that holds the same bytes. What is written to them before this returns may be
    /// lost.
    ///
    /// # Errors
    /// [`ConvertError`], with nothing changed.
    pub fn convert(&self, whole: Claim) -> Result<(), ConvertError> {
        let (address, bytes) = (whole.address(), whole.len());
        let range = address..address.checked_add(bytes).ok_or(ConvertError::Unsuitable)?;
        let is_whole = address % PAGE == 0 && bytes % PAGE == 0 && bytes >= LEAST;
        if !is_whole || !is_private(&range) {
            return Err(ConvertError::Unsuitable);
        }
        let (nonce, system) = (random(), ConvertError::System);
        let memory = SharedMemory::create_detachable((bytes + PAGE) as usize, random() as u32);
        let mut memory = memory.map_err(system)?;
        nonce_of(&memory, bytes).store(nonce, Ordering::Relaxed);
        let from: *mut u8 = ptr::with_exposed_provenance_mut(address as usize);
        let used = used_pages(&range, PAGE);
        for offset in (0..bytes as usize).step_by(PAGE as usize) {
            if used[offset / PAGE as usize] {
                let (from, to) = (
                    from.wrapping_add(offset),
                    memory.start().wrapping_add(offset),
                );
                // SAFETY: both have a page there: the claim, and what was just made.
                unsafe { ptr::copy_nonoverlapping(from, to, PAGE as usize) };
            }
        }
        // SAFETY: whole pages of the claim, which may be written to at any time; they get what
        // they hold.
        unsafe { memory.move_front((bytes as usize, PAGE as usize), from) }.map_err(system)?;
        let made = Made {
            memory,
            bytes,
            nonce,
            is_converted: true,
        };
        self.memories().insert(address, made);
        Ok(())
    }

    /// Has peers find memory that lies in a System V segment of this user which the program has
    /// attached. Whether it does.
    pub fn adopt(&self, whole: Claim) -> bool {
        let part = Adopted::around(whole.address(), whole.len());
        let is_one = part.is_some();
        self.adopted().extend(part);
        is_one
    }

    /// Where so many bytes from that address lie, if all of them can be mapped.
    pub fn find(&self, address: u64, length: u64) -> Option<ShareablePlace> {
        let found = self.find_made(address, length);
        found.or_else(|| self.find_adopted(&(address..address.checked_add(length)?)))
    }

    /// As [`find`](Self::find), in segments that the program has attached.
    fn find_adopted(&self, range: &Range<u64>) -> Option<ShareablePlace> {
        let mut adopted = self.adopted();
        // The program may have detached one, and attached another one there.
        let is_there = |place: ShareablePlace| is_segment(range, place.id);
        adopted.retain(|part| part.place_of(range).is_none_or(is_there));
        adopted.iter().find_map(|part| part.place_of(range))
    }

    fn find_made(&self, address: u64, length: u64) -> Option<ShareablePlace> {
        let end = address.checked_add(length)?;
        let mut memories = self.memories();
        loop {
            let (&start, made) = memories.range(..=address).next_back()?;
            if end - start > made.bytes {
                return None;
            }
            let id = made.memory.id();
            if !made.is_converted || is_segment(&(address..end), id) {
                return Some(ShareablePlace {
                    id,
                    is_made: true,
                    nonce: made.nonce,
                    bytes: made.bytes,
                    offset: address - start,
                });
            }
            // The program has unmapped it; perhaps it lies in another one now.
            memories.remove(&start);
        }
    }

    fn adopted(&self) -> MutexGuard<'_, Vec<Adopted>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memories(&self) -> MutexGuard<'_, BTreeMap<u64, Made>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of a peer, mapped here as long as this value lives.
pub struct PeerMemory(SharedMemory);

impl PeerMemory {
    /// Maps memory of a process of this user.
    ///
    /// # Errors
    /// `EINVAL`: it is gone, another user's, or another one than was meant.
    pub fn attach(id: i32, nonce: u64, bytes: u64) -> io::Result<PeerMemory> {
        let gone = || io::Error::from_raw_os_error(libc::EINVAL);
        let all = bytes
            .checked_add(PAGE)
            .filter(|all| *all <= isize::MAX as u64 && all % PAGE == 0);
        let memory = SharedMemory::attach(id, all.ok_or_else(gone)? as usize, Mode::ReadWrite)?;
        match nonce_of(&memory, bytes).load(Ordering::Relaxed) == nonce {
            true => Ok(PeerMemory(memory)),
            false => Err(gone()),
        }
    }

    /// Maps a segment that a program of this user has made.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_program(id: i32, nonce: u64, bytes: u64) -> io::Result<PeerMemory> {
        let gone = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let bytes = usize::try_from(bytes).map_err(gone)?;
        let memory = SharedMemory::attach_program(id, bytes, Identity(nonce))?;
        Ok(PeerMemory(memory))
    }

    /// The first byte; as many as [`attach`](Self::attach) was given are mapped.
    pub fn start(&self) -> *mut u8 {
        self.0.start()
    }
}

/// The number behind so many bytes of a mapping that is a page longer.
fn nonce_of(memory: &SharedMemory, bytes: u64) -> &AtomicU64 {
    // SAFETY: both callers have made or attached `bytes` and a page more.
    let place = unsafe { memory.start().add(bytes as usize) };
    // SAFETY: aligned to a page, mapped as long as `memory` lives, and accessed as an atomic
    // alone.
    unsafe { AtomicU64::from_ptr(place.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocate(bytes: u64) -> u64 {
        let start = shareable().allocate(bytes).expect("the system has memory");
        start.expose_provenance() as u64
    }

    #[test]
    fn memory_is_found_by_any_of_its_addresses_and_no_other() {
        let start = allocate(5000);
        let place = |offset| {
            shareable()
                .find(start + offset, 8)
                .map(|place| place.offset)
        };
        assert_eq!(
            (place(0), place(4999), place(8184)),
            (Some(0), Some(4999), Some(8184))
        );
        assert_eq!(place(8185), None, "it would end in the page behind");
        assert!(shareable().find(start, 8192).is_some() && shareable().is_used());
        assert_eq!(shareable().find(start, u64::MAX), None);
        assert_eq!(shareable().length(start), Some(8192));
        assert!(!shareable().free(start + 4096) && shareable().free(start));
        assert!(place(0).is_none() && !shareable().free(start));
    }

    #[test]
    fn a_peer_sees_the_bytes_even_after_they_are_freed_here() {
        let start = allocate(100);
        let place = shareable().find(start, 100).expect("it is there");
        let attach = |nonce| PeerMemory::attach(place.id, nonce, place.bytes);
        let peer = attach(place.nonce).expect("it is there");
        assert!(attach(place.nonce ^ 1).is_err());
        let cell = |start: *mut u8| {
            // SAFETY: aligned, mapped, and accessed as an atomic alone.
            unsafe { AtomicU64::from_ptr(start.cast()) }
        };
        cell(std::ptr::with_exposed_provenance_mut(start as usize)).store(7, Ordering::Relaxed);
        assert_eq!(cell(peer.start()).load(Ordering::Relaxed), 7);
        assert!(shareable().free(start));
        assert_eq!(cell(peer.start()).load(Ordering::Relaxed), 7);
        drop(peer);
        assert!(attach(place.nonce).is_err());
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        for bytes in [u64::MAX, u64::MAX - PAGE, 1 << 62] {
            assert!(shareable().allocate(bytes).is_err());
        }
    }

    /// Private memory as a program maps it; unmapped on drop.
    struct Mapped(*mut u8, usize);

    impl Mapped {
        fn new(bytes: usize) -> Mapped {
            let (rights, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            // SAFETY: mapped where the system likes.
            let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            Mapped(start.cast(), bytes)
        }

        fn address(&self) -> u64 {
            self.0.expose_provenance() as u64
        }

        fn get(&self, offset: usize) -> u8 {
            assert!(offset < self.1);
            // SAFETY: it is mapped.
            unsafe { self.0.add(offset).read_volatile() }
        }

        fn set(&self, offset: usize, byte: u8) {
            assert!(offset < self.1);
            // SAFETY: it is mapped, and the test's own.
            unsafe { self.0.add(offset).write_volatile(byte) }
        }

        /// Unmaps what is there, and keeps the addresses: other tests' mappings would be found there.
        fn unmap(&self) {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: nobody uses what it replaces.
            let mapped =
                unsafe { libc::mmap(self.0.cast(), self.1, libc::PROT_NONE, flags, -1, 0) };
            assert_ne!(mapped, libc::MAP_FAILED);
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: nobody uses it any more.
            unsafe { libc::munmap(self.0.cast(), self.1) };
        }
    }

    fn convert(address: u64, length: u64) -> Result<(), ConvertError> {
        let start = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the memory is the calling test's own; what isn't mapped is refused.
        shareable().convert(unsafe { Claim::new(start, length) })
    }

    #[test]
    fn converted_memory_keeps_its_bytes_and_is_seen_by_who_maps_it() {
        const BYTES: usize = 1 << 20;
        let mapped = Mapped::new(BYTES + 8192);
        let address = mapped.address() + 4096;
        mapped.set(4096 + 77, 5);
        mapped.set(4095, 6);
        mapped.set(4096 + BYTES, 7);
        convert(address, BYTES as u64).expect("it is private");
        assert_eq!(mapped.get(4096 + 77), 5);
        assert_eq!((mapped.get(4095), mapped.get(4096 + BYTES)), (6, 7));
        let place = shareable()
            .find(address + 10, 100)
            .expect("it is shareable");
        assert_eq!((place.offset, place.bytes), (10, BYTES as u64));
        let peer = PeerMemory::attach(place.id, place.nonce, place.bytes);
        let peer = peer.expect("the nonce is that");
        let seen = Mapped(peer.start(), BYTES);
        assert_eq!(seen.get(77), 5);
        seen.set(77, 9);
        // The peer's mapping ends with `peer`.
        std::mem::forget(seen);
        assert_eq!(mapped.get(4096 + 77), 9);
        assert_eq!(shareable().length(address), None, "it isn't to be freed");
        assert!(!shareable().free(address));
        assert!(matches!(
            convert(address, BYTES as u64),
            Err(ConvertError::Unsuitable)
        ));
    }

    #[test]
    fn converted_memory_stays_shareable_when_what_lies_behind_it_is_looked_for() {
        const BYTES: u64 = 1 << 20;
        let mapped = Mapped::new(2 * BYTES as usize);
        let address = mapped.address();
        convert(address, BYTES).expect("it is private");
        assert_eq!(shareable().find(address + BYTES, 8), None);
        assert_eq!(shareable().find(address + BYTES - 4, 8), None);
        assert!(shareable().find(address, BYTES).is_some());
    }

    #[test]
    fn converted_memory_that_the_program_has_unmapped_is_not_found() {
        let mapped = Mapped::new(1 << 20);
        let address = mapped.address();
        convert(address, 1 << 20).expect("it is private");
        assert!(shareable().find(address, 8).is_some());
        mapped.unmap();
        assert_eq!(shareable().find(address, 8), None);
    }

    #[test]
    fn converted_memory_is_found_also_where_shorter_memory_was_converted_before() {
        const HALF: u64 = 1 << 19;
        let mapped = Mapped::new(2 * HALF as usize);
        let behind = mapped.address() + HALF;
        convert(behind, HALF).expect("it is private");
        mapped.unmap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: nobody uses what is mapped there.
        let allowed = unsafe { libc::mprotect(mapped.0.cast(), mapped.1, rights) };
        assert_eq!(allowed, 0);
        convert(mapped.address(), 2 * HALF).expect("it is private");
        let place = shareable().find(behind, 8).expect("it is shareable");
        assert_eq!((place.offset, place.bytes), (HALF, 2 * HALF));
    }

    #[test]
    fn only_long_private_memory_from_a_page_on_is_converted() {
        let mapped = Mapped::new(1 << 20);
        let address = mapped.address();
        for (address, length) in [
            (address + 8, 1 << 19),
            (address, 4096),
            (address, (1 << 19) + 8),
            (address, 1 << 40),
        ] {
            let converted = convert(address, length);
            assert!(matches!(converted, Err(ConvertError::Unsuitable)));
        }
    }

    /// A System V segment as a program attaches it, marked for removal.
    fn segment(bytes: usize) -> (u64, i32) {
        segment_in_place_of(None, bytes)
    }

    /// The same in place of what is mapped there, or else where the system likes.
    fn segment_in_place_of(mapped: Option<&Mapped>, bytes: usize) -> (u64, i32) {
        // SAFETY: shmget takes any numbers.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0);
        let (place, flags) = match mapped {
            Some(mapped) => (mapped.0.cast_const(), libc::SHM_REMAP),
            None => (ptr::null(), 0),
        };
        // SAFETY: what it replaces is the calling test's own, which doesn't use it.
        let start = unsafe { libc::shmat(id, place.cast(), flags) };
        // SAFETY: nothing is filled for this command.
        unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
        assert_ne!(start.addr(), usize::MAX);
        (start.expose_provenance() as u64, id)
    }

    fn detach(address: u64) {
        // SAFETY: attached by the calling test, which doesn't use it any more.
        unsafe { libc::shmdt(ptr::with_exposed_provenance(address as usize)) };
    }

    fn adopt(address: u64, length: u64) -> bool {
        let start = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the memory is the calling test's own; it isn't accessed.
        shareable().adopt(unsafe { Claim::new(start, length) })
    }

    #[test]
    fn a_segment_that_the_program_has_attached_is_found_until_it_is_detached() {
        const BYTES: u64 = 1 << 20;
        let mapped = Mapped::new(BYTES as usize);
        let (address, id) = segment_in_place_of(Some(&mapped), BYTES as usize);
        let (from, length) = (address + 100, BYTES - 100);
        assert_eq!(shareable().find(from, 8), None);
        assert!(adopt(from, length));
        let place = shareable().find(from + 8, 8).expect("it is adopted");
        assert_eq!((place.id, place.offset, place.bytes), (id, 108, BYTES));
        assert_eq!(shareable().find(from, length + 1), None);
        assert_eq!(shareable().length(address), None, "it isn't to be freed");
        assert!(!shareable().free(address) && !shareable().free(from));
        let peer = PeerMemory::attach_program(id, place.nonce, place.bytes);
        let peer = peer.expect("it is that one");
        let cell = |start: *mut u8| {
            // SAFETY: aligned, mapped, and accessed as an atomic alone.
            unsafe { AtomicU64::from_ptr(start.wrapping_add(4096).cast()) }
        };
        cell(peer.start()).store(7, Ordering::Relaxed);
        let own = ptr::with_exposed_provenance_mut(address as usize);
        assert_eq!(cell(own).load(Ordering::Relaxed), 7);
        mapped.unmap();
        assert_eq!(shareable().find(from + 8, 8), None);
    }

    #[test]
    fn a_segment_is_found_where_another_one_was() {
        const BYTES: u64 = 1 << 20;
        let mapped = Mapped::new(BYTES as usize);
        let ids = [(); 2].map(|()| {
            let (address, id) = segment_in_place_of(Some(&mapped), BYTES as usize);
            assert!(adopt(address, BYTES));
            id
        });
        let found = shareable().find(mapped.address(), 8);
        assert_eq!(found.map(|place| place.id), Some(ids[1]));
    }

    #[test]
    fn another_segment_than_was_meant_is_not_mapped() {
        const BYTES: u64 = 1 << 20;
        let (address, id) = segment(BYTES as usize);
        assert!(adopt(address, BYTES));
        let place = shareable().find(address, 8).expect("it is adopted");
        let attach = |nonce, bytes| PeerMemory::attach_program(id, nonce, bytes);
        assert!(attach(place.nonce, BYTES).is_ok());
        assert!(attach(place.nonce ^ 1, BYTES).is_err());
        assert!(attach(place.nonce, BYTES - 4096).is_err());
        detach(address);
        assert!(attach(place.nonce, BYTES).is_err(), "it is gone");
    }

    #[test]
    fn only_long_memory_in_one_segment_is_adopted() {
        let (address, _) = segment(1 << 20);
        let (odd, _) = segment((1 << 20) + 1);
        let mapped = Mapped::new(1 << 20);
        for (address, length) in [
            (address, LEAST - 1),
            (address + 1, 1 << 20),
            (odd, (1 << 20) + 2),
            (mapped.address(), 1 << 20),
            (address, u64::MAX),
        ] {
            assert!(!adopt(address, length), "{address:x} {length}");
        }
        assert!(adopt(odd, (1 << 20) + 1));
        detach(address);
        detach(odd);
    }
}
