//! Event queues and counters.

use crate::handles::{CT, EQ, not_a, not_a_of};
use crate::rig::{INVALID, Out, World, refused};
use lintel_types::{CountingEvent, Event, Handle};
use portals::*;
use std::ptr::{null, null_mut};

const FOREVER: u32 = u32::MAX;
const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};
const BOTH: CountingEvent = CountingEvent {
    success: 1,
    failure: 1,
};

pub fn refusals(world: &World) {
    queues(world);
    counters(world);
    triggered_counters(world);
}

/// None of these waits: a bad argument is seen before.
fn queues(world: &World) {
    let good = world.matching.eq;
    for (what, eq) in not_a(EQ, world) {
        assert_eq!(PtlEQFree(eq), INVALID as i32, "PtlEQFree {what}");
        refused(&what, INVALID, |event| unsafe { PtlEQGet(eq, event) });
        refused(&what, INVALID, |event| unsafe { PtlEQWait(eq, event) });
        for queues in [[eq, good], [good, eq]] {
            let mut which = Out::new();
            refused(&what, INVALID, |event| unsafe {
                PtlEQPoll(queues.as_ptr(), 2, FOREVER, event, which.at())
            });
            which.assert_untouched(&what);
        }
    }
    let (mut event, mut which) = (Out::<Event>::new(), Out::<u32>::new());
    let null_places = unsafe {
        [
            PtlEQGet(good, null_mut()),
            PtlEQWait(good, null_mut()),
            PtlEQPoll(null(), 1, FOREVER, event.at(), which.at()),
            PtlEQPoll(&good, 0, FOREVER, event.at(), which.at()),
            PtlEQPoll(&good, 1, FOREVER, null_mut(), which.at()),
            PtlEQPoll(&good, 1, FOREVER, event.at(), null_mut()),
        ]
    };
    assert_eq!(null_places, [INVALID as i32; 6]);
    event.assert_untouched("PtlEQPoll");
    which.assert_untouched("PtlEQPoll");
}

fn counters(world: &World) {
    let good = world.matching.ct;
    for (what, ct) in not_a(CT, world) {
        let without_outputs = [
            PtlCTFree(ct),
            PtlCTCancelTriggered(ct),
            PtlCTSet(ct, ONE),
            PtlCTInc(ct, ONE),
        ];
        assert_eq!(without_outputs, [INVALID as i32; 4], "{what}");
        refused(&what, INVALID, |value| unsafe { PtlCTGet(ct, value) });
        refused(&what, INVALID, |value| unsafe { PtlCTWait(ct, 1, value) });
        for counters in [[ct, good], [good, ct]] {
            let mut which = Out::new();
            refused(&what, INVALID, |value| unsafe {
                PtlCTPoll(
                    counters.as_ptr(),
                    [1, 1].as_ptr(),
                    2,
                    FOREVER,
                    value,
                    which.at(),
                )
            });
            which.assert_untouched(&what);
        }
    }
    assert_eq!(
        PtlCTInc(good, BOTH),
        INVALID as i32,
        "one of the fields must be 0"
    );
    let (mut value, mut which) = (Out::<CountingEvent>::new(), Out::<u32>::new());
    let test = 1;
    let null_places = unsafe {
        [
            PtlCTGet(good, null_mut()),
            PtlCTWait(good, 1, null_mut()),
            PtlCTPoll(null(), &test, 1, FOREVER, value.at(), which.at()),
            PtlCTPoll(&good, null(), 1, FOREVER, value.at(), which.at()),
            PtlCTPoll(&good, &test, 0, FOREVER, value.at(), which.at()),
            PtlCTPoll(&good, &test, 1, FOREVER, null_mut(), which.at()),
            PtlCTPoll(&good, &test, 1, FOREVER, value.at(), null_mut()),
        ]
    };
    assert_eq!(null_places, [INVALID as i32; 7]);
    value.assert_untouched("PtlCTPoll");
    which.assert_untouched("PtlCTPoll");
}

fn triggered_counters(world: &World) {
    let side = &world.matching;
    let good = side.ct;
    for (what, ct) in not_a_of(CT, world, side) {
        let changes = [
            PtlTriggeredCTInc(ct, ONE, good, 1),
            PtlTriggeredCTInc(good, ONE, ct, 1),
            PtlTriggeredCTSet(ct, ONE, good, 1),
            PtlTriggeredCTSet(good, ONE, ct, 1),
            PtlTriggeredMEUnlink(side.entry, ct, 1),
        ];
        assert_eq!(changes, [INVALID as i32; 5], "{what}");
        refused(&what, INVALID, |entry: *mut Handle| unsafe {
            PtlTriggeredMEAppend(side.ni, side.pt, &world.me(), 0, null_mut(), entry, ct, 1)
        });
    }
    assert_eq!(PtlTriggeredCTInc(good, BOTH, good, 1), INVALID as i32);
}
