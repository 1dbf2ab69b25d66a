//! A slot that is freed is given out again; what named the old object must not
//! reach the new one.

use lintel_types::{CountingEvent, Error, Event, Handle, ProcessId, options};
use portals::*;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

/// A call that must succeed, and what it gives.
fn made<T>(call: impl FnOnce(*mut T) -> i32) -> T {
    let mut out = MaybeUninit::uninit();
    assert_eq!(call(out.as_mut_ptr()), 0);
    // SAFETY: a call that succeeded has written its output.
    unsafe { out.assume_init() }
}

#[test]
fn what_names_a_freed_queue_or_counter_works_on_without_it() {
    assert_eq!(PtlInit(), 0);
    let kind = options::NI_MATCHING | options::NI_PHYSICAL;
    // SAFETY: structures and places are there, here and below.
    let ni = made(|ni| unsafe { PtlNIInit(u32::MAX, kind, 0xffff, null(), null_mut(), ni) });
    // SAFETY: as above.
    let queue = || made(|eq| unsafe { PtlEQAlloc(ni, 16, eq) });
    // SAFETY: as above.
    let counter = || made(|ct| unsafe { PtlCTAlloc(ni, ct) });
    let (old_queue, old_counter) = (queue(), counter());
    // SAFETY: as above.
    let pt = made(|pt| unsafe { PtlPTAlloc(ni, 0, old_queue, u32::MAX, pt) });
    let mut memory = [0u64; 8];
    let start: *mut c_void = memory.as_mut_ptr().cast();
    let me = Me {
        start,
        length: 64,
        ct_handle: old_counter.0,
        uid: u32::MAX,
        options: options::ME_OP_PUT | options::ME_EVENT_CT_COMM | options::ME_EVENT_LINK_DISABLE,
        match_id: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        match_bits: 0,
        ignore_bits: 0,
        min_free: 0,
    };
    // SAFETY: as above.
    let entry = made(|entry| unsafe { PtlMEAppend(ni, pt, &me, 0, null_mut(), entry) });
    let md = Md {
        start,
        length: 64,
        options: options::MD_EVENT_CT_SEND,
        eq_handle: old_queue.0,
        ct_handle: old_counter.0,
    };
    // SAFETY: as above.
    let md = made(|handle| unsafe { PtlMDBind(ni, &md, handle) });

    assert_eq!((PtlEQFree(old_queue), PtlCTFree(old_counter)), (0, 0));
    let (new_queue, new_counter) = (queue(), counter());
    assert_eq!(
        new_queue.index(),
        old_queue.index(),
        "the slot is used again"
    );
    // SAFETY: as above.
    let id = made(|id| unsafe { PtlGetPhysId(ni, id) });
    assert_eq!(PtlPut(md, 0, 8, 0, id, pt, 0, 8, null_mut(), 0), 0);

    let mut event = MaybeUninit::<Event>::uninit();
    // SAFETY: as above.
    let empty = unsafe { PtlEQGet(new_queue, event.as_mut_ptr()) };
    assert_eq!(empty, Error::EqEmpty as i32);
    // SAFETY: as above.
    let value = made(|value| unsafe { PtlCTGet(new_counter, value) });
    assert_eq!(value, CountingEvent::default());
    let ends: [extern "C" fn(Handle) -> i32; 3] = [PtlMDRelease, PtlMEUnlink, PtlNIFini];
    for (end, handle) in ends.into_iter().zip([md, entry, ni]) {
        assert_eq!(end(handle), 0);
    }
    PtlFini();
}
