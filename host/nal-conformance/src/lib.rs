//! One suite that every NAL passes. A new NAL is finished when it does.
//!
//! ```text
//!   suite!(join)  ──▶  #[test] copies_arrive_in_the_order_of_sending
//!                      #[test] …                    one for each promise of trait Nal
//! ```
//!
//! `join` makes a network: it returns the requested number of members, or as many
//! as the network can have, which is one for a loopback. Promises about peers are
//! then left out, and those about messages are checked with messages to oneself.
//!
//! ```
//! use lintel_nal::Loopback;
//! use lintel_nal_conformance::Member;
//! use lintel_types::ProcessId;
//!
//! fn join(_members: usize) -> Vec<Member<Loopback>> {
//!     let name = ProcessId::new(1, 1);
//!     vec![Member { name, nal: Loopback::new(name, 0) }]
//! }
//! lintel_nal_conformance::suite!(join);
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]

mod fault;
mod peers;
mod promises;
mod recall;
mod rig;

pub use fault::Fault;
pub use peers::{
    a_lost_peer_is_reported_once_and_is_unreachable,
    a_stream_of_a_lost_sender_is_reported_as_broken,
    an_absent_process_is_unreachable_and_nothing_is_sent, messages_of_an_ended_sender_still_arrive,
    no_sender_is_starved_by_a_busy_one, streams_of_two_senders_dont_mix,
    what_was_lent_to_a_lost_peer_is_returned,
};
pub use promises::{
    a_message_stays_the_next_one_until_done, a_place_that_is_too_small_takes_the_beginning,
    an_operand_goes_first, copies_arrive_in_the_order_of_sending,
    copies_of_every_size_arrive_whole, lent_bodies_behind_one_another_are_fetched_together,
    lent_bytes_arrive_where_they_are_wanted, lent_places_are_filled, pieces_arrive_as_one,
    what_finds_no_room_waits_in_order, what_was_lent_is_returned_once_it_has_arrived,
};
pub use recall::{
    a_recall_leaves_other_leases_alone, a_recalled_place_is_filled_no_more,
    a_stream_into_recalled_memory_goes_into_nothing, recalled_memory_is_read_no_more,
    recalled_memory_without_an_answer_is_read_no_more,
};
pub use rig::Member;

/// A test of each promise, on networks that `join` makes: a
/// `fn(usize) -> Vec<Member<impl Nal>>`.
#[macro_export]
macro_rules! suite {
    ($join:expr) => {
        $crate::suite! {
            $join,
            copies_arrive_in_the_order_of_sending
            copies_of_every_size_arrive_whole
            pieces_arrive_as_one
            an_operand_goes_first
            a_message_stays_the_next_one_until_done
            lent_bytes_arrive_where_they_are_wanted
            a_place_that_is_too_small_takes_the_beginning
            lent_bodies_behind_one_another_are_fetched_together
            lent_places_are_filled
            what_finds_no_room_waits_in_order
            an_absent_process_is_unreachable_and_nothing_is_sent
            no_sender_is_starved_by_a_busy_one
            streams_of_two_senders_dont_mix
            messages_of_an_ended_sender_still_arrive
            a_lost_peer_is_reported_once_and_is_unreachable
            a_stream_of_a_lost_sender_is_reported_as_broken
            recalled_memory_is_read_no_more
            a_recalled_place_is_filled_no_more
            a_stream_into_recalled_memory_goes_into_nothing
            a_recall_leaves_other_leases_alone
            what_was_lent_is_returned_once_it_has_arrived
            what_was_lent_to_a_lost_peer_is_returned
            recalled_memory_without_an_answer_is_read_no_more
        }
    };
    ($join:expr, $($promise:ident)*) => {
        $(#[test]
        fn $promise() {
            $crate::$promise($join);
        })*
    };
}
