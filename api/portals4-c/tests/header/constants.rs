//! Every constant of `portals4.h`.

use crate::printed;
use lintel_claim::{Datatype, Operation};
use lintel_header_check::{Row, rows};
use lintel_types::options::*;
use lintel_types::{
    AckRequest, Error, EventKind, Handle, List, NiFail, PT_ANY, ProcessId, UID_ANY,
};

const NAMES: &[Row] = rows! {
    PTL_EQ_NONE = Handle::EQ_NONE.0;
    PTL_CT_NONE = Handle::CT_NONE.0;
    PTL_INVALID_HANDLE = Handle::INVALID.0;
    PTL_PID_ANY = ProcessId::PID_ANY;
    PTL_NID_ANY = ProcessId::NID_ANY;
    PTL_RANK_ANY = ProcessId::RANK_ANY;
    PTL_UID_ANY = UID_ANY;
    PTL_PT_ANY = PT_ANY;
    PTL_SIZE_MAX = u64::MAX;
    PTL_NO_ACK_REQ = AckRequest::None;
    PTL_ACK_REQ = AckRequest::Full;
    PTL_CT_ACK_REQ = AckRequest::Counting;
    PTL_OC_ACK_REQ = AckRequest::OperationCompleted;
    PTL_PRIORITY_LIST = List::Priority;
    PTL_OVERFLOW_LIST = List::Overflow;
};

const FAILURES: &[Row] = rows! {
    PTL_NI_OK = NiFail::Ok;
    PTL_NI_UNDELIVERABLE = NiFail::Undeliverable;
    PTL_NI_DROPPED = NiFail::Dropped;
    PTL_NI_PT_DISABLED = NiFail::PtDisabled;
    PTL_NI_PERM_VIOLATION = NiFail::PermViolation;
    PTL_NI_OP_VIOLATION = NiFail::OpViolation;
    PTL_NI_NO_MATCH = NiFail::NoMatch;
    PTL_NI_SEGV = NiFail::Segv;
};

const OPTIONS: &[Row] = rows! {
    PTL_IOVEC = IOVEC;
    PTL_NI_MATCHING = NI_MATCHING;
    PTL_NI_NO_MATCHING = NI_NO_MATCHING;
    PTL_NI_LOGICAL = NI_LOGICAL;
    PTL_NI_PHYSICAL = NI_PHYSICAL;
    PTL_NI_INIT_OPTIONS_MASK = NI_MATCHING | NI_NO_MATCHING | NI_LOGICAL | NI_PHYSICAL;
    PTL_TARGET_BIND_INACCESSIBLE = FEATURE_BIND_INACCESSIBLE;
    PTL_TOTAL_DATA_ORDERING = FEATURE_TOTAL_DATA_ORDERING;
    PTL_COHERENT_ATOMICS = FEATURE_COHERENT_ATOMICS;
    PTL_PT_ONLY_USE_ONCE = PT_ONLY_USE_ONCE;
    PTL_PT_FLOWCTRL = PT_FLOWCTRL;
    PTL_PT_ONLY_TRUNCATE = PT_ONLY_TRUNCATE;
    PTL_PT_MATCH_UNORDERED = PT_MATCH_UNORDERED;
    PTL_PT_ALLOC_DISABLED = PT_ALLOC_DISABLED;
    PTL_PT_ALLOC_OPTIONS_MASK = PT_ALL;
    PTL_MD_EVENT_CT_SEND = MD_EVENT_CT_SEND;
    PTL_MD_EVENT_CT_REPLY = MD_EVENT_CT_REPLY;
    PTL_MD_EVENT_CT_ACK = MD_EVENT_CT_ACK;
    PTL_MD_UNORDERED = MD_UNORDERED;
    PTL_MD_EVENT_SUCCESS_DISABLE = MD_EVENT_SUCCESS_DISABLE;
    PTL_MD_VOLATILE = MD_VOLATILE;
    PTL_MD_EVENT_SEND_DISABLE = MD_EVENT_SEND_DISABLE;
    PTL_MD_UNRELIABLE = MD_UNRELIABLE;
    PTL_MD_EVENT_CT_BYTES = MD_EVENT_CT_BYTES;
    PTL_MD_OPTIONS_MASK = MD_ALL;
    PTL_ME_OP_PUT = ME_OP_PUT;
    PTL_ME_OP_GET = ME_OP_GET;
    PTL_ME_USE_ONCE = ME_USE_ONCE;
    PTL_ME_UNEXPECTED_HDR_DISABLE = ME_UNEXPECTED_HDR_DISABLE;
    PTL_ME_IS_ACCESSIBLE = ME_IS_ACCESSIBLE;
    PTL_ME_EVENT_LINK_DISABLE = ME_EVENT_LINK_DISABLE;
    PTL_ME_EVENT_COMM_DISABLE = ME_EVENT_COMM_DISABLE;
    PTL_ME_EVENT_FLOWCTRL_DISABLE = ME_EVENT_FLOWCTRL_DISABLE;
    PTL_ME_EVENT_SUCCESS_DISABLE = ME_EVENT_SUCCESS_DISABLE;
    PTL_ME_EVENT_OVER_DISABLE = ME_EVENT_OVER_DISABLE;
    PTL_ME_EVENT_UNLINK_DISABLE = ME_EVENT_UNLINK_DISABLE;
    PTL_ME_EVENT_CT_COMM = ME_EVENT_CT_COMM;
    PTL_ME_EVENT_CT_OVERFLOW = ME_EVENT_CT_OVERFLOW;
    PTL_ME_EVENT_CT_BYTES = ME_EVENT_CT_BYTES;
    PTL_ME_MANAGE_LOCAL = ME_MANAGE_LOCAL;
    PTL_ME_NO_TRUNCATE = ME_NO_TRUNCATE;
    PTL_ME_MAY_ALIGN = ME_MAY_ALIGN;
    PTL_ME_LOCAL_INC_UH_RLENGTH = ME_LOCAL_INC_UH_RLENGTH;
    PTL_ME_ACK_DISABLE = ME_ACK_DISABLE;
    PTL_ME_APPEND_OPTIONS_MASK = ME_ALL & !ME_ACK_DISABLE;
    PTL_LE_APPEND_OPTIONS_MASK = LE_ALL & !ME_ACK_DISABLE;
};

/// A list entry's options are a match entry's.
const LE_OPTIONS: &[Row] = rows! {
    PTL_LE_OP_PUT = ME_OP_PUT;
    PTL_LE_OP_GET = ME_OP_GET;
    PTL_LE_USE_ONCE = ME_USE_ONCE;
    PTL_LE_UNEXPECTED_HDR_DISABLE = ME_UNEXPECTED_HDR_DISABLE;
    PTL_LE_IS_ACCESSIBLE = ME_IS_ACCESSIBLE;
    PTL_LE_EVENT_LINK_DISABLE = ME_EVENT_LINK_DISABLE;
    PTL_LE_EVENT_COMM_DISABLE = ME_EVENT_COMM_DISABLE;
    PTL_LE_EVENT_FLOWCTRL_DISABLE = ME_EVENT_FLOWCTRL_DISABLE;
    PTL_LE_EVENT_SUCCESS_DISABLE = ME_EVENT_SUCCESS_DISABLE;
    PTL_LE_EVENT_OVER_DISABLE = ME_EVENT_OVER_DISABLE;
    PTL_LE_EVENT_UNLINK_DISABLE = ME_EVENT_UNLINK_DISABLE;
    PTL_LE_EVENT_CT_COMM = ME_EVENT_CT_COMM;
    PTL_LE_EVENT_CT_OVERFLOW = ME_EVENT_CT_OVERFLOW;
    PTL_LE_EVENT_CT_BYTES = ME_EVENT_CT_BYTES;
    PTL_LE_ACK_DISABLE = ME_ACK_DISABLE;
};

const EVENTS: &[Row] = rows! {
    PTL_EVENT_GET = EventKind::Get;
    PTL_EVENT_GET_OVERFLOW = EventKind::GetOverflow;
    PTL_EVENT_PUT = EventKind::Put;
    PTL_EVENT_PUT_OVERFLOW = EventKind::PutOverflow;
    PTL_EVENT_ATOMIC = EventKind::Atomic;
    PTL_EVENT_ATOMIC_OVERFLOW = EventKind::AtomicOverflow;
    PTL_EVENT_FETCH_ATOMIC = EventKind::FetchAtomic;
    PTL_EVENT_FETCH_ATOMIC_OVERFLOW = EventKind::FetchAtomicOverflow;
    PTL_EVENT_REPLY = EventKind::Reply;
    PTL_EVENT_SEND = EventKind::Send;
    PTL_EVENT_ACK = EventKind::Ack;
    PTL_EVENT_PT_DISABLED = EventKind::PtDisabled;
    PTL_EVENT_LINK = EventKind::Link;
    PTL_EVENT_AUTO_UNLINK = EventKind::AutoUnlink;
    PTL_EVENT_AUTO_FREE = EventKind::AutoFree;
    PTL_EVENT_SEARCH = EventKind::Search;
};

const ATOMICS: &[Row] = rows! {
    PTL_MIN = Operation::Min;
    PTL_MAX = Operation::Max;
    PTL_SUM = Operation::Sum;
    PTL_PROD = Operation::Prod;
    PTL_LOR = Operation::Lor;
    PTL_LAND = Operation::Land;
    PTL_BOR = Operation::Bor;
    PTL_BAND = Operation::Band;
    PTL_LXOR = Operation::Lxor;
    PTL_BXOR = Operation::Bxor;
    PTL_SWAP = Operation::Swap;
    PTL_CSWAP = Operation::CswapEq;
    PTL_CSWAP_NE = Operation::CswapNe;
    PTL_CSWAP_LE = Operation::CswapLe;
    PTL_CSWAP_LT = Operation::CswapLt;
    PTL_CSWAP_GE = Operation::CswapGe;
    PTL_CSWAP_GT = Operation::CswapGt;
    PTL_MSWAP = Operation::Mswap;
    PTL_OP_LAST = Operation::ALL.len();
    PTL_INT8_T = Datatype::Int8;
    PTL_UINT8_T = Datatype::Uint8;
    PTL_INT16_T = Datatype::Int16;
    PTL_UINT16_T = Datatype::Uint16;
    PTL_INT32_T = Datatype::Int32;
    PTL_UINT32_T = Datatype::Uint32;
    PTL_FLOAT = Datatype::Float;
    PTL_INT64_T = Datatype::Int64;
    PTL_UINT64_T = Datatype::Uint64;
    PTL_DOUBLE = Datatype::Double;
    PTL_FLOAT_COMPLEX = Datatype::FloatComplex;
    PTL_DOUBLE_COMPLEX = Datatype::DoubleComplex;
    PTL_LONG_DOUBLE = Datatype::LongDouble;
    PTL_LONG_DOUBLE_COMPLEX = Datatype::LongDoubleComplex;
    PTL_DATATYPE_LAST = Datatype::ALL.len();
};

/// Numbers that have no constant on the Rust side.
const PLAIN: &[Row] = rows! {
    PTL_OK = 0;
    PTL_STATUS_LAST = Error::PtInUse as i32 + 1;
    PTL_INTERRUPTED = 16;
    PTL_IFACE_DEFAULT = u32::MAX;
    PTL_TIME_FOREVER = u32::MAX;
    PTL_PID_MAX = 1024;
    PTL_SEARCH_ONLY = 0;
    PTL_SEARCH_DELETE = 1;
    PTL_SR_DROP_COUNT = 0;
    PTL_SR_PERMISSION_VIOLATIONS = 1;
    PTL_SR_OPERATION_VIOLATIONS = 2;
    PTL_SR_LAST = 3;
    PTL_CT_OPERATION = 0;
    PTL_CT_BYTE = 1;
};

/// The return codes, by the table that every reader of a code uses.
fn codes() -> Vec<Row> {
    Error::all()
        .map(|error| (error.name(), error as u64))
        .collect()
}

fn all() -> Vec<Row> {
    let tables = [NAMES, FAILURES, OPTIONS, LE_OPTIONS, EVENTS, ATOMICS, PLAIN];
    [tables.concat(), codes()].concat()
}

#[test]
fn constants_have_the_same_values() {
    printed().assert_same("constants", &all());
}

#[test]
fn no_constant_of_the_header_is_left_out() {
    printed().assert_complete("portals4.h", &all());
}
