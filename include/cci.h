/* The Common Communication Interface, version 2 of its binary interface.
 *
 * Functions return CCI_SUCCESS or another cci_status_t unless their comment says otherwise.
 * All may be called from any thread. Only those whose comment says so block.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
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

/* ---- the library ---- */

/* To be given to cci_init. */
#define CCI_ABI_VERSION 2

typedef enum cci_status {
    CCI_SUCCESS = 0,
    /* No more exact name fits. */
    CCI_ERROR = 1,
    /* The peer has ended or disconnected, or this side has. */
    CCI_ERR_DISCONNECTED = 2,
    /* The receiver had no buffer until the send timeout. */
    CCI_ERR_RNR = 3,
    CCI_ERR_DEVICE_DEAD = 4,
    /* The remote memory isn't registered, or the access goes beyond its end. */
    CCI_ERR_RMA_HANDLE = 5,
    /* The remote registration doesn't allow the operation. */
    CCI_ERR_RMA_OP = 6,
    CCI_ERR_NOT_IMPLEMENTED = 7,
    CCI_ERR_NOT_FOUND = 8,
    CCI_EINVAL = EINVAL,
    /* Nothing was heard from the peer within the timeout. */
    CCI_ETIMEDOUT = ETIMEDOUT,
    CCI_ENOMEM = ENOMEM,
    CCI_ENODEV = ENODEV,
    CCI_ENETDOWN = ENETDOWN,
    CCI_EBUSY = EBUSY,
    CCI_ERANGE = ERANGE,
    /* Nothing is there now. */
    CCI_EAGAIN = EAGAIN,
    /* All buffers are in use. */
    CCI_ENOBUFS = ENOBUFS,
    CCI_EMSGSIZE = EMSGSIZE,
    CCI_ENOMSG = ENOMSG,
    CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
    /* The server has rejected, or there is none. */
    CCI_ECONNREFUSED = ECONNREFUSED
} cci_status_t;

/* Begins use of the library; counted. abi_ver is CCI_ABI_VERSION. *caps becomes 0: the
 * interface defines no capability bits.
 *   CCI_EINVAL               another version, or caps is NULL
 *   CCI_ERR_NOT_IMPLEMENTED  flags other than those of the first call
 */
int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/* Ends one use; the last one destroys endpoints that are open. May block for a second.
 *   CCI_ERROR  the library isn't in use
 */
int cci_finalize(void);

/* ---- devices ---- */

typedef const struct cci_device {
    /* As in the configuration file. */
    const char *name;
    /* "sm", "sock", "tcp", "verbs". */
    const char *transport;
    /* Not 0 if it works. */
    unsigned up;
    /* For people. */
    const char *info;
    /* "key=value" of the configuration file, ended by NULL. */
    const char *const *conf_argv;
    /* Bytes. */
    uint32_t max_send_size;
    /* Bits per second; 0 if it isn't known. */
    uint64_t rate;
    /* All (uint32_t)-1 if it is no PCI device. */
    struct {
        uint32_t domain, bus, dev, func;
    } pci;
} cci_device_t;

/* The devices, ended by NULL, the default one first. They stay until the last cci_finalize.
 * CCI_CONFIG names the configuration file; without it, devices are looked for.
 *   CCI_EINVAL  devices is NULL
 *   CCI_ERROR   the library isn't in use
 */
int cci_get_devices(cci_device_t * const **devices);

/* ---- endpoints ---- */

typedef enum cci_endpoint_flags {
    /* There are none yet. */
    bogus_must_have_something_here
} cci_endpoint_flags_t;

typedef const struct cci_endpoint {
    cci_device_t *device;
} cci_endpoint_t;

typedef int cci_os_handle_t;

/* Opens an endpoint on a device, or on the first one if it is NULL. flags is 0. If fd isn't
 * NULL, *fd becomes a descriptor that is readable while events wait; it is the library's, and
 * only to be polled.
 *   CCI_EINVAL  endpoint is NULL, or flags aren't 0
 *   CCI_ENODEV  there is no such device
 *   CCI_EBUSY   the configured service is taken
 *   CCI_ERROR   the library isn't in use, or the system refused
 */
int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint,
                        cci_os_handle_t *fd);

/* The same at a service: "pid/id" on sm, a port otherwise.
 *   CCI_EINVAL  also: the service is NULL, or not of that form
 *   CCI_EBUSY   the service is taken
 */
int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
                           cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/* Destroys an endpoint with its connections and registrations; peers see
 * CCI_ERR_DISCONNECTED. Its events are invalid afterwards. May block for a second.
 *   CCI_EINVAL  endpoint is NULL, or not open
 */
int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/* A text for a status, never NULL. endpoint may be NULL. */
const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* ---- connections ---- */

typedef enum cci_conn_attribute {
    /* Reliable; delivered and completed in the order of issue. */
    CCI_CONN_ATTR_RO = 0,
    /* Reliable. */
    CCI_CONN_ATTR_RU = 1,
    /* Messages may be lost; without remote memory access. */
    CCI_CONN_ATTR_UU = 2,
    /* Multicast, sending and receiving: each goes one way, and messages may be lost. */
    CCI_CONN_ATTR_UU_MC_TX = 3,
    CCI_CONN_ATTR_UU_MC_RX = 4
} cci_conn_attribute_t;

typedef const struct cci_connection {
    /* The longest message, bytes; not more than the device's. */
    uint32_t max_send_size;
    cci_endpoint_t *endpoint;
    cci_conn_attribute_t attribute;
    /* From cci_connect or cci_accept. */
    void *context;
} cci_connection_t;

union cci_event;
typedef const union cci_event cci_event_t;

/* The most data of a connection request, bytes. */
#define CCI_CONN_REQ_LEN (1024)

/* Asks a server for a connection; CCI_EVENT_CONNECT has the answer. A timeout of NULL waits
 * for ever. flags is 0. With a multicast attribute the URI's host is an IPv4 multicast address,
 * such as sock://239.255.0.1:20000. No server decides then, the data are ignored, and
 * CCI_EVENT_CONNECT follows at once.
 *   CCI_EINVAL               an argument is wrong, the URI is of another transport, or it names
 *                            a multicast group and the attribute doesn't, or the other way round
 *   CCI_EADDRNOTAVAIL        the host isn't known, or the group can't be joined
 *   CCI_ERR_NOT_IMPLEMENTED  multicast over shared memory
 */
int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr,
                uint32_t data_len, cci_conn_attribute_t attribute, const void *context,
                int flags, const struct timeval *timeout);

/* Accepts a request; CCI_EVENT_ACCEPT follows, before the first message. The event is still
 * to be returned.
 *   CCI_EINVAL  it is no request, or was answered before
 */
int cci_accept(cci_event_t *conn_req, const void *context);

/* Rejects a request. The event is still to be returned.
 *   CCI_EINVAL  it is no request, or was answered before
 */
int cci_reject(cci_event_t *conn_req);

/* Drops a connection. The peer learns nothing; its later sends fail. The pointer is invalid
 * afterwards.
 *   CCI_EINVAL  connection is NULL, or was dropped before
 */
int cci_disconnect(cci_connection_t *connection);

/* ---- events ---- */

typedef enum cci_event_type {
    CCI_EVENT_NONE = 0,
    CCI_EVENT_SEND = 1,
    CCI_EVENT_RECV = 2,
    CCI_EVENT_CONNECT = 3,
    CCI_EVENT_CONNECT_REQUEST = 4,
    CCI_EVENT_ACCEPT = 5,
    CCI_EVENT_KEEPALIVE_TIMEDOUT = 6,
    CCI_EVENT_ENDPOINT_DEVICE_FAILED = 7
} cci_event_type_t;

/* The name of a type of event. */
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

/* A send or a remote memory access has ended. On reliable connections CCI_SUCCESS means that
 * the message is in the peer's library, or the data are in place. */
typedef struct cci_event_send {
    cci_event_type_t type;
    cci_status_t status;
    cci_connection_t *connection;
    void *context;
} cci_event_send_t;

/* A message. Its bytes, aligned to 8, are readable until the event is returned. */
typedef struct cci_event_recv {
    cci_event_type_t type;
    uint32_t len;
    const void *ptr;
    cci_connection_t *connection;
} cci_event_recv_t;

/* The answer to cci_connect. connection is NULL unless status is CCI_SUCCESS; other statuses
 * are CCI_ECONNREFUSED and CCI_ETIMEDOUT. */
typedef struct cci_event_connect {
    cci_event_type_t type;
    cci_status_t status;
    void *context;
    cci_connection_t *connection;
} cci_event_connect_t;

/* A client asks for a connection. To be accepted or rejected, then returned. */
typedef struct cci_event_connect_request {
    cci_event_type_t type;
    uint32_t data_len;
    const void *data_ptr;
    cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

/* How accepting has ended. connection is NULL unless status is CCI_SUCCESS. */
typedef struct cci_event_accept {
    cci_event_type_t type;
    cci_status_t status;
    void *context;
    cci_connection_t *connection;
} cci_event_accept_t;

/* The peer didn't answer for the keepalive timeout. The timeout of the connection is 0
 * now; the connection stays open. */
typedef struct cci_event_keepalive_timedout {
    cci_event_type_t type;
    cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

typedef struct cci_event_endpoint_device_failed {
    cci_event_type_t type;
    cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

union cci_event {
    cci_event_type_t type;
    cci_event_send_t send;
    cci_event_recv_t recv;
    cci_event_connect_t connect;
    cci_event_connect_request_t request;
    cci_event_accept_t accept;
    cci_event_keepalive_timedout_t keepalive;
    cci_event_endpoint_device_failed_t dev_failed;
};

/* Does nothing: the descriptor is readable while events wait. flags is 0.
 *   CCI_EINVAL  endpoint is NULL or has no descriptor, or flags aren't 0
 */
int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/* The next event. It is the caller's until it is returned. On errors *event becomes NULL.
 *   CCI_EAGAIN   there is none
 *   CCI_ENOBUFS  there is none, and all receive buffers are with the application
 *   CCI_EINVAL   an argument is NULL
 */
int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/* Gives an event back; in any order.
 *   CCI_EINVAL  event is NULL, or a request that was neither accepted nor rejected
 */
int cci_return_event(cci_event_t *event);

/* ---- options ---- */

/* Of endpoints (ENDPT) and connections (CONN). Values are uint32_t unless the comment says
 * otherwise; timeouts in microseconds. */
typedef enum cci_opt_name {
    /* Of connections that are made from now on. */
    CCI_OPT_ENDPT_SEND_TIMEOUT = 0,
    /* How many messages the library holds. */
    CCI_OPT_ENDPT_RECV_BUF_COUNT = 1,
    /* How many operations may be pending. */
    CCI_OPT_ENDPT_SEND_BUF_COUNT = 2,
    /* Of all connections, now and later; 0 is off. */
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = 3,
    /* A char *, which the caller frees. Can't be set. */
    CCI_OPT_ENDPT_URI = 4,
    /* A cci_alignment_t. Can't be set. */
    CCI_OPT_ENDPT_RMA_ALIGN = 5,
    /* Of operations that begin from now on. */
    CCI_OPT_CONN_SEND_TIMEOUT = 6,
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT = 7
} cci_opt_name_t;

/* Bytes that addresses and lengths must be multiples of; 0: any. */
typedef struct cci_alignment {
    uint32_t rma_write_local_addr;
    uint32_t rma_write_remote_addr;
    uint32_t rma_write_length;
    uint32_t rma_read_local_addr;
    uint32_t rma_read_remote_addr;
    uint32_t rma_read_length;
} cci_alignment_t;

/* A cci_endpoint_t or a cci_connection_t, as the option's name says. */
typedef const void cci_opt_handle_t;

/* Sets an option.
 *   CCI_EINVAL  an argument is NULL, handle is of the other kind, the option can't be set,
 *               or not to that value
 */
int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);

/* Reads an option.
 *   CCI_EINVAL  an argument is NULL, or handle is of the other kind
 */
int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* ---- messages ---- */

/* Returns when the operation has ended, with its status and without an event. Blocks. */
#define CCI_FLAG_BLOCKING (1 << 0)
/* The buffer stays lent until the event. */
#define CCI_FLAG_NO_COPY (1 << 1)
/* Without an event; with CCI_FLAG_NO_COPY on CCI_CONN_ATTR_RO only. */
#define CCI_FLAG_SILENT (1 << 3)
/* For cci_rma and cci_rma_register. */
#define CCI_FLAG_READ (1 << 4)
#define CCI_FLAG_WRITE (1 << 5)
/* For cci_rma: not before earlier accesses of the connection have ended. */
#define CCI_FLAG_FENCE (1 << 6)

/* Sends a message. The buffer may be used again on return, unless CCI_FLAG_NO_COPY is set.
 *   CCI_EINVAL            an argument is wrong
 *   CCI_EMSGSIZE          longer than connection->max_send_size
 *   CCI_ENOBUFS           too many operations are pending
 *   CCI_ERR_DISCONNECTED  the peer has gone
 */
int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
             const void *context, int flags);

/* The same from several pieces. */
int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
              const void *context, int flags);

/* ---- remote memory ---- */

/* A handle is its 32 bytes: a copy, also a peer's, is as good. */
typedef const struct cci_rma_handle {
    uint64_t stuff[4];
} cci_rma_handle_t;

/* Registers memory. flags are CCI_FLAG_READ and CCI_FLAG_WRITE, what peers may do; neither
 * of them allows both.
 *   CCI_EINVAL  an argument is NULL, length is 0, or the memory wraps
 */
int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                     cci_rma_handle_t **rma_handle);

/* Ends a registration; rma_handle may be a copy. On return nobody uses the memory. May block
 * while a peer is copying.
 *   CCI_EINVAL  an argument is NULL, or the handle isn't of a registration of the endpoint
 */
int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/* Reads (CCI_FLAG_READ) or writes (CCI_FLAG_WRITE) the peer's memory; the peer gets the
 * message, if there is one, after the data are in place.
 *   CCI_EINVAL  neither flag or both, data_len is 0, an unreliable connection, a NULL handle,
 *               or local memory that isn't registered on the connection's endpoint
 *   others      as cci_send
 */
int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
            cci_rma_handle_t *local_handle, uint64_t local_offset,
            cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
            const void *context, int flags);

END_C_DECLS

#endif /* CCI_H */
