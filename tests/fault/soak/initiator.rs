//! Starts random operations, and checks how each completes.

use crate::Done;
use crate::bits::{self, Kind, bits};
use crate::offer::{SLOT, WORDS, plain_portal, pool, refill, shared_word};
use crate::operation::{Expects, Operation, What};
use crate::session::{PLAIN_SLOT, Session};
use lintel_fault::memory::Memory;
use lintel_fault::random::Random;
use lintel_fault::rig::{self, Descriptor};
use lintel_types::{Event, NiFail};
use portals4_abi::{
    AckRequest, Counter, DescriptorSpec, Interface, Operation as AtomicOperation, Queue,
    Result as PtlResult, Sink, Transfer, Trigger,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Operations in flight at a time.
const WINDOW: usize = 16;
/// Gets in flight at a time.
const SINKS: usize = 4;

/// The operations of a rank, and what they need.
pub struct Initiator {
    me: u32,
    incarnation: u32,
    largest: u64,
    random: Random,
    /// The session with each rank, by rank.
    pub sessions: Vec<Session>,
    /// The pool of each rank; this rank puts from its own.
    pools: Vec<Memory>,
    /// Descriptors over the own pool: on each interface, and one without events.
    source: Descriptor,
    plain_source: Descriptor,
    silent: Descriptor,
    counted: Counted,
    sinks: Buffers,
    /// Cells for fetched words; operands have the same indices.
    cells: Buffers,
    operands: Memory,
    operand_source: Descriptor,
    chain: Chain,
    in_flight: BTreeMap<usize, Operation>,
    next: usize,
    /// What has completed so far.
    pub tally: Tally,
}

/// Counts of completed operations, and bytes moved.
#[derive(Debug, Default)]
pub struct Tally {
    /// Operations whose event or count reported success.
    pub succeeded: u64,
    /// Operations whose event or count reported a failure.
    pub failed: u64,
    /// Bytes of all operations that were started.
    pub bytes: u64,
}

/// Memory in equal pieces, each used by one operation at a time.
struct Buffers {
    memory: Memory,
    descriptor: Descriptor,
    piece: usize,
    free: Vec<usize>,
}

impl Buffers {
    fn new(interface: &Interface, queue: &Queue, piece: usize, count: usize) -> PtlResult<Self> {
        let memory = Memory::new(piece * count);
        Ok(Buffers {
            memory,
            descriptor: rig::bind(interface, memory, queue)?,
            piece,
            free: (0..count).collect(),
        })
    }
}

/// Puts that only a counter reports, one at a time.
struct Counted {
    source: Descriptor,
    counter: Counter,
    begun: u64,
    failed: u64,
    in_flight: Option<Operation>,
}

/// Two counters: the first triggers an increment of the second, which triggers operations.
struct Chain {
    first: Counter,
    second: Counter,
    count: u64,
}

impl Chain {
    /// The trigger of the next operation; [`fire`](Self::fire) starts it.
    fn next(&mut self) -> Trigger<'_> {
        self.count += 1;
        Trigger {
            counter: &self.second,
            threshold: self.count,
        }
    }

    fn fire(&self) -> PtlResult<()> {
        self.second.triggered_increment(Trigger {
            counter: &self.first,
            threshold: self.count,
        })?;
        self.first.increment()
    }
}

/// The two interfaces of a rank and their queues.
pub struct Interfaces {
    /// Carries all but the plain puts.
    pub matching: Interface,
    /// All events of the matching interface.
    pub queue: Queue,
    /// The interface without matching.
    pub plain: Interface,
    /// All events of the interface without matching.
    pub plain_queue: Queue,
}

impl Initiator {
    /// Binds the own pool, and allocates counters, sinks and cells.
    pub fn new(
        interfaces: &Interfaces,
        own: Memory,
        (me, incarnation, ranks): (u32, u32, u32),
        (seed, largest): (u64, u64),
    ) -> PtlResult<Initiator> {
        let Interfaces {
            matching,
            queue,
            plain,
            plain_queue,
        } = interfaces;
        let counter = matching.counter()?;
        let operands = Memory::new(CELLS * 8);
        let pool_of = |rank| if rank == me { own } else { pool(rank, 0) };
        Ok(Initiator {
            me,
            incarnation,
            largest,
            random: Random::new(seed),
            sessions: (0..ranks).map(|_| Session::default()).collect(),
            pools: (0..ranks).map(pool_of).collect(),
            source: rig::bind(matching, own, queue)?,
            plain_source: rig::bind(plain, own, plain_queue)?,
            silent: matching.bind(own, &DescriptorSpec::default())?,
            counted: Counted {
                source: rig::bind_counted(matching, own, (None, &counter), 0)?,
                counter,
                begun: 0,
                failed: 0,
                in_flight: None,
            },
            sinks: Buffers::new(matching, queue, SLOT, SINKS)?,
            cells: Buffers::new(matching, queue, 8, CELLS)?,
            operands,
            operand_source: rig::bind(matching, operands, queue)?,
            chain: Chain {
                first: matching.counter()?,
                second: matching.counter()?,
                count: 0,
            },
            in_flight: BTreeMap::new(),
            next: 1,
            tally: Tally::default(),
        })
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.counted.in_flight.is_none()
    }

    /// Starts an operation with a random rank; false if none can be started now.
    pub fn start(&mut self) -> Result<bool, String> {
        if self.in_flight.len() >= WINDOW {
            return Ok(false);
        }
        let others = self.sessions.len() as u64 - 1;
        let peer = (u64::from(self.me) + 1 + self.random.below(others)) % (others + 1);
        let peer = peer as u32;
        let started = match self.session(peer).incarnation() {
            Some(incarnation) => self.start_with(peer, incarnation),
            None if self.session(peer).may_send_hello() => self.send_hello(peer),
            None => return Ok(false),
        };
        started.map_err(|why| format!("an operation with rank {peer}: {why}"))
    }

    fn session(&mut self, peer: u32) -> &mut Session {
        &mut self.sessions[peer as usize]
    }

    fn start_with(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        match self.random.below(16) {
            0..5 => self.put(peer, incarnation),
            5..7 => self.plain_put(peer, incarnation),
            7..10 => self.get(peer, incarnation),
            10 => self.add(peer, incarnation),
            11 => self.fetch_add(peer, incarnation),
            12 => self.add_shared(peer, incarnation),
            13..15 => self.swap(peer, incarnation),
            _ => self.put_counted(peer, incarnation),
        }
    }

    /// Registers an operation that is about to start; returns its number.
    fn begin(&mut self, call: &'static str, what: What, peer: u32, incarnation: u32) -> usize {
        let user = self.next;
        self.next += 1;
        self.session(peer).in_flight += 1;
        let operation = Operation::new(call, what, peer, incarnation);
        self.in_flight.insert(user, operation);
        user
    }

    fn send_hello(&mut self, peer: u32) -> PtlResult<bool> {
        let attempt = self.session(peer).send_hello();
        let user = self.begin("hello", What::Hello, peer, 0);
        let hello = Transfer {
            hdr_data: bits::header(self.incarnation, attempt),
            ..to(peer, bits(Kind::Hello, 0, self.me, 0), user)
        };
        self.source.put(&hello, AckRequest::Full).map(|()| true)
    }

    /// A random length in bytes: half of them up to 64.
    fn length(&mut self) -> u64 {
        let most = match self.random.below(20) {
            0..10 => 64,
            10..16 => 8 << 10,
            16..19 => 128 << 10,
            _ => self.largest,
        };
        self.random.below(most.min(self.largest) + 1)
    }

    /// A random offset for so many bytes within an area.
    fn offset(&mut self, length: u64, within: usize) -> u64 {
        self.random.below(within as u64 - length + 1)
    }

    /// A put of random numbers into a free slot of a range, if there is one.
    fn put_into(
        &mut self,
        call: &'static str,
        peer: u32,
        incarnation: u32,
        slots: std::ops::Range<usize>,
    ) -> Option<Transfer> {
        let (slot, sequence) = self.session(peer).take_slot(slots)?;
        let user = self.begin(call, What::Put { slot, sequence }, peer, incarnation);
        let length = self.length();
        let offset = self.offset(length, self.pools[self.me as usize].bytes());
        let range = offset as usize..(offset + length) as usize;
        let sum = self.pools[self.me as usize].checksum(range);
        self.tally.bytes += length;
        Some(Transfer {
            local_offset: offset,
            length,
            remote_offset: self.offset(length, SLOT),
            hdr_data: bits::header(sum, sequence),
            ..to(peer, bits(Kind::Put, incarnation, self.me, slot), user)
        })
    }

    fn put(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let later = self.random.below(4) == 0;
        let call = if later { "triggered put" } else { "put" };
        let Some(put) = self.put_into(call, peer, incarnation, 0..PLAIN_SLOT) else {
            return Ok(false);
        };
        let (source, ack) = (&self.source, AckRequest::Full);
        if later {
            source.triggered_put(&put, ack, self.chain.next())?;
            self.chain.fire()?;
        } else {
            source.put(&put, ack)?;
        }
        Ok(true)
    }

    fn plain_put(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let slots = PLAIN_SLOT..PLAIN_SLOT + 1;
        let Some(mut put) = self.put_into("plain put", peer, incarnation, slots) else {
            return Ok(false);
        };
        put.portal = plain_portal(incarnation);
        put.remote_offset += u64::from(self.me) * SLOT as u64;
        self.plain_source.put(&put, AckRequest::Full)?;
        Ok(true)
    }

    fn get(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let Some(sink) = self.sinks.free.pop() else {
            return Ok(false);
        };
        let length = self.length();
        let from = self.pools[peer as usize];
        let offset = self.offset(length, from.bytes());
        let sum = from.checksum(offset as usize..(offset + length) as usize);
        let later = self.random.below(4) == 0;
        let call = if later { "triggered get" } else { "get" };
        let user = self.begin(call, What::Get { sink, length, sum }, peer, incarnation);
        self.tally.bytes += length;
        let get = Transfer {
            local_offset: (sink * self.sinks.piece) as u64,
            length,
            remote_offset: offset,
            ..to(peer, bits(Kind::Pool, incarnation, 0, 0), user)
        };
        let into = &self.sinks.descriptor;
        if later {
            into.triggered_get(&get, self.chain.next())?;
            self.chain.fire()?;
        } else {
            into.get(&get)?;
        }
        Ok(true)
    }

    /// An atomic on a remote word: the transfer from its operand, and the index of its cell.
    fn on_word(
        &mut self,
        peer: u32,
        incarnation: u32,
        word: u64,
        operand: u64,
    ) -> Option<(Transfer, usize)> {
        let cell = self.cells.free.pop()?;
        self.operands.word(cell).store(operand, Ordering::Relaxed);
        let act = Transfer {
            local_offset: (cell * 8) as u64,
            length: 8,
            remote_offset: word * 8,
            ..to(peer, bits(Kind::Words, incarnation, 0, 0), 0)
        };
        Some((act, cell))
    }

    /// The cell at the index of an operand, for the old value.
    fn cell(&self, operand: &Transfer) -> Sink<'_, Memory> {
        Sink {
            descriptor: &self.cells.descriptor,
            offset: operand.local_offset,
        }
    }

    /// The index of a remote word that no other rank changes.
    fn own_word(&self, word: Word) -> u64 {
        u64::from(self.me) * WORDS as u64 + word as u64
    }

    fn add(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let (word, more) = (self.own_word(Word::Sum), self.random.below(1 << 40));
        let Some((mut add, cell)) = self.on_word(peer, incarnation, word, more) else {
            return Ok(false);
        };
        let words = &mut self.session(peer).words;
        words.sum = words.sum.wrapping_add(more);
        add.user_ptr = self.begin("atomic", What::Add { cell }, peer, incarnation);
        self.operand_source
            .atomic(&add, rig::SUM, AckRequest::Full)?;
        Ok(true)
    }

    fn fetch_add(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let (word, more) = (self.own_word(Word::Sum), self.random.below(1 << 40));
        let Some((mut add, cell)) = self.on_word(peer, incarnation, word, more) else {
            return Ok(false);
        };
        let words = &mut self.session(peer).words;
        let expects = Expects::Exactly(words.sum);
        words.sum = words.sum.wrapping_add(more);
        add.user_ptr = self.begin(
            "fetch-atomic",
            What::Fetch { cell, expects },
            peer,
            incarnation,
        );
        self.operand_source
            .fetch_atomic(&add, rig::SUM, self.cell(&add))?;
        Ok(true)
    }

    fn add_shared(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let word = shared_word(self.sessions.len() as u32);
        let Some((mut add, cell)) = self.on_word(peer, incarnation, word, 1) else {
            return Ok(false);
        };
        let expects = Expects::Shared(self.session(peer).words.shared);
        let what = What::Fetch { cell, expects };
        add.user_ptr = self.begin("shared fetch-atomic", what, peer, incarnation);
        self.operand_source
            .fetch_atomic(&add, rig::SUM, self.cell(&add))?;
        Ok(true)
    }

    fn swap(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        let (word, new) = (self.own_word(Word::Swapped), self.random.number());
        let Some((mut swap, cell)) = self.on_word(peer, incarnation, word, new) else {
            return Ok(false);
        };
        let words = &mut self.session(peer).words;
        let before = std::mem::replace(&mut words.swapped, new);
        let expects = Expects::Exactly(before);
        let condition = (self.random.below(2) == 0).then_some(before);
        let (call, operation) = match condition {
            Some(_) => ("conditional swap", AtomicOperation::CswapEq),
            None => ("swap", AtomicOperation::Swap),
        };
        swap.user_ptr = self.begin(call, What::Fetch { cell, expects }, peer, incarnation);
        self.operand_source
            .swap(&swap, operation, condition, self.cell(&swap))?;
        Ok(true)
    }

    fn put_counted(&mut self, peer: u32, incarnation: u32) -> PtlResult<bool> {
        if self.counted.in_flight.is_some() {
            return Ok(false);
        }
        let length = self.length();
        let put = Transfer {
            length,
            ..to(peer, bits(Kind::Counted, incarnation, 0, 0), 0)
        };
        self.session(peer).in_flight += 1;
        self.tally.bytes += length;
        self.counted.begun += 1;
        self.counted.in_flight = Some(Operation::new(
            "counted put",
            What::Counted,
            peer,
            incarnation,
        ));
        self.counted.source.put(&put, AckRequest::Counting)?;
        Ok(true)
    }

    /// Checks whether the counted put has completed.
    pub fn on_counter(&mut self) -> Done {
        let counted = &mut self.counted;
        if counted.in_flight.is_none() {
            return Ok(());
        }
        let count = counted.counter.get().map_err(|why| why.to_string())?;
        if count.success + count.failure > counted.begun {
            return Err(format!("{count:?} of {} counted puts", counted.begun));
        }
        if count.success + count.failure < counted.begun {
            return Ok(());
        }
        if let Some(mut operation) = counted.in_flight.take() {
            if count.failure > counted.failed {
                counted.failed = count.failure;
                operation.fail = NiFail::Undeliverable;
            }
            self.finish(&operation)?;
        }
        Ok(())
    }

    /// An event of an operation of this rank.
    pub fn on_event(&mut self, event: &Event) -> Done {
        let user = event.user_ptr as usize;
        let Some(operation) = self.in_flight.get_mut(&user) else {
            return Err(format!("an event of an unknown operation: {event:?}"));
        };
        if operation.on_event(event)? {
            if let Some(operation) = self.in_flight.remove(&user) {
                return self.finish(&operation);
            }
        }
        Ok(())
    }

    fn finish(&mut self, operation: &Operation) -> Done {
        let session = self.session(operation.peer);
        session.in_flight -= 1;
        let ended_well = operation.fail == NiFail::Ok;
        match operation.what {
            What::Put { slot, sequence } => session.on_acknowledgement(slot, sequence),
            What::Get { sink, .. } => self.sinks.free.push(sink),
            What::Add { cell } | What::Fetch { cell, .. } => self.cells.free.push(cell),
            What::Hello | What::Counted => {}
        }
        if ended_well {
            self.tally.succeeded += 1;
            return self.check(operation);
        }
        self.tally.failed += 1;
        let Operation {
            call,
            peer,
            incarnation,
            fail,
            ..
        } = operation;
        println!("failed {peer} {incarnation} {fail:?} {call}");
        let session = self.session(*peer);
        if *incarnation == 0 || session.incarnation() == Some(*incarnation) {
            session.end();
        }
        Ok(())
    }

    /// Checks the bytes that an operation has fetched.
    fn check(&mut self, operation: &Operation) -> Done {
        match operation.what {
            What::Get { sink, length, sum } => {
                let start = sink * self.sinks.piece;
                let seen = self.sinks.memory.checksum(start..start + length as usize);
                if seen != sum {
                    return Err(format!("{operation} fetched the checksum {seen:08x}"));
                }
            }
            What::Fetch { cell, expects } => {
                let seen = self.cells.memory.word(cell).load(Ordering::Relaxed);
                let right = match expects {
                    Expects::Exactly(value) => seen == value,
                    Expects::Shared(least) => {
                        let words = &mut self.session(operation.peer).words;
                        words.shared = words.shared.max(seen + 1);
                        seen >= least
                    }
                };
                if !right {
                    return Err(format!("{operation} fetched {seen}"));
                }
            }
            What::Hello | What::Put { .. } | What::Add { .. } | What::Counted => {}
        }
        Ok(())
    }

    /// A rank has replied to a hello.
    pub fn on_reply(&mut self, peer: u32, header: u64) {
        let (incarnation, attempt) = bits::halves(header);
        if self.session(peer).on_reply(incarnation, attempt) {
            refill(self.pools[peer as usize], peer, incarnation);
            println!("connected {peer} {incarnation}");
        }
    }

    /// A rank says hello, perhaps in a new incarnation: replies to it.
    pub fn on_hello(&mut self, peer: u32, header: u64) -> Done {
        let (incarnation, attempt) = bits::halves(header);
        let session = self.session(peer);
        if session
            .incarnation()
            .is_some_and(|known| known != incarnation)
        {
            session.end();
        }
        let answer = bits::header(self.incarnation, attempt);
        self.send_control(
            peer,
            bits(Kind::HelloReply, incarnation, self.me, 0),
            answer,
        )
    }

    /// Credits a rank for a checked put: it may use the slot again.
    pub fn credit(&mut self, peer: u32, incarnation: u32, slot: usize, sequence: u32) -> Done {
        let bits = bits(Kind::Credit, incarnation, self.me, slot);
        self.send_control(peer, bits, sequence.into())
    }

    fn send_control(&mut self, peer: u32, bits: u64, header: u64) -> Done {
        let message = Transfer {
            hdr_data: header,
            ..to(peer, bits, 0)
        };
        self.silent
            .put(&message, AckRequest::None)
            .map_err(|why| format!("an answer to rank {peer}: {why}"))
    }

    /// Reports an operation, or a credit, that is overdue.
    pub fn overdue(&self, limit: Duration) -> Done {
        let all = self.in_flight.values().chain(&self.counted.in_flight);
        if let Some(operation) = all.into_iter().find(|o| o.is_older(limit)) {
            return Err(format!("overdue: {operation}"));
        }
        for (peer, session) in self.sessions.iter().enumerate() {
            if let Some(sequence) = session.uncredited(limit) {
                return Err(format!(
                    "put {sequence} to rank {peer} was acknowledged and never seen there"
                ));
            }
        }
        Ok(())
    }
}

/// A transfer of no bytes to a rank's entry.
fn to(peer: u32, bits: u64, user_ptr: usize) -> Transfer {
    Transfer {
        user_ptr,
        ..rig::transfer(peer, bits, 0)
    }
}

/// The words of a rank, for its atomics.
#[derive(Clone, Copy)]
enum Word {
    Sum,
    Swapped,
}

/// Atomics in flight at a time: one cell each.
const CELLS: usize = WINDOW;
