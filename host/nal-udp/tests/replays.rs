//! Datagrams that an attacker without the key has recorded and replays.

use lintel_claim::Region;
use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_udp::{Config, Model, UdpNal};
use lintel_reliable::{Endpoint, Header, Incarnation, Key, Kind, MAX_HEADER_BYTES, Time, Verdict};
use lintel_types::ProcessId;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

const NODE: u32 = 0x7f00_0001;
const KEY: [u8; 32] = [5; 32];
/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(20);

fn open(nid: u32, port: Option<u16>) -> UdpNal {
    UdpNal::open(Config {
        nid,
        port,
        key: KEY,
        uid: 77,
        model: Model::Xrc,
        peer_timeout: LIMIT,
        faults: None,
        log: |words| eprintln!("{words}"),
        job: "replays",
    })
    .expect("there is a loopback interface")
}

/// An earlier incarnation of a server, and a recording of what it receives.
struct Recorded {
    socket: UdpSocket,
    endpoint: Endpoint<()>,
    datagrams: Vec<Vec<u8>>,
    delivered: usize,
}

impl Recorded {
    fn new() -> Recorded {
        let socket = UdpSocket::bind((Ipv4Addr::from(NODE + 1), 0)).expect("loopback");
        socket.set_nonblocking(true).expect("it is a socket");
        let port = socket.local_addr().expect("it is bound").port();
        let endpoint = Endpoint::new(lintel_reliable::Config {
            me: ProcessId::new(NODE + 1, port.into()),
            uid: 77,
            incarnation: Incarnation::new(1000).expect("it isn't 0"),
            model: Model::Xrc,
            max_datagram: 1400,
            recv_window: 1 << 20,
            peer_timeout: LIMIT,
        });
        Recorded {
            socket,
            endpoint,
            datagrams: Vec::new(),
            delivered: 0,
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("it is bound").port()
    }

    fn step(&mut self) {
        let mut bytes = [0; 2000];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.datagrams.push(bytes[..length].to_vec());
            let beginning = &bytes[..length.min(MAX_HEADER_BYTES)];
            let parsed = Header::parse(beginning, length, &Key::new(&KEY));
            let (header, _) = parsed.expect("its peer has the key");
            let verdict = self.endpoint.on_packet(Time(1), &header, false);
            let is_message = matches!(header.kind, Kind::Data(_));
            if is_message && matches!(verdict, Verdict::Deliver(_)) {
                self.delivered += 1;
            }
        }
        while let Some(transmit) = self.endpoint.poll_transmit(Time(1)) {
            let mut bytes = [0; MAX_HEADER_BYTES];
            let length = transmit.header.seal(&Key::new(&KEY), &mut bytes);
            let to = transmit.header.destination;
            let to = (Ipv4Addr::from(to.nid), to.pid as u16);
            self.socket.send_to(&bytes[..length], to).expect("loopback");
        }
    }
}

/// What a client said to a server of that port, from the first packet to the close.
fn record() -> (u16, Vec<Vec<u8>>) {
    let mut server = Recorded::new();
    let mut client = open(NODE, None);
    let bytes = Region::new(20);
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[bytes.claim()],
    };
    let to = ProcessId::new(NODE + 1, server.port().into());
    client.send(to, &[1; 6], body).expect("there is a way");
    let until = Instant::now() + LIMIT;
    while server.delivered == 0 || !client.all_delivered() {
        client.flush();
        assert!(client.next().is_none(), "nothing is said to it");
        server.endpoint.check_peers(Time(1));
        server.step();
        server.endpoint.on_timeout(Time(2_000_000_000));
        assert!(Instant::now() < until, "nothing arrives");
    }
    drop(client);
    server.step();
    (server.port(), server.datagrams)
}

#[test]
fn what_was_said_to_an_earlier_life_of_a_server_is_nothing_to_the_next() {
    let (port, recorded) = record();
    let mut server = open(NODE + 1, Some(port));
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    for datagram in &recorded {
        let to = (Ipv4Addr::from(NODE + 1), port);
        stranger.send_to(datagram, to).expect("loopback");
    }
    let until = Instant::now() + LIMIT;
    let looked_at = |server: &UdpNal| {
        let counts = server.counts();
        counts.accepted + counts.refused()
    };
    while looked_at(&server) < recorded.len() as u64 {
        let arrival = server.next();
        assert!(
            !matches!(arrival, Some(Arrival::Message(..))),
            "{arrival:?}"
        );
        server.flush();
        assert!(Instant::now() < until, "{:?}", server.counts());
    }
    assert!(recorded.len() >= 2, "the client has said something");
    assert_eq!(server.resources().pairs, 0, "nothing is kept of it");
}
