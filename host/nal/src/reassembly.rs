//! Reassembly: a message whose bytes arrive in parts, in order, after it was announced.
//!
//! ```text
//!   next: Payload::Streamed ──▶ Announced ── receive_into ──▶ Announced, with a place
//!   done                    ──▶ Reassembly ── fill, fill ... ──▶ Arrival::Streamed
//! ```
//!
//! Parts go to the place that the receiver has named, as far as they fit; the rest is
//! dropped, and so is everything once the place's lease is recalled.

use lintel_claim::{Claim, Lease, Loan, copy_vectored};

/// A stream that [`Nal::next`](crate::Nal::next) has reported and
/// [`Nal::done`](crate::Nal::done) hasn't begun yet.
#[derive(Debug)]
pub struct Announced {
    length: u64,
    place: Option<Loan>,
}

impl Announced {
    /// A stream of `length` bytes, which goes nowhere so far.
    #[inline]
    pub fn new(length: u64) -> Announced {
        Announced {
            length,
            place: None,
        }
    }

    /// Bytes of the whole stream.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the receiver has named a place for it.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Names where it goes, as [`Nal::receive_into`](crate::Nal::receive_into).
    #[inline]
    pub fn receive_into(&mut self, place: Loan) {
        self.place = Some(place);
    }

    /// Whether it goes to memory of that lease.
    pub fn is_into(&self, lease: &Lease) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_of(lease))
    }

    /// If it would go to memory of that lease, it is dropped instead.
    pub fn recall(&mut self, lease: &Lease) {
        self.place.take_if(|place| place.is_of(lease));
    }

    /// Where it goes, for a NAL that moves the bytes by itself.
    pub fn into_place(self) -> Option<Loan> {
        self.place
    }
}

/// A part has more bytes than are missing: the sender contradicts its announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun;

/// A stream of which some parts are still missing.
#[derive(Debug)]
pub struct Reassembly {
    /// The bytes of the place that aren't filled yet.
    rest: Option<Loan>,
    missing: u64,
}

impl From<Announced> for Reassembly {
    #[inline]
    fn from(announced: Announced) -> Reassembly {
        Reassembly {
            rest: announced.place,
            missing: announced.length,
        }
    }
}

impl Reassembly {
    /// Where the next part goes; empty if nothing more is kept.
    #[inline]
    pub fn place(&self) -> &[Claim] {
        self.rest.as_ref().map_or(&[][..], Loan::pieces)
    }

    /// Copies the next part to its place; true once the stream is whole.
    ///
    /// # Errors
    /// [`Overrun`]
    #[inline]
    pub fn fill(&mut self, part: Claim) -> Result<bool, Overrun> {
        let placed = copy_vectored(&[part], self.place());
        self.on_placed(part.len(), placed)
    }

    /// The next part, `bytes` long, has arrived, and `placed` of them are in their place;
    /// true once the stream is whole.
    ///
    /// # Errors
    /// [`Overrun`]
    #[inline]
    pub fn on_placed(&mut self, bytes: u64, placed: u64) -> Result<bool, Overrun> {
        if let Some(rest) = &mut self.rest {
            rest.skip(placed);
        }
        self.missing = self.missing.checked_sub(bytes).ok_or(Overrun)?;
        Ok(self.missing == 0)
    }

    /// If it goes to memory of that lease, what is missing is dropped.
    pub fn recall(&mut self, lease: &Lease) {
        self.rest.take_if(|rest| rest.is_of(lease));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_claim::Region;

    /// A stream of `length` bytes into memory of `room` bytes.
    fn stream(length: u64, room: u64) -> (Region, Lease, Reassembly) {
        let (memory, lease) = (Region::new(room), Lease::new());
        let mut announced = Announced::new(length);
        announced.receive_into(lease.lend(&[memory.claim()]).keep());
        assert!(announced.has_place());
        (memory, lease, Reassembly::from(announced))
    }

    fn part(bytes: &[u8]) -> Region {
        let part = Region::new(bytes.len() as u64);
        part.claim().write(bytes);
        part
    }

    fn bytes(memory: &Region) -> Vec<u8> {
        let mut bytes = vec![0; memory.len() as usize];
        memory.claim().read(&mut bytes);
        bytes
    }

    #[test]
    fn parts_are_put_one_behind_the_other_until_the_stream_is_whole() {
        let (memory, _lease, mut stream) = stream(5, 5);
        assert_eq!(stream.fill(part(b"ab").claim()), Ok(false));
        assert_eq!(stream.place()[0].len(), 3);
        memory.claim().slice(2, 1).write(b"c");
        assert_eq!(
            stream.on_placed(1, 1),
            Ok(false),
            "the kernel has put it there"
        );
        assert_eq!(stream.fill(part(b"de").claim()), Ok(true));
        assert_eq!(bytes(&memory), b"abcde");
    }

    #[test]
    fn what_doesnt_fit_is_counted_and_dropped() {
        let (memory, _lease, mut stream) = stream(5, 3);
        assert_eq!(stream.fill(part(b"abcd").claim()), Ok(false));
        assert!(stream.place().iter().all(|piece| piece.is_empty()));
        assert_eq!(stream.fill(part(b"e").claim()), Ok(true));
        assert_eq!(bytes(&memory), b"abc");
    }

    #[test]
    fn more_than_was_announced_is_an_overrun() {
        let (_memory, _lease, mut stream) = stream(5, 9);
        assert_eq!(stream.fill(part(b"abcd").claim()), Ok(false));
        assert_eq!(stream.fill(part(b"ef").claim()), Err(Overrun));
    }

    #[test]
    fn a_recalled_place_gets_nothing_more_and_the_stream_goes_on() {
        let (memory, lease, mut stream) = stream(4, 4);
        assert_eq!(stream.fill(part(b"a").claim()), Ok(false));
        stream.recall(&Lease::new());
        assert_eq!(stream.fill(part(b"b").claim()), Ok(false), "another lease");
        stream.recall(&lease);
        assert!(stream.place().is_empty());
        assert_eq!(stream.fill(part(b"cd").claim()), Ok(true));
        assert_eq!(bytes(&memory), b"ab\0\0");
    }

    #[test]
    fn a_place_recalled_before_the_stream_begins_is_none() {
        let (memory, lease) = (Region::new(4), Lease::new());
        for (recalled, is_kept) in [(&Lease::new(), true), (&lease, false)] {
            let mut announced = Announced::new(4);
            assert!(!announced.has_place());
            announced.receive_into(lease.lend(&[memory.claim()]).keep());
            assert_eq!(announced.is_into(recalled), !is_kept);
            announced.recall(recalled);
            assert_eq!((announced.length(), announced.has_place()), (4, is_kept));
            assert_eq!(announced.into_place().is_some(), is_kept);
        }
    }
}
