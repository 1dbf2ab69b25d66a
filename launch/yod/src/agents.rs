//! The agents of generic placement: one process per node that holds the engines of the
//! node's ranks. They start before the first rank and end after the last.
//!
//! An agent is `lintel-agent --iface ADDRESS --secret-stdin` with `LINTEL_JOB` in its
//! environment. It reads the job's secret from standard input, a line of 64 hexadecimal
//! digits, which no other process of the job is given. It writes the line `ready` to
//! standard output once ranks may connect, and exits on SIGTERM.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::error::Error;
use crate::outcome::End;
use crate::plan::{Plan, SECRET_STDIN, Scope};
use crate::poll::{is_readable, wait_for};
use crate::process::Process;
use crate::program;
use crate::signals::Signals;
use crate::tied::tied_command;
use crate::watchdog::Watchdog;

/// The running agents of a job on this machine, possibly none.
pub(crate) struct Agents {
    agents: Vec<Agent>,
}

struct Agent {
    address: Ipv4Addr,
    process: Process,
    /// While the agent holds the other end.
    output: Option<OwnedFd>,
    /// The beginning of its output, until it is ready.
    startup_output: Vec<u8>,
    ready: bool,
    /// Its end has been reported.
    end_reported: bool,
}

impl Agents {
    /// Starts those that the job needs and waits until each is ready.
    ///
    /// # Errors
    /// An agent that can't be started, ends, or isn't ready in time; a signal that
    /// asks for an end meanwhile. None is left then.
    pub(crate) fn start(
        plan: &Plan,
        scope: Scope,
        watchdog: &mut Watchdog,
        signals: &Signals,
    ) -> Result<Agents, Error> {
        let mut all = Agents { agents: Vec::new() };
        if !plan.needs_agents() {
            return Ok(all);
        }
        let program = find_agent(plan)?;
        for address in plan.agent_addresses(scope)? {
            let agent = Agent::start(plan, &program, address).map_err(|error| Error::System {
                what: "starting an agent",
                error,
            })?;
            watchdog.on_group(agent.process.group());
            all.agents.push(agent);
        }
        all.wait_until_ready(signals)?;
        Ok(all)
    }

    fn wait_until_ready(&mut self, signals: &Signals) -> Result<(), Error> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while let Some(late) = self.agents.iter().find(|agent| !agent.ready) {
            if Instant::now() >= deadline {
                let address = late.address;
                return Err(Error::AgentNotReady { address });
            }
            let mut fds: Vec<BorrowedFd> = signals.requests_to_end().map(|(_, fd)| fd).collect();
            fds.extend(self.agents.iter().flat_map(Agent::descriptors));
            wait_until(&fds, deadline).map_err(|error| Error::System {
                what: "waiting for the agents",
                error,
            })?;
            if let Some(number) = signals.take_request_to_end() {
                return Err(Error::Interrupted(number));
            }
            for agent in &mut self.agents {
                agent.on_output();
            }
            if let Some((address, end)) = self.take_end() {
                return Err(Error::AgentEnded { address, end });
            }
        }
        Ok(())
    }

    /// What to poll for reading: then call [`Agents::on_readable`].
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.agents
            .iter()
            .filter(|agent| !agent.end_reported)
            .flat_map(Agent::descriptors)
    }

    /// Reads what agents write, and returns the address and end of one that has ended.
    pub(crate) fn on_readable(&mut self) -> Option<(Ipv4Addr, End)> {
        for agent in &mut self.agents {
            agent.on_output();
        }
        self.take_end()
    }

    fn take_end(&mut self) -> Option<(Ipv4Addr, End)> {
        let mut left = self.agents.iter_mut().filter(|agent| !agent.end_reported);
        left.find_map(|agent| {
            let ended = agent.process.ended()?;
            agent.end_reported = true;
            Some((agent.address, ended.end))
        })
    }

    /// Ends all of them: by SIGTERM, and after `grace` by SIGKILL.
    pub(crate) fn end(self, grace: Duration) {
        let deadline = Instant::now() + grace;
        for agent in &self.agents {
            agent.process.signal(Signal::TERM);
        }
        for agent in &self.agents {
            // What still runs then is killed when dropped.
            while agent.process.ended().is_none() && Instant::now() < deadline {
                let _ = wait_until(&[agent.process.exit.as_fd()], deadline);
            }
        }
    }
}

impl Agent {
    fn start(plan: &Plan, program: &OsString, address: Ipv4Addr) -> io::Result<Agent> {
        let name = format!("agent {address}");
        let mut command = tied_command(&name, program, None);
        command.arg("--iface").arg(address.to_string());
        command.arg(SECRET_STDIN);
        plan.set_common_variables(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        if let Some(mut input) = process.take_input() {
            // A pipe takes this little at once. An agent that doesn't read it reports why.
            let _ = input.write_all(plan.line_for_agent().as_bytes());
        }
        let output = process.take_output().map(OwnedFd::from);
        Ok(Agent {
            address,
            process,
            output,
            startup_output: Vec::new(),
            ready: false,
            end_reported: false,
        })
    }

    fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let output = self.output.as_ref().map(AsFd::as_fd);
        output.into_iter().chain([self.process.exit.as_fd()])
    }

    /// Reads its output without blocking; after `ready`, the output is discarded.
    fn on_output(&mut self) {
        while let Some(pipe) = self
            .output
            .as_ref()
            .filter(|pipe| is_readable(pipe.as_fd()))
        {
            let mut bytes = [0; 512];
            match rustix::io::read(pipe, &mut bytes[..]) {
                Ok(count @ 1..) if !self.ready => {
                    self.startup_output.extend_from_slice(&bytes[..count])
                }
                Ok(1..) | Err(Errno::INTR) => {}
                Ok(0) | Err(_) => self.output = None,
            }
            self.ready |= self
                .startup_output
                .split(|&b| b == b'\n')
                .any(|line| line == b"ready");
        }
    }
}

/// Waits until one of `fds` is readable or `deadline` has come.
fn wait_until(fds: &[BorrowedFd], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let each = fds.iter().map(|fd| ((), *fd, PollFlags::IN));
    wait_for(&each.collect::<Vec<_>>(), Some(left)).map(drop)
}

/// The agent that was named, the one beside this binary, or the one in `PATH`.
fn find_agent(plan: &Plan) -> Result<OsString, Error> {
    if let Some(named) = &plan.agent {
        program::find(named).map_err(|why| Error::Agent(Box::new(why)))?;
        return Ok(named.clone());
    }
    let beside = std::env::current_exe().map(|this| this.with_file_name(AGENT));
    if let Ok(beside) = beside.as_deref().map(Path::as_os_str) {
        if program::find(beside).is_ok() {
            return Ok(beside.into());
        }
    }
    match program::find(AGENT.as_ref()) {
        Ok(()) => Ok(AGENT.into()),
        Err(_) => Err(Error::NoAgent),
    }
}

const AGENT: &str = "lintel-agent";
/// How long an agent may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
