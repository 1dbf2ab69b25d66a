//! The thread that makes progress while the application computes.

use crate::core::Core;
use crate::library::{Library, LibraryRef};
use crate::log::{Level, log};
use crate::owner::Owner;
use crate::thread::spawn;
use crate::waiting::time_until;
use lintel_nal::Nal;
use lintel_presence::{Bell, SETTLE, Sleeper, favour_latency, pinned_processor};
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
    /// Look again soon: a caller polls, or a message is queued.
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
    if core.wakeup.is_closing() {
        return Next::Stop;
    }
    core.progress();
    core.stats.publish(&core.transports.nal.resources());
    let depends = core.depends_on_peers();
    if depends {
        core.check_peers();
    }
    if core.transports.nal_has_queued() {
        return Next::PollAgain(RETRY);
    }
    if core.wakeup.helper_keeps_polling(seen) {
        return Next::PollAgain(HELPER_INTERVAL);
    }
    let deadline = core.next_due(depends);
    core.wakeup.helper_sleeps(deadline);
    Next::Sleep(deadline)
}
