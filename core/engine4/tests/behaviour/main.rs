//! What the engine does, rule by rule: one sentence, one test.

#[path = "../rig/mod.rs"]
mod rig;

mod boundaries;
mod direct;
mod handles;
mod initiator;
mod matching;
mod overflow;
mod portal;
mod repeated_landings;
mod responses;
mod searching;
mod target;
mod triggered;
