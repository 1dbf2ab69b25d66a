//! The thread that makes progress while the application computes.

use crate::core::Core;
use crate::library::{Library, LibraryRef};
use crate::log::{Level, log};
use crate::owner::Owner;
use crate::waiting::time_until;
use lintel_presence::{Bell, SETTLE, Sleeper, favour_latency, pinned_processor};
use nix::sys::signal::SigSet;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the helper looks whether the application still polls.
pub const HELPER_INTERVAL: Duration = Duration::from_micros(200);
/// How soon it tries again to send what found no room.
const RETRY: Duration = Duration::from_micros(100);

/// What the helper does next.
enum Next {
    Stop,
    /// Look again soon: somebody polls, or something waits for room.
    PollAgain(Duration),
    /// Sleep until the bell rings, or until something is due.
    Sleep(Option<Instant>),
}

/// Starts the helper of an open process.
pub(crate) fn start<O: Owner>(library: LibraryRef<O>) -> io::Result<JoinHandle<()>> {
    let busy = pinned_processor();
    spawn("lintel", move || {
        favour_latency(busy);
        run(&library);
    })
}

/// Starts a thread of the library's.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new()
        .name(name.into())
        .stack_size(256 << 10);
    // The application's signals are for its own threads: the mask is inherited.
    let kept = SigSet::thread_get_mask();
    let _ = SigSet::all().thread_block();
    let started = builder.spawn(body);
    if let Ok(kept) = kept {
        let _ = kept.thread_set_mask();
    }
    started
}

fn run<O: Owner>(library: &Library<O>) {
    let Some(bell) = library.bell() else { return };
    let mut seen = 0;
    loop {
        let rings = bell.rings(Sleeper::Helper);
        match library.with_core(|core| service(core, &mut seen)) {
            None | Some(Next::Stop) => break,
            Some(Next::PollAgain(after)) => bell.sleep(Sleeper::Helper, rings, Some(after)),
            Some(Next::Sleep(due)) => sleep_briefly(library, &bell, rings, due),
        }
    }
    log(Level::Info, "the helper ends");
}

/// Sleeps for a moment, then for as long as nothing comes.
fn sleep_briefly<O: Owner>(library: &Library<O>, bell: &Bell, rings: u32, due: Option<Instant>) {
    // What came before the bell was armed rings nobody: look once more.
    let nothing = || library.with_core(Core::progress) == Some(0);
    if !nothing() {
        return;
    }
    bell.sleep(Sleeper::Helper, rings, Some(SETTLE));
    if bell.rings(Sleeper::Helper) == rings {
        bell.settle();
        if nothing() {
            bell.sleep(Sleeper::Helper, rings, due.map(time_until));
        }
    }
}

/// Makes progress, then decides by what has happened since it last looked.
fn service<O: Owner>(core: &mut Core<O>, seen: &mut u64) -> Next {
    if core.closing {
        return Next::Stop;
    }
    core.progress();
    core.publish_stats();
    let depends = core.depends_on_peers();
    if depends {
        core.check_peers();
    }
    if core.transports.nal_has_queued() {
        return Next::PollAgain(RETRY);
    }
    if core.callers_asleep == 0 && core.polls != *seen && !core.polling_stopped {
        *seen = core.polls;
        core.helper_polls = true;
        return Next::PollAgain(HELPER_INTERVAL);
    }
    core.helper_polls = false;
    core.polls_armed = 0;
    if core.callers_asleep == 0 {
        core.bell.arm(Sleeper::Helper);
        core.watch();
    }
    core.helper_deadline = core.next_due(depends);
    Next::Sleep(core.helper_deadline)
}
