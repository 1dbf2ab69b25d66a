/* Threads of two processes share an endpoint each: some send, some take events and return them, one
 * reads and writes remote memory, one connects and disconnects. Each message arrives whole, and
 * once, each operation ends once, and what was written is read.
 */
#define _GNU_SOURCE
#include <cci.h>

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longer than anything takes on a loaded machine, seconds. */
#define LIMIT 120
#define SENDERS 3
#define TAKERS 2
/* Messages of each sender, and how many of them may be under way. */
#define MESSAGES 10000
#define UNDER_WAY 64
#define LONGEST 1000
#define EXCHANGES 500
#define MEMORY (64 << 10)
/* Connections that come and go. */
#define BRIEF 150

enum kind { MESSAGE, WRITTEN, GREETING };

struct message {
    uint32_t      kind, sender, number, length;
    unsigned char body[LONGEST];
};

/* What a side sends the other one ahead of all. */
struct offer {
    struct cci_rma_handle memory;
    char                  uri[256];
};

/* One connection, and what is under way on it. */
struct sender {
    cci_connection_t *connection;
    atomic_int        under_way;
    /* By the number of its message, modulo UNDER_WAY: not to be changed until it was sent. */
    struct message    kept[UNDER_WAY];
    atomic_int        is_kept[UNDER_WAY];
    unsigned          ordinal;
};

static cci_endpoint_t   *endpoint;
static struct sender     senders[SENDERS];
static cci_connection_t *for_memory;
static struct offer      offered;
static atomic_uchar      has_arrived[SENDERS][MESSAGES];
static atomic_int        arrived, written, greetings, accepted, is_over;
static atomic_int        exchanged;
static atomic_uintptr_t  brief_connection;

static size_t header(void) { return offsetof(struct message, body); }

static unsigned char pattern(uint32_t sender, uint32_t number, uint32_t at)
{
    return (unsigned char)(sender * 31 + number * 7 + at);
}

static void compose(struct message *message, uint32_t sender, uint32_t number)
{
    *message = (struct message){.kind = MESSAGE, .sender = sender, .number = number};
    message->length = number * 37 % LONGEST;
    for (uint32_t at = 0; at < message->length; at++)
        message->body[at] = pattern(sender, number, at);
}

/* ---- events ---- */

static void receive(const cci_event_t *event)
{
    struct message message;
    CHECK(event->recv.len <= sizeof message && event->recv.len >= header());
    memcpy(&message, event->recv.ptr, event->recv.len);
    switch (message.kind) {
    case MESSAGE:
        CHECK(message.sender < SENDERS && message.number < MESSAGES);
        CHECK(event->recv.len == header() + message.length);
        for (uint32_t at = 0; at < message.length; at++)
            CHECK(message.body[at] == pattern(message.sender, message.number, at));
        CHECK(atomic_exchange(&has_arrived[message.sender][message.number], 1) == 0);
        atomic_fetch_add(&arrived, 1);
        break;
    case WRITTEN:
        CHECK(event->recv.connection == for_memory);
        atomic_fetch_add(&written, 1);
        break;
    default:
        CHECK(message.kind == GREETING);
        atomic_fetch_add(&greetings, 1);
    }
}

static void sent(const cci_event_t *event)
{
    atomic_int *done = event->send.context;
    CHECK(event->send.status == CCI_SUCCESS);
    if (event->send.connection == for_memory) {
        atomic_fetch_add(done, 1);
        return;
    }
    for (int each = 0; each < SENDERS; each++)
        if (event->send.connection == senders[each].connection)
            atomic_fetch_sub(&senders[each].under_way, 1);
    CHECK(atomic_exchange(done, 0) == 1);
}

static void take(cci_event_t *event)
{
    switch (event->type) {
    case CCI_EVENT_RECV:
        receive(event);
        break;
    case CCI_EVENT_SEND:
        sent(event);
        break;
    case CCI_EVENT_CONNECT_REQUEST:
        CHECK(cci_accept(event, NULL) == CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        CHECK(event->accept.status == CCI_SUCCESS);
        atomic_fetch_add(&accepted, 1);
        break;
    case CCI_EVENT_CONNECT:
        CHECK(event->connect.status == CCI_SUCCESS && event->connect.context == &brief_connection);
        CHECK(atomic_exchange(&brief_connection, (uintptr_t)event->connect.connection) == 0);
        break;
    default:
        CHECK(!"an event that nobody expects");
    }
}

/* Takes events and returns each after the next ones, or at once. */
static void *taker(void *argument)
{
    cci_event_t *held[3] = {NULL};
    unsigned     taken   = 0;
    while (!atomic_load(&is_over)) {
        cci_event_t *event;
        int          status = cci_get_event(endpoint, &event);
        if (status != CCI_SUCCESS) {
            CHECK(status == CCI_EAGAIN || status == CCI_ENOBUFS);
            sched_yield();
            continue;
        }
        take(event);
        cci_event_t **place = &held[taken++ % 3];
        if (*place)
            CHECK(cci_return_event(*place) == CCI_SUCCESS);
        *place = event;
    }
    for (int each = 0; each < 3; each++)
        if (held[each])
            CHECK(cci_return_event(held[each]) == CCI_SUCCESS);
    return argument;
}

/* ---- messages ---- */

static void send_one(struct sender *sender, const struct message *message, void *context,
                     int flags)
{
    uint32_t length = (uint32_t)header() + message->length;
    int      status;
    while ((status = cci_send(sender->connection, message, length, context, flags))
           != CCI_SUCCESS) {
        CHECK(status == CCI_EAGAIN || status == CCI_ENOBUFS);
        sched_yield();
    }
}

/* By turns with an event, of memory that isn't copied, without event, and waiting for the end. */
static void *send_all(void *argument)
{
    struct sender *sender = argument;
    for (uint32_t number = 0; number < MESSAGES; number++) {
        unsigned        place = number % UNDER_WAY;
        struct message *kept  = &sender->kept[place], copied;
        while (atomic_load(&sender->is_kept[place]) || atomic_load(&sender->under_way) >= UNDER_WAY)
            sched_yield();
        if (number % 8 == 6) {
            compose(&copied, sender->ordinal, number);
            send_one(sender, &copied, NULL, CCI_FLAG_SILENT);
        } else if (number % 128 == 7) {
            compose(&copied, sender->ordinal, number);
            send_one(sender, &copied, NULL, CCI_FLAG_BLOCKING);
        } else {
            compose(kept, sender->ordinal, number);
            atomic_store(&sender->is_kept[place], 1);
            atomic_fetch_add(&sender->under_way, 1);
            send_one(sender, kept, &sender->is_kept[place], number % 2 ? CCI_FLAG_NO_COPY : 0);
        }
    }
    while (atomic_load(&sender->under_way))
        sched_yield();
    return NULL;
}

/* ---- remote memory ---- */

static void move(cci_rma_handle_t *own, cci_rma_handle_t *other, uint32_t length, int flags)
{
    struct message note = {.kind = WRITTEN};
    int            before = atomic_load(&exchanged), status;
    const void    *text   = flags & CCI_FLAG_READ ? NULL : &note;
    uint32_t       bytes  = flags & CCI_FLAG_READ ? 0 : (uint32_t)header();
    while ((status = cci_rma(for_memory, text, bytes, own, 0, other, 0, length, &exchanged, flags))
           != CCI_SUCCESS) {
        CHECK(status == CCI_EAGAIN || status == CCI_ENOBUFS);
        sched_yield();
    }
    while (atomic_load(&exchanged) == before)
        sched_yield();
}

/* Writes into the other process's memory, and reads it back into memory of its own. */
static void *exchange(void *argument)
{
    cci_rma_handle_t *other = argument;
    unsigned char    *data = malloc(MEMORY), *back = malloc(MEMORY);
    for (uint32_t number = 1; number <= EXCHANGES; number++) {
        uint32_t          length = 1 + number * 977 % MEMORY;
        cci_rma_handle_t *from, *to;
        CHECK(cci_rma_register(endpoint, data, MEMORY, CCI_FLAG_READ, &from) == CCI_SUCCESS);
        CHECK(cci_rma_register(endpoint, back, MEMORY, CCI_FLAG_WRITE, &to) == CCI_SUCCESS);
        for (uint32_t at = 0; at < length; at++)
            data[at] = pattern(9, number, at);
        memset(back, 0, length);
        move(from, other, length, CCI_FLAG_WRITE);
        move(to, other, length, CCI_FLAG_READ);
        CHECK(memcmp(data, back, length) == 0);
        CHECK(cci_rma_deregister(endpoint, from) == CCI_SUCCESS);
        CHECK(cci_rma_deregister(endpoint, to) == CCI_SUCCESS);
    }
    free(data);
    free(back);
    return NULL;
}

/* ---- connections ---- */

/* Connects, greets, and disconnects. */
static void *connect_briefly(void *argument)
{
    const char    *uri   = argument;
    struct message hello = {.kind = GREETING};
    struct timeval limit = {LIMIT, 0};
    for (int number = 0; number < BRIEF; number++) {
        cci_connection_t *connection;
        cci_conn_attribute_t attribute = number % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU;
        CHECK(cci_connect(endpoint, uri, NULL, 0, attribute, &brief_connection, 0, &limit)
              == CCI_SUCCESS);
        while (!(connection = (cci_connection_t *)atomic_exchange(&brief_connection, 0)))
            sched_yield();
        CHECK(cci_send(connection, &hello, (uint32_t)header(), NULL, CCI_FLAG_BLOCKING)
              == CCI_SUCCESS);
        CHECK(cci_disconnect(connection) == CCI_SUCCESS);
    }
    return NULL;
}

/* ---- both sides ---- */

static cci_event_t *next(void)
{
    cci_event_t *event;
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS)
        sched_yield();
    return event;
}

/* The server accepts what the client asks for, one after another. */
static cci_connection_t *connection(const char *uri, cci_conn_attribute_t attribute)
{
    struct timeval    limit = {LIMIT, 0};
    cci_connection_t *made;
    cci_event_t      *event;
    if (uri) {
        CHECK(cci_connect(endpoint, uri, NULL, 0, attribute, NULL, 0, &limit) == CCI_SUCCESS);
        event = next();
        CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
        made = event->connect.connection;
    } else {
        event = next();
        CHECK(event->type == CCI_EVENT_CONNECT_REQUEST && event->request.attribute == attribute);
        CHECK(cci_accept(event, NULL) == CCI_SUCCESS);
        CHECK(cci_return_event(event) == CCI_SUCCESS);
        event = next();
        CHECK(event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS);
        made = event->accept.connection;
    }
    CHECK(cci_return_event(event) == CCI_SUCCESS);
    return made;
}

/* Both sides have come here. */
static void meet(int other, const void *said, void *heard, size_t length)
{
    CHECK(write(other, said, length) == (ssize_t)length);
    CHECK(recv(other, heard, length, MSG_WAITALL) == (ssize_t)length);
}

static unsigned char *open_endpoint(cci_rma_handle_t **memory)
{
    uint32_t       caps;
    char          *uri;
    unsigned char *data = calloc(1, MEMORY);
    CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    CHECK(cci_create_endpoint(NULL, 0, &endpoint, NULL) == CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, data, MEMORY, CCI_FLAG_READ | CCI_FLAG_WRITE, memory)
          == CCI_SUCCESS);
    offered.memory = **memory;
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    CHECK(strlen(uri) < sizeof offered.uri);
    strcpy(offered.uri, uri);
    free(uri);
    return data;
}

/* The client connects to the server, whose URI is given. */
static void connect_all(const char *server)
{
    for (int each = 0; each < SENDERS; each++) {
        struct sender *sender = &senders[each];
        sender->ordinal       = (unsigned)each;
        sender->connection    = connection(server, each % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
        CHECK(sender->connection->max_send_size >= sizeof(struct message));
    }
    for_memory = connection(server, CCI_CONN_ATTR_RO);
}

/* Returns once both sides have received all. */
static void run_threads(int other, struct offer *theirs)
{
    pthread_t threads[TAKERS + SENDERS + 2];
    int       started = 0, each;
    char      word    = 'x';
    for (each = 0; each < TAKERS; each++)
        CHECK(pthread_create(&threads[started++], NULL, taker, NULL) == 0);
    for (each = 0; each < SENDERS; each++)
        CHECK(pthread_create(&threads[started++], NULL, send_all, &senders[each]) == 0);
    CHECK(pthread_create(&threads[started++], NULL, exchange, &theirs->memory) == 0);
    CHECK(pthread_create(&threads[started++], NULL, connect_briefly, theirs->uri) == 0);
    for (each = TAKERS; each < started; each++)
        CHECK(pthread_join(threads[each], NULL) == 0);
    while (atomic_load(&arrived) < SENDERS * MESSAGES || atomic_load(&written) < EXCHANGES
           || atomic_load(&greetings) < BRIEF)
        sched_yield();
    meet(other, &word, &word, 1);
    atomic_store(&is_over, 1);
    for (each = 0; each < TAKERS; each++)
        CHECK(pthread_join(threads[each], NULL) == 0);
    CHECK(atomic_load(&arrived) == SENDERS * MESSAGES && atomic_load(&written) == EXCHANGES);
    CHECK(atomic_load(&greetings) == BRIEF && atomic_load(&accepted) == BRIEF);
}

static void run(int other, int is_server)
{
    cci_rma_handle_t *memory;
    struct offer      theirs;
    char              word = 'x';
    unsigned char    *data;
    alarm(LIMIT);
    data = open_endpoint(&memory);
    meet(other, &offered, &theirs, sizeof theirs);
    connect_all(is_server ? NULL : theirs.uri);
    meet(other, &word, &word, 1);
    run_threads(other, &theirs);
    meet(other, &word, &word, 1);
    CHECK(cci_rma_deregister(endpoint, memory) == CCI_SUCCESS);
    CHECK(cci_destroy_endpoint(endpoint) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
    free(data);
}

int main(void)
{
    int   ends[2], status;
    pid_t child;
    who = "main";
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    child = fork();
    CHECK(child >= 0);
    who = child ? "server" : "client";
    run(ends[child == 0], child != 0);
    if (child)
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
