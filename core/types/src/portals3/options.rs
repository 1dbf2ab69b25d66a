//! Options of memory descriptors.

use bitflags::bitflags;

bitflags! {
    /// Options of a memory descriptor. A set keeps bits that it has no name for; the engine
    /// refuses them.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(from = "u32", into = "u32"))]
    #[repr(transparent)]
    pub struct MdOptions: u32 {
        /// `PTL_MD_OP_PUT`: it takes puts.
        const OP_PUT = 0x1;
        /// `PTL_MD_OP_GET`: it takes gets.
        const OP_GET = 0x2;
        /// `PTL_MD_MANAGE_REMOTE`: the initiator chooses the offset.
        const MANAGE_REMOTE = 0x4;
        /// `PTL_MD_TRUNCATE`: longer messages are cut.
        const TRUNCATE = 0x8;
        /// `PTL_MD_ACK_DISABLE`: puts aren't acknowledged.
        const ACK_DISABLE = 0x10;
        /// `PTL_MD_IOVEC`: `start` is an array, `length` counts its entries.
        const IOVEC = 0x20;
        /// `PTL_MD_MAX_SIZE`: `max_size` is in force.
        const MAX_SIZE = 0x40;
        /// `PTL_MD_EVENT_START_DISABLE`: no START events.
        const EVENT_START_DISABLE = 0x80;
        /// `PTL_MD_EVENT_END_DISABLE`: no END events.
        const EVENT_END_DISABLE = 0x100;
        /// `PTL_MD_EVENT_AUTO_UNLINK_ENABLE` (Cray): an event when the library unlinks it.
        const EVENT_AUTO_UNLINK_ENABLE = 0x200;
        /// `PTL_MD_EVENT_MANUAL_UNLINK_ENABLE` (Cray): an event when the caller unlinks it.
        const EVENT_MANUAL_UNLINK_ENABLE = 0x400;
        /// `PTL_MD_FLAG_AUTO_UNLINK` (Cray); without effect.
        const FLAG_AUTO_UNLINK = 0x800;
        /// `PTL_MD_PHYS` (Cray); without effect.
        const PHYS = 0x1000;
        /// `PTL_MD_LOCAL_ALIGN8` (Cray); without effect.
        const LOCAL_ALIGN8 = 0x2000;
        /// `PTL_MD_LUSTRE_COMPLETION_SEMANTICS` (Cray); without effect.
        const LUSTRE_COMPLETION_SEMANTICS = 0x4000;
    }
}

impl From<MdOptions> for u32 {
    fn from(options: MdOptions) -> u32 {
        options.bits()
    }
}

impl From<u32> for MdOptions {
    fn from(bits: u32) -> Self {
        MdOptions::from_bits_retain(bits)
    }
}
