//! The values of `PTL_MODE` and `PTL_CONN`.

use clap::ValueEnum;
use serde::Serialize;

/// Where the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In the process itself
    Accelerated,
    /// In the node's agent
    Generic,
}

/// Which processes share a connection between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// One connection per pair of processes
    Rc,
    /// One connection per process and remote node
    Xrc,
    /// One connection per pair of nodes
    Node,
}

impl Mode {
    /// As `PTL_MODE` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accelerated => "accelerated",
            Self::Generic => "generic",
        }
    }
}

impl Model {
    /// As `PTL_CONN` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rc => "rc",
            Self::Xrc => "xrc",
            Self::Node => "node",
        }
    }
}
