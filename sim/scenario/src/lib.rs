//! Simulations as data: a TOML file names a machine, a workload and what varies.
//!
//! ```text
//!   text ──▶ Scenario ──▶ Point … Point ──▶ Run ──▶ Outcome
//!            file, line,  one for each       some     figures,
//!            key          combination        events   trace hash
//!                         of lists           at a time
//!                                             └─ Span … ──▶ Observer
//! ```
//!
//! Every setting is one value, or a list of them: a scenario with lists is a sweep, and
//! has a [`Point`] for each combination. [`models`] and [`workloads`] list what there is to
//! choose from. A key that isn't known, a value of the wrong kind or out of range, or one
//! that no memory holds, is a [`ConfigError`] that names file, line and key, and what is
//! allowed.
//!
//! What the machines are is the models' business; this gives them settings, one way to be
//! run and one form of [`Span`]. Who observes a run changes nothing of it.
//!
//! Nothing here reads a file: the caller that runs a point passes the texts of the files
//! that it names ([`Point::file`]).
//!
//! Order of use: [`Scenario::parse`], for each point [`Point::prepare`], [`Run::advance`]
//! until it says that it is through, [`Run::finish`].
//!
//! ```
//! use lintel_sim_scenario::Scenario;
//!
//! let text = r#"
//! about = "A round trip over a ring"
//! [machine]
//! model = "packet"
//! size = "8x1x1"
//! [workload]
//! kind = "ping-pong"
//! bytes = [8, 64]
//! "#;
//! let scenario = Scenario::parse("ring.toml", text).unwrap();
//! for point in &scenario.points {
//!     let mut run = point.prepare(None, None).unwrap();
//!     while !run.advance(1_000) {}
//!     let outcome = run.finish().unwrap();
//!     assert!(outcome.figure("one way, µs").unwrap() > 0.0);
//! }
//! ```
#![forbid(unsafe_code)]

mod choice;
mod config_error;
mod document;
mod machine;
mod plot;
mod reader;
mod run;
mod scenario;
mod seastar;
mod span;
mod triggered;
mod verbs;
mod workload;

pub use config_error::ConfigError;
pub use machine::{Model, Workloads, models, workloads};
pub use plot::{Plot, Scale};
pub use run::{Figure, Outcome, Run};
pub use scenario::{Point, Scenario};
pub use span::{Observer, Place, Span, Track};
