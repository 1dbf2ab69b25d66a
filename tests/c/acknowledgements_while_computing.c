/*
 * Rank 0 puts, and makes no further call while rank 1 acknowledges. Its next call finds every
 * acknowledgement, and operations that wait for their number are started without a call, whether they
 * were set up before or after the acknowledgements arrived.
 */
#include "rig.h"

#define PORTAL 3
#define MOST 200
#define BITS 0x51
#define TRIGGERED 1000000

struct side {
    struct rig      rig;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t acknowledged;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    uint64_t        memory[2];
};

static void put(struct side *side, ptl_hdr_data_t number)
{
    OK(PtlPut(side->md, 0, 8, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, BITS, 0, NULL, number));
}

/* A put without acknowledgement, once so many were received. */
static void put_later(struct side *side, ptl_size_t threshold)
{
    OK(PtlTriggeredPut(side->md, 0, 8, PTL_NO_ACK_REQ, rig_peer(&side->rig), PORTAL, BITS, 0, NULL,
                       TRIGGERED + threshold, side->acknowledged, threshold));
}

static void take(struct side *side, unsigned int count)
{
    for (unsigned int number = 0; number < count; number++) {
        SAME(rig_event(side->eq, PTL_EVENT_PUT).hdr_data, number);
    }
}

enum when { NEVER, BEFORE, AFTER };

/* Meets outside of Portals, so that rank 0 makes no call of it; returns what was acknowledged. */
static ptl_size_t exchange(struct side *side, unsigned int count, enum when triggers, ptl_size_t before)
{
    const ptl_size_t threshold = before + count;
    pmi_barrier(&side->rig.pmi);
    if (side->rig.pmi.rank == 0) {
        if (triggers == BEFORE) {
            put_later(side, threshold);
        }
        for (unsigned int number = 0; number < count; number++) {
            put(side, number);
        }
        pmi_barrier(&side->rig.pmi);
        if (triggers == AFTER) {
            put_later(side, threshold);
        }
        pmi_barrier(&side->rig.pmi);
        rig_count(side->acknowledged, threshold);
    } else {
        take(side, count);
        pmi_barrier(&side->rig.pmi);
        if (triggers != NEVER) {
            SAME(rig_event(side->eq, PTL_EVENT_PUT).hdr_data, TRIGGERED + threshold);
        }
        pmi_barrier(&side->rig.pmi);
    }
    return threshold;
}

int main(void)
{
    static struct side side;
    ptl_pt_index_t     portal;
    ptl_size_t         all = 0;
    side.rig = rig_begin(PTL_NI_MATCHING);
    OK(PtlEQAlloc(side.rig.ni, 4 * MOST, &side.eq));
    OK(PtlCTAlloc(side.rig.ni, &side.acknowledged));
    OK(PtlPTAlloc(side.rig.ni, 0, side.eq, PORTAL, &portal));
    ptl_me_t me = {.start = side.memory, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
    me.options           = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    me.match_bits        = BITS;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    OK(PtlMEAppend(side.rig.ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &side.entry));
    ptl_md_t md = {.start = &side.memory[1], .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = side.acknowledged};
    md.options = PTL_MD_EVENT_CT_ACK;
    OK(PtlMDBind(side.rig.ni, &md, &side.md));

    /* The first operation that waits comes after many acknowledgements that nobody waited for. */
    for (unsigned int count = 1; count <= MOST; count += 13) {
        all = exchange(&side, count, NEVER, all);
    }
    for (unsigned int count = 1; count <= MOST; count += 13) {
        all = exchange(&side, count, AFTER, all);
        all = exchange(&side, count, BEFORE, all);
        all = exchange(&side, count, NEVER, all);
    }

    pmi_barrier(&side.rig.pmi);
    OK(PtlMEUnlink(side.entry));
    OK(PtlMDRelease(side.md));
    OK(PtlPTFree(side.rig.ni, PORTAL));
    OK(PtlCTFree(side.acknowledged));
    OK(PtlEQFree(side.eq));
    rig_end(&side.rig);
    return 0;
}
