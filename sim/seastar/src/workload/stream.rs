//! Streaming (S4, V-B; NetPIPE's streaming puts and gets): messages one after the other, so
//! many of them under way at once.
//!
//! A sender that waits looks into its event queue all the time. It is anywhere in a look when
//! an event becomes visible, and finds it up to a look later, at random. Without that, nothing
//! disturbs two nodes that wait for one another, and for some sizes they fall into a step in
//! which three messages share interrupts: on the XT5, puts of 448 to 896 bytes were a tenth
//! faster than shorter and longer ones.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime, Stream as Random, Streams};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, Measured, all_ended, measured, median, neighbours};
use crate::message::Class;
use crate::node::{Action, Exposure, Mode, Notice, Program, Refused, Setup, get, put};

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
    /// Portals: messages are got from the other node instead of put there.
    pub gets: bool,
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
            gets: false,
        }
    }

    /// Sets [`stream`] up, from the last core of a node to the last of its neighbour.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let (gap, received) = (measured(), Steps::default());
        let to = ProcessId::new(1, case.last_core());
        let mut sender = Sender::new(case, self, to);
        if self.gets {
            sender.got = Some((gap.clone(), received.clone()));
        }
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
        if self.gets {
            let why = "streams both ways are of puts: get one way, or put";
            return Err(Refused(why.into()));
        }
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
    polling: Polling,
    /// What it measures, if it gets.
    got: Option<(Measured, Steps)>,
}

/// How much later than it becomes visible a process that polls finds an event.
struct Polling {
    look: Duration,
    random: Random,
    /// It waits, or has found the event and nothing else since.
    is_under_way: bool,
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
            polling: Polling::new(case, to),
            got: None,
        }
    }
}

impl Sender {
    /// A get has its answer.
    fn on_reply(&mut self, now: SimTime) {
        self.under_way -= 1;
        let (gap, received) = self.got.as_ref().expect("only gets are answered");
        received.count(1);
        if self.unsent == 0 && self.under_way == 0 {
            gap.borrow_mut().add(gap_of(now, self.stream.messages));
        }
    }
}

/// The time of each of so many messages, if the last one ends now.
fn gap_of(now: SimTime, messages: u32) -> Duration {
    Duration::from_ps(now.since(SimTime::START).as_ps() / u64::from(messages))
}

impl Polling {
    /// Of a sender to that process.
    fn new(case: &Case, to: ProcessId) -> Self {
        let p = &case.profile;
        let look = match case.mode {
            Mode::Cci => p.cci_get_event,
            Mode::Generic | Mode::Accelerated => p.event_get,
        };
        Polling {
            look: p.time(look),
            random: Streams::new(case.setting.seed)
                .stream(&format!("stream/to/{}/polling", to.nid)),
            is_under_way: false,
        }
    }

    /// The rest of the look that was under way when an event became visible.
    fn rest(&mut self) -> Option<Duration> {
        let waited = std::mem::take(&mut self.is_under_way);
        let is_any = waited && self.look > Duration::ZERO;
        is_any.then(|| self.random.below_duration(self.look))
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
        if self.is_cci {
            return setup.connect(self.to, self.stream.class);
        }
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.stream.bytes));
        self.memory = setup.bind(memory, MdOptions::empty())?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(Notice::Sent(_)) => self.under_way -= 1,
            Some(notice) if notice.is(EventKind::SendEnd) => self.under_way -= 1,
            Some(notice) if notice.is(EventKind::ReplyEnd) => self.on_reply(now),
            Some(Notice::Full) => {
                self.unsent += 1;
                self.under_way -= 1;
                self.polling.is_under_way = true;
                return Action::Wait;
            }
            _ => {}
        }
        if self.unsent == 0 && self.under_way == 0 {
            return Action::End;
        }
        if self.unsent == 0 || self.under_way == self.stream.window {
            self.polling.is_under_way = true;
            return Action::Wait;
        }
        if let Some(rest) = self.polling.rest() {
            return Action::Compute(rest);
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
            false if self.got.is_some() => Action::Start(get(self.memory, bytes, self.to, BITS)),
            false => Action::Start(put(self.memory, bytes, self.to, BITS)),
        }
    }
}

impl Program for Receiver {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        if !self.is_cci {
            setup.expose(&Exposure::to_all(self.stream.bytes, BITS))?;
        }
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        let is_end = |notice: &Notice| notice.is(EventKind::PutEnd) || notice.is(EventKind::GetEnd);
        if !notice.is_some_and(|notice| is_end(notice) || notice.is_received()) {
            return Action::Wait;
        }
        self.received += 1;
        // Who gets, counts and measures.
        if !self.stream.gets {
            self.all.count(1);
        }
        if self.received < self.stream.messages {
            return Action::Wait;
        }
        if !self.stream.gets {
            self.gap.borrow_mut().add(gap_of(now, self.received));
        }
        Action::End
    }
}
