//! The body of the fuzz target `reliable_packets` over bytes from seeds.

#[path = "../../../fuzz/bodies/reliable_packets.rs"]
mod reliable_packets;

const RUNS: u64 = 3000;

#[test]
fn nobody_without_the_key_changes_anything_and_nobody_with_it_does_harm() {
    for seed in 0..RUNS {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let data: Vec<u8> = (0..100 + seed % 1000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let result = std::panic::catch_unwind(|| reliable_packets::body(&data));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
