//! Ranks under launchers of others, where they are installed: MPICH's hydra (PMI-1 and
//! PMI-2) and Open MPI's mpirun (PMIx). The ranks are copies of this test.

use std::process::{Command, Output};

use lintel_pmi::client::Client;

/// Set for copies of this test that are ranks; its value says what to do.
const PART: &str = "LINTEL_PMI_TEST_PART";

/// Does nothing unless a launcher runs it.
#[test]
fn as_a_rank() {
    match std::env::var(PART).as_deref() {
        Ok("exchange") => exchange(),
        Ok("abort") => abort(),
        Ok("connect") => println!("\nrank: {}", connected()),
        _ => {}
    }
}

fn exchange() {
    let mut pmi = Client::from_env().unwrap().expect("a launcher");
    let (rank, size) = (pmi.rank(), pmi.size());
    for round in 0..3 {
        pmi.put(&format!("key-{round}-{rank}"), &format!("v={rank},{round}"))
            .unwrap();
        pmi.barrier().unwrap();
        for peer in 0..size {
            let value = pmi.get(&format!("key-{round}-{peer}")).unwrap();
            assert_eq!(value, Some(format!("v={peer},{round}")));
        }
    }
    let local = pmi
        .local_place()
        .unwrap()
        .expect("launchers provide the place");
    let protocol = pmi.protocol();
    // One write, so that lines of several ranks stay whole.
    let line = format!(
        "\nrank {rank} of {size}, {} of {} here, by {protocol}\n",
        local.rank, local.size
    );
    print!("{line}");
    pmi.finalize().unwrap();
}

fn connected() -> String {
    match Client::from_env() {
        Ok(Some(pmi)) => format!("one of {}", pmi.size()),
        Ok(None) => "alone".into(),
        Err(error) => error.to_string(),
    }
}

fn abort() {
    let mut pmi = Client::from_env().unwrap().expect("a launcher");
    pmi.barrier().unwrap();
    if pmi.rank() == 0 {
        let _ = pmi.abort(7);
    }
    loop {
        std::thread::park();
    }
}

/// Runs this test as ranks; `None`, aloud, where the launcher is not installed.
fn launch(launcher: &[&str], part: &str, choice: &str) -> Option<Output> {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "60"])
        .args(launcher)
        .arg(this)
        .args(["--exact", "as_a_rank", "--nocapture"])
        .env(PART, part)
        .env("LINTEL_PMI", choice);
    let found = Command::new(launcher[0]).arg("--version").output();
    if !found.is_ok_and(|version| version.status.success()) {
        eprintln!("{} is not installed: skipped", launcher[0]);
        return None;
    }
    Some(command.output().expect("timeout is part of coreutils"))
}

fn ranks_of(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut ranks: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("rank "))
        .map(str::to_string)
        .collect();
    ranks.sort_unstable();
    assert!(output.status.success(), "{output:?}");
    ranks
}

fn expected(size: usize, protocol: &str) -> Vec<String> {
    let line = |rank| format!("rank {rank} of {size}, {rank} of {size} here, by {protocol}");
    (0..size).map(line).collect()
}

const HYDRA: [&str; 3] = ["mpiexec.hydra", "-n", "3"];
const MPIRUN: [&str; 5] = [
    "mpirun.openmpi",
    "--allow-run-as-root",
    "--oversubscribe",
    "-n",
    "3",
];

#[test]
fn ranks_of_hydra_exchange_values_by_pmi_1() {
    if let Some(output) = launch(&HYDRA, "exchange", "") {
        assert_eq!(ranks_of(&output), expected(3, "PMI-1"));
    }
}

#[test]
fn ranks_of_hydra_exchange_values_through_a_port() {
    let words = ["mpiexec.hydra", "-pmi-port", "-n", "3"];
    if let Some(output) = launch(&words, "exchange", "") {
        assert_eq!(ranks_of(&output), expected(3, "PMI-1"));
    }
}

#[test]
fn ranks_of_hydra_exchange_values_by_pmi_2() {
    if let Some(output) = launch(&HYDRA, "exchange", "pmi2") {
        assert_eq!(ranks_of(&output), expected(3, "PMI-2"));
    }
}

#[test]
fn ranks_of_mpirun_exchange_values_by_pmix() {
    if let Some(output) = launch(&MPIRUN, "exchange", "") {
        assert_eq!(ranks_of(&output), expected(3, "PMIx"));
    }
}

#[test]
fn an_abort_ends_a_job_of_hydra_and_one_of_mpirun() {
    for (launcher, choice) in [(&HYDRA[..], ""), (&HYDRA, "pmi2"), (&MPIRUN, "")] {
        if let Some(output) = launch(launcher, "abort", choice) {
            assert!(!output.status.success(), "{output:?}");
            assert_ne!(output.status.code(), Some(124), "in time: {output:?}");
        }
    }
}

/// What a process in this environment makes of it.
fn verdict(environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "as_a_rank", "--nocapture"]);
    let outer = std::env::vars_os().map(|(name, _)| name);
    for name in outer.filter(|name| name.to_string_lossy().contains("PMI")) {
        command.env_remove(name);
    }
    command
        .env(PART, "connect")
        .envs(environment.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("rank: "));
    line.unwrap_or_else(|| panic!("{output:?}")).to_string()
}

#[test]
fn a_launcher_that_cannot_be_talked_with_is_an_error_and_no_job_of_one() {
    assert_eq!(verdict(&[]), "alone");
    let slurm = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")];
    assert!(
        verdict(&slurm).contains("SLURM_PROCID=0"),
        "{}",
        verdict(&slurm)
    );
    let meant = [&slurm[..], &[("LINTEL_PMI", "none")]].concat();
    assert_eq!(verdict(&meant), "alone");
    let pmix = [("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "0")];
    assert!(
        verdict(&pmix).contains("PMIx can't be used"),
        "{}",
        verdict(&pmix)
    );
    let wrong = verdict(&[("LINTEL_PMI", "pmi3")]);
    assert!(wrong.contains("it takes pmi1, pmi2, pmix, none"), "{wrong}");
    let closed = verdict(&[("PMI_FD", "999"), ("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
    assert!(
        closed.contains("connection with the launcher failed"),
        "{closed}"
    );
}

#[test]
fn a_job_of_one_needs_no_pmix() {
    let alone = [
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "1"),
        ("PMIX_NAMESPACE", "n"),
        ("PMIX_RANK", "0"),
    ];
    assert_eq!(verdict(&alone), "alone");
}
