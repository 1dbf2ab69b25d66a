//! The operations of libptlcoll over size, in both placements: a panel for each number of
//! ranks.

use std::collections::BTreeSet;

use super::super::chart::{Figure, Scale, Series, Stroke};
use super::place;
use crate::report::Row;
use crate::report::names::{COLLECTIVES, OPERATIONS, collective_variant};

/// Its panels, side by side; none without rows.
pub fn sheet(rows: &[Row]) -> Vec<Figure> {
    let own = rows.iter().filter(|row| row.benchmark == COLLECTIVES);
    let ranks = own.filter_map(|row| Some(*row.figures.get("ranks")? as u32));
    let ranks: BTreeSet<u32> = ranks.collect();
    ranks.into_iter().map(|ranks| panel(rows, ranks)).collect()
}

fn panel(rows: &[Row], ranks: u32) -> Figure {
    let title = format!("Collective operations of {ranks} ranks");
    let mut figure = Figure::over_size(&title, "time of rank 0 (µs)", Scale::Log);
    for (colour, name) in OPERATIONS.into_iter().enumerate() {
        for (dash, placement) in PLACEMENTS.into_iter().enumerate() {
            let wanted = collective_variant(name, ranks, placement);
            let own = |row: &&Row| row.benchmark == COLLECTIVES && row.variant == wanted;
            let point = |row: &Row| Some((place(row.bytes), row.median_us()?));
            let points = rows.iter().filter(own).filter_map(point).collect();
            let label = format!("{name}, {placement}");
            figure.add(Series::new(&label, Stroke::Styled { colour, dash }, points));
        }
    }
    figure
}

/// A dash for each.
const PLACEMENTS: [&str; 2] = ["offloaded", "host"];
