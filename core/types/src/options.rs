//! Option bits, with the values of the Portals 4.3 header: a set type for each kind of
//! object, and each bit by the header's name for those that speak C.
//!
//! A set keeps bits that it has no name for: the engine refuses them, since which are legal
//! depends on the interface, too.

use bitflags::bitflags;

/// Declares sets of options. Each line names an option in its set, and as a raw number.
macro_rules! options {
    ($($(#[$doc:meta])* $set:ident {
        $($(#[doc = $about:literal])* $name:ident = $raw:ident = $value:expr;)*
    })*) => {
        $(
            bitflags! {
                $(#[$doc])*
                #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
                #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
                #[cfg_attr(feature = "serde", serde(from = "u32", into = "u32"))]
                #[repr(transparent)]
                pub struct $set: u32 {
                    $($(#[doc = $about])* const $name = $value;)*
                }
            }

            impl From<u32> for $set {
                #[inline(always)]
                fn from(bits: u32) -> Self {
                    $set::from_bits_retain(bits)
                }
            }

            impl From<$set> for u32 {
                #[inline(always)]
                fn from(options: $set) -> u32 {
                    options.bits()
                }
            }

            $($(#[doc = $about])* pub const $raw: u32 = $set::$name.bits();)*
        )*
    };
}

/// `PTL_IOVEC`, the same bit for descriptors and entries.
pub const IOVEC: u32 = 1;

options! {
    /// Options of a network interface: `PTL_NI_*`.
    NiOptions {
        /// `PTL_NI_MATCHING`: lists match messages by bits.
        MATCHING = NI_MATCHING = 1;
        /// `PTL_NI_NO_MATCHING`: the first entry of a list takes each message.
        NO_MATCHING = NI_NO_MATCHING = 1 << 1;
        /// `PTL_NI_LOGICAL`: processes are addressed by rank.
        LOGICAL = NI_LOGICAL = 1 << 2;
        /// `PTL_NI_PHYSICAL`: processes are addressed by node and process number.
        PHYSICAL = NI_PHYSICAL = 1 << 3;
    }

    /// Options of a portal table entry: `PTL_PT_*`.
    PtOptions {
        /// `PTL_PT_ONLY_USE_ONCE`: a hint that the priority list holds use-once entries only.
        ONLY_USE_ONCE = PT_ONLY_USE_ONCE = 1;
        /// `PTL_PT_FLOWCTRL`: disabled if a message finds no resources.
        FLOWCTRL = PT_FLOWCTRL = 1 << 1;
        /// `PTL_PT_ONLY_TRUNCATE`: a hint that no entry has `PTL_ME_NO_TRUNCATE`.
        ONLY_TRUNCATE = PT_ONLY_TRUNCATE = 1 << 2;
        /// `PTL_PT_MATCH_UNORDERED`: a hint, which the engine ignores.
        MATCH_UNORDERED = PT_MATCH_UNORDERED = 1 << 3;
        /// `PTL_PT_ALLOC_DISABLED`: disabled until PtlPTEnable.
        ALLOC_DISABLED = PT_ALLOC_DISABLED = 1 << 4;
    }

    /// Options of a memory descriptor: `PTL_MD_*` and `PTL_IOVEC`.
    MdOptions {
        /// `PTL_IOVEC`: `start` points to an array of pieces, `length` counts them.
        IOVEC = MD_IOVEC = 1;
        /// `PTL_MD_EVENT_CT_SEND`: counts sends.
        EVENT_CT_SEND = MD_EVENT_CT_SEND = 1 << 1;
        /// `PTL_MD_EVENT_CT_REPLY`: counts replies.
        EVENT_CT_REPLY = MD_EVENT_CT_REPLY = 1 << 2;
        /// `PTL_MD_EVENT_CT_ACK`: counts acknowledgements.
        EVENT_CT_ACK = MD_EVENT_CT_ACK = 1 << 3;
        /// `PTL_MD_UNORDERED`: its messages may overtake each other.
        UNORDERED = MD_UNORDERED = 1 << 4;
        /// `PTL_MD_EVENT_SUCCESS_DISABLE`: full events only for failures.
        EVENT_SUCCESS_DISABLE = MD_EVENT_SUCCESS_DISABLE = 1 << 5;
        /// `PTL_MD_VOLATILE`: puts copy the data before they return, up to `max_volatile_size`.
        VOLATILE = MD_VOLATILE = 1 << 6;
        /// `PTL_MD_EVENT_SEND_DISABLE`: no full events for sends.
        EVENT_SEND_DISABLE = MD_EVENT_SEND_DISABLE = 1 << 7;
        /// `PTL_MD_UNRELIABLE`: its messages may get lost.
        UNRELIABLE = MD_UNRELIABLE = 1 << 8;
        /// `PTL_MD_EVENT_CT_BYTES`: counts bytes instead of operations.
        EVENT_CT_BYTES = MD_EVENT_CT_BYTES = 1 << 14;
    }

    /// Options of a list entry or match list entry: `PTL_ME_*`, `PTL_LE_*` and `PTL_IOVEC`.
    MeOptions {
        /// `PTL_IOVEC`: `start` points to an array of pieces, `length` counts them.
        IOVEC = ME_IOVEC = 1;
        /// `PTL_ME_OP_PUT`: accepts puts and atomics.
        OP_PUT = ME_OP_PUT = 1 << 1;
        /// `PTL_ME_OP_GET`: accepts gets, and with `OP_PUT` fetching atomics.
        OP_GET = ME_OP_GET = 1 << 2;
        /// `PTL_ME_USE_ONCE`: unlinked after one message.
        USE_ONCE = ME_USE_ONCE = 1 << 3;
        /// `PTL_ME_UNEXPECTED_HDR_DISABLE`: keeps no headers of unexpected messages.
        UNEXPECTED_HDR_DISABLE = ME_UNEXPECTED_HDR_DISABLE = 1 << 4;
        /// `PTL_ME_IS_ACCESSIBLE`: its memory is accessible when it is appended.
        IS_ACCESSIBLE = ME_IS_ACCESSIBLE = 1 << 5;
        /// `PTL_ME_EVENT_LINK_DISABLE`: no event when it is linked.
        EVENT_LINK_DISABLE = ME_EVENT_LINK_DISABLE = 1 << 6;
        /// `PTL_ME_EVENT_COMM_DISABLE`: no events for messages.
        EVENT_COMM_DISABLE = ME_EVENT_COMM_DISABLE = 1 << 7;
        /// `PTL_ME_EVENT_FLOWCTRL_DISABLE`: no event if flow control disables the table entry.
        EVENT_FLOWCTRL_DISABLE = ME_EVENT_FLOWCTRL_DISABLE = 1 << 8;
        /// `PTL_ME_EVENT_SUCCESS_DISABLE`: full events only for failures.
        EVENT_SUCCESS_DISABLE = ME_EVENT_SUCCESS_DISABLE = 1 << 9;
        /// `PTL_ME_EVENT_OVER_DISABLE`: no events for unexpected messages.
        EVENT_OVER_DISABLE = ME_EVENT_OVER_DISABLE = 1 << 10;
        /// `PTL_ME_EVENT_UNLINK_DISABLE`: no events when it unlinks itself or is free.
        EVENT_UNLINK_DISABLE = ME_EVENT_UNLINK_DISABLE = 1 << 11;
        /// `PTL_ME_EVENT_CT_COMM`: counts messages.
        EVENT_CT_COMM = ME_EVENT_CT_COMM = 1 << 12;
        /// `PTL_ME_EVENT_CT_OVERFLOW`: counts messages found on the overflow list.
        EVENT_CT_OVERFLOW = ME_EVENT_CT_OVERFLOW = 1 << 13;
        /// `PTL_ME_EVENT_CT_BYTES`: counts bytes instead of messages.
        EVENT_CT_BYTES = ME_EVENT_CT_BYTES = 1 << 14;
        /// `PTL_ME_MANAGE_LOCAL`: each message goes behind the previous one.
        MANAGE_LOCAL = ME_MANAGE_LOCAL = 1 << 15;
        /// `PTL_ME_NO_TRUNCATE`: a message that doesn't fit doesn't match.
        NO_TRUNCATE = ME_NO_TRUNCATE = 1 << 16;
        /// `PTL_ME_MAY_ALIGN`: gaps may align messages.
        MAY_ALIGN = ME_MAY_ALIGN = 1 << 17;
        /// `PTL_ME_LOCAL_INC_UH_RLENGTH`: an unexpected header moves the offset by its `rlength`.
        LOCAL_INC_UH_RLENGTH = ME_LOCAL_INC_UH_RLENGTH = 1 << 18;
        /// `PTL_ME_ACK_DISABLE`, which 4.3 dropped: no acknowledgement leaves this entry.
        ACK_DISABLE = ME_ACK_DISABLE = 1 << 19;
    }
}

impl MeOptions {
    /// Every option of a list entry; a match list entry has all.
    pub const OF_LIST_ENTRY: MeOptions =
        MeOptions::from_bits_retain(0x7fff).union(MeOptions::ACK_DISABLE);
}

/// `PTL_TARGET_BIND_INACCESSIBLE`: entries may span memory that isn't mapped.
pub const FEATURE_BIND_INACCESSIBLE: u32 = 1;
/// `PTL_TOTAL_DATA_ORDERING`: data of ordered messages is written in order.
pub const FEATURE_TOTAL_DATA_ORDERING: u32 = 1 << 1;
/// `PTL_COHERENT_ATOMICS`: atomics agree with those of the processor.
pub const FEATURE_COHERENT_ATOMICS: u32 = 1 << 2;

/// Every option of a portal table entry.
pub const PT_ALL: u32 = PtOptions::all().bits();
/// Every option of a memory descriptor.
pub const MD_ALL: u32 = MdOptions::all().bits();
/// Every option of a list entry.
pub const LE_ALL: u32 = MeOptions::OF_LIST_ENTRY.bits();
/// Every option of a match list entry.
pub const ME_ALL: u32 = MeOptions::all().bits();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_bits_of_the_headers_masks() {
        assert_eq!((PT_ALL, MD_ALL, ME_ALL), (0x1f, 0x41ff, 0xf_ffff));
        assert_eq!(LE_ALL, 0x8_7fff);
        assert_eq!(NiOptions::all().bits(), 0xf);
        assert_eq!((ME_OP_PUT, MD_IOVEC, ME_IOVEC), (2, IOVEC, IOVEC));
    }

    #[test]
    fn a_set_keeps_bits_without_a_name() {
        let options = MeOptions::from(1 << 31 | ME_USE_ONCE);
        assert_eq!(u32::from(options), 1 << 31 | ME_USE_ONCE);
        assert!(options.contains(MeOptions::USE_ONCE));
        assert!(!MeOptions::all().contains(options));
        assert_eq!(size_of::<MeOptions>(), 4);
    }

    #[test]
    fn features_have_the_numbers_of_the_header() {
        let features = [
            FEATURE_BIND_INACCESSIBLE,
            FEATURE_TOTAL_DATA_ORDERING,
            FEATURE_COHERENT_ATOMICS,
        ];
        assert_eq!(features, [1, 2, 4]);
    }
}
