//! Receives that wait for messages, and messages that wait for receives.

use std::collections::VecDeque;

use crate::goal::Rank;

/// Which messages a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PostedReceive {
    pub(crate) from: Option<Rank>,
    pub(crate) tag: Option<u32>,
}

/// What a message is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SourceTag {
    pub(crate) from: Rank,
    pub(crate) tag: u32,
}

/// One rank's queues. Both are searched from the oldest entry on.
#[derive(Clone, Default, Debug)]
pub(crate) struct Matching {
    receives: VecDeque<(PostedReceive, u32)>,
    messages: VecDeque<(SourceTag, u32)>,
}

impl PostedReceive {
    fn takes(self, sent: SourceTag) -> bool {
        self.from.is_none_or(|from| from == sent.from) && self.tag.is_none_or(|tag| tag == sent.tag)
    }
}

impl Matching {
    /// The receive that takes this message; without one, the message waits.
    pub(crate) fn on_message(&mut self, sent: SourceTag, message: u32) -> Option<u32> {
        let found = self.receives.iter().position(|r| r.0.takes(sent));
        let receive = found.and_then(|at| self.receives.remove(at));
        if receive.is_none() {
            self.messages.push_back((sent, message));
        }
        receive.map(|(_, step)| step)
    }

    /// The message that this receive takes; without one, the receive waits.
    pub(crate) fn on_receive(&mut self, wanted: PostedReceive, step: u32) -> Option<u32> {
        let found = self.messages.iter().position(|m| wanted.takes(m.0));
        let message = found.and_then(|at| self.messages.remove(at));
        if message.is_none() {
            self.receives.push_back((wanted, step));
        }
        message.map(|(_, message)| message)
    }

    /// Messages that no receive has matched.
    pub(crate) fn messages(&self) -> impl Iterator<Item = SourceTag> {
        self.messages.iter().map(|m| m.0)
    }

    /// Receives that no message has matched.
    pub(crate) fn receives(&self) -> impl Iterator<Item = PostedReceive> {
        self.receives.iter().map(|r| r.0)
    }
}
