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
    fn an_endpoint_receives_24576_long_messages() {
        // S4 IV-B: three to an area of 16 KB.
        let mut areas = Areas::new(XT5_2009.cci_rx_areas.value, &XT5_2009);
        let long = XT5_2009.cci_mss.value + XT5_2009.cci_header.value;
        let room = std::iter::from_fn(|| areas.take(long)).count();
        assert_eq!(room, 24_576);
    }

    #[test]
    fn an_endpoint_buffers_96_long_messages_or_8192_short_ones() {
        // S4 IV-C: 8192 of 40 bytes.
        for (bytes, count) in [(XT5_2009.cci_mss.value, 96), (40, 8_192)] {
            let mut areas = Areas::new(XT5_2009.cci_tx_areas.value, &XT5_2009);
            let message = bytes + XT5_2009.cci_header.value;
            assert_eq!(std::iter::from_fn(|| areas.take(message)).count(), count);
        }
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
