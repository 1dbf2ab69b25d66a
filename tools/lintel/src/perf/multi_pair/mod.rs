//! Runs that take more than two processes: two virtual nodes with several processes
//! each, possibly in several groups that take turns.
//!
//! ```text
//!   lintel perf connections ── Jobs ── yod ──┬─ node 0: groups × slots ranks ─┐
//!          rows ◀── a file in memory         └─ node 1: groups × slots ranks ─┴─ MultiPair ── patterns
//! ```
//!
//! Every rank runs the same script; the group whose turn it is plays, the others
//! sleep. [`jobs`] starts ranks and takes their rows, [`pattern`] is what they play.

pub mod jobs;
pub mod pattern;

use std::cell::Cell;
use std::rc::Rc;

use lintel_pmi::client::Client;

use super::endpoint::{BITS, Signal};
use super::options::Options;
use crate::error::{During, Error, Result};
use crate::machine;
use crate::portals::{
    self, AckRequest, Counted, Descriptor, Entry, EntrySpec, Interface, PT_ANY, Portal, ProcessId,
    Transfer,
};
use crate::raw::Region;
use crate::team::{FutexBarrier, Team, WORDS, WaitMode};

/// Where a process sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankSlot {
    /// The number of the node: 0 or 1.
    pub node: usize,
    /// Which of the groups that take turns.
    pub group: usize,
    /// Its number within group and node.
    pub index: usize,
}

/// How the ranks of a job are placed: nodes in blocks, as yod does it, groups in
/// blocks within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankLayout {
    /// Groups that take turns.
    pub groups: usize,
    /// Processes of one group on one node.
    pub slots: usize,
}

impl RankLayout {
    /// How many ranks that takes.
    pub fn ranks(self) -> usize {
        NODES * self.groups * self.slots
    }

    /// The slot that `rank` has.
    pub fn slot_of(self, rank: usize) -> RankSlot {
        let local = rank % (self.groups * self.slots);
        RankSlot {
            node: rank / (self.groups * self.slots),
            group: local / self.slots,
            index: local % self.slots,
        }
    }

    /// The rank that has `slot`.
    pub fn rank_of(self, slot: RankSlot) -> usize {
        (slot.node * self.groups + slot.group) * self.slots + slot.index
    }
}

/// This process among the others of its job.
pub struct MultiPair {
    /// All ranks; they meet asleep.
    pub team: Team,
    /// How ranks map to nodes and groups.
    pub layout: RankLayout,
    /// Where this one sits.
    pub me: RankSlot,
    /// A line for each group to meet over.
    barriers: Region,
    /// What this process sends from and receives in.
    pub endpoint: GroupEndpoint,
    /// What names each rank's entry, by rank.
    peers: Vec<Transfer>,
}

impl MultiPair {
    /// Joins the others of the job, opens an interface with buffers of `bytes`, and
    /// learns the address of each rank.
    ///
    /// # Errors
    /// What the system, the launcher or Portals refused.
    pub fn join(
        client: &mut Client,
        layout: RankLayout,
        options: &Options,
        bytes: u64,
    ) -> Result<Self> {
        let (rank, size) = (client.rank(), client.size());
        if size != layout.ranks() {
            return Err(Error::Usage(format!(
                "{} ranks were started for {} slots",
                size,
                layout.ranks()
            )));
        }
        let me = layout.slot_of(rank);
        machine::pin(options.cores[me.node % options.cores.len()])?;
        let team = super::form_team(client, WaitMode::Sleep)?;
        let endpoint = GroupEndpoint::open(bytes)?;
        let peers = exchange_addresses(&team, &endpoint)?;
        let barriers = team.share(layout.groups * 64)?;
        Ok(Self {
            team,
            layout,
            me,
            barriers,
            endpoint,
            peers,
        })
    }

    /// The rank that times a group's turns.
    pub fn leader_of(&self, group: usize) -> usize {
        let (node, index) = (0, 0);
        self.layout.rank_of(RankSlot { node, group, index })
    }

    /// The last rank of a group's other node.
    pub fn stalled_rank_of(&self, group: usize) -> usize {
        let (node, index) = (1, self.layout.slots - 1);
        self.layout.rank_of(RankSlot { node, group, index })
    }

    /// Names the entry of the process of this group on the other node at `slot`.
    pub fn across(&self, index: usize) -> Transfer {
        let (node, group) = (1 - self.me.node, self.me.group);
        self.peers[self.layout.rank_of(RankSlot { node, group, index })]
    }

    /// Returns when `count` processes of this group have called it.
    pub fn barrier(&self, count: usize) -> Result<()> {
        FutexBarrier::over(&self.barriers, self.me.group).wait(count)
    }
}

/// Exchanges process ids and tables; returns those of all ranks, by rank.
fn exchange_addresses(team: &Team, endpoint: &GroupEndpoint) -> Result<Vec<Transfer>> {
    let ProcessId { nid, pid } = endpoint.interface.physical_id()?;
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[nid.into(), pid.into(), endpoint.portal.index().into()]);
    let all = team.exchange(words)?;
    let transfer = |words: [u64; WORDS]| Transfer {
        target: ProcessId {
            nid: words[0] as u32,
            pid: words[1] as u32,
        },
        portal: words[2] as u32,
        match_bits: BITS,
        ..Transfer::default()
    };
    Ok(all.into_iter().map(transfer).collect())
}

/// Starts this program anew with a variable, unless it has that value: the library reads its
/// variables once.
///
/// # Errors
/// The program can't be started again.
pub fn restart_with(name: &str, value: &str) -> Result<()> {
    use std::os::unix::process::CommandExt;
    if std::env::var(name).as_deref() == Ok(value) {
        return Ok(());
    }
    let program = std::env::current_exe().during("finding this program")?;
    let refusal = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(name, value)
        .exec();
    Err(refusal).during("starting this program again")
}

/// One process's end: a descriptor to send from to anyone, an entry that anyone may
/// send to. Fields are dropped in this order.
pub struct GroupEndpoint {
    descriptor: Descriptor,
    _entry: Entry,
    portal: Portal,
    /// Counts messages that arrived at this process.
    arrivals: Signal,
    /// Acknowledgements of what was sent.
    completions: Signal,
    /// A descriptor for gets, and their replies.
    fetching: Descriptor,
    replies: Signal,
    /// A descriptor of its own for what is not waited for at once.
    aside: Descriptor,
    aside_completions: Signal,
    interface: Interface,
}

impl GroupEndpoint {
    fn open(bytes: u64) -> Result<Self> {
        let interface = portals::open_default()?;
        let memory = || Region::private(bytes as usize).during("allocating");
        let (source, landing) = (Rc::new(memory()?), Rc::new(memory()?));
        let signal = |counter| Signal::Counted(counter, Cell::new(0));
        let arrivals = interface.counter()?;
        let portal = interface.portal(PT_ANY, None)?;
        let entry = portal.append(landing, &EntrySpec::counted(BITS, &arrivals))?;
        let (completions, aside_completions) =
            (signal(interface.counter()?), signal(interface.counter()?));
        let acked = |signal: &Signal| {
            let spec = Counted::Acks.spec(None, signal.counter());
            interface.bind(Rc::clone(&source), &spec)
        };
        let (descriptor, aside) = (acked(&completions)?, acked(&aside_completions)?);
        let replies = signal(interface.counter()?);
        let spec = Counted::Replies.spec(None, replies.counter());
        let fetching = interface.bind(Rc::clone(&source), &spec)?;
        Ok(Self {
            descriptor,
            _entry: entry,
            portal,
            arrivals: signal(arrivals),
            completions,
            fetching,
            replies,
            aside,
            aside_completions,
            interface,
        })
    }

    /// Puts there without an acknowledgement.
    pub fn put(&self, to: &Transfer) -> Result<()> {
        Ok(self.descriptor.put(to, AckRequest::None)?)
    }

    /// Puts there and counts the acknowledgement.
    pub fn put_acked(&self, to: &Transfer) -> Result<()> {
        Ok(self.descriptor.put(to, AckRequest::Counting)?)
    }

    /// As [`GroupEndpoint::put_acked`], apart from what [`GroupEndpoint::await_acks`] waits for.
    pub fn put_aside(&self, to: &Transfer) -> Result<()> {
        Ok(self.aside.put(to, AckRequest::Counting)?)
    }

    /// Gets from there.
    pub fn get(&self, from: &Transfer) -> Result<()> {
        Ok(self.fetching.get(from)?)
    }

    /// Waits for `n` more replies.
    pub fn await_replies(&self, n: u64) -> Result<()> {
        self.replies.take(n)
    }

    /// Gets `n` messages, at most `window` at a time, and waits for all.
    pub fn stream_of_gets(&self, from: &Transfer, n: u64, window: u64) -> Result<()> {
        let all = std::iter::repeat_n(from, n as usize);
        in_window(
            all,
            window,
            |from| self.get(from),
            |n| self.await_replies(n),
        )
    }

    /// Waits for `n` more messages.
    pub fn await_arrivals(&self, n: u64) -> Result<()> {
        self.arrivals.take(n)
    }

    /// Waits for `n` more acknowledgements.
    pub fn await_acks(&self, n: u64) -> Result<()> {
        self.completions.take(n)
    }

    /// Waits for `n` more acknowledgements of [`GroupEndpoint::put_aside`].
    pub fn await_acks_aside(&self, n: u64) -> Result<()> {
        self.aside_completions.take(n)
    }

    /// Puts `n` messages to `targets` in turn, beginning at the `first`, at most
    /// `window` of them unacknowledged, and waits for all.
    pub fn stream(&self, targets: &[Transfer], first: usize, n: u64, window: u64) -> Result<()> {
        let in_turn = targets.iter().cycle().skip(first % targets.len());
        let all = in_turn.take(n as usize);
        in_window(all, window, |to| self.put_acked(to), |n| self.await_acks(n))
    }
}

/// Starts operations with all of these, at most `window` at a time, and waits for all: for half a
/// window at once.
fn in_window<'a>(
    all: impl Iterator<Item = &'a Transfer>,
    window: u64,
    start: impl Fn(&Transfer) -> Result<()>,
    await_ends: impl Fn(u64) -> Result<()>,
) -> Result<()> {
    let mut open = 0;
    for transfer in all {
        if open == window {
            await_ends(window / 2)?;
            open -= window / 2;
        }
        start(transfer)?;
        open += 1;
    }
    await_ends(open)
}

/// As many as the figures need: what is between two nodes is between any two.
pub const NODES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_slot_and_nodes_come_in_blocks() {
        let layout = RankLayout {
            groups: 3,
            slots: 8,
        };
        assert_eq!(layout.ranks(), 48);
        for rank in 0..48 {
            let slot = layout.slot_of(rank);
            assert_eq!(layout.rank_of(slot), rank);
            assert_eq!(slot.node, rank / 24);
        }
    }
}
