//! What the fault tests share: worker processes, a job for each test, random numbers from
//! a printed seed, and Portals for the workers.
//!
//! ```text
//!   tests/*.rs ──spawn──▶ fault-worker <work>                  one job for each test
//!        │  ◀── lines on stdin and stdout ──▶      │
//!        └── kills, corrupts, lists /dev/shm ──────┘
//! ```
//!
//! `LINTEL_TEST_SEED` repeats a run, `LINTEL_TEST_ROUNDS` (12) sets how often what depends on the moment is repeated.
//! `PTL_NAL` selects the network, `LINTEL_TEST_NODES` (1) the number of virtual nodes. The
//! driver exports nodes and pids in `LINTEL_TEST_PLACES`. Tests in a module `only_shm` or
//! `only_udp` run over that network alone. Nothing here is for users.

pub mod exchange;
pub mod job;
pub mod memory;
pub mod places;
pub mod random;
pub mod resident;
pub mod rig;
pub mod worker;
