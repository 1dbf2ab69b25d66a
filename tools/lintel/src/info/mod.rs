//! `lintel info`: what Portals is on this machine, before anything goes wrong.

mod copy;
mod paths;
mod resources;
mod variables;

use std::fmt::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use indexmap::IndexMap;
use lintel_nal_ofi::OfiNal;
use serde::Serialize;

use crate::error::{During, Error, Result};
use crate::machine::{self, Machine};
use crate::output;
use crate::portals::{self, Limits, ProcessId};
use crate::raw::{UdpOption, set_udp_option};
use crate::resources::SharedMemory;

pub use copy::{NAME as PROBE, Probe, probe_from_child, refusal as copy_refusal};
use paths::Paths;
use resources::Overview;
pub use variables::{Current as Variable, current as variables};

/// Options of `lintel info`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Show only the environment variables
    #[arg(long)]
    env: bool,

    /// Show what running processes hold: connections, sockets, bytes, and packets that
    /// were lost, forged or misdirected, by process and by node
    #[arg(long, group = "running", conflicts_with = "env")]
    resources: bool,

    /// Show what running processes wait for, and what their interfaces hold: lists,
    /// unexpected headers, event queues, counters, pending and triggered operations, and
    /// messages by peer. Each process's helper thread answers, though the program hangs
    #[arg(long, group = "running", conflicts_with = "env")]
    queues: bool,

    /// Show how messages go to other processes of this machine, by length, and what was
    /// measured to choose that
    #[arg(long, conflicts_with_all = ["env", "running"])]
    paths: bool,

    /// Only processes of this job, as LINTEL_JOB names it
    #[arg(long, value_name = "JOB", requires = "running")]
    job: Option<String>,

    /// Write the information as JSON
    #[arg(long)]
    json: bool,
}

/// Prints it.
///
/// # Errors
/// What the system refused; an interface that doesn't open is part of the answer.
pub fn run(options: &Options) -> Result<()> {
    if options.queues {
        let processes = lintel_inspect::look(options.job.as_deref());
        let processes = processes.during("asking processes for their state")?;
        return output::print(&render(options, &processes, |all| queues_text(all)));
    }
    if options.resources {
        let overview = Overview::of(&SharedMemory, options.job.as_deref())?;
        return output::print(&render(options, &overview, Overview::text));
    }
    if options.paths {
        let paths = Paths::of_this_machine().map_err(|error| Error::Usage(error.to_string()))?;
        return output::print(&render(options, &paths, Paths::text));
    }
    let variables = variables::current();
    if options.env {
        return output::print(&render(options, &variables, variables_text));
    }
    let info = Info {
        lintel: env!("CARGO_PKG_VERSION"),
        machine: Machine::here(machine::allowed_cores()?),
        interface: interface(),
        interface3: interface3(),
        networks: networks(),
        variables,
    };
    output::print(&render(options, &info, Info::text))
}

/// Everything, in the order that it is printed.
#[derive(Debug, Serialize)]
struct Info {
    lintel: &'static str,
    machine: Machine,
    interface: Interface,
    interface3: Interface3,
    networks: Vec<Network>,
    variables: Vec<variables::Current>,
}

/// The default interface, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Interface {
    Opened(Opened),
    Refused { error: String },
}

/// An interface as `PtlNIInit` gave it, physical and matching: default limits, and every
/// feature that there is.
#[derive(Debug, Serialize)]
struct Opened {
    /// The address whose number is the nid.
    address: Ipv4Addr,
    nid: u32,
    pid: u32,
    uid: u32,
    limits: Limits,
    coherent_atomics: bool,
}

/// The interface of Portals 3.3, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Interface3 {
    Opened(Opened3),
    Refused { error: String },
}

/// As the `PtlNIInit` of Portals 3.3 gave it, with the limits by the names of portals3.h.
#[derive(Debug, Serialize)]
struct Opened3 {
    address: Ipv4Addr,
    nid: u32,
    pid: u32,
    uid: u32,
    jid: u32,
    limits: IndexMap<&'static str, i32>,
}

/// A network abstraction layer.
#[derive(Debug, Serialize)]
struct Network {
    name: &'static str,
    available: bool,
    detail: String,
}

fn interface() -> Interface {
    let open = || -> portals::Result<Opened> {
        let interface = portals::open_default()?;
        let ProcessId { nid, pid } = interface.physical_id()?;
        Ok(Opened {
            address: nid.into(),
            nid,
            pid,
            uid: interface.uid()?,
            limits: interface.limits().copied().unwrap_or(Limits::DEFAULT),
            coherent_atomics: interface.has_coherent_atomics(),
        })
    };
    match open() {
        Ok(opened) => Interface::Opened(opened),
        Err(error) => Interface::Refused {
            error: error.to_string(),
        },
    }
}

fn interface3() -> Interface3 {
    let open = || -> portals33::Result<Opened3> {
        let options = portals33::Options {
            jid: portals33::Ranks::jid_from_env().unwrap_or(0),
            ..portals33::Options::default()
        };
        let interface = portals33::Interface::open(&portals33::Portals::init()?, options)?;
        let ProcessId { nid, pid } = interface.id()?;
        Ok(Opened3 {
            address: nid.into(),
            nid,
            pid,
            uid: interface.uid()?,
            jid: interface.jid()?,
            limits: limits3(interface.limits()),
        })
    };
    match open() {
        Ok(opened) => Interface3::Opened(opened),
        Err(error) => Interface3::Refused {
            error: error.to_string(),
        },
    }
}

fn limits3(limits: &portals33::Limits) -> IndexMap<&'static str, i32> {
    IndexMap::from([
        ("max_mes", limits.max_mes),
        ("max_mds", limits.max_mds),
        ("max_eqs", limits.max_eqs),
        ("max_ac_index", limits.max_ac_index),
        ("max_pt_index", limits.max_pt_index),
        ("max_md_iovecs", limits.max_md_iovecs),
        ("max_me_list", limits.max_me_list),
        ("max_getput_md", limits.max_getput_md),
    ])
}

fn networks() -> Vec<Network> {
    let shm = Network {
        name: "shm",
        available: true,
        detail: format!("processes of one user on this machine; {}", copy::probe()),
    };
    let udp = Network {
        name: "udp",
        available: true,
        detail: format!("processes of other nodes; {}", udp_offload()),
    };
    vec![shm, udp, ofi()]
}

/// What the kernel does for datagrams here.
fn udp_offload() -> &'static str {
    let asked = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        set_udp_option(&socket, UdpOption::Segment, 1400)?;
        set_udp_option(&socket, UdpOption::Coalesce, 1)
    });
    match asked {
        Ok(()) => "datagrams segmented and coalesced by the kernel",
        Err(_) => "datagrams one by one: this kernel neither segments nor coalesces them",
    }
}

fn ofi() -> Network {
    let opened = OfiNal::open(lintel_nal_ofi::Config {
        nid: Ipv4Addr::LOCALHOST.into(),
        port: None,
        provider: std::env::var("PTL_OFI_PROVIDER").ok(),
        key: [0; 32],
        uid: 0,
        model_is_xrc: false,
        peer_timeout: Duration::from_secs(1),
        job: "lintel-info",
        log: |_| (),
    });
    let (available, detail) = match opened {
        Ok(nal) => (
            true,
            format!(
                "processes of other nodes, by libfabric's {}",
                nal.provider_name()
            ),
        ),
        Err(refusal) => (false, refusal.to_string()),
    };
    Network {
        name: "ofi",
        available,
        detail,
    }
}

fn render<T: Serialize>(options: &Options, value: &T, text: impl Fn(&T) -> String) -> String {
    match options.json {
        true => serde_json::to_string_pretty(value).expect("plain data") + "\n",
        false => text(value),
    }
}

impl Info {
    fn text(&self) -> String {
        let machine = &self.machine;
        let mut out = format!("lintel {}\n\nmachine\n", self.lintel);
        pair(&mut out, "host", &machine.host);
        pair(&mut out, "processor", &machine.cpu);
        pair(&mut out, "kernel", &format!("Linux {}", machine.kernel));
        pair(&mut out, "cores allowed", &machine.processors.to_string());
        pair(&mut out, "huge pages", &machine.huge_pages);
        out.push_str("\ninterface (PTL_IFACE_DEFAULT, matching, physical, default limits)\n");
        match &self.interface {
            Interface::Opened(opened) => opened.text(&mut out),
            Interface::Refused { error } => pair(&mut out, "not available", error),
        }
        out.push_str("\ninterface of Portals 3.3 (PTL_IFACE_DEFAULT, default limits)\n");
        match &self.interface3 {
            Interface3::Opened(opened) => opened.text(&mut out),
            Interface3::Refused { error } => pair(&mut out, "not available", error),
        }
        out.push_str("\nnetworks\n");
        for network in &self.networks {
            pair(&mut out, network.name, &network.detail);
        }
        out.push('\n');
        out.push_str(&variables_text(&self.variables));
        out
    }
}

impl Opened {
    fn text(&self, out: &mut String) {
        pair(
            out,
            "nid, pid, uid",
            &format!(
                "{} ({}), {}, {}",
                self.address, self.nid, self.pid, self.uid
            ),
        );
        let limits = serde_json::to_value(self.limits).expect("plain data");
        for (name, value) in limits.as_object().into_iter().flatten() {
            let value = match name.as_str() {
                "features" => self.features(),
                _ => value.to_string(),
            };
            pair(out, name, &value);
        }
    }

    fn features(&self) -> String {
        let names = [
            "PTL_TARGET_BIND_INACCESSIBLE",
            "PTL_TOTAL_DATA_ORDERING",
            "PTL_COHERENT_ATOMICS",
        ];
        let set = (0..names.len()).filter(|bit| self.limits.features & (1 << bit) != 0);
        let set: Vec<&str> = set.map(|bit| names[bit]).collect();
        if set.is_empty() {
            "none".into()
        } else {
            set.join(", ")
        }
    }
}

impl Opened3 {
    fn text(&self, out: &mut String) {
        let Self {
            address,
            nid,
            pid,
            uid,
            jid,
            ..
        } = self;
        pair(
            out,
            "nid, pid, uid, jid",
            &format!("{address} ({nid}), {pid}, {uid}, {jid}"),
        );
        for (name, value) in &self.limits {
            pair(out, name, &value.to_string());
        }
    }
}

fn queues_text(processes: &[lintel_inspect::Process]) -> String {
    if processes.is_empty() {
        return resources::NOBODY.into();
    }
    let reasons = lintel_inspect::reasons(processes).join("\n");
    format!("{}\n{reasons}\n", lintel_inspect::text(processes))
}

fn variables_text(variables: &Vec<variables::Current>) -> String {
    let mut out = String::from("environment variables\n");
    for variable in variables {
        let value = match &variable.value {
            Some(value) => format!("\"{value}\""),
            None => "not set".into(),
        };
        pair(&mut out, variable.name, variable.meaning);
        let (default, values) = (variable.default, variable.values);
        pair(
            &mut out,
            "",
            &format!("{value}; default {default}; takes {values}"),
        );
    }
    out
}

fn pair(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<22} {value}");
}
