//! Benchmarks of many nodes: what arrives, and what is said where something doesn't.

use lintel_sim_kernel::Duration;
use lintel_sim_seastar::profile::RED_STORM_2005;
use lintel_sim_seastar::workload::{
    Case, Exchange, Hypercube, ManyToMany, NetPipe, Pattern, RandomAccess, Way, farthest,
    hypercube, netpipe, ping_pong, random_access,
};
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

#[test]
fn a_dimension_of_a_hypercube_costs_an_exchange_and_a_sort() {
    let chunk = |mode, dimensions| {
        let run = Hypercube {
            dimensions,
            ..Hypercube::OURS
        };
        hypercube(&Case::new(RED_STORM_2005, mode), run).expect("a power of two")
    };
    let sort = Hypercube::OURS.sort * u64::from(Hypercube::OURS.updates);
    for mode in MODES {
        let times = [[2, 1, 1], [2, 2, 1], [2, 2, 2]].map(|sides| chunk(mode, sides));
        for pair in times.windows(2) {
            // 4 KB at 1.1 GB/s take 3.7 us.
            assert!(
                pair[1] - pair[0] > sort + Duration::from_ns(3_700),
                "{mode:?}"
            );
        }
    }
    assert!(chunk(Mode::Accelerated, [2, 2, 2]) < chunk(Mode::Generic, [2, 2, 2]));
}

#[test]
fn a_hypercube_of_three_nodes_is_refused() {
    let run = Hypercube {
        dimensions: [3, 1, 1],
        ..Hypercube::OURS
    };
    let refused = hypercube(&Case::new(RED_STORM_2005, Mode::Generic), run);
    let refused = refused.expect_err("three is no power of two").to_string();
    assert!(refused.contains("power of two"), "{refused}");
}

#[test]
fn the_farthest_node_is_a_hop_s_time_farther_for_each_hop() {
    let case = Case::new(RED_STORM_2005, Mode::Accelerated);
    let near = ping_pong(&case, Way::Put, 0, 0).expect("it runs");
    let far = farthest(&case, [6, 4, 8], Way::Put).expect("it runs");
    // 3 + 2 + 4 hops instead of one.
    assert_eq!(far - near, case.profile.time(case.profile.hop) * 8);
}

#[test]
fn netpipe_sends_return_before_the_next_message_is_waited_for() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    for bytes in [0, 12, 13, 1_024, 8_192] {
        let took = |pattern| netpipe(&case, NetPipe { pattern, bytes }).expect("it runs");
        let [turns, both, stream] = [
            took(Pattern::PingPong),
            took(Pattern::Bidirectional),
            took(Pattern::Streaming),
        ];
        let put = ping_pong(&case, Way::Put, bytes, 0).expect("it runs");
        // The node that answers looks for the end of its last send first.
        assert!(turns >= put, "{bytes}: {turns:?} {put:?}");
        assert!(
            stream < turns && turns < both,
            "{bytes}: {stream:?} {turns:?} {both:?}"
        );
        assert!(both < turns * 2, "{bytes}: {both:?}");
    }
}

#[test]
fn binding_and_unlinking_a_descriptor_costs_a_put_a_call_before_it_goes() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    for bytes in [0, 64, 8_192] {
        let took = |way| ping_pong(&case, way, bytes, 0).expect("it runs");
        let p = case.profile;
        let call = p.time(p.trap) + p.time(p.library_call);
        let longer = took(Way::BoundPut) - took(Way::Put);
        // The put's end is looked for besides, and unlinking goes on meanwhile.
        let most = call * 2 + p.time(p.event_get) * 2;
        assert!((call..=most).contains(&longer), "{bytes}: {longer:?}");
    }
}
