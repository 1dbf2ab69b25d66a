//! Handles: 32 bits that name an object and notice when it is gone.

use crate::InterfaceNumber;

/// What a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A network interface: `ptl_handle_ni_t`.
    Interface = 0,
    /// An event queue: `ptl_handle_eq_t`.
    EventQueue = 1,
    /// A counting event: `ptl_handle_ct_t`.
    Counter = 2,
    /// A memory descriptor: `ptl_handle_md_t`.
    MemoryDescriptor = 3,
    /// A list entry: `ptl_handle_le_t`.
    ListEntry = 4,
    /// A match list entry: `ptl_handle_me_t`.
    MatchEntry = 5,
}

/// `kind:3 | interface:2 | generation:11 | index:16`, highest bits first.
///
/// `PTL_EQ_NONE` (`0x3fffffff`) and `PTL_CT_NONE` (`0x5fffffff`) are the highest
/// handle of their kind and `PTL_INVALID_HANDLE` (`0xffffffff`) has no kind, so
/// no live object ever bears them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Handle(pub u32);

impl Handle {
    /// `PTL_EQ_NONE`: no event queue, so no full events.
    pub const EQ_NONE: Handle = Handle(0x3fff_ffff);
    /// `PTL_CT_NONE`: no counting event, so nothing is counted.
    pub const CT_NONE: Handle = Handle(0x5fff_ffff);
    /// `PTL_INVALID_HANDLE`: names no object of any kind.
    pub const INVALID: Handle = Handle(u32::MAX);
    /// Generations run from 0 to one below this.
    pub const GENERATIONS: u16 = 0x7ff;

    /// The handle of object `index` of a kind on `interface`, in its `generation`.
    pub const fn new(kind: Kind, interface: InterfaceNumber, generation: u16, index: u16) -> Self {
        Handle(
            (kind as u32) << 29
                | (interface.bits() as u32) << 27
                | (generation as u32 & 0x7ff) << 16
                | index as u32,
        )
    }

    /// What the handle names, if anything.
    pub const fn kind(self) -> Option<Kind> {
        Some(match self.0 >> 29 {
            0 => Kind::Interface,
            1 => Kind::EventQueue,
            2 => Kind::Counter,
            3 => Kind::MemoryDescriptor,
            4 => Kind::ListEntry,
            5 => Kind::MatchEntry,
            _ => return None,
        })
    }

    /// Whether the handle is of `kind`.
    #[inline]
    pub const fn is(self, kind: Kind) -> bool {
        self.0 >> 29 == kind as u32
    }

    /// Which of the process's four interfaces it belongs to.
    #[inline]
    pub const fn interface(self) -> InterfaceNumber {
        InterfaceNumber::from_bits((self.0 >> 27) as u8)
    }

    /// Whether that interface matches by bits.
    #[inline]
    pub const fn is_matching(self) -> bool {
        self.interface().is_matching()
    }

    /// Which use of the slot it names.
    #[inline]
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16 & 0x7ff
    }

    /// The slot that the object lies in.
    #[inline]
    pub const fn index(self) -> u16 {
        self.0 as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_gives_back_its_parts() {
        let handle = Handle::new(
            Kind::Counter,
            InterfaceNumber::new(true, true),
            0x7fe,
            0xffff,
        );
        assert_eq!(handle.kind(), Some(Kind::Counter));
        assert_eq!(handle.interface().bits(), 3);
        assert_eq!(handle.generation(), 0x7fe);
        assert_eq!(handle.index(), 0xffff);
    }

    #[test]
    fn no_live_object_bears_a_none_handle() {
        for none in [Handle::EQ_NONE, Handle::CT_NONE, Handle::INVALID] {
            assert_eq!(
                none.generation(),
                Handle::GENERATIONS,
                "generation is never given out"
            );
        }
    }

    #[test]
    fn a_handle_names_its_kind_and_no_other() {
        let kinds = [
            Kind::Interface,
            Kind::EventQueue,
            Kind::Counter,
            Kind::MemoryDescriptor,
            Kind::ListEntry,
            Kind::MatchEntry,
        ];
        for kind in kinds {
            let handle = Handle::new(kind, InterfaceNumber::default(), 0x7fe, 0xffff);
            assert_eq!(handle.kind(), Some(kind));
            for other in kinds {
                assert_eq!(handle.is(other), other == kind);
            }
        }
        assert_eq!(Handle::INVALID.kind(), None);
    }

    #[test]
    fn a_handle_shows_whether_its_interface_matches() {
        for is_matching in [false, true] {
            let interface = InterfaceNumber::new(is_matching, true);
            let handle = Handle::new(Kind::EventQueue, interface, 0, 0);
            assert_eq!(handle.is_matching(), is_matching);
        }
    }
}
