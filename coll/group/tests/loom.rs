//! The marks of operations in shared memory (`src/shared`), every interleaving, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-group --test loom --target-dir target/loom
//! ```
//!
//! A model of two ranks, with fewer slots than the library has: `entered`, a slot's marks, the bytes of
//! a step, and a rank's own buffer, which loom reports if they are accessed out of order. What it
//! shows: bytes are read after they were given, a slot is used again after all have taken what was in
//! it, a buffer whose address was given after it was copied, and each half of it is copied by one rank.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const RANKS: usize = 2;

/// Slots of a rank, and steps that are given before the first of them is taken.
#[derive(Clone, Copy)]
struct Limits {
    slots: u64,
    window: u64,
}

/// What the ranks do with a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Rank 0 gives, and doesn't wait for the other.
    Broadcast,
    /// Both give, and read what the other gave.
    Exchange,
    /// Both give, and each combines a part.
    SplitReduction,
    /// Rank 0 gives the address of its buffer, and waits until the other has copied it.
    SingleCopy,
    /// Rank 0 does, and copies the second half itself unless the other has taken that.
    JointCopy,
}

impl Call {
    fn gives_address(self) -> bool {
        matches!(self, Call::SingleCopy | Call::JointCopy)
    }
}

#[derive(Default)]
struct Slot {
    given: AtomicU64,
    combined: AtomicU64,
    pulled: AtomicU64,
    pushed: AtomicU64,
    /// Whose the second half is: a number that no other operation has while it is nobody's.
    taken: AtomicU64,
    /// Whether the step's bytes are in the buffer.
    address: AtomicU64,
    /// What a rank gives, a part for each rank.
    parts: [UnsafeCell<u64>; RANKS],
}

/// A rank's memory.
struct Memory {
    entered: AtomicU64,
    slots: Vec<Slot>,
    /// The caller's, which others may copy.
    buffer: UnsafeCell<u64>,
    /// The caller's, for both halves of what it gets.
    result: [UnsafeCell<u64>; 2],
}

struct Group {
    limits: Limits,
    memories: [Memory; RANKS],
}

/// A rank that runs operations.
struct Rank {
    group: Arc<Group>,
    rank: usize,
    /// Steps below may use their slots.
    free: u64,
}

/// What a rank gives to a step, different in each.
fn given(rank: usize, number: u64) -> u64 {
    (number + 1) << (8 * rank)
}

fn write(place: &UnsafeCell<u64>, value: u64) {
    // SAFETY: loom reports it if another thread accesses the place meanwhile.
    place.with_mut(|place| unsafe { *place = value });
}

fn read(place: &UnsafeCell<u64>) -> u64 {
    // SAFETY: as above.
    place.with(|place| unsafe { *place })
}

/// Pairs with the Release store of the mark: what the rank has written before is visible.
fn await_mark(mark: &AtomicU64, number: u64) {
    while mark.load(Ordering::Acquire) < number + 1 {
        thread::yield_now();
    }
}

impl Group {
    fn new(limits: Limits) -> Arc<Group> {
        let memory = || Memory {
            entered: AtomicU64::new(0),
            slots: (0..limits.slots).map(|_| Slot::default()).collect(),
            buffer: UnsafeCell::new(0),
            result: [UnsafeCell::new(0), UnsafeCell::new(0)],
        };
        Arc::new(Group {
            limits,
            memories: [memory(), memory()],
        })
    }

    fn slot(&self, rank: usize, number: u64) -> &Slot {
        &self.memories[rank].slots[(number % self.limits.slots) as usize]
    }
}

impl Rank {
    fn new(group: &Arc<Group>, rank: usize) -> Rank {
        Rank {
            group: group.clone(),
            rank,
            free: group.limits.slots,
        }
    }

    /// An operation of steps that are numbered so.
    fn run(&mut self, steps: std::ops::Range<u64>, call: Call) {
        if !call.gives_address() {
            return self.run_steps(steps, call);
        }
        let memory = &self.group.memories[self.rank];
        if self.rank == 0 {
            write(&memory.buffer, given(0, steps.start));
        } else if call == Call::JointCopy {
            self.offer_place(steps.start);
        }
        self.run_steps(steps.start..steps.start + 1, call);
        // Nothing is left for the other steps.
        let memory = &self.group.memories[self.rank];
        memory.entered.store(steps.end, Ordering::Release);
        if self.rank == 0 {
            if call == Call::JointCopy {
                self.push_part(steps.start);
            }
            await_mark(&self.group.slot(1, steps.start).pulled, steps.start);
        }
    }

    fn offer_place(&mut self, number: u64) {
        self.await_slot(number);
        let slot = self.group.slot(self.rank, number);
        slot.taken.store(2 * (number + 1), Ordering::Release);
        slot.given.store(number + 1, Ordering::Release);
    }

    fn takes_second_half(&self, number: u64) -> bool {
        let (taken, untaken) = (&self.group.slot(1, number).taken, 2 * (number + 1));
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        taken
            .compare_exchange(untaken, untaken + 1, done, failed)
            .is_ok()
    }

    fn push_part(&self, number: u64) {
        await_mark(&self.group.slot(1, number).given, number);
        if self.takes_second_half(number) {
            self.copy_half(1);
            let own = self.group.slot(0, number);
            own.pushed.store(number + 1, Ordering::Release);
        }
    }

    /// Either rank copies a half of rank 0's buffer to rank 1's.
    fn copy_half(&self, half: usize) {
        let [from, to] = &self.group.memories;
        write(&to.result[half], read(&from.buffer));
    }

    fn run_steps(&mut self, steps: std::ops::Range<u64>, call: Call) {
        let mut from = steps.start;
        while from < steps.end {
            let window = from..steps.end.min(from + self.group.limits.window);
            window.clone().for_each(|number| self.give(number, call));
            if call == Call::SplitReduction {
                window.clone().for_each(|number| self.combine_part(number));
            }
            window.clone().for_each(|number| self.take(number, call));
            from = window.end;
        }
    }

    fn give(&mut self, number: u64, call: Call) {
        self.await_slot(number);
        let is_one_way = call == Call::Broadcast || call.gives_address();
        if call.gives_address() && self.rank == 0 {
            let slot = self.group.slot(0, number);
            slot.address.store(1, Ordering::Relaxed);
            slot.given.store(number + 1, Ordering::Release);
        } else if !is_one_way || self.rank == 0 {
            let slot = self.group.slot(self.rank, number);
            slot.address.store(0, Ordering::Relaxed);
            for part in &slot.parts {
                write(part, given(self.rank, number));
            }
            slot.given.store(number + 1, Ordering::Release);
        }
        let entered = &self.group.memories[self.rank].entered;
        entered.store(number + 1, Ordering::Release);
    }

    fn await_slot(&mut self, number: u64) {
        let Limits { slots, window } = self.group.limits;
        while number >= self.free {
            let memories = self.group.memories.iter();
            let entered = memories.map(|memory| memory.entered.load(Ordering::Acquire));
            self.free = entered.min().expect("there are two") + slots - window;
            if number >= self.free {
                thread::yield_now();
            }
        }
    }

    fn combine_part(&self, number: u64) {
        let other = self.group.slot(1 - self.rank, number);
        await_mark(&other.given, number);
        let own = self.group.slot(self.rank, number);
        let part = &own.parts[self.rank];
        write(part, read(part) + read(&other.parts[self.rank]));
        own.combined.store(number + 1, Ordering::Release);
    }

    fn take(&self, number: u64, call: Call) {
        let other = 1 - self.rank;
        let slot = self.group.slot(other, number);
        match call {
            Call::Broadcast | Call::SingleCopy | Call::JointCopy if self.rank == 0 => {}
            Call::SingleCopy => {
                await_mark(&slot.given, number);
                assert_eq!(slot.address.load(Ordering::Relaxed), 1);
                let buffer = &self.group.memories[other].buffer;
                assert_eq!(read(buffer), given(other, number));
                let own = self.group.slot(self.rank, number);
                own.pulled.store(number + 1, Ordering::Release);
            }
            Call::JointCopy => {
                await_mark(&slot.given, number);
                self.copy_half(0);
                match self.takes_second_half(number) {
                    true => self.copy_half(1),
                    false => await_mark(&slot.pushed, number),
                }
                let own = self.group.slot(self.rank, number);
                own.pulled.store(number + 1, Ordering::Release);
                for half in &self.group.memories[self.rank].result {
                    assert_eq!(read(half), given(other, number));
                }
            }
            Call::Broadcast | Call::Exchange => {
                await_mark(&slot.given, number);
                assert_eq!(slot.address.load(Ordering::Relaxed), 0);
                assert_eq!(read(&slot.parts[self.rank]), given(other, number));
            }
            Call::SplitReduction => {
                await_mark(&slot.combined, number);
                let sum = given(0, number) + given(1, number);
                assert_eq!(read(&slot.parts[other]), sum);
            }
        }
    }
}

/// Both ranks run the operations: where the steps of each end, and what it is.
fn explore(limits: Limits, operations: &'static [(u64, Call)]) {
    let mut model = Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let group = Group::new(limits);
        let run = move |mut rank: Rank| {
            let mut first = 0;
            for &(end, call) in operations {
                rank.run(first..end, call);
                first = end;
            }
        };
        let other = Rank::new(&group, 1);
        let other = thread::spawn(move || run(other));
        run(Rank::new(&group, 0));
        other.join().expect("the other rank ends");
    });
}

const FEW: Limits = Limits {
    slots: 2,
    window: 1,
};

#[test]
fn a_slot_is_used_again_after_the_other_has_taken_its_step() {
    explore(
        FEW,
        &[
            (1, Call::Broadcast),
            (2, Call::Broadcast),
            (4, Call::Broadcast),
        ],
    );
}

#[test]
fn a_window_of_steps_is_given_before_the_first_is_taken() {
    let limits = Limits {
        slots: 4,
        window: 2,
    };
    explore(limits, &[(5, Call::Broadcast)]);
}

#[test]
fn parts_are_combined_where_no_other_rank_reads() {
    explore(FEW, &[(2, Call::SplitReduction), (3, Call::Exchange)]);
}

#[test]
fn a_buffer_is_written_again_after_the_other_has_copied_it() {
    explore(FEW, &[(2, Call::SingleCopy), (3, Call::SingleCopy)]);
}

#[test]
fn each_half_is_copied_once_by_either_rank_also_if_one_is_an_operation_behind() {
    explore(FEW, &[(2, Call::JointCopy), (3, Call::JointCopy)]);
}
