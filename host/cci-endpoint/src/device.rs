//! Devices: those of the configuration file, or those that are found.

use crate::config::{Section, parse};
use crate::log::{report, warn};
use crate::variables::check_variables;
use lintel_nal_udp::{Faults, interface_address, interface_addresses};
use std::net::{Ipv4Addr, UdpSocket};

/// The transports by their names in configuration files and URIs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Shared memory of one node.
    Sm,
    /// Over UDP.
    Sock,
    /// Accepted, and carried over UDP.
    Tcp,
    /// Accepted, and carried over UDP.
    Verbs,
}

impl Transport {
    pub(crate) const ALL: [Transport; 4] = [
        Transport::Sm,
        Transport::Sock,
        Transport::Tcp,
        Transport::Verbs,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Sm => "sm",
            Transport::Sock => "sock",
            Transport::Tcp => "tcp",
            Transport::Verbs => "verbs",
        }
    }

    fn of_name(name: &str) -> Option<Transport> {
        Transport::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Priority where none is given, 0 to 100.
    fn priority(self) -> u32 {
        match self {
            Transport::Sm => 20,
            Transport::Sock | Transport::Tcp | Transport::Verbs => 30,
        }
    }

    /// Largest message where none is given, bytes.
    fn max_send(self) -> u32 {
        match self {
            Transport::Sm => 8192,
            Transport::Sock | Transport::Tcp | Transport::Verbs => 8960,
        }
    }
}

/// Where endpoints are opened.
#[derive(Clone, PartialEq, Debug)]
pub struct Device {
    /// Its name in the configuration file.
    pub name: String,
    /// Which transport.
    pub transport: Transport,
    /// The keys that aren't about order, as "key=value".
    pub conf: Vec<String>,
    /// For people.
    pub info: String,
    /// The largest message, bytes.
    pub max_send: u32,
    /// Address of its interface; `None` for shared memory.
    pub ip: Option<Ipv4Addr>,
    /// The port or "pid/id" that its endpoints get, if the file names one.
    pub service: Option<String>,
    /// Folder that names a group of endpoints over shared memory.
    pub path: String,
    /// Faults injected on purpose, for tests (`LINTEL_FAULT`).
    pub faults: Option<Faults>,
    is_default: bool,
    priority: u32,
}

impl Device {
    /// A device over UDP at an address of this machine.
    pub fn at_address(ip: Ipv4Addr) -> Device {
        over_ip("udp", Transport::Sock, ip)
    }
}

/// The devices, best first: the default one, then by priority. `CCI_CTP` restricts the
/// transports.
pub fn devices() -> Vec<Device> {
    check_variables();
    let mut devices = match std::env::var("CCI_CONFIG") {
        Ok(path) if !path.is_empty() => of_file(&path),
        _ => found(),
    };
    devices.retain(|device| is_kept(device.transport));
    devices.sort_by_key(|device| (!device.is_default, 100 - device.priority));
    devices
}

/// Whether `CCI_CTP` keeps a transport: a list of names, or of those that are dropped.
fn is_kept(transport: Transport) -> bool {
    let list = std::env::var("CCI_CTP").unwrap_or_default();
    let (drops, names) = match list.strip_prefix('^') {
        Some(names) => (true, names),
        None => (false, list.as_str()),
    };
    let is_listed = names.split(',').any(|name| name.trim() == transport.name());
    names.is_empty() || is_listed != drops
}

fn of_file(path: &str) -> Vec<Device> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            report(&format!("CCI_CONFIG: {path}: {error}"));
            return Vec::new();
        }
    };
    let sections = match parse(&text) {
        Ok(sections) => sections,
        Err(error) => {
            report(&format!("CCI_CONFIG: {path}: {error}"));
            return Vec::new();
        }
    };
    sections.iter().filter_map(of_section).collect()
}

/// The device of a section; the log names the reason if there is none.
fn of_section(section: &Section) -> Option<Device> {
    let ignore = |why: &str| {
        warn(&format!("device {} is ignored: {why}", section.name));
        None
    };
    let Some(name) = section.get("transport") else {
        return ignore("it has no transport");
    };
    let Some(transport) = Transport::of_name(name) else {
        return ignore(&format!("there is no transport {name}"));
    };
    let mut device = match transport {
        Transport::Sm => sm(&section.name),
        _ => match ip_of(section) {
            Ok(ip) => over_ip(&section.name, transport, ip),
            Err(why) => return ignore(&why),
        },
    };
    if let Err(why) = apply(&mut device, section) {
        return ignore(why);
    }
    if matches!(transport, Transport::Tcp | Transport::Verbs) {
        let name = transport.name();
        warn(&format!(
            "device {}: {name} is carried over UDP",
            device.name
        ));
    }
    Some(device)
}

fn apply(device: &mut Device, section: &Section) -> Result<(), &'static str> {
    for (key, value) in &section.keys {
        match key.as_str() {
            "transport" => continue,
            "default" => {
                device.is_default = true;
                continue;
            }
            "priority" => {
                let priority = value.parse().ok().filter(|it| *it <= 100);
                device.priority = priority.ok_or("a priority is 0 to 100")?;
                continue;
            }
            "mss" => {
                let mss = value.parse().ok().filter(|it| (64..=8192).contains(it));
                device.max_send = mss.ok_or("mss is 64 to 8192")?;
            }
            "path" => device.path.clone_from(value),
            "port" => device.service = Some(value.clone()),
            "pid" => {
                let id = section.get("id").unwrap_or("0");
                device.service = Some(format!("{value}/{id}"));
            }
            _ => {}
        }
        device.conf.push(format!("{key}={value}"));
    }
    Ok(())
}

fn ip_of(section: &Section) -> Result<Ipv4Addr, String> {
    let address = match (section.get("ip"), section.get("interface")) {
        (Some(ip), _) => ip.parse().map_err(|_| format!("{ip} is no IPv4 address"))?,
        (None, Some(name)) => {
            interface_address(name).ok_or(format!("interface {name} has no address"))?
        }
        (None, None) => return Err("it has neither ip nor interface".to_owned()),
    };
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(address),
        Err(error) => Err(format!("{address}: {error}")),
    }
}

/// Without a file: shared memory, and each interface but loopback.
fn found() -> Vec<Device> {
    let mut devices = vec![sm("sm0")];
    let addresses = interface_addresses().into_iter();
    for (name, address) in addresses.filter(|(_, address)| !address.is_loopback()) {
        devices.push(over_ip(&name, Transport::Sock, address));
    }
    devices
}

fn sm(name: &str) -> Device {
    let host = rustix::system::uname();
    let folder = std::env::temp_dir().join("cci/sm");
    let path = folder.join(host.nodename().to_string_lossy().as_ref());
    Device {
        name: name.to_owned(),
        transport: Transport::Sm,
        conf: Vec::new(),
        info: "shared memory of this node".to_owned(),
        max_send: Transport::Sm.max_send(),
        ip: None,
        service: None,
        path: path.to_string_lossy().into_owned(),
        faults: None,
        is_default: false,
        priority: Transport::Sm.priority(),
    }
}

fn over_ip(name: &str, transport: Transport, ip: Ipv4Addr) -> Device {
    Device {
        name: name.to_owned(),
        transport,
        conf: Vec::new(),
        info: format!("UDP at {ip}"),
        max_send: transport.max_send(),
        ip: Some(ip),
        service: None,
        path: String::new(),
        faults: faults(),
        is_default: false,
        priority: transport.priority(),
    }
}

/// What `LINTEL_FAULT` asks for, as for Portals over UDP.
fn faults() -> Option<Faults> {
    let text = std::env::var("LINTEL_FAULT").ok()?;
    let parsed = text.parse::<Faults>();
    parsed
        .inspect_err(|error| report(&format!("LINTEL_FAULT: {error}")))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> Option<Device> {
        let sections = parse(text).expect("nothing is wrong with its form");
        of_section(&sections[0])
    }

    #[test]
    fn a_section_makes_a_device_with_its_other_keys() {
        let text = "[bob0]\ntransport = sm\npriority = 7\ndefault = no\nmss = 256\npath = /x\n";
        let device = device(text).expect("a good device");
        assert_eq!(device.conf, ["mss=256", "path=/x"]);
        assert!(device.is_default);
        let rest = (device.priority, device.max_send, device.path.as_str());
        assert_eq!(rest, (7, 256, "/x"));
    }

    #[test]
    fn devices_of_unknown_transports_and_foreign_addresses_are_ignored() {
        for text in [
            "[a]\nip = 127.0.0.1\n",
            "[a]\ntransport = gni\n",
            "[a]\ntransport = sock\n",
            "[a]\ntransport = sock\nip = 192.0.2.1\n",
            "[a]\ntransport = sm\nmss = 63\n",
        ] {
            assert_eq!(device(text), None, "{text}");
        }
        let text = "[a]\ntransport = tcp\nip = 127.0.0.1\nport = 9\n";
        let device = device(text).expect("a good device");
        assert_eq!(device.service.as_deref(), Some("9"));
    }
}
