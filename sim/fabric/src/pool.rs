//! Values under small numbers that are used again.

/// Values under small numbers.
pub(crate) struct Pool<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Pool<T> {
    pub(crate) const fn new() -> Self {
        Pool {
            values: Vec::new(),
            free: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = value;
            return number;
        }
        self.values.push(value);
        u32::try_from(self.values.len() - 1).expect("fewer than 2^32 are under way")
    }

    /// Takes back a number that `insert` gave.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self[number]
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}
