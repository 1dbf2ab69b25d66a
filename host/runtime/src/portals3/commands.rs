//! The calls that either place carries out by the same name: the library in this process, or
//! the agent's.

use crate::commands::{define_commands, to_bytes};
use crate::library::Library;
use crate::memory::Memory;
use crate::portals3::calls::EntryWith;
use crate::portals3::lifecycle::Opening;
use crate::portals3::owner::Owner3;
use lintel_engine3::{AccessEntry, DescriptorSpec, EntrySpec, Transfer};
use lintel_memory::Span;
use lintel_types::Handle;
use lintel_types::portals3::Position;
use serde::{Deserialize, Serialize};

/// As `for_each_command` of Portals 4.
macro_rules! for_each_command3 {
    ($callback:ident $($before:ident)*) => {
        $callback! {
            $($before)*;
            Open "PtlNIInit" = fn open3(opening: Opening) -> (Handle, Limits);
            Close "PtlNIFini" = fn close3(interface: Handle) -> ();
            Status "PtlNIStatus" = fn status3(interface: Handle, register: u32) -> u64;
            Identity "PtlGetId" = fn identity3(interface: Handle) -> Identity;
            InterfaceOf "PtlNIHandle" = fn interface_of3(handle: Handle) -> Handle;
            AccessEntry "PtlACEntry" = fn access_entry3(interface: Handle, index: u32, entry: AccessEntry) -> ();
            EntryAttach "PtlMEAttach" = fn entry_attach3(interface: Handle, portal: u32, entry: EntrySpec, position: Position) -> Handle;
            EntryAttachAny "PtlMEAttachAny" = fn entry_attach_any3(interface: Handle, entry: EntrySpec) -> (PortalIndex, Handle);
            EntryInsert "PtlMEInsert" = fn entry_insert3(base: Handle, entry: EntrySpec, position: Position) -> Handle;
            EntryUnlink "PtlMEUnlink" = fn entry_unlink3(entry: Handle) -> ();
            EntryAttachWith "PtlMEMDAttach" = fn entry_attach_with3(interface: Handle, portal: u32, entry: EntryWith<S>) -> (Handle, Handle);
            EntryInsertWith "PtlMEMDInsert" = fn entry_insert_with3(base: Handle, entry: EntryWith<S>) -> (Handle, Handle);
            EntryPost "PtlMEMDPost" = fn entry_post3(interface: Handle, base: Handle, entry: EntryWith<S>, test: Handle) -> (Handle, Handle);
            DescriptorAttach "PtlMDAttach" = fn descriptor_attach3(entry: Handle, spec: DescriptorSpec<S>) -> Handle;
            DescriptorBind "PtlMDBind" = fn descriptor_bind3(interface: Handle, spec: DescriptorSpec<S>) -> Handle;
            DescriptorUnlink "PtlMDUnlink" = fn descriptor_unlink3(descriptor: Handle) -> ();
            DescriptorUpdate "PtlMDUpdate" = fn descriptor_update3(descriptor: Handle, new: Option<DescriptorSpec<S>>, test: Handle) -> MemoryDescriptor;
            QueueAlloc "PtlEQAlloc" = fn queue_alloc3(interface: Handle, count: u64) -> Handle;
            QueueFree "PtlEQFree" = fn queue_free3(queue: Handle) -> ();
            QueueLengths "PtlEQStatus" = fn queue_lengths3(interface: Handle) -> Vec<(usize, usize, usize)>;
            Start "PtlStart" = fn try_start3(transfer: Transfer) -> ();
        }
    };
}

pub(crate) use for_each_command3;

for_each_command3!(define_commands Command3 Owner3);
