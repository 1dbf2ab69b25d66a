//! What clients do among themselves and with others.

use crate::rig::{Rig, first_word, request};
use lintel_fault::job::Worker;

/// Every kind of operation, short and long, from one to number `peer`.
fn exchange(from: &mut Worker, to: &mut Worker, peer: u32) {
    for bytes in [8, 5000, 60_000, 100_000, 4 << 20] {
        request(from, &format!("put {peer} {bytes}"), &format!("Ok {bytes}"));
        request(to, &format!("received {bytes}"), "right");
        request(from, &format!("get {peer} {bytes}"), &format!("Ok {bytes}"));
        request(from, &format!("got {bytes}"), "right");
    }
    request(from, &format!("add {peer}"), "Ok 8");
    request(from, &format!("fetch-add {peer}"), "Ok 8");
    request(from, "before", "1");
    request(to, "sum", "2");
}

#[test]
fn clients_of_one_agent_reach_each_other() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    exchange(&mut one, &mut two, 2);
    exchange(&mut two, &mut one, 1);
    request(&mut one, "quit", "Ok(())");
    request(&mut two, "quit", "Ok(())");
}

#[test]
fn a_client_reaches_itself() {
    let rig = Rig::new();
    let mut one = rig.generic(1);
    for bytes in [8, 100_000, 4 << 20] {
        request(&mut one, &format!("put 1 {bytes}"), &format!("Ok {bytes}"));
        request(&mut one, &format!("received {bytes}"), "right");
        request(&mut one, &format!("get 1 {bytes}"), &format!("Ok {bytes}"));
        request(&mut one, &format!("got {bytes}"), "right");
    }
    request(&mut one, "fetch-add 1", "Ok 8");
    request(&mut one, "sum", "1");
}

#[test]
fn clients_and_processes_without_an_agent_reach_each_other() {
    let rig = Rig::new();
    let (mut generic, mut accelerated) = (rig.generic(1), rig.accelerated(2));
    exchange(&mut generic, &mut accelerated, 2);
    exchange(&mut accelerated, &mut generic, 1);
}

#[test]
fn a_client_learns_how_long_a_message_its_agent_can_hold() {
    let rig = Rig::new();
    let mut one = rig.generic(1);
    let memory = std::fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let total = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok());
    let total = total.expect("the first line is MemTotal") << 10;
    one.send("longest");
    let longest: u64 = one.line().parse().expect("a number of bytes");
    assert!(
        longest > 0 && longest <= total / 2,
        "{longest} of {total} bytes"
    );
}

#[test]
fn a_message_names_the_user_and_process_that_the_system_vouches_for() {
    let rig = Rig::new();
    let (mut generic, mut accelerated) = (rig.generic(1), rig.accelerated(2));
    let uid = std::fs::metadata("/proc/self").map(|me| std::os::unix::fs::MetadataExt::uid(&me));
    let uid = uid.expect("Linux has it");
    request(&mut generic, "put 2 8", "Ok 8");
    let from = rig.process(1);
    request(&mut accelerated, "event", &format!("{from:?} uid {uid}"));
    request(&mut accelerated, "put 1 8", "Ok 8");
    let from = rig.process(2);
    request(&mut generic, "event", &format!("{from:?} uid {uid}"));
}

#[test]
fn a_name_that_is_taken_is_refused_whichever_process_has_it() {
    let rig = Rig::new();
    let _both = (rig.generic(1), rig.accelerated(2));
    for (number, mode) in [(1, "generic"), (2, "generic"), (1, "accelerated")] {
        let mut late = rig.client(number, mode);
        assert_eq!(first_word(&mut late), "refused 11", "{number} {mode}");
    }
}

#[test]
fn what_is_around_an_entry_is_neither_written_nor_read() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    for (offset, length, moved) in [(0, 64, 64), (0, 4096, 64), (60, 4000, 4), (64, 100, 0)] {
        request(
            &mut one,
            &format!("put-window 2 {offset} {length}"),
            &format!("Ok {moved}"),
        );
        request(
            &mut one,
            &format!("get-window 2 {offset} {length}"),
            &format!("Ok {moved}"),
        );
        request(&mut two, "around", "right");
    }
}

#[test]
fn a_client_starts_the_library_again_and_old_handles_are_stale() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    for _ in 0..20 {
        one.send("again");
        one.expect("stale PTL_ARG_INVALID");
        request(&mut one, "put 2 100000", "Ok 100000");
    }
    request(&mut two, "put 1 8", "Ok 8");
}

#[test]
fn what_is_called_after_a_put_finds_it_started() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.accelerated(2));
    request(&mut two, "put 1 8", "Ok 8");
    two.stop();
    request(&mut one, "begin-put 2 8", "begun");
    request(&mut one, "release", "Err(InUse)");
    two.resume();
    // The end of the first.
    request(&mut one, "put 2 8", "Ok 8");
}

#[test]
fn puts_that_come_quicker_than_the_agent_takes_them_all_arrive() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    for _ in 0..5 {
        request(&mut one, "burst 2 400", "400 of 400");
    }
    let puts = "Ok(CountingEvent { success: 2000, failure: 0 })";
    request(&mut two, "count 2000", puts);
}
