//! Indices: one type for each table, so that one can't be taken for another.

use crate::{Error, Result};

/// An index of one table. The tables of the engines hand them out, and handles carry them.
macro_rules! indices {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub u16);

        impl $name {
            /// The index as the position in an array.
            #[inline(always)]
            pub const fn position(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u16> for $name {
            #[inline(always)]
            fn from(index: u16) -> Self {
                $name(index)
            }
        }

        impl From<$name> for u16 {
            #[inline(always)]
            fn from(index: $name) -> u16 {
                index.0
            }
        }
    )*};
}

indices! {
    /// A list entry or match list entry of an interface, linked or not.
    EntryIndex;
    /// An event queue of an interface.
    QueueIndex;
    /// A counting event of an interface.
    CounterIndex;
    /// The header of an unexpected message of an interface.
    HeaderIndex;
    /// An operation in flight; the low half of its token.
    OperationIndex;
    /// A memory descriptor of an interface.
    DescriptorIndex;
    /// An entry of the portal table: a `ptl_pt_index_t` that a header can carry.
    PortalIndex;
}

impl TryFrom<u32> for PortalIndex {
    type Error = Error;

    /// # Errors
    /// `ArgInvalid` for a number that no header can carry.
    #[inline(always)]
    fn try_from(index: u32) -> Result<Self> {
        u16::try_from(index)
            .map(PortalIndex)
            .map_err(|_| Error::ArgInvalid)
    }
}

impl From<PortalIndex> for u32 {
    #[inline(always)]
    fn from(index: PortalIndex) -> u32 {
        index.0.into()
    }
}

/// One of the four interfaces of a process, by what it is: `matching | logical << 1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct InterfaceNumber(u8);

impl InterfaceNumber {
    /// How many interfaces a process can have.
    pub const COUNT: usize = 4;
    /// All numbers, in ascending order.
    pub const ALL: [InterfaceNumber; Self::COUNT] = [
        InterfaceNumber(0),
        InterfaceNumber(1),
        InterfaceNumber(2),
        InterfaceNumber(3),
    ];

    /// The number of an interface that matches by bits or not, and addresses by rank or not.
    #[inline(always)]
    pub const fn new(matching: bool, logical: bool) -> Self {
        InterfaceNumber(matching as u8 | (logical as u8) << 1)
    }

    /// The number in the low two bits; the others are ignored.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        InterfaceNumber(bits & 3)
    }

    /// The number itself, 0 to 3.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The number as the position in an array of [`COUNT`](Self::COUNT); the mask spares
    /// the bounds check.
    #[inline(always)]
    pub const fn position(self) -> usize {
        self.0 as usize & 3
    }

    /// Whether the interface matches by bits.
    #[inline(always)]
    pub const fn is_matching(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the interface addresses by rank.
    #[inline(always)]
    pub const fn is_logical(self) -> bool {
        self.0 & 2 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_number_says_how_the_interface_matches_and_addresses() {
        for (position, number) in InterfaceNumber::ALL.into_iter().enumerate() {
            let same = InterfaceNumber::new(number.is_matching(), number.is_logical());
            assert_eq!((same, number.position()), (number, position));
            assert_eq!(InterfaceNumber::from_bits(number.bits() | 0xfc), number);
        }
        assert_eq!(InterfaceNumber::new(true, false).bits(), 1);
        assert_eq!(InterfaceNumber::new(false, true).bits(), 2);
    }

    #[test]
    fn a_portal_table_index_that_no_header_carries_is_refused() {
        assert_eq!(PortalIndex::try_from(0xffff_u32), Ok(PortalIndex(0xffff)));
        assert_eq!(PortalIndex::try_from(0x1_0000_u32), Err(Error::ArgInvalid));
        assert_eq!(u32::from(PortalIndex(7)), 7);
    }

    #[test]
    fn an_index_is_no_larger_than_its_number() {
        assert_eq!(size_of::<Option<EntryIndex>>(), size_of::<Option<u16>>());
        assert_eq!(size_of::<InterfaceNumber>(), 1);
        assert_eq!(QueueIndex(9).position(), 9);
        assert_eq!(u16::from(CounterIndex::from(8)), 8);
    }
}
