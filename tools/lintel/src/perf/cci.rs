//! `cci`: messages and remote memory accesses of CCI, beside a put of Portals 4.
//!
//! Calls go to the layer below `cci.h`, `lintel-cci-endpoint`; the C functions add their checks
//! and the handles of events.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::{Acquire, Release};

use lintel_cci_endpoint::{
    Access, Attribute, ConnectionId, Device, Direction, Endpoint, Event, MessageFlags,
    Region as Part, RmaRequest, Status, Transport, devices,
};
use lintel_claim::{Claim, Region as Memory};

use super::endpoint::{Endpoint as Portals, Setup};
use super::pingpong::PutPing;
use super::session::Session;
use crate::error::{Error, Result};
use crate::harness::{Workload, measure};
use crate::portals::Counted;
use crate::raw::Region;
use crate::report::Row;
use crate::team::WORDS;

/// The attributes that are measured, with their names.
const ATTRIBUTES: [(&str, Attribute); 2] = [("UU", Attribute::Uu), ("RO", Attribute::Ro)];
/// The longest access that is measured, bytes.
const LONGEST: u64 = 4 << 20;
/// Messages that a sender of a stream is ahead of the receiver, and between two of its reports.
const AHEAD: u64 = 4096;
/// Their bytes, at most: of unreliable messages, an endpoint drops those behind 4 MiB.
const AHEAD_BYTES: u64 = 2 << 20;
const REPORT: u64 = 256;

/// Latency and rate of sends, then writes and reads.
pub fn run(session: &mut Session) -> Result<()> {
    let mut setup = Setup::simple(session, 4096, Counted::Acks);
    setup.depth = 64;
    let portals = Portals::new(session, setup)?;
    let ends = Ends::open(session)?;
    latency(session, &ends, &portals)?;
    rate(session, &ends)?;
    accesses(session, &ends)?;
    session.team.barrier()
}

/// Half round trips, in turns with those of a put of 8 bytes.
fn latency(session: &mut Session, ends: &Ends, portals: &Portals) -> Result<()> {
    let longest = u64::from(ends.endpoint.device().max_send);
    let sizes = session.options.sizes.clone();
    for bytes in sizes.into_iter().filter(|bytes| *bytes <= longest) {
        session.announce("cci, send", bytes);
        let mut put = PutPing::new(portals, 8, 0);
        let [mut uu, mut ro] = ATTRIBUTES.map(|(_, attribute)| Ping::new(ends, attribute, bytes));
        let workloads: &mut [&mut dyn Workload] = &mut [&mut put, &mut uu, &mut ro];
        let outcomes = measure(&session.team, session.plan, workloads)?;
        for (at, (name, _)) in ATTRIBUTES.iter().enumerate() {
            session.record(|| {
                let own = &outcomes[at + 1];
                Row::new("cci", format!("{name} send"), bytes)
                    .timed(own, 2.0)
                    .with("× put of 8 B", own.ratio_to(&outcomes[0]))
            });
        }
    }
    Ok(())
}

/// Streams of sends.
fn rate(session: &mut Session, ends: &Ends) -> Result<()> {
    let window = session.options.window;
    for bytes in [8, 4096].map(|bytes| bytes.min(u64::from(ends.endpoint.device().max_send))) {
        session.announce("cci, stream", bytes);
        let mut streams = Vec::new();
        for (_, attribute) in ATTRIBUTES {
            let done = session.team.share(4096)?;
            streams.push(Stream::new(ends, attribute, (bytes, window), done));
        }
        let mut workloads: Vec<&mut dyn Workload> = Vec::new();
        workloads.extend(streams.iter_mut().map(|it| it as &mut dyn Workload));
        let outcomes = measure(&session.team, session.plan, &mut workloads)?;
        for (own, (name, _)) in outcomes.iter().zip(ATTRIBUTES) {
            session.record(|| {
                Row::new("cci", format!("{name} stream"), bytes)
                    .timed(own, 1.0)
                    .with_rate(1.0)
                    .with_bandwidth(bytes)
                    .with("in flight", window as f64)
            });
        }
    }
    Ok(())
}

/// Writes and reads, from the call to the event.
fn accesses(session: &mut Session, ends: &Ends) -> Result<()> {
    let ways = [
        ("RMA write", Direction::Write),
        ("RMA read", Direction::Read),
    ];
    let sizes = session.options.sizes.clone();
    for bytes in sizes.into_iter().filter(|it| (1..=LONGEST).contains(it)) {
        for (name, direction) in ways {
            session.announce("cci, access", bytes);
            let done = session.team.share(4096)?;
            let mut access = RemoteAccess::new(ends, direction, bytes, done);
            let outcomes = measure(&session.team, session.plan, &mut [&mut access])?;
            session.record(|| {
                Row::new("cci", name, bytes)
                    .timed(&outcomes[0], 1.0)
                    .with_bandwidth(bytes)
            });
        }
    }
    Ok(())
}

/// One side: its endpoint and its connections to the other.
struct Ends {
    endpoint: Endpoint,
    connections: [ConnectionId; 2],
    /// This side's registration, and the other's.
    key: u64,
    remote_key: u64,
    /// Own operations that have ended.
    ended: Cell<u64>,
    /// Behind the registration.
    _memory: Memory,
}

impl Ends {
    fn open(session: &Session) -> Result<Ends> {
        let device = match session.options.network.is_crossed() {
            true => Device::at_address(Ipv4Addr::LOCALHOST),
            false => shared_memory()?,
        };
        let endpoint = Endpoint::open(&device, None, false);
        let endpoint = endpoint.map_err(|why| Error::Wrong(format!("no endpoint: {why:?}")))?;
        let memory = Memory::new(LONGEST);
        let both = Access {
            read: true,
            write: true,
        };
        let key = endpoint.register(memory.claim(), both);
        let mut words = [0; WORDS];
        let (start, name) = split(&endpoint.uri())?;
        words[..2].copy_from_slice(&[name, key]);
        let words = session.team.swap(words)?;
        let peer = format!("{start}{}", joined(&device, words[0]));
        let connections = match session.team.leads() {
            true => connect(&endpoint, &peer)?,
            false => accept(&endpoint)?,
        };
        session.team.barrier()?;
        Ok(Ends {
            endpoint,
            connections,
            key,
            remote_key: words[1],
            ended: Cell::new(0),
            _memory: memory,
        })
    }

    fn connection(&self, attribute: Attribute) -> ConnectionId {
        self.connections[usize::from(attribute == Attribute::Ro)]
    }

    /// Takes an event, if there is one; true if it was a message.
    #[inline]
    fn take(&self) -> Result<bool> {
        match self.endpoint.take_event() {
            Ok(Event::Received { message, .. }) => {
                self.endpoint.return_message(message);
                Ok(true)
            }
            Ok(Event::Sent {
                status: Status::Success,
                ..
            }) => {
                self.ended.set(self.ended.get() + 1);
                Ok(false)
            }
            Err(Status::Again) => Ok(false),
            Ok(other) => Err(Error::Wrong(format!("an endpoint reports {other:?}"))),
            Err(status) => Err(Error::Wrong(format!("no event: {status:?}"))),
        }
    }

    #[inline]
    fn receive(&self, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0 {
            left -= u64::from(self.take()?);
        }
        Ok(())
    }

    /// Waits until so many operations have ended.
    #[inline]
    fn wait_for_ends(&self, count: u64) -> Result<()> {
        while self.ended.get() < count {
            self.take()?;
        }
        Ok(())
    }

    #[inline]
    fn send(&self, on: ConnectionId, bytes: Claim) -> Result<()> {
        let flags = MessageFlags::default();
        loop {
            match self.endpoint.send(on, &[bytes], 0, flags) {
                Ok(()) => return Ok(()),
                Err(Status::NoBuffers) => drop(self.take()?),
                Err(status) => return Err(Error::Wrong(format!("no send: {status:?}"))),
            }
        }
    }
}

fn shared_memory() -> Result<Device> {
    let mut all = devices().into_iter();
    let device = all.find(|device| device.transport == Transport::Sm);
    device.ok_or_else(|| Error::Wrong("CCI has no device over shared memory".into()))
}

/// What all endpoints of a device begin with, and the number that distinguishes them: the
/// port, or process and endpoint number.
fn split(uri: &str) -> Result<(String, u64)> {
    let wrong = || Error::Wrong(format!("{uri} isn't a URI of CCI"));
    let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
    if uri.starts_with("sm:") {
        let mut parts = uri.rsplitn(3, '/');
        let mut part = || parts.next().ok_or_else(wrong);
        let (id, pid, start) = (number(part()?)?, number(part()?)?, part()?);
        return Ok((format!("{start}/"), pid << 32 | id));
    }
    let (start, port) = uri.rsplit_once(':').ok_or_else(wrong)?;
    Ok((format!("{start}:"), number(port)?))
}

/// The end of a URI; see [`split`].
fn joined(device: &Device, number: u64) -> String {
    match device.transport {
        Transport::Sm => format!("{}/{}", number >> 32, number as u32),
        _ => number.to_string(),
    }
}

fn connect(endpoint: &Endpoint, peer: &str) -> Result<[ConnectionId; 2]> {
    let mut all = Vec::new();
    for (_, attribute) in ATTRIBUTES {
        let asked = endpoint.connect(peer, Claim::empty(), attribute, 0, None);
        asked.map_err(|status| Error::Wrong(format!("no request: {status:?}")))?;
        all.push(loop {
            if let Ok(Event::Connected { result, .. }) = endpoint.take_event() {
                let made = result.map_err(|why| Error::Wrong(format!("no connection: {why:?}")))?;
                break made.0;
            }
        });
    }
    Ok([all[0], all[1]])
}

fn accept(endpoint: &Endpoint) -> Result<[ConnectionId; 2]> {
    let mut all = Vec::new();
    while all.len() < ATTRIBUTES.len() {
        match endpoint.take_event() {
            Ok(Event::Request {
                connection, data, ..
            }) => {
                endpoint.return_request(data);
                let accepted = endpoint.accept(connection, 0);
                accepted.map_err(|why| Error::Wrong(format!("no acceptance: {why:?}")))?;
            }
            Ok(Event::Accepted {
                result: Ok((connection, _)),
                ..
            }) => all.push(connection),
            _ => {}
        }
    }
    Ok([all[0], all[1]])
}

/// A message there, a message back.
struct Ping<'a> {
    ends: &'a Ends,
    on: ConnectionId,
    memory: Memory,
}

impl<'a> Ping<'a> {
    fn new(ends: &'a Ends, attribute: Attribute, bytes: u64) -> Self {
        Ping {
            ends,
            on: ends.connection(attribute),
            memory: Memory::new(bytes),
        }
    }

    fn send(&self) -> Result<()> {
        self.ends.send(self.on, self.memory.claim())
    }
}

impl Workload for Ping<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.send()?;
            self.ends.receive(1)?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.ends.receive(1)?;
            self.send()?;
        }
        Ok(())
    }
}

/// Many messages one way; the receiver reports beside CCI how many have come, since ends of
/// unreliable sends don't.
struct Stream<'a> {
    ping: Ping<'a>,
    window: u64,
    done: Region,
    sent: u64,
}

impl<'a> Stream<'a> {
    fn new(
        ends: &'a Ends,
        attribute: Attribute,
        (bytes, window): (u64, u64),
        done: Region,
    ) -> Self {
        Stream {
            ping: Ping::new(ends, attribute, bytes),
            window,
            done,
            sent: 0,
        }
    }

    fn ahead(&self) -> u64 {
        AHEAD.min(AHEAD_BYTES / self.ping.memory.len().max(1))
    }

    fn wait_for_arrival(&self, count: u64) -> Result<()> {
        while self.done.words()[0].load(Acquire) < count {
            self.ping.ends.take()?;
        }
        Ok(())
    }
}

impl Workload for Stream<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        let ended = self.ping.ends.ended.get();
        for at in 0..n {
            self.ping.send()?;
            self.sent += 1;
            self.ping
                .ends
                .wait_for_ends(ended + (at + 1).saturating_sub(self.window))?;
            if self.sent % REPORT == 0 {
                self.wait_for_arrival(self.sent.saturating_sub(self.ahead()))?;
            }
        }
        self.ping.ends.wait_for_ends(ended + n)?;
        self.wait_for_arrival(self.sent)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        let mut left = n;
        while left > 0 {
            let part = left.min(REPORT);
            self.ping.ends.receive(part)?;
            left -= part;
            self.sent += part;
            self.done.words()[0].store(self.sent, Release);
        }
        // A poll that finds nothing acknowledges the last ones; without one, the endpoint's helper
        // does, once it notices after up to 2 ms that this thread polls no more.
        self.ping.ends.take()?;
        Ok(())
    }

    fn fewest(&self) -> u64 {
        2 * self.window
    }
}

/// Writes or reads by rank 0.
struct RemoteAccess<'a> {
    ends: &'a Ends,
    request: RmaRequest,
    done: Region,
    batches: u64,
}

impl<'a> RemoteAccess<'a> {
    fn new(ends: &'a Ends, direction: Direction, bytes: u64, done: Region) -> Self {
        RemoteAccess {
            ends,
            request: RmaRequest {
                direction,
                local: Part {
                    key: ends.key,
                    offset: 0,
                    length: bytes,
                },
                remote_key: ends.remote_key,
                remote_offset: 0,
                fence: false,
            },
            done,
            batches: 0,
        }
    }
}

impl Workload for RemoteAccess<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        let (ends, flags) = (self.ends, MessageFlags::default());
        let on = ends.connection(Attribute::Ro);
        for _ in 0..n {
            let ended = ends.ended.get();
            let started = ends.endpoint.rma(on, self.request, None, 0, flags);
            started.map_err(|why| Error::Wrong(format!("no access: {why:?}")))?;
            ends.wait_for_ends(ended + 1)?;
        }
        self.batches += 1;
        self.done.words()[0].store(self.batches, Release);
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        self.batches += 1;
        while self.done.words()[0].load(Acquire) < self.batches {
            self.ends.take()?;
        }
        Ok(())
    }
}
