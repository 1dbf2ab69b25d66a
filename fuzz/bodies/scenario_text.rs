//! Any text is a scenario or a mistake that names what is wrong, in one of its lines.

use lintel_sim_scenario::Scenario;

pub fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Scenario::parse("fuzzed.toml", text) {
        Ok(scenario) => {
            assert!(!scenario.points.is_empty());
            let first = scenario.points[0].varied.len();
            assert!(
                scenario
                    .points
                    .iter()
                    .all(|point| point.varied.len() == first)
            );
        }
        Err(mistake) => {
            assert!(!mistake.what.is_empty());
            let lines = 1..=text.matches('\n').count() + 1;
            assert!(
                mistake.line.is_none_or(|line| lines.contains(&line)),
                "{mistake}"
            );
        }
    }
}
