//! Memory that others write to while we look.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes that stay where they are until the process ends.
#[derive(Clone, Copy)]
pub struct Memory {
    words: &'static [AtomicU64],
}

impl Memory {
    /// Zeros; `bytes` is rounded up to whole words.
    pub fn new(bytes: usize) -> Memory {
        let words: Vec<AtomicU64> = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        Memory {
            words: words.leak(),
        }
    }

    /// Each byte the [`pattern`] of its offset.
    pub fn patterned(bytes: usize) -> Memory {
        let memory = Memory::new(bytes);
        for (index, word) in memory.words.iter().enumerate() {
            let bytes = std::array::from_fn(|at| pattern(index * 8 + at));
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        memory
    }

    /// Its first byte.
    pub fn address(self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    /// Its length, bytes.
    pub fn bytes(self) -> usize {
        self.words.len() * 8
    }

    /// The byte at an offset.
    pub fn byte(self, offset: usize) -> u8 {
        let word = self.words[offset / 8].load(Ordering::Relaxed);
        word.to_ne_bytes()[offset % 8]
    }

    /// The word at an offset in words.
    pub fn word(self, index: usize) -> &'static AtomicU64 {
        &self.words[index]
    }

    /// A flag of one byte.
    pub fn flag(self) -> &'static AtomicU8 {
        // SAFETY: the memory lives for ever, is aligned, and is only ever touched
        // atomically or by the system.
        unsafe { AtomicU8::from_ptr(self.address()) }
    }

    /// The first offset in a range whose byte is neither 0 nor the pattern.
    pub fn spoilt(self, mut range: std::ops::Range<usize>) -> Option<usize> {
        range.find(|at| {
            let byte = self.byte(*at);
            byte != 0 && byte != pattern(*at)
        })
    }

    /// The first offset in a range whose byte isn't the pattern.
    pub fn unlike(self, mut range: std::ops::Range<usize>) -> Option<usize> {
        range.find(|at| self.byte(*at) != pattern(*at))
    }
}

/// What belongs at an offset: no two neighbours within 251 bytes agree, none is 0.
pub fn pattern(offset: usize) -> u8 {
    (offset % 251) as u8 + 1
}
