#![no_main]

#[path = "../bodies/wire_parse.rs"]
mod wire_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire_parse::body(data));
