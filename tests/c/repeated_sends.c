/*
 * Puts and gets that are like earlier ones take a shorter way: what changes between two of them
 * counts all the same.
 */
#include "rig.h"

#define PORTAL 9
/* Times that something is sent, so that the shorter way is taken. */
#define OFTEN 600
#define LONGEST 1024

static unsigned char source[LONGEST], sink[LONGEST];

struct target {
    unsigned char   memory[LONGEST];
    ptl_handle_ct_t puts, gets;
};

static ptl_handle_ct_t counter(const struct rig *rig)
{
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(rig->ni, &ct));
    return ct;
}

static ptl_handle_md_t bind(const struct rig *rig, void *start, unsigned int options, ptl_handle_eq_t eq,
                            ptl_handle_ct_t ct)
{
    ptl_md_t        md = {start, LONGEST, options, eq, ct};
    ptl_handle_md_t handle;
    OK(PtlMDBind(rig->ni, &md, &handle));
    return handle;
}

/* Match bits 0 take puts and atomics, 1 gets; both are counted. */
static void expose(const struct rig *rig, struct target *target)
{
    ptl_pt_index_t portal;
    OK(PtlPTAlloc(rig->ni, 0, PTL_EQ_NONE, PORTAL, &portal));
    target->puts = counter(rig);
    target->gets = counter(rig);
    for (ptl_match_bits_t bits = 0; bits < 2; bits++) {
        ptl_handle_me_t entry;
        ptl_me_t        me = {.start = target->memory, .length = LONGEST, .uid = PTL_UID_ANY, .match_bits = bits};
        me.ct_handle = bits ? target->gets : target->puts;
        me.options   = (bits ? PTL_ME_OP_GET : PTL_ME_OP_PUT | PTL_ME_OP_GET) | PTL_ME_EVENT_CT_COMM;
        me.match_id  = rig_peer(rig);
        OK(PtlMEAppend(rig->ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &entry));
    }
}

static int put(const struct rig *rig, ptl_handle_md_t md, ptl_size_t length, ptl_ack_req_t ack)
{
    return PtlPut(md, 0, length, ack, rig_peer(rig), PORTAL, 0, 0, source, 0);
}

static void put_often(const struct rig *rig, ptl_handle_md_t md)
{
    for (int times = 0; times < OFTEN; times++) OK(put(rig, md, 8, PTL_NO_ACK_REQ));
}

/* Both ranks have exposed their memory, and the puts that one sends are the other's. */
static void meet(const struct rig *rig, const struct target *target, ptl_size_t puts)
{
    rig_count(target->puts, puts);
    pmi_barrier((struct pmi *)&rig->pmi);
}

static void counts_are_exact_and_trigger(const struct rig *rig, ptl_handle_md_t md, ptl_handle_ct_t sent)
{
    const ptl_ct_event_t five = {5, 0};
    ptl_handle_ct_t      triggered = counter(rig);
    put_often(rig, md);
    rig_count(sent, OFTEN);
    OK(PtlTriggeredCTInc(triggered, five, sent, OFTEN + 2));
    OK(put(rig, md, 8, PTL_NO_ACK_REQ));
    ptl_ct_event_t seen;
    OK(PtlCTGet(triggered, &seen));
    SAME(seen.success, 0);
    OK(put(rig, md, 8, PTL_NO_ACK_REQ));
    rig_count(triggered, 5);
    OK(put(rig, md, 8, PTL_NO_ACK_REQ));
    rig_count(sent, OFTEN + 3);
    OK(PtlCTFree(triggered));
}

static void wrong_arguments_are_refused(const struct rig *rig, ptl_handle_md_t md)
{
    const ptl_process_t peer = rig_peer(rig);
    ANSWERS(PTL_ARG_INVALID, PtlPut(md, LONGEST - 7, 8, PTL_NO_ACK_REQ, peer, PORTAL, 0, 0, NULL, 0));
    ANSWERS(PTL_ARG_INVALID, PtlPut(md, UINT64_MAX, 8, PTL_NO_ACK_REQ, peer, PORTAL, 0, 0, NULL, 0));
    ANSWERS(PTL_ARG_INVALID, PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, 1 << 16 | PORTAL, 0, 0, NULL, 0));
    ANSWERS(PTL_ARG_INVALID, PtlPut(md, 0, 8, 9, peer, PORTAL, 0, 0, NULL, 0));
    ANSWERS(PTL_ARG_INVALID, PtlGet(md, LONGEST - 7, 8, peer, PORTAL, 1, 0, NULL));
}

/* Each is reported once as sent and once as acknowledged, with its own length and pointer. */
static void acknowledgements_come_for_each(const struct rig *rig)
{
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(rig->ni, 16, &eq));
    ptl_handle_md_t md = bind(rig, source, 0, eq, PTL_CT_NONE);
    for (ptl_size_t times = 0; times < OFTEN; times++) {
        const ptl_size_t length = times % 2 ? 8 : times % LONGEST;
        void            *mark = source + times % LONGEST;
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, rig_peer(rig), PORTAL, 0, 0, mark, 0));
        ptl_event_t sent = rig_event(eq, PTL_EVENT_SEND), acknowledged = rig_event(eq, PTL_EVENT_ACK);
        SAME(sent.mlength, length);
        SAME(acknowledged.mlength, length);
        SAME(sent.user_ptr == mark && acknowledged.user_ptr == mark, 1);
    }
    OK(PtlMDRelease(md));
    OK(PtlEQFree(eq));
}

static void gets_bring_what_is_there(const struct rig *rig, ptl_handle_ct_t replied)
{
    ptl_handle_md_t md = bind(rig, sink, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replied);
    for (ptl_size_t times = 1; times <= OFTEN; times++) {
        const ptl_size_t length = times % 3 ? 8 : LONGEST;
        memset(sink, 0, sizeof sink);
        OK(PtlGet(md, 0, length, rig_peer(rig), PORTAL, 1, 0, NULL));
        rig_count(replied, times);
        rig_check_fill(sink, length, 1 - rig->pmi.rank);
    }
    OK(PtlMDRelease(md));
}

/* Each adds to the word behind what is put, and is the only one to do so. */
static void atomics_are_carried_out_once(const struct rig *rig, ptl_handle_ct_t replied)
{
    static uint64_t operands[LONGEST / 8], old[LONGEST / 8];
    ptl_handle_md_t from = bind(rig, operands, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_md_t to   = bind(rig, old, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replied);
    operands[0] = 3;
    operands[1] = 5;
    for (uint64_t times = 0; times < OFTEN; times++) {
        const ptl_process_t peer = rig_peer(rig);
        OK(PtlAtomic(from, 0, 8, PTL_NO_ACK_REQ, peer, PORTAL, 0, LONGEST - 8, NULL, 0, PTL_SUM, PTL_UINT64_T));
        OK(PtlFetchAtomic(to, 16, from, 8, 8, peer, PORTAL, 0, LONGEST - 8, NULL, 0, PTL_SUM, PTL_UINT64_T));
        rig_count(replied, times + 1);
        SAME(old[2], times * 8 + 3);
        ANSWERS(PTL_ARG_INVALID, PtlFetchAtomic(to, LONGEST - 7, from, 8, 8, peer, PORTAL, 0, 0, NULL, 0, PTL_SUM,
                                                PTL_UINT64_T));
        ANSWERS(PTL_ARG_INVALID, PtlAtomic(from, 0, 7, PTL_NO_ACK_REQ, peer, PORTAL, 0, 0, NULL, 0, PTL_SUM,
                                           PTL_UINT64_T));
    }
    OK(PtlMDRelease(from));
    OK(PtlMDRelease(to));
}

/* The counter in the place of a freed one doesn't count for it. */
static void a_freed_counter_counts_no_more(const struct rig *rig, ptl_handle_md_t md, ptl_handle_ct_t sent)
{
    ptl_ct_event_t seen;
    OK(PtlCTFree(sent));
    ptl_handle_ct_t next = counter(rig);
    OK(put(rig, md, 8, PTL_NO_ACK_REQ));
    OK(PtlCTGet(next, &seen));
    SAME(seen.success, 0);
    OK(PtlCTFree(next));
}

/* Nor does the descriptor in the place of a released one send for it. */
static void a_released_descriptor_sends_no_more(const struct rig *rig, ptl_handle_md_t md)
{
    static unsigned char other[LONGEST];
    put_often(rig, md);
    OK(PtlMDRelease(md));
    ANSWERS(PTL_ARG_INVALID, put(rig, md, 8, PTL_NO_ACK_REQ));
    rig_fill(other, sizeof other, 7);
    ptl_handle_md_t next = bind(rig, other, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ANSWERS(PTL_ARG_INVALID, put(rig, md, 8, PTL_NO_ACK_REQ));
    put_often(rig, next);
    OK(PtlMDRelease(next));
    ANSWERS(PTL_ARG_INVALID, put(rig, next, 8, PTL_NO_ACK_REQ));
}

int main(void)
{
    static struct target target;
    struct rig           rig = rig_begin(PTL_NI_MATCHING);
    ptl_handle_ct_t      sent = counter(&rig), replied = counter(&rig);
    ptl_size_t           puts = 0;
    rig_fill(source, sizeof source, rig.pmi.rank);
    expose(&rig, &target);
    pmi_barrier(&rig.pmi);

    ptl_handle_md_t md = bind(&rig, source, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
    counts_are_exact_and_trigger(&rig, md, sent);
    wrong_arguments_are_refused(&rig, md);
    meet(&rig, &target, puts += OFTEN + 3);
    rig_check_fill(target.memory, 8, 1 - rig.pmi.rank);

    acknowledgements_come_for_each(&rig);
    meet(&rig, &target, puts += OFTEN);

    rig_fill(target.memory, sizeof target.memory, rig.pmi.rank);
    pmi_barrier(&rig.pmi);
    gets_bring_what_is_there(&rig, replied);
    rig_count(target.gets, OFTEN);
    pmi_barrier(&rig.pmi);

    memset(target.memory, 0, sizeof target.memory);
    pmi_barrier(&rig.pmi);
    OK(PtlCTSet(replied, (ptl_ct_event_t){0, 0}));
    atomics_are_carried_out_once(&rig, replied);
    meet(&rig, &target, puts += 2 * OFTEN);

    a_freed_counter_counts_no_more(&rig, md, sent);
    a_released_descriptor_sends_no_more(&rig, md);
    meet(&rig, &target, puts += 2 * OFTEN + 1);
    rig_check_fill(target.memory, 8, 7);
    rig_end(&rig);
    return 0;
}
