//! Copies that outlive the interface under which they were lent.
//!
//! An agent lends copies of its clients' memory. When a client leaves, or is killed, a peer
//! may not have come to them yet: they stay until it has, or has ended. A thread looks
//! after them for as long as there are any.

use crate::thread::spawn;
use lintel_claim::{Loan, Region};
use lintel_nal_shm::Unread;
use parking_lot::Mutex;
use std::time::Duration;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(20);

/// What a peer may still use.
pub(crate) struct Orphan {
    unread: Unread,
    /// Freed with this value.
    _copies: Vec<Region>,
    /// Under which they are lent: it stands as long as the copies.
    _loan: Loan,
}

impl Orphan {
    pub(crate) fn new(unread: Unread, copies: Vec<Region>, loan: Loan) -> Orphan {
        Orphan {
            unread,
            _copies: copies,
            _loan: loan,
        }
    }
}

static ORPHANS: Mutex<Vec<Orphan>> = Mutex::new(Vec::new());

/// Keeps copies until their peers don't need them any more.
pub(crate) fn adopt(orphans: Vec<Orphan>) {
    if orphans.is_empty() {
        return;
    }
    let mut all = ORPHANS.lock();
    let is_looked_after = !all.is_empty();
    all.extend(orphans);
    if !is_looked_after && spawn("lintel-loans", watch_orphans).is_err() {
        // Nobody can look after them: they stay for good rather than go under a reader.
        std::mem::forget(std::mem::take(&mut *all));
    }
}

fn watch_orphans() {
    loop {
        std::thread::sleep(LOOK);
        let mut all = ORPHANS.lock();
        all.retain_mut(|orphan| !orphan.unread.is_finished());
        if all.is_empty() {
            return;
        }
    }
}
