//! Bodies that are taken back while they are being sent: none is read afterwards, what
//! arrives of them is whole and right or reported as broken, and everything else arrives in
//! order.

mod rig;

use lintel_reliable::{Class, Model};
use rig::{CALM, Delivered, Network, Rng, Weather, name, pattern};
use std::collections::HashSet;

const RUNS: u64 = 200;

/// Takes the bodies of some messages back. A reader of one would find nothing
/// in its place, and panic.
fn recall(network: &mut Network, number: usize, messages: &HashSet<u64>) {
    let is_meant = |body: &Vec<u8>| messages.iter().any(|m| is_body(body, *m));
    let endpoint = &mut network.process(number).endpoint;
    endpoint.recall(is_meant, Vec::new);
}

fn is_body(body: &[u8], number: u64) -> bool {
    !body.is_empty() && *body == pattern(number, body.len() as u64)
}

fn numbers(network: &mut Network, number: usize) -> Vec<u64> {
    let delivered = &network.process(number).delivered;
    delivered.iter().map(|message| message.number).collect()
}

#[test]
fn a_message_that_hasnt_begun_goes_unsent() {
    let mut network = Network::new(3, Model::Xrc, CALM, 1);
    for number in 1..4 {
        network.send(0, 2, Class::Ordered, number, 100);
    }
    recall(&mut network, 0, &HashSet::from([2]));
    network.settle();
    assert_eq!(numbers(&mut network, 2), [1, 3]);
    assert_eq!(network.process(2).broken, []);
    assert!(!network.process(0).endpoint.has_unsent());
    assert_eq!(network.process(0).endpoint.backlog(name(2)), 0);
}

#[test]
fn a_process_that_recalls_all_before_it_was_answered_sends_nothing() {
    let mut network = Network::new(3, Model::Xrc, CALM, 2);
    network.kill(2);
    network.send(0, 2, Class::Ordered, 1, 100);
    network.transmit();
    recall(&mut network, 0, &HashSet::from([1]));
    assert!(network.process(0).endpoint.all_delivered());
    let sent = network.sent;
    let until = network.now.after(lintel_reliable::Nanos::from_millis(500));
    while network.now < until && network.step() {}
    assert_eq!(network.sent, sent, "nobody is asked for nothing's sake");
}

#[test]
fn a_message_in_the_middle_is_broken_and_the_next_one_arrives() {
    let mut network = Network::new(3, Model::Xrc, CALM, 3);
    network.send(0, 2, Class::Ordered, 1, 1 << 20);
    network.send(0, 2, Class::Ordered, 2, 5000);
    network.run_until(|network| network.sent > 20);
    recall(&mut network, 0, &HashSet::from([1]));
    let (sent, now) = (network.sent, network.now);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [2]);
    assert_eq!(network.process(2).broken, [1]);
    assert!(network.sent - sent < 100, "the rest takes one packet");
    assert!(network.now.since(now) < lintel_reliable::Nanos::from_millis(1));
    assert_eq!(network.process(2).losses, []);
}

struct Run {
    network: Network,
    rng: Rng,
    sent: u64,
    recalled: HashSet<u64>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed ^ 0xbeef);
        let weather = Weather {
            loss: [0, 5, 30][rng.below(3) as usize],
            repeated: [0, 20][rng.below(2) as usize],
            delayed: [0, 30][rng.below(2) as usize],
            delay: [300, 5000][rng.below(2) as usize],
            jitter: 2,
        };
        Run {
            network: Network::new(3, Model::Xrc, weather, seed),
            rng,
            sent: 0,
            recalled: HashSet::new(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(10) {
            0 => {
                self.sent += 1;
                let length = [50, 700, 5000, 30_000][self.rng.below(4) as usize];
                self.network.send(0, 2, Class::Ordered, self.sent, length);
            }
            1 if self.sent > 0 => {
                let latest = self.sent - self.rng.below(self.sent.min(10));
                let some = HashSet::from([latest]);
                recall(&mut self.network, 0, &some);
                self.recalled.extend(some);
            }
            _ => {
                self.network.step();
            }
        }
    }

    fn check(&mut self) {
        let process = self.network.process(2);
        let arrived: Vec<&Delivered> = process.delivered.iter().collect();
        for message in &arrived {
            assert!(is_body(&message.bytes, message.number), "wrong bytes");
        }
        let arrived: Vec<u64> = arrived.iter().map(|message| message.number).collect();
        let whole = |number: &u64| !self.recalled.contains(number) || arrived.contains(number);
        let expected: Vec<u64> = (1..=self.sent).filter(whole).collect();
        assert_eq!(arrived, expected, "each once, in order");
        for broken in &process.broken {
            assert!(
                self.recalled.contains(broken),
                "{broken} was never recalled"
            );
            assert!(!arrived.contains(broken), "{broken} is whole, too");
        }
        assert_eq!(process.losses, []);
        assert!(self.network.process(0).endpoint.all_delivered());
        assert_eq!(self.network.process(0).endpoint.backlog(name(2)), 0);
    }
}

#[test]
fn whatever_is_recalled_whenever_the_rest_arrives_and_no_byte_is_wrong() {
    for seed in 0..RUNS {
        let result = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..300 {
                run.step();
            }
            run.network.settle();
            run.check();
        });
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
