//! Whose engine it is: the process whose memory its spans name, and to which events and
//! counts are published.
//!
//! In the accelerated placement that is the process itself ([`LocalProcess`]). In the
//! generic one the engine lives in an agent, and its owner is a client of the agent
//! ([`Client`](crate::client::Client)): its memory is never touched, only copied by
//! the system, which checks each address. Everything else is the same code.

use crate::direct::Direct;
use crate::memory::Memory;
use crate::mover::Mover;
use crate::protocol::Protocol;
use crate::resources::Placement;
use crate::settings::{SettingError, Settings};
use crate::tables::LocalTables;
use lintel_bridge::{CounterCell, Tables};
use lintel_claim::{Claim, CrossMemoryError, Region, copy_checked};
use lintel_types::{CounterIndex, InterfaceNumber, Limits};
use std::io;
use std::time::Duration;

/// The owner of an engine. Clones are the same owner. It is a type, so that the code of a
/// process itself has nothing of what only a client needs.
pub trait Owner: Memory + Clone + 'static {
    /// Where events and counts are published.
    type Tables: Tables;
    /// How bytes get to and from its memory.
    type Mover: Mover<Self>;
    /// The protocol beside Portals 4; `()` for none.
    type Protocol: Protocol<Self>;
    /// Where its engine lives.
    const PLACEMENT: Placement;
    /// How long an engine waits for a process identifier that is in use. A killed client's
    /// is free once its agent has seen it end, and has sent what it left.
    const PID_TIMEOUT: Duration;
    /// Whether only its calls see what acknowledgements bring about, as long as no triggered operation
    /// hangs on a counter: then none needs to wake its helper.
    const DEFERS_ACKNOWLEDGEMENTS: bool = false;

    /// The tables of its four interfaces.
    fn tables(&self) -> &[Self::Tables; 4];

    /// Where a counter of an interface is published, if that lasts as long as this process.
    fn lasting_cell(&self, _: InterfaceNumber, _: CounterIndex) -> Option<&'static CounterCell> {
        None
    }

    /// Effective user of the owner's process.
    fn uid(&self) -> u32;

    /// The settings that hold for it.
    ///
    /// # Errors
    /// A variable has an invalid value.
    fn settings(&self) -> Result<Settings, SettingError>;

    /// The limits that it gets if it wants those.
    fn limits(&self, wanted: Limits) -> Limits;

    /// Bytes up to which its bodies are sent eagerly, given the network's own bound.
    fn eager(&self, network: u64) -> u64;

    /// Something was posted or counted: wakes what waits for it elsewhere.
    fn note_activity(&self);
}

/// The process that the engine lives in.
#[derive(Clone, Copy)]
pub struct LocalProcess {
    tables: &'static [LocalTables; 4],
}

impl LocalProcess {
    pub(crate) const fn new() -> LocalProcess {
        static TABLES: [LocalTables; 4] = [const { LocalTables::new() }; 4];
        LocalProcess { tables: &TABLES }
    }
}

impl Default for LocalProcess {
    fn default() -> Self {
        LocalProcess::new()
    }
}

#[cfg(test)]
impl LocalProcess {
    /// An owner with tables of its own, for a test with several libraries.
    pub(crate) fn with_own_tables() -> LocalProcess {
        LocalProcess {
            tables: crate::testing::keep([const { LocalTables::new() }; 4]),
        }
    }
}

impl Memory for LocalProcess {
    type Span = Claim;

    fn copy_in(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        copy_checked(from, to)
    }

    fn copy_out(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        copy_checked(from, to)
    }

    fn staging(&self, length: u64) -> io::Result<Region> {
        Region::try_new(length)
    }
}

impl Owner for LocalProcess {
    type Tables = LocalTables;
    type Mover = Direct;
    type Protocol = ();
    const PLACEMENT: Placement = Placement::Accelerated;
    const PID_TIMEOUT: Duration = Duration::ZERO;
    const DEFERS_ACKNOWLEDGEMENTS: bool = true;

    #[inline(always)]
    fn tables(&self) -> &[LocalTables; 4] {
        self.tables
    }

    fn lasting_cell(
        &self,
        interface: InterfaceNumber,
        counter: CounterIndex,
    ) -> Option<&'static CounterCell> {
        Some(self.tables[interface.position()].counter_at(counter))
    }

    fn uid(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn settings(&self) -> Result<Settings, SettingError> {
        Settings::from_env()
    }

    fn limits(&self, wanted: Limits) -> Limits {
        wanted.clamped()
    }

    #[inline(always)]
    fn eager(&self, network: u64) -> u64 {
        network
    }

    /// Its callers look at the library's own count.
    #[inline(always)]
    fn note_activity(&self) {}
}
