#![no_main]

#[path = "../bodies/goal_text.rs"]
mod goal_text;

libfuzzer_sys::fuzz_target!(|data: &[u8]| goal_text::body(data));
