/*
 * cci.h - the Common Communication Interface, version 2 of its binary interface.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Source and binary compatible with the public library's release 2.2: same names, values, sizes
 * and layouts. The comments follow the grammar that portals4.h explains.
 *
 * For every function, and not repeated there: if a call fails, it has changed nothing, unless
 * CCI_FLAG_BLOCKING has waited for its end. Output arguments are written on success only, but for
 * cci_get_event. Memory that a structure names stays the library's.
 */
#ifndef CCI_H
#define CCI_H

#include "cci/public_config.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

BEGIN_C_DECLS

/* --- Beginning and end --------------------------------------------------------------------- */

#define CCI_ABI_VERSION 2 /**< To be passed to cci_init. */

/**
 * What functions return and events report
 *
 * Values above 8 are those of errno.
 */
typedef enum cci_status {
    CCI_SUCCESS = 0,                   /**< Done. */
    CCI_ERROR = 1,                     /**< A failure for which there is no more exact name. */
    CCI_ERR_DISCONNECTED = 2,          /**< The peer has ended or disconnected, or this side. */
    CCI_ERR_RNR = 3,                   /**< The receiver had no buffer until the send timeout. */
    CCI_ERR_DEVICE_DEAD = 4,           /**< The device has failed. */
    CCI_ERR_RMA_HANDLE = 5,            /**< The remote memory isn't registered, or the access goes
                                        * beyond its end. */
    CCI_ERR_RMA_OP = 6,                /**< The remote registration doesn't allow the operation. */
    CCI_ERR_NOT_IMPLEMENTED = 7,       /**< Not supported. */
    CCI_ERR_NOT_FOUND = 8,             /**< Not found. */
    CCI_EINVAL = EINVAL,               /**< An argument is wrong. */
    CCI_ETIMEDOUT = ETIMEDOUT,         /**< Nothing was heard from the peer within the timeout. */
    CCI_ENOMEM = ENOMEM,               /**< No memory is left. */
    CCI_ENODEV = ENODEV,               /**< There is no such device. */
    CCI_ENETDOWN = ENETDOWN,           /**< The network is down. */
    CCI_EBUSY = EBUSY,                 /**< Another endpoint has the service. */
    CCI_ERANGE = ERANGE,               /**< Beyond the limits. */
    CCI_EAGAIN = EAGAIN,               /**< Nothing is there now. */
    CCI_ENOBUFS = ENOBUFS,             /**< All buffers are in use. */
    CCI_EMSGSIZE = EMSGSIZE,           /**< Longer than the connection takes. */
    CCI_ENOMSG = ENOMSG,               /**< There is no message. */
    CCI_EADDRNOTAVAIL = EADDRNOTAVAIL, /**< The host isn't known, or its address can't be used. */
    CCI_ECONNREFUSED = ECONNREFUSED    /**< The server has rejected, or there is none. */
} cci_status_t;

/**
 * Begins use of the library
 *
 * Calls are counted: each needs a cci_finalize.
 *
 * @param[in] abi_ver  CCI_ABI_VERSION
 * @param[in] flags    0; there are none
 * @param[out] caps    becomes 0: the interface defines no capability bits
 * @return CCI_SUCCESS              the library is in use
 * @return CCI_EINVAL               another version, or `caps` is NULL
 * @return CCI_ERR_NOT_IMPLEMENTED  the flags aren't those of the first call
 * @blocks never
 * @threads safe
 * @see cci_finalize, cci_get_devices
 */
int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/**
 * Ends one use of the library
 *
 * The last one destroys the endpoints that are open.
 *
 * @return CCI_SUCCESS  this use has ended
 * @return CCI_ERROR    the library isn't in use
 * @blocks for up to a second for each endpoint, until what waits for room is sent
 * @threads safe, while no other call uses what the last one destroys
 * @see cci_init
 */
int cci_finalize(void);

/* --- Devices ------------------------------------------------------------------------------- */

/**
 * A device, on which endpoints are opened
 */
typedef const struct cci_device {
    const char *name;             /**< As in the configuration file. */
    const char *transport;        /**< "sm", "sock", "tcp" or "verbs". */
    unsigned up;                  /**< Not 0 if it works. */
    const char *info;             /**< For people. */
    const char *const *conf_argv; /**< "key=value" of the configuration file, ended by NULL. */
    uint32_t max_send_size;       /**< The longest message, bytes. */
    uint64_t rate;                /**< Bits per second; 0 if it isn't known. */
    struct {
        uint32_t domain; /**< Its domain. */
        uint32_t bus;    /**< Its bus. */
        uint32_t dev;    /**< Its device. */
        uint32_t func;   /**< Its function. */
    } pci; /**< Where it is; all (uint32_t)-1 if it is no PCI device. */
} cci_device_t;

/**
 * Lists the devices
 *
 * The default one comes first, then by priority. The environment variable `CCI_CONFIG` names the
 * configuration file; without it, the devices are shared memory and each network interface but
 * loopback. `CCI_CTP` restricts the transports.
 *
 * @param[out] devices  the list, ended by NULL; it stays until the last cci_finalize
 * @return CCI_SUCCESS  the list is there
 * @return CCI_EINVAL   `devices` is NULL
 * @return CCI_ERROR    the library isn't in use
 * @blocks never
 * @threads safe
 * @see cci_create_endpoint
 */
int cci_get_devices(cci_device_t * const **devices);

/* --- Endpoints ----------------------------------------------------------------------------- */

/**
 * Flags of endpoints
 *
 * There are none yet: functions take 0.
 */
typedef enum cci_endpoint_flags {
    bogus_must_have_something_here /**< A placeholder. */
} cci_endpoint_flags_t;

/**
 * An endpoint
 */
typedef const struct cci_endpoint {
    cci_device_t *device; /**< Where it was opened. */
} cci_endpoint_t;

typedef int cci_os_handle_t; /**< A descriptor for poll(2) or select(2). */

/**
 * Opens an endpoint
 *
 * @param[in] device     the device; NULL is the first one
 * @param[in] flags      0
 * @param[out] endpoint  the endpoint, to be destroyed by cci_destroy_endpoint
 * @param[out] fd        a descriptor that is readable while events wait. It is the library's, and
 *                       only to be polled. NULL if none is wanted
 * @return CCI_SUCCESS  it is open
 * @return CCI_EINVAL   `endpoint` is NULL, or `flags` aren't 0
 * @return CCI_ENODEV   there is no such device
 * @return CCI_EBUSY    the service that the configuration names is taken
 * @return CCI_ERROR    the library isn't in use, or the system refused
 * @blocks never
 * @threads safe
 * @see cci_create_endpoint_at, cci_destroy_endpoint, cci_get_opt
 */
int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint,
                        cci_os_handle_t *fd);

/**
 * Opens an endpoint at a service
 *
 * @param[in] device     the device; NULL is the first one
 * @param[in] service    "pid/id" on sm, a port otherwise
 * @param[in] flags      0
 * @param[out] endpoint  the endpoint, to be destroyed by cci_destroy_endpoint
 * @param[out] fd        as for cci_create_endpoint
 * @return CCI_SUCCESS  it is open
 * @return CCI_EINVAL   `endpoint` or `service` is NULL, `service` isn't of that form, or `flags`
 *                      aren't 0
 * @return CCI_ENODEV   there is no such device
 * @return CCI_EBUSY    the service is taken
 * @return CCI_ERROR    the library isn't in use, or the system refused
 * @blocks never
 * @threads safe
 * @see cci_create_endpoint
 */
int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
                           cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/**
 * Destroys an endpoint with its connections and registrations
 *
 * Its events are invalid afterwards. Peers get CCI_ERR_DISCONNECTED.
 *
 * @param[in] endpoint  the endpoint
 * @return CCI_SUCCESS  it is gone
 * @return CCI_EINVAL   `endpoint` is NULL, or not open
 * @blocks for up to a second, until what waits for room is sent
 * @threads safe, while no other call uses the endpoint
 * @see cci_create_endpoint, cci_finalize
 */
int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/**
 * Returns a text for a status
 *
 * @param[in] endpoint  may be NULL
 * @param[in] status    the status
 * @return the text, never NULL; it isn't to be freed
 * @blocks never
 * @threads safe
 */
const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* --- Connections --------------------------------------------------------------------------- */

/**
 * What a connection promises
 */
typedef enum cci_conn_attribute {
    CCI_CONN_ATTR_RO = 0,       /**< Reliable; delivered and completed in the order of issue. */
    CCI_CONN_ATTR_RU = 1,       /**< Reliable. */
    CCI_CONN_ATTR_UU = 2,       /**< Messages may be lost; no remote memory access. */
    CCI_CONN_ATTR_UU_MC_TX = 3, /**< Sends to a multicast group; messages may be lost. */
    CCI_CONN_ATTR_UU_MC_RX = 4  /**< Receives from a multicast group. */
} cci_conn_attribute_t;

/**
 * A connection
 */
typedef const struct cci_connection {
    uint32_t max_send_size;         /**< The longest message, bytes; at most the device's. */
    cci_endpoint_t *endpoint;       /**< The endpoint that it belongs to. */
    cci_conn_attribute_t attribute; /**< What it promises. */
    void *context;                  /**< From cci_connect or cci_accept. */
} cci_connection_t;

union cci_event;
typedef const union cci_event cci_event_t; /**< An event of any type. */

#define CCI_CONN_REQ_LEN (1024) /**< The longest data of a connection request, bytes. */

/**
 * Asks a server for a connection
 *
 * The answer is CCI_EVENT_CONNECT, which bears `context`.
 *
 * With a multicast attribute the URI's host is an IPv4 multicast address, such as
 * sock://239.255.0.1:20000. No server decides then, the data are ignored, and CCI_EVENT_CONNECT
 * follows at once.
 *
 * @param[in] endpoint    the endpoint that gets the connection
 * @param[in] server_uri  the CCI_OPT_ENDPT_URI of the server
 * @param[in] data_ptr    data for the server; copied
 * @param[in] data_len    bytes, up to CCI_CONN_REQ_LEN
 * @param[in] attribute   what the connection is to promise
 * @param[in] context     anything
 * @param[in] flags       0
 * @param[in] timeout     how long the server may take to answer; NULL is for ever
 * @return CCI_SUCCESS              the request is on its way
 * @return CCI_EINVAL               an argument is wrong, the URI is of another transport, or it
 *                                  names a group and the attribute doesn't, or the other way round
 * @return CCI_EADDRNOTAVAIL        the host isn't known, or the group can't be joined
 * @return CCI_ENOMEM               there is no room for another connection
 * @return CCI_ERR_NOT_IMPLEMENTED  multicast over shared memory
 * @blocks while the name of a host is looked up
 * @threads safe
 * @see cci_accept, cci_reject, cci_disconnect
 */
int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr,
                uint32_t data_len, cci_conn_attribute_t attribute, const void *context,
                int flags, const struct timeval *timeout);

/**
 * Accepts a connection request
 *
 * CCI_EVENT_ACCEPT follows, before the first message. The event `conn_req` is still to be
 * returned.
 *
 * @param[in] conn_req  a CCI_EVENT_CONNECT_REQUEST
 * @param[in] context   anything
 * @return CCI_SUCCESS  the client is informed
 * @return CCI_EINVAL   it is no request, or was answered before
 * @blocks never
 * @threads safe
 * @see cci_reject, cci_return_event
 */
int cci_accept(cci_event_t *conn_req, const void *context);

/**
 * Rejects a connection request
 *
 * The client gets CCI_ECONNREFUSED. The event `conn_req` is still to be returned.
 *
 * @param[in] conn_req  a CCI_EVENT_CONNECT_REQUEST
 * @return CCI_SUCCESS  the client is informed
 * @return CCI_EINVAL   it is no request, or was answered before
 * @blocks never
 * @threads safe
 * @see cci_accept, cci_return_event
 */
int cci_reject(cci_event_t *conn_req);

/**
 * Drops a connection
 *
 * The peer isn't notified; its later sends fail. The pointer is invalid afterwards.
 *
 * @param[in] connection  the connection
 * @return CCI_SUCCESS  it is gone
 * @return CCI_EINVAL   `connection` is NULL, or was dropped before
 * @blocks never
 * @threads safe, while no other call uses the connection
 * @see cci_connect, cci_accept
 */
int cci_disconnect(cci_connection_t *connection);

/* --- Events -------------------------------------------------------------------------------- */

/**
 * The types of events
 */
typedef enum cci_event_type {
    CCI_EVENT_NONE = 0,                  /**< Never returned. */
    CCI_EVENT_SEND = 1,                  /**< A send or a remote memory access has ended. */
    CCI_EVENT_RECV = 2,                  /**< A message has arrived. */
    CCI_EVENT_CONNECT = 3,               /**< The answer to cci_connect. */
    CCI_EVENT_CONNECT_REQUEST = 4,       /**< A client asks for a connection. */
    CCI_EVENT_ACCEPT = 5,                /**< How cci_accept has ended. */
    CCI_EVENT_KEEPALIVE_TIMEDOUT = 6,    /**< The peer was silent for too long. */
    CCI_EVENT_ENDPOINT_DEVICE_FAILED = 7 /**< The device has failed. */
} cci_event_type_t;

/**
 * Returns the name of a type of event
 *
 * @param[in] type  the type
 * @return the name, such as "CCI_EVENT_SEND"; it isn't to be freed
 * @blocks never
 * @threads safe
 */
static inline const char *cci_event_type_str(cci_event_type_t type)
{
    static const char *const names[] = {
        "CCI_EVENT_NONE",    "CCI_EVENT_SEND",
        "CCI_EVENT_RECV",    "CCI_EVENT_CONNECT",
        "CCI_EVENT_CONNECT_REQUEST", "CCI_EVENT_ACCEPT",
        "CCI_EVENT_KEEPALIVE_TIMEDOUT", "CCI_EVENT_ENDPOINT_DEVICE_FAILED"
    };
    return (unsigned)type < 8 ? names[(unsigned)type] : "Unknown event";
}

/**
 * The end of a send or of a remote memory access
 *
 * On reliable connections CCI_SUCCESS means that the message is in the peer's library, or the data
 * are in place.
 */
typedef struct cci_event_send {
    cci_event_type_t type;        /**< CCI_EVENT_SEND. */
    cci_status_t status;          /**< How it ended. */
    cci_connection_t *connection; /**< Its connection. */
    void *context;                /**< As passed to the operation. */
} cci_event_send_t;

/**
 * A message
 */
typedef struct cci_event_recv {
    cci_event_type_t type;        /**< CCI_EVENT_RECV. */
    uint32_t len;                 /**< Bytes. */
    const void *ptr;              /**< They stay until the event is returned; aligned to 8. */
    cci_connection_t *connection; /**< On which connection. */
} cci_event_recv_t;

/**
 * The answer to cci_connect
 */
typedef struct cci_event_connect {
    cci_event_type_t type;        /**< CCI_EVENT_CONNECT. */
    cci_status_t status;          /**< CCI_SUCCESS, CCI_ECONNREFUSED or CCI_ETIMEDOUT. */
    void *context;                /**< As passed to cci_connect. */
    cci_connection_t *connection; /**< NULL unless `status` is CCI_SUCCESS. */
} cci_event_connect_t;

/**
 * A client's request
 *
 * It is to be accepted or rejected, then returned.
 */
typedef struct cci_event_connect_request {
    cci_event_type_t type;          /**< CCI_EVENT_CONNECT_REQUEST. */
    uint32_t data_len;              /**< Bytes of the client's data. */
    const void *data_ptr;           /**< They stay until the event is returned. */
    cci_conn_attribute_t attribute; /**< What the connection is to promise. */
} cci_event_connect_request_t;

/**
 * How accepting has ended
 */
typedef struct cci_event_accept {
    cci_event_type_t type;        /**< CCI_EVENT_ACCEPT. */
    cci_status_t status;          /**< How it ended. */
    void *context;                /**< As passed to cci_accept. */
    cci_connection_t *connection; /**< NULL unless `status` is CCI_SUCCESS. */
} cci_event_accept_t;

/**
 * The peer didn't answer for the keepalive timeout
 *
 * The timeout of the connection is 0 now; the connection stays open.
 */
typedef struct cci_event_keepalive_timedout {
    cci_event_type_t type;        /**< CCI_EVENT_KEEPALIVE_TIMEDOUT. */
    cci_connection_t *connection; /**< The connection. */
} cci_event_keepalive_timedout_t;

/**
 * The device of an endpoint has failed
 */
typedef struct cci_event_endpoint_device_failed {
    cci_event_type_t type;    /**< CCI_EVENT_ENDPOINT_DEVICE_FAILED. */
    cci_endpoint_t *endpoint; /**< The endpoint. */
} cci_event_endpoint_device_failed_t;

/**
 * An event, `cci_event_t`
 */
union cci_event {
    cci_event_type_t type;                         /**< Which member counts. */
    cci_event_send_t send;                         /**< For CCI_EVENT_SEND. */
    cci_event_recv_t recv;                         /**< For CCI_EVENT_RECV. */
    cci_event_connect_t connect;                   /**< For CCI_EVENT_CONNECT. */
    cci_event_connect_request_t request;           /**< For CCI_EVENT_CONNECT_REQUEST. */
    cci_event_accept_t accept;                     /**< For CCI_EVENT_ACCEPT. */
    cci_event_keepalive_timedout_t keepalive;      /**< For CCI_EVENT_KEEPALIVE_TIMEDOUT. */
    cci_event_endpoint_device_failed_t dev_failed; /**< For CCI_EVENT_ENDPOINT_DEVICE_FAILED. */
};

/**
 * Does nothing
 *
 * The descriptor of an endpoint is readable while events wait, so nothing is to be armed.
 *
 * @param[in] endpoint  an endpoint with a descriptor
 * @param[in] flags     0
 * @return CCI_SUCCESS  the descriptor is readable while events wait
 * @return CCI_EINVAL   `endpoint` is NULL or has no descriptor, or `flags` aren't 0
 * @blocks never
 * @threads safe
 * @see cci_create_endpoint
 */
int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/**
 * Takes the next event
 *
 * The event is the caller's until it is returned by cci_return_event.
 *
 * @param[in] endpoint  the endpoint
 * @param[out] event    the event; NULL if the call fails
 * @return CCI_SUCCESS  there is one
 * @return CCI_EAGAIN   there is none
 * @return CCI_ENOBUFS  there is none, and the application holds all receive buffers
 * @return CCI_EINVAL   an argument is NULL
 * @blocks never
 * @threads safe; each event goes to one of them
 * @see cci_return_event
 */
int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/**
 * Gives an event back
 *
 * Events may be given back in any order. The bytes of a message are invalid afterwards.
 *
 * @param[in] event  the event
 * @return CCI_SUCCESS  it is the library's again
 * @return CCI_EINVAL   `event` is NULL, or a request that was neither accepted nor rejected
 * @blocks never
 * @threads safe
 * @see cci_get_event
 */
int cci_return_event(cci_event_t *event);

/* --- Options ------------------------------------------------------------------------------- */

/**
 * Options of endpoints (ENDPT) and connections (CONN)
 *
 * Values are `uint32_t` unless the text says otherwise; timeouts are in microseconds.
 */
typedef enum cci_opt_name {
    CCI_OPT_ENDPT_SEND_TIMEOUT = 0,      /**< Of connections that are made from now on. */
    CCI_OPT_ENDPT_RECV_BUF_COUNT = 1,    /**< How many messages the library holds. */
    CCI_OPT_ENDPT_SEND_BUF_COUNT = 2,    /**< How many operations may be pending. */
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = 3, /**< Of all connections, now and later; 0 is off. */
    CCI_OPT_ENDPT_URI = 4,               /**< A `char *`, which the caller frees. Can't be set. */
    CCI_OPT_ENDPT_RMA_ALIGN = 5,         /**< A cci_alignment_t. Can't be set. */
    CCI_OPT_CONN_SEND_TIMEOUT = 6,       /**< Of operations that begin from now on. */
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT = 7   /**< Of this connection; 0 is off. */
} cci_opt_name_t;

/**
 * What addresses and lengths of remote memory accesses must be multiples of
 *
 * In bytes; 0 is any.
 */
typedef struct cci_alignment {
    uint32_t rma_write_local_addr;  /**< Local addresses of writes. */
    uint32_t rma_write_remote_addr; /**< Remote addresses of writes. */
    uint32_t rma_write_length;      /**< Lengths of writes. */
    uint32_t rma_read_local_addr;   /**< Local addresses of reads. */
    uint32_t rma_read_remote_addr;  /**< Remote addresses of reads. */
    uint32_t rma_read_length;       /**< Lengths of reads. */
} cci_alignment_t;

typedef const void cci_opt_handle_t; /**< A cci_endpoint_t or a cci_connection_t, as the option's
                                      * name says. */

/**
 * Sets an option
 *
 * @param[in] handle  the endpoint or connection
 * @param[in] name    the option
 * @param[in] val     the value; copied
 * @return CCI_SUCCESS  it is set
 * @return CCI_EINVAL   an argument is NULL, `handle` is of the other kind, or the option can't be
 *                      set, or not to that value
 * @blocks never
 * @threads safe
 * @see cci_get_opt
 */
int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);

/**
 * Reads an option
 *
 * @param[in] handle  the endpoint or connection
 * @param[in] name    the option
 * @param[out] val    the value
 * @return CCI_SUCCESS  the value is there
 * @return CCI_EINVAL   an argument is NULL, or `handle` is of the other kind
 * @blocks never
 * @threads safe
 * @see cci_set_opt
 */
int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* --- Messages ------------------------------------------------------------------------------ */

#define CCI_FLAG_BLOCKING (1 << 0) /**< Returns when the operation has ended, with its status and
                                    * without an event. */
#define CCI_FLAG_NO_COPY (1 << 1)  /**< The buffer stays lent until the event. */
#define CCI_FLAG_SILENT (1 << 3)   /**< Without an event; with CCI_FLAG_NO_COPY on CCI_CONN_ATTR_RO
                                    * only. */
#define CCI_FLAG_READ (1 << 4)     /**< In cci_rma: reads. In cci_rma_register: peers may read. */
#define CCI_FLAG_WRITE (1 << 5)    /**< In cci_rma: writes. In cci_rma_register: peers may write. */
#define CCI_FLAG_FENCE (1 << 6)    /**< In cci_rma: not before earlier accesses of the connection
                                    * have ended. */

/**
 * Sends a message
 *
 * CCI_EVENT_SEND reports its end, unless `flags` say otherwise.
 *
 * @param[in] connection  the connection
 * @param[in] msg_ptr     the bytes. They are the caller's again on return, or with
 *                        CCI_FLAG_NO_COPY at the end
 * @param[in] msg_len     bytes, up to the connection's `max_send_size`
 * @param[in] context     anything; for the event
 * @param[in] flags       CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT, or 0
 * @return CCI_SUCCESS           it has begun; with CCI_FLAG_BLOCKING, it has ended well
 * @return CCI_EINVAL            an argument is wrong
 * @return CCI_EMSGSIZE          longer than the connection takes
 * @return CCI_ENOBUFS           too many operations are pending
 * @return CCI_ERR_DISCONNECTED  the peer has gone
 * @return CCI_ERR_RNR           with CCI_FLAG_BLOCKING: the receiver had no buffer until the send
 *                               timeout
 * @return CCI_ETIMEDOUT         with CCI_FLAG_BLOCKING: the peer didn't answer until then
 * @blocks with CCI_FLAG_BLOCKING only, until the operation has ended
 * @threads safe
 * @see cci_sendv, cci_rma, cci_get_event
 */
int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
             const void *context, int flags);

/**
 * Sends a message from several pieces
 *
 * As cci_send; the message is the pieces' bytes, one after the other.
 *
 * @param[in] connection  the connection
 * @param[in] data        the pieces; the array is copied
 * @param[in] iovcnt      how many
 * @param[in] context     anything; for the event
 * @param[in] flags       as for cci_send
 * @return CCI_SUCCESS           it has begun; with CCI_FLAG_BLOCKING, it has ended well
 * @return CCI_EINVAL            an argument is wrong
 * @return CCI_EMSGSIZE          longer than the connection takes
 * @return CCI_ENOBUFS           too many operations are pending
 * @return CCI_ERR_DISCONNECTED  the peer has gone
 * @return CCI_ERR_RNR           with CCI_FLAG_BLOCKING: as for cci_send
 * @return CCI_ETIMEDOUT         with CCI_FLAG_BLOCKING: as for cci_send
 * @blocks with CCI_FLAG_BLOCKING only, until the operation has ended
 * @threads safe
 * @see cci_send
 */
int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
              const void *context, int flags);

/* --- Remote memory access ------------------------------------------------------------------ */

/**
 * Names registered memory
 *
 * A handle is its 32 bytes: a copy, also a peer's, is as good.
 */
typedef const struct cci_rma_handle {
    uint64_t stuff[4]; /**< The library's. */
} cci_rma_handle_t;

/**
 * Registers memory
 *
 * Registrations may overlap.
 *
 * @param[in] endpoint     the endpoint
 * @param[in] start        the memory; it stays lent until cci_rma_deregister
 * @param[in] length       bytes
 * @param[in] flags        what peers may do: CCI_FLAG_READ, CCI_FLAG_WRITE; neither of them allows
 *                         both
 * @param[out] rma_handle  its handle
 * @return CCI_SUCCESS  it is registered
 * @return CCI_EINVAL   an argument is NULL, `length` is 0, or the memory wraps
 * @blocks never
 * @threads safe
 * @see cci_rma_deregister, cci_rma
 */
int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                     cci_rma_handle_t **rma_handle);

/**
 * Ends a registration
 *
 * On return nobody uses the memory. Later accesses of peers end with CCI_ERR_RMA_HANDLE.
 *
 * @param[in] endpoint    the endpoint
 * @param[in] rma_handle  its handle, or a copy
 * @return CCI_SUCCESS  it has ended
 * @return CCI_EINVAL   an argument is NULL, or the endpoint has no such registration
 * @blocks while a peer is copying
 * @threads safe
 * @see cci_rma_register
 */
int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/**
 * Reads or writes the peer's memory
 *
 * CCI_EVENT_SEND reports its end, unless `flags` say otherwise. The peer gets the message, if there
 * is one, after the data are in place.
 *
 * @param[in] connection     a reliable connection
 * @param[in] msg_ptr        a message for the peer; NULL is none
 * @param[in] msg_len        its bytes, up to the connection's `max_send_size`
 * @param[in] local_handle   memory of the connection's endpoint
 * @param[in] local_offset   where in it, bytes
 * @param[in] remote_handle  the peer's handle, whose bytes came in a message
 * @param[in] remote_offset  where in its memory, bytes
 * @param[in] data_len       bytes
 * @param[in] context        anything; for the event
 * @param[in] flags          CCI_FLAG_READ or CCI_FLAG_WRITE, with CCI_FLAG_FENCE and those of
 *                           cci_send
 * @return CCI_SUCCESS           it has begun; with CCI_FLAG_BLOCKING, it has ended well
 * @return CCI_EINVAL            neither CCI_FLAG_READ nor CCI_FLAG_WRITE or both, `data_len` is 0,
 *                               an unreliable connection, a NULL handle, or local memory that isn't
 *                               registered on the connection's endpoint
 * @return CCI_EMSGSIZE          the message is longer than the connection takes
 * @return CCI_ENOBUFS           too many operations are pending
 * @return CCI_ERR_DISCONNECTED  the peer has gone
 * @return CCI_ERR_RMA_HANDLE    with CCI_FLAG_BLOCKING: the remote memory isn't registered, or the
 *                               access goes beyond its end
 * @return CCI_ERR_RMA_OP        with CCI_FLAG_BLOCKING: its registration doesn't allow it
 * @return CCI_ERR_RNR           with CCI_FLAG_BLOCKING: as for cci_send
 * @return CCI_ETIMEDOUT         with CCI_FLAG_BLOCKING: as for cci_send
 * @blocks with CCI_FLAG_BLOCKING only, until the operation has ended
 * @threads safe
 * @see cci_send, cci_rma_register
 */
int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
            cci_rma_handle_t *local_handle, uint64_t local_offset,
            cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
            const void *context, int flags);

END_C_DECLS

#endif /* CCI_H */
