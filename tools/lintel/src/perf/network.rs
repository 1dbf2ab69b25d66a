//! What carries the messages of a measurement: virtual nodes, networks, placement,
//! connections. Options become variables of the job's environment; what isn't given
//! stays as the environment has it.

use std::env;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub use crate::models::{Mode, Model};

use crate::error::{Error, Result};

/// Options that choose nodes, networks, placement and connections.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct Network {
    /// Number of virtual nodes: loopback addresses, between which messages leave shared
    /// memory [default: 1; connections and placements: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=2))]
    pub nodes: Option<u16>,

    /// Networks that carry messages, such as udp or shm,udp (sets PTL_NAL)
    #[arg(long, value_name = "LIST")]
    pub nal: Option<String>,

    /// Where the engine runs (sets PTL_MODE)
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,

    /// The agent of generic placement [default: lintel-agent, beside this program or in
    /// PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub agent: Option<PathBuf>,

    /// Which processes share a connection between nodes (sets PTL_CONN)
    #[arg(long, value_enum)]
    pub conn: Option<Model>,
}

impl Network {
    /// Places the ranks of `job` on virtual nodes and sets what these options set;
    /// what the job has by itself comes first.
    pub fn apply(&self, job: &mut yod::Job) {
        if self.nodes() > 1 {
            job.nodes = yod::Nodes::Virtual {
                count: self.nodes(),
                first: Ipv4Addr::LOCALHOST,
            };
        }
        job.agent = self.agent.clone().map(PathBuf::into_os_string);
        for (name, value) in self.given() {
            if !job.env.iter().any(|(own, _)| own == name) {
                job.env.push((name.into(), value.into()));
            }
        }
    }

    /// Fills in what the environment says, for the report. `nodes` is the number of
    /// nodes unless options or environment say otherwise.
    pub fn complete(&mut self, nodes: u16) {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let by_environment = variable("LINTEL_NODES").and_then(|nodes| nodes.parse().ok());
        self.nodes = self.nodes.or(by_environment).or(Some(nodes));
        self.nal = self.nal.take().or_else(|| variable("PTL_NAL"));
        let mode = variable("PTL_MODE").and_then(|mode| Mode::from_str(&mode, false).ok());
        self.mode = self.mode.or(mode);
        let model = variable("PTL_CONN").and_then(|model| Model::from_str(&model, false).ok());
        self.conn = self.conn.or(model);
    }

    /// How many virtual nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.map_or(1, usize::from)
    }

    /// Whether the messages of two ranks leave shared memory.
    pub fn is_crossed(&self) -> bool {
        let lists_shm = |nal: &String| nal.split(',').any(|name| name.trim() == "shm");
        self.nodes() > 1 || self.nal.as_ref().is_some_and(|nal| !lists_shm(nal))
    }

    /// The variables that these options set.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        let nal = self.nal.clone().map(|nal| ("PTL_NAL", nal));
        let mode = self.mode.map(|mode| ("PTL_MODE", mode.name().into()));
        let conn = self.conn.map(|model| ("PTL_CONN", model.name().into()));
        [nal, mode, conn].into_iter().flatten().collect()
    }

    /// For a rank: the variables are set already, by us or by another launcher.
    ///
    /// # Errors
    /// An option that the environment contradicts.
    pub fn check_environment(&self) -> Result<()> {
        let mut given = self.given().into_iter();
        match given.find(|(name, value)| env::var(name).as_ref() != Ok(value)) {
            None => Ok(()),
            Some((name, value)) => Err(Error::Usage(format!(
                "under another launcher options set no variables; set {name}={value} for every rank"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(nodes: u16, nal: Option<&str>) -> Network {
        Network {
            nodes: Some(nodes),
            nal: nal.map(String::from),
            ..Network::default()
        }
    }

    #[test]
    fn messages_leave_shared_memory_between_nodes_or_where_it_is_not_listed() {
        assert!(!over(1, None).is_crossed());
        assert!(!over(1, Some("shm,udp")).is_crossed());
        assert!(over(1, Some("udp")).is_crossed());
        assert!(over(2, None).is_crossed());
    }

    #[test]
    fn options_become_variables() {
        let network = Network {
            conn: Some(Model::Xrc),
            mode: Some(Mode::Generic),
            ..over(2, Some("udp"))
        };
        let set = network.given();
        let text: Vec<String> = set.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(text, ["PTL_NAL=udp", "PTL_MODE=generic", "PTL_CONN=xrc"]);
    }
}
