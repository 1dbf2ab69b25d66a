//! How long bytes get from one rank to another on a node: copy-in/copy-out through shared memory,
//! or a single copy by the system. Which is quicker, and from which length on, differs between
//! processors, and from second to second on a virtual machine. So it is measured: a rank
//! that gets bytes times it and publishes the averages, and one that gives some chooses by those.

use std::time::Duration;

/// How a rank gives its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    /// The giver copies its bytes into its shared memory, the getter out of that.
    CopyInCopyOut,
    /// The getter has the system copy them from where they are.
    SingleCopy,
}

/// Operations that are compared with each other: of lengths in a range, that combine or don't.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class {
    range: usize,
    combines: bool,
}

/// Bytes of a rank from which on there is a choice.
pub(crate) const MIN_CHOICE: u64 = 8 << 10;
/// Ranges of lengths, each twice as long as the one before; the last has no end.
pub(super) const RANGES: usize = 8;
/// Averages of a range: of both protocols, without combining and with.
const AVERAGES: usize = 4;

/// Operations of which some in a row take the other protocol all the same: it may be the quicker
/// one by now.
const EXPLORED: u32 = 256;
/// How many do, and how many are needed to know a protocol: the first ones that take it are slower, and
/// the very first ones touch new pages.
const IN_A_ROW: u32 = 4;

/// How much of an average a sample replaces that is less, or more: whatever disturbs makes it more.
const WEIGHT_OF_LESS: f32 = 0.5;
const WEIGHT_OF_MORE: f32 = 0.1;
/// The part by which an average must change to be published again.
const CHANGE: f32 = 1.0 / 16.0;
/// The unit in which averages are published, ns for each KiB: 16 bits reach to 16 µs.
const UNIT_NS: f32 = 0.25;

impl Class {
    /// Of operations of so many bytes of a rank; none if there is no choice.
    pub(crate) fn of(bytes: u64, combines: bool) -> Option<Class> {
        let doublings = (bytes / MIN_CHOICE).checked_ilog2()?;
        Some(Class {
            range: RANGES.min(doublings as usize + 1) - 1,
            combines,
        })
    }

    /// Of operations that combine what they get.
    pub(crate) fn combines(self) -> bool {
        self.combines
    }

    /// The word that its averages are published in.
    pub(crate) fn word(self) -> u64 {
        self.range as u64
    }

    fn average(self, protocol: Protocol) -> usize {
        2 * usize::from(self.combines) + usize::from(protocol == Protocol::SingleCopy)
    }
}

/// What bytes have cost this rank that it got.
#[derive(Default)]
pub(crate) struct Measured([[Average; AVERAGES]; RANGES]);

/// ns for each KiB.
#[derive(Clone, Copy, Default)]
struct Average {
    ns: f32,
    /// As far as that counts.
    samples: u32,
    /// 0 until it is known.
    published: f32,
}

impl Measured {
    /// So many bytes have taken so long. Returns what to publish in the class's word, if it has
    /// changed.
    pub(crate) fn add(
        &mut self,
        class: Class,
        protocol: Protocol,
        (bytes, took): (u64, Duration),
    ) -> Option<u64> {
        let averages = &mut self.0[class.range];
        let average = &mut averages[class.average(protocol)];
        average.add((took.as_nanos() as f32 * 1024.0 / bytes as f32).max(UNIT_NS));
        let change = (average.ns - average.published).abs();
        if average.samples < IN_A_ROW || change <= average.published * CHANGE {
            return None;
        }
        average.published = average.ns;
        Some(published_word(averages.map(|average| average.published)))
    }
}

impl Average {
    /// The least of the first samples. A later one that was interrupted counts for no more than
    /// four times the average.
    fn add(&mut self, sample: f32) {
        let known = self.ns;
        self.ns = match self.samples {
            0 => sample,
            1..IN_A_ROW => known.min(sample),
            _ if sample < known => known + (sample - known) * WEIGHT_OF_LESS,
            _ => known + (sample.min(4.0 * known) - known) * WEIGHT_OF_MORE,
        };
        self.samples = IN_A_ROW.min(self.samples + 1);
    }
}

fn published_word(averages: [f32; AVERAGES]) -> u64 {
    // One that costs next to nothing is known, too.
    let units = |ns: f32| match ns > 0.0 {
        true => ((ns / UNIT_NS) as u16).max(1),
        false => 0,
    };
    let [a, b, c, d] = averages.map(|ns| u64::from(units(ns)));
    a | b << 16 | c << 32 | d << 48
}

/// By what a rank chooses.
pub(crate) struct Choice {
    /// Bytes beyond which there is a single copy, if the user says so.
    eager: Option<u64>,
    /// How often it has chosen in each class.
    chosen: [[u32; 2]; RANGES],
}

impl Choice {
    pub(crate) fn new(eager: Option<u64>) -> Choice {
        Choice {
            eager,
            chosen: Default::default(),
        }
    }

    /// The protocol for an operation of so many bytes, if the user has said which.
    pub(crate) fn set(&self, bytes: u64) -> Option<Protocol> {
        self.eager.map(|eager| match bytes > eager {
            true => Protocol::SingleCopy,
            false => Protocol::CopyInCopyOut,
        })
    }

    /// The protocol for an operation of that class. `published` is what each rank that gets
    /// them has in the class's word: another process's, which may only mislead about what is quicker.
    pub(crate) fn protocol(
        &mut self,
        class: Class,
        published: impl Iterator<Item = u64>,
    ) -> Protocol {
        let (mut copies, mut single) = (0, 0);
        for word in published {
            let units = |protocol| u64::from((word >> (16 * class.average(protocol))) as u16);
            match (units(Protocol::CopyInCopyOut), units(Protocol::SingleCopy)) {
                // What isn't known is tried.
                (0, _) => return Protocol::CopyInCopyOut,
                (_, 0) => return Protocol::SingleCopy,
                (in_and_out, once) => (copies, single) = (copies + in_and_out, single + once),
            }
        }
        let chosen = &mut self.chosen[class.range][usize::from(class.combines)];
        *chosen = chosen.wrapping_add(1);
        let explores = *chosen % EXPLORED >= EXPLORED - IN_A_ROW;
        match (single < copies) != explores {
            true => Protocol::SingleCopy,
            false => Protocol::CopyInCopyOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::{CopyInCopyOut, SingleCopy};

    const BYTES: u64 = 64 << 10;

    fn class() -> Class {
        Class::of(BYTES, false).unwrap()
    }

    /// A getter's word after operations of so many ns for each protocol, several of each.
    fn word(samples: &[(Protocol, u64)]) -> u64 {
        let mut measured = Measured::default();
        let each = samples
            .iter()
            .flat_map(|sample| [sample; IN_A_ROW as usize]);
        let add = |&(protocol, ns): &(_, u64)| {
            measured.add(class(), protocol, (BYTES, Duration::from_nanos(ns)))
        };
        each.filter_map(add).last().unwrap_or(0)
    }

    fn chosen(choice: &mut Choice, words: &[u64]) -> Protocol {
        choice.protocol(class(), words.iter().copied())
    }

    #[test]
    fn lengths_have_a_class_from_the_least_on() {
        assert_eq!(Class::of(MIN_CHOICE - 1, true), None);
        let range = |bytes| Class::of(bytes, true).unwrap().range;
        assert_eq!(
            [8, 15, 16, 1024, 1 << 20].map(|kib| range(kib << 10)),
            [0, 0, 1, 7, 7]
        );
    }

    #[test]
    fn what_is_not_known_is_tried_and_then_the_quicker_is_taken() {
        let mut choice = Choice::new(None);
        assert_eq!(chosen(&mut choice, &[0]), CopyInCopyOut);
        let one = word(&[(CopyInCopyOut, 9000)]);
        assert_eq!(chosen(&mut choice, &[one]), SingleCopy);
        let slower = word(&[(CopyInCopyOut, 9000), (SingleCopy, 12_000)]);
        assert_eq!(chosen(&mut choice, &[slower]), CopyInCopyOut);
        let quicker = word(&[(CopyInCopyOut, 9000), (SingleCopy, 6000)]);
        assert_eq!(chosen(&mut choice, &[quicker]), SingleCopy);
        // All that get the bytes count.
        assert_eq!(chosen(&mut choice, &[quicker, one]), SingleCopy);
        assert_eq!(chosen(&mut choice, &[slower, quicker]), CopyInCopyOut);
    }

    #[test]
    fn the_slower_protocol_is_taken_now_and_then() {
        let mut choice = Choice::new(None);
        let slower = [word(&[(CopyInCopyOut, 9000), (SingleCopy, 90_000)])];
        let is_single = |_| chosen(&mut choice, &slower) == SingleCopy;
        let single = (0..EXPLORED)
            .map(is_single)
            .filter(|single| *single)
            .count();
        assert_eq!(single as u32, IN_A_ROW);
    }

    #[test]
    fn an_average_follows_what_is_measured_and_little_of_what_interrupts() {
        let mut average = Average::default();
        for sample in [900.0, 100.0, 100.0, 120.0] {
            average.add(sample);
        }
        assert_eq!(average.ns, 100.0, "the first ones touch new pages");
        average.add(1e6);
        assert!(average.ns < 150.0);
        (0..20).for_each(|_| average.add(30.0));
        assert!(average.ns < 31.0);
    }

    #[test]
    fn an_average_is_published_once_it_is_known_and_when_it_has_changed() {
        let mut known = Measured::default();
        let mut add = |ns| known.add(class(), SingleCopy, (BYTES, Duration::from_nanos(ns)));
        let published = [9000, 5000, 5000, 5000, 5001].map(|ns| add(ns).is_some());
        assert_eq!(published, [false, false, false, true, false]);
        assert!(add(50_000).is_some());
    }

    #[test]
    fn combining_and_moving_are_measured_apart() {
        let mut measured = Measured::default();
        let combining = Class::of(BYTES, true).unwrap();
        let took = Duration::from_micros(9);
        let add = |_| measured.add(combining, CopyInCopyOut, (BYTES, took));
        let word = (0..IN_A_ROW).filter_map(add).last().unwrap();
        let mut choice = Choice::new(None);
        assert_eq!(chosen(&mut choice, &[word]), CopyInCopyOut);
        let published = std::iter::once(word);
        let protocol = choice.protocol(combining, published);
        assert_eq!(protocol, SingleCopy);
    }

    #[test]
    fn a_length_that_is_set_decides() {
        let choice = Choice::new(Some(BYTES));
        assert_eq!(choice.set(BYTES), Some(CopyInCopyOut));
        assert_eq!(choice.set(BYTES + 1), Some(SingleCopy));
        assert_eq!(Choice::new(None).set(BYTES), None);
    }
}
