//! How many contexts, and how much memory, as the nodes fill up: fresh processes for
//! every count and model, since a process remembers what it once allocated.

use std::time::{Duration, Instant};

use lintel_pmi::client::Client;

use super::formula::Place;

use crate::error::Result;
use crate::perf::fresh_processes::resident_kib;
use crate::perf::multi_pair::jobs::{Job, Task};
use crate::perf::multi_pair::{MultiPair, NODES, RankLayout};
use crate::perf::network::Model;
use crate::perf::options::Options;
use crate::portals::Transfer;
use crate::report::Row;
use crate::report::names::COUNTS;
use crate::resources::{Counters, Published, Source};
use crate::stats::doubling;
use crate::team::{Team, WORDS};

/// A job for each number of processes and each model.
///
/// # Errors
/// A job that can't be started or fails.
pub fn jobs(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for slots in doubling(options.most_processes) {
        for model in &options.models {
            let job = Job {
                task: Task::Counts,
                ranks: NODES * slots,
                variables: vec![("PTL_CONN".into(), model.name().into())],
            };
            rows.extend(job.run(options)?);
        }
    }
    Ok(rows)
}

/// In each rank: puts to every process of the other node, then reports what it holds.
///
/// # Errors
/// What the launcher, Portals or the system refused.
pub fn counts(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let slots = client.size() / NODES;
    let layout = RankLayout { groups: 1, slots };
    let multi_pair = MultiPair::join(client, layout, options, 4096)?;
    let before = resident_kib()?;
    touch_all(&multi_pair)?;
    let grown = resident_kib()?.saturating_sub(before);
    let all = tell_all(&multi_pair, grown)?;
    let model = options.network.conn.unwrap_or(Model::Xrc);
    Ok(vec![row(model, slots, &all)])
}

/// An acknowledged put to each; the first ones in an order of each process's own, so
/// that no receiver is everybody's first.
fn touch_all(multi_pair: &MultiPair) -> Result<()> {
    let slots = multi_pair.layout.slots;
    let target = |index| Transfer {
        length: 8,
        ..multi_pair.across(index)
    };
    let targets: Vec<Transfer> = (0..slots).map(target).collect();
    multi_pair.team.barrier()?;
    multi_pair
        .endpoint
        .stream(&targets, multi_pair.me.index, slots as u64, 16)?;
    multi_pair.endpoint.await_arrivals(slots as u64)?;
    multi_pair.team.barrier()
}

/// What each process holds, by rank: its counters, read by another one, and by how many
/// KiB its resident memory has grown.
fn tell_all(multi_pair: &MultiPair, grown: u64) -> Result<Vec<(Counters, u64)>> {
    let team = &multi_pair.team;
    let mut words = [0; WORDS];
    words[0] = std::process::id().into();
    words[1] = grown;
    let reports = team.exchange(words)?;
    // A process doesn't see itself among the published ones, so rank 1 looks at rank 0.
    let own = match team.rank() {
        0 | 1 => look(team, &reports, multi_pair.layout.slots as u64)?,
        _ => Vec::new(),
    };
    let of_zero = match (team.rank(), own.first()) {
        (1, Some(Some(counters))) => counters.to_words(),
        _ => [0; WORDS],
    };
    let of_zero = Counters::from_words(team.exchange(of_zero)?[1]);
    let own = own.into_iter().chain(std::iter::repeat(None));
    let counters = own.zip(&reports).enumerate().map(|(rank, (seen, words))| {
        let counters = if rank == 0 {
            of_zero
        } else {
            seen.unwrap_or_default()
        };
        (counters, words[1])
    });
    Ok(counters.collect())
}

/// The counters of every other rank, once each that has a network is in touch with
/// `pairs` processes, or as they are when that takes too long.
fn look(team: &Team, reports: &[[u64; WORDS]], pairs: u64) -> Result<Vec<Option<Counters>>> {
    let end = Instant::now() + SETTLING;
    loop {
        let published = crate::resources::SharedMemory.published()?;
        let of = |pid: u64| {
            let same = |one: &&Published| u64::try_from(one.os_process) == Ok(pid);
            published.iter().find(same)
        };
        let found: Vec<Option<&Published>> = reports.iter().map(|words| of(words[0])).collect();
        let settled = |(rank, seen): (usize, &Option<&Published>)| {
            let is_complete = |one: &Published| one.conn.is_none() || one.counters.pairs >= pairs;
            rank == team.rank() || seen.is_some_and(is_complete)
        };
        if found.iter().enumerate().all(settled) || Instant::now() > end {
            let counters = |seen: Option<&Published>| seen.map(|one| one.counters);
            return Ok(found.into_iter().map(counters).collect());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn row(model: Model, slots: usize, all: &[(Counters, u64)]) -> Row {
    let place = Place {
        processes: (NODES * slots) as u64,
        a_node: slots as u64,
    };
    let mean = |value: fn(&Counters) -> u64| {
        all.iter()
            .map(|(counters, _)| value(counters) as f64)
            .sum::<f64>()
            / all.len() as f64
    };
    let a_node = |node: usize| -> u64 {
        let of_node = &all[node * slots..(node + 1) * slots];
        let own: u64 = of_node.iter().map(|(counters, _)| counters.contexts).sum();
        let shared = of_node.iter().map(|(counters, _)| counters.shared_contexts);
        own + shared.max().unwrap_or(0)
    };
    let bytes = all.iter().map(|(counters, _)| counters.bytes);
    let least = bytes.min().unwrap_or(0);
    let resident = all.iter().map(|(_, kib)| *kib as f64).sum::<f64>() / all.len() as f64;
    Row::new(COUNTS, model.name(), 0)
        .with("processes a node", slots as f64)
        .with("contexts a process", mean(|c| c.contexts))
        .with(
            "by formula",
            place.software_contexts(model).a_process as f64,
        )
        .with("contexts a node", a_node(0).max(a_node(1)) as f64)
        .with(
            "node by formula",
            place.software_contexts(model).a_node as f64,
        )
        .with("pairs a process", mean(|c| c.pairs))
        .with("sockets a process", mean(|c| c.sockets))
        .with("bytes a process", mean(|c| c.bytes))
        .with("the least", least as f64)
        .with("resident KiB more", resident)
}

const SETTLING: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
