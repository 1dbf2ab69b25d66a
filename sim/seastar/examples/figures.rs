//! The papers' points beside the simulated ones.
#![forbid(unsafe_code)]

use lintel_sim_seastar::profile::PROFILES;
use lintel_sim_seastar::workload::{Case, Way, ping_pong};
use lintel_sim_seastar::{Mode, Refused};

fn main() -> Result<(), Refused> {
    for profile in PROFILES {
        for mode in [Mode::Generic, Mode::Accelerated] {
            for way in [Way::Put, Way::Get, Way::Both] {
                let took = ping_pong(&Case::new(*profile, mode), way, 0, 0)?;
                println!("{} {mode:?} {way:?}: {took}", profile.name);
            }
        }
    }
    Ok(())
}
