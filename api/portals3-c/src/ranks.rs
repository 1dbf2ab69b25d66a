//! The ranks of a job (`p3rt/p3rt.h`).

use crate::convert::{array, give, not_null};
use crate::group::{current, group};
use lintel_runtime::process3;
use lintel_types::portals3::{Error, Result};
use lintel_types::{Handle, ProcessId};
use portals33::Ranks;
use std::ffi::c_int;

/// A rank or size that stands for the launcher's.
const FROM_ENVIRONMENT: u32 = u32::MAX;
/// The most ranks of a job.
const MAX_RANKS: u32 = 1 << 24;

/// The calls take the open interface, or none before it is opened.
fn check(ni: Handle) -> Result<()> {
    match ni {
        Handle::INVALID => Ok(()),
        ni => process3().identity3(ni).map(drop),
    }
}

/// `PtlSetRank`
#[unsafe(no_mangle)]
pub extern "C" fn PtlSetRank(ni: Handle, rank: u32, group_size: u32) -> c_int {
    let set = || {
        check(ni)?;
        if rank == FROM_ENVIRONMENT || group_size == FROM_ENVIRONMENT {
            let launched = Ranks::from_env()?;
            *group() = launched.into();
            return Ok(());
        }
        group().set_rank(rank, group_size)
    };
    own_code(set())
}

/// `PtlSetNIDMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSetNIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int {
    let set = || {
        check(ni)?;
        let map = given_map(map, group_size)?;
        group().nids = Some(map);
        Ok(())
    };
    own_code(set())
}

/// `PtlSetPIDMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSetPIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int {
    let set = || {
        check(ni)?;
        let map = given_map(map, group_size)?;
        group().pids = Some(map);
        Ok(())
    };
    own_code(set())
}

/// `PtlSetJID`
#[unsafe(no_mangle)]
pub extern "C" fn PtlSetJID(jid: u32) -> c_int {
    own_code(group().set_jid(jid))
}

/// `PtlGetRank`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetRank(ni: Handle, rank: *mut u32, group_size: *mut u32) -> c_int {
    let read = || {
        check(ni)?;
        not_null(rank)?;
        not_null(group_size)?;
        current().rank.ok_or(Error::NoInit)
    };
    own_code(read().map(|(own, size)| {
        give(rank, own);
        give(group_size, size);
    }))
}

/// `PtlGetRankId`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetRankId(ni: Handle, rank: u32, id: *mut ProcessId) -> c_int {
    let read = || {
        check(ni)?;
        not_null(id)?;
        current().process(rank)
    };
    own_code(read().map(|process| give(id, process)))
}

/// `PtlGetNIDMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetNIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int {
    let read = || {
        check(ni)?;
        let nids = current().nids.ok_or(Error::NoInit)?;
        copy_map(&nids, map, group_size)
    };
    own_code(read())
}

/// `PtlGetPIDMap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetPIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int {
    let read = || {
        check(ni)?;
        let pids = current().pids.ok_or(Error::NoInit)?;
        copy_map(&pids, map, group_size)
    };
    own_code(read())
}

/// The code of a call that a process may make before PtlInit.
fn own_code(result: Result<()>) -> c_int {
    result.err().map_or(0, |error| error as c_int)
}

fn given_map(map: *const u32, size: u32) -> Result<Vec<u32>> {
    if size > MAX_RANKS {
        return Err(Error::Fail);
    }
    group().check_size(size as usize)?;
    Ok(array(map, size as usize)?.to_vec())
}

fn copy_map(from: &[u32], map: *mut u32, size: u32) -> Result<()> {
    not_null(map)?;
    if from.len() != size as usize {
        return Err(Error::Fail);
    }
    for (rank, value) in from.iter().enumerate() {
        give(map.wrapping_add(rank), *value);
    }
    Ok(())
}
