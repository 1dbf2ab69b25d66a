//! Operations that messages carry out: requests, their segments, and the lanes that those are in.

use crate::active::{Active, StepContext};
use crate::buffers::Buffers;
use crate::call::{Call, Plan, Reach, Reduction};
use crate::error::{Error, Result};
use crate::lane::{BARRIER_LANES, LANES, Lane, Place};
use crate::portals::{Combine, Portals};
use crate::recycling::RecyclingBarriers;
use crate::spec::{Progress, Spec};
use crate::tuning::{Class, Measured, Trial, Tuning};
use arrayvec::ArrayVec;
use lintel_claim::{Datatype, Operation, Region};
use lintel_collectives::{Algorithm, Collective, Memory, Schedule, Store};
use lintel_types::ProcessId;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A nonblocking operation that hasn't completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request(pub u64);

/// The operations among some processes, whose order is the same at all of them.
pub(crate) struct MessageOperations<P: Portals> {
    setup: Setup,
    lanes: Vec<Lane<P>>,
    barriers: RecyclingBarriers,
    /// Segments asked for, and segments begun.
    requested: u64,
    begun: u64,
    /// Segments under way, in the order of their numbers.
    active: VecDeque<Segment>,
    /// Operations whose end hasn't been reported, in the order of the calls.
    requests: VecDeque<(Request, Pending)>,
    next_request: u64,
    schedules: Schedules,
    tuning: Tuning,
}

/// The processes, and the memory of all lanes.
struct Setup {
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

/// Counters that are waited for, and what they are to reach.
pub(crate) type Awaited<'a, P> = ArrayVec<(&'a <P as Portals>::Counter, u64), MAX_AWAITED>;

/// None of the caller's.
pub(crate) const NO_REQUEST: Request = Request(u64::MAX);
/// Counters that a group waits for at a time, at most: every lane may hold a segment, and
/// one barrier is under way. The leader of a node waits for as many of the leaders' operations, too.
pub const MAX_AWAITED: usize = 2 * (LANES as usize + 1);
/// Schedules that are kept; a program that needs more makes them again.
const SCHEDULES: usize = 64;

impl<P: Portals> MessageOperations<P> {
    /// Makes the lanes, in `region`, which messages from the others find from here on.
    ///
    /// # Errors
    /// Those of Portals.
    pub(crate) fn new(portals: &P, region: Region, spec: Spec, place: Place) -> Result<Self> {
        let ranks = spec.processes.len() as u32;
        let lanes = 0..LANES + BARRIER_LANES;
        let lanes = lanes.map(|number| Lane::new(portals, place, number, ranks));
        Ok(MessageOperations {
            lanes: lanes.collect::<Result<_>>()?,
            barriers: RecyclingBarriers::new(spec.rank, ranks),
            setup: Setup {
                reach: Reach::of(&spec.processes),
                spec,
                region,
            },
            requested: 0,
            begun: 0,
            active: VecDeque::new(),
            requests: VecDeque::new(),
            next_request: 0,
            schedules: Schedules::default(),
            tuning: Tuning::default(),
        })
    }

    #[inline]
    pub(crate) fn rank(&self) -> u32 {
        self.setup.spec.rank
    }

    #[inline]
    pub(crate) fn processes(&self) -> &[ProcessId] {
        &self.setup.spec.processes
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    pub(crate) fn region(&self) -> &Region {
        &self.setup.region
    }

    /// Without an algorithm, by the one that was found the quickest.
    ///
    /// # Errors
    /// `InvalidArgument` if the call is none that can be.
    pub(crate) fn plan(
        &self,
        portals: &P,
        call: Call,
        algorithm: Option<Algorithm>,
    ) -> Result<Plan> {
        // Each rank combines by itself, and the caller's loop has no limit.
        let largest_combine = match self.setup.spec.progress {
            Progress::Offloaded => portals.largest_atomic(),
            Progress::Host => u64::MAX,
        };
        let ranks = self.processes().len() as u32;
        let chosen = || {
            let bytes = call.sound_bytes(ranks)?;
            self.tuning.chosen(Class::of(&call, bytes))
        };
        let algorithm = algorithm.or_else(chosen);
        Plan::new(call, algorithm, ranks, self.setup.reach, largest_combine)
    }

    /// All ranks call this for an operation that blocks and has no algorithm of its caller's: it may be one
    /// that is timed, by another algorithm.
    ///
    /// # Errors
    /// As [`MessageOperations::plan`].
    pub(crate) fn begin_trial(&mut self, portals: &P, plan: Plan) -> Result<(Plan, Option<Trial>)> {
        let class = Class::of(&plan.call, plan.bytes);
        let ranks = self.processes().len() as u32;
        match self.tuning.begin(class, ranks, plan.algorithm) {
            Some((algorithm, trial)) => {
                let plan = self.plan(portals, plan.call, Some(algorithm))?;
                Ok((plan, Some(trial)))
            }
            None => Ok((plan, None)),
        }
    }

    /// An operation that is timed has ended here. The last one of a class returns what this rank has
    /// measured.
    pub(crate) fn end_trial(&mut self, trial: Trial) -> Option<Measured> {
        self.tuning.end(trial)
    }

    /// How the ranks add up what each has measured, and this rank's part of it.
    pub(crate) fn sum(&self, portals: &P, measured: &Measured) -> Result<(Plan, Vec<u8>)> {
        let times = measured.to_bytes();
        let combine = Combine {
            operation: Operation::Sum,
            datatype: Datatype::Uint64,
        };
        let count = (times.len() / Datatype::Uint64.size()) as u64;
        let call = Call::Allreduce(Reduction { combine, count });
        let plan = self.plan(portals, call, Some(Algorithm::RecursiveDoubling))?;
        Ok((plan, times))
    }

    /// From here on, operations of a class go by the algorithm that has taken the ranks the least time.
    pub(crate) fn choose(&mut self, measured: &Measured, sums: &[u8]) {
        self.tuning.decide(measured, sums);
    }

    pub(crate) fn enqueue(&mut self, plan: Plan) -> Request {
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

    /// # Errors
    /// `InvalidRequest`.
    pub(crate) fn plan_of(&mut self, request: Request) -> Result<Plan> {
        Ok(self.pending_mut(request)?.plan)
    }

    /// When this was first asked of the request: since then other ranks may be probed.
    pub(crate) fn waiting_since(&mut self, request: Request) -> Result<Instant> {
        let pending = self.pending_mut(request)?;
        Ok(*pending.first_probe.get_or_insert_with(Instant::now))
    }

    /// Copies the input of a request whose segments couldn't all be begun.
    pub(crate) fn keep_input(&mut self, request: Request, buffers: &dyn Buffers) -> Result<()> {
        if self.begun < self.requested {
            let (rank, pending) = (self.rank(), self.pending_mut(request)?);
            let (given, _) = pending.plan.lengths(rank);
            pending.input = Some(buffers.input(0..given as usize).to_vec());
        }
        Ok(())
    }

    /// Whether nothing is under way here: neither segments nor barriers.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.barriers.are_over(self.requested)
    }

    /// Does all that can be done now. `buffers` are those of `request`.
    pub(crate) fn advance(
        &mut self,
        portals: &P,
        request: Request,
        mut buffers: Option<&mut dyn Buffers>,
    ) -> Result<()> {
        loop {
            self.begin_segments(portals, request, buffers.as_deref())?;
            self.end_segments(portals, request, &mut buffers)?;
            self.advance_barrier(portals)?;
            if self.begun == self.requested || !self.barriers.allow(self.begun) {
                return Ok(());
            }
        }
    }

    fn advance_barrier(&mut self, portals: &P) -> Result<()> {
        let context = self.setup.context(portals);
        let ended = self.active.front().map_or(self.begun, |front| front.number);
        let host = self.setup.spec.progress == Progress::Host;
        let lanes = &mut self.lanes;
        self.barriers
            .advance(&context, lanes, (self.requested, ended), host)
    }

    /// Begins segments in the order of their numbers, as far as barriers allow.
    fn begin_segments(
        &mut self,
        portals: &P,
        current: Request,
        buffers: Option<&dyn Buffers>,
    ) -> Result<()> {
        while self.begun < self.requested && self.barriers.allow(self.begun) {
            let segment = self.begin_segment(portals, current, buffers)?;
            self.begun += 1;
            self.active.push_back(segment);
        }
        Ok(())
    }

    /// Begins the next one.
    fn begin_segment(
        &mut self,
        portals: &P,
        current: Request,
        buffers: Option<&dyn Buffers>,
    ) -> Result<Segment> {
        let number = self.begun;
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
            active.post(&self.setup.context(portals), lane)?;
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
        portals: &P,
        current: Request,
        buffers: &mut Option<&mut dyn Buffers>,
    ) -> Result<()> {
        let mut place = 0;
        while let Some(segment) = self.active.get_mut(place) {
            let lane = &mut self.lanes[segment.active.lane];
            segment
                .active
                .progress(&self.setup.context(portals), lane)?;
            if !segment.active.is_done(portals, lane)? {
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
    pub(crate) fn take(&mut self, request: Request, buffers: &mut dyn Buffers) -> Result<bool> {
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

    /// Adds what is waited for; false if something can go on already.
    pub(crate) fn add_awaited<'a>(
        &'a self,
        portals: &P,
        awaited: &mut Awaited<'a, P>,
    ) -> Result<bool> {
        let segments = self.active.iter().map(|segment| &segment.active);
        for active in segments.chain(self.barriers.running()) {
            match active.awaits(portals, &self.lanes[active.lane])? {
                Some(want) => awaited.push(want),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Lets the library make progress.
    pub(crate) fn poll_library(&self, portals: &P) -> Result<()> {
        let counter = self.lanes[0].counter(0);
        portals.wait(&[(counter, u64::MAX)], Duration::ZERO)?;
        Ok(())
    }
}

impl Setup {
    fn context<'a, P: Portals>(&'a self, portals: &'a P) -> StepContext<'a, P> {
        StepContext {
            portals,
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
