//! Random streams that a component's path names.

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use crate::time::Duration;
use crate::trace::mix;

/// All random streams of a run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

/// One component's random numbers. Another component that comes, goes or draws
/// more leaves them as they are.
#[derive(Clone, Debug)]
pub struct Stream(Pcg32);

impl Streams {
    /// The streams of a run with this seed.
    pub const fn new(seed: u64) -> Self {
        Streams { seed }
    }

    /// The stream of the component at `path`, such as `node/17/noise`.
    pub fn stream(&self, path: &str) -> Stream {
        let name = fnv1a(path);
        let state = mix(name ^ mix(self.seed));
        Stream(Pcg32::new(state, mix(state ^ name)))
    }
}

impl Stream {
    /// 64 random bits, each independent.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, each equally likely. `bound` is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        // Lemire, "Fast random integer generation in an interval", 2019: the low
        // half shows which draws would favour some numbers.
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            if wide as u64 >= unfair {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A length of time shorter than `bound`, which is not zero.
    pub fn below_duration(&mut self, bound: Duration) -> Duration {
        Duration::from_ps(self.below(bound.as_ps()))
    }

    /// Puts `items` into a random order, each equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923).
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, path: &str) -> [u64; 4] {
        let mut stream = Streams::new(seed).stream(path);
        std::array::from_fn(|_| stream.bits())
    }

    #[test]
    fn seed_and_path_choose_the_stream() {
        let base = drawn(1, "node/17/noise");
        assert_eq!(base, drawn(1, "node/17/noise"));
        assert_ne!(base, drawn(2, "node/17/noise"));
        assert_ne!(base, drawn(1, "node/18/noise"));
    }

    #[test]
    fn numbers_are_the_same_on_every_machine() {
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(drawn(7, "golden"), GOLDEN);
    }

    /// Any change to seeding or drawing shows here, and changes every result.
    const GOLDEN: [u64; 4] = [
        0x62d0_6e97_3d0a_0b52,
        0x424f_1178_7598_c5f7,
        0x3281_32e7_c9e6_bfaf,
        0xda55_13cd_39b6_764f,
    ];

    #[test]
    fn numbers_stay_below_the_bound_and_all_are_hit() {
        let mut stream = Streams::new(3).stream("bound");
        let mut hits = [0u32; 7];
        for _ in 0..7_000 {
            hits[stream.below(7) as usize] += 1;
        }
        assert!(hits.iter().all(|&n| (800..1200).contains(&n)), "{hits:?}");
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Streams::new(3).stream("shuffle").shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
