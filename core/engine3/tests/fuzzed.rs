//! The bodies of the fuzz targets over bytes from seeds.

#[path = "../../../fuzz/bodies/engine3_requests.rs"]
mod engine3_requests;
#[path = "rig/mod.rs"]
mod rig;
#[path = "../../../fuzz/bodies/wire_parse.rs"]
mod wire_parse;

use lintel_wire::portals3::{Message, Verb};
use rig::Random;

/// Requests, then responses: the byte of a message that says what it is.
const KINDS: [u8; 5] = [
    Verb::Put as u8,
    Verb::Get as u8,
    Verb::GetPut as u8,
    0xe,
    0xf,
];

/// Messages of 49 bytes behind a first byte; most have a kind of Portals 3.3, few bytes and
/// no failure.
fn bytes(seed: u64, messages: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = vec![random.next() as u8];
    for _ in 0..messages {
        let words = (0..7).flat_map(|_| random.next().to_le_bytes());
        let mut message: Vec<u8> = words.take(49).collect();
        if random.below(8) > 0 {
            message[4] = random.pick(&KINDS);
            message[6..8].copy_from_slice(&(random.below(4) as u16).to_le_bytes());
            message[18..24].fill(0);
            message[22] = random.below(3) as u8;
        }
        bytes.extend(message);
    }
    bytes
}

#[test]
fn each_kind_is_a_message() {
    for kind in KINDS {
        let words = [u64::from(kind) << 32, 0, 0, 0, 0, 0];
        assert!(Message::parse(&words).is_ok(), "kind {kind}");
    }
}

#[test]
fn any_words_give_a_message_or_an_error() {
    for seed in 0..500 {
        println!("seed {seed}");
        let bytes = bytes(seed, 50);
        for message in bytes[1..].chunks_exact(49) {
            wire_parse::body(&message[..48]);
        }
    }
}

#[test]
fn whatever_arrives_an_interface_ends_clean() {
    for seed in 0..2000 {
        println!("seed {seed}");
        engine3_requests::body(&bytes(seed, 80));
    }
}
