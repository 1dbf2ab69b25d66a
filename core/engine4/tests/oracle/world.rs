//! Two processes, each as engine and as model, and what is on its way between
//! them; a step does one random thing to both and compares.

use crate::model::{Arrival, Later, Model, Spec};
use crate::rig::{KeptLandings, KeptSends, Node, Random, Sent, UID, process};
use lintel_engine4::{
    Deferred, DescriptorSpec, EntrySpec, Landed, PendingReply, SearchOp, Transfer,
};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::{
    AckRequest, CounterIndex, CountingEvent, Datatype, Error, Handle, Limits, List, MdOptions,
    MeOptions, NiOptions, Operation, PT_ANY, PortalIndex, ProcessId, PtOptions, QueueIndex,
    UID_ANY,
};
use lintel_wire::{OPERAND_BYTES, Response, Verb};
use std::fmt::Debug;

mod arriving;

const EAGER: u64 = 64;
const NODES: usize = 2;
/// Nothing can be sent there.
const UNREACHABLE: usize = 2;
/// What is sent there is never answered.
const SILENT: usize = 3;

/// One process, twice.
struct Both {
    node: Node,
    kept: KeptSends,
    landings: KeptLandings,
    model: Model,
    queues: Vec<Handle>,
    counters: Vec<Handle>,
    mds: Vec<Handle>,
    entries: Vec<Handle>,
}

/// What a sequence has met: event kinds with their failures, and refusals.
pub type Met = std::collections::BTreeSet<String>;

pub struct World {
    pub met: Met,
    seed: u64,
    verbose: bool,
    /// Most entries are used again and again, by puts that want no acknowledgement.
    plain: bool,
    /// Besides, most of them match the same puts and differ by what they truncate.
    crowded: bool,
    logical: bool,
    random: Random,
    both: Vec<Both>,
    on_the_way: Vec<(usize, Sent)>,
    landing: Vec<(usize, usize, Landed, Arrival)>,
    responses: Vec<(usize, Response)>,
    replies: Vec<(usize, PendingReply, Response)>,
}

/// Pieces with bytes in them.
fn full(pieces: &[Ghost]) -> Vec<Ghost> {
    pieces
        .iter()
        .copied()
        .filter(|piece| piece.length() > 0)
        .collect()
}

/// The handle, or one that names nothing.
fn name(made: Result<Handle, Error>) -> Handle {
    made.unwrap_or(Handle::INVALID)
}

impl World {
    pub fn new(seed: u64, options: NiOptions, verbose: bool) -> Self {
        let mut random = Random(seed);
        let logical = options.contains(NiOptions::LOGICAL);
        let limits = Limits {
            max_entries: random.pick(&[6, 1000]),
            max_unexpected_headers: random.pick(&[1, 4, 1000]),
            max_mds: 6,
            max_cts: 5,
            max_eqs: 2,
            max_pt_index: 2,
            max_list_size: random.pick(&[3, 1000]),
            max_triggered_ops: random.pick(&[3, 1000]),
            max_atomic_size: 64,
            max_fetch_atomic_size: 32,
            ..Limits::DEFAULT
        };
        let most = random.pick(&[4, 10, usize::MAX]);
        let map: Vec<ProcessId> = (0..4).map(process).collect();
        let both = (0..NODES).map(|index| Both::new(index, options, limits, most, &map));
        let mut world = World {
            met: Met::new(),
            seed,
            verbose,
            plain: seed % 3 == 0,
            crowded: seed % 6 == 0,
            logical,
            both: both.collect(),
            random,
            on_the_way: Vec::new(),
            landing: Vec::new(),
            responses: Vec::new(),
            replies: Vec::new(),
        };
        if world.crowded {
            (0..NODES).for_each(|at| world.allocate(at, PtOptions::empty(), 0));
        }
        world
    }

    /// Both got the same command.
    fn agree<T: PartialEq + Debug>(
        &mut self,
        engine: Result<T, Error>,
        model: Result<T, Error>,
        what: &str,
    ) {
        let code = engine
            .as_ref()
            .err()
            .map_or("Ok".into(), |error| format!("{error:?}"));
        self.met.insert(format!("{what} {code}"));
        self.same(engine, model, what);
    }

    fn same<T: PartialEq + Debug>(&self, engine: T, model: T, what: &str) {
        assert_eq!(
            engine, model,
            "{what} (engine, model) differ; LINTEL_SEED={}",
            self.seed
        );
    }

    /// One random thing, and whatever came of it compared.
    pub fn step(&mut self, step: usize) {
        let at = self.random.below(NODES as u64) as usize;
        let choice = self.random.below(40);
        if self.verbose {
            println!("step {step}: node {at}, choice {choice}");
        }
        match choice {
            0..8 => self.arrive(),
            8..14 => self.land(),
            14..17 => self.respond(),
            17 | 18 => self.fill(),
            19..24 => self.start(at),
            24..28 if self.plain && self.random.once_in(2) => self.start(at),
            24..28 => self.append(at),
            28 => self.search(at),
            29 => self.unlink(at),
            30 | 31 if self.crowded && self.random.once_in(2) => self.bind(at),
            30 | 31 => self.portal(at),
            32 => self.bind(at),
            33 => self.release(at),
            34 | 35 => self.count(at),
            36 | 37 => self.trigger(at),
            38 => self.drain(at),
            _ => self.rarely(at),
        }
        for at in 0..NODES {
            self.compare(at);
        }
    }

    /// Everything lands, and every entry ever given out is unlinked.
    pub fn finish(&mut self) {
        while !self.landing.is_empty() {
            self.land();
        }
        for at in 0..NODES {
            for entry in self.both[at].entries.clone() {
                let both = &mut self.both[at];
                let (engine, model) = (both.node.interface.unlink(entry), both.model.unlink(entry));
                self.agree(engine, model, "unlink");
            }
            self.compare(at);
        }
    }

    fn compare(&mut self, at: usize) {
        loop {
            let both = &mut self.both[at];
            let engine = both.node.host.sent.pop_front();
            let model = (!both.model.sent.is_empty()).then(|| both.model.sent.remove(0));
            let (Some(mut sent), Some((wanted, serial))) = (engine.clone(), model.clone()) else {
                self.same(engine, model.map(|(sent, _)| sent), "requests sent");
                break;
            };
            let token = sent.request.token;
            if let Some(serial) = serial {
                both.model.named(serial, token);
            }
            self.on_the_way.push((at, sent.clone()));
            (sent.request.token, sent.pieces) = ((token != 0) as u32, full(&sent.pieces));
            self.same(sent, wanted, "a request sent");
        }
        let both = &self.both[at];
        for (queue, _, events) in &both.model.queues {
            let posted = both
                .node
                .host
                .events
                .get(&QueueIndex(queue.index()))
                .cloned()
                .unwrap_or_default();
            self.same(&posted, events, "events");
        }
        for counter in &both.counters {
            let engine = both.node.interface.counter_value(*counter);
            self.same(engine, both.model.value(*counter), "a counter");
            if let Ok(value) = engine {
                self.same(
                    both.node.host.counters[&CounterIndex(counter.index())],
                    value,
                    "a shown counter",
                );
            }
        }
        self.same(
            both.node.interface.registers(),
            both.model.registers,
            "registers",
        );
        let under_way = both.node.interface.operations_under_way();
        self.same(under_way, both.model.under_way(), "operations under way");
    }

    fn pick(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    // What is commanded

    fn start(&mut self, at: usize) {
        let transfer = self.transfer(at);
        let repeats = self.random.once_in(2);
        let both = &mut self.both[at];
        let engine = match repeats && both.node.repeat(&mut both.kept, &transfer) {
            true => Ok(()),
            false => both.node.start(&transfer),
        };
        let model = both.model.start(&transfer);
        self.agree(engine, model, "start");
    }

    fn append(&mut self, at: usize) {
        let (spec, list) = (self.spec(at), self.list());
        let in_front = self.crowded && self.random.once_in(2);
        let list = if in_front { List::Priority } else { list };
        let deferred = self.random.once_in(8);
        let (on, threshold) = (self.counter(at), self.random.below(6));
        let both = &mut self.both[at];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let (engine, model) = if deferred {
            let engine = interface.trigger_append(spec.clone(), list, on, threshold, host);
            (
                engine,
                both.model
                    .trigger_append(name(engine), spec, list, on, threshold),
            )
        } else {
            let engine = interface.append(&spec, list, host);
            (engine, both.model.append(name(engine), spec, list))
        };
        both.entries.extend(engine);
        self.agree(engine.map(drop), model, "append");
    }

    fn search(&mut self, at: usize) {
        let spec = self.spec(at);
        let op = if self.random.once_in(2) {
            SearchOp::Only
        } else {
            SearchOp::Delete
        };
        let both = &mut self.both[at];
        let engine = both
            .node
            .interface
            .search(spec.clone(), op, &mut both.node.host);
        let model = both.model.search(spec, op);
        self.agree(engine, model, "search");
    }

    fn unlink(&mut self, at: usize) {
        let entry = self.entry(at);
        let both = &mut self.both[at];
        let (engine, model) = (both.node.interface.unlink(entry), both.model.unlink(entry));
        self.agree(engine, model, "unlink");
    }

    fn portal(&mut self, at: usize) {
        let index = self.random.below(4) as u32;
        let choice = self.random.below(8);
        let options = self.random.pick(&[
            PtOptions::empty(),
            PtOptions::FLOWCTRL,
            PtOptions::ALLOC_DISABLED,
        ]);
        let wanted = if self.random.once_in(2) {
            index
        } else {
            PT_ANY
        };
        if choice < 2 {
            return self.allocate(at, options, wanted);
        }
        let both = &mut self.both[at];
        let (interface, model) = (&mut both.node.interface, &mut both.model);
        match choice {
            2 => {
                let index = PortalIndex(index as u16);
                let (engine, model) = (interface.portal_free(index), model.portal_free(index));
                self.agree(engine, model, "portal_free");
            }
            3 => {
                let index = PortalIndex(index as u16);
                let engine = interface.portal_disable(index);
                let model = model.portal_disable(index);
                self.agree(engine, model, "portal_disable");
            }
            _ => {
                let index = PortalIndex(index as u16);
                let engine = interface.portal_enable(index);
                let model = model.portal_enable(index);
                self.agree(engine, model, "portal_enable");
            }
        }
    }

    fn allocate(&mut self, at: usize, options: PtOptions, wanted: u32) {
        let queue = self.queue(at);
        let both = &mut self.both[at];
        let engine = both.node.interface.portal_alloc(options, queue, wanted);
        let model = both.model.portal_alloc(options, queue, wanted);
        self.agree(engine, model, "portal_alloc");
    }

    fn bind(&mut self, at: usize) {
        let mut options = MdOptions::empty();
        for option in [
            MdOptions::EVENT_CT_SEND,
            MdOptions::EVENT_CT_REPLY,
            MdOptions::EVENT_CT_ACK,
            MdOptions::EVENT_CT_BYTES,
        ] {
            options.set(option, self.random.once_in(2));
        }
        for option in [
            MdOptions::EVENT_SUCCESS_DISABLE,
            MdOptions::EVENT_SEND_DISABLE,
            MdOptions::UNRELIABLE,
        ] {
            options.set(option, self.random.once_in(5));
        }
        let (queue, counter) = (self.queue(at), self.counter_or_none(at));
        let spec = DescriptorSpec {
            buffer: self.buffer(),
            options,
            queue,
            counter,
        };
        let both = &mut self.both[at];
        let engine = both.node.interface.descriptor_bind(spec.clone());
        let model = both.model.bind(name(engine), spec);
        both.mds.extend(engine);
        self.agree(engine.map(drop), model, "bind");
    }

    fn release(&mut self, at: usize) {
        let md = self.md(at);
        let both = &mut self.both[at];
        let engine = both.node.interface.descriptor_release(md);
        let model = both.model.release(md);
        self.agree(engine, model, "release");
    }

    fn count(&mut self, at: usize) {
        let counter = self.counter(at);
        let value = CountingEvent {
            success: self.random.below(4),
            failure: self.random.below(2),
        };
        let choice = self.random.below(8);
        let both = &mut self.both[at];
        let (interface, host) = (&mut both.node.interface, &mut both.node.host);
        let (engine, model) = match choice {
            0 | 1 => {
                let engine = interface.counter_alloc(host);
                let model = both.model.counter_alloc(name(engine));
                both.counters.extend(engine);
                (engine.map(drop), model)
            }
            // Who frees a counter sees to it that nothing counts with it any more.
            2 if !both.model.counter_is_used(counter) => (
                interface.counter_free(counter),
                both.model.counter_free(counter),
            ),
            3 => (
                interface.counter_set(counter, value, host),
                both.model.counter_set(counter, value),
            ),
            _ => (
                interface.counter_inc(counter, value, host),
                both.model.counter_inc(counter, value),
            ),
        };
        self.agree(engine, model, "count");
    }

    fn trigger(&mut self, at: usize) {
        let (on, threshold) = (self.counter(at), self.random.below(8));
        let value = CountingEvent {
            success: self.random.below(3),
            failure: 0,
        };
        let counter = self.counter(at);
        let (operation, later) = match self.random.below(5) {
            0 | 1 => {
                let transfer = self.transfer(at);
                (
                    Deferred::Transfer(Box::new(transfer.clone())),
                    Later::Transfer(transfer),
                )
            }
            2 => (
                Deferred::Increment(counter, value),
                Later::Increment(counter, value),
            ),
            3 => (Deferred::Set(counter, value), Later::Set(counter, value)),
            _ => {
                let entry = self.entry(at);
                (Deferred::Unlink(entry), Later::Unlink(entry))
            }
        };
        let both = &mut self.both[at];
        let engine = both
            .node
            .interface
            .trigger(operation, on, threshold, &mut both.node.host);
        let model = both.model.trigger(later, on, threshold);
        self.agree(engine, model, "trigger");
    }

    /// The owner reads its events.
    fn drain(&mut self, at: usize) {
        for event in self.both[at].node.host.events.values().flatten() {
            self.met
                .insert(format!("{:?} {:?}", event.kind, event.ni_fail));
        }
        self.both[at].node.host.events.clear();
        for (.., events) in &mut self.both[at].model.queues {
            events.clear();
        }
    }

    fn rarely(&mut self, at: usize) {
        let counter = self.counter(at);
        let target = process(self.random.pick(&[0, 1, SILENT, SILENT]));
        let lost = self.random.once_in(3);
        let both = &mut self.both[at];
        if lost {
            both.node
                .interface
                .on_target_lost(target, &mut both.node.host);
            both.model.on_target_lost(target);
            return;
        }
        let engine = both.node.interface.cancel_triggered(counter);
        let model = both.model.cancel(counter);
        self.agree(engine, model, "cancel");
    }

    // What commands are given

    /// One of the handles ever given out; a stale one now and then.
    fn one_of(&mut self, handles: &[Handle]) -> Handle {
        if handles.is_empty() || self.random.once_in(20) {
            return self
                .random
                .pick(&[Handle::INVALID, Handle::CT_NONE, Handle(0)]);
        }
        let recent = handles.len().min(6);
        let handles = if self.random.once_in(10) {
            handles
        } else {
            &handles[handles.len() - recent..]
        };
        self.random.pick(handles)
    }

    fn counter(&mut self, at: usize) -> Handle {
        let counters = self.both[at].counters.clone();
        self.one_of(&counters)
    }

    fn counter_or_none(&mut self, at: usize) -> Handle {
        if self.random.once_in(3) {
            Handle::CT_NONE
        } else {
            self.counter(at)
        }
    }

    fn md(&mut self, at: usize) -> Handle {
        let mds = self.both[at].mds.clone();
        self.one_of(&mds)
    }

    fn entry(&mut self, at: usize) -> Handle {
        let entries = self.both[at].entries.clone();
        self.one_of(&entries)
    }

    fn queue(&mut self, at: usize) -> Handle {
        let queues = &self.both[at].queues;
        self.random
            .pick(&[queues[0], queues[0], queues[1], Handle::EQ_NONE])
    }

    fn list(&mut self) -> List {
        if self.random.once_in(2) {
            List::Priority
        } else {
            List::Overflow
        }
    }

    fn buffer(&mut self) -> Buffer<Ghost> {
        let length = self.random.pick(&[0, 8, 20, 64, 200, 200]);
        match self.random.below(3) {
            0 => Buffer::vector(vec![
                Ghost::new(0x1000, length / 3),
                Ghost::new(0x2000, 0),
                Ghost::new(0x3000, length),
            ]),
            _ => Buffer::Contiguous(Ghost::new(0x1000, length)),
        }
    }

    fn spec(&mut self, at: usize) -> Spec {
        let mut spec = self.any_spec(at);
        if self.plain && !self.random.once_in(4) {
            let varying = MeOptions::USE_ONCE | MeOptions::MANAGE_LOCAL;
            spec.options.remove(varying);
            let length = self.random.pick(&[30, 200, 200]);
            spec.buffer = Buffer::Contiguous(Ghost::new(0x1000, length));
            if self.crowded {
                spec = EntrySpec {
                    portal: PortalIndex(0),
                    uid: UID_ANY,
                    match_bits: 0,
                    source: self.anybody(),
                    ..spec
                };
                spec.options |= MeOptions::OP_PUT;
                if self.both[at].model.matching && self.random.once_in(3) {
                    spec.options ^= MeOptions::NO_TRUNCATE;
                }
            }
        }
        spec
    }

    /// A source that matches all initiators.
    fn anybody(&self) -> ProcessId {
        match self.logical {
            true => ProcessId::from_rank(ProcessId::RANK_ANY),
            false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        }
    }

    fn any_spec(&mut self, at: usize) -> Spec {
        let counter = self.counter_or_none(at);
        let source = match (self.logical, self.random.below(4)) {
            (true, 0) => ProcessId::from_rank(self.random.below(2) as u32),
            (false, 0) => ProcessId::new(self.random.below(2) as u32 + 1, ProcessId::PID_ANY),
            (false, 1) => ProcessId::new(ProcessId::NID_ANY, 100),
            _ => self.anybody(),
        };
        EntrySpec {
            portal: PortalIndex(self.random.below(3) as u16),
            buffer: self.buffer(),
            counter,
            uid: self.random.pick(&[UID_ANY, UID_ANY, UID]),
            options: self.entry_options(at),
            source,
            match_bits: self.random.below(3),
            ignore_bits: self.random.pick(&[0, 0, 1, u64::MAX]),
            min_free: self.random.pick(&[0, 0, 8, 60, 300]),
            user_ptr: self.random.next(),
        }
    }

    fn entry_options(&mut self, at: usize) -> MeOptions {
        let mut options = MeOptions::OP_PUT | MeOptions::OP_GET;
        for (option, n) in [
            (MeOptions::OP_PUT, 12),
            (MeOptions::OP_GET, 12),
            (MeOptions::USE_ONCE, 3),
            (MeOptions::UNEXPECTED_HDR_DISABLE, 8),
            (MeOptions::EVENT_LINK_DISABLE, 3),
            (MeOptions::EVENT_COMM_DISABLE, 8),
            (MeOptions::EVENT_SUCCESS_DISABLE, 8),
            (MeOptions::EVENT_OVER_DISABLE, 8),
            (MeOptions::EVENT_UNLINK_DISABLE, 4),
            (MeOptions::EVENT_CT_COMM, 2),
            (MeOptions::EVENT_CT_OVERFLOW, 2),
            (MeOptions::EVENT_CT_BYTES, 3),
            (MeOptions::ACK_DISABLE, 10),
            (MeOptions::MANAGE_LOCAL, 3),
            (MeOptions::NO_TRUNCATE, 4),
            (MeOptions::LOCAL_INC_UH_RLENGTH, 3),
        ] {
            let of_list_entries = MeOptions::OF_LIST_ENTRY.contains(option);
            if (self.both[at].model.matching || of_list_entries) && self.random.once_in(n) {
                options ^= option;
            }
        }
        options
    }

    fn transfer(&mut self, at: usize) -> Transfer {
        let mut transfer = self.any_transfer(at);
        if self.plain && !self.random.once_in(4) {
            (transfer.verb, transfer.ack) = (Verb::Put, AckRequest::None);
            if self.crowded {
                (transfer.portal, transfer.match_bits) = (0, 0);
                transfer.remote_offset = self.random.pick(&[0, 0, 4]);
            }
        }
        transfer
    }

    fn any_transfer(&mut self, at: usize) -> Transfer {
        let verbs = [
            Verb::Put,
            Verb::Put,
            Verb::Get,
            Verb::Atomic,
            Verb::FetchAtomic,
            Verb::Swap,
        ];
        let verb = self.random.pick(&verbs);
        let (source, sink) = (self.md(at), self.md(at));
        let put = matches!(verb, Verb::Put | Verb::Get);
        let target = self.random.pick(&[0, 1, 1, 1, UNREACHABLE, SILENT]);
        let target = if self.logical {
            ProcessId::from_rank(target as u32)
        } else {
            process(target)
        };
        let lengths: &[u64] = if put {
            &[0, 1, 8, 20, 60, 100]
        } else {
            &[0, 4, 8, 8, 16, 32]
        };
        use AckRequest::*;
        let ack = match verb {
            Verb::Put | Verb::Atomic => {
                self.random
                    .pick(&[None, Full, Full, Counting, OperationCompleted])
            }
            _ => None,
        };
        Transfer {
            verb,
            source,
            source_offset: self.random.pick(&[0, 0, 3]),
            sink,
            sink_offset: self.random.pick(&[0, 0, 5]),
            length: self.random.pick(lengths),
            ack,
            target,
            portal: self.random.below(3) as u32,
            match_bits: self.random.below(3),
            remote_offset: self.random.pick(&[0, 0, 4, 30, 1 << 50]),
            user_ptr: self.random.next(),
            hdr_data: self.random.next(),
            operation: if verb == Verb::Swap {
                self.random
                    .pick(&[Operation::Swap, Operation::CswapEq, Operation::Mswap])
            } else {
                Operation::Sum
            },
            datatype: self.random.pick(&[
                Datatype::Uint16,
                Datatype::Uint32,
                Datatype::Int64,
                Datatype::Int64,
                Datatype::DoubleComplex,
                Datatype::LongDoubleComplex,
            ]),
            operand: [self.random.next() as u8; OPERAND_BYTES],
        }
    }
}

impl Both {
    fn new(
        index: usize,
        options: NiOptions,
        limits: Limits,
        most: usize,
        map: &[ProcessId],
    ) -> Self {
        let config = lintel_engine4::Config {
            options,
            limits,
            process: process(index),
            uid: UID,
            eager: EAGER,
            generation: 2046,
        };
        let mut node = Node::new(process(index), options, limits);
        node.interface = lintel_engine4::Interface::new(config);
        node.host.unreachable.insert(process(UNREACHABLE));
        let mut model = Model::new(options, limits, EAGER);
        model.unreachable.push(process(UNREACHABLE));
        if model.logical {
            node.interface.set_map(map).unwrap();
            (model.map, model.rank) = (map.to_vec(), index as u32);
        }
        let queues: Vec<Handle> = (0..2)
            .map(|_| node.interface.queue_alloc(64).unwrap())
            .collect();
        for queue in &queues {
            model.queues.push((*queue, most, Vec::new()));
            node.host.capacity.insert(QueueIndex(queue.index()), most);
        }
        let mut both = Both {
            node,
            kept: KeptSends::default(),
            landings: KeptLandings::default(),
            model,
            queues,
            counters: vec![],
            mds: vec![],
            entries: vec![],
        };
        both.furnish();
        both
    }

    /// What every sequence begins with, so that messages find something.
    fn furnish(&mut self) {
        for _ in 0..2 {
            let counter = self.node.counter();
            self.model.counter_alloc(counter).unwrap();
            self.counters.push(counter);
            let spec = DescriptorSpec {
                buffer: Buffer::Contiguous(Ghost::new(0x8000, 200)),
                options: MdOptions::EVENT_CT_ACK,
                queue: self.queues[0],
                counter,
            };
            let md = self.node.bind(spec.clone());
            self.model.bind(md, spec).unwrap();
            self.mds.push(md);
            let queue = self.queues[0];
            self.node
                .interface
                .portal_alloc(PtOptions::empty(), queue, PT_ANY)
                .unwrap();
            self.model
                .portal_alloc(PtOptions::empty(), queue, PT_ANY)
                .unwrap();
        }
    }
}
