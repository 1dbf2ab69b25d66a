//! CCI with few buffers: a reliable connection loses nothing, an unreliable one says
//! what it has lost.

use lintel_sim_kernel::SimTime;
use lintel_sim_seastar::profile::XT5_2009;
use lintel_sim_seastar::workload::{Case, Stream, stream, two_way_stream};
use lintel_sim_seastar::{Action, Class, Mode, Notice, Profile, Program, Refused, Setup};
use lintel_types::ProcessId;

/// An endpoint with so many areas of 4 KB to receive into, and completions.
fn with_few(areas: u64, completions: u64) -> Profile {
    XT5_2009
        .with("cci_area", 4_160)
        .and_then(|profile| profile.with("cci_rx_areas", areas))
        .and_then(|profile| profile.with("cci_completions", completions))
        .expect("there are such constants")
}

fn messages(class: Class, bytes: u64) -> Stream {
    Stream {
        class,
        messages: 60,
        window: 32,
        ..Stream::of(bytes)
    }
}

#[test]
fn a_reliable_stream_survives_a_receiver_without_room() {
    for (areas, completions) in [(1, 1_000), (2, 1_000), (3, 40), (1_000, 34)] {
        for bytes in [0, 40, 1_000, 4_096] {
            let case = Case::new(with_few(areas, completions), Mode::Cci);
            let gap = stream(&case, messages(Class::Reliable, bytes));
            assert!(gap.is_ok(), "{areas} {completions} {bytes}: {gap:?}");
        }
    }
}

#[test]
fn reliable_streams_both_ways_survive_receivers_without_room() {
    for areas in [1, 2, 5] {
        let case = Case::new(with_few(areas, 1_000), Mode::Cci);
        let gap = two_way_stream(&case, messages(Class::Reliable, 2_000));
        assert!(gap.is_ok(), "{areas}: {gap:?}");
    }
}

#[test]
fn an_unreliable_stream_is_reported_incomplete() {
    let case = Case::new(with_few(1, 1_000), Mode::Cci);
    let reported = stream(&case, messages(Class::Unreliable, 4_096));
    let reported = reported.expect_err("messages are lost").to_string();
    assert!(reported.contains("has not come to its end"), "{reported}");
}

#[test]
fn a_sender_without_credits_waits_for_them() {
    // An unreliable receiver with so few would lose what comes before it has said that it has
    // them again.
    for completions in [2, 3, 5] {
        let case = Case::new(with_few(1_000, completions), Mode::Cci);
        let gap = stream(&case, messages(Class::Reliable, 8));
        assert!(gap.is_ok(), "{completions}: {gap:?}");
    }
}

#[test]
fn refused_messages_are_retransmitted_and_no_others() {
    for (areas, is_refused) in [(1, true), (1_000, false)] {
        let case = Case::new(with_few(areas, 1_000), Mode::Cci);
        let wanted = messages(Class::Reliable, 4_096);
        let mut running = wanted.prepare(&case).expect("it can be run").begin();
        running.simulation.run();
        (running.read)(&running.simulation).expect("all arrive");
        let again = running.simulation.world.report(0).retransmitted;
        assert_eq!(again > 0, is_refused, "{areas} areas: {again}");
    }
}

/// Sends to a process without having connected, or to one that can't be connected to.
struct Hasty {
    connects_to: Option<ProcessId>,
}

impl Program for Hasty {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        match self.connects_to {
            Some(to) => setup.connect(to, Class::Reliable),
            None => Ok(()),
        }
    }

    fn next(&mut self, _: SimTime, _: Option<&Notice>) -> Action {
        Action::Send {
            to: ProcessId::new(1, 0),
            class: Class::Reliable,
            bytes: 8,
        }
    }
}

fn reported(connects_to: Option<ProcessId>, other: Mode) -> String {
    let mut machine = Case::new(XT5_2009, Mode::Cci)
        .torus([2, 1, 1])
        .expect("there is such a machine");
    let hasty = Hasty { connects_to };
    machine.add(0, Mode::Cci, Box::new(hasty)).expect("room");
    let idle = Hasty { connects_to: None };
    machine.add(1, other, Box::new(idle)).expect("room");
    let mut simulation = machine.into_simulation();
    simulation.run();
    simulation.world.unfinished().join("; ")
}

#[test]
fn a_message_without_a_connection_fails_and_says_what_to_do() {
    let said = reported(None, Mode::Cci);
    assert!(said.contains("connect before the clock starts"), "{said}");
}

#[test]
fn a_connection_to_nobody_is_refused_before_the_clock_starts() {
    for nobody in [
        ProcessId::new(1, 0),
        ProcessId::new(0, 7),
        ProcessId::new(9, 0),
    ] {
        let said = reported(Some(nobody), Mode::Generic);
        assert!(said.contains("connection refused"), "{nobody:?}: {said}");
    }
}
