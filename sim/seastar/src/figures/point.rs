//! A published point: what a document says, and how it is simulated.

use std::fmt;

use crate::node::{Mode, Refused};
use crate::profile::{Profile, RED_STORM_2005, RED_STORM_2006, XT5_2009};
use crate::workload::Case;

/// What a document says of a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Published {
    /// A value, in the row's unit.
    Value(f64),
    /// "Over" or "more than" so much. The distance is that from the value: a result far
    /// above it is as wrong as one far below.
    Over(f64),
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
    /// A range, both ends included.
    Between(f64, f64),
}

use Published::{AtLeast, AtMost, Between, Over, Value};

/// How a simulated point comes about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// A constant was chosen so that it comes out.
    Fitted,
    /// A constant was chosen so that it comes out, as for every point of its model, which
    /// therefore predicts none.
    Calibrated,
    /// A constant says it, or it follows from a fitted row by construction.
    Set,
    /// By the model alone: no constant was fitted to it.
    Predicted,
    /// It depends on a count, a program or a criterion that no document states, and that
    /// was chosen here.
    Depends,
    /// The reference is no publication but a run of a public simulator: code agrees with
    /// code.
    Regenerated,
}

/// The machines that points are simulated on. [`Machines::PUBLISHED`] has the constants of
/// [`crate::profile`]; a test changes one constant and looks which points move.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    /// The constants of Red Storm in 2005.
    pub red_storm: Profile,
    /// The constants of Red Storm after its upgrade of 2006.
    pub upgraded: Profile,
    /// The constants of the Cray XT5.
    pub xt5: Profile,
}

/// Which of the [`Machines`] a point is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum On {
    /// The constants of Red Storm in 2005.
    RedStorm,
    /// The constants of Red Storm after its upgrade of 2006.
    Upgraded,
    /// The constants of the Cray XT5.
    Xt5,
}

/// A published point, and how to simulate it.
#[derive(Clone, Copy)]
pub struct Point {
    /// The publication and the place in it.
    pub source: &'static str,
    /// The machine whose constants are published or fitted for it.
    pub on: On,
    /// The quantity that was measured.
    pub what: &'static str,
    /// The unit of both values.
    pub unit: &'static str,
    /// What the document says.
    pub published: Published,
    /// How the simulated value comes about.
    pub how: How,
    /// Why it misses by more than a tenth, if it does.
    pub cause: &'static str,
    /// Simulates the point; its value is in the unit of the figure.
    pub measure: fn(&Machines) -> Result<f64, Refused>,
}

/// A published point and its simulated one.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The publication and the place in it.
    pub source: &'static str,
    /// The name of the profile that was simulated.
    pub profile: &'static str,
    /// The quantity that was measured.
    pub what: &'static str,
    /// The unit of both values.
    pub unit: &'static str,
    /// What the document says.
    pub published: Published,
    /// What the simulation says.
    pub simulated: f64,
    /// How it comes to say so.
    pub how: How,
    /// Why it misses by more than a tenth, if it does.
    pub cause: &'static str,
}

impl Machines {
    /// The machines of the papers.
    pub const PUBLISHED: Machines = Machines {
        red_storm: RED_STORM_2005,
        upgraded: RED_STORM_2006,
        xt5: XT5_2009,
    };

    /// The constants of the machine that a point runs on.
    pub fn profile(&self, on: On) -> &Profile {
        match on {
            On::RedStorm => &self.red_storm,
            On::Upgraded => &self.upgraded,
            On::Xt5 => &self.xt5,
        }
    }

    pub(super) fn red_storm(&self) -> Case {
        Case::new(self.red_storm, Mode::Generic)
    }

    pub(super) fn upgraded(&self, mode: Mode) -> Case {
        Case::new(self.upgraded, mode)
    }

    pub(super) fn xt5(&self) -> Case {
        Case::new(self.xt5, Mode::Generic)
    }

    pub(super) fn xt5_cci(&self) -> Case {
        Case::new(self.xt5, Mode::Cci)
    }
}

impl Point {
    /// A point that the model predicts.
    pub(super) const fn new(
        on: On,
        (source, what, unit): (&'static str, &'static str, &'static str),
        published: Published,
        measure: fn(&Machines) -> Result<f64, Refused>,
    ) -> Self {
        Point {
            source,
            on,
            what,
            unit,
            published,
            how: How::Predicted,
            cause: "",
            measure,
        }
    }

    /// The same, which comes about otherwise.
    pub(super) const fn is(mut self, how: How) -> Self {
        self.how = how;
        self
    }

    /// The same, with the reason why it misses.
    pub(super) const fn because(mut self, cause: &'static str) -> Self {
        self.cause = cause;
        self
    }

    /// Simulates it.
    ///
    /// # Errors
    /// A machine can't do the benchmark.
    pub fn row(&self, machines: &Machines) -> Result<Row, Refused> {
        Ok(Row {
            source: self.source,
            profile: machines.profile(self.on).name,
            what: self.what,
            unit: self.unit,
            published: self.published,
            simulated: (self.measure)(machines)?,
            how: self.how,
            cause: self.cause,
        })
    }
}

impl Row {
    /// How far the simulated point is from the published one, as a part of it.
    pub fn difference(&self) -> f64 {
        self.published.difference(self.simulated)
    }
}

impl Published {
    /// How far a simulated point is from the published one, as a part of it: 0 if
    /// it lies in the published range.
    pub fn difference(self, simulated: f64) -> f64 {
        let (low, high) = match self {
            Value(value) | Over(value) => (value, value),
            AtLeast(least) => (least, f64::INFINITY),
            AtMost(most) => (f64::NEG_INFINITY, most),
            Between(low, high) => (low, high),
        };
        let nearest = simulated.clamp(low, high);
        (simulated - nearest) / nearest
    }

    /// The same for people.
    pub fn off(self, simulated: f64) -> String {
        let percent = 100.0 * self.difference(simulated);
        match self {
            Value(_) | Over(_) if percent.abs() < 0.05 => "0.0 %".to_string(),
            AtLeast(_) | AtMost(_) | Between(..) if percent.abs() < 0.05 => "within".to_string(),
            _ => format!("{percent:+.1} %"),
        }
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Value(value) => number(value),
            Over(value) => format!("> {}", number(value)),
            AtLeast(least) => format!("≥ {}", number(least)),
            AtMost(most) => format!("≤ {}", number(most)),
            Between(low, high) => format!("{} … {}", number(low), number(high)),
        };
        f.pad(&text)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            How::Fitted => "fitted",
            How::Calibrated => "calibrated",
            How::Set => "set",
            How::Predicted => "predicted",
            How::Depends => "depends",
            How::Regenerated => "regenerated",
        })
    }
}

/// A line of the table.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            source,
            profile,
            what,
            unit,
            published,
            how,
            ..
        } = self;
        let (simulated, off) = (number(self.simulated), published.off(self.simulated));
        write!(
            f,
            "{source:11} {profile:13} {what:52} {published:>15} {simulated:>10} {unit:10} {off:>8} {how}"
        )
    }
}

/// With as many digits as are significant: two behind the point, three below 100.
pub fn number(value: f64) -> String {
    let digits = if value.abs() < 100.0 { 3 } else { 2 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
