//! libpmix, loaded at run time: the calls that a rank needs, made safe.
//!
//! Declarations are written after the PMIx standard 3 to 5, whose libraries share the
//! name `libpmix.so.2`; the layouts below are the same in all of them. No other module of
//! this crate calls foreign functions.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

use libloading::{Library, Symbol};

/// The rank that stands for the whole job.
const WHOLE_JOB: u32 = u32::MAX - 1;
const SUCCESS: c_int = 0;
/// `PMIX_GLOBAL`: seen by ranks of this node and of others.
const SCOPE_GLOBAL: u8 = 3;
/// Bytes of a job's name and of a key, their terminating NUL included.
const NAME_BYTES: usize = 256;
const KEY_BYTES: usize = 512;

/// `pmix_data_type_t`, as far as it is used here.
mod data_type {
    pub(super) const BOOL: u16 = 1;
    pub(super) const STRING: u16 = 3;
    pub(super) const UINT16: u16 = 13;
    pub(super) const UINT32: u16 = 14;
}

/// Mirrors `pmix_proc_t` of pmix_common.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Proc {
    job: [c_char; NAME_BYTES],
    rank: u32,
}

/// `pmix_value_t`: the union's largest member has three words.
#[repr(C)]
struct Value {
    data_type: u16,
    data: Data,
}

#[repr(C)]
union Data {
    flag: bool,
    string: *const c_char,
    uint16: u16,
    uint32: u32,
    room: [usize; 3],
}

/// Mirrors `pmix_info_t` of pmix_common.h.
#[repr(C)]
struct Info {
    key: [c_char; KEY_BYTES],
    flags: u32,
    value: Value,
}

type Init = unsafe extern "C" fn(*mut Proc, *const Info, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int;
type Get =
    unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *const Proc, usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type ValueDestruct = unsafe extern "C" fn(*mut Value);

/// A process that PMIx knows as a rank. Leaves PMIx when dropped.
pub(crate) struct Session {
    api: Api,
    me: Proc,
}

/// The library and its entry points. The library stays loaded for the life of the
/// process: its threads outlive a session.
struct Api {
    library: ManuallyDrop<Library>,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    abort: Abort,
    /// Missing before libpmix 4.2.
    value_destruct: Option<ValueDestruct>,
}

/// Why PMIx can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// libpmix is missing, or isn't a PMIx library.
    Library(String),
    /// A function of libpmix returned an error code.
    Refused {
        /// The function of libpmix, by its C name.
        call: &'static str,
        /// Its reason, in libpmix's words.
        reason: String,
    },
    /// A value has another type than the standard says.
    Type(String),
    /// A key or value can't be given to C.
    Text(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Library(why) => write!(
                f,
                "libpmix.so.2 can't be used ({why}); on Debian: apt-get install libpmix2"
            ),
            Error::Refused { call, reason } => write!(f, "{call} failed: {reason}"),
            Error::Type(key) => write!(f, "the value of {key} has an unexpected type"),
            Error::Text(text) => write!(f, "{text:?} holds a NUL or is too long for PMIx"),
        }
    }
}

impl std::error::Error for Error {}

impl Session {
    /// Loads libpmix and connects with the server that started this process.
    ///
    /// # Errors
    /// No library, no server.
    pub(crate) fn open() -> Result<Session, Error> {
        let api = Api::load()?;
        let init: Init = api.entry("PMIx_Init")?;
        let mut me = Proc {
            job: [0; NAME_BYTES],
            rank: 0,
        };
        // SAFETY: `me` is a writable pmix_proc_t; no directives are passed, so a null
        // array of length 0 is what the standard asks for.
        let status = unsafe { init(&mut me, ptr::null(), 0) };
        api.check("PMIx_Init", status)?;
        Ok(Session { api, me })
    }

    /// This process's rank within its namespace.
    pub(crate) fn rank(&self) -> u32 {
        self.me.rank
    }

    /// The name of the job.
    pub(crate) fn job(&self) -> String {
        let bytes: Vec<u8> = self.me.job.iter().map(|&c| c as u8).collect();
        let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Publishes `value` under `key` of this rank; visible after [`Session::fence`].
    pub(crate) fn put(&self, key: &str, value: &str) -> Result<(), Error> {
        let key = key_text(key)?;
        let text = CString::new(value).map_err(|_| Error::Text(value.into()))?;
        let mut value = Value {
            data_type: data_type::STRING,
            data: Data {
                string: text.as_ptr(),
            },
        };
        // SAFETY: key and value are a C string and a pmix_value_t of type string, both
        // alive during the call; the library copies them.
        let status = unsafe { (self.api.put)(SCOPE_GLOBAL, key.as_ptr(), &mut value) };
        self.api.check("PMIx_Put", status)?;
        // SAFETY: takes no arguments; PMIx_Init has succeeded.
        let status = unsafe { (self.api.commit)() };
        self.api.check("PMIx_Commit", status)
    }

    /// Waits until every rank of the job has entered; then all see what was put.
    pub(crate) fn fence(&self) -> Result<(), Error> {
        let collect = Info {
            key: array(c"pmix.collect"),
            flags: 0,
            value: Value {
                data_type: data_type::BOOL,
                data: Data { flag: true },
            },
        };
        // SAFETY: a null array of processes stands for all of the job; `collect` is one
        // pmix_info_t that lives until the call, which blocks, returns.
        let status = unsafe { (self.api.fence)(ptr::null(), 0, &collect, 1) };
        self.api.check("PMIx_Fence", status)
    }

    /// What `rank` put under `key` before the last fence.
    pub(crate) fn text_of(&self, rank: u32, key: &str) -> Result<String, Error> {
        let value = self.get(rank, key)?;
        let string = value
            .as_string()
            .ok_or_else(|| Error::Type(key.to_string()))?;
        Ok(string)
    }

    /// A number that PMIx knows of the whole job.
    pub(crate) fn number_of_job(&self, key: &str) -> Result<u32, Error> {
        let value = self.get(WHOLE_JOB, key)?;
        value.as_number().ok_or_else(|| Error::Type(key.into()))
    }

    /// A number that PMIx knows of this rank.
    pub(crate) fn own_number(&self, key: &str) -> Result<u32, Error> {
        let value = self.get(self.me.rank, key)?;
        value.as_number().ok_or_else(|| Error::Type(key.into()))
    }

    /// Asks for the end of the whole job.
    pub(crate) fn abort(&self, code: i32) -> Result<(), Error> {
        // SAFETY: the message is a C string; a null array of processes stands for all
        // of the job.
        let status = unsafe { (self.api.abort)(code, c"abort".as_ptr(), ptr::null(), 0) };
        self.api.check("PMIx_Abort", status)
    }

    fn get(&self, rank: u32, key: &str) -> Result<Found<'_>, Error> {
        let key = key_text(key)?;
        let whose = Proc { rank, ..self.me };
        let mut value = ptr::null_mut();
        // SAFETY: process, key and the place for the answer are valid during the call;
        // no directives are passed.
        let status = unsafe { (self.api.get)(&whose, key.as_ptr(), ptr::null(), 0, &mut value) };
        self.api.check("PMIx_Get", status)?;
        if value.is_null() {
            let (call, reason) = ("PMIx_Get", "success without a value".into());
            return Err(Error::Refused { call, reason });
        }
        Ok(Found {
            api: &self.api,
            value,
        })
    }
}

impl Drop for Session {
    /// A rank that ends without this counts as crashed.
    fn drop(&mut self) {
        // SAFETY: no directives are passed. PMIx_Init has succeeded, and libpmix counts
        // its calls, so another user of it in this process is not cut off.
        unsafe { (self.api.finalize)(ptr::null(), 0) };
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session(rank {} of {})", self.me.rank, self.job())
    }
}

/// A value that libpmix has allocated.
struct Found<'a> {
    api: &'a Api,
    value: *mut Value,
}

impl Found<'_> {
    fn data_type(&self) -> u16 {
        // SAFETY: PMIx_Get gave a valid pmix_value_t, freed in drop only.
        unsafe { (*self.value).data_type }
    }

    fn as_string(&self) -> Option<String> {
        if self.data_type() != data_type::STRING {
            return None;
        }
        // SAFETY: as above, and the type says that the string is the member in use.
        let text = unsafe { (*self.value).data.string };
        if text.is_null() {
            return None;
        }
        // SAFETY: a string value of PMIx is NUL-terminated and lives until drop.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }

    fn as_number(&self) -> Option<u32> {
        match self.data_type() {
            // SAFETY: as above, and the type says that this is the member in use.
            data_type::UINT16 => Some(u32::from(unsafe { (*self.value).data.uint16 })),
            // SAFETY: as above.
            data_type::UINT32 => Some(unsafe { (*self.value).data.uint32 }),
            _ => None,
        }
    }
}

impl Drop for Found<'_> {
    /// Frees what the value holds; its own 32 bytes, for which the library offers no
    /// function, stay.
    fn drop(&mut self) {
        if let Some(destruct) = self.api.value_destruct {
            // SAFETY: the value came from PMIx_Get and is not used again.
            unsafe { destruct(self.value) };
        }
    }
}

impl Api {
    fn load() -> Result<Api, Error> {
        // SAFETY: loading runs the library's initialisers; libpmix's only prepare its
        // own state. The name is the one that its packagers keep for this interface.
        let library = unsafe { Library::new("libpmix.so.2") }
            .map_err(|error| Error::Library(error.to_string()))?;
        let library = ManuallyDrop::new(library);
        Ok(Api {
            finalize: entry(&library, "PMIx_Finalize")?,
            put: entry(&library, "PMIx_Put")?,
            commit: entry(&library, "PMIx_Commit")?,
            fence: entry(&library, "PMIx_Fence")?,
            get: entry(&library, "PMIx_Get")?,
            abort: entry(&library, "PMIx_Abort")?,
            value_destruct: entry(&library, "PMIx_Value_destruct").ok(),
            library,
        })
    }

    fn entry<T: Copy>(&self, name: &'static str) -> Result<T, Error> {
        entry(&self.library, name)
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), Error> {
        if status == SUCCESS {
            return Ok(());
        }
        let reason = self
            .error_text(status)
            .unwrap_or_else(|| format!("status {status}"));
        Err(Error::Refused { call, reason })
    }

    fn error_text(&self, status: c_int) -> Option<String> {
        let describe: ErrorString = self.entry("PMIx_Error_string").ok()?;
        // SAFETY: takes any number.
        let text = unsafe { describe(status) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the standard promises a constant, NUL-terminated string.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }
}

/// The entry point `name`; `T` is its type, as declared above.
fn entry<T: Copy>(library: &Library, name: &'static str) -> Result<T, Error> {
    const { assert!(size_of::<T>() == size_of::<*const c_void>()) };
    // SAFETY: each call of this function asks for a name together with the type that
    // the standard gives to that function.
    let symbol: Result<Symbol<T>, _> = unsafe { library.get(name.as_bytes()) };
    match symbol {
        Ok(symbol) => Ok(*symbol),
        Err(error) => Err(Error::Library(error.to_string())),
    }
}

fn key_text(key: &str) -> Result<CString, Error> {
    let text = CString::new(key).ok();
    text.filter(|text| text.as_bytes_with_nul().len() <= KEY_BYTES)
        .ok_or_else(|| Error::Text(key.into()))
}

/// `text` in an array of C, padded with NUL.
fn array(text: &CStr) -> [c_char; KEY_BYTES] {
    let mut array = [0; KEY_BYTES];
    for (to, &from) in array.iter_mut().zip(text.to_bytes()) {
        *to = from as c_char;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// As a C compiler lays out pmix_common.h of PMIx 4.2 on 64-bit Linux.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!((size_of::<Proc>(), offset_of!(Proc, rank)), (260, 256));
        assert_eq!((size_of::<Value>(), offset_of!(Value, data)), (32, 8));
        assert_eq!(
            (
                size_of::<Info>(),
                offset_of!(Info, flags),
                offset_of!(Info, value)
            ),
            (552, 512, 520)
        );
    }

    #[test]
    fn keys_that_c_cannot_hold_are_refused() {
        assert!(key_text("a\0b").is_err() && key_text(&"k".repeat(KEY_BYTES)).is_err());
        assert!(key_text(&"k".repeat(KEY_BYTES - 1)).is_ok());
    }
}
