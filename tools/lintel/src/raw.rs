//! Memory that other processes read and write: the one place of this crate that touches
//! raw pointers.
//!
//! A [`Region`] is only ever seen as atomics, because a peer may write it at any
//! moment; no plain slice is formed over one.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use portals4_abi::{ShareableMemory, UserMemory};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// One cache line of eight words.
#[repr(C, align(64))]
pub struct Line(pub [AtomicU64; 8]);

/// Names shared memory to another process: a descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The process that holds it.
    pub pid: u32,
    /// The descriptor's number in that process.
    pub fd: u32,
}

/// A page-aligned mapping that lives as long as this value.
pub struct Region {
    start: NonNull<u8>,
    length: usize,
    owner: Owner,
}

/// Who made a region's mapping, and ends it.
enum Owner {
    Private,
    File(File),
    /// Dropping it unmaps the memory.
    Portals(#[allow(dead_code)] ShareableMemory),
}

impl Region {
    /// Private zeroed memory of at least `length` bytes, already resident.
    pub fn private(length: usize) -> io::Result<Self> {
        let length = page_ceiling(length);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice
        // overlaps nothing.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let region = Self::adopt(start, length, Owner::Private)?;
        region.make_resident();
        Ok(region)
    }

    /// Zeroed memory of `length` bytes that Portals peers can map, already resident.
    ///
    /// # Errors
    /// What `PtlMemAlloc` returned.
    pub fn shareable(length: usize) -> portals4_abi::Result<Self> {
        let length = page_ceiling(length);
        let memory = ShareableMemory::new(length)?;
        let start = NonNull::new(memory.address().cast()).expect("memory has an address");
        let region = Self {
            start,
            length,
            owner: Owner::Portals(memory),
        };
        region.make_resident();
        Ok(region)
    }

    /// Shared zeroed memory of `length` bytes behind an anonymous file.
    pub fn shared(length: usize) -> io::Result<Self> {
        let length = page_ceiling(length);
        let file = File::from(memfd_create("lintel", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, length as u64)?;
        Self::map_file(file, length)
    }

    /// Shared memory that another process of this user made and still holds, by
    /// what [`Region::ticket`] gave there.
    pub fn open(ticket: Ticket) -> io::Result<Self> {
        let path = format!("/proc/{}/fd/{}", ticket.pid, ticket.fd);
        let file = File::options().read(true).write(true).open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        Self::map_file(file, length)
    }

    /// How another process finds this shared memory; `None` for private memory.
    pub fn ticket(&self) -> Option<Ticket> {
        let Owner::File(file) = &self.owner else {
            return None;
        };
        Some(Ticket {
            pid: std::process::id(),
            fd: file.as_raw_fd() as u32,
        })
    }

    /// Length in bytes, a multiple of the page size.
    pub fn size(&self) -> usize {
        self.length
    }

    /// The first byte's address, as peers and Portals name it.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// All of it as words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page aligned, lives as long as `self`, and is
        // only ever accessed as atomics in this process.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.length / 8) }
    }

    /// All of it as bytes.
    pub fn bytes(&self) -> &[AtomicU8] {
        // SAFETY: as in `words`; bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.length) }
    }

    /// All of it as half words, for futexes.
    pub fn halves(&self) -> &[AtomicU32] {
        // SAFETY: as in `words`, with a weaker alignment.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.length / 4) }
    }

    /// All of it as cache lines.
    pub fn lines(&self) -> &[Line] {
        // SAFETY: as in `words`; a page boundary is a line boundary, and `Line`
        // is 64 bytes of atomics.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.length / 64) }
    }

    /// Copies `length` bytes from `from` at offset 0 to offset 0 of this region,
    /// as `memcpy` does; as [`Region::copy_between`].
    pub fn copy_from(&self, from: &Region, length: usize) {
        self.copy_between(0, from, 0, length);
    }

    /// Copies `length` bytes from `from` at offset `from_at` to offset `at` of this region,
    /// as `memcpy` does. Either range must belong to this process alone, or be shared memory
    /// that by flags between the processes is this one's until it passes it on.
    pub fn copy_between(&self, at: usize, from: &Region, from_at: usize, length: usize) {
        assert!(at <= self.length && length <= self.length - at);
        assert!(from_at <= from.length && length <= from.length - from_at);
        // SAFETY: the offsets lie within the mappings (asserted).
        let (to, from) = unsafe { (self.start.add(at), from.start.add(from_at)) };
        // SAFETY: both ranges are mapped (asserted), distinct mappings never
        // overlap, and no other thread writes them by the contract above.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), length) };
    }

    /// Copies `length` bytes out of process `pid` at `address` there to offset 0
    /// here by cross-memory attach.
    ///
    /// # Errors
    /// `EPERM` if the kernel or a container forbids it, `ESRCH` if the process
    /// is gone, `EFAULT` for an address that isn't mapped there; a short copy is
    /// an error too.
    pub fn read_process(&self, pid: u32, address: u64, length: usize) -> io::Result<()> {
        assert!(length <= self.length);
        let local = libc::iovec {
            iov_base: self.start.as_ptr().cast(),
            iov_len: length,
        };
        let remote = libc::iovec {
            iov_base: ptr::without_provenance_mut(address as usize),
            iov_len: length,
        };
        // SAFETY: the local range is mapped for as long as `self` (asserted); the
        // remote one is checked by the kernel.
        let copied = unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) };
        match usize::try_from(copied) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(copied) if copied < length => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(_) => Ok(()),
        }
    }

    fn map_file(file: File, length: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps
        // nothing; the file is never shortened.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        Self::adopt(start, length, Owner::File(file))
    }

    fn adopt(start: *mut c_void, length: usize, owner: Owner) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            length,
            owner,
        })
    }

    fn make_resident(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        for word in self.words().iter().step_by(4096 / 8) {
            word.store(0, Relaxed);
        }
    }
}

// SAFETY: the mapping lives as long as the value, at one address, and is only ever seen as
// atomics.
unsafe impl UserMemory for Region {
    fn address(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    fn size(&self) -> usize {
        self.length
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if matches!(self.owner, Owner::Portals(_)) {
            return;
        }
        // SAFETY: the mapping was made by this value and no reference outlives it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The cheapest system call there is: asks for the parent's id, uncached.
pub fn smallest_system_call() {
    // SAFETY: getppid takes nothing and can't fail.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// An option of a UDP socket that the safe crates don't offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpOption {
    /// UDP_SEGMENT: what is sent is cut into datagrams of so many bytes.
    Segment,
    /// UDP_GRO: datagrams of one flow arrive together.
    Coalesce,
}

/// Sets `option` to `value`.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 4.18 and 5.0.
pub fn set_udp_option(socket: &impl AsRawFd, option: UdpOption, value: i32) -> io::Result<()> {
    let name = match option {
        UdpOption::Segment => libc::UDP_SEGMENT,
        UdpOption::Coalesce => libc::UDP_GRO,
    };
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has that length; the descriptor is
    // the socket's, which the caller holds.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            name,
            ptr::from_ref(&value).cast(),
            length,
        )
    };
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn page_ceiling(length: usize) -> usize {
    let page = rustix::param::page_size();
    length.max(1).next_multiple_of(page)
}

// SAFETY: the mapping is reachable from any thread and only through atomics.
unsafe impl Send for Region {}
// SAFETY: as above; `copy_from` is the caller's alone by its contract.
unsafe impl Sync for Region {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn shared_region_is_seen_through_its_ticket() {
        let here = Region::shared(4096).expect("memory");
        let there = Region::open(here.ticket().expect("shared")).expect("same file");
        here.words()[3].store(7, Relaxed);
        assert_eq!(there.words()[3].load(Relaxed), 7);
    }

    #[test]
    fn cross_memory_read_of_an_unmapped_address_is_an_error() {
        let here = Region::private(4096).expect("memory");
        assert!(here.read_process(std::process::id(), 8, 64).is_err());
    }
}
