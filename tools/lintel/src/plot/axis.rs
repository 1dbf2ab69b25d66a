//! Where values stand on an axis, and what is written beside it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::report::table_size;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at 0.
    Linear,
    /// By powers of ten.
    Log,
    /// By powers of eight, labelled as message sizes; 0 B stands at 0.5.
    Sizes,
    /// By powers of two, labelled as numbers; 0 stands at 0.5.
    Powers,
}

/// An axis laid out for given values. `low`, `high` and `ticks` are places, not values.
#[derive(Clone, Debug)]
pub struct Axis {
    scale: Scale,
    /// The value at the axis's beginning.
    pub low: f64,
    /// The value at the axis's end.
    pub high: f64,
    /// Where it is labelled.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// With room for every one of `values`.
    pub fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let span = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match scale {
            Scale::Linear => Self::linear(span.1),
            Scale::Log => Self::logarithmic(span),
            Scale::Sizes => Self::sizes(span),
            Scale::Powers => Self::powers(span),
        }
    }

    /// The coordinate of `value` on the axis.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Sizes | Scale::Powers => value.max(0.5).log2(),
        }
    }

    /// What is written at `place`.
    pub fn label(&self, place: f64) -> String {
        match self.scale {
            Scale::Linear => plain(place),
            Scale::Log => plain(10_f64.powf(place)),
            Scale::Sizes | Scale::Powers if place < 0.0 => "0".into(),
            Scale::Sizes => table_size(place.exp2().round() as u64),
            Scale::Powers => plain(place.exp2()),
        }
    }

    fn linear(highest: f64) -> Self {
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = round_step(highest / 6.0);
        let count = (highest * 1.02 / step).ceil();
        Self {
            scale: Scale::Linear,
            low: 0.0,
            high: step * count,
            ticks: (0..=count as u32).map(|i| f64::from(i) * step).collect(),
        }
    }

    /// Decades, and their 2 and 5 if there are few.
    fn logarithmic((low, high): (f64, f64)) -> Self {
        let (low, high) = ((low * 0.8).log10(), (high * 1.25).log10());
        let steps: &[f64] = if high - low > 3.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let decades = low.floor() as i32..=high.ceil() as i32;
        let ticks = decades
            .flat_map(|d| steps.iter().map(move |s| f64::from(d) + s.log10()))
            .filter(|tick| (low..=high).contains(tick))
            .collect();
        Self {
            scale: Scale::Log,
            low,
            high,
            ticks,
        }
    }

    fn sizes((low, high): (f64, f64)) -> Self {
        let (low, high) = (low.max(0.5).log2(), high.max(1.0).log2());
        let zero = (low < 0.0).then_some(-1.0);
        let powers = (0..=12).map(|i| f64::from(3 * i));
        let ticks = zero.into_iter().chain(powers);
        Self {
            scale: Scale::Sizes,
            low: low - 0.3,
            high: high + 0.3,
            ticks: ticks.filter(|&t| (low..=high).contains(&t)).collect(),
        }
    }

    /// Each power, or each second or third if there are many.
    fn powers((low, high): (f64, f64)) -> Self {
        let (low, high) = (low.max(0.5).log2(), high.max(1.0).log2());
        let step = ((high - low) / 8.0).ceil().max(1.0);
        let zero = (low < 0.0).then_some(-1.0);
        let powers = (0..=64).map(|tick| low.max(0.0).ceil() + f64::from(tick) * step);
        let ticks = zero.into_iter().chain(powers);
        Self {
            scale: Scale::Powers,
            low: low - 0.3,
            high: high + 0.3,
            ticks: ticks.take_while(|&tick| tick <= high).collect(),
        }
    }
}

// To the drawing library an axis is linear in places.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, pixels: (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        pixels.0 + (f64::from(pixels.1 - pixels.0) * share).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        plain(*place)
    }

    fn format_ext(&self, place: &f64) -> String {
        self.label(*place)
    }
}

/// The next of 1, 2, 5, 10, 20 … that is no less.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps
        .into_iter()
        .find(|&step| step >= least)
        .unwrap_or(least)
}

/// As few digits as the value needs.
fn plain(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axis_starts_at_nought_and_holds_the_highest() {
        let axis = Axis::new(Scale::Linear, [3.0, 17.0].into_iter());
        assert_eq!(axis.low, 0.0);
        assert!(axis.high >= 17.0 && axis.ticks.len() <= 9, "{axis:?}");
    }

    #[test]
    fn log_axis_is_labelled_with_plain_numbers() {
        let axis = Axis::new(Scale::Log, [0.1, 20.0].into_iter());
        let labels: Vec<String> = axis.ticks.iter().map(|&t| axis.label(t)).collect();
        assert_eq!(labels, ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]);
    }

    #[test]
    fn axis_of_powers_is_labelled_with_them() {
        let axis = Axis::new(Scale::Powers, [64.0, 4096.0].into_iter());
        let labels: Vec<String> = axis.ticks.iter().map(|&t| axis.label(t)).collect();
        assert_eq!(labels, ["64", "128", "256", "512", "1024", "2048", "4096"]);
    }

    #[test]
    fn axis_of_powers_has_a_place_for_nought() {
        let axis = Axis::new(Scale::Powers, [0.0, 1.0, 512.0].into_iter());
        let labels: Vec<String> = axis.ticks.iter().map(|&t| axis.label(t)).collect();
        assert_eq!(labels, ["0", "1", "4", "16", "64", "256"]);
    }

    #[test]
    fn size_axis_names_nothing_and_powers_of_eight() {
        let axis = Axis::new(Scale::Sizes, [0.5, 4096.0].into_iter());
        let labels: Vec<String> = axis.ticks.iter().map(|&t| axis.label(t)).collect();
        assert_eq!(labels, ["0", "1 B", "8 B", "64 B", "512 B", "4 KiB"]);
    }
}
