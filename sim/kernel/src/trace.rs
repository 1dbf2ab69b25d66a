//! The order-sensitive hash of what was executed.

/// Sums up a sequence of words. Two runs that did the same in the same order
/// agree; the value is the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

/// 2^64 over the golden ratio, odd: a step that no short cycle repeats.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl TraceHash {
    /// The hash of an empty sequence.
    pub const EMPTY: TraceHash = TraceHash(STEP);

    /// Takes in one word. The rotation makes order count.
    #[inline]
    pub fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(STEP);
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        mix(self.0)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection
/// that lets each bit of the input reach every bit of the output.
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u64]) -> u64 {
        let mut hash = TraceHash::EMPTY;
        words.iter().for_each(|&word| hash.add(word));
        hash.value()
    }

    #[test]
    fn order_number_and_value_of_words_count() {
        let hashes = [of(&[]), of(&[0]), of(&[0, 0]), of(&[1, 2]), of(&[2, 1])];
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash), "{hashes:x?}");
        }
    }
}
