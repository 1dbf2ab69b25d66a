//! What the watcher does, the thread that sleeps on the network's descriptor.

/// What the watcher has found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatcherLook {
    /// It was unparked, and hasn't polled.
    Unparked {
        /// Messages are queued here, and wait for acknowledgements.
        queued: bool,
    },
    /// As much as is handled at once: there may be more, which is no longer in the socket.
    More,
    /// All there was.
    Polled {
        /// The network has been silent for a while, so callers don't look there.
        idle: bool,
        /// Messages are queued here, and wait for acknowledgements.
        queued: bool,
    },
}

/// What the watcher does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatcherNext {
    /// Park until it is unparked: a caller looks at the descriptor.
    Park,
    /// Sleep on the descriptor.
    Watch,
    /// Yield the processor, then poll: acknowledgements are nearer than a sleep.
    Yield,
    /// Poll again at once.
    Continue,
}

/// The watcher as others see it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Watcher {
    /// It sleeps on the descriptor, or is about to.
    pub(crate) is_watching: bool,
    /// Polls in a row that it has begun with a yield.
    pub(crate) yields: u32,
}

impl Watcher {
    pub(crate) const PARKED: Watcher = Watcher {
        is_watching: false,
        yields: 0,
    };

    /// Whether it is still to yield rather than to sleep.
    pub(crate) fn yields(&mut self, queued: bool, most: u32) -> bool {
        self.yields = if queued && self.yields < most {
            self.yields + 1
        } else {
            0
        };
        self.yields > 0
    }
}
