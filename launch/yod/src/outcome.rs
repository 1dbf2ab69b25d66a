//! How a job went: how each rank ended, and what ended the job early.

use std::fmt;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use lintel_pmi::server::StuckBarrier;
use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;

/// How a job went.
#[derive(Debug)]
pub struct Outcome {
    /// The value of `LINTEL_JOB`.
    pub job: String,
    /// Why the job ended early; `None` when every rank ended well.
    pub cause: Option<Cause>,
    /// From before the first rank's start to after the last one's end.
    pub elapsed: Duration,
    /// The outcome of each rank, by rank.
    pub ranks: Vec<RankOutcome>,
}

/// How a rank ended, and the time that it used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RankOutcome {
    /// The process id on its machine; 0 if it was never known.
    pub pid: i32,
    /// How the rank's process ended.
    pub end: End,
    /// Processor time in its own code, with that of children it waited for, in
    /// steps of the kernel's clock tick (10 ms as a rule).
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
}

impl RankOutcome {
    /// The outcome of a rank whose host became unreachable.
    pub(crate) const LOST: RankOutcome = RankOutcome {
        pid: 0,
        end: End::Lost,
        user: Duration::ZERO,
        system: Duration::ZERO,
    };
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By the signal of this number.
    Killed(i32),
    /// Not known: its host became unreachable, or couldn't start it.
    Lost,
}

/// Why a job ended early: the first thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A rank was killed, or exited with a code other than 0.
    Rank {
        /// The rank that failed first.
        rank: usize,
        /// How the rank's process ended.
        end: End,
    },
    /// A rank requested it through PMI.
    Aborted {
        /// The rank that asked.
        rank: usize,
        /// The exit code that it requested.
        code: i32,
        /// Its message, possibly empty.
        message: String,
    },
    /// A rank does not speak PMI.
    Protocol {
        /// The rank that broke the protocol.
        rank: usize,
        /// The rule of the protocol that the rank broke.
        error: lintel_pmi::server::Violation,
    },
    /// The agent of a node ended before its ranks.
    Agent {
        /// The address of the agent's node.
        address: Ipv4Addr,
        /// How the agent's process ended.
        end: End,
    },
    /// A host could start no rank.
    HostFailed {
        /// The host's name, as the launch agent takes it.
        host: String,
        /// The code that its own launcher would have ended with.
        code: u8,
        /// The message of the launcher on that host.
        text: String,
    },
    /// A host became unreachable.
    HostLost {
        /// The host's name, as the launch agent takes it.
        host: String,
        /// How the connection ended, and what the launch agent reported.
        why: String,
    },
    /// Ranks wait in a barrier for ranks that ended.
    Barrier(StuckBarrier),
    /// The job took longer than this.
    Timeout(Duration),
    /// A signal of this number reached the launcher.
    Interrupted(i32),
    /// The reader of the output has closed it.
    OutputClosed,
    /// Standard output can't be written, for the reason that the system gave.
    OutputFailed(String),
}

impl Outcome {
    /// What the launcher should exit with.
    pub fn exit_code(&self) -> u8 {
        self.cause.as_ref().map_or(0, Cause::exit_code)
    }

    /// A table of the times, as text.
    pub fn timing(&self) -> String {
        let mut text = format!("yod: elapsed {:.3} s\n", self.elapsed.as_secs_f64());
        let _ = writeln!(
            text,
            "yod: {:>5} {:>9} {:>9}  ended",
            "rank", "user s", "system s"
        );
        for (rank, outcome) in self.ranks.iter().enumerate() {
            let (user, system) = (outcome.user.as_secs_f64(), outcome.system.as_secs_f64());
            let _ = writeln!(
                text,
                "yod: {rank:>5} {user:>9.2} {system:>9.2}  {}",
                outcome.end
            );
        }
        text
    }
}

impl End {
    /// The code a shell would give.
    pub fn exit_code(self) -> u8 {
        let code = match self {
            End::Exited(code) => code,
            End::Killed(signal) => 128 + signal,
            End::Lost => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exited(code) => write!(f, "with exit code {code}"),
            End::Killed(signal) => write!(f, "by {}", SignalName(signal)),
            End::Lost => write!(f, "out of reach"),
        }
    }
}

impl Cause {
    /// The exit code for this cause; 0 only if a rank has ended the job with it,
    /// as OpenSHMEM's `shmem_global_exit(0)` does.
    pub fn exit_code(&self) -> u8 {
        match self {
            Cause::Rank { end, .. } => end.exit_code(),
            Cause::Aborted { code: 0, .. } => 0,
            // Codes are what a process can exit with: one byte. Another code than 0 stays
            // a failure.
            Cause::Aborted { code, .. } => u8::try_from(code & 0xff).unwrap_or(1).max(1),
            Cause::HostFailed { code, .. } => (*code).max(1),
            Cause::Protocol { .. }
            | Cause::Agent { .. }
            | Cause::HostLost { .. }
            | Cause::OutputFailed(_)
            | Cause::Barrier(_) => 1,
            Cause::Timeout(_) => 124,
            Cause::Interrupted(signal) => End::Killed(*signal).exit_code(),
            Cause::OutputClosed => End::Killed(SIGPIPE).exit_code(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Rank { rank, end } => write!(f, "rank {rank} ended {end}"),
            Cause::Aborted {
                rank,
                code,
                message,
            } if message.is_empty() => {
                write!(f, "rank {rank} aborted the job with code {code}")
            }
            Cause::Aborted {
                rank,
                code,
                message,
            } => {
                write!(f, "rank {rank} aborted the job with code {code}: {message}")
            }
            Cause::Protocol { rank, error } => {
                write!(f, "rank {rank} does not speak PMI: {error}")
            }
            Cause::Agent { address, end } => write!(f, "the agent of {address} ended {end}"),
            Cause::HostFailed { host, text, .. } => write!(f, "on host {host}: {text}"),
            Cause::HostLost { host, why } => write!(f, "host {host} is lost: {why}"),
            Cause::Barrier(StuckBarrier { waiting, left }) => write!(
                f,
                "{} in a barrier that {} left without entering",
                ranks(waiting, "waits", "wait"),
                ranks(left, "has", "have")
            ),
            Cause::Timeout(time) => write!(f, "the job took longer than {} s", time.as_secs_f64()),
            Cause::Interrupted(signal) => write!(f, "{} received", SignalName(*signal)),
            Cause::OutputClosed => write!(f, "the reader of the output has closed it"),
            Cause::OutputFailed(why) => write!(f, "standard output can't be written: {why}"),
        }
    }
}

/// A signal's name and number.
pub(crate) struct SignalName(pub(crate) i32);

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_name(self.0) {
            Some(name) => write!(f, "{name} (signal {})", self.0),
            None => write!(f, "signal {}", self.0),
        }
    }
}

const SIGPIPE: i32 = rustix::process::Signal::PIPE.as_raw();

fn ranks(numbers: &[usize], one: &str, many: &str) -> String {
    const MOST: usize = 8;
    let mut list: Vec<String> = numbers.iter().take(MOST).map(usize::to_string).collect();
    if numbers.len() > MOST {
        list.push(format!("… ({} in all)", numbers.len()));
    }
    match numbers.len() {
        1 => format!("rank {} {one}", list.join(", ")),
        _ => format!("ranks {} {many}", list.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_read_as_sentences() {
        let stuck = StuckBarrier {
            waiting: vec![0, 2],
            left: vec![1],
        };
        assert_eq!(
            Cause::Barrier(stuck).to_string(),
            "ranks 0, 2 wait in a barrier that rank 1 has left without entering"
        );
        let killed = Cause::Rank {
            rank: 3,
            end: End::Killed(11),
        };
        assert_eq!(killed.to_string(), "rank 3 ended by SIGSEGV (signal 11)");
        assert_eq!(killed.exit_code(), 139);
        let abort = |code| Cause::Aborted {
            rank: 0,
            code,
            message: String::new(),
        };
        let codes = [0, 1, 7, 256, -1].map(|code| abort(code).exit_code());
        assert_eq!(codes, [0, 1, 7, 1, 255]);
    }
}
