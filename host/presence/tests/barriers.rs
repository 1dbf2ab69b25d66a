//! Who takes part in barriers. The test is alone in its process: registration is for all of one.

use lintel_presence::{Segment, is_registered_for_barriers, register_for_barriers};

#[test]
fn a_segment_registers_its_owner_for_nothing_and_says_whether_that_can_order_barriers() {
    let job = format!("test-barriers-{}", std::process::id());
    let segment = Segment::create(&job, 0x7f00_0001, 1).expect("the name is free");
    assert!(!is_registered_for_barriers());
    let has_barriers = register_for_barriers();
    assert_eq!(is_registered_for_barriers(), has_barriers);
    assert_eq!(segment.needs_fence(), !has_barriers);
}
