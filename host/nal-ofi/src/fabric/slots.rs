//! Memory that a provider may scribble on while an operation is under way, and by
//! whose address it names the operation when that is done.

use lintel_claim::Region;

/// `struct fi_context2`, and one cache line.
const BYTES: u64 = 64;

/// A fixed number of operations, each with what is to be known of it.
pub(crate) struct Slots<T> {
    memory: Region,
    taken: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new(count: usize) -> Slots<T> {
        Slots {
            memory: Region::new(count as u64 * BYTES),
            taken: (0..count).map(|_| None).collect(),
            free: (0..count as u32).rev().collect(),
        }
    }

    /// The address for an operation; nothing where too many are under way.
    pub(crate) fn take(&mut self, operation: T) -> Option<u64> {
        let slot = self.free.pop()?;
        self.taken[slot as usize] = Some(operation);
        Some(self.memory.claim().address() + u64::from(slot) * BYTES)
    }

    /// The operation at that address, which is over. Nothing where none is: not every
    /// completion is of an operation with a name.
    pub(crate) fn release(&mut self, address: u64) -> Option<T> {
        let offset = address.checked_sub(self.memory.claim().address())?;
        let slot = usize::try_from(offset / BYTES).ok()?;
        let operation = self.taken.get_mut(slot)?.take()?;
        self.free.push(slot as u32);
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_slot_gives_back_what_it_was_taken_for_once() {
        let mut slots = Slots::new(2);
        let (first, second) = (slots.take('a'), slots.take('b'));
        let (first, second) = (
            first.expect("one is free"),
            second.expect("another is free"),
        );
        assert_eq!(slots.take('c'), None);
        assert_eq!(slots.release(second), Some('b'));
        assert_eq!(slots.release(second), None);
        assert_eq!(slots.release(0), None);
        assert_eq!(slots.release(first + 2 * 64), None);
        assert_eq!(slots.release(first), Some('a'));
    }
}
