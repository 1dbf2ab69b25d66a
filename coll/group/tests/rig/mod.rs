//! A Portals library in one process: each rank is a thread, and a message is delivered
//! within the call that sends it, or that makes its counter reach the threshold.
//!
//! It keeps the promises of [`Portals`] and nothing more: a counter that a put, an atomic
//! or an increment raises releases what was posted for it; a probe is answered by the
//! target's entries. Ranks can be killed, messages to them can fail, and resources run out.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod plain;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lintel_claim::{Lease, RemoteMemory, combine, copy};
use lintel_group::{
    Buffers, CREATE_TIMEOUT, Call, CountingEvent, Group, Message, NiFail, Portals, PortalsError,
    ProcessId, Progress, Region, Separate, SharedMemory, Spec,
};

/// Longer than any job takes on a loaded machine: a rank that still waits then waits for nothing.
pub const LIMIT: Duration = Duration::from_secs(240);

type Result<T> = std::result::Result<T, PortalsError>;

/// What all ranks of a job share.
pub struct Network {
    begun: Instant,
    processes: Vec<ProcessId>,
    ranks: Mutex<Vec<Rank>>,
    changed: Condvar,
}

/// The interface of one rank.
struct Rank {
    region: Region,
    counters: Vec<Slot>,
    entries: Vec<Option<MatchEntry>>,
    triggered: Vec<Triggered>,
    probes: Vec<(u64, NiFail)>,
    is_dead: bool,
    /// Counters that may still be allocated.
    counters_left: usize,
    /// Probes that other ranks have sent to this one.
    probed: usize,
    /// Match bits of the probes that entries of this rank have accepted.
    accepted: Vec<u64>,
    /// Messages that this rank has sent to others.
    sent: usize,
    /// Messages to this rank that none of its entries has accepted.
    dropped: usize,
}

/// A counter, if it is allocated.
type Slot = Option<CountingEvent>;

struct MatchEntry {
    match_bits: u64,
    place: (u64, u64),
    counter: Option<usize>,
}

struct Triggered {
    counter: usize,
    threshold: u64,
    act: Act,
}

enum Act {
    Send(Message),
    Count(usize),
}

/// A rank's view of the network.
pub struct Library {
    network: Arc<Network>,
    rank: usize,
}

pub struct Counter(Arc<Network>, usize, usize);

pub struct Entry(Arc<Network>, usize, usize);

impl Network {
    pub fn new(ranks: usize) -> Arc<Network> {
        Network::on_nodes(&vec![7; ranks])
    }

    /// Of a rank on each of those nodes, which may be the same ones.
    pub fn on_nodes(nodes: &[u32]) -> Arc<Network> {
        let rank = |_| Rank {
            region: Region::new(Group::<Library>::region_bytes_on_nodes(nodes.len())),
            counters: Vec::new(),
            entries: Vec::new(),
            triggered: Vec::new(),
            probes: Vec::new(),
            is_dead: false,
            counters_left: usize::MAX,
            probed: 0,
            accepted: Vec::new(),
            sent: 0,
            dropped: 0,
        };
        let processes = nodes.iter().zip(0..);
        Arc::new(Network {
            begun: Instant::now(),
            processes: processes
                .map(|(nid, rank)| ProcessId::new(*nid, rank))
                .collect(),
            ranks: Mutex::new((0..nodes.len()).map(rank).collect()),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rank>> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is sent to this rank from now on is undeliverable.
    pub fn kill(&self, rank: usize) {
        self.lock()[rank].is_dead = true;
        self.changed.notify_all();
    }

    /// A message to this rank fails, whatever counter it was for.
    pub fn fail_a_message(&self, rank: usize) {
        for counter in self.lock()[rank].counters.iter_mut().flatten() {
            counter.failure += 1;
        }
        self.changed.notify_all();
    }

    /// The rank's interface has this many counters and no more.
    pub fn limit_counters(&self, rank: usize, counters: usize) {
        self.lock()[rank].counters_left = counters;
    }

    /// Returns once the condition holds for how often others have probed the rank.
    pub fn wait_until_probed(&self, rank: usize, times: usize) {
        let ranks = self.lock();
        let deadline = Duration::from_secs(60);
        let (_ranks, timeout) = self
            .changed
            .wait_timeout_while(ranks, deadline, |ranks| ranks[rank].probed < times)
            .expect("no test panics inside a call");
        assert!(!timeout.timed_out(), "rank {rank} was probed {times} times");
    }

    /// Returns once an entry of the rank with these match bits has accepted a probe.
    pub fn wait_until_accepted(&self, rank: usize, match_bits: u64) {
        let ranks = self.lock();
        let deadline = Duration::from_secs(60);
        let is_due = |ranks: &mut Vec<Rank>| !ranks[rank].accepted.contains(&match_bits);
        let waited = self.changed.wait_timeout_while(ranks, deadline, is_due);
        let (_ranks, timeout) = waited.expect("no test panics inside a call");
        assert!(!timeout.timed_out(), "rank {rank} accepted no probe");
    }

    /// Counters and entries that the rank hasn't given back.
    pub fn resources(&self, rank: usize) -> usize {
        let rank = &self.lock()[rank];
        rank.counters.iter().flatten().count() + rank.entries.iter().flatten().count()
    }

    /// Messages that the rank has sent to others.
    pub fn sent(&self, rank: usize) -> usize {
        self.lock()[rank].sent
    }

    /// Messages to a rank that lives, but had no entry for them.
    pub fn dropped(&self) -> usize {
        self.lock().iter().map(|rank| rank.dropped).sum()
    }

    pub fn library(self: &Arc<Self>, rank: usize) -> Library {
        let network = Arc::clone(self);
        Library { network, rank }
    }

    /// Creates this rank's group of all ranks.
    pub fn group(
        self: &Arc<Self>,
        rank: usize,
        progress: Progress,
    ) -> lintel_group::Result<Group<Library>> {
        self.group_of(rank, self.spec(rank, progress))
    }

    pub fn spec(&self, rank: usize, progress: Progress) -> Spec {
        Spec {
            processes: self.processes.clone(),
            rank: rank as u32,
            progress,
            create_timeout: CREATE_TIMEOUT,
        }
    }

    pub fn group_of(
        self: &Arc<Self>,
        rank: usize,
        spec: Spec,
    ) -> lintel_group::Result<Group<Library>> {
        let region = self.lock()[rank].region.clone();
        Group::create(self.library(rank), region, spec)
    }
}

pub fn process(rank: usize) -> ProcessId {
    ProcessId::new(7, rank as u32)
}

pub fn processes(ranks: usize) -> Vec<ProcessId> {
    (0..ranks).map(process).collect()
}

/// What carries out the operations of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Messages(Progress),
    SharedMemory,
    /// And by single copies from each other's own memory, if those are measured to be quicker.
    Measured,
    /// All long ones by single copies.
    SingleCopy,
    /// Those that ranks give whose number isn't a multiple of three.
    SomeSingleCopy,
}

impl From<Progress> for By {
    fn from(progress: Progress) -> By {
        By::Messages(progress)
    }
}

/// Runs a thread for each rank, each with its group of all of them; what they return, by
/// rank.
pub fn job<R: Send>(
    ranks: usize,
    by: impl Into<By>,
    body: impl Fn(&Arc<Network>, Group<Library>) -> R + Sync,
) -> Vec<R> {
    let by = by.into();
    let network = Network::new(ranks);
    let memories = memories(ranks);
    let results = on_threads(ranks, |rank| {
        let progress = match by {
            By::Messages(progress) => progress,
            _ => Progress::Offloaded,
        };
        let mut group = network.group(rank, progress).expect("all ranks are there");
        match by {
            By::Messages(_) => {}
            By::SharedMemory => share(&mut group, &memories),
            By::Measured => share_all(&mut group, &memories, None),
            By::SingleCopy => share_all(&mut group, &memories, Some(0)),
            By::SomeSingleCopy => {
                let eager = [u64::MAX, 0, 0][rank % 3];
                share_all(&mut group, &memories, Some(eager));
            }
        }
        body(&network, group)
    });
    results.into_iter().collect()
}

/// Memory of each rank that all ranks can access.
pub fn memories(ranks: usize) -> Vec<Region> {
    let region = |_| Region::new(SharedMemory::BYTES);
    (0..ranks).map(region).collect()
}

/// As [`job`], on those nodes, with memory shared on each. Of long bytes, those that ranks of nodes with
/// an odd number give are copied once.
pub fn job_on_nodes<R: Send>(
    nodes: &[u32],
    body: impl Fn(&Arc<Network>, Group<Library>) -> R + Sync,
) -> Vec<R> {
    let network = Network::on_nodes(nodes);
    let memories = memories(nodes.len());
    on_threads(nodes.len(), |rank| {
        let mut group = network
            .group(rank, Progress::Offloaded)
            .expect("all ranks are there");
        share_on_nodes(&mut group, nodes, &memories);
        assert!(group.is_sharing_on_nodes());
        body(&network, group)
    })
}

pub fn share_on_nodes(group: &mut Group<Library>, nodes: &[u32], memories: &[Region]) {
    let own = nodes[group.rank() as usize];
    let near = nodes.iter().zip(memories).filter(|(node, _)| **node == own);
    let near: Vec<Region> = near.map(|(_, memory)| memory.clone()).collect();
    let memory = match own % 2 {
        0 => shared_memory(&near),
        _ => single_copy_memory(&near).with_eager(0),
    };
    let shared = group.share_on_nodes(memory, nodes);
    shared.expect("it is of as many ranks, and no rank fails");
}

pub fn share(group: &mut Group<Library>, memories: &[Region]) {
    let shared = group.share(shared_memory(memories));
    shared.expect("it is of as many ranks");
    assert!(group.is_sharing());
}

/// More bytes that a rank gives than `eager` are copied once, or if that is quicker.
pub fn share_all(group: &mut Group<Library>, memories: &[Region], eager: Option<u64>) {
    let mut memory = single_copy_memory(memories);
    if let Some(bytes) = eager {
        memory = memory.with_eager(bytes);
    }
    group.share(memory).expect("it is of as many ranks");
}

/// As if all long operations were single copies, which the system denies this rank.
pub fn share_in_vain(group: &mut Group<Library>, memories: &[Region]) {
    let (lease, revoked) = (Lease::new(), Lease::new());
    let process = this_process(&revoked);
    revoked.revoke();
    let memory = shared_memory(memories).with_remote(lease, vec![process; memories.len()]);
    let shared = group.share(memory.with_eager(0));
    shared.expect("it is of as many ranks");
}

/// Each rank's lease is its own, as if it were a process; the key of one will do, since all are
/// this process.
fn single_copy_memory(memories: &[Region]) -> SharedMemory {
    let lease = Lease::new();
    let process = this_process(&lease);
    shared_memory(memories).with_remote(lease, vec![process; memories.len()])
}

fn this_process(lease: &Lease) -> RemoteMemory {
    RemoteMemory {
        process: std::process::id() as i32,
        key: lease.key().expect("there is memory for a page"),
    }
}

pub fn shared_memory(memories: &[Region]) -> SharedMemory {
    let claims = memories.iter().map(Region::claim).collect();
    SharedMemory::new(claims, Box::new(memories.to_vec()))
}

/// Runs `body` on a thread for each rank.
pub fn on_threads<R: Send>(ranks: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let body = &body;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| scope.spawn(move || body(rank)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, R>| thread.join();
        let results = threads.into_iter().map(join);
        results
            .map(|result| result.expect("no rank panics"))
            .collect()
    })
}

/// Runs an operation; what it leaves in the receive buffer.
pub fn run(group: &mut Group<Library>, call: Call, input: &[u8]) -> Vec<u8> {
    let (_, gets) = group.lengths(call, None).expect("a sound call");
    let mut output = vec![0; gets as usize];
    let mut buffers = Separate {
        input,
        output: &mut output,
    };
    let done = group.run(call, None, &mut buffers);
    done.expect("no rank fails");
    output
}

/// Buffers of an operation without bytes.
pub fn nothing() -> impl Buffers {
    Separate::default()
}

fn deliver(ranks: &mut [Rank], from: usize, message: &Message) {
    let target = message.target.pid as usize;
    ranks[from].sent += usize::from(target != from);
    if ranks[target].is_dead {
        return;
    }
    let entries = ranks[target].entries.iter().flatten();
    let found = entries
        .into_iter()
        .find(|e| e.match_bits == message.match_bits);
    let Some(&MatchEntry { place, counter, .. }) = found else {
        ranks[target].dropped += 1; // its group has been freed
        return;
    };
    assert!(
        message.at + message.bytes <= place.1,
        "{message:?} fits its entry"
    );
    let source = ranks[from]
        .region
        .claim()
        .slice(message.from, message.bytes);
    let there = ranks[target].region.claim();
    let there = there.slice(place.0 + message.at, message.bytes);
    match message.combine {
        None => _ = copy(source, there),
        Some(how) => _ = combine(how.operation, how.datatype, source, there),
    }
    if let Some(counter) = counter {
        count(ranks, target, counter);
    }
}

/// Counts one, and does all that was posted for what is reached.
fn count(ranks: &mut [Rank], rank: usize, counter: usize) {
    let value = ranks[rank].counters[counter].as_mut();
    value.expect("the counter is allocated").success += 1;
    loop {
        let due = |waiting: &Triggered| reached(&ranks[rank], waiting.counter, waiting.threshold);
        let Some(place) = ranks[rank].triggered.iter().position(due) else {
            return;
        };
        let Triggered { act, .. } = ranks[rank].triggered.remove(place);
        perform(ranks, rank, act);
    }
}

fn perform(ranks: &mut [Rank], rank: usize, act: Act) {
    match act {
        Act::Send(message) => deliver(ranks, rank, &message),
        Act::Count(counter) => count(ranks, rank, counter),
    }
}

fn reached(rank: &Rank, counter: usize, threshold: u64) -> bool {
    rank.counters[counter].is_some_and(|value| value.success >= threshold)
}

impl Library {
    fn post(&self, (counter, threshold): (&Counter, u64), act: Act) {
        let counter = counter.2;
        let mut ranks = self.network.lock();
        if reached(&ranks[self.rank], counter, threshold) {
            perform(&mut ranks, self.rank, act);
        } else {
            ranks[self.rank].triggered.push(Triggered {
                counter,
                threshold,
                act,
            });
        }
        self.network.changed.notify_all();
    }
}

impl Portals for Library {
    type Counter = Counter;
    type Entry = Entry;

    fn id(&self) -> Result<ProcessId> {
        Ok(self.network.processes[self.rank])
    }

    fn largest_atomic(&self) -> u64 {
        4096
    }

    fn counter(&self) -> Result<Counter> {
        let rank = &mut self.network.lock()[self.rank];
        let left = rank.counters_left.checked_sub(1);
        rank.counters_left = left.ok_or(PortalsError::NoSpace)?;
        rank.counters.push(Some(CountingEvent::default()));
        let number = rank.counters.len() - 1;
        Ok(Counter(Arc::clone(&self.network), self.rank, number))
    }

    fn entry(
        &self,
        match_bits: u64,
        place: (u64, u64),
        counter: Option<&Counter>,
    ) -> Result<Entry> {
        let rank = &mut self.network.lock()[self.rank];
        rank.entries.push(Some(MatchEntry {
            match_bits,
            place,
            counter: counter.map(|counter| counter.2),
        }));
        let number = rank.entries.len() - 1;
        Ok(Entry(Arc::clone(&self.network), self.rank, number))
    }

    fn send(&self, message: &Message) -> Result<()> {
        deliver(&mut self.network.lock(), self.rank, message);
        self.network.changed.notify_all();
        Ok(())
    }

    fn send_at(&self, trigger: (&Counter, u64), message: &Message) -> Result<()> {
        self.post(trigger, Act::Send(*message));
        Ok(())
    }

    fn count(&self, counter: &Counter) -> Result<()> {
        count(&mut self.network.lock(), self.rank, counter.2);
        self.network.changed.notify_all();
        Ok(())
    }

    fn count_at(&self, trigger: (&Counter, u64), counter: &Counter) -> Result<()> {
        self.post(trigger, Act::Count(counter.2));
        Ok(())
    }

    fn value(&self, counter: &Counter) -> Result<CountingEvent> {
        let ranks = self.network.lock();
        Ok(ranks[self.rank].counters[counter.2].expect("the counter is allocated"))
    }

    fn wait(&self, counters: &[(&Counter, u64)], time: Duration) -> Result<bool> {
        assert!(
            self.network.begun.elapsed() < LIMIT,
            "rank {} hangs",
            self.rank
        );
        let is_over = |ranks: &mut Vec<Rank>| {
            counters.iter().any(|&(counter, threshold)| {
                let rank = &ranks[self.rank];
                let failed = rank.counters[counter.2].is_some_and(|value| value.failure > 0);
                failed || reached(rank, counter.2, threshold)
            })
        };
        let ranks = self.network.lock();
        let waited = self
            .network
            .changed
            .wait_timeout_while(ranks, time, |ranks| !is_over(ranks));
        let (mut ranks, _) = waited.expect("no test panics inside a call");
        Ok(is_over(&mut ranks))
    }

    fn probe(&self, target: ProcessId, match_bits: u64, id: u64) -> Result<()> {
        let mut ranks = self.network.lock();
        let peer = &mut ranks[target.pid as usize];
        peer.probed += 1;
        let entries = peer.entries.iter().flatten();
        let found = entries.into_iter().find(|e| e.match_bits == match_bits);
        let (counter, result) = match found {
            _ if peer.is_dead => (None, NiFail::Undeliverable),
            None => (None, NiFail::Dropped),
            Some(entry) => (entry.counter, NiFail::Ok),
        };
        if result == NiFail::Ok {
            ranks[target.pid as usize].accepted.push(match_bits);
        }
        if let Some(counter) = counter {
            count(&mut ranks, target.pid as usize, counter);
        }
        ranks[self.rank].probes.push((id, result));
        self.network.changed.notify_all();
        Ok(())
    }

    fn poll_probe(&self, time: Duration) -> Result<Option<(u64, NiFail)>> {
        let deadline = Instant::now() + time;
        let mut ranks = self.network.lock();
        loop {
            let probes = &mut ranks[self.rank].probes;
            if !probes.is_empty() {
                return Ok(Some(probes.remove(0)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.network.changed.wait_timeout(ranks, left);
            (ranks, _) = waited.expect("no test panics inside a call");
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let rank = &mut self.0.lock()[self.1];
        rank.counters[self.2] = None;
        rank.triggered.retain(|waiting| waiting.counter != self.2);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.lock()[self.1].entries[self.2] = None;
    }
}
