//! The event queue, and the loop that executes it.

use crate::time::{Duration, SimTime};
use crate::trace::TraceHash;
use crate::wheel::TimingWheel;

/// An event: each simulation has one enum for all of them.
pub trait Event: Copy {
    /// The kind of event and its object, as one word for the trace hash.
    fn word(&self) -> u64;
}

/// The state that events change.
pub trait World {
    /// The one type of all its events.
    type Event: Event;

    /// An event is due: it is `events.now()`. May put further ones on the
    /// event queue, for now or later.
    fn on_event(&mut self, event: Self::Event, events: &mut EventQueue<Self::Event>);

    /// An event is due soon. A world that is larger than the caches reads now what
    /// it will need then: one event waits for memory several times in turn, many
    /// that are foreseen wait all at once. Nothing may depend on it.
    #[inline]
    fn foresee(&self, event: &Self::Event) {
        let _ = event;
    }
}

/// The time, and the events that are still to happen.
pub struct EventQueue<E> {
    now: SimTime,
    queue: TimingWheel<E>,
    executed: u64,
    hash: TraceHash,
}

/// A world and its events.
pub struct Simulation<W: World> {
    /// The state that the events change.
    pub world: W,
    /// The events that are still to happen.
    pub events: EventQueue<W::Event>,
}

impl<E: Event> EventQueue<E> {
    /// An empty queue, at the start of time.
    pub fn new() -> Self {
        EventQueue {
            now: SimTime::START,
            queue: TimingWheel::new(),
            executed: 0,
            hash: TraceHash::EMPTY,
        }
    }

    /// The time of the event that is executed, or was last.
    #[inline]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Lets `event` happen at `when`, after all events of that time that are already queued.
    ///
    /// # Panics
    ///
    /// If `when` has passed: a component computed a wrong time.
    #[inline]
    pub fn at(&mut self, when: SimTime, event: E) {
        assert!(when >= self.now, "{when} has passed, it is {}", self.now);
        self.queue.push(when, event);
    }

    /// Lets `event` happen `wait` from now.
    #[inline]
    pub fn after(&mut self, wait: Duration, event: E) {
        self.queue.push(self.now + wait, event);
    }

    /// How many events have happened.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// How many are still to happen.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// The hash of all executed events, with times, in order.
    pub fn trace_hash(&self) -> u64 {
        self.hash.value()
    }

    /// Takes the next event that is due by `limit`, and goes to its time. Shows
    /// some that come after it to `foresee`.
    #[inline]
    pub fn take_due(&mut self, limit: SimTime, foresee: impl FnMut(&E)) -> Option<E> {
        let (when, event) = self.queue.pop_due_foreseeing(limit, foresee)?;
        self.now = when;
        self.executed += 1;
        self.hash.add(when.as_ps());
        self.hash.add(event.word());
        Some(event)
    }
}

impl<E: Event> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: World> Simulation<W> {
    /// A simulation without events.
    pub fn new(world: W) -> Self {
        Simulation {
            world,
            events: EventQueue::new(),
        }
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        self.run_all_due(SimTime::NEVER);
    }

    /// Executes so many events at most; true if none is left.
    pub fn advance(&mut self, count: u64) -> bool {
        let Simulation { world, events } = self;
        for _ in 0..count {
            let Some(event) = events.take_due(SimTime::NEVER, |event| world.foresee(event)) else {
                return true;
            };
            world.on_event(event, events);
        }
        events.pending() == 0
    }

    /// Executes all that is due by `limit`, and sets the time to `limit`; true if events are left.
    pub fn run_until(&mut self, limit: SimTime) -> bool {
        self.run_all_due(limit);
        self.events.now = self.events.now.max(limit);
        self.events.pending() > 0
    }

    fn run_all_due(&mut self, limit: SimTime) {
        let Simulation { world, events } = self;
        while let Some(event) = events.take_due(limit, |event| world.foresee(event)) {
            world.on_event(event, events);
        }
    }
}
