//! What a NAL does between calls: sends, receives, keeps time.

use crate::body::Body;
use crate::inbound::Packet;
use crate::socket::would_block;
use crate::tx_batch::SendOutcome;
use crate::{LINGER, LINGER_POLL, UdpNal};
use lintel_claim::Claim;
use lintel_nal::{Arrival, Origin};
use lintel_reliable::{Header, Kind, PairId, Time, Verdict};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::time::Instant;

impl UdpNal {
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends what may be sent now.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time) {
        self.is_coalescing = false;
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let is_last = transmit.is_last;
            if let Some(sent) = self.tx_batch.push(&self.socket, transmit) {
                if !self.on_sent(now, sent) {
                    break;
                }
            }
            // There is something again if that wasn't sent.
            if is_last && !self.endpoint.has_work() {
                break;
            }
        }
        if !self.tx_batch.is_empty() {
            if let Some(sent) = self.tx_batch.transmit(&self.socket) {
                self.on_sent(now, sent);
            }
        }
        self.take_lost_peers();
        self.recycle();
    }

    /// A batch was handed to the system; false if no more may be sent now.
    #[inline]
    fn on_sent(&mut self, now: Time, sent: SendOutcome) -> bool {
        match sent {
            SendOutcome::Sent => true,
            other => self.on_unsent(now, other),
        }
    }

    #[cold]
    fn on_unsent(&mut self, now: Time, sent: SendOutcome) -> bool {
        for header in self.tx_batch.unsent() {
            self.endpoint.on_send_failed(header);
        }
        match sent {
            SendOutcome::Sent | SendOutcome::Retry => true,
            SendOutcome::WouldBlock => false,
            SendOutcome::PendingErrors => {
                self.take_send_errors(now);
                true
            }
            SendOutcome::Refused(to) => {
                self.endpoint.on_refused(now, to);
                true
            }
            SendOutcome::Unreachable(to, error) => {
                self.on_unreachable(now, to, &error);
                true
            }
        }
    }

    /// Takes back the memory of bodies that have been acknowledged, or whose receiver is lost.
    #[inline]
    fn recycle(&mut self) {
        if self.endpoint.has_finished() {
            self.recycle_finished();
        }
    }

    fn recycle_finished(&mut self) {
        for message in self.endpoint.take_finished() {
            match message.body {
                Body::Own(buffer, _) => self.buffers.put(buffer),
                Body::Lent(_, Some(number)) => self.inbound.on_returned(number),
                Body::Small(_) | Body::Lent(_, None) => {}
            }
        }
    }

    #[cold]
    fn on_unreachable(&mut self, now: Time, to: ProcessId, error: &std::io::Error) {
        if !std::mem::replace(&mut self.has_logged_send_error, true) {
            (self.log)(&format!("the system doesn't send to process {to}: {error}"));
        }
        self.endpoint.on_refused(now, to);
    }

    /// Takes the errors that the system has queued: processes that aren't there.
    #[cold]
    fn take_send_errors(&mut self, now: Time) {
        while let Some(process) = self.socket.take_refused() {
            self.endpoint.on_refused(now, process);
        }
        self.take_lost_peers();
    }

    fn take_lost_peers(&mut self) {
        while let Some(lost) = self.endpoint.poll_lost_peer() {
            self.inbound.on_lost_peer(&lost);
        }
    }

    /// Does what is due by the clock, and sends.
    pub(crate) fn service(&mut self) {
        self.tx_batch.pass_delayed(&self.socket);
        let due = self.due_by_clock();
        if due != Time::NEVER && self.now() >= due {
            self.on_due();
        }
        if self.endpoint.has_work() || self.is_coalescing {
            self.transmit(self.now());
        }
    }

    fn on_due(&mut self) {
        // An answer that waits in the socket isn't late.
        if self.drain_socket() {
            let now = self.now();
            self.endpoint.on_timeout(now);
            self.buffers.on_time(now);
            self.take_lost_peers();
            self.recycle();
        }
    }

    #[inline]
    pub(crate) fn due_by_clock(&self) -> Time {
        self.endpoint.due().min(self.buffers.due())
    }

    /// Receives until the socket is empty, or there is no room to keep more;
    /// acknowledgements take effect, messages wait for `next`. True if the socket is empty.
    pub(crate) fn drain_socket(&mut self) -> bool {
        while self.inbound.may_drain_socket() {
            let Some(now) = self.receive() else {
                return true;
            };
            let _ = self.take_datagram(now, true);
        }
        false
    }

    /// Receives a datagram unless one is in the buffer; returns the time.
    #[inline]
    pub(crate) fn receive(&mut self) -> Option<Time> {
        if self.inlet.is_empty() {
            self.poll_socket()?;
        }
        Some(self.now())
    }

    fn poll_socket(&mut self) -> Option<()> {
        loop {
            match self.read_socket() {
                Ok(()) => return Some(()),
                Err(error) if would_block(&error) => return None,
                Err(_) => {
                    let now = self.now();
                    self.take_send_errors(now);
                    if !self.inbound.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    /// Receives into the buffer, and the payload of the active stream's next part straight
    /// into its place: nothing else is ever written there.
    #[inline]
    fn read_socket(&mut self) -> std::io::Result<()> {
        if self.inbound.awaits_part() {
            let expected = self
                .inbound
                .expected_part(|pair| self.endpoint.expected(pair));
            let bytes = self.inlet.peek_part(&self.socket, expected)?;
            if let Some(place) = self.inbound.next_place(bytes) {
                return self.inlet.receive_around(&self.socket, place);
            }
            self.inbound.on_missed();
        }
        self.inlet.receive(&self.socket)
    }

    /// Takes the next datagram that was received. A message to be reported stays in the
    /// buffer and is returned, or is kept for `later`.
    pub(crate) fn take_datagram(&mut self, now: Time, later: bool) -> Option<Arrival> {
        if self.inlet.has_hole() {
            if let Some((header, placed)) = self.pop_in_place() {
                let verdict = self.on_packet(now, &header, true);
                let (Verdict::Deliver(pair), Kind::Data(fragment)) = (verdict, &header.kind) else {
                    return None;
                };
                return self.inbound.on_placed(pair, fragment, placed, later);
            }
        }
        let (header, payload) = self.inlet.pop_apart(self.socket.key())?;
        let verdict = self.on_packet(now, &header, self.inbound.may_buffer());
        self.take_packet(verdict, &header, payload, later)
    }

    /// As [`take_datagram`](Self::take_datagram), while nothing else is to be reported; of
    /// what isn't a message that is reported at once, the rest is left to `next`.
    #[inline]
    pub(crate) fn take_message(&mut self, now: Time) -> Option<(Origin, Words, Claim)> {
        let (header, payload) = self.inlet.pop(self.socket.key())?;
        let verdict = self.on_packet(now, &header, self.inbound.may_buffer());
        if let (Verdict::Deliver(pair), Kind::Data(fragment)) = (verdict, &header.kind) {
            if let (Some(words), true) = (&fragment.words, self.inbound.may_report(fragment)) {
                return Some(self.inbound.report(pair, &header, words, payload));
            }
        }
        let arrival = self.take_packet(verdict, &header, payload, false);
        self.inbound.leave(arrival);
        None
    }

    /// What becomes of a packet after the endpoint's verdict.
    fn take_packet(
        &mut self,
        verdict: Verdict,
        header: &Header,
        payload: Claim,
        later: bool,
    ) -> Option<Arrival> {
        let Kind::Data(fragment) = header.kind else {
            return None;
        };
        match verdict {
            Verdict::Drop => None,
            Verdict::Keep(pair) => {
                let packet = Packet::new(pair, header, fragment, payload);
                self.inbound.keep(header.sequence, packet);
                None
            }
            Verdict::Deliver(pair) => {
                let packet = Packet::new(pair, header, fragment, payload);
                let arrival = self.inbound.deliver(packet, later);
                if self.inbound.has_reordered() {
                    self.deliver_reordered(pair);
                }
                arrival
            }
        }
    }

    fn pop_in_place(&mut self) -> Option<(Header, u64)> {
        let expected = self
            .inbound
            .expected_part(|pair| self.endpoint.expected(pair));
        self.inlet.pop_in_place(self.socket.key(), expected)
    }

    #[inline]
    fn on_packet(&mut self, now: Time, header: &Header, may_keep: bool) -> Verdict {
        let verdict = self.endpoint.on_packet(now, header, may_keep);
        self.take_lost_peers();
        self.recycle();
        verdict
    }

    /// Queues the packets that waited for the one just delivered behind it.
    #[cold]
    fn deliver_reordered(&mut self, pair: PairId) {
        while let Some(packet) = self
            .inbound
            .take_reordered(pair, self.endpoint.expected(pair))
        {
            match self.endpoint.on_early(pair, packet.fragment()) {
                Verdict::Deliver(_) => self.inbound.deliver_kept(packet),
                Verdict::Drop | Verdict::Keep(_) => return self.inbound.discard(packet),
            }
        }
    }

    /// Waits for acknowledgements as long as they arrive, then sends each peer a close.
    pub(crate) fn close(&mut self) {
        self.inlet.close();
        self.inbound.close();
        let mut progress = (Instant::now(), usize::MAX);
        while !self.endpoint.all_delivered() && progress.0.elapsed() < LINGER {
            self.drain_socket();
            self.service();
            if self.endpoint.outstanding() < progress.1 {
                progress = (Instant::now(), self.endpoint.outstanding());
            }
            self.socket.wait(LINGER_POLL);
        }
        self.endpoint.close();
        let now = self.now();
        self.transmit(now);
        self.tx_batch.release_delayed(&self.socket);
    }
}
