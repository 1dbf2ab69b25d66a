//! The library itself, found and loaded when it is first asked for.

use crate::error::OpenError;
use crate::sys;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The functions that libfabric exports by name.
pub(crate) struct Library {
    pub(super) get_info: sys::GetInfo,
    pub(super) free_info: sys::FreeInfo,
    pub(super) dup_info: sys::DupInfo,
    pub(super) open_fabric: sys::OpenFabric,
    version: sys::Version,
    str_error: sys::StrError,
}

/// The name of every libfabric since 1.0.
const NAME: &str = "libfabric.so.1";

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

impl Library {
    /// The library of this process. Never unloaded: its providers keep threads and
    /// thread-local values.
    pub(crate) fn get() -> Result<&'static Library, OpenError> {
        let loaded = LIBRARY.get_or_init(|| Library::load(NAME).map_err(|why| why.to_string()));
        let library = loaded
            .as_ref()
            .map_err(|why| OpenError::NoLibrary(why.clone()))?;
        let version = library.version();
        if version < sys::VERSION {
            return Err(OpenError::TooOld(version >> 16, version & 0xffff));
        }
        Ok(library)
    }

    fn load(name: &str) -> Result<Library, libloading::Error> {
        let handlers = Handlers::save();
        // SAFETY: that the file by this name is libfabric is the machine's promise.
        // Its constructors, and those of libraries that it needs, read their
        // configuration and take signals, which are given back below.
        let library = unsafe { libloading::Library::new(name) };
        handlers.restore();
        let library = Box::leak(Box::new(library?));
        Ok(Library {
            // SAFETY: all of these have the types that the headers declare.
            get_info: *unsafe { library.get(b"fi_getinfo\0") }?,
            // SAFETY: as above.
            free_info: *unsafe { library.get(b"fi_freeinfo\0") }?,
            // SAFETY: as above.
            dup_info: *unsafe { library.get(b"fi_dupinfo\0") }?,
            // SAFETY: as above.
            open_fabric: *unsafe { library.get(b"fi_fabric\0") }?,
            // SAFETY: as above.
            version: *unsafe { library.get(b"fi_version\0") }?,
            // SAFETY: as above.
            str_error: *unsafe { library.get(b"fi_strerror\0") }?,
        })
    }

    fn version(&self) -> u32 {
        // SAFETY: fi_version has no preconditions.
        unsafe { (self.version)() }
    }

    /// What one of libfabric's error numbers means.
    pub(crate) fn explain(&self, code: i32) -> String {
        // SAFETY: fi_strerror takes any number.
        let words = unsafe { (self.str_error)(code.abs()) };
        if words.is_null() {
            return format!("error {code}");
        }
        // SAFETY: fi_strerror gives strings that are never changed or freed.
        let words = unsafe { CStr::from_ptr(words) };
        words.to_string_lossy().into_owned()
    }
}

/// What the program does on signals that a library may take.
struct Handlers([libc::sigaction; SIGNALS.len()]);

/// PSM's libraries, which some builds of libfabric need, take these when they are
/// loaded, to write a report; a program that is interrupted is none of their matter.
const SIGNALS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGINT,
    libc::SIGTERM,
];

impl Handlers {
    fn save() -> Handlers {
        Handlers(SIGNALS.map(|signal| {
            // SAFETY: numbers and a pointer, for all of which zero is a value.
            let mut handler: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: asks only; the answer has room.
            unsafe { libc::sigaction(signal, std::ptr::null(), &mut handler) };
            handler
        }))
    }

    fn restore(&self) {
        for (signal, handler) in SIGNALS.iter().zip(&self.0) {
            // SAFETY: what the system has returned for this signal a moment ago.
            unsafe { libc::sigaction(*signal, handler, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_reported_with_the_ways_to_get_it() {
        let why = Library::load("libfabric-that-nobody-has.so.1").map(|_| ());
        let why = why.expect_err("there is no such library").to_string();
        let reported = OpenError::NoLibrary(why).to_string();
        for hint in [
            "libfabric-that-nobody-has",
            "libfabric1",
            "Fedora",
            "LD_LIBRARY_PATH",
        ] {
            assert!(reported.contains(hint), "{reported:?} doesn't name {hint}");
        }
    }
}
