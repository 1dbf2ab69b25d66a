//! The calls of a forked child, and those of its parent afterwards.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor};
use lintel_types::{EventKind, NiFail};
use portals4_abi::{AckRequest, Error, Interface, Queue, abort, finalize, initialize, options};

/// Forks children that end by exit, PtlFini and PtlAbort, and puts to `other` after each.
pub fn run(pid: u32, other: u32) -> Done {
    let interface = rig::open(pid).map_err(|why| why.to_string())?;
    let queue = interface.queue(64).map_err(|why| why.to_string())?;
    let memory = Memory::patterned(64);
    let source = rig::bind(&interface, memory, &queue).map_err(|why| why.to_string())?;
    println!("ready");
    put(&source, &queue, other)?;
    for end in [Ending::Exit, Ending::Fini, Ending::Abort] {
        // SAFETY: the child calls the library, which is what is tested, writes to
        // standard error and ends.
        match unsafe { libc::fork() } {
            -1 => return Err("fork failed".into()),
            0 => child(&interface, &source, &queue, other, end),
            child => expect_success(child)?,
        }
        put(&source, &queue, other)?;
    }
    println!("done");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    interface.close().map_err(|why| why.to_string())
}

#[derive(Clone, Copy)]
enum Ending {
    Exit,
    Fini,
    Abort,
}

/// Ends with 0 if every call has returned as it should.
fn child(interface: &Interface, source: &Descriptor, queue: &Queue, other: u32, end: Ending) -> ! {
    let transfer = rig::transfer(other, 1, 8);
    let second = rig::spec(options::NI_MATCHING, 77);
    let outcomes = [
        ("put", source.put(&transfer, AckRequest::Full)),
        ("get", source.get(&transfer)),
        ("event", queue.get().map(drop)),
        ("wait", queue.wait().map(drop)),
        ("queue", interface.queue(8).map(drop)),
        ("id", interface.physical_id().map(drop)),
        ("open", Interface::open_only(&second).map(drop)),
        (
            "bind",
            rig::bind(interface, Memory::new(8), queue).map(drop),
        ),
    ];
    let mut failed = 0;
    for (what, outcome) in outcomes {
        if !outcome.is_err_and(|why| why.is(Error::NoInit)) {
            eprintln!("child: {what} returns {outcome:?}");
            failed = 1;
        }
    }
    match end {
        Ending::Exit => {}
        Ending::Fini => finalize(),
        Ending::Abort => abort(),
    }
    if initialize().is_ok() {
        eprintln!("child: init succeeds");
        failed = 1;
    }
    std::process::exit(failed)
}

fn expect_success(child: i32) -> Done {
    let mut status = 0;
    // SAFETY: the place is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    if waited != child || status != 0 {
        return Err(format!("the child ended with {status:#x}"));
    }
    Ok(())
}

fn put(source: &Descriptor, queue: &Queue, other: u32) -> Done {
    let transfer = rig::transfer(other, 1, 64);
    let put = source.put(&transfer, AckRequest::Full);
    put.map_err(|why| why.to_string())?;
    match rig::await_end(queue, EventKind::Ack)? {
        NiFail::Ok => Ok(()),
        fail => Err(format!("the parent's put: {fail:?}")),
    }
}
