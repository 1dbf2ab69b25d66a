//! What a connection has to send, and what became of it.
//!
//! Operations stand in a queue in order of issue, and each has the next sequence number. The
//! receiver takes them in that order. If it has no buffer for one, it says so, and that one
//! and all behind it are retransmitted later. An operation that was given up keeps its number
//! and is sent as a skip, so that both sides go on counting alike.

use crate::connection::{Connection, ConnectionId, State};
use crate::endpoint::{Event, Host, NoWay, Outgoing};
use crate::frame::Frame;
use crate::rma::RmaRequest;
use crate::status::{Attribute, Status};
use crate::timers::Time;
use alloc::collections::VecDeque;

/// Operations that may be under way on a connection.
const MAX_WINDOW: u32 = 256;
/// Operations under way at whose multiples acknowledgements are to be read, which may come one by one.
pub(crate) const LOOK_EVERY: u32 = MAX_WINDOW / 4;
/// How long after a refusal it is tried again, though the receiver hasn't called for it.
const RETRY: Time = Time(10_000);

/// Who is reported that an operation has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// The application, by an event.
    Event,
    /// Nobody (`CCI_FLAG_SILENT`).
    Silent,
    /// A caller that waits (`CCI_FLAG_BLOCKING`); the context names it.
    Caller,
}

/// What is reported, and to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The application's own, or the name of the waiting caller.
    pub context: u64,
    /// Who is reported.
    pub notify: Notify,
}

/// Where the data of a remote memory access go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the remote side to this one.
    Read,
    /// From this side to the remote one.
    Write,
}

pub(crate) struct Sending<B> {
    queue: VecDeque<Operation<B>>,
    /// The number of the queue's front.
    first: u32,
    /// How many from the front have been sent, and how many of those have arrived.
    sent: u32,
    arrived: u32,
    window: u32,
    /// Nothing is sent, for the receiver has no buffer; when to try again.
    pub(crate) refused: Option<Time>,
    /// The receiver's last word was a refusal, though it is being tried again.
    was_refused: bool,
}

struct Operation<B> {
    what: What<B>,
    /// `None` once it was reported.
    completion: Option<Completion>,
    deadline: Time,
    /// How it has ended.
    status: Option<Status>,
}

enum What<B> {
    Message {
        body: B,
        /// Waits for all earlier remote memory accesses; fails with the last of them.
        follows_rma: bool,
    },
    Rma(RmaRequest),
    /// Given up.
    Skip,
}

impl<B> Sending<B> {
    pub(crate) fn new() -> Self {
        Sending {
            queue: VecDeque::new(),
            first: 0,
            sent: 0,
            arrived: 0,
            window: MAX_WINDOW,
            refused: None,
            was_refused: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.len()
    }

    pub(crate) fn len(&self) -> u32 {
        self.queue.len() as u32
    }

    fn push(&mut self, what: What<B>, completion: Completion, deadline: Time) {
        self.queue.push_back(Operation {
            what,
            completion: Some(completion),
            deadline,
            status: None,
        });
    }

    /// A remote memory access, and the message that reports its end to the peer.
    pub(crate) fn push_rma(
        &mut self,
        request: RmaRequest,
        message: Option<B>,
        completion: Completion,
        deadline: Time,
    ) {
        let Some(body) = message else {
            return self.push(What::Rma(request), completion, deadline);
        };
        let silent = Completion {
            context: 0,
            notify: Notify::Silent,
        };
        self.push(What::Rma(request), silent, deadline);
        let what = What::Message {
            body,
            follows_rma: true,
        };
        self.push(what, completion, deadline);
    }

    /// An access that can't be, for its local part isn't in the registration: it fails in its
    /// turn.
    pub(crate) fn push_failed(&mut self, status: Status, completion: Completion, deadline: Time) {
        self.push(What::Skip, completion, deadline);
        if let Some(last) = self.queue.back_mut() {
            last.status = Some(status);
        }
    }

    /// When the first operation that was not reported is to be given up.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let mut unreported = self.queue.iter().filter(|op| op.completion.is_some());
        unreported.next().map(|op| op.deadline)
    }

    /// The place of a number among those that were sent.
    fn place(&self, sequence: u32) -> Option<usize> {
        let place = sequence.wrapping_sub(self.first);
        (place < self.sent).then_some(place as usize)
    }

    /// Operations that were sent and haven't arrived, as far as the peer has said.
    pub(crate) fn under_way(&self) -> u32 {
        self.sent - self.arrived
    }

    fn has_rma_under_way(&self) -> bool {
        let sent = self.queue.iter().take(self.sent as usize);
        sent.into_iter()
            .any(|op| matches!(op.what, What::Rma(_)) && op.status.is_none())
    }

    fn may_send_next(&self) -> bool {
        let Some(next) = self.queue.get(self.sent as usize) else {
            return false;
        };
        let waits_for_rma = match &next.what {
            What::Message { follows_rma, .. } => *follows_rma,
            What::Rma(request) => request.fence,
            What::Skip => false,
        };
        self.under_way() < self.window && !(waits_for_rma && self.has_rma_under_way())
    }

    /// Everything before `sequence` has arrived. False if that was never sent.
    fn on_arrived(&mut self, sequence: u32) -> bool {
        let arrived = sequence.wrapping_sub(self.first);
        if arrived > self.sent {
            return false;
        }
        if arrived > self.arrived {
            let gained = arrived - self.arrived;
            self.window = (self.window + gained).min(MAX_WINDOW);
            for op in self
                .queue
                .range_mut(self.arrived as usize..arrived as usize)
            {
                if let What::Message { .. } = op.what {
                    op.status.get_or_insert(Status::Success);
                }
            }
            self.arrived = arrived;
            self.refused = None;
            self.was_refused = false;
        }
        true
    }

    /// The request of an access that has not ended, or `None` if there is no such access.
    pub(crate) fn rma_at(&self, sequence: u32) -> Option<&RmaRequest> {
        let op = self.queue.get(self.place(sequence)?)?;
        match &op.what {
            What::Rma(request) if op.status.is_none() => Some(request),
            _ => None,
        }
    }

    fn end_rma(&mut self, sequence: u32, status: Status) {
        let Some(place) = self.place(sequence) else {
            return;
        };
        if let What::Rma(_) = self.queue[place].what {
            self.queue[place].status.get_or_insert(status);
        }
        if status == Status::Success {
            return;
        }
        let Some(next) = self.queue.get_mut(place + 1) else {
            return;
        };
        if let What::Message {
            follows_rma: true, ..
        } = next.what
        {
            next.what = What::Skip;
            next.status.get_or_insert(status);
        }
    }

    /// Nobody waits for completions any more.
    pub(crate) fn forget_completions(&mut self, mut caller: impl FnMut(u64)) {
        for op in &mut self.queue {
            if let Some(completion) = op.completion.take() {
                if completion.notify == Notify::Caller {
                    caller(completion.context);
                }
            }
        }
    }
}

impl<B> Operation<B> {
    fn tell<H: Host<Body = B>>(&mut self, connection: ConnectionId, host: &mut H) {
        let status = self.status.unwrap_or(Status::Error);
        let Some(completion) = self.completion.take() else {
            return;
        };
        let context = completion.context;
        match completion.notify {
            Notify::Event => host.post(Event::Sent {
                connection,
                context,
                status,
            }),
            Notify::Caller => host.post(Event::Returned {
                caller: context,
                status,
            }),
            Notify::Silent => {}
        }
    }
}

impl<B: 'static> Connection<B> {
    /// A message, which is sent at once if nothing waits before it and the window allows it.
    #[inline]
    pub(crate) fn send_message<H: Host<Body = B>>(
        &mut self,
        message: H::Fresh<'_>,
        completion: Completion,
        deadline: Time,
        host: &mut H,
    ) {
        let sending = &self.sending;
        let is_next = !sending.has_unsent() && sending.refused.is_none();
        if is_next && sending.under_way() < sending.window {
            let frame = Frame::Message {
                to: self.remote,
                sequence: sending.first.wrapping_add(sending.sent),
                received: self.acknowledge_by_message(),
            };
            let words = frame.to_words();
            self.sending.sent += 1;
            // If there is no way to the peer any more, its loss will be reported.
            let _ = host.send(self.peer, &words, Outgoing::Fresh(message));
        }
        let what = What::Message {
            body: host.hold(message),
            follows_rma: false,
        };
        self.sending.push(what, completion, deadline);
    }

    /// Sends what the window allows. If there is no way to the peer any more, its loss will be
    /// reported; acknowledgements that it has sent before may come first.
    pub(crate) fn transmit<H: Host<Body = B>>(&mut self, host: &mut H) {
        while self.sending.refused.is_none() && self.sending.may_send_next() {
            if self.transmit_next(host).is_err() {
                return;
            }
        }
    }

    fn transmit_next<H: Host<Body = B>>(&mut self, host: &mut H) -> Result<(), NoWay> {
        let (to, place) = (self.remote, self.sending.sent);
        let sequence = self.sending.first.wrapping_add(place);
        let is_message = matches!(
            self.sending.queue[place as usize].what,
            What::Message { .. }
        );
        let received = match is_message {
            true => self.acknowledge_by_message(),
            false => 0,
        };
        let (frame, body) = match &self.sending.queue[place as usize].what {
            What::Message { body, .. } => {
                let frame = Frame::Message {
                    to,
                    sequence,
                    received,
                };
                (frame, Outgoing::Held(body))
            }
            What::Rma(request) => request.to_frame(to, sequence),
            What::Skip => {
                let frame = Frame::Skip {
                    to,
                    sequence,
                    count: 1,
                };
                (frame, Outgoing::Nothing)
            }
        };
        self.sending.sent += 1;
        host.send(self.peer, &frame.to_words(), body)
    }

    /// Reports all that has ended, in order, and forgets it. Returns how many.
    pub(crate) fn complete<H: Host<Body = B>>(&mut self, id: ConnectionId, host: &mut H) -> u32 {
        let mut ended = 0;
        while self.sending.arrived > 0 {
            let Some(front) = self.sending.queue.front_mut() else {
                break;
            };
            if front.status.is_none() {
                break;
            }
            front.tell(id, host);
            self.sending.queue.pop_front();
            self.sending.first = self.sending.first.wrapping_add(1);
            self.sending.sent -= 1;
            self.sending.arrived -= 1;
            ended += 1;
        }
        ended
    }

    /// The peer has everything before `sequence`. False if that is no news, or if it
    /// contradicts itself.
    #[inline]
    pub(crate) fn on_ack(&mut self, sequence: u32) -> bool {
        let sending = &mut self.sending;
        let is_news = sequence.wrapping_sub(sending.first) != sending.arrived;
        is_news && sending.on_arrived(sequence)
    }

    /// The peer has everything before `sequence`, and no buffer for that one.
    pub(crate) fn on_not_ready(&mut self, sequence: u32, now: Time) -> bool {
        if !self.sending.on_arrived(sequence) {
            return false;
        }
        self.sending.sent = self.sending.arrived;
        self.sending.window = 1;
        self.sending.refused = Some(now.after(RETRY));
        true
    }

    pub(crate) fn on_rma_done(&mut self, sequence: u32, status: Status) {
        // The access itself has arrived, and with it all before.
        let is_sent = self.sending.on_arrived(sequence.wrapping_add(1));
        if is_sent {
            self.sending.end_rma(sequence, status);
        }
    }

    /// Tries again what was refused, if it is time.
    pub(crate) fn retry(&mut self, is_time: impl Fn(Time) -> bool) {
        if self.sending.refused.is_some_and(is_time) {
            self.sending.refused = None;
            self.sending.was_refused = true;
        }
    }

    /// Gives up what is overdue, in order.
    pub(crate) fn expire<H: Host<Body = B>>(&mut self, id: ConnectionId, now: Time, host: &mut H) {
        let is_refused = self.sending.refused.is_some() || self.sending.was_refused;
        let mut fails_all = false;
        for place in 0..self.sending.queue.len() {
            let is_sent = (place as u32) < self.sending.sent;
            let op = &mut self.sending.queue[place];
            if op.completion.is_none() {
                continue;
            }
            if op.deadline > now && !fails_all {
                break;
            }
            let status = match is_refused {
                true => Status::Rnr,
                false => Status::TimedOut,
            };
            fails_all = is_refused && self.attribute == Attribute::Ro;
            op.status.get_or_insert(status);
            // An access under way goes on in the peer; its number stays with it.
            if !(is_sent && matches!(op.what, What::Rma(_))) {
                op.what = What::Skip;
            }
            op.tell(id, host);
        }
    }

    /// Everything fails, in order. Returns how many operations that were.
    pub(crate) fn fail_all<H: Host<Body = B>>(
        &mut self,
        id: ConnectionId,
        status: Status,
        host: &mut H,
    ) -> u32 {
        let ended = self.sending.len();
        for mut op in core::mem::take(&mut self.sending.queue) {
            op.status.get_or_insert(status);
            op.tell(id, host);
        }
        self.sending = Sending::new();
        self.state = State::Dead;
        ended
    }
}
