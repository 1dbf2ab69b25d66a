//! Receivers that look late: their sockets have what was sent, and nothing is lost.

mod rig;

use lintel_reliable::{Class, Model};
use rig::{CALM, Network, Weather};

/// Packets of the long message below, one a datagram.
const PACKETS: usize = 40;
const BYTES: u64 = PACKETS as u64 * 900;

/// A message is on its way to a process that is stopped; the sender has timed out.
fn kept_waiting(seed: u64) -> Network {
    let steady = Weather { jitter: 1, ..CALM };
    let mut network = Network::new(3, Model::Xrc, steady, seed);
    for number in 0..3 {
        network.send(0, 2, Class::Ordered, number, BYTES);
        network.settle();
    }
    network.process(2).is_away = true;
    network.send(0, 2, Class::Ordered, 3, BYTES);
    network.run_until(|network| network.process(0).endpoint.counts().retransmitted > 0);
    network.transmit();
    network
}

#[test]
fn what_waits_behind_a_retransmitted_packet_isnt_retransmitted_too() {
    for seed in 0..20 {
        for first in 2..PACKETS {
            let mut network = kept_waiting(seed);
            network.look(2, first);
            // It hears of the first packets while the others wait.
            let now = network.now;
            network.process(2).endpoint.check_peers(now);
            network.send(2, 0, Class::Ordered, 9, 10);
            network.transmit();
            network.process(2).is_away = true;
            network.run_until(|network| !network.process(0).delivered.is_empty());
            network.transmit();
            network.look(2, usize::MAX);
            network.settle();
            let counts = network.process(0).endpoint.counts();
            assert_eq!(counts.retransmitted, 1, "seed {seed}, {first} packets");
        }
    }
}
