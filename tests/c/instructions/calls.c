/*
 * The calls of Portals 4 that `cargo xtask instructions` counts: see counted.h.
 */
#define _GNU_SOURCE
#include <portals4.h>
#include <portals4_ext.h>

#define NAME ptl_process_t
#include "counted.h"

/* Both processes have the same portal table: */
enum { PT_EVENT, PT_COUNT, PT_ONCE, PT_COUNT_LIST, PT_DIRECT, PT_MPI };

/* Times that something is sent often. */
enum { OFTEN = 64 };

enum { PUT_EVENT = FIRST_OWN, PUT_COUNT, PUT_ONCE, GET, FETCH_ADD, PUT_LIST, PUT_MPI, EXPOSE, HIDE };

/* A matching interface with five portal table entries, and one for lists. */
struct side {
    ptl_handle_ni_t ni, list_ni;
    ptl_handle_eq_t portal_eq, md_eq;
    ptl_handle_ct_t entry_ct, md_ct;
    ptl_handle_md_t counting, reporting, list_md;
    ptl_process_t   me;
    uint64_t        memory[8];
    void           *exposed; /* while peers access it by themselves */
    ptl_handle_me_t exposed_entry;
};

static ptl_me_t entry_of(struct side *side, unsigned int options)
{
    ptl_me_t entry = {
        .start = side->memory,
        .length = sizeof side->memory,
        .ct_handle = side->entry_ct,
        .uid = PTL_UID_ANY,
        .options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET,
        .match_id = { .phys = { PTL_NID_ANY, PTL_PID_ANY } },
        .match_bits = 7,
    };
    return entry;
}

static void open_portal_with(struct side *side, ptl_pt_index_t index, unsigned int options, ptl_handle_eq_t eq)
{
    ptl_pt_index_t got;
    OK(PtlPTAlloc(side->ni, options, eq, index, &got));
}

static void open_portal(struct side *side, ptl_pt_index_t index, ptl_handle_eq_t eq)
{
    open_portal_with(side, index, 0, eq);
}

/* Peers access it by messages alone: the option keeps it from being published, for which a helper
 * would decide by when it looks. */
static void append(struct side *side, ptl_pt_index_t index, unsigned int options)
{
    ptl_me_t        entry = entry_of(side, options | PTL_ME_MAY_ALIGN);
    ptl_handle_me_t handle;
    OK(PtlMEAppend(side->ni, index, &entry, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Where messages go that no receive was posted for. */
static void append_unexpected(struct side *side)
{
    const unsigned int options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN;
    ptl_me_t        entry = entry_of(side, 0);
    ptl_handle_me_t handle;
    entry.start = malloc(1 << 20);
    entry.length = 1 << 20;
    entry.min_free = 1 << 12;
    entry.options = options;
    entry.match_bits = 0;
    entry.ignore_bits = ~(ptl_match_bits_t)0;
    OK(PtlMEAppend(side->ni, PT_MPI, &entry, PTL_OVERFLOW_LIST, NULL, &handle));
}

static ptl_handle_md_t bind(struct side *side, ptl_handle_ni_t ni, unsigned int options, ptl_handle_eq_t eq,
                            ptl_handle_ct_t ct)
{
    ptl_md_t        md = { side->memory, sizeof side->memory, options, eq, ct };
    ptl_handle_md_t handle;
    OK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* The list interface is only sent to and from without events. */
static void open_list(struct side *side, unsigned int counting)
{
    ptl_handle_ct_t ct;
    ptl_pt_index_t  index;
    ptl_handle_le_t handle;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &side->list_ni));
    OK(PtlPTAlloc(side->list_ni, 0, PTL_EQ_NONE, PT_COUNT_LIST, &index));
    OK(PtlCTAlloc(side->list_ni, &ct));
    /* As in `append`, by another option. */
    ptl_le_t entry = { side->memory, sizeof side->memory, ct, PTL_UID_ANY,
                       counting | PTL_LE_OP_PUT | PTL_LE_ACK_DISABLE };
    OK(PtlLEAppend(side->list_ni, PT_COUNT_LIST, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    side->list_md = bind(side, side->list_ni, 0, PTL_EQ_NONE, PTL_CT_NONE);
}

static ptl_process_t open_side(struct side *side)
{
    const unsigned int counting = PTL_ME_EVENT_CT_COMM;
    memset(side, 0, sizeof *side);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &side->ni));
    OK(PtlGetPhysId(side->ni, &side->me));
    OK(PtlEQAlloc(side->ni, 64, &side->portal_eq));
    OK(PtlEQAlloc(side->ni, 64, &side->md_eq));
    OK(PtlCTAlloc(side->ni, &side->entry_ct));
    OK(PtlCTAlloc(side->ni, &side->md_ct));
    open_portal(side, PT_EVENT, side->portal_eq);
    open_portal(side, PT_COUNT, PTL_EQ_NONE);
    open_portal(side, PT_ONCE, side->portal_eq);
    open_portal_with(side, PT_MPI, PTL_PT_FLOWCTRL | PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, side->portal_eq);
    append(side, PT_EVENT, PTL_ME_EVENT_LINK_DISABLE);
    append_unexpected(side);
    append(side, PT_COUNT, counting);
    side->counting = bind(side, side->ni, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, side->md_ct);
    side->reporting = bind(side, side->ni, 0, side->md_eq, PTL_CT_NONE);
    open_list(side, PTL_LE_EVENT_CT_COMM);
    return side->me;
}

static void close_side(struct side *side)
{
    OK(PtlNIFini(side->list_ni));
    OK(PtlNIFini(side->ni));
    PtlFini();
}

static uint64_t successes(ptl_handle_ct_t ct)
{
    ptl_ct_event_t seen;
    OK(PtlCTGet(ct, &seen));
    return seen.success;
}

static void poll_once(struct side *side)
{
    successes(side->md_ct);
}

static void take_events(struct side *side)
{
    ptl_event_t event;
    PtlEQGet(side->portal_eq, &event);
    while (PtlEQGet(side->md_eq, &event) == PTL_OK) {}
}

/* Until it is hidden again peers access memory of this process by themselves. */
static void expose(struct side *side)
{
    ptl_me_t entry = entry_of(side, 0);
    OK(PtlMemAlloc(64, &side->exposed));
    entry.start = side->exposed;
    open_portal(side, PT_DIRECT, PTL_EQ_NONE);
    OK(PtlMEAppend(side->ni, PT_DIRECT, &entry, PTL_PRIORITY_LIST, NULL, &side->exposed_entry));
}

static void hide(struct side *side)
{
    OK(PtlMEUnlink(side->exposed_entry));
    OK(PtlPTFree(side->ni, PT_DIRECT));
    OK(PtlMemFree(side->exposed));
}

static void take_lock(struct side *side)
{
    ptl_sr_value_t drops;
    OK(PtlNIStatus(side->ni, PTL_SR_DROP_COUNT, &drops));
}

static void carry_out(struct side *side, int command, ptl_process_t to)
{
    const ptl_handle_md_t md = side->counting;
    switch (command) {
    case PUT_EVENT: OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, PT_EVENT, 7, 0, NULL, 0)); break;
    case PUT_COUNT: OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, PT_COUNT, 7, 0, NULL, 0)); break;
    case PUT_ONCE: OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, PT_ONCE, 7, 0, NULL, 0)); break;
    case PUT_LIST: OK(PtlPut(side->list_md, 0, 8, PTL_NO_ACK_REQ, to, PT_COUNT_LIST, 0, 0, NULL, 0)); break;
    case PUT_MPI:
        take_events(side); /* of the put before */
        OK(PtlPut(side->reporting, 0, 8, PTL_ACK_REQ, to, PT_MPI, 7, 0, NULL, 0));
        break;
    case GET: OK(PtlGet(md, 0, 8, to, PT_COUNT, 7, 0, NULL)); break;
    case FETCH_ADD: OK(PtlFetchAtomic(md, 8, md, 0, 8, to, PT_COUNT, 7, 0, NULL, 0, PTL_SUM, PTL_UINT64_T)); break;
    case EXPOSE: expose(side); break;
    case HIDE: hide(side); break;
    default: break;
    }
}

static void next_of_any_kind(ptl_handle_eq_t eq, ptl_event_t *event)
{
    int rc;
    do {
        rc = PtlEQGet(eq, event);
        if (rc != PTL_OK && rc != PTL_EQ_EMPTY) fail("PtlEQGet", rc);
    } while (rc != PTL_OK);
}

/* Takes events until one of this kind. */
static void next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
    ptl_event_t event;
    do {
        next_of_any_kind(eq, &event);
    } while (event.type != kind);
}

/* As a program has done that runs for a while: what is sent often takes a shorter way. */
static void send_often(struct side *side, ptl_process_t peer)
{
    static int is_done;
    if (getenv("PTL_NAL")) return; /* others take none */
    for (int times = 0; !is_done && times < OFTEN; times++) {
        OK(PtlPut(side->counting, 0, 8, PTL_NO_ACK_REQ, peer, PT_COUNT, 7, 0, NULL, 0));
        OK(PtlGet(side->counting, 0, 8, peer, PT_COUNT, 7, 0, NULL));
        OK(PtlPut(side->reporting, 0, 8, PTL_ACK_REQ, peer, PT_COUNT, 7, 0, NULL, 0));
        next_event(side->md_eq, PTL_EVENT_SEND);
        next_event(side->md_eq, PTL_EVENT_ACK);
        settle(side);
    }
    is_done = 1;
}

static void count_starts(struct side *side, ptl_process_t peer)
{
    send_often(side, peer);
    const ptl_handle_md_t md = side->counting, reporting = side->reporting;
    uint64_t              before = successes(side->md_ct);
    COUNTED("put", PTL_OK, PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_COUNT, 7, 0, NULL, 0));
    COUNTED("get", PTL_OK, PtlGet(md, 0, 8, peer, PT_COUNT, 7, 0, NULL));
    while (successes(side->md_ct) < before + 2) {}
    COUNTED("fetch-atomic", PTL_OK,
            PtlFetchAtomic(md, 8, md, 0, 8, peer, PT_COUNT, 7, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    while (successes(side->md_ct) < before + 3) {}
    settle(side);
    COUNTED("put, acknowledged", PTL_OK, PtlPut(reporting, 0, 8, PTL_ACK_REQ, peer, PT_COUNT, 7, 0, NULL, 0));
    next_event(side->md_eq, PTL_EVENT_SEND);
    next_event(side->md_eq, PTL_EVENT_ACK);
}

static void count_looks(struct side *side, struct shared *shared)
{
    ptl_event_t     event;
    ptl_ct_event_t  value;
    ptl_handle_eq_t both[] = { side->portal_eq, side->md_eq };
    unsigned int    which;
    COUNTED("event queue, empty", PTL_EQ_EMPTY, PtlEQGet(side->portal_eq, &event));
    COUNTED("two event queues, empty", PTL_EQ_EMPTY, PtlEQPoll(both, 2, 0, &event, &which));
    COUNTED("counter", PTL_OK, PtlCTGet(side->entry_ct, &value));
    COUNTED("counter that has reached its test", PTL_OK, PtlCTWait(side->entry_ct, 0, &value));
    /* The event of an operation that has ended already: sending 8 bytes. */
    OK(PtlPut(side->reporting, 0, 8, PTL_NO_ACK_REQ, shared->peer, PT_COUNT, 7, 0, NULL, 0));
    COUNTED("event queue, one event", PTL_OK, PtlEQGet(side->md_eq, &event));
    OK(PtlPut(side->reporting, 0, 8, PTL_NO_ACK_REQ, shared->peer, PT_COUNT, 7, 0, NULL, 0));
    COUNTED("two event queues, one event", PTL_OK, PtlEQPoll(both, 2, 0, &event, &which));
}

/* As for a program that has received many: what is like earlier ones takes a shorter way. */
static void receive_often(struct side *side, struct shared *shared)
{
    static int is_done;
    if (getenv("PTL_NAL")) return; /* others have none */
    for (int times = 0; times < (is_done ? 8 : OFTEN); times++) {
        command(shared, PUT_COUNT);
        poll_once(side);
        command(shared, PUT_LIST);
        poll_once(side);
        command(shared, PUT_EVENT);
        next_event(side->portal_eq, PTL_EVENT_PUT);
    }
    is_done = 1;
}

static void count_arrivals(struct side *side, struct shared *shared)
{
    ptl_event_t    event;
    ptl_ct_event_t value;
    receive_often(side, shared);
    /* What the peer still has to acknowledge would arrive with the put. */
    settle(side);
    command(shared, PUT_EVENT);
    COUNTED("put arrives, event taken", PTL_OK, PtlEQGet(side->portal_eq, &event));
    settle(side);
    command(shared, PUT_COUNT);
    COUNTED("put arrives, counter read", PTL_OK, PtlCTGet(side->entry_ct, &value));
    settle(side);
    command(shared, PUT_LIST);
    COUNTED("put arrives at a list entry, counter read", PTL_OK, PtlCTGet(side->entry_ct, &value));
    settle(side);
    command(shared, GET);
    COUNTED("get arrives, counter read", PTL_OK, PtlCTGet(side->entry_ct, &value));
    settle(side);
    command(shared, FETCH_ADD);
    COUNTED("fetch-atomic arrives, counter read", PTL_OK, PtlCTGet(side->entry_ct, &value));
    settle(side);
}

/* Entries that are used once, with all their events. */
static void count_entries(struct side *side, struct shared *shared)
{
    ptl_me_t        entry = entry_of(side, PTL_ME_USE_ONCE);
    ptl_handle_me_t handle;
    ptl_event_t     event;
    COUNTED("entry appended", PTL_OK,
            PtlMEAppend(side->ni, PT_ONCE, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    next_event(side->portal_eq, PTL_EVENT_LINK);
    COUNTED("entry unlinked", PTL_OK, PtlMEUnlink(handle));
    OK(PtlMEAppend(side->ni, PT_ONCE, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    next_event(side->portal_eq, PTL_EVENT_LINK);
    command(shared, PUT_ONCE);
    COUNTED("put arrives at an entry used once, event taken", PTL_OK, PtlEQGet(side->portal_eq, &event));
    settle(side);
}

/* What Open MPI's mtl/portals4 does for a short message: the receiver appends an entry that is used
 * once and ignores the bits of the sender's protocol, at a portal table entry with flow control;
 * the sender puts with an acknowledgement; both poll two event queues. */
static ptl_me_t receive_of_mpi(struct side *side, ptl_process_t peer)
{
    ptl_me_t entry = entry_of(side, PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
    entry.match_id = peer;
    entry.ignore_bits = (ptl_match_bits_t)3 << 60;
    return entry;
}

static void receive_often_for_mpi(struct side *side, struct shared *shared)
{
    const ptl_me_t  entry = receive_of_mpi(side, shared->peer);
    ptl_handle_me_t handle;
    for (int times = 0; times < OFTEN; times++) {
        OK(PtlMEAppend(side->ni, PT_MPI, &entry, PTL_PRIORITY_LIST, NULL, &handle));
        command(shared, PUT_MPI);
        next_event(side->portal_eq, PTL_EVENT_PUT);
    }
}

static void count_mpi(struct side *side, struct shared *shared)
{
    const ptl_me_t  entry = receive_of_mpi(side, shared->peer);
    ptl_handle_eq_t both[] = { side->md_eq, side->portal_eq };
    ptl_handle_me_t handle;
    ptl_event_t     event;
    unsigned int    which;
    if (getenv("PTL_NAL")) return; /* has no budget there, and what it leaves under way adds to others */
    receive_often_for_mpi(side, shared);
    COUNTED("MPI: receive posted", PTL_OK, PtlMEAppend(side->ni, PT_MPI, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    command(shared, PUT_MPI);
    COUNTED("MPI: message arrives, event taken", PTL_OK, PtlEQPoll(both, 2, 0, &event, &which));
    command(shared, PUT_MPI);
    COUNTED("MPI: unexpected message arrives", PTL_EQ_EMPTY, PtlEQPoll(both, 2, 0, &event, &which));
    COUNTED("MPI: receive posted late", PTL_OK, PtlMEAppend(side->ni, PT_MPI, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    /* As a rule PTL_EVENT_PUT_OVERFLOW; who took the message may have been the helper, later. */
    do {
        next_of_any_kind(side->portal_eq, &event);
    } while (event.type != PTL_EVENT_PUT_OVERFLOW && event.type != PTL_EVENT_PUT);
    settle(side);
}

/* The peer polls before it looks for a command, so that once it has carried out a second
 * one it has acknowledged what was put before the first. */
static void count_acknowledgement(struct side *side, struct shared *shared)
{
    ptl_event_t event;
    OK(PtlPut(side->reporting, 0, 8, PTL_ACK_REQ, shared->peer, PT_COUNT, 7, 0, NULL, 0));
    OK(PtlEQGet(side->md_eq, &event)); /* PTL_EVENT_SEND */
    command(shared, POLL);
    command(shared, POLL);
    COUNTED("acknowledgement arrives, event taken", PTL_OK, PtlEQGet(side->md_eq, &event));
    settle(side);
}

/* Likewise. */
static void count_replies(struct side *side, struct shared *shared)
{
    ptl_ct_event_t value;
    OK(PtlGet(side->counting, 0, 8, shared->peer, PT_COUNT, 7, 0, NULL));
    command(shared, POLL);
    command(shared, POLL);
    COUNTED("reply arrives, counter read", PTL_OK, PtlCTGet(side->md_ct, &value));
    settle(side);
    OK(PtlFetchAtomic(side->counting, 8, side->counting, 0, 8, shared->peer, PT_COUNT, 7, 0, NULL, 0,
                      PTL_SUM, PTL_UINT64_T));
    command(shared, POLL);
    command(shared, POLL);
    COUNTED("reply to fetch-atomic arrives, counter read", PTL_OK, PtlCTGet(side->md_ct, &value));
    settle(side);
}

/* Without the peer, who has read all that was sent to it before. */
static void count_direct(struct side *side, struct shared *shared)
{
    const ptl_handle_md_t md = side->counting;
    const ptl_process_t   peer = shared->peer;
    command(shared, EXPOSE);
    command(shared, POLL);
    command(shared, POLL);
    uint64_t before = successes(side->md_ct);
    OK(PtlGet(md, 0, 8, peer, PT_DIRECT, 7, 0, NULL)); /* a message, which notices the entry */
    while (successes(side->md_ct) < before + 1) {}
    settle(side);
    OK(PtlGet(md, 0, 8, peer, PT_DIRECT, 7, 0, NULL)); /* maps the memory */
    /* The first operation of each kind looks up what the others are like. */
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_DIRECT, 7, 0, NULL, 0));
    OK(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_DIRECT, 7, 0, NULL, 0, PTL_BXOR, PTL_UINT64_T));
    OK(PtlFetchAtomic(md, 8, md, 0, 8, peer, PT_DIRECT, 7, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    COUNTED("put, direct", PTL_OK, PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_DIRECT, 7, 0, NULL, 0));
    COUNTED("get, direct", PTL_OK, PtlGet(md, 0, 8, peer, PT_DIRECT, 7, 0, NULL));
    COUNTED("atomic, direct", PTL_OK,
            PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_DIRECT, 7, 0, NULL, 0, PTL_BXOR, PTL_UINT64_T));
    COUNTED("fetch-atomic, direct", PTL_OK,
            PtlFetchAtomic(md, 8, md, 0, 8, peer, PT_DIRECT, 7, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    command(shared, HIDE);
    /* Sees that nothing is exposed. */
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, PT_COUNT, 7, 0, NULL, 0));
    settle(side);
}

static void count_calls(struct side *side, struct shared *shared)
{
    count_starts(side, shared->peer);
    count_looks(side, shared);
    count_arrivals(side, shared);
    count_entries(side, shared);
    count_mpi(side, shared);
    count_acknowledgement(side, shared);
    count_replies(side, shared);
    count_direct(side, shared);
}

int main(int count, char **words)
{
    struct side side;
    return run(&side, count, words);
}
