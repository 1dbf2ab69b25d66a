//! Bytes that are no command, and commands that nobody would give.

use crate::rig::{Rig, request};
use lintel_bridge::{Channel, Hello, MESSAGE_BYTES};
use lintel_fault::random::Random;

const COMMANDS: usize = 20_000;
/// Commands of Portals 4 and of Portals 3.3 behind those that open and close an interface, but
/// for the one that leaves the agent.
const COMMANDS_OF: [u8; 2] = [27, 19];

#[test]
fn whatever_a_client_commands_the_agent_answers_and_lives() {
    let mut random = Random::from_env();
    let rig = Rig::new();
    let (mut one, mut two) = (rig.generic(1), rig.generic(2));
    let (_channel, region) =
        Channel::connect(rig.job.name(), rig.nid(), Hello::default()).expect("it listens");
    // An interface of Portals 4 and one of Portals 3.3: numbers are as postcard has them.
    let [any4, any3] = [&[0xff, 0xff, 3][..], &[0xff, 0xff, 0xff, 0xff, 15]];
    let default3 = &[1, 0, 0x80, 0xe0, 0xc3, 0x87, 15];
    for open in [[&[0, 0, 0, 5], any4, &[0]], [default3, any3, &[0, 0]]] {
        let answer = region.request(&open.concat(), || true);
        let answer = answer.expect("the agent lives");
        assert_eq!(answer.first(), Some(&0), "{open:?} opens: {answer:?}");
    }
    for _ in 0..COMMANDS {
        let length = random.number() as usize % 80;
        let mut command: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
        if let [protocol, which, ..] = &mut command[..] {
            *protocol %= 2;
            // Closing and leaving would end the test early.
            *which = 2 + *which % COMMANDS_OF[usize::from(*protocol)];
        }
        for byte in command.iter_mut().skip(2) {
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
