//! Many messages, many connections, a bad network, and processes that are killed.

use lintel_cci_endpoint::{
    Attribute, ConnectionId, Device, Endpoint, EndpointOption, Event, Message, MessageFlags,
    Status, Time, Transport, devices,
};
use lintel_claim::{Claim, Region};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);
const SILENT: MessageFlags = MessageFlags {
    blocking: false,
    no_copy: false,
    silent: true,
};

fn sm(group: &str) -> Device {
    let mut found = devices();
    let place = found.iter().position(|it| it.transport == Transport::Sm);
    let mut device = found.swap_remove(place.expect("there is always shared memory"));
    device.path = group.to_owned();
    device
}

/// Shared memory in a group that only this test is in.
fn own_sm(test: &str) -> Device {
    sm(&format!("/stress/{}/{test}", std::process::id()))
}

fn open(device: &Device) -> Endpoint {
    Endpoint::open(device, None, false).expect("the system has room")
}

fn poll(endpoint: &Endpoint) -> Option<Event> {
    match endpoint.take_event() {
        Ok(event) => Some(event),
        Err(Status::Again | Status::NoBuffers) => None,
        Err(status) => panic!("no event, but {status:?}"),
    }
}

/// Waits until `look` has found something.
fn wait<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "no {what}");
        std::thread::yield_now();
    }
}

fn bytes(bytes: &[u8]) -> Region {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

fn send(from: &Endpoint, on: ConnectionId, number: u32) -> Result<(), Status> {
    let region = bytes(&number.to_le_bytes());
    from.send(on, &[region.claim()], number.into(), SILENT)
}

fn number(message: &Message) -> u32 {
    let bytes = message.to_vec();
    u32::from_le_bytes(bytes.try_into().expect("a number has four bytes"))
}

/// A connection between two endpoints, by its names at both.
fn join(a: &Endpoint, b: &Endpoint, attribute: Attribute) -> (ConnectionId, ConnectionId) {
    let timeout = Some(Time(LIMIT.as_micros() as u64));
    a.connect(&b.uri(), Claim::empty(), attribute, 1, timeout)
        .expect("the URI is good");
    let mut ends = (None, None);
    wait("connection", || {
        match poll(b) {
            Some(Event::Request {
                connection, data, ..
            }) => {
                b.accept(connection, 2).expect("it wasn't answered");
                b.return_request(data);
            }
            Some(Event::Accepted { result, .. }) => ends.1 = Some(result.expect("accepted").0),
            _ => {}
        }
        if let Some(Event::Connected { result, .. }) = poll(a) {
            ends.0 = Some(result.expect("accepted").0);
        }
        ends.0.zip(ends.1)
    })
}

#[test]
fn twenty_four_thousand_messages_are_held_and_given_back_in_any_order() {
    const HELD: u32 = 24_000;
    let device = own_sm("held");
    let (a, b) = (open(&device), open(&device));
    let (from, _) = join(&a, &b, Attribute::Ro);
    let (mut sent, mut held) = (0, Vec::new());
    wait("room for all", || {
        while sent < HELD && send(&a, from, sent).is_ok() {
            sent += 1;
        }
        poll(&a);
        while let Some(Event::Received { message, .. }) = poll(&b) {
            assert_eq!(number(&message), held.len() as u32);
            held.push(message);
        }
        (held.len() == HELD as usize).then_some(())
    });
    assert_eq!(b.resources().held, HELD);
    for (at, message) in held.iter().enumerate() {
        assert_eq!(number(message), at as u32, "it stays as it was");
    }
    while let Some(message) = held.pop() {
        b.return_message(message);
    }
    assert_eq!(b.resources().held, 0);
}

#[test]
fn ten_thousand_connections_of_an_endpoint_carry_messages_and_leave_nothing() {
    const CONNECTIONS: usize = 10_000;
    let device = own_sm("many");
    let (a, b) = (open(&device), open(&device));
    let uri = b.uri();
    let (mut asked, mut from, mut to) = (0, Vec::new(), Vec::new());
    wait("connections", || {
        // Requests hold buffers until they are returned: not all of them at once.
        while asked < CONNECTIONS && asked - to.len() < 1000 {
            a.connect(&uri, Claim::empty(), Attribute::Ru, 0, None)
                .expect("there is room");
            asked += 1;
        }
        while let Some(event) = poll(&b) {
            match event {
                Event::Request {
                    connection, data, ..
                } => {
                    b.accept(connection, 0).expect("it wasn't answered");
                    b.return_request(data);
                }
                Event::Accepted { result, .. } => to.push(result.expect("accepted").0),
                other => panic!("expected a request, not {other:?}"),
            }
        }
        while let Some(Event::Connected { result, .. }) = poll(&a) {
            from.push(result.expect("accepted").0);
        }
        (from.len() == CONNECTIONS && to.len() == CONNECTIONS).then_some(())
    });
    assert_eq!(b.resources().connections, CONNECTIONS);
    for (at, connection) in from.iter().enumerate() {
        send(&a, *connection, at as u32).expect("there is room");
    }
    let mut seen = vec![false; CONNECTIONS];
    for _ in 0..CONNECTIONS {
        let message = wait("message", || match (poll(&b), poll(&a)) {
            (Some(Event::Received { message, .. }), _) => Some(message),
            _ => None,
        });
        let at = number(&message) as usize;
        assert!(!std::mem::replace(&mut seen[at], true), "{at} comes once");
        b.return_message(message);
    }
    wait("end of all sends", || {
        poll(&a);
        (a.resources().pending == 0).then_some(())
    });
    for (end, connections) in [(&a, from), (&b, to)] {
        for connection in connections {
            end.disconnect(connection).expect("it is open");
        }
        assert_eq!(end.resources().connections, 0);
    }
}

/// Sends a hundred thousand messages at once while one datagram in a hundred is lost.
fn send_under_loss(attribute: Attribute) {
    const COUNT: u32 = 100_000;
    let mut device = Device::at_address(Ipv4Addr::LOCALHOST);
    device.faults = Some("loss=0.01,seed=7".parse().expect("these are faults"));
    let (a, b) = (open(&device), open(&device));
    a.set_option(EndpointOption::SendBuffers, COUNT)
        .expect("any count will do");
    let (from, to) = join(&a, &b, attribute);
    let started = Instant::now();
    for number in 0..COUNT {
        let region = bytes(&number.to_le_bytes());
        a.send(
            from,
            &[region.claim()],
            number.into(),
            MessageFlags::default(),
        )
        .expect("there are buffers for all");
    }
    let (mut received, mut ended) = (0, 0);
    wait("end of all sends", || {
        while let Some(event) = poll(&b) {
            let Event::Received {
                connection,
                message,
            } = event
            else {
                panic!("expected a message, not {event:?}");
            };
            assert_eq!((connection, number(&message)), (to, received));
            b.return_message(message);
            received += 1;
        }
        while let Some(event) = poll(&a) {
            let Event::Sent {
                context, status, ..
            } = event
            else {
                panic!("expected an end, not {event:?}");
            };
            assert_eq!((context, status), (ended.into(), Status::Success));
            ended += 1;
        }
        (received == COUNT && ended == COUNT).then_some(())
    });
    println!("{attribute:?}: {:?}", started.elapsed());
    assert_eq!(a.resources().pending, 0);
}

#[test]
fn a_hundred_thousand_ordered_sends_arrive_once_and_in_order_under_loss() {
    send_under_loss(Attribute::Ro);
}

#[test]
fn a_hundred_thousand_unordered_sends_arrive_once_under_loss() {
    send_under_loss(Attribute::Ru);
}

#[test]
fn unreliable_messages_to_a_peer_that_lags_behind_take_bounded_memory() {
    let device = own_sm("lag");
    let (a, b) = (open(&device), open(&device));
    b.set_option(EndpointOption::RecvBuffers, 10)
        .expect("any count will do");
    let (from, _) = join(&a, &b, Attribute::Uu);
    for number in 0..200_000 {
        send(&a, from, number).expect("unreliable sends are always taken");
    }
    assert!(a.bytes() < 32 << 20, "{} bytes", a.bytes());
    assert!(b.resources().held <= 10);
}

/// Names the group and the URI that the killed process of a test connects to.
const CHILD: &str = "CCI_STRESS_CHILD";
const KILLED: &str = "a_process_killed_at_any_point_leaves_nothing_to_its_peer";

/// A process that runs a test of this file as its other side; `place` is for that.
fn start(test: &str, place: &str) -> Child {
    let program = std::env::current_exe().expect("a test is a program");
    Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it can be started")
}

/// A process that connects and sends.
fn start_child(group: &str, uri: &str) -> Child {
    start(KILLED, &format!("{group} {uri}"))
}

/// Ends a process without a chance to tidy up.
fn kill(child: &mut Child) {
    child.kill().expect("it is alive");
    child.wait().expect("it was killed");
}

/// Waits until nothing of a killed process is left in shared memory.
fn wait_for_removal(pid: u32) {
    wait("removal of what the process left", || {
        let files = std::fs::read_dir("/dev/shm").expect("it can be read");
        let mut names = files.flatten().map(|file| file.file_name());
        let left = names.any(|name| name.to_string_lossy().contains(&format!("-{pid:x}-")));
        (!left).then_some(())
    });
}

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

const KILLED_SERVER: &str = "operations_of_a_client_end_once_when_its_server_is_killed";
/// The service of the server that is killed, again and again.
const SERVICE: &str = "7/1";

/// Accepts the first client, leaves others without an answer, and sends back what it receives,
/// until it is killed or its client has ended.
fn serve(group: &str) {
    let me = Endpoint::open(&sm(group), Some(SERVICE), false).expect("the service is free");
    let (mut clients, until) = (0, Instant::now() + LIMIT);
    while Instant::now() < until {
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
                let sent = send(&me, connection, number(&message));
                me.return_message(message);
                if sent == Err(Status::Disconnected) {
                    return;
                }
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
