//! What the tests that break things share: a process started again as a worker,
//! a job of its own for each test, random numbers from a printed seed, and
//! Portals calls as the workers need them.
//!
//! ```text
//!   tests/*.rs ──spawn──▶ fault-worker <what it is to do>      one job a test
//!        │  ◀── lines on stdout, words on stdin ──▶  │
//!        └── kills, garbles, looks at /dev/shm ──────┘
//! ```
//!
//! `LINTEL_TEST_SEED` repeats a run, `LINTEL_TEST_ROUNDS` (12) kills more often.
//! `PTL_NAL` and `LINTEL_TEST_NODES` (1) say over what and between how many nodes.
//! A test in a module `only_shm` or `only_udp` makes sense over that alone.
//! Nothing here is for users.

pub mod exchange;
pub mod job;
pub mod memory;
pub mod places;
pub mod random;
pub mod rig;
pub mod worker;
