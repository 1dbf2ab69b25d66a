//! Handles that don't name what a call wants.

use crate::rig::{Side, World};
use lintel_types::{Handle, InterfaceNumber, Kind};

pub const NI: Kind = Kind::Interface;
pub const EQ: Kind = Kind::EventQueue;
pub const CT: Kind = Kind::Counter;
pub const MD: Kind = Kind::MemoryDescriptor;
pub const LE: Kind = Kind::ListEntry;
pub const ME: Kind = Kind::MatchEntry;

/// The name of each bad handle, and the handle.
pub type Bad = Vec<(String, Handle)>;

/// Everything that is nothing of that kind: invalid, none, wrong, freed, never made.
pub fn not_a(kind: Kind, world: &World) -> Bad {
    let mut bad = vec![
        ("PTL_INVALID_HANDLE".to_owned(), Handle::INVALID),
        ("PTL_EQ_NONE".to_owned(), Handle::EQ_NONE),
        ("PTL_CT_NONE".to_owned(), Handle::CT_NONE),
    ];
    for side in world.sides() {
        let wrong = side.live().into_iter().filter(|handle| !handle.is(kind));
        bad.extend(wrong.map(|handle| named("a wrong", handle)));
        bad.extend(side.freed.iter().map(|handle| named("a freed", *handle)));
        bad.push(named(
            "a never made",
            Handle::new(kind, side.ni.interface(), 3, 999),
        ));
    }
    bad.push(named(
        "a closed interface's",
        Handle::new(kind, InterfaceNumber::new(false, true), 5, 0),
    ));
    bad
}

/// As [`not_a`], and what lives on the other interface.
pub fn not_a_of(kind: Kind, world: &World, side: &Side) -> Bad {
    let mut bad = not_a(kind, world);
    let others = world
        .sides()
        .into_iter()
        .filter(|other| other.ni != side.ni);
    let foreign = others
        .flat_map(|other| other.live())
        .filter(|handle| handle.is(kind));
    bad.extend(foreign.map(|handle| named("a foreign", handle)));
    bad
}

/// As [`not_a_of`], where one may do without.
pub fn not_even_no(kind: Kind, world: &World, side: &Side) -> Bad {
    let none = match kind {
        Kind::EventQueue => Handle::EQ_NONE,
        _ => Handle::CT_NONE,
    };
    let mut bad = not_a_of(kind, world, side);
    bad.retain(|(_, handle)| *handle != none);
    bad
}

fn named(what: &str, handle: Handle) -> (String, Handle) {
    (format!("{what} {:?}", handle.kind()), handle)
}
