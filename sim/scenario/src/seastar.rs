//! The table `machine` and the workloads of the simulated SeaStar machine.

use lintel_sim_seastar::profile::PROFILES;
use lintel_sim_seastar::workload::{Case, Way, ping_pong};
use lintel_sim_seastar::{Class, Mode, Profile};

use crate::mistake::Mistake;
use crate::reader::Reader;
use crate::run::{AtOnce, Figure, Outcome, Run, micro};

/// A SeaStar machine of two nodes, and what goes to and fro.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    profile: Profile,
    mode: Mode,
    way: Way,
    bytes: u64,
    ahead: u64,
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, Mistake> {
        let profiles = PROFILES.map(|profile| (profile.name, *profile));
        let mut profile = reader.must_choose("machine.profile", &profiles)?;
        for (name, _) in profile.constants() {
            let path = format!("machine.constants.{name}");
            if let Some(value) = reader.number(&path, 0..=1 << 40)? {
                let known = profile.with(name, value);
                profile = known.expect("it is one of the profile's");
            }
        }
        let ways = [
            ("put", Way::Put),
            ("acknowledged-put", Way::AcknowledgedPut),
            ("get", Way::Get),
            ("both-ways", Way::Both),
            ("cci", Way::Cci(Class::Unreliable)),
        ];
        let way = reader.must_choose("workload.kind", &ways)?;
        let bytes = reader.number("workload.bytes", 0..=1 << 30)?.unwrap_or(0);
        let ahead = match way {
            Way::Cci(_) => None,
            _ => reader.number("workload.entries_ahead", 0..=100_000)?,
        };
        let (mode, way) = mode(reader, way)?;
        Ok(Setup {
            profile,
            mode,
            way,
            bytes,
            ahead: ahead.unwrap_or(0),
        })
    }

    pub(crate) fn prepare(&self) -> Box<dyn Run> {
        let setup = *self;
        Box::new(AtOnce::new(move || setup.measure()))
    }

    fn measure(&self) -> Result<Outcome, String> {
        let case = Case::new(self.profile, self.mode);
        let took = ping_pong(&case, self.way, self.bytes, self.ahead);
        let took = took.map_err(|refused| refused.to_string())?;
        let directions = if self.way == Way::Both { 2.0 } else { 1.0 };
        let mut figures = vec![Figure::new("one way, µs", micro(took))];
        if self.bytes > 0 {
            let rate = directions * self.bytes as f64 / micro(took);
            figures.push(Figure::new("MB/s", rate));
        }
        Ok(Outcome {
            figures,
            trace_hash: None,
            events: 0,
            simulated: took,
        })
    }
}

/// Who matches, and which messages that allows.
fn mode(reader: &Reader<'_>, way: Way) -> Result<(Mode, Way), Mistake> {
    if let Way::Cci(_) = way {
        let classes = [
            ("unreliable", Class::Unreliable),
            ("reliable", Class::Reliable),
        ];
        let class = reader.choose("workload.class", &classes)?;
        return Ok((Mode::Cci, Way::Cci(class.unwrap_or(Class::Unreliable))));
    }
    let modes = [("host", Mode::Generic), ("nic", Mode::Accelerated)];
    let mode = reader.choose("machine.matching", &modes)?;
    Ok((mode.unwrap_or(Mode::Generic), way))
}
