//! Processes that compete for one receiver.

use crate::rig::{kill, open, own_sm, poll, start_child, wait, wait_for_removal};
use lintel_cci_endpoint::{ConnectionId, Endpoint, EndpointOption, Event};

/// How many messages of each of three processes, which send all they can, have been received
/// when the slowest one has `least`. Counting begins when all of them send.
fn shares(receiver: &Endpoint, group: &str, least: u32) -> Vec<u32> {
    const PROCESSES: usize = 3;
    let start = |_| start_child(group, &receiver.uri());
    let mut children = Vec::from_iter((0..PROCESSES).map(start));
    let mut counts: Vec<(ConnectionId, u32)> = Vec::new();
    let mut is_counting = false;
    wait("messages of all processes", || {
        match poll(receiver) {
            Some(Event::Request {
                connection, data, ..
            }) => {
                receiver.accept(connection, 0).expect("it wasn't answered");
                receiver.return_request(data);
            }
            Some(Event::Accepted { result, .. }) => counts.push((result.expect("alive").0, 0)),
            Some(Event::Received {
                connection,
                message,
            }) => {
                receiver.return_message(message);
                let mut all = counts.iter_mut();
                let (_, count) = all.find(|it| it.0 == connection).expect("it was accepted");
                *count += 1;
            }
            _ => {}
        }
        let have_all = |least, counts: &[(ConnectionId, u32)]| {
            counts.len() == PROCESSES && counts.iter().all(|it| it.1 >= least)
        };
        if !is_counting && have_all(1, &counts) {
            is_counting = true;
            counts.iter_mut().for_each(|(_, count)| *count = 0);
        }
        (is_counting && have_all(least, &counts)).then_some(())
    });
    children.iter_mut().for_each(kill);
    for child in children {
        wait_for_removal(child.id());
    }
    counts.into_iter().map(|(_, count)| count).collect()
}

/// Processors are shared with other programs, so shares differ; none is ten times another.
fn assert_none_starves(shares: &[u32], least: u32) {
    assert!(shares.iter().all(|it| *it < 10 * least), "{shares:?}");
}

#[test]
fn processes_that_compete_for_receive_buffers_all_get_some() {
    for count in [1, 4] {
        let device = own_sm(&format!("buffers-{count}"));
        let receiver = open(&device);
        let set = receiver.set_option(EndpointOption::RecvBuffers, count);
        set.expect("any count will do");
        assert_none_starves(&shares(&receiver, &device.path, 500), 500);
    }
}

#[test]
fn a_process_that_sends_all_it_can_starves_no_other() {
    let device = own_sm("flood");
    let receiver = open(&device);
    assert_none_starves(&shares(&receiver, &device.path, 5000), 5000);
}
