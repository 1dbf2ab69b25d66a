//! Any text is a schedule or a mistake in one of its lines; a schedule survives its
//! text, and ends or says what it leaves undone.

use lintel_sim_goal::{Goal, Hosts, LogGp, run, without_comments};
use lintel_sim_kernel::Duration;

/// So many ranks take no more memory than a fuzzer has.
const MOST_RANKS: u64 = 10_000;

pub fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let bare = without_comments(text).unwrap_or_default();
    if bare
        .split("num_ranks")
        .skip(1)
        .any(|rest| first_number(rest) > MOST_RANKS)
    {
        return;
    }
    let goal = match Goal::parse(text) {
        Ok(goal) => goal,
        Err(mistake) => {
            let lines = 1..=text.lines().count().max(1);
            assert!(lines.contains(&mistake.line), "{mistake}");
            return;
        }
    };
    assert_eq!(Goal::parse(&goal.to_string()).as_ref(), Ok(&goal));
    let hosts = Hosts {
        eager: 64,
        ..Hosts::LOGGOPSIM
    };
    let wire = LogGp::new(Duration::from_ns(2_500)).per_byte(Duration::from_ns(6));
    if let Err(error) = run(&goal, hosts, wire) {
        assert!(!error.to_string().is_empty());
    }
}

fn first_number(text: &str) -> u64 {
    let mut words = text.split(|c: char| !c.is_ascii_digit());
    let first = words.find(|word| !word.is_empty()).unwrap_or("0");
    first.parse().unwrap_or(u64::MAX)
}
