//! What processes tell of what they hold: written to their segments' cards, read
//! by tools.

use crate::core::Core;
use crate::owner::Owner;
use crate::settings::Settings;
use lintel_nal::{Nal, Resources};
use lintel_nal_udp::Model;
use lintel_presence::{ProcessStats, StatsWords, process_stats};
use std::io;

/// Where a process's engine lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In the process.
    Accelerated,
    /// In the node's agent.
    Generic,
}

/// What a process tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    /// Its job.
    pub job: String,
    /// Its node.
    pub nid: u32,
    /// Its process identifier.
    pub pid: u32,
    /// Its number to the system; its agent's, where that has the engine.
    pub os_process: i32,
    /// Where its engine lives.
    pub placement: Placement,
    /// What its connections are kept for; nothing without a network between nodes.
    pub model: Option<Model>,
    /// What it holds.
    pub resources: Resources,
}

/// What the live processes of this machine tell, this one left out.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn published() -> io::Result<Vec<Published>> {
    Ok(process_stats()?.into_iter().map(read).collect())
}

/// What a process tells of itself whatever it holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessInfo {
    generic: bool,
    model: Option<Model>,
}

impl ProcessInfo {
    pub(crate) fn new(settings: &Settings, generic: bool) -> Self {
        ProcessInfo {
            generic,
            model: settings.between.map(|_| settings.model),
        }
    }
}

const MODELS: [Model; 3] = [Model::Rc, Model::Xrc, Model::Node];

impl<O: Owner> Core<O> {
    /// Shows what it holds now.
    pub(crate) fn publish_stats(&self) {
        self.stats
            .write(&words(&self.info, &self.transports.nal.resources()));
    }
}

fn words(info: &ProcessInfo, held: &Resources) -> StatsWords {
    let model = MODELS.iter().position(|model| Some(*model) == info.model);
    [
        u64::from(info.generic),
        model.map_or(0, |model| model as u64 + 1),
        held.contexts,
        held.shared_contexts,
        held.pairs,
        held.sockets,
        held.bytes,
        held.lanes,
        held.retransmitted,
        held.duplicates,
        held.forged,
        held.malformed,
        held.misdirected,
        0,
        0,
        0,
    ]
}

fn read(stats: ProcessStats) -> Published {
    let [generic, model, rest @ ..] = stats.words;
    Published {
        job: stats.job,
        nid: stats.process.nid,
        pid: stats.process.pid,
        os_process: stats.os_process,
        placement: if generic == 0 {
            Placement::Accelerated
        } else {
            Placement::Generic
        },
        model: MODELS.get((model as usize).wrapping_sub(1)).copied(),
        resources: Resources {
            contexts: rest[0],
            shared_contexts: rest[1],
            pairs: rest[2],
            sockets: rest[3],
            bytes: rest[4],
            lanes: rest[5],
            retransmitted: rest[6],
            duplicates: rest[7],
            forged: rest[8],
            malformed: rest[9],
            misdirected: rest[10],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::ProcessId;

    #[test]
    fn what_was_written_on_a_card_is_read() {
        let resources = Resources {
            contexts: 1,
            shared_contexts: 2,
            pairs: 3,
            sockets: 4,
            bytes: 5,
            lanes: 6,
            retransmitted: 7,
            duplicates: 8,
            forged: 9,
            malformed: 10,
            misdirected: 11,
        };
        for model in [None, Some(Model::Rc), Some(Model::Xrc), Some(Model::Node)] {
            let info = ProcessInfo {
                generic: model.is_some(),
                model,
            };
            let stats = ProcessStats {
                job: "j".into(),
                process: ProcessId::new(1, 2),
                os_process: 3,
                words: words(&info, &resources),
            };
            let published = read(stats);
            assert_eq!(
                (published.nid, published.pid, published.os_process),
                (1, 2, 3)
            );
            assert_eq!((published.model, published.resources), (model, resources));
        }
    }
}
