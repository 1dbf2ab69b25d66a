//! NetPIPE 3.6 over puts (S1, 5.2), which isn't PortalPerf's loop: a send returns when the
//! memory may be used again, and only then is the next message waited for; nodes synchronize
//! once before many repetitions, not before each; bandwidth counts both directions.
//!
//! A stream is sends one after the other, each of which returns before the next.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, Measured, all_ended, measured, median, neighbours};
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, put};

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pattern {
    /// Either node in turn. Half of a repetition counts.
    PingPong,
    /// Both at once (`-2`).
    Bidirectional,
    /// The first node alone (`-s`).
    Streaming,
}

/// A run of it, between the last cores of two neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetPipe {
    /// Who sends.
    pub pattern: Pattern,
    /// Bytes of a message.
    pub bytes: u64,
}

/// Repetitions of messages to and fro that count. A simulated machine soon does the same
/// each time.
const REPETITIONS: u32 = 10;
/// Repetitions before those that count.
const WARM: u32 = 2;
/// Messages of a stream, all of which count: its receiver may see many at once.
const STREAMED: u32 = 200;
const BITS: u64 = 7;

/// What NetPIPE calls the time of a message.
///
/// # Errors
/// The machine can't do it.
pub fn netpipe(case: &Case, run: NetPipe) -> Result<Duration, Refused> {
    run.prepare(case)?.run()
}

/// Sizes that NetPIPE tries up to `most`: powers of two and half-way between, each
/// with its neighbours three bytes below and above.
pub fn netpipe_sizes(most: u64) -> Vec<u64> {
    let mut sizes = vec![1, 2, 3];
    let mut power = 4;
    while power <= most {
        for size in [power, power + power / 2] {
            sizes.extend([size - 3, size, size + 3]);
        }
        power *= 2;
    }
    sizes.retain(|&size| size <= most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl NetPipe {
    /// Sets [`netpipe`] up.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let (took, steps) = (measured(), Steps::default());
        let side = |node: u32| -> Box<dyn Program> {
            Box::new(Side {
                run: self,
                is_first: node == 0,
                peer: ProcessId::new(1 - node, case.last_core()),
                memory: Handle::INVALID,
                repetition: 0,
                step: Step::Begin,
                has_left: 0,
                has_come: 0,
                since: SimTime::START,
                took: took.clone(),
                steps: steps.clone(),
            })
        };
        let machine = neighbours(case, [side(0), side(1)])?;
        let done = steps.of(2 * u64::from(self.repetitions()));
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            Ok(median(&took))
        }))
    }
}

impl NetPipe {
    fn streams(&self) -> bool {
        self.pattern == Pattern::Streaming
    }

    fn repetitions(&self) -> u32 {
        match self.streams() {
            true => STREAMED,
            false => REPETITIONS + WARM,
        }
    }

    /// Messages by which the time of all is divided.
    fn counted(&self) -> u32 {
        match self.pattern {
            Pattern::PingPong => 2 * REPETITIONS,
            Pattern::Bidirectional => REPETITIONS,
            Pattern::Streaming => STREAMED,
        }
    }
}

/// What a process does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Send,
    /// Its message is on its way.
    AwaitLeft,
    AwaitCome,
    /// A repetition is over.
    Over,
}

struct Side {
    run: NetPipe,
    is_first: bool,
    peer: ProcessId,
    memory: Handle,
    repetition: u32,
    step: Step,
    /// Own messages that have left, and the peer's that have come, and haven't been waited
    /// for yet.
    has_left: u32,
    has_come: u32,
    since: SimTime,
    took: Measured,
    steps: Steps,
}

impl Side {
    fn sends_first(&self) -> bool {
        self.is_first || self.run.pattern == Pattern::Bidirectional
    }

    /// What comes after a step.
    fn after(&self, step: Step) -> Step {
        let streams = self.run.streams();
        match (step, self.sends_first()) {
            (Step::Begin, true) => Step::Send,
            (Step::Begin, false) => Step::AwaitCome,
            (Step::Send, _) => Step::AwaitLeft,
            (Step::AwaitLeft, true) if !streams => Step::AwaitCome,
            (Step::AwaitCome, false) if !streams => Step::Send,
            _ => Step::Over,
        }
    }

    /// Goes on from step to step, until something has to be waited for.
    fn go_on(&mut self, now: SimTime) -> Action {
        loop {
            let awaited = match self.step {
                Step::AwaitLeft => Some(&mut self.has_left),
                Step::AwaitCome => Some(&mut self.has_come),
                _ => None,
            };
            if let Some(count) = awaited {
                match count.checked_sub(1) {
                    Some(rest) => *count = rest,
                    None => return Action::Wait,
                }
            }
            if self.step == Step::Over && !self.repeat(now) {
                return Action::End;
            }
            let step = self.step;
            self.step = self.after(step);
            if step == Step::Send {
                return Action::Start(put(self.memory, self.run.bytes, self.peer, BITS));
            }
        }
    }

    /// Ends a repetition; whether there is another one.
    fn repeat(&mut self, now: SimTime) -> bool {
        self.repetition += 1;
        self.steps.count(1);
        if self.repetition == WARM && !self.run.streams() {
            self.since = now;
        }
        if self.repetition < self.run.repetitions() {
            self.step = Step::Begin;
            return true;
        }
        // Of a stream the receiver knows how long it took.
        if self.is_first != self.run.streams() {
            let took = now.since(self.since).as_ps() / u64::from(self.run.counted());
            self.took.borrow_mut().add(Duration::from_ps(took));
        }
        false
    }
}

impl Program for Side {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.run.bytes));
        self.memory = setup.bind(memory, MdOptions::empty())?;
        setup.expose(&Exposure::to_all(self.run.bytes, BITS))?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if let Some(notice) = notice {
            self.has_left += u32::from(notice.is(EventKind::SendEnd));
            self.has_come += u32::from(notice.is(EventKind::PutEnd));
        }
        self.go_on(now)
    }
}
