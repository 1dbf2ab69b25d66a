//! Points that many nodes show: RandomAccess (S0).

use super::in_us;
use super::point::Published::Value;
use super::point::{How, Machines, On, Point};
use crate::node::{Mode, Placement, Refused};
use crate::workload::{Case, RandomAccess, random_access};

/// S0 states neither the number of nodes nor the program, and either decides the gain: with
/// HPCC's loop, as it is here, a few percent on 8 nodes and twice as fast on 256 and more.
/// The gains themselves are therefore a figure; the row is their ratio.
pub(super) const POINTS: &[Point] = &[Point::new(
    On::Upgraded,
    (
        "S0",
        "RandomAccess, VN's gain over SN's, 32 nodes (our count)",
        "",
    ),
    Value(90.0 / 27.0),
    |m| {
        let gain = |placement| gain_on(m, placement, [4, 4, 2]);
        Ok(gain(Placement::Virtual)? / gain(Placement::Single)?)
    },
)
.is(How::Depends)];

/// What accelerated mode gains in RandomAccess, in percent.
pub(super) fn gain_on(
    m: &Machines,
    placement: Placement,
    dimensions: [u16; 3],
) -> Result<f64, Refused> {
    let run = RandomAccess {
        dimensions,
        ..RandomAccess::RED_STORM
    };
    let time = |mode| {
        let mut case: Case = m.upgraded(mode);
        case.setting.placement = placement;
        random_access(&case, run).map(in_us)
    };
    Ok(100.0 * (time(Mode::Generic)? / time(Mode::Accelerated)? - 1.0))
}
