//! How many points were fitted, counted by what constants do and not by their labels.
//!
//! A point that comes out to a thousandth, and moves with a constant that nobody has
//! published, was fitted, or is a coincidence that has to be declared here.

use lintel_sim_seastar::Profile;
use lintel_sim_seastar::figures::{How, Machines, On, Point, Published, pairs};
use lintel_sim_seastar::profile::{Constant, Origin};

/// Points that say something: no constant says them, no choice of ours.
fn stated() -> impl Iterator<Item = &'static Point> {
    let is_stated = |point: &&Point| point.how != How::Set && point.how != How::Depends;
    pairs().filter(is_stated)
}

/// How near a simulated point comes to what is printed: the value, or an end of the range.
fn distance(published: Published, simulated: f64) -> f64 {
    let from = |value: f64| (simulated / value - 1.0).abs();
    match published {
        Published::Value(value) | Published::Over(value) => from(value),
        Published::AtLeast(end) | Published::AtMost(end) => from(end),
        Published::Between(low, high) => from(low).min(from(high)),
    }
}

fn simulated(point: &Point, machines: &Machines) -> f64 {
    (point.measure)(machines).expect("the benchmark runs")
}

/// Points that come out as they are printed.
fn exact() -> Vec<&'static Point> {
    let is_exact =
        |point: &&Point| distance(point.published, simulated(point, &Machines::PUBLISHED)) < 1e-3;
    stated().filter(is_exact).collect()
}

fn unpublished(profile: &Profile) -> Vec<(&'static str, Constant)> {
    let mut all = profile.constants();
    all.retain(|(_, constant)| constant.origin != Origin::Published && constant.value > 0);
    all
}

/// The machines with one constant a tenth larger, and by one at least.
fn with_more(on: On, name: &str, constant: Constant) -> Machines {
    let mut machines = Machines::PUBLISHED;
    let value = constant.value + (constant.value / 10).max(1);
    let changed = machines.profile(on).with(name, value);
    let changed = changed.expect("there is such a constant");
    match on {
        On::RedStorm => machines.red_storm = changed,
        On::Upgraded => machines.upgraded = changed,
        On::Xt5 => machines.xt5 = changed,
    }
    machines
}

/// Whether a constant moves a point by more than a thousandth.
fn moves(point: &Point, (name, constant): (&str, Constant)) -> bool {
    let before = simulated(point, &Machines::PUBLISHED);
    let after = simulated(point, &with_more(point.on, name, constant));
    (after / before - 1.0).abs() > 1e-3
}

/// Points that are exact for another reason than a constant of their own.
const CONSEQUENCES: &[&str] = &[
    // Whatever limits both classes alike.
    "CCI, RO's rate of UU's, 4 KB",
];

#[test]
fn each_point_that_comes_out_exactly_is_a_fit_by_a_constant_of_its_own() {
    let mut exact = exact();
    exact.retain(|point| !CONSEQUENCES.contains(&point.what));
    let of_fitted = |point: &&Point| point.how == How::Fitted;
    let fitted: Vec<&str> = stated().filter(of_fitted).map(|p| p.what).collect();
    let names: Vec<&str> = exact.iter().map(|point| point.what).collect();
    assert_eq!(names, fitted);
    for point in &exact {
        let mut constants = unpublished(Machines::PUBLISHED.profile(point.on));
        constants.retain(|(_, constant)| constant.origin == Origin::Fitted);
        let any = constants.into_iter().any(|c| moves(point, c));
        assert!(any, "{} hangs on no fitted constant", point.what);
    }
    assert_eq!(exact.len(), FITS);
}

/// One on Red Storm, three on the XT5.
const FITS: usize = 4;

#[test]
fn as_many_constants_are_called_fitted_as_points() {
    let labelled: usize = [On::RedStorm, On::Xt5]
        .into_iter()
        .map(|on| unpublished(Machines::PUBLISHED.profile(on)))
        .map(|all| all.iter().filter(|c| c.1.origin == Origin::Fitted).count())
        .sum();
    assert_eq!(labelled, FITS);
}
