//! Random traffic on random networks: everything arrives once and, where it should, in
//! order.

mod rig;

use lintel_reliable::{Class, Model};
use rig::{Delivered, Network, Rng, Weather, name, pattern};

const RUNS: u64 = 1000;
const PROCESSES: usize = 4;

fn weather(rng: &mut Rng) -> Weather {
    Weather {
        loss: [0, 1, 10, 30][rng.below(4) as usize],
        repeated: [0, 1, 20][rng.below(3) as usize],
        delayed: [0, 5, 50][rng.below(3) as usize],
        delay: [10, 300, 5000][rng.below(3) as usize],
        jitter: 2,
    }
}

/// What was sent: sender, receiver, class, number, length. It is what has to arrive.
type Sent = Vec<(usize, usize, Class, u64, u64)>;

fn send_some(network: &mut Network, rng: &mut Rng, all: &mut Sent) {
    for _ in 0..1 + rng.below(40) {
        let from = rng.below(PROCESSES as u64) as usize;
        let to = (from + 1 + rng.below(PROCESSES as u64 - 1) as usize) % PROCESSES;
        let class = match rng.below(10) {
            0 => Class::Reliable,
            1 => Class::Unreliable,
            _ => Class::Ordered,
        };
        let length = match (class, rng.below(4)) {
            (Class::Ordered, 0) => rng.below(20_000),
            (_, 1) => rng.below(800),
            _ => rng.below(20),
        };
        let number = all.len() as u64;
        network.send(from, to, class, number, length);
        all.push((from, to, class, number, length));
    }
}

fn check(network: &mut Network, all: &Sent) {
    for to in 0..PROCESSES {
        let delivered = std::mem::take(&mut network.process(to).delivered);
        for from in 0..PROCESSES {
            let sent = |class: Class| -> Vec<(u64, u64)> {
                let of_class = all.iter().filter(|m| (m.0, m.1, m.2) == (from, to, class));
                of_class.map(|m| (m.3, m.4)).collect()
            };
            let arrived = |class: Class| -> Vec<(u64, u64)> {
                let matches = |d: &&Delivered| d.from == name(from) && d.class == class;
                let of_class = delivered.iter().filter(matches);
                of_class.map(|d| (d.number, d.bytes.len() as u64)).collect()
            };
            assert_eq!(
                arrived(Class::Ordered),
                sent(Class::Ordered),
                "{from} to {to}"
            );
            let mut reliable = arrived(Class::Reliable);
            reliable.sort_unstable();
            assert_eq!(reliable, sent(Class::Reliable), "{from} to {to}");
            let unreliable = sent(Class::Unreliable);
            assert!(
                arrived(Class::Unreliable)
                    .iter()
                    .all(|m| unreliable.contains(m))
            );
        }
        for message in delivered {
            assert!(message.bytes == pattern(message.number, message.bytes.len() as u64));
        }
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed ^ 0xace);
    let kind = [Model::Rc, Model::Xrc][rng.below(2) as usize];
    let mut network = Network::new(PROCESSES, kind, weather(&mut rng), seed);
    let mut all = Vec::new();
    for _ in 0..1 + rng.below(3) {
        send_some(&mut network, &mut rng, &mut all);
        for _ in 0..rng.below(30) {
            network.step();
        }
    }
    network.settle();
    // The last words may still be in the air.
    let end = network.now.0 + 100_000_000;
    while network.now.0 < end && network.step() {}
    check(&mut network, &all);
    for process in network.processes.iter().flatten() {
        assert_eq!(process.losses, [], "everybody lives");
        assert!(!process.endpoint.has_unsent());
    }
    let finished: usize = network
        .processes
        .iter()
        .flatten()
        .map(|p| p.finished.len())
        .sum();
    assert_eq!(finished, all.len(), "every body is given back once");
}

#[test]
fn everything_arrives_once_and_in_order_whatever_the_network_does() {
    for seed in 0..RUNS {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
