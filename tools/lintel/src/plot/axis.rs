//! Where values stand on an axis, and what is written beside it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::report::table_size;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at 0.
    Linear,
    /// By powers of ten; 0 stands before the smallest value.
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
    /// Where 0 stands on an axis that has no place for it by itself.
    zero: f64,
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
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        match scale {
            Scale::Linear => Self::linear(span(&values).map_or(1.0, |(_, high)| high)),
            Scale::Log => Self::logarithmic(&values),
            Scale::Sizes => Self::sizes(span(&values).unwrap_or((1.0, 1.0))),
            Scale::Powers => Self::powers(span(&values).unwrap_or((1.0, 1.0))),
        }
    }

    /// The coordinate of `value` on the axis.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log if value <= 0.0 => self.zero,
            Scale::Log => value.log10(),
            Scale::Sizes | Scale::Powers => value.max(0.5).log2(),
        }
    }

    /// What is written at `place`.
    pub fn label(&self, place: f64) -> String {
        match self.scale {
            Scale::Linear => plain(place),
            Scale::Log if place == self.zero => "0".into(),
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
            zero: 0.0,
            low: 0.0,
            high: step * count,
            ticks: (0..=count as u32).map(|i| f64::from(i) * step).collect(),
        }
    }

    /// Labelled at decades, at their 2 and 5 if there are few, or at round steps within one.
    /// Values that are 0 or less stand half a decade before the others.
    fn logarithmic(values: &[f64]) -> Self {
        let positive: Vec<f64> = values.iter().copied().filter(|&v| v > 0.0).collect();
        let (least, most) = span(&positive).unwrap_or((1.0, 1.0));
        let (low, high) = ((least * 0.8).log10(), (most * 1.25).log10());
        let zero = low - 0.5;
        let has_zero = positive.len() < values.len();
        let ticks = Self::log_ticks(low, high);
        Self {
            scale: Scale::Log,
            zero,
            low: if has_zero { zero - 0.1 } else { low },
            high,
            ticks: has_zero.then_some(zero).into_iter().chain(ticks).collect(),
        }
    }

    fn log_ticks(low: f64, high: f64) -> Vec<f64> {
        let decades = low.floor() as i32..=high.ceil() as i32;
        let of_decades = |steps: &[f64]| -> Vec<f64> {
            let ticks = decades.clone().flat_map(|decade| {
                let place = move |step: &f64| f64::from(decade) + step.log10();
                steps.iter().map(place).collect::<Vec<_>>()
            });
            ticks.filter(|tick| (low..=high).contains(tick)).collect()
        };
        if high - low > 3.5 {
            return of_decades(&[1.0]);
        }
        let ticks = of_decades(&[1.0, 2.0, 5.0]);
        if ticks.len() >= FEWEST_TICKS {
            return ticks;
        }
        let (low, high) = (10_f64.powf(low), 10_f64.powf(high));
        let step = round_step((high - low) / 6.0);
        let first = (low / step).ceil() as i64;
        let steps = (first..).map(|n| n as f64 * step);
        steps.take_while(|&v| v <= high).map(f64::log10).collect()
    }

    fn sizes((low, high): (f64, f64)) -> Self {
        let (low, high) = (low.max(0.5).log2(), high.max(1.0).log2());
        let zero = (low < 0.0).then_some(-1.0);
        let powers = (0..=12).map(|i| f64::from(3 * i));
        let ticks = zero.into_iter().chain(powers);
        Self {
            scale: Scale::Sizes,
            zero: -1.0,
            low: low - 0.3,
            high: high + 0.3,
            ticks: or_ends(ticks.filter(|&t| (low..=high).contains(&t)), low, high),
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
            zero: -1.0,
            low: low - 0.3,
            high: high + 0.3,
            ticks: or_ends(ticks.take_while(|&tick| tick <= high), low, high),
        }
    }
}

/// The ticks; between two powers, where there are none, the ends.
fn or_ends(ticks: impl Iterator<Item = f64>, low: f64, high: f64) -> Vec<f64> {
    let mut ticks: Vec<f64> = ticks.collect();
    if ticks.is_empty() {
        ticks.extend([low, high]);
        ticks.dedup();
    }
    ticks
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

/// Labels that an axis needs to be read.
const FEWEST_TICKS: usize = 3;

/// The least and the greatest of some values.
fn span(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    let widen = |(low, high): (f64, f64), &value: &f64| (low.min(value), high.max(value));
    Some(values.iter().fold((first, first), widen))
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

    /// Of all spans from a nanosecond to a day, with and without a zero; numbers and sizes begin
    /// at 1.
    #[test]
    fn every_axis_ends_holds_its_values_and_has_ticks_within() {
        let magnitudes = (-9..=14).flat_map(|tens| [1.0, 2.5, 9.99].map(|n| n * 10_f64.powi(tens)));
        let all: Vec<f64> = std::iter::once(0.0).chain(magnitudes).collect();
        for scale in [Scale::Linear, Scale::Log, Scale::Sizes, Scale::Powers] {
            let is_meant = |value: &f64| match scale {
                Scale::Linear | Scale::Log => true,
                Scale::Sizes | Scale::Powers => *value == 0.0 || *value >= 1.0,
            };
            let values: Vec<f64> = all.iter().copied().filter(is_meant).collect();
            for (at, &low) in values.iter().enumerate() {
                for &high in &values[at..] {
                    let axis = Axis::new(scale, [low, high].into_iter());
                    let case = format!("{scale:?} from {low} to {high}: {axis:?}");
                    let is_in = |place: &f64| (axis.low - 1e-9..=axis.high + 1e-9).contains(place);
                    assert!(
                        is_in(&axis.place(low)) && is_in(&axis.place(high)),
                        "{case}"
                    );
                    assert!(
                        !axis.ticks.is_empty() && axis.ticks.iter().all(is_in),
                        "{case}"
                    );
                    assert!(axis.ticks.len() < 100, "{case}");
                }
            }
        }
    }

    #[test]
    fn log_axis_is_labelled_with_plain_numbers() {
        let axis = Axis::new(Scale::Log, [0.1, 20.0].into_iter());
        let labels: Vec<String> = axis.ticks.iter().map(|&t| axis.label(t)).collect();
        assert_eq!(labels, ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]);
    }

    #[test]
    fn log_axis_gives_zeros_a_place_before_the_others() {
        for values in [vec![0.0, 10.0], vec![0.0], vec![-3.0, 0.0, 1e-9, 1e9]] {
            let axis = Axis::new(Scale::Log, values.iter().copied());
            assert_eq!(axis.label(axis.ticks[0]), "0", "{values:?}");
            assert!(axis.ticks.len() < 50, "{axis:?}");
            for value in values {
                let place = axis.place(value);
                assert!((axis.low..=axis.high).contains(&place), "{value} {axis:?}");
            }
        }
    }

    #[test]
    fn values_that_are_no_numbers_have_no_part_in_an_axis() {
        for scale in [Scale::Linear, Scale::Log, Scale::Sizes, Scale::Powers] {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, 100.0];
            let axis = Axis::new(scale, odd.into_iter());
            assert!(axis.low < axis.high && axis.high.is_finite(), "{axis:?}");
            assert!(axis.ticks.len() < 50, "{axis:?}");
            let none = Axis::new(scale, [].into_iter());
            assert!(none.low < none.high, "{none:?}");
        }
    }

    #[test]
    fn log_axis_over_less_than_a_decade_has_several_labels() {
        for values in [[0.48, 0.52], [3.0, 3.1], [7000.0, 8000.0]] {
            let axis = Axis::new(Scale::Log, values.into_iter());
            assert!((3..=9).contains(&axis.ticks.len()), "{axis:?}");
        }
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
