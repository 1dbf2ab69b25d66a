//! Hosts and slots that a batch system has allocated to the job that yod runs in: Slurm, PBS
//! and LSF, from the variables that they set.
//!
//! | system | hosts and slots | what starts yod on a host |
//! |---|---|---|
//! | Slurm | `SLURM_JOB_NODELIST`, `SLURM_TASKS_PER_NODE` | `srun` |
//! | PBS, Torque | the file `PBS_NODEFILE`, a line per slot | `pbs_tmrsh` if it is installed, else ssh |
//! | LSF | `LSB_MCPU_HOSTS`, hosts and slots in turn | `blaunch` |

use std::ffi::OsString;
use std::path::Path;

use crate::error::Error;
use crate::host_list::{HostSpec, slots_of};
use crate::program;

/// Hosts that a batch system has allocated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) hosts: Vec<HostSpec>,
    /// What starts yod on a host; empty for ssh.
    pub(crate) launch_agent: Vec<OsString>,
}

/// In the words of a launch agent: where the host's name goes.
pub(crate) const HOST: &str = "{host}";

/// A step of its own on one node, which shares the allocation with other steps.
const SRUN: [&str; 8] = [
    "srun",
    "--nodes=1",
    "--ntasks=1",
    "--overlap",
    // Otherwise messages wait for the end of a line.
    "--unbuffered",
    "--nodelist={host}",
    "sh",
    "-c",
];
/// Numbers of Slurm's own steps: the batch script, `salloc`'s shell and others.
const FIRST_OWN_STEP: u32 = 0xffff_fff0;

/// The allocation that the environment describes; `None` without one, and in a process that is
/// itself one of several tasks of a step.
///
/// # Errors
/// A variable or file of the batch system isn't understood.
pub(crate) fn find_in(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Allocation>, Error> {
    let (name, found) = if let Some(nodes) = variable("SLURM_JOB_NODELIST") {
        ("SLURM_JOB_NODELIST", slurm(&nodes, &variable))
    } else if let Some(file) = variable("PBS_NODEFILE") {
        ("PBS_NODEFILE", pbs(Path::new(&file)).map(Some))
    } else if let Some(hosts) = variable("LSB_MCPU_HOSTS") {
        ("LSB_MCPU_HOSTS", lsf(&hosts).map(Some))
    } else {
        return Ok(None);
    };
    found.map_err(|why| Error::Allocation { name, why })
}

fn slurm(
    nodes: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Allocation>, String> {
    let step = variable("SLURM_STEP_ID").and_then(|step| step.parse::<u32>().ok());
    if step.is_some_and(|step| step < FIRST_OWN_STEP) {
        return Ok(None);
    }
    let names = expand(nodes)?;
    let slots = match variable("SLURM_TASKS_PER_NODE") {
        Some(text) => counts(&text)?,
        None => vec![1; names.len()],
    };
    if slots.len() != names.len() {
        return Err(format!(
            "{} nodes, and SLURM_TASKS_PER_NODE counts the tasks of {}",
            names.len(),
            slots.len()
        ));
    }
    let hosts = names.iter().zip(slots);
    Ok(Some(Allocation {
        hosts: hosts
            .map(|(name, slots)| HostSpec::new(name, slots))
            .collect::<Result<_, _>>()?,
        launch_agent: SRUN.map(OsString::from).to_vec(),
    }))
}

fn pbs(file: &Path) -> Result<Allocation, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
    let hosts: Vec<HostSpec> = names
        .map(|name| HostSpec::new(name, 1))
        .collect::<Result<_, _>>()?;
    if hosts.is_empty() {
        return Err(format!("{} names no host", file.display()));
    }
    let agent = program::find("pbs_tmrsh".as_ref()).is_ok();
    Ok(Allocation {
        hosts,
        launch_agent: agent.then(|| "pbs_tmrsh".into()).into_iter().collect(),
    })
}

fn lsf(hosts: &str) -> Result<Allocation, String> {
    let words: Vec<&str> = hosts.split_whitespace().collect();
    if words.is_empty() || words.len() % 2 != 0 {
        return Err(format!(
            "{hosts:?} isn't a list of hosts, each with a number"
        ));
    }
    let hosts = words
        .chunks(2)
        .map(|pair| HostSpec::new(pair[0], slots_of(pair[1])?));
    Ok(Allocation {
        hosts: hosts.collect::<Result<_, _>>()?,
        launch_agent: vec!["blaunch".into()],
    })
}

/// The most hosts that a list may name.
const MAX_HOSTS: usize = 65_536;

/// Slurm's list of nodes, written out: `n[1-2,07],m` is `n1`, `n2`, `n07`, `m`.
fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for item in split_outside_brackets(list) {
        all.extend(expand_item(item)?);
        if all.len() > MAX_HOSTS {
            return Err(format!("{list:?} names more than {MAX_HOSTS} nodes"));
        }
    }
    Ok(all)
}

/// The parts between commas that no bracket encloses.
fn split_outside_brackets(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    list.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// One item: its first bracket written out, each with every continuation.
fn expand_item(item: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{item:?} isn't a name with ranges such as n[1-4,7]");
    let Some((before, rest)) = item.split_once('[') else {
        return match item.is_empty() || item.contains(']') {
            true => Err(wrong()),
            false => Ok(vec![item.into()]),
        };
    };
    let (ranges, after) = rest.split_once(']').ok_or_else(wrong)?;
    let tails = match after {
        "" => vec![String::new()],
        after => expand_item(after)?,
    };
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let numbers = first.parse::<u64>().ok().zip(last.parse::<u64>().ok());
        let (from, to) = numbers.filter(|(from, to)| from <= to).ok_or_else(wrong)?;
        if to - from >= MAX_HOSTS as u64 {
            return Err(format!("{item:?} names more than {MAX_HOSTS} nodes"));
        }
        for number in from..=to {
            let width = first.len();
            all.extend(
                tails
                    .iter()
                    .map(|tail| format!("{before}{number:0width$}{tail}")),
            );
        }
    }
    Ok(all)
}

/// Slurm's counts per node, written out: `2(x3),1` is 2, 2, 2, 1.
fn counts(text: &str) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let wrong = || format!("SLURM_TASKS_PER_NODE={text:?} isn't a list such as 2(x3),1");
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')').ok_or_else(wrong)?),
            None => (part, "1"),
        };
        let count = slots_of(count).map_err(|_| wrong())?;
        let times = slots_of(times).ok().filter(|&times| times <= MAX_HOSTS);
        all.extend(std::iter::repeat_n(count, times.ok_or_else(wrong)?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<Allocation>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        find_in(variable).map_err(|error| error.to_string())
    }

    fn hosts(variables: &[(&str, &str)]) -> Vec<String> {
        let allocation = found(variables).unwrap().unwrap();
        let text = |host: HostSpec| host.to_string();
        allocation.hosts.into_iter().map(text).collect()
    }

    #[test]
    fn slurms_nodes_have_the_tasks_that_it_counts() {
        let variables = [
            ("SLURM_JOB_NODELIST", "n[1-2,07-08],login,r[1-2]c[0-1]"),
            ("SLURM_TASKS_PER_NODE", "2(x3),1,4(x5)"),
        ];
        assert_eq!(
            hosts(&variables),
            [
                "n1:2", "n2:2", "n07:2", "n08:1", "login:4", "r1c0:4", "r1c1:4", "r2c0:4", "r2c1:4"
            ]
        );
        let agent = found(&variables).unwrap().unwrap().launch_agent;
        assert!(agent[0] == "srun" && agent.iter().any(|word| word == "--nodelist={host}"));
    }

    #[test]
    fn a_task_of_a_step_has_no_allocation_and_the_batch_script_has() {
        let nodes = ("SLURM_JOB_NODELIST", "n1");
        assert_eq!(found(&[nodes, ("SLURM_STEP_ID", "0")]), Ok(None));
        assert_eq!(hosts(&[nodes, ("SLURM_STEP_ID", "4294967291")]), ["n1:1"]);
        assert_eq!(found(&[]), Ok(None));
    }

    #[test]
    fn pbs_names_a_host_once_for_each_slot() {
        let file = std::env::temp_dir().join(format!("yod-nodefile-{}", std::process::id()));
        std::fs::write(&file, "a\na\nb\n").unwrap();
        let named = hosts(&[("PBS_NODEFILE", file.to_str().unwrap())]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(named, ["a:1", "a:1", "b:1"]);
        let error = found(&[("PBS_NODEFILE", "/nowhere")]).unwrap_err();
        assert!(error.contains("PBS_NODEFILE: /nowhere"), "{error}");
    }

    #[test]
    fn lsf_lists_hosts_and_slots_in_turn() {
        assert_eq!(hosts(&[("LSB_MCPU_HOSTS", "a 2 b 4 ")]), ["a:2", "b:4"]);
        assert!(found(&[("LSB_MCPU_HOSTS", "a 2 b")]).is_err());
        assert!(found(&[("LSB_MCPU_HOSTS", "a x")]).is_err());
    }

    #[test]
    fn lists_that_are_not_understood_are_refused() {
        for list in [
            "",
            "n[1-",
            "n[2-1]",
            "n[a]",
            "n]",
            "a,,b",
            "n[0-99999999]",
            "-x",
        ] {
            assert!(found(&[("SLURM_JOB_NODELIST", list)]).is_err(), "{list:?}");
        }
        for tasks in ["0", "2(x", "2(x0)", "1,1", "2(x99999999)"] {
            let variables = [
                ("SLURM_JOB_NODELIST", "n1"),
                ("SLURM_TASKS_PER_NODE", tasks),
            ];
            assert!(found(&variables).is_err(), "{tasks:?}");
        }
    }
}
