/*
 * Many gets in flight whose replies don't fit into a ring: one way and both ways at once, of a
 * target that polls, one that leaves the library as soon as all have arrived, and an initiator that
 * takes no reply until it has started all. All bytes arrive, and nobody waits for ever.
 */
#include "rig.h"

enum { PORTAL = 4, WINDOW = 96, LONGEST = 64 << 10, ROUNDS = 6 };

struct side {
    struct rig      rig;
    ptl_handle_ct_t arrived, replied;
    ptl_size_t      arrivals, replies;
    ptl_handle_md_t md;
    unsigned char  *source, *sinks;
};

static unsigned char *memory(size_t length)
{
    unsigned char *bytes = malloc(length);
    if (!bytes) rig_fail(__FILE__, __LINE__, "no memory", (long)length);
    return bytes;
}

static void begin(struct side *side)
{
    ptl_pt_index_t  got;
    ptl_handle_le_t entry;
    side->rig = rig_begin(PTL_NI_NO_MATCHING);
    OK(PtlCTAlloc(side->rig.ni, &side->arrived));
    OK(PtlCTAlloc(side->rig.ni, &side->replied));
    side->source = memory(LONGEST);
    side->sinks  = memory((size_t)WINDOW * LONGEST);
    rig_fill(side->source, LONGEST, (unsigned int)side->rig.pmi.rank);
    ptl_le_t le = {.start = side->source, .length = LONGEST, .uid = PTL_UID_ANY, .ct_handle = side->arrived};
    le.options = PTL_LE_OP_GET | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_COMM_DISABLE | PTL_LE_EVENT_LINK_DISABLE;
    ptl_md_t md = {side->sinks, (ptl_size_t)WINDOW * LONGEST, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, side->replied};
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, PORTAL, &got));
    OK(PtlLEAppend(side->rig.ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry));
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
    pmi_barrier(&side->rig.pmi);
}

static void start(struct side *side, size_t length)
{
    memset(side->sinks, 0, (size_t)WINDOW * LONGEST);
    for (size_t at = 0; at < WINDOW; at++) {
        OK(PtlGet(side->md, at * LONGEST, length, rig_peer(&side->rig), PORTAL, 0, 0, NULL));
    }
}

static void take_replies(struct side *side, size_t length)
{
    side->replies += WINDOW;
    rig_count(side->replied, side->replies);
    for (size_t at = 0; at < WINDOW; at++) {
        rig_check_fill(side->sinks + at * LONGEST, length, 1U - (unsigned int)side->rig.pmi.rank);
    }
}

static void await_arrivals(struct side *side)
{
    side->arrivals += WINDOW;
    rig_count(side->arrived, side->arrivals);
}

/* Between two meetings, in which the target calls the library only until all gets have arrived. */
static void one_way(struct side *side, int initiator, size_t length)
{
    if (side->rig.pmi.rank == initiator) {
        start(side, length);
        take_replies(side, length);
    } else {
        await_arrivals(side);
    }
    pmi_barrier(&side->rig.pmi);
}

static void both_ways(struct side *side, size_t length)
{
    start(side, length);
    take_replies(side, length);
    await_arrivals(side);
    pmi_barrier(&side->rig.pmi);
}

/* The target makes no call until the initiator has all. */
static void of_an_absent_target(struct side *side, int initiator, size_t length)
{
    if (side->rig.pmi.rank == initiator) {
        start(side, length);
        take_replies(side, length);
    }
    pmi_barrier(&side->rig.pmi);
    if (side->rig.pmi.rank != initiator) await_arrivals(side);
}

int main(void)
{
    static const size_t lengths[] = {100, 1000, 4096, 5000, 16384, 40000, LONGEST};
    struct side         side      = {.arrivals = 0};
    begin(&side);
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        for (int round = 0; round < ROUNDS; round++) {
            one_way(&side, round % 2, lengths[at]);
            both_ways(&side, lengths[at]);
            of_an_absent_target(&side, round % 2, lengths[at]);
        }
    }
    OK(PtlMDRelease(side.md));
    rig_end(&side.rig);
    free(side.source);
    free(side.sinks);
    printf("get_streams: ok\n");
    return 0;
}
