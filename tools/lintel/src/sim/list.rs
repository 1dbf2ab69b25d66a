//! What there is to simulate.

use std::fmt::Write;

use lintel_sim_scenario::{Workloads, models, workloads};
use lintel_sim_seastar::profile::PROFILES;

use super::figures;
use crate::report::aligned;

/// Models, workloads, profiles and figures.
pub fn text() -> String {
    let mut out = String::new();
    let models = models().iter().map(|model| vec![&model.name, &model.about]);
    section(&mut out, "models (machine.model)", models);
    for Workloads { models, kinds } in workloads() {
        let title = format!("workloads of {models} (workload.kind), with their settings");
        section(
            &mut out,
            &title,
            kinds.iter().map(|(kind, about)| vec![kind, about]),
        );
    }
    let profiles = PROFILES.iter().map(|profile| vec![&profile.name]);
    section(&mut out, "profiles (machine.profile)", profiles);
    let figures = figures::list();
    let figures = figures
        .iter()
        .map(|figure| vec![&figure.name, &figure.title]);
    section(&mut out, "figures (lintel sim figure NAME)", figures);
    out.push_str("Scenarios are TOML files; examples/scenarios has some, installed in share/doc/lintel/scenarios.\n");
    out
}

fn section<'a>(out: &mut String, title: &str, lines: impl Iterator<Item = Vec<&'a &'a str>>) {
    let lines: Vec<Vec<String>> = lines
        .map(|line| line.into_iter().map(|word| word.to_string()).collect())
        .collect();
    let columns = lines.first().map_or(0, Vec::len);
    let _ = write!(out, "{title}\n{}\n", aligned(&lines, &vec![true; columns]));
}
