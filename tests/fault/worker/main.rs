//! A worker process of the tests, `fault-worker WORK …`, driven by lines on stdin and stdout.

mod corrupt;
mod direct;
mod ended_waits;
mod forked;
mod load;
mod matched_threads;
mod mixed_threads;
mod put_once;
mod script;
mod shm_receiver;
mod threads;

use portals4_abi::Interface;
use std::io::BufRead;
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
        ["corrupt", pid, peers, seed] => {
            let done = load::run(&load::Work {
                corrupt: Some(corrupt::start),
                ..work(pid, peers, seed)
            });
            // Its own messages may fail: it only keeps corrupting lanes until it
            // is killed.
            eprintln!("the corrupting process: {done:?}");
            loop {
                std::thread::park();
            }
        }
        ["direct", pid] => direct::run(number(pid)),
        ["put-once", target] => put_once::run(number(target)),
        ["script", pid] => script::run(number(pid)),
        ["threads", pid, other] => threads::run(number(pid), number(other)),
        ["ended-waits", pid, seed] => ended_waits::run(number(pid), number(seed)),
        ["matched-threads", pid, other, seed] => {
            matched_threads::run(number(pid), number(other), number(seed))
        }
        ["mixed-threads", pid, other, seed] => {
            mixed_threads::run(number(pid), number(other), number(seed))
        }
        ["fork", pid, other] => forked::run(number(pid), number(other)),
        ["shm-receiver", pid] => shm_receiver::run(number(pid)),
        _ => Err(format!("unknown work: {words:?}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("worker: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A step of a worker; the error is printed by the test.
type Done = Result<(), String>;

fn work(pid: &str, peers: &str, seed: &str) -> load::Work {
    load::Work {
        pid: number(pid),
        peers: peers.split(',').map(number).collect(),
        seed: number(seed).into(),
        suspect: None,
        corrupt: None,
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}

/// Carries out commands from stdin until it ends, or `quit` closes the interface.
fn serve(interface: &Interface, mut carry_out: impl FnMut(&[&str]) -> Done) -> Done {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["quit"] = words.as_slice() {
            interface.close().map_err(|why| why.to_string())?;
            println!("bye");
            break;
        }
        carry_out(&words)?;
    }
    Ok(())
}

fn unknown(words: &[&str]) -> Done {
    Err(format!("unknown command: {words:?}"))
}
