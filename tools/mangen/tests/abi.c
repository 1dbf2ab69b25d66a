/*
 * The binary interface of portals4.h, written out a second time: a change of a value, a size or an
 * offset that programs already built rely on doesn't compile. The figures are those of the 4.3
 * reference implementation on x86-64.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include <portals4.h>
#include <portals4_ext.h>
#include <stddef.h>
#include <sys/uio.h>

#define SAME(a, b) _Static_assert((a) == (b), #a " is " #b)
#define UNSIGNED(type) SAME((type)-1 > 0, 1)
#define TYPE(type, size, align)  \
    SAME(sizeof(type), size); \
    SAME(_Alignof(type), align)
#define AT(type, member, offset, size)            \
    SAME(offsetof(type, member), offset); \
    SAME(sizeof(((type *)0)->member), size)

/* Scalars. */
TYPE(ptl_size_t, 8, 8);
UNSIGNED(ptl_size_t);
TYPE(ptl_pt_index_t, 4, 4);
UNSIGNED(ptl_pt_index_t);
TYPE(ptl_match_bits_t, 8, 8);
UNSIGNED(ptl_match_bits_t);
TYPE(ptl_hdr_data_t, 8, 8);
UNSIGNED(ptl_hdr_data_t);
TYPE(ptl_time_t, 4, 4);
UNSIGNED(ptl_time_t);
TYPE(ptl_interface_t, 4, 4);
UNSIGNED(ptl_interface_t);
TYPE(ptl_nid_t, 4, 4);
UNSIGNED(ptl_nid_t);
TYPE(ptl_pid_t, 4, 4);
UNSIGNED(ptl_pid_t);
TYPE(ptl_rank_t, 4, 4);
UNSIGNED(ptl_rank_t);
TYPE(ptl_uid_t, 4, 4);
UNSIGNED(ptl_uid_t);
TYPE(ptl_ni_fail_t, 1, 1);
UNSIGNED(ptl_ni_fail_t);
TYPE(ptl_list_t, 1, 1);
UNSIGNED(ptl_list_t);
TYPE(ptl_search_op_t, 1, 1);
UNSIGNED(ptl_search_op_t);
TYPE(ptl_event_kind_t, 1, 1);
UNSIGNED(ptl_event_kind_t);
TYPE(ptl_ack_req_t, 1, 1);
UNSIGNED(ptl_ack_req_t);
TYPE(ptl_op_t, 1, 1);
UNSIGNED(ptl_op_t);
TYPE(ptl_datatype_t, 1, 1);
UNSIGNED(ptl_datatype_t);
TYPE(ptl_handle_any_t, 4, 4);
UNSIGNED(ptl_handle_any_t);
TYPE(ptl_handle_ni_t, 4, 4);
UNSIGNED(ptl_handle_ni_t);
TYPE(ptl_handle_eq_t, 4, 4);
UNSIGNED(ptl_handle_eq_t);
TYPE(ptl_handle_ct_t, 4, 4);
UNSIGNED(ptl_handle_ct_t);
TYPE(ptl_handle_md_t, 4, 4);
UNSIGNED(ptl_handle_md_t);
TYPE(ptl_handle_le_t, 4, 4);
UNSIGNED(ptl_handle_le_t);
TYPE(ptl_handle_me_t, 4, 4);
UNSIGNED(ptl_handle_me_t);
TYPE(ptl_sr_index_t, 4, 4);
UNSIGNED(ptl_sr_index_t);
TYPE(ptl_ct_type_t, 4, 4);
UNSIGNED(ptl_ct_type_t);
TYPE(enum ptl_retvals, 4, 4);
UNSIGNED(enum ptl_retvals);
TYPE(ptl_sr_value_t, 4, 4);
SAME((ptl_sr_value_t)-1 < 0, 1);

/* Structures. */
TYPE(ptl_process_t, 8, 4);
AT(ptl_process_t, rank, 0, 4);
AT(ptl_process_t, phys, 0, 8);
AT(ptl_process_t, phys.nid, 0, 4);
AT(ptl_process_t, phys.pid, 4, 4);

TYPE(ptl_ni_limits_t, 96, 8);
AT(ptl_ni_limits_t, max_entries, 0, 4);
AT(ptl_ni_limits_t, max_unexpected_headers, 4, 4);
AT(ptl_ni_limits_t, max_mds, 8, 4);
AT(ptl_ni_limits_t, max_cts, 12, 4);
AT(ptl_ni_limits_t, max_eqs, 16, 4);
AT(ptl_ni_limits_t, max_pt_index, 20, 4);
AT(ptl_ni_limits_t, max_iovecs, 24, 4);
AT(ptl_ni_limits_t, max_list_size, 28, 4);
AT(ptl_ni_limits_t, max_triggered_ops, 32, 4);
AT(ptl_ni_limits_t, max_msg_size, 40, 8);
AT(ptl_ni_limits_t, max_atomic_size, 48, 8);
AT(ptl_ni_limits_t, max_fetch_atomic_size, 56, 8);
AT(ptl_ni_limits_t, max_waw_ordered_size, 64, 8);
AT(ptl_ni_limits_t, max_war_ordered_size, 72, 8);
AT(ptl_ni_limits_t, max_volatile_size, 80, 8);
AT(ptl_ni_limits_t, features, 88, 4);

TYPE(ptl_md_t, 32, 8);
AT(ptl_md_t, start, 0, 8);
AT(ptl_md_t, length, 8, 8);
AT(ptl_md_t, options, 16, 4);
AT(ptl_md_t, eq_handle, 20, 4);
AT(ptl_md_t, ct_handle, 24, 4);

TYPE(ptl_iovec_t, 16, 8);
AT(ptl_iovec_t, iov_base, 0, 8);
AT(ptl_iovec_t, iov_len, 8, 8);

TYPE(ptl_le_t, 32, 8);
AT(ptl_le_t, start, 0, 8);
AT(ptl_le_t, length, 8, 8);
AT(ptl_le_t, ct_handle, 16, 4);
AT(ptl_le_t, uid, 20, 4);
AT(ptl_le_t, options, 24, 4);

TYPE(ptl_me_t, 64, 8);
AT(ptl_me_t, start, 0, 8);
AT(ptl_me_t, length, 8, 8);
AT(ptl_me_t, ct_handle, 16, 4);
AT(ptl_me_t, uid, 20, 4);
AT(ptl_me_t, options, 24, 4);
AT(ptl_me_t, match_id, 28, 8);
AT(ptl_me_t, match_bits, 40, 8);
AT(ptl_me_t, ignore_bits, 48, 8);
AT(ptl_me_t, min_free, 56, 8);

TYPE(ptl_event_t, 80, 8);
AT(ptl_event_t, start, 0, 8);
AT(ptl_event_t, user_ptr, 8, 8);
AT(ptl_event_t, hdr_data, 16, 8);
AT(ptl_event_t, match_bits, 24, 8);
AT(ptl_event_t, rlength, 32, 8);
AT(ptl_event_t, mlength, 40, 8);
AT(ptl_event_t, remote_offset, 48, 8);
AT(ptl_event_t, initiator, 56, 8);
AT(ptl_event_t, uid, 64, 4);
AT(ptl_event_t, pt_index, 68, 4);
AT(ptl_event_t, type, 72, 1);
AT(ptl_event_t, ptl_list, 73, 1);
AT(ptl_event_t, ni_fail_type, 74, 1);
AT(ptl_event_t, atomic_operation, 75, 1);
AT(ptl_event_t, atomic_type, 76, 1);

TYPE(ptl_ct_event_t, 16, 8);
AT(ptl_ct_event_t, success, 0, 8);
AT(ptl_ct_event_t, failure, 8, 8);

/* A ptl_iovec_t may stand where a struct iovec does. */
SAME(sizeof(ptl_iovec_t), sizeof(struct iovec));
SAME(offsetof(ptl_iovec_t, iov_base), offsetof(struct iovec, iov_base));
SAME(offsetof(ptl_iovec_t, iov_len), offsetof(struct iovec, iov_len));

/* Constants, in the header's order. */
SAME(PTL_EQ_NONE, 0x3fffffff);
SAME(PTL_CT_NONE, 0x5fffffff);
SAME(PTL_INVALID_HANDLE, 0xffffffff);
SAME(PTL_IFACE_DEFAULT, 0xffffffff);
SAME(PTL_PID_ANY, 0xffff);
SAME(PTL_PID_MAX, 1024);
SAME(PTL_NID_ANY, 0xffff);
SAME(PTL_UID_ANY, 0xffffffff);
SAME(PTL_RANK_ANY, 0xffffffff);
SAME(PTL_PT_ANY, 0xffffffff);
SAME(PTL_TIME_FOREVER, 0xffffffff);
SAME(PTL_SIZE_MAX, 0xffffffffffffffffULL);
SAME(PTL_OK, 0);
SAME(PTL_ARG_INVALID, 1);
SAME(PTL_CT_NONE_REACHED, 2);
SAME(PTL_EQ_DROPPED, 3);
SAME(PTL_EQ_EMPTY, 4);
SAME(PTL_FAIL, 5);
SAME(PTL_IGNORED, 6);
SAME(PTL_IN_USE, 7);
SAME(PTL_LIST_TOO_LONG, 8);
SAME(PTL_NO_INIT, 9);
SAME(PTL_NO_SPACE, 10);
SAME(PTL_PID_IN_USE, 11);
SAME(PTL_PT_FULL, 12);
SAME(PTL_PT_EQ_NEEDED, 13);
SAME(PTL_PT_IN_USE, 14);
SAME(PTL_ABORTED, 15);
SAME(PTL_STATUS_LAST, 15);
SAME(PTL_NI_MATCHING, 1);
SAME(PTL_NI_NO_MATCHING, 2);
SAME(PTL_NI_LOGICAL, 4);
SAME(PTL_NI_PHYSICAL, 8);
SAME(PTL_NI_INIT_OPTIONS_MASK, 15);
SAME(PTL_NI_OK, 0);
SAME(PTL_NI_UNDELIVERABLE, 1);
SAME(PTL_NI_DROPPED, 2);
SAME(PTL_NI_PT_DISABLED, 3);
SAME(PTL_NI_PERM_VIOLATION, 4);
SAME(PTL_NI_OP_VIOLATION, 5);
SAME(PTL_NI_NO_MATCH, 6);
SAME(PTL_NI_SEGV, 7);
SAME(PTL_TARGET_BIND_INACCESSIBLE, 1);
SAME(PTL_TOTAL_DATA_ORDERING, 2);
SAME(PTL_COHERENT_ATOMICS, 4);
SAME(PTL_SR_DROP_COUNT, 0);
SAME(PTL_SR_PERMISSION_VIOLATIONS, 1);
SAME(PTL_SR_OPERATION_VIOLATIONS, 2);
SAME(PTL_SR_LAST, 3);
SAME(PTL_PT_ONLY_USE_ONCE, 1);
SAME(PTL_PT_FLOWCTRL, 2);
SAME(PTL_PT_ONLY_TRUNCATE, 4);
SAME(PTL_PT_MATCH_UNORDERED, 8);
SAME(PTL_PT_ALLOC_DISABLED, 16);
SAME(PTL_PT_ALLOC_OPTIONS_MASK, 31);
SAME(PTL_IOVEC, 1);
SAME(PTL_MD_EVENT_CT_SEND, 2);
SAME(PTL_MD_EVENT_CT_REPLY, 4);
SAME(PTL_MD_EVENT_CT_ACK, 8);
SAME(PTL_MD_UNORDERED, 16);
SAME(PTL_MD_EVENT_SUCCESS_DISABLE, 32);
SAME(PTL_MD_VOLATILE, 64);
SAME(PTL_MD_EVENT_SEND_DISABLE, 128);
SAME(PTL_MD_UNRELIABLE, 256);
SAME(PTL_MD_EVENT_CT_BYTES, 0x4000);
SAME(PTL_MD_OPTIONS_MASK, 0x41ff);
SAME(PTL_PRIORITY_LIST, 0);
SAME(PTL_OVERFLOW_LIST, 1);
SAME(PTL_SEARCH_ONLY, 0);
SAME(PTL_SEARCH_DELETE, 1);
SAME(PTL_LE_OP_PUT, 2);
SAME(PTL_LE_OP_GET, 4);
SAME(PTL_LE_USE_ONCE, 8);
SAME(PTL_LE_UNEXPECTED_HDR_DISABLE, 16);
SAME(PTL_LE_IS_ACCESSIBLE, 32);
SAME(PTL_LE_EVENT_LINK_DISABLE, 64);
SAME(PTL_LE_EVENT_COMM_DISABLE, 128);
SAME(PTL_LE_EVENT_FLOWCTRL_DISABLE, 256);
SAME(PTL_LE_EVENT_SUCCESS_DISABLE, 512);
SAME(PTL_LE_EVENT_OVER_DISABLE, 1024);
SAME(PTL_LE_EVENT_UNLINK_DISABLE, 2048);
SAME(PTL_LE_EVENT_CT_COMM, 0x1000);
SAME(PTL_LE_EVENT_CT_OVERFLOW, 0x2000);
SAME(PTL_LE_EVENT_CT_BYTES, 0x4000);
SAME(PTL_LE_APPEND_OPTIONS_MASK, 0x7fff);
SAME(PTL_ME_OP_PUT, 2);
SAME(PTL_ME_OP_GET, 4);
SAME(PTL_ME_USE_ONCE, 8);
SAME(PTL_ME_UNEXPECTED_HDR_DISABLE, 16);
SAME(PTL_ME_IS_ACCESSIBLE, 32);
SAME(PTL_ME_EVENT_LINK_DISABLE, 64);
SAME(PTL_ME_EVENT_COMM_DISABLE, 128);
SAME(PTL_ME_EVENT_FLOWCTRL_DISABLE, 256);
SAME(PTL_ME_EVENT_SUCCESS_DISABLE, 512);
SAME(PTL_ME_EVENT_OVER_DISABLE, 1024);
SAME(PTL_ME_EVENT_UNLINK_DISABLE, 2048);
SAME(PTL_ME_EVENT_CT_COMM, 0x1000);
SAME(PTL_ME_EVENT_CT_OVERFLOW, 0x2000);
SAME(PTL_ME_EVENT_CT_BYTES, 0x4000);
SAME(PTL_ME_MANAGE_LOCAL, 0x8000);
SAME(PTL_ME_NO_TRUNCATE, 0x10000);
SAME(PTL_ME_MAY_ALIGN, 0x20000);
SAME(PTL_ME_LOCAL_INC_UH_RLENGTH, 0x40000);
SAME(PTL_ME_APPEND_OPTIONS_MASK, 0x7ffff);
SAME(PTL_EVENT_GET, 0);
SAME(PTL_EVENT_GET_OVERFLOW, 1);
SAME(PTL_EVENT_PUT, 2);
SAME(PTL_EVENT_PUT_OVERFLOW, 3);
SAME(PTL_EVENT_ATOMIC, 4);
SAME(PTL_EVENT_ATOMIC_OVERFLOW, 5);
SAME(PTL_EVENT_FETCH_ATOMIC, 6);
SAME(PTL_EVENT_FETCH_ATOMIC_OVERFLOW, 7);
SAME(PTL_EVENT_REPLY, 8);
SAME(PTL_EVENT_SEND, 9);
SAME(PTL_EVENT_ACK, 10);
SAME(PTL_EVENT_PT_DISABLED, 11);
SAME(PTL_EVENT_LINK, 12);
SAME(PTL_EVENT_AUTO_UNLINK, 13);
SAME(PTL_EVENT_AUTO_FREE, 14);
SAME(PTL_EVENT_SEARCH, 15);
SAME(PTL_CT_OPERATION, 0);
SAME(PTL_CT_BYTE, 1);
SAME(PTL_NO_ACK_REQ, 0);
SAME(PTL_ACK_REQ, 1);
SAME(PTL_CT_ACK_REQ, 2);
SAME(PTL_OC_ACK_REQ, 3);
SAME(PTL_MIN, 0);
SAME(PTL_MAX, 1);
SAME(PTL_SUM, 2);
SAME(PTL_PROD, 3);
SAME(PTL_LOR, 4);
SAME(PTL_LAND, 5);
SAME(PTL_BOR, 6);
SAME(PTL_BAND, 7);
SAME(PTL_LXOR, 8);
SAME(PTL_BXOR, 9);
SAME(PTL_SWAP, 10);
SAME(PTL_CSWAP, 11);
SAME(PTL_CSWAP_NE, 12);
SAME(PTL_CSWAP_LE, 13);
SAME(PTL_CSWAP_LT, 14);
SAME(PTL_CSWAP_GE, 15);
SAME(PTL_CSWAP_GT, 16);
SAME(PTL_MSWAP, 17);
SAME(PTL_OP_LAST, 18);
SAME(PTL_INT8_T, 0);
SAME(PTL_UINT8_T, 1);
SAME(PTL_INT16_T, 2);
SAME(PTL_UINT16_T, 3);
SAME(PTL_INT32_T, 4);
SAME(PTL_UINT32_T, 5);
SAME(PTL_FLOAT, 6);
SAME(PTL_INT64_T, 7);
SAME(PTL_UINT64_T, 8);
SAME(PTL_DOUBLE, 9);
SAME(PTL_FLOAT_COMPLEX, 10);
SAME(PTL_DOUBLE_COMPLEX, 11);
SAME(PTL_LONG_DOUBLE, 12);
SAME(PTL_LONG_DOUBLE_COMPLEX, 13);
SAME(PTL_DATATYPE_LAST, 14);

/* Names that 4.3 dropped. */
SAME(PTL_INTERRUPTED, 16);
SAME(PTL_ME_ACK_DISABLE, 0x80000);
SAME(PTL_LE_ACK_DISABLE, 0x80000);
SAME(PTL_ME_ACK_DISABLE & PTL_ME_APPEND_OPTIONS_MASK, 0);

/* portals4_ext.h. */
SAME(PTL_EV_STR_SIZE, 256);
SAME(PTL_STR_ERROR, 0);
SAME(PTL_STR_EVENT, 1);
SAME(PTL_STR_FAIL_TYPE, 2);
SAME(sizeof(ptl_str_type_t), 4);
SAME(sizeof(ptl_index_t), sizeof(ptl_pt_index_t));
