//! What a user should read.

/// Writes a line if `CCI_DEBUG` asks for one of the kinds `warn`, `info` and `all`.
pub(crate) fn warn(line: &str) {
    let wanted = std::env::var("CCI_DEBUG").unwrap_or_default();
    let is_wanted = |kind: &str| matches!(kind.trim(), "warn" | "info" | "all");
    if wanted.split(',').any(is_wanted) {
        eprintln!("cci: {line}");
    }
}
