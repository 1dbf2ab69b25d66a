//! [`Incarnation`]: distinguishes a process from earlier and later ones of its name.

use core::num::NonZeroU64;

/// Low bits of an incarnation that are random, below the clock's: two processes that start
/// within the same step, or behind the same predecessor, differ in them.
pub const CLOCK_STEP_BITS: u32 = 20;
const RANDOM: u64 = (1 << CLOCK_STEP_BITS) - 1;

/// The number of one run of a process: the larger, the later. On the wire 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Incarnation(NonZeroU64);

impl Incarnation {
    /// From a number on the wire; 0 is none.
    #[inline]
    pub const fn new(number: u64) -> Option<Incarnation> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Incarnation(number)),
            None => None,
        }
    }

    /// Of a process that starts now: the time since 1970 in nanoseconds, in steps of about a
    /// millisecond, and random bits below.
    pub fn from_clock(nanoseconds: u64, random: u64) -> Incarnation {
        let number = nanoseconds & !RANDOM | random & RANDOM;
        Incarnation(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// The number on the wire.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The one after the loss of a peer: the peer, if it is alive, notices that it was given
    /// up.
    pub fn next(self) -> Incarnation {
        Incarnation(self.0.saturating_add(1))
    }

    /// Behind a predecessor of its name that a peer has known, for a process that started as
    /// `own`: the same one if it is later anyway; otherwise, since the clock was set back, a
    /// number behind the predecessor's that keeps the random bits of `own`. `None` if there
    /// is no such number.
    pub fn follow(self, predecessor: u64, own: Incarnation) -> Option<Incarnation> {
        if predecessor < self.get() {
            return Some(self);
        }
        let next = predecessor.checked_add(1 + (own.get() & RANDOM))?;
        Incarnation::new(next)
    }
}

/// The number on the wire of an incarnation that may not be known.
impl From<Incarnation> for u64 {
    fn from(incarnation: Incarnation) -> u64 {
        incarnation.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u64) -> Incarnation {
        Incarnation::new(number).expect("it isn't 0")
    }

    #[test]
    fn zero_is_no_incarnation() {
        assert_eq!(Incarnation::new(0), None);
        assert_eq!(of(7).get(), 7);
        assert_eq!(u64::from(of(7)), 7);
        assert_eq!(Incarnation::from_clock(0, 0).get(), 1);
    }

    #[test]
    fn a_later_start_has_a_larger_number_and_one_step_has_many() {
        let step = 1 << CLOCK_STEP_BITS;
        let first = Incarnation::from_clock(5 * step + 3, u64::MAX);
        assert_eq!(first.get(), 6 * step - 1);
        assert!(Incarnation::from_clock(6 * step, 0) > first);
        let other = Incarnation::from_clock(5 * step + 4, 9);
        assert_eq!(other.get(), 5 * step + 9);
    }

    #[test]
    fn a_loss_makes_a_newer_one() {
        assert_eq!(of(7).next(), of(8));
        assert_eq!(of(u64::MAX).next(), of(u64::MAX));
    }

    #[test]
    fn a_process_follows_a_predecessor_with_a_larger_number() {
        let own = of((3 << CLOCK_STEP_BITS) + 5);
        assert_eq!(own.follow(0, own), Some(own));
        assert_eq!(own.follow(own.get() - 1, own), Some(own), "it is later");
        assert_eq!(own.follow(own.get(), own), Some(of(own.get() + 6)));
        let later = 9 << CLOCK_STEP_BITS;
        assert_eq!(own.follow(later, own), Some(of(later + 6)));
        // One that has gone on already keeps the random bits that it started with.
        assert_eq!(of(later + 6).follow(later + 6, own), Some(of(later + 12)));
        assert_eq!(own.follow(u64::MAX, own), None);
        assert_eq!(own.follow(u64::MAX - 6, own), Some(of(u64::MAX)));
    }
}
