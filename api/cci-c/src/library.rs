//! Beginning and end of use, devices, texts.

use crate::cells::EndpointCell;
use crate::convert::{code, give};
use crate::devices::Devices;
use cci_sys::{ABI_VERSION, Device, Endpoint};
use lintel_cci_endpoint::Status;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::ffi::{CString, c_char, c_int};
use std::sync::LazyLock;

/// The library between the first `cci_init` and the last `cci_finalize`.
pub(crate) struct Library {
    uses: u32,
    flags: u32,
    pub(crate) devices: Devices,
    pub(crate) endpoints: FxHashSet<*mut EndpointCell>,
}

// SAFETY: the pointers name boxes that the library owns; the lock around it orders access.
unsafe impl Send for Library {}

static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);

/// A call on the library in use.
///
/// # Errors
/// `Error` if it isn't, and the call's.
pub(crate) fn with_library<R>(
    call: impl FnOnce(&mut Library) -> Result<R, Status>,
) -> Result<R, Status> {
    LIBRARY.lock().as_mut().ok_or(Status::Error).and_then(call)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_init(abi_ver: u32, flags: u32, caps: *mut u32) -> c_int {
    if abi_ver != ABI_VERSION || caps.is_null() {
        return code(Err(Status::Invalid));
    }
    let mut library = LIBRARY.lock();
    let used = library.get_or_insert_with(|| Library {
        uses: 0,
        flags,
        devices: Devices::find(),
        endpoints: FxHashSet::default(),
    });
    if used.flags != flags {
        return code(Err(Status::NotImplemented));
    }
    used.uses += 1;
    // SAFETY: the caller's, as the header says.
    code(unsafe { give(caps, 0) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn cci_finalize() -> c_int {
    let mut library = LIBRARY.lock();
    let Some(used) = library.as_mut() else {
        return code(Err(Status::Error));
    };
    used.uses -= 1;
    if used.uses > 0 {
        return code(Ok(()));
    }
    let ended = library.take();
    drop(library); // Endpoints may take a second to close.
    for endpoint in ended.iter().flat_map(|ended| &ended.endpoints) {
        // SAFETY: it came from `Box::into_raw`, and is in no table any more.
        drop(unsafe { Box::from_raw(*endpoint) });
    }
    code(Ok(()))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_devices(devices: *mut *mut *mut Device) -> c_int {
    let found = with_library(|library| {
        // SAFETY: the caller's, as the header says.
        unsafe { give(devices, library.devices.list()) }
    });
    code(found)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn cci_strerror(endpoint: *mut Endpoint, status: u32) -> *const c_char {
    static TEXTS: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let texts = Status::ALL.iter().map(|status| status.c_name());
        let texts = texts.chain(["unknown status"]).map(CString::new);
        texts.map(|text| text.expect("it has no zero")).collect()
    });
    let _ = endpoint;
    let known = Status::ALL.iter().position(|it| *it as u32 == status);
    TEXTS[known.unwrap_or(Status::ALL.len())].as_ptr()
}
