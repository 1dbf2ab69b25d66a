//! The caller's buffers.

use lintel_group::{Buffers, Error, InPlace, Result, Separate};
use std::{ptr, slice};

/// Addresses of input and result: they aren't touched between calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointers {
    input: (usize, usize),
    output: (usize, usize),
}

impl Pointers {
    /// # Errors
    /// `InvalidArgument` if a buffer is null that has bytes, or both overlap by a part.
    pub(crate) fn new(from: usize, gives: u64, to: usize, gets: u64) -> Result<Self> {
        let wrong = |what: &str| Err(Error::InvalidArgument(what.into()));
        let (gives, gets) = (gives as usize, gets as usize);
        if (from == 0 && gives > 0) || (to == 0 && gets > 0) {
            return wrong("a buffer is NULL, and bytes are to be there");
        }
        let wraps = from.checked_add(gives).is_none() || to.checked_add(gets).is_none();
        if wraps || gives > isize::MAX as usize || gets > isize::MAX as usize {
            return wrong("a buffer is longer than memory");
        }
        let pointers = Pointers {
            input: (from, gives),
            output: (to, gets),
        };
        if pointers.overlap() && !pointers.contain() {
            return wrong(
                "`sendbuf` and `recvbuf` overlap, but neither contains the other: use PTLCOLL_IN_PLACE",
            );
        }
        Ok(pointers)
    }

    /// As [`Pointers::new`], but `None` also if they overlap or anything is wrong.
    #[inline(always)]
    pub(crate) fn separate(from: usize, gives: u64, to: usize, gets: u64) -> Option<Self> {
        let pointers = Pointers {
            input: (from, gives as usize),
            output: (to, gets as usize),
        };
        let is_there = |at: usize, bytes: u64| {
            let end = (at as u64).checked_add(bytes);
            bytes == 0 || at > 0 && end.is_some_and(|end| end <= isize::MAX as u64)
        };
        let are_there = is_there(from, gives) && is_there(to, gets);
        (are_there && !pointers.overlap()).then_some(pointers)
    }

    /// Shows pointers that are [separate](Pointers::separate).
    ///
    /// # Safety
    /// The caller owns both, and no one else reads or writes them as long as they are shown.
    #[inline(always)]
    pub(crate) unsafe fn show<'a>(self) -> Separate<'a> {
        let ((from, gives), (to, gets)) = (self.input, self.output);
        // SAFETY: the caller's (see above), not null, of a length that can be.
        let input = unsafe { shared(from, gives) };
        // SAFETY: as above; they don't overlap.
        let output = unsafe { exclusive(to, gets) };
        Separate { input, output }
    }

    #[inline]
    fn overlap(&self) -> bool {
        let ((from, gives), (to, gets)) = (self.input, self.output);
        gives > 0 && gets > 0 && from < to + gets && to < from + gives
    }

    fn contain(&self) -> bool {
        let ((from, gives), (to, gets)) = (self.input, self.output);
        let holds = |a: (usize, usize), b: (usize, usize)| a.0 <= b.0 && b.0 + b.1 <= a.0 + a.1;
        holds((from, gives), (to, gets)) || holds((to, gets), (from, gives))
    }

    /// Shows them for the length of a call.
    ///
    /// # Safety
    /// The caller owns both, and no one else reads or writes them meanwhile.
    pub(crate) unsafe fn with<R>(self, f: impl FnOnce(&mut dyn Buffers) -> R) -> R {
        let ((from, gives), (to, gets)) = (self.input, self.output);
        if self.overlap() {
            let start = from.min(to);
            let end = (from + gives).max(to + gets);
            // SAFETY: one holds the other, so that all of it is the caller's (see above).
            let bytes = unsafe { exclusive(start, end - start) };
            return f(&mut InPlace {
                bytes,
                input: from - start..from - start + gives,
                output: to - start..to - start + gets,
            });
        }
        // SAFETY: as the caller of this promises.
        f(&mut unsafe { self.show() })
    }
}

#[inline]
unsafe fn shared<'a>(at: usize, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: as the caller of this promises.
    unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(at), bytes) }
}

#[inline]
unsafe fn exclusive<'a>(at: usize, bytes: usize) -> &'a mut [u8] {
    if bytes == 0 {
        return &mut [];
    }
    // SAFETY: as the caller of this promises.
    unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(at), bytes) }
}
