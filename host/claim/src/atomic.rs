//! Atomic operations on claimed memory (Portals 4.3, PtlAtomic, PtlFetchAtomic,
//! PtlSwap): which there are, which are legal, and how they are carried out.
//!
//! Elements of 1, 2, 4 and 8 bytes that lie whole and naturally aligned in one claim
//! are updated by the processor's own atomics, coherent with the application's; floats
//! by compare and exchange. All others (16 and 32 bytes, unaligned, straddling two
//! claims) are gathered, computed and scattered under one lock of this process, so
//! they are atomic only towards other such operations through this process, which is
//! what the specification asks for.

use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Mutex, PoisonError};

use crate::claim::Claim;
use crate::element::{DoubleComplex, Element, FloatComplex, LongDouble, LongDoubleComplex};
use lintel_memory::Walk;

/// What an atomic does to its target. The numbers are those of `portals4.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Operation {
    /// The smaller of target and operand.
    Min = 0,
    /// The greater of target and operand.
    Max = 1,
    /// Target plus operand; integers wrap.
    Sum = 2,
    /// Target times operand; integers wrap.
    Prod = 3,
    /// 1 if either is not 0, else 0.
    Lor = 4,
    /// 1 if both are not 0, else 0.
    Land = 5,
    /// Bits set in either.
    Bor = 6,
    /// Bits set in both.
    Band = 7,
    /// 1 if exactly one is not 0, else 0.
    Lxor = 8,
    /// Bits set in exactly one.
    Bxor = 9,
    /// The operand replaces the target.
    Swap = 10,
    /// Replaces if the compare value equals the target.
    CswapEq = 11,
    /// Replaces if the compare value differs from the target.
    CswapNe = 12,
    /// Replaces if the compare value is less than or equal to the target.
    CswapLe = 13,
    /// Replaces if the compare value is less than the target.
    CswapLt = 14,
    /// Replaces if the compare value is greater than or equal to the target.
    CswapGe = 15,
    /// Replaces if the compare value is greater than the target.
    CswapGt = 16,
    /// Replaces the bits that are set in the compare value.
    Mswap = 17,
}

/// What the elements are. The numbers are those of `portals4.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Datatype {
    /// `int8_t`
    Int8 = 0,
    /// `uint8_t`
    Uint8 = 1,
    /// `int16_t`
    Int16 = 2,
    /// `uint16_t`
    Uint16 = 3,
    /// `int32_t`
    Int32 = 4,
    /// `uint32_t`
    Uint32 = 5,
    /// `float`
    Float = 6,
    /// `int64_t`
    Int64 = 7,
    /// `uint64_t`
    Uint64 = 8,
    /// `double`
    Double = 9,
    /// `float complex`
    FloatComplex = 10,
    /// `double complex`
    DoubleComplex = 11,
    /// `long double`: on x86-64 ten bytes in sixteen.
    LongDouble = 12,
    /// `long double complex`
    LongDoubleComplex = 13,
}

/// The call an operation arrives by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// PtlAtomic: the old value is dropped.
    Atomic,
    /// PtlFetchAtomic: the old value goes back.
    FetchAtomic,
    /// PtlSwap: the old value goes back, and there may be a compare value or mask.
    Swap,
}

/// A number that names no operation or datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown(pub u8);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names no atomic operation or datatype", self.0)
    }
}

impl std::error::Error for Unknown {}

impl Operation {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Operation; 18] = {
        use Operation::*;
        [
            Min, Max, Sum, Prod, Lor, Land, Bor, Band, Lxor, Bxor, Swap, CswapEq, CswapNe, CswapLe,
            CswapLt, CswapGe, CswapGt, Mswap,
        ]
    };

    /// Whether PtlSwap needs a compare value or mask; such a swap is limited to one
    /// element.
    #[inline]
    pub const fn uses_compare(self) -> bool {
        self as u8 >= Operation::CswapEq as u8
    }
}

impl Datatype {
    /// Every datatype, in the order of their numbers.
    pub const ALL: [Datatype; 14] = {
        use Datatype::*;
        [
            Int8,
            Uint8,
            Int16,
            Uint16,
            Int32,
            Uint32,
            Float,
            Int64,
            Uint64,
            Double,
            FloatComplex,
            DoubleComplex,
            LongDouble,
            LongDoubleComplex,
        ]
    };

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        use Datatype::*;
        match self {
            Int8 | Uint8 => 1,
            Int16 | Uint16 => 2,
            Int32 | Uint32 | Float => 4,
            Int64 | Uint64 | Double | FloatComplex => 8,
            DoubleComplex | LongDouble => 16,
            LongDoubleComplex => 32,
        }
    }

    /// Whether elements are whole numbers.
    #[inline]
    pub const fn is_integer(self) -> bool {
        use Datatype::*;
        matches!(
            self,
            Int8 | Uint8 | Int16 | Uint16 | Int32 | Uint32 | Int64 | Uint64
        )
    }

    /// Whether elements are pairs of a real and an imaginary part.
    #[inline]
    pub const fn is_complex(self) -> bool {
        use Datatype::*;
        matches!(self, FloatComplex | DoubleComplex | LongDoubleComplex)
    }
}

impl TryFrom<u8> for Operation {
    type Error = Unknown;

    fn try_from(number: u8) -> Result<Operation, Unknown> {
        Operation::ALL
            .get(usize::from(number))
            .copied()
            .ok_or(Unknown(number))
    }
}

impl TryFrom<u8> for Datatype {
    type Error = Unknown;

    fn try_from(number: u8) -> Result<Datatype, Unknown> {
        Datatype::ALL
            .get(usize::from(number))
            .copied()
            .ok_or(Unknown(number))
    }
}

/// Whether Portals 4.3 allows this operation on this datatype by this call: logical,
/// bitwise and masked ones need integers, ordering ones anything but complex numbers,
/// sum, product, swap and the swaps on (in)equality take everything.
pub const fn valid(operation: Operation, datatype: Datatype, kind: Kind) -> bool {
    use Operation::*;
    let is_swap = operation as u8 >= Swap as u8;
    if is_swap != matches!(kind, Kind::Swap) {
        return false;
    }
    match operation {
        Sum | Prod | Swap | CswapEq | CswapNe => true,
        Min | Max | CswapLe | CswapLt | CswapGe | CswapGt => !datatype.is_complex(),
        Lor | Land | Bor | Band | Lxor | Bxor | Mswap => datatype.is_integer(),
    }
}

/// Applies `operand` to `target`, element by element (Portals 4.3, PtlAtomic).
///
/// `operand` holds whole elements of this machine's representation; whatever exceeds
/// the target, and a last broken element of either, is left out. A pair that [`valid`]
/// refuses does nothing.
#[inline]
pub fn atomic(operation: Operation, datatype: Datatype, target: &[Claim], operand: &[u8]) {
    if quick(operation, datatype, target, operand).is_none() {
        let request = Request {
            operation,
            datatype,
            kind: Kind::Atomic,
            operand,
            compare: &[],
        };
        request.perform(target, &mut []);
    }
}

/// As [`atomic()`], and puts each element's old value into `fetched`, which is as long
/// as `operand` (Portals 4.3, PtlFetchAtomic).
#[inline]
pub fn fetch_atomic(
    operation: Operation,
    datatype: Datatype,
    target: &[Claim],
    operand: &[u8],
    fetched: &mut [u8],
) {
    if let Some(first) = fetched.first_chunk_mut() {
        if let Some(old) = quick(operation, datatype, target, operand) {
            *first = old.to_ne_bytes();
            return;
        }
    }
    let request = Request {
        operation,
        datatype,
        kind: Kind::FetchAtomic,
        operand,
        compare: &[],
    };
    request.perform(target, fetched);
}

/// Swaps `operand` into `target`, under the condition or mask that `compare` gives,
/// and puts each element's old value into `fetched`, which is as long as `operand`
/// (Portals 4.3, PtlSwap). A conditional swap replaces when "`compare` (relation)
/// target" holds: `CswapLe` replaces a target that is at least `compare`.
///
/// `compare` is one element, the same for every element of `operand`; for
/// [`Operation::Swap`] it isn't looked at. Without it the others do nothing.
pub fn swap(
    operation: Operation,
    datatype: Datatype,
    target: &[Claim],
    operand: &[u8],
    compare: &[u8],
    fetched: &mut [u8],
) {
    let request = Request {
        operation,
        datatype,
        kind: Kind::Swap,
        operand,
        compare,
    };
    request.perform(target, fetched);
}

/// The common case in a few instructions: one aligned 64-bit integer, summed or
/// combined by bits. Returns the old value, or `None` with nothing done.
#[inline]
fn quick(
    operation: Operation,
    datatype: Datatype,
    target: &[Claim],
    operand: &[u8],
) -> Option<u64> {
    let ([place], Datatype::Int64 | Datatype::Uint64) = (target, datatype) else {
        return None;
    };
    let operand = u64::from_ne_bytes(operand.try_into().ok()?);
    let cell = place.as_atomic_u64()?;
    match operation {
        Operation::Sum => Some(cell.fetch_add(operand, AcqRel)),
        Operation::Bxor => Some(cell.fetch_xor(operand, AcqRel)),
        Operation::Bor => Some(cell.fetch_or(operand, AcqRel)),
        Operation::Band => Some(cell.fetch_and(operand, AcqRel)),
        _ => None,
    }
}

/// An operation as it arrived.
struct Request<'a> {
    operation: Operation,
    datatype: Datatype,
    kind: Kind,
    operand: &'a [u8],
    compare: &'a [u8],
}

impl Request<'_> {
    #[inline(never)]
    fn perform(&self, target: &[Claim], fetched: &mut [u8]) {
        if !valid(self.operation, self.datatype, self.kind) {
            return;
        }
        let target = Walk::new(target);
        match self.datatype {
            Datatype::Int8 => self.each::<i8>(target, fetched),
            Datatype::Uint8 => self.each::<u8>(target, fetched),
            Datatype::Int16 => self.each::<i16>(target, fetched),
            Datatype::Uint16 => self.each::<u16>(target, fetched),
            Datatype::Int32 => self.each::<i32>(target, fetched),
            Datatype::Uint32 => self.each::<u32>(target, fetched),
            Datatype::Float => self.each::<f32>(target, fetched),
            Datatype::Int64 => self.each::<i64>(target, fetched),
            Datatype::Uint64 => self.each::<u64>(target, fetched),
            Datatype::Double => self.each::<f64>(target, fetched),
            Datatype::FloatComplex => self.each::<FloatComplex>(target, fetched),
            Datatype::DoubleComplex => self.each::<DoubleComplex>(target, fetched),
            Datatype::LongDouble => self.each::<LongDouble>(target, fetched),
            Datatype::LongDoubleComplex => self.each::<LongDoubleComplex>(target, fetched),
        }
    }

    fn each<T: Element>(&self, mut target: Walk<'_, Claim>, fetched: &mut [u8]) {
        let mut fetched = fetched.chunks_exact_mut(T::SIZE);
        for operand in self.operand.chunks_exact(T::SIZE) {
            let compare = match self.compare.get(..T::SIZE) {
                Some(compare) => compare,
                None if self.operation.uses_compare() => return,
                None => operand, // Not looked at.
            };
            let (operand, compare) = (T::get(operand), T::get(compare));
            let next = |target: T| target.next(self.operation, operand, compare);
            let Some(old) = T::update(target.front(), next).or_else(|| gathered(&target, next))
            else {
                return;
            };
            if let Some(fetched) = fetched.next() {
                old.put(fetched);
            }
            target.advance(T::SIZE as u64);
        }
    }
}

/// Held while an element is gathered, computed and scattered.
static GATHERED: Mutex<()> = Mutex::new(());

/// Updates an element that no atomic of the processor reaches. `None`, with nothing
/// done, when the target ends before the element does.
fn gathered<T: Element>(target: &Walk<'_, Claim>, next: impl Fn(T) -> Option<T>) -> Option<T> {
    let mut bytes = [0; LARGEST];
    let bytes = &mut bytes[..T::SIZE];
    let _alone = GATHERED.lock().unwrap_or_else(PoisonError::into_inner);
    if gather(target, bytes) < T::SIZE {
        return None;
    }
    let old = T::get(bytes);
    if let Some(new) = next(old) {
        new.put(bytes);
        scatter(target, bytes);
    }
    Some(old)
}

/// Bytes of the largest element.
const LARGEST: usize = Datatype::LongDoubleComplex.size();

/// Gathers bytes from where a walk stands; returns how many there were.
fn gather(from: &Walk<'_, Claim>, mut into: &mut [u8]) -> usize {
    let wanted = into.len();
    for piece in from.pieces() {
        let count = piece.read(into);
        into = &mut into[count..];
        if into.is_empty() {
            break;
        }
    }
    wanted - into.len()
}

/// Scatters bytes to where a walk stands; returns how many had a place.
fn scatter(to: &Walk<'_, Claim>, mut from: &[u8]) -> usize {
    let wanted = from.len();
    for piece in to.pieces() {
        let count = piece.write(from);
        from = &from[count..];
        if from.is_empty() {
            break;
        }
    }
    wanted - from.len()
}
