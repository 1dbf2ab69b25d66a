//! An object of libfabric's, closed when nobody needs it any more.

use crate::sys;
use std::ptr::NonNull;

/// The tables begin with a [`sys::Fid`], which closes the object.
pub(super) trait Kind {}
impl Kind for sys::Fabric {}
impl Kind for sys::Domain {}
impl Kind for sys::Av {}
impl Kind for sys::Cq {}
impl Kind for sys::Ep {}
impl Kind for sys::Mr {}

pub(super) struct Object<T: Kind>(NonNull<T>);

// SAFETY: objects may be used by any thread; that it is one at a time is seen to by
// the owner, who needs `&mut` for all calls but `trywait`.
unsafe impl<T: Kind> Send for Object<T> {}
// SAFETY: as above: what is done through `&` is reading the tables, which nobody
// changes, and `trywait`, which the owner, who isn't Sync, calls from one thread.
unsafe impl<T: Kind> Sync for Object<T> {}

impl<T: Kind> Object<T> {
    /// Makes an object by a call that writes its address.
    ///
    /// # Safety
    /// Where `open` gives 0 it has written the address of a new object of kind `T`.
    pub(super) unsafe fn open(open: impl FnOnce(&mut *mut T) -> i32) -> Result<Object<T>, i32> {
        let mut raw = std::ptr::null_mut();
        match open(&mut raw) {
            0 => NonNull::new(raw).map(Object).ok_or(libc::EIO),
            code => Err(code),
        }
    }

    pub(super) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }

    pub(super) fn table(&self) -> &T {
        // SAFETY: open until this value is dropped; its tables don't change.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn fid(&self) -> *mut sys::Fid {
        self.0.as_ptr().cast()
    }

    fn operations(&self) -> &sys::FidOps {
        // SAFETY: every object begins with a fid, and has its table.
        unsafe { &*(*self.fid()).ops }
    }

    pub(super) fn bind<U: Kind>(&self, to: &Object<U>, flags: u64) -> Result<(), i32> {
        // SAFETY: both are open.
        let code = unsafe { (self.operations().bind)(self.fid(), to.fid(), flags) };
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// A control call whose argument is a number, or none.
    pub(super) fn control(&self, command: i32, argument: Option<&mut i32>) -> Result<(), i32> {
        let argument = argument.map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: of the commands used, GETWAIT writes a descriptor and ENABLE takes
        // no argument.
        let code = unsafe { (self.operations().control)(self.fid(), command, argument.cast()) };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

impl<T: Kind> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: open, ours, and not used again. One that is still in use refuses,
        // and stays: nothing else can be done about it.
        unsafe { (self.operations().close)(self.fid()) };
    }
}
