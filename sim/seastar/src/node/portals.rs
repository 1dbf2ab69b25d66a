//! The engine's part: what it says, gathered and priced.

use lintel_engine4::{Body, Filling, Host, Interface, Landed, Transfer, Undeliverable};
use lintel_memory::{Ghost, Pieces};
use lintel_sim_kernel::Duration;
use lintel_types::{CountingEvent, Error, Event, EventKind, NiFail, ProcessId};
use lintel_wire::{Request, Response, Verb};

use super::process::Notice;
use super::transmit::Outgoing;
use crate::parcel::{Content, Parcel};
use crate::profile::Profile;

/// What comes of something that the engine was told.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Of this process.
    pub(crate) process: usize,
    me: ProcessId,
    /// Nodes that there are.
    nodes: u32,
    pub(crate) notices: Vec<Notice>,
    pub(crate) sends: Vec<Outgoing>,
    /// How the NIC goes on with the message that the engine was told of.
    pub(crate) next: Next,
}

/// How the NIC goes on with a message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Next {
    /// There is none.
    #[default]
    Nothing,
    /// It is to be put where it belongs.
    Deposit(u64),
    /// Nobody wants its payload.
    Discard(u64),
    /// All of it has been dealt with.
    Release,
}

/// A message whose payload is awaited.
pub(crate) enum Held {
    Landing(Landed),
    Filling(Filling),
}

/// What becomes of a message, by its header.
pub(crate) enum Verdict {
    /// Its payload belongs somewhere.
    Deposit(Held),
    /// It has none, or nobody wants it.
    Nothing,
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

    fn push(&mut self, to: ProcessId, body: u64, content: Content, landed: Option<Landed>) {
        let parcel = Parcel {
            from: self.me,
            to,
            body,
            content,
            sequence: 0,
        };
        self.sends.push(Outgoing {
            landed,
            ..Outgoing::new(parcel, self.process)
        });
    }

    fn respond(&mut self, to: ProcessId, response: Option<Response>) {
        if let Some(response) = response {
            self.push(to, 0, Content::Response(response), None);
        }
    }
}

impl Host<Ghost> for Gathered {
    /// The engine says that a source may be used again once its bytes are copied.
    /// Here the TX engine reads them, so that event waits until it has.
    fn post(&mut self, _: u16, event: &Event) {
        let notice = Notice::Portals(*event);
        match self.sends.last_mut() {
            Some(send) if event.kind == EventKind::Send => send.notices.push(notice),
            _ => self.notices.push(notice),
        }
    }

    /// Event queues of the model grow.
    fn room(&mut self, _: u16) -> usize {
        usize::MAX
    }

    fn publish(&mut self, _: u16, _: CountingEvent) {}

    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, Ghost>,
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

/// Starts an operation, which can't be delivered where there is no such node.
pub(crate) fn start(
    engine: &mut Interface<Ghost>,
    transfer: &Transfer,
    nodes: u32,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    gathered.nodes = nodes;
    engine.start(transfer, gathered)
}

/// A message's header is read.
pub(crate) fn on_header(
    engine: &mut Interface<Ghost>,
    parcel: &Parcel,
    gathered: &mut Gathered,
) -> Verdict {
    match &parcel.content {
        Content::Request(request) => on_request(engine, parcel.from, request, gathered),
        Content::Response(response) => match engine.on_response(response, gathered) {
            Some((_, filling)) => Verdict::Deposit(Held::Filling(filling)),
            None => Verdict::Nothing,
        },
        Content::Cci(_) | Content::Control(_) => Verdict::Nothing,
    }
}

fn on_request(
    engine: &mut Interface<Ghost>,
    from: ProcessId,
    request: &Request,
    gathered: &mut Gathered,
) -> Verdict {
    let accepted = match engine.accept(from, engine.uid(), request, gathered) {
        Ok(accepted) => accepted,
        Err(response) => {
            gathered.respond(from, response);
            return Verdict::Nothing;
        }
    };
    let (pieces, landed) = engine.begin_landing(accepted, from, engine.uid(), request);
    match request.verb {
        Verb::Get => {
            reply(from, &pieces, landed, gathered);
            Verdict::Nothing
        }
        _ => Verdict::Deposit(Held::Landing(landed)),
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
        Held::Filling(filling) => engine.on_filled(filling, NiFail::Ok, gathered),
    }
}

/// A message has left.
pub(crate) fn on_sent(
    engine: &mut Interface<Ghost>,
    outgoing: &mut Outgoing,
    gathered: &mut Gathered,
) {
    gathered.notices.append(&mut outgoing.notices);
    if let Some(landed) = outgoing.landed.take() {
        engine.on_landed(landed, NiFail::Ok, gathered);
    }
}

/// What the engine has done since it was last asked, in time. An event that waits for
/// its message to leave is paid when it is told.
pub(crate) fn price(
    engine: &mut Interface<Ghost>,
    gathered: &Gathered,
    matching: Matching,
    profile: &Profile,
) -> Duration {
    let work = engine.take_work();
    let (message, entry, event) = match matching {
        Matching::Host => (profile.host_message, profile.host_entry, profile.host_event),
        Matching::Nic => (profile.nic_message, profile.nic_entry, profile.nic_event),
    };
    let told = gathered.notices.len() as u64;
    profile.time(message) * (work.requests + work.responses + work.fired)
        + profile.time(entry) * work.walked
        + profile.time(event) * (told + work.counts)
}
