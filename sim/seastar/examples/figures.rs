//! Prints the papers' points beside the simulated ones; with a figure's name, its
//! curves; with `constants`, every constant of every machine.
//!
//! ```text
//! cargo run --release -p lintel-sim-seastar --example figures
//! cargo run --release -p lintel-sim-seastar --example figures seed-001-3
//! ```
#![forbid(unsafe_code)]

use std::error::Error;

use lintel_sim_seastar::figures::{Figure, figure, table};
use lintel_sim_seastar::profile::PROFILES;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => table()?.iter().for_each(|row| println!("{row}")),
        Some("constants") => print_constants(),
        Some(name) => print_figure(name)?,
    }
    Ok(())
}

fn print_constants() {
    for profile in PROFILES {
        for (name, constant) in profile.constants() {
            let (value, unit, origin) = (constant.value, constant.unit, constant.origin);
            let profile = profile.name;
            println!(
                "{profile} {name} {value} {unit:?} {origin:?}: {}",
                constant.source
            );
        }
    }
}

fn print_figure(name: &str) -> Result<(), Box<dyn Error>> {
    let known = Figure::ALL.map(Figure::name).join(", ");
    let found = Figure::ALL.into_iter().find(|figure| figure.name() == name);
    let wanted = found.ok_or(format!("no figure is called {name}; there are {known}"))?;
    for curve in figure(wanted)? {
        println!("{} ({})", curve.label, curve.unit);
        for (x, y) in curve.points {
            println!("{x:>10} {y:>12.3}");
        }
    }
    Ok(())
}
