//! Option bits, with the values of the Portals 4.3 header.

/// `PTL_IOVEC`: `start` points to an array of pieces, `length` counts them.
pub const IOVEC: u32 = 1;

/// `PTL_NI_MATCHING`
pub const NI_MATCHING: u32 = 1;
/// `PTL_NI_NO_MATCHING`
pub const NI_NO_MATCHING: u32 = 1 << 1;
/// `PTL_NI_LOGICAL`
pub const NI_LOGICAL: u32 = 1 << 2;
/// `PTL_NI_PHYSICAL`
pub const NI_PHYSICAL: u32 = 1 << 3;

/// `PTL_TARGET_BIND_INACCESSIBLE`
pub const FEATURE_BIND_INACCESSIBLE: u32 = 1;
/// `PTL_TOTAL_DATA_ORDERING`
pub const FEATURE_TOTAL_DATA_ORDERING: u32 = 1 << 1;
/// `PTL_COHERENT_ATOMICS`
pub const FEATURE_COHERENT_ATOMICS: u32 = 1 << 2;

/// `PTL_PT_ONLY_USE_ONCE`
pub const PT_ONLY_USE_ONCE: u32 = 1;
/// `PTL_PT_FLOWCTRL`
pub const PT_FLOWCTRL: u32 = 1 << 1;
/// `PTL_PT_ONLY_TRUNCATE`
pub const PT_ONLY_TRUNCATE: u32 = 1 << 2;
/// `PTL_PT_MATCH_UNORDERED`
pub const PT_MATCH_UNORDERED: u32 = 1 << 3;
/// `PTL_PT_ALLOC_DISABLED`
pub const PT_ALLOC_DISABLED: u32 = 1 << 4;
/// Every option of a portal table entry.
pub const PT_ALL: u32 = 0x1f;

/// `PTL_MD_EVENT_CT_SEND`
pub const MD_EVENT_CT_SEND: u32 = 1 << 1;
/// `PTL_MD_EVENT_CT_REPLY`
pub const MD_EVENT_CT_REPLY: u32 = 1 << 2;
/// `PTL_MD_EVENT_CT_ACK`
pub const MD_EVENT_CT_ACK: u32 = 1 << 3;
/// `PTL_MD_UNORDERED`
pub const MD_UNORDERED: u32 = 1 << 4;
/// `PTL_MD_EVENT_SUCCESS_DISABLE`
pub const MD_EVENT_SUCCESS_DISABLE: u32 = 1 << 5;
/// `PTL_MD_VOLATILE`
pub const MD_VOLATILE: u32 = 1 << 6;
/// `PTL_MD_EVENT_SEND_DISABLE`
pub const MD_EVENT_SEND_DISABLE: u32 = 1 << 7;
/// `PTL_MD_UNRELIABLE`
pub const MD_UNRELIABLE: u32 = 1 << 8;
/// `PTL_MD_EVENT_CT_BYTES`
pub const MD_EVENT_CT_BYTES: u32 = 1 << 14;
/// Every option of a memory descriptor.
pub const MD_ALL: u32 = 0x41ff;

/// `PTL_ME_OP_PUT`
pub const ME_OP_PUT: u32 = 1 << 1;
/// `PTL_ME_OP_GET`
pub const ME_OP_GET: u32 = 1 << 2;
/// `PTL_ME_USE_ONCE`
pub const ME_USE_ONCE: u32 = 1 << 3;
/// `PTL_ME_UNEXPECTED_HDR_DISABLE`
pub const ME_UNEXPECTED_HDR_DISABLE: u32 = 1 << 4;
/// `PTL_ME_IS_ACCESSIBLE`
pub const ME_IS_ACCESSIBLE: u32 = 1 << 5;
/// `PTL_ME_EVENT_LINK_DISABLE`
pub const ME_EVENT_LINK_DISABLE: u32 = 1 << 6;
/// `PTL_ME_EVENT_COMM_DISABLE`
pub const ME_EVENT_COMM_DISABLE: u32 = 1 << 7;
/// `PTL_ME_EVENT_FLOWCTRL_DISABLE`
pub const ME_EVENT_FLOWCTRL_DISABLE: u32 = 1 << 8;
/// `PTL_ME_EVENT_SUCCESS_DISABLE`
pub const ME_EVENT_SUCCESS_DISABLE: u32 = 1 << 9;
/// `PTL_ME_EVENT_OVER_DISABLE`
pub const ME_EVENT_OVER_DISABLE: u32 = 1 << 10;
/// `PTL_ME_EVENT_UNLINK_DISABLE`
pub const ME_EVENT_UNLINK_DISABLE: u32 = 1 << 11;
/// `PTL_ME_EVENT_CT_COMM`
pub const ME_EVENT_CT_COMM: u32 = 1 << 12;
/// `PTL_ME_EVENT_CT_OVERFLOW`
pub const ME_EVENT_CT_OVERFLOW: u32 = 1 << 13;
/// `PTL_ME_EVENT_CT_BYTES`
pub const ME_EVENT_CT_BYTES: u32 = 1 << 14;
/// `PTL_ME_MANAGE_LOCAL`
pub const ME_MANAGE_LOCAL: u32 = 1 << 15;
/// `PTL_ME_NO_TRUNCATE`
pub const ME_NO_TRUNCATE: u32 = 1 << 16;
/// `PTL_ME_MAY_ALIGN`
pub const ME_MAY_ALIGN: u32 = 1 << 17;
/// `PTL_ME_LOCAL_INC_UH_RLENGTH`
pub const ME_LOCAL_INC_UH_RLENGTH: u32 = 1 << 18;
/// `PTL_ME_ACK_DISABLE`, which 4.3 dropped: no acknowledgement leaves this entry.
pub const ME_ACK_DISABLE: u32 = 1 << 19;
/// Every option of a list entry.
pub const LE_ALL: u32 = 0x7fff | ME_ACK_DISABLE;
/// Every option of a match list entry.
pub const ME_ALL: u32 = 0xf_ffff;
