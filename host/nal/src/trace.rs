//! Middleware that writes a line for every message.

use crate::{Arrival, Nal, Origin, Outgoing, Unreachable, Wake, forward};
use lintel_claim::Lent;
use lintel_types::{AckRequest, NiFail, ProcessId};
use lintel_wire::{Message, Request, Response, Verb, Words};
use std::fmt::Write;

/// Hands a line for each message to `log`.
pub struct Trace<N, F> {
    inner: N,
    log: F,
    /// The message that `next` returned last. (Calling it again could return a loss.)
    shown: Option<Words>,
}

impl<N: Nal, F: FnMut(String)> Trace<N, F> {
    /// Wraps a NAL; `log` takes the lines.
    pub fn new(inner: N, log: F) -> Self {
        Trace {
            inner,
            log,
            shown: None,
        }
    }

    fn line(&mut self, direction: &str, process: ProcessId, words: &Words) {
        let what = match Message::parse(words) {
            Ok(Message::Request(request)) => described(&request),
            Ok(Message::Response(response)) => answered(&response),
            Ok(Message::Acknowledgements(all)) => format!("ACKS of {} puts", all.tokens().count()),
            Err(malformed) => format!("{malformed}: {words:x?}"),
        };
        (self.log)(format!("{direction} {process} {what}"));
    }
}

/// `PUT pt 5 bits 0xabcd 65536 B`, and what isn't 0 or the rule.
fn described(request: &Request) -> String {
    let verb = match request.verb {
        Verb::Put => "PUT",
        Verb::Get => "GET",
        Verb::Atomic => "ATOMIC",
        Verb::FetchAtomic => "FETCH-ATOMIC",
        Verb::Swap => "SWAP",
    };
    let portal = u32::from(request.portal);
    let mut line = format!(
        "{verb} pt {portal} bits {:#x} {} B",
        request.match_bits, request.length
    );
    if !matches!(request.verb, Verb::Put | Verb::Get) {
        let _ = write!(line, " {:?} {:?}", request.operation, request.datatype);
    }
    if request.remote_offset != 0 {
        let _ = write!(line, " at offset {}", request.remote_offset);
    }
    if request.hdr_data != 0 {
        let _ = write!(line, " header data {:#x}", request.hdr_data);
    }
    if request.rank != ProcessId::RANK_ANY {
        let _ = write!(line, " from rank {}", request.rank);
    }
    if request.ack != AckRequest::None {
        let _ = write!(line, " {:?} acknowledgement", request.ack);
    }
    if request.referenced {
        line.push_str(" by rendezvous");
    }
    line + &operation(request.token)
}

fn answered(response: &Response) -> String {
    let verb = if response.reply { "REPLY" } else { "ACK" };
    let Response {
        mlength, offset, ..
    } = response;
    let mut line = format!("{verb} {mlength} B at offset {offset}");
    if response.silent {
        line.push_str(" for the end of a loan");
    }
    if response.fail != NiFail::Ok {
        let _ = write!(line, " failed: {:?}", response.fail);
    }
    line + &operation(response.token)
}

/// Joins a response with its request in the log.
fn operation(token: u32) -> String {
    match token {
        0 => String::new(),
        token => format!(" (operation {token:#x})"),
    }
}

impl<N: Nal, F: FnMut(String)> Nal for Trace<N, F> {
    // Not `next_inline`: each message goes through `next`.
    forward!(self { Trace { inner, .. } => inner }: capabilities, leave_to, begin_parts,
        take_part, revoke_grant, note_moved, receive_into, fetch, fill,
        recall, backlog, lends, resources, traffic, arrivals);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let sent = self.inner.send(to, words, body);
        self.line(if sent.is_ok() { "to" } else { "unreachable" }, to, words);
        sent
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        let sent = self.inner.send_lent(to, words, body, number);
        match sent {
            Ok(true) => self.line("to", to, words),
            Ok(false) => {}
            Err(Unreachable) => self.line("unreachable", to, words),
        }
        sent
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(Arrival::Message(_, words, _)) = &arrival {
            self.shown = Some(*words);
        }
        arrival
    }

    fn done(&mut self, origin: Origin) {
        if let Some(words) = self.shown.take() {
            self.line("from", origin.process, &words);
        }
        self.inner.done(origin);
    }
}

impl<N: Nal, F: FnMut(String)> Wake for Trace<N, F> {
    forward!(self { Trace { inner, .. } => inner }: ..Wake);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::{Datatype, InterfaceNumber, List, Operation, PortalIndex};

    fn request() -> Request {
        Request {
            verb: Verb::Put,
            interface: InterfaceNumber::ALL[0],
            ack: AckRequest::None,
            referenced: false,
            portal: PortalIndex::from(5_u16),
            token: 0,
            rank: ProcessId::RANK_ANY,
            length: 65536,
            operation: Operation::default(),
            datatype: Datatype::default(),
            match_bits: 0xabcd_0000,
            remote_offset: 0,
            hdr_data: 0,
        }
    }

    #[test]
    fn a_request_is_a_line_of_what_it_has() {
        assert_eq!(described(&request()), "PUT pt 5 bits 0xabcd0000 65536 B");
        let get = Request {
            verb: Verb::Get,
            rank: 3,
            remote_offset: 64,
            token: 0x10000,
            ..request()
        };
        assert_eq!(
            described(&get),
            "GET pt 5 bits 0xabcd0000 65536 B at offset 64 from rank 3 (operation 0x10000)"
        );
    }

    #[test]
    fn a_response_names_the_operation_and_why_it_failed() {
        let response = Response {
            reply: false,
            interface: InterfaceNumber::ALL[0],
            placed: false,
            silent: false,
            token: 0x10000,
            mlength: 0,
            offset: 0,
            list: List::Priority,
            fail: NiFail::Dropped,
        };
        assert_eq!(
            answered(&response),
            "ACK 0 B at offset 0 failed: Dropped (operation 0x10000)"
        );
    }
}
