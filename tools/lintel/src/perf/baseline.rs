//! Which of the machine's limits a size is compared with.

use super::endpoint::Endpoint;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Outcome, Workload};
use crate::limits::ETHERNET;
use crate::limits::copies::CrossMemory;
use crate::limits::lines::Handover;
use crate::limits::network::{Burst, UdpPingPong, UdpStream, Waiting};
use crate::report::Row;
use crate::report::names::{BARE_PING_PONG, BARE_STREAM};
use crate::team::Team;

/// What part of an exchange is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// One way, which is half a round trip.
    HalfTrip,
    /// A whole round trip, there and back.
    RoundTrip,
}

/// The limit for one size. In shared memory: up to [`SMALL`] a cache line handed over,
/// above it a bare cross-memory copy between the same buffers, where the kernel allows
/// one. Over a network: a bare ping-pong of datagrams, above [`SMALL`] a bare stream of
/// segmented ones.
pub struct Baseline {
    name: &'static str,
    parts: f64,
    workload: Box<dyn Workload>,
}

impl Baseline {
    /// For messages of `bytes`.
    pub fn new(session: &Session, endpoint: &Endpoint, bytes: u64, span: Span) -> Result<Self> {
        let team = &session.team;
        if session.options.network.is_crossed() {
            return Self::over_sockets(team, bytes, span);
        }
        if bytes > SMALL && CrossMemory::is_allowed(team)? {
            let bytes = bytes as usize;
            return Ok(Self {
                name: "cross-memory copy",
                parts: 1.0,
                workload: Box::new(CrossMemory::between(
                    team,
                    &endpoint.source,
                    &endpoint.landing,
                    bytes,
                )?),
            });
        }
        let (name, parts) = match span {
            Span::HalfTrip => ("one line, one way", 2.0),
            Span::RoundTrip => ("one line, there and back", 1.0),
        };
        Ok(Self {
            name,
            parts,
            workload: Box::new(Handover::one_line(team)?),
        })
    }

    fn over_sockets(team: &Team, bytes: u64, span: Span) -> Result<Self> {
        if bytes > SMALL {
            let stream = UdpStream::of_messages(team, Burst::Segmented(ETHERNET), bytes)?;
            return Ok(Self {
                name: BARE_STREAM,
                parts: 1.0,
                workload: Box::new(stream),
            });
        }
        let (name, parts) = match span {
            Span::HalfTrip => (BARE_PING_PONG, 2.0),
            Span::RoundTrip => ("bare UDP ping-pong, there and back", 1.0),
        };
        let ping_pong = UdpPingPong::new(team, bytes as usize, Waiting::Spinning)?;
        Ok(Self {
            name,
            parts,
            workload: Box::new(ping_pong),
        })
    }

    /// To be measured in turns with the benchmark.
    pub fn workload(&mut self) -> &mut dyn Workload {
        &mut *self.workload
    }

    /// Adds this limit to `row`, whose repetition has `parts` parts.
    pub fn compare(&self, row: Row, own: &Outcome, parts: f64, limit: &Outcome) -> Row {
        row.against(self.name, (own, parts), (limit, self.parts))
    }
}

/// The largest size that is compared with a hand-over or a ping-pong, in bytes.
pub const SMALL: u64 = 4096;
