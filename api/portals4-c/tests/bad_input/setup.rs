//! Interfaces, identity, portal table, bundles.

use crate::handles::{EQ, NI, not_a, not_even_no};
use crate::rig::{INVALID, World, refused};
use lintel_types::{Error, Handle, ProcessId, options};
use portals::*;
use std::ptr::{null, null_mut};

const ANY: u32 = 0xffff;
const GOOD: u32 = options::NI_MATCHING | options::NI_PHYSICAL;

pub fn refusals(world: &World) {
    opening(world);
    interfaces(world);
    maps(world);
    portal_table(world);
}

fn opening(world: &World) {
    let mine = world.me.pid;
    let rows = [
        ("iface", 4, GOOD, ANY),
        ("no option", u32::MAX, 0, ANY),
        ("one option", u32::MAX, options::NI_MATCHING, ANY),
        ("both of a pair", u32::MAX, 0xb, ANY),
        ("all options", u32::MAX, 0xf, ANY),
        ("unknown option", u32::MAX, GOOD | 0x10, ANY),
        ("another pid", u32::MAX, GOOD, mine ^ 1),
        ("pid too large", u32::MAX, GOOD, 0x1_0000),
    ];
    for (what, iface, options, pid) in rows {
        refused(what, INVALID, |ni: *mut Handle| unsafe {
            PtlNIInit(iface, options, pid, null(), null_mut(), ni)
        });
    }
    refused("no place", INVALID, |limits| unsafe {
        PtlNIInit(u32::MAX, GOOD, ANY, null(), limits, null_mut())
    });
}

fn interfaces(world: &World) {
    let good = world.matching.ni;
    for (what, ni) in not_a(NI, world) {
        assert_eq!(PtlNIFini(ni), INVALID as i32, "PtlNIFini {what}");
        assert_eq!(PtlStartBundle(ni), INVALID as i32, "PtlStartBundle {what}");
        assert_eq!(PtlEndBundle(ni), INVALID as i32, "PtlEndBundle {what}");
        refused(&what, INVALID, |status| unsafe {
            PtlNIStatus(ni, 0, status)
        });
        refused(&what, INVALID, |uid| unsafe { PtlGetUid(ni, uid) });
        refused(&what, INVALID, |id| unsafe { PtlGetId(ni, id) });
        refused(&what, INVALID, |id| unsafe { PtlGetPhysId(ni, id) });
    }
    let gone = world
        .sides()
        .into_iter()
        .flat_map(|side| side.freed.clone());
    let nothing = [Handle::INVALID, Handle::EQ_NONE, Handle::CT_NONE];
    for handle in gone.chain(nothing) {
        refused("PtlNIHandle", INVALID, |ni| unsafe {
            PtlNIHandle(handle, ni)
        });
    }
    refused("no register", INVALID, |status| unsafe {
        PtlNIStatus(good, 3, status)
    });
    let null_places = unsafe {
        [
            PtlNIStatus(good, 0, null_mut()),
            PtlNIHandle(good, null_mut()),
            PtlGetUid(good, null_mut()),
            PtlGetId(good, null_mut()),
            PtlGetPhysId(good, null_mut()),
        ]
    };
    assert_eq!(null_places, [INVALID as i32; 5]);
}

fn maps(world: &World) {
    let (logical, physical) = (world.logical, world.matching.ni);
    let (me, other) = (world.me, ProcessId::new(1, 1));
    for (what, ni) in not_a(NI, world) {
        assert_eq!(
            unsafe { PtlSetMap(ni, 1, &me) },
            INVALID as i32,
            "PtlSetMap {what}"
        );
        refused(&what, INVALID, |id| unsafe {
            PtlGetMap(ni, 1, id, null_mut())
        });
    }
    let sizes = unsafe {
        [
            PtlSetMap(physical, 1, &me),
            PtlSetMap(logical, 0, &me),
            PtlSetMap(logical, 1, null()),
            PtlSetMap(logical, u64::MAX, &me),
            PtlSetMap(logical, 1, &other),
            PtlGetMap(physical, 0, null_mut(), null_mut()),
        ]
    };
    assert_eq!(sizes, [INVALID as i32; 6]);
    refused("no map yet", INVALID, |id| unsafe {
        PtlGetMap(logical, 1, id, null_mut())
    });
    assert_eq!(unsafe { PtlSetMap(logical, 1, &me) }, 0);
    assert_eq!(unsafe { PtlSetMap(logical, 1, &me) }, Error::Ignored as i32);
    refused("no place", INVALID, |size| unsafe {
        PtlGetMap(logical, 1, null_mut(), size)
    });
}

fn portal_table(world: &World) {
    let side = &world.matching;
    let alloc = |ni, options, eq, wanted| {
        move |pt: *mut u32| unsafe { PtlPTAlloc(ni, options, eq, wanted, pt) }
    };
    for (what, ni) in not_a(NI, world) {
        refused(&what, INVALID, alloc(ni, 0, Handle::EQ_NONE, u32::MAX));
        assert_eq!(PtlPTFree(ni, side.pt), INVALID as i32, "PtlPTFree {what}");
        assert_eq!(
            PtlPTEnable(ni, side.pt),
            INVALID as i32,
            "PtlPTEnable {what}"
        );
        assert_eq!(
            PtlPTDisable(ni, side.pt),
            INVALID as i32,
            "PtlPTDisable {what}"
        );
    }
    for (what, eq) in not_even_no(EQ, world, side) {
        refused(&what, INVALID, alloc(side.ni, 0, eq, u32::MAX));
    }
    let rows = [
        ("unknown option", 0x20, Handle::EQ_NONE, u32::MAX, INVALID),
        ("index too large", 0, Handle::EQ_NONE, 64, INVALID),
        ("index taken", 0, side.eq, side.pt, Error::PtInUse),
        (
            "no queue",
            options::PT_FLOWCTRL,
            Handle::EQ_NONE,
            9,
            Error::PtEqNeeded,
        ),
    ];
    for (what, options, eq, wanted, expected) in rows {
        refused(what, expected, alloc(side.ni, options, eq, wanted));
    }
    assert_eq!(alloc(side.ni, 0, side.eq, 9)(null_mut()), INVALID as i32);
    for untaken in [9, 63, 64, u32::MAX] {
        assert_eq!(PtlPTFree(side.ni, untaken), INVALID as i32);
        assert_eq!(PtlPTEnable(side.ni, untaken), INVALID as i32);
        assert_eq!(PtlPTDisable(side.ni, untaken), INVALID as i32);
    }
    assert_eq!(
        PtlPTFree(side.ni, side.pt),
        Error::PtInUse as i32,
        "it has an entry"
    );
    let queues = |ni| move |eq: *mut Handle| unsafe { PtlEQAlloc(ni, 1, eq) };
    for (what, ni) in not_a(NI, world) {
        refused(&what, INVALID, queues(ni));
        refused(&what, INVALID, |ct| unsafe { PtlCTAlloc(ni, ct) });
    }
    assert_eq!(queues(side.ni)(null_mut()), INVALID as i32);
    assert_eq!(unsafe { PtlCTAlloc(side.ni, null_mut()) }, INVALID as i32);
    refused("too many events", Error::NoSpace, |eq| unsafe {
        PtlEQAlloc(side.ni, u64::MAX, eq)
    });
}
