//! What processes publish of themselves: written to their segments, read by tools.

use crate::settings::Settings;
use lintel_nal::Resources;
use lintel_nal_udp::Model;
use lintel_presence::{ProcessStats, StatsWords, StatsWriter, process_stats};
use std::io;

/// Where a process's engine lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In the process that uses it.
    Accelerated,
    /// In the node's agent.
    Generic,
}

/// What a process publishes of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    /// `LINTEL_JOB` of the process.
    pub job: String,
    /// The node in its Portals identifier.
    pub nid: u32,
    /// The process number in its Portals identifier.
    pub pid: u32,
    /// The system's process identifier; in generic placement, the agent's.
    pub os_process: i32,
    /// Where its engine lives.
    pub placement: Placement,
    /// Which processes share a connection; `None` without a network between nodes.
    pub model: Option<Model>,
    /// What its NALs hold.
    pub resources: Resources,
    /// What it holds as an endpoint of CCI.
    pub endpoint: EndpointCounts,
}

/// What an endpoint of CCI holds; nothing in other processes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct EndpointCounts {
    /// Connections.
    pub connections: u64,
    /// Sends and accesses that haven't ended.
    pub pending: u64,
    /// Messages that the application hasn't given back.
    pub held: u64,
}

/// Publishes what an endpoint of CCI holds.
pub fn publish_endpoint(writer: &StatsWriter, held: &Resources, counts: &EndpointCounts) {
    let info = ProcessInfo {
        placement: Placement::Accelerated,
        model: None,
    };
    let mut words = words(&info, held);
    words[FIRST_OF_ENDPOINT..].copy_from_slice(&[counts.connections, counts.pending, counts.held]);
    writer.write(&words);
}

/// The first word about an endpoint of CCI.
const FIRST_OF_ENDPOINT: usize = 13;

/// What the live processes of this machine publish, without this one.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn published() -> io::Result<Vec<Published>> {
    Ok(process_stats()?.into_iter().map(read).collect())
}

/// What doesn't change while a process has interfaces.
#[derive(Clone, Copy)]
pub(crate) struct ProcessInfo {
    placement: Placement,
    model: Option<Model>,
}

impl ProcessInfo {
    pub(crate) fn new(settings: &Settings, placement: Placement) -> Self {
        ProcessInfo {
            placement,
            model: settings.between.map(|_| settings.model),
        }
    }
}

const MODELS: [Model; 3] = [Model::Rc, Model::Xrc, Model::Node];

/// What this process publishes.
pub(crate) struct Stats {
    writer: StatsWriter,
    info: ProcessInfo,
}

impl Stats {
    pub(crate) fn new(writer: StatsWriter, info: ProcessInfo) -> Stats {
        Stats { writer, info }
    }

    /// Publishes what the NALs hold now.
    pub(crate) fn publish(&self, held: &Resources) {
        self.writer.write(&words(&self.info, held));
    }

    /// The last request for a snapshot, if it isn't answered yet.
    #[inline]
    pub(crate) fn snapshot_asked(&self) -> Option<u32> {
        self.writer.snapshot_asked()
    }

    pub(crate) fn answer_snapshot(&self, asked: u32, snapshot: &[u8]) {
        self.writer.answer_snapshot(asked, snapshot);
    }
}

fn words(info: &ProcessInfo, held: &Resources) -> StatsWords {
    let model = MODELS.iter().position(|model| Some(*model) == info.model);
    [
        u64::from(info.placement == Placement::Generic),
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
        endpoint: EndpointCounts {
            connections: rest[11],
            pending: rest[12],
            held: rest[13],
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
                placement: match model {
                    Some(_) => Placement::Generic,
                    None => Placement::Accelerated,
                },
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
