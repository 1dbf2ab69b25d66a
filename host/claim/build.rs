//! Compiles the arithmetic that Rust has no type for.

fn main() {
    println!("cargo::rerun-if-changed=native/long_double.c");
    cc::Build::new()
        .file("native/long_double.c")
        .std("c11")
        .warnings(true)
        // One rounding per operation, whatever the processor offers.
        .flag_if_supported("-ffp-contract=off")
        .compile("lintel_claim_long_double");
}
