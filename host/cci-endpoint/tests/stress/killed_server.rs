//! Servers that are killed.

use crate::rig::wait_for_removal;
use crate::rig::{CHILD, LIMIT, bytes, kill, number, open, own_sm, poll, send, sm, start, wait};
use lintel_cci_endpoint::{
    Attribute, ConnectionId, Endpoint, EndpointOption, Event, MessageFlags, Status,
};
use lintel_claim::Claim;
use std::collections::VecDeque;
use std::time::Instant;

const KILLED_SERVER: &str =
    "killed_server::operations_of_a_client_end_once_when_its_server_is_killed";
/// The service of the server that is killed, again and again.
const SERVICE: &str = "7/1";

/// Accepts the first client, leaves others without an answer, and sends back what it receives,
/// until it is killed or its client has ended.
fn serve(group: &str) {
    let me = Endpoint::open(&sm(group), Some(SERVICE), false).expect("the service is free");
    let (mut clients, until) = (0, Instant::now() + LIMIT);
    // Echoes that there was no buffer for yet: the client may be slower than this.
    let mut unsent = VecDeque::new();
    while Instant::now() < until {
        while let Some(&(connection, number)) = unsent.front() {
            match send(&me, connection, number) {
                Ok(()) => unsent.pop_front(),
                Err(Status::NoBuffers) => break,
                Err(Status::Disconnected) => return,
                Err(status) => panic!("an echo can't be sent: {status:?}"),
            };
        }
        match poll(&me) {
            Some(Event::Request {
                connection, data, ..
            }) => {
                me.return_request(data);
                clients += 1;
                if clients == 1 {
                    me.accept(connection, 0).expect("it wasn't answered");
                }
            }
            Some(Event::Received {
                connection,
                message,
            }) => {
                unsent.push_back((connection, number(&message)));
                me.return_message(message);
            }
            _ => {}
        }
    }
}

/// What a client has sent, and what it has heard of it.
#[derive(Default)]
struct Tally {
    sent: u32,
    ended: u32,
    has_failed: bool,
    echoes: u32,
    answer: Option<Status>,
}

impl Tally {
    /// Sends with an event each, as much as there is room for.
    fn send_all(&mut self, client: &Endpoint, on: ConnectionId) -> Status {
        loop {
            let region = bytes(&self.sent.to_le_bytes());
            let flags = MessageFlags::default();
            match client.send(on, &[region.claim()], self.sent.into(), flags) {
                Ok(()) => self.sent += 1,
                Err(status) => return status,
            }
        }
    }

    /// Takes all events: each send ends once, in order, and none succeeds behind one that failed.
    fn take_all(&mut self, client: &Endpoint) {
        while let Some(event) = poll(client) {
            match event {
                Event::Sent {
                    context, status, ..
                } => {
                    assert_eq!(context, self.ended.into());
                    self.ended += 1;
                    if status != Status::Success || self.has_failed {
                        assert_eq!(status, Status::Disconnected);
                        self.has_failed = true;
                    }
                }
                Event::Received { message, .. } => {
                    assert_eq!(number(&message), self.echoes);
                    self.echoes += 1;
                    client.return_message(message);
                }
                Event::Connected { result, .. } => self.answer = result.err(),
                other => panic!("expected an end, not {other:?}"),
            }
        }
    }
}

/// Connects to a server that is about to start.
fn connect_soon(client: &Endpoint, uri: &str) -> ConnectionId {
    wait("server", || {
        client
            .connect(uri, Claim::empty(), Attribute::Ro, 0, None)
            .expect("the URI is good");
        match wait("answer", || poll(client)) {
            Event::Connected { result, .. } => result.ok().map(|(connection, _)| connection),
            other => panic!("expected an answer, not {other:?}"),
        }
    })
}

/// Kills a server after `count` sends have ended, while others and a request are on their way.
fn outlive_server(client: &Endpoint, group: &str, count: u32) {
    let mut server = start(KILLED_SERVER, group);
    let uri = format!("sm://{group}/{SERVICE}");
    let connection = connect_soon(client, &uri);
    client
        .connect(&uri, Claim::empty(), Attribute::Ru, 0, None)
        .expect("the URI is good");
    let mut tally = Tally::default();
    wait("end of the first sends", || {
        assert_eq!(tally.send_all(client, connection), Status::NoBuffers);
        tally.take_all(client);
        (tally.ended >= count).then_some(())
    });
    kill(&mut server);
    wait("end of all operations", || {
        let status = tally.send_all(client, connection);
        tally.take_all(client);
        let is_over = status == Status::Disconnected && tally.ended == tally.sent;
        (is_over && tally.answer.is_some()).then_some(())
    });
    println!("{} sent, {} echoes", tally.sent, tally.echoes);
    assert_eq!(tally.answer, Some(Status::Refused));
    assert!(tally.echoes <= tally.sent);
    client.disconnect(connection).expect("it is there");
    let held = client.resources();
    assert_eq!((held.connections, held.pending, held.held), (0, 0, 0));
    wait_for_removal(server.id());
}

#[test]
fn operations_of_a_client_end_once_when_its_server_is_killed() {
    if let Ok(group) = std::env::var(CHILD) {
        return serve(&group);
    }
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let device = own_sm("killed-server");
    let client = open(&device);
    let set = client.set_option(EndpointOption::SendBuffers, 500);
    set.expect("any count will do");
    for round in 0..8 {
        // Between none and some thousand; each server has the name of the killed one before.
        let count = (seed.wrapping_mul(round * 0x9e37_79b9) >> 7) % 3000;
        outlive_server(&client, &device.path, count as u32);
    }
}
