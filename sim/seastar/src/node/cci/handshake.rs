//! Connections, which are made before the clock starts: requests, answers, confirmations.

use lintel_cci::{Action, Request};
use lintel_sim_kernel::SimTime;
use lintel_types::ProcessId;
use lintel_wire::Words;

use super::endpoint::{Endpoint, Gathered, attribute, buffered};
use crate::node::Node;
use crate::node::process::Process;

/// A frame between two endpoints.
pub(crate) struct Handshake {
    pub(crate) from: ProcessId,
    pub(crate) to: ProcessId,
    words: Words,
}

fn frames(from: ProcessId, gathered: Gathered) -> impl Iterator<Item = Handshake> {
    let frames = gathered.frames.into_iter();
    frames.map(move |frame| Handshake {
        from,
        to: frame.to,
        words: frame.words,
    })
}

impl Endpoint {
    /// Asks for the connections that its process wants.
    fn connect(&mut self, gathered: &mut Gathered) -> Result<(), String> {
        for (to, class) in std::mem::take(&mut self.wanted) {
            let request = Request {
                to,
                attribute: attribute(class),
                context: 0,
                timeout: None,
            };
            let asked = self.rules.connect(request, &buffered(class, 0), gathered);
            asked.map_err(|status| status.to_string())?;
        }
        Ok(())
    }

    /// Accepts every connection that it is asked for.
    fn on_handshake(&mut self, frame: &Handshake, gathered: &mut Gathered) -> Result<(), String> {
        let action = self.rules.on_message(frame.from, &frame.words, 0, gathered);
        if let Action::Request { connection, .. } = action {
            let accepted = self.rules.accept(connection, 0, gathered);
            accepted.map_err(|status| status.to_string())?;
        }
        self.on_connections(gathered)
    }
}

impl Process {
    /// Lets the endpoint do something, and gives the frames that it sends; none if the
    /// process has no endpoint.
    fn shake(
        &mut self,
        step: impl FnOnce(&mut Endpoint, &mut Gathered) -> Result<(), String>,
    ) -> Option<Vec<Handshake>> {
        let mut gathered = Gathered::at(SimTime::START);
        let done = step(self.endpoint_mut()?, &mut gathered);
        if let Err(why) = done {
            self.fail(&why);
        }
        Some(frames(self.id, gathered).collect())
    }
}

impl Node {
    /// The requests of its processes.
    pub(crate) fn ask_for_connections(&mut self) -> Vec<Handshake> {
        let shaken = self
            .processes
            .iter_mut()
            .filter_map(|process| process.shake(Endpoint::connect));
        shaken.flatten().collect()
    }

    /// A frame has come: the answers to it, or none if there is no such endpoint.
    pub(crate) fn on_handshake(&mut self, frame: &Handshake) -> Option<Vec<Handshake>> {
        let process = self.processes.get_mut(frame.to.pid as usize)?;
        process.shake(|endpoint, gathered| endpoint.on_handshake(frame, gathered))
    }

    /// Nobody is there who could answer a request.
    pub(crate) fn on_nobody(&mut self, frame: &Handshake) {
        let process = &mut self.processes[frame.from.pid as usize];
        process.shake(|endpoint, gathered| {
            endpoint.rules.on_lost(frame.to, gathered);
            endpoint
                .on_connections(gathered)
                .map_err(|why| format!("{why} by {:?}", frame.to))
        });
    }
}
