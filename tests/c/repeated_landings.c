/*
 * Puts that land like earlier ones take a shorter way, straight to who polls for them: each is
 * reported as any other, and what changes or arrives between two of them counts all the same.
 */
#include "rig.h"

/* Portal table indices: two with a queue each, and one that is counted. */
enum { LEFT = 4, RIGHT = 5, COUNTED = 6 };
/* Rounds of a thing, so that most take the shorter way. */
#define OFTEN 400
#define STREAM 5000
#define SLOTS 64

struct receiver {
    uint64_t        memory[SLOTS];
    ptl_handle_eq_t left, right;
    ptl_handle_ct_t counted;
    ptl_handle_me_t entry;
};

struct side {
    struct rig      rig;
    struct receiver in;
    ptl_handle_md_t md;
    uint64_t        source[SLOTS];
    /* Messages of the peer that were counted. */
    ptl_size_t heard;
};

static int is_sender(const struct side *side)
{
    return side->rig.pmi.rank == 0;
}

static ptl_handle_me_t append(const struct side *side, ptl_pt_index_t portal, void *start, ptl_handle_ct_t ct)
{
    ptl_handle_me_t handle;
    ptl_me_t        me = {.start = start, .length = sizeof side->in.memory, .uid = PTL_UID_ANY, .ct_handle = ct};
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.options           = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM;
    if (ct != PTL_CT_NONE) me.options |= PTL_ME_EVENT_SUCCESS_DISABLE;
    OK(PtlMEAppend(side->rig.ni, portal, &me, PTL_PRIORITY_LIST, start, &handle));
    return handle;
}

static void open_portal(const struct side *side, ptl_pt_index_t index, ptl_handle_eq_t eq)
{
    ptl_pt_index_t got;
    OK(PtlPTAlloc(side->rig.ni, 0, eq, index, &got));
}

static void begin(struct side *side)
{
    struct receiver *in = &side->in;
    side->rig           = rig_begin(PTL_NI_MATCHING);
    OK(PtlEQAlloc(side->rig.ni, 2 * STREAM, &in->left));
    OK(PtlEQAlloc(side->rig.ni, 64, &in->right));
    OK(PtlCTAlloc(side->rig.ni, &in->counted));
    open_portal(side, LEFT, in->left);
    open_portal(side, RIGHT, in->right);
    open_portal(side, COUNTED, in->left);
    in->entry = append(side, LEFT, in->memory, PTL_CT_NONE);
    append(side, RIGHT, in->memory, PTL_CT_NONE);
    append(side, COUNTED, in->memory, in->counted);
    ptl_md_t md = {side->source, sizeof side->source, 0, PTL_EQ_NONE, PTL_CT_NONE};
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
    pmi_barrier(&side->rig.pmi);
}

/* Puts a number at its place, and says it in the header as well. */
static void put(struct side *side, ptl_pt_index_t portal, uint64_t number)
{
    const ptl_size_t offset = number % SLOTS * 8;
    side->source[number % SLOTS] = number;
    OK(PtlPut(side->md, offset, 8, PTL_NO_ACK_REQ, rig_peer(&side->rig), portal, 0, offset, NULL, number));
}

/* Lets the other side go on. */
static void say(struct side *side)
{
    put(side, COUNTED, 0);
}

/* Waits until the other side does. */
static void hear(struct side *side)
{
    rig_count(side->in.counted, ++side->heard);
}

static void check(const struct side *side, const ptl_event_t *event, ptl_pt_index_t portal, uint64_t number,
                  const uint64_t *memory)
{
    SAME(event->type, PTL_EVENT_PUT);
    SAME(event->pt_index, portal);
    SAME(event->hdr_data, number);
    SAME(event->mlength, 8);
    SAME(event->rlength, 8);
    SAME(event->remote_offset, number % SLOTS * 8);
    SAME(event->initiator.phys.pid, rig_peer(&side->rig).phys.pid);
    SAME(event->ni_fail_type, PTL_NI_OK);
    SAME(event->ptl_list, PTL_PRIORITY_LIST);
    SAME(event->start == memory + number % SLOTS, 1);
    SAME(event->user_ptr == memory, 1);
    SAME(memory[number % SLOTS], number);
}

static ptl_event_t get(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    int         rc;
    while ((rc = PtlEQGet(eq, &event)) == PTL_EQ_EMPTY) {}
    SAME(rc, PTL_OK);
    return event;
}

static ptl_event_t wait_for(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    OK(PtlEQWait(eq, &event));
    return event;
}

/* Turn by turn, by each of the calls that take events. */
static void each_call_takes_its_event(struct side *side)
{
    struct receiver *in = &side->in;
    for (uint64_t round = 0; round < OFTEN; round++) {
        const int             is_left = round % 3 != 0;
        const ptl_pt_index_t  portal  = is_left ? LEFT : RIGHT;
        const ptl_handle_eq_t queue   = is_left ? in->left : in->right, both[] = {in->left, in->right};
        if (is_sender(side)) {
            put(side, portal, round);
            hear(side);
            continue;
        }
        ptl_event_t  event;
        unsigned int which = is_left ? 0 : 1;
        int          rc;
        switch (round / 3 % 4) {
        case 0: event = get(queue); break;
        case 1: event = wait_for(queue); break;
        case 2: OK(PtlEQPoll(both, 2, PATIENCE_MS, &event, &which)); break;
        default:
            while ((rc = PtlEQPoll(both, 2, 0, &event, &which)) == PTL_EQ_EMPTY) {}
            SAME(rc, PTL_OK);
        }
        SAME(which, is_left ? 0 : 1);
        check(side, &event, portal, round, in->memory);
        say(side);
    }
}

static void a_stream_arrives_in_order(struct side *side)
{
    for (uint64_t number = 0; number < STREAM; number++) {
        if (is_sender(side)) {
            side->source[number % SLOTS] = number;
            OK(PtlPut(side->md, 0, number % 200, PTL_NO_ACK_REQ, rig_peer(&side->rig), LEFT, 0, 8, NULL, number));
            continue;
        }
        const ptl_event_t event = number % 7 ? get(side->in.left) : wait_for(side->in.left);
        SAME(event.hdr_data, number);
        SAME(event.mlength, number % 200);
    }
}

/* Puts that are acknowledged and gets are answered one by one, with what is there then. */
static void each_is_answered(struct side *side)
{
    static uint64_t      sink[SLOTS];
    const ptl_process_t  peer = rig_peer(&side->rig);
    struct receiver     *in   = &side->in;
    ptl_handle_eq_t      answers;
    ptl_handle_md_t      md;
    OK(PtlEQAlloc(side->rig.ni, 16, &answers));
    ptl_md_t from = {side->source, sizeof side->source, PTL_MD_EVENT_SEND_DISABLE, answers, PTL_CT_NONE};
    ptl_md_t to   = {sink, sizeof sink, 0, answers, PTL_CT_NONE};
    ptl_handle_md_t filled;
    OK(PtlMDBind(side->rig.ni, &from, &md));
    OK(PtlMDBind(side->rig.ni, &to, &filled));
    for (uint64_t round = 0; round < 3 * OFTEN; round++) {
        const int        is_get = round % 3 == 2;
        const uint64_t   number = is_get ? round - 1 : round;
        const ptl_size_t offset = number % SLOTS * 8;
        const ptl_pt_index_t portal = round % 2 ? LEFT : COUNTED;
        if (!is_sender(side)) {
            if (portal == LEFT) {
                const ptl_event_t event = get(in->left);
                SAME(event.type, is_get ? PTL_EVENT_GET : PTL_EVENT_PUT);
                SAME(event.mlength, 8);
                SAME(event.remote_offset, offset);
                SAME(event.start == in->memory + number % SLOTS, 1);
                SAME(in->memory[number % SLOTS], number);
            } else {
                hear(side);
            }
            say(side);
            continue;
        }
        side->source[number % SLOTS] = number;
        sink[number % SLOTS]         = ~number;
        void *mark                   = sink + round % SLOTS;
        if (is_get) {
            OK(PtlGet(filled, offset, 8, peer, portal, 0, offset, mark));
        } else {
            OK(PtlPut(md, offset, 8, PTL_ACK_REQ, peer, portal, 0, offset, mark, number));
        }
        const ptl_event_t event = rig_event(answers, is_get ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
        SAME(event.mlength, 8);
        SAME(event.user_ptr == mark, 1);
        if (is_get) SAME(sink[number % SLOTS], number);
        hear(side);
    }
    OK(PtlMDRelease(md));
    OK(PtlMDRelease(filled));
    OK(PtlEQFree(answers));
}

/* What a caller polls for is given to it, not what another queue or interface awaits. */
static void a_queue_of_another_interface_stays_empty(struct side *side)
{
    ptl_handle_ni_t other;
    ptl_handle_eq_t first, second;
    ptl_event_t     event;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other));
    OK(PtlEQAlloc(other, 16, &first));
    OK(PtlEQAlloc(other, 16, &second));
    for (uint64_t round = 0; round < OFTEN; round++) {
        if (is_sender(side)) {
            put(side, round % 2 ? LEFT : RIGHT, round);
            hear(side);
            continue;
        }
        for (int poll = 0; poll < 20; poll++) {
            ANSWERS(PTL_EQ_EMPTY, PtlEQGet(round % 4 < 2 ? first : second, &event));
        }
        event = get(round % 2 ? side->in.left : side->in.right);
        SAME(event.hdr_data, round);
        say(side);
    }
    OK(PtlNIFini(other));
}

/* Another entry in the place of one that was unlinked takes what comes then. */
static void an_unlinked_entry_takes_nothing(struct side *side)
{
    static uint64_t other[SLOTS];
    uint64_t       *memory = side->in.memory;
    for (uint64_t round = 1; round < OFTEN; round++) {
        if (is_sender(side)) {
            put(side, LEFT, round);
            hear(side);
            continue;
        }
        const ptl_event_t event = get(side->in.left);
        check(side, &event, LEFT, round, memory);
        if (round % 40 == 0) {
            OK(PtlMEUnlink(side->in.entry));
            memory = memory == other ? side->in.memory : other;
            memset(memory, 0, sizeof other);
            side->in.entry = append(side, LEFT, memory, PTL_CT_NONE);
        }
        say(side);
    }
    if (memory == other) {
        OK(PtlMEUnlink(side->in.entry));
        side->in.entry = append(side, LEFT, side->in.memory, PTL_CT_NONE);
    }
}

/* What a disabled portal table entry is sent is lost, and nothing else. */
static void a_disabled_portal_takes_nothing(struct side *side)
{
    ptl_event_t event;
    for (uint64_t round = 0; round < OFTEN; round++) {
        const int is_disabled = round % 20 == 19;
        if (is_sender(side)) {
            hear(side);
            put(side, LEFT, round);
            say(side);
            continue;
        }
        if (is_disabled) OK(PtlPTDisable(side->rig.ni, LEFT));
        say(side);
        if (!is_disabled && round % 2) {
            event = get(side->in.left);
            SAME(event.hdr_data, round);
        }
        hear(side);
        if (!is_disabled && round % 2 == 0) {
            event = get(side->in.left);
            SAME(event.hdr_data, round);
        }
        ANSWERS(PTL_EQ_EMPTY, PtlEQGet(side->in.left, &event));
        if (is_disabled) OK(PtlPTEnable(side->rig.ni, LEFT));
    }
}

/* A counter that puts are counted by releases what waits for it, exactly when it is reached. */
static void what_waits_for_a_count_is_released(struct side *side)
{
    ptl_handle_ct_t   released;
    ptl_ct_event_t    seen;
    const ptl_ct_event_t one = {1, 0};
    OK(PtlCTAlloc(side->rig.ni, &released));
    for (ptl_size_t round = 1; round <= OFTEN; round++) {
        if (is_sender(side)) {
            say(side);
            hear(side);
            continue;
        }
        if (round % 10 == 0) OK(PtlTriggeredCTInc(released, one, side->in.counted, side->heard + 1));
        OK(PtlCTGet(released, &seen));
        hear(side);
        rig_count(released, round / 10);
        say(side);
    }
    OK(PtlCTFree(released));
}

int main(void)
{
    static struct side side;
    begin(&side);
    void (*const things[])(struct side *) = {
        each_call_takes_its_event,
        a_stream_arrives_in_order,
        each_is_answered,
        a_queue_of_another_interface_stays_empty,
        an_unlinked_entry_takes_nothing,
        a_disabled_portal_takes_nothing,
        what_waits_for_a_count_is_released,
    };
    for (size_t thing = 0; thing < sizeof things / sizeof things[0]; thing++) {
        things[thing](&side);
        pmi_barrier(&side.rig.pmi);
    }
    rig_end(&side.rig);
    return 0;
}
