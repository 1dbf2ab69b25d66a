//! Two NALs as one: a near one within the node, a far one to all others.

use crate::{Arrival, Caps, MoveError, Nal, Origin, Outgoing, Resources, Unreachable};
use lintel_claim::{Claim, RemoteSpan};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Sends each message the way that its target's node asks for, and takes
/// arrivals from both, turn by turn.
///
/// To look at the near way costs a load, to look at the far one a system call. So
/// the far way is looked at while something has come or gone there of late, and
/// then [rests](Nal::rests): whoever sleeps on its [descriptor](Nal::descriptor)
/// [stirs](Nal::stir) it again.
pub struct Route<Near, Far> {
    near: Near,
    far: Far,
    /// This node, where the near way carries its messages.
    node: Option<u32>,
    /// Which way the message came that isn't done yet.
    current: Option<Side>,
    /// Messages of the near way since the far one was last looked at.
    run: u32,
    /// Looks in vain that are left until the far way rests.
    alert: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Near,
    Far,
}

/// Marks the lanes of the far way.
const FAR: u32 = 1 << 31;
/// So many messages of the near way, and the far one has its turn.
const TURN: u32 = 16;
/// Looks in vain until the far way rests: about a millisecond of polling.
const ALERT: u32 = 4096;

impl<Near: Nal, Far: Nal> Route<Near, Far> {
    /// Messages to processes of `node` go the near way; with no node, none does.
    pub fn new(near: Near, far: Far, node: Option<u32>) -> Self {
        Route {
            near,
            far,
            node,
            current: None,
            run: 0,
            alert: 0,
        }
    }

    #[inline]
    fn side(&self, process: ProcessId) -> Side {
        if self.node == Some(process.nid) {
            Side::Near
        } else {
            Side::Far
        }
    }

    #[inline]
    fn look_near(&mut self) -> Option<Arrival> {
        let arrival = self.near.next();
        if let Some(Arrival::Message(..)) = arrival {
            self.current = Some(Side::Near);
        }
        arrival
    }

    fn look_far(&mut self) -> Option<Arrival> {
        self.run = 0;
        if self.rests() {
            return None;
        }
        let Some(mut arrival) = self.far.next() else {
            self.alert = self.alert.saturating_sub(1);
            return None;
        };
        self.alert = ALERT;
        match &mut arrival {
            Arrival::Message(origin, ..) => {
                self.current = Some(Side::Far);
                origin.lane |= FAR;
            }
            Arrival::Streamed(origin) | Arrival::Broken(origin) => origin.lane |= FAR,
            Arrival::Lost(_) => {}
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
    fn caps(&self) -> Caps {
        match self.node {
            Some(_) => self.near.caps(),
            None => self.far.caps(),
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
                self.alert = ALERT;
                self.far.send(to, words, body)
            }
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        match self.current {
            Some(Side::Near) => return self.look_near(),
            Some(Side::Far) => return self.look_far(),
            None => {}
        }
        if self.run < TURN {
            self.look_near().or_else(|| self.look_far())
        } else {
            self.look_far().or_else(|| self.look_near())
        }
    }

    #[inline(always)]
    fn next_enclosed(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.current.is_some() || self.run >= TURN {
            return None;
        }
        let found = self.near.next_enclosed();
        if found.is_some() {
            self.current = Some(Side::Near);
        }
        found
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

    fn receive_into(&mut self, origin: Origin, pieces: Vec<Claim>) {
        match side_of(origin) {
            (Side::Near, origin) => self.near.receive_into(origin, pieces),
            (Side::Far, origin) => self.far.receive_into(origin, pieces),
        }
    }

    fn fetch(
        &mut self,
        from: Origin,
        remote: &[RemoteSpan],
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        match side_of(from) {
            (Side::Near, from) => self.near.fetch(from, remote, to),
            (Side::Far, from) => self.far.fetch(from, remote, to),
        }
    }

    fn place(
        &mut self,
        to: Origin,
        from: &[Claim],
        remote: &[RemoteSpan],
    ) -> Result<u64, MoveError> {
        match side_of(to) {
            (Side::Near, to) => self.near.place(to, from, remote),
            (Side::Far, to) => self.far.place(to, from, remote),
        }
    }

    #[inline]
    fn flush(&mut self) -> bool {
        let near = self.near.flush();
        self.far.flush() || near
    }

    fn check_peers(&mut self) {
        self.near.check_peers();
        self.far.check_peers();
    }

    fn nudge(&mut self) {
        self.near.nudge();
        self.far.nudge();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.far.descriptor().or_else(|| self.near.descriptor())
    }

    #[inline]
    fn rests(&self) -> bool {
        self.alert == 0 && self.node.is_some()
    }

    fn stir(&mut self) {
        self.alert = ALERT;
        self.far.stir();
    }

    fn due(&self) -> Option<Instant> {
        self.near.due().into_iter().chain(self.far.due()).min()
    }

    fn is_settled(&self) -> bool {
        self.near.is_settled() && self.far.is_settled()
    }

    fn resources(&self) -> Resources {
        let (near, far) = (self.near.resources(), self.far.resources());
        Resources {
            lanes: near.lanes,
            ..far
        }
    }
}
