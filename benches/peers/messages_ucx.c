/*
 * Messages of one KIND by UCX, measured as mpi.c does: every result is a line of
 *
 *   latency    bytes  half a round trip in microseconds; with USED set, each line is written before,
 *                     and read afterwards
 *   bandwidth  bytes  GB/s of windows of messages, from 64 KiB up
 *   rate       8      messages in a microsecond
 *
 * KIND is TAG, ACTIVE or PUT. The handler of active messages leaves short ones where they are. Puts
 * go into memory that UCX has allocated; their receiver looks at the last byte, their sender flushes a
 * stream. So do the tests of ucx_perftest.
 */
#include "pair.h"
#define TAG    1
#define ACTIVE 2
#define PUT    3
#define FEATURES                                                                                   \
    (KIND == TAG ? UCP_FEATURE_TAG : KIND == ACTIVE ? UCP_FEATURE_AM : UCP_FEATURE_RMA)
#include "ucx_side.h"

#define WINDOW 64
/* The shortest stretch that is timed as one, in microseconds. */
#define BLOCK 200.0

static ucs_status_ptr_t requests[WINDOW];
static char             got[LARGEST];
static long             arrived; /* active messages */
static int              are_read; /* those of a ping-pong, if bytes are used */
static unsigned char    sent, seen; /* numbers of puts */

static const ucp_request_param_t none;

static void on_fetched(void *request, ucs_status_t status, size_t bytes, void *user)
{
    (void)user;
    OK(status);
    read_lines(got, are_read ? bytes : 0);
    arrived++;
    ucp_request_free(request);
}

static ucs_status_t on_arrived(void *user, const void *header, size_t header_bytes, void *data,
                               size_t bytes, const ucp_am_recv_param_t *param)
{
    (void)user, (void)header, (void)header_bytes;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        read_lines(data, are_read ? bytes : 0);
        arrived++;
        return UCS_OK;
    }
    ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                 .cb.recv_am = on_fetched};
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker, data, got, bytes, &fetch);
    if (UCS_PTR_IS_PTR(request))
        return UCS_INPROGRESS;
    OK(UCS_PTR_STATUS(request));
    read_lines(got, are_read ? bytes : 0);
    arrived++;
    return UCS_OK;
}

static ucs_status_ptr_t start_send(size_t bytes)
{
    if (KIND == TAG)
        return ucp_tag_send_nbx(ep, local, bytes, 1, &none);
    if (KIND == ACTIVE)
        return ucp_am_send_nbx(ep, 0, NULL, 0, local, bytes, &none);
    return ucp_put_nbx(ep, local, bytes, to, key, &none);
}

static void send_one(size_t bytes)
{
    write_lines(local, bytes);
    if (KIND == PUT)
        local[bytes - 1] = (char)++sent;
    await(start_send(bytes));
}

static void await_arrivals(long count)
{
    for (arrived -= count; arrived < 0;)
        poll_once();
}

static void receive_one(size_t bytes)
{
    if (KIND == TAG) {
        await(ucp_tag_recv_nbx(worker, got, bytes, 1, UINT64_MAX, &none));
        read_lines(got, bytes);
    } else if (KIND == ACTIVE) {
        await_arrivals(1);
    } else {
        const volatile unsigned char *last = (unsigned char *)window + bytes - 1;
        for (seen++; *last != seen;)
            poll_once();
        read_lines(window, bytes);
    }
}

/* What lies in the last byte of this size is no number that is still to come. */
static void begin_ping_pong(size_t bytes)
{
    if (KIND == PUT)
        window[bytes - 1] = (char)seen;
    both_are_there();
}

static void ping_pong(size_t bytes, long repeats)
{
    are_read = 1;
    for (long i = 0; i < repeats; i++) {
        if (rank == 0)
            send_one(bytes);
        receive_one(bytes);
        if (rank == 1)
            send_one(bytes);
    }
}

static void await_window(void)
{
    for (int slot = 0; slot < WINDOW; slot++)
        await(requests[slot]);
}

/* `repeats` windows of messages to rank 1, which answers the last; puts are flushed. */
static void stream(size_t bytes, long repeats)
{
    are_read = 0;
    for (long i = 0; i < repeats && (rank == 0 || KIND != PUT); i++) {
        if (rank == 1 && KIND == ACTIVE) {
            await_arrivals(WINDOW);
            continue;
        }
        for (int slot = 0; slot < WINDOW; slot++)
            requests[slot] = rank == 0 ? start_send(bytes)
                                       : ucp_tag_recv_nbx(worker, got, bytes, 1, UINT64_MAX, &none);
        await_window();
    }
    if (KIND == PUT && rank == 0)
        await(ucp_ep_flush_nbx(ep, &none));
    if (KIND == PUT)
        return;
    if (rank == 0)
        receive_one(1);
    else
        send_one(1);
}

/* What rank 0 wants next, in both ranks. */
static long agreed(long number)
{
    both_are_there();
    if (rank == 0)
        shared->repeats = number;
    both_are_there();
    return shared->repeats;
}

/* Microseconds of one repetition of `work`, in rank 0: the median of blocks that fill the budget. */
static double repeated(void (*work)(size_t, long), size_t bytes, double budget)
{
    static double samples[MOST_SAMPLES];
    double        end = now() + budget;
    long          repeats = 1, next = 1;
    int           count = 0;
    while ((repeats = agreed(next)) != 0) {
        work(bytes, 1); /* both sides are awake */
        double start = now();
        work(bytes, repeats);
        double took = now() - start;
        if (took < BLOCK && now() < end) {
            next = 2 * repeats;
            continue;
        }
        if (rank == 0)
            samples[count++] = took / (double)repeats;
        next = now() < end && count < MOST_SAMPLES ? repeats : 0;
    }
    return median(samples, count);
}

static void print(const char *name, size_t bytes, double value)
{
    if (rank == 0)
        printf("%s %zu %.6f\n", name, bytes, value);
}

static void both(double budget, char **sizes)
{
    if (KIND == ACTIVE) {
        ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                        UCP_AM_HANDLER_PARAM_FIELD_CB,
                                          .id = 0,
                                          .cb = on_arrived};
        OK(ucp_worker_set_am_recv_handler(worker, &handler));
    }
    for (char **size = sizes; *size != NULL; size++) {
        size_t bytes = strtoul(*size, NULL, 10);
        if (bytes == 0 || bytes > LARGEST)
            continue;
        begin_ping_pong(bytes);
        print("latency", bytes, repeated(ping_pong, bytes, budget) / 2);
        if (bytes >= 1024)
            print("bandwidth", bytes,
                  (double)(WINDOW * bytes) / repeated(stream, bytes, budget) / 1e3);
    }
    print("rate", 8, WINDOW / repeated(stream, 8, budget));
}

static void measure(double budget, char **sizes)
{
    both(budget, sizes);
}

static void serve(char **sizes)
{
    both(0, sizes);
}
