//! Several threads of a process on one interface. `LINTEL_TEST_ROUNDS` repeats them more often.

use lintel_fault::job::{Job, Worker};
use lintel_fault::random::{Random, rounds};
use std::collections::BTreeMap;

#[test]
fn threads_share_an_interface_a_queue_and_a_counter_and_abort_wakes_them_all() {
    let job = Job::new(env!("CARGO_BIN_EXE_fault-worker"));
    for _ in 0..rounds() {
        let mut other = job.start(&["script", "12"]);
        other.expect("ready");
        let mut one = job.start(&["threads", "11", "12"]);
        one.expect("done");
        one.succeed();
        end(other);
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn threads_of_two_processes_operate_on_all_kinds_of_entries_and_nothing_is_lost() {
    let mut random = Random::from_env();
    let job = Job::new(env!("CARGO_BIN_EXE_fault-worker"));
    for _ in 0..rounds() {
        let seed = random.below(1 << 32).to_string();
        let mut workers = start_two(&job, "mixed-threads", &seed);
        let mut done = BTreeMap::<String, Vec<u64>>::new();
        for worker in &mut workers {
            for _ in 0..2 {
                let line = worker.line();
                let words: Vec<&str> = line.split(' ').collect();
                let ["did", target, counts @ ..] = words.as_slice() else {
                    panic!("{line}, seed {seed}");
                };
                let sums = done
                    .entry((*target).into())
                    .or_insert(vec![0; counts.len()]);
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += count.parse::<u64>().expect("a number");
                }
            }
        }
        for (worker, pid) in workers.iter_mut().zip(["11", "12"]) {
            let sums: Vec<String> = done[pid].iter().map(u64::to_string).collect();
            let sums = sums.join(" ");
            worker.send("totals");
            assert_eq!(worker.line(), sums, "at {pid}, seed {seed}");
        }
        workers.into_iter().for_each(end);
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn receives_of_threads_get_their_messages_in_order_expected_or_not() {
    let mut random = Random::from_env();
    let job = Job::new(env!("CARGO_BIN_EXE_fault-worker"));
    for _ in 0..rounds() {
        let seed = random.below(1 << 32).to_string();
        let mut workers = start_two(&job, "matched-threads", &seed);
        workers.iter_mut().for_each(|it| _ = it.expect("done"));
        workers.into_iter().for_each(end);
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

#[test]
fn waits_end_with_what_they_wait_for_whenever_they_begin() {
    let mut random = Random::from_env();
    let job = Job::new(env!("CARGO_BIN_EXE_fault-worker"));
    for _ in 0..rounds() {
        let seed = random.below(1 << 32).to_string();
        let mut worker = job.start(&["ended-waits", "11", &seed]);
        worker.expect("done");
        worker.succeed();
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

/// Two workers that know each other, both at work.
fn start_two(job: &Job, work: &str, seed: &str) -> [Worker; 2] {
    let names = [["11", "12"], ["12", "11"]];
    let mut workers = names.map(|[pid, other]| job.start(&[work, pid, other, seed]));
    for worker in &mut workers {
        worker.expect("ready");
    }
    for worker in &mut workers {
        worker.send("go");
    }
    workers
}

fn end(mut worker: Worker) {
    worker.send("quit");
    worker.expect("bye");
    worker.succeed();
}
