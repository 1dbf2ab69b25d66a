//! Two processes, each as engine and as model, and what is on its way between
//! them; a step does one random thing to both and compares.

use crate::model::{Arrival, Model, Place};
use crate::rig::{ANYONE, BASE, JID, Node, Random, Sent, UID, process};
use lintel_engine3::{
    AccessEntry, Delivered, DescriptorSpec, Dialect, EntrySpec, Landed, Landing, PendingReply,
    Transfer,
};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::portals3::{
    EQ_NONE, Error, Event, Limits, MdOptions, MemoryDescriptor, NID_ANY, PID_ANY, Position, Unlink,
};
use lintel_types::{Handle, NiFail, ProcessId, QueueIndex};
use lintel_wire::portals3::{Request, Response, Verb};
use std::fmt::Debug;

const NODES: usize = 2;
/// Nothing can be sent there.
const UNREACHABLE: usize = 2;
/// What is sent there is never answered.
const SILENT: usize = 3;

/// One process, twice, and every handle that it was ever given.
struct Both {
    node: Node,
    model: Model,
    queues: Vec<Handle>,
    mds: Vec<Handle>,
    entries: Vec<Handle>,
}

/// What a sequence has met: event kinds with their failures, and results.
pub type Met = std::collections::BTreeSet<String>;

pub struct World {
    pub met: Met,
    seed: u64,
    verbose: bool,
    random: Random,
    both: Vec<Both>,
    on_the_way: Vec<(usize, Sent)>,
    landing: Vec<(usize, usize, Landed, Arrival)>,
    responses: Vec<(usize, Response)>,
    replies: Vec<(usize, PendingReply, Response)>,
}

/// Pieces with bytes in them.
fn full(pieces: &[Ghost]) -> Vec<Ghost> {
    let full = pieces.iter().filter(|piece| piece.length() > 0);
    full.copied().collect()
}

fn name(made: Result<Handle, Error>) -> Handle {
    made.unwrap_or(Handle::INVALID)
}

fn names(made: Result<(Handle, Handle), Error>) -> (Handle, Handle) {
    made.unwrap_or((Handle::INVALID, Handle::INVALID))
}

impl World {
    pub fn new(seed: u64, dialect: Dialect, verbose: bool) -> Self {
        let mut random = Random(seed);
        let limits = Limits {
            max_mes: random.pick(&[4, 1000]),
            max_mds: random.pick(&[4, 1000]),
            max_eqs: 2,
            max_ac_index: 1,
            max_pt_index: 1,
            max_md_iovecs: 2,
            max_me_list: random.pick(&[3, 1000]),
            max_getput_md: 64,
        };
        let both = (0..NODES).map(|place| {
            let id = process(place);
            let mut node = Node::new(id, dialect, limits);
            node.host.unreachable.insert(process(UNREACHABLE));
            let mut model = Model::new(id, dialect == Dialect::Cray, limits);
            assert_eq!(model.queue_alloc(node.queue), Ok(()));
            Both {
                queues: vec![node.queue],
                mds: Vec::new(),
                entries: Vec::new(),
                node,
                model,
            }
        });
        World {
            met: Met::new(),
            seed,
            verbose,
            both: both.collect(),
            random,
            on_the_way: Vec::new(),
            landing: Vec::new(),
            responses: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Does one random thing, and compares.
    pub fn step(&mut self, step: usize) {
        let place = self.random.below(NODES as u64) as usize;
        let what = self.random.below(32);
        if self.verbose {
            println!("step {step}: process {place}, choice {what}");
        }
        match what {
            0 => self.queues(place),
            1 => self.access(place),
            2 => self.attach(place),
            3..=5 => self.attach_with(place),
            6 if self.random.once_in(3) => self.unlink_entry(place),
            7 | 8 => self.describe(place),
            9 if self.random.once_in(3) => self.unlink_descriptor(place),
            10 | 11 => self.update(place),
            12..=17 => self.start(place),
            18..=21 => self.arrive(),
            22..=24 => self.land(),
            25..=27 => self.respond(),
            28 => self.fill(),
            29 | 30 => self.read(place),
            _ => self.rarely(place),
        }
        self.compare(step);
    }

    /// Carries everything to its end; nothing is pending then.
    pub fn finish(&mut self) {
        for place in 0..NODES {
            self.read(place);
        }
        while !self.on_the_way.is_empty() {
            self.arrive();
        }
        while !self.landing.is_empty() {
            self.land();
        }
        while !self.responses.is_empty() {
            self.respond();
        }
        while !self.replies.is_empty() {
            self.fill();
        }
        for place in 0..NODES {
            for target in 0..=SILENT {
                self.lose(place, target);
            }
            let both = &mut self.both[place];
            assert_eq!(both.node.interface.operations_under_way(), 0);
            assert_eq!(both.node.interface.loans(), 0);
            for md in &both.mds {
                let unlinked = both.node.unlink(*md);
                assert_ne!(unlinked, Err(Error::MdInUse), "seed {}", self.seed);
                assert_eq!(unlinked, both.model.unlink_md(*md));
            }
            for entry in &both.entries {
                let unlinked = both.node.interface.entry_unlink(*entry);
                assert_eq!(unlinked, both.model.unlink_me(*entry));
            }
        }
        self.compare(usize::MAX);
    }

    fn compare(&mut self, step: usize) {
        let (seed, forgets) = (self.seed, self.random.once_in(3));
        for both in &mut self.both {
            let drops = both.node.drops();
            assert_eq!(drops, both.model.drops, "drops, seed {seed} step {step}");
            for queue in &both.model.queues {
                let index = QueueIndex(queue.name.index());
                let none: &[Event] = &[];
                let posted = both.node.host.events.get(&index).map_or(none, |e| e);
                assert_eq!(posted, queue.events, "seed {seed} step {step}");
            }
            for md in both.mds.iter().rev().take(5) {
                let state = both.node.interface.descriptor_state(*md);
                assert_eq!(state, both.model.state(*md), "seed {seed} step {step}");
            }
            if forgets {
                // Handles that are gone are tried, but not most of the time.
                both.mds.retain(|md| both.model.state(*md).is_ok());
                both.entries.retain(|entry| both.model.has_entry(*entry));
                both.queues.retain(|queue| both.model.has_queue(*queue));
            }
        }
    }

    fn agree<T: PartialEq + Debug>(
        &mut self,
        what: &str,
        engine: Result<T, Error>,
        model: Result<T, Error>,
    ) {
        let outcome = match &engine {
            Ok(_) => format!("{what} Ok"),
            Err(error) => format!("{what} {error:?}"),
        };
        if self.verbose {
            println!("  {outcome} {engine:?}");
        }
        assert_eq!(engine, model, "{what}, seed {}", self.seed);
        self.met.insert(outcome);
    }

    /// A handle that was given, often one of the latest, sometimes none.
    fn any(&mut self, given: impl Fn(&Both) -> &Vec<Handle>, place: usize) -> Handle {
        let length = given(&self.both[place]).len() as u64;
        if length == 0 || self.random.once_in(40) {
            return Handle::INVALID;
        }
        let back = match self.random.once_in(4) {
            true => self.random.below(length),
            false => self.random.below(length.min(5)),
        };
        given(&self.both[place])[(length - 1 - back) as usize]
    }

    fn some_queue(&mut self, place: usize) -> Handle {
        match self.random.once_in(6) {
            true => EQ_NONE,
            false => self.any(|both| &both.queues, place),
        }
    }

    fn source(&mut self) -> ProcessId {
        let nid = self
            .random
            .pick(&[NID_ANY, NID_ANY, NID_ANY, NID_ANY, 1, 2]);
        let pid = self
            .random
            .pick(&[PID_ANY, PID_ANY, 100, 100, 100, 100, 101]);
        ProcessId::new(nid, pid)
    }

    fn entry(&mut self) -> EntrySpec {
        EntrySpec {
            source: self.source(),
            match_bits: self.random.below(2),
            ignore_bits: self.random.pick(&[0, 0, 1, u64::MAX, u64::MAX]),
            unlink: self.random.pick(&[Unlink::Retain, Unlink::Unlink]),
        }
    }

    fn descriptor(&mut self, place: usize) -> DescriptorSpec<Ghost> {
        let random = &mut self.random;
        let mut options = MdOptions::from(random.next() as u32 & 0x7fdf);
        options |= random.pick(&[
            MdOptions::OP_PUT | MdOptions::OP_GET,
            MdOptions::OP_PUT | MdOptions::OP_GET,
            MdOptions::OP_PUT,
            MdOptions::empty(),
        ]);
        if random.once_in(2) {
            options -= MdOptions::EVENT_START_DISABLE | MdOptions::EVENT_END_DISABLE;
        }
        if random.once_in(60) {
            options |= MdOptions::from(1 << 20);
        }
        let mut md = MemoryDescriptor {
            start: if random.once_in(60) { 0 } else { BASE },
            length: random.pick(&[0, 8, 40, 64, 100, 1000, 1000]),
            threshold: random.pick(&[-1, -1, -1, 0, 1, 2, 3, 4]),
            max_size: random.pick(&[0, 10, 50]),
            options,
            user_ptr: random.below(9),
            queue: EQ_NONE,
        };
        if random.once_in(2) {
            // Most messages would find no descriptor for them.
            md.options |= MdOptions::OP_PUT | MdOptions::OP_GET | MdOptions::TRUNCATE;
            md.options -= MdOptions::MAX_SIZE;
            md.threshold = random.pick(&[-1, 2, 5]);
        }
        if random.once_in(60) {
            md.threshold = -2;
        }
        let mut buffer = Buffer::Contiguous(Ghost::new(md.start, md.length));
        if random.once_in(6) {
            let pieces = random.below(4);
            md.options |= MdOptions::IOVEC;
            let piece = |piece| Ghost::new(BASE + piece * 0x1000, 10 + piece);
            buffer = Buffer::vector((0..pieces).map(piece).collect());
            md.length = pieces;
        }
        let unlink = random.pick(&[Unlink::Retain, Unlink::Unlink]);
        md.queue = self.some_queue(place);
        DescriptorSpec { md, buffer, unlink }
    }

    fn queues(&mut self, place: usize) {
        if self.random.once_in(6) {
            let queue = self.any(|both| &both.queues, place);
            let both = &mut self.both[place];
            let freed = both.node.interface.queue_free(queue);
            if freed.is_ok() {
                both.node.host.events.remove(&QueueIndex(queue.index()));
            }
            let expected = both.model.queue_free(queue);
            return self.agree("queue_free", freed, expected);
        }
        let both = &mut self.both[place];
        let made = both.node.interface.queue_alloc();
        let expected = both.model.queue_alloc(name(made));
        both.queues.extend(made);
        self.agree("queue_alloc", made.map(drop), expected);
    }

    fn access(&mut self, place: usize) {
        let random = &mut self.random;
        let index = random.pick(&[0, 1, 1, 1, 1, 1, 2]);
        let mut entry = AccessEntry {
            process: ANYONE,
            uid: random.pick(&[u32::MAX, u32::MAX, UID, UID + 1]),
            jid: random.pick(&[u32::MAX, u32::MAX, JID, JID + 1]),
            portal: random.pick(&[u32::MAX, u32::MAX, 0, 1, 2]),
        };
        if self.random.once_in(2) {
            entry.process = self.source();
        }
        let both = &mut self.both[place];
        let set = both.node.interface.access_entry(index, entry);
        let expected = both.model.access_entry(index, entry);
        self.agree("access_entry", set, expected);
    }

    fn place(&mut self, node: usize) -> Place {
        let position = self.random.pick(&[Position::Before, Position::After]);
        match self.random.once_in(2) {
            true => Place::Portal(self.random.pick(&[0, 0, 0, 0, 1, 1, 1, 2]), position),
            false => Place::Beside(self.any(|both| &both.entries, node), position),
        }
    }

    fn attach(&mut self, place: usize) {
        let spec = self.entry();
        if self.random.once_in(12) {
            let both = &mut self.both[place];
            let made = both.node.interface.entry_attach_any(spec);
            let given = made.map_or(Handle::INVALID, |(_, handle)| handle);
            let expected = both.model.attach_any(given, spec);
            both.entries.extend(made.map(|(_, handle)| handle));
            return self.agree("attach_any", made.map(|(portal, _)| portal), expected);
        }
        let at = self.place(place);
        let both = &mut self.both[place];
        let interface = &mut both.node.interface;
        let made = match at {
            Place::Portal(portal, position) => interface.entry_attach(portal, spec, position),
            Place::Beside(base, position) => interface.entry_insert(base, spec, position),
        };
        let expected = both.model.attach(name(made), at, spec);
        both.entries.extend(made);
        self.agree("attach", made.map(drop), expected);
    }

    /// PtlMEMDAttach, PtlMEMDInsert, PtlMEMDPost.
    fn attach_with(&mut self, place: usize) {
        let (entry, md, at) = (self.entry(), self.descriptor(place), self.place(place));
        let posts = self.random.once_in(2);
        let test = self.some_queue(place);
        let both = &mut self.both[place];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let given = md.clone();
        let (what, made) = match at {
            Place::Portal(portal, position) => {
                let made = interface.entry_attach_with(portal, entry, position, given);
                ("attach_with", made)
            }
            Place::Beside(base, position) if posts => {
                let made = interface.entry_post(base, entry, position, given, test, host);
                ("post", made)
            }
            Place::Beside(base, position) => {
                let made = interface.entry_insert_with(base, entry, position, given);
                ("insert_with", made)
            }
        };
        let expected = match what {
            "post" => both.model.post(names(made), at, entry, &md, test),
            _ => both.model.attach_with(names(made), at, entry, &md),
        };
        if let Ok((entry, md)) = made {
            both.entries.push(entry);
            both.mds.push(md);
        }
        self.agree(what, made.map(drop), expected);
    }

    fn unlink_entry(&mut self, place: usize) {
        let entry = self.any(|both| &both.entries, place);
        let both = &mut self.both[place];
        let unlinked = both.node.interface.entry_unlink(entry);
        let expected = both.model.unlink_me(entry);
        self.agree("unlink_entry", unlinked, expected);
    }

    /// PtlMDAttach, PtlMDBind.
    fn describe(&mut self, place: usize) {
        let spec = self.descriptor(place);
        let binds = self.random.once_in(2);
        let entry = self.any(|both| &both.entries, place);
        let both = &mut self.both[place];
        let interface = &mut both.node.interface;
        let (what, made, expected) = match binds {
            true => {
                let made = interface.descriptor_bind(spec.clone());
                ("bind", made, both.model.bind(name(made), &spec))
            }
            false => {
                let made = interface.descriptor_attach(entry, spec.clone());
                let expected = both.model.attach_md(name(made), entry, &spec);
                ("attach_md", made, expected)
            }
        };
        both.mds.extend(made);
        self.agree(what, made.map(drop), expected);
    }

    fn unlink_descriptor(&mut self, place: usize) {
        let md = self.any(|both| &both.mds, place);
        let both = &mut self.both[place];
        let unlinked = both.node.unlink(md);
        let expected = both.model.unlink_md(md);
        self.agree("unlink_md", unlinked, expected);
    }

    fn update(&mut self, place: usize) {
        let (md, spec) = (self.any(|both| &both.mds, place), self.descriptor(place));
        let test = self.some_queue(place);
        let both = &mut self.both[place];
        let updated = both.node.update(md, spec.clone(), test);
        let expected = both.model.update(md, &spec, test);
        self.agree("update", updated, expected);
    }

    fn start(&mut self, place: usize) {
        let transfer = self.transfer(place);
        let both = &mut self.both[place];
        let started = both.node.start(&transfer);
        let sent = both.node.host.sent.pop_front();
        let token = sent.as_ref().map_or(0, |sent| sent.request.token);
        let expected = both.model.start(&transfer, token, sent.is_some());
        if let (Some(sent), Ok((request, pieces))) = (sent, &expected) {
            assert_eq!(sent.request, *request, "seed {}", self.seed);
            assert_eq!(full(&sent.pieces), full(pieces), "seed {}", self.seed);
            let awaited = request.verb != Verb::Put || request.ack || request.referenced;
            assert_eq!(token != 0, awaited, "seed {}", self.seed);
            if sent.to != process(SILENT) {
                self.on_the_way.push((place, sent));
            }
        }
        let what = format!("{:?}", transfer.verb);
        self.agree(&what, started, expected.map(drop));
    }

    fn transfer(&mut self, place: usize) -> Transfer {
        let source = self.any(|both| &both.mds, place);
        let sink = self.any(|both| &both.mds, place);
        let region = self.random.once_in(3);
        let random = &mut self.random;
        let target = match random.below(20) {
            0 => process(UNREACHABLE),
            1 => process(SILENT),
            2 if random.once_in(3) => ANYONE,
            _ => process(random.below(NODES as u64) as usize),
        };
        Transfer {
            verb: random.pick(&[Verb::Put, Verb::Put, Verb::Get, Verb::GetPut]),
            source,
            source_offset: if region { random.pick(&[0, 3, 50]) } else { 0 },
            sink,
            sink_offset: if region { random.pick(&[0, 5, 60]) } else { 0 },
            length: region.then(|| random.pick(&[0, 1, 5, 5, 300])),
            ack: random.once_in(2),
            target,
            portal: random.pick(&[0, 0, 0, 0, 1, 1, 1, 2]),
            access: random.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 2]),
            match_bits: random.below(2),
            remote_offset: random.pick(&[0, 0, 4, 90, u64::MAX]),
            hdr_data: random.below(9),
        }
    }

    /// The first message between two processes arrives.
    fn arrive(&mut self) {
        if self.on_the_way.is_empty() {
            return;
        }
        let any = self.random.below(self.on_the_way.len() as u64) as usize;
        let (from, to) = (self.on_the_way[any].0, self.on_the_way[any].1.to);
        let first = self.on_the_way.iter();
        let first = first
            .into_iter()
            .position(|(f, sent)| (*f, sent.to) == (from, to));
        let (from, sent) = self.on_the_way.remove(first.unwrap_or(any));
        let place = to.nid as usize - 1;
        if sent.request.verb == Verb::Put && self.random.once_in(2) {
            let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
            if self.deliver(from, place, &sent.request, fail) {
                return;
            }
        }
        let both = &mut self.both[place];
        let landing = both.node.on_request(process(from), &sent.request);
        let expected = both.model.arrive(process(from), &sent.request);
        match (landing, expected) {
            (Landing::Refused(response), None) => {
                assert_eq!(response.is_some(), sent.request.token != 0);
                self.responses
                    .extend(response.map(|response| (from, response)));
                self.met.insert(format!("{:?} dropped", sent.request.verb));
            }
            (Landing::Accepted(pieces, landed), Some(arrival)) => {
                assert_eq!(full(pieces.as_slice()), full(&arrival.pieces));
                self.landing.push((from, place, landed, arrival));
            }
            (landing, expected) => panic!("{landing:?}, {expected:?}, seed {}", self.seed),
        }
    }

    /// A put lands in one step; false if it takes more.
    fn deliver(&mut self, from: usize, place: usize, put: &Request, fail: NiFail) -> bool {
        let both = &mut self.both[place];
        let delivered = both.node.deliver(process(from), put, fail);
        let Some((Delivered { response }, target)) = delivered else {
            return false;
        };
        let arrival = both.model.arrive(process(from), put);
        let arrival = arrival.expect("what was delivered is accepted");
        assert_eq!(full(&[target]), full(&arrival.pieces), "seed {}", self.seed);
        both.model.landed(arrival.id, fail);
        self.met.insert(format!("delivered {fail:?}"));
        let Some(response) = response else {
            return true;
        };
        let moved = if fail == NiFail::Ok {
            arrival.mlength
        } else {
            0
        };
        assert_eq!((response.mlength, response.fail), (moved, fail));
        assert_eq!(response.offset, arrival.offset);
        assert_eq!(response.silent, arrival.silent);
        self.responses.push((from, response));
        true
    }

    /// Something that has begun to land has landed.
    fn land(&mut self) {
        if self.landing.is_empty() {
            return;
        }
        let any = self.random.below(self.landing.len() as u64) as usize;
        let (from, place, landed, arrival) = self.landing.remove(any);
        let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        if let Some(mut response) = landed.response(fail) {
            let expected = if fail == NiFail::Ok {
                arrival.mlength
            } else {
                0
            };
            assert_eq!((response.mlength, response.fail), (expected, fail));
            assert_eq!(response.offset, arrival.offset);
            assert_eq!(response.silent, arrival.silent);
            response.placed = response.reply && landed.request().referenced;
            self.responses.push((from, response));
        }
        let both = &mut self.both[place];
        both.node.on_landed(landed, fail);
        both.model.landed(arrival.id, fail);
    }

    fn respond(&mut self) {
        if self.responses.is_empty() {
            return;
        }
        let any = self.random.below(self.responses.len() as u64) as usize;
        let (place, response) = self.responses[any];
        // A peer may answer twice.
        if !self.random.once_in(20) {
            self.responses.remove(any);
        }
        let in_one_step = self.random.once_in(2);
        let both = &mut self.both[place];
        if in_one_step && both.node.deliver_acknowledgement(&response) {
            assert!(both.model.respond(&response).is_none());
            self.met.insert("acknowledged in one step".into());
            return;
        }
        let moved = both.node.on_response(&response);
        let expected = both.model.respond(&response);
        match (moved, expected) {
            (None, None) => {}
            (Some((pieces, pending)), Some(expected)) => {
                assert_eq!(full(pieces.as_slice()), full(&expected));
                self.replies.push((place, pending, response));
            }
            (moved, expected) => panic!("{moved:?}, {expected:?}, seed {}", self.seed),
        }
    }

    fn fill(&mut self) {
        if self.replies.is_empty() {
            return;
        }
        let any = self.random.below(self.replies.len() as u64) as usize;
        let (place, pending, response) = self.replies.remove(any);
        let fail = self.random.pick(&[NiFail::Ok, NiFail::Ok, NiFail::Segv]);
        let both = &mut self.both[place];
        both.node.on_filled(pending, fail);
        both.model.filled(response.token, fail);
    }

    /// Takes the events of a queue.
    fn read(&mut self, place: usize) {
        let any = self.random.below(2) as usize;
        let both = &mut self.both[place];
        let length = both.model.queues.len();
        if length == 0 {
            return;
        }
        let queue = &mut both.model.queues[any % length];
        let index = QueueIndex(queue.name.index());
        for event in queue.events.drain(..) {
            let outcome = ["Ok", "Fail"][event.ni_fail as usize];
            self.met.insert(format!("{:?} {outcome}", event.kind));
        }
        both.node.host.events.remove(&index);
    }

    fn rarely(&mut self, place: usize) {
        if self.random.once_in(4) {
            let target = self.random.pick(&[0, 1, SILENT, SILENT]);
            self.lose(place, target);
        }
    }

    fn lose(&mut self, place: usize, target: usize) {
        let both = &mut self.both[place];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let target = process(target);
        if self.random.once_in(3) {
            interface.on_target_absent(target, host);
            both.model.lose(target, NiFail::Dropped);
            self.met.insert("lose Dropped".into());
        } else {
            interface.on_target_lost(target, host);
            both.model.lose(target, NiFail::Undeliverable);
            self.met.insert("lose Undeliverable".into());
        }
    }
}
