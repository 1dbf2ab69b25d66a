//! Processes that end and begin again at random, on networks that lose packets, while
//! recorded packets are replayed: no message is delivered twice, to whatever
//! life, or behind a later one; and once all is calm everybody reaches everybody. Where
//! clocks are set back, a message of a life that its receiver never heard of may come
//! behind one of a later life, but still only once.

mod rig;

use lintel_reliable::{Class, Model, Nanos};
use rig::{CALM, Network, Rng, Weather, name};
use std::collections::HashSet;

const RUNS: u64 = 300;
const PROCESSES: usize = 4;
const STEPS: u64 = 400;

struct Run {
    network: Network,
    rng: Rng,
    messages: u64,
    delivered: HashSet<u64>,
    incarnations: HashSet<u64>,
    /// Clocks never go back.
    is_forward: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed ^ 0xdead);
        let weather = Weather {
            loss: [0, 5, 30][rng.below(3) as usize],
            repeated: [0, 20][rng.below(2) as usize],
            delayed: [0, 30][rng.below(2) as usize],
            delay: [300, 5000][rng.below(2) as usize],
            jitter: 2,
        };
        let mut network = Network::new(PROCESSES, Model::Xrc, weather, seed);
        network.recorded = Some(Vec::new());
        let mut run = Run {
            network,
            rng,
            messages: 0,
            delivered: HashSet::new(),
            incarnations: HashSet::new(),
            is_forward: seed % 2 == 0,
        };
        (0..PROCESSES).for_each(|number| run.restart(number));
        run
    }

    fn restart(&mut self, number: usize) {
        self.take_delivered(number);
        let mut incarnation = 0;
        while incarnation == 0 || !self.incarnations.insert(incarnation) {
            incarnation = match self.is_forward {
                true => self.network.now.0,
                false => self.rng.below(1 << 40),
            };
            self.network.now.0 += 1;
        }
        self.network.start_as(number, incarnation);
    }

    fn two(&mut self) -> (usize, usize) {
        let from = self.rng.below(PROCESSES as u64) as usize;
        let to = from + 1 + self.rng.below(PROCESSES as u64 - 1) as usize;
        (from, to % PROCESSES)
    }

    fn send(&mut self, from: usize, to: usize) -> u64 {
        self.messages += 1;
        let length = [0, 100, 5000][self.rng.below(3) as usize];
        self.network
            .send(from, to, Class::Ordered, self.messages, length);
        self.messages
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=1 => {
                let number = self.two().0;
                self.restart(number);
            }
            2..=14 => {
                let (from, to) = self.two();
                self.send(from, to);
            }
            15..=29 => self.replay(),
            _ => {
                self.network.step();
            }
        }
    }

    fn replay(&mut self) {
        let recorded = self.network.recorded.as_ref().expect("a recorder is set");
        if !recorded.is_empty() {
            let which = self.rng.below(recorded.len() as u64) as usize;
            let datagram = recorded[which].clone();
            self.network.arrive(&datagram);
        }
    }

    /// What a life has been given, in order from each.
    fn take_delivered(&mut self, number: usize) {
        let process = self.network.process(number);
        let delivered = std::mem::take(&mut process.delivered);
        for from in 0..PROCESSES {
            let mut last = 0;
            for message in delivered.iter().filter(|m| m.from == name(from)) {
                let is_next = message.number > last || !self.is_forward;
                assert!(is_next, "a later one came before");
                last = message.number;
                assert!(self.delivered.insert(last), "{last} came twice");
            }
        }
    }

    /// Whether a message arrives before it is given up.
    fn arrives(&mut self, from: usize, to: usize) -> bool {
        let number = self.send(from, to);
        let until = self.network.now.after(Nanos::from_millis(100));
        loop {
            let process = self.network.process(to);
            if process.delivered.iter().any(|m| m.number == number) {
                return true;
            }
            let process = self.network.process(from);
            if process.finished.contains(&number) {
                return false;
            }
            assert!(self.network.now < until, "{from} hears nothing from {to}");
            self.network.step();
        }
    }
}

fn run(seed: u64) {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
    }
    run.network.weather = CALM;
    run.network.settle();
    for from in 0..PROCESSES {
        for to in (0..PROCESSES).filter(|to| *to != from) {
            // The first may have been for an earlier life.
            let reached = (0..2).any(|_| run.arrives(from, to));
            assert!(reached, "{from} doesn't reach {to}");
        }
    }
    (0..PROCESSES).for_each(|number| run.take_delivered(number));
}

#[test]
fn nothing_arrives_twice_or_late_whichever_side_restarts_and_whatever_is_repeated() {
    for seed in 0..RUNS {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
