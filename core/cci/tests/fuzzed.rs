//! The body of the fuzz target `cci_frames` over random operations.

#[path = "../../../fuzz/bodies/cci_frames.rs"]
mod cci_frames;

#[test]
fn strange_frames_do_no_harm_and_all_operations_end_in_order() {
    for seed in 0..1500u64 {
        println!("seed {seed}");
        let mut state = seed;
        let data: Vec<u8> = (0..1600)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        cci_frames::body(&data);
    }
}
