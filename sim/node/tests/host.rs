//! Cores, noise, interrupts and the bus, against what can be computed by hand.

use lintel_sim_kernel::{Bandwidth, Bytes, Duration, SimTime, Streams};
use lintel_sim_node::{
    Bus, BusParameters, Copy, Core, InterruptLine, InterruptParameters, Noise, NoiseParameters,
    Placement,
};
use proptest::prelude::*;

/// The three kinds of noise of the triggered-operations model, 2.5 % each.
fn profiles(placement: Placement) -> [NoiseParameters; 3] {
    let us = Duration::from_us;
    let profile = |length, interval| NoiseParameters {
        length,
        interval,
        placement,
    };
    [
        profile(Duration::from_ns(250), us(10)),
        profile(us(25), us(1_000)),
        profile(us(2_500), us(100_000)),
    ]
}

fn noise(parameters: NoiseParameters, seed: u64) -> Noise {
    let stream = Streams::new(seed).stream("node/0/noise");
    Noise::new(parameters, stream).expect("it leaves time for work")
}

fn at(us: u64) -> SimTime {
    SimTime::START + Duration::from_us(us)
}

#[test]
fn noise_takes_its_share_of_a_long_time() {
    for placement in [Placement::Periodic, Placement::Scattered] {
        for parameters in profiles(placement) {
            let work = (parameters.interval - parameters.length) * 1_000;
            let done = noise(parameters, 1).stretch(SimTime::START, work);
            let whole = parameters.interval * 1_000;
            let off = done.since(SimTime::START + whole) + (SimTime::START + whole).since(done);
            assert!(off <= parameters.length, "{parameters:?}: {off} off");
        }
    }
}

#[test]
fn nodes_have_noise_at_places_of_their_own() {
    for placement in [Placement::Periodic, Placement::Scattered] {
        count_hits(placement);
    }
}

fn count_hits(placement: Placement) {
    let [_, middle, _] = profiles(placement);
    let streams = Streams::new(4);
    let hit = |node: u32| {
        let stream = streams.stream(&format!("node/{node}/noise"));
        let mut noise = Noise::new(middle, stream).expect("good");
        noise.stretch(SimTime::START, Duration::from_us(5)) > at(5)
    };
    // 5 µs of work meet 25 µs of noise in 30 µs of each 1000 µs: 3 % of nodes.
    let hits = (0..10_000).filter(|&node| hit(node)).count();
    assert!((240..360).contains(&hits), "{hits}");
}

#[test]
fn noise_that_is_over_disturbs_no_more_and_the_next_one_does() {
    for placement in [Placement::Periodic, Placement::Scattered] {
        for parameters in profiles(placement) {
            let mut noise = noise(parameters, 5);
            let (soon, long) = (Duration::from_ps(1), parameters.interval * 2);
            let mut now = SimTime::START;
            for _ in 0..2_000 {
                noise.end_by(now);
                assert_eq!(noise.stretch(now, soon), now + soon);
                let undisturbed = now + soon + long;
                assert!(noise.clone().stretch(now + soon, long) > undisturbed);
                now += parameters.length * 5;
            }
        }
    }
}

#[test]
fn noise_without_a_pause_is_refused() {
    let [mut parameters, ..] = profiles(Placement::Periodic);
    parameters.length = parameters.interval;
    let stream = Streams::new(0).stream("x");
    let mistake = Noise::new(parameters, stream).expect_err("refused");
    let text = "noise of 10000 ns each 10000 ns leaves no time for work";
    assert_eq!(mistake.to_string(), text);
}

/// Goes through time picosecond by picosecond: the plain thing.
fn stepwise(noise: &[(u64, u64)], start: u64, work: u64) -> u64 {
    let is_stopped = |t| noise.iter().any(|&(begin, end)| (begin..end).contains(&t));
    let (mut t, mut left) = (start, work);
    while is_stopped(t) || left > 0 {
        left -= u64::from(!is_stopped(t));
        t += 1;
        if left == 0 {
            break;
        }
    }
    t
}

/// Where noise is, found by looking for the work of one picosecond at each.
fn places(parameters: NoiseParameters, seed: u64, until: u64) -> Vec<(u64, u64)> {
    let mut noise = noise(parameters, seed);
    let one = Duration::from_ps(1);
    let mut places = Vec::new();
    let mut t = 0;
    while t < until {
        let done = noise.stretch(SimTime::from_ps(t), one).as_ps();
        if done > t + 1 {
            places.push((t, done - 1));
        }
        t = done;
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stretched_work_is_that_of_a_walk_through_time(
        (length, pause) in (1u64..30, 1u64..80),
        scattered: bool,
        seed: u64,
        pieces in prop::collection::vec((0u64..150, 1u64..150), 1..12),
    ) {
        let parameters = NoiseParameters {
            length: Duration::from_ps(length),
            interval: Duration::from_ps(length + pause),
            placement: match scattered {
                true => Placement::Scattered,
                false => Placement::Periodic,
            },
        };
        let places = places(parameters, seed, 100_000);
        let mut core = Core::new(noise(parameters, seed));
        let mut now = 0;
        for (wait, work) in pieces {
            now += wait;
            let done = core.run(SimTime::from_ps(now), Duration::from_ps(work)).as_ps();
            prop_assert_eq!(done, stepwise(&places, now, work));
            now = done;
        }
    }
}

#[test]
fn a_core_does_one_thing_after_the_other() {
    let mut core = Core::new(Noise::NONE);
    assert_eq!(core.run(at(10), Duration::from_us(5)), at(15));
    assert_eq!(core.run(at(12), Duration::from_us(2)), at(17));
    assert_eq!(core.run(at(20), Duration::from_us(1)), at(21));
    assert_eq!(core.worked(), Duration::from_us(8));
}

fn line(wait: u64, enough: u32) -> InterruptLine {
    InterruptLine::new(InterruptParameters {
        cost: Duration::from_us(2),
        wait: Duration::from_us(wait),
        enough,
    })
}

#[test]
fn without_coalescing_each_report_interrupts_at_once() {
    let mut line = line(0, 1);
    for us in [3, 4, 9] {
        assert_eq!(line.raise(at(us)), Some(at(us)));
        assert_eq!(line.enter(at(us)), 1);
    }
    assert_eq!(line.taken(), 3);
}

#[test]
fn reports_before_the_handler_share_one_interrupt() {
    let mut line = line(10, 100);
    assert_eq!(line.raise(at(1)), Some(at(11)));
    assert_eq!(line.raise(at(5)), None);
    assert_eq!(line.enter(at(11)), 2);
    assert_eq!(line.raise(at(12)), Some(at(22)));
}

#[test]
fn enough_reports_wait_no_longer() {
    let mut line = line(10, 3);
    assert_eq!(line.raise(at(1)), Some(at(11)));
    assert_eq!(line.raise(at(2)), None);
    assert_eq!(line.raise(at(3)), Some(at(3)));
    assert_eq!(line.enter(at(3)), 3);
    // The first one's time comes, and all have been served.
    assert_eq!(line.enter(at(11)), 0);
    assert_eq!(line.taken(), 1);
}

fn bus(all: u64, each: u64) -> Bus {
    let rate = |mb| Bandwidth::from_bytes_per_second(mb * 1_000_000).expect("not zero");
    Bus::new(BusParameters {
        all: rate(all),
        each: rate(each),
    })
}

/// All copies to their ends, in microseconds.
fn ends(bus: &mut Bus) -> Vec<(u64, Copy)> {
    let mut ends = Vec::new();
    while let Some(due) = bus.due() {
        let copy = bus.on_due(due.when, due.version).expect("it is due");
        ends.push((due.when.as_ps() / 1_000_000, copy));
    }
    ends
}

#[test]
fn one_copy_goes_as_fast_as_one_can() {
    let mut bus = bus(6_000, 2_000);
    let copy = bus.begin(at(5), Bytes(20_000));
    assert_eq!(ends(&mut bus), [(15, copy)]);
}

#[test]
fn copies_share_what_the_bus_has() {
    let mut bus = bus(2_000, 2_000);
    let long = bus.begin(at(0), Bytes(21_000));
    let old = bus.due().expect("one copy");
    let short = bus.begin(at(5), Bytes(5_000));
    // 10,000 bytes in 5 µs, then each 1000 a µs: the short one takes 5 µs more.
    assert_eq!(bus.on_due(old.when, old.version), None);
    assert_eq!(ends(&mut bus), [(10, short), (13, long)]);
}

#[test]
fn copies_that_end_at_once_end_in_the_order_of_their_beginning() {
    let mut bus = bus(3_000, 3_000);
    let copies = [(); 3].map(|()| bus.begin(at(1), Bytes(10_000)));
    let ends = ends(&mut bus);
    assert_eq!(ends.iter().map(|e| e.1).collect::<Vec<_>>(), copies);
    assert!(ends.iter().all(|e| e.0 == 11), "{ends:?}");
}

proptest! {
    #[test]
    fn no_byte_is_lost_or_won_on_the_bus(
        copies in prop::collection::vec((0u64..1_000, 1u64..50_000), 1..20),
    ) {
        let mut bus = bus(4_000, 1_500);
        let total: u64 = copies.iter().map(|c| c.1).sum();
        let mut now = SimTime::START;
        let count = copies.len();
        let mut ended = 0;
        for (wait, bytes) in copies {
            let next = now + Duration::from_ns(wait);
            while let Some(due) = bus.due().filter(|due| due.when <= next) {
                ended += usize::from(bus.on_due(due.when, due.version).is_some());
            }
            now = next;
            bus.begin(now, Bytes(bytes));
        }
        let rest = std::iter::from_fn(|| bus.due().and_then(|due| {
            now = due.when;
            bus.on_due(due.when, due.version)
        }));
        ended += rest.count();
        prop_assert_eq!(ended, count);
        // All of them no faster than the bus.
        let least = u128::from(total) * 1_000_000_000_000 / 4_000_000_000;
        prop_assert!(u128::from(now.as_ps()) >= least);
    }
}
