//! Memory's bandwidth, shared evenly by the copies under way.
//!
//! Each copy goes as fast as one can by itself, or as fast as its share of the
//! bus, whichever is less. All copies therefore go equally fast, and one number
//! says how far each has got: the bytes that a copy would have had that was
//! there from the start. A copy is done when that number has grown by its bytes.
//!
//! When a copy begins or ends, the others' ends move. [`Bus::due`] names the next
//! end, with a version that shows later whether it is still valid.

use std::collections::BTreeSet;

use lintel_sim_kernel::{Bandwidth, Bytes, Duration, SimTime};

/// A second in picoseconds: a byte is so many of the bus's own units, so that
/// what flows in a picosecond is a whole number.
const UNITS: u128 = 1_000_000_000_000;

/// The bandwidth of a node's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusParameters {
    /// What all copies get together.
    pub all: Bandwidth,
    /// What one gets at most.
    pub each: Bandwidth,
}

/// A copy under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Copy(u64);

/// When the next copy ends, if nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When [`Bus::on_due`] is to be called.
    pub when: SimTime,
    /// Goes with it to [`Bus::on_due`].
    pub version: u64,
}

/// A node's memory bus, with the copies under way.
#[derive(Clone, Debug)]
pub struct Bus {
    parameters: BusParameters,
    /// Copies by the progress at which they are done, then by age.
    copies: BTreeSet<(u128, Copy)>,
    /// What each copy has got that was there from the start.
    progress: u128,
    since: SimTime,
    begun: u64,
    version: u64,
}

impl Bus {
    /// A bus without copies.
    pub const fn new(parameters: BusParameters) -> Self {
        Bus {
            parameters,
            copies: BTreeSet::new(),
            progress: 0,
            since: SimTime::START,
            begun: 0,
            version: 0,
        }
    }

    /// Starts a copy; [`Bus::due`] names another time afterwards.
    pub fn begin(&mut self, now: SimTime, bytes: Bytes) -> Copy {
        self.catch_up(now);
        let copy = Copy(self.begun);
        self.begun += 1;
        self.version += 1;
        let end = self.progress + u128::from(bytes.0) * UNITS;
        self.copies.insert((end, copy));
        copy
    }

    /// When the next copy ends; none if there is none.
    pub fn due(&self) -> Option<Due> {
        let &(end, _) = self.copies.first()?;
        let left = end.saturating_sub(self.progress).div_ceil(self.rate());
        let left = u64::try_from(left).expect("a copy ends within 213 days");
        Some(Due {
            when: self.since + Duration::from_ps(left),
            version: self.version,
        })
    }

    /// A time that `due` named has come. Takes a copy that is done, in the order
    /// of their beginning among those done at once; none if that time has been
    /// overtaken. Look at `due` again afterwards.
    pub fn on_due(&mut self, now: SimTime, version: u64) -> Option<Copy> {
        if version != self.version {
            return None;
        }
        self.catch_up(now);
        let &(end, copy) = self.copies.first()?;
        if end > self.progress {
            return None;
        }
        self.copies.pop_first();
        self.version += 1;
        Some(copy)
    }

    /// Units a picosecond of each copy. A share's part of a byte per second is
    /// lost.
    fn rate(&self) -> u128 {
        let copies = self.copies.len().max(1) as u64;
        let share = self.parameters.all.bytes_per_second() / copies;
        u128::from(share.min(self.parameters.each.bytes_per_second()).max(1))
    }

    fn catch_up(&mut self, now: SimTime) {
        self.progress += u128::from(now.since(self.since).as_ps()) * self.rate();
        self.since = now;
    }
}
