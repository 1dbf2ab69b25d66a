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
    if !valid(operation, datatype, AtomicCall::Atomic) {
        return 0;
    }
    match datatype {
        Datatype::Int8 => run::<i8>(operation, from, to),
        Datatype::Uint8 => run::<u8>(operation, from, to),
        Datatype::Int16 => run::<i16>(operation, from, to),
        Datatype::Uint16 => run::<u16>(operation, from, to),
        Datatype::Int32 => run::<i32>(operation, from, to),
        Datatype::Uint32 => run::<u32>(operation, from, to),
        Datatype::Float => run::<f32>(operation, from, to),
        Datatype::Int64 => run::<i64>(operation, from, to),
        Datatype::Uint64 => run::<u64>(operation, from, to),
        Datatype::Double => run::<f64>(operation, from, to),
        Datatype::FloatComplex => run::<FloatComplex>(operation, from, to),
        Datatype::DoubleComplex => run::<DoubleComplex>(operation, from, to),
        Datatype::LongDouble => run::<LongDouble>(operation, from, to),
        Datatype::LongDoubleComplex => run::<LongDoubleComplex>(operation, from, to),
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
fn run<T: Element>(operation: Operation, from: Claim, to: Claim) -> u64 {
    /// With the operation as a constant that [`Element::next`] is folded by.
    macro_rules! each {
        ($($name:ident),*) => {
            match operation {
                $(Operation::$name => {
                    fold::<T>(from, to, |target, operand| {
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
fn fold<T: Element>(from: Claim, to: Claim, next: impl Fn(T, T) -> T) -> u64 {
    let elements = from.len().min(to.len()) as usize / T::SIZE;
    let (from, to): (*const T, *mut T) = (from.start().cast(), to.start().cast());
    for place in 0..elements {
        let (from, to) = (from.wrapping_add(place), to.wrapping_add(place));
        // SAFETY: within the claim, which is readable (Claim::new); every element is
        // plain bytes, as many as it names (Element), whatever they are.
        let operand = unsafe { from.read_unaligned() };
        // SAFETY: as above.
        let target = unsafe { to.read_unaligned() };
        // SAFETY: within the claim, which is writable (Claim::new).
        unsafe { to.write_unaligned(next(target, operand)) };
    }
    (elements * T::SIZE) as u64
}
