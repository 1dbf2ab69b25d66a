#![no_main]

#[path = "../bodies/engine3_requests.rs"]
mod engine3_requests;
#[path = "../../core/engine3/tests/rig/mod.rs"]
mod rig;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine3_requests::body(data));
