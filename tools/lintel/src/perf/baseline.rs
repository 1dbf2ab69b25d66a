//! Which of the machine's limits a size is compared with.

use super::session::Session;
use super::side::Side;
use crate::error::Result;
use crate::harness::{Outcome, Plan, Workload, measure};
use crate::limits::ETHERNET;
use crate::limits::copies::{CrossMemory, SharedCopy, SharedStream};
use crate::limits::lines::Handover;
use crate::limits::network::{Burst, TcpFlow, UdpPingPong, UdpStream, Waiting};
use crate::report::Row;
use crate::report::names::{
    BARE_PING_PONG, BARE_STREAM, BARE_TCP_STREAM, CROSS_MEMORY_COPY, SHARED_COPY, SHARED_STREAM,
};
use crate::team::Team;

/// What part of an exchange is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// One way, which is half a round trip.
    HalfTrip,
    /// A whole round trip, there and back: a request, and the bytes in the reply.
    RoundTrip,
    /// One put of many in flight.
    PutStream,
    /// One get of many in flight.
    GetStream,
}

/// The limit for one size.
///
/// | bytes | within a node | between nodes |
/// |---|---|---|
/// | up to [`INLINE`] | a cache line handed over | a bare ping-pong of datagrams |
/// | less than [`LONG`] | a copy through shared memory or a cross-memory copy, whichever is quicker here | up to [`SMALL`] the same, above it a bare stream of segmented datagrams |
/// | more | a cross-memory copy between the same buffers; through shared memory where the kernel allows none | such a stream |
///
/// Between two machines, which share no memory to count datagrams in, the stream is one of TCP.
pub struct Baseline(Vec<Candidate>);

/// Something that the machine can do in place of Portals.
struct Candidate {
    name: &'static str,
    parts: f64,
    workload: Box<dyn Workload>,
}

impl Candidate {
    fn new(name: &'static str, parts: f64, workload: impl Workload + 'static) -> Self {
        let workload = Box::new(workload);
        Self {
            name,
            parts,
            workload,
        }
    }
}

impl Baseline {
    /// For messages of `bytes`.
    pub fn new(session: &Session, side: &impl Side, bytes: u64, span: Span) -> Result<Self> {
        let team = &session.team;
        if session.options.network.is_crossed() {
            return Ok(Self(vec![over_sockets(team, bytes, span)?]));
        }
        if bytes <= INLINE {
            return Ok(Self(vec![one_line(team, span)?]));
        }
        let mut all = Vec::new();
        let is_allowed = CrossMemory::is_allowed(team)?;
        if is_allowed {
            let (source, landing) = side.buffers();
            // A get's reply goes from where puts land to where they come from.
            let (from, to, reader) = match span {
                Span::HalfTrip => (source, landing, 0),
                Span::PutStream => (source, landing, 1),
                Span::RoundTrip | Span::GetStream => (landing, source, 0),
            };
            let copy = CrossMemory::between(team, from, to, bytes as usize, reader)?;
            all.push(Candidate::new(CROSS_MEMORY_COPY, 1.0, copy));
        }
        if bytes < LONG || !is_allowed {
            all.push(through_shared_memory(team, bytes as usize, span)?);
        }
        Ok(Self(all))
    }

    /// Measures `own` in turns with the limit.
    ///
    /// # Errors
    /// As [`measure`].
    pub fn measure(
        mut self,
        team: &Team,
        plan: Plan,
        own: &mut [&mut dyn Workload],
    ) -> Result<Measured> {
        let candidates = self.0.iter_mut();
        let mut all: Vec<&mut dyn Workload> = candidates
            .map(|candidate| &mut *candidate.workload as &mut dyn Workload)
            .collect();
        let limits = all.len();
        all.extend(own.iter_mut().map(|own| &mut **own as &mut dyn Workload));
        let mut outcomes = measure(team, plan, &mut all)?;
        let own = outcomes.split_off(limits);
        let names = self.0.iter().map(|limit| (limit.name, limit.parts));
        let limits = names.zip(outcomes).collect();
        Ok(Measured { own, limits })
    }
}

/// Workloads measured in turns with their limit.
pub struct Measured {
    /// What was measured, in the order of the workloads.
    pub own: Vec<Outcome>,
    limits: Vec<((&'static str, f64), Outcome)>,
}

impl Measured {
    /// Adds the limit to the `row` of the workload at `index`, whose repetition has `parts`
    /// parts: the quickest of what the machine can do. In rank 0 only.
    pub fn compare(&self, row: Row, index: usize, parts: f64) -> Row {
        let time =
            |((_, parts), outcome): &&((&str, f64), Outcome)| outcome.times(*parts).median_us;
        let quickest = self
            .limits
            .iter()
            .min_by(|a, b| time(a).total_cmp(&time(b)));
        let ((name, limit_parts), limit) = quickest.expect("each size has a limit");
        row.against(name, (&self.own[index], parts), (limit, *limit_parts))
    }
}

fn one_line(team: &Team, span: Span) -> Result<Candidate> {
    let (name, parts) = match span {
        Span::RoundTrip => ("one line, there and back", 1.0),
        Span::HalfTrip | Span::PutStream | Span::GetStream => ("one line, one way", 2.0),
    };
    Ok(Candidate::new(name, parts, Handover::one_line(team)?))
}

fn through_shared_memory(team: &Team, bytes: usize, span: Span) -> Result<Candidate> {
    Ok(match span {
        Span::HalfTrip => Candidate::new(SHARED_COPY, 2.0, SharedCopy::new(team, bytes, bytes)?),
        Span::RoundTrip => Candidate::new(SHARED_COPY, 1.0, SharedCopy::new(team, 0, bytes)?),
        Span::PutStream | Span::GetStream => {
            Candidate::new(SHARED_STREAM, 1.0, SharedStream::new(team, bytes)?)
        }
    })
}

fn over_sockets(team: &Team, bytes: u64, span: Span) -> Result<Candidate> {
    if bytes > SMALL && team.is_remote() {
        let flow = TcpFlow::new(team, bytes)?;
        return Ok(Candidate::new(BARE_TCP_STREAM, 1.0, flow));
    }
    if bytes > SMALL {
        let stream = UdpStream::of_messages(team, Burst::Segmented(ETHERNET), bytes)?;
        return Ok(Candidate::new(BARE_STREAM, 1.0, stream));
    }
    let (name, parts) = match span {
        Span::RoundTrip => ("bare UDP ping-pong, there and back", 1.0),
        Span::HalfTrip | Span::PutStream | Span::GetStream => (BARE_PING_PONG, 2.0),
    };
    let ping_pong = UdpPingPong::new(team, bytes as usize, Waiting::Spinning)?;
    Ok(Candidate::new(name, parts, ping_pong))
}

/// The largest size that a cache line holds beside its flag and a header, in bytes.
pub const INLINE: u64 = 40;
/// The largest size that is compared with a ping-pong of datagrams, in bytes.
pub const SMALL: u64 = 4096;
/// From this size on, in bytes, two copies lose to one by the kernel on every processor
/// measured so far.
pub const LONG: u64 = 64 << 10;
