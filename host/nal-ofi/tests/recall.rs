//! Lent memory that is taken back: not a byte of it is read or written afterwards.

mod common;

use common::{arrival, config, open, reason_to_skip, send_number, wait_until, words};
use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Origin, Outgoing, Payload, Wake};
use lintel_nal_ofi::{Config, OfiNal};
use std::time::Duration;

const SIZE: u64 = 32 << 20;
const BEFORE: u8 = 0x11;
const AFTER: u8 = 0xee;
const KEPT: u8 = 0x22;
/// Nobody is taken for dead meanwhile.
const LONG: Duration = Duration::from_secs(20);
const PROVIDERS: [&str; 2] = ["tcp;ofi_rxm", "udp;ofi_rxd"];

fn two(provider: &str, peer_timeout: Duration) -> (OfiNal, OfiNal) {
    let config = || Config {
        peer_timeout,
        ..config(provider, "recall")
    };
    (open(config()), open(config()))
}

fn filled(with: u8) -> Region {
    let region = Region::new(SIZE);
    region.write(0, &vec![with; SIZE as usize]);
    region
}

fn has(region: &Region, byte: u8) -> bool {
    let mut bytes = vec![0; SIZE as usize];
    region.read(0, &mut bytes);
    bytes.contains(&byte)
}

fn lend(from: &mut OfiNal, to: &OfiNal, memory: &Region, lease: &Lease) {
    let body = [memory.claim()];
    let sent = from.send(
        to.process(),
        &words(1),
        Outgoing::LentToRead(lease.lend(&body)),
    );
    sent.expect("the peer is there");
}

fn announced(from: &mut OfiNal, to: &mut OfiNal) -> Origin {
    match arrival(&mut [from], to) {
        Arrival::Message(origin, _, Payload::Streamed(SIZE)) => origin,
        other => panic!("a long message was to come, not {other:?}"),
    }
}

/// Receives the announced stream into memory of that lease, until a part is there or,
/// where only the whole is seen, might be.
fn begin_stream(from: &mut OfiNal, to: &mut OfiNal, place: &Region, lease: &Lease) {
    let origin = announced(from, to);
    to.receive_into(origin, lease.lend(&[place.claim()]).keep());
    to.done(origin);
    let mut first = [0];
    let mut looks = 0;
    let is_seen = to.provider_name().contains("ofi_rxm");
    wait_until("the first part", || {
        from.flush();
        to.flush();
        place.read(0, &mut first);
        looks += 1;
        first != [0] || !is_seen && looks > 100
    });
}

fn take_back(at: &mut OfiNal, other: Option<&mut OfiNal>, lease: &Lease) {
    let mut other = other;
    wait_until("the end of all loans", || {
        if let Some(other) = &mut other {
            other.flush();
        }
        at.recall(lease)
    });
    assert_eq!(lease.outstanding(), 0);
}

fn expect_number(from: &mut OfiNal, to: &mut OfiNal, number: u64) {
    let next = arrival(&mut [from], to);
    let Arrival::Message(origin, words, Payload::Inline(_)) = next else {
        panic!("number {number} was to come, not {next:?}");
    };
    to.done(origin);
    assert_eq!(words[1], number);
}

/// A stream that was taken back is broken, or whole as it was before.
fn expect_end_of_recalled(end: &Arrival, place: &Region) {
    match end {
        Arrival::Broken(_) => {}
        Arrival::Streamed(_) => assert!(!has(place, 0), "whole, but for some bytes"),
        other => panic!("the stream was to end, not {other:?}"),
    }
    assert!(
        !has(place, AFTER),
        "it was read after it had been taken back"
    );
}

#[test]
fn a_body_that_is_recalled_while_it_is_read_is_never_seen_changed_and_others_go_on() {
    for provider in PROVIDERS {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let (mut from, mut to) = two(provider, LONG);
        let (memory, place) = (filled(BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, &memory, &lease);
        begin_stream(&mut from, &mut to, &place, &other);
        send_number(&mut from, to.process(), 2);
        take_back(&mut from, Some(&mut to), &lease);
        memory.write(0, &vec![AFTER; SIZE as usize]);
        send_number(&mut from, to.process(), 3);
        let end = arrival(&mut [&mut from], &mut to);
        expect_end_of_recalled(&end, &place);
        expect_number(&mut from, &mut to, 2);
        expect_number(&mut from, &mut to, 3);
        assert_eq!(other.outstanding(), 0, "the broken stream needs no place");
    }
}

#[test]
fn a_body_that_is_recalled_before_it_is_looked_at_is_never_seen_changed() {
    for provider in PROVIDERS {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let (mut from, mut to) = two(provider, LONG);
        let (memory, kept, place) = (filled(BEFORE), filled(KEPT), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, &memory, &lease);
        lend(&mut from, &to, &kept, &other);
        let origin = announced(&mut from, &mut to);
        // Until the peer has heard of it.
        for _ in 0..1000 {
            from.recall(&lease);
            to.flush();
        }
        memory.write(0, &vec![AFTER; SIZE as usize]);
        to.receive_into(origin, other.lend(&[place.claim()]).keep());
        to.done(origin);
        let end = arrival(&mut [&mut from], &mut to);
        expect_end_of_recalled(&end, &place);
        take_back(&mut from, Some(&mut to), &lease);
        // What lies under another lease is read as ever.
        let origin = announced(&mut from, &mut to);
        to.receive_into(origin, other.lend(&[place.claim()]).keep());
        to.done(origin);
        let whole = arrival(&mut [&mut from], &mut to);
        assert!(matches!(whole, Arrival::Streamed(_)), "{whole:?}");
        assert!(has(&place, KEPT) && !has(&place, BEFORE), "{provider}");
    }
}

#[test]
fn a_body_that_wasnt_announced_goes_unsent() {
    if reason_to_skip(PROVIDERS[0]).is_some() {
        return;
    }
    let (mut from, mut to) = two(PROVIDERS[0], LONG);
    let memory = filled(BEFORE);
    let lease = Lease::new();
    lend(&mut from, &to, &memory, &lease);
    assert!(from.recall(&lease), "no peer knows of it");
    assert_eq!(lease.outstanding(), 0);
    assert_eq!(from.backlog(to.process()), 0);
    send_number(&mut from, to.process(), 2);
    expect_number(&mut from, &mut to, 2);
}

#[test]
fn a_peer_that_takes_no_part_is_given_up_and_reads_nothing_new() {
    for provider in PROVIDERS {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let (mut from, mut to) = two(provider, Duration::from_secs(2));
        let (memory, place) = (filled(BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, &memory, &lease);
        begin_stream(&mut from, &mut to, &place, &other);
        take_back(&mut from, None, &lease);
        memory.write(0, &vec![AFTER; SIZE as usize]);
        let end = arrival(&mut [&mut from], &mut to);
        expect_end_of_recalled(&end, &place);
    }
}

#[test]
fn a_place_that_is_recalled_while_it_is_filled_is_written_no_more() {
    for provider in PROVIDERS {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let (mut from, mut to) = two(provider, LONG);
        let (memory, place) = (filled(BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, &memory, &other);
        begin_stream(&mut from, &mut to, &place, &lease);
        send_number(&mut from, to.process(), 2);
        take_back(&mut to, Some(&mut from), &lease);
        place.write(0, &vec![AFTER; SIZE as usize]);
        let broken = arrival(&mut [&mut from], &mut to);
        assert!(matches!(broken, Arrival::Broken(_)), "{broken:?}");
        expect_number(&mut from, &mut to, 2);
        assert!(!has(&place, BEFORE), "{provider}");
        wait_until("the sender's memory", || {
            from.flush();
            to.flush();
            other.outstanding() == 0
        });
    }
}

#[test]
fn a_place_that_a_sender_without_life_was_to_fill_is_written_no_more() {
    for provider in PROVIDERS {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let (mut from, mut to) = two(provider, Duration::from_secs(2));
        let (memory, place) = (filled(BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, &memory, &other);
        begin_stream(&mut from, &mut to, &place, &lease);
        take_back(&mut to, None, &lease);
        place.write(0, &vec![AFTER; SIZE as usize]);
        let broken = arrival(&mut [], &mut to);
        assert!(matches!(broken, Arrival::Broken(_)), "{broken:?}");
        wait_until("the sender's memory", || {
            from.check_peers();
            from.flush();
            to.flush();
            from.next();
            other.outstanding() == 0
        });
        assert!(!has(&place, BEFORE), "{provider}");
    }
}
