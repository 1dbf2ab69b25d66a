//! Processes: what they do next, and what that costs their core.

use std::collections::VecDeque;
use std::fmt;

use lintel_engine3::{Interface, Transfer};
use lintel_memory::Ghost;
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::portals3::{Event, EventKind};
use lintel_types::{Handle, ProcessId};

use super::cci::Endpoint;
use super::kernel::map_sends;
use super::portals::{self, Gathered, Matching};
use super::setup::{Setup, not_portals, portals_client};
use super::{MailboxCommand, Node, Task};
use crate::context::Context;
use crate::message::Class;
use crate::nic::OutOfMemory;
use crate::profile::Profile;
use crate::trace::Track;

/// Who serves a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// Portals in the kernel: the host matches, upon interrupts.
    Generic,
    /// Portals on the NIC: no interrupt, no trap.
    Accelerated,
    /// CCI on the NIC.
    Cci,
}

/// How many processes a node has, and which core they are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// One process a node (SN mode).
    Single,
    /// Two processes on two cores (VN mode). The kernel runs on the first.
    Virtual,
}

/// What a process is notified of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Notice {
    /// An event of the process's Portals queue.
    Portals(Event),
    /// CCI: its message to that process has left, or is acknowledged.
    Sent(ProcessId),
    /// CCI: a message has come.
    Received {
        /// The process that sent it.
        from: ProcessId,
        /// On a connection of this class.
        class: Class,
        /// Of so many bytes.
        bytes: u64,
    },
    /// CCI: there was no buffer or credit; a notice that is taken may make room.
    Full,
}

/// What stands in a process's queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Queued {
    /// Notifies the process's program of it.
    ForProgram(Notice),
    /// A CCI completion: the same, and the buffer that is free once it is taken.
    OfBuffer(Notice, Buffer),
    /// Its library reads it and keeps it to itself: that a CCI message has left which is
    /// to be acknowledged.
    ForLibrary,
}

/// A place of a CCI message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Buffer {
    /// It was sent from that area.
    Tx(usize),
    /// It was received into that area.
    Rx(usize),
}

impl Queued {
    fn notice(&self) -> Option<Notice> {
        match *self {
            Queued::ForProgram(notice) | Queued::OfBuffer(notice, _) => Some(notice),
            Queued::ForLibrary => None,
        }
    }
}

/// What a process does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Starts a Portals operation.
    Start(Transfer),
    /// Sends a CCI message.
    Send {
        /// The process that it is for.
        to: ProcessId,
        /// On a connection of this class.
        class: Class,
        /// Bytes of payload, without the header.
        bytes: u64,
    },
    /// Calls its Portals library for something that stays on the node, such as binding a
    /// descriptor or unlinking it.
    Call,
    /// Waits for a notice.
    Wait,
    /// Computes for so long.
    Compute(Duration),
    /// Is at its end.
    End,
}

/// What runs on a core.
pub trait Program {
    /// Sets up what lasts, before the clock starts.
    ///
    /// # Errors
    /// The library refused something.
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused>;

    /// What it does next: at its start, after what it did last, or with a notice
    /// that it waited for. Never blocks.
    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action;
}

/// Something that a process asked for can't be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub(crate) String);

impl Placement {
    fn cores(self) -> usize {
        match self {
            Placement::Single => 1,
            Placement::Virtual => 2,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl From<OutOfMemory> for Refused {
    fn from(error: OutOfMemory) -> Self {
        Refused(error.to_string())
    }
}

/// A process of a node, and the interface that serves it.
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) mode: Mode,
    /// Its core has the kernel on it.
    shares_core: bool,
    pub(super) client: Client,
    program: Box<dyn Program>,
    queue: VecDeque<Queued>,
    state: State,
    /// The first error, in a sentence.
    pub(crate) failed: Option<String>,
}

/// The library through which a process communicates.
pub(super) enum Client {
    Portals {
        engine: Box<Interface<Ghost>>,
        queue: Handle,
    },
    Cci(Box<Endpoint>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Working,
    /// Working, and takes a notice when it goes on.
    Taking,
    Ended,
}

impl Process {
    pub(crate) fn new(
        id: ProcessId,
        mode: Mode,
        shares_core: bool,
        program: Box<dyn Program>,
        profile: &Profile,
    ) -> Result<Self, Refused> {
        let client = match mode {
            Mode::Cci => Client::Cci(Box::new(Endpoint::new(profile))),
            _ => portals_client(id, mode, profile)?,
        };
        let mut process = Process {
            id,
            mode,
            shares_core,
            client,
            program,
            queue: VecDeque::new(),
            state: State::Working,
            failed: None,
        };
        process.set_up()?;
        Ok(process)
    }

    fn set_up(&mut self) -> Result<(), Refused> {
        let mut program = std::mem::replace(&mut self.program, Box::new(Nothing));
        let result = program.begin(&mut Setup { process: self });
        self.program = program;
        // What is set up before the clock starts costs nothing.
        if let Some(engine) = self.engine_mut() {
            engine.take_work();
        }
        self.queue.clear();
        result
    }

    pub(crate) fn engine_mut(&mut self) -> Option<&mut Interface<Ghost>> {
        match &mut self.client {
            Client::Portals { engine, .. } => Some(engine),
            Client::Cci(_) => None,
        }
    }

    pub(crate) fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        match &mut self.client {
            Client::Portals { .. } => None,
            Client::Cci(endpoint) => Some(endpoint),
        }
    }

    pub(crate) fn fail(&mut self, error: &dyn fmt::Display) {
        self.failed = Some(format!("{:?}: {error}", self.id));
        self.state = State::Ended;
    }

    pub(crate) fn end(&mut self) {
        self.state = State::Ended;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// For the effects of a call of its engine; `number` is the process's number in its node.
    pub(crate) fn gather(&self, number: usize) -> Gathered {
        Gathered::of(number, self.id)
    }
}

/// What stands in for a program while it sets itself up.
struct Nothing;

impl Program for Nothing {
    fn begin(&mut self, _: &mut Setup<'_>) -> Result<(), Refused> {
        Ok(())
    }

    fn next(&mut self, _: SimTime, _: Option<&Notice>) -> Action {
        Action::End
    }
}

impl Notice {
    /// Whether it is a Portals event of this kind.
    pub fn is(&self, kind: EventKind) -> bool {
        matches!(self, Notice::Portals(event) if event.kind == kind)
    }

    /// Whether a CCI message has come.
    pub fn is_received(&self) -> bool {
        matches!(self, Notice::Received { .. })
    }
}

impl Node {
    /// Puts a process on the next core.
    pub(crate) fn add(
        &mut self,
        node: u32,
        mode: Mode,
        placement: Placement,
        program: Box<dyn Program>,
        profile: &Profile,
    ) -> Result<ProcessId, Refused> {
        let (core, cores) = (self.processes.len(), placement.cores());
        if core >= cores {
            let why = format!("node {node} has {cores} processes already, one on each core");
            return Err(Refused(why));
        }
        self.reserve(mode, profile)?;
        let id = ProcessId::new(node, u32::try_from(core).unwrap_or(u32::MAX));
        let process = Process::new(id, mode, core == 0, program, profile)?;
        self.processes.push(process);
        Ok(id)
    }

    /// What a client takes of the NIC's memory.
    fn reserve(&mut self, mode: Mode, p: &Profile) -> Result<(), OutOfMemory> {
        match mode {
            Mode::Generic => Ok(()),
            Mode::Accelerated => {
                let entries = p.accelerated_entries.value * p.entry_bytes.value;
                self.sram
                    .reserve("an accelerated client's mailbox", p.mailbox.value)?;
                self.sram
                    .reserve("an accelerated client's entries", entries)
            }
            Mode::Cci => {
                let ring = p.cci_rx_areas.value * p.cci_ring_bytes.value;
                self.sram
                    .reserve("a CCI client's command queue", p.mailbox.value)?;
                self.sram.reserve("a CCI client's ring of areas", ring)
            }
        }
    }

    /// Processes that haven't ended, and why those failed that did.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = String> {
        self.processes
            .iter()
            .filter_map(|process| match &process.failed {
                Some(why) => Some(why.clone()),
                None if process.has_ended() => None,
                None => Some(format!("{:?} has not come to its end", process.id)),
            })
    }

    /// Runs the program's first action at time 0.
    pub(crate) fn start(&mut self, ctx: &mut Context<'_>) {
        for number in 0..self.processes.len() {
            self.go_on(number, None, ctx);
        }
    }

    /// Its library is full: the program is notified before anything else.
    pub(super) fn report_full(&mut self, number: usize, ctx: &mut Context<'_>) {
        let process = &mut self.processes[number];
        process.queue.push_front(Queued::ForProgram(Notice::Full));
        process.state = State::Taking;
        self.busy(number, "full", ctx.profile.time(ctx.profile.cci_send), ctx);
    }

    /// A process decides what it does next.
    fn go_on(&mut self, number: usize, notice: Option<Notice>, ctx: &mut Context<'_>) {
        let process = &mut self.processes[number];
        if process.has_ended() {
            return;
        }
        process.state = State::Working;
        match process.program.next(ctx.now, notice.as_ref()) {
            Action::Start(transfer) => self.start_transfer(number, transfer, ctx),
            Action::Send { to, class, bytes } => self.send(number, to, class, bytes, ctx),
            Action::Call => self.call(number, ctx),
            Action::Wait => self.wait(number, ctx),
            Action::Compute(length) => self.busy(number, "compute", length, ctx),
            Action::End => self.processes[number].end(),
        }
    }

    fn start_transfer(&mut self, number: usize, transfer: Transfer, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        if self.processes[number].mode == Mode::Accelerated {
            let call = p.time(p.direct_call);
            let arrives = ctx.now + call + p.time(p.ht_write);
            ctx.at(
                arrives,
                Task::MailboxCommand(MailboxCommand::Transfer(number, transfer)),
            );
            return self.busy(number, "put", call, ctx);
        }
        self.trap(number, &transfer, ctx);
    }

    fn call(&mut self, number: usize, ctx: &mut Context<'_>) {
        let (p, process) = (ctx.profile, &self.processes[number]);
        match process.mode {
            Mode::Generic => {
                let gathered = process.gather(number);
                self.enter_kernel(gathered, Duration::ZERO, ctx);
            }
            Mode::Accelerated | Mode::Cci => {
                self.busy(number, "call", p.time(p.direct_call), ctx);
            }
        }
    }

    fn trap(&mut self, number: usize, transfer: &Transfer, ctx: &mut Context<'_>) {
        let (p, nodes) = (ctx.profile, self.nodes);
        let process = &mut self.processes[number];
        let mut gathered = process.gather(number);
        let Some(engine) = process.engine_mut() else {
            return process.fail(&not_portals());
        };
        if let Err(error) = portals::start(engine, transfer, nodes, &mut gathered) {
            return process.fail(&error);
        }
        let matching = portals::price(engine, &gathered, Matching::Host, p);
        let cost = matching + map_sends(&gathered, p);
        self.enter_kernel(gathered, cost, ctx);
    }

    /// The kernel does what a process calls it for. From the second core the call comes by
    /// an interrupt between processors.
    fn enter_kernel(&mut self, gathered: Gathered, cost: Duration, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        let is_interrupt = !self.processes[gathered.process].shares_core;
        let way = match is_interrupt {
            true => p.interrupt_entry,
            false => p.trap,
        };
        let cost = p.time(way) + p.time(p.library_call) + cost;
        let done = self.kernel.run("trap", cost, ctx);
        ctx.at(done, Task::Trapped(gathered));
        if is_interrupt {
            self.leave_interrupt(ctx);
        }
    }

    pub(super) fn on_trapped(&mut self, gathered: Gathered, ctx: &mut Context<'_>) {
        let number = gathered.process;
        self.post_sends(gathered.sends, ctx);
        self.show_now(number, gathered.queued);
        self.go_on(number, None, ctx);
        self.wake_all(ctx);
    }

    /// A process works on its own core, once the kernel is done there. What that does
    /// meanwhile comes on top.
    pub(super) fn busy(
        &mut self,
        process: usize,
        name: &'static str,
        length: Duration,
        ctx: &mut Context<'_>,
    ) {
        let kernel = self.kernel.worked();
        let Process {
            id, shares_core, ..
        } = self.processes[process];
        let start = match shares_core {
            true => self.kernel.free_at().max(ctx.now),
            false => ctx.now,
        };
        ctx.span(Track::Process(id.pid), name, start, start + length);
        ctx.at(start + length, Task::Worked { process, kernel });
    }

    pub(super) fn on_worked(&mut self, process: usize, seen: Duration, ctx: &mut Context<'_>) {
        let kernel = self.kernel.worked();
        let taken = kernel - seen;
        if self.processes[process].shares_core && taken > Duration::ZERO {
            return ctx.at(ctx.now + taken, Task::Worked { process, kernel });
        }
        let taken = match self.processes[process].state {
            State::Taking => self.processes[process].queue.pop_front(),
            _ => None,
        };
        if let Some(taken) = &taken {
            self.on_cci_taken(process, taken, ctx);
        }
        match taken.map(|taken| taken.notice()) {
            Some(None) => self.wait(process, ctx),
            taken => self.go_on(process, taken.flatten(), ctx),
        }
    }

    /// Whether there is a notice, and a core on which to see it.
    fn can_see(&self, number: usize, now: SimTime) -> bool {
        let process = &self.processes[number];
        let has_core = !process.shares_core || !self.kernel.is_busy(now);
        has_core && !process.queue.is_empty()
    }

    fn wait(&mut self, number: usize, ctx: &mut Context<'_>) {
        self.processes[number].state = State::Waiting;
        self.wake_after(number, Duration::ZERO, ctx);
    }

    /// A process that waits goes on if there is something for it. The kernel wakes the
    /// second core by an interrupt between processors, as it is called from there.
    pub(super) fn wake(&mut self, number: usize, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        let process = &self.processes[number];
        let interrupt = match process.mode {
            Mode::Generic if !process.shares_core => {
                p.time(p.interrupt_entry) + p.time(p.interrupt_exit)
            }
            _ => Duration::ZERO,
        };
        self.wake_after(number, interrupt, ctx);
    }

    fn wake_after(&mut self, number: usize, interrupt: Duration, ctx: &mut Context<'_>) {
        if self.processes[number].state != State::Waiting || !self.can_see(number, ctx.now) {
            return;
        }
        self.processes[number].state = State::Taking;
        let p = ctx.profile;
        let process = &self.processes[number];
        let cost = match (process.mode, process.queue.front().and_then(Queued::notice)) {
            (Mode::Cci, Some(Notice::Received { class, .. })) => {
                p.time(p.cci_get_event) + reliable(class, p)
            }
            (Mode::Cci, _) => p.time(p.cci_get_event),
            _ => p.time(p.event_get),
        };
        self.busy(number, "event", interrupt + cost, ctx);
    }

    pub(super) fn wake_all(&mut self, ctx: &mut Context<'_>) {
        for number in 0..self.processes.len() {
            self.wake(number, ctx);
        }
    }

    /// Events are in a process's queue.
    pub(super) fn show(&mut self, number: usize, queued: Vec<Queued>, ctx: &mut Context<'_>) {
        self.show_now(number, queued);
        self.wake(number, ctx);
    }

    pub(super) fn show_now(&mut self, number: usize, queued: Vec<Queued>) {
        self.processes[number].queue.extend(queued);
    }
}

/// What the library does for a reliable connection besides.
pub(super) fn reliable(class: Class, profile: &Profile) -> Duration {
    match class {
        Class::Reliable => profile.time(profile.cci_reliable),
        Class::Unreliable => Duration::ZERO,
    }
}
