#![no_main]

#[path = "../bodies/scenario_text.rs"]
mod scenario_text;

libfuzzer_sys::fuzz_target!(|data: &[u8]| scenario_text::body(data));
