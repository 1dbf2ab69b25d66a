//! What callers read without the core's lock: queues and counters.

use crate::queue::EventQueue;
use lintel_types::{CountingEvent, Error, Handle, Kind, Limits, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const QUEUES: usize = 64;
const COUNTERS: usize = 256;

/// A counter as callers see it.
#[repr(align(64))]
pub(crate) struct Cell {
    handle: AtomicU32,
    success: AtomicU64,
    failure: AtomicU64,
}

impl Default for Cell {
    fn default() -> Self {
        Cell {
            handle: AtomicU32::new(u32::MAX),
            success: 0.into(),
            failure: 0.into(),
        }
    }
}

impl Cell {
    /// The value; its two halves may be of different moments (Portals 4.3, PtlCTGet).
    #[inline]
    pub(crate) fn value(&self) -> CountingEvent {
        CountingEvent {
            success: self.success.load(Ordering::Acquire),
            failure: self.failure.load(Ordering::Acquire),
        }
    }

    #[inline]
    pub(crate) fn set(&self, value: CountingEvent) {
        self.failure.store(value.failure, Ordering::Release);
        self.success.store(value.success, Ordering::Release);
    }

    pub(crate) fn begin(&self, handle: Handle) {
        self.set(CountingEvent::default());
        self.handle.store(handle.0, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.handle.store(u32::MAX, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is(&self, handle: Handle) -> bool {
        self.handle.load(Ordering::Acquire) == handle.0
    }
}

/// The tables of one interface. They outlive it, since a caller may still look;
/// a handle of the past finds nothing.
#[derive(Default)]
pub(crate) struct Tables {
    queues: Shelf<EventQueue, QUEUES>,
    counters: Shelf<Cell, COUNTERS>,
}

/// Up to 65,536 things under stable numbers, made in boards of `N`.
struct Shelf<T, const N: usize> {
    boards: OnceLock<Box<[Board<T>]>>,
}

type Board<T> = OnceLock<Box<[T]>>;

impl<T, const N: usize> Default for Shelf<T, N> {
    fn default() -> Self {
        Shelf {
            boards: OnceLock::new(),
        }
    }
}

impl<T: Default, const N: usize> Shelf<T, N> {
    fn get_or_make(&self, index: u16) -> &T {
        let boards = self
            .boards
            .get_or_init(|| (0..65536 / N).map(|_| OnceLock::new()).collect());
        let board =
            boards[index as usize / N].get_or_init(|| (0..N).map(|_| T::default()).collect());
        &board[index as usize % N]
    }

    #[inline]
    fn get(&self, index: u16) -> Option<&T> {
        self.boards.get()?[index as usize / N]
            .get()
            .map(|board| &board[index as usize % N])
    }

    fn each(&self, f: impl Fn(&T)) {
        let boards = self.boards.get().into_iter().flatten();
        boards.filter_map(OnceLock::get).flatten().for_each(f);
    }
}

impl Tables {
    #[inline]
    pub(crate) fn queue(&self, handle: Handle) -> Result<&EventQueue> {
        match self.queues.get(handle.index()) {
            Some(queue) if handle.is(Kind::EventQueue) && queue.is(handle.0) => Ok(queue),
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline]
    pub(crate) fn counter(&self, handle: Handle) -> Result<&Cell> {
        match self.counters.get(handle.index()) {
            Some(cell) if handle.is(Kind::Counter) && cell.is(handle) => Ok(cell),
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline]
    pub(crate) fn queue_at(&self, index: u16) -> &EventQueue {
        match self.queues.get(index) {
            Some(queue) => queue,
            None => self.queues.get_or_make(index),
        }
    }

    #[inline]
    pub(crate) fn counter_at(&self, index: u16) -> &Cell {
        match self.counters.get(index) {
            Some(cell) => cell,
            None => self.counters.get_or_make(index),
        }
    }

    /// Nothing lives here any more.
    pub(crate) fn end_all(&self) {
        self.queues.each(EventQueue::end);
        self.counters.each(Cell::end);
    }
}

// Every index that an engine gives out has its place.
const _: () = assert!(Limits::HIGHEST.max_cts <= 65536 && Limits::HIGHEST.max_eqs <= 65536);
