//! Machines for benchmarks, and what they measure.

use std::cell::RefCell;
use std::rc::Rc;

use lintel_sim_fabric::{Dimension, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, Samples, SimTime, Simulation};

use crate::machine::{Machine, Protection, Setting};
use crate::message::CONTROL;
use crate::node::{Action, Mode, Notice, Placement, Program, Refused, Setup};
use crate::profile::Profile;

/// A machine whose network is a torus, packet by packet.
pub type TorusMachine = Machine<PacketFabric<Torus>>;

/// What a benchmark runs on.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The constants of the machine.
    pub profile: Profile,
    /// Who serves the processes.
    pub mode: Mode,
    /// What it is besides.
    pub setting: Setting,
}

/// Durations that programs add to while they run.
pub type Measured = Rc<RefCell<Samples>>;

impl Case {
    /// One process a node, unprotected.
    pub const fn new(profile: Profile, mode: Mode) -> Self {
        Case {
            profile,
            mode,
            setting: Setting {
                placement: Placement::Single,
                protection: Protection::None,
                seed: 1,
            },
        }
    }

    /// Two processes a node.
    pub const fn virtual_nodes(mut self) -> Self {
        self.setting.placement = Placement::Virtual;
        self
    }

    /// Replaces the protection against a receiver without buffers.
    pub const fn protected(mut self, protection: Protection) -> Self {
        self.setting.protection = protection;
        self
    }

    /// The core that benchmarks of two processes run on: the kernel is on the first.
    pub(super) fn last_core(&self) -> u32 {
        match self.setting.placement {
            Placement::Single => 0,
            Placement::Virtual => 1,
        }
    }

    /// Nodes in a torus of these dimensions, without processes.
    ///
    /// # Errors
    /// There is no such torus, or no such machine.
    pub fn torus(&self, dimensions: [u16; 3]) -> Result<TorusMachine, Refused> {
        let torus = Torus::new(dimensions.map(Dimension::ring));
        let torus = torus.map_err(|mistake| Refused(mistake.to_string()))?;
        let network = PacketFabric::new(torus, &self.profile.network());
        let network = network.map_err(|mistake| Refused(mistake.to_string()))?;
        let network = network.with_fifo(self.profile.rx_fifo());
        let network = network.with_control(CONTROL);
        Machine::new(self.profile, self.setting, network)
    }
}

/// Runs two programs on neighbouring nodes to their end, on the last core of each. The
/// first one idles if there are two.
///
/// # Errors
/// A program failed, or waits for what never comes.
pub fn pair(
    case: &Case,
    programs: [Box<dyn Program>; 2],
) -> Result<Simulation<TorusMachine>, Refused> {
    run(neighbours(case, programs)?)
}

/// Two neighbouring nodes with these programs, as [`pair`] runs them.
pub(super) fn neighbours(
    case: &Case,
    programs: [Box<dyn Program>; 2],
) -> Result<TorusMachine, Refused> {
    let mut machine = case.torus([2, 1, 1])?;
    for (node, program) in (0..).zip(programs) {
        if case.setting.placement == Placement::Virtual {
            machine.add(node, case.mode, Box::new(Idle))?;
        }
        machine.add(node, case.mode, program)?;
    }
    Ok(machine)
}

/// A program that does nothing.
struct Idle;

impl Program for Idle {
    fn begin(&mut self, _: &mut Setup<'_>) -> Result<(), Refused> {
        Ok(())
    }

    fn next(&mut self, _: SimTime, _: Option<&Notice>) -> Action {
        Action::End
    }
}

/// Runs a machine until nothing is to happen any more.
///
/// # Errors
/// A program failed, or waits for what never comes.
pub fn run(machine: TorusMachine) -> Result<Simulation<TorusMachine>, Refused> {
    let mut simulation = machine.into_simulation();
    simulation.run();
    all_ended(&simulation).map(|()| simulation)
}

/// Whether all processes have come to their end.
pub(super) fn all_ended(simulation: &Simulation<TorusMachine>) -> Result<(), Refused> {
    let unfinished = simulation.world.unfinished();
    match unfinished.first() {
        None => Ok(()),
        Some(first) => {
            let others = unfinished.len() - 1;
            Err(Refused(match others {
                0 => first.clone(),
                _ => format!("{first}, and {others} others"),
            }))
        }
    }
}

/// Nodes of a torus.
pub(super) fn nodes(dimensions: [u16; 3]) -> u32 {
    dimensions.iter().map(|&size| u32::from(size)).product()
}

/// A place for what is measured.
pub fn measured() -> Measured {
    Rc::new(RefCell::new(Samples::new()))
}

/// The median of what was measured.
///
/// # Panics
/// If nothing was.
pub fn median(measured: &Measured) -> Duration {
    let median = measured.borrow_mut().permille(500);
    median.expect("a benchmark measures at least once")
}
