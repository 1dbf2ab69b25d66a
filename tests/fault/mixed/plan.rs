//! What both ranks do, drawn from a seed.

use crate::oracle::{AREA, Oracle, PART, RANKS, SINK, SOURCE, SOURCE_BYTES};
use lintel_engine4::{DescriptorSpec, EntrySpec, Transfer};
use lintel_fault::random::Random;
use lintel_fault::rig::process;
use lintel_memory::{Buffer, Ghost};
use lintel_types::{
    AckRequest, CountingEvent, Datatype, Handle, MdOptions, MeOptions, Operation, PortalIndex,
    ProcessId, UID_ANY,
};
use lintel_wire::{OPERAND_BYTES, Verb};

/// Portal table indices: one for the operations of each rank, one for triggered puts, and one
/// whose entries come and go while nobody uses them.
pub const PORTALS: [u16; 4] = [3, 4, 5, 6];
const TRIGGERED: u16 = 5;
const BESIDE: u16 = 6;
/// Names of objects, which every rank has.
pub const QUEUE: Handle = Handle(400);
pub const COUNTERS: [Handle; 4] = [Handle(100), Handle(101), Handle(102), Handle(103)];
/// Counts what arrives for triggered puts.
const OF_TRIGGERED: Handle = COUNTERS[3];
/// Descriptors over the source and over the sink.
pub const VARIANTS: usize = 4;
const SOURCES: u32 = 200;
const SINKS: u32 = 300;
const ENTRIES: u32 = 1000;
/// Bytes of a sink, which lasts for a round.
const SINK_BYTES: u64 = 4 << 20;
/// Longer than what is carried out directly.
const LONG: u64 = (1 << 20) + 8;
const MOST_ENTRIES: usize = 3;

/// Something that one rank does.
#[derive(Clone, Debug)]
pub enum Action {
    Start(Transfer),
    Append(Handle, EntrySpec<Ghost>),
    Unlink(Handle),
    Disable(PortalIndex),
    Enable(PortalIndex),
    Set(Handle, CountingEvent),
    Increment(Handle),
    /// The counter to increment, the one to compare, and the threshold.
    TriggerIncrement(Handle, Handle, u64),
    TriggerPut(Transfer, Handle, u64),
}

/// The actions of a sequence.
pub struct Plan {
    random: Random,
    entries: [Vec<Handle>; RANKS],
    beside: [Option<Handle>; RANKS],
    named: u32,
    sunk: [u64; RANKS],
    triggered: [u64; RANKS],
    number: u64,
}

/// A descriptor over a source or a sink, and how it reports.
pub fn descriptor(variant: usize, is_sink: bool) -> (Handle, DescriptorSpec<Ghost>) {
    use MdOptions as Md;
    let counts = Md::EVENT_CT_ACK | Md::EVENT_CT_REPLY;
    let (options, queue, counter) = match variant {
        0 => (counts | Md::EVENT_CT_SEND, Handle::EQ_NONE, COUNTERS[0]),
        1 => (counts | Md::EVENT_CT_BYTES, QUEUE, COUNTERS[1]),
        2 => (Md::empty(), QUEUE, Handle::CT_NONE),
        _ => (counts | Md::EVENT_SUCCESS_DISABLE, QUEUE, COUNTERS[2]),
    };
    let (first, span) = match is_sink {
        true => (SINKS, Ghost::new(SINK, SINK_BYTES)),
        false => (SOURCES, Ghost::new(SOURCE, SOURCE_BYTES)),
    };
    let spec = DescriptorSpec {
        buffer: Buffer::Contiguous(span),
        options,
        queue,
        counter,
    };
    (Handle(first + variant as u32), spec)
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        Plan {
            random: Random::new(seed),
            entries: [vec![], vec![]],
            beside: [None; RANKS],
            named: 0,
            sunk: [0; RANKS],
            triggered: [0; RANKS],
            number: 0,
        }
    }

    /// What every sequence begins with: an entry for each initiator, and one that stays.
    pub fn furnish(&mut self) -> Vec<(usize, Action)> {
        let mut actions = vec![];
        for at in 0..RANKS {
            for portal in [PORTALS[0], PORTALS[1]] {
                actions.push((at, self.append(at, portal)));
            }
            let stays = EntrySpec {
                counter: OF_TRIGGERED,
                options: plain() | MeOptions::EVENT_CT_COMM,
                ..self.entry(TRIGGERED, 0, PART)
            };
            actions.push((at, Action::Append(self.name(), stays)));
        }
        actions
    }

    /// Changes of one rank, while no operation is under way.
    pub fn commands(&mut self) -> Vec<(usize, Action)> {
        let at = self.below(RANKS as u64) as usize;
        let mut actions: Vec<Action> = vec![];
        for _ in 0..self.below(5) {
            let portal = PortalIndex(self.pick(&PORTALS[..2]));
            let full = self.entries[at].len() >= 2 * MOST_ENTRIES;
            actions.push(match self.below(7) {
                0 if self.below(2) == 0 => Action::Disable(portal),
                0..=2 => Action::Enable(portal),
                3 | 4 if !full => self.append(at, portal.0),
                _ => match self.unlink(at) {
                    Some(action) => action,
                    None => self.append(at, portal.0),
                },
            });
        }
        // At last: what it fires counts while nothing is set.
        if self.below(4) == 0 {
            let (success, failure) = (self.below(200), self.below(3));
            let counter = self.pick(&COUNTERS);
            actions.push(Action::Set(counter, CountingEvent { success, failure }));
        }
        actions.into_iter().map(|action| (at, action)).collect()
    }

    /// Operations of both ranks, started one after the other, and what may happen meanwhile.
    pub fn operations(&mut self, oracle: &Oracle) -> Vec<(usize, Action)> {
        let mut actions = vec![];
        self.sunk = [0; RANKS];
        for at in 0..RANKS {
            for _ in 0..self.below(60) {
                let action = match self.below(24) {
                    0 => self.trigger(at, oracle),
                    1 => self.beside(at),
                    2 => Action::Increment(self.pick(&COUNTERS)),
                    _ => Action::Start(self.transfer(at)),
                };
                actions.push((at, action));
            }
            // Behind everything: its reply shows that the rest is done.
            for target in 0..RANKS {
                let flush = Transfer {
                    verb: Verb::Get,
                    hdr_data: 0,
                    portal: TRIGGERED.into(),
                    ..self.blank(at, target, 2)
                };
                actions.push((at, Action::Start(flush)));
            }
        }
        actions
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn name(&mut self) -> Handle {
        self.named += 1;
        Handle(ENTRIES + self.named)
    }

    /// An entry over a part of the memory that one portal table entry has.
    fn entry(&mut self, portal: u16, offset: u64, length: u64) -> EntrySpec<Ghost> {
        let part = u64::from(portal.min(TRIGGERED) - PORTALS[0]) * PART;
        EntrySpec {
            portal: PortalIndex(portal),
            buffer: Buffer::Contiguous(Ghost::new(AREA + part + offset, length)),
            counter: Handle::CT_NONE,
            uid: UID_ANY,
            options: plain(),
            source: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            match_bits: 0,
            ignore_bits: 0,
            min_free: 0,
            user_ptr: u64::from(self.named),
        }
    }

    fn append(&mut self, at: usize, portal: u16) -> Action {
        let offset = self.pick(&[0, 0, 8, 3, 4096]);
        let length = self.pick(&[PART - 4096, PART - 4096, 64, 5000]);
        let mut options = plain();
        for (option, n) in [
            (MeOptions::OP_PUT, 12),
            (MeOptions::OP_GET, 12),
            // Then it posts, and isn't direct.
            (MeOptions::EVENT_COMM_DISABLE, 5),
            (MeOptions::EVENT_CT_COMM, 2),
            (MeOptions::EVENT_CT_BYTES, 3),
            (MeOptions::ACK_DISABLE, 12),
        ] {
            if self.below(n) == 0 {
                options ^= option;
            }
        }
        let spec = EntrySpec {
            counter: self.pick(&COUNTERS),
            options,
            match_bits: self.below(2),
            ignore_bits: self.pick(&[0, 0, u64::MAX]),
            ..self.entry(portal, offset, length)
        };
        let name = self.name();
        self.entries[at].push(name);
        Action::Append(name, spec)
    }

    fn unlink(&mut self, at: usize) -> Option<Action> {
        let count = self.entries[at].len() as u64;
        let index = (count > 0).then(|| self.below(count) as usize)?;
        Some(Action::Unlink(self.entries[at].remove(index)))
    }

    /// An entry comes or goes that no operation uses, so that the table changes under them.
    fn beside(&mut self, at: usize) -> Action {
        if let Some(entry) = self.beside[at].take() {
            return Action::Unlink(entry);
        }
        let (spec, name) = (self.entry(BESIDE, 0, 64), self.name());
        self.beside[at] = Some(name);
        Action::Append(name, spec)
    }

    fn trigger(&mut self, at: usize, oracle: &Oracle) -> Action {
        let on = self.pick(&COUNTERS);
        let threshold = oracle.value(at, on).sum() + self.pick(&[0, 1, 7, 30, 5000]);
        if self.below(2) == 0 {
            return Action::TriggerIncrement(self.pick(&COUNTERS), on, threshold);
        }
        // Each to a place of its own, since they may be triggered in any order.
        self.triggered[at] = (self.triggered[at] + 1) % 1000;
        let place = (self.triggered[at] * 2 + at as u64) * 16;
        let put = Transfer {
            length: 8,
            portal: TRIGGERED.into(),
            remote_offset: place,
            source_offset: self.below(1000),
            ..self.blank(at, 1 - at, 2)
        };
        Action::TriggerPut(put, on, threshold)
    }

    /// A put of nothing from one rank to another.
    fn blank(&mut self, at: usize, target: usize, variant: u32) -> Transfer {
        self.number += 1;
        Transfer {
            verb: Verb::Put,
            source: Handle(SOURCES + variant),
            source_offset: 0,
            sink: Handle(SINKS + variant),
            sink_offset: self.sunk[at],
            length: 0,
            ack: AckRequest::None,
            target: process(target as u32),
            portal: PORTALS[at].into(),
            match_bits: 0,
            remote_offset: 0,
            user_ptr: self.number,
            hdr_data: self.number,
            operation: Operation::default(),
            datatype: Datatype::default(),
            operand: [0; OPERAND_BYTES],
        }
    }

    fn transfer(&mut self, at: usize) -> Transfer {
        use Verb::{Atomic, FetchAtomic, Get, Put, Swap};
        let verb = self.pick(&[Put, Put, Get, Atomic, FetchAtomic, Swap]);
        let variant = self.below(VARIANTS as u64) as usize;
        let target = self.pick(&[at, 1 - at, 1 - at, 1 - at]);
        let acks = [
            AckRequest::None,
            AckRequest::Counting,
            AckRequest::OperationCompleted,
            AckRequest::Full,
        ];
        let ack = match (verb, variant) {
            (Put | Atomic, 0) => self.pick(&acks[..3]),
            (Put | Atomic, 2) => self.pick(&[AckRequest::None, AckRequest::Full]),
            (Put | Atomic, _) => self.pick(&acks),
            _ => AckRequest::None,
        };
        let mut transfer = Transfer {
            verb,
            ack,
            match_bits: self.below(2),
            remote_offset: self.pick(&[0, 0, 8, 16, 24, 3, 61, 4990]),
            source_offset: self.below(1000),
            ..self.blank(at, target, variant as u32)
        };
        match verb {
            Get => (transfer.length, transfer.hdr_data) = (self.length(), 0),
            Put => transfer.length = self.length(),
            _ => self.compute(&mut transfer),
        }
        if !matches!(verb, Put | Atomic) {
            if transfer.sink_offset + transfer.length > SINK_BYTES {
                transfer.length = 0;
            }
            self.sunk[at] += transfer.length.next_multiple_of(8);
        }
        transfer
    }

    fn length(&mut self) -> u64 {
        match self.below(40) {
            0 => LONG,
            1 | 2 => 70_000,
            _ => self.pick(&[0, 1, 8, 8, 8, 24, 100, 4096]),
        }
    }

    fn compute(&mut self, transfer: &mut Transfer) {
        use Datatype::{Int32, Int64, Uint8, Uint16, Uint32, Uint64};
        use Operation::{
            Band, Bor, Bxor, CswapEq, CswapGt, CswapNe, Max, Min, Mswap, Prod, Sum, Swap,
        };
        if transfer.verb == Verb::Swap {
            transfer.operation = self.pick(&[Swap, CswapEq, CswapNe, CswapGt, Mswap]);
            transfer.datatype = Uint64;
        } else {
            transfer.operation = self.pick(&[Min, Max, Sum, Sum, Sum, Prod, Bor, Band, Bxor]);
            transfer.datatype = self.pick(&[Uint8, Uint16, Uint32, Int32, Int64, Uint64, Uint64]);
        }
        let count = match transfer.operation > Swap {
            true => 1,
            false => self.pick(&[1, 1, 1, 2, 5]),
        };
        transfer.length = count * transfer.datatype.size() as u64;
        if transfer.operation > Swap {
            let operand = self.pick(&[0, 1, u64::MAX, 1 << 40]);
            transfer.operand[..8].copy_from_slice(&operand.to_ne_bytes());
        }
    }
}

/// A persistent entry that leaves no trace but its bytes.
fn plain() -> MeOptions {
    MeOptions::OP_PUT
        | MeOptions::OP_GET
        | MeOptions::EVENT_LINK_DISABLE
        | MeOptions::EVENT_UNLINK_DISABLE
        | MeOptions::EVENT_COMM_DISABLE
}
