//! The programs of `tests/c/collectives`, compiled as a user would, over the
//! libraries of this build.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

// So that cargo builds the library that the programs load.
use portals as _;

/// Longer than any program takes on a loaded machine; they end themselves before.
const LIMIT: &str = "290";

/// Where this test's programs and libraries are.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ptlcoll");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        for (file, names) in [
            ("libportals.so", ["libportals.so", "libportals.so.4"]),
            ("libptlcoll.so", ["libptlcoll.so", "libptlcoll.so.1"]),
        ] {
            let library = built().join(file);
            assert!(library.is_file(), "cargo has built {}", library.display());
            for name in names {
                symlink(&library, folder.join(name)).expect("links can be made");
            }
        }
        for program in ["results", "busy", "failed"] {
            compile(&folder, program);
        }
        folder
    })
}

/// Cargo lays dependencies' libraries beside the tests.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent()
        .expect("a test lies in a folder")
        .to_path_buf()
}

fn compile(folder: &Path, program: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root
        .join("tests/c/collectives")
        .join(format!("{program}.c"));
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg("-o")
        .arg(folder.join(program))
        .arg(source)
        .arg("-L")
        .arg(folder)
        .args(["-lptlcoll", "-lportals"])
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{program}.c compiles"
    );
}

/// How a job is started.
struct Job {
    start: Command,
    ranks: usize,
    program: &'static str,
    arguments: Vec<&'static str>,
}

fn job(program: &'static str, ranks: usize) -> Job {
    let mut start = Command::new(example("start"));
    start.args(["-n", &ranks.to_string(), "--timeout", LIMIT]);
    Job {
        start,
        ranks,
        program,
        arguments: Vec::new(),
    }
}

/// Cargo builds examples with the tests.
fn example(name: &str) -> PathBuf {
    built().with_file_name("examples").join(name)
}

impl Job {
    fn with(mut self, name: &str, value: &str) -> Job {
        self.start.env(name, value);
        self
    }

    fn on_two_nodes(self) -> Job {
        self.on_nodes(2)
    }

    fn on_nodes(mut self, nodes: usize) -> Job {
        self.start.args(["--nodes", &nodes.to_string()]);
        self
    }

    /// Ranks with neighbouring numbers are on different nodes.
    fn in_turns(mut self) -> Job {
        self.start.args(["--map", "cyclic"]);
        self
    }

    fn in_blocking_operations(mut self) -> Job {
        self.arguments.push("blocking");
        self
    }

    fn in_generic_placement(mut self) -> Job {
        let agent = example("agent");
        self.start.args(["--mode", "generic", "--agent"]).arg(agent);
        self
    }

    fn addressed_by_rank(mut self) -> Job {
        self.arguments.push("logical");
        self
    }

    fn ends_well(mut self) {
        self.start.arg(folder().join(self.program));
        let output = self.start.args(self.arguments).output();
        let output = output.expect("cargo has built the starter");
        assert!(output.status.success(), "{output:?}");
    }

    /// All ranks except the last, which kills itself, print that they found its failure.
    fn reports_the_failure(mut self) {
        self.start.arg("--keep-going");
        self.start.arg(folder().join(self.program));
        let output = self.start.args(&self.arguments).output();
        let output = output.expect("cargo has built the starter");
        let reports = String::from_utf8_lossy(&output.stdout).lines().count();
        assert_eq!(reports, self.ranks - 1, "{output:?}");
    }
}

#[test]
fn results_are_right_among_few_ranks() {
    for ranks in [1, 2, 5] {
        job("results", ranks).ends_well();
    }
}

#[test]
fn results_are_right_among_many_ranks() {
    for ranks in [7, 16] {
        job("results", ranks).ends_well();
    }
}

/// Those of one big node, which take turns here.
#[test]
fn results_are_right_among_more_ranks_than_a_node_has_processors() {
    job("results", 70).ends_well();
}

#[test]
fn results_are_right_whether_long_operations_are_copied_once_or_twice() {
    for (ranks, eager) in [(2, "0"), (5, "0"), (2, "18446744073709551615")] {
        job("results", ranks)
            .with("PTLCOLL_EAGER", eager)
            .ends_well();
    }
}

#[test]
fn a_value_of_eager_that_is_no_number_is_refused() {
    let mut job = job("results", 2).with("PTLCOLL_EAGER", "64k").start;
    let output = job.arg(folder().join("results")).output();
    let output = output.expect("cargo has built the starter");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("PTLCOLL_EAGER is \"64k\""), "{errors}");
}

#[test]
fn results_are_right_if_the_library_performs_the_steps_of_blocking_operations() {
    for ranks in [1, 2, 5, 7, 16] {
        job("results", ranks)
            .with("PTLCOLL_PROGRESS", "offloaded")
            .ends_well();
    }
}

#[test]
fn results_are_right_if_the_host_performs_the_steps() {
    for ranks in [2, 3, 5] {
        job("results", ranks)
            .with("PTLCOLL_PROGRESS", "host")
            .ends_well();
    }
}

#[test]
fn results_are_right_if_many_hosts_perform_the_steps() {
    for ranks in [7, 16] {
        job("results", ranks)
            .with("PTLCOLL_PROGRESS", "host")
            .ends_well();
    }
}

#[test]
fn results_are_right_if_the_agent_has_the_engines() {
    job("results", 3).in_generic_placement().ends_well();
    job("results", 3)
        .in_generic_placement()
        .with("PTLCOLL_PROGRESS", "host")
        .ends_well();
}

#[test]
fn results_are_right_if_processes_are_addressed_by_rank() {
    job("results", 3).addressed_by_rank().ends_well();
    job("results", 2)
        .addressed_by_rank()
        .with("PTLCOLL_PROGRESS", "host")
        .ends_well();
}

#[test]
fn results_are_right_between_two_nodes() {
    job("results", 4)
        .with("PTL_NAL", "udp")
        .on_two_nodes()
        .ends_well();
}

/// Ranks of a node share memory, and the first of each node sends messages to those of the others.
#[test]
fn results_are_right_among_nodes_with_several_ranks_each() {
    for (ranks, nodes) in [(5, 2), (7, 3)] {
        job("results", ranks)
            .with("PTL_NAL", "udp")
            .on_nodes(nodes)
            .ends_well();
        job("results", ranks).on_nodes(nodes).in_turns().ends_well();
    }
}

#[test]
fn results_are_right_among_nodes_if_the_library_performs_the_steps_of_blocking_operations() {
    job("results", 5)
        .with("PTLCOLL_PROGRESS", "offloaded")
        .on_two_nodes()
        .ends_well();
}

#[test]
fn results_are_right_if_processes_on_several_nodes_are_addressed_by_rank() {
    job("results", 5)
        .on_two_nodes()
        .addressed_by_rank()
        .ends_well();
}

#[test]
fn a_rank_that_makes_no_call_delays_no_other() {
    job("busy", 3).ends_well();
    job("busy", 3).on_two_nodes().ends_well();
}

#[test]
fn the_other_ranks_find_a_failed_process() {
    job("failed", 4).reports_the_failure();
    job("failed", 4)
        .with("PTLCOLL_PROGRESS", "host")
        .reports_the_failure();
}

#[test]
fn the_other_ranks_find_a_failed_process_on_another_node() {
    job("failed", 4)
        .with("PTL_PEER_TIMEOUT", "2000")
        .on_two_nodes()
        .reports_the_failure();
}

/// The last rank is alone on its node, or another one leads there.
#[test]
fn the_other_ranks_find_a_failed_process_in_blocking_operations() {
    job("failed", 4)
        .in_blocking_operations()
        .reports_the_failure();
    for ranks in [3, 4] {
        job("failed", ranks)
            .with("PTL_PEER_TIMEOUT", "2000")
            .on_two_nodes()
            .in_blocking_operations()
            .reports_the_failure();
    }
}
