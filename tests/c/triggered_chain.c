/*
 * A token goes round between two ranks by triggered operations alone: each
 * arrival counts, the count starts the next put, and no rank makes a call while
 * the token travels. The last arrival starts a chain of counters at rank 0.
 */
#include "rig.h"

#define PORTAL 7
#define LAPS 50
#define CHAIN 20

static ptl_handle_ct_t counter(const struct rig *rig)
{
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(rig->ni, &ct));
    return ct;
}

/* Every put that arrives counts one. */
static ptl_handle_ct_t count_arrivals(const struct rig *rig, uint64_t *token)
{
    ptl_pt_index_t  portal;
    ptl_handle_me_t entry;
    ptl_me_t        me = {.start = token, .length = sizeof *token, .uid = PTL_UID_ANY};
    me.ct_handle   = counter(rig);
    me.options     = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    me.match_id    = rig_peer(rig);
    me.ignore_bits = ~(ptl_match_bits_t)0;
    OK(PtlPTAlloc(rig->ni, 0, PTL_EQ_NONE, PORTAL, &portal));
    OK(PtlMEAppend(rig->ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &entry));
    return me.ct_handle;
}

static ptl_handle_md_t bind(const struct rig *rig, uint64_t *token)
{
    ptl_handle_md_t handle;
    ptl_md_t        md = {.start = token, .length = sizeof *token, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(rig->ni, &md, &handle));
    return handle;
}

/* Rank 1 answers each arrival; rank 0 answers all but the last. */
static void arm(const struct rig *rig, ptl_handle_md_t md, ptl_handle_ct_t arrived)
{
    ptl_size_t answers = rig->pmi.rank == 0 ? LAPS - 1 : LAPS;
    for (ptl_size_t lap = 1; lap <= answers; lap++) {
        OK(PtlTriggeredPut(md, 0, sizeof(uint64_t), PTL_NO_ACK_REQ, rig_peer(rig), PORTAL, lap, 0, NULL, 0, arrived, lap));
    }
}

/* Posted last link first, so that only the order of counting can run it. */
static void arm_chain(const struct rig *rig, ptl_handle_ct_t start, ptl_size_t threshold, ptl_handle_ct_t links[CHAIN])
{
    const ptl_ct_event_t one = {1, 0}, hundred = {100, 0};
    for (int link = 0; link < CHAIN; link++) {
        links[link] = counter(rig);
    }
    for (int link = CHAIN - 1; link > 0; link--) {
        OK(PtlTriggeredCTInc(links[link], one, links[link - 1], 1));
    }
    OK(PtlTriggeredCTInc(links[0], one, start, threshold));
    /* Same threshold: in posting order, so the set comes before the addition. */
    ptl_handle_ct_t ordered = counter(rig);
    OK(PtlTriggeredCTSet(ordered, hundred, links[CHAIN - 1], 1));
    OK(PtlTriggeredCTInc(ordered, one, links[CHAIN - 1], 1));
    links[0] = ordered;
}

/* Cancelled operations never run, and a reached threshold runs at once. */
static void cancel_and_run_at_once(const struct rig *rig)
{
    const ptl_ct_event_t one = {1, 0};
    ptl_ct_event_t       seen;
    ptl_handle_ct_t      from = counter(rig), to = counter(rig);
    OK(PtlTriggeredCTInc(to, one, from, 1));
    OK(PtlCTCancelTriggered(from));
    OK(PtlCTInc(from, one));
    OK(PtlCTGet(to, &seen));
    SAME(seen.success, 0);
    OK(PtlTriggeredCTInc(to, one, from, 1));
    rig_count(to, 1);
}

int main(void)
{
    static uint64_t token_in, token_out = 42;
    struct rig      rig = rig_begin(PTL_NI_MATCHING);
    ptl_handle_ct_t links[CHAIN];
    ptl_handle_ct_t arrived = count_arrivals(&rig, &token_in);
    ptl_handle_md_t md      = bind(&rig, &token_out);
    arm(&rig, md, arrived);
    if (rig.pmi.rank == 0) {
        arm_chain(&rig, arrived, LAPS, links);
    }
    pmi_barrier(&rig.pmi);
    if (rig.pmi.rank == 0) {
        OK(PtlPut(md, 0, sizeof token_out, PTL_NO_ACK_REQ, rig_peer(&rig), PORTAL, 0, 0, NULL, 0));
        rig_count(links[0], 101);
    }
    rig_count(arrived, LAPS);
    SAME(token_in, 42);
    cancel_and_run_at_once(&rig);
    rig_end(&rig);
    return 0;
}
