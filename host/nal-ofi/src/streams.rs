//! Rendezvous: bodies that stay with their sender until they are read to their place.

use crate::fabric::{Descriptor, Posted, Use};
use crate::frame::Piece;
use crate::peer::{RemoteBody, Stream};
use crate::{OfiNal, Operation};
use lintel_claim::{Claim, Loan, copy_vectored};
use lintel_nal::Arrival;
use std::collections::VecDeque;

/// Bytes of one read: long enough to be worth its cost, short enough that several are in
/// flight.
const READ_BYTES: u64 = 256 << 10;
/// Reads of one stream in flight.
const MAX_READS: u32 = 8;

impl OfiNal {
    /// Begins to read a body to its place; what doesn't fit isn't read.
    pub(crate) fn begin_stream(&mut self, lane: u32, body: RemoteBody) {
        let is_void = self.peers.get_mut(lane).is_some_and(|peer| {
            let number = peer.receiving.fetched;
            peer.receiving.recalled.remove(&number)
        });
        let length = body.announced.length();
        let place = body.announced.into_place().filter(|_| !is_void);
        let missing = length.min(place.as_ref().map_or(0, Loan::len));
        let mut stream = Stream {
            pieces: body.pieces.into(),
            place: VecDeque::new(),
            holds: Vec::new(),
            missing,
            under_way: 0,
            failure: None,
            is_void,
            staged: None,
            loan: None,
        };
        let staged = self.stage(&mut stream);
        let pieces = place.as_ref().map_or(&[][..], Loan::pieces);
        for claim in staged.as_ref().map_or(pieces, std::slice::from_ref) {
            let claim = *claim;
            let hold = self.hold_place(claim, &mut stream);
            stream.place.push_back((claim, hold));
        }
        stream.loan = place;
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        if peer.closed_at.is_some() {
            stream.failure.get_or_insert(libc::ENOTCONN);
        }
        peer.receiving.stream = Some(stream);
        self.peers.note_needed(lane);
        self.advance_stream(lane);
        self.end_stream_if_over(lane);
    }

    /// A bounce buffer for a stream, if the provider can't be made to leave its place alone.
    fn stage(&mut self, stream: &mut Stream) -> Option<Claim> {
        if self.link.fabric.traits().cancels_reads || stream.missing == 0 {
            return None;
        }
        match self
            .link
            .registrations
            .bounce_buffer(&mut self.link.fabric, stream.missing)
        {
            Ok(copied) => {
                let claim = copied.claim().slice(0, stream.missing);
                stream.staged = Some(copied);
                Some(claim)
            }
            Err(code) => {
                stream.failure.get_or_insert(code);
                None
            }
        }
    }

    fn hold_place(
        &mut self,
        claim: Claim,
        stream: &mut Stream,
    ) -> Option<crate::registrations::RegistrationId> {
        if claim.is_empty() || !self.link.fabric.traits().registration.local {
            return None;
        }
        match self
            .link
            .registrations
            .hold(&mut self.link.fabric, claim, Use::Filled)
        {
            Ok(hold) => {
                stream.holds.push(hold);
                Some(hold)
            }
            Err(code) => {
                stream.failure.get_or_insert(code);
                None
            }
        }
    }

    /// Posts reads for more of a stream, as many as may be in flight.
    pub(crate) fn advance_stream(&mut self, lane: u32) {
        while let Some(peer) = self.peers.get_mut(lane) {
            let Some(stream) = &mut peer.receiving.stream else {
                return;
            };
            if stream.failure.is_some() || stream.missing == 0 || stream.under_way >= MAX_READS {
                return;
            }
            let most = READ_BYTES.min(self.link.fabric.traits().most);
            let (Some(address), Some((from, to, hold))) = (peer.address, stream.next(most)) else {
                stream.failure.get_or_insert(libc::ENOTCONN);
                return self.end_stream_if_over(lane);
            };
            let descriptor = hold.map_or_else(Descriptor::default, |hold| {
                self.link.registrations.descriptor(hold)
            });
            let name = (from.name, from.key);
            match self
                .link
                .fabric
                .read(address, name, to, descriptor, Operation::Read(lane))
            {
                Posted::Yes => stream.take(to.len()),
                Posted::Later => return self.peers.list(lane),
                Posted::No(code) => {
                    stream.failure.get_or_insert(code);
                    return self.end_stream_if_over(lane);
                }
            }
        }
    }

    pub(crate) fn on_read(&mut self, lane: u32, failure: Option<i32>) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let Some(stream) = &mut peer.receiving.stream else {
            return;
        };
        stream.under_way -= 1;
        stream.failure = stream.failure.or(failure);
        self.advance_stream(lane);
        self.end_stream_if_over(lane);
    }

    /// Reports the end of a stream, once no read of it is in flight any more.
    pub(crate) fn end_stream_if_over(&mut self, lane: u32) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let ended = |stream: &mut Stream| {
            stream.under_way == 0 && (stream.missing == 0 || stream.failure.is_some())
        };
        let Some(stream) = peer.receiving.stream.take_if(ended) else {
            return;
        };
        if let (Some(staged), None, Some(loan)) = (&stream.staged, stream.failure, &stream.loan) {
            copy_vectored(&[staged.claim()], loan.pieces());
        }
        stream
            .holds
            .into_iter()
            .for_each(|hold| self.link.registrations.release(hold));
        if let Some(staged) = stream.staged {
            self.link.registrations.give_back(staged);
        }
        peer.receiving.fetched = peer.receiving.fetched.wrapping_add(1);
        let origin = peer.origin();
        if stream.is_void {
            self.arrivals.notices.push_back(Arrival::Broken(origin));
            self.peers.list(lane);
        } else if let Some(code) = stream.failure {
            self.arrivals.notices.push_back(Arrival::Broken(origin));
            self.on_error(lane, code);
        } else {
            self.arrivals.notices.push_back(Arrival::Streamed(origin));
            self.peers.list(lane);
        }
        self.peers.make_readable(lane);
        self.remove_if_drained(lane);
    }

    /// Gives up a stream whose reads never end.
    pub(crate) fn abandon_stream(&mut self, lane: u32) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        if let Some(stream) = &mut peer.receiving.stream {
            match stream.staged.take() {
                Some(staged) => self.link.registrations.abandon(staged),
                None => (self.log)(&format!(
                    "{} doesn't end {} reads from process {}, which is lost: the memory \
                     that they were to fill may still be written to",
                    self.link.fabric.name(),
                    stream.under_way,
                    peer.process
                )),
            }
            stream.under_way = 0;
            self.end_stream_if_over(lane);
        }
    }
}

impl Stream {
    /// The next bytes to read, where to, and how that place is registered.
    fn next(
        &mut self,
        most: u64,
    ) -> Option<(Piece, Claim, Option<crate::registrations::RegistrationId>)> {
        while self.pieces.front().is_some_and(|piece| piece.length == 0) {
            self.pieces.pop_front();
        }
        while self
            .place
            .front()
            .is_some_and(|(claim, _)| claim.is_empty())
        {
            self.place.pop_front();
        }
        let from = *self.pieces.front()?;
        let (to, hold) = *self.place.front()?;
        let length = from.length.min(to.len()).min(most);
        Some((from, to.slice(0, length), hold))
    }

    /// A read of so many bytes was posted.
    fn take(&mut self, bytes: u64) {
        self.under_way += 1;
        self.missing -= bytes;
        if let Some(piece) = self.pieces.front_mut() {
            piece.name = piece.name.wrapping_add(bytes);
            piece.length -= bytes;
        }
        if let Some((claim, _)) = self.place.front_mut() {
            *claim = claim.slice(bytes, u64::MAX);
        }
    }
}
