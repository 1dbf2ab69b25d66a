//! The agent of a test's nodes: lintel-agent, where only libraries are built.
#![forbid(unsafe_code)]

use clap::Parser;
use lintel_agent::{House, Options};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let house = House::open(&Options::parse())?;
    println!("ready");
    Ok(house.run()?)
}
