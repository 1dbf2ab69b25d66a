//! What the engine does, rule by rule: one sentence, one test. The sections are those of the
//! Portals 3.3 specification.

#[path = "../rig/mod.rs"]
mod rig;

mod access;
mod descriptors;
mod dialects;
mod events;
mod handles;
mod initiator;
mod lost;
mod matching;
mod status;
mod unlinking;
mod update;
