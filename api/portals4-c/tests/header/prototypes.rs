//! Every function has the same parameters, by name and type, on both sides: in the
//! headers, where it is defined, and where it is declared (`portals4-sys`).

use crate::printed;
use lintel_header_check::prototypes::{
    Prototypes, assert_same, names_after, of_declarations, of_exports, of_header,
};
use std::path::Path;

#[test]
fn functions_have_the_same_prototypes() {
    assert_same(&of_exports(&sources()), &of_headers());
}

#[test]
fn declarations_have_the_same_prototypes() {
    assert_same(&of_declarations(&declarations()), &of_headers());
}

/// A function is declared safe if it is defined so: it takes plain values only.
#[test]
fn declarations_are_as_safe_as_definitions() {
    let defined = names_after(&sources(), "\npub extern \"C\" fn ");
    assert!(defined.contains("PtlPut"), "the source was read");
    assert_eq!(names_after(&declarations(), "pub safe fn "), defined);
}

fn of_headers() -> Prototypes {
    let mut c = of_header(&printed().text("portals4.h"), rust_type);
    c.append(&mut of_header(&printed().text("portals4_ext.h"), rust_type));
    assert!(c.len() > 50, "the headers were read");
    c
}

/// The Rust name of a type that is no pointer.
fn rust_type(c: &str) -> &str {
    match c {
        "void" => "c_void",
        "int" => "c_int",
        "char" => "c_char",
        "ptl_sr_value_t" => "i32",
        "unsigned int" | "ptl_interface_t" | "ptl_pt_index_t" | "ptl_pid_t" | "ptl_uid_t"
        | "ptl_time_t" | "ptl_sr_index_t" | "ptl_str_type_t" => "u32",
        "ptl_size_t" | "ptl_match_bits_t" | "ptl_hdr_data_t" => "u64",
        "ptl_list_t" | "ptl_search_op_t" | "ptl_ack_req_t" | "ptl_op_t" | "ptl_datatype_t" => "u8",
        "ptl_process_t" => "ProcessId",
        "ptl_ni_limits_t" => "Limits",
        "ptl_ct_event_t" => "CountingEvent",
        "ptl_event_t" => "Event",
        "ptl_md_t" => "Md",
        "ptl_le_t" => "Le",
        "ptl_me_t" => "Me",
        handle if handle.starts_with("ptl_handle_") => "Handle",
        other => other,
    }
}

fn sources() -> String {
    lintel_header_check::prototypes::sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn declarations() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portals4-sys/src/lib.rs");
    std::fs::read_to_string(file).expect("source is text")
}
