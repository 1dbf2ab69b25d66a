//! The command line: yod's old spellings are rewritten, then clap parses it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueEnum};

use crate::allocation::{self, Allocation};
use crate::error::Error;
use crate::host_list::{self, HostSpec};
use crate::job::{Bind, Job};
use crate::layout::{Map, Nodes};
use crate::program;

/// Start the ranks of a parallel program, here or on other machines.
#[derive(Clone, Debug, Parser)]
#[command(name = "yod", version, about, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
pub struct Options {
    /// Number of ranks to start [default: one per node or slot]
    #[arg(
        short = 'n', long = "ranks", visible_aliases = ["np", "sz"], value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=MAX_RANKS)
    )]
    ranks: Option<u32>,

    /// Number of virtual nodes: loopback addresses, each with shared memory of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RANKS))]
    nodes: Option<u32>,

    /// Hosts to run on, each NAME[=ADDRESS][:SLOTS], separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["nodes", "first_address", "hostfile"])]
    hosts: Vec<HostSpec>,

    /// File of hosts to run on, one per line, optionally followed by slots=N
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "first_address"])]
    hostfile: Option<PathBuf>,

    /// Ignore the hosts that Slurm, PBS or LSF has allocated, and start all ranks here
    #[arg(long)]
    no_allocation: bool,

    /// Program that starts yod on a host; host name and command are appended, or {host} stands
    /// for the name [default: ssh; srun or blaunch in an allocation]
    #[arg(long, value_name = "COMMAND")]
    launch_agent: Option<String>,

    /// Path of yod on other hosts [default: the path of this one]
    #[arg(long, value_name = "PATH")]
    remote_yod: Option<OsString>,

    /// Set a variable for every rank, to VALUE or to its value here
    #[arg(short = 'x', long, value_name = "NAME[=VALUE]")]
    export: Vec<String>,

    /// Order in which ranks are assigned to nodes
    #[arg(long, value_enum, value_name = "ORDER", default_value = "block")]
    map: Map,

    /// Address of the first virtual node; the others follow it [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    first_address: Option<Ipv4Addr>,

    /// Where the ranks' engines run: in the ranks, or in an agent per node (sets PTL_MODE)
    #[arg(long, value_enum, value_name = "PLACEMENT")]
    mode: Option<Mode>,

    /// Networks that carry messages: shm, udp, ofi or a list of them (sets PTL_NAL)
    #[arg(long, value_name = "LIST", value_parser = ["shm", "udp", "ofi"], value_delimiter = ',')]
    nal: Vec<String>,

    /// Which processes share a connection between nodes (sets PTL_CONN)
    #[arg(long, value_enum, value_name = "MODEL")]
    conn: Option<Conn>,

    /// Turn large memory that ranks expose into memory that peers can map (sets PTL_SHARE_MEMORY)
    #[arg(long)]
    share_memory: bool,

    /// The agent of generic placement [default: lintel-agent beside yod or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    agent: Option<OsString>,

    /// Begin each line of output with the rank that wrote it
    #[arg(short, long)]
    label: bool,

    /// Print elapsed time, and user and system time of each rank, at the end
    #[arg(long)]
    pub timing: bool,

    /// Do not report why a job ended early
    #[arg(short, long)]
    quiet: bool,

    /// Print the commands that would be run, with their environment, and exit
    #[arg(long)]
    pub show: bool,

    /// Pin rank i to core i, modulo the cores that yod may use
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none")]
    #[arg(num_args = 0..=1, require_equals = false, default_missing_value = "core")]
    bind: Bind,

    /// End the job after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// After this many seconds, print once what each rank waits for
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    dump_after: Option<Duration>,

    /// Let the other ranks continue if one fails
    #[arg(short, long)]
    keep_going: bool,

    /// The program, found as a shell finds it, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Where the ranks' engines run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Mode {
    /// In each rank's own process
    Accelerated,
    /// In an agent per node
    Generic,
}

/// Which processes share a connection between nodes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Conn {
    /// One connection per pair of processes
    Rc,
    /// One connection per process and remote node
    Xrc,
    /// One connection per pair of nodes
    Node,
}

/// The command line's shape, for man pages and completions.
pub fn command() -> clap::Command {
    Options::command()
}

impl Options {
    /// Parses this process's arguments; prints help or the error and exits if
    /// there is nothing to run.
    pub fn from_command_line() -> Options {
        Options::parse_from(normalise(std::env::args_os()))
    }

    /// The job that the command line describes.
    ///
    /// # Errors
    /// A host can't be used, or a variable to be exported isn't set.
    pub fn job(&self) -> Result<Job, Error> {
        if let Some(cores) = self.cores_behind_bind() {
            return Err(Error::BindList(cores));
        }
        let allocation = self.allocation()?;
        let (nodes, slots) = self.nodes(allocation.as_ref())?;
        let ranks = self.ranks.map_or(slots, |n| n as usize);
        if matches!(nodes, Nodes::Local) && allocation.is_some() && ranks > slots {
            return Err(Error::TooFewSlots { slots, ranks });
        }
        let mut job = Job::new(ranks, &self.command[0]);
        job.args = self.command[1..].to_vec();
        job.env = self.variables()?;
        job.nodes = nodes;
        job.map = self.map;
        job.agent = self.agent.clone();
        job.launch_agent = match (&self.launch_agent, allocation) {
            (Some(words), _) => words.split_whitespace().map(OsString::from).collect(),
            (None, Some(allocation)) => allocation.launch_agent,
            (None, None) => Vec::new(),
        };
        job.remote_yod = self.remote_yod.clone();
        job.bind = self.bind;
        job.label = self.label;
        job.timeout = self.timeout;
        job.dump_after = self.dump_after;
        job.keep_going = self.keep_going;
        job.quiet = self.quiet;
        Ok(job)
    }

    /// A list of cores behind `--bind`, which takes none: it is read as the program.
    fn cores_behind_bind(&self) -> Option<String> {
        let is_followed = self.bind == Bind::Core && self.command.len() > 1;
        let word = self.command[0].to_str().filter(|_| is_followed)?;
        let is_list = word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| matches!(c, '0'..='9' | ',' | '-'));
        (is_list && program::find(word.as_ref()).is_err()).then(|| word.into())
    }

    /// What a batch system has allocated, if the command line names no nodes.
    fn allocation(&self) -> Result<Option<Allocation>, Error> {
        let named = !self.hosts.is_empty() || self.hostfile.is_some();
        let local = self.nodes.is_some() || self.first_address.is_some();
        match named || local || self.no_allocation {
            true => Ok(None),
            false => allocation::find_in(|name| std::env::var(name).ok()),
        }
    }

    /// The nodes, and the ranks that they take by default.
    fn nodes(&self, allocation: Option<&Allocation>) -> Result<(Nodes, usize), Error> {
        let hosts = match (&self.hostfile, allocation) {
            (Some(path), _) => host_list::read(path)?,
            (None, Some(allocation)) => allocation.hosts.clone(),
            (None, None) => self.hosts.clone(),
        };
        let slots = hosts.iter().map(HostSpec::slots).sum();
        if allocation.is_some() && host_list::is_this_machine(&hosts) {
            return Ok((Nodes::Local, slots));
        }
        if !hosts.is_empty() {
            return Ok((host_list::resolve(hosts).map(Nodes::Hosts)?, slots));
        }
        Ok(match (self.nodes, self.first_address) {
            (None, None) => (Nodes::Local, 1),
            (count, first) => {
                let count = count.unwrap_or(1) as usize;
                let first = first.unwrap_or(Ipv4Addr::LOCALHOST);
                (Nodes::Virtual { count, first }, count)
            }
        })
    }

    /// What the shorthands stand for, and what is exported.
    fn variables(&self) -> Result<Vec<(OsString, OsString)>, Error> {
        let nal = (!self.nal.is_empty()).then(|| self.nal.join(","));
        let shorthands = [
            ("PTL_MODE", self.mode.map(word)),
            ("PTL_NAL", nal),
            ("PTL_CONN", self.conn.map(word)),
            ("PTL_SHARE_MEMORY", self.share_memory.then(|| "on".into())),
        ];
        let mut all: Vec<(OsString, OsString)> = shorthands
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), value?.into())))
            .collect();
        for word in &self.export {
            all.push(match word.split_once('=') {
                Some((name, value)) => (name.into(), value.into()),
                None => {
                    let value = std::env::var_os(word).ok_or(Error::NotSet(word.clone()))?;
                    (word.into(), value)
                }
            });
        }
        Ok(all)
    }
}

/// The word that stands for `value` on the command line, and in the environment too.
fn word(value: impl ValueEnum) -> String {
    let word = value.to_possible_value().expect("no value is hidden");
    word.get_name().into()
}

/// Rewrites yod's single-dash options (`-timing`, `-sz 4`) with two dashes, up to the
/// program's name.
///
/// ```
/// let argv = ["yod", "-sz", "2", "-quiet", "prog", "-quiet"].map(Into::into);
/// let normal: Vec<_> = yod::normalise(argv).collect();
/// assert_eq!(normal, ["yod", "--sz", "2", "--quiet", "prog", "-quiet"]);
/// ```
pub fn normalise(argv: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let spellings = Spellings::of(command());
    let mut state = State::AtProgram;
    argv.into_iter().flat_map(move |argument| {
        let text = argument.to_string_lossy().into_owned();
        let (next, normal) = state.on_argument(&text, &spellings);
        state = next;
        match normal {
            Some(normal) => normal,
            None => vec![argument],
        }
    })
}

/// The spellings of the options, taken from clap's definition.
struct Spellings {
    /// Every long option and its aliases, without dashes.
    long: BTreeSet<String>,
    /// Those whose value may be the next word; not `--bind`, whose value may be missing.
    valued: BTreeSet<String>,
    /// Letters whose value may be the next word.
    valued_short: BTreeSet<char>,
}

impl Spellings {
    fn of(mut command: clap::Command) -> Spellings {
        command.build();
        let mut all = Spellings {
            long: BTreeSet::new(),
            valued: BTreeSet::new(),
            valued_short: BTreeSet::new(),
        };
        for option in command.get_arguments() {
            let needs_value = option.get_num_args().is_some_and(|n| n.min_values() > 0);
            let names = option.get_long_and_visible_aliases().unwrap_or_default();
            let names = names.into_iter().map(String::from);
            if needs_value {
                all.valued.extend(names.clone());
                all.valued_short.extend(option.get_short());
            }
            all.long.extend(names);
        }
        all
    }

    fn takes_value(&self, name: &str) -> bool {
        let letters = self.valued_short.iter();
        self.valued.contains(name) || letters.into_iter().any(|c| name == c.to_string())
    }
}

/// What the next word of the command line is.
#[derive(Clone, Copy)]
enum State {
    /// yod's own name is next.
    AtProgram,
    /// An option or the program's name is next.
    AtOption,
    /// The value of an option is next.
    AtValue,
    /// The value of an option is next, and may be missing.
    AtBindValue,
    /// The rest is the program's.
    Beyond,
}

impl State {
    /// The state after `text`, and what replaces it, if anything does.
    fn on_argument(self, text: &str, spellings: &Spellings) -> (State, Option<Vec<OsString>>) {
        match self {
            State::AtProgram | State::AtValue => (State::AtOption, None),
            State::AtBindValue if BIND_VALUES.contains(&text) => (State::AtOption, None),
            State::AtOption | State::AtBindValue => {
                let (next, normal) = on_option(text, spellings);
                // clap would take the word after a bare --bind for its value.
                let bare_bind_before = matches!(self, State::AtBindValue);
                if bare_bind_before && !text.starts_with('-') {
                    return (State::Beyond, Some(vec!["--".into(), text.into()]));
                }
                (next, normal.map(|word| vec![word.into()]))
            }
            State::Beyond => (State::Beyond, None),
        }
    }
}

fn on_option(text: &str, spellings: &Spellings) -> (State, Option<String>) {
    let Some(word) = text
        .strip_prefix('-')
        .filter(|word| !word.is_empty() && *word != "-")
    else {
        return (State::Beyond, None);
    };
    let bare = word.strip_prefix('-').unwrap_or(word);
    let (name, has_value) = match bare.split_once('=') {
        Some((name, _)) => (name, true),
        None => (bare, false),
    };
    let (one_dash, is_long) = (!word.starts_with('-'), spellings.long.contains(name));
    let next = match name {
        _ if has_value => State::AtOption,
        "bind" => State::AtBindValue,
        _ if spellings.takes_value(name) => State::AtValue,
        // A cluster such as -ln: its last letter takes the value.
        _ if one_dash && !is_long && name.ends_with(|c| spellings.valued_short.contains(&c)) => {
            State::AtValue
        }
        _ => State::AtOption,
    };
    (next, (one_dash && is_long).then(|| format!("--{bare}")))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let count: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is expected".to_string())?;
    Duration::try_from_secs_f64(count)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "more than 0 seconds are expected".into())
}

const MAX_RANKS: i64 = 4096;
const BIND_VALUES: [&str; 2] = ["none", "core"];
const LONG_ABOUT: &str = "\
Start N ranks of a parallel program and serve them PMI-1 and PMI-2, through which Portals programs, \
MPICH and SOS exchange addresses.

With --nodes, this machine stands for several nodes: the addresses 127.0.0.1, 127.0.0.2, …. Ranks of one node \
share memory; ranks of different nodes use the network.

With --hosts or --hostfile, ranks run on other machines. ssh must reach them without a password, and yod, \
the program and the working directory must have the same paths there. Remote ranks get the variables PTL_*, \
LINTEL_*, PATH and LD_LIBRARY_PATH from here, and those that --export names. If a host is lost, the job ends. In a job of Slurm, PBS or LSF the hosts and slots are \
those that it has allocated, reached by its own means (srun, pbs_tmrsh, blaunch); --no-allocation ignores them.

Output is forwarded line by line; standard input goes to rank 0. If a rank is killed by a signal or exits with \
a code other than 0, yod ends the other ranks, unless --keep-going is given. Ctrl-C ends the job gracefully, a \
second one at once. yod removes the shared memory that crashed ranks left.

On SIGQUIT (Ctrl-\\), and after --dump-after SECONDS, yod prints to standard error what each rank waits for, and \
the likely reason if the job hangs; the job goes on. The ranks' helper threads answer, so this works on a \
program that hangs. `lintel info --queues` shows the same for any job.";

const AFTER_HELP: &str = "\
Long options may be written with one dash, as in the original yod: -np 4, -sz 4, -timing.

The environment of each rank holds PMI_FD, PMI_RANK and PMI_SIZE (PMI-1 and PMI-2); MPI_LOCALRANKID and \
MPI_LOCALNRANKS (its number on its node, and how many ranks run there); LINTEL_NODES and LINTEL_NODE_RANK \
(the number of nodes, and its node's number); LINTEL_JOB, which names the job's files in /dev/shm; in \
accelerated placement LINTEL_SECRET, 64 hexadecimal digits that only the job's processes know; and with \
--nodes, --first-address or --hosts PTL_IFACE, its node's address. Where it isn't set, FI_OFI_RXM_MSG_RX_SIZE is \
128, with which libfabric takes 50 MiB less memory in each process over tcp.

With --mode generic, or PTL_MODE=generic in the environment, yod starts an agent per node before the ranks and \
ends it after them. The agent is PROGRAM --iface ADDRESS --secret-stdin; it reads the job's secret, which the \
ranks then don't get, from standard input.

Exit code: 0 if all ranks exited with 0; the code with which a rank aborted the job through PMI, 0 included; \
otherwise that of the first rank that failed, 128 + the signal's number if a signal ended it or the job, 124 \
after --timeout, 126 or 127 if the program can't be run, 1 for other failures, 2 for a wrong command line.";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        let argv = std::iter::once("yod")
            .chain(words.iter().copied())
            .map(OsString::from);
        Options::try_parse_from(normalise(argv))
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn old_and_new_spellings_mean_the_same() {
        for words in [
            &["-n", "3", "p"][..],
            &["-n3", "p"],
            &["-np", "3", "p"],
            &["-sz", "3", "p"],
            &["-sz=3", "p"],
            &["--np", "3", "p"],
            &["--ranks=3", "p"],
            &["-ln", "3", "p"],
        ] {
            assert_eq!(parse(words).unwrap().job().unwrap().ranks, 3, "{words:?}");
        }
        let options = parse(&[
            "-timing", "-quiet", "-show", "-label", "-timeout", "1.5", "p",
        ]);
        let options = options.unwrap();
        assert!(options.timing && options.quiet && options.show && options.label);
        assert_eq!(
            options.job().unwrap().timeout,
            Some(Duration::from_millis(1500))
        );
    }

    #[test]
    fn the_program_keeps_its_arguments_untouched() {
        let job = parse(&["-n", "2", "p", "-timing", "-n", "5", "--", "-l"])
            .unwrap()
            .job()
            .unwrap();
        assert_eq!((job.ranks, job.label), (2, false));
        assert_eq!(job.args, ["-timing", "-n", "5", "--", "-l"]);
        let job = parse(&["--", "-odd-name", "-quiet"])
            .unwrap()
            .job()
            .unwrap();
        assert_eq!(
            (job.program, job.args),
            ("-odd-name".into(), vec!["-quiet".into()])
        );
    }

    #[test]
    fn bind_needs_no_value() {
        assert_eq!(parse(&["p"]).unwrap().job().unwrap().bind, Bind::None);
        for words in [
            &["--bind", "p"][..],
            &["-bind", "core", "p"],
            &["--bind=core", "p"],
        ] {
            let job = parse(words).unwrap().job().unwrap();
            assert_eq!(
                (job.bind, job.program),
                (Bind::Core, "p".into()),
                "{words:?}"
            );
        }
        let error = parse(&["--bind", "0,2-3", "p"]).unwrap().job().unwrap_err();
        assert!(error.to_string().contains("taskset -c 0,2-3"), "{error}");
        assert_eq!(error.exit_code(), 2);
        let job = parse(&["--bind", "-n", "2", "--bind", "none", "p"]);
        assert!(job.is_err(), "given twice");
    }

    #[test]
    fn shorthands_stand_for_variables_of_every_rank() {
        let words = [
            "-mode",
            "generic",
            "--nal=shm,udp",
            "-conn",
            "node",
            "--share-memory",
            "p",
            "--mode",
        ];
        let job = parse(&words).unwrap().job().unwrap();
        let expected = [
            ("PTL_MODE", "generic"),
            ("PTL_NAL", "shm,udp"),
            ("PTL_CONN", "node"),
            ("PTL_SHARE_MEMORY", "on"),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(
            (job.env, job.args),
            (expected.to_vec(), vec!["--mode".into()])
        );
        assert_eq!(parse(&["p"]).unwrap().job().unwrap().env, []);
    }

    #[test]
    fn nodes_are_virtual_when_their_number_or_address_is_given() {
        assert_eq!(parse(&["p"]).unwrap().job().unwrap().nodes, Nodes::Local);
        let job = parse(&["--nodes", "3", "p"]).unwrap().job().unwrap();
        let (count, first) = (3, Ipv4Addr::LOCALHOST);
        assert_eq!((job.ranks, job.nodes), (3, Nodes::Virtual { count, first }));
        let job = parse(&["-n", "2", "--first-address", "127.1.2.3", "p"])
            .unwrap()
            .job()
            .unwrap();
        let (count, first) = (1, Ipv4Addr::new(127, 1, 2, 3));
        assert_eq!((job.ranks, job.nodes), (2, Nodes::Virtual { count, first }));
    }

    #[test]
    fn hosts_give_a_rank_to_each_slot_by_default() {
        let words = [
            "-hosts",
            "a=10.0.0.1:2,b=10.0.0.2",
            "-launch-agent",
            "sh -c x",
            "p",
        ];
        let job = parse(&words).unwrap().job().unwrap();
        assert_eq!((job.ranks, job.launch_agent.len()), (3, 3));
        let Nodes::Hosts(hosts) = job.nodes else {
            panic!("{:?}", job.nodes);
        };
        assert_eq!((hosts.len(), &*hosts[1].name), (2, "b"));
    }

    #[test]
    fn variables_are_exported_by_value_or_name() {
        let job = parse(&["-x", "A=b=c", "-export", "PATH", "-lx", "E=", "p"]);
        let env = job.unwrap().job().unwrap().env;
        let path = std::env::var_os("PATH").unwrap();
        let expected = [("A", "b=c".into()), ("PATH", path), ("E", "".into())];
        assert_eq!(env, expected.map(|(name, value)| (name.into(), value)));
        let unset = parse(&["-x", "NO_SUCH_VARIABLE_HERE", "p"]).unwrap().job();
        assert!(matches!(unset, Err(Error::NotSet(_))));
    }

    #[test]
    fn senseless_numbers_and_words_are_refused() {
        for words in [
            &["-n", "0", "p"][..],
            &["-n", "x", "p"],
            &["--timeout", "0", "p"],
            &["--timeout", "-1", "p"],
            &["--timng", "p"],
            &["--nodes", "0", "p"],
            &["--nodes", "2", "--map", "spiral", "p"],
            &["--first-address", "localhost", "p"],
            &["--nal", "shm,myrinet", "p"],
            &["--hosts", "a,-b", "p"],
            &["--hosts", "a=1.2.3.4", "--nodes", "2", "p"],
            &["-n", "2"],
            &[],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
