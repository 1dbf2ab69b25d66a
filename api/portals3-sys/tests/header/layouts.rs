//! Sizes, and each member's place.

use crate::printed;
use lintel_header_check::{Row, members};
use portals3_sys::{Event, Handle, Iovec, Limits, MemoryDescriptor, ProcessId};

#[test]
fn structures_have_the_same_layout() {
    let mut rows: Vec<Row> = vec![
        ("sizeof(ptl_handle_any_t)", size_of::<Handle>() as u64),
        ("sizeof(ptl_time_t)", 4),
        ("sizeof(ptl_sr_value_t)", 8),
        ("sizeof(ptl_event_kind_t)", 4),
    ];
    members!(rows, "ptl_process_id_t", ProcessId, [nid, pid]);
    members!(
        rows,
        "ptl_md_t",
        MemoryDescriptor,
        [
            start,
            length,
            threshold,
            max_size,
            options,
            user_ptr,
            queue = "eq_handle"
        ]
    );
    members!(rows, "ptl_md_iovec_t", Iovec, [iov_base, iov_len]);
    members!(
        rows,
        "ptl_event_t",
        Event,
        [
            kind = "type",
            initiator,
            uid,
            jid,
            pt_index,
            match_bits,
            rlength,
            mlength,
            offset,
            md_handle,
            md,
            hdr_data,
            link,
            ni_fail = "ni_fail_type",
            sequence,
        ]
    );
    members!(
        rows,
        "ptl_ni_limits_t",
        Limits,
        [
            max_mes,
            max_mds,
            max_eqs,
            max_ac_index,
            max_pt_index,
            max_md_iovecs,
            max_me_list,
            max_getput_md,
        ]
    );
    printed().assert_same("layouts", &rows);
}
