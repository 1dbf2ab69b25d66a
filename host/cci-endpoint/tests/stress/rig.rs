//! Endpoints, connections, messages with a number, and processes at the other side.

use lintel_cci_endpoint::{
    Attribute, ConnectionId, Device, Endpoint, Event, Message, MessageFlags, Status, Time,
    Transport, devices,
};
use lintel_claim::{Claim, Region};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(240);
pub(crate) const SILENT: MessageFlags = MessageFlags {
    blocking: false,
    no_copy: false,
    silent: true,
};

pub(crate) fn sm(group: &str) -> Device {
    let mut found = devices();
    let place = found.iter().position(|it| it.transport == Transport::Sm);
    let mut device = found.swap_remove(place.expect("there is always shared memory"));
    device.path = group.to_owned();
    device
}

/// Shared memory in a group that only this test is in.
pub(crate) fn own_sm(test: &str) -> Device {
    sm(&format!("/stress/{}/{test}", std::process::id()))
}

pub(crate) fn open(device: &Device) -> Endpoint {
    Endpoint::open(device, None, false).expect("the system has room")
}

pub(crate) fn poll(endpoint: &Endpoint) -> Option<Event> {
    match endpoint.take_event() {
        Ok(event) => Some(event),
        Err(Status::Again | Status::NoBuffers) => None,
        Err(status) => panic!("no event, but {status:?}"),
    }
}

/// Waits until `look` has found something.
pub(crate) fn wait<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "no {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn bytes(bytes: &[u8]) -> Region {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

pub(crate) fn send(from: &Endpoint, on: ConnectionId, number: u32) -> Result<(), Status> {
    let region = bytes(&number.to_le_bytes());
    from.send(on, &[region.claim()], number.into(), SILENT)
}

pub(crate) fn number(message: &Message) -> u32 {
    let bytes = message.to_vec();
    u32::from_le_bytes(bytes.try_into().expect("a number has four bytes"))
}

/// A connection between two endpoints, by its names at both.
pub(crate) fn join(
    a: &Endpoint,
    b: &Endpoint,
    attribute: Attribute,
) -> (ConnectionId, ConnectionId) {
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

/// Names the group and the URI that the killed process of a test connects to.
pub(crate) const CHILD: &str = "CCI_STRESS_CHILD";
pub(crate) const KILLED: &str = "killed::a_process_killed_at_any_point_leaves_nothing_to_its_peer";

/// A process that runs a test of this file as its other side; `place` is for that.
pub(crate) fn start(test: &str, place: &str) -> Child {
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
pub(crate) fn start_child(group: &str, uri: &str) -> Child {
    start(KILLED, &format!("{group} {uri}"))
}

/// Ends a process without a chance to tidy up.
pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("it is alive");
    child.wait().expect("it was killed");
}

/// Waits until nothing of a killed process is left in shared memory.
pub(crate) fn wait_for_removal(pid: u32) {
    wait("removal of what the process left", || {
        let files = std::fs::read_dir("/dev/shm").expect("it can be read");
        let mut names = files.flatten().map(|file| file.file_name());
        let left = names.any(|name| name.to_string_lossy().contains(&format!("-{pid:x}-")));
        (!left).then_some(())
    });
}
