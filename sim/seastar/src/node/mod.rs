//! A node: its NIC with the firmware, its kernel, its processes.
//!
//! ```text
//!  process ── trap ──▶ kernel ── mailbox ──▶ firmware ──▶ TX queue ──▶ network
//!     ▲                  ▲                      │
//!     └── event queue ───┴── ring, interrupt ───┴◀── CAM, RX queues ◀── network
//! ```
//!
//! Whatever takes time ends in a [`Task`], and what it has changed is seen then.

mod cci;
mod kernel;
mod memory;
mod pendings;
mod portals;
mod process;
mod protection;
mod receive;
mod setup;
mod transmit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lintel_sim_kernel::{Duration, SimTime, Stream};
use lintel_sim_node::{Core, Noise};

use crate::context::{Context, Flight};
use crate::message::Message;
use crate::nic::{Cam, OutOfMemory, PioQueue, Sram, TxQueue};
use crate::profile::Profile;
use crate::trace::Track;
use cci::{CciCommand, Returned};
use kernel::{Kernel, NicEvent};
use memory::HostMemory;
use pendings::Pendings;
use portals::Gathered;
use process::{Process, Queued};
use protection::Peer;
use receive::Incoming;
use transmit::Outgoing;

pub(crate) use cci::{CciArea, Handshake, cci_room};
pub use process::{Action, Mode, Notice, Placement, Program, Refused};
pub use setup::{Exposure, Setup, any_process, get, put};

/// Something that ends on a node.
pub(crate) enum Task {
    /// A process has done its own work, and saw so much of the kernel's before.
    Worked { process: usize, kernel: Duration },
    /// A trap has come back.
    Trapped(Gathered),
    /// A command is in the mailbox.
    MailboxCommand(MailboxCommand),
    /// The firmware has done something.
    Job(Job),
    /// The TX engine has the first bytes of a message.
    Inject(u64),
    /// An event is in the kernel's ring.
    Ring(NicEvent),
    /// The interrupt line says so.
    Interrupt,
    /// The handler looks into the ring.
    Handler,
    /// The handler has served an event.
    Handled(Gathered),
    /// The handler has returned.
    Returned,
    /// Events are in a process's queue.
    Visible(usize, Vec<Queued>),
    /// A message's last byte is in host memory.
    Deposited(u64),
    /// A node that refused messages may have room now.
    Retry(u32),
    /// The rules of a process's CCI endpoint are to be asked.
    CciTime(usize),
}

/// What comes to a mailbox.
pub(crate) enum MailboxCommand {
    Send(Outgoing),
    Deposit(u64),
    Discard(u64),
    /// Of a message from that node.
    Release(u32),
    /// From a process of its own.
    Transfer(usize, lintel_engine3::Transfer),
    /// The host's answer to a message's header.
    Control(Message),
    /// A message that goes once more.
    Resend(u64),
    Cci(CciCommand),
    /// CCI: what a process's endpoint has again.
    CciReturn(usize, Returned),
}

/// What the firmware does.
pub(crate) enum Job {
    Transmit(u64),
    Sent(u64),
    Header(u64),
    Deposit(u64),
    Discard(u64),
    /// One more command of a message.
    Feed(u64),
    Landed(u64),
    /// Nothing more comes of it.
    Housekeeping,
    /// The structure of a message from that node is free.
    Release(u32),
    /// What the engine on the NIC was given has its effects.
    Matched(Gathered),
    Control(Message),
    ControlReceived(Message),
    CciSend(CciCommand),
    CciReturn(usize, Returned),
}

/// What a node has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// Times that the handler was entered.
    pub interrupts: u64,
    /// Messages that found no entry of the CAM.
    pub overflows: u64,
    /// Messages for which there was no source or pending structure left.
    pub exhausted: u64,
    /// Messages that were thrown away and come no more.
    pub lost: u64,
    /// Packets that a link sent twice.
    pub retries: u64,
    /// Messages that were sent once more.
    pub retransmitted: u64,
    /// Entries of the CAM swapped.
    pub swaps: u64,
    /// When the node was aborted.
    pub aborted: Option<SimTime>,
    /// The most commands that the TX queue held.
    pub tx_commands: u64,
    /// The most packets that the PIO path held.
    pub pio_packets: usize,
    /// The most sources that the CAM held.
    pub cam_sources: usize,
    /// The most commands that a source's RX queue held.
    pub rx_commands: u64,
    /// Bytes of the NIC's memory that are taken.
    pub sram: u64,
    /// How long the firmware worked.
    pub firmware: Duration,
    /// How long the kernel worked.
    pub kernel: Duration,
}

/// One node: NIC, kernel and processes.
pub(crate) struct Node {
    /// How many there are.
    nodes: u32,
    ppc: Core,
    tx: TxQueue,
    pio: PioQueue<Message>,
    cam: Cam,
    sram: Sram,
    pendings: Pendings,
    outgoing: BTreeMap<u64, Outgoing>,
    incoming: BTreeMap<u64, Incoming>,
    /// By source: the messages of commands for which its queue had no room.
    unfed: BTreeMap<u32, VecDeque<u64>>,
    /// Messages whose headers the firmware saw in the RX FIFO, and that aren't all in.
    noticed: BTreeSet<u64>,
    peers: BTreeMap<u32, Peer>,
    /// Which packets go over a link twice.
    link: Stream,
    /// Messages go out in order, whatever delays them.
    injects_until: SimTime,
    /// Messages for which the RX pipeline stands still.
    held: u32,
    held_since: SimTime,
    memory: HostMemory,
    kernel: Kernel,
    processes: Vec<Process>,
    counted: NodeReport,
}

impl Node {
    pub(crate) fn new(profile: &Profile, nodes: u32, link: Stream) -> Result<Self, OutOfMemory> {
        let mut sram = Sram::new(profile.sram.value);
        for (what, bytes) in resident(profile) {
            sram.reserve(what, bytes)?;
        }
        Ok(Node {
            nodes,
            ppc: Core::new(Noise::NONE),
            tx: TxQueue::new(profile.tx_queue.value),
            pio: PioQueue::new(
                profile.pio_queue.value,
                profile.pio_bytes.value,
                profile.packet.value,
            ),
            cam: Cam::new(profile.cam_entries.value, profile.rx_queue.value),
            sram,
            pendings: Pendings::new(profile),
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            unfed: BTreeMap::new(),
            noticed: BTreeSet::new(),
            peers: BTreeMap::new(),
            link,
            injects_until: SimTime::START,
            held: 0,
            held_since: SimTime::START,
            memory: HostMemory::default(),
            kernel: Kernel::new(profile),
            processes: Vec::new(),
            counted: NodeReport::default(),
        })
    }

    pub(crate) fn on_task(&mut self, task: Task, ctx: &mut Context<'_>) {
        match task {
            Task::Worked { process, kernel } => self.on_worked(process, kernel, ctx),
            Task::Trapped(gathered) => self.on_trapped(gathered, ctx),
            Task::MailboxCommand(command) => self.on_mailbox_command(command, ctx),
            Task::Job(job) => self.on_job(job, ctx),
            Task::Inject(ticket) => self.inject(ticket, ctx),
            Task::Ring(event) => self.on_ring(event, ctx),
            Task::Interrupt => self.on_interrupt(ctx),
            Task::Handler => self.serve_ring(ctx),
            Task::Handled(gathered) => self.on_handled(gathered, ctx),
            Task::Returned => self.on_returned(ctx),
            Task::Visible(process, queued) => self.show(process, queued, ctx),
            Task::Deposited(name) => self.on_deposited(name, ctx),
            Task::Retry(node) => self.retry(node, ctx),
            Task::CciTime(process) => self.on_cci_time(process, ctx),
        }
    }

    /// A message's first packet is in the RX FIFO: the firmware sees it before the RX engine
    /// gets there (S4 II).
    pub(crate) fn on_noticed(&mut self, name: u64, flight: Flight, ctx: &mut Context<'_>) {
        if !flight.message.is_control() {
            self.noticed.insert(name);
            self.begin(name, flight.message, false, ctx);
        }
    }

    /// A message's first packet is in, and more are to come: the RX engine stops unless the
    /// message has commands.
    pub(crate) fn on_began(&mut self, name: u64, flight: Flight, ctx: &mut Context<'_>) {
        if !self.noticed.contains(&name) {
            self.begin(name, flight.message, false, ctx);
        }
        self.stall(name, ctx);
    }

    /// All of a message is in.
    pub(crate) fn on_arrived(&mut self, name: u64, flight: Flight, ctx: &mut Context<'_>) {
        ctx.message_span(Track::Link, &flight.message, flight.sent);
        let was_noticed = self.noticed.remove(&name);
        if self.incoming.contains_key(&name) {
            return self.complete(name, ctx);
        }
        // What rides in a header's packet may be dealt with already.
        if !was_noticed {
            self.begin(name, flight.message, true, ctx);
        }
    }

    /// A message's last byte has left.
    pub(crate) fn on_left(&mut self, flight: Flight, ctx: &mut Context<'_>) {
        match flight.ticket {
            Some(ticket) => {
                self.on_transmitted(ticket, ctx);
                // Between two messages anything may go.
                self.send_pio(None, ctx);
            }
            None => {
                self.pio.retire();
                self.start_pio(ctx);
            }
        }
    }

    fn on_mailbox_command(&mut self, command: MailboxCommand, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        match command {
            MailboxCommand::Send(outgoing) => self.transmit(outgoing, p.time(p.fw_transmit), ctx),
            MailboxCommand::Deposit(name) => {
                self.work("deposit", p.time(p.fw_deposit), Job::Deposit(name), ctx);
            }
            MailboxCommand::Discard(name) => {
                self.work("discard", p.time(p.fw_deposit), Job::Discard(name), ctx);
            }
            MailboxCommand::Release(source) => {
                self.work("release", p.time(p.fw_release), Job::Release(source), ctx);
            }
            MailboxCommand::Transfer(process, transfer) => {
                self.on_transfer(process, &transfer, ctx)
            }
            MailboxCommand::Control(message) => {
                self.work("control", p.time(p.fw_control), Job::Control(message), ctx);
            }
            MailboxCommand::Resend(ticket) => {
                self.work("resend", p.time(p.fw_transmit), Job::Transmit(ticket), ctx);
            }
            MailboxCommand::Cci(command) => {
                let cost = p.time(p.cci_fw_transmit);
                self.work("command", cost, Job::CciSend(command), ctx);
            }
            MailboxCommand::CciReturn(process, returned) => {
                let job = Job::CciReturn(process, returned);
                self.work("return", p.time(p.cci_fw_return), job, ctx);
            }
        }
    }

    fn on_job(&mut self, job: Job, ctx: &mut Context<'_>) {
        match job {
            Job::Transmit(ticket) => self.on_transmit(ticket, ctx),
            Job::Sent(ticket) => self.on_sent(ticket, ctx),
            Job::Header(name) => self.on_header(name, ctx),
            Job::Deposit(name) => self.deposit(name, ctx),
            Job::Discard(name) => self.discard(name, ctx),
            Job::Feed(name) => self.on_fed(name, ctx),
            Job::Landed(name) => self.on_landed(name, ctx),
            Job::Housekeeping => {}
            Job::Release(source) => self.release(source),
            Job::Matched(gathered) => self.on_matched(gathered, ctx),
            Job::Control(message) => {
                self.pio.push(message.to.nid, message);
                self.start_pio(ctx);
            }
            Job::ControlReceived(message) => self.on_control(&message, ctx),
            Job::CciSend(command) => self.on_cci_command(command, ctx),
            Job::CciReturn(process, returned) => self.on_cci_return(process, returned, ctx),
        }
    }

    /// The firmware does one thing after the other.
    fn work(&mut self, name: &'static str, cost: Duration, job: Job, ctx: &mut Context<'_>) {
        let cost = cost + ctx.profile.time(ctx.profile.fw_turn);
        let start = ctx.now.max(self.ppc.free_at());
        let done = self.ppc.run(ctx.now, cost);
        ctx.span(Track::Firmware, name, start, done);
        ctx.at(done, Task::Job(job));
    }

    fn start_pio(&mut self, ctx: &mut Context<'_>) {
        self.send_pio(self.tx.busy_with(), ctx);
    }

    fn send_pio(&mut self, busy_with: Option<u32>, ctx: &mut Context<'_>) {
        while let Some(message) = self.pio.start_next(busy_with) {
            ctx.send(message, None);
        }
    }

    pub(crate) fn report(&self) -> NodeReport {
        NodeReport {
            interrupts: self.kernel.interrupts(),
            tx_commands: self.tx.most(),
            pio_packets: self.pio.most(),
            cam_sources: self.cam.most(),
            rx_commands: self.cam.most_commands(),
            sram: self.sram.taken(),
            firmware: self.ppc.worked(),
            kernel: self.kernel.worked(),
            ..self.counted.clone()
        }
    }
}

/// What is in a NIC's memory whatever its clients are.
fn resident(p: &Profile) -> [(&'static str, u64); 5] {
    [
        ("the firmware's program and stack", p.program_bytes.value),
        ("the kernel's mailbox", p.mailbox.value),
        ("the control block", p.control_block.value),
        ("sources", p.sources.value * p.source_bytes.value),
        ("pending messages", p.pendings.value * p.pending_bytes.value),
    ]
}
