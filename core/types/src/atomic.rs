//! Atomic operations and datatypes: which there are, and which are legal together
//! (Portals 4.3, section `Atomic operations`).

/// What an atomic does to its target. The numbers are those of `portals4.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u8", try_from = "u8"))]
#[repr(u8)]
pub enum Operation {
    /// The smaller of target and operand. Its number, 0, stands in what isn't atomic, too.
    #[default]
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u8", try_from = "u8"))]
#[repr(u8)]
pub enum Datatype {
    /// `int8_t`: one byte with sign
    #[default]
    Int8 = 0,
    /// `uint8_t`: one byte without sign
    Uint8 = 1,
    /// `int16_t`: two bytes with sign
    Int16 = 2,
    /// `uint16_t`: two bytes without sign
    Uint16 = 3,
    /// `int32_t`: four bytes with sign
    Int32 = 4,
    /// `uint32_t`: four bytes without sign
    Uint32 = 5,
    /// `float`: four bytes of IEEE 754
    Float = 6,
    /// `int64_t`: eight bytes with sign
    Int64 = 7,
    /// `uint64_t`: eight bytes without sign
    Uint64 = 8,
    /// `double`: eight bytes of IEEE 754
    Double = 9,
    /// `float complex`: a real and an imaginary `float`, eight bytes
    FloatComplex = 10,
    /// `double complex`: a real and an imaginary `double`, sixteen bytes
    DoubleComplex = 11,
    /// `long double`: on x86-64 ten bytes in sixteen.
    LongDouble = 12,
    /// `long double complex`: a real and an imaginary `long double`, 32 bytes
    LongDoubleComplex = 13,
}

/// The call an operation arrives by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicCall {
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

impl core::fmt::Display for Unknown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} names no atomic operation or datatype", self.0)
    }
}

impl core::error::Error for Unknown {}

impl Operation {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Operation; 18] = {
        use Operation::*;
        [
            Min, Max, Sum, Prod, Lor, Land, Bor, Band, Lxor, Bxor, Swap, CswapEq, CswapNe, CswapLe,
            CswapLt, CswapGe, CswapGt, Mswap,
        ]
    };

    /// Whether it belongs to PtlSwap.
    #[inline]
    pub const fn is_swap(self) -> bool {
        self as u8 >= Operation::Swap as u8
    }

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

impl From<Operation> for u8 {
    #[inline]
    fn from(operation: Operation) -> u8 {
        operation as u8
    }
}

impl From<Datatype> for u8 {
    #[inline]
    fn from(datatype: Datatype) -> u8 {
        datatype as u8
    }
}

impl TryFrom<u8> for Operation {
    type Error = Unknown;

    #[inline]
    fn try_from(number: u8) -> Result<Operation, Unknown> {
        Operation::ALL
            .get(usize::from(number))
            .copied()
            .ok_or(Unknown(number))
    }
}

impl TryFrom<u8> for Datatype {
    type Error = Unknown;

    #[inline]
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
pub const fn valid(operation: Operation, datatype: Datatype, call: AtomicCall) -> bool {
    use Operation::*;
    if operation.is_swap() != matches!(call, AtomicCall::Swap) {
        return false;
    }
    match operation {
        Sum | Prod | Swap | CswapEq | CswapNe => true,
        Min | Max | CswapLe | CswapLt | CswapGe | CswapGt => !datatype.is_complex(),
        Lor | Land | Bor | Band | Lxor | Bxor | Mswap => datatype.is_integer(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_operations_and_datatypes_up_to_the_last() {
        for number in 0..=u8::MAX {
            let operation = Operation::try_from(number);
            let datatype = Datatype::try_from(number);
            assert_eq!(operation.is_ok(), number < 18, "{number}");
            assert_eq!(datatype.is_ok(), number < 14, "{number}");
            assert_eq!(operation.map_or(number, u8::from), number);
            assert_eq!(datatype.map_or(number, u8::from), number);
        }
    }

    #[test]
    fn an_element_has_the_size_of_the_c_type() {
        let sizes = Datatype::ALL.map(Datatype::size);
        assert_eq!(sizes, [1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32]);
    }

    #[test]
    fn swaps_begin_with_swap_and_those_that_compare_follow() {
        use Operation::{Bxor, CswapEq, Mswap, Swap};
        let swaps = [Bxor, Swap, CswapEq, Mswap].map(Operation::is_swap);
        assert_eq!(swaps, [false, true, true, true]);
        let compare = [Bxor, Swap, CswapEq, Mswap].map(Operation::uses_compare);
        assert_eq!(compare, [false, false, true, true]);
    }

    #[test]
    fn bits_need_integers_and_order_needs_real_numbers() {
        use AtomicCall::{Atomic, FetchAtomic, Swap};
        for call in [Atomic, FetchAtomic] {
            assert!(valid(Operation::Sum, Datatype::FloatComplex, call));
            assert!(valid(Operation::Max, Datatype::LongDouble, call));
            assert!(!valid(Operation::Max, Datatype::LongDoubleComplex, call));
            assert!(valid(Operation::Bor, Datatype::Uint8, call));
            assert!(!valid(Operation::Bor, Datatype::Double, call));
            assert!(!valid(Operation::Swap, Datatype::Int64, call));
        }
        assert!(!valid(Operation::Sum, Datatype::Int64, Swap));
        assert!(valid(Operation::CswapNe, Datatype::DoubleComplex, Swap));
        assert!(!valid(Operation::CswapLt, Datatype::DoubleComplex, Swap));
        assert!(!valid(Operation::Mswap, Datatype::Float, Swap));
        assert!(valid(Operation::Mswap, Datatype::Int16, Swap));
    }

    #[test]
    fn a_number_that_names_none_is_part_of_the_message() {
        extern crate alloc;
        let text = alloc::string::ToString::to_string(&Unknown(200));
        assert!(text.contains("200"), "{text}");
    }
}
