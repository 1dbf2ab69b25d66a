//! What the two ways of a body take beside all that the sides time of them: the sender's and the
//! receiver's calls, and the answer to a body that is lent. In a ping-pong the interval from one body
//! to the next holds all of it, and all else that doesn't depend on the way.

use std::time::{Duration, Instant};

/// Intervals of each way that are compared.
const COMPARED: usize = 7;
/// Fewer than this say nothing.
const FEWEST: usize = 5;
/// Intervals so many times as long as the body is known to take hold much else, which would hide it.
const MOSTLY_ELSE: f32 = 8.0;
/// The part of what earlier intervals have shown that the next ones replace.
const WEIGHT: f32 = 0.5;
/// What isn't timed takes no longer than so many calls of the system.
const MOST_CALLS: f32 = 4.0;

/// Intervals from one body to the next one of the same length.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    last: Option<Sent>,
    copied: Samples,
    lent: Samples,
}

/// A body that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    length: u64,
    is_lent: bool,
    /// Whether it went the way of the one before: the first one after others takes longer.
    is_like_before: bool,
}

#[derive(Debug, Default)]
struct Samples {
    took: [Duration; COMPARED],
    count: usize,
}

impl Samples {
    fn add(&mut self, took: Duration) {
        if let Some(place) = self.took.get_mut(self.count) {
            *place = took;
            self.count += 1;
        }
    }

    fn median(&mut self) -> Option<Duration> {
        let took = &mut self.took[..self.count];
        took.sort_unstable();
        (took.len() >= FEWEST).then(|| took[took.len() / 2])
    }
}

impl Intervals {
    /// A body of that length is about to be sent that way.
    pub(crate) fn sent(&mut self, length: u64, is_lent: bool, at: Instant) {
        let before = self.last.filter(|last| last.length == length);
        match before {
            None => *self = Intervals::default(),
            Some(last) if last.is_like_before => {
                let way = match last.is_lent {
                    true => &mut self.lent,
                    false => &mut self.copied,
                };
                way.add(at.saturating_duration_since(last.at));
            }
            Some(_) => {}
        }
        self.last = Some(Sent {
            at,
            length,
            is_lent,
            is_like_before: before.is_some_and(|last| last.is_lent == is_lent),
        });
    }

    /// The medians of bodies that were copied, and of those that were lent, of the row that ends.
    pub(crate) fn take(&mut self) -> Option<[Duration; 2]> {
        let mut row = std::mem::take(self);
        Some([row.copied.median()?, row.lent.median()?])
    }
}

/// Whether intervals between bodies that take so many ns hold so much else that they show nothing.
pub(crate) fn is_mostly_else(took: [Duration; 2], ns: f32) -> bool {
    let [copied, lent] = took;
    copied.max(lent).as_nanos() as f32 > MOSTLY_ELSE * ns
}

/// What a lent body takes longer than a copied one, beside what was timed of both.
#[derive(Default, Debug)]
pub(crate) struct Untimed(f32);

impl Untimed {
    /// Bodies that were copied and lent, in this order, `took` so long with all else, and take so many
    /// ns by what was `timed`; a call of the system takes `call_ns`.
    pub(crate) fn add(&mut self, took: [Duration; 2], timed: [f32; 2], call_ns: f32) {
        if is_mostly_else(took, timed[0].max(timed[1])) {
            return;
        }
        let took = took.map(|took| took.as_nanos() as f32);
        let untimed = (took[1] - took[0]) - (timed[1] - timed[0]);
        let most = MOST_CALLS * call_ns;
        let average = self.0 + (untimed - self.0) * WEIGHT;
        self.0 = average.clamp(-most, most);
    }

    /// 0 until something is known.
    pub(crate) fn ns(&self) -> f32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of bodies, each so many ns before the next: the length, and whether it is lent.
    fn row(bodies: &[(u64, u64, bool)]) -> Option<[u64; 2]> {
        let mut intervals = Intervals::default();
        let mut at = Instant::now();
        for &(ns, length, is_lent) in bodies {
            intervals.sent(length, is_lent, at);
            at += Duration::from_nanos(ns);
        }
        let medians = intervals.take()?;
        Some(medians.map(|median| median.as_nanos() as u64))
    }

    #[test]
    fn bodies_of_both_ways_are_compared_by_their_medians_without_the_first_of_each() {
        let mut bodies = [(1000, 4096, false); 8].to_vec();
        bodies.extend([(1500, 4096, true); 9]);
        (bodies[0].0, bodies[3].0, bodies[8].0) = (50_000, 90_000, 70_000);
        assert_eq!(row(&bodies), Some([1000, 1500]));
    }

    #[test]
    fn bodies_of_another_length_or_all_of_one_way_say_nothing() {
        let mut bodies = [(1000, 4096, false); 8].to_vec();
        assert_eq!(row(&bodies), None);
        bodies.extend([(1500, 4096, true); 4]);
        bodies.extend([(1500, 8192, true); 4]);
        assert_eq!(row(&bodies), None);
    }

    #[test]
    fn a_row_that_was_taken_leaves_nothing() {
        let mut intervals = Intervals::default();
        for is_lent in [false, true] {
            (0..9).for_each(|_| intervals.sent(4096, is_lent, Instant::now()));
        }
        intervals.take();
        assert!(intervals.take().is_none());
    }
}
