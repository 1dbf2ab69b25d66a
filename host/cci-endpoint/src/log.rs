//! What a user should read.

/// What `CCI_DEBUG` takes; other implementations log more by the last ones.
pub(crate) const KINDS: [&str; 10] = [
    "warn", "info", "all", "mem", "msg", "peer", "conn", "err", "func", "drvr",
];

/// Writes a line if `CCI_DEBUG` asks for one of the kinds `warn`, `info` and `all`.
pub(crate) fn warn(line: &str) {
    let wanted = std::env::var("CCI_DEBUG").unwrap_or_default();
    let is_wanted = |kind: &str| matches!(kind.trim(), "warn" | "info" | "all");
    if wanted.split(',').any(is_wanted) {
        report(line);
    }
}

/// Writes a line whatever `CCI_DEBUG` asks for: a variable has an invalid value.
pub(crate) fn report(line: &str) {
    eprintln!("cci: {line}");
}
