//! Garbage in a lane costs its writer's messages only.

// A client of an agent has no lane: that is its agent's.
mod only_accelerated {
    mod only_shm {
        use lintel_fault::exchange;
        use lintel_fault::job::{Job, PATIENCE, Worker};
        use lintel_fault::random::Random;
        use std::time::Instant;

        fn job() -> Job {
            Job::new(env!("CARGO_BIN_EXE_fault-worker"))
        }

        #[test]
        fn a_garbled_lane_costs_its_writers_messages_only() {
            let mut random = Random::from_env();
            for _ in 0..3 {
                exchange::garble_one(&job(), &mut random);
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
