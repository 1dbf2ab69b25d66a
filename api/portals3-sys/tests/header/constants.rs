//! Every constant of the headers.

use crate::printed;
use lintel_header_check::{Row, rows};
use lintel_types::portals3::{
    EQ_NONE, Error, EventKind, HANDLE_NONE, JID_ANY, MdOptions, NI_FAIL, NI_OK, NID_ANY, PID_ANY,
    PT_INDEX_ANY, Position, THRESHOLD_INFINITE, UID_ANY, Unlink,
};
use portals3_sys::{ACK_REQ, Handle, IFACE_DEFAULT, NO_ACK_REQ, TIME_FOREVER, registers};

const NAMES: &[Row] = rows! {
    PTL_INVALID_HANDLE = Handle::INVALID.0;
    PTL_HANDLE_NONE = HANDLE_NONE.0;
    PTL_EQ_NONE = EQ_NONE.0;
    PTL_NID_ANY = NID_ANY;
    PTL_PID_ANY = PID_ANY;
    PTL_UID_ANY = UID_ANY;
    PTL_JID_ANY = JID_ANY;
    PTL_PT_INDEX_ANY = PT_INDEX_ANY;
    PTL_TIME_FOREVER = TIME_FOREVER;
    PTL_MD_THRESH_INF = THRESHOLD_INFINITE;
    PTL_RETAIN = Unlink::Retain;
    PTL_UNLINK = Unlink::Unlink;
    PTL_INS_BEFORE = Position::Before;
    PTL_INS_AFTER = Position::After;
    PTL_ACK_REQ = ACK_REQ;
    PTL_NO_ACK_REQ = NO_ACK_REQ;
    PTL_NOACK_REQ = NO_ACK_REQ;
    PTL_NI_OK = NI_OK;
    PTL_NI_FAIL = NI_FAIL;
    PTL_IFACE_DEFAULT = IFACE_DEFAULT;
    PTL_IFACE_UTCP = IFACE_DEFAULT;
};

const OPTIONS: &[Row] = rows! {
    PTL_MD_OP_PUT = MdOptions::OP_PUT.bits();
    PTL_MD_OP_GET = MdOptions::OP_GET.bits();
    PTL_MD_MANAGE_REMOTE = MdOptions::MANAGE_REMOTE.bits();
    PTL_MD_TRUNCATE = MdOptions::TRUNCATE.bits();
    PTL_MD_ACK_DISABLE = MdOptions::ACK_DISABLE.bits();
    PTL_MD_IOVEC = MdOptions::IOVEC.bits();
    PTL_MD_MAX_SIZE = MdOptions::MAX_SIZE.bits();
    PTL_MD_EVENT_START_DISABLE = MdOptions::EVENT_START_DISABLE.bits();
    PTL_MD_EVENT_END_DISABLE = MdOptions::EVENT_END_DISABLE.bits();
    PTL_MD_EVENT_AUTO_UNLINK_ENABLE = MdOptions::EVENT_AUTO_UNLINK_ENABLE.bits();
    PTL_MD_EVENT_MANUAL_UNLINK_ENABLE = MdOptions::EVENT_MANUAL_UNLINK_ENABLE.bits();
    PTL_MD_FLAG_AUTO_UNLINK = MdOptions::FLAG_AUTO_UNLINK.bits();
    PTL_MD_PHYS = MdOptions::PHYS.bits();
    PTL_MD_LOCAL_ALIGN8 = MdOptions::LOCAL_ALIGN8.bits();
    PTL_MD_LUSTRE_COMPLETION_SEMANTICS = MdOptions::LUSTRE_COMPLETION_SEMANTICS.bits();
};

const EVENTS: &[Row] = rows! {
    PTL_EVENT_GET_START = EventKind::GetStart;
    PTL_EVENT_GET_END = EventKind::GetEnd;
    PTL_EVENT_PUT_START = EventKind::PutStart;
    PTL_EVENT_PUT_END = EventKind::PutEnd;
    PTL_EVENT_GETPUT_START = EventKind::GetPutStart;
    PTL_EVENT_GETPUT_END = EventKind::GetPutEnd;
    PTL_EVENT_REPLY_START = EventKind::ReplyStart;
    PTL_EVENT_REPLY_END = EventKind::ReplyEnd;
    PTL_EVENT_SEND_START = EventKind::SendStart;
    PTL_EVENT_SEND_END = EventKind::SendEnd;
    PTL_EVENT_ACK = EventKind::Ack;
    PTL_EVENT_UNLINK = EventKind::Unlink;
};

const REGISTERS: &[Row] = rows! {
    PTL_SR_DROP_COUNT = registers::DROP_COUNT;
    PTL_SR_DROP_LENGTH = registers::DROP_LENGTH;
    PTL_SR_RECV_COUNT = registers::RECV_COUNT;
    PTL_SR_RECV_LENGTH = registers::RECV_LENGTH;
    PTL_SR_SEND_COUNT = registers::SEND_COUNT;
    PTL_SR_SEND_LENGTH = registers::SEND_LENGTH;
    PTL_SR_MES_MAX = registers::MES_MAX;
    PTL_SR_MES_CUR = registers::MES_CUR;
    PTL_SR_MDS_MAX = registers::MDS_MAX;
    PTL_SR_MDS_CUR = registers::MDS_CUR;
    PTL_SR_EQS_MAX = registers::EQS_MAX;
    PTL_SR_EQS_CUR = registers::EQS_CUR;
};

/// Numbers that have no constant on the Rust side: registers that aren't kept, names of other
/// implementations.
const PLAIN: &[Row] = rows! {
    PTL_OK = 0;
    PTL_SR_PTLS_MAX = 6;
    PTL_SR_PTLS_CUR = 7;
    PTL_SR_MSGS_ALLOC = 8;
    PTL_SR_MSGS_FREED = 9;
    PTL_SR_MSGS_MAX = 10;
    PTL_SR_MSGS_CUR = 11;
    PTL_SR_MES_ALLOC = 12;
    PTL_SR_MES_FREED = 13;
    PTL_SR_MDS_ALLOC = 16;
    PTL_SR_MDS_FREED = 17;
    PTL_SR_EQS_ALLOC = 20;
    PTL_SR_EQS_FREED = 21;
    PTL_SR_MD_ALIGN_128 = 24;
    PTL_SR_MD_ALIGN_64 = 25;
    PTL_SR_MD_ALIGN_32 = 26;
    PTL_SR_MD_ALIGN_16 = 27;
    PTL_SR_MD_ALIGN_8 = 28;
    PTL_SR_NAL_REGS_START = 29;
    PTL_IFACE_DUP = 25;
    PTL_EQ_IN_USE = 26;
    PTL_VAL_FAILED = 27;
    PTL_NAL_FAILED = 28;
    PTL_PID_IN_USE = 29;
    PTL_INV_EQ_SIZE = 30;
    PTL_AGAIN = 31;
    PTL_NOT_IMPLEMENTED = 32;
    PTL_IOV_INVALID = 33;
    PTL_MAX_ERRNO = 34;
    PTL_EQ_HANDLER_NONE = 0;
    PTL_MAX_TRANS_SZ = (1u64 << 48) - 1;
    PTL_NALTYPE_NONE = 0;
    PTL_NALTYPE_UTCP = 0xf0f0_f000u32;
    PTL_NALTYPE_UTCP0 = 0xf0f0_f000u32;
    PTL_IFACE_UTCP0 = 0xf0f0_f000u32;
    PTL_NALTYPE_UTCP1 = 0xf0f0_f001u32;
    PTL_IFACE_UTCP1 = 0xf0f0_f001u32;
    PTL_NALTYPE_UTCP2 = 0xf0f0_f002u32;
    PTL_IFACE_UTCP2 = 0xf0f0_f002u32;
    PTL_NALTYPE_UTCP3 = 0xf0f0_f003u32;
    PTL_IFACE_UTCP3 = 0xf0f0_f003u32;
    PTL_IFACE_SS = 1;
    PTL_IFACE_SS_ACCEL = 2;
    PTL_BRIDGE_UK = 1;
    PTL_BRIDGE_QK = 2;
    CRAY_USER_NAL = 0x1_0001;
    CRAY_KERN_NAL = 1;
    CRAY_QK_NAL = 0x2_0001;
    CRAY_UK_SSNAL = 0x1_0001;
    CRAY_ACCEL = 0x2_0002;
};

/// The masks of `p3api/debug.h`.
const MASKS: &[Row] = rows! {
    PTL_DBG_NONE = 0;
    PTL_DBG_API = 1 << 0;
    PTL_DBG_PARSE = 1 << 1;
    PTL_DBG_MOVE = 1 << 2;
    PTL_DBG_DROP = 1 << 3;
    PTL_DBG_REQUEST = 1 << 4;
    PTL_DBG_DELIVERY = 1 << 5;
    PTL_DBG_MD = 1 << 6;
    PTL_DBG_ME = 1 << 7;
    PTL_DBG_UNLINK = 1 << 8;
    PTL_DBG_EQ = 1 << 9;
    PTL_DBG_EVENT = 1 << 10;
    PTL_DBG_MEMORY = 1 << 11;
    PTL_DBG_SETUP = 1 << 12;
    PTL_DBG_SHUTDOWN = 1 << 13;
    PTL_DBG_NI_00 = 1u32 << 16;
    PTL_DBG_NI_01 = 1u32 << 17;
    PTL_DBG_NI_02 = 1u32 << 18;
    PTL_DBG_NI_03 = 1u32 << 19;
    PTL_DBG_NI_04 = 1u32 << 20;
    PTL_DBG_NI_05 = 1u32 << 21;
    PTL_DBG_NI_06 = 1u32 << 22;
    PTL_DBG_NI_07 = 1u32 << 23;
    PTL_DBG_NI_08 = 1u32 << 24;
    PTL_DBG_NI_09 = 1u32 << 25;
    PTL_DBG_NI_10 = 1u32 << 26;
    PTL_DBG_NI_11 = 1u32 << 27;
    PTL_DBG_NI_12 = 1u32 << 28;
    PTL_DBG_NI_13 = 1u32 << 29;
    PTL_DBG_NI_14 = 1u32 << 30;
    PTL_DBG_NI_15 = 1u32 << 31;
    PTL_DBG_ALL = 0xffff;
    PTL_DBG_NI_ALL = 0xffff_0000u32;
    PTL_DEBUG_ALL = 0xffff;
    PTL_DEBUG_NI_ALL = 0xffff_0000u32;
};

/// What macros with parameters make of theirs.
const MACROS: &[Row] = &[
    (
        "PTL_SR_MLIST_LEN(3)",
        (registers::OF_LIST | 3 << 16 | registers::MES_CUR) as u64,
    ),
    (
        "PTL_SR_MLIST_MAX(3)",
        (registers::OF_LIST | 3 << 16 | registers::MES_MAX) as u64,
    ),
    ("NALID_FROM_IFACE(IFACE_FROM_BRIDGE_AND_NALID(2, 5))", 5),
];

/// The return codes, by the table that every reader of a code uses.
fn codes() -> Vec<Row> {
    Error::all()
        .map(|error| (error.name(), error as u64))
        .collect()
}

fn all() -> Vec<Row> {
    let tables = [NAMES, OPTIONS, EVENTS, REGISTERS, PLAIN, MASKS, MACROS];
    [tables.concat(), codes()].concat()
}

#[test]
fn constants_have_the_same_values() {
    printed().assert_same("constants", &all());
}

#[test]
fn no_constant_of_the_headers_is_left_out() {
    for header in ["portals3.h", "p3nal_utcp.h", "p3api/debug.h"] {
        printed().assert_complete(header, &all());
    }
}
