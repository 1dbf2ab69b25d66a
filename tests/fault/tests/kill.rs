//! `kill -9` at random points under load.

use lintel_fault::exchange;
use lintel_fault::job::{Job, PATIENCE, Worker};
use lintel_fault::places::network;
use lintel_fault::random::{Random, rounds};
use std::time::Instant;

fn job() -> Job {
    Job::new(env!("CARGO_BIN_EXE_fault-worker"))
}

#[test]
fn killing_any_process_at_any_moment_leaves_the_others_working() {
    let job = job();
    exchange::kill_at_random(&job, &mut Random::from_env(), rounds());
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn a_replacement_is_reached_even_by_who_asks_for_no_acknowledgement() {
    let job = job();
    let (mut one, mut two) = (job.start(&["script", "21"]), job.start(&["script", "22"]));
    one.expect("ready");
    two.expect("ready");
    one.send("silent-put 22 8");
    one.expect("Ok");
    two.kill();
    let mut two = job.start(&["script", "22"]);
    two.expect("ready");
    two.send("wait-count 1");
    two.expect("waiting");
    // The first one finds out: at once where it sees that the old one has gone, else
    // by what comes back.
    let until = Instant::now() + PATIENCE;
    let counted = loop {
        one.send("silent-put 22 8");
        one.line();
        if let Some(line) = two.try_line() {
            break line;
        }
        assert!(Instant::now() < until, "nothing gets through");
    };
    assert!(counted.starts_with("Ok("), "{counted}");
}

#[test]
fn a_target_outlives_more_senders_than_it_has_lanes() {
    let job = job();
    let mut target = job.start(&["script", "21"]);
    target.expect("ready");
    // Beyond shared memory there are no lanes, and processes that take longer to begin.
    let lanes = if network().contains("shm") { 1024 } else { 64 };
    for _ in 0..(lanes / 16 + 2) {
        let mut senders: Vec<Worker> = (0..16).map(|_| job.start(&["put-once", "21"])).collect();
        for (index, sender) in senders.iter_mut().enumerate() {
            sender.expect("acknowledged");
            match index % 2 {
                0 => sender.kill(),
                _ => sender.send("enough"),
            }
        }
        for sender in &mut senders {
            sender.wait();
        }
    }
    target.send("quit");
    target.expect("bye");
}

mod only_shm {
    use super::{Job, PATIENCE, Random, Worker, job, rounds};
    use std::time::{Duration, Instant};

    /// When a process that gets the loss of a peer has released its resources: by now, except an agent,
    /// which reports its client's loss to the peers and releases later.
    fn released_by() -> Instant {
        let agent = std::env::var("PTL_MODE").is_ok_and(|mode| mode == "generic");
        Instant::now() + if agent { PATIENCE } else { Duration::ZERO }
    }

    fn clears_away(job: &Job, number: u32) {
        let until = released_by();
        while job.segment(number).exists() {
            assert!(Instant::now() < until, "{:?}", job.shared_memory_names());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn survivors_clear_away_what_the_killed_left() {
        let job = job();
        let (mut one, mut two) = (job.start(&["script", "21"]), job.start(&["script", "22"]));
        one.expect("ready");
        two.expect("ready");
        one.send("put 22 0 8");
        one.expect("Ok");
        two.kill();
        one.send("put 22 0 8");
        one.expect("Undeliverable");
        clears_away(&job, 22);
        one.send("quit");
        one.expect("bye");
        one.succeed();
        assert_eq!(job.shared_memory_names(), Vec::<String>::new());
    }

    /// Puts a message to 22, of which either may have taken the place of a killed process.
    fn put_to_successor(one: &mut Worker) {
        let until = released_by();
        loop {
            one.send("put-accepted 22 1");
            one.expect("putting");
            let end = one.line();
            if end == "Ok" {
                return;
            }
            assert!(end == "Undeliverable" && Instant::now() < until, "{end}");
        }
    }

    #[test]
    fn killing_either_side_while_either_moves_a_long_body_leaves_the_other_working() {
        let job = job();
        let mut random = Random::from_env();
        let start = |number: &str| {
            let mut worker = job.start(&["script", number]);
            worker.expect("ready");
            worker
        };
        let accepting = || {
            let mut worker = start("22");
            worker.send("accept 21");
            worker.expect("accepts");
            worker
        };
        let (mut one, mut two) = (start("21"), accepting());
        let (mut killed, mut unfinished) = (0, 0);
        for _ in 0..2 * rounds() {
            let ends = match random.below(2) {
                0 => {
                    two.send("compute 100");
                    two.expect("computing");
                    "computed"
                }
                _ => {
                    two.send("poll-arrived 100");
                    two.expect("polling");
                    "polled"
                }
            };
            one.send("put-accepted 22 200");
            one.expect("putting");
            // A random moment is the point: this sleep awaits nothing.
            std::thread::sleep(Duration::from_micros(random.below(30_000)));
            if random.below(2) == 0 {
                two.kill();
                one.expect("Undeliverable");
                two = accepting();
            } else {
                one.kill();
                killed += 1;
                two.expect(ends);
                one = start("21");
            }
            put_to_successor(&mut one);
            two.send("arrived");
            let ends = two.line();
            let ends: Vec<&str> = ends.split(' ').collect();
            // What the killed one left behind may be noticed later.
            unfinished += ends.iter().filter(|end| **end != "Ok").count();
            assert!(unfinished <= killed && ends.contains(&"Ok"), "{ends:?}");
        }
        one.send("quit");
        one.expect("bye");
        two.send("quit");
        two.expect("bye");
        assert_eq!(job.shared_memory_names(), Vec::<String>::new());
    }
}
