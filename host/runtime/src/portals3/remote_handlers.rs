//! Handlers of event queues whose events an agent posts: a thread of this process takes the
//! events and calls them.

use crate::portals3::handlers::Handler;
use crate::remote::Remote;
use crate::thread::spawn;
use lintel_bridge::SharedRegion;
use lintel_types::Handle;
use lintel_types::portals3::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// The queues with handlers, and the thread that serves them while there are any.
#[derive(Clone, Default)]
pub(crate) struct RemoteHandlers(Arc<Mutex<Vec<(Handle, Handler)>>>);

impl RemoteHandlers {
    /// Calls a handler with each event of a queue from now on, until the queue is freed.
    ///
    /// # Errors
    /// `NoSpace` if the system has no thread.
    pub(crate) fn insert(
        &self,
        remote: &'static Remote,
        queue: Handle,
        handler: Handler,
    ) -> Result<()> {
        let mut all = self.0.lock();
        let is_served = !all.is_empty();
        all.push((queue, handler));
        if is_served {
            drop(all);
            remote.wake();
            return Ok(());
        }
        let handlers = self.clone();
        match spawn("lintel-handlers", move || handlers.serve(remote)) {
            Ok(_) => Ok(()),
            Err(_) => {
                all.clear();
                Err(Error::NoSpace)
            }
        }
    }

    /// Ends once all queues have been freed, or the agent has gone.
    fn serve(&self, remote: &Remote) {
        loop {
            let is_over = remote.attend(|region| self.call_all(region));
            let mut all = self.0.lock();
            if is_over {
                all.clear();
            }
            if all.is_empty() {
                return;
            }
        }
    }

    /// Calls handlers until no event is left. Queues that were freed go.
    fn call_all(&self, region: &SharedRegion) {
        let all = self.0.lock().clone();
        for (queue, handler) in all {
            loop {
                match region.take_event3(queue) {
                    Ok(Some(taken)) => handler(taken.event()),
                    Ok(None) => break,
                    Err(_) => {
                        self.0.lock().retain(|(other, _)| *other != queue);
                        break;
                    }
                }
            }
        }
    }
}
