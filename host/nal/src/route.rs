//! Two NALs as one: a near one within the node, a far one to all others.

use crate::{
    Arrival, Capabilities, Finder, Granted, MoveError, Moved, Nal, Origin, Outgoing, Parts,
    RemoteLoan, Resources, Unreachable, Wake,
};
use lintel_claim::{Claim, Lease, Lent, Loan};
use lintel_snapshot::Traffic;
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Sends each message on the transport that its target's node determines, and takes
/// arrivals from both in turn.
///
/// Polling the near transport costs a load, polling the far one a system call. So the far one
/// is polled while it has sent or received something recently, and then [is
/// idle](Wake::is_idle): a thread that sleeps on its [descriptor](Wake::descriptor) [has it
/// polled](Wake::on_readable) again.
pub struct Route<Near, Far> {
    near: Near,
    far: Far,
    /// This node, if the near transport carries its messages.
    node: Option<u32>,
    /// Transport of the message that isn't done yet.
    current: Option<Side>,
    /// Messages of the near transport since the far one was last polled.
    run: u32,
    /// Empty polls that are left until the far transport is idle.
    polls_left: u32,
    /// Calls of `flush` while the far transport was idle.
    calls: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Near,
    Far,
}

/// Marks the lanes of the far way.
const FAR: u32 = 1 << 31;
/// Messages of the near way until the far one has its turn.
const QUANTUM: u32 = 16;
/// Looks in vain until the far way rests: about a millisecond of polling.
const ALERT: u32 = 4096;
/// Calls of `flush` for each reading of the clock.
const CALLS_A_CLOCK: u32 = 16;

impl<Near: Nal, Far: Nal> Route<Near, Far> {
    /// Messages to processes of `node` go the near way; with no node, none does.
    pub fn new(near: Near, far: Far, node: Option<u32>) -> Self {
        Route {
            near,
            far,
            node,
            current: None,
            run: 0,
            polls_left: 0,
            calls: 0,
        }
    }

    /// The near way itself.
    #[inline]
    pub fn near(&self) -> &Near {
        &self.near
    }

    /// The near way itself, to be changed.
    pub fn near_mut(&mut self) -> &mut Near {
        &mut self.near
    }

    #[inline]
    fn side(&self, process: ProcessId) -> Side {
        if self.node == Some(process.nid) {
            Side::Near
        } else {
            Side::Far
        }
    }

    /// Whether the far way has something to do though it rests. A look at the clock
    /// costs as much as several polls, so most calls don't.
    #[inline]
    fn is_far_due(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        if self.calls % CALLS_A_CLOCK != 0 {
            return !self.far.all_delivered();
        }
        let is_past = |due| due <= Instant::now();
        !self.far.all_delivered() || self.far.due().is_some_and(is_past)
    }

    #[inline]
    fn poll_near(&mut self) -> Option<Arrival> {
        let arrival = self.near.next();
        if let Some(Arrival::Message(..)) = arrival {
            self.current = Some(Side::Near);
        }
        arrival
    }

    #[inline(never)]
    fn far_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.is_idle() {
            return None;
        }
        // An empty poll counts when `next` finds nothing, either.
        let (mut origin, words, body) = self.far.next_inline()?;
        self.polls_left = ALERT;
        self.current = Some(Side::Far);
        origin.lane |= FAR;
        Some((origin, words, body))
    }

    fn poll_far(&mut self) -> Option<Arrival> {
        self.run = 0;
        if self.is_idle() {
            return None;
        }
        let Some(mut arrival) = self.far.next() else {
            self.polls_left = self.polls_left.saturating_sub(1);
            return None;
        };
        self.polls_left = ALERT;
        match &mut arrival {
            Arrival::Message(origin, ..) => {
                self.current = Some(Side::Far);
                origin.lane |= FAR;
            }
            Arrival::Streamed(origin) | Arrival::Broken(origin) | Arrival::Moved(origin, _) => {
                origin.lane |= FAR;
            }
            Arrival::Lost(_) | Arrival::Returned(_) => {}
        }
        Some(arrival)
    }
}

/// The origin by the name that its own NAL has for it.
fn side_of(mut origin: Origin) -> (Side, Origin) {
    if origin.lane & FAR == 0 {
        return (Side::Near, origin);
    }
    origin.lane &= !FAR;
    (Side::Far, origin)
}

impl<Near: Nal, Far: Nal> Nal for Route<Near, Far> {
    fn capabilities(&self) -> Capabilities {
        match self.node {
            Some(_) => self.near.capabilities(),
            None => self.far.capabilities(),
        }
    }

    #[inline]
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        match self.side(to) {
            Side::Near => self.near.send(to, words, body),
            Side::Far => {
                self.polls_left = ALERT;
                self.far.send(to, words, body)
            }
        }
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        match self.side(to) {
            Side::Near => self.near.send_lent(to, words, body, number),
            Side::Far => {
                self.polls_left = ALERT;
                self.far.send_lent(to, words, body, number)
            }
        }
    }

    fn leave_to(&mut self, origin: Origin) {
        self.current = None;
        match side_of(origin) {
            (Side::Near, origin) => self.near.leave_to(origin),
            (Side::Far, origin) => self.far.leave_to(origin),
        }
    }

    fn begin_parts(&mut self, origin: Origin, parts: Parts, length: u64) -> Option<(u64, u64)> {
        match side_of(origin) {
            (Side::Near, origin) => self.near.begin_parts(origin, parts, length),
            (Side::Far, origin) => self.far.begin_parts(origin, parts, length),
        }
    }

    fn take_part(&mut self, granted: Granted, length: u64) -> Option<(u64, u64)> {
        let (side, granted) = match granted {
            Granted::By(process) => (self.side(process), granted),
            Granted::To(origin) => {
                let (side, origin) = side_of(origin);
                (side, Granted::To(origin))
            }
        };
        match side {
            Side::Near => self.near.take_part(granted, length),
            Side::Far => self.far.take_part(granted, length),
        }
    }

    fn revoke_grant(&mut self, origin: Origin, own: u32) -> bool {
        match side_of(origin) {
            (Side::Near, origin) => self.near.revoke_grant(origin, own),
            (Side::Far, origin) => self.far.revoke_grant(origin, own),
        }
    }

    fn note_moved(&mut self, to: ProcessId, moved: Moved) {
        match self.side(to) {
            Side::Near => self.near.note_moved(to, moved),
            Side::Far => self.far.note_moved(to, moved),
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        match self.current {
            Some(Side::Near) => return self.poll_near(),
            Some(Side::Far) => return self.poll_far(),
            None => {}
        }
        if self.run < QUANTUM {
            self.poll_near().or_else(|| self.poll_far())
        } else {
            self.poll_far().or_else(|| self.poll_near())
        }
    }

    #[inline(always)]
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.current.is_some() || self.run >= QUANTUM {
            return None;
        }
        if let Some(found) = self.near.next_inline() {
            self.current = Some(Side::Near);
            return Some(found);
        }
        // A message of the near way isn't delayed by a system call.
        match self.run {
            0 => self.far_inline(),
            _ => None,
        }
    }

    #[inline]
    fn done(&mut self, origin: Origin) {
        self.current = None;
        match side_of(origin) {
            (Side::Near, origin) => {
                self.run += 1;
                self.near.done(origin);
            }
            (Side::Far, origin) => self.far.done(origin),
        }
    }

    fn lent_behind(
        &mut self,
        origin: Origin,
        places: u32,
        bytes: u64,
    ) -> Option<(Words, RemoteLoan)> {
        match side_of(origin) {
            (Side::Near, origin) => self.near.lent_behind(origin, places, bytes),
            (Side::Far, origin) => self.far.lent_behind(origin, places, bytes),
        }
    }

    fn done_lent(&mut self, origin: Origin, messages: u32) {
        self.current = None;
        match side_of(origin) {
            (Side::Near, origin) => {
                self.run += messages;
                self.near.done_lent(origin, messages);
            }
            (Side::Far, origin) => self.far.done_lent(origin, messages),
        }
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        match side_of(origin) {
            (Side::Near, origin) => self.near.receive_into(origin, place),
            (Side::Far, origin) => self.far.receive_into(origin, place),
        }
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        match side_of(from) {
            (Side::Near, from) => self.near.fetch(from, remote, to),
            (Side::Far, from) => self.far.fetch(from, remote, to),
        }
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        match side_of(to) {
            (Side::Near, to) => self.near.fill(to, from, remote),
            (Side::Far, to) => self.far.fill(to, from, remote),
        }
    }

    fn recall(&mut self, lease: &Lease) -> bool {
        // Both, whatever the first returns.
        let near = self.near.recall(lease);
        self.far.recall(lease) && near
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        match self.side(process) {
            Side::Near => self.near.backlog(process),
            Side::Far => self.far.backlog(process),
        }
    }

    fn lends(&mut self, to: ProcessId, length: u64) -> bool {
        match self.side(to) {
            Side::Near => self.near.lends(to, length),
            Side::Far => self.far.lends(to, length),
        }
    }

    fn resources(&self) -> Resources {
        let (near, far) = (self.near.resources(), self.far.resources());
        Resources {
            lanes: near.lanes,
            ..far
        }
    }

    fn traffic(&self) -> Vec<Traffic> {
        [self.near.traffic(), self.far.traffic()].concat()
    }

    fn arrivals(&self) -> u64 {
        self.near.arrivals().wrapping_add(self.far.arrivals())
    }
}

impl<Near: Nal, Far: Nal> Wake for Route<Near, Far> {
    #[inline]
    fn flush(&mut self) -> bool {
        let near = self.near.flush();
        if self.is_idle() {
            if !self.is_far_due() {
                return near;
            }
            // To flush may bring messages in, which no poll would find.
            self.polls_left = 1;
        }
        self.far.flush() || near
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        match self.side(process) {
            Side::Near => self.near.has_queued(process),
            Side::Far => self.far.has_queued(process),
        }
    }

    fn check_peers(&mut self) {
        self.near.check_peers();
        self.far.check_peers();
    }

    fn wake_peers(&mut self) {
        self.near.wake_peers();
        self.far.wake_peers();
    }

    fn would_move(&mut self, origin: Origin, length: u64, found: Finder) -> Option<Parts> {
        match side_of(origin) {
            (Side::Near, origin) => self.near.would_move(origin, length, found),
            (Side::Far, origin) => self.far.would_move(origin, length, found),
        }
    }

    fn hold_rings(&mut self, to: ProcessId, hold: bool) {
        match self.side(to) {
            Side::Near => self.near.hold_rings(to, hold),
            Side::Far => self.far.hold_rings(to, hold),
        }
    }

    fn ring_due(&mut self) -> Option<Duration> {
        let both = self.near.ring_due().into_iter();
        both.chain(self.far.ring_due()).min()
    }

    fn ring_held(&mut self) {
        self.near.ring_held();
        self.far.ring_held();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.far.descriptor().or_else(|| self.near.descriptor())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.polls_left == 0 && self.node.is_some()
    }

    fn on_readable(&mut self) {
        self.polls_left = ALERT;
        self.far.on_readable();
    }

    fn due(&self) -> Option<Instant> {
        self.near.due().into_iter().chain(self.far.due()).min()
    }

    fn needs_progress(&self) -> bool {
        self.near.needs_progress() || self.far.needs_progress()
    }

    fn all_delivered(&self) -> bool {
        self.near.all_delivered() && self.far.all_delivered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loopback, Payload};

    /// A far way that takes messages from its socket when it is flushed.
    #[derive(Default)]
    struct Absorbing {
        in_socket: u32,
        taken: u32,
        due: Option<Instant>,
    }

    impl Nal for Absorbing {
        fn capabilities(&self) -> Capabilities {
            Capabilities {
                name: "absorbing",
                eager: 0,
            }
        }
        fn send(&mut self, _: ProcessId, _: &Words, _: Outgoing<'_>) -> Result<(), Unreachable> {
            Ok(())
        }
        fn next(&mut self) -> Option<Arrival> {
            self.taken = self.taken.checked_sub(1)?;
            let origin = Origin {
                process: ProcessId::new(9, 9),
                uid: 0,
                lane: 0,
            };
            let payload = Payload::Inline(Claim::empty());
            Some(Arrival::Message(origin, Words::default(), payload))
        }
        fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
            match self.next()? {
                Arrival::Message(origin, words, Payload::Inline(body)) => {
                    Some((origin, words, body))
                }
                other => panic!("it has inline messages only, not {other:?}"),
            }
        }
        fn done(&mut self, origin: Origin) {
            assert_eq!(origin.lane, 0, "the mark of the far way is this crate's");
        }
        fn receive_into(&mut self, _: Origin, _: Loan) {}
        fn fetch(&mut self, _: Origin, _: &RemoteLoan, _: &[Claim]) -> Result<u64, MoveError> {
            Err(MoveError::Unavailable)
        }
        fn fill(&mut self, _: Origin, _: &[Claim], _: &RemoteLoan) -> Result<u64, MoveError> {
            Err(MoveError::Unavailable)
        }
        fn recall(&mut self, _: &Lease) -> bool {
            true
        }
    }

    impl Wake for Absorbing {
        fn flush(&mut self) -> bool {
            self.taken += std::mem::take(&mut self.in_socket);
            self.due = None;
            false
        }
        fn has_queued(&self, _: ProcessId) -> bool {
            false
        }
        fn check_peers(&mut self) {}
        fn wake_peers(&mut self) {}
        fn due(&self) -> Option<Instant> {
            self.due
        }
    }

    fn idle(far: Absorbing) -> Route<Loopback, Absorbing> {
        let near = Loopback::new(ProcessId::new(1, 1), 0);
        let route = Route::new(near, far, Some(1));
        assert!(route.is_idle());
        route
    }

    /// How many messages arrive while polls go on and the descriptor isn't watched.
    fn polled(route: &mut Route<Loopback, Absorbing>) -> u32 {
        let mut came = 0;
        for _ in 0..100 {
            route.flush();
            while let Some(Arrival::Message(origin, ..)) = route.next() {
                route.done(origin);
                came += 1;
            }
        }
        came
    }

    #[test]
    fn an_idle_way_leaves_arrivals_to_the_thread_that_watches_the_descriptor() {
        let mut route = idle(Absorbing {
            in_socket: 1,
            ..Absorbing::default()
        });
        assert_eq!(polled(&mut route), 0);
        assert_eq!(route.far.in_socket, 1, "the descriptor stays readable");
        route.on_readable();
        assert_eq!(polled(&mut route), 1);
    }

    #[test]
    fn an_inline_message_of_the_far_way_is_found_unless_the_way_is_idle() {
        let mut route = idle(Absorbing {
            taken: 2,
            ..Absorbing::default()
        });
        assert!(route.next_inline().is_none());
        route.on_readable();
        let (origin, ..) = route.next_inline().expect("the way isn't idle");
        assert_eq!(origin.lane, FAR);
        assert!(route.next_inline().is_none(), "the first one isn't done");
        route.done(origin);
        assert!(route.next_inline().is_some());
        assert!(!route.is_idle());
    }

    #[test]
    fn messages_of_the_near_way_are_not_delayed_by_looks_at_the_far_one() {
        let mut route = idle(Absorbing {
            taken: 1,
            ..Absorbing::default()
        });
        route.on_readable();
        route.run = 1;
        assert!(route.next_inline().is_none());
        assert!(route.next().is_some(), "it has its turn");
    }

    #[test]
    fn what_a_flush_that_is_due_brings_in_is_looked_at() {
        for due in [Duration::ZERO, Duration::from_millis(1)] {
            let mut route = idle(Absorbing {
                in_socket: 1,
                due: Some(Instant::now() - due),
                ..Absorbing::default()
            });
            assert_eq!(polled(&mut route), 1);
        }
    }
}
