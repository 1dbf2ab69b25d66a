//! What an operation does at its initiator (section 3.13), in its plainest form.

use super::{Md, Model, Operation, blank};
use crate::rig::{EAGER, JID, UID};
use lintel_engine3::Transfer;
use lintel_memory::Ghost;
use lintel_types::portals3::{Error, Event, EventKind, NI_FAIL, NID_ANY, PID_ANY, Result};
use lintel_types::{Handle, InterfaceNumber, NiFail, PortalIndex, ProcessId};
use lintel_wire::portals3::{Request, Response, Verb};

impl Model {
    /// Starts an operation; `token` is the one that the engine has given it, `routed` whether
    /// it could be sent. Returns what is sent, and from or to where.
    pub fn start(
        &mut self,
        transfer: &Transfer,
        token: u32,
        routed: bool,
    ) -> Result<(Request, Vec<Ghost>)> {
        let target = transfer.target;
        if target.nid == NID_ANY || target.pid == PID_ANY {
            return Err(Error::ProcessInvalid);
        }
        let (puts, gets) = (transfer.verb != Verb::Get, transfer.verb != Verb::Put);
        let mut sink_length = 0;
        if gets {
            sink_length = self.region(transfer.sink, transfer.sink_offset, transfer.length)?;
        }
        let mut length = sink_length;
        if puts {
            length = self.region(transfer.source, transfer.source_offset, transfer.length)?;
        }
        let exchange = puts && gets;
        if exchange && length.max(sink_length) > self.limits.max_getput_md as u64 {
            return Err(Error::MdIllegal);
        }
        let referenced = length > EAGER && !exchange;
        let request = Request {
            verb: transfer.verb,
            interface: InterfaceNumber::from_bits(2),
            ack: transfer.ack && !gets,
            referenced,
            portal: PortalIndex(transfer.portal as u16),
            access: transfer.access as u16,
            token,
            jid: JID,
            length,
            match_bits: transfer.match_bits,
            remote_offset: transfer.remote_offset,
            hdr_data: transfer.hdr_data,
        };
        let (md, offset) = match puts {
            true => (transfer.source, transfer.source_offset),
            false => (transfer.sink, transfer.sink_offset),
        };
        let pieces = self.md(md)?.pieces(offset, length);
        let about = Event {
            initiator: self.me,
            uid: UID,
            jid: JID,
            pt_index: transfer.portal,
            match_bits: transfer.match_bits,
            rlength: length,
            mlength: length,
            offset,
            hdr_data: transfer.hdr_data,
            ..blank()
        };
        self.operations.push(Operation {
            token,
            target,
            verb: transfer.verb,
            ack: request.ack,
            source: transfer.source,
            sink: if gets { transfer.sink } else { Handle::INVALID },
            sink_offset: transfer.sink_offset,
            sink_length,
            about: Event {
                initiator: target,
                ..about
            },
            sending: None,
            filling: None,
        });
        self.send(&request, md, about, routed);
        Ok((request, pieces))
    }

    /// The SEND events of the latest operation, and its end if nothing is awaited.
    fn send(&mut self, request: &Request, md: Handle, about: Event, routed: bool) {
        let latest = self.operations.len() - 1;
        if request.verb != Verb::Get || self.cray {
            let id = self.begin(md, EventKind::SendEnd, about);
            if routed && request.referenced && request.verb == Verb::Put {
                self.operations[latest].sending = Some(id);
            } else {
                let fail = if routed {
                    NiFail::Ok
                } else {
                    NiFail::Undeliverable
                };
                self.end(id, fail);
            }
        }
        let put = request.verb == Verb::Put;
        if put && (!routed || !request.ack && !request.referenced) {
            self.operations.remove(latest);
        } else if !routed {
            self.fail(latest, NiFail::Undeliverable);
        }
    }

    fn region(&self, md: Handle, offset: u64, length: Option<u64>) -> Result<u64> {
        let md = self.md(md)?;
        if !md.active() {
            return Err(Error::MdInvalid);
        }
        let left = md.length().checked_sub(offset).ok_or(Error::MdIllegal)?;
        match length {
            Some(length) if length > left => Err(Error::MdIllegal),
            length => Ok(length.unwrap_or(left)),
        }
    }

    /// A response arrives. Returns where the bytes of a reply go, if they have to be moved.
    pub fn respond(&mut self, response: &Response) -> Option<Vec<Ghost>> {
        let place = self.operations.iter().position(|operation| {
            operation.token == response.token
                && (operation.verb != Verb::Put) == response.reply
                && operation.filling.is_none()
        });
        let Some(place) = place else {
            self.drops += 1;
            return None;
        };
        if !response.reply {
            self.answered(place, response);
            return None;
        }
        if response.fail != NiFail::Ok {
            self.fail(place, response.fail);
            return None;
        }
        let operation = &self.operations[place];
        let length = response.mlength.min(operation.sink_length);
        let (sink, offset) = (operation.sink, operation.sink_offset);
        if !self.fill(place, length) {
            return None;
        }
        if response.placed {
            self.filled(response.token, NiFail::Ok);
            return None;
        }
        Some(self.md(sink).ok()?.pieces(offset, length))
    }

    /// A reply begins to be moved, unless its descriptor is inactive.
    fn fill(&mut self, place: usize, length: u64) -> bool {
        let operation = &self.operations[place];
        let sink = operation.sink;
        let about = Event {
            mlength: length,
            offset: operation.sink_offset,
            ..operation.about
        };
        if self.md(sink).is_ok_and(Md::active) {
            let id = self.begin(sink, EventKind::ReplyEnd, about);
            self.operations[place].filling = Some(id);
            return true;
        }
        self.drops += 1;
        self.fail(place, NiFail::Dropped);
        false
    }

    pub fn filled(&mut self, token: u32, fail: NiFail) {
        let place = self.operations.iter().position(|op| op.token == token);
        let Some(place) = place else { return };
        let operation = self.operations.remove(place);
        self.end(operation.filling.expect("it is being moved"), fail);
    }

    /// A reply that does not come, or doesn't come whole.
    fn fail(&mut self, place: usize, fail: NiFail) {
        if fail == NiFail::Dropped && self.operations[place].filling.is_none() {
            let operation = self.operations.remove(place);
            return self.unlink_if_spent(operation.sink, &operation.about, None);
        }
        let token = self.operations[place].token;
        if self.operations[place].filling.is_some() || self.fill(place, 0) {
            self.filled(token, fail);
        }
    }

    /// A put has been answered.
    fn answered(&mut self, place: usize, response: &Response) {
        let operation = self.operations.remove(place);
        let dropped = response.fail == NiFail::Dropped;
        let fail = if dropped { NiFail::Ok } else { response.fail };
        if let Some(sending) = operation.sending {
            self.end(sending, fail);
        }
        if dropped || response.silent || !operation.ack {
            return;
        }
        if !self.md(operation.source).is_ok_and(Md::active) {
            self.drops += 1;
            return;
        }
        let mlength = response.mlength.min(operation.about.rlength);
        let about = Event {
            rlength: mlength,
            mlength,
            offset: response.offset,
            ni_fail: if fail == NiFail::Ok { 0 } else { NI_FAIL },
            ..operation.about
        };
        self.count(operation.source);
        let link = self.report(operation.source, EventKind::Ack, &about, None);
        self.unlink_if_spent(operation.source, &about, link);
    }

    /// A process is gone, or never was (dropped). Its operations end in the order of the tokens' slots.
    pub fn lose(&mut self, target: ProcessId, fail: NiFail) {
        let operations = self.operations.iter();
        let to_target = operations.filter(|operation| operation.target == target);
        let mut tokens: Vec<u32> = to_target.map(|operation| operation.token).collect();
        tokens.sort_by_key(|token| token & 0xffff);
        for token in tokens {
            let place = self.operations.iter().position(|op| op.token == token);
            let place = place.expect("it hasn't ended");
            if self.operations[place].verb != Verb::Put {
                self.fail(place, fail);
                continue;
            }
            let response = Response {
                reply: false,
                interface: InterfaceNumber::from_bits(2),
                placed: false,
                silent: false,
                token,
                mlength: 0,
                offset: 0,
                fail,
            };
            self.answered(place, &response);
        }
    }
}
