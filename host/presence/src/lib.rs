//! A process's presence on its node: others find it, know whether it is alive, wake it, and
//! read its statistics, whether or not messages go through shared memory.
//!
//! ```text
//!   /dev/shm/lintel-<job>-<nid>-<pid>     a process's registration: a locked file
//!        │ names
//!        ▼ System V shared memory         one segment a process, made by its owner
//!   ┌────────┬──────┬─────────┬────────────┬ ─ ─           ─ ─ ┬──────────┐
//!   │ magic  │ bell │ changes │ statistics │  lanes and rings  │ snapshot │
//!   └────────┴──────┴─────────┴────────────┴ ─ ─           ─ ─ ┴──────────┘
//! ```
//!
//! Order of use: [`Segment::create`] registers this process, [`Segment::open`] attaches a
//! peer's segment. A receiver that sleeps arms its [`Bell`]; only then does a sender, which
//! calls [`ring`] after each record, make a system call. The owner holds a record lock on its
//! registration as long as it lives, so that any process can distinguish a dead peer from a
//! slow one ([`Watch`]), and a process that finds a dead one's registration removes it.
//! A tool that asks for a [snapshot](snapshots) wakes the owner's helper, which writes one.
//!
//! Left to others: threads and waiting (the runtime), what lies behind the header (the
//! shared-memory NAL), what the numbers of the statistics mean (their writer).

mod attached;
mod barrier;
mod bell;
mod header;
mod mappings;
mod registration;
mod sched;
mod segment;
mod shareable;
mod shared_memory;
mod snapshot;
mod stats;
mod ticks;

pub use barrier::{barrier, is_registered_for_barriers, register_for_barriers};
pub use bell::{
    Bell, LastLook, caller_waits, helper_defers_acknowledgements, helper_sleeps, is_armed, ring,
    ring_armed, wake_helper,
};
pub use header::{Header, SEGMENT_BYTES, SNAPSHOT_BYTES};
pub use lintel_progress::Sleeper;
pub use registration::{Watch, remove_all_stale, shared_memory_of};
pub use sched::{
    favour_latency, pinned_processor, this_processor, timed_sleep_cost, with_signals_blocked,
    with_timer_slack,
};
pub use segment::{OpenError, Segment};
pub use shareable::{ConvertError, PeerMemory, ShareablePlace, shareable};
pub use snapshot::{Answer, snapshots};
pub use stats::{ProcessStats, StatsWriter, Words as StatsWords, process_stats};
pub use ticks::{ticks, ticks_are_steady};
