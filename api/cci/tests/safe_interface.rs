//! What the safe interface adds: lifetimes, tokens that are consumed, and waiting.
//! The rules of CCI are tested where they live.

use cci2::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
const BOTH: Access = Access {
    read: true,
    write: true,
};

/// Two endpoints over shared memory, in a group that only this test is in.
fn endpoints(test: &str) -> (Endpoint, Endpoint) {
    let mut found = devices().into_iter();
    let device = found.find(|it| it.transport == Transport::Sm);
    let mut device = device.expect("there is always shared memory");
    device.path = format!("/safe/{}/{test}", std::process::id());
    let open = || Endpoint::open(&device).expect("the system has room");
    (open(), open())
}

fn event(endpoint: &Endpoint) -> Event {
    let event = endpoint.wait(SOON).expect("buffers are free");
    event.expect("an event comes soon")
}

fn request(client: &Endpoint, server: &Endpoint) -> Request {
    let asked = client.connect(&server.uri(), Connect::default());
    asked.expect("the URI is good");
    match event(server) {
        Event::Request(request) => request,
        other => panic!("expected a request, not {other:?}"),
    }
}

fn answer(client: &Endpoint) -> Result<Connection> {
    match event(client) {
        Event::Connected { result, .. } => result,
        other => panic!("expected an answer, not {other:?}"),
    }
}

/// The connection at both ends.
fn join(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let accepted = request(client, server).accept(7);
    accepted.expect("the client waits");
    let at_client = answer(client).expect("it was accepted");
    match event(server) {
        Event::Accepted { context, result } => {
            assert_eq!(context, 7);
            (at_client, result.expect("the client is there"))
        }
        other => panic!("expected a connection, not {other:?}"),
    }
}

fn received(endpoint: &Endpoint, on: &Connection) -> Message {
    match event(endpoint) {
        Event::Received {
            connection,
            message,
        } => {
            assert_eq!(connection, on.id());
            message
        }
        other => panic!("expected a message, not {other:?}"),
    }
}

#[test]
fn a_message_holds_its_buffer_until_it_is_dropped() {
    let (client, server) = endpoints("held");
    let (from, to) = join(&client, &server);
    for text in [&b"first"[..], b"second"] {
        from.send(text, Completion::Blocking).expect("it is open");
    }
    let (first, second) = (received(&server, &to), received(&server, &to));
    assert_eq!(server.resources().held, 2);
    drop(first);
    assert_eq!(server.resources().held, 1);
    assert_eq!(second.to_vec(), b"second");
    let mut start = [0; 3];
    assert_eq!((second.read(&mut start), &start), (3, b"sec"));
    drop(second);
    assert_eq!(server.resources().held, 0);
}

#[test]
fn messages_of_each_length_arrive_as_they_were_sent() {
    let (client, server) = endpoints("lengths");
    let (from, to) = join(&client, &server);
    let longest = from.max_send_size() as usize;
    for length in [0, 1, 56, 57, longest] {
        let sent: Vec<u8> = (0..length).map(|at| at as u8 ^ 0x5a).collect();
        from.send(&sent, Completion::Event(5)).expect("it is open");
        assert_eq!(received(&server, &to).to_vec(), sent);
        match event(&client) {
            Event::Sent {
                context, result, ..
            } => assert_eq!((context, result), (5, Ok(()))),
            other => panic!("expected an end, not {other:?}"),
        }
    }
    let too_long = from.send(&vec![0; longest + 1], Completion::Silent);
    assert_eq!(too_long, Err(Status::MessageSize));
}

#[test]
fn a_request_that_is_dropped_is_rejected() {
    let (client, server) = endpoints("dropped");
    drop(request(&client, &server));
    assert_eq!(answer(&client).map(drop), Err(Status::Refused));
    let rejected = request(&client, &server).reject();
    rejected.expect("the client waits");
    assert_eq!(answer(&client).map(drop), Err(Status::Refused));
}

#[test]
fn a_connection_ends_when_it_is_dropped() {
    let (client, server) = endpoints("disconnected");
    let (from, to) = join(&client, &server);
    drop(to);
    assert_eq!(server.resources().connections, 0);
    let sent = from.send(b"to nobody", Completion::Blocking);
    assert_eq!(sent, Err(Status::Disconnected));
}

#[test]
fn what_was_made_keeps_the_endpoint_open() {
    let (client, server) = endpoints("kept");
    let (from, to) = join(&client, &server);
    drop(client);
    from.send(b"still", Completion::Blocking)
        .expect("it is open");
    let message = received(&server, &to);
    drop((to, server));
    assert_eq!(message.to_vec(), b"still");
}

#[test]
fn written_memory_is_in_place_when_its_message_arrives() {
    let (client, server) = endpoints("written");
    let (from, to) = join(&client, &server);
    let target = Region::new(1 << 20);
    let remote = Registration::new(&server, &target, BOTH).expect("it has bytes");
    // The peer learns the handle by a message.
    let bytes = remote.handle().to_bytes();
    to.send(&bytes, Completion::Silent).expect("it is open");
    let bytes = received(&client, &from).to_vec();
    let handle = RmaHandle::from_bytes(bytes.try_into().expect("a handle has 32 bytes"));
    assert_eq!(handle.length(), 1 << 20);

    let source = Region::new(1 << 20);
    source.write((1 << 20) - 6, b"lintel");
    let local = Registration::new(&client, &source, BOTH).expect("it has bytes");
    let write = Rma {
        message: Some(b"written"),
        ..Rma::new(Direction::Write, &local, handle)
    };
    from.rma(write, Completion::Silent).expect("it is open");
    assert_eq!(received(&server, &to).to_vec(), b"written");
    let mut seen = [0; 6];
    target.read((1 << 20) - 6, &mut seen);
    assert_eq!(&seen, b"lintel");

    let foreign = Rma::new(Direction::Read, &remote, handle);
    let refused = from.rma(foreign, Completion::Blocking);
    assert_eq!(refused, Err(Status::Invalid));
    drop(remote);
    let read = Rma::new(Direction::Read, &local, handle);
    let gone = from.rma(read, Completion::Blocking);
    assert_eq!(gone, Err(Status::RmaHandle));
}

#[test]
fn waiting_ends_with_its_time_or_an_event() {
    let (client, server) = endpoints("waiting");
    let nothing = server.wait(Duration::from_millis(1));
    assert!(nothing.expect("buffers are free").is_none());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.wait(SOON));
        let asked = client.connect(&server.uri(), Connect::default());
        let event = waiter.join().expect("it doesn't panic");
        assert_eq!(asked, Ok(()));
        assert!(matches!(event, Ok(Some(Event::Request(_)))));
    });
}

#[test]
fn the_descriptor_is_readable_while_events_wait() {
    let (client, server) = endpoints("descriptor");
    let is_readable = |length: Duration| {
        let mut watched = [PollFd::new(&server, PollFlags::IN)];
        let length = Timespec::try_from(length).expect("it isn't so long");
        poll(&mut watched, Some(&length)) == Ok(1)
    };
    assert!(!is_readable(Duration::ZERO));
    let asked = client.connect(&server.uri(), Connect::default());
    asked.expect("the URI is good");
    assert!(is_readable(SOON));
    // The longest time isn't too long.
    let event = server.wait(Duration::MAX);
    assert!(matches!(event, Ok(Some(Event::Request(_)))));
    assert!(!is_readable(Duration::ZERO));
}

#[test]
fn waiting_for_a_message_without_a_free_buffer_says_so() {
    let (client, server) = endpoints("buffers");
    let set = server.set_option(EndpointOption::RecvBuffers, 1);
    set.expect("any count will do");
    let (from, to) = join(&client, &server);
    from.send(b"first", Completion::Blocking)
        .expect("it is open");
    let held = received(&server, &to);
    let none = server.wait(Duration::from_millis(1));
    assert_eq!(none.map(drop), Err(Status::NoBuffers));
    drop(held);
    from.send(b"second", Completion::Silent)
        .expect("it is open");
    assert_eq!(received(&server, &to).to_vec(), b"second");
}
