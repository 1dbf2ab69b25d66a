//! The status of a call or an event, and the kinds of connection.

use core::error::Error;
use core::fmt;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $c:literal, $text:literal;)*) => {
        /// The result of a call or of an operation, with the header's value. Values above 8
        /// are Linux's errno values.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum Status {
            $($(#[$doc])* $name = $value,)*
        }

        impl Status {
            /// All of them, in the header's order.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// Its name in the header.
            pub fn c_name(self) -> &'static str {
                match self {
                    $(Status::$name => $c,)*
                }
            }

            /// What it says, for people.
            pub fn text(self) -> &'static str {
                match self {
                    $(Status::$name => $text,)*
                }
            }

            /// The status with that value.
            pub fn from_value(value: u32) -> Option<Status> {
                match value {
                    $($value => Some(Status::$name),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    /// Done.
    Success = 0, "CCI_SUCCESS", "success";
    /// A failure without a more exact name.
    Error = 1, "CCI_ERROR", "generic error";
    /// The peer has ended or dropped the connection.
    Disconnected = 2, "CCI_ERR_DISCONNECTED", "not connected";
    /// The receiver had no buffer until the send timeout.
    Rnr = 3, "CCI_ERR_RNR", "receiver not ready";
    /// The device has failed.
    DeviceDead = 4, "CCI_ERR_DEVICE_DEAD", "device failed";
    /// The remote memory isn't registered, or the access goes beyond it.
    RmaHandle = 5, "CCI_ERR_RMA_HANDLE", "invalid RMA handle or range";
    /// The registration doesn't allow the operation.
    RmaOperation = 6, "CCI_ERR_RMA_OP", "operation not allowed on the RMA handle";
    /// Not supported.
    NotImplemented = 7, "CCI_ERR_NOT_IMPLEMENTED", "not implemented";
    /// Not found.
    NotFound = 8, "CCI_ERR_NOT_FOUND", "not found";
    /// Nothing there now.
    Again = 11, "CCI_EAGAIN", "try again";
    /// No memory.
    NoMemory = 12, "CCI_ENOMEM", "out of memory";
    /// In use.
    Busy = 16, "CCI_EBUSY", "busy";
    /// No such device.
    NoDevice = 19, "CCI_ENODEV", "no such device";
    /// An argument is wrong.
    Invalid = 22, "CCI_EINVAL", "invalid argument";
    /// Beyond the limits.
    Range = 34, "CCI_ERANGE", "out of range";
    /// There is no message.
    NoMessage = 42, "CCI_ENOMSG", "no message";
    /// Longer than the connection takes.
    MessageSize = 90, "CCI_EMSGSIZE", "message too long";
    /// The address can't be used.
    AddressNotAvailable = 99, "CCI_EADDRNOTAVAIL", "address not available";
    /// The network is down.
    NetworkDown = 100, "CCI_ENETDOWN", "network is down";
    /// No buffer is left.
    NoBuffers = 105, "CCI_ENOBUFS", "no buffer available";
    /// The time was over.
    TimedOut = 110, "CCI_ETIMEDOUT", "timed out";
    /// The server has rejected, or nobody is there.
    Refused = 111, "CCI_ECONNREFUSED", "connection refused";
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Error for Status {}

/// What a connection promises (`cci_conn_attribute_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Attribute {
    /// Reliable and ordered.
    Ro = 0,
    /// Reliable.
    Ru = 1,
    /// Unreliable.
    Uu = 2,
    /// Unreliable, to all members of a multicast group.
    UuMcTx = 3,
    /// Unreliable, from a multicast group.
    UuMcRx = 4,
}

impl Attribute {
    /// The attribute with that value.
    pub fn from_value(value: u64) -> Option<Attribute> {
        match value {
            0 => Some(Attribute::Ro),
            1 => Some(Attribute::Ru),
            2 => Some(Attribute::Uu),
            3 => Some(Attribute::UuMcTx),
            4 => Some(Attribute::UuMcRx),
            _ => None,
        }
    }

    /// Whether a completion means that the message has reached the peer.
    pub fn is_reliable(self) -> bool {
        matches!(self, Attribute::Ro | Attribute::Ru)
    }

    /// Whether it is a connection to a group, which no server accepts.
    pub fn is_multicast(self) -> bool {
        matches!(self, Attribute::UuMcTx | Attribute::UuMcRx)
    }
}
