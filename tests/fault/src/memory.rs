//! Memory that peers write to while the process reads it.

use crate::random::Random;
use portals4_abi::UserMemory;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Has [`Memory::exposed`] take a System V segment.
pub const SEGMENT: &str = "LINTEL_TEST_SEGMENT";

/// Leaked memory of whole words, which stays mapped until the process ends.
#[derive(Clone, Copy)]
pub struct Memory {
    words: &'static [AtomicU64],
}

impl Memory {
    /// Zeroed memory; `bytes` is rounded up to whole words.
    pub fn new(bytes: usize) -> Memory {
        let words: Vec<AtomicU64> = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        Memory {
            words: words.leak(),
        }
    }

    /// As [`new`](Self::new), but peers can map it (`PtlMemAlloc`).
    ///
    /// # Panics
    /// If the system refuses.
    pub fn shareable(bytes: usize) -> Memory {
        let mut start = std::ptr::null_mut();
        // SAFETY: the output outlives the call.
        let code = unsafe { portals::PtlMemAlloc(bytes as u64, &mut start) };
        assert_eq!(code, 0, "PtlMemAlloc of {bytes} bytes");
        // SAFETY: so many bytes, rounded up to pages, zeroed and never freed; they are only
        // ever touched as atomics.
        let words = unsafe { std::slice::from_raw_parts(start.cast(), bytes.div_ceil(8)) };
        Memory { words }
    }

    /// As [`new`](Self::new), but mapped as a program does it (`mmap`), in whole pages.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn mapped(bytes: usize) -> Memory {
        let (rights, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: mapped where the system likes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{bytes} bytes");
        // SAFETY: so many bytes, rounded up to pages, zeroed and never unmapped; they are only
        // ever touched as atomics.
        let words = unsafe { std::slice::from_raw_parts(start.cast(), bytes.div_ceil(8)) };
        Memory { words }
    }

    /// As [`new`](Self::new), but in a System V segment, as a program attaches it, in whole
    /// pages.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn segment(bytes: usize) -> Memory {
        // SAFETY: shmget takes any numbers.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600) };
        // SAFETY: attached where the system likes.
        let start = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        // It ends with the last process that has attached it.
        // SAFETY: nothing is filled for this command.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        assert_ne!(start, libc::MAP_FAILED, "{bytes} bytes");
        // SAFETY: so many bytes, rounded up to pages, zeroed and never detached; they are only
        // ever touched as atomics.
        let words = unsafe { std::slice::from_raw_parts(start.cast(), bytes.div_ceil(8)) };
        Memory { words }
    }

    /// Memory of an entry: that peers can map; if `PTL_SHARE_MEMORY` is set, private memory, or a
    /// segment of the program's if [`SEGMENT`] is, too.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn exposed(bytes: usize) -> Memory {
        match std::env::var_os("PTL_SHARE_MEMORY") {
            Some(_) if std::env::var_os(SEGMENT).is_some() => Memory::segment(bytes),
            Some(_) => Memory::mapped(bytes),
            None => Memory::shareable(bytes),
        }
    }

    /// Memory each of whose bytes is the [`pattern`] of its offset.
    pub fn patterned(bytes: usize) -> Memory {
        let memory = Memory::new(bytes);
        for (index, word) in memory.words.iter().enumerate() {
            let bytes = std::array::from_fn(|at| pattern(index * 8 + at));
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        memory
    }

    /// Fills the memory with the random numbers of a seed.
    pub fn scatter(self, seed: u64) {
        let mut random = Random::new(seed);
        for word in self.words {
            word.store(random.number(), Ordering::Relaxed);
        }
    }

    /// CRC-32C of a range of bytes.
    pub fn checksum(self, range: Range<usize>) -> u32 {
        const CHUNK: usize = 512;
        let mut sum = 0;
        let mut bytes = [0; CHUNK * 8];
        let mut at = range.start;
        while at < range.end {
            let first = at / 8;
            let words = &self.words[first..self.words.len().min(first + CHUNK)];
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
            }
            let end = range.end.min((first + CHUNK) * 8);
            sum = crc32c::crc32c_append(sum, &bytes[at - first * 8..end - first * 8]);
            at = end;
        }
        sum
    }

    /// The address of the first byte.
    pub fn address(self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    /// The length in bytes, a multiple of 8.
    pub fn bytes(self) -> usize {
        self.words.len() * 8
    }

    /// The byte at an offset.
    pub fn byte(self, offset: usize) -> u8 {
        let word = self.words[offset / 8].load(Ordering::Relaxed);
        word.to_ne_bytes()[offset % 8]
    }

    /// All words.
    pub fn words(self) -> &'static [AtomicU64] {
        self.words
    }

    /// The word at an offset in words.
    pub fn word(self, index: usize) -> &'static AtomicU64 {
        &self.words[index]
    }

    /// The first byte, as a flag that a put sets.
    pub fn flag(self) -> &'static AtomicU8 {
        // SAFETY: the memory lives for ever, is aligned, and is only ever touched
        // atomically or by the system.
        unsafe { AtomicU8::from_ptr(self.address()) }
    }

    /// The first offset in a range whose byte is neither 0 nor the pattern.
    pub fn first_foreign(self, mut range: Range<usize>) -> Option<usize> {
        range.find(|at| {
            let byte = self.byte(*at);
            byte != 0 && byte != pattern(*at)
        })
    }

    /// The first offset in a range whose byte isn't the pattern.
    pub fn first_mismatch(self, mut range: Range<usize>) -> Option<usize> {
        range.find(|at| self.byte(*at) != pattern(*at))
    }
}

// SAFETY: the words live for ever, at one address, and are only ever touched as atomics.
unsafe impl UserMemory for Memory {
    fn address(&self) -> *mut c_void {
        Memory::address(*self).cast()
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

/// The byte that belongs at an offset: never 0, and different from the 250 bytes after it.
pub fn pattern(offset: usize) -> u8 {
    (offset % 251) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_that_of_the_bytes() {
        let memory = Memory::patterned(20_000);
        for range in [0..0, 0..20_000, 3..9, 7..8, 4090..4100, 4096..8192] {
            let bytes: Vec<u8> = range.clone().map(|at| memory.byte(at)).collect();
            assert_eq!(memory.checksum(range), crc32c::crc32c(&bytes));
        }
    }
}
