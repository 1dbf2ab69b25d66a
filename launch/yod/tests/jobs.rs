//! Whole jobs, started by the yod binary. Each waits on what ranks say or on an
//! end, never on time alone.

mod rig;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rig::{
    GOOD_AGENT, PROBE, Running, Scratch, agent, command_lines_with, eventually, line_of,
    names_of_children, output_of, program, read, run, runs, sorted, within_patience, yod,
};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_setting_of_libfabric_is_the_users_if_there_is_one() {
    let script = "echo $FI_OFI_RXM_MSG_RX_SIZE";
    let (code, out, _) = run(&["-n", "1", "sh", "-c", script]);
    assert_eq!((code, out.trim()), (0, "128"));
    let set = [
        "-n",
        "1",
        "-x",
        "FI_OFI_RXM_MSG_RX_SIZE=64",
        "sh",
        "-c",
        script,
    ];
    let (code, out, _) = run(&set);
    assert_eq!((code, out.trim()), (0, "64"));
}

#[test]
fn ranks_get_distinct_numbers_and_one_job_id() {
    let script = "echo $PMI_RANK/$PMI_SIZE $LINTEL_JOB";
    let (code, out, _) = run(&["-n", "4", "sh", "-c", script]);
    let lines = sorted(&out);
    let (_, job) = lines[0].split_once(' ').unwrap();
    let expected: Vec<String> = (0..4).map(|rank| format!("{rank}/4 {job}")).collect();
    assert_eq!(
        (code, lines),
        (0, expected.iter().map(String::as_str).collect())
    );
    assert!(
        job.len() >= 16 && job.bytes().all(|b| b.is_ascii_hexdigit()),
        "{job}"
    );
}

#[test]
fn the_name_of_a_job_can_not_be_guessed_and_is_on_no_command_line() {
    let mut job = Running::start(&["-n", "2", "sh", "-c", "echo $LINTEL_JOB; exec sleep 1000"]);
    let id = job.lines(2).remove(0);
    let launcher = format!("{:06x}", job.child.id());
    let seen = command_lines_with(&id);
    job.signal(Signal::TERM);
    assert_eq!(job.finish().0.code(), Some(143));
    assert_eq!(seen, [""; 0]);
    assert!(!id.ends_with(&launcher), "{id} can be guessed");
}

#[test]
fn ranks_exchange_values_and_meet_at_barriers() {
    let (code, out, err) = run(&["-n", "5", PROBE, "exchange"]);
    assert_eq!((code, out.lines().count(), err.as_str()), (0, 5, ""));
}

#[test]
fn the_first_failure_gives_the_exit_code_and_ends_all() {
    let script = "[ $PMI_RANK = 1 ] && exit 3; exec sleep 1000";
    let (code, _, err) = run(&["-n", "3", "sh", "-c", script]);
    assert_eq!(
        (code, err.as_str()),
        (3, "yod: rank 1 ended with exit code 3; ending the job\n")
    );
}

#[test]
fn a_crash_gives_128_plus_the_signal_and_ends_all() {
    let script = "[ $PMI_RANK = 2 ] && kill -SEGV $$; exec sleep 1000";
    let (code, _, err) = run(&["-n", "3", "sh", "-c", script]);
    assert_eq!(code, 139);
    assert!(err.contains("rank 2 ended by SIGSEGV (signal 11)"), "{err}");
    let (code, _, err) = run(&["-n", "3", "-quiet", "sh", "-c", script]);
    assert_eq!((code, err.as_str()), (139, ""));
}

#[test]
fn one_rank_killed_from_outside_ends_all() {
    let mut job = Running::start(&["-n", "3", PROBE, "wait"]);
    let pids = job.lines(3);
    let victim = Pid::from_raw(pids[1].parse().unwrap()).unwrap();
    kill_process(victim, Signal::KILL).unwrap();
    let (status, _, err) = job.finish();
    assert_eq!(status.code(), Some(137));
    assert!(err.contains("by SIGKILL (signal 9)"), "{err}");
    assert!(!pids.iter().any(|pid| runs(pid)));
}

#[test]
fn the_others_go_on_on_request() {
    let script = "[ $PMI_RANK = 1 ] && exit 3; read line; echo $line";
    let args = ["-n", "2", "-keep-going", "sh", "-c", script];
    let mut job = Running::of(yod(&args).stdin(Stdio::piped()));
    assert_eq!(
        line_of(&mut job.stderr),
        "yod: rank 1 ended with exit code 3; the others go on"
    );
    job.child
        .stdin
        .take()
        .unwrap()
        .write_all(b"still here\n")
        .unwrap();
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.as_str()), (Some(3), "still here\n"));
}

#[test]
fn ranks_that_ignore_the_gentle_signal_are_killed_after_a_grace() {
    let script = "trap '' TERM; echo $$; while :; do sleep 1; done";
    let mut job = Running::start(&["-n", "1", "sh", "-c", script]);
    let pid = job.lines(1).remove(0);
    let started = Instant::now();
    job.signal(Signal::TERM);
    let (status, _, _) = job.finish();
    assert_eq!(status.code(), Some(143));
    assert!(started.elapsed() >= yod::GRACE && !runs(&pid));
}

#[test]
fn what_ranks_started_ends_with_them() {
    let script = "sleep 1000 & echo $!; [ $PMI_RANK = 1 ] && exit 3; wait";
    let (code, out, _) = run(&["-n", "2", "sh", "-c", script]);
    assert_eq!(code, 3);
    assert!(!out.lines().any(runs));
    let (code, out, _) = run(&["-n", "2", "sh", "-c", "sleep 1000 & echo $!"]);
    assert_eq!((code, out.lines().count()), (0, 2));
    assert!(!out.lines().any(runs));
}

#[test]
fn a_killed_launcher_takes_processes_and_shared_memory_along() {
    let script = "sleep 1000 & : > /dev/shm/lintel-$LINTEL_JOB-1-$$; \
                  echo $! /dev/shm/lintel-$LINTEL_JOB-1-$$ $$; wait";
    let mut job = Running::start(&["-n", "2", "sh", "-c", script]);
    let lines = job.lines(2);
    job.signal(Signal::KILL);
    job.child.wait().unwrap();
    for line in &lines {
        let [child, segment, rank] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!()
        };
        eventually("the rank ends", || !runs(rank));
        eventually("its child ends", || !runs(child));
        eventually("its segment is removed", || !Path::new(segment).exists());
    }
}

#[test]
fn what_crashed_ranks_left_in_shared_memory_is_removed() {
    let other = format!("/dev/shm/lintel-other{}-1-1", std::process::id());
    std::fs::write(&other, "").unwrap();
    let (code, out, _) = run(&["-n", "3", PROBE, "segment"]);
    let kept = std::fs::remove_file(&other);
    assert_eq!((code, out.lines().count()), (134, 3));
    assert!(!out.lines().any(|path| Path::new(path).exists()));
    assert!(kept.is_ok(), "another job's segment stays");
}

#[test]
fn a_rank_that_leaves_others_in_a_barrier_is_a_failure() {
    let (code, _, err) = run(&["-n", "3", PROBE, "leave"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("barrier that rank 0 has left without entering"),
        "{err}"
    );
}

#[test]
fn an_abort_ends_all_with_its_code() {
    let (code, _, err) = run(&["-n", "3", PROBE, "abort"]);
    assert_eq!(code, 7);
    assert!(err.contains("rank 1 aborted the job with code 7"), "{err}");
}

#[test]
fn an_abort_with_code_0_ends_all_and_is_no_failure() {
    let (code, _, err) = run(&["-n", "3", PROBE, "abort", "0"]);
    let text = "yod: rank 1 aborted the job with code 0; ending the job\n";
    assert_eq!((code, err.as_str()), (0, text));
}

#[test]
fn a_rank_that_speaks_no_pmi_ends_the_job() {
    let (code, _, err) = run(&["-n", "2", PROBE, "garbage"]);
    assert_eq!(code, 1);
    assert!(err.contains("rank 0 does not speak PMI:"), "{err}");
}

const TRAPS: &str = "trap 'echo user; exit 0' USR1; trap 'echo bye; exit 0' INT; \
                     echo ready; while :; do sleep 1000 & wait $!; done";

#[test]
fn user_signals_reach_every_rank() {
    let mut job = Running::start(&["-n", "2", "sh", "-c", TRAPS]);
    job.lines(2);
    job.signal(Signal::USR1);
    // The shells report their children's end on standard error.
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.as_str()), (Some(0), "user\nuser\n"));
}

#[test]
fn an_interrupt_ends_gently() {
    let mut job = Running::start(&["-n", "2", "sh", "-c", TRAPS]);
    job.lines(2);
    job.signal(Signal::INT);
    let (status, out, err) = job.finish();
    assert_eq!((status.code(), out.as_str()), (Some(130), "bye\nbye\n"));
    assert_eq!(err, "yod: SIGINT (signal 2) received; ending the job\n");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let script = "trap '' INT; trap 'echo asked' TERM; echo $$; while :; do sleep 1; done";
    let mut job = Running::start(&["-n", "2", "sh", "-c", script]);
    let pids = job.lines(2);
    job.signal(Signal::INT);
    line_of(&mut job.stderr);
    job.signal(Signal::INT);
    // One interrupt is followed by SIGTERM and only then by SIGKILL.
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.as_str()), (Some(130), ""));
    assert!(!pids.iter().any(|pid| runs(pid)));
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let (code, _, err) = run(&["-n", "2", "-timeout", "0.2", "sleep", "1000"]);
    assert_eq!(
        (code, err.as_str()),
        (124, "yod: the job took longer than 0.2 s; ending the job\n")
    );
}

#[test]
fn lines_are_labelled_by_rank() {
    let script = "printf 'out\\nlast'; echo err >&2";
    let (code, out, err) = run(&["-n", "2", "-l", "sh", "-c", script]);
    assert_eq!(code, 0);
    assert_eq!(sorted(&out), ["[0] last", "[0] out", "[1] last", "[1] out"]);
    assert_eq!(sorted(&err), ["[0] err", "[1] err"]);
}

#[test]
fn output_is_never_lost_nor_torn() {
    let (code, out, _) = run(&["-n", "3", "seq", "-f", "%06.0f", "1", "60000"]);
    assert_eq!((code, out.lines().count()), (0, 180_000));
    assert!(out.lines().all(|line| line.len() == 6));
}

#[test]
fn output_that_can_not_be_written_is_reported_with_the_reason() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = yod(&["-n", "2", "sh", "-c", "echo much"]);
    command.stdout(full.expect("Linux has it"));
    let (code, _, err) = read(output_of(command.spawn().unwrap()));
    assert_eq!(code, 1);
    let expected = "yod: standard output can't be written: No space left on device";
    assert!(err.starts_with(expected), "{err}");
}

#[test]
fn output_waits_for_a_slow_reader() {
    let mut job = Running::start(&["-n", "2", "seq", "1", "400000"]);
    job.lines(1);
    // Time itself is the test: no step of ending a job may drop output meanwhile.
    std::thread::park_timeout(yod::GRACE + Duration::from_secs(4));
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.lines().count()), (Some(0), 800_000 - 1));
}

#[test]
fn a_reader_that_leaves_ends_the_job() {
    let mut job = Running::start(&["-n", "2", "yes"]);
    job.lines(1);
    drop(job.stdout);
    let status = within_patience(job.child, |child| child.wait().unwrap());
    assert_eq!(status.code(), Some(141));
}

#[test]
fn standard_input_goes_to_rank_0() {
    let mut child = yod(&["-n", "2", "-l", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = output_of(child);
    assert_eq!(read(output), (0, "[0] hello\n".into(), String::new()));
}

#[test]
fn a_rank_holds_no_socket_of_another() {
    let script = "ls -l /proc/$$/fd | grep -c socket:";
    let (_, out, _) = run(&["-n", "3", "sh", "-c", script]);
    assert_eq!(out, "1\n1\n1\n");
}

#[test]
fn variables_of_an_outer_launcher_do_not_reach_ranks() {
    let script = "echo $PMIX_RANK$PMI_ID$LINTEL_PMI$PMI_RANK";
    let mut command = yod(&["-n", "1", "sh", "-c", script]);
    command
        .env("LINTEL_PMI", "pmix")
        .env("PMIX_RANK", "7")
        .env("PMI_ID", "8")
        .env("PMI_RANK", "9");
    let output = command.output().unwrap();
    assert_eq!(read(output), (0, "0\n".into(), String::new()));
}

#[test]
fn ranks_are_bound_to_cores_on_request() {
    let script = "grep Cpus_allowed_list /proc/self/status";
    let (_, free, _) = run(&["sh", "-c", script]);
    let (code, out, _) = run(&["-n", "3", "-l", "--bind", "sh", "-c", script]);
    let cores: Vec<&str> = sorted(&out)
        .iter()
        .map(|l| l.rsplit('\t').next().unwrap())
        .collect();
    assert!(
        code == 0 && cores.iter().all(|core| core.parse::<usize>().is_ok()),
        "{out}"
    );
    let several = free.contains([',', '-']);
    assert_eq!(cores[0] != cores[1], several, "{free}{out}");
}

#[test]
fn times_are_reported_on_request() {
    let (code, _, err) = run(&["-n", "2", "-timing", "true"]);
    assert_eq!((code, err.lines().count()), (0, 4));
    assert!(err.starts_with("yod: elapsed "), "{err}");
}

#[test]
fn a_job_can_be_shown_without_running() {
    let (code, out, _) = run(&["-n", "2", "-show", "no-such-program", "a b"]);
    assert_eq!((code, out.lines().count()), (0, 2));
    assert!(
        out.lines()
            .all(|line| line.ends_with("no-such-program 'a b'")),
        "{out}"
    );
}

#[test]
fn programs_that_cannot_run_are_reported_once() {
    let (code, _, err) = run(&["-n", "9", "no-such-program"]);
    assert_eq!(
        (code, err.as_str()),
        (127, "yod: \"no-such-program\" was not found\n")
    );
    let (code, _, err) = run(&["--mode", "generic", "--agent", "/no/agent", "true"]);
    let expected = "yod: --agent names a program that can't be run: \"/no/agent\" was not found\n";
    assert_eq!((code, err.as_str()), (127, expected));
    let (code, ..) = run(&["-n", "9", "/etc/passwd"]);
    assert_eq!(code, 126);
    let (code, ..) = run(&["-n", "0", "true"]);
    assert_eq!(code, 2);
}

#[test]
fn the_watchdog_has_a_name_of_its_own() {
    let mut job = Running::start(&["sh", "-c", "echo runs; exec sleep 1000"]);
    job.lines(1);
    let pid = job.child.id();
    eventually("the watchdog has named itself", || {
        names_of_children(pid).contains(&"yod-guard".into())
    });
    job.signal(Signal::TERM);
    assert_eq!(job.finish().0.code(), Some(143));
}

#[test]
fn two_hundred_ranks_start_and_end() {
    let (code, out, _) = run(&["-n", "200", "sh", "-c", "echo $PMI_RANK"]);
    let mut ranks: Vec<usize> = out.lines().map(|line| line.parse().unwrap()).collect();
    ranks.sort_unstable();
    assert_eq!((code, ranks), (0, (0..200).collect()));
}

#[test]
fn another_binary_starts_jobs_and_keeps_its_own_signals() {
    let mut launcher = Running::of(program(PROBE).arg("library"));
    let lines = launcher.lines(5);
    assert!(
        lines[..4].iter().all(|line| line.starts_with("rank ")),
        "{lines:?}"
    );
    assert_eq!(lines[4], "idle");
    launcher.signal(Signal::INT);
    assert_eq!(launcher.finish().0.signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn ranks_are_placed_on_virtual_nodes_in_blocks_or_in_turns() {
    let script = "echo $PMI_RANK $PTL_IFACE $LINTEL_NODE_RANK/$LINTEL_NODES \
                  $MPI_LOCALRANKID/$MPI_LOCALNRANKS";
    let (code, out, _) = run(&["-n", "3", "--nodes", "2", "sh", "-c", script]);
    let expected = [
        "0 127.0.0.1 0/2 0/2",
        "1 127.0.0.1 0/2 1/2",
        "2 127.0.0.2 1/2 0/1",
    ];
    assert_eq!((code, sorted(&out)), (0, expected.to_vec()));
    let first = ["--first-address", "127.0.3.7", "--map", "cyclic"];
    let words = [
        &["--nodes", "2", "-n", "3"][..],
        &first,
        &["sh", "-c", script],
    ]
    .concat();
    let (code, out, _) = run(&words);
    let expected = [
        "0 127.0.3.7 0/2 0/2",
        "1 127.0.3.8 1/2 0/1",
        "2 127.0.3.7 0/2 1/2",
    ];
    assert_eq!((code, sorted(&out)), (0, expected.to_vec()));
}

#[test]
fn ranks_learn_through_pmi_who_shares_their_node() {
    let (code, out, _) = run(&["-n", "3", "--nodes", "2", PROBE, "mapping"]);
    assert_eq!(code, 0);
    assert_eq!(sorted(&out), ["(vector,(0,1,2),(1,1,1))"; 3]);
}

#[test]
fn more_nodes_than_ranks_are_refused() {
    let (code, _, err) = run(&["-n", "2", "--nodes", "3", "true"]);
    let text = "yod: 3 nodes are too many for 2 ranks: each node runs at least one\n";
    assert_eq!((code, err.as_str()), (2, text));
}

#[test]
fn a_job_on_one_node_leaves_the_address_alone() {
    let mut command = yod(&["-n", "2", "sh", "-c", "echo $PTL_IFACE $LINTEL_NODES"]);
    let output = command.env("PTL_IFACE", "10.1.2.3").output().unwrap();
    assert_eq!(read(output).1, "10.1.2.3 1\n10.1.2.3 1\n");
}

#[test]
fn segments_of_every_virtual_node_are_removed() {
    let script = "f=/dev/shm/lintel-$LINTEL_JOB-$PTL_IFACE-1; : > $f; echo $f";
    let (code, out, _) = run(&["-n", "2", "--nodes", "2", "sh", "-c", script]);
    assert_eq!((code, out.lines().count()), (0, 2));
    assert!(!out.lines().any(|path| Path::new(path).exists()), "{out}");
}

#[test]
fn each_job_has_a_secret_of_its_own_that_is_not_shown() {
    let script = "echo $LINTEL_SECRET";
    let secret_of = |ranks: &str| {
        let (code, out, _) = run(&["-n", ranks, "sh", "-c", script]);
        let lines: Vec<String> = out.lines().map(str::to_string).collect();
        assert!(
            code == 0 && lines.iter().all(|line| *line == lines[0]),
            "{out}"
        );
        lines[0].clone()
    };
    let secret = secret_of("2");
    assert!(
        secret.len() == 64 && secret.bytes().all(|b| b.is_ascii_hexdigit()),
        "{secret}"
    );
    assert_ne!(secret, secret_of("1"));
    let (_, shown, _) = run(&["-n", "1", "--show", "sh", "-c", "true"]);
    assert!(shown.contains("LINTEL_SECRET='<secret>'"), "{shown}");
    let (_, shown, _) = run(&["--mode", "generic", "--show", "sh", "-c", "true"]);
    let agent = shown.lines().next().unwrap();
    assert!(agent.starts_with("echo '<secret>' | env "), "{shown}");
    assert!(!shown.contains("LINTEL_SECRET"), "{shown}");
}

/// An agent that keeps its secret and its standard input's name in `log`, and its
/// environment beside it.
const SPYING_AGENT: &str = "read secret; echo $secret $(readlink /proc/$$/fd/0) >> $log; \
     tr '\\0' '\\n' < /proc/$$/environ >> $log.environ; echo ready; exec sleep 1000";

/// A rank that prints its whole environment and arguments.
const SPYING_RANK: &str = "env; tr '\\0' '\\n' < /proc/$$/environ; cat /proc/$$/cmdline; \
     for fd in /proc/$$/fd/*; do readlink $fd; done; echo end";

#[test]
fn ranks_of_agents_are_not_given_the_secret_and_the_agents_have_it_in_no_environment() {
    let scratch = Scratch::new("agent-secret");
    let agent = agent(&scratch.0, SPYING_AGENT);
    let nodes = [
        "-n", "4", "--nodes", "2", "--mode", "generic", "--agent", &agent,
    ];
    let words = [&nodes[..], &["-x", "LINTEL_SECRET=exported"]].concat();
    let mut command = yod(&[&words[..], &["sh", "-c", SPYING_RANK]].concat());
    command.env("LINTEL_SECRET", "inherited");
    let (code, out, err) = read(output_of(command.spawn().unwrap()));
    assert_eq!((code, out.matches("end\n").count()), (0, 4), "{err}");
    let log = std::fs::read_to_string(scratch.0.join("log")).unwrap();
    let environments = std::fs::read_to_string(scratch.0.join("log.environ")).unwrap();
    let text: Vec<(&str, &str)> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let [(secret, pipe), (same, other_pipe)] = text[..] else {
        panic!("two agents were started: {log}")
    };
    assert!(
        secret == same && secret.len() == 64 && pipe.starts_with("pipe:"),
        "{log}"
    );
    for given in [out, environments] {
        assert!(given.contains("LINTEL_JOB="), "{given}");
        for word in [secret, pipe, other_pipe, "LINTEL_SECRET"] {
            assert!(!given.contains(word), "{word} in {given}");
        }
    }
    assert_eq!(command_lines_with(secret), [""; 0]);
}

#[test]
fn agents_come_before_the_ranks_and_go_after_them() {
    let scratch = Scratch::new("agents");
    let agent = agent(&scratch.0, GOOD_AGENT);
    let log = scratch.0.join("log");
    let script = format!("echo rank $LINTEL_NODE_RANK >> {}", log.display());
    let nodes = ["--mode", "generic", "--agent", &agent, "--nodes", "2"];
    let (code, _, err) = run(&[&nodes[..], &["sh", "-c", &script]].concat());
    let text = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The shells report their children's end on standard error.
    assert!(!err.contains("yod"), "{err}");
    assert_eq!((code, lines.len()), (0, 6), "{text}");
    let come = [
        "come --iface 127.0.0.1 --secret-stdin 64 0",
        "come --iface 127.0.0.2 --secret-stdin 64 0",
    ];
    assert_eq!(sorted(&lines[..2].join("\n")), come);
    assert_eq!(sorted(&lines[2..4].join("\n")), ["rank 0", "rank 1"]);
    assert_eq!(
        sorted(&lines[4..].join("\n")),
        ["gone 127.0.0.1", "gone 127.0.0.2"]
    );
}

#[test]
fn an_agent_that_ends_early_ends_the_job() {
    let scratch = Scratch::new("agent-ends");
    let job = |script: &str, rank: &str| {
        let agent = agent(&scratch.0, script);
        run(&["--mode", "generic", "--agent", &agent, "sh", "-c", rank])
    };
    let (code, out, err) = job("exit 3", "echo started");
    let text = "yod: the agent of 127.0.0.1 ended with exit code 3 before the ranks started\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, "", text));
    let agent = "echo ready; while ! [ -e $log ]; do sleep 0.01; done; exit 3";
    let log = scratch.0.join("log").display().to_string();
    let (code, _, err) = job(agent, &format!(": > {log}; exec sleep 1000"));
    let text = "yod: the agent of 127.0.0.1 ended with exit code 3\n";
    assert_eq!((code, err.as_str()), (1, text));
}

#[test]
fn an_interrupt_while_agents_get_ready_leaves_nothing() {
    let scratch = Scratch::new("agent-slow");
    let agent = agent(&scratch.0, "echo $$ >&2; exec sleep 1000");
    let mut job = Running::start(&["--mode", "generic", "--agent", &agent, "true"]);
    let pid = line_of(&mut job.stderr);
    job.signal(Signal::INT);
    let (status, _, err) = job.finish();
    assert_eq!(status.code(), Some(130));
    assert_eq!(err, "yod: SIGINT (signal 2) received\n");
    assert!(!runs(&pid));
}

#[test]
fn a_killed_launcher_takes_its_agents_along() {
    let scratch = Scratch::new("agent-orphan");
    let agent = agent(&scratch.0, "echo $$ >&2; echo ready; exec sleep 1000");
    let rank = ["sleep", "1000"];
    let words = [&["--mode", "generic", "--agent", &agent], &rank[..]].concat();
    let mut job = Running::start(&words);
    let pid = line_of(&mut job.stderr);
    job.signal(Signal::KILL);
    job.child.wait().unwrap();
    eventually("the agent ends", || !runs(&pid));
}
