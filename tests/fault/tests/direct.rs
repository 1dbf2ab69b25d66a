//! Direct entries: peers that access memory by themselves, while either side is stopped or killed.

mod only_shm {
    mod only_accelerated {
        use lintel_fault::job::{Job, PATIENCE, Worker};
        use lintel_fault::random::Random;
        use std::time::{Duration, Instant};

        fn job() -> Job {
            Job::new(env!("CARGO_BIN_EXE_fault-worker"))
        }

        fn start(job: &Job, pid: &str) -> Worker {
            let mut worker = job.start(&["direct", pid]);
            worker.expect("ready");
            worker
        }

        fn rounds() -> u64 {
            let asked = std::env::var("LINTEL_TEST_ROUNDS").ok();
            asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
        }

        /// A fetch from a process that was stopped; nothing if it has to wait for it: as long
        /// as the process may not have read what was sent to it before.
        fn fetch_from_stopped(one: &mut Worker, two: &Worker) -> Option<String> {
            two.stop();
            one.send("fetch 12");
            let until = Instant::now() + Duration::from_millis(500);
            let mut fetched = None;
            while fetched.is_none() && Instant::now() < until {
                fetched = one.try_line();
                std::thread::yield_now();
            }
            two.resume();
            if fetched.is_none() {
                one.line();
            }
            fetched
        }

        #[test]
        fn memory_of_a_process_that_is_stopped_is_accessed() {
            let job = job();
            let (mut one, two) = (start(&job, "11"), start(&job, "12"));
            one.send("fetch 12");
            one.expect("0");
            let until = Instant::now() + PATIENCE;
            let fetched = loop {
                if let Some(fetched) = fetch_from_stopped(&mut one, &two) {
                    break fetched;
                }
                assert!(Instant::now() < until, "each fetch waits for its target");
            };
            assert!(fetched.parse::<u64>().is_ok_and(|old| old > 0), "{fetched}");
        }

        #[test]
        fn killing_a_process_that_accesses_an_entry_delays_no_unlink() {
            let (job, mut random) = (job(), Random::from_env());
            let mut target = start(&job, "12");
            for _ in 0..rounds() {
                let mut one = start(&job, "11");
                one.send("operate 12");
                one.expect("operating");
                target.send("unlink 100");
                // A random moment is the point: this sleep awaits nothing.
                std::thread::sleep(Duration::from_micros(random.below(30_000)));
                one.kill();
                target.expect("unlinked");
            }
            target.send("quit");
            target.expect("bye");
            target.succeed();
        }

        #[test]
        fn who_accesses_an_entry_of_a_killed_process_learns_of_its_end() {
            let (job, mut random) = (job(), Random::from_env());
            for _ in 0..rounds() {
                let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
                one.send("operate 12");
                one.expect("operating");
                std::thread::sleep(Duration::from_micros(random.below(30_000)));
                two.kill();
                one.expect("lost");
            }
        }

        #[test]
        fn a_successor_of_a_killed_process_is_accessed_instead() {
            let job = job();
            let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
            one.send("operate 12");
            one.expect("operating");
            two.kill();
            one.expect("lost");
            let _two = start(&job, "12");
            for expected in ["0", "1", "2"] {
                one.send("fetch 12");
                one.expect(expected);
            }
        }
    }
}
