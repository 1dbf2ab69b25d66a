//! The header and the Rust side say the same: prototypes, constants, the layout of a name.

use lintel_header_check::prototypes::{assert_same, of_exports, of_header, sources};
use lintel_header_check::{Printed, members};
use portals3_sys::ProcessId;
use std::path::Path;

const HEADER: &str = "catamount/cnos_mpi_os.h";

fn printed() -> Printed<'static> {
    Printed {
        include: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include")),
        headers: &[HEADER],
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")),
    }
}

#[test]
fn functions_have_the_prototypes_of_the_header() {
    let defined = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let declared = of_header(&printed().text(HEADER), rust_type);
    assert!(declared.contains_key("cnos_barrier"), "the header was read");
    assert_same(&of_exports(&defined), &declared);
}

#[test]
fn a_name_is_laid_out_as_that_of_a_process() {
    let mut rows = Vec::new();
    members!(rows, "cnos_nidpid_map_t", ProcessId, [nid, pid]);
    rows.push(("CNOS_LAUNCHER_APRUN", 2));
    printed().assert_same("cnos", &rows);
}

fn rust_type(c: &str) -> &str {
    match c {
        "void" => "c_void",
        "int" => "c_int",
        "ptl_handle_ni_t" => "Handle",
        "ptl_process_id_t" | "cnos_nidpid_map_t" => "ProcessId",
        other => other,
    }
}
