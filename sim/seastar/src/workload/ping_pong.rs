//! PortalPerf (S1, 5.1): put and get of a size, one after the other, and puts both
//! ways at once; the same for CCI (S4, V-A).

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, Samples, SimTime, Streams};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::Benchmark;
use super::rig::{Case, Measured, all_ended, measured, median, neighbours, run};
use crate::message::Class;
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, get, put};

/// What goes to and fro.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A put answered by a put. Half of the round counts.
    Put,
    /// The same, each payload copied into the memory that is put: faster than binding
    /// another's up to 8 KB, and what S4's figure shows (S4, V-A).
    CopiedPut,
    /// The same as the first, each payload's memory bound before and unlinked once it has
    /// left.
    BoundPut,
    /// The same as the first, each put acknowledged.
    AcknowledgedPut,
    /// A get. All of it counts.
    Get,
    /// Puts both ways at once. Counts until a node's own has left and the other's
    /// has come; the mean of both nodes.
    Both,
    /// A CCI message answered by one. Half of the round counts.
    Cci(Class),
}

/// A run of it, between the last cores of two neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// What goes to and fro.
    pub way: Way,
    /// Bytes of a message.
    pub bytes: u64,
    /// Entries for another source, ahead of the one that takes the message.
    pub ahead: u64,
    /// How much later the second node begins, where both do. S1's nodes are synchronized
    /// first; how well isn't said.
    pub phase: Duration,
}

/// One of the two processes.
pub struct PingPong {
    way: Way,
    bytes: u64,
    /// Entries for another source, ahead of the one that takes the message.
    ahead: u64,
    begins: bool,
    peer: ProcessId,
    rounds: u32,
    /// It waits for the end of a round.
    is_waiting: bool,
    /// Own messages that have left or were acknowledged, and the peer's that have come, and
    /// that haven't been waited for yet: the peer may be a round ahead.
    has_left: u32,
    has_come: u32,
    memory: Handle,
    /// What copying the payload takes.
    copy: Duration,
    /// The payload is being copied or bound.
    is_preparing: bool,
    /// It is being unlinked.
    is_unlinking: bool,
    /// What is left of the time until it begins.
    phase: Duration,
    since: SimTime,
    measured: Measured,
}

/// How many rounds count. A simulated machine does the same each time, but for the
/// first few.
const ROUNDS: u32 = 3;
/// Rounds before those that are measured.
const WARM: u32 = 1;
/// How many phases are drawn.
const PHASES: u32 = 8;
/// Match bits of all puts and gets here.
const BITS: u64 = 7;

/// The median of a way's time, between the last cores of two neighbours.
///
/// # Errors
/// The machine can't do it.
pub fn ping_pong(case: &Case, way: Way, bytes: u64, ahead: u64) -> Result<Duration, Refused> {
    let rounds = Rounds {
        way,
        bytes,
        ahead,
        phase: Duration::ZERO,
    };
    rounds.prepare(case)?.run()
}

/// The mean of puts both ways whose second node begins later, each at random, by less than `most`.
///
/// # Errors
/// The machine can't do it.
pub fn both_at_random(case: &Case, bytes: u64, most: Duration) -> Result<Duration, Refused> {
    let mut random = Streams::new(case.setting.seed).stream("ping-pong/phase");
    let mut taken = Samples::new();
    for _ in 0..PHASES {
        let rounds = Rounds {
            way: Way::Both,
            bytes,
            ahead: 0,
            phase: random.below_duration(most),
        };
        taken.add(rounds.prepare(case)?.run()?);
    }
    Ok(taken.mean().expect("phases were drawn"))
}

impl Rounds {
    /// Sets it up; it gives the median of the way's time.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let Rounds {
            way,
            bytes,
            ahead,
            phase,
        } = self;
        let (first, second) = (measured(), measured());
        let program = |begins, measured: &Measured| -> Box<dyn Program> {
            let program = PingPong::new(way, bytes, ahead, begins, measured.clone());
            let mut program = program.with_copy(case.profile.copy(bytes));
            if !begins && way == Way::Both {
                program.phase = phase;
            }
            Box::new(program.with_process(case.last_core()))
        };
        let machine = neighbours(case, [program(true, &first), program(false, &second)])?;
        let counted = first.clone();
        let done = move || counted.borrow().len() as f64 / f64::from(ROUNDS);
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            Ok(match way {
                Way::Both => {
                    let both = median(&first) + median(&second);
                    Duration::from_ps(both.as_ps() / 2)
                }
                _ => median(&first),
            })
        }))
    }
}

/// The median of a way's time between the first node of a torus and the one farthest from
/// it.
///
/// # Errors
/// The machine can't do it.
pub fn farthest(case: &Case, dimensions: [u16; 3], way: Way) -> Result<Duration, Refused> {
    let sizes = dimensions.map(u32::from);
    let [x, y, z] = sizes.map(|size| size / 2);
    let far = x + sizes[0] * (y + sizes[1] * z);
    let (first, second) = (measured(), measured());
    let mut machine = case.torus(dimensions)?;
    for (node, peer, begins, kept) in [(0, far, true, &first), (far, 0, false, &second)] {
        let mut program = PingPong::new(way, 0, 0, begins, kept.clone());
        program.peer.nid = peer;
        machine.add(node, case.mode, Box::new(program))?;
    }
    run(machine)?;
    Ok(median(&first))
}

impl PingPong {
    /// The process that begins, on node 0, or the other one, on node 1.
    pub fn new(way: Way, bytes: u64, ahead: u64, begins: bool, measured: Measured) -> Self {
        PingPong {
            way,
            bytes,
            ahead,
            begins,
            peer: ProcessId::new(u32::from(begins), 0),
            rounds: 0,
            is_waiting: false,
            has_left: 0,
            has_come: 0,
            memory: Handle::INVALID,
            copy: Duration::ZERO,
            is_preparing: false,
            is_unlinking: false,
            phase: Duration::ZERO,
            since: SimTime::START,
            measured,
        }
    }

    /// With the peer of that number on its node.
    #[must_use]
    pub fn with_process(mut self, pid: u32) -> Self {
        self.peer.pid = pid;
        self
    }

    /// With so long a copy of each payload.
    #[must_use]
    pub fn with_copy(mut self, copy: Duration) -> Self {
        self.copy = copy;
        self
    }

    /// Its part of a round.
    fn send(&mut self) -> Action {
        self.is_preparing = true;
        match self.way {
            Way::CopiedPut => Action::Compute(self.copy),
            Way::BoundPut => Action::Call,
            _ => {
                self.is_preparing = false;
                self.start()
            }
        }
    }

    fn start(&mut self) -> Action {
        let Self {
            memory,
            bytes,
            peer,
            ..
        } = *self;
        match self.way {
            Way::Put | Way::CopiedPut | Way::BoundPut | Way::Both => {
                Action::Start(put(memory, bytes, peer, BITS))
            }
            Way::AcknowledgedPut => {
                let mut transfer = put(memory, bytes, peer, BITS);
                transfer.ack = true;
                Action::Start(transfer)
            }
            Way::Get => Action::Start(get(memory, bytes, peer, BITS)),
            Way::Cci(class) => Action::Send {
                to: peer,
                class,
                bytes,
            },
        }
    }

    /// Counts what a round waits for.
    fn count(&mut self, notice: &Notice) {
        let has_come = match self.way {
            Way::Get => notice.is(EventKind::ReplyEnd),
            Way::Cci(_) => notice.is_received(),
            _ => notice.is(EventKind::PutEnd),
        };
        let has_left = match self.way {
            Way::Both => notice.is(EventKind::SendEnd),
            _ => notice.is(EventKind::Ack),
        };
        self.has_come += u32::from(has_come);
        self.has_left += u32::from(has_left);
    }

    /// Takes what ends a round, if it is there.
    fn take_round(&mut self) -> bool {
        let is_answered = matches!(self.way, Way::Both | Way::AcknowledgedPut);
        let left = u32::from(is_answered);
        let is_over = self.has_come >= 1 && self.has_left >= left;
        if is_over {
            self.has_come -= 1;
            self.has_left -= left;
        }
        is_over
    }

    fn begin_round(&mut self, now: SimTime) -> Action {
        self.since = now;
        self.is_waiting = true;
        self.send()
    }

    fn end_round(&mut self, now: SimTime) {
        self.rounds += 1;
        if self.rounds <= WARM || !(self.begins || self.way == Way::Both) {
            return;
        }
        let took = now.since(self.since);
        let counts = match self.way {
            Way::Put | Way::CopiedPut | Way::BoundPut | Way::AcknowledgedPut | Way::Cci(_) => {
                Duration::from_ps(took.as_ps() / 2)
            }
            Way::Get | Way::Both => took,
        };
        self.measured.borrow_mut().add(counts);
    }

    /// The process that begins.
    fn lead(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if let Some(notice) = notice {
            self.count(notice);
        }
        if !self.is_waiting {
            return match std::mem::take(&mut self.phase) {
                Duration::ZERO => self.begin_round(now),
                phase => Action::Compute(phase),
            };
        }
        if !self.take_round() {
            return Action::Wait;
        }
        self.end_round(now);
        match self.rounds < ROUNDS + WARM {
            true => self.begin_round(now),
            false => Action::End,
        }
    }

    /// The process that answers.
    fn follow(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(Notice::Portals(event)) if event.kind == EventKind::GetEnd => {}
            Some(Notice::Portals(event)) if event.kind == EventKind::PutEnd => {}
            Some(Notice::Received { .. }) => {}
            _ if self.rounds == ROUNDS + WARM => return Action::End,
            _ => return Action::Wait,
        }
        self.end_round(now);
        match self.way {
            Way::Get if self.rounds == ROUNDS + WARM => Action::End,
            Way::Get => Action::Wait,
            _ => self.send(),
        }
    }
}

impl Program for PingPong {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        if let Way::Cci(class) = self.way {
            return match self.begins {
                true => setup.connect(self.peer, class),
                false => Ok(()),
            };
        }
        // S1 5.1: only who puts both ways waits for its own SEND pair, too.
        let quiet = match self.way {
            Way::Put | Way::CopiedPut | Way::AcknowledgedPut => {
                MdOptions::EVENT_START_DISABLE | MdOptions::EVENT_END_DISABLE
            }
            _ => MdOptions::empty(),
        };
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.bytes));
        self.memory = setup.bind(memory, quiet)?;
        let exposure = Exposure::to_all(self.bytes, BITS);
        // Of the same bits, but for messages that nobody sends: they have to be looked at.
        for _ in 0..self.ahead {
            let source = setup.id();
            setup.expose(&Exposure { source, ..exposure })?;
        }
        setup.expose(&exposure)?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if notice.is_none() && std::mem::take(&mut self.is_preparing) {
            return self.start();
        }
        if notice.is_none() && std::mem::take(&mut self.is_unlinking) {
            return Action::Wait;
        }
        let has_left = notice.is_some_and(|notice| notice.is(EventKind::SendEnd));
        if has_left && self.way == Way::BoundPut {
            self.is_unlinking = true;
            return Action::Call;
        }
        match self.begins || self.way == Way::Both {
            true => self.lead(now, notice),
            false => self.follow(now, notice),
        }
    }
}
