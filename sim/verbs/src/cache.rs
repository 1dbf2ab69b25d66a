//! The contexts that an adapter holds; whichever was used longest ago makes room.

use std::collections::{BTreeMap, BTreeSet};

/// A context's name on its adapter.
pub(crate) type Context = u64;

/// A cache of contexts.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    room: usize,
    used: u64,
    last_use: BTreeMap<Context, u64>,
    by_use: BTreeSet<(u64, Context)>,
    misses: u64,
}

impl Cache {
    pub(crate) fn new(room: usize) -> Self {
        Cache {
            room,
            used: 0,
            last_use: BTreeMap::new(),
            by_use: BTreeSet::new(),
            misses: 0,
        }
    }

    /// Uses a context; whether it was there.
    pub(crate) fn hit(&mut self, context: Context) -> bool {
        self.used += 1;
        let before = self.last_use.insert(context, self.used);
        if let Some(before) = before {
            self.by_use.remove(&(before, context));
        }
        self.by_use.insert((self.used, context));
        if self.by_use.len() > self.room {
            let oldest = self.by_use.pop_first();
            let (_, oldest) = oldest.expect("there is more than room for");
            self.last_use.remove(&oldest);
        }
        self.misses += u64::from(before.is_none());
        before.is_some()
    }

    pub(crate) fn misses(&self) -> u64 {
        self.misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_was_used_longest_ago_makes_room() {
        let mut cache = Cache::new(2);
        assert!(!cache.hit(1) && !cache.hit(2) && cache.hit(1));
        assert!(!cache.hit(3), "3 takes the place of 2");
        assert!(cache.hit(1) && !cache.hit(2));
        assert_eq!(cache.misses(), 4);
    }
}
