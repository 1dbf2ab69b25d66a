//! Publishing, accessing and withdrawing, every interleaving, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-direct --test loom --target-dir target/loom
//! ```
//!
//! The code itself is explored, with two slots. Loom knows no `membarrier`: the peer fences,
//! which is what the owner's barrier amounts to.
#![cfg(loom)]

use lintel_direct::{AccessWord, Counts, Entry, Fence, Memory, MemoryName, Table};
use lintel_types::{InterfaceNumber, PortalIndex};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{Ordering, fence};
use loom::thread;

fn entry(offset: u64) -> Entry {
    Entry {
        interface: InterfaceNumber::new(false, false),
        portal: PortalIndex::from(1u16),
        takes_puts: true,
        takes_gets: true,
        match_bits: offset,
        ignore_bits: u64::MAX,
        memory: Memory::Shared(MemoryName {
            is_made: true,
            id: 1,
            nonce: offset,
            bytes: 64,
        }),
        offset,
        length: offset,
        counts: Counts::Nothing,
        is_announced: false,
    }
}

fn nonce(entry: &Entry) -> u64 {
    match entry.memory {
        Memory::Shared(name) => name.nonce,
        Memory::Private(key) => key.nonce,
    }
}

struct Shared {
    table: Table,
    word: AccessWord,
    /// The entry's memory; loom reports accesses that aren't ordered.
    memory: UnsafeCell<u64>,
}

impl Shared {
    fn new() -> Arc<Shared> {
        Arc::new(Shared {
            table: Table::default(),
            word: AccessWord::default(),
            memory: UnsafeCell::new(0),
        })
    }

    /// A peer's access, if the table names the memory.
    fn access(&self, by: Fence) {
        let Some((version, entries)) = self.table.read() else {
            return;
        };
        for (_, entry) in &entries {
            assert_eq!(
                (entry.offset, entry.length),
                (entry.match_bits, nonce(entry))
            );
        }
        if entries.is_empty() || !self.word.begin(&self.table, version, by) {
            return;
        }
        self.memory.with_mut(|memory| {
            // SAFETY: loom checks that nobody else accesses it.
            unsafe { *memory += 1 }
        });
        self.word.end();
    }

    /// The owner withdraws the entry, and uses the memory itself.
    fn withdraw(&self, slot: usize) {
        self.table.withdraw(slot);
        fence(Ordering::SeqCst);
        if let Some(access) = self.word.under_way() {
            while !self.word.is_over(access) {
                thread::yield_now();
            }
        }
        self.memory.with_mut(|memory| {
            // SAFETY: loom checks that nobody else accesses it.
            unsafe { *memory += 1 }
        });
    }
}

fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

#[test]
fn nobody_accesses_memory_once_its_entry_was_withdrawn() {
    explore(3, || {
        let shared = Shared::new();
        let slot = shared.table.publish(&entry(8)).expect("there is room");
        let peer = shared.clone();
        let peer = thread::spawn(move || {
            peer.access(Fence::Own);
            peer.access(Fence::Own);
        });
        shared.withdraw(slot);
        peer.join().expect("no panic");
    });
}

#[test]
fn a_peer_reads_no_mixture_of_two_entries() {
    explore(2, || {
        let shared = Shared::new();
        let slot = shared.table.publish(&entry(8)).expect("there is room");
        let peer = shared.clone();
        let peer = thread::spawn(move || {
            if let Some((_, entries)) = peer.table.read() {
                for (_, entry) in entries {
                    let offset = entry.offset;
                    assert_eq!((entry.length, nonce(&entry)), (offset, offset));
                    assert_eq!(entry.match_bits, offset);
                }
            }
        });
        shared.table.withdraw(slot);
        shared.table.publish(&entry(16)).expect("there is room");
        peer.join().expect("no panic");
    });
}

#[test]
#[should_panic]
fn without_a_fence_an_access_can_outlast_the_withdrawal() {
    explore(3, || {
        let shared = Shared::new();
        let slot = shared.table.publish(&entry(8)).expect("there is room");
        let peer = shared.clone();
        let peer = thread::spawn(move || peer.access(Fence::OfOwner));
        shared.withdraw(slot);
        peer.join().expect("no panic");
    });
}
