//! What interrupts the host, and what its kernel and library are paid for.

use std::cell::RefCell;
use std::rc::Rc;

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_sim_seastar::profile::{RED_STORM_2005, XT5_2009};
use lintel_sim_seastar::workload::{Case, PingPong, Way, measured, pair, ping_pong};
use lintel_sim_seastar::{
    Action, Exposure, Mode, NodeReport, Notice, Placement, Program, Refused, Setup, put,
};
use lintel_types::portals3::{EventKind, MdOptions, THRESHOLD_INFINITE};
use lintel_types::{Handle, ProcessId};

/// Messages that a process of a ping-pong sends, the first one included.
const ROUNDS: u64 = 4;

fn interrupts(way: Way, bytes: u64) -> [u64; 2] {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let program =
        |begins| -> Box<dyn Program> { Box::new(PingPong::new(way, bytes, 0, begins, measured())) };
    let simulation = pair(&case, [program(true), program(false)]).expect("it runs");
    [0, 1].map(|node| simulation.world.report(node).interrupts)
}

#[test]
fn a_put_interrupts_both_sides_and_its_payload_once_more() {
    // Each node sends and receives.
    assert_eq!(interrupts(Way::Put, 12), [2 * ROUNDS, 2 * ROUNDS]);
    assert_eq!(interrupts(Way::Put, 13), [3 * ROUNDS, 3 * ROUNDS]);
}

#[test]
fn a_get_interrupts_its_initiator_for_the_answer_only() {
    assert_eq!(interrupts(Way::Get, 0), [ROUNDS, 2 * ROUNDS]);
    assert_eq!(interrupts(Way::Get, 13), [2 * ROUNDS, 2 * ROUNDS]);
}

#[test]
fn an_acknowledgement_interrupts_both_sides() {
    assert_eq!(
        interrupts(Way::AcknowledgedPut, 0),
        [4 * ROUNDS, 4 * ROUNDS]
    );
}

/// Puts once if it has a target, else waits for a put.
struct One {
    to: Option<ProcessId>,
    bytes: u64,
    /// Of both its descriptors.
    options: MdOptions,
    threshold: i32,
    memory: Handle,
    reported: Rc<RefCell<Vec<(EventKind, Duration)>>>,
}

impl Program for One {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.bytes));
        self.memory = setup.bind(memory, self.options)?;
        setup.expose(&Exposure {
            options: self.options,
            threshold: self.threshold,
            ..Exposure::to_all(self.bytes, 0)
        })?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if let Some(Notice::Portals(event)) = notice {
            let since_start = now.since(SimTime::START);
            self.reported.borrow_mut().push((event.kind, since_start));
            return match event.kind {
                EventKind::PutEnd | EventKind::SendEnd => Action::End,
                _ => Action::Wait,
            };
        }
        match self.to.take() {
            Some(to) => Action::Start(put(self.memory, self.bytes, to, 0)),
            None => Action::Wait,
        }
    }
}

impl One {
    /// 8 bytes without START events, any number of times.
    fn new(to: Option<ProcessId>) -> Self {
        One {
            to,
            bytes: 8,
            options: MdOptions::EVENT_START_DISABLE,
            threshold: THRESHOLD_INFINITE,
            memory: Handle::INVALID,
            reported: Rc::default(),
        }
    }
}

type Reported = Vec<(EventKind, Duration)>;

/// What is reported to two processes when the first one puts, and what its node counts.
fn one_put(case: &Case, bytes: u64, options: MdOptions) -> (Reported, NodeReport) {
    let reported = Rc::new(RefCell::new(Vec::new()));
    let core = match case.setting.placement {
        Placement::Single => 0,
        Placement::Virtual => 1,
    };
    let one = |to| -> Box<dyn Program> {
        Box::new(One {
            bytes,
            options,
            reported: reported.clone(),
            ..One::new(to)
        })
    };
    let programs = [one(Some(ProcessId::new(1, core))), one(None)];
    let simulation = pair(case, programs).expect("both are notified");
    let reported = reported.borrow().clone();
    (reported, simulation.world.report(0))
}

fn kinds(reported: &Reported) -> Vec<EventKind> {
    reported.iter().map(|event| event.0).collect()
}

const PAIRS: MdOptions = MdOptions::empty();
const ENDS: MdOptions = MdOptions::EVENT_START_DISABLE;

#[test]
fn start_events_are_read_and_paid_for_before_their_ends() {
    use EventKind::{PutEnd, PutStart, SendEnd, SendStart};
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let p = &case.profile;
    let [ends, pairs] = [ENDS, PAIRS].map(|options| one_put(&case, 8, options).0);
    assert_eq!(kinds(&ends), [SendEnd, PutEnd]);
    assert_eq!(kinds(&pairs), [SendStart, SendEnd, PutStart, PutEnd]);
    // The start at the sender is written in its call, that at the target by the handler.
    let (event, get) = (p.time(p.host_event), p.time(p.event_get));
    assert_eq!(pairs[3].1, ends[1].1 + event * 2 + get);
}

#[test]
fn the_start_of_a_message_comes_with_its_header_and_the_end_with_the_next_interrupt() {
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    let p = &case.profile;
    let apart = |bytes| {
        let (reported, _) = one_put(&case, bytes, PAIRS);
        let [began, ended] = [EventKind::PutStart, EventKind::PutEnd].map(|kind| {
            let event = reported.iter().find(|event| event.0 == kind);
            event.expect("it is reported").1
        });
        ended - began
    };
    assert_eq!(apart(12), p.time(p.event_get));
    // Where the deposit is short, its interrupt is pending when the first one ends.
    assert_eq!(apart(13), p.time(p.event_get));
    assert!(apart(16_384) > p.time(p.interrupt_exit));
}

#[test]
fn a_descriptor_takes_no_more_operations_than_its_threshold() {
    for (threshold, expected) in [(THRESHOLD_INFINITE, 1), (1, 1), (0, 0)] {
        for mode in [Mode::Generic, Mode::Accelerated] {
            let case = Case::new(RED_STORM_2005, mode);
            let target = One {
                threshold,
                ..One::new(None)
            };
            let reported = target.reported.clone();
            let sender = One::new(Some(ProcessId::new(1, 0)));
            // A target whose descriptor is inactive waits for ever.
            let ended = pair(&case, [Box::new(sender), Box::new(target)]);
            assert_eq!(reported.borrow().len(), expected, "{mode:?} {threshold}");
            assert_eq!(ended.is_ok(), expected == 1, "{mode:?} {threshold}");
        }
    }
}

#[test]
fn a_call_from_the_second_core_costs_the_kernel_an_interrupt_and_its_end() {
    let p = &RED_STORM_2005;
    let case = Case::new(*p, Mode::Generic);
    let kernel = |case: &Case| one_put(case, 8, ENDS).1.kernel;
    let dearer = p.time(p.interrupt_entry) + p.time(p.interrupt_exit) - p.time(p.trap);
    assert_eq!(kernel(&case.virtual_nodes()), kernel(&case) + dearer);
}

/// Puts after a while, then computes.
struct Busy {
    first: Duration,
    to: ProcessId,
    memory: Handle,
    step: u32,
    end: Rc<RefCell<Duration>>,
}

const AFTERWARDS: Duration = Duration::from_us(20);

impl Program for Busy {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        self.memory = setup.bind(
            Buffer::Contiguous(Ghost::new(0x1000, 8)),
            MdOptions::empty(),
        )?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, _: Option<&Notice>) -> Action {
        self.step += 1;
        match self.step {
            1 => Action::Compute(self.first),
            2 => Action::Start(put(self.memory, 8, self.to, 0)),
            3 => Action::Compute(AFTERWARDS),
            _ => {
                *self.end.borrow_mut() = now.since(SimTime::START);
                Action::End
            }
        }
    }
}

/// How long the first node's process takes besides what it computes first. The second
/// one's put interrupts it meanwhile.
fn besides(first: Duration) -> Duration {
    let end = Rc::new(RefCell::new(Duration::ZERO));
    let busy = Busy {
        first,
        to: ProcessId::new(1, 0),
        memory: Handle::INVALID,
        step: 0,
        end: end.clone(),
    };
    let putting = One::new(Some(ProcessId::new(0, 0)));
    let case = Case::new(RED_STORM_2005, Mode::Generic);
    pair(&case, [Box::new(busy), Box::new(putting)]).expect("both come to their end");
    let end = *end.borrow();
    end - first
}

#[test]
fn an_interrupt_takes_a_process_the_same_time_whenever_it_comes() {
    // Before, during and after the process's own call.
    let times = (0..40).map(|step| besides(Duration::from_ns(100) * step));
    let times: Vec<Duration> = times.collect();
    assert!(times.iter().all(|&time| time == times[0]), "{times:?}");
}

/// Processes that are stuck where one waits for a put, and one on the other core calls
/// the kernel after a while, for nothing.
fn stuck(first: Duration) -> Vec<String> {
    let case = Case::new(RED_STORM_2005, Mode::Generic).virtual_nodes();
    let mut machine = case.torus([2, 1, 1]).expect("there is such a machine");
    let calling = Busy {
        first,
        to: ProcessId::new(7, 0),
        memory: Handle::INVALID,
        step: 0,
        end: Rc::default(),
    };
    let programs: [(u32, Box<dyn Program>); 3] = [
        (0, Box::new(One::new(None))),
        (0, Box::new(calling)),
        (1, Box::new(One::new(Some(ProcessId::new(0, 0))))),
    ];
    for (node, program) in programs {
        let added = machine.add(node, case.mode, program);
        added.expect("it has a core");
    }
    let mut simulation = machine.into_simulation();
    simulation.run();
    simulation.world.unfinished()
}

#[test]
fn a_process_is_notified_although_the_other_core_keeps_its_kernel_busy() {
    for step in 0..100 {
        let first = Duration::from_ns(100) * step;
        assert!(stuck(first).is_empty(), "{first}: {:?}", stuck(first));
    }
}

#[test]
fn pages_of_an_answer_are_found_as_those_of_a_put_are() {
    let slow = XT5_2009.with("page_map", 1_060).expect("there is one");
    let dearer = |way| {
        let time = |profile| ping_pong(&Case::new(profile, Mode::Generic), way, 12_288, 0);
        time(slow).expect("runs") - time(XT5_2009).expect("runs")
    };
    assert_eq!(dearer(Way::Get), dearer(Way::Put));
}
