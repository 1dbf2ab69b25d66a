//! `fault-mixed`: two processes that operate on each other's memory and on their own, by direct
//! entries and by messages in random turns, and compare all that they see with the engine's
//! model.
//!
//! ```text
//!   seed ──▶ plan ──▶ actions of both ranks, the same in both processes
//!                        ├──▶ oracle: a model of each rank, and what its memory holds
//!                        └──▶ rank: this process's share of them, on the library
//!                                   then events, counters and memory are compared
//! ```
//!
//! A round changes entries, portals and counters of one rank, then starts operations of both
//! without waiting. While they run, triggered operations are hung on counters that they count,
//! and entries beside come and go. What is compared doesn't depend on the order between the
//! ranks: each has entries of its own at each target, and counters only grow meanwhile.
//!
//! `fault-mixed PID 0|1 matching|non-matching SEED ROUNDS`; the test is the barrier: it answers
//! each line `at` of both with a line.

#[allow(dead_code)] // the engine's own tests use all of it
#[path = "../../../core/engine4/tests/oracle/model/mod.rs"]
mod model;
mod oracle;
mod plan;
mod rank;
mod rig;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().map_err(|why| format!("{word}: {why}"));
    let done = match words.as_slice() {
        [_, index, matching, seed, rounds] => number(index).and_then(|index| {
            let matching = *matching == "matching";
            rank::run(index as usize, matching, number(seed)?, number(rounds)?)
        }),
        _ => Err(format!("unknown work: {words:?}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fault-mixed: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A step; the error is one sentence.
type Done = Result<(), String>;
