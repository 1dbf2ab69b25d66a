//! The process that a Portals 3.3 engine lives in.

use crate::direct::Direct;
use crate::library::Library;
use crate::memory::Memory;
use crate::owner::{LocalProcess, Owner};
use crate::portals3::shared::Shared;
use crate::portals3::state::Portals3;
use crate::resources::Placement;
use crate::settings::{SettingError, Settings};
use crate::tables::LocalTables;
use lintel_claim::{Claim, CrossMemoryError, Region};
use lintel_types::Limits;
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The owner of the engine: as [`LocalProcess`], with Portals 3.3 beside Portals 4.
#[derive(Clone, Default)]
pub struct Portals3Process {
    memory: LocalProcess,
    pub(crate) shared: Arc<Shared>,
}

/// The library of this process.
///
/// A process that was forked off has its parent's until it ends it ([`fini3`]); then it has
/// one of its own. The parent's is left as it is: locks may be held by threads that the child
/// hasn't.
pub fn process3() -> &'static Library<Portals3Process> {
    let depth = DEPTH.load(Ordering::Relaxed);
    LIBRARIES[depth].get_or_init(|| Library::new(Portals3Process::default(), 0))
}

/// PtlFini. The last one closes the interface; in a fork's child it gives up the parent's.
pub fn fini3() {
    let library = process3();
    let depth = DEPTH.load(Ordering::Relaxed);
    if library.forked.load(Ordering::Relaxed) && depth + 1 < LIBRARIES.len() {
        DEPTH.store(depth + 1, Ordering::Relaxed);
        return;
    }
    library.fini();
}

/// How often a process was forked off one that used Portals, and has begun anew.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
static LIBRARIES: [OnceLock<Library<Portals3Process>>; 64] = [const { OnceLock::new() }; 64];

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
    type Protocol = Portals3;
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

    fn limits(&self, wanted: Limits) -> Limits {
        self.memory.limits(wanted)
    }

    fn eager(&self, network: u64) -> u64 {
        self.memory.eager(network)
    }

    fn note_activity(&self) {}
}
