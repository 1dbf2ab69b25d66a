//! Limits of a network interface.

/// `ptl_ni_limits_t` (32 bytes): what an interface can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Limits {
    /// Match entries at one time.
    pub max_mes: i32,
    /// Memory descriptors at one time.
    pub max_mds: i32,
    /// Event queues at one time.
    pub max_eqs: i32,
    /// Highest index of the access control table; the table has one entry more.
    pub max_ac_index: i32,
    /// Highest portal table index; the table has one entry more.
    pub max_pt_index: i32,
    /// Pieces in an I/O vector.
    pub max_md_iovecs: i32,
    /// Entries in one match list.
    pub max_me_list: i32,
    /// Bytes in a `PtlGetPut`.
    pub max_getput_md: i32,
}

impl Limits {
    /// The limits of a caller that requests none.
    pub const DEFAULT: Limits = Limits {
        max_mes: 16384,
        max_mds: 16384,
        max_eqs: 1024,
        max_ac_index: 7,
        max_pt_index: 63,
        max_md_iovecs: 256,
        max_me_list: 16384,
        max_getput_md: 64,
    };

    /// The highest limits that are granted.
    pub const HIGHEST: Limits = Limits {
        max_mes: 65535,
        max_mds: 65535,
        max_eqs: 4096,
        max_ac_index: 1023,
        max_pt_index: 4095,
        max_md_iovecs: 65535,
        max_me_list: 65535,
        max_getput_md: 64,
    };

    /// The limits of a caller that requests `self`: never refused. A value in range is
    /// granted exactly, a higher one is lowered; for what is negative, or 0 where nothing
    /// could be done with it, the default holds.
    pub fn clamped(self) -> Limits {
        let (default, highest) = (Self::DEFAULT, Self::HIGHEST);
        let clamp = |of: fn(&Limits) -> i32, lowest: i32| match of(&self) {
            wanted if wanted < lowest => of(&default),
            wanted => wanted.min(of(&highest)),
        };
        Limits {
            max_mes: clamp(|limits| limits.max_mes, 1),
            max_mds: clamp(|limits| limits.max_mds, 1),
            max_eqs: clamp(|limits| limits.max_eqs, 1),
            max_ac_index: clamp(|limits| limits.max_ac_index, 0),
            max_pt_index: clamp(|limits| limits.max_pt_index, 0),
            max_md_iovecs: clamp(|limits| limits.max_md_iovecs, 1),
            max_me_list: clamp(|limits| limits.max_me_list, 1),
            max_getput_md: clamp(|limits| limits.max_getput_md, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_size_of_the_header_and_are_clamped() {
        assert_eq!(size_of::<Limits>(), 32);
        assert_eq!(Limits::DEFAULT.clamped(), Limits::DEFAULT);
        assert_eq!(Limits::HIGHEST.clamped(), Limits::HIGHEST);
        let wanted = Limits {
            max_mes: 0,
            max_mds: 3,
            max_eqs: -1,
            max_ac_index: 0,
            max_pt_index: i32::MAX,
            ..Limits::DEFAULT
        };
        let expected = Limits {
            max_mds: 3,
            max_ac_index: 0,
            max_pt_index: Limits::HIGHEST.max_pt_index,
            ..Limits::DEFAULT
        };
        assert_eq!(wanted.clamped(), expected);
    }
}
