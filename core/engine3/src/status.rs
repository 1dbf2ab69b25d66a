//! Status registers (section 3.2.7).

use crate::Interface;
use lintel_memory::Span;
use lintel_types::portals3::{Error, Result};

/// The numbers of the status registers: `ptl_sr_index_t`. The specification has
/// [`DROP_COUNT`](register::DROP_COUNT), the others are the reference implementation's.
pub mod register {
    /// Messages dropped: requests, replies and acknowledgements.
    pub const DROP_COUNT: u32 = 0;
    /// Bytes requested by the messages dropped.
    pub const DROP_LENGTH: u32 = 1;
    /// Requests that a descriptor has taken.
    pub const RECV_COUNT: u32 = 2;
    /// Bytes moved by the requests taken.
    pub const RECV_LENGTH: u32 = 3;
    /// Operations started, as their initiator.
    pub const SEND_COUNT: u32 = 4;
    /// Bytes requested by the operations started.
    pub const SEND_LENGTH: u32 = 5;
    /// Indices of the portal table.
    pub const PTLS_MAX: u32 = 6;
    /// Those whose match list isn't empty.
    pub const PTLS_CUR: u32 = 7;
    /// Messages under way: ever, ended, most at one time, now.
    pub const MSGS: u32 = 8;
    /// Match entries: ever, freed, most at one time, now.
    pub const MES: u32 = 12;
    /// Memory descriptors: ever, freed, most at one time, now.
    pub const MDS: u32 = 16;
    /// Event queues: ever, freed, most at one time, now.
    pub const EQS: u32 = 20;
    /// Length of the match list at a portal table index, which stands in bits 16 up.
    pub const MLIST_LEN: u32 = (1 << 31) | (MES + 3);
    /// Its greatest length so far.
    pub const MLIST_MAX: u32 = (1 << 31) | (MES + 2);
}

/// How many of a kind there were and are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Gauge {
    added: u64,
    removed: u64,
    most: u64,
}

impl Gauge {
    #[inline]
    pub(crate) fn add(&mut self) {
        self.added += 1;
        self.most = self.most.max(self.added - self.removed);
    }

    #[inline]
    pub(crate) fn remove(&mut self) {
        self.removed += 1;
    }

    /// One that comes and goes.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.most = self.most.max(self.added - self.removed + 1);
        self.added += 1;
        self.removed += 1;
    }

    fn read(&self, which: u32) -> u64 {
        match which {
            0 => self.added,
            1 => self.removed,
            2 => self.most,
            _ => self.added - self.removed,
        }
    }
}

/// Messages, and their bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    count: u64,
    length: u64,
}

impl Traffic {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(crate) fn add(&mut self, length: u64) {
        self.count += 1;
        self.length = self.length.wrapping_add(length);
    }
}

#[derive(Default)]
pub(crate) struct Status {
    pub(crate) dropped: Traffic,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
    pub(crate) messages: Gauge,
    pub(crate) entries: Gauge,
    pub(crate) descriptors: Gauge,
    pub(crate) queues: Gauge,
    /// Greatest length of each match list, as far as any was longer than 0.
    longest: alloc::vec::Vec<u32>,
}

impl Status {
    /// The match list at a portal table index has become longer.
    pub(crate) fn list_grew(&mut self, portal: usize, length: usize) {
        if self.longest.len() <= portal {
            self.longest.resize(portal + 1, 0);
        }
        self.longest[portal] = self.longest[portal].max(length as u32);
    }
}

impl<S: Span> Interface<S> {
    /// PtlNIStatus: the value of a status [`register`].
    ///
    /// # Errors
    /// `SrIndexInvalid` for a number that is no register.
    pub fn status(&self, number: u32) -> Result<u64> {
        let status = &self.status;
        Ok(match number {
            register::DROP_COUNT => status.dropped.count,
            register::DROP_LENGTH => status.dropped.length,
            register::RECV_COUNT => status.received.count,
            register::RECV_LENGTH => status.received.length,
            register::SEND_COUNT => status.sent.count,
            register::SEND_LENGTH => status.sent.length,
            register::PTLS_MAX => self.portals.len() as u64,
            register::PTLS_CUR => self.lists_in_use(),
            8..=11 => status.messages.read(number - register::MSGS),
            12..=15 => status.entries.read(number - register::MES),
            16..=19 => status.descriptors.read(number - register::MDS),
            20..=23 => status.queues.read(number - register::EQS),
            0x8000_0000.. => return self.list_status(number),
            _ => return Err(Error::SrIndexInvalid),
        })
    }

    fn lists_in_use(&self) -> u64 {
        let lists = self.portals.iter();
        lists.filter(|list| !list.is_empty()).count() as u64
    }

    fn list_status(&self, number: u32) -> Result<u64> {
        let portal = (number >> 16 & 0x7fff) as usize;
        let list = self.portals.get(portal).ok_or(Error::SrIndexInvalid)?;
        match number & !(0x7fff << 16) {
            register::MLIST_LEN => Ok(list.len() as u64),
            register::MLIST_MAX => {
                let longest = self.status.longest.get(portal);
                Ok(longest.copied().unwrap_or(0).into())
            }
            _ => Err(Error::SrIndexInvalid),
        }
    }
}
