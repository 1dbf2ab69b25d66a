//! A pool of buffers for bytes that must be kept.

use lintel_claim::{Claim, Region};
use lintel_reliable::{Nanos, Time};

/// Bytes of a buffer by its class; longer ones get a region each.
const CLASSES: [u64; 3] = [512, 8 << 10, 64 << 10];
/// Bytes allocated at a time for buffers of a class.
const CHUNK: u64 = 64 << 10;
/// Bytes of idle long buffers that are kept: to fault pages in costs several times as much
/// as to fill them.
const MAX_LONG_BYTES: u64 = 64 << 20;
/// Idle long buffers are freed once none was used for this long, or twice that.
const DISUSE: Nanos = Nanos::from_millis(1000);

/// Memory of our own: a copy to be sent, or a packet that waits to be delivered.
pub(crate) struct Buffer {
    claim: Claim,
    /// Its class; a long one owns its region.
    class: Result<u8, Region>,
}

impl Buffer {
    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }
}

/// Idle buffers, by class.
pub(crate) struct Buffers {
    spare: [Vec<Claim>; CLASSES.len()],
    chunks: Vec<Region>,
    /// Long ones, most recently used last, and their bytes.
    long: Vec<Region>,
    long_bytes: u64,
    /// A long one was used since the last check.
    is_used: bool,
    /// When long ones are checked next.
    next_check: Time,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers {
            spare: Default::default(),
            chunks: Vec::new(),
            long: Vec::new(),
            long_bytes: 0,
            is_used: false,
            next_check: Time(0),
        }
    }

    /// A buffer of at least that length.
    pub(crate) fn take(&mut self, length: u64) -> Buffer {
        let Some(class) = CLASSES.iter().position(|size| length <= *size) else {
            return self.take_long(length);
        };
        let whole = self.spare[class].pop().unwrap_or_else(|| self.make(class));
        Buffer {
            claim: whole,
            class: Ok(class as u8),
        }
    }

    pub(crate) fn put(&mut self, buffer: Buffer) {
        match buffer.class {
            Ok(class) => self.spare[class as usize].push(buffer.claim),
            Err(region) if self.long_bytes + region.len() <= MAX_LONG_BYTES => {
                self.long_bytes += region.len();
                self.long.push(region);
                self.is_used = true;
            }
            Err(_) => {}
        }
    }

    fn take_long(&mut self, length: u64) -> Buffer {
        let fits = |region: &Region| (length..=4 * length).contains(&region.len());
        // The one used last is the likeliest to be in the cache.
        let region = match self.long.iter().rposition(fits) {
            Some(index) => {
                let region = self.long.remove(index);
                self.long_bytes -= region.len();
                region
            }
            None => Region::new(length),
        };
        Buffer {
            claim: region.claim(),
            class: Err(region),
        }
    }

    /// When [`on_time`](Self::on_time) has something to do.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        match self.long.is_empty() {
            true => Time::NEVER,
            false => self.next_check,
        }
    }

    /// Frees long buffers that weren't used lately.
    pub(crate) fn on_time(&mut self, now: Time) {
        if now < self.due() {
            return;
        }
        self.next_check = now.after(DISUSE);
        if !std::mem::take(&mut self.is_used) {
            self.long.clear();
            self.long_bytes = 0;
        }
    }

    /// Bytes of memory, used or idle.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK + self.long_bytes
    }

    #[cold]
    fn make(&mut self, class: usize) -> Claim {
        let region = Region::new(CHUNK);
        let size = CLASSES[class];
        for number in 1..CHUNK / size {
            self.spare[class].push(region.claim().slice(number * size, size));
        }
        let first = region.claim().slice(0, size);
        self.chunks.push(region);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_buffer_is_used_again_and_given_back_when_none_has_been_for_a_while() {
        let mut buffers = Buffers::new();
        let (one, other) = (buffers.take(1 << 20), buffers.take(1 << 20));
        let (first, last) = (one.claim().address(), other.claim().address());
        buffers.put(one);
        buffers.put(other);
        let again = buffers.take(1 << 20);
        assert_eq!(
            again.claim().address(),
            last,
            "the one used last is the first"
        );
        assert_eq!(buffers.take(1 << 20).claim().address(), first);
        buffers.put(again);
        let mut now = Time(5);
        for held in [1 << 20, 0] {
            buffers.on_time(now);
            assert_eq!(buffers.bytes(), held);
            now = buffers.due();
        }
        assert_eq!(now, Time::NEVER);
    }
}
