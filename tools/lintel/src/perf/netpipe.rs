//! `netpipe`: NetPIPE's schedule (seed 001, section 5.2): sizes in two steps an
//! octave, each also a little smaller and a little larger, at several offsets in the
//! page, as ping-pong and as a stream, by put and by get.

use super::baseline::{Baseline, Span};
use super::pingpong::{Get, PutPing};
use super::session::Session;
use super::side::{Side, over_api, variant};
use super::stream::{End, Stream, Way, counting, window_for};
use crate::error::Result;
use crate::harness::{Plan, Workload};
use crate::portals::Counted;
use crate::report::Row;

/// Every form at every size and offset.
pub fn run(session: &mut Session) -> Result<()> {
    over_api!(session, run_over)
}

fn run_over<S: Side>(session: &mut Session) -> Result<()> {
    for form in [
        Form::PutPing,
        Form::GetReply,
        Form::PutStream,
        Form::GetStream,
    ] {
        form_at_all_sizes::<S>(session, form)?;
    }
    Ok(())
}

fn form_at_all_sizes<S: Side>(session: &mut Session, form: Form) -> Result<()> {
    let options = &session.options;
    let furthest = options.offsets.iter().copied().max().unwrap_or(0);
    let sizes = schedule(options.largest(), options.perturbation);
    let offsets = options.offsets.clone();
    let room = options.largest() + options.perturbation + furthest;
    let mut setup = counting(room, form.stage());
    setup.arrive = session.options.wait;
    setup.depth = 8192;
    let side = S::open(session, setup)?;
    for &offset in &offsets {
        for &bytes in &sizes {
            point(session, &side, form, bytes, offset)?;
        }
    }
    session.team.barrier()
}

fn point<S: Side>(
    session: &mut Session,
    side: &S,
    form: Form,
    bytes: u64,
    offset: u64,
) -> Result<()> {
    session.announce(form.name(), bytes);
    let transfer = side.transfer_at(bytes, offset);
    let limit = Baseline::new(session, side, bytes, form.span())?;
    let mut workload: Box<dyn Workload> = match form {
        Form::PutPing => Box::new(PutPing::new(side, bytes, offset)),
        Form::GetReply => Box::new(Get(side, transfer)),
        Form::PutStream | Form::GetStream => {
            let window = window_for(bytes);
            let way = form.way();
            Box::new(Stream::new(&session.team, side, transfer, window, way)?)
        }
    };
    let plan = brief(session.plan);
    let measured = limit.measure(&session.team, plan, &mut [&mut *workload])?;
    let parts = form.parts();
    session.record(|| {
        let row = Row::new("netpipe", variant::<S>(form.name()), bytes)
            .timed(&measured.own[0], parts)
            .with_bandwidth(bytes)
            .with("offset B", offset as f64);
        measured.compare(row, 0, parts)
    });
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    PutPing,
    GetReply,
    PutStream,
    GetStream,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::PutPing => "put ping-pong",
            Self::GetReply => "get",
            Self::PutStream => "put stream",
            Self::GetStream => "get stream",
        }
    }

    fn stage(self) -> Counted {
        match self {
            Self::PutPing | Self::PutStream => Counted::Acks,
            Self::GetReply | Self::GetStream => Counted::Replies,
        }
    }

    fn way(self) -> Way {
        match self.stage() {
            Counted::Replies => Way::Get,
            _ => Way::Put(End::Acked),
        }
    }

    fn span(self) -> Span {
        match self {
            Self::PutPing => Span::HalfTrip,
            Self::GetReply => Span::RoundTrip,
            Self::PutStream => Span::PutStream,
            Self::GetStream => Span::GetStream,
        }
    }

    fn parts(self) -> f64 {
        if self == Self::PutPing { 2.0 } else { 1.0 }
    }
}

/// 1, 2, 3, 4, 6, 8, 12 … `largest`, each with its neighbours `around` bytes away.
pub fn schedule(largest: u64, around: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut power = 1;
    while power <= largest {
        for middle in [power, power + power / 2] {
            sizes.extend([middle.saturating_sub(around), middle, middle + around]);
        }
        power *= 2;
    }
    sizes.retain(|&bytes| bytes > 0 && bytes <= largest + around);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// There are hundreds of points, so each gets a twentieth of the time.
fn brief(plan: Plan) -> Plan {
    Plan {
        rounds: plan.rounds.min(3),
        time: plan.time / 20,
        budget: plan.budget / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_climbs_and_surrounds_every_power() {
        let sizes = schedule(1024, 3);
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
        for size in [1, 509, 512, 515, 768, 1021, 1024, 1027] {
            assert!(sizes.contains(&size), "{size}");
        }
    }
}
