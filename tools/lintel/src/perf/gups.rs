//! `gups`: HPCC's RandomAccess with Portals atomics: each of two processes xors
//! random words of a table that both hold a half of.

use std::sync::atomic::Ordering::Relaxed;

use super::endpoint::{Endpoint, Setup, Signal};
use super::options::Wait;
use super::session::Session;
use crate::error::{Error, Result};
use crate::harness::{Outcome, Workload, measure};
use crate::limits::XOR_TABLE;
use crate::limits::lines::{LockedXor, next_random};
use crate::portals::{AckRequest, Counted, Datatype, Operation, ProcessId, Transfer, wait_count};
use crate::report::Row;
use crate::team::{Team, WORDS};

/// Updates a second of both together, then a check of the whole table: by messages, and on
/// memory that each can map.
pub fn run(session: &mut Session) -> Result<()> {
    for form in [Form::Messages, Form::Direct] {
        run_form(session, form)?;
    }
    session.team.barrier()
}

fn run_form(session: &mut Session, form: Form) -> Result<()> {
    session.announce(form.name(), 8);
    let setup = Setup {
        bytes: XOR_TABLE as u64 / 2,
        arrive: Wait::Ct,
        complete: (Wait::Ct, form.stage()),
        depth: 64,
        ahead: &[],
    };
    let endpoint = match form {
        Form::Messages => Endpoint::new(session, setup)?,
        Form::Direct => Endpoint::direct(session, setup)?,
    };
    let (interface, _) = session.interface()?;
    let mut access = RandomAccess::new(&session.team, &endpoint, form, interface.physical_id()?);
    access.fill();
    session.team.barrier()?;
    let mut limit = LockedXor::new(&session.team, XOR_TABLE)?;
    let workloads: &mut [&mut dyn Workload] = &mut [&mut limit, &mut access];
    let outcomes = measure(&session.team, session.plan, workloads)?;
    let wrong = access.verify(&session.team)?;
    if wrong > 0 {
        let words = XOR_TABLE / 8;
        return Err(Error::Wrong(format!(
            "{wrong} of {words} table words after {}",
            form.name()
        )));
    }
    let variant = access.variant();
    session.record(|| row(variant, &outcomes[1], &outcomes[0]).with("wrong words", wrong as f64));
    session.team.barrier()
}

/// How the updates get to the other half.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Messages,
    Direct,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Messages => "RandomAccess",
            Form::Direct => "RandomAccess, direct entries",
        }
    }

    /// What the descriptor counts: on a direct entry the end of a get means that all before
    /// it have been applied.
    fn stage(self) -> Counted {
        match self {
            Form::Messages => Counted::Acks,
            Form::Direct => Counted::Replies,
        }
    }
}

fn row(variant: &str, own: &Outcome, limit: &Outcome) -> Row {
    let row = Row::new("gups", variant, 8)
        .timed(own, 1.0)
        .with_rate(2.0)
        .against("locked xor, shared table", (own, 1.0), (limit, 1.0));
    let rate = row.million_per_s.unwrap_or(0.0);
    row.with("GUPS", rate / 1e3)
        .with("table MiB", (XOR_TABLE >> 20) as f64)
}

struct RandomAccess<'a> {
    endpoint: &'a Endpoint,
    me: ProcessId,
    rank: u64,
    half: u64,
    form: Form,
    coherent: bool,
    random: u64,
    updates: u64,
    sent: [u64; 2],
    team: &'a Team,
}

impl<'a> RandomAccess<'a> {
    fn new(team: &'a Team, endpoint: &'a Endpoint, form: Form, me: ProcessId) -> Self {
        let rank = team.rank() as u64;
        Self {
            endpoint,
            me,
            rank,
            half: endpoint.landing.words().len() as u64,
            form,
            // `PtlMemAlloc` makes them so.
            coherent: form == Form::Direct || endpoint.interface.has_coherent_atomics(),
            random: SEEDS[team.rank()],
            updates: 0,
            sent: [0; 2],
            team,
        }
    }

    fn variant(&self) -> &'static str {
        match (self.form, self.coherent) {
            (Form::Direct, _) => "direct entries",
            (Form::Messages, true) => "own half directly",
            (Form::Messages, false) => "own half by Portals",
        }
    }

    /// Word i of the whole table holds i.
    fn fill(&self) {
        for (i, word) in (self.rank * self.half..).zip(self.endpoint.landing.words()) {
            word.store(i, Relaxed);
        }
    }

    fn update(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.random = next_random(self.random);
            let place = self.random & (2 * self.half - 1);
            self.send(place, self.random)?;
        }
        self.updates += n;
        Ok(())
    }

    fn send(&mut self, place: u64, value: u64) -> Result<()> {
        let (owner, word) = (place / self.half, place % self.half);
        if owner == self.rank && self.coherent {
            self.endpoint.landing.words()[word as usize].fetch_xor(value, Relaxed);
            return Ok(());
        }
        // The descriptor's memory is a ring of operands: one is read when its
        // message leaves, long before its place comes round again.
        let slot = self.sent[0] + self.sent[1];
        let slot = slot % OPERANDS;
        self.endpoint.source.words()[slot as usize].store(value, Relaxed);
        let mut transfer = Transfer {
            local_offset: slot * 8,
            remote_offset: word * 8,
            ..self.endpoint.transfer(8)
        };
        if owner == self.rank {
            transfer.target = self.me;
            transfer.portal = self.endpoint.own_portal();
        }
        self.sent[owner as usize] += 1;
        let xor = (Operation::Bxor, Datatype::Uint64);
        let descriptor = &self.endpoint.descriptor;
        Ok(descriptor.atomic(&transfer, xor, AckRequest::None)?)
    }

    /// Waits until every update of both ranks has been applied here.
    fn settle(&self) -> Result<()> {
        if self.form == Form::Direct {
            self.endpoint.descriptor.get(&self.endpoint.transfer(8))?;
            self.endpoint.completions.next()?;
            return self.team.barrier();
        }
        let mut words = [0; WORDS];
        words[..2].copy_from_slice(&self.sent);
        let all = self.team.exchange(words)?;
        let expected = all.iter().map(|words| words[self.rank as usize]).sum();
        if let Signal::Counted(counter, _) = &self.endpoint.arrivals {
            wait_count(counter, expected)?;
        }
        self.team.barrier()
    }

    /// Does every update once more, which undoes it, and counts the words that
    /// aren't as filled.
    fn verify(&mut self, team: &Team) -> Result<u64> {
        self.settle()?;
        self.random = SEEDS[team.rank()];
        let updates = self.updates;
        self.update(updates)?;
        self.settle()?;
        let wrong = (self.rank * self.half..)
            .zip(self.endpoint.landing.words())
            .filter(|(i, word)| word.load(Relaxed) != *i)
            .count();
        let mut words = [0; WORDS];
        words[0] = wrong as u64;
        Ok(team.exchange(words)?.iter().map(|words| words[0]).sum())
    }
}

impl Workload for RandomAccess<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.update(n)?;
        self.settle()
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.update(n)?;
        self.settle()
    }

    fn fewest(&self) -> u64 {
        100_000
    }
}

/// Operands kept before one is written over; 64 KiB stay in the cache.
const OPERANDS: u64 = 8192;

/// Two places far apart in the sequence.
const SEEDS: [u64; 2] = [0x1234_5678_9abc_def1, 0xfedc_ba98_7654_3217];
