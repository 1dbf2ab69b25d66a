//! Random traffic among a few processes: nothing is lost, doubled, torn or out of order.

mod common;

use common::{LIMIT, config, open, reason_to_skip, wait_until, words};
use lintel_claim::{Lease, Region, copy_vectored};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_ofi::{Config, OfiNal};
use lintel_types::ProcessId;
use rustc_hash::FxHashMap;

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const MEMBERS: usize = 3;
const SIZES: [u64; 8] = [0, 1, 8, 100, 4000, 16_384, 70_000, 600_000];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

/// What the bytes of a message are, and how many.
fn fill(number: u64, size: u64) -> Region {
    let region = Region::new(size);
    let bytes: Vec<u8> = (0..size).map(|place| (number * 31 + place) as u8).collect();
    region.write(0, &bytes);
    region
}

struct Member {
    nal: OfiNal,
    name: ProcessId,
    /// What it expects next from each.
    expected: FxHashMap<ProcessId, u64>,
    stream: FxHashMap<u32, (u64, Region)>,
    received: u64,
}

impl Member {
    fn check(&mut self, from: ProcessId, number: u64, place: &Region) {
        let next = self.expected.entry(from).or_insert(0);
        assert_eq!(number >> 32, *next, "from {from:?}");
        *next += 1;
        self.received += 1;
        let whole = fill(number >> 32, number & 0xffff_ffff);
        let (mut left, mut right) = (vec![0; whole.len() as usize], vec![0; place.len() as usize]);
        whole.read(0, &mut left);
        place.read(0, &mut right);
        assert!(left == right, "number {} from {from:?}", number >> 32);
    }

    fn look(&mut self) {
        while let Some(arrival) = self.nal.next() {
            match arrival {
                Arrival::Message(origin, words, Payload::Inline(bytes)) => {
                    let place = Region::new(bytes.len());
                    copy_vectored(&[bytes], &[place.claim()]);
                    self.nal.done(origin);
                    self.check(origin.process, words[1], &place);
                }
                Arrival::Message(origin, words, Payload::Streamed(length)) => {
                    let place = Region::new(length);
                    self.nal
                        .receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                    self.nal.done(origin);
                    self.stream.insert(origin.lane, (words[1], place));
                }
                Arrival::Streamed(origin) => {
                    let (number, place) = self.stream.remove(&origin.lane).expect("it was begun");
                    self.check(origin.process, number, &place);
                }
                other => panic!("{other:?}"),
            }
        }
        self.nal.flush();
    }
}

/// So many messages of those sizes; behind one of `burst` of them a member looks.
fn traffic(provider: &str, messages: u64, sizes: &[u64], burst: u64, seed: u64) {
    if reason_to_skip(provider).is_some() {
        return;
    }
    eprintln!("{provider}: seed {seed}");
    let mut random = Random(seed);
    let mut members: Vec<Member> = (0..MEMBERS)
        .map(|_| {
            // Nobody ends here; a provider that lost datagrams may be silent for long.
            let nal = open(Config {
                peer_timeout: LIMIT,
                ..config(provider, "traffic")
            });
            Member {
                name: nal.process(),
                nal,
                expected: FxHashMap::default(),
                stream: FxHashMap::default(),
                received: 0,
            }
        })
        .collect();
    let mut sent = FxHashMap::default();
    // Lent bytes stay until all is over.
    let mut lent = Vec::new();
    for _ in 0..messages {
        let from = random.below(MEMBERS as u64) as usize;
        let to = (from + 1 + random.below(MEMBERS as u64 - 1) as usize) % MEMBERS;
        let size = sizes[random.below(sizes.len() as u64) as usize];
        let number = sent.entry((from, to)).or_insert(0u64);
        let region = fill(*number, size);
        let header = words(*number << 32 | size);
        *number += 1;
        let pieces = [region.claim()];
        let name = members[to].name;
        let is_lent = random.below(2) == 0;
        let body = if is_lent {
            Outgoing::LentToRead(LEASE.lend(&pieces))
        } else {
            Outgoing::Copied {
                operand: None,
                pieces: &pieces,
            }
        };
        members[from]
            .nal
            .send(name, &header, body)
            .expect("all live");
        if is_lent {
            lent.push(region);
        }
        if random.below(burst) == 0 {
            let looks = random.below(MEMBERS as u64) as usize;
            members[looks].look();
        }
    }
    wait_until("the end of the traffic", || {
        members.iter_mut().for_each(Member::look);
        let received: u64 = members.iter().map(|member| member.received).sum();
        received == messages && members.iter().all(|member| member.nal.all_delivered())
    });
    for member in &mut members {
        let troubles = member.nal.resources();
        assert_eq!(
            (troubles.forged, troubles.malformed, troubles.duplicates),
            (0, 0, 0)
        );
    }
}

fn seed() -> u64 {
    u64::from(std::process::id()) << 20 | 0x5_eed1
}

#[test]
fn over_tcp() {
    traffic("tcp;ofi_rxm", 600, &SIZES, 1, seed());
}

// Less of it: where this provider overruns a socket it waits long to send again.
#[test]
fn over_udp() {
    traffic("udp;ofi_rxd", 300, &SIZES[..6], 1, seed());
}

/// Many go in one frame; long ones in between must not overtake them.
#[test]
fn bursts_of_short_messages_over_tcp() {
    let sizes = [0, 1, 8, 8, 100, 255, 256, 257, 4000, 70_000];
    traffic("tcp;ofi_rxm", 4000, &sizes, 40, seed());
}
