//! Middleware that writes a line for every message.

use crate::{Arrival, Nal, Origin, Outgoing, Unreachable, Wake, forward};
use lintel_types::ProcessId;
use lintel_wire::{Message, Words};

/// Hands a line for each message to `log`.
pub struct Trace<N, F> {
    inner: N,
    log: F,
    /// The message that `next` returned last. (Calling it again could return a loss.)
    shown: Option<Words>,
}

impl<N: Nal, F: FnMut(String)> Trace<N, F> {
    /// Wraps a NAL; `log` takes the lines.
    pub fn new(inner: N, log: F) -> Self {
        Trace {
            inner,
            log,
            shown: None,
        }
    }

    fn line(&mut self, direction: &str, process: ProcessId, words: &Words) {
        let what = match Message::parse(words) {
            Ok(message) => format!("{message:?}"),
            Err(malformed) => format!("{malformed}: {words:x?}"),
        };
        (self.log)(format!(
            "{direction} {:#x}/{} {what}",
            process.nid, process.pid
        ));
    }
}

impl<N: Nal, F: FnMut(String)> Nal for Trace<N, F> {
    // Not `next_inline`: each message goes through `next`.
    forward!(self { Trace { inner, .. } => inner }: capabilities, receive_into, fetch, fill,
        recall, backlog, lends, resources);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let sent = self.inner.send(to, words, body);
        self.line(if sent.is_ok() { "to" } else { "unreachable" }, to, words);
        sent
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(Arrival::Message(_, words, _)) = &arrival {
            self.shown = Some(*words);
        }
        arrival
    }

    fn done(&mut self, origin: Origin) {
        if let Some(words) = self.shown.take() {
            self.line("from", origin.process, &words);
        }
        self.inner.done(origin);
    }
}

impl<N: Nal, F: FnMut(String)> Wake for Trace<N, F> {
    forward!(self { Trace { inner, .. } => inner }: ..Wake);
}
