//! Leases: how memory of an interface is lent, and how all of it is taken back at once.
//!
//! ```text
//!   Lease ──lend──▶ Lent ──keep──▶ Loan      held by a NAL beyond the call
//!     │                              │
//!     │ key                          └─ counted: `outstanding` is 0 once all are dropped
//!     ▼
//!   a page at a random address ◀── looked at by the kernel in each copy of a peer
//! ```
//!
//! A peer that copies to or from lent memory names the lease's [`Key`]: a page at a
//! random address, and the number that stands there. The kernel must reach that page in
//! the very call that copies ([`RemoteMemory`](crate::RemoteMemory)), before it touches
//! a byte of the loan. So the page decides, without a moment between check and copy,
//! whether the copy reaches the process that lent, in the image that lent, for a lease
//! that still stands: a process that has got the lender's number, or has called exec, or
//! whose lease has been [revoked](Lease::revoke) has no such page.

use crate::claim::Claim;
use crate::cross_memory::Key;
use crate::mapping::Mapping;
use rustix::mm::{Advice, MapFlags, madvise};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The right to touch one interface's memory.
pub struct Lease(Arc<Shared>);

/// What a lease shares with its loans, which are counted by holding it.
struct Shared {
    id: u64,
    page: Mutex<Page>,
}

/// A lease's page for peers.
enum Page {
    /// Its key wasn't given to a peer yet.
    Unmapped,
    Mapped(GuardPage),
    /// Revoked, or the system has no memory for it.
    None,
}

impl Lease {
    /// A lease under which nothing is lent yet.
    pub fn new() -> Lease {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Lease(Arc::new(Shared {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            page: Mutex::new(Page::Unmapped),
        }))
    }

    /// A number that no other lease of this process has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Names memory that is lent for longer than a call.
    pub fn lend<'a>(&'a self, pieces: &'a [Claim]) -> Lent<'a> {
        Lent {
            lease: self,
            pieces,
        }
    }

    /// What a peer must name to copy what was lent; nothing once the lease is revoked,
    /// or if the system has no page for it.
    pub fn key(&self) -> Option<Key> {
        self.0.key()
    }

    /// From now on copies by peers fail, except those that the kernel is just carrying
    /// out.
    pub fn revoke(&self) {
        *self.0.page() = Page::None;
    }

    /// Loans that are still held in this process.
    pub fn outstanding(&self) -> usize {
        let loans = Arc::strong_count(&self.0) - 1;
        // If the count lacks a loan, all use of that loan is visible: dropping an Arc is
        // a release.
        fence(Ordering::Acquire);
        loans
    }
}

impl Shared {
    fn key(&self) -> Option<Key> {
        let mut page = self.page();
        if let Page::Unmapped = *page {
            *page = GuardPage::map().map_or(Page::None, Page::Mapped);
        }
        match &*page {
            Page::Mapped(guard) => Some(guard.key()),
            _ => None,
        }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Lease {
    fn default() -> Self {
        Lease::new()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} outstanding)", self.outstanding())
    }
}

/// Memory that may be used during the call, and beyond it once it is [kept](Lent::keep).
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a> {
    lease: &'a Lease,
    pieces: &'a [Claim],
}

impl<'a> Lent<'a> {
    /// Where the bytes are, for use during the call.
    pub fn pieces(&self) -> &'a [Claim] {
        self.pieces
    }

    /// Bytes of all pieces together.
    pub fn len(&self) -> u64 {
        lintel_memory::length(self.pieces)
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lease under which it is lent.
    pub fn lease(&self) -> &'a Lease {
        self.lease
    }

    /// Holds the memory beyond the call, until the loan is dropped.
    pub fn keep(&self) -> Loan {
        Loan {
            pieces: self.pieces.to_vec(),
            shared: self.lease.0.clone(),
        }
    }
}

/// Memory lent beyond a call: the only form in which claims of an interface's memory
/// are held outside the interface. Its lease counts it until it is dropped.
pub struct Loan {
    pieces: Vec<Claim>,
    shared: Arc<Shared>,
}

impl Loan {
    /// Bytes that are left.
    pub fn len(&self) -> u64 {
        lintel_memory::length(&self.pieces)
    }

    /// Whether no byte is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the bytes are.
    pub fn pieces(&self) -> &[Claim] {
        &self.pieces
    }

    /// Where at most `most` bytes from `offset` on are.
    pub fn part(&self, offset: u64, most: u64) -> Vec<Claim> {
        lintel_memory::part(&self.pieces, offset, most)
    }

    /// Gives up the first bytes.
    pub fn skip(&mut self, bytes: u64) {
        lintel_memory::skip(&mut self.pieces, bytes);
    }

    /// As [`Lease::key`], of its lease.
    pub fn key(&self) -> Option<Key> {
        self.shared.key()
    }

    /// Whether it was lent under that lease.
    pub fn is_of(&self, lease: &Lease) -> bool {
        Arc::ptr_eq(&self.shared, &lease.0)
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loan").field(&self.pieces).finish()
    }
}

/// A page at a random address that holds a random number.
struct GuardPage {
    page: Mapping,
    nonce: u64,
}

const PAGE: usize = 4096;
/// Bits of an address that are chosen at random: all of a user's address space of 47
/// bits on x86-64, whatever other layout there is; the kernel follows a hint only if
/// it can.
const ADDRESS_MASK: u64 = 0x7fff_ffff_f000;

impl GuardPage {
    fn map() -> Option<GuardPage> {
        let [hint, nonce] = random()?;
        let hint = ptr::without_provenance_mut((hint & ADDRESS_MASK) as usize);
        let page = Mapping::at(hint, PAGE, MapFlags::empty()).ok()?;
        // A fork's child must not answer in its parent's name.
        // SAFETY: the page was just mapped, with this length.
        let _ = unsafe { madvise(page.start().cast(), PAGE, Advice::LinuxDontFork) };
        // SAFETY: a page is aligned for a word, mapped, and still this function's own.
        let word = unsafe { AtomicU64::from_ptr(page.start().cast()) };
        word.store(nonce, Ordering::Release);
        Some(GuardPage { page, nonce })
    }

    fn key(&self) -> Key {
        Key {
            address: self.page.start().expose_provenance() as u64,
            nonce: self.nonce,
        }
    }
}

/// Unpredictable numbers, from the system.
fn random() -> Option<[u64; 2]> {
    let mut bytes = [0u8; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    let number = u128::from_ne_bytes(bytes);
    (filled == 16).then_some([number as u64, (number >> 64) as u64])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    #[test]
    fn a_lease_counts_its_loans_until_they_are_dropped() {
        let (lease, memory) = (Lease::new(), Region::new(10));
        let pieces = [memory.claim()];
        let lent = lease.lend(&pieces);
        assert_eq!((lent.len(), lease.outstanding()), (10, 0));
        let loan = lent.keep();
        assert!(loan.is_of(&lease) && !loan.is_of(&Lease::new()));
        assert_eq!(lease.outstanding(), 1);
        drop(loan);
        assert_eq!(lease.outstanding(), 0);
    }

    #[test]
    fn a_loan_is_used_up_from_its_front_across_pieces() {
        let (lease, memory) = (Lease::new(), Region::new(10));
        let all = memory.claim();
        let pieces = [all.slice(0, 4), all.slice(4, 0), all.slice(4, 6)];
        let mut loan = lease.lend(&pieces).keep();
        assert_eq!(loan.part(3, 2), [all.slice(3, 1), all.slice(4, 1)]);
        loan.skip(5);
        assert_eq!(loan.pieces(), [all.slice(5, 5)]);
        loan.skip(2);
        assert_eq!(loan.pieces(), [all.slice(7, 3)]);
        loan.skip(9);
        assert!(loan.is_empty() && loan.part(0, 9).is_empty());
    }

    #[test]
    fn a_revoked_lease_has_no_key_and_no_page() {
        let lease = Lease::new();
        let key = lease.key().expect("the system has a page");
        assert_eq!(lease.key(), Some(key), "it stays the same");
        assert_ne!(Lease::new().key(), Some(key));
        lease.revoke();
        assert_eq!(lease.key(), None);
    }
}
