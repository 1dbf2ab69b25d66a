//! The access control table (section 3.12).

use crate::Interface;
use lintel_memory::Span;
use lintel_types::ProcessId;
use lintel_types::portals3::{Error, JID_ANY, NID_ANY, PID_ANY, PT_INDEX_ANY, Result, UID_ANY};
use lintel_wire::portals3::Request;

/// Who may reach which portal table index (section 3.12.1, PtlACEntry). Each field has a
/// wildcard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AccessEntry {
    /// The initiator; nid and pid each have a wildcard.
    pub process: ProcessId,
    /// The user that it belongs to, or `PTL_UID_ANY`.
    pub uid: u32,
    /// The job that it belongs to, or `PTL_JID_ANY`.
    pub jid: u32,
    /// The index that it may address, or `PTL_PT_INDEX_ANY`.
    pub portal: u32,
}

impl AccessEntry {
    /// Everyone may reach everything: what each entry of the table begins with.
    pub const OPEN: AccessEntry = AccessEntry {
        process: ProcessId {
            nid: NID_ANY,
            pid: PID_ANY,
        },
        uid: UID_ANY,
        jid: JID_ANY,
        portal: PT_INDEX_ANY,
    };

    /// Whether a request from there may pass.
    #[inline(always)]
    fn admits(&self, from: ProcessId, uid: u32, request: &Request) -> bool {
        let Self { jid, portal, .. } = *self;
        names(self.process, from)
            && (self.uid == UID_ANY || self.uid == uid)
            && (jid == JID_ANY || jid == request.jid)
            && (portal == PT_INDEX_ANY || portal == u32::from(request.portal))
    }
}

/// Whether an identifier with wildcards names a process (section 2.2).
#[inline]
pub(crate) fn names(pattern: ProcessId, process: ProcessId) -> bool {
    (pattern.nid == NID_ANY || pattern.nid == process.nid)
        && (pattern.pid == PID_ANY || pattern.pid == process.pid)
}

impl<S: Span> Interface<S> {
    /// PtlACEntry: replaces an entry of the access control table.
    ///
    /// # Errors
    /// `AcIndexInvalid`, `PtIndexInvalid` for an index beyond its table.
    pub fn access_entry(&mut self, index: u32, entry: AccessEntry) -> Result<()> {
        if entry.portal != PT_INDEX_ANY && entry.portal as usize >= self.portals.len() {
            return Err(Error::PtIndexInvalid);
        }
        let place = self.access.get_mut(index as usize);
        *place.ok_or(Error::AcIndexInvalid)? = entry;
        Ok(())
    }

    /// Whether the entry of the table that a request names lets it pass (section 2.3).
    #[inline]
    pub(crate) fn admits(&self, from: ProcessId, uid: u32, request: &Request) -> bool {
        let entry = self.access.get(usize::from(request.access));
        entry.is_some_and(|entry| entry.admits(from, uid, request))
    }
}
