//! The parts of a body that its initiator was granted to move: each is taken by one side.
//!
//! The target begins them, and the initiator takes none unless it has read that very grant. If it has
//! taken none, and none is left, the target revokes the grant, so that it waits for no initiator that
//! does other things.

use lintel_nal::Parts;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unit of a part's length, bytes.
pub(crate) const PAGE: u64 = 4096;

/// The parts of one body, in one word: the grant's number, how many parts are taken, and the length of
/// each in pages. All else that the sides read of each other is published with the grant, and with the
/// note of what was moved.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct BodyParts(AtomicU64);

/// A value of the word.
#[derive(Clone, Copy)]
struct Value {
    grant: u16,
    taken: u16,
    pages: u32,
}

impl BodyParts {
    /// The body of that grant and length has such parts, rounded up to pages. If both sides move some, the
    /// target takes the first one with this, since the word is in the initiator's cache: where it
    /// begins, and its length.
    pub(crate) fn begin(&self, grant: u32, parts: Parts, length: u64) -> Option<(u64, u64)> {
        let pages = parts.bytes.div_ceil(PAGE);
        let value = Value {
            grant: grant as u16,
            taken: u16::from(parts.is_joint),
            pages: u32::try_from(pages).unwrap_or(u32::MAX),
        };
        self.0.store(value.word(), Ordering::Relaxed);
        parts.is_joint.then_some((0, value.bytes().min(length)))
    }

    /// Nothing is granted.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Takes the next part of a body of that length: where it begins, and its length, in bytes.
    /// Nothing if none is left, or the grant was revoked. A peer that writes anything else there harms
    /// only its own body.
    pub(crate) fn take(&self, grant: u32, length: u64) -> Option<(u64, u64)> {
        let mut found = None;
        self.change(|value| {
            let bytes = value.bytes();
            let begin = u64::from(value.taken) * bytes;
            let taken = value.taken.checked_add(1)?;
            if value.grant != grant as u16 || bytes == 0 || begin >= length {
                return None;
            }
            found = Some((begin, bytes.min(length - begin)));
            Some(Value { taken, ..value })
        })
        .then_some(found)?
    }

    /// Ends a grant of which the target has taken all parts, so many: false if the initiator has
    /// taken one.
    pub(crate) fn revoke(&self, grant: u32, own: u32) -> bool {
        self.change(|value| {
            let is_own = value.grant == grant as u16 && u32::from(value.taken) == own;
            is_own.then_some(Value {
                grant: value.grant.wrapping_add(1),
                taken: 0,
                pages: 0,
            })
        })
    }

    /// Changes the value, unless `next` gives none; whether it was changed.
    fn change(&self, mut next: impl FnMut(Value) -> Option<Value>) -> bool {
        let next = |word| next(Value::of(word)).map(Value::word);
        let (set, load) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(set, load, next).is_ok()
    }
}

impl Value {
    fn of(word: u64) -> Value {
        Value {
            grant: (word >> 48) as u16,
            taken: (word >> 32) as u16,
            pages: word as u32,
        }
    }

    /// Of each part.
    fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE
    }

    fn word(self) -> u64 {
        u64::from(self.grant) << 48 | u64::from(self.taken) << 32 | u64::from(self.pages)
    }
}

/// Whether an initiator takes parts of what is granted to it: one that doesn't, time and again, is
/// granted less and less, since each part costs the target a call of the system.
#[derive(Clone, Copy, Default)]
pub(crate) struct Joining {
    /// It is taken to have joined in the last one, since nothing else was noted.
    is_open: bool,
    /// Grants in a row of which it took none.
    missed: u8,
    /// Bodies that aren't granted until the next one is.
    left: u8,
}

impl Joining {
    /// Missed grants in a row that still make a difference: 16 bodies follow without a grant.
    const MOST: u8 = 4;

    /// Whether the next body is granted.
    pub(crate) fn grants(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        if self.is_open {
            self.missed = 0;
        }
        self.is_open = true;
        true
    }

    /// It took none of the last one.
    pub(crate) fn note_missed(&mut self) {
        self.is_open = false;
        self.missed = (self.missed + 1).min(Self::MOST);
        self.left = 1 << self.missed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// None of which is taken.
    fn begin(parts: &BodyParts, grant: u32, bytes: u64) {
        let is_joint = false;
        assert_eq!(parts.begin(grant, Parts { bytes, is_joint }, 8192), None);
    }

    fn take_all(parts: &BodyParts, grant: u32, length: u64) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| parts.take(grant, length)).collect()
    }

    #[test]
    fn each_part_is_taken_once_by_either_side() {
        let parts = BodyParts::default();
        for (grant, length) in (65530..).zip([1, 4096, 4097, 1 << 20, (1 << 20) + 5, 7, 8, 9]) {
            begin(&parts, grant, 4096);
            let mut taken = std::thread::scope(|scope| {
                let other = scope.spawn(|| take_all(&parts, grant, length));
                let mut taken = take_all(&parts, grant, length);
                taken.extend(other.join().expect("it only counts"));
                taken
            });
            taken.sort_unstable();
            let mut next = 0;
            for (begin, bytes) in taken {
                assert_eq!(begin, next);
                assert!(bytes > 0);
                next += bytes;
            }
            assert_eq!(next, length);
        }
    }

    #[test]
    fn a_grant_is_revoked_unless_the_other_side_has_taken_a_part() {
        let parts = BodyParts::default();
        begin(&parts, 1, 4096);
        assert_eq!(take_all(&parts, 1, 8192).len(), 2);
        assert!(!parts.revoke(1, 1), "one was taken by the other side");
        assert!(parts.revoke(1, 2));
        assert_eq!(parts.take(1, 1 << 20), None, "it was revoked");
        assert_eq!(parts.take(2, 1 << 20), None, "it hasn't begun");
        begin(&parts, 2, 4096);
        assert_eq!(parts.take(1, 8192), None, "it is another grant");
        assert_eq!(parts.take(2, 8192), Some((0, 4096)));
    }

    #[test]
    fn who_takes_no_parts_is_granted_less_and_less() {
        let mut joining = Joining::default();
        let mut next = || {
            let bodies = (0..).take_while(|_| !joining.grants()).count();
            joining.note_missed();
            bodies
        };
        let rows: Vec<usize> = (0..7).map(|_| next()).collect();
        assert_eq!(rows, [0, 2, 4, 8, 16, 16, 16]);
        let rest = (0..).take_while(|_| !joining.grants()).count();
        assert_eq!(rest, 16);
        // It has taken parts of that one: the next two as well.
        assert!(joining.grants() && joining.grants());
        joining.note_missed();
        assert!(!joining.grants() && !joining.grants() && joining.grants());
    }

    #[test]
    fn parts_of_any_numbers_lie_in_the_body() {
        let parts = BodyParts::default();
        assert_eq!(parts.take(0, 8), None, "none has begun");
        begin(&parts, 0, u64::MAX);
        assert_eq!(parts.take(0, 8), Some((0, 8)));
        assert_eq!(parts.take(0, 8), None);
        parts.0.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(parts.take(u32::MAX, u64::MAX), None);
    }
}
