//! A slab whose slots count their uses, so that a stale name is noticed.

use alloc::vec::Vec;
use core::marker::PhantomData;

struct Slot<T> {
    generation: u16,
    value: Option<T>,
}

/// Values under small stable numbers, of which `I` is the caller's type. A slot's
/// generation changes whenever its value goes; generations run from 0 to
/// `generations - 1` and wrap.
pub struct Slab<T, I = u16> {
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
    live: usize,
    generations: u16,
    /// Generation of a slot that is used for the first time.
    first: u16,
    index: PhantomData<fn() -> I>,
}

impl<T, I> Slab<T, I> {
    /// An empty slab whose slots go through `generations` generations.
    pub const fn new(generations: u16) -> Self {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
            live: 0,
            generations,
            first: 0,
            index: PhantomData,
        }
    }

    /// Starts at another generation than 0; for a slab that has held nothing yet.
    pub fn begin_with(&mut self, generation: u16) {
        debug_assert!(self.slots.is_empty());
        self.first = generation % self.generations;
    }

    /// A generation that no value of this slab has had, as long as no slot was used more
    /// often than there are generations.
    pub fn unused_generation(&self) -> u16 {
        let generations = u32::from(self.generations);
        let (first, all) = (u32::from(self.first), self.slots.iter());
        let uses = all.map(|slot| (u32::from(slot.generation) + generations - first) % generations);
        ((first + uses.max().map_or(0, |most| most + 1)) % generations) as u16
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
}

impl<T, I: From<u16> + Into<u16>> Slab<T, I> {
    /// Stores a value and returns its slot and the slot's generation, or hands the value
    /// back if all 65,535 slots are taken.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Result<(I, u16), T> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < u16::MAX as usize => {
                self.slots.push(Slot {
                    generation: self.first,
                    value: None,
                });
                (self.slots.len() - 1) as u16
            }
            None => return Err(value),
        };
        let slot = &mut self.slots[index as usize];
        // A free slot has no value to be dropped, which the compiler doesn't know.
        core::mem::forget(slot.value.replace(value));
        self.live += 1;
        Ok((index.into(), slot.generation))
    }

    /// Whether all slots are taken.
    pub fn is_full(&self) -> bool {
        self.live == u16::MAX as usize
    }

    /// The value in a slot, whatever its generation.
    #[inline]
    pub fn at(&self, index: I) -> Option<&T> {
        self.slots.get(index.into() as usize)?.value.as_ref()
    }

    /// The value in a slot, to change, whatever its generation.
    #[inline]
    pub fn at_mut(&mut self, index: I) -> Option<&mut T> {
        self.slots.get_mut(index.into() as usize)?.value.as_mut()
    }

    /// The value, if the slot still is in that generation.
    #[inline]
    pub fn get(&self, index: I, generation: u16) -> Option<&T> {
        let slot = self.slots.get(index.into() as usize)?;
        if slot.generation != generation {
            return None;
        }
        slot.value.as_ref()
    }

    /// The value to change, if the slot still is in that generation.
    #[inline]
    pub fn get_mut(&mut self, index: I, generation: u16) -> Option<&mut T> {
        let slot = self.slots.get_mut(index.into() as usize)?;
        if slot.generation != generation {
            return None;
        }
        slot.value.as_mut()
    }

    /// The generation that a slot is in.
    pub fn generation(&self, index: I) -> Option<u16> {
        self.slots
            .get(index.into() as usize)
            .map(|slot| slot.generation)
    }

    /// Takes the value out of a slot, which begins a new generation.
    #[inline]
    pub fn remove(&mut self, index: I) -> Option<T> {
        let index = index.into();
        let slot = self.slots.get_mut(usize::from(index))?;
        let value = slot.value.take()?;
        self.vacate(index);
        Some(value)
    }

    /// As [`remove`](Self::remove), but drops the value where it is; false if there was none.
    #[inline(always)]
    pub fn discard(&mut self, index: I) -> bool {
        let index = index.into();
        let slot = self.slots.get_mut(usize::from(index));
        let Some(slot) = slot.filter(|slot| slot.value.is_some()) else {
            return false;
        };
        slot.value = None;
        self.vacate(index);
        true
    }

    /// A slot has lost its value.
    #[inline(always)]
    fn vacate(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.generation = if slot.generation + 1 >= self.generations {
            0
        } else {
            slot.generation + 1
        };
        self.free.push(index);
        self.live -= 1;
    }

    /// Slots and values in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some(((index as u16).into(), slot.value.as_ref()?)))
    }

    /// Values in slot order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_value_is_not_found_under_its_old_name() {
        let mut slab = Slab::<_>::new(3);
        let (index, generation) = slab.insert('a').unwrap();
        assert_eq!(slab.remove(index), Some('a'));
        let (again, next) = slab.insert('b').unwrap();
        assert_eq!(again, index);
        assert_eq!(slab.get(index, generation), None);
        assert_eq!(slab.get(index, next), Some(&'b'));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_slab_that_follows_another_gives_none_of_its_names() {
        let mut earlier = Slab::<_>::new(5);
        let mut given = Vec::new();
        for _ in 0..3 {
            given.push(earlier.insert('a').unwrap());
            earlier.remove(0);
        }
        given.push(earlier.insert('b').unwrap());
        let mut next = Slab::<_>::new(5);
        next.begin_with(earlier.unused_generation());
        let name = next.insert('c').unwrap();
        assert!(!given.contains(&name));
        assert!(
            given
                .iter()
                .all(|(index, generation)| next.get(*index, *generation).is_none())
        );
    }

    #[test]
    fn removing_twice_is_harmless() {
        let mut slab = Slab::<_>::new(3);
        let (index, _) = slab.insert(1).unwrap();
        assert_eq!(slab.remove(index), Some(1));
        assert_eq!(slab.remove(index), None);
        assert!(slab.is_empty());
    }

    #[test]
    fn generations_run_to_the_last_and_wrap() {
        let mut slab = Slab::<_>::new(3);
        let mut generations = Vec::new();
        for value in 0..7 {
            let (index, generation) = slab.insert(value).unwrap();
            assert_eq!(slab.generation(index), Some(generation));
            generations.push(generation);
            assert_eq!(slab.remove(index), Some(value));
        }
        assert_eq!(generations, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(slab.generation(1), None, "no slot was made");
    }

    #[test]
    fn a_slab_begins_with_its_generation_modulo_their_number() {
        let mut slab = Slab::<_>::new(5);
        slab.begin_with(13);
        assert_eq!(slab.insert('a'), Ok((0, 3)));
        assert_eq!(slab.insert('b'), Ok((1, 3)));
    }

    #[test]
    fn the_unused_generation_follows_the_highest_of_any_slot() {
        let mut slab = Slab::<_>::new(5);
        slab.begin_with(3);
        assert_eq!(slab.unused_generation(), 3, "nothing was stored");
        let used: Vec<u16> = (0..3).map(|value| slab.insert(value).unwrap().0).collect();
        assert_eq!(slab.unused_generation(), 4, "all are in generation 3");
        for _ in 0..2 {
            slab.remove(used[1]);
            slab.insert(9).unwrap();
        }
        assert_eq!(slab.unused_generation(), 1, "one went on to 4 and 0");
    }

    #[test]
    fn values_are_reached_by_name_and_changed_in_place() {
        let mut slab = Slab::<_>::new(3);
        let (first, old) = slab.insert(10).unwrap();
        let (second, generation) = slab.insert(20).unwrap();
        assert_eq!(
            (slab.at(first), slab.at(second), slab.at(2)),
            (Some(&10), Some(&20), None)
        );
        *slab.at_mut(first).unwrap() += 1;
        *slab.get_mut(second, generation).unwrap() += 2;
        assert_eq!(slab.get_mut(second, generation + 1), None);
        assert_eq!(slab.get_mut(2, 0), None);
        slab.values_mut().for_each(|value| *value *= 2);
        assert_eq!(
            slab.iter().collect::<Vec<_>>(),
            [(first, &22), (second, &44)]
        );
        slab.remove(first);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(second, &44)]);
        assert_eq!(slab.get(first, old), None);
        assert_eq!(slab.at_mut(first), None);
        assert_eq!((slab.len(), slab.is_empty()), (1, false));
    }

    #[test]
    fn a_full_slab_gives_the_value_back_and_takes_it_once_a_slot_is_free() {
        let mut slab = Slab::<u32>::new(3);
        for value in 0..u32::from(u16::MAX) {
            assert_eq!(slab.insert(value), Ok((value as u16, 0)));
        }
        assert_eq!(slab.insert(7), Err(7));
        assert_eq!(slab.len(), 65535);
        assert_eq!(slab.remove(500), Some(500));
        assert_eq!(slab.insert(7), Ok((500, 1)));
    }
}
