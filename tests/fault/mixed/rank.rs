//! A rank's share of a plan, on the library, and the comparison with the oracle.

use crate::Done;
use crate::oracle::{AREA, AREA_BYTES, Oracle, PART, SOURCE_BYTES, source_bytes};
use crate::plan::{Action, COUNTERS, PORTALS, Plan, QUEUE, VARIANTS, descriptor};
use lintel_engine4::{EntrySpec, Transfer};
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::{CountingEvent, Event, Handle, Limits};
use lintel_wire::Verb;
use portals4_abi::{
    CallError, Counter, DescriptorSpec, Interface, InterfaceSpec, Queue, Sink, Trigger, options,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of each part that are compared in every round; the rest is at the end.
const OFTEN: u64 = 16 << 10;

struct Rank {
    index: usize,
    matching: bool,
    interface: Interface,
    queue: Queue,
    counters: Vec<Counter>,
    descriptors: BTreeMap<u32, Descriptor>,
    entries: BTreeMap<u32, Handle>,
    area: Memory,
    sink: Memory,
    events: Vec<Event>,
}

/// Takes part in so many rounds of the sequence of a seed.
pub fn run(index: usize, matching: bool, seed: u64, rounds: u64) -> Done {
    let mut rank = Rank::new(index, matching, seed).map_err(|why| why.to_string())?;
    let limits = rank.interface.limits().copied().unwrap_or(Limits::DEFAULT);
    let (mut oracle, mut plan) = (Oracle::new(matching, limits, seed), Plan::new(seed));
    let furniture = plan.furnish();
    rank.go_through(&furniture, &mut oracle)?;
    for round in 0..rounds {
        let commands = plan.commands();
        let commanded = rank.go_through(&commands, &mut oracle);
        let operations = plan.operations(&oracle);
        commanded
            .and_then(|()| rank.go_through(&operations, &mut oracle))
            .and_then(|()| rank.compare_memory(&oracle, OFTEN))
            .and_then(|()| barrier())
            .map_err(|why| format!("seed {seed}, round {round}: {why}"))?;
    }
    rank.compare_memory(&oracle, PART)?;
    println!("done");
    // A peer may still look at its own memory, not at this one.
    barrier()
}

/// Waits until the other rank is there, too.
fn barrier() -> Done {
    println!("at");
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    match read {
        Ok(1..) => Ok(()),
        other => Err(format!("no barrier: {other:?}")),
    }
}

fn checked(call: &str, code: i32) -> Done {
    (code == 0)
        .then_some(())
        .ok_or_else(|| format!("{call} returned {code}"))
}

impl Rank {
    fn new(index: usize, matching: bool, seed: u64) -> portals4_abi::Result<Rank> {
        let matches = match matching {
            true => options::NI_MATCHING,
            false => options::NI_NO_MATCHING,
        };
        let pid = rig::process(index as u32).pid;
        let interface = Interface::open(&InterfaceSpec {
            options: matches | options::NI_PHYSICAL,
            pid,
            limits: None,
        })?;
        interface.abandon();
        let queue = interface.queue(4096)?;
        let counters: portals4_abi::Result<Vec<Counter>> =
            COUNTERS.iter().map(|_| interface.counter()).collect();
        let counters = counters?;
        for portal in PORTALS {
            std::mem::forget(interface.portal(portal.into(), Some(&queue))?);
        }
        let source = Memory::new(SOURCE_BYTES as usize);
        for (at, bytes) in source_bytes(index, seed).chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(bytes.try_into().expect("there are eight"));
            source.word(at).store(word, Ordering::Relaxed);
        }
        let sink = Memory::new(descriptor(0, true).1.buffer.length() as usize);
        let mut descriptors = BTreeMap::new();
        for (variant, is_sink) in (0..VARIANTS).flat_map(|v| [(v, false), (v, true)]) {
            let (name, spec) = descriptor(variant, is_sink);
            let counter = COUNTERS.iter().position(|counter| *counter == spec.counter);
            let spec = DescriptorSpec {
                queue: (spec.queue == QUEUE).then_some(&queue),
                counter: counter.map(|counter| &counters[counter]),
                options: spec.options.bits(),
            };
            let memory = if is_sink { sink } else { source };
            descriptors.insert(name.0, interface.bind(memory, &spec)?);
        }
        Ok(Rank {
            index,
            matching,
            queue,
            counters,
            descriptors,
            entries: BTreeMap::new(),
            area: Memory::exposed(AREA_BYTES as usize),
            sink,
            events: Vec::new(),
            interface,
        })
    }

    /// Does its share of the actions, waits for all that must come of them, and for the peer.
    fn go_through(&mut self, actions: &[(usize, Action)], oracle: &mut Oracle) -> Done {
        let index = self.index;
        for (_, action) in actions.iter().filter(|(at, _)| *at == index) {
            self.act(action)
                .map_err(|why| format!("{why}, by {action:?}"))?;
        }
        for (at, action) in actions {
            oracle.apply(*at, action);
        }
        self.settle(oracle)?;
        barrier()?;
        // What came too often has come by now.
        self.settle(oracle).and_then(|()| barrier())?;
        self.compare_events(oracle)
    }

    fn act(&mut self, action: &Action) -> Done {
        let ni = self.interface.handle();
        let words = |why: CallError| why.to_string();
        match action {
            Action::Start(transfer) => self.start(transfer).map_err(words),
            Action::Append(name, spec) => self.append(*name, spec),
            Action::Unlink(name) => self.unlink(*name),
            Action::Disable(portal) => checked(
                "PtlPTDisable",
                portals::PtlPTDisable(ni, u32::from(*portal)),
            ),
            Action::Enable(portal) => {
                checked("PtlPTEnable", portals::PtlPTEnable(ni, u32::from(*portal)))
            }
            Action::Set(counter, value) => {
                let counter = self.counter(*counter).handle();
                checked("PtlCTSet", portals::PtlCTSet(counter, *value))
            }
            Action::Increment(counter) => self.counter(*counter).increment().map_err(words),
            Action::TriggerIncrement(counter, on, threshold) => {
                let trigger = self.trigger(*on, *threshold);
                let triggered = self.counter(*counter).triggered_increment(trigger);
                triggered.map_err(words)
            }
            Action::TriggerPut(put, on, threshold) => {
                let trigger = self.trigger(*on, *threshold);
                let source = &self.descriptors[&put.source.0];
                let put_later = source.triggered_put(&named(put), put.ack, trigger);
                put_later.map_err(words)
            }
        }
    }

    fn counter(&self, name: Handle) -> &Counter {
        let index = COUNTERS.iter().position(|counter| *counter == name);
        &self.counters[index.expect("the plan knows these")]
    }

    fn trigger(&self, on: Handle, threshold: u64) -> Trigger<'_> {
        Trigger {
            counter: self.counter(on),
            threshold,
        }
    }

    fn start(&self, transfer: &Transfer) -> portals4_abi::Result<()> {
        let source = &self.descriptors[&transfer.source.0];
        let sink = &self.descriptors[&transfer.sink.0];
        let (t, how) = (named(transfer), (transfer.operation, transfer.datatype));
        let old = Sink {
            descriptor: sink,
            offset: transfer.sink_offset,
        };
        match transfer.verb {
            Verb::Put => source.put(&t, transfer.ack),
            Verb::Get => sink.get(&portals4_abi::Transfer {
                local_offset: transfer.sink_offset,
                ..t
            }),
            Verb::Atomic => source.atomic(&t, how, transfer.ack),
            Verb::FetchAtomic => source.fetch_atomic(&t, how, old),
            Verb::Swap => {
                let operand = transfer.operand[..8].try_into().expect("there are eight");
                let operand = Some(u64::from_ne_bytes(operand));
                source.swap(&t, transfer.operation, operand, old)
            }
        }
    }

    fn append(&mut self, name: Handle, spec: &EntrySpec<Ghost>) -> Done {
        let Buffer::Contiguous(span) = &spec.buffer else {
            return Err("the plan has no I/O vectors".into());
        };
        let start = self
            .area
            .address()
            .wrapping_add((span.address() - AREA) as usize);
        let counter = COUNTERS
            .contains(&spec.counter)
            .then(|| self.counter(spec.counter).handle());
        let me = portals::Me {
            start: start.cast(),
            length: span.length(),
            ct_handle: counter.unwrap_or(Handle::CT_NONE).0,
            uid: spec.uid,
            options: spec.options.bits(),
            match_id: spec.source,
            match_bits: spec.match_bits,
            ignore_bits: spec.ignore_bits,
            min_free: spec.min_free,
        };
        let le = portals::Le {
            start: me.start,
            length: me.length,
            ct_handle: me.ct_handle,
            uid: me.uid,
            options: me.options,
        };
        let (ni, portal) = (self.interface.handle(), u32::from(spec.portal));
        let user_ptr = std::ptr::without_provenance_mut(spec.user_ptr as usize);
        let mut entry = Handle::INVALID;
        let code = match self.matching {
            // SAFETY: structure and output outlive the call, the memory the process.
            true => unsafe { portals::PtlMEAppend(ni, portal, &me, 0, user_ptr, &mut entry) },
            // SAFETY: as above.
            false => unsafe { portals::PtlLEAppend(ni, portal, &le, 0, user_ptr, &mut entry) },
        };
        self.entries.insert(name.0, entry);
        checked("PtlMEAppend", code)
    }

    fn unlink(&mut self, name: Handle) -> Done {
        let entry = self.entries.remove(&name.0).ok_or("it was never linked")?;
        checked(
            "PtlMEUnlink",
            match self.matching {
                true => portals::PtlMEUnlink(entry),
                false => portals::PtlLEUnlink(entry),
            },
        )
    }

    /// Waits until the counters show what the oracle expects, and as many events have come.
    fn settle(&mut self, oracle: &Oracle) -> Done {
        let until = Instant::now() + PATIENCE;
        for (name, counter) in COUNTERS.iter().zip(&self.counters) {
            let expected = oracle.value(self.index, *name);
            loop {
                let seen = counter.get().map_err(|why| why.to_string())?;
                if seen == expected {
                    break;
                }
                if Instant::now() > until || is_beyond(seen, expected) {
                    return Err(format!("counter {name:?} shows {seen:?}, not {expected:?}"));
                }
                let reached = counter.poll(expected.success, 1);
                reached.map_err(|why| why.to_string())?;
            }
        }
        let expected = oracle.events(self.index).len();
        while self.events.len() < expected && Instant::now() < until {
            let event = rig::next_event(&self.queue, 1).map_err(|why| why.to_string())?;
            self.events.extend(event);
        }
        while let Ok(Some(event)) = rig::next_event(&self.queue, 0) {
            self.events.push(event);
        }
        Ok(())
    }

    /// The events must be the same; their order is free, since no rule gives one.
    fn compare_events(&mut self, oracle: &mut Oracle) -> Done {
        let area = self.area.address().expose_provenance() as u64;
        let mut seen: Vec<String> = Vec::new();
        for mut event in self.events.drain(..) {
            if event.start != 0 {
                event.start = event.start - area + AREA;
            }
            seen.push(shown(&event));
        }
        let mut expected: Vec<String> = oracle.take_events(self.index).iter().map(shown).collect();
        oracle.take_events(1 - self.index);
        seen.sort();
        expected.sort();
        let differs = seen
            .iter()
            .zip(&expected)
            .find(|(seen, expected)| seen != expected);
        match differs {
            Some((seen, expected)) => Err(format!("an event is {seen}, not {expected}")),
            None if seen.len() != expected.len() => Err(format!(
                "{} events, not {}: {seen:?}, {expected:?}",
                seen.len(),
                expected.len()
            )),
            None => Ok(()),
        }
    }

    /// Compares the first so many bytes that the entries of each portal table entry lie in.
    fn compare_memory(&self, oracle: &Oracle, bytes: u64) -> Done {
        let (area, sink) = oracle.memory(self.index);
        for part in (0..AREA_BYTES).step_by(PART as usize) {
            compare(self.area, area, part..part + bytes)?;
        }
        compare(self.sink, sink, 0..bytes.min(sink.len() as u64))
    }
}

fn compare(memory: Memory, expected: &[u8], range: Range<u64>) -> Done {
    let range = range.start as usize..range.end as usize;
    for (at, expected) in (range.start..).step_by(8).zip(expected[range].chunks(8)) {
        let seen = memory.word(at / 8).load(Ordering::Relaxed).to_ne_bytes();
        if seen[..expected.len()] != *expected {
            return Err(format!("{seen:?} at {at:#x}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Whether a counter has counted what will never come; a trigger may count still.
fn is_beyond(seen: CountingEvent, expected: CountingEvent) -> bool {
    seen.success > expected.success || seen.failure > expected.failure
}

/// What the binding calls that transfer.
fn named(transfer: &Transfer) -> portals4_abi::Transfer {
    portals4_abi::Transfer {
        local_offset: transfer.source_offset,
        length: transfer.length,
        target: transfer.target,
        portal: transfer.portal,
        match_bits: transfer.match_bits,
        remote_offset: transfer.remote_offset,
        user_ptr: transfer.user_ptr as usize,
        hdr_data: transfer.hdr_data,
    }
}

/// What doesn't depend on the machine.
fn shown(event: &Event) -> String {
    let Event {
        kind,
        user_ptr,
        hdr_data,
        rlength,
        mlength,
        remote_offset,
        start,
        ni_fail,
        ..
    } = event;
    format!(
        "{kind:?} {ni_fail:?} of {user_ptr}: {mlength} of {rlength} bytes at {remote_offset}, \
         {start:#x}, {hdr_data}"
    )
}
