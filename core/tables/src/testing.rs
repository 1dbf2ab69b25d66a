//! For the tests of this crate.

/// A small generator, so that a failure can be repeated from its seed.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    *state >> 33
}
