//! Whose engine it is: the process whose memory its spans name, and to whom events
//! and counts are shown.
//!
//! In the accelerated placement that is the process itself ([`LocalProcess`]). In the
//! generic one the engine lives in an agent, and its owner is a client of the agent
//! ([`Client`](crate::client::Client)): its memory is never touched, only copied by
//! the system, which looks. Everything else is the same code.

use crate::settings::{SettingError, Settings};
use crate::tables::LocalTables;
use lintel_bridge::Tables;
use lintel_claim::{Claim, CrossMemoryError, Region, copy_checked};
use lintel_memory::Span;
use lintel_types::Limits;
use std::io;
use std::sync::OnceLock;

/// See the module; clones are the same owner. Statically dispatched: what holds for a process itself costs it
/// nothing that a client needs.
pub trait Owner: Clone + Send + Sync + 'static {
    /// What the engine calls memory.
    type Span: Span + Send + Sync;
    /// What shows events and counts.
    type Tables: Tables;
    /// Whether its memory can be touched: then [`claims`](Self::claims) gives it.
    const DIRECT: bool;

    /// Memory that can be touched.
    fn claims(pieces: &[Self::Span]) -> Option<&[Claim]>;

    /// Copies bytes of this process into the owner's memory, through the system.
    ///
    /// # Errors
    /// What the system said; some bytes may have been copied.
    fn copy_in(&self, from: &[Claim], to: &[Self::Span]) -> Result<u64, CrossMemoryError>;

    /// Copies the owner's memory, through the system.
    ///
    /// # Errors
    /// What the system said; some bytes may have been copied.
    fn copy_out(&self, from: &[Self::Span], to: &[Claim]) -> Result<u64, CrossMemoryError>;

    /// Memory of this process for bytes on their way to or from the owner's.
    ///
    /// # Errors
    /// There is none, or not for that owner.
    fn staging(&self, length: u64) -> io::Result<Region>;

    /// The tables of its four interfaces.
    fn tables(&self) -> &[Self::Tables; 4];

    /// Its user.
    fn uid(&self) -> u32;

    /// What holds for it.
    ///
    /// # Errors
    /// A variable isn't understood.
    fn settings(&self) -> Result<Settings, SettingError>;

    /// The limits that it gets, where it wants those.
    fn limits(&self, wanted: Limits) -> Limits;

    /// Bytes up to which its bodies are copied at once, where the network says so many.
    fn eager(&self, network: u64) -> u64;

    /// Something was posted or counted.
    fn note_activity(&self);
}

/// The process that the engine lives in.
#[derive(Clone, Copy)]
pub struct LocalProcess {
    tables: &'static [LocalTables; 4],
}

impl Default for LocalProcess {
    fn default() -> Self {
        static TABLES: OnceLock<[LocalTables; 4]> = OnceLock::new();
        LocalProcess {
            tables: TABLES.get_or_init(Default::default),
        }
    }
}

impl Owner for LocalProcess {
    type Span = Claim;
    type Tables = LocalTables;
    const DIRECT: bool = true;

    #[inline(always)]
    fn claims(pieces: &[Claim]) -> Option<&[Claim]> {
        Some(pieces)
    }

    fn copy_in(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        copy_checked(from, to)
    }

    fn copy_out(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        copy_checked(from, to)
    }

    fn staging(&self, length: u64) -> io::Result<Region> {
        Region::try_new(length)
    }

    #[inline(always)]
    fn tables(&self) -> &[LocalTables; 4] {
        self.tables
    }

    fn uid(&self) -> u32 {
        nix::unistd::geteuid().as_raw()
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

    /// Whoever waits looks at the library's own count.
    #[inline(always)]
    fn note_activity(&self) {}
}
