//! The seed's figures, what follows from the model by hand, and determinism.
#![forbid(unsafe_code)]

use lintel_sim_kernel::Bytes;
use lintel_sim_verbs::constants::{
    BUS_LATENCY, CABLE, ENGINE, HEADER, HOST, LINK, RECEIVE_QUEUE, SWITCH,
};
use lintel_sim_verbs::counts::Job;
use lintel_sim_verbs::measure::{Pattern, bandwidth, latency};
use lintel_sim_verbs::{Transport, table};

#[test]
fn a_short_message_takes_its_stages_to_the_tick() {
    let wire = SWITCH + CABLE + LINK.time_for(Bytes(HEADER.0 + 1));
    // Its byte comes with the work request, and goes over the receiver's bus.
    let byte = lintel_sim_verbs::constants::BUS_EACH.time_for(Bytes(1));
    let rc = HOST + BUS_LATENCY + ENGINE + wire + ENGINE + byte + BUS_LATENCY + HOST;
    assert_eq!(latency(Transport::Rc, Bytes(1)), rc);
    assert_eq!(latency(Transport::Ud, Bytes(1)), rc);
    assert_eq!(latency(Transport::Xrc, Bytes(1)), rc + RECEIVE_QUEUE);
}

#[test]
fn the_seeds_figures_come_out() {
    for row in table() {
        let off = row.simulated / row.published - 1.0;
        // The difference of two bandwidths near each other is known to its size only.
        let allowed = if row.what.contains("ahead") {
            0.5
        } else {
            0.02
        };
        assert!(off.abs() < allowed, "{row:?}");
    }
}

#[test]
fn contexts_are_fetched_over_and_over_only_where_they_are_more_than_the_cache_holds() {
    let long = Bytes(64 << 10);
    let misses = |transport, count| {
        let all = Pattern::ManyToMany(count);
        bandwidth(transport, all, long).misses
    };
    // Two nodes, and a context for each of 4 × 4 pairs, of 8 processes and 8 targets.
    assert_eq!(misses(Transport::Rc, 4), 2 * 16);
    assert_eq!(misses(Transport::Xrc, 8), 2 * 16);
    let datagrams = bandwidth(Transport::Ud, Pattern::ManyToMany(8), Bytes(2_048));
    assert_eq!(datagrams.misses, 2 * 8);
    assert!(misses(Transport::Rc, 8) > 4 * 64);
}

#[test]
fn pairs_share_what_one_pair_has() {
    for transport in [Transport::Rc, Transport::Xrc] {
        let long = Bytes(1 << 20);
        let one = bandwidth(transport, Pattern::Pairs(1), long).megabytes_per_second;
        let eight = bandwidth(transport, Pattern::Pairs(8), long).megabytes_per_second;
        assert!(
            (eight / one - 1.0).abs() < 0.02,
            "{transport:?}: {one} {eight}"
        );
    }
}

#[test]
fn the_same_streams_give_the_same_trace() {
    let hash = || bandwidth(Transport::Rc, Pattern::ManyToMany(2), Bytes(5_000)).trace_hash;
    assert_eq!(hash(), hash());
}

#[test]
fn connections_are_counted_by_process_by_node_or_not_at_all() {
    let job = Job::new(65_536, 8);
    assert_eq!(job.senders(Transport::Rc), 65_528);
    assert_eq!(job.senders(Transport::Xrc), 8_191);
    assert_eq!(job.senders(Transport::Ud), 1);
    assert_eq!(job.of_node(Transport::Rc), 8 * 65_528);
    assert_eq!(job.of_node(Transport::Xrc), 2 * 8 * 8_191);
    let seven = Job {
        receive_queues: 7,
        ..job
    };
    assert_eq!(seven.senders(Transport::Rc), 7 * 65_528);
    assert_eq!(seven.senders(Transport::Xrc), 8_191);
    let memory = |transport| job.memory(transport).0;
    assert!(memory(Transport::Rc) > 7 * memory(Transport::Xrc));
    assert!(memory(Transport::Xrc) > 10 * memory(Transport::Ud));
}

#[test]
fn a_node_alone_needs_no_connection() {
    let alone = Job::new(8, 8);
    assert_eq!(
        alone.of_node(Transport::Rc) + alone.of_node(Transport::Xrc),
        0
    );
}
