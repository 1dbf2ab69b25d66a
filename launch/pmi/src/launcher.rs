//! Who started this process? A program that finds no launcher and goes on as a job of
//! one, while its launcher meant it to be one of many, gives N wrong answers and no
//! error. [`recognise`] distinguishes the cases, so that the program can report them.

use std::fmt;

/// What the environment says about the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// A socket or port of PMI-1 or PMI-2: yod, MPICH's hydra, Slurm with `--mpi=pmi2`.
    Pmi,
    /// A PMIx server: Open MPI's mpirun, PRRTE, Slurm with `--mpi=pmix`.
    Pmix,
    /// No launcher: a job of one.
    Singleton,
    /// A launcher started several ranks, and speaks something else.
    NotUnderstood {
        /// The variables that show it, and whose they are.
        evidence: String,
    },
}

/// The variable that names the protocol if the environment misleads.
pub const CHOICE: &str = "LINTEL_PMI";
/// The values that `LINTEL_PMI` may have, as error messages list them.
pub const CHOICES: &str = "pmi1, pmi2, pmix, none";

/// The protocol that `LINTEL_PMI` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// PMI-1 by `PMI_FD` or `PMI_PORT`.
    Pmi1,
    /// PMI-2 over the socket that `PMI_FD` names.
    Pmi2,
    /// PMIx, by calls into libpmix.
    Pmix,
    /// A job of one, whatever the environment contains.
    None,
}

impl Launcher {
    /// What to print before going on as a job of one; `None` if all is well.
    pub fn warning(&self) -> Option<String> {
        let Launcher::NotUnderstood { evidence } = self else {
            return None;
        };
        Some(format!(
            "a launcher that is not understood started this process ({evidence}). \
             Each of its processes would run alone, as a job of one. \
             Start the program with yod, or with a launcher that offers PMI-1, PMI-2 or PMIx \
             (MPICH's mpiexec; Slurm: srun --mpi=pmi2 or --mpi=pmix), \
             or say {CHOICE}=none if each is meant to be alone."
        ))
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launcher::Pmi => write!(f, "PMI-1 or PMI-2"),
            Launcher::Pmix => write!(f, "PMIx"),
            Launcher::Singleton => write!(f, "none (a job of one)"),
            Launcher::NotUnderstood { evidence } => write!(f, "not understood ({evidence})"),
        }
    }
}

/// Reads the environment of this process.
pub fn recognise() -> Launcher {
    recognise_in(environment)
}

/// As [`recognise`], with the environment given as a function.
///
/// ```
/// use lintel_pmi::launcher::{Launcher, recognise_in};
///
/// assert_eq!(recognise_in(|_| None), Launcher::Singleton);
/// let slurm = recognise_in(|name| match name {
///     "SLURM_PROCID" => Some("0".into()),
///     "SLURM_STEP_NUM_TASKS" => Some("4".into()),
///     _ => None,
/// });
/// assert!(matches!(slurm, Launcher::NotUnderstood { .. }));
/// ```
pub fn recognise_in(variable: impl Fn(&str) -> Option<String>) -> Launcher {
    let all = |names: [&str; 2]| names.iter().all(|name| variable(name).is_some());
    if all(["PMIX_NAMESPACE", "PMIX_RANK"]) {
        return Launcher::Pmix;
    }
    if variable("PMI_FD").is_some() || all(["PMI_PORT", "PMI_ID"]) {
        return Launcher::Pmi;
    }
    TRACES
        .iter()
        .find_map(|trace| trace.verdict(&variable))
        .unwrap_or(Launcher::Singleton)
}

/// The protocol that the user names, if any.
///
/// # Errors
/// The value that isn't understood.
pub fn chosen_in(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Choice>, String> {
    let Some(value) = variable(CHOICE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match value.as_str() {
        "pmi1" => Ok(Some(Choice::Pmi1)),
        "pmi2" => Ok(Some(Choice::Pmi2)),
        "pmix" => Ok(Some(Choice::Pmix)),
        "none" => Ok(Some(Choice::None)),
        _ => Err(value),
    }
}

/// Whether a launcher says that this process is the only one of its job.
pub(crate) fn is_alone_in(variable: impl Fn(&str) -> Option<String>) -> bool {
    let verdict = |trace: &Trace| trace.verdict(&variable);
    TRACES.iter().find_map(verdict) == Some(Launcher::Singleton)
}

/// A variable of this process.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// How a family of launchers shows in the environment of its ranks.
struct Trace {
    family: &'static str,
    /// Each process has this one.
    rank: &'static str,
    /// If the first that is set is "1", the process is alone.
    sizes: &'static [&'static str],
    /// Without any of `sizes` the rank's presence shows nothing.
    needs_size: bool,
}

const TRACES: &[Trace] = &[
    Trace::new(
        "Open MPI's mpirun",
        "OMPI_COMM_WORLD_RANK",
        &["OMPI_COMM_WORLD_SIZE"],
    ),
    // A batch script has SLURM_PROCID and SLURM_NTASKS and is yet one process.
    Trace {
        needs_size: true,
        ..Trace::new("Slurm's srun", "SLURM_PROCID", &["SLURM_STEP_NUM_TASKS"])
    },
    Trace::new("HPE PALS", "PALS_RANKID", &["PALS_SIZE", "PMI_SIZE"]),
    Trace::new("Cray ALPS", "ALPS_APP_PE", &["PMI_SIZE"]),
    Trace::new("IBM jsrun", "JSM_NAMESPACE_RANK", &["JSM_NAMESPACE_SIZE"]),
    Trace::new("Flux", "FLUX_TASK_RANK", &["FLUX_JOB_SIZE"]),
    Trace::new("MVAPICH2", "MV2_COMM_WORLD_RANK", &["MV2_COMM_WORLD_SIZE"]),
    Trace::new("a PMI launcher by port", "PMI_PORT", &["PMI_SIZE"]),
    Trace::new("a PMI launcher", "PMI_RANK", &["PMI_SIZE"]),
    // Last: it has no size, and the launchers above set it too.
    Trace::new("a PMIx launcher", "PMIX_RANK", &[]),
];

impl Trace {
    const fn new(
        family: &'static str,
        rank: &'static str,
        sizes: &'static [&'static str],
    ) -> Trace {
        Trace {
            family,
            rank,
            sizes,
            needs_size: false,
        }
    }

    /// `None` if this family didn't start the process.
    fn verdict(&self, variable: &impl Fn(&str) -> Option<String>) -> Option<Launcher> {
        let (rank, family) = (variable(self.rank)?, self.family);
        let size = self
            .sizes
            .iter()
            .find_map(|name| Some((name, variable(name)?)));
        let evidence = match size {
            Some((_, size)) if size.trim() == "1" => return Some(Launcher::Singleton),
            Some((name, size)) => {
                format!(
                    "{}={rank} and {name}={size}, as {family} sets them",
                    self.rank
                )
            }
            None if self.needs_size => return None,
            None => format!("{}={rank}, as {family} sets it", self.rank),
        };
        Some(Launcher::NotUnderstood { evidence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Launcher {
        recognise_in(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn a_pmi_socket_or_port_wins_over_other_traces() {
        let both = [
            ("PMI_FD", "5"),
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
        ];
        assert_eq!(with(&both), Launcher::Pmi);
        let port = [
            ("PMI_PORT", "host:5000"),
            ("PMI_ID", "1"),
            ("SLURM_PROCID", "1"),
        ];
        assert_eq!(with(&port), Launcher::Pmi);
    }

    #[test]
    fn a_pmix_server_is_recognised_by_job_and_rank() {
        let both = [("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "0"), ("PMI_FD", "5")];
        assert_eq!(with(&both), Launcher::Pmix);
    }

    #[test]
    fn a_choice_is_one_of_the_known_words() {
        let chosen = |word: &str| chosen_in(|name| (name == CHOICE).then(|| word.to_string()));
        assert_eq!(chosen(""), Ok(None));
        for word in CHOICES.split(", ") {
            assert!(matches!(chosen(word), Ok(Some(_))), "{word}");
        }
        assert_eq!(chosen("pmi3"), Err("pmi3".into()));
    }

    #[test]
    fn launchers_of_several_ranks_without_pmi_are_reported_with_their_evidence() {
        for variables in [
            &[
                ("OMPI_COMM_WORLD_RANK", "0"),
                ("OMPI_COMM_WORLD_SIZE", "2"),
                ("PMIX_RANK", "0"),
            ][..],
            &[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")],
            &[("PALS_RANKID", "3")],
            &[("PMIX_RANK", "0")],
            &[("PMI_RANK", "0"), ("PMI_SIZE", "2")],
        ] {
            let warning = with(variables).warning().expect("not understood");
            let (name, value) = variables[0];
            assert!(warning.contains(&format!("{name}={value}")), "{warning}");
        }
    }

    #[test]
    fn jobs_of_one_and_batch_scripts_are_singletons() {
        assert_eq!(
            with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]),
            Launcher::Singleton
        );
        let alone = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
        assert_eq!(with(&alone), Launcher::Singleton);
        let mpirun_of_one = [
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "1"),
            ("PMIX_RANK", "0"),
        ];
        assert_eq!(with(&mpirun_of_one), Launcher::Singleton);
        assert_eq!(with(&[]).warning(), None);
    }
}
