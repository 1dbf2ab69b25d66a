//! What is to be sent to one peer, without an endpoint around it.

use super::*;

/// Bytes of the messages, each of which fits one packet.
const LENGTH: u64 = 226;
/// What such a packet counts for.
const COST: u64 = LENGTH + OVERHEAD;
const MAX_DATAGRAM: u32 = 1000;

fn with_window(recv_window: u64) -> Sending<u64> {
    Sending::new(recv_window)
}

fn push(sending: &mut Sending<u64>) {
    push_body(sending, 0, LENGTH);
}

fn push_body(sending: &mut Sending<u64>, body: u64, length: u64) {
    let message = Message {
        class: Class::Ordered,
        words: [0; 6],
        length,
        memory: length,
        is_awaited: false,
        body,
    };
    sending.push(Outbound::new(message, false));
}

/// Sends the next packet at a time.
fn transmit(sending: &mut Sending<u64>, at: u64) -> Part {
    let part = sending.next_part(MAX_DATAGRAM).expect("something waits");
    sending.on_sent(&part, Time(at));
    part
}

/// So many packets in flight; the first was sent at time 1, the second at 2, and so on.
fn in_flight(packets: u64) -> Sending<u64> {
    let mut sending = with_window(1 << 20);
    for at in 1..=packets {
        push(&mut sending);
        transmit(&mut sending, at);
    }
    sending
}

#[test]
fn a_packet_overtaken_by_three_is_lost() {
    let mut sending = in_flight(5);
    // All but the fifth are missing.
    let progress = sending.on_ack(0, 0b1000).expect("five were sent");
    assert!(progress.is_new && progress.has_first_transmission());
    assert_eq!(progress.acked_bytes, COST);
    assert_eq!(progress.rtt_sent_at, Some(Time(5)));
    assert_eq!(progress.lost_sent_at, Some(Time(2)), "the third may arrive");
    assert_eq!(sending.counted_in_flight(), 2 * COST);
    for lost in 0..2 {
        assert_eq!(transmit(&mut sending, 9).retransmitted, Some(lost));
    }
    assert!(sending.next_part(MAX_DATAGRAM).is_none());
}

#[test]
fn a_repeated_acknowledgement_says_nothing_new() {
    let mut sending = in_flight(5);
    let acknowledgements = [
        (0, 0, false),
        (0, 0b1000, true),
        (0, 0b1000, false),
        (1, 0b100, true),
        (0, 0b100, false),
    ];
    for (count, bits, is_new) in acknowledgements {
        let progress = sending.on_ack(count, bits).expect("so many were sent");
        assert_eq!(progress.is_new, is_new, "{count} {bits:b}");
    }
}

#[test]
fn more_than_was_sent_cannot_be_acknowledged() {
    let mut sending = in_flight(2);
    assert!(sending.on_ack(3, 0).is_none());
    let progress = sending.on_ack(2, 0).expect("two were sent");
    assert_eq!(progress.acked_bytes, 2 * COST);
    assert_eq!(progress.rtt_sent_at, Some(Time(2)));
    assert!(!sending.awaits_ack());
}

#[test]
fn a_retransmitted_packet_is_no_sample_but_shows_what_it_overtook() {
    let mut sending = in_flight(6);
    sending.retransmit_first();
    assert_eq!(transmit(&mut sending, 7).retransmitted, Some(0));
    let progress = sending.on_ack(1, 0).expect("six were sent");
    assert!(progress.is_new && !progress.has_first_transmission());
    assert_eq!(progress.rtt_sent_at, None);
    let overtaken_by_three = Some(Time(4));
    assert_eq!(progress.lost_sent_at, overtaken_by_three);
}

#[test]
fn the_late_acknowledgement_of_an_early_packet_is_no_sample() {
    let mut sending = in_flight(3);
    let latest = sending.on_ack(0, 0b10).expect("three were sent");
    assert_eq!(latest.rtt_sent_at, Some(Time(3)));
    let late = sending.on_ack(1, 0b1).expect("three were sent");
    assert!(late.is_new && late.has_first_transmission());
    assert_eq!(late.rtt_sent_at, None);
}

#[test]
fn a_timeout_makes_the_first_packet_urgent_until_it_is_sent() {
    let mut sending = in_flight(2);
    assert!(!sending.is_urgent());
    sending.retransmit_first();
    assert!(sending.is_urgent());
    assert_eq!(sending.counted_in_flight(), COST);
    sending.retransmit_first();
    assert_eq!(sending.counted_in_flight(), COST, "it is lost once");
    transmit(&mut sending, 3);
    assert!(!sending.is_urgent());
    assert_eq!(sending.counted_in_flight(), 2 * COST);
}

#[test]
fn a_packet_that_did_not_leave_is_lost_once() {
    let mut sending = in_flight(3);
    assert_eq!(sending.mark_lost(1), Some(COST));
    assert_eq!(sending.mark_lost(1), None, "it is lost already");
    assert_eq!(sending.mark_lost(3), None, "three were sent");
    assert_eq!(sending.counted_in_flight(), 2 * COST);
    assert_eq!(sending.mark_lost(0), Some(COST));
    assert_eq!(transmit(&mut sending, 4).retransmitted, Some(0));
    assert_eq!(transmit(&mut sending, 5).retransmitted, Some(1));
    assert!(sending.next_part(MAX_DATAGRAM).is_none());
    assert_eq!(sending.counted_in_flight(), 3 * COST);
}

#[test]
fn messages_to_a_stranger_wait_for_nothing_else_if_they_fit_its_window() {
    let mut sending = with_window(2 * COST);
    let mut fits = || {
        push(&mut sending);
        sending.awaits_handshake()
    };
    assert_eq!([fits(), fits(), fits()], [true, true, false]);
    assert_eq!(sending.awaiting_handshake(), 2);
    assert_eq!(sending.on_handshake(COST), 2);
    assert_eq!(sending.awaiting_handshake(), 0);
}

#[test]
fn a_pair_is_queued_to_send_once() {
    let mut sending = with_window(COST);
    assert!(sending.is_idle());
    assert!(sending.mark_ready());
    assert!(!sending.mark_ready() && !sending.is_idle());
    sending.mark_unready();
    assert!(sending.mark_ready());
}

#[test]
fn one_packet_always_fits_the_peers_window_and_more_if_it_has_room() {
    let mut sending = with_window(2 * COST);
    assert!(sending.has_window(9 * COST), "nothing is in flight");
    push(&mut sending);
    transmit(&mut sending, 1);
    assert!(sending.has_window(COST) && !sending.has_window(COST + 1));
    sending.set_recv_window(2 * COST + 1);
    assert!(sending.has_window(COST + 1));
}

/// Which of the first packets request an acknowledgement.
fn requests(recv_window: u64, share: u64) -> [bool; 8] {
    let mut sending = with_window(recv_window);
    [(); 8].map(|()| {
        push(&mut sending);
        let part = transmit(&mut sending, 1);
        sending.requests_ack(&part, share, false)
    })
}

#[test]
fn an_acknowledgement_is_requested_for_half_a_window() {
    let each_fourth = [false, false, false, true, false, false, false, true];
    assert_eq!(requests(100 * COST, 8 * COST), each_fourth);
    let each_second = [false, true, false, true, false, true, false, true];
    assert_eq!(requests(100 * COST, 4 * COST - 1), each_second);
}

#[test]
fn an_acknowledgement_is_requested_if_the_peers_window_is_full() {
    // Half of it is used by the fourth packet; the seventh leaves no room for another.
    let requested = requests(7 * COST, 100 * COST);
    assert_eq!(
        requested[..7],
        [false, false, false, true, false, false, true]
    );
    let full_path = with_window(100 * COST).requests_ack(
        &Part {
            message: 0,
            offset: 0,
            length: 0,
            is_last: true,
            retransmitted: None,
        },
        100 * COST,
        true,
    );
    assert!(full_path);
}

#[test]
fn a_turn_is_over_after_64_kib() {
    let mut sending = with_window(COST);
    for _ in 0..2 {
        assert!(!sending.use_quantum((64 << 10) - 1));
        assert!(sending.use_quantum(1));
    }
}

#[test]
fn memory_is_counted_for_each_message_and_each_packet_in_flight() {
    let empty = with_window(COST).bytes();
    assert_eq!(empty, size_of::<Sending<u64>>());
    let each = size_of::<Outbound<u64>>() + size_of::<SentPacket>();
    let used = in_flight(100).bytes() - empty;
    assert!((100 * each..=200 * each).contains(&used), "{used} bytes");
}

#[test]
fn a_recalled_message_goes_unsent_or_becomes_void_if_it_has_begun() {
    let mut sending = with_window(1 << 20);
    for (body, length) in [(1, 0), (2, 2000), (3, 10), (4, 20)] {
        push_body(&mut sending, body, length);
    }
    transmit(&mut sending, 1);
    transmit(&mut sending, 2);
    let recalled = sending.recall(&mut |body| *body > 0, &|| 0);
    assert_eq!(recalled, (2, 0), "the last two hadn't begun");
    assert_eq!((sending.len(), sending.memory()), (2, 2000));
    assert!((0..2).all(|index| sending.message(index).is_void));
    let rest = transmit(&mut sending, 3);
    assert_eq!((rest.message, rest.length, rest.is_last), (1, 0, true));
    assert!(sending.next_part(MAX_DATAGRAM).is_none());
}

#[test]
fn a_recalled_message_to_a_stranger_does_not_wait_any_more() {
    let mut sending = with_window(2 * OVERHEAD);
    for body in 1..=3 {
        push_body(&mut sending, body, 0);
        sending.awaits_handshake();
    }
    let mut recall = |meant: u64| sending.recall(&mut |body| *body == meant, &|| 0);
    assert_eq!(recall(3), (1, 0), "it didn't fit the window");
    assert_eq!(recall(1), (1, 1));
    assert_eq!(sending.awaiting_handshake(), 1);
}
