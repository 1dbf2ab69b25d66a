//! Portals 3.3 under `kill -9` and garbage.

use lintel_fault::exchange;
use lintel_fault::job::Job;
use lintel_fault::places::Places;
use lintel_fault::random::Random;
use std::sync::atomic::{AtomicU32, Ordering};

/// A job whose processes have the names on the network that pids of Portals 3.3 stand for.
fn job() -> Job {
    static COUNT: AtomicU32 = AtomicU32::new(128);
    let nodes = std::env::var("LINTEL_TEST_NODES").ok();
    let nodes = nodes.and_then(|nodes| nodes.parse().ok()).unwrap_or(1);
    let mut job = Job::new(env!("CARGO_BIN_EXE_fault-worker3"));
    job.set_places(Places::unique(COUNT.fetch_add(1, Ordering::Relaxed), nodes));
    job
}

#[test]
fn killing_any_process_at_any_moment_leaves_the_others_working() {
    let job = job();
    let rounds = std::env::var("LINTEL_TEST_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
    exchange::kill_at_random(&job, &mut Random::from_env(), rounds);
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

// A client of an agent has no lane: that is its agent's.
mod only_accelerated {
    mod only_shm {
        use crate::job;
        use lintel_fault::exchange;
        use lintel_fault::random::Random;

        #[test]
        fn a_garbled_lane_costs_its_writers_messages_only() {
            let mut random = Random::from_env();
            for _ in 0..3 {
                exchange::garble_one(&job(), &mut random);
            }
        }
    }
}
