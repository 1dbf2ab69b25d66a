//! What machine a measurement ran on.

use std::fs;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::system::uname;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::error::{During, Error, Result};

/// A machine, as far as it bears on a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The host's name, as uname reports it.
    pub host: String,
    /// The processor's model, out of /proc/cpuinfo.
    pub cpu: String,
    /// The kernel's release, as uname reports it.
    pub kernel: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Cores that the ranks are pinned to, by rank.
    pub cores: Vec<usize>,
    /// Whether the kernel gives transparent huge pages (`always`, `madvise`, `never`).
    pub huge_pages: String,
}

impl Machine {
    /// This one, with ranks on `cores`.
    pub fn here(cores: Vec<usize>) -> Self {
        let names = uname();
        Self {
            host: names.nodename().to_string_lossy().into_owned(),
            cpu: cpu_model(),
            kernel: names.release().to_string_lossy().into_owned(),
            processors: allowed_cores().map_or(1, |cores| cores.len()),
            cores,
            huge_pages: huge_pages(),
        }
    }
}

/// The cores that this process may run on, lowest first.
pub fn allowed_cores() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).during("asking for the allowed cores")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Keeps this process, and every thread it starts from now on, on `core`.
pub fn pin(core: usize) -> Result<()> {
    let refused = || {
        let allowed = allowed_cores().unwrap_or_default();
        let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
        let allowed = allowed.join(", ");
        Error::Usage(format!(
            "this process can't run on core {core}: cores {allowed} are allowed"
        ))
    };
    if core >= CpuSet::MAX_CPU {
        return Err(refused());
    }
    let mut set = CpuSet::new();
    set.set(core);
    match sched_setaffinity(None, &set) {
        Err(Errno::INVAL) => Err(refused()),
        pinned => pinned.during(format!("pinning to core {core}")),
    }
}

/// Moves every thread that this process has now to `core`.
pub fn pin_all_threads(core: usize) -> Result<()> {
    pin(core)?;
    let mut set = CpuSet::new();
    set.set(core);
    for task in fs::read_dir("/proc/self/task").during("listing threads")? {
        let name = task.during("listing threads")?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok());
        match thread
            .and_then(Pid::from_raw)
            .map(|id| sched_setaffinity(Some(id), &set))
        {
            // It has ended meanwhile.
            None | Some(Ok(()) | Err(Errno::SRCH)) => {}
            Some(Err(error)) => return Err(error).during(format!("pinning to core {core}")),
        }
    }
    Ok(())
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(
            || "unknown processor".into(),
            |(_, name)| name.trim().into(),
        )
}

fn huge_pages() -> String {
    let text =
        fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or_else(|| "unknown".into(), |(chosen, _)| chosen.into())
}
