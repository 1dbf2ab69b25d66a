//! The hosts that a user names, on the command line or in a file, and their addresses.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;

use crate::error::Error;
use crate::layout::Host;

/// A host as the user writes it: `name`, `name:slots`, `name=address` or `name=address:slots`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostSpec {
    name: String,
    address: Option<Ipv4Addr>,
    slots: Option<usize>,
}

impl HostSpec {
    /// A host that a batch system names.
    ///
    /// # Errors
    /// The name can't be one.
    pub(crate) fn new(name: &str, slots: usize) -> Result<HostSpec, String> {
        let mut host: HostSpec = name.parse()?;
        host.slots = Some(slots);
        Ok(host)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.unwrap_or(1)
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(address) = self.address {
            write!(f, "={address}")?;
        }
        self.slots.map_or(Ok(()), |slots| write!(f, ":{slots}"))
    }
}

impl FromStr for HostSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<HostSpec, String> {
        let (place, slots) = match text.split_once(':') {
            Some((place, slots)) => (place, Some(slots_of(slots)?)),
            None => (text, None),
        };
        let (name, address) = match place.split_once('=') {
            Some((name, address)) => (name, Some(address)),
            None => (place, None),
        };
        // A name that begins with a dash would be an option to the launch agent.
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
            return Err(format!(
                "{text:?} is no host: NAME[=ADDRESS][:SLOTS] is expected"
            ));
        }
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text:?} is no IPv4 address"))
        };
        Ok(HostSpec {
            name: name.into(),
            address: address.map(parse).transpose()?,
            slots,
        })
    }
}

pub(crate) fn slots_of(text: &str) -> Result<usize, String> {
    let slots = text.parse().ok().filter(|&slots| slots > 0);
    slots.ok_or_else(|| format!("{text:?} is no number of slots: 1 or more is expected"))
}

/// Reads a file of hosts: one per line, optionally followed by `slots=N`; `#` begins a comment.
///
/// # Errors
/// The file can't be read, or a line is not understood.
pub(crate) fn read(path: &Path) -> Result<Vec<HostSpec>, Error> {
    let wrong = |why: String| Error::HostFile {
        path: path.into(),
        why,
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let host = parse_line(line).map_err(|why| wrong(format!("line {number}: {why}")))?;
        hosts.extend(host);
    }
    match hosts.is_empty() {
        true => Err(wrong("it names no host".into())),
        false => Ok(hosts),
    }
}

fn parse_line(line: &str) -> Result<Option<HostSpec>, String> {
    let line = line.split('#').next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let Some(host) = words.next() else {
        return Ok(None);
    };
    let mut host: HostSpec = host.parse()?;
    for word in words {
        match word.split_once('=') {
            Some(("slots", slots)) => host.slots = Some(slots_of(slots)?),
            _ => {
                return Err(format!(
                    "{word:?} is not understood; slots=N may follow a host"
                ));
            }
        }
    }
    Ok(Some(host))
}

/// Whether all of these are the machine that this process runs on.
pub(crate) fn is_this_machine(hosts: &[HostSpec]) -> bool {
    let uname = rustix::system::uname();
    let here = uname.nodename().to_string_lossy();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_string();
    let is_here = |name: &str| name == "localhost" || short(name) == short(&here);
    !hosts.is_empty() && hosts.iter().all(|host| is_here(host.name()))
}

/// Finds the address of each host; one that is named twice has the slots of both entries.
///
/// # Errors
/// A host without an address that the others can reach, or two with the same.
pub(crate) fn resolve(named: Vec<HostSpec>) -> Result<Vec<Host>, Error> {
    let mut hosts: Vec<Host> = Vec::new();
    for one in merged(named) {
        let address = match one.address {
            Some(address) => address,
            None => address_of(&one.name)?,
        };
        if let Some(other) = hosts.iter().find(|host| host.address == address) {
            return Err(Error::Host {
                name: one.name,
                why: format!("it has the same address as {}, {address}", other.name),
            });
        }
        hosts.push(Host {
            name: one.name,
            address,
            slots: one.slots,
        });
    }
    Ok(hosts)
}

fn merged(named: Vec<HostSpec>) -> Vec<HostSpec> {
    let mut all: Vec<HostSpec> = Vec::new();
    for one in named {
        match all.iter_mut().find(|other| other.name == one.name) {
            None => all.push(one),
            Some(other) => {
                other.slots = Some(other.slots.unwrap_or(1) + one.slots.unwrap_or(1));
                other.address = other.address.or(one.address);
            }
        }
    }
    all
}

/// The address that the host's name resolves to.
fn address_of(name: &str) -> Result<Ipv4Addr, Error> {
    // For ssh, a user's name may precede it.
    let host = name.rsplit_once('@').map_or(name, |(_, host)| host);
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let wrong = |why: String| Error::Host {
        name: name.into(),
        why: format!("{why}; write {name}=ADDRESS"),
    };
    let found = (host, 0).to_socket_addrs();
    let mut found = found.map_err(|error| wrong(format!("its address is not known ({error})")))?;
    let address = found.find_map(|address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    });
    match address {
        // A machine's own name often resolves to a loopback address by its /etc/hosts.
        Some(address) if address.is_loopback() => Err(wrong(format!(
            "its name resolves to {address} here, which no other host can reach"
        ))),
        Some(address) => Ok(address),
        None => Err(wrong("it has no IPv4 address".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(words: &[&str]) -> Result<Vec<Host>, Error> {
        resolve(words.iter().map(|word| word.parse().unwrap()).collect())
    }

    #[test]
    fn hosts_have_names_addresses_and_slots() {
        let found = hosts(&["a=10.0.0.1:3", "me@10.0.0.2", "10.0.0.3:2", "b=127.0.0.2"]);
        let found: Vec<_> = found
            .unwrap()
            .into_iter()
            .map(|host| (host.name, host.address.to_string(), host.slots))
            .collect();
        let expected = [
            ("a", "10.0.0.1", Some(3)),
            ("me@10.0.0.2", "10.0.0.2", None),
            ("10.0.0.3", "10.0.0.3", Some(2)),
            ("b", "127.0.0.2", None),
        ];
        let expected = expected.map(|(name, address, slots)| (name.into(), address.into(), slots));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_host_named_twice_takes_the_slots_of_both() {
        let found = hosts(&["a=10.0.0.1", "b=10.0.0.2:4", "a", "b:2"]).unwrap();
        let slots: Vec<_> = found.iter().map(|host| host.slots).collect();
        assert_eq!(slots, [Some(2), Some(6)]);
    }

    #[test]
    fn hosts_that_others_cannot_reach_or_tell_apart_are_refused() {
        let error = hosts(&["localhost"]).unwrap_err().to_string();
        assert!(error.contains("write localhost=ADDRESS"), "{error}");
        let error = hosts(&["a=10.0.0.1", "b=10.0.0.1"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("the same address as a"), "{error}");
        let error = hosts(&["no-such-host.invalid"]).unwrap_err().to_string();
        assert!(error.contains("its address is not known"), "{error}");
    }

    #[test]
    fn words_that_are_no_host_are_refused() {
        for word in ["", ":2", "=10.0.0.1", "-oProxy", "a b", "a:0", "a:x", "a=b"] {
            assert!(word.parse::<HostSpec>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn lines_of_a_file_may_hold_slots_and_comments() {
        let line =
            |text: &str| parse_line(text).map(|host| host.map(|host| (host.name, host.slots)));
        assert_eq!(line("a slots=4 # big"), Ok(Some(("a".into(), Some(4)))));
        assert_eq!(line("a:3"), Ok(Some(("a".into(), Some(3)))));
        assert_eq!(line("  # nothing"), Ok(None));
        assert!(line("a max=4").is_err() && line("a slots=none").is_err());
    }
}
