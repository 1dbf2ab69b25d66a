//! Shapes of curves: what must hold between points, whatever their values are.

use lintel_sim_kernel::Duration;
use lintel_sim_seastar::profile::{PROFILES, RED_STORM_2005, XT5_2009};
use lintel_sim_seastar::workload::{
    Case, Rounds, Stream, Way, both_at_random, ping_pong, tuned_stream,
};
use lintel_sim_seastar::{Class, Mode};

const UU: Way = Way::Cci(Class::Unreliable);
const RO: Way = Way::Cci(Class::Reliable);
const PORTALS: [Way; 5] = [
    Way::Put,
    Way::CopiedPut,
    Way::AcknowledgedPut,
    Way::Get,
    Way::Both,
];

fn time(case: &Case, way: Way, bytes: u64) -> Duration {
    ping_pong(case, way, bytes, 0).expect("the case runs")
}

/// Each case with each way that it has.
fn cases() -> Vec<(Case, Way)> {
    let mut all = Vec::new();
    for profile in PROFILES {
        for way in PORTALS {
            all.push((Case::new(*profile, Mode::Generic), way));
            all.push((Case::new(*profile, Mode::Accelerated), way));
        }
        all.extend([UU, RO].map(|way| (Case::new(*profile, Mode::Cci), way)));
    }
    all
}

/// Sizes that don't fit into a header's packet.
const MOVED: [u64; 17] = [
    17, 41, 64, 96, 128, 200, 256, 512, 768, 1_000, 1_500, 2_048, 3_000, 3_500, 4_096, 10_000,
    100_000,
];

/// Sizes each of which moves more than the one before: bytes of host memory for which the
/// kernel waits, or packets, of which a NIC's firmware sees no part.
fn moved(mode: Mode) -> Vec<u64> {
    let counts = |bytes: &u64| match mode {
        Mode::Generic => true,
        Mode::Accelerated => *bytes >= 64,
        Mode::Cci => (64..=4_096).contains(bytes),
    };
    MOVED.into_iter().filter(counts).collect()
}

#[test]
fn latency_of_one_message_at_a_time_grows_with_every_size_whose_bytes_are_moved() {
    // Where messages go both ways at once, their order decides which of them share an
    // interrupt, and it changes with the size.
    for (case, way) in cases().into_iter().filter(|(_, way)| *way != Way::Both) {
        let sizes = moved(case.mode);
        let times: Vec<Duration> = sizes.iter().map(|&bytes| time(&case, way, bytes)).collect();
        assert!(
            times.is_sorted_by(|less, more| less < more),
            "{} {:?} {way:?} {times:?}",
            case.profile.name,
            case.mode
        );
    }
}

/// With each doubling, and by at least half of what the slower engine needs for the bytes.
fn assert_grows(case: &Case, way: Way, sizes: &[u64]) {
    let p = &case.profile;
    let slower = p.tx_bandwidth.value.min(p.rx_bandwidth.value);
    for pair in sizes.windows(2) {
        let grown = time(case, way, pair[1]) - time(case, way, pair[0]);
        let least = Duration::from_ps((pair[1] - pair[0]) * 1_000_000_000_000 / slower / 2);
        assert!(
            grown > least,
            "{} {:?} {way:?} {pair:?} {grown}",
            p.name,
            case.mode
        );
    }
}

#[test]
fn without_interrupts_latency_grows_with_every_byte_that_is_moved() {
    for (case, way) in cases() {
        match case.mode {
            Mode::Generic => {}
            Mode::Accelerated => assert_grows(&case, way, &[2_048, 4_096, 16_384]),
            Mode::Cci => assert_grows(&case, way, &[512, 1_024, 2_048, 4_096]),
        }
    }
}

/// The end of the first interrupt hides most of a transfer that is shorter: what shows of it
/// is that the host waits for its memory.
#[test]
fn with_interrupts_latency_grows_where_moving_takes_longer_than_an_interrupt_s_end() {
    for profile in PROFILES {
        let case = Case::new(*profile, Mode::Generic);
        let end = profile.time(profile.interrupt_exit).as_ps();
        let hidden = profile.rx_bandwidth.value.min(profile.tx_bandwidth.value) * end;
        let hidden = hidden / 1_000_000_000_000;
        let sizes = [1, 2, 4, 8].map(|times| times * hidden + 4_096);
        assert_grows(&case, Way::Put, &sizes);
        assert_grows(&case, Way::Get, &sizes);
    }
}

/// A node may be a round ahead of the other one, whose message it must not take for its own.
#[test]
fn puts_both_ways_take_no_less_than_one_wherever_the_second_node_begins() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    for bytes in [0, 1_024, 16_384] {
        let least = time(&case, Way::Put, bytes);
        for phase in [0, 300, 1_000, 3_000, 8_000].map(Duration::from_ns) {
            let rounds = Rounds {
                way: Way::Both,
                bytes,
                ahead: 0,
                phase,
            };
            let took = rounds.prepare(&case).expect("a case").run();
            let took = took.expect("the case runs");
            assert!(took >= least, "{bytes} {phase} {took} {least}");
        }
    }
}

/// S1's 8.39 us are no matter of the phase: a node that begins later waits no longer.
#[test]
fn puts_both_ways_take_longest_in_step() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let in_step = time(&case, Way::Both, 0);
    let at_random = both_at_random(&case, 0, Duration::from_us(1)).expect("the case runs");
    assert!(at_random <= in_step, "{at_random} {in_step}");
}

#[test]
fn a_second_process_of_a_node_waits_for_the_kernel_no_less_than_the_first() {
    for bytes in [0, 12, 13, 1_024, 16_384] {
        for way in [Way::Put, Way::Get, Way::Both] {
            let case = Case::new(RED_STORM_2005, Mode::Generic);
            let (single, double) = (
                time(&case, way, bytes),
                time(&case.virtual_nodes(), way, bytes),
            );
            assert!(single <= double, "{way:?} {bytes} {single} {double}");
            let nic = Case::new(RED_STORM_2005, Mode::Accelerated);
            assert_eq!(
                time(&nic, way, bytes),
                time(&nic.virtual_nodes(), way, bytes)
            );
        }
    }
}

fn rate(class: Class, bytes: u64) -> f64 {
    let case = Case::new(XT5_2009, Mode::Cci);
    let stream = Stream {
        class,
        messages: 300,
        ..Stream::of(bytes)
    };
    1e12 / tuned_stream(&case, stream).expect("it runs").as_ps() as f64
}

/// Between 384 and 1024 bytes two nodes in step once made bursts of three messages that shared
/// interrupts, and nothing disturbed them.
#[test]
fn rates_of_streams_never_rise_with_size() {
    let sizes = [64, 128, 384, 448, 512, 768, 1_024, 2_048];
    for profile in [RED_STORM_2005, XT5_2009] {
        let case = Case::new(profile, Mode::Generic);
        let gap = |bytes| tuned_stream(&case, Stream::of(bytes)).expect("it runs");
        let gaps: Vec<Duration> = sizes.into_iter().map(gap).collect();
        for (pair, bytes) in gaps.windows(2).zip(sizes) {
            // What is random moves a mean of 1000 by a few thousandths.
            let least = Duration::from_ps(pair[0].as_ps() / 1_000 * 995);
            assert!(least <= pair[1], "{} {bytes} {gaps:?}", profile.name);
        }
    }
}

#[test]
fn reliable_messages_are_slower_until_the_bus_limits_both() {
    // S4 V-B: "lower until we reach the maximum message size".
    for bytes in [8, 256, 1_024] {
        assert!(rate(Class::Reliable, bytes) < 0.9 * rate(Class::Unreliable, bytes));
    }
    let (reliable, unreliable) = (rate(Class::Reliable, 4_096), rate(Class::Unreliable, 4_096));
    assert!((reliable / unreliable - 1.0).abs() < 0.01);
}

#[test]
fn cci_stays_below_3_microseconds_up_to_between_256_and_512_bytes() {
    // S4 V-A.
    let case = Case::new(XT5_2009, Mode::Cci);
    let three = Duration::from_us(3);
    assert!(time(&case, UU, 256) < three && three < time(&case, UU, 512));
}
