//! Jobs over several hosts. A stub stands in for ssh, so that each host is this machine
//! under another loopback address.

mod rig;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rig::{
    GOOD_AGENT, PROBE, Running, Scratch, agent, command_lines_with, eventually, line_of, output_of,
    read, run, runs, sorted, yod,
};
use rustix::process::{Pid, Signal, kill_process};

const SSH_STUB: &str = concat!(env!("CARGO_BIN_EXE_yod-probe"), " ssh-stub");
const TWO_HOSTS: [&str; 4] = [
    "--hosts",
    "a=127.0.0.2,b=127.0.0.3",
    "--launch-agent",
    SSH_STUB,
];

/// The arguments of a job over two hosts.
fn over_two<'a>(ranks: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&TWO_HOSTS[..], &["-n", ranks], more].concat()
}

/// Without what the stubs say.
fn messages(err: &str) -> String {
    let lines = err.lines().filter(|line| !line.starts_with("ssh-stub "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The processes of the stub to `host`, and of what it started there.
fn ssh_stub_to(host: &str, lines: &[String]) -> [Pid; 2] {
    let start = format!("ssh-stub {host} ");
    let line = lines.iter().find_map(|line| line.strip_prefix(&start));
    let mut pids = line.expect("each stub says so").split(' ');
    [(); 2].map(|()| Pid::from_raw(pids.next().unwrap().parse().unwrap()).unwrap())
}

/// A job whose ranks each leave a segment, print a line and wait.
fn waiting_job() -> (Running, [Vec<String>; 2]) {
    let script = "f=/dev/shm/lintel-$LINTEL_JOB-7f00000$((LINTEL_NODE_RANK+2))-$$; : > $f; \
                  echo $$ $f; exec sleep 1000";
    let mut job = Running::start(&over_two("4", &["sh", "-c", script]));
    let stubs = (0..2).map(|_| line_of(&mut job.stderr)).collect();
    let ranks = job.lines(4);
    (job, [stubs, ranks])
}

fn all_gone(ranks: &[String]) {
    for rank in ranks {
        let (pid, segment) = rank.split_once(' ').unwrap();
        eventually("the rank ends", || !runs(pid));
        eventually("its segment is removed", || !Path::new(segment).exists());
    }
}

#[test]
fn ranks_on_hosts_exchange_values_and_meet_at_barriers() {
    let (code, out, err) = run(&over_two("5", &[PROBE, "exchange"]));
    assert_eq!(
        (code, out.lines().count(), messages(&err)),
        (0, 5, "".into())
    );
}

#[test]
fn ranks_on_hosts_learn_where_they_are() {
    let script = "echo $PMI_RANK $PTL_IFACE $LINTEL_NODE_RANK/$LINTEL_NODES \
                  $MPI_LOCALRANKID/$MPI_LOCALNRANKS $PTL_LOG $COLOUR";
    let words = ["-x", "COLOUR=blue", "sh", "-c", script];
    let mut command = yod(&over_two("3", &words));
    let (code, out, _) = read(command.env("PTL_LOG", "warn").output().unwrap());
    let expected = [
        "0 127.0.0.2 0/2 0/2 warn blue",
        "1 127.0.0.2 0/2 1/2 warn blue",
        "2 127.0.0.3 1/2 0/1 warn blue",
    ];
    assert_eq!((code, sorted(&out)), (0, expected.to_vec()));
    let (_, out, _) = run(&over_two("3", &[PROBE, "mapping"]));
    assert_eq!(sorted(&out), ["(vector,(0,1,2),(1,1,1))"; 3]);
}

#[test]
fn a_file_of_hosts_gives_slots() {
    let scratch = Scratch::new("hostfile");
    let file = scratch.0.join("hosts");
    std::fs::write(
        &file,
        "a=127.0.0.2 slots=1 # small\n\nb=127.0.0.3 slots=2\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let words = ["--hostfile", file, "--launch-agent", SSH_STUB];
    let (code, out, _) = run(&[&words[..], &["sh", "-c", "echo $PTL_IFACE"]].concat());
    assert_eq!(code, 0);
    assert_eq!(sorted(&out), ["127.0.0.2", "127.0.0.3", "127.0.0.3"]);
    let (code, _, err) = run(&[&words[..], &["-n", "4", "true"]].concat());
    let refusal = "yod: 4 ranks are too many for hosts with 3 slots in all\n";
    assert_eq!((code, err.as_str()), (2, refusal));
}

#[test]
fn output_of_hosts_is_labelled_and_never_lost() {
    let (code, out, _) = run(&over_two("2", &["-l", "seq", "-f", "%06.0f", "1", "60000"]));
    assert_eq!((code, out.lines().count()), (0, 120_000));
    let whole = |line: &str| line.len() == 10 && line.starts_with('[');
    assert!(out.lines().all(whole));
}

#[test]
fn a_slow_reader_stops_the_output_of_hosts() {
    let mut job = Running::start(&over_two("2", &["seq", "1", "300000"]));
    job.lines(1);
    eventually("the ranks' output is held back", || {
        let pid = job.child.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.contains("State:\tS")
    });
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.lines().count()), (Some(0), 600_000 - 1));
}

#[test]
fn standard_input_goes_to_rank_0_on_its_host() {
    let mut child = yod(&over_two("2", &["-l", "cat"]))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "0123456789\n".repeat(20_000);
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let text = text.clone();
        move || input.write_all(text.as_bytes())
    });
    let output = output_of(child);
    writer.join().unwrap().unwrap();
    let (code, out, _) = read(output);
    assert_eq!((code, out.lines().count()), (0, 20_000));
    assert!(out.lines().all(|line| line == "[0] 0123456789"));
}

#[test]
fn the_first_failure_on_a_host_ends_the_job_on_all() {
    let script = "echo $$; [ $PMI_RANK = 3 ] && exit 9; exec sleep 1000";
    let (code, out, err) = run(&over_two("4", &["sh", "-c", script]));
    let expected = "yod: rank 3 ended with exit code 9; ending the job\n";
    assert_eq!((code, messages(&err).as_str()), (9, expected));
    assert!(!out.lines().any(runs));
    let (code, _, err) = run(&over_two("3", &[PROBE, "abort"]));
    assert!(
        code == 7 && err.contains("rank 1 aborted the job with code 7"),
        "{err}"
    );
}

#[test]
fn an_interrupt_reaches_ranks_on_hosts() {
    let script = "trap 'echo bye; exit 0' INT; echo ready; while :; do sleep 1000 & wait $!; done";
    let mut job = Running::start(&over_two("2", &["sh", "-c", script]));
    job.lines(2);
    job.signal(Signal::INT);
    let (status, out, _) = job.finish();
    assert_eq!((status.code(), out.as_str()), (Some(130), "bye\nbye\n"));
}

#[test]
fn a_lost_connection_ends_the_job_on_both_sides() {
    let (job, [stubs, ranks]) = waiting_job();
    let [stub, _] = ssh_stub_to("b", &stubs);
    kill_process(stub, Signal::KILL).unwrap();
    let (status, _, err) = job.finish();
    let expected = "yod: host b is lost: the connection was closed; the launch agent ended by \
                    SIGKILL (signal 9); ending the job\n";
    assert!(status.code() == Some(1) && err.contains(expected), "{err}");
    all_gone(&ranks);
}

#[test]
fn a_killed_remote_launcher_leaves_nothing_on_its_host() {
    let (job, [stubs, ranks]) = waiting_job();
    let [_, remote_yod] = ssh_stub_to("a", &stubs);
    let group = rustix::process::kill_process_group(remote_yod, Signal::KILL);
    group.unwrap();
    let (status, _, err) = job.finish();
    assert_eq!(status.code(), Some(1));
    assert!(
        err.contains("host a is lost: the connection was closed"),
        "{err}"
    );
    all_gone(&ranks);
}

#[test]
fn a_killed_launcher_leaves_nothing_on_any_host() {
    let (mut job, [_, ranks]) = waiting_job();
    job.signal(Signal::KILL);
    job.child.wait().unwrap();
    all_gone(&ranks);
}

#[test]
fn secret_name_and_program_of_a_job_are_on_no_command_line_of_the_launcher() {
    let script = "echo $LINTEL_SECRET $LINTEL_JOB; exec sleep 1000";
    let mut job = Running::start(&over_two("2", &["sh", "-c", script]));
    let stub = ssh_stub_to("a", &[line_of(&mut job.stderr), line_of(&mut job.stderr)]);
    let text = job.lines(2).remove(0);
    let words = std::fs::read(format!("/proc/{}/cmdline", stub[0].as_raw_nonzero())).unwrap();
    let words = String::from_utf8(words).unwrap();
    assert!(
        words.ends_with(" --remote\0") && !words.contains("sleep"),
        "{words}"
    );
    let (secret, id) = text.split_once(' ').unwrap();
    assert_eq!((secret.len(), id.len()), (64, 16), "{text}");
    assert_eq!(command_lines_with(secret), [""; 0]);
    assert_eq!(command_lines_with(id), [""; 0]);
    job.signal(Signal::TERM);
    assert_eq!(job.finish().0.code(), Some(143));
}

#[test]
fn hosts_that_cannot_start_ranks_say_why() {
    let (code, _, err) = run(&over_two("2", &["no-such-program"]));
    let expected = ": \"no-such-program\" was not found; ending the job";
    assert!(code == 127 && err.contains(expected), "{code} {err}");
    assert!(err.contains("yod: on host "), "{err}");
    let refusing = ["--hosts", "a=127.0.0.2", "--launch-agent", "false", "true"];
    let (code, _, err) = run(&refusing);
    let expected = "yod: host a is lost: the connection was closed; the launch agent ended with \
                    exit code 1\n";
    assert_eq!((code, err.as_str()), (1, expected));
    let (code, _, err) = run(&over_two("2", &["--remote-yod", "/no/yod", "true"]));
    assert!(code == 1 && err.contains("--remote-yod names it"), "{err}");
    let nobody = [
        "--hosts",
        "a=127.0.0.2",
        "--launch-agent",
        "no-such-agent",
        "true",
    ];
    assert_eq!(run(&nobody).0, 127);
}

#[test]
fn each_host_has_its_agent_in_generic_placement() {
    let scratch = Scratch::new("host-agents");
    let agent = agent(&scratch.0, GOOD_AGENT);
    let script = "echo $PTL_MODE ${LINTEL_SECRET-without secret}";
    let words = ["--mode", "generic", "--agent", &agent, "sh", "-c", script];
    let mut command = yod(&over_two("2", &words));
    command.env("LINTEL_SECRET", "of another job");
    let (code, out, _) = read(output_of(command.spawn().unwrap()));
    let text = "generic without secret\n".repeat(2);
    assert_eq!((code, out), (0, text));
    let log = std::fs::read_to_string(scratch.0.join("log")).unwrap();
    let expected = [
        "come --iface 127.0.0.2 --secret-stdin 64 0",
        "come --iface 127.0.0.3 --secret-stdin 64 0",
        "gone 127.0.0.2",
        "gone 127.0.0.3",
    ];
    assert_eq!(sorted(&log), expected);
}
