//! Sizes, and each member's place.

use crate::printed;
use lintel_header_check::{Row, members};
use lintel_types::{CountingEvent, Event, Handle, Limits, ProcessId};
use portals::{EV_STR_SIZE, Iovec, Le, Md, Me, RawEvent};

#[test]
fn structures_have_the_same_layout() {
    let mut rows: Vec<Row> = vec![
        ("sizeof(ptl_handle_any_t)", size_of::<Handle>() as u64),
        ("sizeof(ptl_time_t)", 4),
        ("sizeof(ptl_sr_value_t)", 4),
        ("PTL_EV_STR_SIZE", EV_STR_SIZE as u64),
    ];
    members!(
        rows,
        "ptl_process_t",
        ProcessId,
        [nid = "phys.nid", pid = "phys.pid"]
    );
    members!(
        rows,
        "ptl_md_t",
        Md,
        [start, length, options, eq_handle, ct_handle]
    );
    members!(rows, "ptl_iovec_t", Iovec, [iov_base, iov_len]);
    members!(
        rows,
        "ptl_le_t",
        Le,
        [start, length, ct_handle, uid, options]
    );
    members!(
        rows,
        "ptl_me_t",
        Me,
        [
            start,
            length,
            ct_handle,
            uid,
            options,
            match_id,
            match_bits,
            ignore_bits,
            min_free,
        ]
    );
    members!(rows, "ptl_ct_event_t", CountingEvent, [success, failure]);
    members!(
        rows,
        "ptl_event_t",
        Event,
        [
            start,
            user_ptr,
            hdr_data,
            match_bits,
            rlength,
            mlength,
            remote_offset,
            initiator,
            uid,
            pt_index,
            kind = "type",
            list = "ptl_list",
            ni_fail = "ni_fail_type",
            operation = "atomic_operation",
            datatype = "atomic_type",
        ]
    );
    members!(
        rows,
        "ptl_event_t",
        RawEvent,
        [
            start,
            user_ptr,
            hdr_data,
            match_bits,
            rlength,
            mlength,
            remote_offset,
            initiator,
            uid,
            pt_index,
            kind = "type",
            list = "ptl_list",
            ni_fail = "ni_fail_type",
            operation = "atomic_operation",
            datatype = "atomic_type",
        ]
    );
    members!(
        rows,
        "ptl_ni_limits_t",
        Limits,
        [
            max_entries,
            max_unexpected_headers,
            max_mds,
            max_cts,
            max_eqs,
            max_pt_index,
            max_iovecs,
            max_list_size,
            max_triggered_ops,
            max_msg_size,
            max_atomic_size,
            max_fetch_atomic_size,
            max_waw_ordered_size,
            max_war_ordered_size,
            max_volatile_size,
            features,
        ]
    );
    printed().assert_same("layouts", &rows);
}
