//! Who can see a job's secret.

use crate::Options;
use crate::abandoned::running;
use crate::sandbox::{Outcome, program};
use lintel_fault::worker::Worker;
use std::process::Command;
use std::time::{Duration, Instant};

const VARIABLE: &str = "LINTEL_SECRET";

/// Ranks that have it could write datagrams in anybody's name.
pub fn of_generic_ranks(_: &Options) -> Outcome {
    let mut command = Command::new(program("yod"));
    command.args(["-n", "2", "--nodes", "2", "--mode", "generic"]);
    command.args(["sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ"]);
    let done = command.output().map_err(|why| why.to_string())?;
    let said = String::from_utf8_lossy(&done.stdout);
    if !said.contains("LINTEL_JOB=") {
        let complaints = String::from_utf8_lossy(&done.stderr);
        return Err(format!(
            "the ranks print no environment: {said}{complaints}"
        ));
    }
    match said.contains(VARIABLE) {
        true => Err(format!("{VARIABLE} is in the environment of generic ranks")),
        false => Ok(()),
    }
}

/// Command lines are everybody's to read.
pub fn on_command_lines(_: &Options) -> Outcome {
    let mut command = Command::new(program("yod"));
    command
        .args(["-n", "2", "--nodes", "2"])
        .arg(program("mix"));
    command.args(["calls", "30", "2", "0", "0", "7"]);
    let mut yod = Worker::start(command);
    let secret = secret_of_a_rank()?;
    let processes = std::fs::read_dir("/proc").map_err(|why| why.to_string())?;
    let mut looked_at = 0;
    for process in processes.flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        looked_at += usize::from(!line.is_empty());
        if String::from_utf8_lossy(&line).contains(&secret) {
            return Err(format!(
                "the command line of {:?} shows it",
                process.file_name()
            ));
        }
    }
    yod.kill();
    match looked_at {
        0..3 => Err("there were no command lines to look at".into()),
        _ => Ok(()),
    }
}

fn secret_of_a_rank() -> Result<String, String> {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        for rank in running("mix") {
            let environment = std::fs::read(format!("/proc/{rank}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let mut variables = environment.split('\0');
            let secret = variables.find_map(|v| v.strip_prefix(VARIABLE)?.strip_prefix('='));
            if let Some(secret) = secret {
                return Ok(secret.to_owned());
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err("no rank has a secret".into())
}
