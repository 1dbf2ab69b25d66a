//! Initialization, the network interface, identity, access control, handles.

use crate::convert::{code, give, give_if_wanted, not_null};
use crate::group;
use lintel_engine3::AccessEntry;
use lintel_runtime::{Opening, fini3, process3};
use lintel_types::portals3::{Error, Limits, NID_ANY, PID_ANY};
use lintel_types::{Handle, ProcessId};
use std::ffi::{c_int, c_ulong};
use std::sync::Once;

/// Interfaces that a process can open.
const INTERFACES: c_int = 1;

/// `PtlInit`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlInit(max_interfaces: *mut c_int) -> c_int {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        // SAFETY: handlers that take nothing and live as long as the library, which
        // is never unloaded (-z nodelete).
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    });
    // Not `code`, for which nothing is initialized whatever else is wrong.
    match process3().init() {
        Ok(_) => {
            give_if_wanted(max_interfaces, INTERFACES);
            0
        }
        Err(_) => Error::Fail as c_int,
    }
}

extern "C" fn after_fork() {
    process3().on_fork();
}

/// Leaves the network when the process ends: as a destructor of the library, it comes after
/// the program's.
#[used]
#[unsafe(link_section = ".fini_array.00101")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    process3().exit();
}

/// `PtlFini`
#[unsafe(no_mangle)]
pub extern "C" fn PtlFini() {
    fini3();
    if process3().check_alive().is_err() {
        group::clear();
    }
}

/// `PtlNIInit`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIInit(
    iface: u32,
    pid: u32,
    desired: *mut Limits,
    actual: *mut Limits,
    ni: *mut Handle,
) -> c_int {
    let open = || {
        not_null(ni)?;
        // SAFETY: null, or limits of the caller's (the header).
        let limits = unsafe { desired.as_ref() }.copied();
        let open_as = |pid| {
            process3().open(Opening {
                iface,
                pid,
                limits,
                jid: group::jid(),
            })
        };
        let group = group::current();
        let mapped = group.own_pid().filter(|_| pid == PID_ANY);
        match open_as(mapped.unwrap_or(pid)) {
            // The launcher's pid is another's, such as the parent's, and nothing asked for it.
            Err(Error::PidInvalid) if mapped.is_some() && !group::group().is_set() => open_as(pid),
            opened => opened,
        }
    };
    code(open().map(|(handle, limits)| {
        give(ni, handle);
        give_if_wanted(actual, limits);
    }))
}

/// `PtlNIFini`
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIFini(ni: Handle) -> c_int {
    code(process3().close3(ni))
}

/// `PtlNIStatus`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIStatus(ni: Handle, reg: u32, value: *mut u64) -> c_int {
    let read = || {
        not_null(value)?;
        process3().status3(ni, reg)
    };
    code(read().map(|read| give(value, read)))
}

/// `PtlNIDist`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIDist(
    ni: Handle,
    process: ProcessId,
    distance: *mut c_ulong,
) -> c_int {
    let measure = || {
        not_null(distance)?;
        let own = process3().identity3(ni)?.process;
        match process {
            _ if process.nid == NID_ANY || process.pid == PID_ANY => Err(Error::ProcessInvalid),
            _ if process == own => Ok(0),
            _ if process.nid == own.nid => Ok(1),
            _ => Ok(2),
        }
    };
    code(measure().map(|measured| give(distance, measured)))
}

/// `PtlNIHandle`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIHandle(any: Handle, ni: *mut Handle) -> c_int {
    let find = || {
        not_null(ni)?;
        process3().interface_of3(any)
    };
    code(find().map(|found| give(ni, found)))
}

/// `PtlGetUid`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetUid(ni: Handle, uid: *mut u32) -> c_int {
    let read = || {
        not_null(uid)?;
        process3().identity3(ni).map(|own| own.uid)
    };
    code(read().map(|read| give(uid, read)))
}

/// `PtlGetId`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetId(ni: Handle, id: *mut ProcessId) -> c_int {
    let read = || {
        not_null(id)?;
        process3().identity3(ni).map(|own| own.process)
    };
    code(read().map(|read| give(id, read)))
}

/// `PtlGetJid`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetJid(ni: Handle, jid: *mut u32) -> c_int {
    let read = || {
        not_null(jid)?;
        process3().identity3(ni).map(|own| own.jid)
    };
    code(read().map(|read| give(jid, read)))
}

/// `PtlACEntry`
#[unsafe(no_mangle)]
pub extern "C" fn PtlACEntry(
    ni: Handle,
    index: u32,
    match_id: ProcessId,
    uid: u32,
    jid: u32,
    pt: u32,
) -> c_int {
    let entry = AccessEntry {
        process: match_id,
        uid,
        jid,
        portal: pt,
    };
    code(process3().access_entry3(ni, index, entry))
}

/// `PtlHandleIsEqual`
#[unsafe(no_mangle)]
pub extern "C" fn PtlHandleIsEqual(a: Handle, b: Handle) -> c_int {
    c_int::from(a == b)
}

/// `PtlProgress`
#[unsafe(no_mangle)]
pub extern "C" fn PtlProgress(any: Handle, timeout: u32) -> c_int {
    // The library makes progress by itself: one look is enough, whatever the time.
    let _ = timeout;
    code(process3().interface_of3(any).map(|_| process3().progress()))
}
