//! Before PtlInit every function says so, whatever else is wrong.

use lintel_types::{CountingEvent, Error, Handle, ProcessId};
use portals::*;
use std::ptr::{null, null_mut};

const NI: Handle = Handle::INVALID;
const NOBODY: ProcessId = ProcessId::new(0, 0);
const ZERO: CountingEvent = CountingEvent {
    success: 0,
    failure: 0,
};

/// Every function that needs PtlInit, called with nothing that it could want.
fn calls() -> Vec<(&'static str, i32)> {
    let me = null::<Me>();
    // SAFETY: null pointers are refused, in every function.
    unsafe {
        vec![
            ("NIInit", PtlNIInit(7, 0, 0, null(), null_mut(), null_mut())),
            ("NIFini", PtlNIFini(NI)),
            ("NIStatus", PtlNIStatus(NI, 9, null_mut())),
            ("NIHandle", PtlNIHandle(NI, null_mut())),
            ("SetMap", PtlSetMap(NI, 0, null())),
            ("GetMap", PtlGetMap(NI, 1, null_mut(), null_mut())),
            ("GetUid", PtlGetUid(NI, null_mut())),
            ("GetId", PtlGetId(NI, null_mut())),
            ("GetPhysId", PtlGetPhysId(NI, null_mut())),
            ("PTAlloc", PtlPTAlloc(NI, 99, NI, 0, null_mut())),
            ("PTFree", PtlPTFree(NI, 0)),
            ("PTDisable", PtlPTDisable(NI, 0)),
            ("PTEnable", PtlPTEnable(NI, 0)),
            ("MDBind", PtlMDBind(NI, null(), null_mut())),
            ("MDRelease", PtlMDRelease(NI)),
            (
                "LEAppend",
                PtlLEAppend(NI, 0, null(), 9, null_mut(), null_mut()),
            ),
            ("LEUnlink", PtlLEUnlink(NI)),
            ("LESearch", PtlLESearch(NI, 0, null(), 9, null_mut())),
            (
                "MEAppend",
                PtlMEAppend(NI, 0, me, 9, null_mut(), null_mut()),
            ),
            ("MEUnlink", PtlMEUnlink(NI)),
            ("MESearch", PtlMESearch(NI, 0, me, 9, null_mut())),
            ("EQAlloc", PtlEQAlloc(NI, u64::MAX, null_mut())),
            ("EQFree", PtlEQFree(NI)),
            ("EQGet", PtlEQGet(NI, null_mut())),
            ("EQWait", PtlEQWait(NI, null_mut())),
            ("EQPoll", PtlEQPoll(null(), 0, 0, null_mut(), null_mut())),
            ("CTAlloc", PtlCTAlloc(NI, null_mut())),
            ("CTFree", PtlCTFree(NI)),
            ("CTCancelTriggered", PtlCTCancelTriggered(NI)),
            ("CTGet", PtlCTGet(NI, null_mut())),
            ("CTWait", PtlCTWait(NI, 0, null_mut())),
            (
                "CTPoll",
                PtlCTPoll(null(), null(), 0, 0, null_mut(), null_mut()),
            ),
            ("CTSet", PtlCTSet(NI, ZERO)),
            ("CTInc", PtlCTInc(NI, ZERO)),
            ("Put", PtlPut(NI, 0, 0, 9, NOBODY, 0, 0, 0, null_mut(), 0)),
            ("Get", PtlGet(NI, 0, 0, NOBODY, 0, 0, 0, null_mut())),
            (
                "Atomic",
                PtlAtomic(NI, 0, 0, 9, NOBODY, 0, 0, 0, null_mut(), 0, 99, 99),
            ),
            (
                "FetchAtomic",
                PtlFetchAtomic(NI, 0, NI, 0, 0, NOBODY, 0, 0, 0, null_mut(), 0, 99, 99),
            ),
            (
                "Swap",
                PtlSwap(
                    NI,
                    0,
                    NI,
                    0,
                    0,
                    NOBODY,
                    0,
                    0,
                    0,
                    null_mut(),
                    0,
                    null(),
                    99,
                    99,
                ),
            ),
            ("AtomicSync", PtlAtomicSync()),
            (
                "TriggeredPut",
                PtlTriggeredPut(NI, 0, 0, 9, NOBODY, 0, 0, 0, null_mut(), 0, NI, 0),
            ),
            (
                "TriggeredGet",
                PtlTriggeredGet(NI, 0, 0, NOBODY, 0, 0, 0, null_mut(), NI, 0),
            ),
            (
                "TriggeredAtomic",
                PtlTriggeredAtomic(NI, 0, 0, 9, NOBODY, 0, 0, 0, null_mut(), 0, 99, 99, NI, 0),
            ),
            (
                "TriggeredFetchAtomic",
                PtlTriggeredFetchAtomic(
                    NI,
                    0,
                    NI,
                    0,
                    0,
                    NOBODY,
                    0,
                    0,
                    0,
                    null_mut(),
                    0,
                    99,
                    99,
                    NI,
                    0,
                ),
            ),
            (
                "TriggeredSwap",
                PtlTriggeredSwap(
                    NI,
                    0,
                    NI,
                    0,
                    0,
                    NOBODY,
                    0,
                    0,
                    0,
                    null_mut(),
                    0,
                    null(),
                    99,
                    99,
                    NI,
                    0,
                ),
            ),
            ("TriggeredCTInc", PtlTriggeredCTInc(NI, ZERO, NI, 0)),
            ("TriggeredCTSet", PtlTriggeredCTSet(NI, ZERO, NI, 0)),
            (
                "TriggeredMEAppend",
                PtlTriggeredMEAppend(NI, 0, me, 9, null_mut(), null_mut(), NI, 0),
            ),
            ("TriggeredMEUnlink", PtlTriggeredMEUnlink(NI, NI, 0)),
            ("StartBundle", PtlStartBundle(NI)),
            ("EndBundle", PtlEndBundle(NI)),
        ]
    }
}

fn assert_no_init(when: &str) {
    for (name, code) in calls() {
        assert_eq!(code, Error::NoInit as i32, "Ptl{name} {when}");
    }
}

#[test]
fn every_function_reports_that_the_library_isnt_initialized() {
    assert_no_init("before PtlInit");
    PtlFini();
    PtlAbort();
    assert_no_init("after a PtlFini too many");
    assert_eq!(PtlInit(), 0);
    PtlFini();
    assert_no_init("after PtlFini");
    assert_eq!(PtlHandleIsEqual(NI, NI), 1, "that needs no PtlInit");
}
