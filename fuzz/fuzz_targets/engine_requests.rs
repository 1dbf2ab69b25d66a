#![no_main]

#[path = "../bodies/engine_requests.rs"]
mod engine_requests;
#[path = "../../core/engine4/tests/rig/mod.rs"]
mod rig;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine_requests::body(data));
