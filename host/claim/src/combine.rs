//! Combining long runs of elements, for memory that no other thread or process changes
//! meanwhile: no atomics, so that the compiler can vectorize.

use crate::claim::Claim;
use crate::element::{DoubleComplex, Element, FloatComplex, LongDouble, LongDoubleComplex};
use lintel_types::{AtomicCall, Datatype, Operation, valid};

/// Combines the elements of `to` with those of `from` as PtlAtomic does, and returns how
/// many bytes that are: whole elements, as many as both have. A pair that [`valid`]
/// refuses does nothing. Either may lie anywhere, but they don't overlap.
///
/// Unlike [`atomic()`](crate::atomic()), it loses what other threads or processes write
/// to `to` meanwhile.
///
/// ```
/// use lintel_claim::{Datatype, Operation, Region, combine};
///
/// let (from, to) = (Region::new(8), Region::new(8));
/// from.write(0, &[1; 8]);
/// to.write(0, &[2; 8]);
/// let done = combine(Operation::Sum, Datatype::Uint8, from.claim(), to.claim());
/// assert_eq!(done, 8);
/// let mut sums = [0; 8];
/// to.read(0, &mut sums);
/// assert_eq!(sums, [3; 8]);
/// ```
pub fn combine(operation: Operation, datatype: Datatype, from: Claim, to: Claim) -> u64 {
    let places = Places {
        target: to,
        operand: from,
        result: to,
    };
    combine_places::<IN_PLACE>(operation, datatype, places)
}

/// As [`combine`], all of it bytes of our own that only this thread sees.
///
/// ```
/// use lintel_claim::{Datatype, Operation, combine_bytes};
///
/// let mut greater = [1, 9];
/// assert_eq!(combine_bytes(Operation::Max, Datatype::Uint8, &[5, 5], &mut greater), 2);
/// assert_eq!(greater, [5, 9]);
/// ```
pub fn combine_bytes(operation: Operation, datatype: Datatype, from: &[u8], to: &mut [u8]) -> u64 {
    combine_into(operation, datatype, source(from), to)
}

/// Combines elements of `target` with those of `from`, as [`combine`] does, but puts the results
/// into other bytes of our own, which needn't hold the targets first. Returns how many bytes that
/// are: whole elements, as many as all three have.
///
/// ```
/// use lintel_claim::{Datatype, Operation, Region, combine_with};
///
/// let from = Region::new(2);
/// from.write(0, &[3, 4]);
/// let mut sums = [0; 2];
/// let done = combine_with(Operation::Sum, Datatype::Uint8, &[10, 20], from.claim(), &mut sums);
/// assert_eq!((done, sums), (2, [13, 24]));
/// ```
pub fn combine_with(
    operation: Operation,
    datatype: Datatype,
    target: &[u8],
    from: Claim,
    to: &mut [u8],
) -> u64 {
    // SAFETY: as in `combine_into`.
    let result = unsafe { Claim::new(to.as_mut_ptr(), to.len() as u64) };
    let places = Places {
        target: source(target),
        operand: from,
        result,
    };
    combine_places::<ELSEWHERE>(operation, datatype, places)
}

/// Whether the result is where the target is. The compiler has to know: a loop for either would
/// find that result and target overlap, and combine one element after the other.
const IN_PLACE: bool = true;
const ELSEWHERE: bool = false;

/// Bytes that are only read, before their borrow ends.
fn source(bytes: &[u8]) -> Claim {
    // SAFETY: readable, and used only as a source within the calls above, which the borrow outlives.
    unsafe { Claim::new(bytes.as_ptr().cast_mut(), bytes.len() as u64) }
}

/// Where the elements are. The result overlaps no operand, nor the target unless it is in place.
struct Places {
    target: Claim,
    operand: Claim,
    result: Claim,
}

fn combine_places<const WHERE: bool>(
    operation: Operation,
    datatype: Datatype,
    places: Places,
) -> u64 {
    if !valid(operation, datatype, AtomicCall::Atomic) {
        return 0;
    }
    match datatype {
        Datatype::Int8 => run::<i8, WHERE>(operation, places),
        Datatype::Uint8 => run::<u8, WHERE>(operation, places),
        Datatype::Int16 => run::<i16, WHERE>(operation, places),
        Datatype::Uint16 => run::<u16, WHERE>(operation, places),
        Datatype::Int32 => run::<i32, WHERE>(operation, places),
        Datatype::Uint32 => run::<u32, WHERE>(operation, places),
        Datatype::Float => run::<f32, WHERE>(operation, places),
        Datatype::Int64 => run::<i64, WHERE>(operation, places),
        Datatype::Uint64 => run::<u64, WHERE>(operation, places),
        Datatype::Double => run::<f64, WHERE>(operation, places),
        Datatype::FloatComplex => run::<FloatComplex, WHERE>(operation, places),
        Datatype::DoubleComplex => run::<DoubleComplex, WHERE>(operation, places),
        Datatype::LongDouble => run::<LongDouble, WHERE>(operation, places),
        Datatype::LongDoubleComplex => run::<LongDoubleComplex, WHERE>(operation, places),
    }
}

/// As [`combine`], with bytes of our own that only this thread sees.
///
/// ```
/// use lintel_claim::{Datatype, Operation, Region, combine_into};
///
/// let from = Region::new(4);
/// from.write(0, &7u32.to_ne_bytes());
/// let mut sum = 5u32.to_ne_bytes();
/// assert_eq!(combine_into(Operation::Sum, Datatype::Uint32, from.claim(), &mut sum), 4);
/// assert_eq!(u32::from_ne_bytes(sum), 12);
/// ```
pub fn combine_into(operation: Operation, datatype: Datatype, from: Claim, to: &mut [u8]) -> u64 {
    // SAFETY: the borrow is exclusive and outlives this call, in which it isn't used but by the
    // claim; claims that others have made cover no memory of Rust's (Claim::new).
    let to = unsafe { Claim::new(to.as_mut_ptr(), to.len() as u64) };
    combine(operation, datatype, from, to)
}

/// A loop for each operation, which then is no question in it.
fn run<T: Element, const WHERE: bool>(operation: Operation, places: Places) -> u64 {
    /// With the operation as a constant that [`Element::next`] is folded by.
    macro_rules! each {
        ($($name:ident),*) => {
            match operation {
                $(Operation::$name => {
                    fold::<T, WHERE>(places, |target, operand| {
                        target.next(Operation::$name, operand, operand).unwrap_or(target)
                    })
                })*
                _ => 0,
            }
        };
    }
    each!(Min, Max, Sum, Prod, Lor, Land, Bor, Band, Lxor, Bxor)
}

#[inline(always)]
fn fold<T: Element, const WHERE: bool>(places: Places, next: impl Fn(T, T) -> T) -> u64 {
    let Places {
        target,
        operand,
        result,
    } = places;
    let bytes = target.len().min(operand.len()).min(result.len());
    let elements = bytes as usize / T::SIZE;
    let (operand, result): (*const T, *mut T) = (operand.start().cast(), result.start().cast());
    let target: *const T = match WHERE {
        IN_PLACE => result,
        ELSEWHERE => target.start().cast(),
    };
    for place in 0..elements {
        // SAFETY: within the claim, which is readable (Claim::new); every element is
        // plain bytes, as many as it names (Element), whatever they are.
        let operand = unsafe { operand.wrapping_add(place).read_unaligned() };
        // SAFETY: as above.
        let target = unsafe { target.wrapping_add(place).read_unaligned() };
        let result = result.wrapping_add(place);
        // SAFETY: within the claim, which is writable (Claim::new).
        unsafe { result.write_unaligned(next(target, operand)) };
    }
    (elements * T::SIZE) as u64
}
