//! Runs that take more than two processes: two virtual nodes with several processes
//! each, possibly in several groups that take turns.
//!
//! ```text
//!   lintel perf connections ── Jobs ── yod ──┬─ node 0: groups × seats ranks ─┐
//!          rows ◀── a file in memory         └─ node 1: groups × seats ranks ─┴─ Crowd ── scenes
//! ```
//!
//! Every rank runs the same script; the group whose turn it is plays, the others
//! sleep. [`jobs`] starts ranks and takes their rows, [`scene`] is what they play.

pub mod jobs;
pub mod scene;

use std::cell::Cell;
use std::rc::Rc;

use lintel_pmi::client::Client;

use super::network::Model;
use super::options::Options;
use super::station::{BITS, Signal};
use crate::error::{During, Error, Result};
use crate::machine;
use crate::portals::{Ack, Counted, Entry, Interface, Match, Md, Process, Report, Table, Transfer};
use crate::raw::Region;
use crate::team::{Huddle, Manner, Team, WORDS};

/// Where a process sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// 0 or 1.
    pub node: usize,
    /// Which of the groups that take turns.
    pub group: usize,
    /// Its number within group and node.
    pub seat: usize,
}

/// How the ranks of a job are seated: nodes in blocks, as yod does it, groups in
/// blocks within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seating {
    /// Groups that take turns.
    pub groups: usize,
    /// Processes of one group on one node.
    pub seats: usize,
}

impl Seating {
    /// How many ranks that takes.
    pub fn ranks(self) -> usize {
        NODES * self.groups * self.seats
    }

    /// Where `rank` sits.
    pub fn seat(self, rank: usize) -> Seat {
        let local = rank % (self.groups * self.seats);
        Seat {
            node: rank / (self.groups * self.seats),
            group: local / self.seats,
            seat: local % self.seats,
        }
    }

    /// Who sits there.
    pub fn rank(self, seat: Seat) -> usize {
        (seat.node * self.groups + seat.group) * self.seats + seat.seat
    }
}

/// This process among the others of its job.
pub struct Crowd {
    /// All ranks; they meet asleep.
    pub team: Team,
    /// Who sits where.
    pub seating: Seating,
    /// Where this one sits.
    pub me: Seat,
    /// A line for each group to meet over.
    huddles: Region,
    /// What this process sends from and receives in.
    pub post: Post,
    /// What names each rank's entry, by rank.
    peers: Vec<Transfer>,
}

impl Crowd {
    /// Joins the others of the job, opens an interface with buffers of `bytes`, and
    /// learns where everyone is.
    ///
    /// # Errors
    /// What the system, the launcher or Portals refused.
    pub fn join(
        client: &mut Client,
        seating: Seating,
        options: &Options,
        bytes: u64,
    ) -> Result<Self> {
        let (rank, size) = (client.rank(), client.size());
        if size != seating.ranks() {
            return Err(Error::Usage(format!(
                "{} ranks were started for {} seats",
                size,
                seating.ranks()
            )));
        }
        let me = seating.seat(rank);
        machine::pin(options.cores[me.node % options.cores.len()])?;
        let team = super::form_team(client, Manner::Asleep)?;
        let post = Post::open(bytes)?;
        let peers = introduce(&team, &post)?;
        let huddles = team.share(seating.groups * 64)?;
        Ok(Self {
            team,
            seating,
            me,
            huddles,
            post,
            peers,
        })
    }

    /// The rank that times a group's turns.
    pub fn leader_of(&self, group: usize) -> usize {
        let (node, seat) = (0, 0);
        self.seating.rank(Seat { node, group, seat })
    }

    /// The last rank of a group's other node.
    pub fn victim_of(&self, group: usize) -> usize {
        let (node, seat) = (1, self.seating.seats - 1);
        self.seating.rank(Seat { node, group, seat })
    }

    /// Names the entry of the process of this group on the other node at `seat`.
    pub fn across(&self, seat: usize) -> Transfer {
        let (node, group) = (1 - self.me.node, self.me.group);
        self.peers[self.seating.rank(Seat { node, group, seat })]
    }

    /// Returns when `count` processes of this group have called it.
    pub fn huddle(&self, count: usize) -> Result<()> {
        Huddle::over(&self.huddles, self.me.group).pass(count)
    }
}

/// Tells everyone this process's id and table; gives everyone's, by rank.
fn introduce(team: &Team, post: &Post) -> Result<Vec<Transfer>> {
    let id = post.interface.id();
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[id.nid.into(), id.pid.into(), post.table.index().into()]);
    let all = team.exchange(words)?;
    let transfer = |words: [u64; WORDS]| Transfer {
        target: Process {
            nid: words[0] as u32,
            pid: words[1] as u32,
        },
        table: words[2] as u32,
        bits: BITS,
        ..Transfer::default()
    };
    Ok(all.into_iter().map(transfer).collect())
}

/// Makes this process one that keeps connections for `model`, by starting itself anew
/// where the environment says otherwise: the library reads it once.
///
/// # Errors
/// The program can't be started again.
pub fn become_model(model: Model) -> Result<()> {
    use std::os::unix::process::CommandExt;
    if std::env::var("PTL_CONN").as_deref() == Ok(model.name()) {
        return Ok(());
    }
    let program = std::env::current_exe().during("finding this program")?;
    let refusal = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env("PTL_CONN", model.name())
        .exec();
    Err(refusal).during("starting this program again")
}

/// One process's end: a descriptor to send from to anyone, an entry that anyone may
/// send to. Fields are dropped in this order.
pub struct Post {
    md: Md,
    _entry: Entry,
    table: Table,
    /// Messages that came.
    arrivals: Signal,
    /// Acknowledgements of what was sent.
    completions: Signal,
    /// A descriptor of its own for what is not waited for at once.
    aside: Md,
    aside_completions: Signal,
    interface: Interface,
}

impl Post {
    fn open(bytes: u64) -> Result<Self> {
        let interface = Interface::open_default()?;
        let memory = || Region::private(bytes as usize).during("allocating");
        let (source, landing) = (Rc::new(memory()?), Rc::new(memory()?));
        let counted =
            || -> Result<Signal> { Ok(Signal::Counted(interface.counter()?, Cell::new(0))) };
        let (arrivals, completions, aside_completions) = (counted()?, counted()?, counted()?);
        let table = interface.table_any(None)?;
        let entry = Match {
            bits: BITS,
            counter: arrivals.counter(),
            silent: true,
            ..Match::default()
        };
        let entry = interface.append(&table, &landing, entry)?;
        let acked = |signal: &Signal| {
            let report = Report {
                counter: signal.counter(),
                count: Counted::Acks,
                quiet_send: true,
                ..Report::default()
            };
            interface.bind(&source, report)
        };
        let (md, aside) = (acked(&completions)?, acked(&aside_completions)?);
        Ok(Self {
            md,
            _entry: entry,
            table,
            arrivals,
            completions,
            aside,
            aside_completions,
            interface,
        })
    }

    /// Puts there; nobody says that it arrived.
    pub fn put(&self, to: &Transfer) -> Result<()> {
        Ok(self.md.put(to, Ack::None)?)
    }

    /// Puts there and counts the acknowledgement.
    pub fn put_acked(&self, to: &Transfer) -> Result<()> {
        Ok(self.md.put(to, Ack::Count)?)
    }

    /// As [`Post::put_acked`], apart from what [`Post::await_acks`] waits for.
    pub fn put_aside(&self, to: &Transfer) -> Result<()> {
        Ok(self.aside.put(to, Ack::Count)?)
    }

    /// Waits for `n` more messages.
    pub fn await_arrivals(&self, n: u64) -> Result<()> {
        self.arrivals.take(n)
    }

    /// Waits for `n` more acknowledgements.
    pub fn await_acks(&self, n: u64) -> Result<()> {
        self.completions.take(n)
    }

    /// Waits for `n` more acknowledgements of [`Post::put_aside`].
    pub fn await_acks_aside(&self, n: u64) -> Result<()> {
        self.aside_completions.take(n)
    }

    /// Puts `n` messages to `targets` in turn, beginning at the `first`, at most
    /// `window` of them unacknowledged, and waits for all.
    pub fn stream(&self, targets: &[Transfer], first: usize, n: u64, window: u64) -> Result<()> {
        let mut open = 0;
        let in_turn = targets.iter().cycle().skip(first % targets.len());
        for (_, target) in (0..n).zip(in_turn) {
            if open == window {
                self.await_acks(window / 2)?;
                open -= window / 2;
            }
            self.put_acked(target)?;
            open += 1;
        }
        self.await_acks(open)
    }
}

/// As many as the figures need: what is between two nodes is between any two.
pub const NODES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_seat_and_nodes_come_in_blocks() {
        let seating = Seating {
            groups: 3,
            seats: 8,
        };
        assert_eq!(seating.ranks(), 48);
        for rank in 0..48 {
            let seat = seating.seat(rank);
            assert_eq!(seating.rank(seat), rank);
            assert_eq!(seat.node, rank / 24);
        }
    }
}
