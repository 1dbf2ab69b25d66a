//! A group: its ranks, its outstanding requests, and its segments in progress.

use crate::active::{Active, StepContext};
use crate::buffers::{Buffers, Separate};
use crate::call::{Call, Plan, Reach};
use crate::error::{Error, Result};
use crate::lane::{self, BARRIER_LANES, LANES, Lane};
use crate::peers::{POLL_INTERVAL, Peers};
use crate::portals::Portals;
use crate::recycling::RecyclingBarriers;
use crate::shared::{MAX_SHORT_CALL, SharedMemory, SharedOperations};
use crate::spec::{Progress, Spec};
use crate::waiting::Waiting;
use arrayvec::ArrayVec;
use lintel_claim::Region;
use lintel_collectives::{Algorithm, Collective, Memory, Schedule, Store};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A nonblocking operation that hasn't completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request(pub u64);

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
    setup: Setup<P>,
    lanes: Vec<Lane<P>>,
    barriers: RecyclingBarriers,
    peers: Peers<P>,
    /// Segments asked for, and segments begun.
    requested: u64,
    begun: u64,
    /// Segments under way, in the order of their numbers.
    active: VecDeque<Segment>,
    /// Operations whose end hasn't been reported, in the order of the calls.
    requests: VecDeque<(Request, Pending)>,
    next_request: u64,
    schedules: Schedules,
    shared: Option<Box<SharedOperations>>,
    waiting: Waiting,
    failed: bool,
    failed_rank: Option<u32>,
}

/// The library, the processes, and the memory of all lanes.
struct Setup<P> {
    portals: P,
    spec: Spec,
    reach: Reach,
    region: Region,
}

/// An operation, until its end is reported to the caller.
struct Pending {
    plan: Plan,
    /// The number of its first segment.
    first: u64,
    /// Segments that have ended.
    ended: u64,
    /// When it first let the other ranks be probed.
    first_probe: Option<Instant>,
    /// A copy of the caller's input, if not all segments could be begun at once.
    input: Option<Vec<u8>>,
    /// Results that came while the caller's buffers weren't at hand.
    results: Vec<(Range<usize>, Vec<u8>)>,
}

struct Segment {
    number: u64,
    request: Request,
    active: Active,
}

/// None of the caller's.
const NO_REQUEST: Request = Request(u64::MAX);
/// Looks at counters before one lets other threads have the core: what an answer of a
/// rank takes that runs.
const SPINS: u32 = 20;
/// The same if others wait for the core, among them perhaps the rank waited for.
const CROWDED_SPINS: u32 = 1;
/// Looks with others on the core in between, among them perhaps the rank waited for,
/// before one leaves the waiting to the library.
const YIELDS: u32 = 200;
/// Counters that a group waits for at a time, at most: every lane may hold a segment, and
/// one barrier is under way.
pub const MAX_AWAITED: usize = LANES as usize + 1;
/// Schedules that are kept; a program that needs more makes them again.
const SCHEDULES: usize = 64;

impl<P: Portals> Group<P> {
    /// The bytes of the region that a group of so many ranks needs.
    pub fn region_bytes(processes: usize) -> u64 {
        lane::region_bytes(processes as u32)
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
        let lanes = (0..LANES + BARRIER_LANES).map(|number| Lane::new(&portals, number, ranks));
        let lanes = lanes.collect::<Result<_>>()?;
        let mut peers = Peers::new(&portals, spec.rank, ranks)?;
        peers.handshake(&portals, &spec.processes, spec.create_timeout)?;
        Ok(Group {
            barriers: RecyclingBarriers::new(spec.rank, ranks),
            setup: Setup {
                reach: Reach::of(&spec.processes),
                portals,
                spec,
                region,
            },
            lanes,
            peers,
            requested: 0,
            begun: 0,
            active: VecDeque::new(),
            requests: VecDeque::new(),
            next_request: 0,
            schedules: Schedules::default(),
            shared: None,
            waiting: Waiting::default(),
            failed: false,
            failed_rank: None,
        })
    }

    /// This process's rank, from 0 (MPI_Comm_rank).
    #[inline]
    pub fn rank(&self) -> u32 {
        self.setup.spec.rank
    }

    /// The size of the group (MPI_Comm_size).
    #[inline]
    pub fn ranks(&self) -> u32 {
        self.setup.spec.processes.len() as u32
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
        if !memory.is_of(self.ranks() as usize) {
            let what = "the shared memory is of another number of ranks, or too short";
            return Err(Error::InvalidArgument(what.into()));
        }
        let rank = self.rank();
        self.shared = Some(Box::new(SharedOperations::new(memory, rank)));
        Ok(())
    }

    /// Whether the ranks have [shared](Group::share) memory.
    pub fn is_sharing(&self) -> bool {
        self.shared.is_some()
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
        let request = self.enqueue(plan);
        self.wait(request, buffers)
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
    fn on_vain_look(&mut self, is_first: bool) -> Result<()> {
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
        let (portals, counter) = (&self.setup.portals, self.lanes[0].counter(0));
        portals.wait(&[(counter, u64::MAX)], Duration::ZERO)?;
        self.peers
            .probe_some(portals, &self.setup.spec.processes, since)
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
        let request = self.enqueue(plan);
        let end = self.requested;
        self.guarded(|group| group.advance(request, Some(buffers)))?;
        if self.begun < end {
            let (given, _) = plan.lengths(self.setup.spec.rank);
            let input = buffers.input(0..given as usize).to_vec();
            self.pending_mut(request)?.input = Some(input);
        }
        Ok(request)
    }

    /// Whether an operation has ended; its result is in `buffers` then, and the request
    /// is no more. Doesn't wait.
    ///
    /// # Errors
    /// `InvalidRequest`; `ProcFailed`, `MessageFailed`, `Revoked`; errors of Portals.
    pub fn test(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<bool> {
        self.pending_mut(request)?;
        self.guarded(|group| {
            group.advance(request, Some(buffers))?;
            if group.take(request, buffers)? {
                return Ok(true);
            }
            group.probe_some(request)?;
            Ok(false)
        })
    }

    /// Waits until an operation has ended; its result is in `buffers` then.
    ///
    /// # Errors
    /// As [`Group::test`].
    pub fn wait(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<()> {
        self.pending_mut(request)?;
        self.guarded(|group| {
            let mut has_slept = false;
            loop {
                group.advance(request, Some(buffers))?;
                if group.take(request, buffers)? {
                    return Ok(());
                }
                // Most operations end before the clock need be read.
                if std::mem::replace(&mut has_slept, true) {
                    group.probe_some(request)?;
                }
                group.sleep()?;
            }
        })
    }

    /// How many bytes a request's rank gives and gets.
    ///
    /// # Errors
    /// `InvalidRequest`.
    pub fn request_lengths(&mut self, request: Request) -> Result<(u64, u64)> {
        let rank = self.setup.spec.rank;
        Ok(self.pending_mut(request)?.plan.lengths(rank))
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
        let mut nothing = crate::buffers::Separate::default();
        self.shared = None; // A barrier by messages shows that none is in flight.
        self.run(Call::Barrier, None, &mut nothing)?;
        let begun = Instant::now();
        loop {
            self.advance(NO_REQUEST, None)?;
            if self.active.is_empty() && self.barriers.are_over(self.requested) {
                return Ok(());
            }
            self.sleep()?;
            self.peers
                .probe_some(&self.setup.portals, &self.setup.spec.processes, begun)?;
        }
    }

    fn plan(&self, call: Call, algorithm: Option<Algorithm>) -> Result<Plan> {
        // Each rank combines by itself, and the caller's loop has no limit.
        let largest_combine = match self.setup.spec.progress {
            Progress::Offloaded => self.setup.portals.largest_atomic(),
            Progress::Host => u64::MAX,
        };
        Plan::new(
            call,
            algorithm,
            self.ranks(),
            self.setup.reach,
            largest_combine,
        )
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
        self.check(plan.lengths(self.setup.spec.rank), buffers)?;
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
            self.setup.spec.rank
        ))
    }

    fn enqueue(&mut self, plan: Plan) -> Request {
        let request = Request(self.next_request);
        self.next_request += 1;
        let pending = Pending {
            plan,
            first: self.requested,
            ended: 0,
            first_probe: None,
            input: None,
            results: Vec::new(),
        };
        self.requested += plan.segments();
        self.requests.push_back((request, pending));
        request
    }

    fn pending_mut(&mut self, request: Request) -> Result<&mut Pending> {
        find(&mut self.requests, request).ok_or(Error::InvalidRequest)
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

    /// Does all that can be done now. `buffers` are those of `request`.
    fn advance(&mut self, request: Request, mut buffers: Option<&mut dyn Buffers>) -> Result<()> {
        loop {
            self.begin_segments(request, buffers.as_deref())?;
            self.end_segments(request, &mut buffers)?;
            self.advance_barrier()?;
            if self.begun == self.requested || !self.barriers.allow(self.begun) {
                return Ok(());
            }
        }
    }

    fn advance_barrier(&mut self) -> Result<()> {
        let context = self.setup.context();
        let ended = self.active.front().map_or(self.begun, |front| front.number);
        let host = self.setup.spec.progress == Progress::Host;
        let lanes = &mut self.lanes;
        self.barriers
            .advance(&context, lanes, (self.requested, ended), host)
    }

    /// Begins segments in the order of their numbers, as far as barriers allow.
    fn begin_segments(&mut self, current: Request, buffers: Option<&dyn Buffers>) -> Result<()> {
        while self.begun < self.requested && self.barriers.allow(self.begun) {
            let segment = self.begin_segment(self.begun, current, buffers)?;
            self.begun += 1;
            self.active.push_back(segment);
        }
        Ok(())
    }

    fn begin_segment(
        &mut self,
        number: u64,
        current: Request,
        buffers: Option<&dyn Buffers>,
    ) -> Result<Segment> {
        // Later ones have no segment before it, and earlier ones are all begun.
        let of_number = |(_, pending): &&(Request, Pending)| pending.first <= number;
        let found = self.requests.iter().rev().find(of_number);
        let &(request, ref pending) = found.expect("a segment is as old as its request");
        let part = number - pending.first;
        let collective = pending.plan.collective(part);
        let rank = self.setup.spec.rank;
        let schedule = self.schedules.of(collective, rank);
        let index = (number % LANES) as usize;
        let lane = &self.lanes[index];
        let mut at = lane.input(&schedule);
        for piece in pending.plan.pieces(part, 0..collective.input_bytes(rank)) {
            let bytes = match (&pending.input, buffers) {
                (Some(copied), _) => &copied[piece],
                (None, Some(buffers)) if request == current => buffers.input(piece),
                _ => unreachable!("what isn't begun at the call is copied there"),
            };
            self.setup.region.write(at, bytes);
            at += bytes.len() as u64;
        }
        let mut active = Active::new(index, schedule, pending.plan.call.combine());
        if self.setup.spec.progress == Progress::Offloaded {
            active.post(&self.setup.context(), lane)?;
        }
        Ok(Segment {
            number,
            request,
            active,
        })
    }

    /// Takes the results of segments that have ended.
    fn end_segments(
        &mut self,
        current: Request,
        buffers: &mut Option<&mut dyn Buffers>,
    ) -> Result<()> {
        let mut place = 0;
        while let Some(segment) = self.active.get_mut(place) {
            let lane = &mut self.lanes[segment.active.lane];
            segment.active.progress(&self.setup.context(), lane)?;
            if !segment.active.is_done(&self.setup.portals, lane)? {
                place += 1;
                continue;
            }
            let pending = find(&mut self.requests, segment.request);
            let pending = pending.expect("a request stays until its segments have ended");
            let own: Option<&mut dyn Buffers> = match buffers {
                Some(buffers) if segment.request == current => Some(&mut **buffers),
                _ => None,
            };
            pending.take_result(segment, lane, &self.setup.region, own);
            lane.end(&segment.active.schedule);
            self.active.remove(place);
        }
        Ok(())
    }

    /// Hands over what is left of an operation that has ended.
    fn take(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<bool> {
        let pending = self.pending_mut(request)?;
        if pending.ended < pending.plan.segments() {
            return Ok(false);
        }
        for (piece, bytes) in &pending.results {
            buffers.output(piece.clone()).copy_from_slice(bytes);
        }
        let place = self
            .requests
            .binary_search_by_key(&request, |&(name, _)| name);
        self.requests.remove(place.expect("it was found above"));
        Ok(true)
    }

    /// Waits until anything may go on, but not for long.
    fn sleep(&mut self) -> Result<()> {
        let segments = self.active.iter().map(|segment| &segment.active);
        let mut awaited = ArrayVec::<_, MAX_AWAITED>::new();
        for active in segments.chain(self.barriers.running()) {
            match active.awaits(&self.setup.portals, &self.lanes[active.lane])? {
                Some(want) => awaited.push(want),
                None => return Ok(()),
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
            if self.setup.portals.wait(&awaited, Duration::ZERO)? {
                return Ok(());
            }
            if look >= spins {
                self.waiting.yield_processor();
            }
        }
        self.setup.portals.wait(&awaited, POLL_INTERVAL).map(drop)?;
        Ok(())
    }

    fn probe_some(&mut self, request: Request) -> Result<()> {
        let since = *self
            .pending_mut(request)?
            .first_probe
            .get_or_insert_with(Instant::now);
        self.peers
            .probe_some(&self.setup.portals, &self.setup.spec.processes, since)
    }
}

impl<P: Portals> Setup<P> {
    fn context(&self) -> StepContext<'_, P> {
        StepContext {
            portals: &self.portals,
            processes: &self.spec.processes,
            rank: self.spec.rank,
            region: &self.region,
        }
    }
}

impl Pending {
    /// A segment has ended: copies what results to its caller's place, or keeps it until
    /// that is at hand.
    fn take_result<P: Portals>(
        &mut self,
        segment: &Segment,
        lane: &Lane<P>,
        region: &Region,
        mut buffers: Option<&mut dyn Buffers>,
    ) {
        let number = segment.number - self.first;
        for &Store { from, to } in &segment.active.schedule.stores {
            // The root's own is where it was.
            if from.memory == Memory::Input && matches!(self.plan.call, Call::Broadcast { .. }) {
                continue;
            }
            let mut at = segment.active.place(from, lane);
            for piece in self.plan.pieces(number, to..to + from.bytes) {
                let length = piece.len();
                match &mut buffers {
                    Some(buffers) => _ = region.read(at, buffers.output(piece)),
                    None => {
                        let mut bytes = vec![0; length];
                        region.read(at, &mut bytes);
                        self.results.push((piece, bytes));
                    }
                }
                at += length as u64;
            }
        }
        self.ended += 1;
    }
}

fn find(requests: &mut VecDeque<(Request, Pending)>, request: Request) -> Option<&mut Pending> {
    let place = requests.binary_search_by_key(&request, |&(name, _)| name);
    requests.get_mut(place.ok()?).map(|(_, pending)| pending)
}

/// Schedules that were needed, those that often are in front.
#[derive(Default)]
struct Schedules(Vec<(Collective, Arc<Schedule>)>);

impl Schedules {
    fn of(&mut self, collective: Collective, rank: u32) -> Arc<Schedule> {
        let Schedules(kept) = self;
        match kept.iter().position(|(of, _)| *of == collective) {
            Some(place) => {
                kept.swap(place, place / 2);
                kept[place / 2].1.clone()
            }
            None => {
                kept.truncate(SCHEDULES - 1);
                let made = Arc::new(collective.schedule(rank));
                kept.push((collective, made.clone()));
                made
            }
        }
    }
}
