//! The bodies of the fuzz targets over bytes from seeds.

#[path = "../../../fuzz/bodies/engine_requests.rs"]
mod engine_requests;
#[path = "rig/mod.rs"]
mod rig;
#[path = "../../../fuzz/bodies/wire_parse.rs"]
mod wire_parse;

use rig::Random;

/// Bytes in which every eighth word is a plausible first word of a message.
fn bytes(seed: u64, messages: usize, stride: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = vec![random.next() as u8; usize::from(stride > 48)];
    for _ in 0..messages {
        let mut message: Vec<u8> = (0..stride.div_ceil(8))
            .flat_map(|_| random.next().to_le_bytes())
            .collect();
        message.truncate(stride);
        if random.below(8) > 0 {
            message[4] = random.below(7) as u8 + 1; // the kind
            message[6..8].copy_from_slice(&(random.below(4) as u16).to_le_bytes());
            message[18..24].fill(0); // short messages, and no failure
            message[23] = random.below(2) as u8;
        }
        bytes.extend(message);
    }
    bytes
}

#[test]
fn any_words_give_a_message_or_an_error() {
    for seed in 0..500 {
        println!("seed {seed}");
        wire_parse::body(&bytes(seed, 50, 48));
    }
}

#[test]
fn whatever_arrives_an_interface_ends_clean() {
    for seed in 0..2000 {
        println!("seed {seed}");
        engine_requests::body(&bytes(seed, 60, 49));
    }
}
