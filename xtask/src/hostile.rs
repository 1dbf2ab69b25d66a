//! Random and mutated datagrams at the port of a process that talks to its peer.

use std::time::Duration;

use crate::report::Outcome;
use crate::shell::{self, Arguments, Tree};
use crate::soak;

/// Packets sent by default, also in CI.
const PACKETS: u64 = 200_000;

/// Far longer than they take: some are sent in a microsecond, some in ten.
fn limit(packets: u64) -> Duration {
    Duration::from_secs(120 + packets / 5_000)
}

/// Sends as many packets as `--packets N` asks for.
pub fn run(tree: &Tree, words: &[&str]) -> Outcome {
    let words = Arguments::new(words)?.only(&["--packets", "--seed"])?;
    let packets = words.get("--packets").map(str::parse).transpose();
    let packets = packets
        .map_err(|_| "--packets wants a number")?
        .unwrap_or(PACKETS);
    let mut program = soak::program(tree, "fault-hostile")?;
    program.args(["--packets", &packets.to_string()]);
    if let Some(seed) = words.get("--seed") {
        program.args(["--seed", seed]);
    }
    shell::run_quoting(&mut program, limit(packets))
}
