/* Two processes over the transport that CCI_CONFIG names, or shared memory: the parent is the
 * server, its child the client. Each part is a fault of the public library that must not
 * occur here.
 */
#define _GNU_SOURCE
#include <cci.h>

#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longer than anything takes on a loaded machine, seconds. */
#define LIMIT 60
#define LENGTH (1 << 20)
#define HELD 200
#define CONNECTIONS 100

static cci_endpoint_t *endpoint;
static int fd;

/* The next event; a process sleeps on the descriptor for it. */
static cci_event_t *next(void)
{
    time_t until = time(NULL) + LIMIT;
    for (;;) {
        cci_event_t *event = (cci_event_t *)&event;
        int status = cci_get_event(endpoint, &event);
        fd_set set;
        struct timeval wait = {1, 0};
        if (status == CCI_SUCCESS)
            return event;
        CHECK(event == NULL);
        CHECK(status == CCI_EAGAIN);
        CHECK(time(NULL) < until);
        FD_ZERO(&set);
        FD_SET(fd, &set);
        select(fd + 1, &set, NULL, NULL, &wait);
    }
}

static cci_event_t *expect(cci_event_type_t type)
{
    cci_event_t *event = next();
    if (event->type != type)
        fprintf(stderr, "%s: expected %s, got %s\n", who, cci_event_type_str(type),
                cci_event_type_str(event->type));
    CHECK(event->type == type);
    return event;
}

static void back(cci_event_t *event)
{
    CHECK(cci_return_event(event) == CCI_SUCCESS);
}

static void expect_sent(void *context, cci_status_t status)
{
    cci_event_t *event = expect(CCI_EVENT_SEND);
    if (event->send.status != status)
        fprintf(stderr, "%s: status %s\n", who, cci_strerror(endpoint, event->send.status));
    CHECK(event->send.context == context && event->send.status == status);
    back(event);
}

static void open_endpoint(void)
{
    uint32_t caps = 7;
    CHECK(cci_init(1, 0, &caps) == CCI_EINVAL);
    CHECK(cci_init(CCI_ABI_VERSION, 0, NULL) == CCI_EINVAL);
    CHECK(cci_finalize() == CCI_ERROR);
    CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS && caps == 0);
    CHECK(cci_create_endpoint(NULL, 0, &endpoint, &fd) == CCI_SUCCESS);
}

static cci_connection_t *connect_to(const char *uri, cci_conn_attribute_t attribute)
{
    struct timeval limit = {LIMIT, 0};
    cci_connection_t *connection;
    cci_event_t *event;
    CHECK(cci_connect(endpoint, uri, "hello", 5, attribute, &limit, 0, &limit) == CCI_SUCCESS);
    event = expect(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_SUCCESS && event->connect.context == &limit);
    connection = event->connect.connection;
    CHECK(connection->attribute == attribute && connection->endpoint == endpoint);
    CHECK(connection->context == &limit);
    back(event);
    return connection;
}

static cci_connection_t *answer(cci_event_t *request, cci_conn_attribute_t attribute)
{
    cci_connection_t *connection;
    cci_event_t *event;
    CHECK(request->request.attribute == attribute);
    CHECK(request->request.data_len == 5);
    CHECK(memcmp(request->request.data_ptr, "hello", 6) == 0);
    CHECK(cci_return_event(request) == CCI_EINVAL);
    CHECK(cci_accept(request, &fd) == CCI_SUCCESS);
    CHECK(cci_accept(request, &fd) == CCI_EINVAL);
    CHECK(cci_reject(request) == CCI_EINVAL);
    back(request);
    event = expect(CCI_EVENT_ACCEPT);
    CHECK(event->accept.status == CCI_SUCCESS && event->accept.context == &fd);
    connection = event->accept.connection;
    back(event);
    return connection;
}

static cci_connection_t *accept_one(cci_conn_attribute_t attribute)
{
    return answer(expect(CCI_EVENT_CONNECT_REQUEST), attribute);
}

/* ---- connections ---- */

static void refused(const char *uri)
{
    struct timeval brief = {0, 200000};
    cci_event_t *event;
    /* Shared memory has no multicast, and over UDP the URI of an endpoint is no group's. */
    CHECK(cci_connect(endpoint, uri, "x", 1, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL)
          == (strncmp(uri, "sm:", 3) == 0 ? CCI_ERR_NOT_IMPLEMENTED : CCI_EINVAL));
    CHECK(cci_connect(endpoint, uri, "x", 1, (cci_conn_attribute_t)99, NULL, 0, NULL)
          == CCI_EINVAL);
    CHECK(cci_connect(endpoint, "no uri", "x", 1, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_EINVAL);
    CHECK(cci_connect(endpoint, uri, "x", 1025, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_EINVAL);
    CHECK(cci_connect(endpoint, uri, "reject", 6, CCI_CONN_ATTR_RO, &fd, 0, NULL)
          == CCI_SUCCESS);
    event = expect(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_ECONNREFUSED && event->connect.connection == NULL);
    CHECK(event->connect.context == &fd);
    back(event);
    /* The server answers this one only after the next has arrived. */
    CHECK(cci_connect(endpoint, uri, "late", 4, CCI_CONN_ATTR_RO, &fd, 0, &brief)
          == CCI_SUCCESS);
    event = expect(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_ETIMEDOUT && event->connect.connection == NULL);
    back(event);
}

/* Returns the connection that follows. */
static cci_connection_t *refuse(void)
{
    cci_event_t *request = expect(CCI_EVENT_CONNECT_REQUEST), *following, *event;
    CHECK(cci_reject(request) == CCI_SUCCESS);
    back(request);
    request = expect(CCI_EVENT_CONNECT_REQUEST);
    CHECK(request->request.data_len == 4);
    following = expect(CCI_EVENT_CONNECT_REQUEST);
    CHECK(cci_accept(request, NULL) == CCI_SUCCESS);
    back(request);
    event = expect(CCI_EVENT_ACCEPT);
    CHECK(event->accept.status != CCI_SUCCESS && event->accept.connection == NULL);
    back(event);
    return answer(following, CCI_CONN_ATTR_RO);
}

/* ---- messages ---- */

static void talk(cci_connection_t *connection)
{
    uint32_t most = connection->max_send_size, each;
    char *long_one = malloc(most + 1);
    struct iovec pieces[2] = {{(void *)"ab", 2}, {(void *)"cde", 3}};
    int is_reliable = connection->attribute != CCI_CONN_ATTR_UU;
    memset(long_one, 'l', most + 1);
    CHECK(cci_send(connection, long_one, most + 1, NULL, 0) == CCI_EMSGSIZE);
    CHECK(cci_send(connection, NULL, 1, NULL, 0) == CCI_EINVAL);
    CHECK(cci_send(NULL, "x", 1, NULL, 0) == CCI_EINVAL);
    if (connection->attribute != CCI_CONN_ATTR_RO)
        CHECK(cci_send(connection, "x", 1, NULL, CCI_FLAG_NO_COPY | CCI_FLAG_SILENT)
              == CCI_EINVAL);
    CHECK(cci_send(connection, long_one, most, &most, CCI_FLAG_NO_COPY) == CCI_SUCCESS);
    expect_sent(&most, CCI_SUCCESS);
    CHECK(cci_sendv(connection, pieces, 2, &fd, 0) == CCI_SUCCESS);
    expect_sent(&fd, CCI_SUCCESS);
    for (each = 0; each < HELD; each++)
        CHECK(cci_send(connection, &each, sizeof each, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    CHECK(cci_send(connection, "end", 3, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS);
    if (is_reliable) {
        cci_event_t *event = expect(CCI_EVENT_RECV);
        CHECK(event->recv.len == 3 && memcmp(event->recv.ptr, "ok", 3) == 0);
        back(event);
    }
    free(long_one);
}

static void listen_to(cci_connection_t *connection)
{
    cci_event_t *held[HELD], *event = expect(CCI_EVENT_RECV);
    uint32_t each;
    CHECK(event->recv.len == connection->max_send_size && event->recv.connection == connection);
    CHECK((uintptr_t)event->recv.ptr % 8 == 0);
    CHECK(((const char *)event->recv.ptr)[event->recv.len - 1] == 'l');
    back(event);
    event = expect(CCI_EVENT_RECV);
    CHECK(event->recv.len == 5 && memcmp(event->recv.ptr, "abcde", 6) == 0);
    back(event);
    for (each = 0; each < HELD; each++) {
        held[each] = expect(CCI_EVENT_RECV);
        CHECK(memcmp(held[each]->recv.ptr, &each, sizeof each) == 0);
    }
    back(expect(CCI_EVENT_RECV));
    for (each = HELD; each > 0; each--)
        back(held[each - 1]);
    CHECK(cci_return_event(held[0]) == CCI_EINVAL);
    if (connection->attribute != CCI_CONN_ATTR_UU)
        CHECK(cci_send(connection, "ok", 3, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS);
}

/* ---- remote memory ---- */

struct offer {
    struct cci_rma_handle both, read_only, gone;
};

static void access_memory(cci_connection_t *connection)
{
    cci_event_t *event = expect(CCI_EVENT_RECV);
    char *data = malloc(LENGTH);
    cci_rma_handle_t *local;
    struct offer offer;
    struct cci_rma_handle garbage = {{1, 2, 3, 4}}, copy;
    int at;
    CHECK(event->recv.len == sizeof offer);
    memcpy(&offer, event->recv.ptr, sizeof offer);
    back(event);
    for (at = 0; at < LENGTH; at++)
        data[at] = (char)(at / 7);
    CHECK(cci_rma_register(endpoint, data, LENGTH, 0, &local) == CCI_SUCCESS);
    memcpy(&copy, local, sizeof copy);
    CHECK(cci_rma(connection, NULL, 0, &copy, 0, &offer.both, 0, 8, NULL, 0) == CCI_EINVAL);
    CHECK(cci_rma(connection, NULL, 0, &copy, 0, &offer.both, 0, 8, NULL,
                  CCI_FLAG_READ | CCI_FLAG_WRITE) == CCI_EINVAL);
    CHECK(cci_rma(connection, NULL, 0, &copy, 0, &offer.both, 0, 0, NULL, CCI_FLAG_READ)
          == CCI_EINVAL);
    CHECK(cci_rma(connection, NULL, 0, NULL, 0, &offer.both, 0, 8, NULL, CCI_FLAG_READ)
          == CCI_EINVAL);
#define FAILS(handle, offset, flag, status)                                                  \
    CHECK(cci_rma(connection, "never", 5, &copy, 0, handle, offset, 8, &copy, flag)          \
          == CCI_SUCCESS);                                                                   \
    expect_sent(&copy, status)
    FAILS(&offer.both, LENGTH - 7, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
    FAILS(&offer.both, UINT64_MAX - 3, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
    FAILS(&offer.gone, 0, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
    FAILS(&garbage, 0, CCI_FLAG_READ, CCI_ERR_RMA_HANDLE);
    FAILS(&offer.read_only, 0, CCI_FLAG_WRITE, CCI_ERR_RMA_OP);
    CHECK(cci_send(connection, "first", 5, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    CHECK(cci_rma(connection, "second", 6, &copy, 0, &offer.both, 0, LENGTH, &fd,
                  CCI_FLAG_WRITE) == CCI_SUCCESS);
    CHECK(cci_send(connection, "third", 5, &copy, 0) == CCI_SUCCESS);
    expect_sent(&fd, CCI_SUCCESS);
    expect_sent(&copy, CCI_SUCCESS);
    memset(data, 0, LENGTH);
    CHECK(cci_rma(connection, NULL, 0, &copy, 0, &offer.both, 0, LENGTH, NULL,
                  CCI_FLAG_READ | CCI_FLAG_FENCE | CCI_FLAG_BLOCKING) == CCI_SUCCESS);
    for (at = 0; at < LENGTH; at++)
        CHECK(data[at] == (char)(at / 7));
    CHECK(cci_rma_deregister(endpoint, &copy) == CCI_SUCCESS);
    CHECK(cci_rma_deregister(endpoint, &copy) == CCI_EINVAL);
    CHECK(cci_send(connection, "done", 4, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS);
    free(data);
}

static void offer_memory(cci_connection_t *connection)
{
    static const char *const order[] = {"first", "second", "third", "done"};
    char *data = calloc(1, LENGTH);
    cci_rma_handle_t *both, *read_only, *gone;
    struct offer offer;
    int each, at;
    CHECK(cci_rma_register(endpoint, data, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE, &both)
          == CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, data, LENGTH, CCI_FLAG_READ, &read_only) == CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, data, LENGTH, CCI_FLAG_WRITE, &gone) == CCI_SUCCESS);
    memcpy(&offer.both, both, sizeof offer.both);
    memcpy(&offer.read_only, read_only, sizeof offer.read_only);
    memcpy(&offer.gone, gone, sizeof offer.gone);
    CHECK(cci_rma_deregister(endpoint, gone) == CCI_SUCCESS);
    CHECK(cci_send(connection, &offer, sizeof offer, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS);
    for (each = 0; each < 4; each++) {
        cci_event_t *event = expect(CCI_EVENT_RECV);
        CHECK(event->recv.len == strlen(order[each]));
        CHECK(memcmp(event->recv.ptr, order[each], event->recv.len) == 0);
        back(event);
        for (at = 0; each == 1 && at < LENGTH; at++)
            CHECK(data[at] == (char)(at / 7));
    }
    CHECK(cci_rma_deregister(endpoint, both) == CCI_SUCCESS);
    CHECK(cci_rma_deregister(endpoint, read_only) == CCI_SUCCESS);
    free(data);
}

/* ---- options ---- */

static void set_options(cci_connection_t *connection)
{
    uint32_t name, value;
    cci_alignment_t alignment = {9, 9, 9, 9, 9, 9};
    char *uri = NULL;
    for (name = CCI_OPT_ENDPT_SEND_TIMEOUT; name <= CCI_OPT_CONN_KEEPALIVE_TIMEOUT; name++) {
        cci_opt_handle_t *handle = name < CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)endpoint
                                                                    : (const void *)connection;
        cci_opt_handle_t *other = name < CCI_OPT_CONN_SEND_TIMEOUT ? (const void *)connection
                                                                   : (const void *)endpoint;
        if (name == CCI_OPT_ENDPT_URI || name == CCI_OPT_ENDPT_RMA_ALIGN)
            continue;
        value = 30000000;
        CHECK(cci_set_opt(other, (cci_opt_name_t)name, &value) == CCI_EINVAL);
        CHECK(cci_set_opt(handle, (cci_opt_name_t)name, NULL) == CCI_EINVAL);
        CHECK(cci_set_opt(handle, (cci_opt_name_t)name, &value) == CCI_SUCCESS);
        value = 0;
        CHECK(cci_get_opt(handle, (cci_opt_name_t)name, &value) == CCI_SUCCESS);
        CHECK(value == 30000000);
    }
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    CHECK(strstr(uri, "://") != NULL);
    CHECK(cci_set_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_EINVAL);
    free(uri);
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &alignment) == CCI_SUCCESS);
    CHECK(alignment.rma_write_length == 0);
    CHECK(cci_arm_os_handle(endpoint, 0) == CCI_SUCCESS);
}

/* ---- the two processes ---- */

static void client(const char *uri)
{
    cci_connection_t *ordered, *many[CONNECTIONS];
    int each;
    who = "client";
    open_endpoint();
    refused(uri);
    ordered = connect_to(uri, CCI_CONN_ATTR_RO);
    talk(ordered);
    talk(connect_to(uri, CCI_CONN_ATTR_RU));
    talk(connect_to(uri, CCI_CONN_ATTR_UU));
    access_memory(ordered);
    for (each = 0; each < CONNECTIONS; each++)
        many[each] = connect_to(uri, CCI_CONN_ATTR_RU);
    for (each = 0; each < CONNECTIONS; each++)
        CHECK(cci_send(many[each], &each, sizeof each, NULL, CCI_FLAG_BLOCKING)
              == CCI_SUCCESS);
    for (each = 0; each < CONNECTIONS; each++)
        CHECK(cci_disconnect(many[each]) == CCI_SUCCESS);
    CHECK(cci_disconnect(NULL) == CCI_EINVAL);
    CHECK(cci_disconnect(many[0]) == CCI_EINVAL);
    set_options(ordered);
    CHECK(cci_send(ordered, "bye", 3, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS);
    pause(); /* The server kills it. */
}

/* The peer dies: keepalive reports it, and later sends fail. */
static void lose(cci_connection_t *connection, pid_t child)
{
    uint32_t keepalive = 100000;
    cci_event_t *event;
    CHECK(cci_set_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive) == CCI_SUCCESS);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    event = expect(CCI_EVENT_KEEPALIVE_TIMEDOUT);
    CHECK(event->keepalive.connection == connection);
    back(event);
    CHECK(cci_get_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive) == CCI_SUCCESS);
    CHECK(keepalive == 0);
    CHECK(cci_send(connection, "x", 1, NULL, CCI_FLAG_BLOCKING) == CCI_ERR_DISCONNECTED);
}

/* Who opens an endpoint removes what those left that were killed. */
static void clear_after_the_dead(void)
{
    CHECK(cci_create_endpoint(NULL, 0, &endpoint, NULL) == CCI_SUCCESS);
    CHECK(cci_destroy_endpoint(endpoint) == CCI_SUCCESS);
}

static void server(int pipe, pid_t child)
{
    cci_connection_t *ordered;
    cci_event_t *event;
    char *uri;
    int each, number;
    who = "server";
    open_endpoint();
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    CHECK(write(pipe, uri, strlen(uri) + 1) == (ssize_t)strlen(uri) + 1);
    free(uri);
    ordered = refuse();
    listen_to(ordered);
    listen_to(accept_one(CCI_CONN_ATTR_RU));
    listen_to(accept_one(CCI_CONN_ATTR_UU));
    offer_memory(ordered);
    for (each = 0; each < CONNECTIONS; each++)
        accept_one(CCI_CONN_ATTR_RU);
    for (each = 0; each < CONNECTIONS; each++) {
        event = expect(CCI_EVENT_RECV);
        memcpy(&number, event->recv.ptr, sizeof number);
        CHECK(number == each);
        back(event);
    }
    event = expect(CCI_EVENT_RECV);
    CHECK(event->recv.len == 3 && event->recv.connection == ordered);
    back(event);
    lose(ordered, child);
    CHECK(cci_destroy_endpoint(endpoint) == CCI_SUCCESS);
    CHECK(cci_destroy_endpoint(endpoint) == CCI_EINVAL);
    clear_after_the_dead();
    CHECK(cci_finalize() == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_ERROR);
}

int main(void)
{
    int ends[2], length = 0, got;
    char uri[1024];
    pid_t child;
    who = "main";
    CHECK(pipe(ends) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child > 0) {
        server(ends[1], child);
        return 0;
    }
    close(ends[1]);
    while ((got = (int)read(ends[0], uri + length, sizeof uri - (size_t)length)) > 0) {
        length += got;
        if (uri[length - 1] == '\0')
            break;
    }
    CHECK(length > 0);
    client(uri);
    return 0;
}
