//! Every function refuses what it can't want, with the code that the header names,
//! and has changed nothing: outputs are as they were, and whatever could be made
//! before can be made afterwards.
//!
//! One process is one library, so this is one test of many rows.
//!
//! SAFETY, for every call: a structure or place passed is there for the length of the
//! call, or null, or otherwise what the function is to refuse without looking at it.
#![allow(clippy::undocumented_unsafe_blocks)] // said once, above

mod calls;
mod events;
mod handles;
mod lists;
mod moves;
mod rig;
mod setup;

use rig::World;

#[test]
fn bad_arguments_are_refused_and_change_nothing() {
    let world = World::new();
    setup::refusals(&world);
    lists::refusals(&world);
    events::refusals(&world);
    moves::refusals(&world);
    world.assert_unchanged();
    world.close();
}
