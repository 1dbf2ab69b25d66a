//! Generic against accelerated, with one process a node and with two, on one sheet
//! as in the studies of SeaStar: latency of small messages, bandwidth of all.

use super::super::chart::{Figure, Scale, Series, Stroke};
use super::place;
use crate::report::Row;
use crate::report::names;

/// Its panels, side by side.
pub fn sheet(rows: &[Row]) -> [Figure; 2] {
    let mut latency = Figure::over_size(
        "Ping-pong between two nodes: latency",
        "half round trip (µs)",
        Scale::Linear,
    );
    let mut bandwidth = Figure::over_size(
        "Ping-pong between two nodes: bandwidth",
        "bandwidth of all pairs (MB/s)",
        Scale::Linear,
    );
    for (colour, placement) in PLACEMENTS.into_iter().enumerate() {
        for (dash, (form, long)) in FORMS.into_iter().enumerate() {
            let variant = format!("{placement}, {form}");
            let label = format!("{variant} ({long})");
            let stroke = Stroke::Styled { colour, dash };
            let own = |row: &&Row| row.benchmark == names::PLACEMENTS && row.variant == variant;
            let points = |keep: fn(&Row) -> Option<f64>| {
                let own = rows.iter().filter(own);
                own.filter_map(|row| Some((place(row.bytes), keep(row)?)))
                    .collect()
            };
            let small = |row: &Row| row.median_us().filter(|_| row.bytes <= SMALL);
            latency.add(Series::new(&label, stroke, points(small)));
            let mb_per_s = |row: &Row| row.gb_per_s.map(|gb| gb * 1e3);
            bandwidth.add(Series::new(&label, stroke, points(mb_per_s)));
        }
    }
    [latency, bandwidth]
}

const PLACEMENTS: [&str; 2] = ["accelerated", "generic"];
const FORMS: [(&str, &str); 2] = [("SN", "one process a node"), ("VN", "two")];
/// Where latency ends, in bytes.
const SMALL: u64 = 8 << 10;
