//! From PtlInit to PtlFini: opening and closing the interface.

use crate::core::Core;
use crate::library::Library;
use crate::lifecycle::CLOSE_TIMEOUT;
use crate::portals3::names::{from_network, to_network};
use crate::portals3::owner::Owner3;
use crate::portals3::state::OpenInterface;
use lintel_claim::Lease;
use lintel_engine3::{Config, Dialect, Interface};
use lintel_nal::Nal;
use lintel_types::portals3::{Error, Limits, Result};
use lintel_types::{Error as Error4, Handle, InterfaceNumber, Kind};
use serde::{Deserialize, Serialize};

/// The interfaces of the reference implementation; the first is PTL_IFACE_DEFAULT.
const REFERENCE: std::ops::RangeInclusive<u32> = 0xf0f0_f000..=0xf0f0_f003;
/// The one interface of a process.
pub(crate) const NUMBER: InterfaceNumber = InterfaceNumber::ALL[0];

/// What PtlNIInit is given.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The interface's number, which chooses the dialect.
    pub iface: u32,
    /// The pid wanted, or `PTL_PID_ANY`.
    pub pid: u32,
    /// The limits wanted; without, the defaults.
    pub limits: Option<Limits>,
    /// The job that the process belongs to.
    pub jid: u32,
}

impl<O: Owner3> Library<O> {
    /// PtlNIInit. Counted; an interface that is open already keeps its limits.
    ///
    /// # Errors
    /// `NoInit`; `IfaceInvalid` for a number that isn't one, or isn't the open interface's;
    /// `PidInvalid`, `NoSpace`, `Fail` where shared memory can't be had.
    pub fn open3(&self, opening: Opening) -> Result<(Handle, Limits)> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let settings = self.settings().map_err(|_| Error::Fail)?;
        let dialect = dialect(opening.iface).ok_or(Error::IfaceInvalid)?;
        let dialect = settings.dialect.unwrap_or(dialect);
        let pid = to_network(opening.pid).ok_or(Error::PidInvalid)?;
        let _opening = self.opening.lock();
        let open = self.with_core(|core| core.protocol.open.as_ref().map(|opened| opened.iface));
        if open.flatten().is_some_and(|iface| iface != opening.iface) {
            return Err(Error::IfaceInvalid);
        }
        self.join(pid).map_err(|error| match error {
            Error4::PidInUse | Error4::ArgInvalid => Error::PidInvalid,
            Error4::NoSpace => Error::NoSpace,
            _ => Error::Fail,
        })?;
        self.with_core(|core| use_interface(core, opening, dialect))
            .ok_or(Error::NoInit)
    }

    /// PtlNIFini. The last one closes the interface.
    ///
    /// # Errors
    /// `NoInit`, `NiInvalid`
    pub fn close3(&self, handle: Handle) -> Result<()> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let generations = self.opening.lock();
        let last = self.with_core(|core| {
            let opened = core.protocol.open.as_mut().ok_or(Error::NiInvalid)?;
            if handle != interface_handle(opened) {
                return Err(Error::NiInvalid);
            }
            opened.references -= 1;
            Ok(opened.references == 0)
        });
        if last.unwrap_or(Err(Error::NiInvalid))? {
            self.close_protocol(CLOSE_TIMEOUT);
            self.leave(CLOSE_TIMEOUT);
        }
        drop(generations);
        Ok(())
    }
}

/// The handle of an open interface.
pub(crate) fn interface_handle<O: Owner3>(opened: &OpenInterface<O>) -> Handle {
    Handle::new(Kind::Interface, NUMBER, opened.generation, 0)
}

/// The dialect that an interface's number chooses: Cray's numbers are a bridge, 0 to 2, and
/// below it a NAL, 1 or 2.
fn dialect(iface: u32) -> Option<Dialect> {
    match (iface >> 16, iface & 0xffff) {
        _ if REFERENCE.contains(&iface) => Some(Dialect::Specification),
        (0..=2, 1..=2) => Some(Dialect::Cray),
        _ => None,
    }
}

fn use_interface<O: Owner3>(
    core: &mut Core<O>,
    opening: Opening,
    dialect: Dialect,
) -> (Handle, Limits) {
    let Core {
        transports,
        owner,
        protocol,
        ..
    } = core;
    let opened = protocol.open.get_or_insert_with(|| {
        let mut next = owner.shared().next.lock();
        let (generation, tokens) = *next;
        let limits = owner.limits3(opening.limits.unwrap_or(Limits::DEFAULT));
        let mut interface = Box::new(Interface::new(Config {
            number: NUMBER,
            dialect,
            limits,
            process: from_network(transports.me),
            uid: owner.uid(),
            jid: opening.jid,
            eager: owner.eager(transports.nal.capabilities().eager),
            generation,
        }));
        interface.begin_with(tokens);
        // Far enough that handles of this interface stay stale for long.
        next.0 = (generation + 97) % Handle::GENERATIONS;
        OpenInterface {
            interface,
            iface: opening.iface,
            references: 0,
            generation,
            lease: Lease::new(),
        }
    });
    opened.references += 1;
    (interface_handle(opened), *opened.interface.limits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_interface_chooses_the_dialect() {
        assert_eq!(dialect(0xf0f0_f000), Some(Dialect::Specification));
        assert_eq!(dialect(0xf0f0_f003), Some(Dialect::Specification));
        for cray in [1, 2, 0x1_0001, 0x2_0001, 0x2_0002] {
            assert_eq!(dialect(cray), Some(Dialect::Cray));
        }
        for none in [0, 3, 0x3_0001, 0xf0f0_f004, u32::MAX] {
            assert_eq!(dialect(none), None);
        }
    }
}
