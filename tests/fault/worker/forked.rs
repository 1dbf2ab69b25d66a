//! The calls of a fork's child, and its parent's afterwards.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::ptl::{self, ACK, Interface, NO_INIT, PATIENCE, Target};
use lintel_types::{EventKind, Handle, NiFail};

pub fn run(pid: u32, other: u32) -> Done {
    let interface = Interface::open(pid).map_err(|why| format!("open: {why:?}"))?;
    let queue = interface.queue(64).map_err(|why| format!("{why:?}"))?;
    let memory = Memory::patterned(64);
    let source = interface
        .bind(memory, queue)
        .map_err(|why| format!("{why:?}"))?;
    println!("ready");
    put(source, queue, other)?;
    for end in [Ending::Exit, Ending::Fini, Ending::Abort] {
        // SAFETY: the child calls the library, which is what is tested, writes to
        // standard error and ends.
        match unsafe { libc::fork() } {
            -1 => return Err("fork failed".into()),
            0 => child(&interface, source, queue, other, end),
            child => expect_success(child)?,
        }
        put(source, queue, other)?;
    }
    println!("done");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    interface.close().map_err(|why| format!("close: {why:?}"))
}

#[derive(Clone, Copy)]
enum Ending {
    Exit,
    Fini,
    Abort,
}

/// Ends with 0 where every call has answered as it should.
fn child(interface: &Interface, source: Handle, queue: Handle, other: u32, end: Ending) -> ! {
    let target = Target {
        process: ptl::process(other),
        bits: 1,
        offset: 0,
    };
    let answers = [
        ("put", ptl::put(source, 8, ACK, target, 1)),
        ("get", ptl::get(source, 8, target, 1)),
        ("event", ptl::event(queue).map(|_| ())),
        ("wait", ptl::wait_event(queue).map(|_| ())),
        ("queue", interface.queue(8).map(|_| ())),
        ("id", interface.id().map(|_| ())),
        ("open", Interface::again(77).map(|_| ())),
        ("bind", interface.bind(Memory::new(8), queue).map(|_| ())),
    ];
    let mut failed = 0;
    for (what, answer) in answers {
        if answer != Err(NO_INIT) {
            eprintln!("child: {what} answers {answer:?}");
            failed = 1;
        }
    }
    match end {
        Ending::Exit => {}
        Ending::Fini => ptl::fini(),
        Ending::Abort => ptl::abort(),
    }
    if ptl::init().is_ok() {
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

fn put(source: Handle, queue: Handle, other: u32) -> Done {
    let target = Target {
        process: ptl::process(other),
        bits: 1,
        offset: 0,
    };
    ptl::put(source, 64, ACK, target, 1).map_err(|why| format!("put: {why:?}"))?;
    loop {
        let event = ptl::event_within(queue, PATIENCE).map_err(|why| format!("{why:?}"))?;
        if event.kind == EventKind::Ack {
            return match event.ni_fail {
                NiFail::Ok => Ok(()),
                fail => Err(format!("the parent's put: {fail:?}")),
            };
        }
    }
}
