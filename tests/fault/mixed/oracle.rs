//! A model of each rank, the memory of both, and messages that arrive at once.

use crate::model::{Later, Model};
use crate::plan::{Action, COUNTERS, PORTALS, QUEUE, VARIANTS, descriptor};
use crate::rig::Sent;
use lintel_fault::random::Random;
use lintel_fault::rig::process;
use lintel_memory::{Ghost, Span};
use lintel_types::{
    CountingEvent, Datatype, Event, Handle, Limits, List, NiFail, NiOptions, Operation,
    PortalIndex, PtOptions,
};
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb};

/// Processes of a sequence.
pub const RANKS: usize = 2;
/// Where a rank's memory lies, as the model names it: what it exposes, sends and fetches.
pub const AREA: u64 = 1 << 32;
pub const SOURCE: u64 = 2 << 32;
pub const SINK: u64 = 3 << 32;
/// Bytes that the entries of one portal table entry lie in.
pub const PART: u64 = (1 << 20) + (1 << 18);
/// Bytes of the exposed memory; the entries of the last portal table entry aren't used.
pub const AREA_BYTES: u64 = PART * (PORTALS.len() as u64 - 1);
/// Bytes of the source.
pub const SOURCE_BYTES: u64 = 2 << 20;
const UID: u32 = 1000;
const MOST_EVENTS: usize = usize::MAX;

/// What both ranks must see.
pub struct Oracle {
    ranks: [Rank; RANKS],
}

struct Rank {
    model: Model,
    area: Vec<u8>,
    source: Vec<u8>,
    sink: Vec<u8>,
}

/// The bytes that a rank sends from.
pub fn source_bytes(rank: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed ^ (rank as u64 + 1));
    let words = (0..SOURCE_BYTES / 8).map(|_| random.number());
    words.flat_map(u64::to_ne_bytes).collect()
}

impl Oracle {
    pub fn new(matching: bool, limits: Limits, seed: u64) -> Oracle {
        Oracle {
            ranks: std::array::from_fn(|index| Rank::new(index, matching, limits, seed)),
        }
    }

    /// A rank does something, and all that follows from it happens.
    pub fn apply(&mut self, at: usize, action: &Action) {
        let model = &mut self.ranks[at].model;
        let done = match action.clone() {
            Action::Start(transfer) => model.start(&transfer),
            Action::Append(name, spec) => model.append(name, spec, List::Priority),
            Action::Unlink(entry) => model.unlink(entry),
            Action::Disable(portal) => model.portal_disable(portal).map(drop),
            Action::Enable(portal) => model.portal_enable(portal),
            Action::Set(counter, value) => model.counter_set(counter, value),
            Action::Increment(counter) => model.counter_inc(counter, ONE),
            Action::TriggerIncrement(counter, on, threshold) => {
                model.trigger(Later::Increment(counter, ONE), on, threshold)
            }
            Action::TriggerPut(put, on, threshold) => {
                model.trigger(Later::Transfer(put), on, threshold)
            }
        };
        assert_eq!(done, Ok(()), "{action:?} is allowed");
        self.deliver_all();
    }

    /// What a counter of a rank shows.
    pub fn value(&self, rank: usize, counter: Handle) -> CountingEvent {
        let value = self.ranks[rank].model.value(counter);
        value.expect("the counters live as long as the sequence")
    }

    /// The events of a rank that weren't taken yet.
    pub fn events(&self, rank: usize) -> &[Event] {
        &self.ranks[rank].model.queues[0].2
    }

    /// The events of a rank since the last call.
    pub fn take_events(&mut self, rank: usize) -> Vec<Event> {
        std::mem::take(&mut self.ranks[rank].model.queues[0].2)
    }

    /// What a rank's exposed memory holds, and its sink as far as it was used.
    pub fn memory(&self, rank: usize) -> (&[u8], &[u8]) {
        (&self.ranks[rank].area, &self.ranks[rank].sink)
    }

    fn deliver_all(&mut self) {
        while let Some(from) = self
            .ranks
            .iter()
            .position(|rank| !rank.model.sent.is_empty())
        {
            let (sent, serial) = self.ranks[from].model.sent.remove(0);
            self.deliver(from, sent, serial);
        }
    }

    fn deliver(&mut self, from: usize, mut sent: Sent, serial: Option<u64>) {
        let to = (0..RANKS).find(|rank| process(*rank as u32) == sent.to);
        let to = to.expect("there are no others");
        sent.request.token = serial.unwrap_or(0) as u32;
        if let Some(serial) = serial {
            self.ranks[from].model.named(serial, sent.request.token);
        }
        let landing = self.ranks[to]
            .model
            .on_request(process(from as u32), UID, &sent.request);
        let (response, old) = match landing {
            Err(refusal) => (refusal, vec![]),
            Ok((pieces, arrival)) => {
                let old = self.ranks[to].read(&pieces);
                let bytes = self.ranks[from].read(&sent.pieces);
                let new = changed(&sent.request, sent.operand, &old, &bytes);
                self.ranks[to].write(&pieces, &new);
                let model = &mut self.ranks[to].model;
                model.on_landed(&arrival, NiFail::Ok);
                (model.response(&arrival, NiFail::Ok), old)
            }
        };
        if let Some(response) = response {
            self.ranks[from].on_response(&response, &old);
        }
    }
}

const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};

impl Rank {
    fn new(index: usize, matching: bool, limits: Limits, seed: u64) -> Rank {
        let options = match matching {
            true => NiOptions::MATCHING | NiOptions::PHYSICAL,
            false => NiOptions::NO_MATCHING | NiOptions::PHYSICAL,
        };
        let mut model = Model::new(options, limits, u64::MAX);
        model.queues.push((QUEUE, MOST_EVENTS, Vec::new()));
        let known = "there is room";
        for counter in COUNTERS {
            model.counter_alloc(counter).expect(known);
        }
        for portal in PORTALS {
            let allocated = model.portal_alloc(PtOptions::empty(), QUEUE, portal.into());
            assert_eq!(allocated, Ok(PortalIndex(portal)));
        }
        for variant in 0..VARIANTS {
            for is_sink in [false, true] {
                let (name, spec) = descriptor(variant, is_sink);
                model.bind(name, spec).expect(known);
            }
        }
        Rank {
            model,
            area: vec![0; AREA_BYTES as usize],
            source: source_bytes(index, seed),
            sink: Vec::new(),
        }
    }

    fn on_response(&mut self, response: &Response, old: &[u8]) {
        if let Some(pieces) = self.model.on_response(response) {
            self.write(&pieces, old);
            self.model.finish(response, response.fail);
        }
    }

    /// The memory at an address, and what is behind it.
    fn at(&mut self, piece: &Ghost) -> &mut [u8] {
        let (address, length) = (piece.address(), piece.length() as usize);
        let (memory, start) = match address >> 32 {
            1 => (&mut self.area, address - AREA),
            2 => (&mut self.source, address - SOURCE),
            _ => (&mut self.sink, address - SINK),
        };
        let end = start as usize + length;
        if memory.len() < end {
            memory.resize(end, 0);
        }
        &mut memory[start as usize..end]
    }

    fn read(&mut self, pieces: &[Ghost]) -> Vec<u8> {
        let bytes = pieces.iter().map(|piece| self.at(piece).to_vec());
        bytes.collect::<Vec<_>>().concat()
    }

    fn write(&mut self, pieces: &[Ghost], mut bytes: &[u8]) {
        for piece in pieces {
            let (now, later) = bytes.split_at(piece.length() as usize);
            self.at(piece).copy_from_slice(now);
            bytes = later;
        }
    }
}

/// What a request leaves where these bytes were.
fn changed(
    request: &Request,
    operand: Option<[u8; OPERAND_BYTES]>,
    old: &[u8],
    sent: &[u8],
) -> Vec<u8> {
    match request.verb {
        Verb::Put => sent[..old.len()].to_vec(),
        Verb::Get => old.to_vec(),
        _ => {
            let size = request.datatype.size();
            let compare = operand.map_or(0, |operand| word(&operand[..size]));
            let pairs = old.chunks_exact(size).zip(sent.chunks_exact(size));
            let new = pairs.map(|(old, sent)| {
                let (old, sent) = (word(old), word(sent));
                combined(request.operation, request.datatype, old, sent, compare)
            });
            let bytes = new.flat_map(|word| word.to_ne_bytes().into_iter().take(size));
            bytes.collect()
        }
    }
}

/// The lower bytes of a word; the machine is little-endian.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Portals 4.3, section `Atomic operations`, table of operations, for integers.
fn combined(operation: Operation, datatype: Datatype, old: u64, sent: u64, compare: u64) -> u64 {
    use Operation::{Band, Bor, Bxor, CswapEq, CswapGt, CswapNe, Max, Min, Mswap, Prod, Sum, Swap};
    let value = |word: u64| match datatype {
        Datatype::Int32 => i128::from(word as u32 as i32),
        Datatype::Int64 => i128::from(word as i64),
        _ => i128::from(word),
    };
    let either = |sent_wins: bool| if sent_wins { sent } else { old };
    match operation {
        Min => either(value(sent) < value(old)),
        Max => either(value(sent) > value(old)),
        Sum => old.wrapping_add(sent),
        Prod => old.wrapping_mul(sent),
        Bor => old | sent,
        Band => old & sent,
        Bxor => old ^ sent,
        Swap => sent,
        CswapEq => either(compare == old),
        CswapNe => either(compare != old),
        CswapGt => either(compare > old),
        Mswap => (sent & compare) | (old & !compare),
        other => unreachable!("no plan contains {other:?}"),
    }
}
