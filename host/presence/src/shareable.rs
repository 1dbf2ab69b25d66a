//! Memory of a process that peers of its user can map: System V shared memory, as segments are.
//! It can't shrink, so nobody who maps it dies of SIGBUS, and it stays for those who have mapped
//! it when its maker frees it or ends.
//!
//! Behind the bytes that were asked for, rounded up to pages, is one more page, which begins
//! with a number at random: by that a peer knows that it has mapped what was meant, although
//! the system's numbers are used again.

use crate::segment::random;
use crate::shared_memory::{Mode, SharedMemory};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

/// Where memory lies in what peers can map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareablePlace {
    /// The system's number of the mapping.
    pub id: i32,
    /// The number behind its bytes.
    pub nonce: u64,
    /// Its bytes, whole pages, without the page behind them.
    pub bytes: u64,
    /// Bytes from its start.
    pub offset: u64,
}

/// What this process has made, by address.
pub struct Shareable {
    memories: Mutex<BTreeMap<u64, Made>>,
    /// Whether there ever was one.
    used: AtomicBool,
}

struct Made {
    memory: SharedMemory,
    bytes: u64,
    nonce: u64,
}

/// The one [`Shareable`] of this process.
#[inline]
pub fn shareable() -> &'static Shareable {
    static SHAREABLE: Shareable = Shareable {
        memories: Mutex::new(BTreeMap::new()),
        used: AtomicBool::new(false),
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
        };
        self.memories()
            .insert(start.expose_provenance() as u64, made);
        self.used.store(true, Ordering::Relaxed);
        Ok(start)
    }

    /// The length of the memory that [`allocate`](Self::allocate) has returned that address
    /// for; nothing for any other address.
    pub fn length(&self, start: u64) -> Option<u64> {
        self.memories().get(&start).map(|made| made.bytes)
    }

    /// Frees what [`allocate`](Self::allocate) has returned; false for any other address.
    pub fn free(&self, start: u64) -> bool {
        self.memories().remove(&start).is_some()
    }

    /// Where so many bytes from that address lie, if all of them can be mapped.
    pub fn find(&self, address: u64, length: u64) -> Option<ShareablePlace> {
        let memories = self.memories();
        let (start, made) = memories.range(..=address).next_back()?;
        let offset = address - start;
        let end = offset.checked_add(length)?;
        (end <= made.bytes).then(|| ShareablePlace {
            id: made.memory.id(),
            nonce: made.nonce,
            bytes: made.bytes,
            offset,
        })
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
}
