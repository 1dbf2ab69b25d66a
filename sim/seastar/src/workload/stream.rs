//! Streaming (S4, V-B; NetPIPE's streaming puts): messages one after the other, so
//! many of them under way at once.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::{EventKind, Handle, MdOptions, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, Measured, all_ended, measured, median, neighbours};
use crate::message::Class;
use crate::node::{Action, Exposure, Mode, Notice, Program, Refused, Setup, put};

/// How a stream is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages under way at once; at least 1.
    pub window: u32,
    /// Messages in all; at least 1.
    pub messages: u32,
    /// The connection's class, for streams over CCI.
    pub class: Class,
}

impl Stream {
    /// Messages of so many bytes on an unreliable connection or by puts, fewer of
    /// them if they are long.
    pub const fn of(bytes: u64) -> Self {
        Stream {
            bytes,
            window: 64,
            messages: if bytes > 64 << 10 { 6 } else { 1_000 },
            class: Class::Unreliable,
        }
    }

    /// Sets [`stream`] up, from the last core of a node to the last of its neighbour.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let (gap, received) = (measured(), Steps::default());
        let sender = Sender::new(case, self, ProcessId::new(1, case.last_core()));
        let receiver = Receiver::new(case, self, &gap, &received);
        let machine = neighbours(case, [Box::new(sender), Box::new(receiver)])?;
        let done = received.of(self.messages.into());
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            Ok(median(&gap))
        }))
    }

    /// Sets [`two_way_stream`] up.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare_both_ways(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let case = &case.virtual_nodes();
        let (gap, received) = (measured(), Steps::default());
        let mut machine = case.torus([2, 1, 1])?;
        for node in [0, 1] {
            let sender = Sender::new(case, self, ProcessId::new(1 - node, 1));
            machine.add(node, case.mode, Box::new(sender))?;
            let receiver = Receiver::new(case, self, &gap, &received);
            machine.add(node, case.mode, Box::new(receiver))?;
        }
        let done = received.of(2 * u64::from(self.messages));
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            let longer = gap.borrow().max();
            Ok(longer.expect("both receivers have measured"))
        }))
    }
}

/// The time from one message to the next: that until the receiver has taken the last
/// one, by their number.
///
/// # Errors
/// The machine can't do it.
pub fn stream(case: &Case, stream: Stream) -> Result<Duration, Refused> {
    stream.prepare(case)?.run()
}

/// The same if the nodes stream both ways, from one core to the other node's second
/// one. The longer of both times.
///
/// # Errors
/// The machine can't do it.
pub fn two_way_stream(case: &Case, stream: Stream) -> Result<Duration, Refused> {
    stream.prepare_both_ways(case)?.run()
}

/// The shortest such time of several windows, as the papers tuned theirs.
///
/// # Errors
/// The machine can't do it.
pub fn tuned_stream(case: &Case, tuned: Stream) -> Result<Duration, Refused> {
    let mut best: Option<Duration> = None;
    for window in [2, 4, 8, 16] {
        let gap = stream(case, Stream { window, ..tuned })?;
        best = Some(best.map_or(gap, |best| best.min(gap)));
    }
    Ok(best.expect("windows were tried"))
}

struct Sender {
    stream: Stream,
    to: ProcessId,
    is_cci: bool,
    memory: Handle,
    unsent: u32,
    under_way: u32,
}

struct Receiver {
    stream: Stream,
    is_cci: bool,
    received: u32,
    gap: Measured,
    all: Steps,
}

const BITS: u64 = 7;

impl Sender {
    fn new(case: &Case, stream: Stream, to: ProcessId) -> Self {
        Sender {
            stream,
            to,
            is_cci: case.mode == Mode::Cci,
            memory: Handle::INVALID,
            unsent: stream.messages,
            under_way: 0,
        }
    }
}

impl Receiver {
    fn new(case: &Case, stream: Stream, gap: &Measured, all: &Steps) -> Self {
        Receiver {
            stream,
            is_cci: case.mode == Mode::Cci,
            received: 0,
            gap: gap.clone(),
            all: all.clone(),
        }
    }
}

impl Program for Sender {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        if !self.is_cci {
            let memory = Buffer::Contiguous(Ghost::new(0x1000, self.stream.bytes));
            setup.want_starts();
            self.memory = setup.bind(memory, MdOptions::empty())?;
        }
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(Notice::Sent(_)) => self.under_way -= 1,
            Some(notice) if notice.is(EventKind::Send) => self.under_way -= 1,
            Some(Notice::Full) => {
                self.unsent += 1;
                self.under_way -= 1;
                return Action::Wait;
            }
            _ => {}
        }
        if self.unsent == 0 && self.under_way == 0 {
            return Action::End;
        }
        if self.unsent == 0 || self.under_way == self.stream.window {
            return Action::Wait;
        }
        self.unsent -= 1;
        self.under_way += 1;
        let Stream { bytes, class, .. } = self.stream;
        match self.is_cci {
            true => Action::Send {
                to: self.to,
                class,
                bytes,
            },
            false => Action::Start(put(self.memory, bytes, self.to, BITS)),
        }
    }
}

impl Program for Receiver {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        if !self.is_cci {
            setup.want_starts();
            setup.expose(&Exposure::to_all(self.stream.bytes, BITS))?;
        }
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if notice.is_none() {
            return Action::Wait;
        }
        self.received += 1;
        self.all.count(1);
        if self.received < self.stream.messages {
            return Action::Wait;
        }
        let gap = now.since(SimTime::START).as_ps() / u64::from(self.received);
        self.gap.borrow_mut().add(Duration::from_ps(gap));
        Action::End
    }
}
