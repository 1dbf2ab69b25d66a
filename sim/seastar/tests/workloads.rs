//! Benchmarks of many nodes: what arrives, and what is said where something doesn't.

use lintel_sim_seastar::profile::RED_STORM_2005;
use lintel_sim_seastar::workload::{Case, Exchange, ManyToMany, RandomAccess, random_access};
use lintel_sim_seastar::{Mode, Profile, Protection};

const MODES: [Mode; 2] = [Mode::Generic, Mode::Accelerated];

fn with_entries(entries: u64) -> Profile {
    let small = RED_STORM_2005.with("cam_entries", entries);
    small.expect("there is such a constant")
}

fn exchange(case: &Case, bytes: u64) -> Exchange {
    let run = ManyToMany {
        dimensions: [3, 2, 1],
        messages: 2,
        bytes,
    };
    let benchmark = run.prepare(case).expect("the machine can be built");
    benchmark.run().expect("it ends")
}

#[test]
fn each_puts_to_each_and_all_arrives() {
    for mode in MODES {
        let case = Case::new(RED_STORM_2005, mode);
        for (case, processes) in [(case, 6), (case.virtual_nodes(), 12)] {
            for bytes in [0, 8, 3_000] {
                let found = exchange(&case, bytes);
                let sent = processes * (processes - 1) * 2;
                assert_eq!(
                    (found.sent, found.received),
                    (sent, sent),
                    "{mode:?} {bytes}"
                );
                assert_eq!(
                    (found.overflows, found.retransmitted, found.swaps),
                    (0, 0, 0)
                );
            }
        }
    }
}

#[test]
fn with_one_entry_of_the_cam_protected_puts_arrive_and_unprotected_ones_are_lost() {
    for mode in MODES {
        let case = Case::new(with_entries(1), mode);
        let lost = exchange(&case, 8_192);
        assert!(lost.overflows > 0 && lost.received < lost.sent, "{lost:?}");
        for protection in [Protection::EndToEnd, Protection::Swap] {
            let found = exchange(&case.protected(protection), 8_192);
            assert!(found.overflows > 0, "{mode:?} {protection:?}: {found:?}");
            assert_eq!(found.received, found.sent, "{mode:?} {protection:?}");
        }
    }
}

#[test]
fn a_random_access_that_loses_messages_says_so() {
    let run = RandomAccess {
        dimensions: [2, 2, 2],
        updates: 2_000,
        ..RandomAccess::RED_STORM
    };
    let reported = random_access(&Case::new(with_entries(1), Mode::Generic), run);
    let reported = reported.expect_err("messages are lost").to_string();
    assert!(
        reported.contains("of 16000 updates were made"),
        "{reported}"
    );
    let protected = Case::new(with_entries(1), Mode::Generic).protected(Protection::EndToEnd);
    assert!(random_access(&protected, run).is_ok());
}
