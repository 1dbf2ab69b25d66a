//! The values of `PTL_MODE` and `PTL_CONN`.

use clap::ValueEnum;
use serde::Serialize;

/// Where the engine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In the process
    Accelerated,
    /// In the node's agent
    Generic,
}

/// What a connection between nodes is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A pair of processes
    Rc,
    /// A process and a remote node
    Xrc,
    /// A pair of nodes
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
