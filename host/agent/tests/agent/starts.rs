//! Starts of agents and of their clients: what they are given, what stands in their way,
//! ends before they are ready.

use crate::rig::{Rig, agent_command, client_command, first_word, request, secret_of, wait_until};
use lintel_fault::job::{Job, Worker};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn job() -> Job {
    let client = std::env::current_exe().expect("a test has a file");
    Job::new(client.to_str().expect("a path of words"))
}

/// An agent that a test kills however it ends.
struct Started(Child);

impl Started {
    fn of(command: &mut Command) -> Started {
        Started(command.spawn().expect("the agent starts"))
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it is our child");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lock_of(job: &Job) -> PathBuf {
    socket_of(job).with_extension("agent-lock")
}

fn socket_of(job: &Job) -> PathBuf {
    lintel_bridge::path(job.name(), job.places().process(0).nid)
}

#[test]
fn a_secret_on_standard_input_is_in_no_environment() {
    let job = job();
    let mut agent = Worker::start(agent_command(&job));
    let secret = secret_of(&job);
    agent.send(&secret);
    agent.expect("ready");
    let environment = std::fs::read(format!("/proc/{}/environ", agent.id()));
    let environment = environment.expect("it is our child");
    let words = String::from_utf8_lossy(&environment);
    assert!(words.contains(job.name()), "{words}");
    assert!(!words.contains("LINTEL_SECRET") && !words.contains(&secret));
}

#[test]
fn an_agent_with_the_secret_of_its_job_speaks_with_a_rank_of_another_node() {
    let client = std::env::current_exe().expect("a test has a file");
    let job = Job::over(client.to_str().expect("a path of words"), "udp");
    let mut command = agent_command(&job);
    let mut agent = Worker::start({
        command.env("PTL_NAL", "udp");
        command
    });
    agent.send(&secret_of(&job));
    agent.expect("ready");
    // Those of even numbers are on the first node, which the agent is of.
    let [mut generic, mut accelerated] =
        [(2, "generic"), (3, "accelerated")].map(|(number, mode)| {
            let mut command = client_command(&job, number, mode);
            command.env("PTL_NAL", "udp");
            job.places().export(&mut command, number);
            let mut client = Worker::start(command);
            assert_eq!(first_word(&mut client), "ready");
            client
        });
    request(&mut generic, "put 3 100000", "Ok 100000");
    request(&mut accelerated, "put 2 100000", "Ok 100000");
}

#[test]
fn no_secret_on_standard_input_is_an_error_that_says_what_is_wanted() {
    let mut agent = Worker::start(agent_command(&job()));
    agent.send("secret");
    agent.await_stderr("--secret-stdin reads the job's secret from standard input, one line of 64");
    assert_eq!(agent.wait().code(), Some(1));
    assert!(!agent.stderr().contains("secret: secret"));
}

#[test]
fn an_agent_that_waits_for_its_secret_ends_when_asked() {
    let mut agent = Started::of(agent_command(&job()).stdin(Stdio::piped()));
    agent.terminate();
    let mut status = None;
    wait_until("the agent ends", || {
        status = agent.0.try_wait().expect("it is our child");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.signal()), Some(15));
}

#[test]
fn a_fifo_in_the_place_of_the_lock_is_refused_at_once() {
    let job = job();
    let lock = lock_of(&job);
    mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there is /dev/shm");
    let mut agent = Worker::start(agent_command(&job));
    agent.send(&secret_of(&job));
    let status = agent.wait();
    std::fs::remove_file(&lock).expect("it is there");
    agent.await_stderr(&format!(
        "{}: it is no regular file: remove it",
        lock.display()
    ));
    assert_eq!(status.code(), Some(1));
}

#[test]
fn an_agent_whose_output_nobody_reads_ends_when_asked_and_leaves_nothing() {
    let job = job();
    let (_nobody, output) = rustix::pipe::pipe().expect("there are descriptors");
    let mut command = agent_command(&job);
    let mut agent = Started::of(command.stdin(Stdio::piped()).stdout(full(output)));
    let mut input = agent.0.stdin.take().expect("it is piped");
    writeln!(input, "{}", secret_of(&job)).expect("it reads");
    wait_until("it listens", || socket_of(&job).exists());
    agent.terminate();
    let mut status = None;
    wait_until("the agent ends", || {
        status = agent.0.try_wait().expect("it is our child");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(!socket_of(&job).exists() && !lock_of(&job).exists());
}

#[test]
fn a_client_follows_no_link_to_another_agent() {
    let rig = Rig::new();
    let other = job();
    symlink(socket_of(&rig.job), socket_of(&other)).expect("there is /dev/shm");
    let mut client = Worker::start(client_command(&other, 1, "generic"));
    assert_eq!(first_word(&mut client), "refused 5");
    let socket = socket_of(&other);
    client.await_stderr(&format!(
        "{} is in the place of the agent's socket",
        socket.display()
    ));
    std::fs::remove_file(socket).expect("it is there");
}

#[test]
fn a_client_without_a_descriptor_for_its_pages_says_so() {
    let rig = Rig::new();
    let client = client_command(&rig.job, 1, "generic");
    let mut command = Command::new("sh");
    // Standard streams, and the socket.
    command.args(["-c", "ulimit -n 4; exec \"$0\" \"$@\""]);
    command.arg(client.get_program()).args(client.get_args());
    let variables = client.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let mut client = Worker::start(command);
    assert_eq!(first_word(&mut client), "refused 5");
    client.await_stderr("too many files open for the agent's pages");
}

/// A pipe that takes no byte more, and blocks.
fn full(pipe: OwnedFd) -> OwnedFd {
    rustix::io::ioctl_fionbio(&pipe, true).expect("it is a pipe");
    while rustix::io::write(&pipe, &[0; 4096]) != Err(Errno::AGAIN) {}
    rustix::io::ioctl_fionbio(&pipe, false).expect("it is a pipe");
    pipe
}
