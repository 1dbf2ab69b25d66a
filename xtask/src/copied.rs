//! What a child prints, copied to our own streams and kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the streams of a child that has ended are still read.
const DRAIN: Duration = Duration::from_secs(5);

/// The lines of one stream of a child, which a thread copies to one of ours.
pub struct Copied {
    lines: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
}

/// Copies a stream of a child to one of ours.
pub fn pass_through<R, W>(from: Option<R>, mut to: W) -> Copied
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = lines.clone();
    let thread = std::thread::spawn(move || {
        let read = from
            .into_iter()
            .flat_map(|from| BufReader::new(from).split(b'\n'));
        for line in read.map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            // A closed terminal ends neither the tests nor their report.
            let _ = writeln!(to, "{line}");
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(line);
        }
    });
    Copied { lines, thread }
}

impl Copied {
    /// What was read when the stream ended. The child has ended, but a process that it
    /// left behind may hold the stream open: that isn't waited for longer than [`DRAIN`].
    pub fn lines(self) -> Vec<String> {
        let until = Instant::now() + DRAIN;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
