//! Every operation on every datatype against a plain oracle, in every placement.

use std::collections::HashSet;

use lintel_claim::{
    AtomicCall, Claim, Datatype, Operation, Region, atomic, combine, combine_bytes, combine_with,
    fetch_atomic, swap, valid,
};

/// What an element holds, wide enough for every datatype. Tests use quarters of small
/// integers, which every float holds exactly, so that sums and products are exact.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Whole(i128),
    Number(f64, f64),
}
use Value::{Number, Whole};

fn encode(datatype: Datatype, value: Value) -> Vec<u8> {
    let size = datatype.size();
    match (datatype, value) {
        (Datatype::Float, Number(re, _)) => (re as f32).to_ne_bytes().to_vec(),
        (Datatype::Double, Number(re, _)) => re.to_ne_bytes().to_vec(),
        (Datatype::LongDouble, Number(re, _)) => extended(re).to_vec(),
        (Datatype::FloatComplex, Number(re, im)) => {
            [(re as f32).to_ne_bytes(), (im as f32).to_ne_bytes()].concat()
        }
        (Datatype::DoubleComplex, Number(re, im)) => [re.to_ne_bytes(), im.to_ne_bytes()].concat(),
        (Datatype::LongDoubleComplex, Number(re, im)) => [extended(re), extended(im)].concat(),
        (_, Whole(value)) => value.to_le_bytes()[..size].to_vec(),
        _ => unreachable!("integers are whole, others are not"),
    }
}

/// The 80-bit format of x87 in sixteen bytes: a 64-bit significand with its leading
/// bit, then sign and exponent.
fn extended(value: f64) -> [u8; 16] {
    let bits = value.to_bits();
    let (sign, exponent, fraction) = (bits >> 63, (bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    let (exponent, significand) = match exponent {
        0 => (0, 0), // Tests use no subnormal numbers.
        0x7ff => (0x7fff, (1 << 63) | (fraction << 11)),
        _ => (exponent + 16383 - 1023, (1 << 63) | (fraction << 11)),
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&significand.to_le_bytes());
    bytes[8..10].copy_from_slice(&((sign << 15 | exponent) as u16).to_le_bytes());
    bytes
}

/// Cuts a whole number to what the datatype holds.
fn wrapped(datatype: Datatype, value: i128) -> Value {
    use Datatype::*;
    Whole(match datatype {
        Int8 => i128::from(value as i8),
        Uint8 => i128::from(value as u8),
        Int16 => i128::from(value as i16),
        Uint16 => i128::from(value as u16),
        Int32 => i128::from(value as i32),
        Uint32 => i128::from(value as u32),
        Int64 => i128::from(value as i64),
        Uint64 => i128::from(value as u64),
        _ => unreachable!("only integers wrap"),
    })
}

/// The specification's sentence for each operation; returns the new target.
fn oracle(op: Operation, ty: Datatype, target: Value, operand: Value, compare: Value) -> Value {
    use Operation::*;
    if let (Whole(t), Whole(o), Whole(c)) = (target, operand, compare) {
        let new = match op {
            Sum => t + o,
            Prod => t.wrapping_mul(o),
            Lor => i128::from(t != 0 || o != 0),
            Land => i128::from(t != 0 && o != 0),
            Lxor => i128::from((t != 0) ^ (o != 0)),
            Bor => t | o,
            Band => t & o,
            Bxor => t ^ o,
            Mswap => (t & !c) | (o & c),
            Min => t.min(o),
            Max => t.max(o),
            Swap => o,
            CswapEq | CswapNe | CswapLe | CswapLt | CswapGe | CswapGt => {
                if holds(op, (c == t, c < t)) { o } else { t }
            }
        };
        return wrapped(ty, new);
    }
    let (Number(a, b), Number(c, d), Number(x, y)) = (target, operand, compare) else {
        unreachable!("all of one datatype")
    };
    match op {
        Sum => Number(a + c, b + d),
        Prod if ty.is_complex() => Number(a * c - b * d, a * d + b * c),
        Prod => Number(a * c, 0.0),
        Min => Number(a.min(c), 0.0),
        Max => Number(a.max(c), 0.0),
        Swap => operand,
        _ if holds(op, ((x, y) == (a, b), x < a)) => operand,
        _ => target,
    }
}

/// Whether "compare (relation) target" holds, given (equal, less).
fn holds(op: Operation, (equal, less): (bool, bool)) -> bool {
    match op {
        Operation::CswapEq => equal,
        Operation::CswapNe => !equal,
        Operation::CswapLe => less || equal,
        Operation::CswapLt => less,
        Operation::CswapGe => !less,
        Operation::CswapGt => !less && !equal,
        _ => unreachable!("no conditional swap"),
    }
}

/// Interesting values of a datatype.
fn samples(datatype: Datatype) -> Vec<Value> {
    if datatype.is_integer() {
        let edge = 1i128 << (datatype.size() * 8 - 1);
        let wholes = [0, 1, 2, 5, -1, -3, 77, edge, edge - 1, -edge, 2 * edge - 1];
        return wholes.map(|value| wrapped(datatype, value)).to_vec();
    }
    let reals = [0.25, 1.0, -1.0, 2.5, -7.75, 100.0];
    if !datatype.is_complex() {
        return reals.map(|re| Number(re, 0.0)).to_vec();
    }
    let pairs = reals.into_iter().zip([1.5, -0.25, 3.0, 1.5, -2.0, 0.5]);
    pairs.map(|(re, im)| Number(re, im)).collect()
}

/// Where an element may lie: aligned, unaligned, and broken by claims at each byte.
fn placements(size: usize) -> impl Iterator<Item = (u64, Option<u64>)> {
    let broken = (1..size as u64).map(|at| (0, Some(at)));
    [(0, None), (1, None), (size as u64, None)]
        .into_iter()
        .chain(broken)
}

fn claims_at(region: &Region, offset: u64, broken: Option<u64>, bytes: u64) -> Vec<Claim> {
    let whole = region.claim().slice(offset, bytes);
    match broken {
        None => vec![whole],
        Some(at) => vec![whole.slice(0, at), Claim::empty(), whole.slice(at, bytes)],
    }
}

fn kind_of(operation: Operation) -> AtomicCall {
    if operation >= Operation::Swap {
        AtomicCall::Swap
    } else {
        AtomicCall::FetchAtomic
    }
}

fn legal_pairs() -> impl Iterator<Item = (Operation, Datatype)> {
    Operation::ALL
        .into_iter()
        .flat_map(|op| Datatype::ALL.map(|ty| (op, ty)))
        .filter(|(op, ty)| valid(*op, *ty, kind_of(*op)))
}

/// Runs one element through the call that fits and checks target, old value and the
/// bytes around.
fn check(op: Operation, ty: Datatype, [target, operand, compare]: [Value; 3]) {
    let size = ty.size();
    let new = encode(ty, oracle(op, ty, target, operand, compare));
    let [old, operand, compare] = [target, operand, compare].map(|value| encode(ty, value));
    for (offset, broken) in placements(size) {
        let region = Region::new(128);
        region.write(0, &[0xa5; 128]);
        region.write(offset, &old);
        let claims = claims_at(&region, offset, broken, size as u64);
        let mut fetched = vec![0; size];
        match kind_of(op) {
            AtomicCall::Swap => swap(op, ty, &claims, &operand, &compare, &mut fetched),
            _ => fetch_atomic(op, ty, &claims, &operand, &mut fetched),
        }
        let mut seen = [0; 128];
        region.read(0, &mut seen);
        let mut wanted = [0xa5; 128];
        wanted[offset as usize..][..size].copy_from_slice(&new);
        let place = format!("{op:?} on {ty:?} at {offset}, broken at {broken:?}");
        assert_eq!(
            seen, wanted,
            "{place}: {old:?} with {operand:?} by {compare:?}"
        );
        assert_eq!(fetched, old, "{place}: old value");
        if kind_of(op) == AtomicCall::FetchAtomic {
            region.write(offset, &old);
            atomic(op, ty, &claims, &operand);
            region.read(0, &mut seen);
            assert_eq!(seen, wanted, "{place}: without fetching");
        }
    }
}

#[test]
fn every_operation_on_every_datatype_matches_the_oracle() {
    for (op, ty) in legal_pairs() {
        let samples = samples(ty);
        for &target in &samples {
            for &operand in &samples {
                let compares = if op.uses_compare() {
                    &samples[..]
                } else {
                    &samples[..1]
                };
                for &compare in compares {
                    check(op, ty, [target, operand, compare]);
                }
            }
        }
    }
}

#[test]
fn many_elements_across_broken_claims_match_the_oracle() {
    for (op, ty) in legal_pairs().filter(|(op, _)| !op.uses_compare()) {
        let (samples, size) = (samples(ty), ty.size());
        let operands: Vec<Value> = samples.iter().rev().copied().collect();
        let bytes = |values: &[Value]| -> Vec<u8> {
            values.iter().flat_map(|value| encode(ty, *value)).collect()
        };
        let (old, operand) = (bytes(&samples), bytes(&operands));
        let pairs = samples.iter().zip(&operands);
        let new: Vec<Value> = pairs.map(|(t, o)| oracle(op, ty, *t, *o, *t)).collect();
        let region = Region::new(512);
        for cut in [1, 3, size as u64, 2 * size as u64 + 1] {
            region.write(0, &old);
            let claims = claims_at(&region, 0, Some(cut), old.len() as u64);
            let mut fetched = vec![0; old.len()];
            match kind_of(op) {
                AtomicCall::Swap => swap(op, ty, &claims, &operand, &[], &mut fetched),
                _ => fetch_atomic(op, ty, &claims, &operand, &mut fetched),
            }
            let mut seen = vec![0; old.len()];
            region.read(0, &mut seen);
            assert_eq!(seen, bytes(&new), "{op:?} on {ty:?} cut at {cut}");
            assert_eq!(fetched, old, "{op:?} on {ty:?} cut at {cut}");
        }
    }
}

#[test]
fn combined_runs_match_the_oracle_wherever_they_lie() {
    for (op, ty) in legal_pairs().filter(|(op, _)| kind_of(*op) == AtomicCall::FetchAtomic) {
        let size = ty.size() as u64;
        let repeated = |values: Vec<Value>| values.into_iter().cycle().take(37);
        let targets = repeated(samples(ty));
        let operands = repeated(samples(ty).into_iter().rev().collect());
        let bytes = |value| encode(ty, value);
        let old: Vec<u8> = targets.clone().flat_map(bytes).collect();
        let operand: Vec<u8> = operands.clone().flat_map(bytes).collect();
        let pairs = targets.zip(operands);
        let new: Vec<u8> = pairs
            .flat_map(|(t, o)| bytes(oracle(op, ty, t, o, t)))
            .collect();
        for (from, to) in [(0, 0), (1, 0), (0, 3), (size, 5)] {
            let (source, sink) = (Region::new(2048), Region::new(2048));
            source.write(from, &operand);
            sink.write(to, &old);
            let target = sink.claim().slice(to, old.len() as u64 - 1);
            // The last element is broken, and stays.
            let done = combine(op, ty, source.claim().slice(from, u64::MAX), target);
            assert_eq!(done, 36 * size, "{op:?} on {ty:?}");
            let mut seen = vec![0; old.len()];
            sink.read(to, &mut seen);
            let (combined, kept) = seen.split_at(done as usize);
            assert_eq!(combined, &new[..done as usize], "{op:?} on {ty:?}");
            assert_eq!(kept, &old[done as usize..], "{op:?} on {ty:?}");
            let source = source.claim().slice(from, u64::MAX);
            let mut elsewhere = vec![7; done as usize];
            assert_eq!(combine_with(op, ty, &old, source, &mut elsewhere), done);
            assert_eq!(elsewhere, &new[..done as usize], "{op:?} on {ty:?}");
            let mut in_place = old.clone();
            combine_bytes(op, ty, &operand, &mut in_place);
            assert_eq!(in_place, new, "{op:?} on {ty:?}");
        }
    }
}

#[test]
fn numbers_are_those_of_the_header() {
    for (number, op) in Operation::ALL.into_iter().enumerate() {
        assert_eq!(
            (op as usize, Operation::try_from(number as u8)),
            (number, Ok(op))
        );
    }
    for (number, ty) in Datatype::ALL.into_iter().enumerate() {
        assert_eq!(
            (ty as usize, Datatype::try_from(number as u8)),
            (number, Ok(ty))
        );
    }
    assert!(Operation::try_from(18).is_err() && Datatype::try_from(14).is_err());
}

#[test]
fn only_the_pairs_of_the_specification_are_valid() {
    use Operation::*;
    for (op, ty) in Operation::ALL
        .into_iter()
        .flat_map(|op| Datatype::ALL.map(|ty| (op, ty)))
    {
        let legal = match op {
            Lor | Land | Bor | Band | Lxor | Bxor | Mswap => ty.is_integer(),
            Min | Max | CswapLe | CswapLt | CswapGe | CswapGt => !ty.is_complex(),
            Sum | Prod | Swap | CswapEq | CswapNe => true,
        };
        let swaps = op as u8 >= 10;
        assert_eq!(
            valid(op, ty, AtomicCall::Atomic),
            legal && !swaps,
            "{op:?} {ty:?}"
        );
        assert_eq!(
            valid(op, ty, AtomicCall::FetchAtomic),
            legal && !swaps,
            "{op:?} {ty:?}"
        );
        assert_eq!(
            valid(op, ty, AtomicCall::Swap),
            legal && swaps,
            "{op:?} {ty:?}"
        );
    }
}

#[test]
fn a_refused_pair_leaves_target_and_result_alone() {
    let region = Region::new(32);
    region.write(0, &[7; 32]);
    let (operand, mut fetched) = ([1; 32], [9; 32]);
    for (op, ty) in Operation::ALL
        .into_iter()
        .flat_map(|op| Datatype::ALL.map(|ty| (op, ty)))
    {
        if !valid(op, ty, AtomicCall::FetchAtomic) {
            let halves = (region.claim().slice(0, 16), region.claim().slice(16, 16));
            assert_eq!(combine(op, ty, halves.0, halves.1), 0);
            atomic(op, ty, &[region.claim()], &operand);
            fetch_atomic(op, ty, &[region.claim()], &operand, &mut fetched);
        }
        if !valid(op, ty, AtomicCall::Swap) {
            swap(op, ty, &[region.claim()], &operand, &operand, &mut fetched);
        }
    }
    let mut seen = [0; 32];
    region.read(0, &mut seen);
    assert_eq!((seen, fetched), ([7; 32], [9; 32]));
}

#[test]
fn elements_beyond_a_short_target_or_operand_are_left_out() {
    let region = Region::new(64);
    let ones: Vec<u8> = [1u64; 4].iter().flat_map(|one| one.to_ne_bytes()).collect();
    atomic(
        Operation::Sum,
        Datatype::Uint64,
        &[region.claim().slice(0, 20)],
        &ones,
    );
    atomic(
        Operation::Sum,
        Datatype::Uint64,
        &[region.claim()],
        &ones[..11],
    );
    let words = [0, 8, 16, 24].map(|at| region.claim().load_u64(at));
    assert_eq!(words, [Some(2), Some(1), Some(0), Some(0)]);
    atomic(Operation::Sum, Datatype::Uint64, &[], &ones);
    fetch_atomic(
        Operation::Sum,
        Datatype::Uint64,
        &[region.claim()],
        &ones[..8],
        &mut [],
    );
    assert_eq!(
        region.claim().load_u64(0),
        Some(3),
        "a missing result adds once"
    );
    swap(
        Operation::CswapEq,
        Datatype::Uint64,
        &[region.claim()],
        &ones[..8],
        &[],
        &mut [],
    );
    assert_eq!(
        region.claim().load_u64(0),
        Some(3),
        "no compare value, no swap"
    );
}

#[test]
fn not_a_number_never_replaces_by_order() {
    use Operation::*;
    for ty in [Datatype::Float, Datatype::Double, Datatype::LongDouble] {
        let [nan, one] = [f64::NAN, 1.0].map(|value| encode(ty, Number(value, 0.0)));
        for (op, replaced) in [
            (CswapEq, false),
            (CswapNe, true),
            (CswapLe, false),
            (CswapLt, false),
            (CswapGe, false),
            (CswapGt, false),
        ] {
            let region = Region::new(16);
            region.write(0, &nan);
            swap(op, ty, &[region.claim()], &one, &nan, &mut []);
            let mut seen = vec![0; ty.size()];
            region.read(0, &mut seen);
            assert_eq!(seen == one, replaced, "{op:?} {ty:?}");
        }
        for op in [Min, Max] {
            let region = Region::new(16);
            region.write(0, &one);
            atomic(op, ty, &[region.claim()], &nan);
            let mut seen = vec![0; ty.size()];
            region.read(0, &mut seen);
            assert_eq!(seen, one, "{op:?} {ty:?}");
        }
    }
}

#[test]
fn an_infinite_complex_factor_gives_an_infinite_product() {
    let region = Region::new(16);
    let ty = Datatype::DoubleComplex;
    region.write(0, &encode(ty, Number(f64::INFINITY, f64::INFINITY)));
    atomic(
        Operation::Prod,
        ty,
        &[region.claim()],
        &encode(ty, Number(1.0, 1.0)),
    );
    let mut bytes = [0; 8];
    region.read(8, &mut bytes);
    assert_eq!(f64::from_ne_bytes(bytes), f64::INFINITY);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_keeps_sixty_four_bits_of_significand() {
    // 2^63 + 1, which a double would round to 2^63; then its square's leading bits.
    let region = Region::new(16);
    region.write(0, &extended(2f64.powi(63)));
    atomic(
        Operation::Sum,
        Datatype::LongDouble,
        &[region.claim()],
        &extended(1.0),
    );
    assert_eq!(region.claim().load_u64(0), Some((1 << 63) | 1));
    let operand = [0xff; 16].map(|byte: u8| byte); // Padding of an operand is dropped.
    let mut one = extended(1.0);
    one[10..].copy_from_slice(&operand[10..]);
    atomic(
        Operation::Sum,
        Datatype::LongDouble,
        &[region.claim()],
        &one,
    );
    assert_eq!(region.claim().load_u64(0), Some((1 << 63) | 2));
    assert_eq!(region.claim().load_u64(8), Some(16383 + 63));
}

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;

fn hammer(ty: Datatype, claims: &[Claim], one: Value) -> Vec<Vec<u8>> {
    let one = encode(ty, one);
    let work = || {
        let mut seen = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let mut old = vec![0; ty.size()];
            fetch_atomic(Operation::Sum, ty, claims, &one, &mut old);
            seen.push(old);
        }
        seen
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

#[test]
fn threads_that_sum_lose_nothing_and_see_every_value_once() {
    for ty in Datatype::ALL.into_iter().filter(|ty| ty.size() >= 4) {
        let total = THREADS * ROUNDS;
        let value = |count: usize| match ty.is_integer() {
            true => Whole(count as i128),
            false => Number(count as f64, 0.0),
        };
        for (offset, broken) in [(0, None), (3, None), (0, Some(2))] {
            let region = Region::new(64);
            let claims = claims_at(&region, offset, broken, ty.size() as u64);
            let seen = hammer(ty, &claims, value(1));
            let mut sum = vec![0; ty.size()];
            region.read(offset, &mut sum);
            assert_eq!(
                sum,
                encode(ty, value(total)),
                "{ty:?} at {offset}, {broken:?}"
            );
            let distinct: HashSet<_> = seen.into_iter().collect();
            assert_eq!(distinct.len(), total, "{ty:?} at {offset}, {broken:?}");
        }
    }
}
