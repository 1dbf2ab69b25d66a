//! Cross-memory attach against a child process, and against memory that isn't there.

use lintel_claim::{
    Claim, CrossMemoryError, Lease, Region, RemoteMemory, RemoteSpan, copy_checked,
};

/// A copy of this process that sleeps until it is dropped.
struct Child {
    process: i32,
    /// Closing it wakes the child.
    door: i32,
}

impl Child {
    fn start() -> Child {
        let mut pipe = [0; 2];
        // SAFETY: two descriptors have room in `pipe`.
        let made = unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) };
        assert_eq!(made, 0, "no pipe: {}", std::io::Error::last_os_error());
        // SAFETY: the child only calls close, read and _exit, all signal-safe.
        let process = unsafe { libc::fork() };
        assert!(
            process >= 0,
            "no child: {}",
            std::io::Error::last_os_error()
        );
        if process == 0 {
            // SAFETY: the child's own copy of the descriptor.
            unsafe { libc::close(pipe[1]) };
            let mut byte = 0u8;
            // SAFETY: one byte has room; returns at the end of the pipe.
            unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) };
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: ours, and not used again.
        unsafe { libc::close(pipe[0]) };
        Child {
            process,
            door: pipe[1],
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: ours, closed once.
        unsafe { libc::close(self.door) };
        // Another test's child may hold a copy of the door: don't wait for it.
        // SAFETY: our own child, not yet waited for.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
        // SAFETY: our own child; no status is asked for.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 13 + at / 255) as u8).collect()
}

fn bytes_of(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read(0, &mut bytes);
    bytes
}

fn span(claim: Claim) -> RemoteSpan {
    RemoteSpan {
        address: claim.address(),
        length: claim.len(),
    }
}

/// Cuts a claim into pieces of `length` bytes.
fn cut(claim: Claim, length: u64) -> Vec<Claim> {
    (0..claim.len().div_ceil(length))
        .map(|at| claim.slice(at * length, length))
        .collect()
}

/// Pages of which the second is out of reach.
fn half_open() -> Claim {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel likes; it stays to the end of the test.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), 8192, access, kind, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let second = start.wrapping_byte_add(4096);
    // SAFETY: the second page of the mapping just made, not yet touched by anybody.
    assert_eq!(0, unsafe { libc::mprotect(second, 4096, libc::PROT_NONE) });
    // SAFETY: only used by checked copies.
    unsafe { Claim::new(start.cast(), 8192) }
}

/// This process, as a peer that was lent to under the lease names it.
fn own(lease: &Lease) -> RemoteMemory {
    RemoteMemory {
        process: std::process::id() as i32,
        key: lease.key().expect("the system has a page"),
    }
}

/// Memory of a child that is forked after this, with its lease: the page of a lease
/// isn't inherited otherwise.
fn inherited(lease: &Lease) -> impl Fn(&Child) -> RemoteMemory {
    let key = lease.key().expect("the system has a page");
    let page = std::ptr::with_exposed_provenance_mut(key.address as usize);
    // SAFETY: the lease's own page.
    assert_eq!(0, unsafe { libc::madvise(page, 4096, libc::MADV_DOFORK) });
    move |child| RemoteMemory {
        process: child.process,
        key,
    }
}

#[test]
fn bytes_pushed_into_a_child_are_pulled_back() {
    let (there, source, sink) = (
        Region::new(300_000),
        Region::new(300_000),
        Region::new(300_000),
    );
    source.write(0, &pattern(300_000));
    let lease = Lease::new();
    let memory = inherited(&lease);
    let child = Child::start();
    let pushed = memory(&child).push(&[source.claim()], &[span(there.claim())]);
    assert_eq!(pushed, Ok(300_000));
    assert!(
        bytes_of(&there).iter().all(|byte| *byte == 0),
        "our own copy stays"
    );
    let pulled = memory(&child).pull(&[span(there.claim())], &[sink.claim()]);
    assert_eq!(pulled, Ok(300_000));
    assert_eq!(bytes_of(&sink), pattern(300_000));
}

#[test]
fn lists_longer_than_a_call_takes_arrive_in_order() {
    let (there, source, sink) = (
        Region::new(30_000),
        Region::new(30_000),
        Region::new(30_000),
    );
    source.write(0, &pattern(30_000));
    let lease = Lease::new();
    let memory = inherited(&lease);
    let child = Child::start();
    let spans: Vec<RemoteSpan> = cut(there.claim(), 17).into_iter().map(span).collect();
    assert!(spans.len() > 1024);
    assert_eq!(
        memory(&child).push(&cut(source.claim(), 5), &spans),
        Ok(30_000)
    );
    assert_eq!(
        memory(&child).pull(&spans, &cut(sink.claim(), 401)),
        Ok(30_000)
    );
    assert_eq!(bytes_of(&sink), pattern(30_000));
}

#[test]
fn the_shorter_list_ends_a_transfer() {
    let (long, short) = (Region::new(1000), Region::new(10));
    let lease = Lease::new();
    let own = own(&lease);
    assert_eq!(own.pull(&[span(long.claim())], &[short.claim()]), Ok(10));
    assert_eq!(own.push(&[long.claim()], &[span(short.claim())]), Ok(10));
    assert_eq!(own.pull(&[], &[short.claim()]), Ok(0));
    assert_eq!(own.push(&[Claim::empty()], &[span(short.claim())]), Ok(0));
}

#[test]
fn memory_out_of_reach_is_a_fault_with_the_bytes_before_it() {
    let (torn, sound) = (half_open(), Region::new(8192));
    let lease = Lease::new();
    let own = own(&lease);
    let fault = Err(CrossMemoryError::Fault { copied: 96 });
    let tail = torn.slice(4000, 200);
    assert_eq!(own.pull(&[span(tail)], &[sound.claim()]), fault);
    assert_eq!(own.push(&[sound.claim()], &[span(tail)]), fault);
    assert_eq!(copy_checked(&[tail], &[sound.claim()]), fault);
    // Where the side that breaks is the caller's, the kernel may count less.
    let broken = copy_checked(&[sound.claim()], &[tail]);
    assert!(
        matches!(broken, Err(CrossMemoryError::Fault { copied: 0..=96 })),
        "{broken:?}"
    );
}

#[test]
fn a_fault_late_in_a_long_list_counts_what_came_before() {
    let (torn, sound) = (half_open(), Region::new(8192));
    let lease = Lease::new();
    let own = own(&lease);
    let spans: Vec<RemoteSpan> = cut(torn, 16).into_iter().map(span).collect();
    let late = own.pull(&spans, &[sound.claim()]);
    assert_eq!(late, Err(CrossMemoryError::Fault { copied: 4096 }));
}

#[test]
fn a_claim_of_the_whole_address_space_is_checked_by_the_kernel() {
    // SAFETY: only used by checked copies.
    let all = unsafe { Claim::new(std::ptr::null_mut(), u64::MAX) };
    let (source, sink) = (Region::new(64), Region::new(64));
    source.write(0, &pattern(64));
    let there = all.slice(sink.claim().address(), 64);
    assert_eq!(copy_checked(&[source.claim()], &[there]), Ok(64));
    assert_eq!(bytes_of(&sink), pattern(64));
    let nowhere = Err(CrossMemoryError::Fault { copied: 0 });
    assert_eq!(copy_checked(&[all], &[sink.claim()]), nowhere);
    assert_eq!(copy_checked(&[source.claim()], &[all]), nowhere);
    assert_eq!(
        copy_checked(&[all.slice(u64::MAX - 8, 8)], &[sink.claim()]),
        nowhere
    );
}

#[test]
fn a_process_that_ended_is_no_process() {
    let lease = Lease::new();
    let memory = inherited(&lease);
    let child = Child::start();
    let memory = memory(&child);
    assert_eq!(memory.probe(), Ok(()));
    drop(child);
    let region = Region::new(8);
    let answer = memory.pull(&[span(region.claim())], &[region.claim()]);
    assert_eq!(answer, Err(CrossMemoryError::NoProcess));
    assert_eq!(memory.probe(), Err(CrossMemoryError::NoProcess));
}

/// Tries to read and to write a child's memory; what was there must stay.
fn is_out_of_reach(memory: RemoteMemory) {
    let (there, source, sink) = (Region::new(64), Region::new(64), Region::new(64));
    source.write(0, &[7; 64]);
    let spans = [span(there.claim())];
    let no_process = Err(CrossMemoryError::NoProcess);
    assert_eq!(memory.push(&[source.claim()], &spans), no_process);
    assert_eq!(memory.pull(&spans, &[sink.claim()]), no_process);
    assert_eq!(memory.probe(), Err(CrossMemoryError::NoProcess));
    assert_eq!(bytes_of(&there), [0; 64], "nothing was written");
    assert_eq!(bytes_of(&sink), [0; 64], "nothing was read");
}

#[test]
fn memory_of_a_revoked_lease_is_neither_read_nor_written() {
    let lease = Lease::new();
    let memory = own(&lease);
    assert_eq!(memory.probe(), Ok(()));
    lease.revoke();
    is_out_of_reach(memory);
}

#[test]
fn a_process_without_the_page_of_the_lease_is_not_the_lender() {
    let lease = Lease::new();
    let key = lease.key().expect("the system has a page");
    let child = Child::start();
    is_out_of_reach(RemoteMemory {
        process: child.process,
        key,
    });
}

#[test]
fn a_page_with_another_number_is_not_the_lender() {
    let lease = Lease::new();
    let mut memory = own(&lease);
    memory.key.nonce ^= 1;
    let (there, sink) = (Region::new(8), Region::new(8));
    let answer = memory.pull(&[span(there.claim())], &[sink.claim()]);
    assert_eq!(answer, Err(CrossMemoryError::NoProcess));
}

#[test]
fn more_than_a_call_may_move_arrives_whole() {
    // Three GiB of untouched zeros into one page's worth of claims again and again.
    let (source, sink) = (Region::new(3 << 30), Region::new(1 << 20));
    source.write((3 << 30) - 1, &[42]);
    let spans = [span(source.claim())];
    let lease = Lease::new();
    let own = own(&lease);
    let claims = vec![sink.claim(); 3 << 10];
    assert_eq!(own.pull(&spans, &claims), Ok(3 << 30));
    let mut last = [0];
    sink.read((1 << 20) - 1, &mut last);
    assert_eq!(last, [42]);
}
