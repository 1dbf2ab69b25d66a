//! [`Mapping`]: pages of this process, mapped and unmapped in one place.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::AsFd;
use std::ptr;

/// Readable and writable pages, unmapped when this is dropped. No reference to their bytes
/// is made here.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a mapping is a range of addresses of this value alone; it gives out no references.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
    /// New pages of zeros; the system provides memory for those that are touched.
    ///
    /// # Errors
    /// `ENOMEM`: no address space is left, or the process has too many mappings.
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        Mapping::at(ptr::null_mut(), bytes, MapFlags::NORESERVE)
    }

    /// New pages of zeros at `hint`, if the system can have them there, or elsewhere.
    pub(crate) fn at(hint: *mut u8, bytes: usize, how: MapFlags) -> io::Result<Mapping> {
        let how = how | MapFlags::PRIVATE;
        // SAFETY: a new mapping; the address is a hint, so nothing is replaced.
        let start = unsafe { mmap_anonymous(hint.cast(), bytes, ACCESS, how) }?;
        Ok(Mapping {
            start: start.cast(),
            bytes,
        })
    }

    /// The first pages of a file, shared with every process that maps it.
    ///
    /// # Errors
    /// The system's, for instance if the file can't be mapped.
    pub fn shared(file: impl AsFd, bytes: usize) -> io::Result<Mapping> {
        let how = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the system's choice.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ACCESS, how, file, 0) }?;
        Ok(Mapping {
            start: start.cast(),
            bytes,
        })
    }

    /// The first byte, aligned to a page.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its length, bytes: whole pages.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this address and length, and unmapped nowhere else.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
