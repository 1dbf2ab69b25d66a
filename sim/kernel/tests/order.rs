//! What a world sees: order, limits, and the trace hash.

use lintel_sim_kernel::{Duration, Event, EventQueue, SimTime, Simulation, Stream, Streams, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Walk(u32),
    Mark(u32),
}

impl Event for Step {
    fn word(&self) -> u64 {
        match *self {
            Step::Walk(n) => u64::from(n),
            Step::Mark(n) => 1 << 32 | u64::from(n),
        }
    }
}

/// Takes random steps, some at once, and notes its marks.
struct Walker {
    stream: Stream,
    marks: Vec<(SimTime, u32)>,
}

impl World for Walker {
    type Event = Step;

    fn on_event(&mut self, event: Step, events: &mut EventQueue<Step>) {
        match event {
            Step::Walk(0) => {}
            Step::Walk(left) => {
                let wait = Duration::from_ns(self.stream.below(4));
                events.after(wait, Step::Walk(left - 1));
                events.after(wait, Step::Mark(left));
            }
            Step::Mark(n) => self.marks.push((events.now(), n)),
        }
    }
}

fn walk(seed: u64) -> Simulation<Walker> {
    let mut simulation = Simulation::new(Walker {
        stream: Streams::new(seed).stream("walker"),
        marks: Vec::new(),
    });
    simulation.events.at(SimTime::START, Step::Walk(1_000));
    simulation
}

#[test]
fn same_seed_gives_the_same_trace_hash_twice_and_against_the_golden() {
    let hash = |seed| {
        let mut simulation = walk(seed);
        simulation.run();
        simulation.events.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
    assert_eq!(
        hash(1),
        0xe75b_30da_6bb5_59b1,
        "every result changes with it: say why"
    );
}

#[test]
fn stopping_on_the_way_changes_nothing() {
    let mut whole = walk(5);
    whole.run();
    let mut parts = walk(5);
    let mut limit = SimTime::START;
    while parts.run_until(limit) {
        assert_eq!(parts.events.now(), limit);
        limit += Duration::from_ps(700);
    }
    assert_eq!(parts.world.marks, whole.world.marks);
    assert_eq!(parts.events.trace_hash(), whole.events.trace_hash());
    assert_eq!(parts.events.executed(), 2_001);
}

#[test]
fn equal_times_keep_the_order_of_insertion() {
    let mut simulation = walk(0);
    let when = SimTime::START + Duration::from_ns(9);
    for n in 0..20 {
        simulation.events.at(when, Step::Mark(n));
    }
    simulation.run();
    let at_nine = simulation.world.marks.iter().filter(|m| m.0 == when);
    let order: Vec<u32> = at_nine.map(|m| m.1).collect();
    assert_eq!(order[..20], (0..20).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "has passed")]
fn nothing_is_put_into_the_past() {
    let mut simulation = walk(0);
    simulation.run_until(SimTime::from_ps(10));
    simulation.events.at(SimTime::from_ps(9), Step::Mark(0));
}
