//! Any bytes are a packet or none, and each packet has one encoding. A sender without
//! the key changes nothing; one with the key can't make an endpoint panic or keep
//! without bound.

use lintel_reliable::{
    Class, Config, Counts, Endpoint, Fragment, Header, Incarnation, Key, Kind, MAX_HEADER_BYTES,
    Message, Model, Nanos, Time, Verdict,
};
use lintel_types::ProcessId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Packets that a pair keeps at most.
const MOST_KEPT: usize = 64;

/// Draws numbers from the fuzzer's bytes; zeros when they are used up.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Small, or anything.
    fn some(&mut self) -> u64 {
        match self.byte() {
            255 => self.number(),
            254 => u64::MAX - u64::from(self.byte()),
            small => small.into(),
        }
    }
}

fn name(number: usize) -> ProcessId {
    ProcessId::new(1, 1 + number as u32)
}

fn pattern(number: u64, length: u64) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at) as u8).collect()
}

fn parse(datagram: &[u8], key: &Key) -> Option<(Header, usize)> {
    let beginning = &datagram[..datagram.len().min(MAX_HEADER_BYTES)];
    Header::parse(beginning, datagram.len(), key).ok()
}

fn seal(header: &Header, payload: &[u8], key: &Key) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_BYTES];
    let ahead = header.seal(key, &mut bytes);
    [&bytes[..ahead], payload].concat()
}

struct Side {
    endpoint: Endpoint<Vec<u8>>,
    kept: BTreeMap<u32, (Header, Vec<u8>)>,
    arrived: Vec<u8>,
    sent: Vec<u8>,
}

impl Side {
    fn new(number: usize) -> Side {
        let endpoint = Endpoint::new(Config {
            me: name(number),
            uid: 1,
            incarnation: Incarnation::new(100).expect("it isn't 0"),
            model: Model::Xrc,
            max_datagram: 400,
            recv_window: 1 << 16,
            peer_timeout: Duration::from_secs(1),
        });
        Side {
            endpoint,
            kept: BTreeMap::new(),
            arrived: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn receive(&mut self, now: Time, datagram: &[u8], key: &Key) {
        let Some((header, ahead)) = parse(datagram, key) else {
            return;
        };
        let payload = &datagram[ahead..];
        let verdict = self
            .endpoint
            .on_packet(now, &header, self.kept.len() < MOST_KEPT);
        if self.endpoint.poll_lost_peer().is_some() {
            self.kept.clear();
        }
        match verdict {
            Verdict::Drop => {}
            Verdict::Keep(_) => {
                self.kept
                    .insert(header.sequence, (header, payload.to_vec()));
                assert!(self.kept.len() <= MOST_KEPT);
            }
            Verdict::Deliver(pair) => {
                self.arrived.extend(payload);
                while let Some((header, payload)) = self.kept.remove(&self.endpoint.expected(pair))
                {
                    let Kind::Data(fragment) = header.kind else {
                        panic!("only data is kept");
                    };
                    if self.endpoint.on_early(pair, &fragment) != Verdict::Deliver(pair) {
                        break;
                    }
                    self.arrived.extend(payload);
                }
            }
        }
    }

    fn state(&self) -> (Counts, usize, usize, usize) {
        let held = self.endpoint.resources();
        (
            self.endpoint.counts(),
            held.pairs,
            self.kept.len(),
            self.arrived.len(),
        )
    }
}

/// A packet that a sender with the key might make up.
fn invented(source: &mut Source<'_>) -> (Header, Vec<u8>) {
    let class = [Class::Ordered, Class::Reliable, Class::Unreliable][source.byte() as usize % 3];
    let length = u64::from(source.byte());
    let fragment = Fragment {
        class,
        words: (source.byte() & 1 != 0).then_some([source.number(); 6]),
        last: source.byte() & 1 != 0,
        total: source.some(),
        offset: source.some(),
        length: length as u32,
        checksum: (source.byte() & 1 != 0).then_some(7),
        is_void: source.byte() & 3 == 3,
    };
    let kinds = [
        Kind::Data(fragment),
        Kind::Ack,
        Kind::Probe,
        Kind::Close,
        Kind::Reset {
            latest: source.some(),
        },
    ];
    let kind = kinds[(source.byte() as usize % 8).saturating_sub(3)];
    let payload = match kind {
        Kind::Data(_) => pattern(1, length),
        _ => Vec::new(),
    };
    // Around the first number of a pair.
    let near = |number: u64| (u32::MAX - 999).wrapping_add(number as u32).wrapping_sub(4);
    let header = Header {
        kind,
        ack_requested: source.byte() & 1 != 0,
        uid: 1,
        source: name(usize::from(source.byte() % 3)),
        destination: name(0),
        recv_window: source.some() as u32,
        incarnation: 98 + source.some() % 8,
        peer_incarnation: [0, 98 + source.some() % 8][usize::from(source.byte() & 1)],
        sequence: near(source.some()),
        acknowledged: near(source.some()),
        selective: source.some(),
    };
    (header, payload)
}

pub fn body(data: &[u8]) {
    let key = Key::new(&[9; 32]);
    if let Some((header, ahead)) = parse(data, &key) {
        assert_eq!(seal(&header, &data[ahead..], &key), data);
    }
    let mut source = Source(data);
    match source.byte() & 1 {
        0 => without_the_key(&mut source, &key),
        _ => with_the_key(&mut source, &key),
    }
}

/// Two honest sides; the network and a stranger do what they like.
fn without_the_key(source: &mut Source<'_>, key: &Key) {
    let mut sides = [Side::new(0), Side::new(1)];
    let mut air: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    let mut now = Time(1);
    while !source.0.is_empty() {
        let from = usize::from(source.byte() & 1);
        match source.byte() % 8 {
            0 | 1 => send(&mut sides[from], 1 - from, source.some() % 3000, now),
            2 => drop(air.pop_front()),
            3 => air.extend(air.front().cloned()),
            4 => air.rotate_left(usize::from(!air.is_empty())),
            5 => {
                let Some((to, mut datagram)) = air.front().cloned() else {
                    continue;
                };
                let at = source.some() as usize % datagram.len().min(80);
                datagram[at] ^= source.byte().max(1);
                let before = sides[to].state();
                sides[to].receive(now, &datagram, key);
                assert_eq!(
                    sides[to].state(),
                    before,
                    "a changed packet counts for nothing"
                );
            }
            _ => {
                if let Some((to, datagram)) = air.pop_front() {
                    sides[to].receive(now, &datagram, key);
                }
            }
        }
        now = now.after(Nanos::from_micros(source.byte().into()));
        transmit(&mut sides, &mut air, now, key);
    }
    settle(&mut sides, &mut air, now, key);
    let [one, other] = sides;
    assert!(one.arrived == other.sent && other.arrived == one.sent);
}

/// One endpoint, and a sender that authenticates any packet.
fn with_the_key(source: &mut Source<'_>, key: &Key) {
    let mut side = Side::new(0);
    let mut now = Time(1);
    while !source.0.is_empty() {
        match source.byte() % 4 {
            0 => send(
                &mut side,
                1 + usize::from(source.byte() & 1),
                source.some() % 3000,
                now,
            ),
            _ => {
                let (header, payload) = invented(source);
                side.receive(now, &seal(&header, &payload, key), key);
            }
        }
        now = now.after(Nanos::from_micros(source.some() % 100_000));
        side.endpoint.on_timeout(now);
        for _ in 0..1000 {
            if side.endpoint.poll_transmit(now).is_none() {
                break;
            }
        }
        let _ = side.endpoint.take_finished().count();
        while side.endpoint.poll_lost_peer().is_some() {
            side.kept.clear();
        }
        assert!(side.endpoint.resources().pairs <= 3);
    }
}

fn send(side: &mut Side, to: usize, length: u64, now: Time) {
    let body = pattern(side.sent.len() as u64, length);
    side.sent.extend(&body);
    let message = Message {
        class: Class::Ordered,
        words: [length; 6],
        length,
        memory: length,
        is_awaited: false,
        body,
    };
    assert!(side.endpoint.send(now, name(to), message, false).is_ok());
}

fn transmit(sides: &mut [Side; 2], air: &mut VecDeque<(usize, Vec<u8>)>, now: Time, key: &Key) {
    for (number, side) in sides.iter_mut().enumerate() {
        side.endpoint.on_timeout(now);
        while let Some(transmit) = side.endpoint.poll_transmit(now) {
            let payload = transmit.payload.map_or(&[][..], |place| {
                &place.body[place.offset as usize..][..place.length as usize]
            });
            air.push_back((1 - number, seal(&transmit.header, payload, key)));
        }
        assert!(side.endpoint.poll_lost_peer().is_none(), "nobody has gone");
    }
}

/// A calm network brings all that is left.
fn settle(sides: &mut [Side; 2], air: &mut VecDeque<(usize, Vec<u8>)>, mut now: Time, key: &Key) {
    let mut turns = 0;
    while sides.iter().any(|side| !side.endpoint.all_delivered()) {
        turns += 1;
        assert!(turns < 100_000, "it comes to no end");
        transmit(sides, air, now, key);
        match air.pop_front() {
            Some((to, datagram)) => sides[to].receive(now, &datagram, key),
            None => {
                let due = sides.iter().map(|side| side.endpoint.due()).min();
                now = now.max(due.unwrap_or(now));
            }
        }
    }
}
