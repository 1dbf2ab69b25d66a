//! Random numbers that a seed repeats (SplitMix64, Steele, Lea and Flood 2014).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of that seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The stream of `LINTEL_TEST_SEED`, or of a new seed, which is printed.
    pub fn from_env() -> Random {
        let given = std::env::var("LINTEL_TEST_SEED").ok();
        let seed = given
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(fresh);
        eprintln!("LINTEL_TEST_SEED={seed}");
        Random(seed)
    }

    /// The next number, uniform over all 64-bit values.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}

/// How often a test of random moments is repeated: 12 times, or `LINTEL_TEST_ROUNDS`.
pub fn rounds() -> u64 {
    let asked = std::env::var("LINTEL_TEST_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}

fn fresh() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
