//! What running processes publish: how many connections they keep, what that
//! takes, and what went wrong on the way. Read from shared memory, without joining
//! their job.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lintel_runtime::Placement;
use serde::Serialize;

use crate::error::{During, Result};
use crate::models::{Mode, Model};
use crate::team::WORDS;

/// What a process counts about its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections with state of transmission that are this process's alone.
    pub contexts: u64,
    /// Those in its node's table, the same for all its processes.
    pub shared_contexts: u64,
    /// Processes of other nodes that messages were exchanged with.
    pub pairs: u64,
    /// Open sockets, or endpoints of libfabric.
    pub sockets: u64,
    /// Bytes of memory behind all of these.
    pub bytes: u64,
    /// Rings in shared memory that processes of its node send to it on.
    pub lanes: u64,
    /// Packets sent once more.
    pub retransmitted: u64,
    /// Packets that came once more.
    pub duplicates: u64,
    /// Packets dropped because their authenticator was wrong.
    pub forged: u64,
    /// Packets dropped because they were none of ours.
    pub malformed: u64,
    /// Packets dropped because they were for another process.
    pub misdirected: u64,
    /// Connections of a CCI endpoint.
    pub connections: u64,
    /// Sends and accesses of a CCI endpoint that haven't ended.
    pub pending: u64,
    /// Messages that a CCI endpoint's application hasn't given back.
    pub held: u64,
}

impl Counters {
    /// Both together, of one node: what its processes share is the same for both.
    pub fn beside(self, other: Self) -> Self {
        Self {
            contexts: self.contexts + other.contexts,
            shared_contexts: self.shared_contexts.max(other.shared_contexts),
            pairs: self.pairs + other.pairs,
            sockets: self.sockets + other.sockets,
            bytes: self.bytes + other.bytes,
            lanes: self.lanes + other.lanes,
            retransmitted: self.retransmitted + other.retransmitted,
            duplicates: self.duplicates + other.duplicates,
            forged: self.forged + other.forged,
            malformed: self.malformed + other.malformed,
            misdirected: self.misdirected + other.misdirected,
            connections: self.connections + other.connections,
            pending: self.pending + other.pending,
            held: self.held + other.held,
        }
    }

    /// All of them, by the names that tables give them.
    pub fn named(self) -> [(&'static str, u64); 14] {
        [
            ("contexts", self.contexts),
            ("shared", self.shared_contexts),
            ("pairs", self.pairs),
            ("sockets", self.sockets),
            ("bytes", self.bytes),
            ("lanes", self.lanes),
            ("retransmitted", self.retransmitted),
            ("duplicates", self.duplicates),
            ("forged", self.forged),
            ("malformed", self.malformed),
            ("misdirected", self.misdirected),
            ("connections", self.connections),
            ("pending", self.pending),
            ("held", self.held),
        ]
    }

    /// What is kept, as words that one rank sends to another; errors are left out.
    pub fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..5].copy_from_slice(&[
            self.contexts,
            self.shared_contexts,
            self.pairs,
            self.sockets,
            self.bytes,
        ]);
        words
    }

    /// Reads words that [`Counters::to_words`] wrote.
    pub fn from_words(words: [u64; WORDS]) -> Self {
        let [contexts, shared_contexts, pairs, sockets, bytes, ..] = words;
        Self {
            contexts,
            shared_contexts,
            pairs,
            sockets,
            bytes,
            ..Self::default()
        }
    }
}

/// A running process with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The value of `LINTEL_JOB`.
    pub job: String,
    /// The node's network address, as Portals numbers it.
    pub nid: u32,
    /// Its number in Portals.
    pub pid: u32,
    /// Its number to the system.
    pub os_process: i32,
    /// Where its engine lives.
    pub mode: Mode,
    /// What its connections are kept for; nothing without a network between nodes.
    pub conn: Option<Model>,
    /// The process's own counters.
    #[serde(flatten)]
    pub counters: Counters,
}

impl From<lintel_runtime::Published> for Published {
    fn from(found: lintel_runtime::Published) -> Self {
        let held = found.resources;
        Self {
            job: found.job,
            nid: found.nid,
            pid: found.pid,
            os_process: found.os_process,
            mode: match found.placement {
                Placement::Accelerated => Mode::Accelerated,
                Placement::Generic => Mode::Generic,
            },
            conn: found.model.map(|model| match model {
                lintel_runtime::Model::Rc => Model::Rc,
                lintel_runtime::Model::Xrc => Model::Xrc,
                lintel_runtime::Model::Node => Model::Node,
            }),
            counters: Counters {
                contexts: held.contexts,
                shared_contexts: held.shared_contexts,
                pairs: held.pairs,
                sockets: held.sockets,
                bytes: held.bytes,
                lanes: held.lanes,
                retransmitted: held.retransmitted,
                duplicates: held.duplicates,
                forged: held.forged,
                malformed: held.malformed,
                misdirected: held.misdirected,
                connections: found.endpoint.connections,
                pending: found.endpoint.pending,
                held: found.endpoint.held,
            },
        }
    }
}

/// Where published counters come from.
pub trait Source {
    /// Those of every live process of this user but this one, by job, node and pid.
    ///
    /// # Errors
    /// The place can't be read.
    fn published(&self) -> Result<Vec<Published>>;
}

/// The segments of this user's processes on this machine.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory;

impl Source for SharedMemory {
    fn published(&self) -> Result<Vec<Published>> {
        let all = lintel_runtime::published().during("reading what processes publish")?;
        let all = all.into_iter().map(Published::from);
        Ok(all.filter(Published::is_own).collect())
    }
}

impl Published {
    /// Whether it is of this user, root or not, and has a name that a job can have. Other
    /// users can give files any name, with any content.
    fn is_own(&self) -> bool {
        let name = format!("lintel-{}-{:x}-{}", self.job, self.nid, self.pid);
        is_name_of_job(&self.job) && !is_foreign(&Path::new("/dev/shm").join(name), own_uid())
    }
}

/// Whether `LINTEL_JOB` may have this value.
fn is_name_of_job(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= 64 && name.chars().all(plain)
}

/// Whether the file belongs to another user than `own`, even if it is a link.
fn is_foreign(path: &Path, own: u32) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() != own)
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_job_can_have_are_not_listed() {
        for name in ["0", "a-b_C", &"x".repeat(64)] {
            assert!(is_name_of_job(name), "{name:?}");
        }
        for name in ["\u{1b}[2J", "a b", "a\nb", "\u{9b}", &"x".repeat(65)] {
            assert!(!is_name_of_job(name), "{name:?}");
        }
    }

    #[test]
    fn files_and_links_of_other_users_are_foreign() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "").expect("it can be written");
        std::os::unix::fs::symlink("/none", &link).expect("a link can be made");
        let (own, other) = (own_uid(), own_uid() + 1);
        let found = [(&file, own), (&file, other), (&link, other)];
        let found = found.map(|(path, uid)| is_foreign(path, uid));
        folder.close().expect("it can be removed");
        assert_eq!(found, [false, true, true]);
        assert!(!is_foreign(&file, other), "it was removed");
    }
}
