//! What travels between nodes: a header that someone understands, and a body that
//! is only a length.

use lintel_types::ProcessId;
use lintel_wire::Words;
use lintel_wire::portals3::{Request, Response, Verb};

use crate::profile::Profile;

/// The network's class of control messages. They have a channel of their own up to the NIC.
pub(crate) const CONTROL: u8 = 1;

/// A message between two processes, or between their firmwares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) from: ProcessId,
    pub(crate) to: ProcessId,
    /// Bytes of payload, without the header.
    pub(crate) body: u64,
    pub(crate) content: Content,
    /// Its place among the messages of its pair of nodes, if a protocol numbers them.
    pub(crate) sequence: Option<u64>,
}

/// What its header says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Request(Request),
    Response(Response),
    Cci(CciHeader),
    Control(Control),
}

/// The header of a CCI message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CciHeader {
    pub(crate) class: Class,
    /// The frame of `lintel-cci`.
    pub(crate) words: Words,
}

/// What a CCI connection promises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Messages may be lost or overtake each other (CCI's UU).
    Unreliable,
    /// Messages arrive once and in order (CCI's RO).
    Reliable,
}

/// A control message between firmwares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    /// Of a pair of nodes, all up to this number have found room.
    Accepted(u64),
    /// From this number on, all must come again.
    Nack(u64),
    /// A frame of CCI's endpoints without a message.
    Cci(Words),
}

impl Message {
    /// Whether its payload rides in the header's packet.
    pub(crate) fn is_inline(&self, profile: &Profile) -> bool {
        match self.content {
            Content::Cci(_) => false,
            _ => self.body <= profile.inline_bytes.value,
        }
    }

    /// All that goes over the wire.
    pub(crate) fn wire_bytes(&self, profile: &Profile) -> u64 {
        let packet = profile.packet.value;
        match self.content {
            Content::Cci(_) => (profile.cci_header.value + self.body).max(packet),
            _ if self.is_inline(profile) => packet,
            _ => packet + self.body,
        }
    }

    /// Bytes of its payload for which the RX engine needs a command; 0 if one is enough.
    pub(crate) fn bytes_of_command(&self, profile: &Profile) -> u64 {
        match (self.content, profile.page.value) {
            (Content::Cci(_), _) => 0,
            (_, 0) => profile.rx_command_bytes.value,
            (_, page) => page,
        }
    }

    /// What kind of message it is.
    pub(crate) fn name(&self) -> &'static str {
        match self.content {
            Content::Request(request) => match request.verb {
                Verb::Put => "put",
                Verb::Get => "get",
                Verb::GetPut => "getput",
            },
            Content::Response(_) => "answer",
            Content::Cci(_) => "CCI message",
            Content::Control(_) => "control",
        }
    }

    /// The network's class for it.
    pub(crate) fn network_class(&self) -> u8 {
        match self.is_control() {
            true => CONTROL,
            false => 0,
        }
    }

    /// Whether it is a control message, which goes by PIO.
    pub(crate) fn is_control(&self) -> bool {
        matches!(self.content, Content::Control(_))
    }
}
