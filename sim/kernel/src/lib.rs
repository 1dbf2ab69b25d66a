//! Discrete-event simulation: time, events in order, random streams.
//!
//! ```text
//!              ┌────────────── Simulation ──────────────┐
//!   events ──▶ │  EventQueue ──── event, now ───▶ World │
//!              │    ▲                               │   │
//!              │    └──── at(when, event) ──────────┘   │
//!              └────────────────────────────────────────┘
//! ```
//!
//! A simulation has one enum of events. Its world receives one after the other,
//! in the order of time and, among equal times, in the order in which they were
//! put on the event queue; the world puts further ones there. A part of a world has
//! its own enum and takes any `EventQueue<E>` with `E: From<ItsEvent>`, so that
//! nothing is dispatched dynamically.
//!
//! Nothing here or above reads a clock, iterates in an order of hashes or holds
//! time in a float. Random numbers come from a [`Stream`] that a
//! component's path names. The same seed therefore gives the same
//! [`EventQueue::trace_hash`] on every machine.
//!
//! An event can't be removed: a component that changes its
//! mind puts a version into the event and ignores it when it has become stale.
//!
//! Order of use: [`Streams::new`], build the world, [`Simulation::new`], put the
//! first events on [`Simulation::events`], [`Simulation::run`].
//!
//! ```
//! use lintel_sim_kernel::{EventQueue, Duration, Event, Simulation, World};
//!
//! #[derive(Clone, Copy)]
//! struct Bounce(u64);
//!
//! impl Event for Bounce {
//!     fn word(&self) -> u64 {
//!         self.0
//!     }
//! }
//!
//! struct Ball;
//!
//! impl World for Ball {
//!     type Event = Bounce;
//!
//!     fn on_event(&mut self, Bounce(left): Bounce, events: &mut EventQueue<Bounce>) {
//!         if left > 0 {
//!             events.after(Duration::from_ns(60), Bounce(left - 1));
//!         }
//!     }
//! }
//!
//! let mut simulation = Simulation::new(Ball);
//! simulation.events.after(Duration::ZERO, Bounce(3));
//! simulation.run();
//! assert_eq!(simulation.events.now().as_ps(), 180_000);
//! assert_eq!(simulation.events.executed(), 4);
//! ```
#![forbid(unsafe_code)]

mod chunks;
mod samples;
mod simulation;
mod span;
mod stream;
mod time;
mod trace;
mod units;
mod wheel;

pub use samples::Samples;
pub use simulation::{Event, EventQueue, Simulation, World};
pub use span::{Observer, Span};
pub use stream::{Stream, Streams};
pub use time::{Duration, SimTime};
pub use trace::TraceHash;
pub use units::{Bandwidth, Bytes};
pub use wheel::TimingWheel;
