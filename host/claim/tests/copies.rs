//! Claims, copies and regions against plain slices.

use lintel_claim::{
    Claim, Datatype, Operation, Region, atomic, copy, copy_checked, copy_long, copy_short,
    copy_vectored, swap,
};
use proptest::prelude::*;

fn region_of(bytes: &[u8]) -> Region {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

fn bytes_of(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read(0, &mut bytes);
    bytes
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 7 + at / 251 + 1) as u8)
        .collect()
}

/// As `copy`, by the way of short lengths where there is one.
fn copy_by_length(from: Claim, to: Claim) -> u64 {
    let length = from.len().min(to.len());
    let copied = copy_short(from, to);
    assert_eq!(copied.is_some(), (16..=64).contains(&length), "{length}");
    copied.unwrap_or_else(|| copy(from, to))
}

const COPIES: [fn(Claim, Claim) -> u64; 3] = [copy, copy_by_length, copy_long];

#[test]
fn a_copy_moves_exactly_its_bytes_at_every_length_and_alignment() {
    COPIES.into_iter().for_each(moves_exactly_its_bytes);
}

fn moves_exactly_its_bytes(copy: fn(Claim, Claim) -> u64) {
    for length in (0..=140).chain([1000, 2500, 4096]) {
        for (from, to) in [(0, 0), (1, 0), (0, 3), (5, 9), (2, 4110)] {
            let source = region_of(&pattern(9000));
            let sink = region_of(&[0xee; 9000]);
            let moved = copy(
                source.claim().slice(from, length),
                sink.claim().slice(to, u64::MAX),
            );
            assert_eq!(moved, length);
            let (from, to, length) = (from as usize, to as usize, length as usize);
            let mut wanted = vec![0xee; 9000];
            wanted[to..to + length].copy_from_slice(&pattern(9000)[from..from + length]);
            assert_eq!(
                bytes_of(&sink),
                wanted,
                "{length} bytes from {from} to {to}"
            );
        }
    }
}

/// Runs `work` on a claim of a heap block of exactly `length` bytes, whose bounds the
/// address sanitizer watches, and returns the block.
fn on_heap(length: usize, work: impl FnOnce(Claim)) -> Vec<u8> {
    let mut block = pattern(length).into_boxed_slice();
    // SAFETY: the block lives, and is touched through the claim only, until `work` ends.
    work(unsafe { Claim::new(block.as_mut_ptr(), length as u64) });
    block.into_vec()
}

#[test]
fn copies_and_atomics_stay_inside_blocks_of_their_exact_size() {
    for length in 0..=140 {
        let mut seen = vec![0; length];
        let sink = on_heap(length, |sink| {
            on_heap(length, |source| {
                assert_eq!(COPIES.map(|copy| copy(source, sink)), [length as u64; 3]);
                assert_eq!(source.read(&mut seen), length);
                assert_eq!(copy_vectored(&[source, source], &[sink]), length as u64);
                for datatype in Datatype::ALL {
                    swap(Operation::Swap, datatype, &[source], &seen, &[], &mut []);
                    atomic(Operation::Sum, datatype, &[source], &vec![0; length + 40]);
                }
            });
        });
        assert_eq!((&sink, &seen), (&pattern(length), &sink));
    }
}

#[test]
fn a_copy_over_itself_reads_before_it_writes() {
    COPIES.into_iter().for_each(reads_before_it_writes);
}

fn reads_before_it_writes(copy: fn(Claim, Claim) -> u64) {
    for length in (0..=140).chain([500, 3000]) {
        for (from, to) in (0..20).flat_map(|shift| [(20, shift), (shift, 20)]) {
            let region = region_of(&pattern(3100));
            copy(
                region.claim().slice(from, length),
                region.claim().slice(to, length),
            );
            let mut wanted = pattern(3100);
            wanted.copy_within(from as usize..(from + length) as usize, to as usize);
            assert_eq!(
                bytes_of(&region),
                wanted,
                "{length} bytes from {from} to {to}"
            );
        }
    }
}

#[test]
fn the_shorter_claim_limits_a_copy() {
    let (long, short) = (region_of(&pattern(100)), region_of(&[0; 40]));
    assert_eq!(copy(long.claim(), short.claim()), 40);
    assert_eq!(copy(short.claim(), long.claim()), 40);
    assert_eq!(copy(Claim::empty(), long.claim()), 0);
    assert_eq!(copy(long.claim(), Claim::empty()), 0);
}

#[test]
fn a_slice_never_grows() {
    let region = Region::new(100);
    let claim = region.claim();
    assert_eq!(claim.slice(10, 20).len(), 20);
    assert_eq!(claim.slice(10, 20).address(), claim.address() + 10);
    assert_eq!(claim.slice(90, 20).len(), 10);
    assert_eq!(claim.slice(10, 20).slice(5, u64::MAX).len(), 15);
    assert_eq!(claim.slice(100, 1).len(), 0);
    assert_eq!(claim.slice(u64::MAX, u64::MAX).len(), 0);
    assert_eq!(claim.slice(u64::MAX, 1).address(), claim.address() + 100);
}

#[test]
fn words_are_loaded_and_stored_inside_the_claim_only() {
    let region = Region::new(24);
    let claim = region.claim();
    for offset in [0, 3, 8, 16] {
        assert!(claim.store_u64(offset, 0x0123_4567_89ab_cdef));
        assert_eq!(claim.load_u64(offset), Some(0x0123_4567_89ab_cdef));
    }
    for offset in [17, 24, 1000, u64::MAX] {
        let before = bytes_of(&region);
        assert!(!claim.store_u64(offset, 0));
        assert_eq!(claim.load_u64(offset), None);
        assert_eq!(bytes_of(&region), before);
    }
}

#[test]
fn a_word_is_replaced_only_by_who_knows_it_and_inside_the_claim() {
    let region = Region::new(24);
    let claim = region.claim();
    assert!(claim.replace_u64(16, 0, 7));
    assert!(!claim.replace_u64(16, 0, 8));
    assert_eq!(claim.load_u64(16), Some(7));
    let before = bytes_of(&region);
    for offset in [3, 17, 24, u64::MAX] {
        assert!(!claim.replace_u64(offset, 0, 1), "{offset}");
    }
    assert_eq!(bytes_of(&region), before);
}

#[test]
fn reads_and_writes_stop_at_the_shorter_side() {
    let region = Region::new(8);
    assert_eq!(region.write(4, b"portal"), 4);
    assert_eq!(region.write(9, b"portal"), 0);
    let mut seen = [0; 6];
    assert_eq!(region.read(4, &mut seen), 4);
    assert_eq!(&seen, b"port\0\0");
}

#[test]
fn regions_begin_zeroed_and_page_aligned_even_when_their_pages_return() {
    for length in [0, 1, 4096, 4097, 100_000] {
        for _ in 0..3 {
            let region = Region::new(length);
            assert_eq!(region.claim().address() % 4096, 0);
            assert_eq!(region.claim().len(), length);
            assert!(bytes_of(&region).iter().all(|byte| *byte == 0));
            region.write(0, &vec![0xff; length as usize]);
        }
    }
}

#[test]
fn a_clone_keeps_the_bytes_and_a_late_claim_touches_no_foreign_memory() {
    let region = region_of(b"lintel");
    let (clone, late) = (region.clone(), region.claim());
    drop(region);
    assert_eq!(bytes_of(&clone), b"lintel");
    drop(clone);
    let mut seen = [1; 6];
    assert_eq!(late.read(&mut seen), 6);
}

#[test]
fn an_impossible_region_is_refused() {
    assert!(Region::try_new(u64::MAX).is_err());
    assert!(Region::try_new(1 << 62).is_err());
}

/// Pieces of one buffer: (offset, length) in order, some of them empty.
fn pieces() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let length = prop_oneof![3 => 0u64..20, 1 => 0u64..300];
    prop::collection::vec((0u64..2000, length), 0..12)
}

fn claims_of(region: &Region, pieces: &[(u64, u64)]) -> Vec<Claim> {
    pieces
        .iter()
        .map(|(offset, length)| region.claim().slice(*offset, *length))
        .collect()
}

/// The naive copy: every byte on its own.
fn naive(from: &[u8], source: &[(u64, u64)], to: &mut [u8], sink: &[(u64, u64)]) -> u64 {
    let places = |pieces: &[(u64, u64)], limit: u64| -> Vec<usize> {
        let spread = |&(offset, length): &(u64, u64)| offset..(offset + length).min(limit);
        pieces
            .iter()
            .flat_map(spread)
            .map(|place| place as usize)
            .collect()
    };
    let (source, sink) = (
        places(source, from.len() as u64),
        places(sink, to.len() as u64),
    );
    let pairs = source.into_iter().zip(sink);
    pairs.map(|(source, sink)| to[sink] = from[source]).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_vectored_copy_equals_the_naive_one(source in pieces(), sink in pieces()) {
        let (from, to) = (region_of(&pattern(2048)), region_of(&[0xee; 2048]));
        let moved = copy_vectored(&claims_of(&from, &source), &claims_of(&to, &sink));
        let mut wanted = vec![0xee; 2048];
        prop_assert_eq!(moved, naive(&pattern(2048), &source, &mut wanted, &sink));
        prop_assert_eq!(bytes_of(&to), wanted);
    }

    #[test]
    fn a_checked_copy_equals_the_naive_one(source in pieces(), sink in pieces()) {
        let (from, to) = (region_of(&pattern(2048)), region_of(&[0xee; 2048]));
        let moved = copy_checked(&claims_of(&from, &source), &claims_of(&to, &sink));
        let mut wanted = vec![0xee; 2048];
        prop_assert_eq!(moved, Ok(naive(&pattern(2048), &source, &mut wanted, &sink)));
        prop_assert_eq!(bytes_of(&to), wanted);
    }
}
