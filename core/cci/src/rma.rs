//! Remote memory: what is registered here, and checks of access to it.

use crate::connection::ConnectionId;
use crate::endpoint::Outgoing;
use crate::frame::Frame;
use crate::sending::Direction;
use crate::status::Status;
use alloc::collections::BTreeMap;

/// What peers may do with registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// `CCI_FLAG_READ`
    pub read: bool,
    /// `CCI_FLAG_WRITE`
    pub write: bool,
}

/// Part of registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Names the registration.
    pub key: u64,
    /// Bytes from its start.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// A remote memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RmaRequest {
    /// Read or write.
    pub direction: Direction,
    /// Memory of this endpoint.
    pub local: Region,
    /// The peer's key.
    pub remote_key: u64,
    /// Bytes from the start of the peer's registration.
    pub remote_offset: u64,
    /// Begins when all earlier accesses of the connection have ended (`CCI_FLAG_FENCE`).
    pub fence: bool,
}

impl RmaRequest {
    pub(crate) fn to_frame<'a, F, B>(
        self,
        to: ConnectionId,
        sequence: u32,
    ) -> (Frame, Outgoing<'a, F, B>) {
        let is_read = self.direction == Direction::Read;
        let frame = Frame::Rma {
            to,
            sequence,
            is_read,
            key: self.remote_key,
            offset: self.remote_offset,
            length: self.local.length,
        };
        let body = match is_read {
            true => Outgoing::LentToFill(self.local),
            false => Outgoing::LentToRead(self.local),
        };
        (frame, body)
    }
}

/// The registrations of an endpoint, by key.
pub(crate) struct Registrations {
    by_key: BTreeMap<u64, (u64, Access)>,
}

impl Registrations {
    pub(crate) fn new() -> Self {
        Registrations {
            by_key: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// False if the key is taken.
    pub(crate) fn insert(&mut self, key: u64, length: u64, access: Access) -> bool {
        if self.by_key.contains_key(&key) {
            return false;
        }
        self.by_key.insert(key, (length, access)).is_none()
    }

    pub(crate) fn remove(&mut self, key: u64) -> bool {
        self.by_key.remove(&key).is_some()
    }

    pub(crate) fn has(&self, key: u64) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Whether a part lies in its registration.
    pub(crate) fn holds(&self, part: Region) -> bool {
        let Some((length, _)) = self.by_key.get(&part.key) else {
            return false;
        };
        let end = part.offset.checked_add(part.length);
        end.is_some_and(|end| end <= *length)
    }

    /// What a peer's access to a part of its registration gets.
    ///
    /// A registration without any access flag allows both. The header has it that the flag
    /// must be there; the public library checks none, and programs register without.
    pub(crate) fn check(&self, part: Region, direction: Direction) -> Status {
        if !self.holds(part) {
            return Status::RmaHandle;
        }
        let access = self.by_key[&part.key].1;
        let is_allowed = match direction {
            Direction::Read => access.read,
            Direction::Write => access.write,
        };
        match is_allowed || !(access.read || access.write) {
            true => Status::Success,
            false => Status::RmaOperation,
        }
    }
}
