//! Buffer areas of an endpoint, to send from or to receive into (S4, IV-B).

use std::collections::VecDeque;

use crate::profile::Profile;

/// Buffers that are filled one after the other and free once all in them is done.
#[derive(Debug)]
pub(super) struct Areas {
    size: u64,
    slot: u64,
    /// Bytes used, and messages that aren't done.
    areas: Vec<(u64, u64)>,
    current: usize,
    free: VecDeque<usize>,
    /// How many of the free ones have not been returned to the firmware.
    pub(super) unreported: usize,
}

/// Which of an endpoint's areas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CciArea {
    Send,
    Receive,
}

/// Messages of so many bytes that an endpoint's areas hold, none of which is done with.
pub(crate) fn cci_room(profile: &Profile, area: CciArea, bytes: u64) -> usize {
    let count = match area {
        CciArea::Send => profile.cci_tx_areas,
        CciArea::Receive => profile.cci_rx_areas,
    };
    let mut areas = Areas::new(count.value, profile);
    let message = bytes + profile.cci_header.value;
    std::iter::from_fn(|| areas.take(message)).count()
}

impl Areas {
    pub(super) fn new(count: u64, profile: &Profile) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Areas {
            size: profile.cci_area.value,
            slot: profile.cci_slot.value,
            areas: vec![(0, 0); count],
            current: 0,
            free: (1..count).collect(),
            unreported: 0,
        }
    }

    /// Room for a message, which doesn't span areas.
    pub(super) fn take(&mut self, bytes: u64) -> Option<usize> {
        let slot = bytes.next_multiple_of(self.slot);
        if self.areas[self.current].0 + slot > self.size {
            if self.free.len() <= self.unreported {
                return None;
            }
            let next = self.free.pop_front()?;
            let closed = std::mem::replace(&mut self.current, next);
            self.free_if_done(closed);
        }
        let (used, live) = &mut self.areas[self.current];
        *used += slot;
        *live += 1;
        Some(self.current)
    }

    /// A message is done with; how many areas are free again.
    pub(super) fn give_back(&mut self, area: usize) -> usize {
        let before = self.free.len();
        self.areas[area].1 -= 1;
        if area != self.current {
            self.free_if_done(area);
        } else if self.areas[area].1 == 0 {
            self.areas[area].0 = 0;
        }
        self.free.len() - before
    }

    fn free_if_done(&mut self, area: usize) {
        if self.areas[area].1 == 0 {
            self.areas[area].0 = 0;
            self.free.push_back(area);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::XT5_2009;

    #[test]
    fn an_endpoint_buffers_as_many_messages_as_the_paper_says() {
        // S4 IV-B and IV-C.
        let of = |area, bytes| cci_room(&XT5_2009, area, bytes);
        let [send, receive] = [CciArea::Send, CciArea::Receive];
        assert_eq!((of(send, 4_096), of(send, 40)), (96, 8_192));
        assert_eq!(of(receive, 4_096), 24_576);
    }

    #[test]
    fn an_area_is_used_again_once_all_its_messages_are_done() {
        let small = XT5_2009.with("cci_area", 128).expect("there is one");
        let mut areas = Areas::new(2, &small);
        let taken = [64, 64, 64, 64].map(|bytes| areas.take(bytes).expect("there is room"));
        assert_eq!((taken, areas.take(64)), ([0, 0, 1, 1], None));
        assert_eq!(areas.give_back(0), 0);
        assert_eq!(areas.take(64), None);
        assert_eq!(areas.give_back(0), 1);
        assert_eq!(areas.take(64), Some(0));
    }
}
