/*
 * Unexpected messages of which the receiver's own looks leave some for later ones: whether it looks
 * a few times or not at all and then computes, all of them land, in order, without another call; and
 * one that it posts a receive for lands there or has become unexpected, never both.
 */
#include "rig.h"

/* Portal table indices. */
enum { MESSAGES = 4, TURN = 6 };
#define ROUNDS 400
/* Messages of a round. */
#define BURST 5
/* Looks before the receiver computes. */
#define MOST_LOOKS 4

struct side {
    struct rig      rig;
    ptl_handle_eq_t sent, received;
    ptl_handle_ct_t turn;
    ptl_handle_md_t md;
    uint64_t        source[BURST], memory[BURST];
    /* Where unexpected messages land, one behind the other. */
    uint64_t        overflow[ROUNDS * BURST];
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
    me.options  = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | options;
    rig_append_for_all(&side->rig, portal, list, me);
}

static void begin(struct side *side)
{
    ptl_pt_index_t got;
    side->rig = rig_begin(PTL_NI_MATCHING);
    OK(PtlEQAlloc(side->rig.ni, 4096, &side->sent));
    OK(PtlEQAlloc(side->rig.ni, 4096, &side->received));
    OK(PtlCTAlloc(side->rig.ni, &side->turn));
    OK(PtlPTAlloc(side->rig.ni, 0, side->received, MESSAGES, &got));
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, TURN, &got));
    append(side, MESSAGES, PTL_OVERFLOW_LIST, side->overflow, sizeof side->overflow,
           PTL_ME_EVENT_COMM_DISABLE | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN);
    append(side, TURN, PTL_PRIORITY_LIST, side->memory, 0, PTL_ME_EVENT_CT_COMM);
    ptl_md_t md = {side->source, sizeof side->source, PTL_MD_EVENT_SUCCESS_DISABLE, side->sent, PTL_CT_NONE};
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
    pmi_barrier(&side->rig.pmi);
}

static void say(struct side *side)
{
    OK(PtlPut(side->md, 0, 0, PTL_NO_ACK_REQ, rig_peer(&side->rig), TURN, 0, 0, NULL, 0));
}

static void hear(struct side *side)
{
    rig_count(side->turn, ++side->turns);
}

/* Messages are numbered from 1 on, so that memory that nothing has landed in differs. */
static void send(struct side *side, uint64_t first)
{
    hear(side);
    for (uint64_t number = first; number < first + BURST; number++) {
        side->source[number - first] = number;
        OK(PtlPut(side->md, (number - first) * 8, 8, PTL_NO_ACK_REQ, rig_peer(&side->rig), MESSAGES, 0, 0, NULL,
                  number));
    }
}

/* Takes the event of a message if there is one; `landed` counts those that were unexpected. */
static int take(struct side *side, uint64_t number, uint64_t *place, uint64_t *landed)
{
    ptl_event_t event;
    const int   rc = PtlEQGet(side->received, &event);
    if (rc == PTL_EQ_EMPTY) return 0;
    SAME(rc, PTL_OK);
    SAME(event.ni_fail_type, PTL_NI_OK);
    SAME(event.hdr_data, number);
    SAME(event.user_ptr == place, 1);
    if (event.type == PTL_EVENT_PUT) {
        SAME(*place, number);
    } else {
        SAME(event.type, PTL_EVENT_PUT_OVERFLOW);
        SAME(event.start == &side->overflow[*landed], 1);
        SAME(side->overflow[*landed], number);
        ++*landed;
    }
    return 1;
}

/* Looks so often, then computes until the last one has landed, and then posts receives for all. */
static void receive_late(struct side *side, uint64_t first, int looks, uint64_t *landed)
{
    ptl_event_t event;
    while (looks-- > 0) ANSWERS(PTL_EQ_EMPTY, PtlEQGet(side->received, &event));
    rig_await_word(&side->overflow[*landed + BURST - 1], first + BURST - 1);
    for (uint64_t number = first; number < first + BURST; number++) {
        append(side, MESSAGES, PTL_PRIORITY_LIST, side->memory, 8, PTL_ME_USE_ONCE);
        SAME(take(side, number, side->memory, landed), 1);
    }
}

/* Posts receives one by one, and looks for what comes until the message has. */
static void receive_early(struct side *side, uint64_t first, uint64_t *landed)
{
    for (uint64_t number = first; number < first + BURST; number++) {
        uint64_t *place = side->memory + (number - first);
        append(side, MESSAGES, PTL_PRIORITY_LIST, place, 8, PTL_ME_USE_ONCE);
        while (!take(side, number, place, landed)) {}
    }
}

static void receive(struct side *side, int round, uint64_t first, uint64_t *landed)
{
    const int looks = round % (MOST_LOOKS + 2);
    say(side);
    if (looks <= MOST_LOOKS) {
        receive_late(side, first, looks, landed);
    } else {
        receive_early(side, first, landed);
    }
}

int main(void)
{
    static struct side side;
    uint64_t           landed = 0;
    begin(&side);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t first = 1 + (uint64_t)round * BURST;
        if (is_sender(&side)) {
            send(&side, first);
        } else {
            receive(&side, round, first, &landed);
        }
    }
    pmi_barrier(&side.rig.pmi);
    if (side.rig.pmi.rank == 0) puts("everything that was left has landed");
    rig_end(&side.rig);
    return 0;
}
