//! `cci.h` in Rust: its structures, and declarations of its functions, whichever library
//! defines them.
//!
//! The header documents what a function does and what its pointers must be; the header test
//! compares both sides. Structures that the header has const are the library's: a pointer to
//! one is `*mut` here only because the header names the const structure itself.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub use libc::{iovec, timeval};

/// `CCI_ABI_VERSION`
pub const ABI_VERSION: u32 = 2;
/// `CCI_CONN_REQ_LEN`
pub const CONN_REQ_LEN: u32 = 1024;
/// `CCI_FLAG_BLOCKING`
pub const FLAG_BLOCKING: c_int = 1;
/// `CCI_FLAG_NO_COPY`
pub const FLAG_NO_COPY: c_int = 2;
/// `CCI_FLAG_SILENT`
pub const FLAG_SILENT: c_int = 8;
/// `CCI_FLAG_READ`
pub const FLAG_READ: c_int = 16;
/// `CCI_FLAG_WRITE`
pub const FLAG_WRITE: c_int = 32;
/// `CCI_FLAG_FENCE`
pub const FLAG_FENCE: c_int = 64;

/// `CCI_EVENT_*`
pub mod event_type {
    /// `CCI_EVENT_NONE`
    pub const NONE: u32 = 0;
    /// `CCI_EVENT_SEND`
    pub const SEND: u32 = 1;
    /// `CCI_EVENT_RECV`
    pub const RECV: u32 = 2;
    /// `CCI_EVENT_CONNECT`
    pub const CONNECT: u32 = 3;
    /// `CCI_EVENT_CONNECT_REQUEST`
    pub const CONNECT_REQUEST: u32 = 4;
    /// `CCI_EVENT_ACCEPT`
    pub const ACCEPT: u32 = 5;
    /// `CCI_EVENT_KEEPALIVE_TIMEDOUT`
    pub const KEEPALIVE_TIMEDOUT: u32 = 6;
    /// `CCI_EVENT_ENDPOINT_DEVICE_FAILED`
    pub const ENDPOINT_DEVICE_FAILED: u32 = 7;
}

/// `CCI_OPT_*`
pub mod option {
    /// `CCI_OPT_ENDPT_SEND_TIMEOUT`
    pub const ENDPT_SEND_TIMEOUT: u32 = 0;
    /// `CCI_OPT_ENDPT_RECV_BUF_COUNT`
    pub const ENDPT_RECV_BUF_COUNT: u32 = 1;
    /// `CCI_OPT_ENDPT_SEND_BUF_COUNT`
    pub const ENDPT_SEND_BUF_COUNT: u32 = 2;
    /// `CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT`
    pub const ENDPT_KEEPALIVE_TIMEOUT: u32 = 3;
    /// `CCI_OPT_ENDPT_URI`
    pub const ENDPT_URI: u32 = 4;
    /// `CCI_OPT_ENDPT_RMA_ALIGN`
    pub const ENDPT_RMA_ALIGN: u32 = 5;
    /// `CCI_OPT_CONN_SEND_TIMEOUT`
    pub const CONN_SEND_TIMEOUT: u32 = 6;
    /// `CCI_OPT_CONN_KEEPALIVE_TIMEOUT`
    pub const CONN_KEEPALIVE_TIMEOUT: u32 = 7;
}

/// Where a device is on the PCI bus.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pci {
    /// All ones if there is none; so the others.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub dev: u32,
    /// Function.
    pub func: u32,
}

/// `cci_device_t`
#[repr(C)]
#[derive(Debug)]
pub struct Device {
    /// As in the configuration file.
    pub name: *const c_char,
    /// Of the device.
    pub transport: *const c_char,
    /// Not 0 if it works.
    pub up: c_uint,
    /// For people.
    pub info: *const c_char,
    /// "key=value", ended by a null pointer.
    pub conf_argv: *const *const c_char,
    /// Bytes.
    pub max_send_size: u32,
    /// Bits per second, or 0.
    pub rate: u64,
    /// Its place on the bus.
    pub pci: Pci,
}

/// `cci_endpoint_t`
#[repr(C)]
#[derive(Debug)]
pub struct Endpoint {
    /// Where it was opened.
    pub device: *mut Device,
}

/// `cci_connection_t`
#[repr(C)]
#[derive(Debug)]
pub struct Connection {
    /// Bytes.
    pub max_send_size: u32,
    /// Its endpoint.
    pub endpoint: *mut Endpoint,
    /// `CCI_CONN_ATTR_*`
    pub attribute: u32,
    /// The application's own.
    pub context: *mut c_void,
}

/// `cci_rma_handle_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RmaHandle {
    /// All that a handle is.
    pub stuff: [u64; 4],
}

/// `cci_alignment_t`
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Alignment {
    /// Of a write's local address.
    pub rma_write_local_addr: u32,
    /// Of a write's remote address.
    pub rma_write_remote_addr: u32,
    /// Of a write's length.
    pub rma_write_length: u32,
    /// Of a read's local address.
    pub rma_read_local_addr: u32,
    /// Of a read's remote address.
    pub rma_read_remote_addr: u32,
    /// Of a read's length.
    pub rma_read_length: u32,
}

/// `cci_event_send_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventSend {
    /// [`event_type::SEND`]
    pub r#type: u32,
    /// How it has ended.
    pub status: u32,
    /// Its connection.
    pub connection: *mut Connection,
    /// The operation's own.
    pub context: *mut c_void,
}

/// `cci_event_recv_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventRecv {
    /// [`event_type::RECV`]
    pub r#type: u32,
    /// Bytes.
    pub len: u32,
    /// Where they are.
    pub ptr: *const c_void,
    /// Its connection.
    pub connection: *mut Connection,
}

/// `cci_event_connect_t`, and `cci_event_accept_t`, which has the same members.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventConnect {
    /// [`event_type::CONNECT`] or [`event_type::ACCEPT`]
    pub r#type: u32,
    /// How it has ended.
    pub status: u32,
    /// From connect or accept.
    pub context: *mut c_void,
    /// Null unless the status is success.
    pub connection: *mut Connection,
}

/// `cci_event_connect_request_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventRequest {
    /// [`event_type::CONNECT_REQUEST`]
    pub r#type: u32,
    /// Bytes.
    pub data_len: u32,
    /// Where they are.
    pub data_ptr: *const c_void,
    /// `CCI_CONN_ATTR_*`
    pub attribute: u32,
}

/// `cci_event_keepalive_timedout_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventKeepalive {
    /// [`event_type::KEEPALIVE_TIMEDOUT`]
    pub r#type: u32,
    /// Which connection.
    pub connection: *mut Connection,
}

/// `cci_event_endpoint_device_failed_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventDeviceFailed {
    /// [`event_type::ENDPOINT_DEVICE_FAILED`]
    pub r#type: u32,
    /// Which endpoint.
    pub endpoint: *mut Endpoint,
}

/// `cci_event_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub union Event {
    /// Each member begins with it.
    pub r#type: u32,
    /// A send or access has ended.
    pub send: EventSend,
    /// A message.
    pub recv: EventRecv,
    /// The answer to a connection request.
    pub connect: EventConnect,
    /// A connection request.
    pub request: EventRequest,
    /// How accepting has ended.
    pub accept: EventConnect,
    /// A silent peer.
    pub keepalive: EventKeepalive,
    /// A device that has failed.
    pub dev_failed: EventDeviceFailed,
}

unsafe extern "C" {
    /// See the header.
    pub fn cci_init(abi_ver: u32, flags: u32, caps: *mut u32) -> c_int;
    /// See the header.
    pub fn cci_finalize() -> c_int;
    /// See the header.
    pub fn cci_get_devices(devices: *mut *mut *mut Device) -> c_int;
    /// See the header.
    pub fn cci_create_endpoint(
        device: *mut Device,
        flags: c_int,
        endpoint: *mut *mut Endpoint,
        fd: *mut c_int,
    ) -> c_int;
    /// See the header.
    pub fn cci_create_endpoint_at(
        device: *mut Device,
        service: *const c_char,
        flags: c_int,
        endpoint: *mut *mut Endpoint,
        fd: *mut c_int,
    ) -> c_int;
    /// See the header.
    pub fn cci_destroy_endpoint(endpoint: *mut Endpoint) -> c_int;
    /// See the header.
    pub fn cci_strerror(endpoint: *mut Endpoint, status: u32) -> *const c_char;
    /// See the header.
    pub fn cci_connect(
        endpoint: *mut Endpoint,
        server_uri: *const c_char,
        data_ptr: *const c_void,
        data_len: u32,
        attribute: u32,
        context: *const c_void,
        flags: c_int,
        timeout: *const timeval,
    ) -> c_int;
    /// See the header.
    pub fn cci_accept(conn_req: *mut Event, context: *const c_void) -> c_int;
    /// See the header.
    pub fn cci_reject(conn_req: *mut Event) -> c_int;
    /// See the header.
    pub fn cci_disconnect(connection: *mut Connection) -> c_int;
    /// See the header.
    pub fn cci_arm_os_handle(endpoint: *mut Endpoint, flags: c_int) -> c_int;
    /// See the header.
    pub fn cci_get_event(endpoint: *mut Endpoint, event: *mut *mut Event) -> c_int;
    /// See the header.
    pub fn cci_return_event(event: *mut Event) -> c_int;
    /// See the header.
    pub fn cci_set_opt(handle: *mut c_void, name: u32, val: *const c_void) -> c_int;
    /// See the header.
    pub fn cci_get_opt(handle: *mut c_void, name: u32, val: *mut c_void) -> c_int;
    /// See the header.
    pub fn cci_send(
        connection: *mut Connection,
        msg_ptr: *const c_void,
        msg_len: u32,
        context: *const c_void,
        flags: c_int,
    ) -> c_int;
    /// See the header.
    pub fn cci_sendv(
        connection: *mut Connection,
        data: *const iovec,
        iovcnt: u32,
        context: *const c_void,
        flags: c_int,
    ) -> c_int;
    /// See the header.
    pub fn cci_rma_register(
        endpoint: *mut Endpoint,
        start: *mut c_void,
        length: u64,
        flags: c_int,
        rma_handle: *mut *mut RmaHandle,
    ) -> c_int;
    /// See the header.
    pub fn cci_rma_deregister(endpoint: *mut Endpoint, rma_handle: *mut RmaHandle) -> c_int;
    /// See the header.
    pub fn cci_rma(
        connection: *mut Connection,
        msg_ptr: *const c_void,
        msg_len: u32,
        local_handle: *mut RmaHandle,
        local_offset: u64,
        remote_handle: *mut RmaHandle,
        remote_offset: u64,
        data_len: u64,
        context: *const c_void,
        flags: c_int,
    ) -> c_int;
}
