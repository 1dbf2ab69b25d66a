//! The headers and the Rust side say the same: constants, layouts, declarations.

mod constants;
mod layouts;

use lintel_header_check::Printed;
use lintel_header_check::prototypes::{Prototypes, assert_same, of_declarations, of_header};
use std::path::Path;

/// The headers, as a C program sees them.
fn printed() -> Printed<'static> {
    Printed {
        include: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include")),
        headers: &[
            "portals/portals3.h",
            "portals/p3nal_utcp.h",
            "p3rt/p3rt.h",
            "portals/p3api/debug.h",
        ],
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")),
    }
}

#[test]
fn declarations_have_the_same_prototypes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let declared = std::fs::read_to_string(file).expect("source is text");
    assert_same(&of_declarations(&declared), &of_headers());
}

fn of_headers() -> Prototypes {
    let mut all = Prototypes::new();
    for header in ["portals3.h", "p3rt/p3rt.h", "p3api/debug.h"] {
        all.append(&mut of_header(&printed().text(header), rust_type));
    }
    assert!(all.len() > 50, "the headers were read");
    all
}

/// The Rust name of a type that is no pointer.
fn rust_type(c: &str) -> &str {
    match c {
        "void" => "c_void",
        "char" => "c_char",
        "unsigned long" => "c_ulong",
        "int" | "ptl_unlink_t" | "ptl_ins_pos_t" | "ptl_ack_req_t" | "ptl_event_kind_t" => "c_int",
        "unsigned" | "unsigned int" | "ptl_interface_t" | "ptl_pt_index_t" | "ptl_ac_index_t"
        | "ptl_nid_t" | "ptl_pid_t" | "ptl_uid_t" | "ptl_jid_t" | "ptl_time_t"
        | "ptl_sr_index_t" | "ptl_ni_fail_t" => "u32",
        "ptl_size_t" | "ptl_match_bits_t" | "ptl_hdr_data_t" | "ptl_sr_value_t" => "u64",
        "ptl_process_id_t" => "ProcessId",
        "ptl_ni_limits_t" => "Limits",
        "ptl_event_t" => "Event",
        "ptl_md_t" => "MemoryDescriptor",
        "ptl_eq_handler_t" => "EventHandler",
        handle if handle.starts_with("ptl_handle_") => "Handle",
        other => other,
    }
}
