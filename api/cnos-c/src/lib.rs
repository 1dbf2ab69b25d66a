//! `libcnos.so.0`: what programs written for Cray's compute nodes ask of their system: rank,
//! size, the name of each rank, a barrier. `catamount/cnos_mpi_os.h` documents the functions.
//!
//! ```text
//!   program ──▶ cnos_… ─┬─ rank, size, the launcher's names ──▶ libportals3 (PtlGetRank …)
//!                       └─ registered names, barrier ─────────▶ the launcher, by PMI
//! ```
#![allow(clippy::missing_safety_doc)]

mod job;
mod launched;

use std::ffi::c_int;

use lintel_pmi::client;
use portals3_sys::{Handle, ProcessId};

/// `CNOS_LAUNCHER_APRUN`: programs then open an interface by Cray's number and register.
const LAUNCHER_APRUN: c_int = 2;

/// `cnos_get_rank`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_get_rank() -> c_int {
    number_or_report(place().map(|(rank, _)| rank))
}

/// `cnos_get_size`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_get_size() -> c_int {
    number_or_report(place().map(|(_, size)| size))
}

/// `cnos_get_nidpid_map`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnos_get_nidpid_map(map: *mut *mut ProcessId) -> c_int {
    number_or_report(names().and_then(|names| give(&names, map)))
}

/// `cnos_barrier_init`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_barrier_init(ni_handle: Handle) {
    // The barrier is the launcher's.
    let _ = ni_handle;
}

/// `cnos_register_ptlid`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_register_ptlid(id: ProcessId) -> c_int {
    number_or_report(job::with(|job| job.register(id)).map(|()| 0))
}

/// `cnos_barrier`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_barrier() -> c_int {
    number_or_report(job::with(job::Job::barrier).map(|()| 0))
}

/// `cnos_pm_barrier`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_pm_barrier(is_exiting: c_int) -> c_int {
    // The launcher learns of the end when the process exits.
    let _ = is_exiting;
    cnos_barrier()
}

/// `cnos_launcher`
#[unsafe(no_mangle)]
pub extern "C" fn cnos_launcher() -> c_int {
    LAUNCHER_APRUN
}

/// Rank and size: those of libportals3, else the launcher's.
fn place() -> Result<(usize, usize), Error> {
    match launched::place() {
        Some(place) => Ok(place),
        None => job::with(|job| Ok(job.place())),
    }
}

/// The name of each rank: as registered, else the launcher's.
fn names() -> Result<Vec<ProcessId>, Error> {
    match job::with(job::Job::names)? {
        Some(names) => Ok(names),
        None => launched::names().ok_or(Error::NoNames),
    }
}

/// Copies the names to memory that C's free() releases.
fn give(names: &[ProcessId], map: *mut *mut ProcessId) -> Result<usize, Error> {
    if map.is_null() {
        return Err(Error::NullMap);
    }
    // SAFETY: malloc takes any size.
    let copy = unsafe { libc::malloc(size_of_val(names)) }.cast::<ProcessId>();
    if copy.is_null() {
        return Err(Error::NoMemory);
    }
    // SAFETY: the copy has room for as many, is aligned for every type, and is new.
    unsafe { copy.copy_from_nonoverlapping(names.as_ptr(), names.len()) };
    // SAFETY: the caller promises a place for a pointer.
    unsafe { map.write(copy) };
    Ok(names.len())
}

/// -1 for an error, whose reason goes to standard error.
fn number_or_report(result: Result<usize, Error>) -> c_int {
    let number = result.and_then(|n| c_int::try_from(n).map_err(|_| Error::TooManyRanks));
    number.unwrap_or_else(|error| {
        eprintln!("libcnos: {error}");
        -1
    })
}

/// Why a call failed.
enum Error {
    /// The launcher can't be asked.
    Launcher(client::Error),
    /// Another rank has not registered, or its name can't be read.
    NotRegistered(usize),
    /// Neither the launcher nor the ranks have named the processes.
    NoNames,
    NullMap,
    NoMemory,
    TooManyRanks,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Launcher(error) => write!(f, "{error}"),
            Error::NotRegistered(rank) => write!(
                f,
                "rank {rank} has not registered; every rank calls cnos_register_ptlid, or none"
            ),
            Error::NoNames => write!(
                f,
                "no names of ranks: start the program with yod, or call cnos_register_ptlid first"
            ),
            Error::NullMap => write!(f, "cnos_get_nidpid_map was given no place for the map"),
            Error::NoMemory => write!(f, "no memory for the map"),
            Error::TooManyRanks => write!(f, "more ranks than an int can count"),
        }
    }
}
