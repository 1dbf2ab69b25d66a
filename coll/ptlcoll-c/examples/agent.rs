//! The agent of a test's nodes: lintel-agent, where only libraries are built.
#![forbid(unsafe_code)]

use clap::Parser;
use lintel_agent::{Agent, Options};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::open(&Options::parse())?;
    println!("ready");
    Ok(agent.run()?)
}
