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
use lintel_types::{AtomicCall, Datatype, Operation, valid};

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
            call: AtomicCall::Atomic,
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
        call: AtomicCall::FetchAtomic,
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
        call: AtomicCall::Swap,
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
    word_atomic(operation, *place, operand)
}

/// Sums a 64-bit integer at the front of `target`, or combines it by bits, with one instruction
/// of the processor. Returns the old value, or `None`, with nothing done, for other operations
/// and where no aligned word is.
///
/// ```
/// use lintel_claim::{Region, word_atomic};
/// use lintel_types::Operation;
/// let word = Region::new(8).claim();
/// assert_eq!(word_atomic(Operation::Sum, word, 5), Some(0));
/// assert_eq!(word_atomic(Operation::Bxor, word, 1), Some(5));
/// assert_eq!(word_atomic(Operation::Prod, word, 2), None);
/// assert_eq!(word.load_u64(0), Some(4));
/// ```
#[inline(always)]
pub fn word_atomic(operation: Operation, target: Claim, operand: u64) -> Option<u64> {
    let cell = target.as_atomic_u64()?;
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
    call: AtomicCall,
    operand: &'a [u8],
    compare: &'a [u8],
}

impl Request<'_> {
    #[inline(never)]
    fn perform(&self, target: &[Claim], fetched: &mut [u8]) {
        if !valid(self.operation, self.datatype, self.call) {
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
