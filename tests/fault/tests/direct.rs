//! Direct entries: peers that access memory by themselves, while either side is stopped or killed.

mod only_shm {
    mod only_accelerated {
        use lintel_fault::job::{Job, PATIENCE, Worker};
        use lintel_fault::memory::SEGMENT;
        use lintel_fault::random::{Random, rounds};
        use std::time::{Duration, Instant};

        /// What a worker says of PTL_IN_USE.
        const IN_USE: &str = "in use";
        /// Random sequences of direct operations and messages, and rounds of each.
        const SEQUENCES: usize = 4;
        const MIXED_ROUNDS: &str = "60";

        fn job() -> Job {
            Job::new(env!("CARGO_BIN_EXE_fault-worker"))
        }

        fn start(job: &Job, pid: &str) -> Worker {
            let mut worker = job.start(&["direct", pid]);
            worker.expect("ready");
            worker
        }

        /// Exposes private memory.
        fn start_sharing(job: &Job, pid: &str, share: &str) -> Worker {
            let mut command = job.command(&["direct", pid]);
            command.env("PTL_SHARE_MEMORY", share);
            let mut worker = Worker::start(command);
            worker.expect("ready");
            worker
        }

        /// Exposes private memory, which peers have the system copy.
        fn start_private(job: &Job, pid: &str) -> Worker {
            start_sharing(job, pid, "off")
        }

        /// Exposes a segment that the program has attached itself.
        fn start_with_segment(job: &Job, pid: &str) -> Worker {
            let mut command = job.command(&["direct", pid]);
            command.env("PTL_SHARE_MEMORY", "on").env(SEGMENT, "1");
            let mut worker = Worker::start(command);
            worker.expect("ready");
            worker
        }

        /// Two ranks that operate on each other by direct entries and by messages.
        fn compare_with_the_model(matching: &str, variables: &[(&str, &str)]) {
            let mut random = Random::from_env();
            for _ in 0..SEQUENCES {
                let seed = random.number().to_string();
                let job = Job::new(env!("CARGO_BIN_EXE_fault-mixed"));
                let start = |number: &str| {
                    let words = ["mixed", number, matching, &seed, MIXED_ROUNDS];
                    let mut command = job.command(&words);
                    command.envs(variables.iter().copied());
                    Worker::start(command)
                };
                let mut ranks = ["0", "1"].map(start);
                for _ in 0.. {
                    let lines = ranks.each_mut().map(Worker::line);
                    assert_eq!(
                        lines[0],
                        lines[1],
                        "{}{}",
                        ranks[0].stderr(),
                        ranks[1].stderr()
                    );
                    if lines[0] == "done" {
                        break;
                    }
                    ranks.iter_mut().for_each(|rank| rank.send("go"));
                }
                for rank in &mut ranks {
                    rank.expect("at");
                    rank.send("go");
                    rank.succeed();
                }
            }
        }

        #[test]
        fn direct_operations_and_messages_on_match_entries_do_what_the_model_does() {
            compare_with_the_model("matching", &[]);
        }

        #[test]
        fn direct_operations_and_messages_on_list_entries_do_what_the_model_does() {
            compare_with_the_model("non-matching", &[]);
        }

        #[test]
        fn operations_on_private_memory_that_is_shared_do_what_the_model_does() {
            compare_with_the_model("matching", &[("PTL_SHARE_MEMORY", "on")]);
        }

        #[test]
        fn operations_on_segments_of_the_program_do_what_the_model_does() {
            let variables = [("PTL_SHARE_MEMORY", "on"), (SEGMENT, "1")];
            compare_with_the_model("non-matching", &variables);
        }

        #[test]
        fn operations_on_private_memory_do_what_the_model_does() {
            for matching in ["matching", "non-matching"] {
                compare_with_the_model(matching, &[("PTL_SHARE_MEMORY", "off")]);
            }
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
            accesses_stopped(start(&job, "11"), &start(&job, "12"));
        }

        #[test]
        fn private_memory_of_a_process_that_is_stopped_is_accessed_if_it_is_shared() {
            let job = job();
            accesses_stopped(start(&job, "11"), &start_sharing(&job, "12", "on"));
        }

        #[test]
        fn a_segment_of_a_process_that_is_stopped_is_accessed() {
            let job = job();
            accesses_stopped(start(&job, "11"), &start_with_segment(&job, "12"));
        }

        #[test]
        fn private_memory_of_a_process_that_is_stopped_is_not_accessed_otherwise() {
            let job = job();
            let (mut one, two) = (start(&job, "11"), start_sharing(&job, "12", "off"));
            one.send("fetch 12");
            one.expect("0");
            assert_eq!(fetch_from_stopped(&mut one, &two), None);
        }

        fn accesses_stopped(mut one: Worker, two: &Worker) {
            one.send("fetch 12");
            one.expect("0");
            let until = Instant::now() + PATIENCE;
            let fetched = loop {
                if let Some(fetched) = fetch_from_stopped(&mut one, two) {
                    break fetched;
                }
                assert!(Instant::now() < until, "each fetch waits for its target");
            };
            assert!(fetched.parse::<u64>().is_ok_and(|old| old > 0), "{fetched}");
        }

        #[test]
        fn nobody_copies_to_private_memory_whose_entry_was_unlinked_while_puts_land() {
            let job = job();
            let mut target = start_private(&job, "12");
            for _ in 0..10 * rounds() {
                let mut one = start(&job, "11");
                one.send("operate 12");
                one.expect("operating");
                target.send("unlink 12");
                target.expect("unlinked");
            }
        }

        #[test]
        fn an_entry_stays_in_use_as_long_as_a_process_is_stopped_in_a_copy() {
            let (job, mut random) = (job(), Random::from_env());
            let mut target = start_private(&job, "12");
            let until = Instant::now() + PATIENCE;
            let _one = loop {
                assert!(Instant::now() < until, "none is stopped in a copy");
                let mut one = start(&job, "11");
                one.send("operate 12");
                one.expect("operating");
                std::thread::sleep(Duration::from_micros(random.below(30_000)));
                one.stop();
                if try_unlink(&mut target) == IN_USE {
                    assert_eq!(try_unlink(&mut target), IN_USE);
                    one.resume();
                    break one;
                }
                target.send("append");
                target.expect("appended");
            };
            while try_unlink(&mut target) == IN_USE {
                assert!(Instant::now() < until, "it goes on, and leaves the entry");
            }
        }

        fn try_unlink(target: &mut Worker) -> String {
            target.send("try-unlink");
            target.line()
        }

        #[test]
        fn killing_a_process_that_accesses_an_entry_delays_no_unlink() {
            let job = job();
            let target = start(&job, "12");
            kills_under_unlinks(&job, target);
        }

        #[test]
        fn killing_a_process_that_accesses_a_segment_delays_no_unlink() {
            let job = job();
            let target = start_with_segment(&job, "12");
            kills_under_unlinks(&job, target);
        }

        #[test]
        fn killing_a_process_that_copies_to_private_memory_delays_no_unlink() {
            let job = job();
            let target = start_sharing(&job, "12", "off");
            kills_under_unlinks(&job, target);
        }

        fn kills_under_unlinks(job: &Job, mut target: Worker) {
            let mut random = Random::from_env();
            for _ in 0..rounds() {
                let mut one = start(job, "11");
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
        fn memory_that_was_freed_under_operations_stays_as_it_is() {
            let job = job();
            let (mut one, mut target) = (start(&job, "11"), start(&job, "12"));
            one.send("operate 12");
            one.expect("operating");
            target.send("free 100");
            target.expect("freed");
        }

        #[test]
        fn memory_of_an_interface_that_was_closed_under_operations_stays_as_it_is() {
            closes_under_operations(start);
        }

        #[test]
        fn private_memory_of_an_interface_that_was_closed_under_operations_stays_as_it_is() {
            closes_under_operations(start_private);
        }

        fn closes_under_operations(start_target: fn(&Job, &str) -> Worker) {
            let (job, mut random) = (job(), Random::from_env());
            for _ in 0..rounds() {
                let (mut one, mut target) = (start(&job, "11"), start_target(&job, "12"));
                one.send("operate 12");
                one.expect("operating");
                std::thread::sleep(Duration::from_micros(random.below(30_000)));
                target.send("close");
                target.expect("closed");
            }
        }

        #[test]
        fn who_accesses_an_entry_of_a_killed_process_learns_of_its_end() {
            kills_under_operations(start);
        }

        #[test]
        fn who_copies_to_private_memory_of_a_killed_process_learns_of_its_end() {
            kills_under_operations(start_private);
        }

        fn kills_under_operations(start_target: fn(&Job, &str) -> Worker) {
            let (job, mut random) = (job(), Random::from_env());
            for _ in 0..rounds() {
                let (mut one, mut two) = (start(&job, "11"), start_target(&job, "12"));
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
