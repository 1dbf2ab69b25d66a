//! What the reference offers for debugging (`p3api/debug.h`).

use crate::convert::code;
use lintel_engine3::register;
use lintel_runtime::process3;
use lintel_types::Handle;
use lintel_types::portals3::Error;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// `PtlNIDebug`
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIDebug(ni: Handle, mask: u32) -> u32 {
    static MASK: AtomicU32 = AtomicU32::new(0);
    // There is one interface, and what is set without one holds for it.
    let _ = ni;
    MASK.swap(mask, Ordering::Relaxed)
}

/// `PtlTblDump`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTblDump(ni: Handle, pt_index: c_int) -> c_int {
    let print = || {
        let index = u32::try_from(pt_index).ok();
        // What the register's number has room for.
        let index = index.filter(|index| *index < 1 << 15);
        let index = index.ok_or(Error::PtIndexInvalid)?;
        let register = register::MLIST_LEN | index << 16;
        let length = process3().status3(ni, register);
        let length = length.map_err(|error| match error {
            Error::SrIndexInvalid => Error::PtIndexInvalid,
            other => other,
        })?;
        eprintln!("portals3: index {index}: {length} match entries");
        Ok(())
    };
    code(print())
}

/// `PtlMEDump`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMEDump(me: Handle) -> c_int {
    let print = || {
        let live = |error| match error {
            Error::HandleInvalid => Error::MeInvalid,
            other => other,
        };
        if !me.is(lintel_types::Kind::MatchEntry) {
            return Err(Error::MeInvalid);
        }
        process3().interface_of3(me).map_err(live)?;
        eprintln!("portals3: match entry {:#x} is in use", me.0);
        Ok(())
    };
    code(print())
}

/// `PtlNIEqDump`
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIEqDump(ni: Handle) -> c_int {
    code(process3().queue_lengths3(ni).map(|queues| {
        for (index, events, capacity) in queues {
            eprintln!("portals3: event queue {index}: {events} of {capacity} events");
        }
    }))
}
