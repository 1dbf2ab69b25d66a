//! What this NAL does beyond what every NAL promises.

use lintel_claim::{Lease, Region, send_datagram};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Unreachable, Wake};
use lintel_nal_udp::{Config, Model, OpenError, UdpNal};
use lintel_reliable::{Class, Fragment, Header, Key, Kind, MAX_HEADER_BYTES};
use lintel_types::ProcessId;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const NODE: u32 = 0x7f00_0001;
/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(20);

fn config(nid: u32, port: Option<u16>) -> Config<'static> {
    Config {
        nid,
        port,
        key: [5; 32],
        uid: 77,
        model: Model::Xrc,
        peer_timeout: LIMIT,
        faults: None,
        log: |words| eprintln!("{words}"),
        job: "behaviour",
    }
}

fn open(nid: u32) -> UdpNal {
    UdpNal::open(config(nid, None)).expect("there is a loopback interface")
}

fn send(nal: &mut UdpNal, to: ProcessId, number: u64, bytes: &[u8]) {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[region.claim()],
    };
    nal.send(to, &[number; 6], body)
        .expect("a way may be there");
}

/// The next arrival at `at`, while `others` do what they must.
fn arrival(at: &mut UdpNal, others: &mut [&mut UdpNal]) -> Arrival {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(arrival) = at.next() {
            return arrival;
        }
        at.flush();
        others.iter_mut().for_each(|other| {
            other.flush();
        });
        assert!(Instant::now() < until, "nothing arrives");
        std::thread::yield_now();
    }
}

fn take(at: &mut UdpNal, others: &mut [&mut UdpNal]) -> (ProcessId, u64, u32) {
    match arrival(at, others) {
        Arrival::Message(origin, words, Payload::Inline(_)) => {
            at.done(origin);
            (origin.process, words[0], origin.uid)
        }
        other => panic!("expected a message, not {other:?}"),
    }
}

#[test]
fn a_name_is_an_address_and_a_port_and_the_user_comes_along() {
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    assert_eq!(other.process().nid, NODE + 1);
    let to = other.process();
    send(&mut one, to, 9, b"bytes");
    assert_eq!(take(&mut other, &mut [&mut one]), (one.process(), 9, 77));
}

#[test]
fn a_whole_message_is_found_inline_and_a_longer_one_is_left_to_next() {
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    send(&mut one, to, 8, b"first contact");
    take(&mut other, &mut [&mut one]);
    other.flush();
    send(&mut one, to, 9, b"bytes");
    let until = Instant::now() + LIMIT;
    let (origin, words, body) = loop {
        if let Some(found) = other.next_inline() {
            break found;
        }
        one.flush();
        assert!(Instant::now() < until, "nothing arrives");
    };
    let mut bytes = [0; 5];
    body.read(&mut bytes);
    assert_eq!(
        (origin.process, words, &bytes),
        (one.process(), [9; 6], b"bytes")
    );
    assert!(
        matches!(other.next(), Some(Arrival::Message(..))),
        "it isn't done"
    );
    other.done(origin);
    send(&mut one, to, 10, &[1; 100_000]);
    let next = loop {
        assert!(other.next_inline().is_none());
        if let Some(arrival) = other.next() {
            break arrival;
        }
        other.flush();
        one.flush();
        assert!(Instant::now() < until, "nothing arrives");
    };
    assert!(
        matches!(
            next,
            Arrival::Message(_, [10, ..], Payload::Streamed(100_000))
        ),
        "{next:?}"
    );
}

/// Otherwise each is answered by itself, and its sender sends the next one by itself.
#[test]
fn a_burst_is_found_inline_to_its_end_though_an_acknowledgement_is_requested_within() {
    const BURST: u64 = 12;
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    send(&mut one, to, 0, b"first contact");
    take(&mut other, &mut [&mut one]);
    while !one.all_delivered() {
        other.flush();
        one.flush();
    }
    // Socket and policy have seen no burst yet: this one is received datagram by datagram.
    for number in 1..=BURST {
        send(&mut one, to, number, b"short");
    }
    // The last ones wait for more, until they are flushed twice.
    assert!(one.flush() && one.needs_progress());
    one.flush();
    let until = Instant::now() + LIMIT;
    let mut number = 1;
    let mut nothing = 0;
    while number <= BURST {
        match other.next_inline() {
            Some((origin, words, _)) => {
                assert_eq!(words, [number; 6]);
                other.done(origin);
                number += 1;
            }
            None if number == 1 => assert!(Instant::now() < until, "nothing arrives"),
            None => nothing += 1,
        }
        assert_eq!(nothing, 0, "ended before number {number}");
    }
    while !one.all_delivered() {
        other.flush();
        one.flush();
        assert!(Instant::now() < until, "nothing is acknowledged");
    }
}

#[test]
fn a_taken_port_a_forbidden_one_and_a_strange_address_are_distinguished() {
    let one = open(NODE);
    let port = u16::try_from(one.process().pid).expect("a port");
    let taken = UdpNal::open(config(NODE, Some(port))).map(|_| ());
    assert!(matches!(taken, Err(OpenError::PortInUse(_, p)) if p == port));
    // 192.0.2.1 is for documentation (RFC 5737): no machine has it.
    let strange = UdpNal::open(config(0xc000_0201, None)).map(|_| ());
    let Err(error @ OpenError::NoSuchAddress(_)) = strange else {
        panic!("no interface has the address: {strange:?}");
    };
    assert!(error.to_string().contains("PTL_IFACE"), "{error}");
    // A process that may have it anyway isn't refused.
    if let Err(error) = UdpNal::open(config(NODE, Some(81))) {
        assert!(matches!(error, OpenError::PortNotAllowed(81)), "{error}");
    }
}

#[test]
fn what_is_no_packet_or_has_another_key_is_counted_and_changes_nothing() {
    let mut nal = open(NODE);
    let mut stranger = UdpNal::open(Config {
        key: [6; 32],
        ..config(NODE, None)
    })
    .expect("there is a loopback interface");
    let to = nal.process();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let address = (Ipv4Addr::from(to.nid), to.pid as u16);
    for length in [0, 1, 63, 64, 128, 1000, 60_000] {
        socket.send_to(&vec![1; length], address).expect("loopback");
    }
    send(&mut stranger, to, 1, b"forged");
    let until = Instant::now() + LIMIT;
    while nal.counts().forged == 0 || nal.counts().malformed < 7 {
        assert!(nal.next().is_none());
        nal.flush();
        assert!(Instant::now() < until, "{:?}", nal.counts());
    }
    let counts = nal.counts();
    assert_eq!((counts.malformed, counts.accepted), (7, 0));
    assert_eq!(nal.resources().pairs, 0);
    assert!(nal.all_delivered());
}

#[test]
fn each_datagram_is_counted_once_by_itself_and_in_a_gso_batch() {
    const ROUNDS: u64 = 40;
    let (mut nal, mut friend) = (open(NODE), open(NODE + 1));
    let (to, socket) = (nal.process(), UdpSocket::bind("127.0.0.1:0"));
    let socket = socket.expect("loopback");
    let address = SocketAddrV4::new(to.nid.into(), to.pid as u16);
    // By its own word the first of five ends within the second.
    let bytes = Region::new(450);
    bytes.write(0, &[1, 1, 0, 3]);
    bytes.write(52, &[11]);
    let mut sent = 0;
    for round in 0..ROUNDS {
        for _ in 0..round % 7 {
            socket.send_to(&[1; 300], address).expect("loopback");
        }
        send_datagram(socket.as_fd(), Some(address), &[bytes.claim()], Some(100))
            .expect("the kernel has UDP_GRO");
        sent += round % 7 + 5;
        send(&mut friend, to, round, b"sound");
        assert_eq!(take(&mut nal, &mut [&mut friend]).1, round);
    }
    let counts = nal.counts();
    assert_eq!(counts.hostile(), sent, "{counts:?}");
    assert!(counts.accepted >= ROUNDS, "{counts:?}");
}

#[test]
fn a_payload_that_doesnt_have_its_sum_is_counted_and_dropped() {
    let mut nal = open(NODE);
    let speaker = Speaker::connect(&mut nal);
    let payload = b"123456789";
    // The check value of CRC-32C, and another.
    for (number, checksum) in [(1, 0xe306_9283), (2, 0xe306_9282)] {
        let fragment = Fragment {
            class: Class::Unreliable,
            words: Some([number; 6]),
            last: true,
            total: payload.len() as u64,
            offset: 0,
            length: payload.len() as u32,
            checksum: Some(checksum),
            is_void: false,
        };
        speaker.say(&speaker.packet(Kind::Data(fragment), 0, payload));
    }
    assert_eq!(take(&mut nal, &mut []).1, 1);
    let until = Instant::now() + LIMIT;
    while nal.counts().damaged == 0 {
        assert!(nal.next().is_none(), "the second isn't sound");
        assert!(Instant::now() < until, "{:?}", nal.counts());
    }
}

/// A process that speaks by hand and holds the key.
struct Speaker {
    socket: UdpSocket,
    to: ProcessId,
    /// The incarnation of the one spoken to.
    peer_incarnation: u64,
}

impl Speaker {
    fn connect(nal: &mut UdpNal) -> Speaker {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        socket.set_nonblocking(true).expect("it is a socket");
        let mut speaker = Speaker {
            socket,
            to: nal.process(),
            peer_incarnation: 0,
        };
        speaker.say(&speaker.packet(Kind::Probe, 0, &[]));
        let mut answer = [0; MAX_HEADER_BYTES];
        let until = Instant::now() + LIMIT;
        let length = loop {
            assert!(nal.next().is_none(), "a probe is no message");
            nal.flush();
            match speaker.socket.recv(&mut answer) {
                Ok(length) => break length,
                Err(_) => assert!(Instant::now() < until, "no answer"),
            }
        };
        let parsed = Header::parse(&answer[..length], length, &Key::new(&[5; 32]));
        let (header, _) = parsed.expect("it is a packet");
        assert_eq!(header.kind, Kind::Reset { latest: 0 });
        speaker.peer_incarnation = header.incarnation;
        speaker
    }

    fn packet(&self, kind: Kind, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let port = self.socket.local_addr().expect("it is bound").port();
        let header = Header {
            kind,
            ack_requested: false,
            uid: 1,
            source: ProcessId::new(NODE, port.into()),
            destination: self.to,
            recv_window: 0,
            incarnation: 1,
            peer_incarnation: self.peer_incarnation,
            sequence,
            acknowledged: FIRST,
            selective: 0,
        };
        let mut bytes = [0; MAX_HEADER_BYTES];
        let ahead = header.seal(&Key::new(&[5; 32]), &mut bytes);
        [&bytes[..ahead], payload].concat()
    }

    /// One of the four parts of a message, filled with its number plus one.
    fn part(&self, number: u32) -> Vec<u8> {
        let fragment = Fragment {
            class: Class::Ordered,
            words: (number == 0).then_some([1; 6]),
            last: number == 3,
            total: 4 * PART as u64,
            offset: u64::from(number) * PART as u64,
            length: PART as u32,
            checksum: None,
            is_void: false,
        };
        let payload = [number as u8 + 1; PART];
        self.packet(Kind::Data(fragment), FIRST.wrapping_add(number), &payload)
    }

    fn say(&self, bytes: &[u8]) {
        let address = (Ipv4Addr::from(self.to.nid), self.to.pid as u16);
        self.socket.send_to(bytes, address).expect("loopback");
    }
}

/// The sequence number that a process begins with.
const FIRST: u32 = 1000_u32.wrapping_neg();
const PART: usize = 40_000;

#[test]
fn only_a_streams_next_part_is_ever_written_to_its_place() {
    let mut nal = open(NODE);
    let speaker = Speaker::connect(&mut nal);
    let place = Region::new(4 * PART as u64);
    let bytes = |part: usize| {
        let mut bytes = [0xff; PART];
        place.read((part * PART) as u64, &mut bytes);
        bytes
    };
    speaker.say(&speaker.part(0));
    let Arrival::Message(origin, _, Payload::Streamed(_)) = arrival(&mut nal, &mut []) else {
        panic!("expected a message in parts");
    };
    nal.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
    nal.done(origin);
    let until = Instant::now() + LIMIT;
    speaker.say(&speaker.part(1));
    while bytes(1) != [2; PART] {
        assert!(nal.next().is_none(), "half the parts have arrived");
        assert!(Instant::now() < until, "{:?}", nal.counts());
    }
    // Nonsense, and a part that is too early.
    for (datagram, counted) in [
        (vec![0xee; PART], 1),
        (speaker.part(3), 1),
        (vec![0xee; 50], 2),
    ] {
        speaker.say(&datagram);
        let until = Instant::now() + LIMIT;
        while nal.counts().malformed < counted {
            assert!(nal.next().is_none(), "the next part hasn't arrived");
            assert!(Instant::now() < until, "{:?}", nal.counts());
        }
        assert_eq!([bytes(0), bytes(1)], [[1; PART], [2; PART]]);
        assert_eq!([bytes(2), bytes(3)], [[0; PART]; 2]);
    }
    speaker.say(&speaker.part(2));
    let whole = arrival(&mut nal, &mut []);
    assert!(matches!(whole, Arrival::Streamed(_)), "{whole:?}");
    assert_eq!([bytes(2), bytes(3)], [[3; PART], [4; PART]]);
}

#[test]
fn contexts_follow_the_model() {
    for (model, expected) in [(Model::Rc, 4), (Model::Xrc, 2), (Model::Node, 2)] {
        let mut one = UdpNal::open(Config {
            model,
            ..config(NODE, None)
        })
        .expect("there is a loopback interface");
        let mut others: Vec<_> = (0..4).map(|number| open(NODE + 1 + number % 2)).collect();
        for other in &mut others {
            let to = other.process();
            send(&mut one, to, 1, b"");
            take(other, &mut [&mut one]);
        }
        let held = one.resources();
        assert_eq!((held.contexts, held.pairs), (expected, 4), "{model:?}");
        let resources = Nal::resources(&one);
        let shared = if model == Model::Node { expected } else { 0 };
        let own = expected - shared;
        assert_eq!(
            (resources.contexts, resources.shared_contexts),
            (own, shared)
        );
        assert!(held.bytes < 1 << 20, "{held:?}");
    }
}

#[test]
fn where_the_file_for_paths_cant_be_used_a_process_goes_on_without() {
    let job = format!("behaviour-fifo-{}", std::process::id());
    let file = format!("/dev/shm/lintel-{job}-{NODE:x}-paths");
    nix::unistd::mkfifo(&*file, nix::sys::stat::Mode::S_IRUSR).expect("a FIFO can be made");
    let opened = UdpNal::open(Config {
        model: Model::Node,
        job: &job,
        ..config(NODE, None)
    });
    std::fs::remove_file(&file).expect("it is still there");
    let (mut one, mut other) = (opened.expect("it goes on"), open(NODE + 1));
    let to = other.process();
    send(&mut one, to, 1, b"");
    assert_eq!(take(&mut other, &mut [&mut one]).1, 1);
    assert_eq!(Nal::resources(&one).shared_contexts, 0);
}

#[test]
fn many_messages_to_one_peer_open_no_more_than_a_few_sockets() {
    let mut one = open(NODE);
    let mut others: Vec<_> = (0..12).map(|_| open(NODE + 1)).collect();
    for number in 0..40 {
        for other in &mut others {
            let to = other.process();
            send(&mut one, to, number, b"");
            if number % 2 == 0 {
                send(&mut one, to, number, b"");
                take(other, &mut [&mut one]);
            }
            take(other, &mut [&mut one]);
        }
    }
    assert!(one.resources().sockets <= 5, "{:?}", one.resources());
}

#[test]
fn a_peer_that_sends_nothing_and_takes_nothing_is_lost_in_time() {
    let mut one = UdpNal::open(Config {
        peer_timeout: Duration::from_millis(300),
        ..config(NODE, None)
    })
    .expect("there is a loopback interface");
    // A socket that no process reads: no refusal, and no answer.
    let mute = UdpSocket::bind("127.0.0.2:0").expect("loopback");
    let port = mute.local_addr().expect("bound").port();
    let to = ProcessId::new(NODE + 1, port.into());
    let began = Instant::now();
    send(&mut one, to, 1, b"hello?");
    match arrival(&mut one, &mut []) {
        Arrival::Lost(process) => assert_eq!(process, to),
        other => panic!("expected a loss, not {other:?}"),
    }
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_restarted_peer_is_lost_first_and_heard_then() {
    let mut one = open(NODE);
    let mut other = open(NODE + 1);
    let name = other.process();
    send(&mut one, name, 1, b"");
    take(&mut other, &mut [&mut one]);
    let here = one.process();
    send(&mut other, here, 2, b"");
    take(&mut one, &mut [&mut other]);
    drop(other);
    let mut other = UdpNal::open(config(NODE + 1, Some(name.pid as u16))).expect("it is free");
    send(&mut other, here, 3, b"");
    match arrival(&mut one, &mut [&mut other]) {
        Arrival::Lost(process) => assert_eq!(process, name),
        other => panic!("expected the loss first, not {other:?}"),
    }
    assert_eq!(take(&mut one, &mut [&mut other]).1, 3);
    send(&mut one, name, 4, b"");
    assert_eq!(take(&mut other, &mut [&mut one]).1, 4);
}

#[test]
fn the_backlog_of_a_peer_is_what_it_hasnt_acknowledged() {
    const SIZE: usize = 60_000;
    let (mut one, mut other, mut third) = (open(NODE), open(NODE + 1), open(NODE + 1));
    let (to, aside) = (other.process(), third.process());
    assert_eq!(one.backlog(to), 0);
    let lent = Region::new(1 << 20);
    for number in 0..100 {
        send(&mut one, to, number, &[1; SIZE]);
        one.send(
            to,
            &[number; 6],
            Outgoing::LentToRead(LEASE.lend(&[lent.claim()])),
        )
        .expect("a way may be there");
    }
    send(&mut one, aside, 1, b"short");
    let copied = 100 * SIZE as u64;
    let held = one.backlog(to);
    assert!((copied..copied + (64 << 10)).contains(&held), "{held}");
    assert!((1..1000).contains(&one.backlog(aside)));
    let mut whole = 0;
    while whole < 200 {
        match arrival(&mut other, &mut [&mut one, &mut third]) {
            Arrival::Message(origin, _, payload) => {
                whole += u64::from(matches!(payload, Payload::Inline(_)));
                other.done(origin);
            }
            Arrival::Streamed(_) => whole += 1,
            lost => panic!("expected a message, not {lost:?}"),
        }
    }
    take(&mut third, &mut [&mut one]);
    until_settled(&mut one, &mut other);
    assert_eq!((one.backlog(to), one.backlog(aside)), (0, 0));
}

#[test]
fn a_lost_peer_has_no_backlog() {
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    send(&mut one, to, 1, b"");
    take(&mut other, &mut [&mut one]);
    send(&mut one, to, 2, &[1; 1 << 20]);
    drop(other);
    let lost = arrival(&mut one, &mut []);
    assert!(matches!(lost, Arrival::Lost(_)), "{lost:?}");
    assert_eq!(one.backlog(to), 0);
}

/// What the process of the next test has reported.
static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn names_that_are_no_addresses_are_unreachable_and_reported_once() {
    let mut one = UdpNal::open(Config {
        log: |words| REPORTED.lock().expect("nobody panics").push(words.into()),
        ..config(NODE, None)
    })
    .expect("there is a loopback interface");
    let me = one.process();
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    for name in [
        me,
        ProcessId::new(NODE, 0),
        ProcessId::new(0, 9),
        ProcessId::new(NODE, 70_000),
        ProcessId::new(NODE, 70_000),
    ] {
        assert_eq!(
            one.send(name, &[0; 6], nothing),
            Err(Unreachable),
            "{name:?}"
        );
    }
    let reported = REPORTED.lock().expect("nobody panics");
    let of = |name: &str| {
        let start = format!("no way to process {name}: ");
        reported
            .iter()
            .filter(|line| line.starts_with(&start))
            .count()
    };
    assert_eq!(
        (reported.len(), of("127.0.0.1/70000")),
        (3, 1),
        "{reported:?}"
    );
}

#[test]
fn more_pieces_than_the_system_takes_at_once_arrive() {
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    let bytes: Vec<u8> = (0..30_000u32).map(|number| number as u8).collect();
    let (lent, place) = (Region::new(30_000), Region::new(30_000));
    lent.write(0, &bytes);
    let pieces: Vec<_> = (0..3000)
        .map(|at| lent.claim().slice(at * 10, 10))
        .collect();
    one.send(to, &[1; 6], Outgoing::LentToRead(LEASE.lend(&pieces)))
        .expect("it is there");
    match arrival(&mut other, &mut [&mut one]) {
        Arrival::Message(origin, _, Payload::Inline(claim)) => {
            lintel_claim::copy(claim, place.claim());
            other.done(origin);
        }
        other => panic!("expected a message, not {other:?}"),
    }
    let mut arrived = vec![0; 30_000];
    place.read(0, &mut arrived);
    assert!(arrived == bytes);
}

#[test]
fn many_short_messages_arrive_in_order_though_they_travel_together() {
    const COUNT: u64 = 20_000;
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    for number in 0..COUNT {
        send(
            &mut one,
            to,
            number,
            &number.to_le_bytes()[..(number / 7 % 8) as usize],
        );
    }
    for number in 0..COUNT {
        assert_eq!(take(&mut other, &mut [&mut one]).1, number);
    }
    assert_eq!(other.counts().malformed, 0);
}

#[test]
fn bytes_that_change_while_they_are_sent_hold_nobody_up() {
    const SIZE: u64 = 4 << 20;
    let mut one = UdpNal::open(Config {
        // None, but payloads are summed as between machines.
        faults: Some("loss=0".parse().expect("faults")),
        ..config(NODE, None)
    })
    .expect("there is a loopback interface");
    let mut other = open(NODE + 1);
    let (lent, place) = (Region::new(SIZE), Region::new(SIZE));
    let claim = lent.claim();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                claim.store_u64(number * 4096 % SIZE, number);
            }
        });
        let to = other.process();
        one.send(to, &[1; 6], Outgoing::LentToRead(LEASE.lend(&[claim])))
            .expect("it is there");
        match arrival(&mut other, &mut [&mut one]) {
            Arrival::Message(origin, _, Payload::Streamed(SIZE)) => {
                other.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                other.done(origin);
            }
            other => panic!("expected a message, not {other:?}"),
        }
        let end = arrival(&mut other, &mut [&mut one]);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(end, Arrival::Streamed(_)), "{end:?}");
    });
}

#[test]
fn an_answer_that_came_while_nobody_looked_is_no_missing_one() {
    let (mut one, mut other) = (open(NODE), open(NODE + 1));
    let to = other.process();
    send(&mut one, to, 1, b"");
    take(&mut other, &mut [&mut one]);
    // Until it is known how long an answer takes.
    until_settled(&mut one, &mut other);
    send(&mut one, to, 2, b"");
    let due = one.due().expect("an answer is awaited");
    assert!(one.next().is_none());
    assert_eq!(take(&mut other, &mut []).1, 2);
    while other.due().is_some_and(|due| Instant::now() < due) {
        std::thread::yield_now();
    }
    other.flush();
    while Instant::now() < due {
        std::thread::yield_now();
    }
    one.flush();
    assert_eq!(one.counts().retransmitted, 0);
    assert!(one.all_delivered());
}

fn until_settled(one: &mut UdpNal, other: &mut UdpNal) {
    let until = Instant::now() + LIMIT;
    while !one.all_delivered() {
        one.flush();
        other.flush();
        assert!(one.next().is_none() && other.next().is_none());
        assert!(Instant::now() < until, "no acknowledgement arrives");
    }
}
