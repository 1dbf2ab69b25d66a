//! The calls that a process in generic placement sends to its agent as commands, and how
//! they become bytes. The agent's library carries each out by the same name.

use crate::library::Library;
use crate::memory::Memory;
use crate::owner::Owner;
use lintel_bridge::POST_BYTES;
use lintel_engine4::{Deferred, DescriptorSpec, EntrySpec, SearchOp, Transfer};
use lintel_memory::Span;
use lintel_types::{
    CountingEvent, Error, Handle, Limits, List, PortalIndex, ProcessId, PtOptions, Result,
};
use serde::{Deserialize, Serialize};

/// Hands the table of commands to a macro. A line is a call: its name on its way, in timelines,
/// and here, its arguments, what it returns. [`Library`] documents each. Those of list entries
/// are named as those of match list entries in timelines.
macro_rules! for_each_command {
    ($callback:ident $($before:ident)*) => {
        $callback! {
            $($before)*;
            Open "PtlNIInit" = fn open_interface(iface: u32, options: u32, pid: u32, desired: Option<Limits>) -> (Handle, Limits);
            Close "PtlNIFini" = fn close_interface(interface: Handle) -> ();
            Registers "PtlNIStatus" = fn registers(interface: Handle) -> Registers;
            InterfaceOf "PtlNIHandle" = fn interface_of(handle: Handle) -> Handle;
            SetMap "PtlSetMap" = fn set_map(interface: Handle, map: Vec<ProcessId>) -> ();
            Map "PtlGetMap" = fn map(interface: Handle) -> Vec<ProcessId>;
            Id "PtlGetId" = fn id(interface: Handle) -> ProcessId;
            PhysicalId "PtlGetPhysId" = fn physical_id(interface: Handle) -> ProcessId;
            Uid "PtlGetUid" = fn uid(interface: Handle) -> u32;
            PortalAlloc "PtlPTAlloc" = fn portal_alloc(interface: Handle, options: PtOptions, queue: Handle, wanted: u32) -> PortalIndex;
            PortalFree "PtlPTFree" = fn portal_free(interface: Handle, index: PortalIndex) -> ();
            PortalDisableBegin "PtlPTDisable" = fn portal_disable_begin(interface: Handle, index: PortalIndex) -> bool;
            PortalEnable "PtlPTEnable" = fn portal_enable(interface: Handle, index: PortalIndex) -> ();
            DescriptorBind "PtlMDBind" = fn descriptor_bind(interface: Handle, spec: DescriptorSpec<S>) -> Handle;
            DescriptorRelease "PtlMDRelease" = fn descriptor_release(descriptor: Handle) -> ();
            Append "PtlMEAppend" = fn append(interface: Handle, spec: EntrySpec<S>, list: List) -> Handle;
            Unlink "PtlMEUnlink" = fn unlink(entry: Handle) -> ();
            Search "PtlMESearch" = fn search(interface: Handle, spec: EntrySpec<S>, op: SearchOp) -> ();
            QueueAlloc "PtlEQAlloc" = fn queue_alloc(interface: Handle, count: u64) -> Handle;
            QueueFree "PtlEQFree" = fn queue_free(queue: Handle) -> ();
            CounterAlloc "PtlCTAlloc" = fn counter_alloc(interface: Handle) -> Handle;
            CounterFree "PtlCTFree" = fn counter_free(counter: Handle) -> ();
            CounterSet "PtlCTSet" = fn counter_set(counter: Handle, value: CountingEvent) -> ();
            CounterInc "PtlCTInc" = fn counter_inc(counter: Handle, by: CountingEvent) -> ();
            CancelTriggered "PtlCTCancelTriggered" = fn cancel_triggered(counter: Handle) -> ();
            Trigger "PtlTriggered" = fn trigger(operation: Deferred<S>, counter: Handle, threshold: u64) -> ();
            TriggerAppend "PtlTriggeredMEAppend" = fn trigger_append(
            interface: Handle, spec: EntrySpec<S>, list: List, counter: Handle, threshold: u64
            ) -> Handle;
            Start "PtlStart" = fn try_start(transfer: Transfer) -> ();
            AtomicSync "PtlAtomicSync" = fn atomic_sync() -> ();
            Leave "PtlFini" = fn leave_all() -> ();
        }
    };
}

pub(crate) use for_each_command;

/// Makes a type of the commands of a table; owners of a trait's carry them out.
macro_rules! define_commands {
    ($commands:ident $owner:ident; $($command:ident $called:literal = fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// A call on its way to the agent.
        #[derive(Serialize, Deserialize)]
        #[serde(bound(
            serialize = "S: Span + Serialize",
            deserialize = "S: Span + Deserialize<'de>"
        ))]
        pub(crate) enum $commands<S> {
            $($command($($kind),*),)*
        }

        impl<S: Span> $commands<S> {
            /// Carries the call out, and returns its result as bytes.
            pub(crate) fn carry_out<O: $owner + Memory<Span = S>>(
                self,
                library: &Library<O>,
            ) -> Vec<u8> {
                match self {
                    $($commands::$command($($argument),*) => {
                        to_bytes(&library.$name($($argument),*))
                    })*
                }
            }
        }
    };
}

pub(crate) use define_commands;

for_each_command!(define_commands Command Owner);

/// A command of either interface on its way.
#[derive(Serialize, Deserialize)]
pub(crate) enum AnyCommand<P4, P3> {
    /// Of Portals 4.
    Portals4(P4),
    /// Of Portals 3.3.
    Portals3(P3),
}

/// Commands and answers as bytes.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("a vector grows")
}

/// A command as bytes, where it is short enough to be posted.
pub(crate) fn to_post<'a>(
    command: &impl Serialize,
    room: &'a mut [u8; POST_BYTES],
) -> Option<&'a [u8]> {
    postcard::to_slice(command, room).ok().map(|bytes| &*bytes)
}

/// The command that the bytes of a client say, if they say one.
pub(crate) fn parse<P4, P3>(bytes: &[u8]) -> Option<AnyCommand<P4, P3>>
where
    P4: for<'a> Deserialize<'a>,
    P3: for<'a> Deserialize<'a>,
{
    postcard::from_bytes(bytes).ok()
}

/// The answer to a command; an agent that answers otherwise is of another version.
pub(crate) fn answer<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).unwrap_or(Err(Error::Fail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_claim::{Region, RemoteSpan};
    use lintel_memory::Buffer;
    use lintel_types::MdOptions;

    type Sent = AnyCommand<Command<RemoteSpan>, ()>;

    #[test]
    fn memory_arrives_as_another_process_names_it() {
        let region = Region::new(100);
        let spec = DescriptorSpec {
            buffer: Buffer::vector(vec![
                region.claim().slice(0, 10),
                region.claim().slice(50, 20),
            ]),
            options: MdOptions::from(7),
            queue: Handle::EQ_NONE,
            counter: Handle::CT_NONE,
        };
        let command = Command::DescriptorBind(Handle(5), spec);
        let sent = to_bytes(&AnyCommand::<_, ()>::Portals4(&command));
        let Some(Sent::Portals4(Command::DescriptorBind(handle, spec))) = parse(&sent) else {
            panic!("it was such a command");
        };
        assert_eq!(
            (handle, spec.options.bits(), spec.buffer.length()),
            (Handle(5), 7, 30)
        );
        let address = region.claim().address();
        let expected = [
            RemoteSpan {
                address: address + 8,
                length: 2,
            },
            RemoteSpan {
                address: address + 50,
                length: 1,
            },
        ];
        assert_eq!(spec.buffer.pieces(8, 3).as_slice(), expected);
    }

    #[test]
    fn bytes_that_are_no_command_are_refused() {
        let parse = |bytes: &[u8]| -> Option<Sent> { parse(bytes) };
        assert!(parse(&[]).is_none());
        assert!(parse(&[255, 255, 255, 255, 255]).is_none());
        for length in 0..64 {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 37 + length) as u8).collect();
            parse(&bytes);
        }
    }
}
