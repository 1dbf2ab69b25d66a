//! Figures and points of the papers on SeaStar.

use lintel_sim_seastar::Refused;
use lintel_sim_seastar::figures::{self, Figure};

use super::{Compared, Curve, Drawing, Mark, Sheet};
use crate::error::{Error, Result};
use crate::plot::chart::Scale;

/// Each with its name.
pub fn figures() -> Vec<Drawing> {
    let drawing = |figure: Figure| Drawing {
        name: figure.name(),
        title: title(figure),
        draw: Box::new(move || sheet(figure)),
    };
    Figure::ALL.into_iter().map(drawing).collect()
}

/// All points of the papers.
pub fn points() -> Result<Vec<Compared>> {
    let refused = |refused: Refused| Error::Wrong(refused.to_string());
    let mut rows = figures::table().map_err(refused)?;
    rows.extend(figures::points_of_large_machines().map_err(refused)?);
    let compared = rows.iter().map(|row| Compared {
        source: format!("{}, {}", row.source, row.profile),
        what: row.what.into(),
        unit: unit(row.unit).into(),
        published: row.published.to_string(),
        simulated: row.simulated,
        difference: row.published.off(row.simulated),
        how: row.how,
        is_close: row.difference().abs() <= 0.1,
        cause: row.cause.into(),
    });
    Ok(compared.collect())
}

fn title(figure: Figure) -> &'static str {
    match figure {
        Figure::Latency => "Portals 3.3 on Red Storm: latency",
        Figure::Bandwidth => "Portals 3.3 on Red Storm: bandwidth",
        Figure::NetpipeLatency => "Portals 3.3 on Red Storm: NetPIPE latency",
        Figure::NetpipeBandwidth => "Portals 3.3 on Red Storm: NetPIPE bandwidth",
        Figure::CciLatency => "CCI and Portals on XT5: half a round trip",
        Figure::CciBandwidth => "CCI and Portals on XT5: streaming bandwidth",
        Figure::CciRate => "CCI and Portals on XT5: streaming message rate",
        Figure::Accelerated => "Matching by host and by NIC: latency",
        Figure::Throughput => "Matching by host and by NIC: throughput",
        Figure::RandomAccessGain => "RandomAccess (HPCC's loop): what matching by NIC gains",
        Figure::Entries => "Matching by host and by NIC: entries walked",
    }
}

fn sheet(figure: Figure) -> Result<Sheet> {
    let curves = figures::figure(figure).map_err(|refused| Error::Wrong(refused.to_string()))?;
    let what = match curves.first().map(|curve| unit(curve.unit)) {
        Some("µs") => "time (µs)",
        Some("MB/s") => "bandwidth (MB/s)",
        Some("messages/s") => "million messages a second",
        Some("%") => "gain (%)",
        _ => "",
    };
    let scale = match figure {
        Figure::CciRate => 1e-6,
        _ => 1.0,
    };
    let x = match figure {
        Figure::Entries => ("entries walked", Scale::Log),
        Figure::RandomAccessGain => ("nodes", Scale::Powers),
        _ => ("message size (bytes)", Scale::Sizes),
    };
    let height = match figure {
        // The curves cross where both are short.
        Figure::Entries => Scale::Log,
        _ => Scale::Linear,
    };
    let curves = curves.into_iter().map(|curve| Curve {
        label: curve.label.into(),
        // Sizes and counts are far below what a float holds exactly.
        points: curve
            .points
            .into_iter()
            .map(|(x, y)| (x as f64, scale * y))
            .collect(),
    });
    let scaled = |mark: Mark| Mark {
        y: scale * mark.y,
        ..mark
    };
    Ok(Sheet {
        x,
        y: (what.into(), height),
        curves: curves.collect(),
        undrawn: Vec::new(),
        published: published(figure).into_iter().map(scaled).collect(),
        reference: "published",
    })
}

/// Plain numbers of the papers' texts; their curves are in no copy of them.
fn published(figure: Figure) -> Vec<Mark> {
    let marks: &[(usize, f64, f64)] = match figure {
        Figure::Latency => &[(0, 0.0, 4.89), (1, 0.0, 6.09), (2, 0.0, 8.39)],
        Figure::Bandwidth => &[
            (0, 102_400.0, 1051.43),
            (1, 102_400.0, 1012.17),
            (0, 2_097_152.0, 1108.0),
        ],
        Figure::CciLatency => &[
            (0, 0.0, 2.83),
            (1, 0.0, 2.99),
            (0, 4_096.0, 4.99),
            (1, 4_096.0, 5.26),
        ],
        Figure::CciBandwidth => &[(0, 4_096.0, 2_000.0)],
        Figure::CciRate => &[(0, 8.0, 1e9 / 960.0), (1, 8.0, 640e3)],
        _ => &[],
    };
    let mark = |&(curve, x, y): &(usize, f64, f64)| Mark { curve, x, y };
    marks.iter().map(mark).collect()
}

/// As the other tables write it.
fn unit(unit: &'static str) -> &'static str {
    match unit {
        "us" => "µs",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_sim_seastar::figures::Published;

    #[test]
    fn points_drawn_in_are_those_of_the_table() {
        let rows = figures::points_of_pairs().expect("simulated");
        let values: Vec<f64> = rows
            .iter()
            .filter_map(|row| match row.published {
                Published::Value(value) | Published::Over(value) => Some(value),
                _ => None,
            })
            .collect();
        for figure in Figure::ALL {
            for Mark { y, .. } in published(figure) {
                assert!(values.contains(&y), "{y} of {}", figure.name());
            }
        }
    }
}
