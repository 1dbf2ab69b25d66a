//! libfabric's binary interface, as far as it is used here: the public structures
//! and function tables of its version 1.17. Later versions only append to them, so
//! each of these is the beginning of what a later library has.
//!
//! Most of libfabric's functions are inline in its headers: they look up a table in
//! the object and call what it holds. Here the tables themselves are declared, and
//! `fabric` looks them up. The test at the end compares each offset with the headers
//! of the machine, where there are any.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

/// A place in a table that isn't used here.
pub(crate) type Unused = *const c_void;
/// `fi_addr_t`: the index of a peer in the address vector.
pub(crate) type Address = u64;

/// Declares structures by the names that the headers give to them and their fields,
/// and a table of where each field lies.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident = $c:literal { $($field:ident: $type:ty,)* })*) => {
        $($(#[$meta])* #[repr(C)] pub(crate) struct $name { $(pub(crate) $field: $type,)* })*

        /// Structure, field, offset in bytes.
        #[cfg(test)]
        pub(crate) const OFFSETS: &[(&str, &str, usize)] = &[
            $($(($c, stringify!($field), std::mem::offset_of!($name, $field)),)*)*
        ];
    };
}

structures! {
    Info = "fi_info" {
        next: *mut Info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut c_void,
        tx_attr: *mut TxAttr,
        rx_attr: *mut RxAttr,
        ep_attr: *mut EpAttr,
        domain_attr: *mut DomainAttr,
        fabric_attr: *mut FabricAttr,
    }
    TxAttr = "fi_tx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
    }
    RxAttr = "fi_rx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
    }
    EpAttr = "fi_ep_attr" {
        r#type: u32,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
    }
    DomainAttr = "fi_domain_attr" {
        domain: *mut c_void,
        name: *mut c_char,
        threading: u32,
        control_progress: u32,
        data_progress: u32,
        resource_mgmt: u32,
        av_type: u32,
        mr_mode: c_int,
        mr_key_size: usize,
    }
    FabricAttr = "fi_fabric_attr" {
        fabric: *mut c_void,
        name: *mut c_char,
        prov_name: *mut c_char,
    }
    /// What every object begins with.
    Fid = "fid" {
        fclass: usize,
        context: *mut c_void,
        ops: *const FidOps,
    }
    FidOps = "fi_ops" {
        size: usize,
        close: unsafe extern "C" fn(*mut Fid) -> c_int,
        bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    }
    Fabric = "fid_fabric" {
        fid: Fid,
        ops: *const FabricOps,
    }
    FabricOps = "fi_ops_fabric" {
        size: usize,
        domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
        passive_ep: Unused,
        eq_open: Unused,
        wait_open: Unused,
        trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
    }
    Domain = "fid_domain" {
        fid: Fid,
        ops: *const DomainOps,
        mr: *const MrOps,
    }
    DomainOps = "fi_ops_domain" {
        size: usize,
        av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
        cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
        endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
    }
    MrOps = "fi_ops_mr" {
        size: usize,
        reg: unsafe extern "C" fn(
            *mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut Mr, *mut c_void,
        ) -> c_int,
    }
    Mr = "fid_mr" {
        fid: Fid,
        mem_desc: *mut c_void,
        key: u64,
    }
    AvAttr = "fi_av_attr" {
        r#type: u32,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
    Av = "fid_av" {
        fid: Fid,
        ops: *const AvOps,
    }
    AvOps = "fi_ops_av" {
        size: usize,
        insert: unsafe extern "C" fn(
            *mut Av, *const c_void, usize, *mut Address, u64, *mut c_void,
        ) -> c_int,
        insertsvc: Unused,
        insertsym: Unused,
        remove: unsafe extern "C" fn(*mut Av, *mut Address, usize, u64) -> c_int,
    }
    CqAttr = "fi_cq_attr" {
        size: usize,
        flags: u64,
        format: u32,
        wait_obj: u32,
        signaling_vector: c_int,
        wait_cond: u32,
        wait_set: *mut c_void,
    }
    Cq = "fid_cq" {
        fid: Fid,
        ops: *const CqOps,
    }
    CqOps = "fi_ops_cq" {
        size: usize,
        read: unsafe extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
        readfrom: Unused,
        readerr: unsafe extern "C" fn(*mut Cq, *mut CqErrEntry, u64) -> isize,
    }
    #[derive(Clone, Copy)]
    CqEntry = "fi_cq_msg_entry" {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
    }
    CqErrEntry = "fi_cq_err_entry" {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }
    Ep = "fid_ep" {
        fid: Fid,
        ops: Unused,
        cm: *const CmOps,
        msg: *const MsgOps,
        rma: *const RmaOps,
    }
    CmOps = "fi_ops_cm" {
        size: usize,
        setname: Unused,
        getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    }
    MsgOps = "fi_ops_msg" {
        size: usize,
        recv: unsafe extern "C" fn(
            *mut Ep, *mut c_void, usize, *mut c_void, Address, *mut c_void,
        ) -> isize,
        recvv: Unused,
        recvmsg: Unused,
        send: unsafe extern "C" fn(
            *mut Ep, *const c_void, usize, *mut c_void, Address, *mut c_void,
        ) -> isize,
        sendv: Unused,
        sendmsg: Unused,
        inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, Address) -> isize,
    }
    RmaOps = "fi_ops_rma" {
        size: usize,
        read: unsafe extern "C" fn(
            *mut Ep, *mut c_void, usize, *mut c_void, Address, u64, u64, *mut c_void,
        ) -> isize,
    }
}

/// What `fi_getinfo` and its companions look like.
pub(crate) type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const Info,
    *mut *mut Info,
) -> c_int;
pub(crate) type FreeInfo = unsafe extern "C" fn(*mut Info);
pub(crate) type DupInfo = unsafe extern "C" fn(*const Info) -> *mut Info;
pub(crate) type OpenFabric =
    unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int;
pub(crate) type Version = unsafe extern "C" fn() -> u32;
pub(crate) type StrError = unsafe extern "C" fn(c_int) -> *const c_char;

/// The version whose interface is declared here, as `FI_VERSION` puts it.
pub(crate) const VERSION: u32 = (1 << 16) | 17;

/// Declares constants by the headers' names, and a table of their values.
macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub(crate) const $name: $type = $value;)*

        /// Name (without `FI_`) and value.
        #[cfg(test)]
        pub(crate) const VALUES: &[(&str, u64)] = &[$((stringify!($name), $name as u64),)*];
    };
}

constants! {
    MSG: u64 = 1 << 1;
    RMA: u64 = 1 << 2;
    READ: u64 = 1 << 8;
    RECV: u64 = 1 << 10;
    SEND: u64 = 1 << 11;
    REMOTE_READ: u64 = 1 << 12;
    TRANSMIT: u64 = 1 << 11;
    LOCAL_COMM: u64 = 1 << 51;
    REMOTE_COMM: u64 = 1 << 52;
    SOURCE: u64 = 1 << 57;
    CONTEXT: u64 = 1 << 59;
    CONTEXT2: u64 = 1 << 52;
    ORDER_SAS: u64 = 1 << 8;
    MR_LOCAL: c_int = 1 << 2;
    MR_VIRT_ADDR: c_int = 1 << 4;
    MR_ALLOCATED: c_int = 1 << 5;
    MR_PROV_KEY: c_int = 1 << 6;
    MR_ENDPOINT: c_int = 1 << 9;
    EP_RDM: u32 = 3;
    PROGRESS_MANUAL: u32 = 2;
    THREAD_DOMAIN: u32 = 3;
    RM_ENABLED: u32 = 2;
    SOCKADDR_IN: u32 = 2;
    ADDR_UNSPEC: u64 = u64::MAX;
    WAIT_NONE: u32 = 0;
    WAIT_FD: u32 = 3;
    CQ_FORMAT_MSG: u32 = 2;
    GETWAIT: c_int = 5;
    ENABLE: c_int = 6;
    EAGAIN: c_int = 11;
    EAVAIL: c_int = 259;
}

#[cfg(test)]
mod tests {
    use super::{OFFSETS, VALUES};
    use std::fmt::Write as _;
    use std::path::Path;
    use std::process::Command;

    /// A program of the headers' own that reports what is declared differently here.
    fn comparison() -> String {
        let mut program = String::from("#include <stdio.h>\n#include <stddef.h>\n");
        for header in ["fabric", "domain", "endpoint", "eq", "cm", "rma", "errno"] {
            let prefix = if header == "fabric" { "" } else { "fi_" };
            let _ = writeln!(program, "#include <rdma/{prefix}{header}.h>");
        }
        program.push_str("int main(void) {\n");
        for (structure, field, offset) in OFFSETS {
            let field = field.trim_start_matches("r#");
            let _ = writeln!(
                program,
                "if (offsetof(struct {structure}, {field}) != {offset}) \
                 printf(\"{structure}.{field}: %zu, not {offset}\\n\", \
                 offsetof(struct {structure}, {field}));"
            );
        }
        for (name, value) in VALUES {
            let _ = writeln!(
                program,
                "if ((unsigned long long) FI_{name} != {value}ULL) \
                 printf(\"FI_{name}: %llu, not {value}\\n\", (unsigned long long) FI_{name});"
            );
        }
        program.push_str("return 0; }\n");
        program
    }

    #[test]
    fn declarations_agree_with_the_headers_of_this_machine() {
        if !Path::new("/usr/include/rdma/fabric.h").exists() {
            eprintln!("SKIPPED: no headers of libfabric here (Debian: libfabric-dev)");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder for a program");
        let folder = folder.path();
        let (source, program) = (folder.join("compare.c"), folder.join("compare"));
        std::fs::write(&source, comparison()).expect("the program can be written");
        let built = Command::new("cc")
            .arg("-w")
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .output();
        let built = built.expect("a C compiler is there, as for the rest of Lintel");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let printed = Command::new(&program).output().expect("the program runs");
        assert_eq!(String::from_utf8_lossy(&printed.stdout), "");
    }
}
