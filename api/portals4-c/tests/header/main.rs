//! The headers and the Rust side say the same: constants, layouts, prototypes.

mod constants;
mod layouts;
mod prototypes;

use lintel_header_check::Printed;
use std::path::Path;

/// The headers, as a C program sees them.
fn printed() -> Printed<'static> {
    Printed {
        include: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include")),
        headers: &["portals4_ext.h"],
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")),
    }
}
