//! Endpoints of one process over each transport.

use lintel_cci_endpoint::{
    Access, Attribute, ConnectionId, Device, Direction, Endpoint, EndpointOption, Event,
    MessageFlags, Region, RmaRequest, Status, Time, Transport, devices,
};
use lintel_claim::Claim;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A device over shared memory whose group only this test is in.
fn sm(test: &str) -> Device {
    let mut found = devices();
    let place = found.iter().position(|it| it.transport == Transport::Sm);
    let mut device = found.swap_remove(place.expect("there is always shared memory"));
    device.path = format!("/test/{}/{test}", std::process::id());
    device
}

fn open(device: &Device) -> Endpoint {
    Endpoint::open(device, None, true).expect("the system has room")
}

fn event(endpoint: &Endpoint) -> Event {
    let until = Instant::now() + LIMIT;
    loop {
        match endpoint.take_event() {
            Ok(event) => return event,
            Err(status) => assert_eq!(status, Status::Again),
        }
        assert!(Instant::now() < until, "no event arrives");
        std::thread::yield_now();
    }
}

fn claim(region: &lintel_claim::Region) -> Claim {
    region.claim()
}

fn bytes(bytes: &[u8]) -> lintel_claim::Region {
    let region = lintel_claim::Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

/// A connection from `a` to `b`, by its names at both.
fn join(a: &Endpoint, b: &Endpoint, attribute: Attribute) -> (ConnectionId, ConnectionId) {
    let data = bytes(b"hello");
    a.connect(&b.uri(), claim(&data), attribute, 1, Some(Time(20_000_000)))
        .expect("the URI is good");
    let Event::Request {
        connection,
        attribute: asked,
        data,
    } = event(b)
    else {
        panic!("a request arrives");
    };
    assert_eq!(
        (asked, data.to_vec().as_slice()),
        (attribute, &b"hello"[..])
    );
    b.accept(connection, 2).expect("it wasn't answered");
    b.return_request(data);
    // An endpoint that is connected to itself gets both, in either order.
    let mut ends = [None, None];
    while ends.contains(&None) {
        let from = if ends[0].is_none() { a } else { b };
        match event(from) {
            Event::Connected { result, .. } => ends[0] = Some(result.expect("accepted").0),
            Event::Accepted { result, .. } => ends[1] = Some(result.expect("accepted").0),
            other => panic!("expected a connection, not {other:?}"),
        }
    }
    (ends[0].expect("it is there"), ends[1].expect("it is there"))
}

fn exchange(a: &Endpoint, b: &Endpoint) {
    for attribute in [Attribute::Ro, Attribute::Ru, Attribute::Uu] {
        let (from, to) = join(a, b, attribute);
        for length in [0, 1, 56, 57, 1000, a.device().max_send] {
            let sent: Vec<u8> = (0..length).map(|at| at as u8 ^ 0x5a).collect();
            let region = bytes(&sent);
            a.send(from, &[claim(&region)], 7, MessageFlags::default())
                .expect("it is open");
            let mut left = 2;
            while left > 0 {
                let end = if left == 2 { b } else { a };
                match event(end) {
                    Event::Received {
                        connection,
                        message,
                    } => {
                        assert_eq!((connection, message.to_vec()), (to, sent.clone()));
                        assert_eq!(message.address() % 8, 0);
                        b.return_message(message);
                    }
                    Event::Sent {
                        context, status, ..
                    } => assert_eq!((context, status), (7, Status::Success)),
                    other => panic!("expected a message, not {other:?}"),
                }
                left -= 1;
            }
        }
    }
}

/// Writes and reads a megabyte, by blocking calls, while the other end's application sleeps.
fn access(a: &Endpoint, b: &Endpoint) {
    const LENGTH: u64 = 1 << 20;
    let (from, _) = join(a, b, Attribute::Ro);
    let both = Access {
        read: true,
        write: true,
    };
    let pattern: Vec<u8> = (0..LENGTH).map(|at| (at / 7) as u8).collect();
    let (source, target) = (bytes(&pattern), lintel_claim::Region::new(LENGTH));
    let back = lintel_claim::Region::new(LENGTH);
    let local = a.register(claim(&source), both);
    let remote = b.register(claim(&target), both);
    let returned = a.register(claim(&back), both);
    let blocking = MessageFlags {
        blocking: true,
        ..MessageFlags::default()
    };
    let request = |key, direction| RmaRequest {
        direction,
        local: Region {
            key,
            offset: 0,
            length: LENGTH,
        },
        remote_key: remote,
        remote_offset: 0,
        fence: false,
    };
    let read = |region: &lintel_claim::Region| {
        let mut bytes = vec![0; LENGTH as usize];
        region.read(0, &mut bytes);
        bytes
    };
    a.rma(from, request(local, Direction::Write), None, 0, blocking)
        .expect("it is allowed");
    assert!(read(&target) == pattern, "a write is in place at its end");
    a.rma(from, request(returned, Direction::Read), None, 0, blocking)
        .expect("it is allowed");
    assert!(read(&back) == pattern, "a read is in place at its end");
    b.deregister(remote).expect("it is registered");
    let gone = a.rma(from, request(local, Direction::Write), None, 0, blocking);
    assert_eq!(gone, Err(Status::RmaHandle));
    assert_eq!(b.deregister(remote), Err(Status::Invalid));
}

#[test]
fn an_endpoint_talks_to_itself() {
    let endpoint = open(&sm("itself"));
    exchange(&endpoint, &endpoint);
    access(&endpoint, &endpoint);
}

#[test]
fn two_endpoints_talk_over_shared_memory() {
    let device = sm("two");
    let (a, b) = (open(&device), open(&device));
    exchange(&a, &b);
    access(&a, &b);
}

/// While an application polls, acknowledgements wait for its next message or its next poll.
/// More messages than may be under way at a time, of a program that ends after it has sent them.
#[test]
fn what_was_sent_before_an_endpoint_is_destroyed_arrives() {
    const COUNT: u32 = 2000;
    let device = sm("destroyed");
    let (a, b) = (open(&device), open(&device));
    let (from, _) = join(&a, &b, Attribute::Ro);
    let silent = MessageFlags {
        silent: true,
        ..MessageFlags::default()
    };
    for number in 0..COUNT {
        a.send_bytes(from, &number.to_ne_bytes(), 0, silent)
            .expect("there are send buffers");
    }
    a.disconnect(from).expect("it is open");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(a));
        for number in 0..COUNT {
            let Event::Received { message, .. } = event(&b) else {
                panic!("messages arrive");
            };
            assert_eq!(message.to_vec(), number.to_ne_bytes());
            b.return_message(message);
        }
    });
}

/// A read that is under way is over, or fails.
#[test]
fn memory_is_the_applications_own_once_its_endpoint_is_destroyed() {
    const LENGTH: u64 = 64 << 20;
    let device = sm("own");
    let both = Access {
        read: true,
        write: true,
    };
    let (source, target) = (
        lintel_claim::Region::new(LENGTH),
        lintel_claim::Region::new(LENGTH),
    );
    for _ in 0..5 {
        let (a, b) = (open(&device), open(&device));
        let (from, _) = join(&a, &b, Attribute::Ro);
        let local = a.register(claim(&target), both);
        let remote = b.register(claim(&source), both);
        let read = RmaRequest {
            direction: Direction::Read,
            local: Region {
                key: local,
                offset: 0,
                length: LENGTH,
            },
            remote_key: remote,
            remote_offset: 0,
            fence: false,
        };
        a.rma(from, read, None, 0, MessageFlags::default())
            .expect("it is allowed");
        drop(a);
        let own = vec![0xaa; LENGTH as usize];
        target.write(0, &own);
        // Then the peer copies no more.
        b.deregister(remote).expect("it is registered");
        drop(b);
        let mut found = vec![0; LENGTH as usize];
        target.read(0, &mut found);
        assert!(found == own);
    }
}

#[test]
fn what_an_application_took_before_it_stopped_polling_is_acknowledged() {
    const POLLS: u32 = 2000;
    let device = sm("stops");
    let (a, b) = (open(&device), open(&device));
    let (from, to) = join(&a, &b, Attribute::Ro);
    for context in 0..20 {
        for _ in 0..POLLS {
            assert_eq!(b.take_event().map(|_| ()), Err(Status::Again));
        }
        a.send_bytes(from, b"last", context, MessageFlags::default())
            .expect("it is open");
        let Event::Received {
            connection,
            message,
        } = event(&b)
        else {
            panic!("a message arrives");
        };
        assert_eq!(connection, to);
        b.return_message(message);
        let Event::Sent { status, .. } = event(&a) else {
            panic!("the message has arrived");
        };
        assert_eq!(status, Status::Success);
    }
}

#[test]
fn a_message_is_acknowledged_although_others_come_all_the_time() {
    const POLLS: u32 = 5000;
    let device = sm("crowded");
    let (a, c) = (open(&device), open(&device));
    // Without a handle, all polls count.
    let b = Endpoint::open(&device, None, false).expect("the system has room");
    let (from, _) = join(&a, &b, Attribute::Ro);
    let (other, _) = join(&c, &b, Attribute::Uu);
    let silent = MessageFlags {
        silent: true,
        ..MessageFlags::default()
    };
    for round in 0..30 {
        a.send_bytes(from, b"once", round, MessageFlags::default())
            .expect("it is open");
        let mut is_acknowledged = false;
        for _ in 0..POLLS {
            c.send_bytes(other, b"always", 0, silent)
                .expect("unreliable messages are always taken");
            match b.take_event() {
                Ok(Event::Received { message, .. }) => b.return_message(message),
                found => panic!("{found:?}, but there is a message"),
            }
            is_acknowledged |= matches!(a.take_event(), Ok(Event::Sent { .. }));
        }
        assert!(is_acknowledged, "round {round}");
    }
}

#[test]
fn a_connection_to_nobody_is_refused() {
    let device = sm("nobody");
    let (a, b) = (open(&device), open(&device));
    let uri = b.uri();
    drop(b);
    a.connect(&uri, Claim::empty(), Attribute::Ro, 3, None)
        .expect("the URI is good");
    match event(&a) {
        Event::Connected { context, result } => {
            assert_eq!((context, result), (3, Err(Status::Refused)));
        }
        other => panic!("expected a refusal, not {other:?}"),
    }
}

/// A group and port that no other run of this test uses at the time.
fn group() -> String {
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let port = 20_000 + u32::from(low);
    format!("sock://239.255.{high}.{low}:{port}")
}

/// A connection to a multicast group.
fn join_group(end: &Endpoint, group: &str, attribute: Attribute) -> ConnectionId {
    end.connect(group, Claim::empty(), attribute, 5, None)
        .expect("it is a group");
    match event(end) {
        Event::Connected { context, result } => {
            assert_eq!(context, 5);
            result.expect("nobody decides").0
        }
        other => panic!("expected a connection, not {other:?}"),
    }
}

fn expect_message(end: &Endpoint, on: ConnectionId, bytes: &[u8]) {
    match event(end) {
        Event::Received {
            connection,
            message,
        } => {
            assert_eq!((connection, message.to_vec().as_slice()), (on, bytes));
            end.return_message(message);
        }
        other => panic!("expected a message, not {other:?}"),
    }
}

#[test]
fn all_members_of_a_group_receive_what_is_sent_to_it() {
    let device = Device::at_address(Ipv4Addr::LOCALHOST);
    let (sender, one, other) = (open(&device), open(&device), open(&device));
    let group = group();
    let at_one = join_group(&one, &group, Attribute::UuMcRx);
    let at_other = join_group(&other, &group, Attribute::UuMcRx);
    let to = join_group(&sender, &group, Attribute::UuMcTx);
    let send = |text: &[u8]| {
        let region = bytes(text);
        let blocking = MessageFlags {
            blocking: true,
            ..MessageFlags::default()
        };
        sender.send(to, &[claim(&region)], 0, blocking)
    };
    // A stranger's datagram has no authenticator.
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    rustix::net::sockopt::set_ip_multicast_if(&stranger, &Ipv4Addr::LOCALHOST).expect("it is up");
    let address = group.strip_prefix("sock://").expect("it is a URI");
    stranger
        .send_to(b"0123456789abcdef forged", address)
        .expect("anybody can send");
    for text in [&b"to all"[..], b""] {
        send(text).expect("it is open");
        expect_message(&one, at_one, text);
        expect_message(&other, at_other, text);
    }
    other.disconnect(at_other).expect("it is open");
    send(b"to one").expect("it is open");
    expect_message(&one, at_one, b"to one");
    assert_eq!(other.take_event().err(), Some(Status::Again));
    assert_eq!(
        one.send(at_one, &[], 0, MessageFlags::default()),
        Err(Status::Invalid)
    );
}

#[test]
fn a_group_is_no_process_and_shared_memory_has_no_groups() {
    let udp = open(&Device::at_address(Ipv4Addr::LOCALHOST));
    let connect =
        |end: &Endpoint, uri: &str, attribute| end.connect(uri, Claim::empty(), attribute, 0, None);
    let group = "sock://239.255.0.1:20000";
    let refused = Err(Status::Invalid);
    assert_eq!(connect(&udp, group, Attribute::Uu), refused);
    assert_eq!(connect(&udp, &udp.uri(), Attribute::UuMcRx), refused);
    let near = open(&sm("groups"));
    let refused = Err(Status::NotImplemented);
    assert_eq!(connect(&near, group, Attribute::UuMcTx), refused);
}

#[test]
fn the_handle_is_readable_while_events_wait() {
    let device = sm("handle");
    let (a, b) = (open(&device), open(&device));
    a.connect(&b.uri(), Claim::empty(), Attribute::Ro, 3, None)
        .expect("the URI is good");
    let until = Instant::now() + LIMIT;
    let is_readable = || {
        b.with_handle(|handle| {
            let handle = handle.expect("it was asked for");
            let mut watched = [rustix::event::PollFd::new(
                &handle,
                rustix::event::PollFlags::IN,
            )];
            let now = rustix::event::Timespec::default();
            rustix::event::poll(&mut watched, Some(&now)).expect("a good descriptor") == 1
        })
    };
    while !is_readable() {
        assert!(Instant::now() < until, "the helper announces the request");
        std::thread::yield_now();
    }
    assert!(is_readable(), "it stays so");
    assert!(matches!(b.take_event(), Ok(Event::Request { .. })));
    assert!(!is_readable(), "nothing waits any more");
}

#[test]
fn options_are_read_as_they_were_set() {
    let endpoint = open(&sm("options"));
    for option in [
        EndpointOption::SendTimeout,
        EndpointOption::RecvBuffers,
        EndpointOption::SendBuffers,
        EndpointOption::Keepalive,
    ] {
        assert_eq!(endpoint.set_option(option, 77), Ok(()));
        assert_eq!(endpoint.option(option), Ok(77));
    }
}

#[test]
fn a_name_in_use_is_refused() {
    let device = sm("in-use");
    let first = Endpoint::open(&device, Some("7/8"), false).expect("it is free");
    assert!(first.uri().ends_with("/7/8"), "{}", first.uri());
    let second = Endpoint::open(&device, Some("7/8"), false);
    assert_eq!(second.err().map(Status::from), Some(Status::Busy));
    assert!(Endpoint::open(&device, Some("7"), false).is_err());
}
