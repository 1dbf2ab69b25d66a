//! `memory` and `startup`: measured in fresh processes, since a process remembers what
//! it once allocated.
//!
//! Rank 0 starts copies of this program under a hidden name; they form a team of their
//! own and leave their findings in its memory. Where the two ranks sit on two nodes, the
//! first member sits on rank 0's and the others on rank 1's.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::rc::Rc;

use super::delay::now_ns;
use super::session::Session;
use crate::error::{During, Error, Result};
use crate::machine;
use crate::portals::{
    self, AckRequest, DescriptorSpec, Entry, EntrySpec, Interface, PT_ANY, Portal, ProcessId,
    Queue, Transfer,
};
use crate::raw::{Region, Ticket};
use crate::report::Row;
use crate::stats::Times;
use crate::team::{Team, WORDS, WaitMode};

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Opens an interface and exchanges a first message
    Startup,
    /// Opens an interface and lets rank 1 of the team touch it
    Memory,
}

/// What the hidden command takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ProcessArgs {
    #[arg(value_enum)]
    role: Role,
    pid: u32,
    fd: u32,
    rank: usize,
    size: usize,
    core: usize,
}

/// Resident memory of an interface with default limits, then of each peer touched.
pub fn memory(session: &mut Session) -> Result<()> {
    let peers = usize::from(session.options.peers);
    session.announce("memory", 0);
    let node = far_node(session)?;
    let found = on_leader(session, |session| {
        let found = gather(session, Role::Memory, peers + 1, node)?;
        Ok(found[0])
    })?;
    session.record(|| {
        let [bare, open, first, last, ..] = found.map(|kib| kib as f64);
        let further = (peers.max(2) - 1) as f64;
        Row::new("memory", "resident", 0)
            .with("bare process KiB", bare)
            .with("interface KiB", open - bare)
            .with("first peer KiB", first - open)
            .with("each further peer KiB", (last - first) / further)
            .with("peers", peers as f64)
    });
    session.team.barrier()
}

/// From the call of `PtlNIInit` to the event of a first message of 8 B, both processes
/// starting at once.
pub fn startup(session: &mut Session) -> Result<()> {
    session.announce("startup", 8);
    let node = far_node(session)?;
    let mut init = Vec::new();
    let mut message = Vec::new();
    for _ in 0..LAUNCHES {
        let found = on_leader(session, |session| {
            let found = gather(session, Role::Startup, 2, node)?;
            let init = found.iter().map(|words| words[0]).max().unwrap_or(0);
            let started = found.iter().map(|words| words[1]).min().unwrap_or(0);
            let mut words = [0; WORDS];
            words[..2].copy_from_slice(&[init, found[1][2].saturating_sub(started)]);
            Ok(words)
        })?;
        init.push(found[0] as f64);
        message.push(found[1] as f64);
    }
    session.record(|| {
        let mut row = Row::new("startup", "cold, to the first message's event", 8)
            .with("PtlNIInit median µs", Times::of(&init).median_us);
        row.times = Some(Times::of(&message));
        row.iterations = LAUNCHES;
        row
    });
    session.team.barrier()
}

/// The hidden command: joins the team, does its role, leaves its findings.
///
/// # Errors
/// Whatever went wrong; the starter sees the exit code.
pub fn serve(args: ProcessArgs) -> Result<()> {
    machine::pin(args.core)?;
    let ticket = Ticket {
        pid: args.pid,
        fd: args.fd,
    };
    // Rank 0 is the starter, which opens no interface.
    let team = Team::join(ticket, args.rank, args.size, WaitMode::Spin)?;
    let words = match args.role {
        Role::Startup => first_message(&team)?,
        Role::Memory => touched(&team)?,
    };
    team.exchange(words)?;
    Ok(())
}

/// Runs `step` in rank 0 and broadcasts its result; the other rank waits.
fn on_leader(
    session: &Session,
    step: impl FnOnce(&Session) -> Result<[u64; WORDS]>,
) -> Result<[u64; WORDS]> {
    let words = match session.team.leads() {
        true => step(session)?,
        false => [0; WORDS],
    };
    session.team.broadcast(words)
}

/// The address of the other rank's node, if that is another one.
fn far_node(session: &mut Session) -> Result<Option<Ipv4Addr>> {
    if !session.options.network.is_crossed() {
        return Ok(None);
    }
    let (interface, peer) = session.interface()?;
    let is_other = interface.physical_id()?.nid != peer.nid;
    Ok(is_other.then(|| Ipv4Addr::from(peer.nid)))
}

/// Starts `count` members, all but the first on `node`, and returns what each left.
fn gather(
    session: &Session,
    role: Role,
    count: usize,
    node: Option<Ipv4Addr>,
) -> Result<Vec<[u64; WORDS]>> {
    let team = Team::create(count + 1, WaitMode::Spin)?;
    let cores = &session.options.cores;
    let mut children = Vec::new();
    for rank in 1..=count {
        let core = cores[(rank - 1) % cores.len()];
        let mut member = command(role, &team, rank, core)?;
        if let (Some(node), true) = (node, rank > 1) {
            member.env("PTL_IFACE", node.to_string());
        }
        children.push(member.spawn().during("starting a member")?);
    }
    let steps = match role {
        Role::Startup => STARTUP_MEETINGS,
        Role::Memory => MEMORY_MEETINGS,
    };
    for _ in 0..steps {
        team.exchange([0; WORDS])?;
    }
    let found = team.exchange([0; WORDS])?;
    for mut child in children {
        let status = child.wait().during("waiting for a member")?;
        if !status.success() {
            return Err(Error::Wrong(format!("a member ended with {status}")));
        }
    }
    Ok(found[1..].to_vec())
}

fn command(role: Role, team: &Team, rank: usize, core: usize) -> Result<Command> {
    let program = std::env::current_exe().during("finding this program")?;
    let role = clap::ValueEnum::to_possible_value(&role).expect("no role is hidden");
    let ticket = team.ticket();
    let numbers = [
        ticket.pid as usize,
        ticket.fd as usize,
        rank,
        team.size(),
        core,
    ];
    let mut command = Command::new(program);
    command
        .args([super::FRESH_PROCESS, role.get_name()])
        .args(numbers.map(|number| number.to_string()))
        .env_remove("PMI_FD")
        .env_remove("PMI_RANK")
        .env_remove("PMI_SIZE");
    Ok(command)
}

/// An interface and a table for an entry that takes anything; fields are dropped in
/// this order.
struct Receiver {
    interface: Interface,
    portal: Portal,
    queue: Queue,
    memory: Rc<Region>,
}

impl Receiver {
    fn open(interface: Interface) -> Result<Self> {
        let queue = interface.queue(64)?;
        let portal = interface.portal(PT_ANY, Some(&queue))?;
        let memory = Rc::new(Region::private(4096).during("allocating")?);
        Ok(Self {
            interface,
            queue,
            portal,
            memory,
        })
    }

    fn address(&self) -> Result<[u64; WORDS]> {
        let ProcessId { nid, pid } = self.interface.physical_id()?;
        let mut words = [0; WORDS];
        words[..3].copy_from_slice(&[nid.into(), pid.into(), self.portal.index().into()]);
        Ok(words)
    }

    fn accept(&self) -> Result<Entry> {
        let any = EntrySpec {
            ignore_bits: u64::MAX,
            ..EntrySpec::default()
        };
        Ok(self.portal.append(Rc::clone(&self.memory), &any)?)
    }

    fn put_to(&self, words: [u64; WORDS]) -> Result<()> {
        let memory = Rc::clone(&self.memory);
        let descriptor = self.interface.bind(memory, &DescriptorSpec::default())?;
        let transfer = Transfer {
            target: ProcessId {
                nid: words[0] as u32,
                pid: words[1] as u32,
            },
            portal: words[2] as u32,
            length: 8,
            ..Transfer::default()
        };
        Ok(descriptor.put(&transfer, AckRequest::None)?)
    }
}

/// Nanoseconds in `PtlNIInit`, when it began, and when the first message's event was
/// seen, which only the first member does.
fn first_message(team: &Team) -> Result<[u64; WORDS]> {
    team.exchange([0; WORDS])?;
    let began = now_ns();
    let interface = portals::open_default()?;
    let opened = now_ns();
    let receiver = Receiver::open(interface)?;
    let _entry = receiver.accept()?;
    let all = team.exchange(receiver.address()?)?;
    let mut words = [0; WORDS];
    words[..2].copy_from_slice(&[opened - began, began]);
    if team.rank() == 1 {
        receiver.put_to(all[2])?;
    } else {
        portals::poll_event(&receiver.queue)?;
        words[2] = now_ns();
    }
    team.exchange([0; WORDS])?;
    Ok(words)
}

/// Resident KiB of the first member before and after opening an interface, after
/// touching one peer, and after touching all.
fn touched(team: &Team) -> Result<[u64; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = resident_kib()?;
    let interface = portals::open_default()?;
    words[1] = resident_kib()?;
    let receiver = Receiver::open(interface)?;
    let _entry = receiver.accept()?;
    let all = team.exchange(receiver.address()?)?;
    if team.rank() == 1 {
        for (i, &peer) in all[2..].iter().enumerate() {
            receiver.put_to(peer)?;
            words[if i == 0 { 2 } else { 3 }] = resident_kib()?;
        }
    } else {
        portals::wait_event(&receiver.queue)?;
    }
    team.exchange([0; WORDS])?;
    Ok(words)
}

/// Resident memory of this process.
pub fn resident_kib() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").during("reading resident memory")?;
    text.lines()
        .find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .ok_or_else(|| Error::Wrong("the kernel reports no resident memory".into()))
}

const LAUNCHES: u64 = 15;
/// Exchanges of a member before it leaves its findings.
const STARTUP_MEETINGS: u32 = 3;
const MEMORY_MEETINGS: u32 = 2;
