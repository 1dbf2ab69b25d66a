//! Limits of a network interface.

/// `ptl_ni_limits_t` (96 bytes): what an interface can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Limits {
    /// List entries and match list entries at one time.
    pub max_entries: i32,
    /// Unexpected headers at one time.
    pub max_unexpected_headers: i32,
    /// Memory descriptors at one time.
    pub max_mds: i32,
    /// Counting events at one time.
    pub max_cts: i32,
    /// Event queues at one time.
    pub max_eqs: i32,
    /// Highest portal table index; the table has one entry more.
    pub max_pt_index: i32,
    /// Pieces in an I/O vector.
    pub max_iovecs: i32,
    /// Entries on one list of a portal table entry.
    pub max_list_size: i32,
    /// Triggered operations that wait at one time.
    pub max_triggered_ops: i32,
    /// Bytes in one put or get.
    pub max_msg_size: u64,
    /// Bytes in an atomic operation.
    pub max_atomic_size: u64,
    /// Bytes in an atomic operation that returns the earlier value.
    pub max_fetch_atomic_size: u64,
    /// Bytes up to which a write after a write keeps order, address by address.
    pub max_waw_ordered_size: u64,
    /// Bytes up to which a write after a read keeps order, address by address.
    pub max_war_ordered_size: u64,
    /// Bytes up to which `PTL_MD_VOLATILE` is honoured.
    pub max_volatile_size: u64,
    /// Bits of `PTL_TARGET_BIND_INACCESSIBLE`, `PTL_TOTAL_DATA_ORDERING` and
    /// `PTL_COHERENT_ATOMICS`.
    pub features: u32,
}

impl Limits {
    /// The limits of a caller that requests none. Entries and unexpected headers are as many as there can
    /// be: they take memory only once they are there. Coherent atomics have to be requested: with
    /// them, long atomics take one atomic instruction for each element.
    pub const DEFAULT: Limits = Limits {
        max_entries: 65535,
        max_unexpected_headers: 65535,
        max_mds: 4096,
        max_cts: 4096,
        max_eqs: 1024,
        max_pt_index: 255,
        max_iovecs: 1024,
        max_list_size: 65535,
        max_triggered_ops: 16384,
        max_msg_size: 1 << 47,
        max_atomic_size: 4096,
        max_fetch_atomic_size: 4096,
        max_waw_ordered_size: 4096,
        max_war_ordered_size: 4096,
        max_volatile_size: 4096,
        features: crate::options::FEATURE_BIND_INACCESSIBLE
            | crate::options::FEATURE_TOTAL_DATA_ORDERING,
    };

    /// The highest limits that are granted.
    pub const HIGHEST: Limits = Limits {
        max_mds: 65535,
        max_cts: 65535,
        max_eqs: 4096,
        max_pt_index: 4095,
        max_iovecs: 65535,
        max_triggered_ops: 1 << 20,
        features: Self::DEFAULT.features | crate::options::FEATURE_COHERENT_ATOMICS,
        ..Self::DEFAULT
    };

    /// The limits of a caller that requests `self`. A value in range is granted exactly,
    /// even below the specification's minimum; a higher one is lowered to [`HIGHEST`].
    /// 0 stands for the default; for fetching atomics that is no more than the limit of
    /// other atomics. Never refused.
    ///
    /// [`HIGHEST`]: Self::HIGHEST
    pub fn clamped(self) -> Limits {
        let count = |wanted: i32, default: i32, highest: i32| match wanted {
            ..=0 => default,
            _ => wanted.min(highest),
        };
        let bytes = |wanted: u64, highest: u64| match wanted {
            0 => highest,
            _ => wanted.min(highest),
        };
        let (d, h) = (Self::DEFAULT, Self::HIGHEST);
        let max_atomic_size = bytes(self.max_atomic_size, h.max_atomic_size);
        Limits {
            max_entries: count(self.max_entries, d.max_entries, h.max_entries),
            max_unexpected_headers: count(
                self.max_unexpected_headers,
                d.max_unexpected_headers,
                h.max_unexpected_headers,
            ),
            max_mds: count(self.max_mds, d.max_mds, h.max_mds),
            max_cts: count(self.max_cts, d.max_cts, h.max_cts),
            max_eqs: count(self.max_eqs, d.max_eqs, h.max_eqs),
            max_pt_index: count(self.max_pt_index, d.max_pt_index, h.max_pt_index),
            max_iovecs: count(self.max_iovecs, d.max_iovecs, h.max_iovecs),
            max_list_size: count(self.max_list_size, d.max_list_size, h.max_list_size),
            max_triggered_ops: count(
                self.max_triggered_ops,
                d.max_triggered_ops,
                h.max_triggered_ops,
            ),
            max_msg_size: bytes(self.max_msg_size, h.max_msg_size),
            max_atomic_size,
            max_fetch_atomic_size: match self.max_fetch_atomic_size {
                0 => max_atomic_size,
                wanted => bytes(wanted, h.max_fetch_atomic_size),
            },
            max_waw_ordered_size: bytes(self.max_waw_ordered_size, h.max_waw_ordered_size),
            max_war_ordered_size: bytes(self.max_war_ordered_size, h.max_war_ordered_size),
            max_volatile_size: bytes(self.max_volatile_size, h.max_volatile_size),
            features: self.features & h.features,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_size_of_the_c_structure() {
        assert_eq!(size_of::<Limits>(), 96);
    }

    #[test]
    fn greedy_requests_are_clamped_and_small_ones_are_honoured() {
        let greedy = Limits {
            max_entries: i32::MAX,
            max_pt_index: i32::MAX,
            ..Limits::DEFAULT
        };
        assert_eq!(greedy.clamped().max_entries, Limits::HIGHEST.max_entries);
        assert_eq!(greedy.clamped().max_pt_index, Limits::HIGHEST.max_pt_index);
        let small = Limits {
            max_unexpected_headers: 32,
            max_pt_index: 3,
            ..Limits::DEFAULT
        };
        assert_eq!(small.clamped().max_unexpected_headers, 32);
        assert_eq!(small.clamped().max_pt_index, 3);
    }

    #[test]
    fn coherent_atomics_are_for_those_who_ask() {
        use crate::options::FEATURE_COHERENT_ATOMICS;
        assert_eq!(Limits::DEFAULT.features & FEATURE_COHERENT_ATOMICS, 0);
        let asking = Limits {
            features: u32::MAX,
            ..Limits::DEFAULT
        };
        let given = asking.clamped().features;
        assert_eq!(given & FEATURE_COHERENT_ATOMICS, FEATURE_COHERENT_ATOMICS);
    }

    #[test]
    fn small_sizes_are_honoured_and_none_means_the_default() {
        let small = Limits {
            max_msg_size: 4,
            max_atomic_size: 0,
            max_fetch_atomic_size: u64::MAX,
            ..Limits::DEFAULT
        };
        let given = small.clamped();
        assert_eq!(given.max_msg_size, 4);
        assert_eq!(given.max_atomic_size, Limits::DEFAULT.max_atomic_size);
        assert_eq!(
            given.max_fetch_atomic_size,
            Limits::HIGHEST.max_fetch_atomic_size
        );
    }

    #[test]
    fn an_unlimited_request_is_granted_the_highest_limits() {
        let unlimited = Limits {
            max_entries: i32::MAX,
            max_unexpected_headers: i32::MAX,
            max_mds: i32::MAX,
            max_cts: i32::MAX,
            max_eqs: i32::MAX,
            max_pt_index: i32::MAX,
            max_iovecs: i32::MAX,
            max_list_size: i32::MAX,
            max_triggered_ops: i32::MAX,
            ..Limits::DEFAULT
        };
        let granted = unlimited.clamped();
        let tables = [
            granted.max_entries,
            granted.max_unexpected_headers,
            granted.max_mds,
            granted.max_cts,
            granted.max_iovecs,
            granted.max_list_size,
        ];
        assert_eq!(tables, [0xffff; 6], "an index has 16 bits");
        assert_eq!((granted.max_eqs, granted.max_pt_index), (4096, 4095));
        assert_eq!(granted.max_triggered_ops, 0x10_0000);
    }

    #[test]
    fn a_count_of_zero_or_less_is_the_default() {
        for wanted in [0, -1, i32::MIN] {
            let none = Limits {
                max_cts: wanted,
                ..Limits::HIGHEST
            };
            assert_eq!(none.clamped().max_cts, Limits::DEFAULT.max_cts);
        }
    }

    #[test]
    fn a_feature_is_granted_only_to_those_who_ask() {
        assert_eq!(Limits::DEFAULT.features, 0b011);
        for (asked, granted) in [(0, 0), (0b001, 0b001), (0b110, 0b110), (u32::MAX, 0b111)] {
            let request = Limits {
                features: asked,
                ..Limits::DEFAULT
            };
            assert_eq!(request.clamped().features, granted);
        }
    }
}
