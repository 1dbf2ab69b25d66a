//! The raw copy inside one address space.
//!
//! Up to 64 bytes are moved with at most four loads, all done before the first store,
//! so ranges may overlap. 1, 2, 4, 8 and 16 bytes are one load and one store (8 and 16
//! without a call); aligned, up to 8 of them are never seen torn. Longer ranges go to
//! `memmove`, in parts where source and destination alias.

use std::ptr;

use crate::claim::Claim;
use crate::region::PAGE;
use lintel_memory::Walk;

/// Copies the smaller of both lengths from one claim to the other and returns it in
/// bytes. The ranges may overlap; each byte of `to` then gets what its source held
/// before the call. Never blocks but for page faults.
#[inline(always)]
pub fn copy(from: Claim, to: Claim) -> u64 {
    let length = from.len().min(to.len());
    // SAFETY: `length` bytes are readable in `from` and writable in `to` (Claim::new).
    unsafe { move_bytes(from.start(), to.start(), length) };
    length
}

/// The most bytes that [`copy_short`] moves.
pub const SHORT: u64 = 64;

/// As [`copy`], without a call of a function, but only 16 to [`SHORT`] bytes; nothing, with nothing done, for
/// all other lengths.
#[inline(always)]
pub fn copy_short(from: Claim, to: Claim) -> Option<u64> {
    let length = from.len().min(to.len());
    (16..=SHORT).contains(&length).then(|| {
        // SAFETY: `length` bytes are readable in `from` and writable in `to` (Claim::new).
        unsafe { move_four(from.start(), to.start(), length as usize) };
        length
    })
}

/// As [`copy`], for lengths of which most are longer than [`SHORT`]: those make one call.
#[inline(always)]
pub fn copy_long(from: Claim, to: Claim) -> u64 {
    let length = from.len().min(to.len());
    let ahead = to.start().addr().wrapping_sub(from.start().addr());
    let (from, to) = (from.start(), to.start());
    match length > SHORT && !is_aliased(ahead as u64) {
        // SAFETY: `length` bytes are readable in `from` and writable in `to` (Claim::new).
        true => unsafe { ptr::copy(from, to, length as usize) },
        // SAFETY: as above.
        false => unsafe { move_bytes(from, to, length) },
    }
    length
}

/// Copies from one list of claims to another as if each list were one piece, until
/// either ends; returns the bytes copied. Pieces are moved in order: if a piece of
/// `to` overlaps a later piece of `from`, the later one is read as overwritten.
pub fn copy_vectored(from: &[Claim], to: &[Claim]) -> u64 {
    if let ([from], [to]) = (from, to) {
        return copy(*from, *to);
    }
    let (mut from, mut to) = (Walk::new(from), Walk::new(to));
    let mut total = 0;
    loop {
        let moved = copy(from.front(), to.front());
        if moved == 0 {
            return total;
        }
        from.advance(moved);
        to.advance(moved);
        total += moved;
    }
}

/// Copies claimed memory, piece by piece, to bytes of this process alone; returns how many were
/// copied.
pub fn gather(from: &[Claim], into: &mut [u8]) -> usize {
    let mut at = 0;
    for piece in from {
        at += piece.read(&mut into[at..]);
    }
    at
}

/// Moves `length` bytes; the ranges may overlap.
///
/// # Safety
///
/// `length` bytes are readable at `from` and writable at `to`. With length 0 both may
/// be anything.
#[inline(always)]
pub(crate) unsafe fn move_bytes(from: *const u8, to: *mut u8, length: u64) {
    match length {
        // SAFETY: eight bytes are there, by the caller.
        8 => unsafe { move_one::<u64>(from, to) },
        // SAFETY: sixteen bytes are there, by the caller.
        16 => unsafe { move_one::<Lane>(from, to) },
        // SAFETY: passed on as it came.
        _ => unsafe { move_other(from, to, length as usize) },
    }
}

/// The lengths that are not worth their instructions at every call. Inlined, they
/// would turn the two comparisons of [`move_bytes`] into a jump table.
///
/// # Safety
///
/// As for [`move_bytes`].
#[inline(never)]
unsafe fn move_other(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: for every arm: its loads and stores lie inside the first `count` bytes,
    // as its pattern shows; the caller vouches for those.
    unsafe {
        match count {
            0 => {}
            1 => move_one::<u8>(from, to),
            2 => move_one::<u16>(from, to),
            3 => move_ends::<u16>(from, to, count),
            4 => move_one::<u32>(from, to),
            5..=7 => move_ends::<u32>(from, to, count),
            8..=15 => move_ends::<u64>(from, to, count),
            16..=32 => move_ends::<Lane>(from, to, count),
            33..=64 => move_four(from, to, count),
            _ => move_long(from, to, count),
        }
    }
}

/// Bytes that are moved at a time where source and destination alias: fewer than glibc moves
/// by string instructions.
const PART: usize = 1024;

/// Moves more bytes than [`move_other`] does by itself.
///
/// # Safety
///
/// As for [`move_bytes`].
unsafe fn move_long(from: *const u8, to: *mut u8, count: usize) {
    let ahead = to.addr().wrapping_sub(from.addr());
    let overlaps = ahead < count || ahead.wrapping_neg() < count;
    if overlaps || !is_aliased(ahead as u64) {
        // SAFETY: passed on as it came.
        return unsafe { ptr::copy(from, to, count) };
    }
    for begin in (0..count).step_by(PART) {
        // SAFETY: the part lies inside the first `count` bytes, of which none overlap.
        unsafe {
            ptr::copy_nonoverlapping(from.add(begin), to.add(begin), PART.min(count - begin));
        }
    }
}

/// Whether a destination so many bytes ahead of its source aliases it: within their pages it is 1
/// to 31 bytes ahead. There `rep movsb` takes ten to thirty times as long on AMD's Zen 3, and
/// glibc 2.36, of Debian 12, moves 4 KiB and more with it.
pub(crate) const fn is_aliased(ahead: u64) -> bool {
    let in_page = ahead % PAGE;
    in_page > 0 && in_page < 32
}

/// Sixteen bytes that move in one instruction where there is one.
#[cfg(target_arch = "x86_64")]
type Lane = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Lane = u128;

/// # Safety
///
/// `size_of::<T>()` bytes are readable at `from` and writable at `to`; every bit
/// pattern is a `T`.
#[inline(always)]
unsafe fn move_one<T: Copy>(from: *const u8, to: *mut u8) {
    // SAFETY: readable for a T, of any alignment, by the caller.
    let value = unsafe { from.cast::<T>().read_unaligned() };
    // SAFETY: writable for a T, of any alignment, by the caller.
    unsafe { to.cast::<T>().write_unaligned(value) };
}

/// Moves `count` bytes as a first and a last `T`, which may share bytes.
///
/// # Safety
///
/// As for [`move_bytes`], and `size_of::<T>() <= count <= 2 * size_of::<T>()`.
#[inline(always)]
unsafe fn move_ends<T: Copy>(from: *const u8, to: *mut u8, count: usize) {
    let last = count - size_of::<T>();
    // SAFETY: the first T lies inside `count` bytes.
    let head = unsafe { from.cast::<T>().read_unaligned() };
    // SAFETY: `last` plus the size of T is `count`.
    let tail = unsafe { from.add(last).cast::<T>().read_unaligned() };
    // SAFETY: as for the head's load, on the writable side.
    unsafe { to.cast::<T>().write_unaligned(head) };
    // SAFETY: as for the tail's load, on the writable side.
    unsafe { to.add(last).cast::<T>().write_unaligned(tail) };
}

/// Moves 16 to 64 bytes as two lanes from the front and two up to the end, which may share bytes.
///
/// # Safety
///
/// As for [`move_bytes`], and `16 <= count <= 64`.
#[inline(always)]
unsafe fn move_four(from: *const u8, to: *mut u8, count: usize) {
    let last = count - 16;
    let second = last.min(16);
    let places = [0, second, last - second, last];
    // SAFETY: every place plus 16 is at most `count`.
    let lanes = places.map(|at| unsafe { from.add(at).cast::<Lane>().read_unaligned() });
    for (at, lane) in places.into_iter().zip(lanes) {
        // SAFETY: every place plus 16 is at most `count`.
        unsafe { to.add(at).cast::<Lane>().write_unaligned(lane) };
    }
}
