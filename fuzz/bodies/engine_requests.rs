//! Whatever requests and responses arrive, an interface never panics, lands
//! bytes inside its entries only, and ends clean.
//!
//! The first byte chooses the interface. Then each 49 bytes are a message and a
//! choice: how it lands, which operation it answers, what the owner does next.

use crate::rig::*;
use lintel_engine4::{DescriptorSpec, EntrySpec, Landed, Landing, PendingReply, SearchOp};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::{
    AckRequest, Handle, Limits, List, MdOptions, MeOptions, NiFail, NiOptions, PortalIndex,
    ProcessId, PtOptions, QueueIndex,
};
use lintel_wire::{Acknowledgements, BYTES, Message, Request, Response, Verb};

/// Entries lie here and nowhere else.
const MEMORY: std::ops::Range<u64> = BASE..BASE + 0x10_0000;

struct Target {
    node: Node,
    entries: Vec<Handle>,
    sink: Handle,
    landing: Vec<Landed>,
    replies: Vec<PendingReply>,
    tokens: Vec<u32>,
}

pub fn body(data: &[u8]) {
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let mut target = Target::new(*first);
    for chunk in data.chunks_exact(BYTES + 1) {
        let mut words = [0; lintel_wire::WORDS];
        for (word, bytes) in words.iter_mut().zip(chunk.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        let choice = chunk[BYTES];
        match Message::parse(&words) {
            Ok(Message::Request(request)) => target.request(request, choice),
            Ok(Message::Response(response)) => target.response(response, choice),
            Ok(Message::Acknowledgements(all)) => target.acknowledgements(&all, choice),
            Err(_) => {}
        }
        target.command(choice, words[3]);
    }
    target.end();
}

impl Target {
    fn new(first: u8) -> Self {
        let mut options = NiOptions::empty();
        options.set(NiOptions::MATCHING, first & 1 != 0);
        options.set(NiOptions::LOGICAL, first & 2 != 0);
        let limits = Limits {
            max_unexpected_headers: 3,
            max_pt_index: 3,
            ..Limits::DEFAULT
        };
        let mut node = Node::new(process(0), options, limits);
        if options.contains(NiOptions::LOGICAL) {
            node.interface
                .set_map(&[process(0), process(1)])
                .expect("it has this process");
        }
        node.host
            .capacity
            .insert(QueueIndex(node.queue.index()), 20);
        for index in 0..3 {
            node.portal(if index == 1 {
                PtOptions::FLOWCTRL
            } else {
                PtOptions::empty()
            });
        }
        let (queue, counter) = (node.queue, node.counter());
        let options = MdOptions::EVENT_CT_REPLY
            | MdOptions::EVENT_CT_ACK
            | MdOptions::EVENT_CT_BYTES
            | MdOptions::EVENT_CT_SEND;
        let sink = node.bind(DescriptorSpec {
            queue,
            counter,
            options,
            ..descriptor()
        });
        let (entries, landing, replies, tokens) = (vec![], vec![], vec![], vec![]);
        let mut target = Target {
            node,
            entries,
            sink,
            landing,
            replies,
            tokens,
        };
        for choice in 0..12 {
            target.append(choice, 7);
        }
        target
    }

    fn spec(&self, choice: u8, bits: u64) -> EntrySpec<Ghost> {
        let mut options = MeOptions::OP_PUT | MeOptions::OP_GET;
        if self.node.interface.matching() && choice & 1 != 0 {
            options |= MeOptions::MANAGE_LOCAL | MeOptions::LOCAL_INC_UH_RLENGTH;
        }
        options.set(MeOptions::USE_ONCE, choice & 2 != 0);
        options.set(MeOptions::UNEXPECTED_HDR_DISABLE, choice & 64 != 0);
        let length = [0, 100, 5000, 0xffff][usize::from(choice >> 2 & 3)];
        let vector = vec![
            Ghost::new(BASE, length),
            Ghost::new(BASE + 0x8_0000, length),
        ];
        let source = match self.node.interface.logical() {
            true => ProcessId::from_rank(ProcessId::RANK_ANY),
            false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        };
        EntrySpec {
            buffer: if choice & 16 != 0 {
                Buffer::vector(vector)
            } else {
                bytes(length)
            },
            options,
            source,
            match_bits: bits,
            ignore_bits: if choice & 32 != 0 { u64::MAX } else { 0 },
            min_free: u64::from(choice & 8) * 10,
            ..entry(i32::from(choice) % 3)
        }
    }

    fn append(&mut self, choice: u8, bits: u64) {
        let list = if choice & 4 != 0 {
            List::Overflow
        } else {
            List::Priority
        };
        let spec = self.spec(choice, bits);
        if let Ok(entry) = self.node.interface.append(&spec, list, &mut self.node.host) {
            self.entries.push(entry);
        }
    }

    fn request(&mut self, mut request: Request, choice: u8) {
        if choice & 1 != 0 {
            // Else hardly one would be for a portal that exists.
            request.portal.0 %= 4;
            request.match_bits &= 7;
        }
        let fail = if choice & 16 != 0 {
            NiFail::Segv
        } else {
            NiFail::Ok
        };
        if choice & 64 != 0 {
            if let Some((delivered, place)) = self.node.deliver(process(1), &request, fail) {
                assert_eq!(place.length(), request.length);
                assert!(place.length() == 0 || MEMORY.contains(&place.address()));
                return check_response(delivered.response, &request);
            }
        }
        match self.node.on_request(process(1), &request) {
            Landing::Refused(response) => check_response(response, &request),
            Landing::Accepted(pieces, landed) => {
                assert!(landed.mlength() <= request.length);
                assert_eq!(pieces.length(), landed.mlength());
                for piece in pieces.as_slice().iter().filter(|piece| piece.length() > 0) {
                    let end = piece.address() + piece.length();
                    assert!(MEMORY.contains(&piece.address()) && end <= MEMORY.end);
                }
                check_response(landed.response(NiFail::Ok), &request);
                self.landing.push(landed);
            }
        }
        if choice & 6 != 0 && !self.landing.is_empty() {
            let landed = self
                .landing
                .swap_remove(usize::from(choice) % self.landing.len());
            let fail = if choice & 8 != 0 {
                NiFail::Segv
            } else {
                NiFail::Ok
            };
            self.node.on_landed(landed, fail);
        }
    }

    fn response(&mut self, mut response: Response, choice: u8) {
        if let (true, false) = (choice & 3 != 0, self.tokens.is_empty()) {
            response.token = self.tokens[usize::from(choice) % self.tokens.len()];
        }
        if let Some((pieces, pending)) = self.node.on_response(&response) {
            assert!(pieces.length() <= 4096);
            self.replies.push(pending);
        }
        if choice & 4 != 0 {
            if let Some(pending) = self.replies.pop() {
                self.node
                    .interface
                    .on_filled(pending, NiFail::Ok, &mut self.node.host);
            }
        }
    }

    fn acknowledgements(&mut self, all: &Acknowledgements, choice: u8) {
        for token in all.tokens() {
            if let Some(response) = self.node.interface.response_by_token(token) {
                self.response(response, choice);
            }
        }
    }

    /// What the owner does meanwhile.
    fn command(&mut self, choice: u8, bits: u64) {
        match choice >> 4 {
            0 => self.append(bits as u8, bits >> 8),
            1 | 2 => self.start(choice, bits),
            3 => {
                let spec = self.spec(bits as u8, bits >> 8);
                let op = if choice & 1 != 0 {
                    SearchOp::Only
                } else {
                    SearchOp::Delete
                };
                let found = self.node.interface.search(spec, op, &mut self.node.host);
                found.expect("the portals of specs are allocated");
            }
            4 => {
                for event in self.node.events() {
                    assert!(event.mlength <= event.rlength, "{event:?}");
                }
            }
            5 => drop(
                self.node
                    .interface
                    .portal_enable(PortalIndex(u16::from(choice) % 4)),
            ),
            6 => {
                let Node {
                    interface, host, ..
                } = &mut self.node;
                interface.on_target_lost(process(1), host);
            }
            7 if !self.entries.is_empty() => {
                let entry = self.entries[bits as usize % self.entries.len()];
                let _ = self.node.interface.unlink(entry);
            }
            _ => {}
        }
    }

    fn start(&mut self, choice: u8, bits: u64) {
        let to = match self.node.interface.logical() {
            true => ProcessId::from_rank(1),
            false => process(1),
        };
        let mut transfer = match choice & 1 {
            0 => put(self.sink, to, 0),
            _ => get(self.sink, to, 0),
        };
        transfer.length = bits % 4097;
        if transfer.verb == Verb::Put {
            transfer.ack = AckRequest::Full;
        }
        self.node
            .start(&transfer)
            .expect("it lies inside the descriptor");
        self.tokens
            .extend(self.node.host.sent.drain(..).map(|sent| sent.request.token));
    }

    /// Whatever has happened, everything can come to its end and be freed.
    fn end(mut self) {
        for landed in std::mem::take(&mut self.landing) {
            self.node.on_landed(landed, NiFail::Ok);
        }
        self.node
            .interface
            .on_target_lost(process(1), &mut self.node.host);
        assert_eq!(self.node.interface.operations_under_way(), 0);
        for pending in std::mem::take(&mut self.replies) {
            self.node
                .interface
                .on_filled(pending, NiFail::Ok, &mut self.node.host);
        }
        let (interface, host) = (&mut self.node.interface, &mut self.node.host);
        assert_eq!(interface.descriptor_release(self.sink), Ok(()));
        for portal in (0..3).map(PortalIndex) {
            let all = EntrySpec {
                ignore_bits: u64::MAX,
                ..entry(portal)
            };
            let source = match interface.logical() {
                true => ProcessId::from_rank(ProcessId::RANK_ANY),
                false => all.source,
            };
            let all = EntrySpec { source, ..all };
            interface
                .search(all, SearchOp::Delete, host)
                .expect("the portal is allocated");
            assert_eq!(
                interface.portal_disable(portal),
                Ok(true),
                "nothing lands any more"
            );
        }
        for entry in &self.entries {
            assert_ne!(interface.unlink(*entry), Err(lintel_types::Error::InUse));
        }
        for portal in (0..3).map(PortalIndex) {
            assert_eq!(interface.portal_free(portal), Ok(()));
        }
    }
}

fn check_response(response: Option<Response>, request: &Request) {
    assert_eq!(response.is_some(), request.token != 0);
    if let Some(response) = response {
        assert_eq!(response.token, request.token);
        assert!(response.mlength <= request.length);
        assert_eq!(
            Message::parse(&response.to_words()),
            Ok(Message::Response(response))
        );
    }
}
