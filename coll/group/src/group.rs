//! A group: its ranks, what carries out its operations, and how a rank waits for others.

use crate::buffers::{Buffers, InPlace, Separate};
use crate::call::{Call, Plan, Reduction};
use crate::error::{Error, Result};
use crate::hierarchical::{HierarchicalOperations, Nodes};
use crate::lane::{self, Place};
use crate::messages::{Awaited, MessageOperations, NO_REQUEST, Request};
use crate::peers::{POLL_INTERVAL, Peers};
use crate::portals::{Combine, Portals};
use crate::shared::{MAX_SHORT_CALL, SharedMemory, SharedOperations};
use crate::spec::Spec;
use crate::waiting::Waiting;
use lintel_claim::{Datatype, Operation, Region};
use lintel_collectives::Algorithm;
use std::time::{Duration, Instant};

/// A call of few bytes that a group has found sound: [`Group::short`].
#[derive(Debug)]
pub struct Short {
    call: Call,
    bytes: u64,
}

/// Processes that execute collective operations together: the same ones in the same order.
///
/// Used by one thread at a time. Dropping it without [`Group::free`] isn't reported, so
/// that ranks that wait for this one find it failed once its process ends.
pub struct Group<P: Portals> {
    portals: P,
    messages: MessageOperations<P>,
    peers: Peers<P>,
    shared: Option<Box<SharedOperations>>,
    hierarchical: Option<Box<HierarchicalOperations<P>>>,
    waiting: Waiting,
    failed: bool,
    failed_rank: Option<u32>,
}

/// Looks at counters before one lets other threads have the core: what an answer of a
/// rank takes that runs.
const SPINS: u32 = 20;
/// The same if others wait for the core, among them perhaps the rank waited for.
const CROWDED_SPINS: u32 = 1;
/// Looks with others on the core in between, among them perhaps the rank waited for,
/// before one leaves the waiting to the library.
const YIELDS: u32 = 200;

impl<P: Portals> Group<P> {
    /// The bytes of the region that a group of so many ranks needs.
    pub fn region_bytes(processes: usize) -> u64 {
        lane::region_bytes(processes as u32)
    }

    /// The same if the ranks may [share memory on several nodes](Group::share_on_nodes).
    pub fn region_bytes_on_nodes(processes: usize) -> u64 {
        2 * Self::region_bytes(processes)
    }

    /// Creates the group; returns when all ranks have created it. `region` is the memory
    /// that `portals` sends from and receives to.
    ///
    /// # Errors
    /// `InvalidArgument` for an impossible list of processes; `ProcFailed`; `NotCreated`; errors of
    /// Portals.
    pub fn create(portals: P, region: Region, spec: Spec) -> Result<Group<P>> {
        spec.check(portals.id()?)?;
        let ranks = spec.processes.len() as u32;
        let mut peers = Peers::new(&portals, spec.rank, ranks)?;
        let timeout = spec.create_timeout;
        let messages = MessageOperations::new(&portals, region, spec, Place::of_all(ranks))?;
        peers.handshake(&portals, messages.processes(), timeout)?;
        Ok(Group {
            portals,
            messages,
            peers,
            shared: None,
            hierarchical: None,
            waiting: Waiting::default(),
            failed: false,
            failed_rank: None,
        })
    }

    /// This process's rank, from 0 (MPI_Comm_rank).
    #[inline]
    pub fn rank(&self) -> u32 {
        self.messages.rank()
    }

    /// The size of the group (MPI_Comm_size).
    #[inline]
    pub fn ranks(&self) -> u32 {
        self.messages.processes().len() as u32
    }

    /// The rank that was first found to have failed.
    pub fn failed_rank(&self) -> Option<u32> {
        self.failed_rank
    }

    /// From here on, [`Group::run`] without an algorithm loads and stores in this memory. All
    /// ranks call it between the same two operations, or none does.
    ///
    /// # Errors
    /// `InvalidArgument` if it isn't the memory of as many ranks.
    pub fn share(&mut self, memory: SharedMemory) -> Result<()> {
        check_memory(&memory, self.ranks() as usize)?;
        let rank = self.rank();
        self.shared = Some(Box::new(SharedOperations::new(memory, rank)));
        Ok(())
    }

    /// Whether the ranks have [shared](Group::share) memory.
    pub fn is_sharing(&self) -> bool {
        self.shared.is_some()
    }

    /// From here on, [`Group::run`] without an algorithm loads and stores in this memory, that of the
    /// ranks on this rank's node, and sends messages only among the nodes' *leaders*, the lowest rank of
    /// each; except gathers and scatters. `nids` has each rank's node. Collective: all ranks call it
    /// between the same two operations, or none does.
    ///
    /// Nothing changes if the ranks are all on one node, or each on a node of its own, or if a leader
    /// lacks counters or entries.
    ///
    /// # Errors
    /// `InvalidArgument` if it isn't the memory of as many ranks, the nodes are those of another number,
    /// or the group's region is shorter than [`Group::region_bytes_on_nodes`]; as [`Group::wait`].
    pub fn share_on_nodes(&mut self, memory: SharedMemory, nids: &[u32]) -> Result<()> {
        let ranks = self.ranks() as usize;
        if nids.len() != ranks || self.messages.region().len() < Self::region_bytes_on_nodes(ranks)
        {
            let what =
                "the nodes are of another number of ranks, or the group's region is too short";
            return Err(Error::InvalidArgument(what.into()));
        }
        let nodes = Nodes::new(nids);
        check_memory(&memory, nodes.ranks_beside(self.rank()))?;
        if !nodes.have_several_ranks() {
            return Ok(());
        }
        let made = HierarchicalOperations::new(&self.portals, nodes, memory, &self.messages);
        if self.holds_everywhere(made.is_ok())? {
            self.hierarchical = made.ok().map(Box::new);
        }
        Ok(())
    }

    /// Whether the ranks [share memory on several nodes](Group::share_on_nodes).
    pub fn is_sharing_on_nodes(&self) -> bool {
        self.hierarchical.is_some()
    }

    /// Whether this holds at all ranks.
    fn holds_everywhere(&mut self, here: bool) -> Result<bool> {
        let combine = Combine {
            operation: Operation::Land,
            datatype: Datatype::Uint8,
        };
        let mut everywhere = [0];
        let mut buffers = Separate {
            input: &[u8::from(here)],
            output: &mut everywhere,
        };
        let call = Call::Allreduce(Reduction { combine, count: 1 });
        self.run(call, None, &mut buffers)?;
        Ok(everywhere[0] != 0)
    }

    /// How many bytes this rank gives and gets.
    ///
    /// # Errors
    /// As [`Group::begin`].
    pub fn lengths(&self, call: Call, algorithm: Option<Algorithm>) -> Result<(u64, u64)> {
        let (rank, ranks) = (self.rank(), self.ranks());
        match self.bytes_if_shared(call, algorithm) {
            Some(bytes) => Ok(call.lengths(bytes, rank, ranks)),
            None => Ok(self.plan(call, algorithm)?.lengths(rank)),
        }
    }

    /// The bytes of each rank of a call that goes through shared memory, if it can be.
    #[inline]
    fn bytes_if_shared(&self, call: Call, algorithm: Option<Algorithm>) -> Option<u64> {
        let is_shared = algorithm.is_none() && self.shared.is_some();
        is_shared.then(|| call.sound_bytes(self.ranks())).flatten()
    }

    /// Begins and waits.
    ///
    /// # Errors
    /// As [`Group::begin`] and [`Group::wait`].
    pub fn run(
        &mut self,
        call: Call,
        algorithm: Option<Algorithm>,
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        if let Some(bytes) = self.bytes_if_shared(call, algorithm) {
            self.check(call.lengths(bytes, self.rank(), self.ranks()), buffers)?;
            return self.guarded(|group| group.run_shared((call, bytes), buffers));
        }
        let plan = self.accept(call, algorithm, buffers)?;
        let is_hierarchical = algorithm.is_none() && self.hierarchical.is_some();
        if is_hierarchical && HierarchicalOperations::<P>::takes(call) {
            return self.guarded(|group| group.run_hierarchical((call, plan.bytes), buffers));
        }
        if algorithm.is_some() {
            return self.run_plan(plan, buffers);
        }
        let (plan, trial) = self.messages.begin_trial(&self.portals, plan)?;
        self.run_plan(plan, buffers)?;
        let Some(measured) = trial.and_then(|trial| self.messages.end_trial(trial)) else {
            return Ok(());
        };
        let (plan, mut times) = self.messages.sum(&self.portals, &measured)?;
        self.run_plan(plan, &mut InPlace::all(&mut times))?;
        self.messages.choose(&measured, &times);
        Ok(())
    }

    fn run_plan(&mut self, plan: Plan, buffers: &mut dyn Buffers) -> Result<()> {
        let request = self.messages.enqueue(plan);
        self.wait(request, buffers)
    }

    fn run_hierarchical(&mut self, call: (Call, u64), buffers: &mut dyn Buffers) -> Result<()> {
        let mut hierarchical = self.hierarchical.take().expect("the caller has looked");
        let result = hierarchical.run(self, call, buffers);
        self.hierarchical = Some(hierarchical);
        result
    }

    /// Carries out an operation of other messages than this group's, whose operations go on meanwhile.
    /// A rank of this group that fails ends it.
    pub(crate) fn run_beside(
        &mut self,
        others: &mut MessageOperations<P>,
        call: Call,
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        let plan = others.plan(&self.portals, call, None)?;
        let (plan, trial) = others.begin_trial(&self.portals, plan)?;
        self.run_plan_beside(others, plan, buffers)?;
        let Some(measured) = trial.and_then(|trial| others.end_trial(trial)) else {
            return Ok(());
        };
        let (plan, mut times) = others.sum(&self.portals, &measured)?;
        self.run_plan_beside(others, plan, &mut InPlace::all(&mut times))?;
        others.choose(&measured, &times);
        Ok(())
    }

    fn run_plan_beside(
        &mut self,
        others: &mut MessageOperations<P>,
        plan: Plan,
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        let request = others.enqueue(plan);
        let mut has_slept = false;
        loop {
            others.advance(&self.portals, request, Some(buffers))?;
            if others.take(request, buffers)? {
                return Ok(());
            }
            self.advance(NO_REQUEST, None)?;
            if std::mem::replace(&mut has_slept, true) {
                self.probe_some(others.waiting_since(request)?)?;
            }
            self.sleep(Some(others))?;
        }
    }

    fn run_shared(&mut self, call: (Call, u64), buffers: &mut dyn Buffers) -> Result<()> {
        let mut shared = self.shared.take().expect("the caller has looked");
        let result = shared.run(call, buffers, &mut |is_first| self.on_vain_look(is_first));
        self.shared = Some(shared);
        result
    }

    /// A call that [`Group::run_short`] can carry out: of few bytes, among ranks that
    /// [share](Group::share) memory, and sound.
    #[inline(always)]
    pub fn short(&self, call: Call) -> Option<Short> {
        let bytes = self.bytes_if_shared(call, None)?;
        (bytes <= MAX_SHORT_CALL && !self.failed).then_some(Short { call, bytes })
    }

    /// How many bytes this rank gives to a short call, and gets.
    #[inline(always)]
    pub fn short_lengths(&self, short: &Short) -> (u64, u64) {
        short.call.lengths(short.bytes, self.rank(), self.ranks())
    }

    /// As [`Group::run`] without an algorithm, in fewer instructions.
    ///
    /// # Errors
    /// As [`Group::run`].
    #[inline(always)]
    pub fn run_short(&mut self, short: Short, buffers: &mut Separate) -> Result<()> {
        let lengths = self.short_lengths(&short);
        let Short { call, bytes } = short;
        self.check(lengths, buffers)?;
        self.guarded(|group| {
            let mut shared = group.shared.take().expect("a short call is shared");
            let wait = &mut |is_first| group.on_vain_look(is_first);
            let result = shared.run_short((call, bytes), buffers, wait);
            group.shared = Some(shared);
            result
        })
    }

    /// Another look at a word that another rank stores was in vain, the first one of a wait or a
    /// later one.
    pub(crate) fn on_vain_look(&mut self, is_first: bool) -> Result<()> {
        if is_first {
            self.waiting.begin();
        }
        match self.waiting.next() {
            true => {
                let since = self.waiting.since();
                self.look_around(since)
            }
            false => Ok(()),
        }
    }

    /// What is due while a rank waits outside of the library: nonblocking operations go on, a
    /// failed rank and PtlAbort end the wait.
    fn look_around(&mut self, since: Instant) -> Result<()> {
        self.advance(NO_REQUEST, None)?;
        self.messages.poll_library(&self.portals)?;
        self.probe_some(since)
    }

    /// Begins an operation. Its input is read here, or copied if it can't all be
    /// begun at once; nothing is kept of the buffers.
    ///
    /// # Errors
    /// `InvalidArgument` for an operation that can't be, or buffers that are too short;
    /// `Revoked`; errors of Portals.
    pub fn begin(
        &mut self,
        call: Call,
        algorithm: Option<Algorithm>,
        buffers: &mut dyn Buffers,
    ) -> Result<Request> {
        let plan = self.accept(call, algorithm, buffers)?;
        let request = self.messages.enqueue(plan);
        self.guarded(|group| group.advance(request, Some(buffers)))?;
        self.messages.keep_input(request, buffers)?;
        Ok(request)
    }

    /// Whether an operation has ended; its result is in `buffers` then, and the request
    /// is no more. Doesn't wait.
    ///
    /// # Errors
    /// `InvalidRequest`; `ProcFailed`, `MessageFailed`, `Revoked`; errors of Portals.
    pub fn test(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<bool> {
        self.messages.plan_of(request)?;
        self.guarded(|group| {
            group.advance(request, Some(buffers))?;
            if group.messages.take(request, buffers)? {
                return Ok(true);
            }
            let since = group.messages.waiting_since(request)?;
            group.probe_some(since)?;
            Ok(false)
        })
    }

    /// Waits until an operation has ended; its result is in `buffers` then.
    ///
    /// # Errors
    /// As [`Group::test`].
    pub fn wait(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<()> {
        self.messages.plan_of(request)?;
        self.guarded(|group| {
            let mut has_slept = false;
            loop {
                group.advance(request, Some(buffers))?;
                if group.messages.take(request, buffers)? {
                    return Ok(());
                }
                // Most operations end before the clock need be read.
                if std::mem::replace(&mut has_slept, true) {
                    let since = group.messages.waiting_since(request)?;
                    group.probe_some(since)?;
                }
                group.sleep(None)?;
            }
        })
    }

    /// How many bytes a request's rank gives and gets.
    ///
    /// # Errors
    /// `InvalidRequest`.
    pub fn request_lengths(&mut self, request: Request) -> Result<(u64, u64)> {
        let rank = self.rank();
        Ok(self.messages.plan_of(request)?.lengths(rank))
    }

    /// Frees the group, once all ranks do: no message of it is in flight afterwards.
    /// Outstanding requests are waited for, and their results discarded.
    ///
    /// # Errors
    /// `ProcFailed`, `MessageFailed`, errors of Portals; the group is freed all the same. A group
    /// that has failed is freed without waiting for other ranks.
    pub fn free(mut self) -> Result<()> {
        if self.failed {
            return Ok(());
        }
        let mut nothing = Separate::default();
        self.shared = None; // A barrier by messages shows that none is in flight.
        let mut hierarchical = self.hierarchical.take();
        self.run(Call::Barrier, None, &mut nothing)?;
        let mut leaders = hierarchical.as_mut().and_then(|it| it.leaders());
        let begun = Instant::now();
        loop {
            self.advance(NO_REQUEST, None)?;
            if let Some(leaders) = &mut leaders {
                leaders.advance(&self.portals, NO_REQUEST, None)?;
            }
            let leaders = leaders.as_deref();
            if self.messages.is_idle() && leaders.is_none_or(MessageOperations::is_idle) {
                return Ok(());
            }
            self.sleep(leaders)?;
            self.probe_some(begun)?;
        }
    }

    fn plan(&self, call: Call, algorithm: Option<Algorithm>) -> Result<Plan> {
        self.messages.plan(&self.portals, call, algorithm)
    }

    /// Does all that can be done now. `buffers` are those of `request`.
    fn advance(&mut self, request: Request, buffers: Option<&mut dyn Buffers>) -> Result<()> {
        self.messages.advance(&self.portals, request, buffers)
    }

    fn accept(
        &self,
        call: Call,
        algorithm: Option<Algorithm>,
        buffers: &dyn Buffers,
    ) -> Result<Plan> {
        if self.failed {
            return Err(Error::Revoked);
        }
        let plan = self.plan(call, algorithm)?;
        self.check(plan.lengths(self.rank()), buffers)?;
        Ok(plan)
    }

    /// Whether buffers are as long as what this rank gives and gets.
    #[inline]
    fn check<B: Buffers + ?Sized>(&self, lengths: (u64, u64), buffers: &B) -> Result<()> {
        let (input, output) = buffers.lengths();
        match (input as u64) < lengths.0 || (output as u64) < lengths.1 {
            true => Err(self.too_short(lengths, (input, output))),
            false => Ok(()),
        }
    }

    #[cold]
    fn too_short(&self, (gives, gets): (u64, u64), (input, output): (usize, usize)) -> Error {
        Error::InvalidArgument(format!(
            "rank {} gives {gives} bytes and gets {gets}, but the buffers have {input} and {output}",
            self.rank()
        ))
    }

    /// An error within an operation revokes the group: the other ranks
    /// may be anywhere.
    #[inline]
    fn guarded<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.failed {
            return Err(Error::Revoked);
        }
        let result = f(self);
        if let Err(error) = &result {
            self.failed = true;
            if let Error::ProcFailed { rank } = error {
                self.failed_rank = Some(*rank);
            }
        }
        result
    }

    /// Waits until anything may go on, here or of `others`, but not for long.
    fn sleep(&mut self, others: Option<&MessageOperations<P>>) -> Result<()> {
        let mut awaited = Awaited::<P>::new();
        for messages in others.into_iter().chain([&self.messages]) {
            if !messages.add_awaited(&self.portals, &mut awaited)? {
                return Ok(());
            }
        }
        if awaited.is_empty() {
            return Ok(());
        }
        let spins = match self.waiting.is_crowded() {
            true => CROWDED_SPINS,
            false => SPINS,
        };
        for look in 0..spins + YIELDS {
            if self.portals.wait(&awaited, Duration::ZERO)? {
                return Ok(());
            }
            if look >= spins {
                self.waiting.yield_processor();
            }
        }
        self.portals.wait(&awaited, POLL_INTERVAL).map(drop)?;
        Ok(())
    }

    /// Probes some ranks, if the wait that began at `since` is a long one.
    fn probe_some(&mut self, since: Instant) -> Result<()> {
        let processes = self.messages.processes();
        self.peers.probe_some(&self.portals, processes, since)
    }
}

fn check_memory(memory: &SharedMemory, ranks: usize) -> Result<()> {
    match memory.is_of(ranks) {
        true => Ok(()),
        false => Err(Error::InvalidArgument(
            "the shared memory is of another number of ranks, or too short".into(),
        )),
    }
}
