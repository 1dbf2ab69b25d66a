//! When entries of this process become direct, and what waits until peers have left them.

use crate::carry_out::MAX_ATOMIC;
use crate::core::Core;
use crate::direct_entries::DirectEntry;
use crate::effects::Effects;
use crate::library::Library;
use crate::log::{Level, log};
use crate::mover::Mover;
use crate::owner::Owner;
use crate::resources::Placement;
use crate::thread::is_alone;
use lintel_claim::{Claim, Key};
use lintel_engine4::Interface;
use lintel_nal::Origin;
use lintel_nal_shm::MAX_DIRECT;
use lintel_presence::shareable;
use lintel_types::{Error, Handle, InterfaceNumber, PortalIndex, ProcessId, Result};
use lintel_wire::{Message, Request, Verb, Words};
use std::time::{Duration, Instant};

/// How long a peer may be in the middle of a copy.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(2);
/// As many messages as lie in all rings of this process at most.
const MOST_IN_RINGS: usize = 1 << 17;
/// Looks after which a thread that waits for a peer's copy sleeps between them, and how long.
const LOOKS: u32 = 100;
const SLEEP: Duration = Duration::from_micros(50);

impl<O: Owner> Effects<'_, O> {
    /// Lets peers access an entry by themselves, if they may and can map its memory.
    #[cold]
    pub(crate) fn publish_entry(&mut self, interface: &Interface<O::Span>, handle: Handle) {
        self.publish_with(interface, handle, None);
    }

    /// Lets peers have the system copy for the entry that takes a put or a get first, if they may
    /// access it by themselves but can't map its memory, or it posts events. The key of the
    /// interface lets them.
    fn publish_taking(
        &mut self,
        interface: &Interface<O::Span>,
        from: ProcessId,
        request: &Request,
    ) {
        let moves = matches!(request.verb, Verb::Put | Verb::Get) && request.length > 0;
        if !moves || from == self.transports.me || from.nid != self.transports.me.nid {
            return;
        }
        if let Some(entry) = interface.entry_taking(from, request) {
            self.publish_with(interface, entry, self.lease.key());
        }
    }

    fn publish_with(&mut self, interface: &Interface<O::Span>, handle: Handle, key: Option<Key>) {
        let limits = interface.limits();
        let is_limited = limits.max_msg_size < MAX_DIRECT
            || limits.max_atomic_size < MAX_ATOMIC as u64
            || limits.max_fetch_atomic_size < MAX_ATOMIC as u64;
        let is_accelerated = O::PLACEMENT == Placement::Accelerated;
        if !is_accelerated || is_limited || !self.transports.direct.may_publish(handle) {
            return;
        }
        let Some(spec) = interface.direct_entry(handle) else {
            return;
        };
        if let Some(&[span]) = O::Mover::as_claims(&[spec.span]) {
            // Where the table is full, or the memory out of reach, peers send messages.
            let transports = &mut *self.transports;
            if let Some(near) = transports.nal.near_mut() {
                let direct = &mut transports.direct;
                let published = direct.publish(near, handle, &spec.over(span), key);
                // Its count is one more to look at.
                transports.activity |= published.is_some();
            }
        }
    }

    /// An entry isn't published from now on.
    fn bar(&mut self, interface: &Interface<O::Span>, entry: Handle) {
        // Those that have been unlinked since are forgotten.
        let number = interface.number();
        let is_live = |e: Handle| e.interface() != number || interface.portal_of(e).is_ok();
        self.transports.direct.bar(entry, is_live);
    }

    /// The memory of an entry, if peers might access it by themselves but can't map it.
    fn span_to_share(&self, interface: &Interface<O::Span>, entry: Handle) -> Option<Claim> {
        let spec = interface.direct_entry(entry).filter(|spec| !spec.posts)?;
        let &[span] = O::Mover::as_claims(&[spec.span])? else {
            return None;
        };
        let is_shareable = shareable().find(span.address(), span.len()).is_some();
        (!is_shareable).then_some(span)
    }

    /// As [`publish_entry`](Self::publish_entry), for each entry of a portal table entry.
    pub(crate) fn publish_portal(&mut self, interface: &Interface<O::Span>, portal: PortalIndex) {
        if shareable().is_used() {
            let entries: Vec<Handle> = interface.entries_of(portal).collect();
            for entry in entries {
                self.publish_entry(interface, entry);
            }
        }
    }
}

impl<O: Owner> Core<O> {
    /// Its initiator could have carried out a request by itself, had the entry been published:
    /// the next ones may.
    #[cold]
    #[inline(never)]
    pub(crate) fn offer_private(&mut self, origin: Origin, words: &Words) {
        if let Ok(Message::Request(request)) = Message::parse(words) {
            if let Some((interface, mut effects)) = self.interface(request.interface) {
                effects.publish_taking(interface, origin.process, &request);
            }
        }
    }

    /// Has the memory of an entry adopted if it is a segment of the program's, or else converted,
    /// if peers could then access it by themselves. It is converted only while nothing is under
    /// way that could write to it.
    fn share_entry(&mut self, entry: Handle) {
        let opened = self.interfaces.iter().flatten();
        let under_way = opened.map(|opened| opened.interface.operations_under_way());
        let is_idle = under_way.sum::<usize>() == 0 && self.streams.is_empty();
        let Some((interface, mut effects)) = self.interface(entry.interface()) else {
            return;
        };
        let Some(span) = effects.span_to_share(interface, entry) else {
            return;
        };
        if shareable().adopt(span) {
            return effects.publish_entry(interface, entry);
        }
        let why = if !is_idle {
            "operations are under way".into()
        } else if !is_alone() {
            "the program has several threads".into()
        } else if let Err(error) = shareable().convert(span) {
            error.to_string()
        } else {
            return effects.publish_entry(interface, entry);
        };
        let bytes = span.len();
        log(
            Level::Info,
            &format!("{bytes} bytes of an entry aren't shared: {why}"),
        );
    }

    /// Adds what peers have counted to the counters of direct entries. Returns how many counters
    /// have changed.
    #[cold]
    pub(crate) fn count_direct(&mut self) -> usize {
        let mut changed = 0;
        while let Some((entry, by)) = self.transports.take_direct_count() {
            if let Some((interface, mut effects)) = self.interface(entry.interface()) {
                changed += usize::from(interface.count_direct(entry, by, &mut effects));
            }
        }
        changed
    }

    /// As [`count_direct`](Self::count_direct), if there ever was something to count.
    pub(crate) fn count_any_direct(&mut self) {
        if self.transports.direct.counts() {
            self.count_direct();
        }
    }

    /// Whether no peer accesses an entry that was withdrawn; then what they have counted there
    /// has been added, and what they have announced has arrived.
    pub(crate) fn settle_direct(&mut self) -> bool {
        let is_quiet = self.transports.is_quiet();
        self.count_direct();
        if is_quiet {
            if self.transports.direct.are_leaving_announced() {
                self.take_announced();
            }
            self.transports.direct.forget_withdrawn();
        }
        is_quiet
    }

    /// Handles all that lies in the rings now, and perhaps some that comes meanwhile.
    #[cold]
    fn take_announced(&mut self) {
        let mut handled = 0;
        while handled < MOST_IN_RINGS {
            match self.progress() {
                0 => break,
                arrived => handled += arrived,
            }
        }
    }

    /// Disables a portal table entry once peers have left its entries and what they have announced
    /// has arrived; true once no message is landing any more, either.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that isn't allocated.
    pub(crate) fn disable_portal(
        &mut self,
        number: InterfaceNumber,
        index: PortalIndex,
    ) -> Result<bool> {
        self.transports.withdraw(|entry| entry.is_on(number, index));
        // Nothing is published while entries that were withdrawn are being left.
        let are_left = self.settle_direct();
        let (interface, _) = self.interface(number).ok_or(Error::ArgInvalid)?;
        let is_done = are_left && interface.portal_disable(index)?;
        if !is_done {
            self.progress();
        }
        Ok(is_done)
    }
}

impl<O: Owner> Library<O> {
    /// Makes the memory of an entry such that peers can map it, if they may then access it by
    /// themselves.
    #[cold]
    pub(crate) fn share_entry(&self, entry: Handle) {
        self.with_core(|core| core.share_entry(entry));
    }

    /// Unlinks an entry that peers may access by themselves.
    #[cold]
    pub(crate) fn unlink_direct(&self, entry: Handle) -> Result<()> {
        let (portal, was_direct) = self.with(entry, |interface, effects| {
            let portal = interface.portal_of(entry)?;
            // The helper doesn't publish it meanwhile.
            effects.bar(interface, entry);
            let is_it = |direct: &DirectEntry| direct.handle() == entry;
            Ok((portal, effects.transports.withdraw(is_it)))
        })?;
        let accesses = match was_direct {
            true => self.await_accesses(),
            false => Ok(()),
        };
        let unlinked =
            accesses.and_then(|()| self.end_with(entry, |interface| interface.unlink(entry)));
        // The one behind it, or it stays.
        self.with(entry, |interface, effects| {
            effects.transports.direct.unbar(entry);
            if was_direct {
                effects.publish_portal(interface, portal);
            }
            Ok(())
        })?;
        unlinked
    }

    /// Withdraws an entry for good, since the engine will unlink it at any time.
    pub(crate) fn bar_direct(&self, entry: Handle) -> Result<()> {
        let is_it = |direct: &DirectEntry| direct.handle() == entry;
        let was_direct = self.with(entry, |interface, effects| {
            effects.bar(interface, entry);
            Ok(effects.transports.withdraw(is_it))
        })?;
        match was_direct {
            true => self.await_accesses(),
            false => Ok(()),
        }
    }

    /// Withdraws the entries that a counter counts for, before something waits for the counter
    /// that only the engine can do.
    pub(crate) fn withdraw_counter(&self, counter: Handle) -> Result<()> {
        let counts = |entry: &DirectEntry| entry.counts_at(counter);
        let withdraw = |core: &mut Core<O>| match core.transports.direct.is_empty() {
            true => false,
            false => core.transports.withdraw(counts),
        };
        match self.with_core(withdraw) {
            Some(true) => self.await_accesses(),
            _ => Ok(()),
        }
    }

    /// Withdraws what has been published since [`withdraw_counter`](Self::withdraw_counter), now
    /// that something waits for the counter. A peer that was stopped in the middle of a copy
    /// counts when it goes on.
    pub(crate) fn withdraw_published(&self, counter: Handle) {
        let _ = self.withdraw_counter(counter);
    }

    /// Withdraws the entries in a mapping of this process, which goes.
    ///
    /// # Errors
    /// `InUse` if a peer that accesses it was stopped.
    pub(crate) fn withdraw_memory(&self, id: i32) -> Result<()> {
        self.with_core(|core| core.transports.withdraw(|entry| entry.is_in(id)));
        self.await_accesses()
    }

    /// Waits until no peer accesses memory of an entry that was withdrawn.
    ///
    /// # Errors
    /// `InUse` if a peer was stopped in the middle of a copy.
    pub(crate) fn await_accesses(&self) -> Result<()> {
        let until = Instant::now() + ACCESS_TIMEOUT;
        for look in 0u32.. {
            if self.with_core(Core::settle_direct) != Some(false) {
                return Ok(());
            }
            match look {
                ..LOOKS => std::thread::yield_now(),
                _ if Instant::now() >= until => break,
                _ => std::thread::sleep(SLEEP),
            }
        }
        Err(Error::InUse)
    }
}
