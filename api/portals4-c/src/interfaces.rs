//! Initialization, network interfaces, identity, portal table.

use crate::convert::{array, code, give, not_null};
use crate::entries::named;
use lintel_runtime::process;
use lintel_types::{Error, Handle, Limits, ProcessId, Result};
use std::ffi::c_int;
use std::sync::Once;

/// `PtlInit`
#[unsafe(no_mangle)]
pub extern "C" fn PtlInit() -> c_int {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        // SAFETY: handlers that take nothing and live as long as the library, which
        // is never unloaded (-z nodelete).
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    });
    // Not `code`, for which nothing is initialized whatever else is wrong.
    process().init().err().map_or(0, |error| error as c_int)
}

extern "C" fn after_fork() {
    process().on_fork();
}

/// Leaves the network when the process ends. As a destructor of the library, and the last
/// of a program that is linked with it statically, it comes after the handlers (`atexit`)
/// and destructors of code that uses the library, which may still release objects.
#[used]
#[unsafe(link_section = ".fini_array.00101")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    process().exit();
}

/// `PtlFini`
#[unsafe(no_mangle)]
pub extern "C" fn PtlFini() {
    process().fini();
}

/// `PtlAbort`
#[unsafe(no_mangle)]
pub extern "C" fn PtlAbort() {
    process().abort();
}

/// `PtlNIInit`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIInit(
    iface: u32,
    options: u32,
    pid: u32,
    desired: *const Limits,
    actual: *mut Limits,
    ni_handle: *mut Handle,
) -> c_int {
    let open = || {
        process().check_alive()?;
        not_null(ni_handle)?;
        // SAFETY: null, or limits of the caller's (the header).
        let desired = unsafe { desired.as_ref() }.copied();
        process().open(iface, options, pid, desired)
    };
    code(open().map(|(handle, limits)| {
        give(ni_handle, handle);
        if !actual.is_null() {
            give(actual, limits);
        }
    }))
}

/// `PtlNIFini`
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIFini(ni_handle: Handle) -> c_int {
    code(process().close(ni_handle))
}

/// `PtlNIStatus`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIStatus(
    ni_handle: Handle,
    status_register: u32,
    status: *mut i32,
) -> c_int {
    let read = || {
        let registers = process().registers(on_interface(ni_handle)?)?;
        not_null(status)?;
        match status_register {
            0 => Ok(registers.drops),
            1 => Ok(registers.permission_violations),
            2 => Ok(registers.operation_violations),
            _ => Err(Error::ArgInvalid),
        }
    };
    code(read().map(|value| give(status, value)))
}

/// `PtlNIHandle`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIHandle(handle: Handle, ni_handle: *mut Handle) -> c_int {
    let find = || {
        process().check_alive()?;
        not_null(ni_handle)?;
        match handle.kind() {
            Some(_) if handle == Handle::EQ_NONE || handle == Handle::CT_NONE => {
                Err(Error::ArgInvalid)
            }
            Some(_) => process().interface_of(handle),
            None => Err(Error::ArgInvalid),
        }
    };
    code(find().map(|found| give(ni_handle, found)))
}

/// `PtlSetMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSetMap(
    ni_handle: Handle,
    map_size: u64,
    mapping: *const ProcessId,
) -> c_int {
    let set = || {
        process().check_alive()?;
        let map = array(mapping, map_size)?;
        process().set_map(on_interface(ni_handle)?, map.to_vec())
    };
    code(set())
}

/// `PtlGetMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetMap(
    ni_handle: Handle,
    map_size: u64,
    mapping: *mut ProcessId,
    actual_map_size: *mut u64,
) -> c_int {
    let get = || {
        let map = process().map(on_interface(ni_handle)?)?;
        if map_size > 0 {
            not_null(mapping)?;
        }
        Ok(map)
    };
    code(get().map(|map| {
        for (index, process) in map.iter().take(map_size as usize).enumerate() {
            give(mapping.wrapping_add(index), *process);
        }
        if !actual_map_size.is_null() {
            give(actual_map_size, map.len() as u64);
        }
    }))
}

/// `PtlGetUid`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetUid(ni_handle: Handle, uid: *mut u32) -> c_int {
    code(
        on_interface(ni_handle)
            .and_then(|ni| process().uid(ni))
            .and_then(|found| {
                not_null(uid)?;
                give(uid, found);
                Ok(())
            }),
    )
}

/// `PtlGetId`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetId(ni_handle: Handle, id: *mut ProcessId) -> c_int {
    code(
        on_interface(ni_handle)
            .and_then(|ni| process().id(ni))
            .and_then(|found| {
                not_null(id)?;
                give(id, found);
                Ok(())
            }),
    )
}

/// `PtlGetPhysId`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetPhysId(ni_handle: Handle, id: *mut ProcessId) -> c_int {
    code(
        on_interface(ni_handle)
            .and_then(|ni| process().physical_id(ni))
            .and_then(|found| {
                not_null(id)?;
                give(id, found);
                Ok(())
            }),
    )
}

/// `PtlPTAlloc`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlPTAlloc(
    ni_handle: Handle,
    options: u32,
    eq_handle: Handle,
    pt_index_req: u32,
    pt_index: *mut u32,
) -> c_int {
    let alloc = || {
        process().check_alive()?;
        not_null(pt_index)?;
        process().portal_alloc(
            on_interface(ni_handle)?,
            options.into(),
            eq_handle,
            pt_index_req,
        )
    };
    code(alloc().map(|index| give(pt_index, index.into())))
}

/// `PtlPTFree`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPTFree(ni_handle: Handle, pt_index: u32) -> c_int {
    let free = || {
        process().check_alive()?;
        named(ni_handle)?;
        process().portal_free(ni_handle, pt_index.try_into()?)
    };
    code(free())
}

/// `PtlPTDisable`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPTDisable(ni_handle: Handle, pt_index: u32) -> c_int {
    code(on_interface(ni_handle).and_then(|ni| process().portal_disable(ni, pt_index.try_into()?)))
}

/// `PtlPTEnable`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPTEnable(ni_handle: Handle, pt_index: u32) -> c_int {
    code(on_interface(ni_handle).and_then(|ni| process().portal_enable(ni, pt_index.try_into()?)))
}

/// `PtlHandleIsEqual`
#[unsafe(no_mangle)]
pub extern "C" fn PtlHandleIsEqual(handle1: Handle, handle2: Handle) -> c_int {
    c_int::from(handle1 == handle2)
}

/// `PtlStartBundle`: messages are never held back, so there is nothing to start.
#[unsafe(no_mangle)]
pub extern "C" fn PtlStartBundle(ni_handle: Handle) -> c_int {
    code(on_interface(ni_handle).and_then(|ni| process().interface_of(ni).map(drop)))
}

/// `PtlEndBundle`
#[unsafe(no_mangle)]
pub extern "C" fn PtlEndBundle(ni_handle: Handle) -> c_int {
    code(on_interface(ni_handle).and_then(|ni| process().interface_of(ni).map(drop)))
}

/// The handle of a command on an interface: it must be the interface's own.
fn on_interface(ni_handle: Handle) -> Result<Handle> {
    process().check_alive()?;
    named(ni_handle)?;
    Ok(ni_handle)
}
