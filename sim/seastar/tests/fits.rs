//! How many points were fitted, counted by what constants do and not by their labels.
//!
//! A point that comes out to a thousandth, and moves with a constant that nobody has
//! published, was fitted, or is a coincidence that has to be declared here.

use lintel_sim_seastar::Profile;
use lintel_sim_seastar::figures::{How, Machines, On, Point, Published, pairs};
use lintel_sim_seastar::profile::{Constant, Origin};

/// Points that are stated as a number, so that they can come out exactly.
fn stated() -> impl Iterator<Item = &'static Point> {
    let is_number = |point: &&Point| {
        matches!(point.published, Published::Value(_) | Published::Over(_))
            && point.how != How::Set
            && point.how != How::Depends
    };
    pairs().filter(is_number)
}

fn simulated(point: &Point, machines: &Machines) -> f64 {
    (point.measure)(machines).expect("the benchmark runs")
}

/// Points that come out as they are printed.
fn exact() -> Vec<&'static Point> {
    let is_exact = |point: &&Point| {
        let off = point
            .published
            .difference(simulated(point, &Machines::PUBLISHED));
        off.abs() < 1e-3
    };
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
        On::Xt5 => machines.xt5 = changed,
    }
    machines
}

/// Constants nobody has published that move a point by more than a thousandth.
fn movers(point: &Point) -> Vec<&'static str> {
    let before = simulated(point, &Machines::PUBLISHED);
    let all = unpublished(Machines::PUBLISHED.profile(point.on));
    let moves = |&(name, constant): &(&'static str, Constant)| {
        let after = simulated(point, &with_more(point.on, name, constant));
        (after / before - 1.0).abs() > 1e-3
    };
    all.into_iter()
        .filter(moves)
        .map(|(name, _)| name)
        .collect()
}

/// Points that are exact for another reason than a constant of their own.
const CONSEQUENCES: &[&str] = &[
    // The same rate as with 8 bytes, to which it is fitted: S4 gives one number for both.
    "CCI UU, 1 KB",
    // Whatever limits both classes alike.
    "CCI, RO's rate of UU's, 4 KB",
];

#[test]
fn points_that_come_out_exactly_are_those_that_are_called_fitted() {
    let fitted: Vec<&str> = stated()
        .filter(|point| point.how == How::Fitted)
        .map(|point| point.what)
        .collect();
    let mut exact: Vec<&str> = exact().into_iter().map(|point| point.what).collect();
    exact.retain(|what| !CONSEQUENCES.contains(what));
    assert_eq!(exact, fitted);
}

#[test]
fn each_exact_point_hangs_on_unpublished_constants_and_there_are_few() {
    let mut fits = 0;
    for point in exact() {
        if CONSEQUENCES.contains(&point.what) {
            continue;
        }
        let movers = movers(point);
        fits += usize::from(!movers.is_empty());
        let labelled = unpublished(Machines::PUBLISHED.profile(point.on));
        let labelled = labelled
            .iter()
            .filter(|(_, constant)| constant.origin == Origin::Fitted);
        let of_this: Vec<&str> = labelled
            .map(|&(name, _)| name)
            .filter(|name| movers.contains(name))
            .collect();
        assert!(!of_this.is_empty(), "{}: {movers:?}", point.what);
    }
    assert_eq!(fits, FITS);
}

/// Two on Red Storm, three on the XT5.
const FITS: usize = 5;

#[test]
fn as_many_constants_are_called_fitted_as_points() {
    let labelled: usize = [On::RedStorm, On::Xt5]
        .into_iter()
        .map(|on| unpublished(Machines::PUBLISHED.profile(on)))
        .map(|all| all.iter().filter(|c| c.1.origin == Origin::Fitted).count())
        .sum();
    assert_eq!(labelled, FITS);
}
