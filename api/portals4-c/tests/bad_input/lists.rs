//! Descriptors, entries, searches.

use crate::handles::{CT, EQ, LE, MD, ME, NI, not_a, not_even_no};
use crate::rig::{FEW, INVALID, World, made, refused};
use lintel_types::{Handle, options};
use portals::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const COUNTS: u32 = options::ME_EVENT_CT_COMM;

pub fn refusals(world: &World) {
    descriptors(world);
    entries(world);
    unlinking(world);
}

/// Memory that can't be: where it starts, its length, options.
fn no_memory(world: &World, pieces: &[Iovec]) -> Vec<(&'static str, *mut c_void, u64, u32)> {
    let vector: *mut c_void = pieces.as_ptr().cast_mut().cast();
    let almost_the_end = (u64::MAX - 15) as *mut c_void;
    vec![
        ("null with a length", null_mut(), 8, 0),
        ("beyond the address space", almost_the_end, 64, 0),
        ("null vector", null_mut(), 1, options::IOVEC),
        ("vector too long", vector, FEW as u64 + 1, options::IOVEC),
        ("vector of 2^63", vector, 1 << 63, options::IOVEC),
        ("null piece", vector, 1, options::IOVEC),
        ("unknown option", world.start(), 64, 1 << 31),
    ]
}

fn pieces() -> Vec<Iovec> {
    let piece = Iovec {
        iov_base: null_mut(),
        iov_len: 8,
    };
    vec![piece; FEW as usize + 1]
}

fn descriptors(world: &World) {
    let side = &world.matching;
    let bind = |ni, md: Md| move |handle: *mut Handle| unsafe { PtlMDBind(ni, &md, handle) };
    for (what, ni) in not_a(NI, world) {
        refused(&what, INVALID, bind(ni, world.md()));
    }
    for (what, eq) in not_even_no(EQ, world, side) {
        let eq_handle = eq.0;
        refused(
            &what,
            INVALID,
            bind(
                side.ni,
                Md {
                    eq_handle,
                    ..world.md()
                },
            ),
        );
    }
    for (what, ct) in not_even_no(CT, world, side) {
        let ct_handle = ct.0;
        refused(
            &what,
            INVALID,
            bind(
                side.ni,
                Md {
                    ct_handle,
                    ..world.md()
                },
            ),
        );
    }
    let pieces = pieces();
    for (what, start, length, options) in no_memory(world, &pieces) {
        let md = Md {
            start,
            length,
            options,
            ..world.md()
        };
        refused(what, INVALID, bind(side.ni, md));
    }
    for options in [0x200, options::ME_EVENT_CT_COMM, 0x8000] {
        refused(
            "unknown option",
            INVALID,
            bind(
                side.ni,
                Md {
                    options,
                    ..world.md()
                },
            ),
        );
    }
    refused("null md", INVALID, |md| unsafe {
        PtlMDBind(side.ni, null(), md)
    });
    assert_eq!(bind(side.ni, world.md())(null_mut()), INVALID as i32);
    for (what, md) in not_a(MD, world) {
        assert_eq!(PtlMDRelease(md), INVALID as i32, "PtlMDRelease {what}");
    }
}

/// A call that takes an entry: appending, searching, appending when triggered.
struct Entered<'a> {
    what: &'a str,
    matching: bool,
    call: &'a dyn Fn(Handle, u32, *const Me, u8, *mut Handle) -> i32,
    /// Whether it gives a handle, and so can lack a place for it.
    gives: bool,
}

fn entries(world: &World) {
    let trigger = world.matching.ct;
    let user = null_mut();
    let me_append = |ni, pt, me: *const Me, list, out: *mut Handle| unsafe {
        PtlMEAppend(ni, pt, me, list, user, out)
    };
    let le_append = |ni, pt, me: *const Me, list, out: *mut Handle| unsafe {
        PtlLEAppend(ni, pt, me.cast(), list, user, out)
    };
    let me_search =
        |ni, pt, me: *const Me, op, _: *mut Handle| unsafe { PtlMESearch(ni, pt, me, op, user) };
    let le_search = |ni, pt, me: *const Me, op, _: *mut Handle| unsafe {
        PtlLESearch(ni, pt, me.cast(), op, user)
    };
    let triggered = |ni, pt, me: *const Me, list, out: *mut Handle| unsafe {
        PtlTriggeredMEAppend(ni, pt, me, list, user, out, trigger, 1)
    };
    let calls: [Entered<'_>; 5] = [
        Entered {
            what: "PtlMEAppend",
            matching: true,
            call: &me_append,
            gives: true,
        },
        Entered {
            what: "PtlLEAppend",
            matching: false,
            call: &le_append,
            gives: true,
        },
        Entered {
            what: "PtlMESearch",
            matching: true,
            call: &me_search,
            gives: false,
        },
        Entered {
            what: "PtlLESearch",
            matching: false,
            call: &le_search,
            gives: false,
        },
        Entered {
            what: "PtlTriggeredMEAppend",
            matching: true,
            call: &triggered,
            gives: true,
        },
    ];
    calls.iter().for_each(|call| entered(world, call));
}

fn entered(world: &World, entered: &Entered<'_>) {
    let (side, other) = match entered.matching {
        true => (&world.matching, &world.other),
        false => (&world.other, &world.matching),
    };
    // A list entry is the beginning of a match entry.
    let good = world.me();
    let refuse = |what: &str, ni, pt, me: Me, list| {
        let what = format!("{} {what}", entered.what);
        refused(&what, INVALID, |out| (entered.call)(ni, pt, &me, list, out));
    };
    for (what, ni) in not_a(NI, world) {
        refuse(&what, ni, side.pt, good, 0);
    }
    refuse(
        "on the other kind of interface",
        other.ni,
        other.pt,
        good,
        0,
    );
    for pt in [side.pt + 1, 63, 64, u32::MAX] {
        refuse("on an index that isn't taken", side.ni, pt, good, 0);
    }
    refuse(
        "with an unknown list or operation",
        side.ni,
        side.pt,
        good,
        2,
    );
    for (what, ct) in not_even_no(CT, world, side) {
        let (ct_handle, options) = (ct.0, COUNTS);
        refuse(
            &what,
            side.ni,
            side.pt,
            Me {
                ct_handle,
                options,
                ..good
            },
            0,
        );
    }
    let pieces = pieces();
    for (what, start, length, options) in no_memory(world, &pieces) {
        let me = Me {
            start,
            length,
            options,
            ..good
        };
        refuse(what, side.ni, side.pt, me, 0);
    }
    let unknown = if entered.matching {
        1 << 20
    } else {
        options::ME_MANAGE_LOCAL
    };
    refuse(
        "unknown option",
        side.ni,
        side.pt,
        Me {
            options: unknown,
            ..good
        },
        0,
    );
    refused("null entry", INVALID, |out| {
        (entered.call)(side.ni, side.pt, null(), 0, out)
    });
    if entered.gives {
        let nowhere = (entered.call)(side.ni, side.pt, &good, 0, null_mut());
        assert_eq!(nowhere, INVALID as i32, "{} without a place", entered.what);
    }
}

fn unlinking(world: &World) {
    let trigger = world.matching.ct;
    for (what, entry) in not_a(ME, world) {
        assert_eq!(PtlMEUnlink(entry), INVALID as i32, "PtlMEUnlink {what}");
        let later = PtlTriggeredMEUnlink(entry, trigger, 1);
        assert_eq!(later, INVALID as i32, "PtlTriggeredMEUnlink {what}");
    }
    for (what, entry) in not_a(LE, world) {
        assert_eq!(PtlLEUnlink(entry), INVALID as i32, "PtlLEUnlink {what}");
    }
    let live = world.matching.entry;
    let owner = made(|ni| unsafe { PtlNIHandle(live, ni) });
    assert_eq!(owner, world.matching.ni, "it is still there");
}
