//! The engine's part: what it says, gathered and priced.

use lintel_engine3::{
    Body, Host, Interface, Landed, PendingReply, Posting, Transfer, Undeliverable,
};
use lintel_memory::{Ghost, Pieces};
use lintel_sim_kernel::Duration;
use lintel_types::portals3::{Error, Event, EventKind};
use lintel_types::{NiFail, ProcessId, QueueIndex};
use lintel_wire::portals3::{Request, Response, Verb};

use super::process::{Notice, Queued};
use super::transmit::Outgoing;
use crate::message::{Content, Message};
use crate::profile::Profile;

/// The effects of one call of the engine.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The process's number in its node.
    pub(crate) process: usize,
    me: ProcessId,
    /// Nodes that there are.
    nodes: u32,
    pub(crate) queued: Vec<Queued>,
    pub(crate) sends: Vec<Outgoing>,
    /// How the NIC goes on with the message that the engine was given.
    pub(crate) next: Next,
}

/// How the NIC goes on with a message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Next {
    /// No bytes follow the header.
    #[default]
    Nothing,
    /// It is to be deposited in the entry's memory.
    Deposit(u64),
    /// Its payload is discarded.
    Discard(u64),
    /// All of it has been dealt with, and it came from that node.
    Release(u32),
}

/// A message whose payload is awaited.
pub(crate) enum Held {
    Landing(Landed),
    Reply(PendingReply),
}

/// Where matching runs, which decides what it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matching {
    Host,
    Nic,
}

impl Gathered {
    pub(crate) fn of(process: usize, me: ProcessId) -> Self {
        Gathered {
            process,
            me,
            nodes: u32::MAX,
            ..Gathered::default()
        }
    }

    /// Without effects of an engine.
    pub(crate) fn going_on(next: Next) -> Self {
        Gathered {
            next,
            ..Gathered::default()
        }
    }

    fn push(&mut self, to: ProcessId, body: u64, content: Content, landed: Option<Landed>) {
        let message = Message {
            from: self.me,
            to,
            body,
            content,
            sequence: None,
        };
        self.sends.push(Outgoing {
            landed,
            ..Outgoing::new(message, self.process)
        });
    }

    fn respond(&mut self, to: ProcessId, response: Option<Response>) {
        if let Some(response) = response {
            self.push(to, 0, Content::Response(response), None);
        }
    }
}

impl Host<Ghost> for Gathered {
    /// The engine says that a source may be used again once its bytes are copied. Here the
    /// TX engine reads them, so SEND_END, and what follows from it, waits until it has.
    fn post(&mut self, _: QueueIndex, event: Posting<'_>) {
        let event = Event::from(event);
        let queued = Queued::ForProgram(Notice::Portals(event));
        match self.sends.last_mut() {
            Some(send) if event.kind == EventKind::SendEnd || !send.queued.is_empty() => {
                send.queued.push(queued);
            }
            _ => self.queued.push(queued),
        }
    }

    /// Asked by `PtlMDUpdate`, which no program here calls.
    fn is_empty(&mut self, _: QueueIndex) -> bool {
        false
    }

    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<Ghost>,
    ) -> Result<(), Undeliverable> {
        if to.nid >= self.nodes {
            return Err(Undeliverable);
        }
        let length = match request.verb {
            Verb::Get => 0,
            _ => body.pieces.length(),
        };
        self.push(to, length, Content::Request(*request), None);
        Ok(())
    }
}

/// Starts an operation, which can't be delivered if there is no such node.
pub(crate) fn start(
    engine: &mut Interface<Ghost>,
    transfer: &Transfer,
    nodes: u32,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    gathered.nodes = nodes;
    engine.start(transfer, gathered)
}

/// A message is in, or its header is. Gives what is to be kept until its payload is in
/// place; payload that rode in the header's packet is.
pub(crate) fn on_header(
    engine: &mut Interface<Ghost>,
    name: u64,
    message: &Message,
    is_inline: bool,
    gathered: &mut Gathered,
) -> Option<Held> {
    let held = match &message.content {
        Content::Request(request) => on_request(engine, message.from, request, gathered),
        Content::Response(response) => on_response(engine, response, gathered),
        Content::Cci(_) | Content::Control(_) => None,
    };
    gathered.next = match &held {
        _ if is_inline => Next::Release(message.from.nid),
        Some(_) => Next::Deposit(name),
        None => Next::Discard(name),
    };
    match held {
        Some(held) if is_inline => {
            on_deposited(engine, message.from, held, gathered);
            None
        }
        held => held,
    }
}

fn on_response(
    engine: &mut Interface<Ghost>,
    response: &Response,
    gathered: &mut Gathered,
) -> Option<Held> {
    let (_, reply) = engine.on_response(response, gathered)?;
    Some(Held::Reply(reply))
}

fn on_request(
    engine: &mut Interface<Ghost>,
    from: ProcessId,
    request: &Request,
    gathered: &mut Gathered,
) -> Option<Held> {
    let accepted = match engine.accept(from, engine.uid(), request) {
        Ok(accepted) => accepted,
        Err(response) => {
            gathered.respond(from, response);
            return None;
        }
    };
    let (pieces, landed) = engine.begin_landing(accepted, from, engine.uid(), request, gathered);
    match request.verb {
        Verb::Get => {
            reply(from, &pieces, landed, gathered);
            None
        }
        _ => Some(Held::Landing(landed)),
    }
}

/// The answer to a get leaves, and the get has landed once it has left.
fn reply(to: ProcessId, pieces: &Pieces<Ghost>, landed: Landed, gathered: &mut Gathered) {
    if let Some(response) = landed.response(NiFail::Ok) {
        let content = Content::Response(response);
        gathered.push(to, pieces.length(), content, Some(landed));
    }
}

/// A message's payload is in place.
pub(crate) fn on_deposited(
    engine: &mut Interface<Ghost>,
    from: ProcessId,
    held: Held,
    gathered: &mut Gathered,
) {
    match held {
        Held::Landing(landed) => {
            gathered.respond(from, landed.response(NiFail::Ok));
            engine.on_landed(landed, NiFail::Ok, gathered);
        }
        Held::Reply(reply) => engine.on_filled(reply, NiFail::Ok, gathered),
    }
}

/// A message has left.
pub(crate) fn on_sent(
    engine: &mut Interface<Ghost>,
    outgoing: &mut Outgoing,
    gathered: &mut Gathered,
) {
    gathered.queued.append(&mut outgoing.queued);
    if let Some(landed) = outgoing.landed.take() {
        engine.on_landed(landed, NiFail::Ok, gathered);
    }
}

/// What the engine has done since it was last asked, in time. An event that waits for
/// its message to leave is paid when it is reported.
pub(crate) fn price(
    engine: &mut Interface<Ghost>,
    gathered: &Gathered,
    matching: Matching,
    profile: &Profile,
) -> Duration {
    let work = engine.take_work();
    let p = profile;
    let (per_message, entry, event, send) = match matching {
        Matching::Host => (p.host_message, p.host_entry, p.host_event, p.host_message),
        Matching::Nic => (p.nic_message, p.nic_entry, p.nic_event, p.fw_program),
    };
    p.time(per_message) * (work.requests + work.responses)
        + p.time(entry) * work.walked
        + p.time(event) * gathered.queued.len() as u64
        + p.time(send) * gathered.sends.len() as u64
}
