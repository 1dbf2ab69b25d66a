//! A process of the tests: `fault-worker WHAT …`. It speaks in lines.

mod forked;
mod garble;
mod hail;
mod load;
mod script;
mod threads;
mod victim;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["load", pid, peers, seed] => load::run(&work(pid, peers, seed)),
        ["load", pid, peers, seed, suspect] => load::run(&load::Work {
            suspect: Some(number(suspect)),
            ..work(pid, peers, seed)
        }),
        ["garble", pid, peers, seed] => {
            let done = load::run(&load::Work {
                disturb: Some(garble::start),
                ..work(pid, peers, seed)
            });
            // What becomes of its own messages is its own fault: it only goes on
            // to garble until it is killed.
            eprintln!("the culprit: {done:?}");
            loop {
                std::thread::park();
            }
        }
        ["hail", target] => hail::run(number(target)),
        ["script", pid] => script::run(number(pid)),
        ["threads", pid, other] => threads::run(number(pid), number(other)),
        ["fork", pid, other] => forked::run(number(pid), number(other)),
        ["victim", pid] => victim::run(number(pid)),
        _ => Err(format!("no such work: {words:?}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("worker: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What went wrong, for the test to print.
type Done = Result<(), String>;

fn work(pid: &str, peers: &str, seed: &str) -> load::Work {
    load::Work {
        pid: number(pid),
        peers: peers.split(',').map(number).collect(),
        seed: number(seed).into(),
        suspect: None,
        disturb: None,
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}
