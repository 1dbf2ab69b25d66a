//! Lists of spans, read as if each list were one run of bytes.

use crate::Span;
use alloc::vec::Vec;

/// Where a message's bytes lie, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pieces<S> {
    /// One contiguous span, perhaps empty.
    One(S),
    /// The pieces of an I/O vector, in order.
    Many(Vec<S>),
}

impl<S: Span> Pieces<S> {
    /// One span without bytes.
    pub fn none() -> Self {
        Pieces::One(S::empty())
    }

    /// The pieces in order.
    #[inline]
    pub fn as_slice(&self) -> &[S] {
        match self {
            Pieces::One(span) => core::slice::from_ref(span),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// Address of the first byte, 0 if there is none.
    #[inline]
    pub fn start(&self) -> u64 {
        self.as_slice().first().map_or(0, |span| span.address())
    }

    /// Bytes of all pieces together.
    #[inline]
    pub fn length(&self) -> u64 {
        length(self.as_slice())
    }

    /// At most `most` bytes from `offset` on.
    #[inline]
    pub fn part(&self, offset: u64, most: u64) -> Pieces<S> {
        match self {
            Pieces::One(span) => Pieces::One(span.narrow(offset, most)),
            Pieces::Many(pieces) => Pieces::Many(part(pieces, offset, most)),
        }
    }

    /// All of them in a vector.
    pub fn into_vec(self) -> Vec<S> {
        match self {
            Pieces::One(span) => Vec::from([span]),
            Pieces::Many(pieces) => pieces,
        }
    }
}

impl<S> Default for Pieces<S> {
    /// No piece at all.
    fn default() -> Self {
        Pieces::Many(Vec::new())
    }
}

/// ```
/// use lintel_memory::{Ghost, Pieces};
/// for count in 0..4 {
///     let pieces: Pieces<Ghost> = (0..count).map(|at| Ghost::new(100 * at, 8)).collect();
///     assert_eq!(matches!(pieces, Pieces::One(_)), count == 1);
///     assert_eq!(pieces.length(), 8 * count);
///     assert_eq!(pieces.part(4, 6).length(), 6.min((8 * count).saturating_sub(4)));
///     assert_eq!(pieces.into_vec().len() as u64, count);
/// }
/// ```
impl<S> FromIterator<S> for Pieces<S> {
    /// One piece takes no memory of its own.
    fn from_iter<I: IntoIterator<Item = S>>(pieces: I) -> Self {
        let mut pieces = pieces.into_iter();
        let (Some(first), second) = (pieces.next(), pieces.next()) else {
            return Pieces::default();
        };
        match second {
            None => Pieces::One(first),
            Some(second) => Pieces::Many([first, second].into_iter().chain(pieces).collect()),
        }
    }
}

/// More bytes than any process can have as memory: of what is longer some can't be touched.
pub const MOST_MEMORY: u64 = 1 << 46;

/// Length of a list of spans in all, bytes; at most 2^64 - 1, whatever lengths a peer names.
#[inline]
pub fn length<S: Span>(spans: &[S]) -> u64 {
    let lengths = spans.iter().map(|span| span.length());
    lengths.fold(0, u64::saturating_add)
}

/// The spans of at most `most` bytes from `offset` on, none of them empty.
///
/// ```
/// use lintel_memory::{Ghost, parts};
/// let spans = [Ghost::new(100, 8), Ghost::new(300, 0), Ghost::new(900, 8)];
/// assert!(parts(&spans, 6, 4).eq([Ghost::new(106, 2), Ghost::new(900, 2)]));
/// assert_eq!(parts(&spans, 16, 4).next(), None);
/// ```
#[inline]
pub fn parts<S: Span>(spans: &[S], offset: u64, mut most: u64) -> impl Iterator<Item = S> {
    let mut walk = Walk::new(spans);
    walk.advance(offset);
    walk.pieces().map_while(move |span| {
        let part = span.narrow(0, most);
        most -= part.length();
        (part.length() > 0).then_some(part)
    })
}

/// As [`parts`], in a vector.
pub fn part<S: Span>(spans: &[S], offset: u64, most: u64) -> Vec<S> {
    let mut found = Vec::with_capacity(spans.len());
    found.extend(parts(spans, offset, most));
    found
}

/// Drops the first bytes of a list.
pub fn skip<S: Span>(spans: &mut Vec<S>, mut bytes: u64) {
    // Part after part of a stream comes into one piece.
    if let [one] = spans.as_mut_slice() {
        *one = one.narrow(bytes, u64::MAX);
        return;
    }
    let used = spans.iter().take_while(|span| {
        let whole = span.length() <= bytes;
        bytes -= if whole { span.length() } else { 0 };
        whole
    });
    let used = used.count();
    spans.drain(..used);
    if let Some(first) = spans.first_mut() {
        *first = first.narrow(bytes, u64::MAX);
    }
}

/// Stands at the next byte of a list of spans. A copy of a walk stands at the same byte.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a, S> {
    /// The spans not yet entered.
    rest: &'a [S],
    /// What remains of the current one; empty only when all is done.
    front: S,
}

impl<'a, S: Span> Walk<'a, S> {
    /// Stands at the first byte.
    #[inline]
    pub fn new(spans: &'a [S]) -> Walk<'a, S> {
        let mut walk = Walk {
            rest: spans,
            front: S::empty(),
        };
        walk.skip_empty();
        walk
    }

    /// The contiguous bytes from here on; empty at the end.
    #[inline]
    pub fn front(&self) -> S {
        self.front
    }

    /// Whether no byte is left.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.front.length() == 0
    }

    /// The contiguous pieces from here on, none of them empty.
    #[inline]
    pub fn pieces(&self) -> impl Iterator<Item = S> + use<'a, S> {
        let front = self.front;
        core::iter::once(front)
            .chain(self.rest.iter().copied())
            .filter(|span| span.length() != 0)
    }

    /// Moves on by `count` bytes, across spans; stops at the end.
    #[inline]
    pub fn advance(&mut self, mut count: u64) {
        while count >= self.front.length() && self.front.length() != 0 {
            count -= self.front.length();
            self.front = S::empty();
            self.skip_empty();
        }
        self.front = self.front.narrow(count, u64::MAX);
    }

    #[inline]
    fn skip_empty(&mut self) {
        while self.front.length() == 0 {
            let Some((next, rest)) = self.rest.split_first() else {
                return;
            };
            self.front = *next;
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ghost;
    use alloc::vec;

    /// Lists of every kind: none, empty spans first, last, between, alone.
    fn lists() -> Vec<Vec<Ghost>> {
        let [a, b, c] = [Ghost::new(10, 3), Ghost::new(20, 1), Ghost::new(30, 4)];
        let empty = Ghost::new(90, 0);
        vec![
            vec![],
            vec![empty],
            vec![a],
            vec![a, b, c],
            vec![empty, a, empty, empty, b, c, empty],
        ]
    }

    /// The address of each byte, one by one: what everything else is compared with.
    fn bytes(spans: impl IntoIterator<Item = Ghost>) -> Vec<u64> {
        let each = |span: Ghost| span.address()..span.address() + span.length();
        spans.into_iter().flat_map(each).collect()
    }

    #[test]
    fn a_length_counts_every_byte() {
        for list in lists() {
            assert_eq!(length(&list), bytes(list).len() as u64);
        }
    }

    #[test]
    fn parts_are_the_bytes_asked_for_and_never_empty() {
        for list in lists() {
            for (offset, most) in (0..10).flat_map(|o| (0..10).map(move |m| (o, m))) {
                let all = bytes(list.clone()).into_iter();
                let found = part(&list, offset, most);
                assert!(found.iter().all(|span| span.length() > 0));
                assert!(
                    all.skip(offset as usize)
                        .take(most as usize)
                        .eq(bytes(found)),
                    "{most} bytes from {offset} on of {list:?}"
                );
            }
            assert_eq!(part(&list, u64::MAX, u64::MAX), []);
            assert_eq!(bytes(part(&list, 0, u64::MAX)), bytes(list));
        }
    }

    #[test]
    fn what_is_skipped_is_gone_and_the_rest_stays() {
        for list in lists() {
            for count in (0..10).chain([u64::MAX]) {
                let mut left = list.clone();
                skip(&mut left, count);
                let wanted = bytes(part(&list, count, u64::MAX));
                assert_eq!(bytes(left), wanted, "{count} bytes of {list:?}");
            }
        }
    }

    #[test]
    fn a_walk_passes_every_byte_and_stops_at_the_end() {
        for (list, step) in lists()
            .into_iter()
            .flat_map(|l| (1..10).map(move |s| (l.clone(), s)))
        {
            let (mut walk, mut seen) = (Walk::new(&list), vec![]);
            while !walk.is_done() {
                let pieces = bytes(walk.pieces());
                assert_eq!(pieces[0], walk.front().address());
                seen.extend(pieces.into_iter().take(step as usize));
                walk.advance(step);
            }
            assert_eq!(seen, bytes(list.clone()));
            walk.advance(1);
            assert!(walk.is_done() && walk.pieces().next().is_none());
        }
    }

    #[test]
    fn pieces_begin_at_their_first_span() {
        let many = Pieces::Many(vec![Ghost::new(7, 2), Ghost::new(9, 1)]);
        assert_eq!((many.start(), many.length()), (7, 3));
        let none = Pieces::<Ghost>::none();
        assert_eq!((none.start(), none.length()), (0, 0));
        assert_eq!(Pieces::<Ghost>::Many(vec![]).start(), 0);
    }
}
