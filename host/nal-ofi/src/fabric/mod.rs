//! An endpoint of libfabric's, behind calls that are safe: buffers are claims, whose
//! makers have vouched for them as long as they are used, and operations have names.
//!
//! ```text
//!   Library ─▶ Provider ─▶ Fabric   send, receive, read ──▶ poll: what is done
//!                             └────  register ──▶ Registered memory
//! ```
#![allow(unsafe_code)]

mod library;
mod object;
mod provider;
mod slots;

pub(crate) use library::Library;
pub(crate) use provider::{Provider, Socket, Traits, prefer_extended_connections};

use crate::error::OpenError;
use crate::sys;
use lintel_claim::{Claim, Region};
use object::Object;
use siphasher::sip::SipHasher24;
use slots::Slots;
use std::ffi::c_void;
use std::hash::Hasher as _;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

pub(crate) use sys::Address;

/// What became of a call that starts an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Posted {
    /// It is under way.
    Yes,
    /// There is no room, or no connection yet: try again.
    Later,
    /// It can't be done, for libfabric's reason.
    No(i32),
}

/// An operation that is over: its name, if it had one, and the bytes that moved.
pub(crate) struct Completion<T> {
    pub(crate) operation: Option<T>,
    pub(crate) outcome: Result<usize, i32>,
}

/// What local buffers carry with them where the provider wants them registered.
#[derive(Clone, Copy, Default)]
pub(crate) struct Descriptor(usize);

/// What registered memory may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Use {
    /// Messages go out of it and come into it.
    Frames,
    /// Peers may read it, until it is recalled.
    Lent,
    /// What peers lend is read into it.
    Filled,
}

/// Memory that libfabric knows; until this is dropped.
pub(crate) struct Registered {
    memory: Object<sys::Mr>,
    /// What the addresses that peers use begin at.
    base: u64,
    _domain: Arc<Object<sys::Domain>>,
}

impl Registered {
    /// What a peer needs to read that memory.
    pub(crate) fn key(&self) -> u64 {
        self.memory.table().key
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        Descriptor(self.memory.table().mem_desc.expose_provenance())
    }

    /// The name by which peers read a part of it.
    pub(crate) fn name(&self, part: Claim) -> u64 {
        part.address().wrapping_sub(self.base)
    }
}

/// An open endpoint. Operations are named by values of type `T`.
pub(crate) struct Fabric<T> {
    // In the order in which they must be closed.
    endpoint: Arc<Object<sys::Ep>>,
    completions: Arc<Object<sys::Cq>>,
    addresses: Arc<Object<sys::Av>>,
    domain: Arc<Object<sys::Domain>>,
    fabric: Arc<Object<sys::Fabric>>,
    library: &'static Library,
    traits: Traits,
    name: String,
    wait: Option<RawFd>,
    slots: Slots<T>,
    /// Keys that nobody can guess: a keyed hash of a counter.
    keys: SipHasher24,
    keys_given: u64,
    /// What the endpoint may write to until it is closed.
    kept: Vec<Region>,
}

/// Entries of the completion queue, as many as are read at once.
const BATCH: usize = 32;
/// Room in structures that libfabric writes, or looks at, for what later versions add.
const SPARE: usize = 8;

impl<T> Fabric<T> {
    /// Opens an endpoint that may have so many operations under way.
    pub(crate) fn open(
        library: &'static Library,
        provider: &Provider,
        operations: usize,
    ) -> Result<Fabric<T>, OpenError> {
        let refused = |call| {
            move |code: i32| OpenError::Refused {
                call,
                code: code.abs(),
                why: library.explain(code),
            }
        };
        let traits = provider.traits();
        let fabric = open_fabric(library, provider).map_err(refused("a fabric"))?;
        let domain = open_domain(&fabric, provider).map_err(refused("a domain"))?;
        let addresses = open_addresses(&domain).map_err(refused("an address vector"))?;
        let (completions, wait) =
            open_completions(&domain, operations).map_err(refused("a completion queue"))?;
        let endpoint = open_endpoint(&domain, provider).map_err(refused("an endpoint"))?;
        endpoint
            .bind(&addresses, 0)
            .map_err(refused("to bind addresses"))?;
        let both = sys::TRANSMIT | sys::RECV;
        endpoint
            .bind(&completions, both)
            .map_err(refused("to bind completions"))?;
        endpoint
            .control(sys::ENABLE, None)
            .map_err(refused("to enable the endpoint"))?;
        Ok(Fabric {
            endpoint: Arc::new(endpoint),
            completions: Arc::new(completions),
            addresses: Arc::new(addresses),
            domain: Arc::new(domain),
            fabric: Arc::new(fabric),
            library,
            traits,
            name: provider.name(),
            wait,
            slots: Slots::new(operations),
            keys: SipHasher24::new_with_key(&secret()?),
            keys_given: 0,
            kept: Vec::new(),
        })
    }

    pub(crate) fn traits(&self) -> &Traits {
        &self.traits
    }

    /// For tests: what the provider wants, and what it would do without.
    #[cfg(test)]
    pub(crate) fn traits_mut(&mut self) -> &mut Traits {
        &mut self.traits
    }

    /// What one of its error numbers means.
    pub(crate) fn explain(&self, code: i32) -> String {
        self.library.explain(code)
    }

    /// The provider that libfabric has chosen, as `fi_info` names it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps memory until the endpoint is closed.
    pub(crate) fn keep(&mut self, memory: &Region) {
        self.kept.push(memory.clone());
    }

    /// Never closes the endpoint.
    #[cfg(feature = "test-doors")]
    pub(crate) fn leak(&self) {
        std::mem::forget(self.endpoint.clone());
        std::mem::forget(self.completions.clone());
        std::mem::forget(self.addresses.clone());
        std::mem::forget(self.domain.clone());
        std::mem::forget(self.fabric.clone());
    }

    /// The address of this endpoint, for peers.
    pub(crate) fn address(&self) -> Result<Vec<u8>, i32> {
        // SAFETY: an open endpoint has its table.
        let calls = unsafe { &*self.endpoint.table().cm };
        let mut bytes = vec![0u8; 512];
        let mut length = bytes.len();
        let into = bytes.as_mut_ptr().cast();
        // SAFETY: so many bytes are writable.
        let code = unsafe { (calls.getname)(self.endpoint.fid(), into, &mut length) };
        bytes.truncate(length);
        if code == 0 { Ok(bytes) } else { Err(code) }
    }

    /// Makes a peer's address known.
    pub(crate) fn insert(&mut self, address: &[u8]) -> Option<Address> {
        let mut name = sys::ADDR_UNSPEC;
        let calls = self.address_calls();
        let (vector, bytes) = (self.addresses.raw(), address.as_ptr().cast());
        // SAFETY: one address of the endpoint's own format, which is copied, and a
        // place for its name. The caller has it from such an endpoint.
        let inserted =
            unsafe { (calls.insert)(vector, bytes, 1, &mut name, 0, std::ptr::null_mut()) };
        (inserted == 1 && name != sys::ADDR_UNSPEC).then_some(name)
    }

    /// Forgets a peer's address, unless the provider [keeps](Traits::keeps_names) all.
    pub(crate) fn remove(&mut self, mut address: Address) {
        if self.traits.keeps_names {
            return;
        }
        let calls = self.address_calls();
        // SAFETY: one name, which `insert` has given.
        unsafe { (calls.remove)(self.addresses.raw(), &mut address, 1, 0) };
    }

    fn address_calls(&self) -> &sys::AvOps {
        // SAFETY: an open address vector has its table.
        unsafe { &*self.addresses.table().ops }
    }

    fn message_calls(&self) -> &sys::MsgOps {
        // SAFETY: an open endpoint has its table.
        unsafe { &*self.endpoint.table().msg }
    }

    /// Sends bytes that may be overwritten at once; at most [`Traits::inject`].
    #[inline]
    pub(crate) fn inject(&mut self, to: Address, bytes: Claim) -> Posted {
        let inject = self.message_calls().inject;
        let (start, length) = (pointer(bytes), bytes.len() as usize);
        // SAFETY: a claim's bytes are readable while it is used.
        posted(unsafe { inject(self.endpoint.raw(), start, length, to) })
    }

    /// Sends bytes that must stay until the operation is over.
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: Address,
        bytes: Claim,
        descriptor: Descriptor,
        operation: T,
    ) -> Posted {
        let send = self.message_calls().send;
        let endpoint = self.endpoint.raw();
        let (start, length) = (pointer(bytes), bytes.len() as usize);
        // SAFETY: a claim's bytes are readable while it is used, and the caller that names
        // the operation uses it until that is over. So it is with the slot.
        self.start(operation, |slot| unsafe {
            send(endpoint, start, length, descriptor.raw(), to, slot)
        })
    }

    /// Offers a place for a message.
    pub(crate) fn receive(&mut self, into: Claim, descriptor: Descriptor, operation: T) -> Posted {
        let receive = self.message_calls().recv;
        let endpoint = self.endpoint.raw();
        let (start, length) = (pointer(into), into.len() as usize);
        let anybody = sys::ADDR_UNSPEC;
        // SAFETY: as in `send`, and the bytes are writable.
        self.start(operation, |slot| unsafe {
            receive(endpoint, start, length, descriptor.raw(), anybody, slot)
        })
    }

    /// Reads what a peer has lent under that name and key.
    pub(crate) fn read(
        &mut self,
        from: Address,
        (name, key): (u64, u64),
        into: Claim,
        descriptor: Descriptor,
        operation: T,
    ) -> Posted {
        // SAFETY: an open endpoint has its table.
        let read = unsafe { &*self.endpoint.table().rma }.read;
        let endpoint = self.endpoint.raw();
        let (start, length) = (pointer(into), into.len() as usize);
        // SAFETY: as in `receive`. What the peer's name and key mean is looked up by
        // the peer's endpoint.
        self.start(operation, |slot| unsafe {
            read(
                endpoint,
                start,
                length,
                descriptor.raw(),
                from,
                name,
                key,
                slot,
            )
        })
    }

    #[inline]
    fn start(&mut self, operation: T, call: impl FnOnce(*mut c_void) -> isize) -> Posted {
        let Some(slot) = self.slots.take(operation) else {
            return Posted::Later;
        };
        let posted = posted(call(std::ptr::with_exposed_provenance_mut(slot as usize)));
        if posted != Posted::Yes {
            self.slots.release(slot);
        }
        posted
    }

    /// Lets the provider work, and returns completed operations. Gives false
    /// where nothing was.
    pub(crate) fn poll(&mut self, over: &mut Vec<Completion<T>>) -> bool {
        // SAFETY: an open completion queue has its table.
        let calls = unsafe { &*self.completions.table().ops };
        let mut entries = [const { MaybeUninit::<sys::CqEntry>::uninit() }; BATCH];
        let into = entries.as_mut_ptr().cast();
        // SAFETY: the queue has the format of these entries, and so many fit.
        let count = unsafe { (calls.read)(self.completions.raw(), into, BATCH) };
        if count == -(sys::EAVAIL as isize) {
            return self.take_error(calls.readerr, over);
        }
        let count = usize::try_from(count).unwrap_or(0);
        for entry in &entries[..count] {
            // SAFETY: libfabric has written so many.
            let entry = unsafe { entry.assume_init_ref() };
            over.push(Completion {
                operation: self.slots.release(entry.op_context.addr() as u64),
                outcome: Ok(entry.len),
            });
        }
        count > 0
    }

    #[cold]
    fn take_error(
        &mut self,
        read_error: unsafe extern "C" fn(*mut sys::Cq, *mut sys::CqErrEntry, u64) -> isize,
        over: &mut Vec<Completion<T>>,
    ) -> bool {
        // SAFETY: numbers and pointers, for all of which zero is a value.
        let mut entry: Padded<sys::CqErrEntry> = unsafe { std::mem::zeroed() };
        // SAFETY: an entry, with room for what later versions add to it.
        let count = unsafe { read_error(self.completions.raw(), &mut entry.value, 0) };
        if count <= 0 {
            return false;
        }
        over.push(Completion {
            operation: self.slots.release(entry.value.op_context.addr() as u64),
            outcome: Err(entry.value.err),
        });
        true
    }

    /// What becomes readable when there may be something to [`poll`](Self::poll) for.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the queue's descriptor is open as long as the queue.
        self.wait.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether one may sleep on the descriptor now: everything that has come so far
    /// has been polled for.
    pub(crate) fn may_sleep(&self) -> bool {
        // SAFETY: an open fabric has its table.
        let calls = unsafe { &*self.fabric.table().ops };
        let mut queues = [self.completions.fid()];
        // SAFETY: one object of this fabric's, opened with a descriptor.
        let code = unsafe { (calls.trywait)(self.fabric.raw(), queues.as_mut_ptr(), 1) };
        code == 0
    }

    /// Makes memory known to the provider.
    ///
    /// # Errors
    /// libfabric's number: the memory isn't there, or no more can be registered.
    pub(crate) fn register(&mut self, memory: Claim, purpose: Use) -> Result<Registered, i32> {
        // SAFETY: an open domain has its table.
        let register = unsafe { &*self.domain.table().mr }.reg;
        let access = match purpose {
            Use::Frames => sys::SEND | sys::RECV,
            Use::Lent => sys::REMOTE_READ,
            Use::Filled => sys::READ,
        };
        let key = self.next_key();
        let (start, length) = (pointer(memory), memory.len() as usize);
        let (domain, nothing) = (self.domain.fid(), std::ptr::null_mut());
        // SAFETY: the provider looks at the memory when it is used, for which it is
        // claimed, or holds its pages, and then refuses what isn't there.
        let object = unsafe {
            Object::open(|raw| register(domain, start, length, access, 0, key, 0, raw, nothing))
        }?;
        if self.traits.registration.with_endpoint {
            object.bind(&self.endpoint, 0)?;
            object.control(sys::ENABLE, None)?;
        }
        let by_address = self.traits.registration.by_address;
        Ok(Registered {
            memory: object,
            base: if by_address { 0 } else { memory.address() },
            _domain: self.domain.clone(),
        })
    }

    fn next_key(&mut self) -> u64 {
        if self.traits.registration.chosen_keys {
            return 0;
        }
        self.keys_given += 1;
        let mut hash = self.keys;
        hash.write_u64(self.keys_given);
        let unused_bits = 64 - 8 * self.traits.registration.key_bytes.clamp(1, 8);
        // Where keys are short a counter never gives the same one twice.
        if unused_bits > 0 {
            return self.keys_given;
        }
        hash.finish()
    }
}

impl Descriptor {
    fn raw(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// With room behind it.
#[repr(C)]
struct Padded<T> {
    value: T,
    spare: [u64; SPARE],
}

fn secret() -> Result<[u8; 16], OpenError> {
    let mut secret = [0; 16];
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
    Ok(secret)
}

#[inline]
fn pointer(claim: Claim) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(claim.address() as usize)
}

#[inline]
fn posted(code: isize) -> Posted {
    match code {
        0 => Posted::Yes,
        code if code == -(sys::EAGAIN as isize) => Posted::Later,
        code => Posted::No(i32::try_from(code.unsigned_abs()).unwrap_or(libc::EIO)),
    }
}

fn open_fabric(library: &Library, provider: &Provider) -> Result<Object<sys::Fabric>, i32> {
    let (attributes, nothing) = (provider.fabric_attributes(), std::ptr::null_mut());
    // SAFETY: the provider's own attributes; fi_fabric writes what it opens.
    unsafe { Object::open(|raw| (library.open_fabric)(attributes, raw, nothing)) }
}

fn open_domain(
    fabric: &Object<sys::Fabric>,
    provider: &Provider,
) -> Result<Object<sys::Domain>, i32> {
    // SAFETY: an open fabric has its table.
    let calls = unsafe { &*fabric.table().ops };
    let nothing = std::ptr::null_mut();
    // SAFETY: the provider's own info; the call writes what it opens.
    unsafe { Object::open(|raw| (calls.domain)(fabric.raw(), provider.raw(), raw, nothing)) }
}

fn domain_calls(domain: &Object<sys::Domain>) -> &sys::DomainOps {
    // SAFETY: an open domain has its table.
    unsafe { &*domain.table().ops }
}

fn open_addresses(domain: &Object<sys::Domain>) -> Result<Object<sys::Av>, i32> {
    // SAFETY: numbers and pointers, for all of which zero is a value.
    let mut attributes: Padded<sys::AvAttr> = unsafe { std::mem::zeroed() };
    let (calls, nothing) = (domain_calls(domain), std::ptr::null_mut());
    // SAFETY: attributes with room behind; the call writes what it opens.
    unsafe {
        Object::open(|raw| (calls.av_open)(domain.raw(), &mut attributes.value, raw, nothing))
    }
}

/// The queue, and what to sleep on where the provider has that.
fn open_completions(
    domain: &Object<sys::Domain>,
    size: usize,
) -> Result<(Object<sys::Cq>, Option<RawFd>), i32> {
    if let Ok(queue) = open_queue(domain, size, sys::WAIT_FD) {
        let mut fd = -1;
        if queue.control(sys::GETWAIT, Some(&mut fd)).is_ok() && fd >= 0 {
            return Ok((queue, Some(fd)));
        }
    }
    open_queue(domain, size, sys::WAIT_NONE).map(|queue| (queue, None))
}

fn open_queue(
    domain: &Object<sys::Domain>,
    size: usize,
    wait: u32,
) -> Result<Object<sys::Cq>, i32> {
    // SAFETY: numbers and pointers, for all of which zero is a value.
    let mut attributes: Padded<sys::CqAttr> = unsafe { std::mem::zeroed() };
    attributes.value.size = size;
    attributes.value.format = sys::CQ_FORMAT_MSG;
    attributes.value.wait_obj = wait;
    let (calls, nothing) = (domain_calls(domain), std::ptr::null_mut());
    // SAFETY: attributes with room behind; the call writes what it opens.
    unsafe {
        Object::open(|raw| (calls.cq_open)(domain.raw(), &mut attributes.value, raw, nothing))
    }
}

fn open_endpoint(
    domain: &Object<sys::Domain>,
    provider: &Provider,
) -> Result<Object<sys::Ep>, i32> {
    let (calls, nothing) = (domain_calls(domain), std::ptr::null_mut());
    // SAFETY: the provider's own info; the call writes what it opens.
    unsafe { Object::open(|raw| (calls.endpoint)(domain.raw(), provider.raw(), raw, nothing)) }
}
