//! The model's initiator: descriptors, operations and their ends.

use super::{Md, Model, Operation, is_reply, run, size_of};
use crate::rig::Sent;
use lintel_engine4::{DescriptorSpec, Transfer};
use lintel_memory::Ghost;
use lintel_types::{
    AckRequest, Error, Event, EventKind, Handle, List, MdOptions, NiFail, Operation as AtomicOp,
    PortalIndex, ProcessId, Result,
};
use lintel_wire::{Request, Response, Verb};

impl Model {
    pub fn bind(&mut self, name: Handle, spec: DescriptorSpec<Ghost>) -> Result<()> {
        self.queue(spec.queue)?;
        self.counter(spec.counter)?;
        if self.mds.len() as i32 >= self.limits.max_mds {
            return Err(Error::NoSpace);
        }
        self.mds.push(Md { name, spec });
        Ok(())
    }

    pub fn release(&mut self, name: Handle) -> Result<()> {
        self.md(name)?;
        let uses =
            |operation: &Operation| operation.source == Some(name) || operation.sink == Some(name);
        if self.operations.iter().any(uses) {
            return Err(Error::InUse);
        }
        self.mds.retain(|md| md.name != name);
        Ok(())
    }

    fn md(&self, name: Handle) -> Result<DescriptorSpec<Ghost>> {
        let found = self.mds.iter().find(|md| md.name == name);
        found.map(|md| md.spec.clone()).ok_or(Error::ArgInvalid)
    }

    /// The target of a transfer that may start.
    pub(super) fn check(&self, transfer: &Transfer) -> Result<ProcessId> {
        let bad = Err(Error::ArgInvalid);
        let target = match self.logical {
            true => match self.map.get(transfer.target.rank() as usize) {
                Some(target) => *target,
                None => return bad,
            },
            false => transfer.target,
        };
        let (atomic, answered) = (
            !matches!(transfer.verb, Verb::Put | Verb::Get),
            is_reply(transfer.verb),
        );
        if transfer.verb != Verb::Get {
            let md = self.md(transfer.source)?;
            if transfer.source_offset + transfer.length > md.buffer.length() {
                return bad;
            }
            let unreliable = md.options.contains(MdOptions::UNRELIABLE);
            let full = transfer.ack == AckRequest::Full;
            let counting = transfer.ack == AckRequest::Counting;
            if !answered && full && (md.queue == Handle::EQ_NONE || unreliable) {
                return bad;
            }
            if !answered && counting && md.counter == Handle::CT_NONE {
                return bad;
            }
        }
        if answered {
            let md = self.md(transfer.sink)?;
            if transfer.sink_offset + transfer.length > md.buffer.length() {
                return bad;
            }
        }
        if atomic {
            let size = size_of(transfer.datatype);
            let swaps = transfer.operation >= AtomicOp::Swap;
            let conditional = transfer.operation > AtomicOp::Swap;
            if transfer.length % size != 0
                || swaps != (transfer.verb == Verb::Swap)
                || (conditional && transfer.length > size)
            {
                return bad;
            }
        }
        Ok(target)
    }

    pub fn start(&mut self, transfer: &Transfer) -> Result<()> {
        let target = self.check(transfer)?;
        self.launch(transfer, target);
        self.settle();
        Ok(())
    }

    pub fn under_way(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn launch(&mut self, transfer: &Transfer, target: ProcessId) {
        let mut transfer = transfer.clone();
        transfer.ack = self.asked_for(&transfer);
        let referenced = transfer.length > self.eager;
        let answered = referenced || transfer.ack != AckRequest::None || is_reply(transfer.verb);
        let source = (transfer.verb != Verb::Get).then_some(transfer.source);
        let sink = is_reply(transfer.verb).then_some(transfer.sink);
        let (memory, offset) = match source {
            Some(source) => (source, transfer.source_offset),
            None => (transfer.sink, transfer.sink_offset),
        };
        let serial = self.tick();
        let mut operation = Operation {
            transfer,
            target,
            source,
            sink,
            sending: referenced,
            filling: false,
            serial,
            token: 0,
        };
        let transfer = operation.transfer.clone();
        if self.unreachable.contains(&target) {
            operation.sending = true;
            self.end(
                &operation,
                NiFail::Undeliverable,
                0,
                0,
                List::Priority,
                false,
            );
            return;
        }
        let buffer = self.md(memory).expect("the transfer was checked").buffer;
        let request = Request {
            verb: transfer.verb,
            interface: self.number,
            ack: transfer.ack,
            referenced,
            portal: PortalIndex(transfer.portal as u16),
            token: answered as u32,
            rank: self.rank,
            length: transfer.length,
            operation: transfer.operation,
            datatype: transfer.datatype,
            match_bits: transfer.match_bits,
            remote_offset: transfer.remote_offset,
            hdr_data: transfer.hdr_data,
        };
        let operand = (transfer.verb == Verb::Swap).then_some(transfer.operand);
        let pieces = run(&buffer, offset, transfer.length);
        let sent = Sent {
            to: target,
            request,
            operand,
            pieces,
        };
        self.sent.push((sent, answered.then_some(serial)));
        if answered {
            self.operations.push(operation.clone());
        }
        if !referenced {
            self.tell_send(&operation, NiFail::Ok);
        }
    }

    /// An acknowledgement that nobody would count isn't asked for.
    fn asked_for(&self, transfer: &Transfer) -> AckRequest {
        use AckRequest::{Counting, None, OperationCompleted};
        let md = self.md(transfer.source);
        let counts = md.is_ok_and(|md| md.options.contains(MdOptions::EVENT_CT_ACK));
        match transfer.ack {
            Counting | OperationCompleted if !counts => None,
            ack => ack,
        }
    }

    /// What the engine calls the operation that it sent.
    pub fn named(&mut self, serial: u64, token: u32) {
        let clash = self
            .operations
            .iter()
            .any(|operation| operation.token == token);
        assert!(!clash, "two operations under way have the token {token:#x}");
        for operation in self
            .operations
            .iter_mut()
            .filter(|other| other.serial == serial)
        {
            operation.token = token;
        }
    }

    fn tell_send(&mut self, operation: &Operation, fail: NiFail) {
        let Some(Ok(md)) = operation.source.map(|source| self.md(source)) else {
            return;
        };
        let quiet = MdOptions::EVENT_SEND_DISABLE | MdOptions::EVENT_SUCCESS_DISABLE;
        let length = operation.transfer.length;
        if fail != NiFail::Ok || !md.options.intersects(quiet) {
            let mut event = Event::new(EventKind::Send);
            event.user_ptr = operation.transfer.user_ptr;
            (event.rlength, event.mlength, event.ni_fail) = (length, length, fail);
            self.post(Some(md.queue), event);
        }
        if md.options.contains(MdOptions::EVENT_CT_SEND) {
            let bytes = md.options.contains(MdOptions::EVENT_CT_BYTES);
            self.count(Some(md.counter), fail, bytes, length);
        }
    }

    /// Where a reply goes that must be put in place first.
    pub fn on_response(&mut self, response: &Response) -> Option<Vec<Ghost>> {
        let mut operations = self.operations.iter_mut();
        let found = operations.find(|operation| operation.token == response.token);
        let awaiting = found.filter(|operation| !operation.filling)?;
        awaiting.filling = response.reply && response.fail == NiFail::Ok && !response.placed;
        let operation = awaiting.clone();
        if operation.filling {
            let sink = self.md(operation.sink?).ok()?;
            let length = response.mlength.min(operation.transfer.length);
            return Some(run(&sink.buffer, operation.transfer.sink_offset, length));
        }
        self.finish(response, response.fail);
        None
    }

    /// The end of an operation, if it is under way.
    pub fn finish(&mut self, response: &Response, fail: NiFail) {
        let found = self
            .operations
            .iter()
            .position(|other| other.token == response.token);
        let Some(at) = found else { return };
        let operation = self.operations.remove(at);
        let Response {
            mlength,
            offset,
            list,
            silent,
            ..
        } = *response;
        self.end(&operation, fail, mlength, offset, list, silent);
        self.settle();
    }

    /// Lost operations end in the order of the engine's slots: no rule asks for another.
    pub fn on_target_lost(&mut self, target: ProcessId) {
        let mut lost: Vec<Operation> = self
            .operations
            .iter()
            .filter(|other| other.target == target)
            .cloned()
            .collect();
        lost.sort_by_key(|operation| operation.token as u16);
        for operation in lost {
            self.operations
                .retain(|other| other.serial != operation.serial);
            self.end(
                &operation,
                NiFail::Undeliverable,
                0,
                0,
                List::Priority,
                false,
            );
        }
        self.settle();
    }

    fn end(
        &mut self,
        operation: &Operation,
        fail: NiFail,
        mlength: u64,
        offset: u64,
        list: List,
        silent: bool,
    ) {
        if operation.sending {
            let lost = fail == NiFail::Undeliverable;
            self.tell_send(operation, if lost { fail } else { NiFail::Ok });
        }
        let ack = operation.transfer.ack;
        let reply = operation.sink.is_some();
        if !reply && (silent || ack == AckRequest::None) {
            return;
        }
        let completed = !reply && ack == AckRequest::OperationCompleted;
        let fail = if completed && fail != NiFail::Undeliverable {
            NiFail::Ok
        } else {
            fail
        };
        let Ok(md) = self.md(operation.sink.or(operation.source).expect("one of the two")) else {
            return;
        };
        let quiet = fail == NiFail::Ok && md.options.contains(MdOptions::EVENT_SUCCESS_DISABLE);
        if (reply || ack == AckRequest::Full) && !quiet {
            let mut event = Event::new(if reply {
                EventKind::Reply
            } else {
                EventKind::Ack
            });
            event.user_ptr = operation.transfer.user_ptr;
            (event.rlength, event.mlength) = (operation.transfer.length, mlength);
            (event.remote_offset, event.list, event.ni_fail) = (offset, list, fail);
            self.post(Some(md.queue), event);
        }
        let counts = if reply {
            MdOptions::EVENT_CT_REPLY
        } else {
            MdOptions::EVENT_CT_ACK
        };
        if md.options.contains(counts) {
            let bytes = md.options.contains(MdOptions::EVENT_CT_BYTES) && !completed;
            self.count(Some(md.counter), fail, bytes, mlength);
        }
    }
}
