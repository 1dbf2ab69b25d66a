//! Ends of clients and agents, expected and not.

use crate::rig::{Rig, client_of, first_word, request, wait_until};
use lintel_fault::job::Worker;
use lintel_fault::random::Random;

/// Clients that are killed one after the other; `LINTEL_AGENT_VICTIMS` says otherwise.
const VICTIMS: u32 = 40;
/// By which the agent may grow meanwhile, KiB: what an allocator keeps.
const GROWTH: u64 = 8 << 10;

#[test]
fn a_killed_client_leaves_nothing_and_its_peers_learn_of_it() {
    let rig = Rig::new();
    let (mut one, two) = (rig.accelerated(1), rig.generic(2));
    let segment = rig.job.segment(2);
    request(&mut one, "put 2 100000", "Ok 100000");
    assert!(segment.exists());
    drop(two);
    wait_until("the segment goes", || !segment.exists());
    one.send("put 2 8");
    one.expect("Undeliverable");
    let mut next = rig.generic(2);
    request(&mut one, "put 2 100000", "Ok 100000");
    request(&mut next, "received 100000", "right");
}

#[test]
fn a_client_that_ends_without_a_word_is_missed_at_once() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    request(&mut two, "put 1 100000", "Ok 100000");
    two.send("exit");
    wait_until("the segment goes", || !rig.job.segment(2).exists());
    one.send("put 2 8");
    one.expect("Undeliverable");
}

#[test]
fn what_a_killed_client_has_lent_stays_until_its_peer_has_used_it() {
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.accelerated(2));
    request(&mut one, "put 2 8", "Ok 8");
    let counted = |n| format!("Ok(CountingEvent {{ success: {n}, failure: 0 }})");
    request(&mut two, "count 1", &counted(1));
    two.stop();
    request(&mut one, "begin-put 2 4000000", "begun");
    // Calls are carried out in order.
    request(&mut one, "alloc 1", "Ok(())");
    drop(one);
    wait_until("the segment goes", || !rig.job.segment(1).exists());
    two.resume();
    request(&mut two, "count 2", &counted(2));
    request(&mut two, "received 4000000", "right");
}

#[test]
fn an_agent_stays_as_it_is_over_many_killed_clients() {
    let rig = Rig::new();
    let mut one = rig.generic(1);
    let kill_in_traffic = |victim: &mut Worker| {
        for _ in 0..5 {
            victim.send("put 1 1000000");
            victim.send("get 1 1000000");
        }
        victim.line();
    };
    let victims = std::env::var("LINTEL_AGENT_VICTIMS").ok();
    let victims = victims
        .and_then(|number| number.parse().ok())
        .unwrap_or(VICTIMS);
    let mut settled = None;
    for round in 0..victims {
        let mut victim = rig.generic(2);
        kill_in_traffic(&mut victim);
        drop(victim);
        wait_until("the segment goes", || !rig.job.segment(2).exists());
        if round == victims / 4 {
            settled = Some(rig.agent_memory());
        }
    }
    request(&mut one, "put 1 8", "Ok 8");
    let settled = settled.expect("there were so many");
    let now = rig.agent_memory();
    assert!(
        now < settled + GROWTH,
        "it grew from {settled} to {now} KiB"
    );
    wait_until("its threads and files go", || {
        let (threads, files) = rig.agent_holds();
        threads <= 3 && files <= 24
    });
}

#[test]
fn the_end_of_the_agent_ends_what_its_clients_wait_for() {
    for kill in [true, false] {
        let rig = Rig::new();
        let (mut one, mut two, mut three) = (rig.generic(1), rig.generic(2), rig.generic(3));
        one.send("wait-event");
        one.expect("waiting");
        two.send("spin-event");
        end(rig.agent, kill);
        one.expect("PTL_FAIL");
        two.expect("PTL_FAIL");
        request(&mut three, "put 1 8", "PTL_FAIL");
        request(&mut three, "quit", "PTL_FAIL");
        three.await_stderr("the agent of this node has gone");
    }
}

fn end(agent: Worker, kill: bool) {
    if kill {
        return drop(agent);
    }
    let ended = std::process::Command::new("kill")
        .arg(agent.id().to_string())
        .status();
    assert!(ended.expect("kill is everywhere").success());
    let mut agent = agent;
    wait_until("the agent ends", || agent.ended().is_some());
    assert!(agent.ended().is_some_and(|status| status.success()));
}

#[test]
fn an_agent_that_ends_leaves_nothing_and_another_takes_its_place() {
    let mut rig = Rig::new();
    rig.second_agent().await_stderr("has an agent");
    let one = rig.generic(1);
    // Its socket and the segments of its clients stay behind.
    rig.replace_agent();
    let two = rig.generic(1);
    drop((one, two));
    let Rig { job, agent } = rig;
    end(agent, false);
    wait_until("all is gone", || job.shared_memory_names().is_empty());
}

#[test]
fn without_an_agent_a_process_says_what_it_needs() {
    let Rig { job, agent } = Rig::new();
    end(agent, false);
    let mut client = client_of(&job, 1, "generic");
    assert_eq!(first_word(&mut client), "refused 5");
    client.await_stderr("PTL_MODE=generic needs an agent on this node: start lintel-agent");
}

#[test]
fn nonsense_in_a_clients_pages_harms_nobody_else() {
    let mut random = Random::from_env();
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    for _ in 0..10 {
        let mut fool = rig.generic(3);
        request(&mut fool, "put 1 8", "Ok 8");
        request(
            &mut fool,
            &format!("garble {}", random.below(1 << 32)),
            "garbled",
        );
        // Events for it, into queues that may be anywhere by now.
        for _ in 0..20 {
            one.send("put 3 8");
            one.line();
        }
        request(&mut one, "put 2 100000", "Ok 100000");
        request(&mut two, "fetch-add 1", "Ok 8");
    }
    request(&mut one, "quit", "Ok(())");
    request(&mut two, "quit", "Ok(())");
}
