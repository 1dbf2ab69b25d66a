#![no_main]

#[path = "../bodies/cci_frames.rs"]
mod cci_frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| cci_frames::body(data));
