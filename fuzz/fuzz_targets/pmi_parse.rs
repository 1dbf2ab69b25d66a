#![no_main]

#[path = "../bodies/pmi_parse.rs"]
mod pmi_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| pmi_parse::body(data));
