//! The thread that makes progress while the application computes.

use crate::core::Core;
use crate::library::{Library, LibraryRef};
use crate::owner::Owner;
use crate::thread::spawn;
use crate::waiting::time_until;
use lintel_nal::Nal;
use lintel_presence::{Bell, SLEEP_BEFORE_BARRIER, Sleeper, favour_latency, pinned_processor};
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon the helper looks whether the application still polls. It interrupts the thread
/// that uses its processor, so if the application does, each look comes twice as late as the one
/// before, up to the longest interval; with a network, whose descriptor nobody else watches
/// meanwhile, intervals stay short.
pub const HELPER_INTERVAL: Duration = Duration::from_micros(200);
const LONGEST_INTERVAL: Duration = Duration::from_micros(1600);
/// How soon it tries again to send what found no room.
const RETRY: Duration = Duration::from_micros(100);

/// What the helper does next.
enum Next {
    Stop,
    /// Look again soon: a message is queued.
    Retry,
    /// Look again after an interval: a caller polls.
    PollAgain,
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
    let (mut seen, mut interval) = (0, HELPER_INTERVAL);
    loop {
        let rings = bell.rings(Sleeper::Helper);
        match library.with_core(|core| service(core, &mut seen)) {
            None | Some(Next::Stop) => break,
            Some(Next::Retry) => bell.sleep(Sleeper::Helper, rings, Some(RETRY)),
            Some(Next::PollAgain) => {
                bell.sleep(Sleeper::Helper, rings, Some(interval));
                let watches = library.with_core(|core| core.wakeup.has_watcher());
                if watches == Some(false) {
                    interval = (interval * 2).min(LONGEST_INTERVAL);
                }
            }
            Some(Next::Sleep(due)) => {
                interval = HELPER_INTERVAL;
                sleep_briefly(library, &bell, rings, due);
            }
        }
    }
}

/// Sleeps for a moment, then for as long as nothing comes.
fn sleep_briefly<O: Owner>(library: &Library<O>, bell: &Bell, rings: u32, due: Option<Instant>) {
    // What came before the bell was armed rings nobody: look once more.
    let nothing = || library.with_core(Core::progress) == Some(0);
    if !nothing() {
        return;
    }
    bell.sleep(Sleeper::Helper, rings, Some(SLEEP_BEFORE_BARRIER));
    if bell.rings(Sleeper::Helper) == rings {
        bell.barrier();
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
    let awaits_peers = core.awaits_peers();
    if awaits_peers {
        core.check_peers();
    }
    if core.transports.nal_has_queued() {
        return Next::Retry;
    }
    if core.wakeup.helper_keeps_polling(seen) {
        return Next::PollAgain;
    }
    let deadline = core.next_due(awaits_peers);
    core.wakeup.helper_sleeps(deadline);
    Next::Sleep(deadline)
}
