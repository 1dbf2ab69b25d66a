//! The environment variables that a user meets.

use crate::log::Level;
use crate::secret::Secret;
use lintel_engine3::Dialect;
use lintel_nal_shm::Costs;
use lintel_nal_udp::{Faults, Model, interface_address};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// An environment variable: name, default, values, meaning.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As the environment spells it.
    pub name: &'static str,
    /// What holds where it isn't set.
    pub default: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it changes, in one clause without a full stop.
    pub meaning: &'static str,
}

/// Its value isn't to be shown.
const SECRET: &str = "LINTEL_SECRET";

/// Every variable that the library reads.
pub const SETTINGS: [Setting; 17] = [
    Setting {
        name: "PTL_NAL",
        default: "shm; shm,udp if PTL_IFACE is set",
        values: "a list of shm, udp, ofi, with at most one of udp and ofi",
        meaning: "the networks that carry messages: shm within the node, the other one between nodes, \
                  or everywhere if shm isn't in the list",
    },
    Setting {
        name: "PTL_MODE",
        default: "accelerated",
        values: "accelerated, generic",
        meaning: "which process runs the Portals engine: this one, or the node's agent",
    },
    Setting {
        name: "PTL_IFACE",
        default: "127.0.0.1",
        values: "an IPv4 address of this machine, or the name of an interface that has one",
        meaning: "the node's address, whose number is the nid",
    },
    Setting {
        name: "PTL_DIALECT",
        default: "chosen by the interface's number",
        values: "specification, cray",
        meaning: "Portals 3.3: the rules for unlinking and gets, where programs differ",
    },
    Setting {
        name: "PTL_CONN",
        default: "xrc",
        values: "rc, xrc, node",
        meaning: "what shares the state of a path: nothing (one per remote process), the processes of \
                  a remote node, or those of both nodes",
    },
    Setting {
        name: "PTL_PEER_TIMEOUT",
        default: "10000",
        values: "milliseconds, 100 or more",
        meaning: "how long a process on another node may be silent before it counts as dead",
    },
    Setting {
        name: "PTL_OFI_PROVIDER",
        default: "libfabric's choice",
        values: "the name of a libfabric provider, such as tcp, verbs, cxi, efa",
        meaning: "the provider that PTL_NAL=ofi uses",
    },
    Setting {
        name: "PTL_SECRET_FILE",
        default: "$HOME/.config/lintel/secret, created on first use",
        values: "a file of this user that no other user can read (mode 0600)",
        meaning: "the secret that packets between nodes are authenticated with; the same on all nodes",
    },
    Setting {
        name: "PTL_SHM_EAGER",
        default: "measured at start",
        values: "bytes, 0 to 65536",
        meaning: "the longest message that is copied through shared memory; longer ones are copied \
                  once, by the receiver, straight from the sender's memory",
    },
    Setting {
        name: "PTL_SHARE_MEMORY",
        default: "off",
        values: "off, on",
        meaning: "whether large private memory becomes memory that peers can map when an entry over \
                  it is appended that they may then access by themselves",
    },
    Setting {
        name: "PTL_LOG",
        default: "warn",
        values: "off, warn, info, trace",
        meaning: "how much is logged on standard error",
    },
    Setting {
        name: "PTL_TRACE",
        default: "none",
        values: "a directory",
        meaning: "where the process writes a timeline of its calls, messages, events and waits when it \
                  leaves the network, for `lintel trace`",
    },
    Setting {
        name: "PTL_TRACE_CALLS",
        default: "on",
        values: "on, off",
        meaning: "whether timelines have calls, too; without them their records reach further back",
    },
    Setting {
        name: "PTL_PCAP",
        default: "none",
        values: "a directory",
        meaning: "where the process writes each message as it is sent or arrives, at most 256 MiB, \
                  as pcapng for Wireshark and tshark",
    },
    Setting {
        name: "LINTEL_JOB",
        default: "0",
        values: "letters, digits, - and _",
        meaning: "processes of different jobs don't see each other; yod sets it",
    },
    Setting {
        name: SECRET,
        default: "the contents of PTL_SECRET_FILE",
        values: "64 hexadecimal digits",
        meaning: "the job's secret; yod sets it for ranks in accelerated placement",
    },
    Setting {
        name: "LINTEL_FAULT",
        default: "none",
        values: "a list such as loss=0.01,duplicate=0.01,reorder=0.01,seed=7",
        meaning: "faults injected into the UDP transport, for tests",
    },
];

/// What a launcher passes to programs for Portals 3.3, which read it by PtlSetRank.
pub const LAUNCHERS_SETTINGS: [Setting; 4] = [
    Setting {
        name: "PTL_MY_RID",
        default: "none",
        values: "a number",
        meaning: "Portals 3.3: rank of this process in its job",
    },
    Setting {
        name: "PTL_NIDMAP",
        default: "none",
        values: "IPv4 addresses or numbers, separated by colons",
        meaning: "Portals 3.3: nid of each rank",
    },
    Setting {
        name: "PTL_PIDMAP",
        default: "none",
        values: "numbers, separated by colons",
        meaning: "Portals 3.3: pid of each rank",
    },
    Setting {
        name: "PTL_MY_JID",
        default: "0",
        values: "a number",
        meaning: "Portals 3.3: number of the job",
    },
];

/// The network between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// Authenticated datagrams over UDP.
    Udp,
    /// A network that a libfabric provider drives.
    Ofi,
}

impl Between {
    /// Its name in `PTL_NAL`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Between::Udp => "udp",
            Between::Ofi => "ofi",
        }
    }
}

/// Which process runs the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The process itself: accelerated placement.
    Accelerated,
    /// In the node's agent.
    Generic,
}

/// What the variables say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether messages within the node go through shared memory.
    pub shm: bool,
    /// What carries the others.
    pub between: Option<Between>,
    /// Which process runs the engine.
    pub mode: Mode,
    /// The node's number in Portals identifiers (`PTL_NID`).
    pub nid: u32,
    /// The dialect of Portals 3.3, where one is asked for.
    pub dialect: Option<Dialect>,
    /// Which processes share the state of a path between nodes.
    pub model: Model,
    /// Silence after which a process on another node counts as dead.
    pub peer_timeout: Duration,
    /// Bytes up to which messages are copied through shared memory, if that isn't to be
    /// measured.
    pub shm_eager: Option<u64>,
    /// Whether private memory of entries becomes shareable.
    pub share_memory: bool,
    /// libfabric's provider, where one is asked for.
    pub provider: Option<String>,
    /// The job; processes of different jobs never meet.
    pub job: String,
    /// The job's secret, where a launcher has given it by another way than the environment,
    /// whose secret isn't used then.
    pub secret: Option<Secret>,
    /// Losses, duplicates and reordering to inject, for tests.
    pub faults: Option<Faults>,
    /// The directory for timelines, if they are asked for.
    pub trace: Option<PathBuf>,
    /// Whether timelines have calls, too.
    pub trace_calls: bool,
    /// The directory for captured messages, if they are asked for.
    pub pcap: Option<PathBuf>,
    /// Level of the log.
    pub level: Level,
}

impl Settings {
    /// Whether calls are recorded.
    pub(crate) fn records_calls(&self) -> bool {
        self.trace.is_some() && self.trace_calls
    }
}

/// A variable has a value that isn't understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    name: &'static str,
    value: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = SETTINGS
            .iter()
            .find(|s| s.name == self.name)
            .map_or("", |s| s.values);
        if self.name == SECRET {
            return write!(f, "{SECRET} takes {values}");
        }
        write!(
            f,
            "{}={} isn't understood; it takes {values}",
            self.name, self.value
        )
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// The first variable that isn't understood.
    pub fn from_env() -> Result<Settings, SettingError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), for the node of that address.
    ///
    /// # Errors
    /// The first variable that isn't understood.
    pub fn of_node(address: Ipv4Addr) -> Result<Settings, SettingError> {
        Self::from_lookup(|name| match name {
            "PTL_IFACE" => Some(address.to_string()),
            _ => std::env::var(name).ok(),
        })
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, SettingError> {
        let given = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let read = |name: &'static str| {
            let setting = SETTINGS.iter().find(|setting| setting.name == name);
            let default = setting.map_or("", |setting| setting.default).to_owned();
            (name, given(name).unwrap_or(default))
        };
        let networks = match (given("PTL_NAL"), given("PTL_IFACE")) {
            (Some(list), _) => list,
            (None, Some(_)) => "shm,udp".into(),
            (None, None) => "shm".into(),
        };
        let (shm, between) = networks_of(("PTL_NAL", networks))?;
        if let Some(secret) = given(SECRET) {
            // Only looked at: its user reads it again.
            parsed::<Secret>((SECRET, secret))?;
        }
        Ok(Settings {
            shm,
            between,
            mode: mode(read("PTL_MODE"))?,
            nid: nid(read("PTL_IFACE"))?,
            dialect: given("PTL_DIALECT")
                .map(|name| dialect(("PTL_DIALECT", name)))
                .transpose()?,
            model: model(read("PTL_CONN"))?,
            peer_timeout: peer_timeout(read("PTL_PEER_TIMEOUT"))?,
            shm_eager: match given("PTL_SHM_EAGER") {
                Some(bytes) => Some(shm_eager(("PTL_SHM_EAGER", bytes))?),
                None => None,
            },
            share_memory: on_or_off(read("PTL_SHARE_MEMORY"))?,
            provider: given("PTL_OFI_PROVIDER"),
            job: job(read("LINTEL_JOB"))?,
            secret: None,
            faults: match given("LINTEL_FAULT") {
                Some(faults) => Some(parsed(("LINTEL_FAULT", faults))?),
                None => None,
            },
            trace: given("PTL_TRACE").map(PathBuf::from),
            trace_calls: on_or_off(read("PTL_TRACE_CALLS"))?,
            pcap: given("PTL_PCAP").map(PathBuf::from),
            level: level(read("PTL_LOG"))?,
        })
    }
}

impl Settings {
    /// What messages through shared memory cost, as measured or as set.
    pub fn costs(&self) -> Costs {
        self.shm_eager
            .map_or_else(Costs::of_this_machine, Costs::Set)
    }
}

type Named = (&'static str, String);

fn networks_of((name, value): Named) -> Result<(bool, Option<Between>), SettingError> {
    let (mut shm, mut between) = (false, None);
    for network in value.split(',') {
        let far = match network.trim() {
            "shm" if !shm => {
                shm = true;
                continue;
            }
            "udp" => Between::Udp,
            "ofi" => Between::Ofi,
            _ => return Err(SettingError { name, value }),
        };
        if between.replace(far).is_some() {
            return Err(SettingError { name, value });
        }
    }
    Ok((shm, between))
}

fn on_or_off((name, value): Named) -> Result<bool, SettingError> {
    match value.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(SettingError { name, value }),
    }
}

fn mode((name, value): Named) -> Result<Mode, SettingError> {
    match value.as_str() {
        "accelerated" => Ok(Mode::Accelerated),
        "generic" => Ok(Mode::Generic),
        _ => Err(SettingError { name, value }),
    }
}

fn dialect((name, value): Named) -> Result<Dialect, SettingError> {
    match value.as_str() {
        "specification" => Ok(Dialect::Specification),
        "cray" => Ok(Dialect::Cray),
        _ => Err(SettingError { name, value }),
    }
}

fn model((name, value): Named) -> Result<Model, SettingError> {
    match value.as_str() {
        "rc" => Ok(Model::Rc),
        "xrc" => Ok(Model::Xrc),
        "node" => Ok(Model::Node),
        _ => Err(SettingError { name, value }),
    }
}

fn parsed<T: FromStr>((name, value): Named) -> Result<T, SettingError> {
    value.parse().map_err(|_| SettingError { name, value })
}

fn peer_timeout((name, value): Named) -> Result<Duration, SettingError> {
    match value.parse() {
        Ok(milliseconds @ 100..=3_600_000) => Ok(Duration::from_millis(milliseconds)),
        _ => Err(SettingError { name, value }),
    }
}

fn shm_eager((name, value): Named) -> Result<u64, SettingError> {
    match value.parse() {
        Ok(bytes @ 0..=lintel_nal_shm::EAGER) => Ok(bytes),
        _ => Err(SettingError { name, value }),
    }
}

fn nid((name, value): Named) -> Result<u32, SettingError> {
    let address = value.parse().ok().or_else(|| interface_address(&value));
    match address.map(u32::from) {
        // 0 is no address, and 0xffff is PTL_NID_ANY.
        Some(nid) if nid != 0 && nid != 0xffff => Ok(nid),
        _ => Err(SettingError { name, value }),
    }
}

fn job((name, value): Named) -> Result<String, SettingError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if value.len() <= 64 && value.chars().all(plain) {
        Ok(value)
    } else {
        Err(SettingError { name, value })
    }
}

fn level((name, value): Named) -> Result<Level, SettingError> {
    match value.as_str() {
        "off" => Ok(Level::Off),
        "warn" => Ok(Level::Warn),
        "info" => Ok(Level::Info),
        "trace" => Ok(Level::Trace),
        _ => Err(SettingError { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, SettingError> {
        Settings::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let settings = Settings::from_lookup(|_| None).expect("defaults are understood");
        assert_eq!(settings.nid, 0x7f00_0001);
        assert_eq!(settings.job, "0");
        assert_eq!((settings.shm, settings.between), (true, None));
        assert_eq!(settings.peer_timeout, Duration::from_secs(10));
    }

    #[test]
    fn a_node_with_an_address_has_a_network_between_nodes() {
        let settings = with("PTL_IFACE", "127.0.0.2").expect("it is an address");
        assert_eq!((settings.shm, settings.between), (true, Some(Between::Udp)));
        let settings = with("PTL_IFACE", "lo").expect("every machine has it");
        assert_eq!(settings.nid, 0x7f00_0001);
        let settings = with("PTL_NAL", "ofi").expect("it is a network");
        assert_eq!(
            (settings.shm, settings.between),
            (false, Some(Between::Ofi))
        );
    }

    #[test]
    fn two_networks_between_nodes_are_refused() {
        assert!(with("PTL_NAL", "udp,ofi").is_err());
        assert!(with("PTL_NAL", "shm,shm").is_err());
        assert!(with("PTL_PEER_TIMEOUT", "5").is_err());
    }

    #[test]
    fn the_bytes_that_are_copied_are_measured_unless_they_are_set() {
        let set = with("PTL_SHM_EAGER", "5000").expect("it is a number of bytes");
        assert_eq!(set.costs(), Costs::Set(5000));
        let unset = Settings::from_lookup(|_| None).expect("defaults are understood");
        assert_eq!(unset.costs(), Costs::of_this_machine());
        for value in ["-1", "65537", "4K"] {
            let error = with("PTL_SHM_EAGER", value).expect_err("it is none");
            assert!(error.to_string().contains("bytes, 0 to 65536"), "{error}");
        }
    }

    #[test]
    fn a_value_that_isnt_understood_names_its_variable_and_what_it_takes() {
        let error = with("PTL_NAL", "myrinet").expect_err("there is no such NAL");
        assert_eq!(
            error.to_string(),
            "PTL_NAL=myrinet isn't understood; it takes a list of shm, udp, ofi, with at most one of udp and ofi"
        );
        assert!(with("LINTEL_JOB", "../etc").is_err());
        assert!(
            with("PTL_IFACE", "0.0.255.255").is_err(),
            "that is PTL_NID_ANY"
        );
    }

    #[test]
    fn each_variable_refuses_what_it_doesnt_take_and_names_itself() {
        for (name, value) in [
            ("PTL_NAL", "udp,,ofi"),
            ("PTL_MODE", "fast"),
            ("PTL_IFACE", "no-such-interface"),
            ("PTL_IFACE", "0.0.0.0"),
            ("PTL_CONN", "xrcs"),
            ("PTL_PEER_TIMEOUT", "99"),
            ("PTL_PEER_TIMEOUT", "3600001"),
            ("PTL_PEER_TIMEOUT", "soon"),
            ("PTL_LOG", "WARN"),
            ("LINTEL_JOB", "a b"),
            ("LINTEL_FAULT", "loss=2"),
        ] {
            let error = with(name, value).expect_err(value).to_string();
            let setting = SETTINGS.iter().find(|setting| setting.name == name);
            let takes = setting.expect("it is listed").values;
            assert_eq!(
                error,
                format!("{name}={value} isn't understood; it takes {takes}")
            );
        }
    }

    #[test]
    fn a_malformed_secret_is_refused_whatever_the_network_and_not_shown() {
        let error = with("LINTEL_SECRET", "xyz").expect_err("it has 3 digits");
        let expected = "LINTEL_SECRET takes 64 hexadecimal digits";
        assert_eq!(error.to_string(), expected);
        let secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF";
        assert!(with("LINTEL_SECRET", secret).is_ok());
    }

    #[test]
    fn an_empty_variable_is_one_that_isnt_set() {
        for setting in SETTINGS {
            let settings = with(setting.name, "").expect(setting.name);
            assert_eq!((settings.nid, settings.level), (0x7f00_0001, Level::Warn));
        }
    }
}
