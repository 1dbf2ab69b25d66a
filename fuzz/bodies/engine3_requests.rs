//! Whatever requests and responses arrive at an interface of Portals 3.3, it never panics,
//! lands bytes inside its descriptors only, and ends clean.
//!
//! The first byte chooses the dialect. Then each 49 bytes are a message and a choice: how it
//! lands, which operation it answers, what the owner does next.

use crate::rig::*;
use lintel_engine3::{
    AccessEntry, DescriptorSpec, Dialect, EntrySpec, Landed, Landing, PendingReply,
};
use lintel_memory::{Ghost, Pieces, Span};
use lintel_types::portals3::{EQ_NONE, Error, Limits, MdOptions, Position, Unlink};
use lintel_types::{Handle, NiFail};
use lintel_wire::portals3::{Message, Request, Response, Verb};
use lintel_wire::{BYTES, WORDS};

/// Descriptors lie here and nowhere else.
const MEMORY: std::ops::Range<u64> = BASE..BASE + 0x30_0000;

struct Target {
    node: Node,
    entries: Vec<Handle>,
    mds: Vec<Handle>,
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
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(chunk.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        let choice = chunk[BYTES];
        match Message::parse(&words) {
            Ok(Message::Request(request)) => target.request(request, choice),
            Ok(Message::Response(response)) => target.response(response, choice),
            Err(_) => {}
        }
        target.command(choice, words[3]);
    }
    target.end();
}

impl Target {
    fn new(first: u8) -> Self {
        let dialect = match first & 1 {
            0 => Dialect::Specification,
            _ => Dialect::Cray,
        };
        let limits = Limits {
            max_pt_index: 3,
            max_ac_index: 2,
            ..Limits::DEFAULT
        };
        let mut target = Target {
            node: Node::new(process(0), dialect, limits),
            entries: vec![],
            mds: vec![],
            landing: vec![],
            replies: vec![],
            tokens: vec![],
        };
        let sink = target.node.bind(md(4096));
        target.mds.push(sink);
        for choice in 0..12 {
            target.attach(choice, 7);
        }
        target
    }

    fn spec(&self, choice: u8) -> DescriptorSpec<Ghost> {
        let length = [0, 100, 5000, 0xffff][usize::from(choice >> 2 & 3)];
        let mut spec = match choice & 16 {
            0 => md(length),
            _ => vector(&[length, 0, length]),
        };
        spec.md.queue = self.node.queue;
        spec.md.threshold = i32::from(choice >> 5) - 1;
        spec.md.max_size = 50;
        let choices = [
            MdOptions::empty(),
            MdOptions::MANAGE_REMOTE,
            MdOptions::TRUNCATE,
            MdOptions::TRUNCATE | MdOptions::MANAGE_REMOTE | MdOptions::EVENT_START_DISABLE,
            MdOptions::MAX_SIZE,
        ];
        spec.md.options |= choices[usize::from(choice) % choices.len()];
        if choice & 2 != 0 {
            spec.unlink = Unlink::Unlink;
        }
        spec
    }

    fn attach(&mut self, choice: u8, bits: u64) {
        let entry = EntrySpec {
            match_bits: bits,
            ignore_bits: if choice & 32 != 0 { u64::MAX } else { 0 },
            unlink: if choice & 1 != 0 {
                Unlink::Unlink
            } else {
                Unlink::Retain
            },
            ..entry()
        };
        let (spec, portal) = (self.spec(choice), u32::from(choice) % 4);
        let position = match choice & 8 {
            0 => Position::Before,
            _ => Position::After,
        };
        let (interface, host) = (&mut self.node.interface, &mut self.node.host);
        let base = self.entries.get(bits as usize % self.entries.len().max(1));
        let attached = match base {
            Some(base) if choice & 4 != 0 => {
                interface.entry_post(*base, entry, position, spec, EQ_NONE, host)
            }
            _ => interface.entry_attach_with(portal, entry, position, spec),
        };
        if let Ok((entry, md)) = attached {
            self.entries.push(entry);
            self.mds.push(md);
        }
    }

    fn request(&mut self, mut request: Request, choice: u8) {
        if choice & 1 != 0 {
            // Else hardly one would be for an index that exists.
            request.portal.0 %= 4;
            request.access %= 3;
            request.match_bits &= 7;
        }
        match self.node.on_request(process(1), &request) {
            Landing::Refused(response) => check_response(response, &request),
            Landing::Accepted(pieces, landed) => {
                assert!(landed.mlength() <= request.length);
                check_pieces(&pieces, landed.mlength());
                check_response(landed.response(NiFail::Ok), &request);
                self.landing.push(landed);
            }
        }
        if choice & 6 != 0 && !self.landing.is_empty() {
            let any = usize::from(choice) % self.landing.len();
            let fail = if choice & 8 != 0 {
                NiFail::Segv
            } else {
                NiFail::Ok
            };
            let landed = self.landing.swap_remove(any);
            self.node.on_landed(landed, fail);
        }
    }

    fn response(&mut self, mut response: Response, choice: u8) {
        if let (true, false) = (choice & 3 != 0, self.tokens.is_empty()) {
            response.token = self.tokens[usize::from(choice) % self.tokens.len()];
        }
        if let Some((pieces, pending)) = self.node.on_response(&response) {
            check_pieces(&pieces, pieces.length());
            self.replies.push(pending);
        }
        if choice & 4 != 0 {
            if let Some(pending) = self.replies.pop() {
                self.node.on_filled(pending, NiFail::Ok);
            }
        }
    }

    /// What the owner does meanwhile.
    fn command(&mut self, choice: u8, bits: u64) {
        let any = |handles: &[Handle]| handles.get(bits as usize % handles.len().max(1)).copied();
        let md = any(&self.mds).unwrap_or(Handle::INVALID);
        match choice >> 4 {
            0 | 8 => self.attach(bits as u8, bits >> 8),
            1..=3 => self.start(md, choice, bits),
            4 => {
                for event in self.node.events() {
                    assert!(event.mlength <= event.rlength, "{event:?}");
                }
            }
            5 => {
                let spec = self.spec(bits as u8);
                let test = if choice & 1 != 0 {
                    self.node.queue
                } else {
                    EQ_NONE
                };
                let _ = self.node.update(md, spec, test);
            }
            6 => {
                let host = &mut self.node.host;
                self.node.interface.on_target_lost(process(1), host);
            }
            7 => {
                let entry = any(&self.entries).unwrap_or(Handle::INVALID);
                let _ = self.node.interface.entry_unlink(entry);
            }
            9 => drop(self.node.unlink(md)),
            10 => {
                let entry = AccessEntry {
                    jid: if choice & 1 != 0 { JID } else { u32::MAX },
                    ..AccessEntry::OPEN
                };
                let _ = self.node.interface.access_entry(bits as u32 % 4, entry);
            }
            _ => {}
        }
    }

    fn start(&mut self, md: Handle, choice: u8, bits: u64) {
        let mut transfer = match choice & 3 {
            0 => getput(md, md, process(1)),
            1 => acked_put(md, process(1)),
            2 => put(md, process(1)),
            _ => get(md, process(1)),
        };
        transfer.length = (choice & 4 != 0).then_some(bits >> 8 & 0xfff);
        transfer.sink_offset = bits & 0x7f;
        let _ = self.node.start(&transfer);
        let sent = self.node.host.sent.drain(..);
        self.tokens.extend(sent.map(|sent| sent.request.token));
    }

    /// Whatever has happened, everything can come to its end and be freed.
    fn end(mut self) {
        for landed in std::mem::take(&mut self.landing) {
            self.node.on_landed(landed, NiFail::Ok);
        }
        let host = &mut self.node.host;
        self.node.interface.on_target_lost(process(1), host);
        assert_eq!(self.node.interface.operations_under_way(), 0);
        assert_eq!(self.node.interface.loans(), 0);
        for pending in std::mem::take(&mut self.replies) {
            self.node.on_filled(pending, NiFail::Ok);
        }
        for md in &self.mds {
            assert_ne!(self.node.unlink(*md), Err(Error::MdInUse));
        }
        for entry in &self.entries {
            let unlinked = self.node.interface.entry_unlink(*entry);
            assert_ne!(unlinked, Err(Error::MeInUse));
        }
        for gauge in [lintel_engine3::register::MES, lintel_engine3::register::MDS] {
            assert_eq!(self.node.interface.status(gauge + 3), Ok(0));
        }
    }
}

fn check_pieces(pieces: &Pieces<Ghost>, length: u64) {
    assert_eq!(pieces.length(), length);
    for piece in pieces.as_slice().iter().filter(|piece| piece.length() > 0) {
        let end = piece.address() + piece.length();
        assert!(MEMORY.contains(&piece.address()) && end <= MEMORY.end);
    }
}

fn check_response(response: Option<Response>, request: &Request) {
    assert_eq!(response.is_some(), request.token != 0);
    let Some(response) = response else { return };
    assert_eq!(response.token, request.token);
    assert_eq!(response.reply, request.verb != Verb::Put);
    assert!(response.mlength <= request.length);
    let parsed = Message::parse(&response.to_words());
    assert_eq!(parsed, Ok(Message::Response(response)));
}
