/*
 * The calls of Portals 3.3 that `cargo xtask instructions` counts: see counted.h.
 */
#define _GNU_SOURCE
#include <portals3.h>
#include <p3nal_utcp.h>

#define NAME ptl_process_id_t
#include "counted.h"

/* Both processes have the same portal table: */
enum { PT_EVENT };

enum { PUT = FIRST_OWN, GET };

#define BITS 7

/* An entry that is put to and got from, and a descriptor to send from, with a queue each. */
struct side {
    ptl_handle_ni_t  ni;
    ptl_handle_eq_t  target_eq, md_eq;
    ptl_handle_md_t  md;
    uint64_t         memory[1];
};

static ptl_md_t descriptor(struct side *side, unsigned options, ptl_handle_eq_t eq)
{
    ptl_md_t md = {
        .start = side->memory,
        .length = sizeof side->memory,
        .threshold = PTL_MD_THRESH_INF,
        .options = options | PTL_MD_EVENT_START_DISABLE,
        .eq_handle = eq,
    };
    return md;
}

static ptl_process_id_t open_side(struct side *side)
{
    const ptl_process_id_t anyone = { PTL_NID_ANY, PTL_PID_ANY };
    const unsigned         both = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
    ptl_process_id_t       me;
    ptl_handle_me_t        entry;
    ptl_handle_md_t        target;
    memset(side, 0, sizeof *side);
    OK(PtlInit(NULL));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &side->ni));
    OK(PtlGetId(side->ni, &me));
    OK(PtlEQAlloc(side->ni, 64, PTL_EQ_HANDLER_NONE, &side->target_eq));
    OK(PtlEQAlloc(side->ni, 64, PTL_EQ_HANDLER_NONE, &side->md_eq));
    OK(PtlMEAttach(side->ni, PT_EVENT, anyone, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
    OK(PtlMDAttach(entry, descriptor(side, both, side->target_eq), PTL_RETAIN, &target));
    OK(PtlMDBind(side->ni, descriptor(side, 0, side->md_eq), PTL_RETAIN, &side->md));
    return me;
}

static void close_side(struct side *side)
{
    OK(PtlNIFini(side->ni));
    PtlFini();
}

static void poll_once(struct side *side)
{
    ptl_event_t event;
    PtlEQGet(side->md_eq, &event);
}

static void take_events(struct side *side)
{
    ptl_event_t event;
    PtlEQGet(side->target_eq, &event);
    PtlEQGet(side->md_eq, &event);
}

/* Takes events until one of this kind. */
static void next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
    ptl_event_t event;
    int         rc;
    do {
        rc = PtlEQGet(eq, &event);
        if (rc != PTL_OK && rc != PTL_EQ_EMPTY) fail("PtlEQGet", rc);
    } while (rc != PTL_OK || event.type != kind);
}

static void take_lock(struct side *side)
{
    ptl_sr_value_t drops;
    OK(PtlNIStatus(side->ni, PTL_SR_DROP_COUNT, &drops));
}

static void carry_out(struct side *side, int command, ptl_process_id_t to)
{
    switch (command) {
    case PUT: OK(PtlPut(side->md, PTL_NO_ACK_REQ, to, PT_EVENT, 0, BITS, 0, 0)); break;
    case GET: OK(PtlGet(side->md, to, PT_EVENT, 0, BITS, 0)); break;
    default: break;
    }
}

static void count_starts(struct side *side, ptl_process_id_t peer)
{
    COUNTED("Portals 3.3: put", PTL_OK, PtlPut(side->md, PTL_NO_ACK_REQ, peer, PT_EVENT, 0, BITS, 0, 0));
    next_event(side->md_eq, PTL_EVENT_SEND_END);
    settle(side);
    COUNTED("Portals 3.3: put, acknowledged", PTL_OK,
            PtlPut(side->md, PTL_ACK_REQ, peer, PT_EVENT, 0, BITS, 0, 0));
    next_event(side->md_eq, PTL_EVENT_ACK);
    settle(side);
    COUNTED("Portals 3.3: get", PTL_OK, PtlGet(side->md, peer, PT_EVENT, 0, BITS, 0));
    next_event(side->md_eq, PTL_EVENT_REPLY_END);
    settle(side);
}

static void count_looks(struct side *side, ptl_process_id_t peer)
{
    ptl_event_t     event;
    ptl_handle_eq_t both[] = { side->target_eq, side->md_eq };
    int             which;
    /* One look of seventeen is a poll: it comes here, not at the counted ones. */
    for (int look = 0; look < 6; look++) poll_once(side);
    COUNTED("Portals 3.3: event queue, empty", PTL_EQ_EMPTY, PtlEQGet(side->target_eq, &event));
    COUNTED("Portals 3.3: two event queues, empty", PTL_EQ_EMPTY, PtlEQPoll(both, 2, 0, &event, &which));
    /* The event of an operation that has ended already: sending 8 bytes. */
    OK(PtlPut(side->md, PTL_NO_ACK_REQ, peer, PT_EVENT, 0, BITS, 0, 0));
    COUNTED("Portals 3.3: event queue, one event", PTL_OK, PtlEQGet(side->md_eq, &event));
}

static void count_arrivals(struct side *side, struct shared *shared)
{
    ptl_event_t event;
    command(shared, PUT);
    COUNTED("Portals 3.3: put arrives, event taken", PTL_OK, PtlEQGet(side->target_eq, &event));
    settle(side);
    command(shared, GET);
    COUNTED("Portals 3.3: get arrives, event taken", PTL_OK, PtlEQGet(side->target_eq, &event));
    settle(side);
}

/* The peer polls before it looks for a command, so that once it has carried out a second
 * one it has acknowledged what was put before the first. */
static void count_acknowledgement(struct side *side, struct shared *shared)
{
    ptl_event_t event;
    OK(PtlPut(side->md, PTL_ACK_REQ, shared->peer, PT_EVENT, 0, BITS, 0, 0));
    OK(PtlEQGet(side->md_eq, &event)); /* PTL_EVENT_SEND_END */
    command(shared, POLL);
    command(shared, POLL);
    COUNTED("Portals 3.3: acknowledgement arrives, event taken", PTL_OK, PtlEQGet(side->md_eq, &event));
    settle(side);
}

static void count_calls(struct side *side, struct shared *shared)
{
    count_starts(side, shared->peer);
    count_looks(side, shared->peer);
    count_arrivals(side, shared);
    count_acknowledgement(side, shared);
}

int main(int count, char **words)
{
    struct side side;
    return run(&side, count, words);
}
