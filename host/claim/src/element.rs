//! One element of an atomic operation: its bytes, its arithmetic, and the processor's
//! atomic for its size.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use crate::claim::Claim;
use crate::native;
use lintel_types::Operation;

/// A value of one of the Portals datatypes: `SIZE` plain bytes, any of which make one.
pub(crate) trait Element: Copy {
    const SIZE: usize;

    /// The value of exactly `SIZE` bytes.
    fn get(bytes: &[u8]) -> Self;

    /// Fills exactly `SIZE` bytes.
    fn put(self, bytes: &mut [u8]);

    fn sum(self, other: Self) -> Self;

    fn product(self, other: Self) -> Self;

    /// `None` if neither comes first: not-a-number, and different complex numbers.
    fn order(self, other: Self) -> Option<Ordering>;

    /// The logical, bitwise and masked operations, which only integers have.
    fn bitwise(self, _: Operation, _operand: Self, _mask: Self) -> Option<Self> {
        None
    }

    /// Replaces what is at `place` by `next` of it with the processor's atomic, and
    /// returns what was there. `None`, with nothing done, if there is no such
    /// atomic: elements beyond eight bytes, and unaligned or broken places.
    fn update(_place: Claim, _next: impl Fn(Self) -> Option<Self>) -> Option<Self> {
        None
    }

    /// What the target becomes; `None` when it stays as it is.
    #[inline]
    fn next(self, operation: Operation, operand: Self, compare: Self) -> Option<Self> {
        use Operation::*;
        use Ordering::{Equal, Greater, Less};
        let target = self;
        // The direction of a conditional swap: compare value (relation) target.
        let swap_if = |holds: bool| holds.then_some(operand);
        match operation {
            // On not-a-number the target stays, as with C's `operand < target ? … : …`.
            Min => swap_if(operand.order(target) == Some(Less)),
            Max => swap_if(operand.order(target) == Some(Greater)),
            Sum => Some(target.sum(operand)),
            Prod => Some(target.product(operand)),
            Lor | Land | Bor | Band | Lxor | Bxor | Mswap => {
                target.bitwise(operation, operand, compare)
            }
            Swap => Some(operand),
            CswapEq => swap_if(compare.order(target) == Some(Equal)),
            CswapNe => swap_if(compare.order(target) != Some(Equal)),
            CswapLe => swap_if(matches!(compare.order(target), Some(Less | Equal))),
            CswapLt => swap_if(compare.order(target) == Some(Less)),
            CswapGe => swap_if(matches!(compare.order(target), Some(Greater | Equal))),
            CswapGt => swap_if(compare.order(target) == Some(Greater)),
        }
    }
}

/// `Element::get` and `put` of a type with `from_ne_bytes`.
macro_rules! bytes {
    ($number:ty) => {
        const SIZE: usize = size_of::<$number>();

        #[inline]
        fn get(bytes: &[u8]) -> Self {
            Self::from_ne_bytes(bytes.try_into().expect("the caller cuts whole elements"))
        }

        #[inline]
        fn put(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_ne_bytes());
        }
    };
}

/// `Element::update` by compare and exchange on the atomic of the same size.
macro_rules! update {
    ($word:ty, $atomic:ty) => {
        #[inline]
        fn update(place: Claim, next: impl Fn(Self) -> Option<Self>) -> Option<Self> {
            if !place.is_word(size_of::<$atomic>() as u64) {
                return None;
            }
            // SAFETY: whole and aligned, just checked; valid while the claim is used
            // (Claim::new), and the reference ends with this function.
            let cell = unsafe { <$atomic>::from_ptr(place.start().cast()) };
            let old = cell.fetch_update(AcqRel, Acquire, |bits| {
                let mut bytes = bits.to_ne_bytes();
                next(Self::get(&bytes))?.put(&mut bytes);
                Some(<$word>::from_ne_bytes(bytes))
            });
            let (Ok(old) | Err(old)) = old;
            Some(Self::get(&old.to_ne_bytes()))
        }
    };
}

macro_rules! integer {
    ($($number:ty: $word:ty, $atomic:ty);*) => {$(
        impl Element for $number {
            bytes!($number);
            update!($word, $atomic);

            #[inline]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline]
            fn order(self, other: Self) -> Option<Ordering> {
                Some(self.cmp(&other))
            }

            #[inline]
            fn bitwise(self, operation: Operation, operand: Self, mask: Self) -> Option<Self> {
                let (a, b) = (self, operand);
                match operation {
                    Operation::Lor => Some(Self::from(a != 0 || b != 0)),
                    Operation::Land => Some(Self::from(a != 0 && b != 0)),
                    Operation::Lxor => Some(Self::from((a != 0) != (b != 0))),
                    Operation::Bor => Some(a | b),
                    Operation::Band => Some(a & b),
                    Operation::Bxor => Some(a ^ b),
                    Operation::Mswap => Some((mask & b) | (!mask & a)),
                    _ => None,
                }
            }
        }
    )*};
}

integer!(
    i8: u8, AtomicU8; u8: u8, AtomicU8; i16: u16, AtomicU16; u16: u16, AtomicU16;
    i32: u32, AtomicU32; u32: u32, AtomicU32; i64: u64, AtomicU64; u64: u64, AtomicU64
);

macro_rules! float {
    ($($number:ty: $word:ty, $atomic:ty);*) => {$(
        impl Element for $number {
            bytes!($number);
            update!($word, $atomic);

            #[inline]
            fn sum(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn product(self, other: Self) -> Self {
                self * other
            }

            #[inline]
            fn order(self, other: Self) -> Option<Ordering> {
                self.partial_cmp(&other)
            }
        }
    )*};
}

float!(f32: u32, AtomicU32; f64: u64, AtomicU64);

/// Values that Rust has no type for, as their bytes.
macro_rules! opaque {
    ($($(#[$note:meta])* $name:ident: $size:literal),*) => {$(
        $(#[$note])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name([u8; $size]);

        impl $name {
            fn from_ne_bytes(bytes: [u8; $size]) -> $name {
                $name(bytes)
            }

            fn to_ne_bytes(self) -> [u8; $size] {
                self.0
            }

            /// The result of a native function of two values.
            fn by(
                self,
                other: $name,
                native: extern "C" fn(&[u8; $size], &[u8; $size], &mut [u8; $size]),
            ) -> $name {
                let mut result = [0; $size];
                native(&self.0, &other.0, &mut result);
                $name(result)
            }
        }
    )*};
}

opaque!(
    /// `float complex`: two `float`, the real part first
    FloatComplex: 8,
    /// `double complex`: two `double`, the real part first
    DoubleComplex: 16,
    /// `long double`: of its sixteen bytes ten count
    LongDouble: 16,
    /// `long double complex`: two `long double`, the real part first
    LongDoubleComplex: 32
);

/// The real and imaginary part, one after the other.
macro_rules! complex_parts {
    ($name:ident of $part:ty) => {
        impl $name {
            fn parts(self) -> ($part, $part) {
                let (real, imaginary) = self.0.split_at(size_of::<$part>());
                (<$part>::get(real), <$part>::get(imaginary))
            }

            fn of_parts(real: $part, imaginary: $part) -> $name {
                let mut value = $name([0; _]);
                let (head, tail) = value.0.split_at_mut(size_of::<$part>());
                real.put(head);
                imaginary.put(tail);
                value
            }

            fn plus(self, other: $name) -> $name {
                let ((a, b), (c, d)) = (self.parts(), other.parts());
                $name::of_parts(a + c, b + d)
            }
        }
    };
}

complex_parts!(FloatComplex of f32);
complex_parts!(DoubleComplex of f64);

impl Element for FloatComplex {
    bytes!(FloatComplex);
    update!(u64, AtomicU64);

    fn sum(self, other: Self) -> Self {
        self.plus(other)
    }

    fn product(self, other: Self) -> Self {
        self.by(other, native::float_complex_product)
    }

    fn order(self, other: Self) -> Option<Ordering> {
        (self.parts() == other.parts()).then_some(Ordering::Equal)
    }
}

impl Element for DoubleComplex {
    bytes!(DoubleComplex);

    fn sum(self, other: Self) -> Self {
        self.plus(other)
    }

    fn product(self, other: Self) -> Self {
        self.by(other, native::double_complex_product)
    }

    fn order(self, other: Self) -> Option<Ordering> {
        (self.parts() == other.parts()).then_some(Ordering::Equal)
    }
}

impl Element for LongDouble {
    bytes!(LongDouble);

    fn sum(self, other: Self) -> Self {
        self.by(other, native::long_double_sum)
    }

    fn product(self, other: Self) -> Self {
        self.by(other, native::long_double_product)
    }

    fn order(self, other: Self) -> Option<Ordering> {
        match native::long_double_compare(&self.0, &other.0) {
            -1 => Some(Ordering::Less),
            0 => Some(Ordering::Equal),
            1 => Some(Ordering::Greater),
            _ => None,
        }
    }
}

impl Element for LongDoubleComplex {
    bytes!(LongDoubleComplex);

    fn sum(self, other: Self) -> Self {
        self.by(other, native::long_double_complex_sum)
    }

    fn product(self, other: Self) -> Self {
        self.by(other, native::long_double_complex_product)
    }

    fn order(self, other: Self) -> Option<Ordering> {
        let equal = native::long_double_complex_equal(&self.0, &other.0) != 0;
        equal.then_some(Ordering::Equal)
    }
}
