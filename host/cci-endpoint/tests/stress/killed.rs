//! Clients that are killed.

use crate::rig::wait_for_removal;
use crate::rig::{CHILD, LIMIT, kill, open, own_sm, poll, send, sm, start_child, wait};
use lintel_cci_endpoint::{Attribute, Endpoint, Event, Status};
use lintel_claim::Claim;
use std::time::Instant;

/// Connects, and sends until it is killed or its parent has ended.
fn be_killed(place: &str) {
    let (group, uri) = place.split_once(' ').expect("a group and a URI");
    let me = open(&sm(group));
    me.connect(uri, Claim::empty(), Attribute::Ro, 0, None)
        .expect("the URI is good");
    let mut connection = None;
    let until = Instant::now() + LIMIT;
    for number in 0.. {
        if let Some(Event::Connected { result, .. }) = poll(&me) {
            connection = Some(result.expect("accepted").0);
        }
        let sent = connection.map(|connection| send(&me, connection, number));
        if sent == Some(Err(Status::Disconnected)) || Instant::now() > until {
            return;
        }
    }
}

/// Serves a child until `count` messages have come, kills it, and sees its end.
fn outlive(parent: &Endpoint, group: &str, count: u64) {
    let mut child = start_child(group, &parent.uri());
    let (mut connection, mut received) = (None, 0);
    wait("message of the child", || {
        match poll(parent) {
            Some(Event::Request {
                connection: asked,
                data,
                ..
            }) => {
                parent.accept(asked, 0).expect("it wasn't answered");
                parent.return_request(data);
            }
            Some(Event::Accepted { result, .. }) => connection = Some(result.expect("alive").0),
            Some(Event::Received { message, .. }) => {
                parent.return_message(message);
                received += 1;
            }
            _ => {}
        }
        (received > count).then_some(())
    });
    let connection = connection.expect("messages come on it");
    let pid = child.id();
    kill(&mut child);
    wait("end of the child", || {
        if let Some(Event::Received { message, .. }) = poll(parent) {
            parent.return_message(message);
        }
        (send(parent, connection, 0) == Err(Status::Disconnected)).then_some(())
    });
    parent.disconnect(connection).expect("it is there");
    while let Some(Event::Received { message, .. }) = poll(parent) {
        parent.return_message(message);
    }
    let held = parent.resources();
    assert_eq!((held.connections, held.pending, held.held), (0, 0, 0));
    wait_for_removal(pid);
}

#[test]
fn what_an_endpoint_holds_can_be_read_by_other_processes() {
    let device = own_sm("published");
    let parent = open(&device);
    let mut child = start_child(&device.path, &parent.uri());
    let pid = child.id() as i32;
    wait("figures of the child", || {
        match poll(&parent) {
            Some(Event::Request {
                connection, data, ..
            }) => {
                parent.accept(connection, 0).expect("it wasn't answered");
                parent.return_request(data);
            }
            Some(Event::Received { message, .. }) => parent.return_message(message),
            _ => {}
        }
        let published = lintel_runtime::published().expect("the folder can be read");
        let own = published.iter().find(|process| process.os_process == pid)?;
        (own.endpoint.connections == 1).then_some(())
    });
    kill(&mut child);
    wait_for_removal(child.id());
}

#[test]
fn a_process_killed_at_any_point_leaves_nothing_to_its_peer() {
    if let Ok(place) = std::env::var(CHILD) {
        return be_killed(&place);
    }
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let device = own_sm("killed");
    let parent = open(&device);
    for round in 1..=8 {
        // Between the first message and some thousand ones.
        let count = (seed.wrapping_mul(round * 0x9e37_79b9) >> 7) % 3000;
        outlive(&parent, &device.path, if round == 1 { 0 } else { count });
    }
}
