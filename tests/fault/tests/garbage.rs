//! Garbage in a lane costs its writer's messages only.

// A client of an agent has no lane: that is its agent's.
mod only_accelerated {
    mod only_shm {
        use lintel_fault::job::{Job, PATIENCE, Worker};
        use lintel_fault::random::Random;
        use std::time::{Duration, Instant};

        fn job() -> Job {
            Job::new(env!("CARGO_BIN_EXE_fault-worker"))
        }

        fn count(worker: &mut Worker) -> String {
            worker.send("count");
            worker.expect("count ")
        }

        #[test]
        fn a_garbled_lane_costs_its_writers_messages_only() {
            let mut random = Random::from_env();
            for _ in 0..3 {
                let job = job();
                let seed = (random.number() as u32).to_string();
                let mut one = job.start(&["load", "11", "12,13", &seed, "13"]);
                let mut two = job.start(&["load", "12", "11,13", &seed, "13"]);
                let mut bad = job.start(&["corrupt", "13", "11,12", &seed]);
                for worker in [&mut one, &mut two, &mut bad] {
                    worker.expect("ready");
                }
                // Until everybody has a lane at everybody.
                std::thread::sleep(Duration::from_millis(200));
                bad.send("corrupt");
                bad.expect("corrupting");
                let until = Instant::now() + PATIENCE;
                while !(complained(&one) && complained(&two)) {
                    assert!(
                        Instant::now() < until,
                        "not everybody notices; they say: {:?}",
                        [&one, &two, &bad].map(Worker::stderr)
                    );
                    // Both go on all the while.
                    count(&mut one);
                    count(&mut two);
                }
                goes_on(&mut one, 12);
                goes_on(&mut two, 11);
                bad.kill();
                // Another one takes its place and its name, and is served.
                let mut good = job.start(&["load", "13", "11,12", &seed]);
                good.expect("ready");
                goes_on(&mut good, 11);
                goes_on(&mut good, 12);
                goes_on(&mut one, 13);
                goes_on(&mut two, 13);
                for worker in [&mut one, &mut two, &mut good] {
                    worker.send("stop");
                    worker.expect("count ");
                    worker.succeed();
                }
                assert_eq!(job.shared_memory_names(), Vec::<String>::new());
            }
        }

        fn complained(worker: &Worker) -> bool {
            worker.stderr().contains("wrote nonsense into its lane")
        }

        /// Waits for successes with a peer.
        fn goes_on(worker: &mut Worker, peer: u32) {
            let successes = |line: &str| -> u64 {
                let counts = line.split(' ').next().unwrap_or("");
                let found = counts.split(',').filter_map(|pair| pair.split_once(':'));
                let mut of_peer = found.filter(|(pid, _)| *pid == peer.to_string());
                of_peer
                    .next()
                    .map_or(0, |(_, n)| n.parse().expect("a number"))
            };
            let before = successes(&count(worker));
            let until = Instant::now() + PATIENCE;
            while successes(&count(worker)) < before + 10 {
                assert!(
                    Instant::now() < until,
                    "nothing gets through to {peer}: {}",
                    worker.stderr()
                );
            }
        }

        #[test]
        fn a_garbled_lane_is_counted_and_another_lane_goes_on() {
            let mut random = Random::from_env();
            let job = job();
            let seed = (random.number() as u32).to_string();
            let mut victim = job.start(&["shm-receiver", "11"]);
            victim.expect("ready");
            let mut bad = job.start(&["corrupt", "13", "11", &seed]);
            bad.expect("ready");
            let until = Instant::now() + PATIENCE;
            while received(&mut victim, 13) == 0 {
                assert!(Instant::now() < until, "nothing arrives");
            }
            bad.send("corrupt");
            bad.expect("corrupting");
            while corrupt(&mut victim) == 0 {
                assert!(Instant::now() < until, "nobody counts");
            }
            bad.expect("corrupted");
            let mut good = job.start(&["script", "12"]);
            good.expect("ready");
            good.send("silent-put 11 8");
            good.expect("Ok");
            while received(&mut victim, 12) == 0 {
                assert!(Instant::now() < until, "the other lane is dead");
            }
        }

        fn received(victim: &mut Worker, pid: u32) -> u64 {
            victim.send(&format!("from {pid}"));
            victim.expect("from ").parse().expect("a number")
        }

        fn corrupt(victim: &mut Worker) -> u64 {
            victim.send("troubles");
            let line = victim.line();
            let count = line.strip_suffix(" corrupt").expect("a count");
            count.parse().expect("a number")
        }
    }
}
