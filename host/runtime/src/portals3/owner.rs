//! Whose engine of Portals 3.3 it is.

use crate::direct::Direct;
use crate::memory::Memory;
use crate::owner::{LocalProcess, Owner};
use crate::portals3::queues::{EventQueues, LocalQueues, Queues};
use crate::portals3::shared::Shared;
use crate::portals3::state::Portals3;
use crate::resources::Placement;
use crate::settings::{SettingError, Settings};
use crate::tables::LocalTables;
use lintel_claim::{Claim, CrossMemoryError, Region};
use lintel_types::Limits as Limits4;
use lintel_types::portals3::Limits;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// An owner whose library has an engine of Portals 3.3.
pub trait Owner3: Owner<Protocol = Portals3<Self>> {
    /// Where its events are queued.
    type Queues: EventQueues;

    /// Its event queues, none of which is open.
    fn queues(&self) -> Self::Queues;

    /// What outlives its interface.
    fn shared(&self) -> &Arc<Shared>;

    /// The limits that it gets if it wants those.
    fn limits3(&self, wanted: Limits) -> Limits;
}

/// The owner of the engine: as [`LocalProcess`], with Portals 3.3 beside Portals 4.
#[derive(Clone)]
pub struct Portals3Process {
    memory: LocalProcess,
    shared: Arc<Shared>,
    events: Arc<LocalQueues>,
}

impl Default for Portals3Process {
    fn default() -> Self {
        Portals3Process {
            memory: LocalProcess::default(),
            shared: Arc::new(Shared::new(0)),
            events: Arc::new(LocalQueues::new()),
        }
    }
}

impl Portals3Process {
    /// The events of its queues.
    #[inline(always)]
    pub(crate) fn events(&self) -> &LocalQueues {
        &self.events
    }
}

impl Memory for Portals3Process {
    type Span = Claim;

    fn copy_in(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        self.memory.copy_in(from, to)
    }

    fn copy_out(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        self.memory.copy_out(from, to)
    }

    fn staging(&self, length: u64) -> io::Result<Region> {
        self.memory.staging(length)
    }
}

impl Owner for Portals3Process {
    type Tables = LocalTables;
    type Mover = Direct;
    type Protocol = Portals3<Portals3Process>;
    const PLACEMENT: Placement = Placement::Accelerated;
    const PID_TIMEOUT: Duration = Duration::ZERO;

    fn tables(&self) -> &[LocalTables; 4] {
        self.memory.tables()
    }

    fn uid(&self) -> u32 {
        self.memory.uid()
    }

    fn settings(&self) -> Result<Settings, SettingError> {
        self.memory.settings()
    }

    fn limits(&self, wanted: Limits4) -> Limits4 {
        self.memory.limits(wanted)
    }

    fn eager(&self, network: u64) -> u64 {
        self.memory.eager(network)
    }

    fn note_activity(&self) {}
}

impl Owner3 for Portals3Process {
    type Queues = Queues;

    fn queues(&self) -> Queues {
        Queues::new(self.events.clone())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn limits3(&self, wanted: Limits) -> Limits {
        wanted.clamped()
    }
}
