//! `cci.h` and the Rust side say the same: constants, layouts, prototypes.

use cci_sys::{
    Alignment, Connection, Device, Endpoint, Event, EventConnect, EventDeviceFailed,
    EventKeepalive, EventRecv, EventRequest, EventSend, RmaHandle, event_type, option,
};
use lintel_cci::{Attribute, Status};
use lintel_header_check::prototypes::{
    assert_same, of_declarations, of_exports, of_header, sources,
};
use lintel_header_check::{Printed, Row, members, rows};
use std::path::Path;

fn printed() -> Printed<'static> {
    Printed {
        include: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include")),
        headers: &["cci.h"],
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")),
    }
}

#[test]
fn constants_have_the_same_values() {
    let rows: &[Row] = rows![
        CCI_ABI_VERSION = cci_sys::ABI_VERSION;
        CCI_CONN_REQ_LEN = cci_sys::CONN_REQ_LEN;
        CCI_FLAG_BLOCKING = cci_sys::FLAG_BLOCKING;
        CCI_FLAG_NO_COPY = cci_sys::FLAG_NO_COPY;
        CCI_FLAG_SILENT = cci_sys::FLAG_SILENT;
        CCI_FLAG_READ = cci_sys::FLAG_READ;
        CCI_FLAG_WRITE = cci_sys::FLAG_WRITE;
        CCI_FLAG_FENCE = cci_sys::FLAG_FENCE;
        CCI_CONN_ATTR_RO = Attribute::Ro;
        CCI_CONN_ATTR_RU = Attribute::Ru;
        CCI_CONN_ATTR_UU = Attribute::Uu;
        CCI_CONN_ATTR_UU_MC_TX = 3;
        CCI_CONN_ATTR_UU_MC_RX = 4;
        CCI_EVENT_NONE = event_type::NONE;
        CCI_EVENT_SEND = event_type::SEND;
        CCI_EVENT_RECV = event_type::RECV;
        CCI_EVENT_CONNECT = event_type::CONNECT;
        CCI_EVENT_CONNECT_REQUEST = event_type::CONNECT_REQUEST;
        CCI_EVENT_ACCEPT = event_type::ACCEPT;
        CCI_EVENT_KEEPALIVE_TIMEDOUT = event_type::KEEPALIVE_TIMEDOUT;
        CCI_EVENT_ENDPOINT_DEVICE_FAILED = event_type::ENDPOINT_DEVICE_FAILED;
        CCI_OPT_ENDPT_SEND_TIMEOUT = option::ENDPT_SEND_TIMEOUT;
        CCI_OPT_ENDPT_RECV_BUF_COUNT = option::ENDPT_RECV_BUF_COUNT;
        CCI_OPT_ENDPT_SEND_BUF_COUNT = option::ENDPT_SEND_BUF_COUNT;
        CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = option::ENDPT_KEEPALIVE_TIMEOUT;
        CCI_OPT_ENDPT_URI = option::ENDPT_URI;
        CCI_OPT_ENDPT_RMA_ALIGN = option::ENDPT_RMA_ALIGN;
        CCI_OPT_CONN_SEND_TIMEOUT = option::CONN_SEND_TIMEOUT;
        CCI_OPT_CONN_KEEPALIVE_TIMEOUT = option::CONN_KEEPALIVE_TIMEOUT;
    ];
    printed().assert_same("cci_constants", rows);
}

#[test]
fn statuses_have_the_same_values() {
    let rows: Vec<Row> = Status::ALL
        .iter()
        .map(|status| (status.c_name(), *status as u64))
        .collect();
    printed().assert_same("cci_statuses", &rows);
    let text = printed().text("cci.h");
    let (_, statuses) = text.split_once("enum cci_status {").expect("it is there");
    let (statuses, _) = statuses.split_once('}').expect("it ends");
    assert_eq!(statuses.matches(" = ").count(), Status::ALL.len());
}

#[test]
fn structures_have_the_same_layout() {
    let mut rows: Vec<Row> = vec![("sizeof(cci_event_t)", size_of::<Event>() as u64)];
    members!(
        rows,
        "cci_device_t",
        Device,
        [
            name,
            transport,
            up,
            info,
            conf_argv,
            max_send_size,
            rate,
            pci
        ]
    );
    members!(rows, "cci_endpoint_t", Endpoint, [device]);
    members!(
        rows,
        "cci_connection_t",
        Connection,
        [max_send_size, endpoint, attribute, context]
    );
    members!(rows, "cci_rma_handle_t", RmaHandle, [stuff]);
    members!(
        rows,
        "cci_alignment_t",
        Alignment,
        [
            rma_write_local_addr,
            rma_write_remote_addr,
            rma_write_length,
            rma_read_local_addr,
            rma_read_remote_addr,
            rma_read_length,
        ]
    );
    members!(
        rows,
        "cci_event_send_t",
        EventSend,
        [r#type = "type", status, connection, context]
    );
    members!(
        rows,
        "cci_event_recv_t",
        EventRecv,
        [r#type = "type", len, ptr, connection]
    );
    members!(
        rows,
        "cci_event_connect_t",
        EventConnect,
        [r#type = "type", status, context, connection]
    );
    members!(
        rows,
        "cci_event_accept_t",
        EventConnect,
        [r#type = "type", status, context, connection]
    );
    members!(
        rows,
        "cci_event_connect_request_t",
        EventRequest,
        [r#type = "type", data_len, data_ptr, attribute]
    );
    members!(
        rows,
        "cci_event_keepalive_timedout_t",
        EventKeepalive,
        [r#type = "type", connection]
    );
    members!(
        rows,
        "cci_event_endpoint_device_failed_t",
        EventDeviceFailed,
        [r#type = "type", endpoint]
    );
    printed().assert_same("cci_layouts", &rows);
}

#[test]
fn functions_have_the_same_prototypes() {
    let mut header = of_header(&printed().text("cci.h"), rust_type);
    // It is inline: no library exports it.
    header.remove("cci_event_type_str");
    assert_eq!(header.len(), 21);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_same(&of_declarations(&sources(&folder.join("src"))), &header);
    assert_same(&of_exports(&sources(&folder.join("../cci-c/src"))), &header);
}

/// The Rust name of a type that is no pointer, or that has its const behind its star.
fn rust_type(c: &str) -> &str {
    match c {
        "int" | "cci_os_handle_t" => "c_int",
        "char" => "c_char",
        "void" | "cci_opt_handle_t" => "c_void",
        "uint32_t" | "enum cci_status" | "cci_conn_attribute_t" | "cci_opt_name_t" => "u32",
        "uint64_t" => "u64",
        "struct timeval" => "timeval",
        "struct iovec" => "iovec",
        "cci_device_t * const" => "*mut Device",
        "cci_device_t" => "Device",
        "cci_endpoint_t" => "Endpoint",
        "cci_connection_t" => "Connection",
        "cci_event_t" => "Event",
        "cci_rma_handle_t" => "RmaHandle",
        other => other,
    }
}
