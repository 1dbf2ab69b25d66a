//! The entries.

use crate::codes::code;
use crate::groups::{self, GroupEntry};
use crate::library::{self, Library};
use crate::pointers::Pointers;
use crate::sharing;
use lintel_group::{
    Algorithm, Call, Combine, Datatype, Error, Group, Operation, ProcessId, Progress, Reduction,
    Region, Request, Result, Spec, Tree,
};
use lintel_types::{Handle, PT_ANY};
use std::ffi::{c_int, c_uint, c_void};
use std::slice;

/// The value of `PTLCOLL_OFFLOADED` in the header.
const OFFLOADED: c_uint = 1;
/// The value of `PTLCOLL_HOST` in the header.
const HOST: c_uint = 2;
/// The value of `PTLCOLL_IN_PLACE` in the header.
const IN_PLACE: usize = usize::MAX;
/// Bytes of a piece of `PTLCOLL_PIPELINE`.
const PIECE: u64 = 8 << 10;

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::InvalidArgument(what.into()))
}

/// `ptlcoll_group_create`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptlcoll_group_create(
    ni_handle: Handle,
    pt_index: u32,
    processes: *const ProcessId,
    count: u64,
    rank: u32,
    options: c_uint,
    group: *mut u32,
) -> c_int {
    let create = || {
        if processes.is_null() || group.is_null() {
            return wrong("`processes` or `group` is NULL");
        }
        if count == 0 || count > u64::from(u32::MAX >> 1) {
            return wrong(format!("a group has 1 to 2^31 processes, not {count}"));
        }
        if pt_index == PT_ANY {
            return wrong("`pt_index` is PTL_PT_ANY: all ranks name the same index");
        }
        // SAFETY: not null, and the header asks for so many.
        let processes = unsafe { slice::from_raw_parts(processes, count as usize) };
        let progress = progress(options)?;
        let spec = spec(ni_handle, processes, rank, progress.unwrap_or_default())?;
        let eager = Spec::eager_from_env()?;
        let may_share = progress.is_none();
        let mut opened = open((ni_handle, pt_index), spec, may_share)?;
        sharing::share(&mut opened, may_share.then_some(ni_handle), eager)?;
        let number = groups::add(opened)?;
        // SAFETY: not null, and the header asks for a place that can be written.
        unsafe { group.write(number) };
        Ok(())
    };
    code(create())
}

/// What the caller or the environment has selected, if anything.
fn progress(options: c_uint) -> Result<Option<Progress>> {
    match options {
        0 => Progress::from_env(),
        OFFLOADED => Ok(Some(Progress::Offloaded)),
        HOST => Ok(Some(Progress::Host)),
        _ => wrong(format!(
            "`options` is {options:#x}: it takes 0, PTLCOLL_OFFLOADED or PTLCOLL_HOST"
        )),
    }
}

fn spec(ni: Handle, processes: &[ProcessId], rank: u32, progress: Progress) -> Result<Spec> {
    let logical = library::is_logical(ni);
    let processes = processes
        .iter()
        .map(|entry| library::named(*entry, logical));
    Ok(Spec {
        processes: processes.collect(),
        rank,
        progress,
        create_timeout: Spec::create_timeout_from_env()?,
    })
}

fn open((ni, index): (Handle, u32), spec: Spec, may_share: bool) -> Result<Group<Library>> {
    let ranks = spec.processes.len();
    let bytes = match may_share {
        true => Group::<Library>::region_bytes_on_nodes(ranks),
        false => Group::<Library>::region_bytes(ranks),
    };
    let Ok(region) = Region::try_new(bytes) else {
        return Err(Error::Portals(lintel_group::PortalsError::NoSpace));
    };
    let library = Library::open(ni, index, &region, ranks)?;
    Group::create(library, region, spec)
}

/// `ptlcoll_group_free`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub extern "C" fn ptlcoll_group_free(group: u32) -> c_int {
    code(groups::remove(group).and_then(Group::free))
}

/// `ptlcoll_failed_rank`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptlcoll_failed_rank(group: u32, rank: *mut u32) -> c_int {
    let find = |entry: &mut GroupEntry| match entry.group.failed_rank() {
        _ if rank.is_null() => wrong("`rank` is NULL"),
        None => wrong("no rank of this group is known to have failed"),
        Some(failed) => {
            // SAFETY: not null, and the header asks for a place that can be written.
            unsafe { rank.write(failed) };
            Ok(())
        }
    };
    code(groups::with(group, find))
}

/// The arguments of a call.
struct Invocation {
    group: u32,
    call: Result<Call>,
    from: usize,
    to: usize,
    algorithm: u32,
}

impl Invocation {
    /// Compiled for each entry: what is known of its call is no question then.
    #[inline(always)]
    fn run(self) -> c_int {
        let number = self.group;
        code(groups::with(number, |entry| {
            match self.run_short(&mut entry.group) {
                Some(done) => done,
                None => self.run_any(&mut entry.group),
            }
        }))
    }

    /// `None` if the call isn't one of few bytes in plain buffers.
    #[inline(always)]
    fn run_short(&self, group: &mut Group<Library>) -> Option<Result<()>> {
        let (Ok(call), 0) = (&self.call, self.algorithm) else {
            return None;
        };
        let short = group.short(*call)?;
        let (gives, gets) = group.short_lengths(&short);
        let pointers = Pointers::separate(self.from, gives, self.to, gets)?;
        // SAFETY: the header asks for buffers that the call may use.
        let mut buffers = unsafe { pointers.show() };
        Some(group.run_short(short, &mut buffers))
    }

    #[cold]
    #[inline(never)]
    fn run_any(self, group: &mut Group<Library>) -> Result<()> {
        let (call, algorithm) = (self.call?, algorithm(self.algorithm)?);
        let pointers = place(group, call, algorithm, (self.from, self.to))?;
        // SAFETY: the header asks for buffers that the call may use.
        unsafe { pointers.with(|buffers| group.run(call, algorithm, buffers)) }
    }

    fn begin(self, request: *mut u64) -> c_int {
        let begin = |entry: &mut GroupEntry| {
            if request.is_null() {
                return wrong("`request` is NULL");
            }
            let (call, algorithm) = (self.call?, algorithm(self.algorithm)?);
            let pointers = place(&entry.group, call, algorithm, (self.from, self.to))?;
            // SAFETY: the header asks for buffers that the call may use.
            let begun = unsafe { pointers.with(|it| entry.group.begin(call, algorithm, it)) }?;
            let name = u64::from(self.group) << 32 | u64::from(entry.keep(begun, pointers));
            // SAFETY: not null, and the header asks for a place that can be written.
            unsafe { request.write(name) };
            Ok(())
        };
        code(groups::with(self.group, begin))
    }
}

/// This rank's buffers, with PTLCOLL_IN_PLACE resolved.
fn place(
    group: &Group<Library>,
    call: Call,
    algorithm: Option<Algorithm>,
    (mut from, mut to): (usize, usize),
) -> Result<Pointers> {
    let (gives, gets) = group.lengths(call, algorithm)?;
    let own = |bytes: u64| (u64::from(group.rank()) * bytes) as usize;
    if from == IN_PLACE && gives > 0 {
        from = match call {
            Call::Allreduce(_) | Call::Reduce { .. } if gets > 0 => to,
            Call::Gather { bytes, .. } if gets > 0 => to.wrapping_add(own(bytes)),
            _ => return wrong("`sendbuf` is PTLCOLL_IN_PLACE where nothing is in place"),
        };
    }
    if to == IN_PLACE && gets > 0 {
        to = match call {
            Call::Scatter { bytes, .. } if gives > 0 => from.wrapping_add(own(bytes)),
            _ => return wrong("`recvbuf` is PTLCOLL_IN_PLACE where nothing is in place"),
        };
    }
    Pointers::new(from, gives, to, gets)
}

fn algorithm(word: u32) -> Result<Option<Algorithm>> {
    let k = word & 0xffff;
    let algorithm = match word >> 16 {
        0 if k == 0 => return Ok(None),
        1 if k == 0 => Algorithm::Dissemination,
        2 if k == 0 => Algorithm::RecursiveDoubling,
        6 if k == 0 => Algorithm::Halving,
        3 => Algorithm::Tree(Tree::KNomial(k)),
        4 => Algorithm::Tree(Tree::KAry(k)),
        5 => Algorithm::Pipelined(Tree::KAry(k), PIECE),
        _ => return wrong(format!("{word:#x} is no algorithm of ptlcoll.h")),
    };
    Ok(Some(algorithm))
}

#[inline(always)]
fn reduction(count: u64, operation: u8, datatype: u8) -> Result<Reduction> {
    match (Operation::try_from(operation), Datatype::try_from(datatype)) {
        (Ok(operation), Ok(datatype)) => Ok(Reduction {
            combine: Combine {
                operation,
                datatype,
            },
            count,
        }),
        (Err(_), _) => wrong(format!("{operation} is no operation of portals4.h")),
        (_, Err(_)) => wrong(format!("{datatype} is no datatype of portals4.h")),
    }
}

/// `ptlcoll_test`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptlcoll_test(request: *mut u64, done: *mut c_int) -> c_int {
    if done.is_null() {
        return code(wrong("`done` is NULL"));
    }
    let ended = finish(request, |entry, request, pointers| {
        // SAFETY: the header asks that the buffers stay the request's.
        unsafe { pointers.with(|buffers| entry.group.test(request, buffers)) }
    });
    code(ended.map(|ended| {
        // SAFETY: not null, and the header asks for a place that can be written.
        unsafe { done.write(c_int::from(ended)) };
    }))
}

/// `ptlcoll_wait`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptlcoll_wait(request: *mut u64) -> c_int {
    let ended = finish(request, |entry, request, pointers| {
        // SAFETY: the header asks that the buffers stay the request's.
        unsafe { pointers.with(|buffers| entry.group.wait(request, buffers)) }?;
        Ok(true)
    });
    code(ended.map(drop))
}

/// Whether a request has ended, which then is no more.
fn finish(
    request: *mut u64,
    look: impl FnOnce(&mut GroupEntry, Request, Pointers) -> Result<bool>,
) -> Result<bool> {
    if request.is_null() {
        return wrong("`request` is NULL");
    }
    // SAFETY: not null, and the header asks for a request or none.
    let name = unsafe { request.read() };
    if name == 0 {
        return Ok(true);
    }
    let ended = groups::with((name >> 32) as u32, |entry| {
        let number = name as u32;
        let (begun, pointers) = *entry.begun.get(&number).ok_or(Error::InvalidRequest)?;
        let ended = look(entry, begun, pointers)?;
        if ended {
            entry.begun.remove(&number);
        }
        Ok(ended)
    })?;
    if ended {
        // SAFETY: not null, and the header asks for a place that can be written.
        unsafe { request.write(0) };
    }
    Ok(ended)
}

/// An operation's two entries: one that waits, one that only begins.
macro_rules! entries {
    ($waits:ident, $begins:ident, ($($name:ident: $type:ty),*), $call:expr, $from:expr, $to:expr) => {
        #[doc = concat!("`", stringify!($waits), "`")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $waits(group: u32, $($name: $type,)* algorithm: u32) -> c_int {
            let invocation = Invocation {
                group,
                call: $call,
                from: $from as usize,
                to: $to as usize,
                algorithm,
            };
            invocation.run()
        }

        #[doc = concat!("`", stringify!($begins), "`")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $begins(
            group: u32,
            $($name: $type,)*
            algorithm: u32,
            request: *mut u64,
        ) -> c_int {
            let invocation = Invocation {
                group,
                call: $call,
                from: $from as usize,
                to: $to as usize,
                algorithm,
            };
            invocation.begin(request)
        }
    };
}

entries!(
    ptlcoll_barrier,
    ptlcoll_ibarrier,
    (),
    Ok(Call::Barrier),
    0,
    0
);

entries!(
    ptlcoll_broadcast,
    ptlcoll_ibroadcast,
    (buffer: *mut c_void, bytes: u64, root: u32),
    Ok(Call::Broadcast { root, bytes }),
    buffer,
    buffer
);

entries!(
    ptlcoll_allreduce,
    ptlcoll_iallreduce,
    (sendbuf: *const c_void, recvbuf: *mut c_void, count: u64, operation: u8, datatype: u8),
    reduction(count, operation, datatype).map(Call::Allreduce),
    sendbuf,
    recvbuf
);

entries!(
    ptlcoll_reduce,
    ptlcoll_ireduce,
    (sendbuf: *const c_void, recvbuf: *mut c_void, count: u64, operation: u8, datatype: u8, root: u32),
    reduction(count, operation, datatype).map(|reduction| Call::Reduce { root, reduction }),
    sendbuf,
    recvbuf
);

entries!(
    ptlcoll_gather,
    ptlcoll_igather,
    (sendbuf: *const c_void, recvbuf: *mut c_void, bytes: u64, root: u32),
    Ok(Call::Gather { root, bytes }),
    sendbuf,
    recvbuf
);

entries!(
    ptlcoll_scatter,
    ptlcoll_iscatter,
    (sendbuf: *const c_void, recvbuf: *mut c_void, bytes: u64, root: u32),
    Ok(Call::Scatter { root, bytes }),
    sendbuf,
    recvbuf
);
