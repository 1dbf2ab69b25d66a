//! Packets that can't be what they say, and some that only look so.

use super::*;

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_counted_and_dropped() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut other, START, 0, 10);
    let data = sent(&mut other, START);
    let header = Header {
        acknowledged: data[0].acknowledged.wrapping_add(1),
        ..data[0]
    };
    for count in 1..=2 {
        assert_eq!(pass(&[header], &mut one, START), [Verdict::Drop]);
        assert_eq!(one.counts().contradictory, count);
    }
    let verdicts = pass(&data, &mut one, START);
    assert!(matches!(verdicts[..], [Verdict::Deliver(_)]));
}

#[test]
fn a_part_that_contradicts_the_ones_before_it_is_counted_and_loses_its_sender() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 2000);
    let mut parts = sent(&mut one, START);
    pass(&parts[..1], &mut other, START);
    let Kind::Data(fragment) = &mut parts[1].kind else {
        panic!("it is a part of the message");
    };
    fragment.total += 1;
    assert_eq!(pass(&parts[1..2], &mut other, START), [Verdict::Drop]);
    assert_eq!(other.counts().contradictory, 1);
    let lost = other.poll_lost_peer().expect("it broke the protocol");
    assert_eq!(lost.process, name(0));
}

#[test]
fn a_repeated_reset_loses_nobody() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    send(&mut one, START, 2, 10);
    let probe = sent(&mut one, START);
    pass(&probe, &mut other, START);
    let reset = sent(&mut other, START);
    pass(&reset, &mut one, START);
    assert_eq!(sent(&mut one, START).len(), 1, "the message");
    pass(&reset, &mut one, START);
    assert!(one.poll_lost_peer().is_none());
    assert_eq!((one.counts().lost_peers, one.outstanding()), (0, 1));
}
