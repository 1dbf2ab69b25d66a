//! More senders than the CAM has entries: what is lost, and what brings it back.

use lintel_sim_kernel::Streams;
use lintel_sim_seastar::profile::{RED_STORM_2005, XT5_2009};
use lintel_sim_seastar::workload::{Arrivals, Case, Incast, Stream, incast, stream};
use lintel_sim_seastar::{Mode, Protection};

/// 48 senders of two long messages each, to a CAM of 16 entries.
const MANY_SENDERS: Incast = Incast {
    dimensions: [7, 7, 1],
    messages: 2,
    bytes: 8_192,
};
const ENTRIES: u64 = 16;

fn many_senders(mode: Mode, protection: Protection) -> Arrivals {
    let small = RED_STORM_2005
        .with("cam_entries", ENTRIES)
        .expect("there is one");
    let case = Case::new(small, mode).protected(protection);
    incast(&case, MANY_SENDERS).expect("the machine can be built")
}

#[test]
fn messages_without_a_structure_of_the_firmware_come_again_if_protected() {
    for (constant, bytes) in [("pendings", 8), ("pendings", 3_000), ("sources", 3_000)] {
        for mode in [Mode::Generic, Mode::Accelerated] {
            // The NIC is done with a short one as soon as it has looked at it.
            if mode == Mode::Accelerated && bytes == 8 {
                continue;
            }
            let small = RED_STORM_2005.with(constant, 2).expect("there is one");
            let crowd = Incast {
                dimensions: [3, 3, 1],
                messages: 4,
                bytes,
            };
            let case = Case::new(small, mode);
            let run = |case: &Case| incast(case, crowd).expect("the machine can be built");
            let (lost, all) = (run(&case), run(&case.protected(Protection::EndToEnd)));
            assert!(lost.received < lost.sent, "{constant} {mode:?} {lost:?}");
            assert!(all.report.exhausted > 0, "{constant} {mode:?} {all:?}");
            assert_eq!(all.received, all.sent, "{constant} {mode:?} {all:?}");
            assert!(all.stuck.is_empty(), "{constant} {mode:?} {all:?}");
        }
    }
}

#[test]
fn a_sender_with_one_structure_sends_one_message_after_the_other() {
    let small = RED_STORM_2005.with("pendings", 2).expect("there is one");
    for mode in [Mode::Generic, Mode::Accelerated] {
        let gap = |profile| {
            let messages = Stream {
                messages: 20,
                ..Stream::of(8)
            };
            stream(
                &Case::new(profile, mode).protected(Protection::EndToEnd),
                messages,
            )
        };
        let (one, many) = (
            gap(small).expect("ends"),
            gap(RED_STORM_2005).expect("ends"),
        );
        assert!(one >= many, "{mode:?} {one} {many}");
    }
}

#[test]
fn more_than_256_senders_overflow_the_machines_own_cam() {
    let many = Incast {
        dimensions: [7, 7, 7],
        messages: 1,
        bytes: 65_536,
    };
    let case = Case::new(RED_STORM_2005, Mode::Generic).protected(Protection::EndToEnd);
    let arrivals = incast(&case, many).expect("the machine can be built");
    assert_eq!(arrivals.report.cam_sources, 256);
    assert!(arrivals.report.overflows > 0, "{:?}", arrivals.report);
    assert_eq!(
        (arrivals.received, arrivals.stuck.len()),
        (arrivals.sent, 0)
    );
}

#[test]
fn an_unprotected_kernel_loses_messages_and_counts_them() {
    let arrivals = many_senders(Mode::Generic, Protection::None);
    let report = &arrivals.report;
    assert_eq!(report.cam_sources as u64, ENTRIES);
    assert!(report.overflows > 0);
    assert_eq!(arrivals.received + report.lost, arrivals.sent);
    assert_eq!(arrivals.stuck.len(), 1, "{:?}", arrivals.stuck);
}

#[test]
fn unprotected_accelerated_firmware_aborts_its_node() {
    let arrivals = many_senders(Mode::Accelerated, Protection::None);
    assert!(arrivals.report.aborted.is_some());
    assert_eq!(arrivals.received + arrivals.report.lost, arrivals.sent);
}

#[test]
fn an_end_to_end_protocol_loses_nothing() {
    for mode in [Mode::Generic, Mode::Accelerated] {
        let arrivals = many_senders(mode, Protection::EndToEnd);
        assert!(
            arrivals.report.overflows > 0 && arrivals.retransmitted > 0,
            "{mode:?}"
        );
        assert_eq!(
            (arrivals.received, arrivals.report.lost),
            (arrivals.sent, 0),
            "{mode:?}"
        );
        assert_eq!(arrivals.stuck, [""; 0], "{mode:?}");
    }
}

#[test]
fn a_protocol_of_the_hosts_loses_nothing_and_costs_them_interrupts() {
    let by_host = many_senders(Mode::Generic, Protection::Host);
    assert!(by_host.report.overflows > 0 && by_host.retransmitted > 0);
    assert_eq!((by_host.received, by_host.stuck.len()), (by_host.sent, 0));
    let by_firmware = many_senders(Mode::Generic, Protection::EndToEnd);
    let interrupts = [&by_host, &by_firmware].map(|run| run.report.interrupts);
    assert!(interrupts[0] > interrupts[1], "{interrupts:?}");
    assert!(by_host.end > by_firmware.end);
}

#[test]
fn a_protocol_of_the_hosts_does_not_see_what_accelerated_firmware_drops() {
    // S0: "can't detect dropped accelerated messages"; the node is aborted.
    let arrivals = many_senders(Mode::Accelerated, Protection::Host);
    assert!(arrivals.report.aborted.is_some());
    assert_eq!(arrivals.retransmitted, 0);
    assert!(arrivals.received < arrivals.sent);
}

#[test]
fn swapping_entries_loses_nothing_and_sends_nothing_again() {
    for mode in [Mode::Generic, Mode::Accelerated] {
        let arrivals = many_senders(mode, Protection::Swap);
        assert!(arrivals.report.swaps > 0, "{mode:?}");
        assert_eq!(
            (arrivals.received, arrivals.report.lost),
            (arrivals.sent, 0),
            "{mode:?}"
        );
        assert_eq!(
            (arrivals.retransmitted, arrivals.stuck.len()),
            (0, 0),
            "{mode:?}"
        );
    }
}

#[test]
fn fewer_senders_than_entries_need_no_protection() {
    let few = Incast {
        dimensions: [5, 3, 1],
        ..MANY_SENDERS
    };
    let small = RED_STORM_2005
        .with("cam_entries", ENTRIES)
        .expect("there is one");
    for protection in [
        Protection::None,
        Protection::Host,
        Protection::EndToEnd,
        Protection::Swap,
    ] {
        let case = Case::new(small, Mode::Generic).protected(protection);
        let arrivals = incast(&case, few).expect("the machine can be built");
        assert_eq!(
            (arrivals.received, arrivals.report.overflows),
            (arrivals.sent, 0)
        );
    }
}

#[test]
fn a_crowd_leaves_the_same_trace_each_time() {
    let trace = || many_senders(Mode::Generic, Protection::EndToEnd).trace;
    assert_eq!(trace(), trace());
}

#[test]
fn nothing_is_lost_or_stuck_whatever_the_crowd() {
    for seed in 0..60 {
        let mut draws = Streams::new(seed).stream("crowd");
        let mut below = |bound| draws.below(bound);
        let profile = RED_STORM_2005
            .with("cam_entries", 1 + below(6))
            .and_then(|profile| profile.with("link_errors", below(2) * 20_000_000))
            .and_then(|profile| profile.with("backoff", 500 + below(40_000)))
            .expect("there are such constants");
        let (mode, protection) = [
            (Mode::Generic, Protection::Host),
            (Mode::Generic, Protection::EndToEnd),
            (Mode::Generic, Protection::Swap),
            (Mode::Accelerated, Protection::EndToEnd),
            (Mode::Accelerated, Protection::Swap),
        ][below(5) as usize];
        let senders = Incast {
            dimensions: [3, 3, 1],
            messages: 1 + below(8) as u32,
            bytes: below(6) * below(1_500),
        };
        let case = Case::new(profile, mode).protected(protection);
        let arrivals = incast(&case, senders).expect("the machine can be built");
        let what = format!("seed {seed}: {mode:?} {protection:?} {senders:?} {arrivals:?}");
        assert_eq!(arrivals.received, arrivals.sent, "{what}");
        assert!(
            arrivals.report.lost == 0 && arrivals.stuck.is_empty(),
            "{what}"
        );
    }
}

#[test]
fn no_queue_of_the_nic_holds_more_than_it_can() {
    let long = Incast {
        dimensions: [3, 3, 1],
        messages: 4,
        bytes: 300_000,
    };
    for profile in [RED_STORM_2005, XT5_2009] {
        let case = Case::new(profile, Mode::Generic).protected(Protection::EndToEnd);
        let arrivals = incast(&case, long).expect("the machine can be built");
        let report = &arrivals.report;
        assert_eq!(arrivals.received, arrivals.sent);
        assert!(
            report.tx_commands <= 31 && report.rx_commands <= 7,
            "{report:?}"
        );
        assert!((1..=4).contains(&report.pio_packets), "{report:?}");
    }
}
