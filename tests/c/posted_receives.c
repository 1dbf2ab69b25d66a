/*
 * Messages as MPI exchanges them: the receiver posts windows of entries that are used once, with
 * an overflow entry for what comes too early, behind a portal table entry with flow control; the
 * sender asks for acknowledgements. All arrive in order, posted for or not, and those that flow
 * control has refused can be put once more.
 */
#include "rig.h"

/* Portal table indices. */
enum { RECEIVES = 4, SLOW = 5, TURN = 6 };
#define WINDOW 64
/* Fewer than the unexpected messages that an interface keeps. */
#define WINDOWS 200
/* To a receiver whose queue takes fewer. */
#define MOST 20
#define SLOW_EVENTS 8
#define UNEXPECTED_BYTES (1 << 20)

struct side {
    struct rig      rig;
    ptl_handle_eq_t sent, received, slow;
    ptl_handle_ct_t turn;
    ptl_handle_md_t md;
    uint64_t        source[WINDOW], memory[WINDOW];
    ptl_size_t      turns;
};

static int is_sender(const struct side *side)
{
    return side->rig.pmi.rank == 0;
}

static void append(struct side *side, ptl_pt_index_t portal, ptl_list_t list, void *start, ptl_size_t length,
                   unsigned int options)
{
    ptl_me_t me = {.start = start, .length = length, .ct_handle = side->turn};
    me.options  = PTL_ME_EVENT_LINK_DISABLE | options;
    if (list == PTL_OVERFLOW_LIST) me.min_free = 64;
    rig_append_for_all(&side->rig, portal, list, me);
}

static void post(struct side *side, ptl_pt_index_t portal, uint64_t number)
{
    const unsigned int once = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
    append(side, portal, PTL_PRIORITY_LIST, side->memory + number % WINDOW, 8, once);
}

static void put(struct side *side, ptl_pt_index_t portal, uint64_t number)
{
    const ptl_size_t offset = number % WINDOW * 8;
    side->source[number % WINDOW] = number;
    OK(PtlPut(side->md, offset, 8, PTL_ACK_REQ, rig_peer(&side->rig), portal, 0, 0, (void *)(uintptr_t)number,
              number));
}

/* Lets the other side go on. */
static void say(struct side *side)
{
    OK(PtlPut(side->md, 0, 0, PTL_NO_ACK_REQ, rig_peer(&side->rig), TURN, 0, 0, NULL, 0));
    rig_event(side->sent, PTL_EVENT_SEND);
}

/* Waits until the other side does. */
static void hear(struct side *side)
{
    rig_count(side->turn, ++side->turns);
}

static void begin(struct side *side)
{
    const unsigned int options = PTL_PT_FLOWCTRL | PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE;
    ptl_pt_index_t     got;
    side->rig = rig_begin(PTL_NI_MATCHING);
    OK(PtlEQAlloc(side->rig.ni, 1024, &side->sent));
    OK(PtlEQAlloc(side->rig.ni, 1024, &side->received));
    OK(PtlEQAlloc(side->rig.ni, SLOW_EVENTS, &side->slow));
    OK(PtlCTAlloc(side->rig.ni, &side->turn));
    OK(PtlPTAlloc(side->rig.ni, options, side->received, RECEIVES, &got));
    OK(PtlPTAlloc(side->rig.ni, options, side->slow, SLOW, &got));
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, TURN, &got));
    append(side, RECEIVES, PTL_OVERFLOW_LIST, malloc(UNEXPECTED_BYTES), UNEXPECTED_BYTES,
           PTL_ME_EVENT_COMM_DISABLE | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN);
    append(side, TURN, PTL_PRIORITY_LIST, side->memory, 0, PTL_ME_EVENT_CT_COMM);
    ptl_md_t md = {side->source, sizeof side->source, 0, side->sent, PTL_CT_NONE};
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
    pmi_barrier(&side->rig.pmi);
}

/* Posts a window of receives and takes as many messages, posted for in time or not. */
static void receive_window(struct side *side, uint64_t first)
{
    const ptl_handle_eq_t both[] = {side->sent, side->received};
    for (uint64_t number = first; number < first + WINDOW; number++) post(side, RECEIVES, number);
    for (uint64_t number = first; number < first + WINDOW;) {
        ptl_event_t  event;
        unsigned int which;
        const int    rc = PtlEQPoll(both, 2, 0, &event, &which);
        if (rc == PTL_EQ_EMPTY) continue;
        SAME(rc, PTL_OK);
        SAME(which, 1);
        SAME(event.ni_fail_type, PTL_NI_OK);
        SAME(event.hdr_data, number);
        SAME(event.mlength, 8);
        SAME(event.user_ptr == side->memory + number % WINDOW, 1);
        if (event.type == PTL_EVENT_PUT) {
            SAME(side->memory[number % WINDOW], number);
        } else {
            SAME(event.type, PTL_EVENT_PUT_OVERFLOW);
            SAME(*(uint64_t *)event.start, number);
        }
        number++;
    }
}

static void send_window(struct side *side, uint64_t first)
{
    uint64_t acknowledged = first;
    for (uint64_t number = first; number < first + WINDOW; number++) put(side, RECEIVES, number);
    for (int events = 0; events < 2 * WINDOW; events++) {
        ptl_event_t event;
        OK(PtlEQWait(side->sent, &event));
        SAME(event.ni_fail_type, PTL_NI_OK);
        if (event.type == PTL_EVENT_SEND) continue;
        SAME(event.type, PTL_EVENT_ACK);
        SAME((uintptr_t)event.user_ptr, acknowledged);
        acknowledged++;
    }
    SAME(acknowledged, first + WINDOW);
}

static void windows_arrive_in_order(struct side *side)
{
    for (uint64_t window = 0; window < WINDOWS; window++) {
        if (is_sender(side)) {
            send_window(side, window * WINDOW);
        } else {
            receive_window(side, window * WINDOW);
        }
    }
}

/* Puts messages until none is refused any more; the receiver looks at them in its turn. */
static void send_until_taken(struct side *side)
{
    uint64_t pending[MOST];
    int      count = MOST, rounds = 0;
    for (int i = 0; i < MOST; i++) pending[i] = (uint64_t)i;
    while (count > 0) {
        int refused = 0;
        for (int i = 0; i < count; i++) put(side, SLOW, pending[i]);
        for (int events = 0; events < 2 * count; events++) {
            ptl_event_t event;
            OK(PtlEQWait(side->sent, &event));
            if (event.type == PTL_EVENT_SEND) continue;
            SAME(event.type, PTL_EVENT_ACK);
            if (event.ni_fail_type == PTL_NI_OK) {
                SAME(refused, 0); /* none behind one that was refused */
                continue;
            }
            SAME(event.ni_fail_type, PTL_NI_PT_DISABLED);
            pending[refused++] = (uint64_t)(uintptr_t)event.user_ptr;
        }
        count = refused;
        rounds++;
        say(side);
        hear(side);
    }
    SAME(rounds > 1, 1); /* flow control has set in */
}

static void take_slowly(struct side *side)
{
    uint64_t expected = 0;
    for (uint64_t number = 0; number < MOST; number++) post(side, SLOW, number);
    say(side);
    while (expected < MOST) {
        ptl_event_t event;
        int         was_disabled = 0, rc;
        hear(side);
        while ((rc = PtlEQGet(side->slow, &event)) == PTL_OK) {
            if (event.type == PTL_EVENT_PT_DISABLED) {
                was_disabled++;
                continue;
            }
            SAME(event.type, PTL_EVENT_PUT);
            SAME(event.hdr_data, expected);
            SAME(side->memory[expected % WINDOW], expected);
            expected++;
        }
        SAME(rc, PTL_EQ_EMPTY); /* no event was lost */
        SAME(was_disabled, expected < MOST ? 1 : 0);
        OK(PtlPTEnable(side->rig.ni, SLOW));
        say(side);
    }
}

static void what_flow_control_refuses_is_taken_later(struct side *side)
{
    if (is_sender(side)) {
        hear(side);
        send_until_taken(side);
    } else {
        take_slowly(side);
    }
}

int main(void)
{
    static struct side side;
    begin(&side);
    windows_arrive_in_order(&side);
    what_flow_control_refuses_is_taken_later(&side);
    rig_end(&side.rig);
    return 0;
}
