//! A process with an interface of every kind, and something of everything on it.

use lintel_types::{CountingEvent, Error, Event, Handle, Limits, ProcessId, options};
use portals::*;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

pub const INVALID: Error = Error::ArgInvalid;
/// How many of each thing an interface can hold.
pub const FEW: i32 = 4;

/// Objects of one interface.
pub struct Side {
    pub ni: Handle,
    pub eq: Handle,
    pub ct: Handle,
    pub md: Handle,
    /// A match entry, or a list entry without matching.
    pub entry: Handle,
    pub pt: u32,
    /// The same kinds of objects, gone.
    pub freed: Vec<Handle>,
}

pub struct World {
    pub matching: Side,
    pub other: Side,
    pub logical: Handle,
    pub me: ProcessId,
    memory: Box<[u64; 64]>,
}

/// A place for an output that remembers whether it was written.
pub struct Out<T> {
    place: Box<MaybeUninit<T>>,
}

impl<T> Out<T> {
    const UNTOUCHED: u8 = 0xab;

    pub fn new() -> Self {
        let mut place = Box::new(MaybeUninit::<T>::uninit());
        // SAFETY: as many bytes as the place has.
        unsafe {
            place
                .as_mut_ptr()
                .cast::<u8>()
                .write_bytes(Self::UNTOUCHED, size_of::<T>())
        };
        Out { place }
    }

    pub fn at(&mut self) -> *mut T {
        self.place.as_mut_ptr()
    }

    pub fn assert_untouched(&self, what: &str) {
        let start = self.place.as_ptr().cast::<u8>();
        for index in 0..size_of::<T>() {
            // SAFETY: inside the place, all of whose bytes were written.
            let byte = unsafe { start.add(index).read() };
            assert_eq!(
                byte,
                Self::UNTOUCHED,
                "{what}: output byte {index} has changed"
            );
        }
    }
}

/// A call that must succeed and give something.
pub fn made<T>(call: impl FnOnce(*mut T) -> i32) -> T {
    let mut out = Out::new();
    assert_eq!(call(out.at()), 0);
    // SAFETY: a call that succeeded has written its output.
    unsafe { (*out.place).assume_init() }
}

/// A call that must be refused, and leaves its output as it was.
pub fn refused<T>(what: &str, expected: Error, call: impl FnOnce(*mut T) -> i32) {
    let mut out = Out::<T>::new();
    assert_eq!(call(out.at()), expected as i32, "{what}");
    out.assert_untouched(what);
}

impl World {
    pub fn new() -> World {
        assert_eq!(PtlInit(), 0);
        let mut memory = Box::new([0u64; 64]);
        let start: *mut c_void = memory.as_mut_ptr().cast();
        let matching = Side::new(open(options::NI_MATCHING | options::NI_PHYSICAL), start);
        let other = Side::new(open(options::NI_NO_MATCHING | options::NI_PHYSICAL), start);
        let logical = open(options::NI_MATCHING | options::NI_LOGICAL);
        let me = made(|id| unsafe { PtlGetPhysId(matching.ni, id) });
        World {
            matching,
            other,
            logical,
            me,
            memory,
        }
    }

    pub fn sides(&self) -> [&Side; 2] {
        [&self.matching, &self.other]
    }

    /// Memory that exists; nothing refused may change it.
    pub fn start(&self) -> *mut c_void {
        self.memory.as_ptr().cast_mut().cast()
    }

    /// A good descriptor without queue and counter, to be spoilt.
    pub fn md(&self) -> Md {
        Md {
            start: self.start(),
            length: 64,
            options: 0,
            eq_handle: Handle::EQ_NONE.0,
            ct_handle: Handle::CT_NONE.0,
        }
    }

    /// A good list entry, to be spoilt.
    pub fn le(&self) -> Le {
        Le {
            start: self.start(),
            length: 64,
            ct_handle: Handle::CT_NONE.0,
            uid: u32::MAX,
            options: options::ME_OP_PUT,
        }
    }

    /// A good match list entry, to be spoilt.
    pub fn me(&self) -> Me {
        let le = self.le();
        Me {
            start: le.start,
            length: le.length,
            ct_handle: le.ct_handle,
            uid: le.uid,
            options: le.options,
            match_id: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            match_bits: 0,
            ignore_bits: 0,
            min_free: 0,
        }
    }

    /// No event, no count, no byte, no status register; and nothing was used up.
    pub fn assert_unchanged(&self) {
        for side in self.sides() {
            let mut event = Out::<Event>::new();
            let empty = unsafe { PtlEQGet(side.eq, event.at()) };
            assert_eq!(empty, Error::EqEmpty as i32, "no event was posted");
            let value = made(|value| unsafe { PtlCTGet(side.ct, value) });
            assert_eq!(value, CountingEvent::default(), "nothing was counted");
            for register in 0..3 {
                let value = made(|value| unsafe { PtlNIStatus(side.ni, register, value) });
                assert_eq!(value, 0, "status register {register}");
            }
            self.assert_room_for_the_rest(side);
        }
        assert_eq!(*self.memory, [0; 64], "no byte was moved");
    }

    /// A refused call has taken no resource: each limit is reached exactly.
    fn assert_room_for_the_rest(&self, side: &Side) {
        let rest = FEW as usize - 1;
        let queues = fill(rest, |eq| unsafe { PtlEQAlloc(side.ni, 1, eq) });
        let counters = fill(rest, |ct| unsafe { PtlCTAlloc(side.ni, ct) });
        let descriptors = fill(rest, |md| unsafe { PtlMDBind(side.ni, &self.md(), md) });
        let entries = fill(rest, |entry| self.append(side, entry));
        queues
            .into_iter()
            .for_each(|eq| assert_eq!(PtlEQFree(eq), 0));
        counters
            .into_iter()
            .for_each(|ct| assert_eq!(PtlCTFree(ct), 0));
        descriptors
            .into_iter()
            .for_each(|md| assert_eq!(PtlMDRelease(md), 0));
        entries
            .into_iter()
            .for_each(|entry| assert_eq!(unlink(entry), 0));
    }

    fn append(&self, side: &Side, entry: *mut Handle) -> i32 {
        if side.ni == self.matching.ni {
            unsafe { PtlMEAppend(side.ni, side.pt, &self.me(), 0, null_mut(), entry) }
        } else {
            unsafe { PtlLEAppend(side.ni, side.pt, &self.le(), 0, null_mut(), entry) }
        }
    }

    /// Everything can be given back: no refused call holds it.
    pub fn close(self) {
        for side in self.sides() {
            assert_eq!(unlink(side.entry), 0);
            assert_eq!(PtlMDRelease(side.md), 0);
            assert_eq!(PtlPTFree(side.ni, side.pt), 0);
            assert_eq!(PtlEQFree(side.eq), 0);
            assert_eq!(PtlCTFree(side.ct), 0);
            assert_eq!(PtlNIFini(side.ni), 0);
        }
        assert_eq!(PtlNIFini(self.logical), 0);
        PtlFini();
    }
}

impl Side {
    fn new(ni: Handle, start: *mut c_void) -> Side {
        let matching = ni.interface().is_matching();
        let md = Md {
            start,
            length: 512,
            options: 0,
            eq_handle: Handle::EQ_NONE.0,
            ct_handle: Handle::CT_NONE.0,
        };
        let eq = || made(|eq| unsafe { PtlEQAlloc(ni, 16, eq) });
        let ct = || made(|ct| unsafe { PtlCTAlloc(ni, ct) });
        let bound = || made(|handle| unsafe { PtlMDBind(ni, &md, handle) });
        let live = eq();
        let pt = made(|pt| unsafe { PtlPTAlloc(ni, 0, live, u32::MAX, pt) });
        let entry = || append(ni, matching, pt, start);
        let freed = vec![eq(), ct(), bound(), entry()];
        assert_eq!(PtlEQFree(freed[0]), 0);
        assert_eq!(PtlCTFree(freed[1]), 0);
        assert_eq!(PtlMDRelease(freed[2]), 0);
        assert_eq!(unlink(freed[3]), 0);
        Side {
            ni,
            eq: live,
            ct: ct(),
            md: bound(),
            entry: entry(),
            pt,
            freed,
        }
    }

    /// Everything alive.
    pub fn live(&self) -> [Handle; 5] {
        [self.ni, self.eq, self.ct, self.md, self.entry]
    }
}

fn append(ni: Handle, matching: bool, pt: u32, start: *mut c_void) -> Handle {
    let quiet = options::ME_OP_PUT | options::ME_OP_GET | options::ME_EVENT_LINK_DISABLE;
    let le = Le {
        start,
        length: 512,
        ct_handle: Handle::CT_NONE.0,
        uid: u32::MAX,
        options: quiet,
    };
    if !matching {
        return made(|entry| unsafe { PtlLEAppend(ni, pt, &le, 0, null_mut(), entry) });
    }
    let me = Me {
        start,
        length: 512,
        ct_handle: Handle::CT_NONE.0,
        uid: u32::MAX,
        options: quiet,
        match_id: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        match_bits: 0,
        ignore_bits: 0,
        min_free: 0,
    };
    made(|entry| unsafe { PtlMEAppend(ni, pt, &me, 0, null_mut(), entry) })
}

fn open(options: u32) -> Handle {
    let few = Limits {
        max_entries: FEW,
        max_mds: FEW,
        max_cts: FEW,
        max_eqs: FEW,
        max_iovecs: FEW,
        max_pt_index: 63,
        ..Limits::DEFAULT
    };
    made(|ni| unsafe { PtlNIInit(u32::MAX, options, 0xffff, &few, null_mut(), ni) })
}

fn unlink(entry: Handle) -> i32 {
    match entry.is(lintel_types::Kind::MatchEntry) {
        true => PtlMEUnlink(entry),
        false => PtlLEUnlink(entry),
    }
}

/// Makes so many, and no more can be made.
fn fill(count: usize, make: impl Fn(*mut Handle) -> i32) -> Vec<Handle> {
    let all = (0..count).map(|_| made(&make)).collect();
    refused("one too many", Error::NoSpace, &make);
    all
}
