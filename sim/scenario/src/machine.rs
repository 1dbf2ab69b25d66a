//! The table `machine`: a model, and what it is made of.

use lintel_sim_fabric::{
    Arbitration, Dimension, Dragonfly, Fabric, FatTree, FreeFabric, PacketFabric, Parameters,
    Topology, Torus,
};
use lintel_sim_goal::{Goal, Hosts, LogGp, Machine, Network, Over};
use lintel_sim_kernel::{Bandwidth, Bytes, Duration, Simulation, Streams};
use lintel_sim_node::{Noise, NoiseParameters, Placement};
use lintel_sim_seastar::profile::PROFILES;
use lintel_sim_triggered::NOISES;

use crate::choice::descriptions;
use crate::config_error::ConfigError;
use crate::reader::Reader;
use crate::run::{Run, Stepped};
use crate::span::{Observer, Place, relay};
use crate::workload::{self, Workload};
use crate::{seastar, triggered, verbs};

/// A machine with its workload.
#[derive(Clone, Debug)]
pub(crate) enum Setup {
    /// Hosts that execute a schedule.
    Hosts(Box<HostsSetup>),
    /// The simulated SeaStar machine.
    SeaStar(Box<seastar::Setup>),
    /// Hosts whose interfaces execute triggered operations.
    Triggered(Box<triggered::Setup>),
    /// Two nodes with host channel adapters.
    Verbs(verbs::Setup),
}

/// A model that `machine.model` selects.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The word that selects it.
    pub name: &'static str,
    /// What it simulates, in a line.
    pub about: &'static str,
    family: Family,
    read: fn(&Reader<'_>) -> Result<Setup, ConfigError>,
}

/// Workloads that the same models run.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// The models' names, with commas between them.
    pub models: String,
    /// What `workload.kind` takes, each with a description and its settings.
    pub kinds: Vec<(&'static str, &'static str)>,
}

/// Models that run the same workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Hosts,
    SeaStar,
    Triggered,
    Verbs,
}

/// All models. What is said or read of one is said and read here.
static MODELS: [Model; 6] = [
    Model {
        name: "loggp",
        about: "hosts and a network of the LogGOPS model, without contention",
        family: Family::Hosts,
        read: |reader| HostsSetup::read(reader, Wires::log_gp(reader)?),
    },
    Model {
        name: "free",
        about: "hosts on a topology, messages timed by formula: only the ends are shared",
        family: Family::Hosts,
        read: |reader| HostsSetup::read(reader, Wires::fabric(reader, Exactness::Free)?),
    },
    Model {
        name: "packet",
        about: "hosts on a topology, each packet over each link",
        family: Family::Hosts,
        read: |reader| HostsSetup::read(reader, Wires::fabric(reader, Exactness::Packet)?),
    },
    Model {
        name: "seastar",
        about: "the SeaStar machine: engine, firmware, DMA engines, torus",
        family: Family::SeaStar,
        read: |reader| Ok(Setup::SeaStar(Box::new(seastar::Setup::read(reader)?))),
    },
    Model {
        name: "triggered",
        about: "hosts and interfaces that execute triggered operations, on a torus",
        family: Family::Triggered,
        read: |reader| Ok(Setup::Triggered(Box::new(triggered::Setup::read(reader)?))),
    },
    Model {
        name: "verbs",
        about: "two nodes with host channel adapters: RC, XRC or UD",
        family: Family::Verbs,
        read: |reader| verbs::Setup::read(reader).map(Setup::Verbs),
    },
];

/// The models that `machine.model` selects, in the order of the table.
pub fn models() -> &'static [Model] {
    &MODELS
}

/// All workloads, by the models that run them.
pub fn workloads() -> Vec<Workloads> {
    let families = MODELS.chunk_by(|one, next| one.family == next.family);
    let of = |models: &[Model]| Workloads {
        models: models.iter().map(|m| m.name).collect::<Vec<_>>().join(", "),
        kinds: models[0].family.kinds(),
    };
    families.map(of).collect()
}

impl Family {
    fn kinds(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Family::Hosts => descriptions(&workload::KINDS),
            Family::SeaStar => descriptions(&seastar::KINDS),
            Family::Triggered => descriptions(&triggered::KINDS),
            Family::Verbs => descriptions(&verbs::KINDS),
        }
    }
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, ConfigError> {
        let models: Vec<(&str, &Model)> = MODELS.iter().map(|m| (m.name, m)).collect();
        let model = reader.must_choose("machine.model", &models)?;
        (model.read)(reader)
    }

    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Setup::Hosts(setup) => setup.workload.file(),
            Setup::SeaStar(_) | Setup::Triggered(_) | Setup::Verbs(_) => None,
        }
    }

    pub(crate) fn prepare(
        &self,
        text: Option<&str>,
        observer: Option<Observer>,
    ) -> Result<Box<dyn Run>, String> {
        match self {
            Setup::Hosts(setup) => setup.prepare(text, observer),
            Setup::SeaStar(setup) => setup.prepare(observer),
            Setup::Triggered(setup) => setup.prepare(observer),
            Setup::Verbs(setup) => Ok(setup.prepare(observer)),
        }
    }
}

/// Hosts, what joins them, and what they do.
#[derive(Clone, Debug)]
pub(crate) struct HostsSetup {
    wires: Wires,
    hosts: Hosts,
    noise: Option<NoiseParameters>,
    seed: u64,
    workload: Workload,
}

/// The network between hosts.
#[derive(Clone, Debug)]
enum Wires {
    LogGp(LogGp),
    Fabric(Box<FabricSetup>),
}

#[derive(Clone, Debug)]
struct FabricSetup {
    exactness: Exactness,
    shape: Shape,
    parameters: Parameters,
    header: Bytes,
    ranks_per_node: u32,
}

#[derive(Clone, Copy, Debug)]
enum Exactness {
    Free,
    Packet,
}

#[derive(Clone, Debug)]
enum Shape {
    Torus(Torus),
    FatTree(FatTree),
    Dragonfly(Dragonfly),
}

impl HostsSetup {
    fn read(reader: &Reader<'_>, wires: Wires) -> Result<Setup, ConfigError> {
        let ranks = match &wires {
            Wires::LogGp(_) => None,
            Wires::Fabric(fabric) => Some(fabric.nodes() * u64::from(fabric.ranks_per_node)),
        };
        Ok(Setup::Hosts(Box::new(HostsSetup {
            hosts: hosts(reader, &wires)?,
            noise: noise(reader)?,
            seed: reader.number("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
            workload: Workload::read(reader, ranks)?,
            wires,
        })))
    }

    fn prepare(
        &self,
        text: Option<&str>,
        observer: Option<Observer>,
    ) -> Result<Box<dyn Run>, String> {
        let goal = self.workload.goal(text, Streams::new(self.seed))?;
        match &self.wires {
            Wires::LogGp(wire) => self.on(&goal, *wire, observer),
            Wires::Fabric(fabric) => match fabric.shape.clone() {
                Shape::Torus(shape) => self.over(&goal, fabric, shape, observer),
                Shape::FatTree(shape) => self.over(&goal, fabric, shape, observer),
                Shape::Dragonfly(shape) => self.over(&goal, fabric, shape, observer),
            },
        }
    }

    fn over<T: Topology + 'static>(
        &self,
        goal: &Goal,
        setup: &FabricSetup,
        shape: T,
        observer: Option<Observer>,
    ) -> Result<Box<dyn Run>, String> {
        let wrong = |error: lintel_sim_fabric::ConfigError| error.to_string();
        match setup.exactness {
            Exactness::Free => {
                let fabric = FreeFabric::new(shape, &setup.parameters).map_err(wrong)?;
                self.on(goal, setup.joined(fabric, goal)?, observer)
            }
            Exactness::Packet => {
                let fabric = PacketFabric::new(shape, &setup.parameters).map_err(wrong)?;
                self.on(goal, setup.joined(fabric, goal)?, observer)
            }
        }
    }

    fn on<N: Network + 'static>(
        &self,
        goal: &Goal,
        network: N,
        observer: Option<Observer>,
    ) -> Result<Box<dyn Run>, String> {
        let schedule = goal.compile().map_err(|circle| circle.to_string())?;
        let mut machine = Machine::new(schedule, self.hosts, network);
        if let Some(noise) = self.noise {
            let noisy = machine.with_noise(noise, Streams::new(self.seed));
            machine = noisy.map_err(|error| error.to_string())?;
        }
        if let Some(observer) = observer {
            machine = machine.observed(relay(observer, Place::Rank));
        }
        let mut simulation = Simulation::new(machine);
        simulation.world.start(&mut simulation.events);
        let workload = self.workload.clone();
        Ok(Box::new(Stepped {
            simulation,
            done: Box::new(|machine| {
                let all = machine.operations().max(1);
                1.0 - machine.undone() as f64 / all as f64
            }),
            read: Box::new(move |simulation| {
                let machine = &simulation.world;
                match machine.unfinished() {
                    Some(unfinished) => Err(unfinished.to_string()),
                    None => Ok(workload.figures(machine.end(), machine.sent())),
                }
            }),
        }))
    }
}

impl FabricSetup {
    fn nodes(&self) -> u64 {
        u64::from(match &self.shape {
            Shape::Torus(shape) => shape.nodes(),
            Shape::FatTree(shape) => shape.nodes(),
            Shape::Dragonfly(shape) => shape.nodes(),
        })
    }

    /// The fabric with its ranks, if they are enough.
    fn joined<F: Fabric>(&self, fabric: F, goal: &Goal) -> Result<Over<F>, String> {
        let over = Over::new(fabric, self.header).ranks_per_node(self.ranks_per_node);
        let (needed, there) = (goal.ranks(), over.ranks());
        match u64::from(needed) <= there {
            true => Ok(over),
            false => Err(format!(
                "the schedule has {needed} ranks, the machine room for {there}: \
                 make machine.size or machine.ranks_per_node larger"
            )),
        }
    }
}

impl Wires {
    /// L and G, by default LogGOPSim's.
    fn log_gp(reader: &Reader<'_>) -> Result<Wires, ConfigError> {
        let latency = reader.number("machine.latency_ns", 0..=MOST_NS)?;
        let per_byte = reader.number("machine.gap_ps_per_byte", 0..=MOST_NS)?;
        let wire = LogGp::new(Duration::from_ns(latency.unwrap_or(2_500)));
        Ok(Wires::LogGp(
            wire.per_byte(Duration::from_ps(per_byte.unwrap_or(6_000))),
        ))
    }

    fn fabric(reader: &Reader<'_>, exactness: Exactness) -> Result<Wires, ConfigError> {
        let ranks_per_node = reader.count("machine.ranks_per_node", 1..=4_096)?;
        let header = reader.number("machine.link.header_bytes", 0..=4_096)?;
        let setup = FabricSetup {
            exactness,
            shape: shape(reader)?,
            parameters: parameters(reader)?,
            header: Bytes(header.unwrap_or(0)),
            ranks_per_node: ranks_per_node.unwrap_or(1),
        };
        let most = match exactness {
            Exactness::Free => 1 << 22,
            Exactness::Packet => 1 << 20,
        };
        match setup.nodes() {
            nodes if nodes > most => {
                let what = format!("machine.size has {nodes} nodes; this model takes {most}");
                Err(reader.wrong("machine.size", what))
            }
            _ => Ok(Wires::Fabric(Box::new(setup))),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Torus,
    Mesh,
    FatTree,
    Dragonfly,
}

fn shape(reader: &Reader<'_>) -> Result<Shape, ConfigError> {
    let kinds = [
        ("torus", Kind::Torus),
        ("mesh", Kind::Mesh),
        ("fat-tree", Kind::FatTree),
        ("dragonfly", Kind::Dragonfly),
    ];
    let kind = reader.choose("machine.topology", &kinds)?;
    let kind = kind.unwrap_or(Kind::Torus);
    let example = match kind {
        Kind::Torus | Kind::Mesh => "8x8x8",
        Kind::FatTree => "4x4",
        Kind::Dragonfly => "9x4x2",
    };
    let Some(sizes) = reader.sizes("machine.size", example)? else {
        let what = format!("machine.size is missing; it takes sizes, such as {example:?}");
        return Err(reader.wrong("machine.size", what));
    };
    build(reader, kind, &sizes)
}

fn build(reader: &Reader<'_>, kind: Kind, sizes: &[u32]) -> Result<Shape, ConfigError> {
    let wrong = |error: lintel_sim_fabric::ConfigError| {
        reader.wrong("machine.size", format!("machine.size: {error}"))
    };
    match kind {
        Kind::Torus | Kind::Mesh => {
            let sides = sides(reader, sizes)?;
            let torus = match kind {
                Kind::Torus => Torus::new(sides.map(Dimension::ring)),
                _ => Torus::new(sides.map(Dimension::line)),
            };
            torus.map(Shape::Torus).map_err(wrong)
        }
        Kind::FatTree => {
            let up = reader.sizes("machine.parents", "1x4")?;
            let up = up.unwrap_or_else(|| vec![1, sizes[0]]);
            FatTree::new(sizes, &up).map(Shape::FatTree).map_err(wrong)
        }
        Kind::Dragonfly => {
            let fars = reader.count("machine.far_links", 1..=4_096)?;
            let fars = fars.unwrap_or((sizes[0] - 1).div_ceil(sizes[1]).max(1));
            Dragonfly::new(sizes[0], sizes[1], sizes[2], fars)
                .map(Shape::Dragonfly)
                .map_err(wrong)
        }
    }
}

/// Three sides, as a torus counts them.
pub(crate) fn sides(reader: &Reader<'_>, sizes: &[u32]) -> Result<[u16; 3], ConfigError> {
    let mut sides = [1; 3];
    for (side, &size) in sides.iter_mut().zip(sizes) {
        *side = u16::try_from(size).map_err(|_| {
            let what = format!("machine.size has a side of {size}; it takes 1 to 16384");
            reader.wrong("machine.size", what)
        })?;
    }
    Ok(sides)
}

/// A profile's network, with what the scenario has otherwise.
fn parameters(reader: &Reader<'_>) -> Result<Parameters, ConfigError> {
    let profiles = PROFILES.map(|profile| (profile.name, profile.network()));
    let mut network = reader
        .choose("machine.profile", &profiles)?
        .unwrap_or(profiles[0].1);
    let bandwidth = |key: &str| -> Result<Option<Bandwidth>, ConfigError> {
        let rate = reader.number(&format!("machine.link.{key}"), 1..=1_000_000)?;
        Ok(rate.and_then(|mb| Bandwidth::from_bytes_per_second(mb * 1_000_000)))
    };
    let latency = |key: &str| -> Result<Option<Duration>, ConfigError> {
        let ns = reader.number(&format!("machine.link.{key}"), 0..=MOST_NS)?;
        Ok(ns.map(Duration::from_ns))
    };
    if let Some(rate) = bandwidth("bandwidth_mb_per_s")? {
        (network.near.bandwidth, network.far.bandwidth) = (rate, rate);
    }
    if let Some(rate) = bandwidth("port_mb_per_s")? {
        (network.inject.bandwidth, network.eject.bandwidth) = (rate, rate);
    }
    if let Some(hop) = latency("hop_ns")? {
        (network.near.latency, network.far.latency) = (hop, hop);
    }
    if let Some(far) = latency("far_ns")? {
        network.far.latency = far;
    }
    if let Some(port) = latency("port_ns")? {
        (network.inject.latency, network.eject.latency) = (port, port);
    }
    if let Some(credit) = latency("credit_ns")? {
        network.credit = credit;
    }
    buffering(reader, &mut network)?;
    Ok(network)
}

/// Packets, buffers and arbitration.
fn buffering(reader: &Reader<'_>, network: &mut Parameters) -> Result<(), ConfigError> {
    if let Some(bytes) = reader.number("machine.link.packet_bytes", 1..=1 << 20)? {
        network.packet = Bytes(bytes);
    }
    if let Some(packets) = reader.count("machine.link.buffer_packets", 1..=4_096)? {
        network.buffer = packets;
    }
    let ways = [
        ("turns", Arbitration::RoundRobin),
        ("oldest", Arbitration::Oldest),
    ];
    if let Some(way) = reader.choose("machine.link.arbitration", &ways)? {
        network.arbitration = way;
    }
    Ok(())
}

/// o, g, O and S: LogGOPSim's with its network, none with a fabric.
fn hosts(reader: &Reader<'_>, wires: &Wires) -> Result<Hosts, ConfigError> {
    let usual = match wires {
        Wires::LogGp(_) => Hosts::LOGGOPSIM,
        Wires::Fabric(_) => Hosts::FREE,
    };
    let overhead = reader.number("machine.host.overhead_ns", 0..=MOST_NS)?;
    let per_byte = reader.number("machine.host.overhead_ps_per_byte", 0..=MOST_NS)?;
    let gap = reader.number("machine.host.gap_ns", 0..=MOST_NS)?;
    let eager = reader.number("machine.host.eager_bytes", 0..=i64::MAX as u64)?;
    Ok(Hosts {
        overhead: overhead.map_or(usual.overhead, Duration::from_ns),
        overhead_per_byte: per_byte.map_or(usual.overhead_per_byte, Duration::from_ps),
        gap: gap.map_or(usual.gap, Duration::from_ns),
        eager: eager.unwrap_or(usual.eager),
    })
}

/// One of the profiles of the first studies, or what the scenario says.
pub(crate) fn noise(reader: &Reader<'_>) -> Result<Option<NoiseParameters>, ConfigError> {
    let [often, middle, seldom] = NOISES.map(Some);
    let profiles = [
        ("none", None),
        ("100khz", often),
        ("1khz", middle),
        ("10hz", seldom),
    ];
    match reader.choose("machine.noise.profile", &profiles)? {
        Some(profile) => Ok(profile),
        None => noise_by_numbers(reader),
    }
}

fn noise_by_numbers(reader: &Reader<'_>) -> Result<Option<NoiseParameters>, ConfigError> {
    let placements = [
        ("periodic", Placement::Periodic),
        ("scattered", Placement::Scattered),
    ];
    let placement = reader.choose("machine.noise.placement", &placements)?;
    let length = reader.number("machine.noise.length_ns", 0..=MOST_NS)?;
    let interval = reader.number("machine.noise.interval_ns", 1..=MOST_NS)?;
    let (length, interval) = match (length, interval) {
        (None | Some(0), _) => return Ok(None),
        (Some(length), Some(interval)) => (length, interval),
        (Some(_), None) => {
            let what =
                "machine.noise.interval_ns is missing; noise of a length comes once in so long";
            return Err(reader.wrong("machine.noise.length_ns", what.into()));
        }
    };
    let noise = NoiseParameters {
        length: Duration::from_ns(length),
        interval: Duration::from_ns(interval),
        placement: placement.unwrap_or(Placement::Scattered),
    };
    let tried = Noise::new(noise, Streams::new(0).stream("tried"));
    let wrong = |error: lintel_sim_node::ConfigError| {
        reader.wrong("machine.noise.length_ns", format!("machine.noise: {error}"))
    };
    tried.map(|_| Some(noise)).map_err(wrong)
}

/// A quarter of an hour.
const MOST_NS: u64 = 1_000_000_000_000;
