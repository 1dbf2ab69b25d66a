//! Many first-in, first-out lists in one store of small chunks.
//!
//! A list per slot would keep the memory of its fullest moment. Here lists share
//! what is free, and still lie in memory a chunk at a time.

/// Items a chunk: large enough to read on, small enough that the unfilled ends
/// of many lists stay cheap.
const CHUNK: usize = 16;
const NONE: u32 = u32::MAX;

/// The store that the lists share.
pub(crate) struct Chunks<T> {
    items: Vec<T>,
    next: Vec<u32>,
    free: u32,
}

/// One list. Its items lie in the store.
#[derive(Clone, Copy)]
pub(crate) struct List {
    first: u32,
    last: u32,
    start: u16,
    end: u16,
}

impl List {
    pub(crate) const EMPTY: List = List {
        first: NONE,
        last: NONE,
        start: 0,
        end: 0,
    };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Whether it is known to hold one item and no more.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.first == self.last && self.start + 1 == self.end
    }
}

impl<T: Copy> Chunks<T> {
    pub(crate) const fn new() -> Self {
        Chunks {
            items: Vec::new(),
            next: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, item: T) {
        if list.is_empty() || usize::from(list.end) == CHUNK {
            self.lengthen(list, item);
        }
        self.items[list.last as usize * CHUNK + usize::from(list.end)] = item;
        list.end += 1;
    }

    /// The item that `pop` would take.
    #[inline]
    pub(crate) fn peek(&self, list: &List) -> Option<T> {
        let place = list.first as usize * CHUNK + usize::from(list.start);
        (!list.is_empty()).then(|| self.items[place])
    }

    /// Shows all items of a list, in order.
    #[inline]
    pub(crate) fn for_each(&self, list: &List, mut show: impl FnMut(&T)) {
        let (mut chunk, mut start) = (list.first, usize::from(list.start));
        while chunk != NONE {
            let end = match chunk == list.last {
                true => usize::from(list.end),
                false => CHUNK,
            };
            let place = chunk as usize * CHUNK;
            let items = &self.items[place + start..place + end];
            items.iter().for_each(&mut show);
            (chunk, start) = (self.next[chunk as usize], 0);
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let item = self.items[list.first as usize * CHUNK + usize::from(list.start)];
        list.start += 1;
        let used_up = list.first == list.last && list.start == list.end;
        if used_up || usize::from(list.start) == CHUNK {
            self.shorten(list);
        }
        Some(item)
    }

    /// Adds an empty chunk. `filler` stands where no item is yet.
    fn lengthen(&mut self, list: &mut List, filler: T) {
        let chunk = self.take_chunk(filler);
        if list.is_empty() {
            list.first = chunk;
            list.start = 0;
        } else {
            self.next[list.last as usize] = chunk;
        }
        list.last = chunk;
        list.end = 0;
    }

    /// Drops the first chunk, which has been read.
    fn shorten(&mut self, list: &mut List) {
        let chunk = list.first;
        list.first = self.next[chunk as usize];
        list.start = 0;
        if list.first == NONE {
            *list = List::EMPTY;
        }
        self.next[chunk as usize] = self.free;
        self.free = chunk;
    }

    fn take_chunk(&mut self, filler: T) -> u32 {
        if self.free == NONE {
            let chunk = u32::try_from(self.next.len()).expect("below 2^32 chunks");
            self.items.resize(self.items.len() + CHUNK, filler);
            self.next.push(NONE);
            return chunk;
        }
        let chunk = self.free;
        self.free = self.next[chunk as usize];
        self.next[chunk as usize] = NONE;
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_share_what_is_free() {
        let mut chunks = Chunks::new();
        let (mut left, mut right) = (List::EMPTY, List::EMPTY);
        for round in 0..3 {
            for i in 0..100 {
                chunks.push(&mut left, round * 1000 + i);
                chunks.push(&mut right, -(round * 1000 + i));
            }
            for i in 0..100 {
                assert_eq!(chunks.pop(&mut left), Some(round * 1000 + i));
                assert_eq!(chunks.pop(&mut right), Some(-(round * 1000 + i)));
            }
            assert_eq!(chunks.pop(&mut left), None);
            assert!(left.is_empty() && right.is_empty());
        }
        assert_eq!(chunks.items.len(), 2 * 100usize.next_multiple_of(CHUNK));
    }

    #[test]
    fn one_item_is_distinguished_from_none_and_from_two() {
        let mut chunks = Chunks::new();
        let mut list = List::EMPTY;
        assert!(!list.is_single());
        chunks.push(&mut list, 1);
        assert!(list.is_single());
        chunks.push(&mut list, 2);
        assert!(!list.is_single());
    }
}
