//! What outlives an interface, outside of the library's lock.

use lintel_engine3::Tokens;
use lintel_types::Handle;
use parking_lot::Mutex;
use std::sync::atomic::AtomicU32;

/// Shared by a library and its open interface.
#[derive(Default)]
pub struct Shared {
    /// What the handles of the next interface, and the tokens of its operations, begin with.
    pub(crate) next: Mutex<(u16, Tokens)>,
    /// The queue that was served last by a call for several.
    pub(crate) served: AtomicU32,
}

impl Shared {
    /// For a library whose handles begin with `generation`.
    pub(crate) fn new(generation: u16) -> Shared {
        let next = (generation % Handle::GENERATIONS, Tokens::default());
        Shared {
            next: Mutex::new(next),
            served: AtomicU32::default(),
        }
    }
}
