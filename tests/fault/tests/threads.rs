//! Several threads of a process on one interface.

use lintel_fault::job::Job;

#[test]
fn threads_share_an_interface_a_queue_and_a_counter_and_abort_wakes_them_all() {
    let job = Job::new(env!("CARGO_BIN_EXE_fault-worker"));
    for _ in 0..3 {
        let mut other = job.start(&["script", "12"]);
        other.expect("ready");
        let mut one = job.start(&["threads", "11", "12"]);
        one.expect("done");
        one.succeed();
        other.send("quit");
        other.expect("bye");
        other.succeed();
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}
