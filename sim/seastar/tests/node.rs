//! What a node's parts do together: two kinds of clients, memory, retries, spans.

use std::cell::RefCell;
use std::rc::Rc;

use lintel_memory::{Buffer, Ghost};
use lintel_sim_fabric::{Dimension, Fabric, FreeFabric, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_sim_seastar::profile::{RED_STORM_2005, XT5_2009};
use lintel_sim_seastar::workload::{
    Case, Halo, PingPong, Stream, Way, halo, measured, median, ping_pong, run, tuned_stream,
    two_way_stream,
};
use lintel_sim_seastar::{
    Action, Class, Exposure, Machine, Mode, Notice, Program, Protection, Refused, Setup, Span,
    Track, put,
};
use lintel_types::portals3::{MdOptions, NI_FAIL};
use lintel_types::{Handle, ProcessId};

/// A program that only sets up.
struct Asks(fn(&mut Setup<'_>) -> Result<(), Refused>);

impl Program for Asks {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        (self.0)(setup)
    }

    fn next(&mut self, _: SimTime, _: Option<&Notice>) -> Action {
        Action::End
    }
}

fn refused(mode: Mode, asks: fn(&mut Setup<'_>) -> Result<(), Refused>) -> Option<String> {
    let case = Case::new(RED_STORM_2005, mode);
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    machine
        .add(0, mode, Box::new(Asks(asks)))
        .err()
        .map(|refused| refused.to_string())
}

const ANY: Exposure = Exposure::to_all(8, 0);

fn expose_1025(setup: &mut Setup<'_>) -> Result<(), Refused> {
    (0..1_025).try_for_each(|_| setup.expose(&ANY).map(drop))
}

fn bind_pieces(setup: &mut Setup<'_>) -> Result<(), Refused> {
    let pieces = Buffer::vector(vec![Ghost::new(0, 8), Ghost::new(64, 8)]);
    setup.bind(pieces, MdOptions::empty()).map(drop)
}

#[test]
fn the_nic_has_half_as_many_match_entries_as_the_kernel() {
    assert_eq!(refused(Mode::Generic, expose_1025), None);
    assert!(refused(Mode::Accelerated, expose_1025).is_some());
}

#[test]
fn the_nic_refuses_memory_in_pieces_and_says_why() {
    assert_eq!(refused(Mode::Generic, bind_pieces), None);
    let reported = refused(Mode::Accelerated, bind_pieces).expect("it is refused");
    assert!(reported.contains("contiguous"), "{reported}");
}

#[test]
fn clients_beyond_the_nics_memory_are_refused() {
    let small = RED_STORM_2005.with("sram", 300_000).expect("there is one");
    let case = Case::new(small, Mode::Accelerated).virtual_nodes();
    let mut machine = case.torus([2, 1, 1]).expect("the firmware has room");
    let mut add = || machine.add(0, Mode::Accelerated, Box::new(Asks(|_| Ok(()))));
    assert!(add().is_ok());
    let reported = add().expect_err("there is no room").to_string();
    assert!(reported.contains("bytes left"), "{reported}");
}

#[test]
fn a_core_takes_one_process() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    let mut add = || machine.add(0, Mode::Generic, Box::new(Asks(|_| Ok(()))));
    assert!(add().is_ok() && add().is_err());
}

#[test]
fn generic_and_accelerated_clients_share_a_node() {
    let case = Case::new(RED_STORM_2005, Mode::Generic).virtual_nodes();
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    let [kernel, nic] = [(0, Mode::Generic), (1, Mode::Accelerated)].map(|(pid, mode)| {
        let times = measured();
        for node in [0, 1] {
            let times = times.clone();
            let program = PingPong::new(Way::Put, 0, 0, node == 0, times).with_process(pid);
            machine
                .add(node, mode, Box::new(program))
                .expect("it has a core");
        }
        times
    });
    run(machine).expect("both come to their end");
    let alone = |mode| ping_pong(&Case::new(RED_STORM_2005, mode), Way::Put, 0, 0);
    let alone = [Mode::Generic, Mode::Accelerated].map(|mode| alone(mode).expect("it runs"));
    assert!(median(&nic) < median(&kernel));
    assert!(median(&kernel) >= alone[0] && median(&nic) >= alone[1]);
}

#[test]
fn a_links_retries_delay_messages_and_lose_none() {
    let noisy = XT5_2009
        .with("link_errors", 50_000_000)
        .expect("there is one");
    for (mode, way) in [
        (Mode::Generic, Way::Put),
        (Mode::Cci, Way::Cci(Class::Reliable)),
    ] {
        let time = |profile| ping_pong(&Case::new(profile, mode), way, 4_000, 0);
        let (clean, noisy) = (time(XT5_2009).expect("runs"), time(noisy).expect("runs"));
        assert!(noisy > clean, "{mode:?}: {noisy} {clean}");
    }
}

#[test]
fn spans_tell_where_the_time_goes() {
    let spans = Rc::new(RefCell::new(Vec::<Span>::new()));
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    let seen = spans.clone();
    machine.observe(Box::new(move |span| seen.borrow_mut().push(span)));
    for node in [0, 1] {
        let program = PingPong::new(Way::Put, 1_000, 0, node == 0, measured());
        machine
            .add(node, Mode::Generic, Box::new(program))
            .expect("it has a core");
    }
    run(machine).expect("it comes to its end");
    let spans = spans.borrow();
    assert!(
        spans
            .iter()
            .all(|span| span.start <= span.end && span.at < 2)
    );
    for track in [
        Track::Process(0),
        Track::Kernel,
        Track::Firmware,
        Track::Tx,
        Track::Stall,
    ] {
        assert!(spans.iter().any(|span| span.track == track), "{track:?}");
    }
    // One thing after the other on the PowerPC.
    let mut firmware: Vec<&Span> = spans
        .iter()
        .filter(|s| s.track == Track::Firmware)
        .collect();
    firmware.sort_by_key(|span| (span.at, span.start));
    let overlaps = |pair: &[&Span]| pair[0].at == pair[1].at && pair[0].end > pair[1].start;
    assert!(!firmware.windows(2).any(overlaps));
}

#[test]
fn acknowledgements_go_between_two_messages_to_the_same_node() {
    let case = Case::new(RED_STORM_2005, Mode::Accelerated).protected(Protection::EndToEnd);
    let gap = |window| {
        let messages = Stream {
            window,
            messages: 40,
            ..Stream::of(16_384)
        };
        two_way_stream(&case, messages).expect("it runs")
    };
    // Else a narrow window closes until a pause lets them out.
    assert!(gap(2) <= gap(16), "{} {}", gap(2), gap(16));
}

/// Puts to and fro over a network.
fn over<F: Fabric>(network: F, bytes: u64) -> Duration {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let machine = Machine::new(case.profile, case.setting, network);
    let mut machine = machine.expect("there is such a machine");
    let times = measured();
    for node in [0, 1] {
        let program = PingPong::new(Way::Put, bytes, 0, node == 0, times.clone());
        machine
            .add(node, case.mode, Box::new(program))
            .expect("it has a core");
    }
    machine.into_simulation().run();
    median(&times)
}

#[test]
fn both_models_of_the_network_agree_on_short_messages() {
    let torus = || Torus::new([2, 1, 1].map(Dimension::ring)).expect("there is such a torus");
    let network = RED_STORM_2005.network();
    for bytes in [0, 12, 64, 200] {
        let packets = PacketFabric::new(torus(), &network).expect("it is one");
        let free = FreeFabric::new(torus(), &network).expect("it is one");
        assert_eq!(over(packets, bytes), over(free, bytes), "{bytes} bytes");
    }
}

#[test]
fn the_second_core_reaches_the_kernel_by_an_interrupt_and_not_by_a_trap() {
    let time = |mode, core| {
        let case = Case::new(RED_STORM_2005, mode);
        let case = if core == 1 {
            case.virtual_nodes()
        } else {
            case
        };
        ping_pong(&case, Way::Put, 0, 0).expect("it runs")
    };
    // It calls the kernel by an interrupt between processors, and is woken by another one,
    // whose end it waits for as a process on the kernel's core does.
    let p = &RED_STORM_2005;
    let dearer = p.time(p.interrupt_entry) * 2 - p.time(p.trap);
    assert_eq!(time(Mode::Generic, 1), time(Mode::Generic, 0) + dearer);
    assert_eq!(time(Mode::Accelerated, 1), time(Mode::Accelerated, 0));
}

#[test]
fn streamed_gets_are_limited_by_the_interrupts_of_their_target() {
    // A request and the word that the answer has left, each an interrupt with its work.
    let p = &RED_STORM_2005;
    let wanted = Stream {
        gets: true,
        messages: 200,
        ..Stream::of(0)
    };
    let gap = tuned_stream(&Case::new(*p, Mode::Generic), wanted).expect("it runs");
    let interrupt = p.time(p.interrupt_entry) + p.time(p.interrupt_exit);
    assert!(gap > interrupt * 2, "{gap}");
    let nic = tuned_stream(&Case::new(*p, Mode::Accelerated), wanted).expect("it runs");
    assert!(nic < interrupt, "{nic}");
}

#[test]
fn a_halo_exchange_costs_the_host_less_where_the_nic_matches() {
    let compute = Duration::from_us(50);
    let exchange = Halo {
        dimensions: [3, 2, 2],
        bytes: 2_048,
        compute,
        rounds: 3,
    };
    let time = |mode| halo(&Case::new(RED_STORM_2005, mode), exchange).expect("all come");
    assert!(compute < time(Mode::Accelerated));
    assert!(time(Mode::Accelerated) < time(Mode::Generic));
}

/// Sends once, and ends with the next notice.
struct Once {
    to: ProcessId,
    reported: Rc<RefCell<Vec<Notice>>>,
    memory: Option<Handle>,
}

impl Program for Once {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let buffer = Buffer::Contiguous(Ghost::new(0, 8));
        self.memory = Some(setup.bind(buffer, MdOptions::EVENT_START_DISABLE)?);
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        self.reported.borrow_mut().extend(notice);
        match (notice, self.memory.take()) {
            (Some(_), _) => Action::End,
            (None, Some(memory)) => Action::Start(put(memory, 8, self.to, 0)),
            (None, None) => Action::Wait,
        }
    }
}

/// What is reported to node 0's process, messages that node 1 has lost, and processes that are
/// stuck.
fn once(from: Mode, node: u32, to: Mode) -> (Vec<Notice>, u64, Vec<String>) {
    let case = Case::new(XT5_2009, from);
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    let reported = Rc::new(RefCell::new(Vec::new()));
    let program = Once {
        to: ProcessId::new(node, 0),
        reported: reported.clone(),
        memory: None,
    };
    machine
        .add(0, from, Box::new(program))
        .expect("it has a core");
    machine
        .add(1, to, Box::new(Asks(|_| Ok(()))))
        .expect("it has a core");
    let mut simulation = machine.into_simulation();
    simulation.run();
    let reported = reported.borrow().clone();
    (
        reported,
        simulation.world.report(1).lost,
        simulation.world.unfinished(),
    )
}

#[test]
fn a_message_that_its_target_does_not_speak_is_lost_and_counted() {
    let (reported, lost, stuck) = once(Mode::Generic, 1, Mode::Cci);
    assert_eq!((reported.len(), lost, stuck.len()), (1, 1, 0));
}

#[test]
fn a_put_to_a_node_that_is_not_there_is_undeliverable() {
    for mode in [Mode::Generic, Mode::Accelerated] {
        let (reported, ..) = once(mode, 7, mode);
        let [Notice::Portals(event)] = reported[..] else {
            panic!("{mode:?}: one event, not {reported:?}");
        };
        assert_eq!(event.ni_fail, NI_FAIL, "{mode:?}");
    }
}
