//! A member: an endpoint, its connections, and the driver's commands.

use crate::Done;
use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use lintel_cci_endpoint::{
    Attribute, ConnectionId, Device, Endpoint, EndpointOption, Event, Message, Status, Time,
    Transport, devices,
};
use lintel_claim::Region;
use lintel_fault::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long a peer may take to answer a request.
const CONNECT: Time = Time(60_000_000);
/// Between two lines that tell how much has ended.
const TALLY: Duration = Duration::from_secs(1);
/// Receive buffers: few enough that messages are refused now and then.
const BUFFERS: u32 = 256;
/// Events that are taken at most before anything else is done: more may come all the time.
const EVENTS: u32 = 256;
/// The most that connections take to end which were dropped while something was sent on them: twice
/// the timeout of sends.
const WINDING_UP: Duration = Duration::from_secs(128);
const ATTRIBUTES: [Attribute; 3] = [Attribute::Ro, Attribute::Ru, Attribute::Uu];

/// Runs a member: transport, place (group or faults), rank, incarnation, seed.
pub fn run(words: &[&str]) -> Done {
    let &[transport, place, rank, incarnation, seed] = words else {
        return Err("a member takes five words".into());
    };
    let number = |word: &str| {
        word.parse::<u64>()
            .map_err(|_| format!("{word} is no number"))
    };
    let device = device(transport, place)?;
    let endpoint = Endpoint::open(&device, None, false);
    let endpoint = endpoint.map_err(|why| format!("no endpoint: {why:?}"))?;
    endpoint
        .set_option(EndpointOption::RecvBuffers, BUFFERS)
        .map_err(|status| format!("no option: {status:?}"))?;
    println!("uri {}", endpoint.uri());
    let mut member = Member {
        endpoint,
        rank: number(rank)?,
        incarnation: number(incarnation)?,
        random: Random::new(number(seed)?),
        asked: BTreeMap::new(),
        requests: BTreeMap::new(),
        outgoing: BTreeMap::new(),
        incoming: BTreeMap::new(),
        doomed: BTreeSet::new(),
        ended: 0,
        received: 0,
        held: 0,
        allowance: 0,
        stops: false,
    };
    member.serve(&commands())
}

fn device(transport: &str, place: &str) -> Result<Device, String> {
    if transport == "udp" {
        let mut device = Device::at_address(Ipv4Addr::LOCALHOST);
        let faults = place.parse();
        device.faults = Some(faults.map_err(|_| format!("{place} are no faults"))?);
        return Ok(device);
    }
    let mut all = devices().into_iter();
    let device = all.find(|device| device.transport == Transport::Sm);
    let mut device = device.ok_or("there is no shared memory")?;
    device.path = place.to_owned();
    Ok(device)
}

/// Lines of the driver.
fn commands() -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

struct Member {
    endpoint: Endpoint,
    rank: u64,
    incarnation: u64,
    random: Random,
    /// Requests of this member by context: whom, and for what.
    asked: BTreeMap<u64, (usize, Attribute)>,
    /// Those of others that were accepted: whose, and for what.
    requests: BTreeMap<u64, (usize, u32, Attribute)>,
    outgoing: BTreeMap<ConnectionId, Outgoing>,
    incoming: BTreeMap<ConnectionId, Incoming>,
    /// Peers that are being killed.
    doomed: BTreeSet<usize>,
    ended: u64,
    received: u64,
    /// The most that the endpoint has held, bytes.
    held: u64,
    /// Unreliable messages that may be sent.
    allowance: usize,
    stops: bool,
}

impl Member {
    fn serve(&mut self, commands: &Receiver<String>) -> Done {
        let (mut tallied, mut was_quiet) = (Instant::now(), false);
        loop {
            match commands.try_recv() {
                Ok(line) if line == "exit" => return self.leave(),
                Ok(line) => self.on_command(&line)?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err("the driver has ended".into()),
            }
            self.progress()?;
            self.held = self.held.max(self.endpoint.bytes());
            if tallied.elapsed() >= TALLY {
                tallied = Instant::now();
                println!("tally {} {} {}", self.ended, self.received, self.held);
            }
            if self.stops && !was_quiet && self.is_quiet() {
                was_quiet = true;
                println!("quiet");
            }
        }
    }

    fn on_command(&mut self, line: &str) -> Done {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse::<usize>().map_err(|_| format!("'{line}'"));
        match words.as_slice() {
            ["stop"] => self.stops = true,
            ["killing", rank] => {
                self.doomed.insert(number(rank)?);
                println!("ready");
            }
            ["peer", rank, incarnation, uri] => {
                self.meet(number(rank)?, number(incarnation)? as u32, uri)?;
            }
            _ => return Err(format!("'{line}' is no command")),
        }
        Ok(())
    }

    /// A peer has started: forgets its former life, and connects.
    fn meet(&mut self, rank: usize, incarnation: u32, uri: &str) -> Done {
        self.doomed.remove(&rank);
        let is_former = |it: &Incoming| it.rank == rank && it.incarnation < incarnation;
        let (former, kept) = std::mem::take(&mut self.outgoing)
            .into_iter()
            .partition(|(_, it)| it.rank == rank);
        self.outgoing = kept;
        let former: BTreeMap<ConnectionId, Outgoing> = former;
        for connection in former.into_values() {
            connection.close(&self.endpoint)?;
        }
        let (former, kept) = std::mem::take(&mut self.incoming)
            .into_iter()
            .partition(|(_, it)| is_former(it));
        self.incoming = kept;
        let former: BTreeMap<ConnectionId, Incoming> = former;
        for connection in former.into_values() {
            connection.close(&self.endpoint)?;
        }
        for attribute in ATTRIBUTES {
            let context = self.random.number();
            let data = format!("{} {}", self.rank, self.incarnation);
            let region = Region::new(data.len() as u64);
            region.write(0, data.as_bytes());
            let (claim, timeout) = (region.claim(), Some(CONNECT));
            let asked = self
                .endpoint
                .connect(uri, claim, attribute, context, timeout);
            asked.map_err(|status| format!("no request to rank {rank}: {status:?}"))?;
            self.asked.insert(context, (rank, attribute));
        }
        Ok(())
    }

    fn progress(&mut self) -> Done {
        for _ in 0..EVENTS {
            let Ok(event) = self.endpoint.take_event() else {
                break;
            };
            self.on_event(event)?;
        }
        for connection in self.incoming.values_mut() {
            connection.answer(&self.endpoint)?;
        }
        if !self.stops {
            for connection in self.outgoing.values_mut() {
                // An unreliable message for each reliable operation that has ended: more would
                // only make the others wait.
                let most = match connection.is_unreliable() {
                    true => std::mem::take(&mut self.allowance),
                    false => usize::MAX,
                };
                connection.start(&self.endpoint, most)?;
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) -> Done {
        match event {
            Event::Sent {
                connection,
                context,
                status,
            } => {
                if let Some(of) = self.outgoing.get_mut(&connection) {
                    let may_fail = self.doomed.contains(&of.rank);
                    self.allowance += usize::from(!of.is_unreliable());
                    let ended = of.on_sent(context, status, may_fail);
                    self.ended += 1;
                    return ended.map_err(|why| format!("{}, to rank {}", why, of.rank));
                }
                Ok(())
            }
            Event::Received {
                connection,
                message,
            } => self.on_received(connection, message),
            Event::Connected { context, result } => {
                let asked = self.asked.remove(&context);
                let (rank, attribute) = asked.ok_or("an answer to no request")?;
                match result {
                    Ok((id, _)) => {
                        let seed = self.random.number();
                        let new = Outgoing::new(&self.endpoint, id, rank, attribute, seed);
                        self.outgoing.insert(id, new);
                        Ok(())
                    }
                    Err(_) if self.doomed.contains(&rank) => Ok(()),
                    Err(status) => Err(format!("no connection to rank {rank}: {status:?}")),
                }
            }
            Event::Request {
                connection,
                attribute,
                data,
            } => self.on_request(connection, attribute, data),
            Event::Accepted { context, result } => self.on_accepted(context, result.map(|it| it.0)),
            Event::KeepaliveTimedOut { .. } => Err("keepalive is off".into()),
        }
    }

    fn on_received(&mut self, connection: ConnectionId, message: Message) -> Done {
        let bytes = message.to_vec();
        self.endpoint.return_message(message);
        self.received += 1;
        if let Some(of) = self.incoming.get_mut(&connection) {
            let received = of.on_received(&bytes);
            return received.map_err(|why| format!("{why}, from rank {}", of.rank));
        }
        match self.outgoing.get_mut(&connection) {
            Some(of) => of.on_received(&self.endpoint, &bytes),
            // It was dropped meanwhile.
            None => Ok(()),
        }
    }

    fn on_request(&mut self, id: ConnectionId, attribute: Attribute, data: Message) -> Done {
        let text = String::from_utf8_lossy(&data.to_vec()).into_owned();
        self.endpoint.return_request(data);
        let (rank, incarnation) = text.split_once(' ').ok_or("a request without a rank")?;
        let (rank, incarnation) = (rank.parse(), incarnation.parse());
        let (Ok(rank), Ok(incarnation)) = (rank, incarnation) else {
            return Err(format!("a request of '{text}'"));
        };
        let context = self.random.number();
        self.requests
            .insert(context, (rank, incarnation, attribute));
        let accepted = self.endpoint.accept(id, context);
        accepted.map_err(|status| format!("a request isn't accepted: {status:?}"))
    }

    fn on_accepted(&mut self, context: u64, result: Result<ConnectionId, Status>) -> Done {
        let request = self.requests.remove(&context);
        let (rank, incarnation, attribute) = request.ok_or("an end of no acceptance")?;
        match result {
            Ok(id) => {
                let from = (rank, incarnation);
                let new = Incoming::new(&self.endpoint, id, from, attribute);
                self.incoming.insert(id, new);
                Ok(())
            }
            // Who asked may have been killed, though perhaps restarted since.
            Err(Status::Disconnected) => Ok(()),
            Err(status) => Err(format!("an acceptance ends with {status:?}")),
        }
    }

    fn is_quiet(&self) -> bool {
        self.asked.is_empty() && self.outgoing.values().all(Outgoing::is_quiet)
    }

    /// Drops everything; nothing may be left.
    fn leave(&mut self) -> Done {
        for (_, connection) in std::mem::take(&mut self.outgoing) {
            connection.close(&self.endpoint)?;
        }
        for (_, connection) in std::mem::take(&mut self.incoming) {
            connection.close(&self.endpoint)?;
        }
        let begun = Instant::now();
        loop {
            while let Ok(event) = self.endpoint.take_event() {
                if let Event::Received { message, .. } = event {
                    self.endpoint.return_message(message);
                }
            }
            let left = self.endpoint.resources();
            match (left.connections, left.held, left.registrations) {
                (0, 0, 0) => return Ok(()),
                // Connections to a peer that was killed are wound up until it was silent for long.
                _ if begun.elapsed() < WINDING_UP => std::thread::yield_now(),
                _ => return Err(format!("at the end there are {left:?}")),
            }
        }
    }
}
