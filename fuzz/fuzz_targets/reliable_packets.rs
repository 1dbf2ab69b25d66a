#![no_main]

#[path = "../bodies/reliable_packets.rs"]
mod reliable_packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| reliable_packets::body(data));
