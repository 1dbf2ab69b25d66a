/*
 * Acknowledgements of puts that were sent together: each says of its own put what became of it,
 * whatever those say that come with it, and comes once.
 */
#include "rig.h"

/* Portal table indices; their entries' match bits are the same. */
enum { WHOLE = 4, SHORT = 5, SILENT = 6, LATE = 7, NOBODY = 8, TURN = 9, PORTALS };
#define BYTES 64
#define SHORT_BYTES 4
#define BURSTS 400
#define MOST 60

/* What becomes of a put to each. */
static const struct {
    int            ack_comes;
    ptl_ni_fail_t  fail;
    ptl_list_t     list;
    ptl_size_t     at_most;
} becomes[PORTALS] = {
    [WHOLE]  = {1, PTL_NI_OK, PTL_PRIORITY_LIST, BYTES},
    [SHORT]  = {1, PTL_NI_OK, PTL_PRIORITY_LIST, SHORT_BYTES},
    [SILENT] = {0, PTL_NI_OK, PTL_PRIORITY_LIST, BYTES},
    [LATE]   = {1, PTL_NI_OK, PTL_OVERFLOW_LIST, BYTES},
    [NOBODY] = {1, PTL_NI_DROPPED, PTL_PRIORITY_LIST, 0},
};

/* A put under way. Acknowledgements come in the order of landing, which is that of sending. */
struct sent {
    ptl_pt_index_t portal;
    ptl_size_t     offset, length;
    int            is_awaited;
};

struct side {
    struct rig      rig;
    ptl_handle_eq_t reports, arrivals;
    ptl_handle_ct_t counted, turn;
    ptl_handle_md_t reporting, counting;
    char            source[BYTES], memory[BYTES];
    ptl_size_t      turns, acknowledged;
    uint64_t        random;
    struct sent    *last; /* that was acknowledged, of a burst */
    struct sent     sent[MOST];
};

static unsigned below(struct side *side, unsigned bound)
{
    side->random = side->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(side->random >> 33) % bound;
}

static void open_portal(struct side *side, ptl_pt_index_t index, ptl_list_t list, ptl_size_t length,
                        unsigned int options)
{
    ptl_pt_index_t  got;
    ptl_handle_me_t handle;
    ptl_me_t        me = {.start = side->memory, .length = length, .uid = PTL_UID_ANY, .ct_handle = side->turn};
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.options           = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options;
    OK(PtlPTAlloc(side->rig.ni, 0, side->arrivals, index, &got));
    OK(PtlMEAppend(side->rig.ni, index, &me, list, NULL, &handle));
}

static void begin(struct side *side)
{
    side->rig    = rig_begin(PTL_NI_MATCHING);
    side->random = 42;
    OK(PtlEQAlloc(side->rig.ni, 4096, &side->reports));
    OK(PtlEQAlloc(side->rig.ni, 4096, &side->arrivals));
    OK(PtlCTAlloc(side->rig.ni, &side->counted));
    OK(PtlCTAlloc(side->rig.ni, &side->turn));
    open_portal(side, WHOLE, PTL_PRIORITY_LIST, BYTES, 0);
    open_portal(side, SHORT, PTL_PRIORITY_LIST, SHORT_BYTES, 0);
    open_portal(side, SILENT, PTL_PRIORITY_LIST, BYTES, PTL_ME_ACK_DISABLE);
    open_portal(side, LATE, PTL_OVERFLOW_LIST, BYTES, PTL_ME_UNEXPECTED_HDR_DISABLE);
    open_portal(side, TURN, PTL_PRIORITY_LIST, BYTES, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
    ptl_md_t reporting = {side->source, BYTES, PTL_MD_EVENT_SEND_DISABLE, side->reports, PTL_CT_NONE};
    ptl_md_t counting  = {side->source, BYTES, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE,
                          side->counted};
    OK(PtlMDBind(side->rig.ni, &reporting, &side->reporting));
    OK(PtlMDBind(side->rig.ni, &counting, &side->counting));
    pmi_barrier(&side->rig.pmi);
}

/* Lets the other side go on. */
static void say(struct side *side)
{
    OK(PtlPut(side->counting, 0, 0, PTL_NO_ACK_REQ, rig_peer(&side->rig), TURN, 0, 0, NULL, 0));
}

/* Puts whose acknowledgements are events; at most a few say more than that the put landed. */
static unsigned put_reported(struct side *side, unsigned at)
{
    static const ptl_pt_index_t others[] = {SHORT, SILENT, LATE, NOBODY};
    struct sent                *put      = side->sent + at;
    put->portal     = below(side, 8) ? WHOLE : others[below(side, 4)];
    put->length     = below(side, 16);
    put->offset     = put->portal == WHOLE && !below(side, 8) ? 1 + below(side, 32) : 0;
    put->is_awaited = becomes[put->portal].ack_comes;
    OK(PtlPut(side->reporting, 0, put->length, PTL_ACK_REQ, rig_peer(&side->rig), put->portal, 0, put->offset,
              put, 0));
    return (unsigned)put->is_awaited;
}

static void put_counted(struct side *side)
{
    const ptl_size_t length = below(side, 16);
    OK(PtlPut(side->counting, 0, length, PTL_CT_ACK_REQ, rig_peer(&side->rig), WHOLE, 0, below(side, 32), NULL,
              0));
    side->acknowledged += length;
}

static void check_reported(struct side *side, const ptl_event_t *event)
{
    struct sent     *put     = event->user_ptr;
    const ptl_size_t at_most = becomes[put->portal].at_most;
    SAME(event->type, PTL_EVENT_ACK);
    SAME(put->is_awaited, 1); /* once */
    SAME(event->ni_fail_type, becomes[put->portal].fail);
    SAME(event->mlength, put->length < at_most ? put->length : at_most);
    if (event->ni_fail_type == PTL_NI_OK) {
        SAME(event->remote_offset, put->offset);
        SAME(event->ptl_list, becomes[put->portal].list);
    }
    SAME(side->last == NULL || side->last < put, 1);
    side->last      = put;
    put->is_awaited = 0;
}

static void send_burst(struct side *side)
{
    unsigned awaited = 0;
    side->last       = NULL;
    for (unsigned at = 0, count = 1 + below(side, MOST); at < count; at++) {
        awaited += put_reported(side, at);
        if (!below(side, 4)) put_counted(side);
    }
    for (; awaited > 0; awaited--) {
        ptl_event_t event;
        OK(PtlEQWait(side->reports, &event));
        check_reported(side, &event);
    }
    rig_count(side->counted, side->acknowledged);
}

/* Takes what arrives by polling, or else leaves it to the library while it waits. */
static void receive_burst(struct side *side, int polls)
{
    ptl_event_t    event;
    ptl_ct_event_t turn = {0, 0};
    side->turns++;
    while (polls && turn.success < side->turns) {
        int rc = PtlEQGet(side->arrivals, &event);
        SAME(rc == PTL_OK || rc == PTL_EQ_EMPTY, 1);
        OK(PtlCTGet(side->turn, &turn));
    }
    rig_count(side->turn, side->turns);
    while (PtlEQGet(side->arrivals, &event) == PTL_OK) {}
}

int main(void)
{
    static struct side side;
    begin(&side);
    for (int burst = 0; burst < BURSTS; burst++) {
        if (side.rig.pmi.rank == 0) {
            send_burst(&side);
            say(&side);
            rig_count(side.turn, ++side.turns);
        } else {
            receive_burst(&side, burst % 3);
            say(&side);
        }
    }
    ptl_event_t event;
    if (side.rig.pmi.rank == 0) ANSWERS(PTL_EQ_EMPTY, PtlEQGet(side.reports, &event));
    rig_end(&side.rig);
    return 0;
}
