//! One run of `lintel perf` in one of its processes.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::noise::Meter;
use super::options::Options;
use super::partial::Rows;
use crate::error::Result;
use crate::harness::Plan;
use crate::portals::{self, Interface, ProcessId};
use crate::report::{Row, line, table_size};
use crate::team::{Team, WORDS};

/// What every benchmark needs, and where its rows go.
pub struct Session {
    /// The two ranks of the run.
    pub team: Team,
    /// How long to measure.
    pub plan: Plan,
    /// What was asked for.
    pub options: Options,
    rows: Rows,
    meter: RefCell<Meter>,
    open: Option<(Interface, ProcessId)>,
    open3: Option<(portals33::Interface, ProcessId)>,
    progress: Progress,
    points: Cell<Points>,
}

/// How far the bar is, in points.
#[derive(Clone, Copy, Default)]
struct Points {
    /// Of benchmarks that are over.
    over: u64,
    /// Of the one that runs.
    current: u64,
    /// Of those, begun.
    begun: u64,
}

impl Session {
    /// A session without rows that has `points` before it, in all benchmarks.
    pub fn new(team: Team, options: Options, points: u64) -> Self {
        let progress = Progress::new(team.leads(), points);
        // Rank 0's: the other one measures nothing.
        let core = options.cores.first().copied().unwrap_or(0);
        Self {
            team,
            plan: options.plan(),
            options,
            rows: Rows::default(),
            meter: RefCell::new(Meter::new(core)),
            open: None,
            open3: None,
            progress,
            points: Cell::new(Points::default()),
        }
    }

    /// This process's interface and the other one's id; opened on first use, so that
    /// limits are measured without it.
    pub fn interface(&mut self) -> Result<(Interface, ProcessId)> {
        if let Some(open) = &self.open {
            return Ok(open.clone());
        }
        let interface = portals::open(ENTRIES)?;
        let peer = self.exchange_ids(interface.physical_id()?)?;
        Ok(self.open.insert((interface, peer)).clone())
    }

    /// The same for Portals 3.3.
    pub fn interface3(&mut self) -> Result<(portals33::Interface, ProcessId)> {
        if let Some(open) = &self.open3 {
            return Ok(open.clone());
        }
        let options = portals33::Options {
            limits: Some(portals33::Limits {
                max_mes: ENTRIES - 1,
                max_mds: ENTRIES - 1,
                max_me_list: ENTRIES - 1,
                ..portals33::Limits::DEFAULT
            }),
            ..portals33::Options::default()
        };
        let interface = portals33::Interface::open(&portals33::Portals::init()?, options)?;
        let peer = self.exchange_ids(interface.id()?)?;
        Ok(self.open3.insert((interface, peer)).clone())
    }

    fn exchange_ids(&self, own: ProcessId) -> Result<ProcessId> {
        let mut words = [0; WORDS];
        words[..2].copy_from_slice(&[own.nid.into(), own.pid.into()]);
        let words = self.team.swap(words)?;
        Ok(ProcessId {
            nid: words[0] as u32,
            pid: words[1] as u32,
        })
    }

    /// Keeps a row, in the process that has one.
    pub fn record(&mut self, row: impl FnOnce() -> Row) {
        if !self.team.leads() {
            return;
        }
        let noise = self.meter.borrow().noise();
        let row = Row { noise, ..row() };
        let line = line(&row);
        // First, so that an interrupt keeps what was shown.
        self.rows.push(row);
        match self.options.live {
            true => self.progress.0.suspend(|| eprintln!("{line}")),
            false => self.progress.0.println(line),
        }
    }

    /// Shows what is being measured. Only between measurements: nothing draws while
    /// the watch runs.
    pub fn announce(&self, what: &str, bytes: u64) {
        let mut points = self.points.get();
        // One that announces more than it has counted stays at its last point.
        self.progress.reach(points.over + points.begun);
        points.begun = (points.begun + 1).min(points.current.saturating_sub(1));
        self.points.set(points);
        self.progress.announce(what, bytes);
        self.meter.borrow_mut().restart();
    }

    /// A benchmark of so many points begins, and the one before it is over.
    pub fn begin(&self, points: u64) {
        let before = self.points.get();
        let over = before.over + before.current;
        self.points.set(Points {
            over,
            current: points,
            begun: 0,
        });
        self.progress.reach(over);
    }

    /// Prints a note that the rows don't contain.
    pub fn note(&self, text: &str) -> Result<()> {
        if self.team.leads() {
            self.progress.0.suspend(|| eprintln!("lintel: {text}"));
        }
        Ok(())
    }

    /// The rows so far, for who waits for an interrupt.
    pub fn rows(&self) -> Rows {
        self.rows.clone()
    }

    /// Ends the session and gives its rows; if a signal has interrupted it, this doesn't
    /// return.
    pub fn into_rows(self) -> Vec<Row> {
        self.progress.finish();
        match self.rows.take() {
            Some(rows) => rows,
            None => loop {
                // Another thread delivers them, and then ends the process.
                std::thread::park();
            },
        }
    }
}

/// How far a run is, for who watches a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of so many steps; shown by one process only.
    pub fn new(is_shown: bool, steps: u64) -> Self {
        let bar = match is_shown {
            true => ProgressBar::with_draw_target(Some(steps), target()),
            false => ProgressBar::hidden(),
        };
        let style =
            ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed}, about {eta} left  {msg}");
        bar.set_style(style.expect("the template is sound"));
        Self(bar)
    }

    /// Shows what is being measured. Only between measurements: nothing draws while
    /// the watch runs.
    pub fn announce(&self, what: &str, bytes: u64) {
        self.0.set_message(format!("{what}, {}", table_size(bytes)));
        self.0.tick();
    }

    /// One step is over.
    pub fn advance(&self) {
        self.0.inc(1);
    }

    /// So many steps are over.
    pub fn reach(&self, steps: u64) {
        self.0.set_position(steps);
    }

    /// Removes the bar after the last step.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Informs the ranks, whose standard error is the launcher's pipe, that a person is
/// watching a terminal.
pub fn terminal_hint() -> Option<(OsString, OsString)> {
    std::io::stderr()
        .is_terminal()
        .then(|| (TERMINAL_HINT.into(), "1".into()))
}

/// Standard error, or the terminal behind the launcher, or nothing.
fn target() -> ProgressDrawTarget {
    if std::env::var_os(TERMINAL_HINT).is_none() {
        return ProgressDrawTarget::stderr();
    }
    let open = || File::options().read(true).write(true).open("/dev/tty");
    match (open(), open()) {
        (Ok(input), Ok(output)) => {
            ProgressDrawTarget::term(Term::read_write_pair(input, output), DRAWS_PER_SECOND)
        }
        _ => ProgressDrawTarget::hidden(),
    }
}

/// The variable of [`terminal_hint`].
pub const TERMINAL_HINT: &str = "LINTEL_PERF_TERMINAL";

const DRAWS_PER_SECOND: u8 = 5;

/// Match entries that `depth` needs, and some.
const ENTRIES: i32 = 1 << 16;
