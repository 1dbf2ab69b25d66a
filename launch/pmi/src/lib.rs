//! PMI, the process management interface: how a parallel program learns its rank,
//! exchanges addresses through a key-value store, and meets its peers at a barrier.
//! PMI-1, which MPICH's and SOS's simple clients speak, and PMI-2 on both sides; PMIx,
//! through libpmix, on the client's.
//!
//! ```text
//!   rank 0   Client ──┐  "cmd=put kvsname=… key=… value=…\n"
//!   rank 1   Client ──┼── one stream socket per rank ──  Server   launcher
//!   rank 2   (MPICH) ─┘  "cmd=put_result rc=0 msg=success\n"
//! ```
//!
//! The crate moves text, never processes: starting ranks, polling sockets and
//! ending a job are the launcher's (`yod`).
//!
//! 1. A launcher makes one [`server::Server`] per job, hands it what each rank
//!    wrote ([`on_bytes`](server::Server::on_bytes)), writes back what
//!    [`poll_output`](server::Server::poll_output) returns and acts on
//!    [`poll_event`](server::Server::poll_event). The server does no I/O.
//! 2. A rank calls [`client::Client::from_env`]. It is an error, not a job of one, if
//!    a launcher has started the process and can't be reached.
//! 3. [`launcher::recognise`] determines what started this process without connecting to it.
//!
//! ```
//! use lintel_pmi::server::Server;
//!
//! let mut server = Server::new(1, "job");
//! server.on_bytes(0, b"cmd=init pmi_version=1 pmi_subversion=1\n");
//! server.on_bytes(0, b"cmd=barrier_in\n");
//! let reply = server.poll_output(0).unwrap();
//! assert_eq!(
//!     reply,
//!     b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=barrier_out\n"
//! );
//! ```
#![deny(unsafe_code)]

pub mod client;
mod inherited;
pub mod launcher;
pub mod mapping;
pub mod pmix;
pub mod server;
pub mod wire;
pub mod wire2;
