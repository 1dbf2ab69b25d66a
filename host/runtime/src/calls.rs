//! The engine's commands, one by one, each with what it causes at once.

use crate::core::Core;
use crate::direct_entries::DirectEntry;
use crate::library::Library;
use crate::owner::Owner;
use crate::queue::MAX_EVENTS;
use lintel_bridge::Tables;
use lintel_engine4::{
    Deferred, DescriptorSpec, EntrySpec, Interface, MOST_EVENTS, Registers, SearchOp, Transfer,
};
use lintel_lock::MutexGuard;
use lintel_presence::shareable;
use lintel_snapshot::Awaited;
use lintel_types::{
    CountingEvent, Error, Handle, Kind, List, PortalIndex, ProcessId, PtOptions, QueueIndex, Result,
};
use std::sync::atomic::Ordering;

/// Bytes of the owner's memory that are lent as copies, beyond which further
/// operations wait for the answers to earlier ones.
pub(crate) const MAX_STAGED: u64 = 64 << 20;

impl<O: Owner> Library<O> {
    /// As [`with`](Self::with), for a command that ends something: where that is in
    /// use, what has arrived is looked at, and then it is tried once more.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn end_with<R>(
        &self,
        handle: Handle,
        mut command: impl FnMut(&mut Interface<O::Span>) -> Result<R>,
    ) -> Result<R> {
        match self.with(handle, |interface, _| command(interface)) {
            Err(Error::InUse | Error::PtInUse) => {
                self.with_core(Core::progress);
                self.with(handle, |interface, _| command(interface))
            }
            done => done,
        }
    }

    /// Starts a data movement. While too many operations await their answers, or too much
    /// waits for the target, waits.
    ///
    /// The caller gives the transfer as often as it is needed: one that is never in memory,
    /// with a closure of each caller's own, for which the compiler specializes the path.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start_by(&self, transfer: impl Fn() -> Transfer) -> Result<()> {
        self.check_alive()?;
        let mut guard = self.core.lock();
        let length = transfer().length;
        let may_carry_out = guard
            .as_ref()
            .is_some_and(|core| core.may_carry_out(length));
        let started = if may_carry_out {
            keep_aside();
            // A copy for all but the common path, which has none in memory.
            self.start_near(guard, &{ transfer() })
        } else {
            if self.repeats.load(Ordering::Relaxed) {
                // Nothing is direct any more.
                self.repeats.store(false, Ordering::Relaxed);
            }
            if let Some(core) = guard.as_mut() {
                if core.prepares_send(transfer().verb, length) {
                    self.prepare_send(core, &{ transfer() });
                }
            }
            self.with_guard(guard, transfer().md(), |interface, effects| {
                interface.start_by_message(&transfer(), effects)
            })
        };
        match started {
            Err(Error::NoSpace) => self.start_later(&transfer()),
            done => done,
        }
    }

    /// As [`start_by`](Self::start_by), where peers have direct entries.
    #[inline(never)]
    fn start_near(
        &self,
        mut guard: MutexGuard<'_, Option<Core<O>>>,
        transfer: &Transfer,
    ) -> Result<()> {
        let Some(core) = guard.as_mut() else {
            return Err(Error::NoInit);
        };
        if core.prepares_send(transfer.verb, transfer.length) {
            self.prepare_send(core, transfer);
        }
        if core.is_away(transfer) {
            return self.start_directly(guard, transfer);
        }
        if !core.looks_at_direct() {
            self.repeats.store(false, Ordering::Relaxed);
            return self.with_guard(guard, transfer.md(), |interface, effects| {
                interface.start_by_message(transfer, effects)
            });
        }
        if let Some(is_counted) = self.carry_out(core, transfer) {
            if is_counted {
                // What the count has triggered may be for this process itself.
                let after = self.after_call(core);
                drop(guard);
                self.follow_up(after);
            }
            return Ok(());
        }
        self.start_directly(guard, transfer)
    }

    /// Carries out an operation that is like an earlier one, or the first that others may be like;
    /// nothing, with nothing done, for others. Whether it was counted.
    #[inline(never)]
    fn carry_out(&self, core: &mut Core<O>, transfer: &Transfer) -> Option<bool> {
        let counted = core.repeat(transfer).or_else(|| core.prepare(transfer));
        // Perhaps this has shown that nothing is direct any more.
        let repeats = core.looks_at_direct();
        self.repeats.store(repeats, Ordering::Relaxed);
        counted
    }

    #[cold]
    #[inline(never)]
    fn prepare_send(&self, core: &mut Core<O>, transfer: &Transfer) {
        if core.prepare_send(transfer).is_some() {
            self.repeats_sends.store(true, Ordering::Relaxed);
        }
    }

    /// As [`start_by`](Self::start_by), if the host may carry it out.
    #[inline(never)]
    fn start_directly(
        &self,
        guard: MutexGuard<'_, Option<Core<O>>>,
        transfer: &Transfer,
    ) -> Result<()> {
        self.with_guard(guard, transfer.md(), |interface, effects| {
            interface.start_directly(transfer, effects)
        })
    }

    #[cold]
    #[inline(never)]
    fn start_later(&self, transfer: &Transfer) -> Result<()> {
        loop {
            self.wait_for_an_answer(transfer.md())?;
            match self.with(transfer.md(), |interface, effects| {
                interface.start(transfer, effects)
            }) {
                Err(Error::NoSpace) => {}
                done => return done,
            }
        }
    }

    fn wait_for_an_answer(&self, by: Handle) -> Result<()> {
        let under_way = |interface: &mut Interface<O::Span>| interface.operations_under_way();
        let full = self.with(by, |interface, _| Ok(under_way(interface)))?;
        let blocked = self.with_core(|core| core.transports.take_blocked());
        self.until(|| {
            let has_room = match blocked.flatten() {
                Some(by) => self.with_core(|core| core.transports.has_room(by)),
                // If none is under way any more, they have ended since.
                None if full == 0 => None,
                None => Some(self.with(by, |interface, _| Ok(under_way(interface)))? < full),
            };
            Ok((has_room != Some(false)).then_some(()))
        })
    }

    /// Makes progress until a command gives something.
    ///
    /// # Errors
    /// The command's, and those of waiting.
    pub fn until<R>(&self, command: impl FnMut() -> Result<Option<R>>) -> Result<R> {
        self.wait(None, || Awaited::Other, command)?
            .ok_or(Error::Fail)
    }

    /// PtlEQAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_eqs` or what a queue can hold.
    pub fn queue_alloc(&self, interface: Handle, count: u64) -> Result<Handle> {
        if count > MAX_EVENTS {
            return Err(Error::NoSpace);
        }
        self.with(interface, |interface, effects| {
            let handle = interface.queue_alloc(count)?;
            if let Err(error) = effects.tables.begin_queue(handle, count) {
                interface.queue_free(handle)?;
                return Err(error);
            }
            Ok(handle)
        })
    }

    /// PtlEQFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    pub fn queue_free(&self, handle: Handle) -> Result<()> {
        self.with(handle, |interface, effects| {
            interface.queue_free(handle)?;
            effects.tables.end_queue(handle);
            // For those who wait for it.
            effects.transports.activity = true;
            Ok(())
        })
    }

    /// PtlCTAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_cts`.
    pub fn counter_alloc(&self, interface: Handle) -> Result<Handle> {
        self.with(interface, |interface, effects| {
            let handle = interface.counter_alloc(effects)?;
            effects.tables.begin_counter(handle);
            Ok(handle)
        })
    }

    /// PtlCTFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_free(&self, handle: Handle) -> Result<()> {
        let was_direct = self.with(handle, |interface, effects| {
            interface.counter_free(handle)?;
            effects.tables.end_counter(handle);
            // For those who wait for it.
            effects.transports.activity = true;
            let counts = |entry: &DirectEntry| entry.counts_at(handle);
            Ok(effects.transports.withdraw(counts))
        })?;
        if was_direct {
            // No entry is published before peers have left these: most often they have.
            self.with_core(Core::settle_direct);
        }
        Ok(())
    }

    /// PtlNIStatus.
    ///
    /// # Errors
    /// `ArgInvalid` where the interface isn't open, as for all that follow.
    pub fn registers(&self, interface: Handle) -> Result<Registers> {
        self.with(interface, |interface, _| Ok(interface.registers()))
    }

    /// The interface handle that a live object's handle belongs to (PtlNIHandle).
    ///
    /// # Errors
    /// `ArgInvalid` where that interface isn't open, or has no such object.
    pub fn interface_of(&self, handle: Handle) -> Result<Handle> {
        if handle.is(Kind::Interface) {
            return self.with(handle, |_, _| Ok(handle));
        }
        self.with(handle, |interface, _| interface.check_live(handle))?;
        self.with_core(|core| {
            let number = handle.interface();
            let opened = core.interfaces[number.position()]
                .as_ref()
                .ok_or(Error::ArgInvalid)?;
            Ok(Handle::new(Kind::Interface, number, opened.generation, 0))
        })
        .unwrap_or(Err(Error::ArgInvalid))
    }

    /// PtlSetMap.
    ///
    /// # Errors
    /// As `Interface::set_map`.
    pub fn set_map(&self, interface: Handle, map: Vec<ProcessId>) -> Result<()> {
        self.with(interface, |interface, _| interface.set_map(&map))
    }

    /// PtlGetMap.
    ///
    /// # Errors
    /// As `Interface::map`.
    pub fn map(&self, interface: Handle) -> Result<Vec<ProcessId>> {
        self.with(interface, |interface, _| interface.map().map(<[_]>::to_vec))
    }

    /// PtlGetId.
    ///
    /// # Errors
    /// `ArgInvalid`
    pub fn id(&self, interface: Handle) -> Result<ProcessId> {
        self.with(interface, |interface, _| Ok(interface.id()))
    }

    /// PtlGetPhysId.
    ///
    /// # Errors
    /// `ArgInvalid`
    pub fn physical_id(&self, interface: Handle) -> Result<ProcessId> {
        self.with(interface, |interface, _| Ok(interface.physical_id()))
    }

    /// PtlGetUid.
    ///
    /// # Errors
    /// `ArgInvalid`
    pub fn uid(&self, interface: Handle) -> Result<u32> {
        self.with(interface, |interface, _| Ok(interface.uid()))
    }

    /// PtlPTAlloc. The queue gets room for what flow control reports.
    ///
    /// # Errors
    /// As `Interface::portal_alloc`.
    pub fn portal_alloc(
        &self,
        interface: Handle,
        options: PtOptions,
        queue: Handle,
        wanted: u32,
    ) -> Result<PortalIndex> {
        self.with(interface, |interface, effects| {
            let index = interface.portal_alloc(options, queue, wanted)?;
            if queue != Handle::EQ_NONE {
                let queue = QueueIndex(queue.index());
                let portals = interface.flow_controlled_portals(queue);
                // What a message may cause, and the disabling, for each.
                let reserve = portals * (MOST_EVENTS as usize + 1);
                effects.tables.set_reserve(queue, reserve);
            }
            Ok(index)
        })
    }

    /// PtlPTFree.
    ///
    /// # Errors
    /// As `Interface::portal_free`.
    pub fn portal_free(&self, interface: Handle, index: PortalIndex) -> Result<()> {
        self.end_with(interface, |interface| interface.portal_free(index))
    }

    /// PtlPTDisable; true once no message is landing any more.
    ///
    /// # Errors
    /// As `Interface::portal_disable`.
    pub fn portal_disable_begin(&self, interface: Handle, index: PortalIndex) -> Result<bool> {
        self.with(interface, |_, _| Ok(()))?;
        let disabled = self.with_core(|core| core.disable_portal(interface.interface(), index));
        disabled.unwrap_or(Err(Error::NoInit))
    }

    /// PtlPTEnable.
    ///
    /// # Errors
    /// As `Interface::portal_enable`.
    pub fn portal_enable(&self, interface: Handle, index: PortalIndex) -> Result<()> {
        self.with(interface, |interface, effects| {
            interface.portal_enable(index)?;
            effects.publish_portal(interface, index);
            Ok(())
        })
    }

    /// PtlMDBind.
    ///
    /// # Errors
    /// As `Interface::descriptor_bind`.
    #[inline]
    pub fn descriptor_bind(
        &self,
        interface: Handle,
        spec: DescriptorSpec<O::Span>,
    ) -> Result<Handle> {
        self.with(interface, |interface, _| interface.descriptor_bind(spec))
    }

    /// PtlMDRelease.
    ///
    /// # Errors
    /// As `Interface::descriptor_release`.
    #[inline]
    pub fn descriptor_release(&self, descriptor: Handle) -> Result<()> {
        self.end_with(descriptor, |interface| {
            interface.descriptor_release(descriptor)
        })
    }

    /// PtlLEAppend, PtlMEAppend. A counter that is named must be one, also where
    /// nothing is counted; a program that fills nothing in leaves a 0 there.
    ///
    /// # Errors
    /// As `Interface::append`; `ArgInvalid` for a counter that isn't live.
    #[inline]
    pub fn append(
        &self,
        interface: Handle,
        spec: EntrySpec<O::Span>,
        list: List,
    ) -> Result<Handle> {
        let appended = self.with(
            interface,
            #[inline(always)]
            |interface, effects| {
                if !matches!(spec.counter, Handle::CT_NONE | Handle(0)) {
                    interface.counter_value(spec.counter)?;
                }
                let entry = interface.append(&spec, list, effects)?;
                if shareable().is_used() {
                    effects.publish_entry(interface, entry);
                }
                Ok(entry)
            },
        );
        if shareable().converts() {
            appended.inspect(|entry| self.share_entry(*entry))
        } else {
            appended
        }
    }

    /// PtlLEUnlink, PtlMEUnlink.
    ///
    /// # Errors
    /// As `Interface::unlink`; `InUse` also if a peer accesses its memory and was stopped.
    #[inline]
    pub fn unlink(&self, entry: Handle) -> Result<()> {
        let unlinked = self.with(entry, |interface, effects| {
            let is_direct = shareable().is_used() || !effects.transports.direct.is_empty();
            match is_direct {
                true => Ok(None),
                false => Ok(Some(interface.unlink(entry))),
            }
        })?;
        match unlinked {
            // What lands meanwhile may have the entry published.
            None | Some(Err(Error::InUse)) => self.unlink_direct(entry),
            Some(unlinked) => unlinked,
        }
    }

    /// PtlLESearch, PtlMESearch.
    ///
    /// # Errors
    /// As `Interface::search`.
    pub fn search(&self, interface: Handle, spec: EntrySpec<O::Span>, op: SearchOp) -> Result<()> {
        self.with(interface, |interface, effects| {
            interface.search(spec, op, effects)
        })
    }

    /// PtlCTSet.
    ///
    /// # Errors
    /// As `Interface::counter_set`.
    #[inline]
    pub fn counter_set(&self, counter: Handle, value: CountingEvent) -> Result<()> {
        // What was counted before is counted.
        self.with_core(Core::count_any_direct);
        self.with(counter, |interface, effects| {
            interface.counter_set(counter, value, effects)
        })
    }

    /// PtlCTInc.
    ///
    /// # Errors
    /// As `Interface::counter_inc`.
    #[inline]
    pub fn counter_inc(&self, counter: Handle, by: CountingEvent) -> Result<()> {
        self.with(counter, |interface, effects| {
            interface.counter_inc(counter, by, effects)
        })
    }

    /// PtlCTCancelTriggered.
    ///
    /// # Errors
    /// As `Interface::cancel_triggered`.
    pub fn cancel_triggered(&self, counter: Handle) -> Result<()> {
        self.with(counter, |interface, _| interface.cancel_triggered(counter))
    }

    /// The triggered operations, but for `PtlTriggeredMEAppend`.
    ///
    /// # Errors
    /// As `Interface::trigger`.
    pub fn trigger(
        &self,
        operation: Deferred<O::Span>,
        counter: Handle,
        threshold: u64,
    ) -> Result<()> {
        if let Deferred::Unlink(entry) = operation {
            self.bar_direct(entry)?;
        }
        self.have_counted(counter)?;
        self.with(counter, |interface, effects| {
            interface.trigger(operation, counter, threshold, effects)
        })?;
        self.withdraw_published(counter);
        Ok(())
    }

    /// From now on all that the counter counts is counted here, and soon: an operation waits for it.
    fn have_counted(&self, counter: Handle) -> Result<()> {
        self.with_core(|core| core.wakeup.require_acknowledgements());
        self.withdraw_counter(counter)
    }

    /// PtlTriggeredMEAppend.
    ///
    /// # Errors
    /// As `Interface::trigger_append`.
    pub fn trigger_append(
        &self,
        interface: Handle,
        spec: EntrySpec<O::Span>,
        list: List,
        counter: Handle,
        threshold: u64,
    ) -> Result<Handle> {
        self.have_counted(counter)?;
        let appended = self.with(interface, |interface, effects| {
            interface.trigger_append(spec, list, counter, threshold, effects)
        })?;
        self.withdraw_published(counter);
        Ok(appended)
    }

    /// A data movement, for an owner who waits elsewhere.
    ///
    /// # Errors
    /// As `Interface::start`; `NoSpace` while too much awaits its answers.
    pub fn try_start(&self, transfer: Transfer) -> Result<()> {
        let md = transfer.md();
        if self.with_core(|core| core.staged.bytes() > MAX_STAGED) == Some(true) {
            self.with_core(Core::progress);
            return Err(Error::NoSpace);
        }
        self.with(md, |interface, effects| interface.start(&transfer, effects))
    }
}

/// Has the compiler favour paths that don't call this: a message then saves no register for the
/// sake of operations on direct entries, and these take no more instructions.
#[cold]
#[inline]
fn keep_aside() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Network, PATIENCE, Peer, put_of};
    use lintel_types::{AckRequest, NiFail};
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    /// Starts a put of no bytes, which awaits nothing.
    fn put(one: &Peer, two: &Peer) -> Result<()> {
        let mut transfer = put_of(one.descriptor, two.me, 0);
        transfer.ack = AckRequest::None;
        one.library.with(one.descriptor, |interface, effects| {
            interface.start(&transfer, effects)
        })
    }

    #[test]
    fn a_caller_that_was_refused_finds_a_backlog_that_was_sent_meanwhile() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.is_held.store(true, Ordering::SeqCst);
        let refused = (0..4).find_map(|_| put(&one, &two).err());
        assert_eq!(refused, Some(Error::NoSpace));
        network.is_held.store(false, Ordering::SeqCst);
        one.library.with_core(|core| core.transports.flush());
        let has_returned = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let waited = one.library.wait_for_an_answer(one.descriptor);
                has_returned.store(waited.is_ok(), Ordering::SeqCst);
            });
            let until = Instant::now() + PATIENCE;
            while !has_returned.load(Ordering::SeqCst) && Instant::now() < until {
                std::thread::yield_now();
            }
            // One that still waits ends here.
            one.library.abort();
        });
        assert!(has_returned.load(Ordering::SeqCst));
        (0..2).for_each(|_| assert_eq!(two.event().ni_fail, NiFail::Ok));
    }
}
