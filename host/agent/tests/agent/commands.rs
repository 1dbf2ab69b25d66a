//! Bytes that are no command, and commands that nobody would give.

use crate::rig::{Rig, request};
use lintel_bridge::{Channel, Hello, MESSAGE_BYTES};
use lintel_fault::random::Random;

const COMMANDS: usize = 20_000;

#[test]
fn whatever_a_client_commands_the_agent_answers_and_lives() {
    let mut random = Random::from_env();
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    let (_channel, region) =
        Channel::connect(rig.job.name(), rig.nid(), Hello::default()).expect("it listens");
    // An interface to command: numbers are as postcard has them.
    let open = [0, 0, 5, 0xff, 0xff, 3, 0];
    let answer = region.request(&open, || true).expect("the agent lives");
    assert_eq!(answer.first(), Some(&0), "it opens: {answer:?}");
    for _ in 0..COMMANDS {
        let length = random.number() as usize % 80;
        let mut command: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
        if let Some(first) = command.first_mut() {
            // Closing and leaving would end the fun early.
            *first = 2 + *first % 27;
        }
        for byte in command.iter_mut().skip(1) {
            *byte = if random.number() % 3 == 0 {
                *byte
            } else {
                *byte % 8
            };
        }
        region.request(&command, || true).expect("the agent lives");
    }
    let long = vec![0x80; MESSAGE_BYTES];
    region.request(&long, || true).expect("the agent lives");
    request(&mut one, "put 2 100000", "Ok 100000");
    request(&mut two, "received 100000", "right");
}
