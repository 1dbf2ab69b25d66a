/*
 * The calls of CCI that `cargo xtask instructions` counts.
 *
 * One process opens two endpoints over shared memory and runs under callgrind, which counts the
 * instructions of one call at a time and writes them down under the call's name. One thread
 * calls both endpoints, so a message is on its way before the call that finds it is counted.
 */
#define _GNU_SOURCE
#include <cci.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* Of each call; the most frequent count is what it costs. */
#define ROUNDS 25
/* Polls after which an endpoint is known to poll all the time, so that nobody rings it. */
#define WARM_POLLS 200
/* Looks for an event before something is wrong. */
#define LOOKS 100000000
#define LIMIT_SECONDS 100

/* Two connections between two endpoints, by attribute. */
enum { RO, UU, KINDS };

static cci_endpoint_t *sender, *receiver;
static cci_connection_t *connections[KINDS];
static const char *uri;
static char memory[64];
static cci_rma_handle_t *handle, *remote;

static void fail(const char *what, int got)
{
    fprintf(stderr, "calls_cci: %s (%d)\n", what, got);
    exit(1);
}

#define OK(call)                              \
    do {                                      \
        int rc_ = (call);                     \
        if (rc_ != CCI_SUCCESS) fail(#call, rc_); \
    } while (0)

/* Counts one call under a name. One that should have found a message and hasn't, because
 * the helper was about to take it, counts elsewhere. */
#define COUNTED(name, code, call)                               \
    do {                                                        \
        CALLGRIND_TOGGLE_COLLECT;                               \
        int rc_ = (call);                                       \
        CALLGRIND_TOGGLE_COLLECT;                               \
        if (rc_ == (code)) {                                    \
            CALLGRIND_DUMP_STATS_AT(name);                      \
        } else {                                                \
            CALLGRIND_DUMP_STATS_AT("elsewhere");               \
            if (rc_ != CCI_EAGAIN) fail(#call, rc_);            \
        }                                                       \
    } while (0)

/* The next event of an endpoint, while the other makes progress too. */
static cci_event_t *next(cci_endpoint_t *endpoint, cci_event_type_t type)
{
    cci_event_t *event;
    for (int look = 0; look < LOOKS; look++) {
        int rc = cci_get_event(endpoint, &event);
        if (rc == CCI_SUCCESS) {
            if (event->type != type) fail("another event was expected", (int)event->type);
            return event;
        }
        if (rc != CCI_EAGAIN) fail("cci_get_event", rc);
        cci_endpoint_t *other = endpoint == sender ? receiver : sender;
        if (other != NULL && type != CCI_EVENT_CONNECT_REQUEST) {
            cci_event_t *of_other;
            if (cci_get_event(other, &of_other) != CCI_EAGAIN) fail("the other has an event", 0);
        }
    }
    fail("no event came", (int)type);
    return NULL;
}

static void back(cci_event_t *event)
{
    OK(cci_return_event(event));
}

/* Polls until nobody rings a bell any more, and all that was under way has ended. A helper may
 * hold an endpoint's lock where valgrind has interrupted it: it goes on first. */
static void settle(void)
{
    cci_event_t *event;
    for (int poll = 0; poll < WARM_POLLS; poll++) {
        if (poll < WARM_POLLS / 2) sched_yield();
        if (cci_get_event(sender, &event) != CCI_EAGAIN) fail("an event was left", 0);
        if (cci_get_event(receiver, &event) != CCI_EAGAIN) fail("an event was left", 0);
    }
}

static cci_connection_t *connect_with(cci_conn_attribute_t attribute)
{
    cci_event_t *event;
    OK(cci_connect(sender, uri, NULL, 0, attribute, NULL, 0, NULL));
    event = next(receiver, CCI_EVENT_CONNECT_REQUEST);
    OK(cci_accept(event, NULL));
    back(event);
    int looks = 0;
    while (cci_get_event(sender, &event) != CCI_SUCCESS) {
        if (++looks == LOOKS) fail("no answer", 0);
    }
    if (event->type != CCI_EVENT_CONNECT || event->connect.status != CCI_SUCCESS) fail("connect", event->type);
    cci_connection_t *connection = event->connect.connection;
    back(event);
    back(next(receiver, CCI_EVENT_ACCEPT));
    return connection;
}

static void open_both(void)
{
    char *given;
    uint32_t caps;
    /* Shared memory alone, whatever this shell has chosen. */
    unsetenv("CCI_CONFIG");
    setenv("CCI_CTP", "sm", 1);
    OK(cci_init(CCI_ABI_VERSION, 0, &caps));
    OK(cci_create_endpoint(NULL, 0, &sender, NULL));
    OK(cci_create_endpoint(NULL, 0, &receiver, NULL));
    OK(cci_get_opt(receiver, CCI_OPT_ENDPT_URI, &given));
    uri = given;
    connections[RO] = connect_with(CCI_CONN_ATTR_RO);
    connections[UU] = connect_with(CCI_CONN_ATTR_UU);
    free(given);
    int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
    OK(cci_rma_register(sender, memory, sizeof memory, both, &handle));
    OK(cci_rma_register(receiver, memory, sizeof memory, both, &remote));
}

static int nothing(void)
{
    return CCI_SUCCESS;
}

static void count_unreliable(void)
{
    cci_event_t *event;
    COUNTED("CCI: UU send", CCI_SUCCESS, cci_send(connections[UU], memory, 8, NULL, 0));
    COUNTED("CCI: UU send, event taken", CCI_SUCCESS, cci_get_event(sender, &event));
    COUNTED("CCI: send event returned", CCI_SUCCESS, cci_return_event(event));
    COUNTED("CCI: UU message arrives, event taken", CCI_SUCCESS, cci_get_event(receiver, &event));
    if (event == NULL) event = next(receiver, CCI_EVENT_RECV);
    COUNTED("CCI: message returned", CCI_SUCCESS, cci_return_event(event));
    settle();
    COUNTED("CCI: UU send, silent", CCI_SUCCESS, cci_send(connections[UU], memory, 8, NULL, CCI_FLAG_SILENT));
    back(next(receiver, CCI_EVENT_RECV));
    settle();
}

static void count_reliable(void)
{
    cci_event_t *event;
    COUNTED("CCI: RO send", CCI_SUCCESS, cci_send(connections[RO], memory, 8, NULL, 0));
    COUNTED("CCI: RO message arrives, event taken", CCI_SUCCESS, cci_get_event(receiver, &event));
    if (event == NULL) event = next(receiver, CCI_EVENT_RECV);
    back(event);
    if (cci_get_event(receiver, &event) != CCI_EAGAIN) fail("an event was left", 0);
    COUNTED("CCI: acknowledgement arrives, event taken", CCI_SUCCESS, cci_get_event(sender, &event));
    if (event == NULL) event = next(sender, CCI_EVENT_SEND);
    back(event);
    settle();
}

static void count_memory(void)
{
    cci_event_t *event;
    COUNTED("CCI: RMA write", CCI_SUCCESS,
            cci_rma(connections[RO], NULL, 0, handle, 0, remote, 32, 8, NULL, CCI_FLAG_WRITE));
    if (cci_get_event(receiver, &event) != CCI_EAGAIN) fail("an event was left", 0);
    if (cci_get_event(receiver, &event) != CCI_EAGAIN) fail("an event was left", 0);
    COUNTED("CCI: answer to RMA arrives, event taken", CCI_SUCCESS, cci_get_event(sender, &event));
    if (event == NULL) event = next(sender, CCI_EVENT_SEND);
    back(event);
    settle();
}

int main(void)
{
    cci_event_t *event;
    alarm(LIMIT_SECONDS);
    open_both();
    for (int round = 0; round < ROUNDS; round++) {
        settle();
        COUNTED("nothing", CCI_SUCCESS, nothing());
        COUNTED("CCI: no event", CCI_EAGAIN, cci_get_event(sender, &event));
        count_unreliable();
        count_reliable();
        count_memory();
    }
    OK(cci_rma_deregister(sender, handle));
    OK(cci_rma_deregister(receiver, remote));
    OK(cci_destroy_endpoint(sender));
    OK(cci_destroy_endpoint(receiver));
    OK(cci_finalize());
    return 0;
}
