/*
 * Rank 1 exposes memory that peers can map and makes no call; rank 0 puts, gets and computes there,
 * by list entries and match list entries, and sees what arithmetic says it should. What was
 * unlinked or disabled isn't accessed any more, and what an entry forbids is refused.
 */
#include "rig.h"

#include <portals4_ext.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define BYTES  (1u << 21)
#define PORTAL 3
#define OWN    4
#define WORDS  (BYTES / 8)

struct side {
    struct rig      rig;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_size_t      done;
    ptl_handle_le_t entry;
    unsigned char  *memory; /* exposed by rank 1 */
    unsigned char   out[BYTES], in[BYTES];
};

static void bind(struct side *side)
{
    ptl_md_t md = {.start = side, .length = sizeof *side, .eq_handle = PTL_EQ_NONE};
    OK(PtlCTAlloc(side->rig.ni, &side->ct));
    md.ct_handle = side->ct;
    md.options   = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
}

static void append_counted(struct side *side, unsigned int matching, unsigned int options, ptl_handle_ct_t ct)
{
    if (matching == PTL_NI_MATCHING) {
        ptl_me_t me = {.start = side->memory, .length = BYTES, .ct_handle = ct, .uid = PTL_UID_ANY};
        me.options           = options;
        me.match_bits        = 0x77;
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
        OK(PtlMEAppend(side->rig.ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &side->entry));
    } else {
        ptl_le_t le = {.start = side->memory, .length = BYTES, .ct_handle = ct, .uid = PTL_UID_ANY};
        le.options = options;
        OK(PtlLEAppend(side->rig.ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &side->entry));
    }
}

static void append(struct side *side, unsigned int matching, unsigned int options)
{
    append_counted(side, matching, options, PTL_CT_NONE);
}

static void unlink_entry(struct side *side, unsigned int matching)
{
    int rc;
    do {
        rc = matching == PTL_NI_MATCHING ? PtlMEUnlink(side->entry) : PtlLEUnlink(side->entry);
    } while (rc == PTL_IN_USE); /* a message is landing */
    SAME(rc, PTL_OK);
}

static void put(struct side *side, size_t offset, size_t length)
{
    OK(PtlPut(side->md, offsetof(struct side, out), length, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, offset,
              NULL, 0));
    rig_count(side->ct, ++side->done);
}

static void get(struct side *side, size_t offset, size_t length)
{
    OK(PtlGet(side->md, offsetof(struct side, in), length, rig_peer(&side->rig), PORTAL, 0x77, offset, NULL));
    rig_count(side->ct, ++side->done);
}

static uint64_t fetch_add(struct side *side, size_t offset, uint64_t by)
{
    uint64_t old;
    memcpy(side->out, &by, 8);
    OK(PtlFetchAtomic(side->md, offsetof(struct side, in), side->md, offsetof(struct side, out), 8,
                      rig_peer(&side->rig), PORTAL, 0x77, offset, NULL, 0, PTL_SUM, PTL_UINT64_T));
    rig_count(side->ct, ++side->done);
    memcpy(&old, side->in, 8);
    return old;
}

static void move_bytes(struct side *side)
{
    static const size_t lengths[] = {0, 1, 8, 100, 4096, 65537, 1u << 20, (1u << 20) + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        rig_fill(side->out, lengths[i], (unsigned)i);
        put(side, 64 + i, lengths[i]);
        memset(side->in, 0, lengths[i]);
        get(side, 64 + i, lengths[i]);
        rig_check_fill(side->in, lengths[i], (unsigned)i);
    }
}

/* Short puts and gets move their bytes and no others, at any offset. */
static void move_few_bytes(struct side *side)
{
    enum { AROUND = 8, MOST = 140 };
    for (size_t length = 0; length <= MOST; length++) {
        rig_fill(side->out, MOST + 2 * AROUND, 200);
        put(side, length, MOST + 2 * AROUND);
        rig_fill(side->out, length, (unsigned)length);
        put(side, length + AROUND, length);
        memset(side->in, 0, MOST + 2 * AROUND);
        get(side, length + AROUND, length);
        rig_check_fill(side->in, length, (unsigned)length);
        for (size_t place = length; place < MOST + 2 * AROUND; place++) SAME(side->in[place], 0);
        get(side, length, MOST + 2 * AROUND);
        for (size_t place = 0; place < MOST + 2 * AROUND; place++) {
            const int is_inside = place >= AROUND && place < AROUND + length;
            SAME(side->in[place], is_inside ? rig_byte(place - AROUND, (unsigned)length) : rig_byte(place, 200));
        }
    }
}

static void compute(struct side *side)
{
    uint64_t zero = 0;
    memcpy(side->out, &zero, 8);
    put(side, 0, 8);
    for (uint64_t i = 0; i < 1000; i++) {
        SAME(fetch_add(side, 0, 2), 2 * i);
    }
    double half = 0.5;
    memcpy(side->out, &half, 8);
    put(side, 8, 8);
    OK(PtlAtomic(side->md, offsetof(struct side, out), 8, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, 8, NULL,
                 0, PTL_SUM, PTL_DOUBLE));
    rig_count(side->ct, ++side->done);
    /* Not aligned: by the target. */
    put(side, 17, 8);
    OK(PtlAtomic(side->md, offsetof(struct side, out), 8, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, 17, NULL,
                 0, PTL_SUM, PTL_DOUBLE));
    rig_count(side->ct, ++side->done);
    double sums[2];
    get(side, 8, 8);
    memcpy(&sums[0], side->in, 8);
    get(side, 17, 8);
    memcpy(&sums[1], side->in, 8);
    SAME(sums[0] == 1.0 && sums[1] == 1.0, 1);

    uint64_t compared = 2000, swapped = 77;
    memcpy(side->out, &swapped, 8);
    OK(PtlSwap(side->md, offsetof(struct side, in), side->md, offsetof(struct side, out), 8, rig_peer(&side->rig),
               PORTAL, 0x77, 0, NULL, 0, &compared, PTL_CSWAP, PTL_UINT64_T));
    rig_count(side->ct, ++side->done);
    memcpy(&compared, side->in, 8);
    SAME(compared, 2000);
    SAME(fetch_add(side, 0, 0), 77);
}

static void is_refused(struct side *side, size_t length)
{
    ptl_ct_event_t seen;
    OK(PtlCTGet(side->ct, &seen));
    ptl_size_t before = seen.failure;
    OK(PtlPut(side->md, offsetof(struct side, out), length, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, 0,
              NULL, 0));
    while (seen.failure == before) {
        OK(PtlCTGet(side->ct, &seen));
        SAME(seen.success, side->done);
    }
    ptl_ct_event_t none = {.success = side->done, .failure = 0};
    OK(PtlCTSet(side->ct, none));
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds, whether or not there is an entry for it: 50,000 times, or where each takes a message through
 * the system, for 20 ms, but more often than rank 1 waits for. */
static void add_meanwhile(struct side *side)
{
    const double until = seconds() + 0.02;
    for (unsigned int i = 0; i < 50000 && (i < 1000 || seconds() < until); i++) {
        uint64_t one = 1;
        memcpy(side->out, &one, 8);
        OK(PtlAtomic(side->md, offsetof(struct side, out), 8, PTL_NO_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, 0,
                     NULL, 0, PTL_SUM, PTL_UINT64_T));
    }
}

/* While rank 0 adds, rank 1 unlinks the entry: then the memory stays as it is. */
static void unlink_under_fire(struct side *side, unsigned int matching)
{
    for (int round = 0; round < 20; round++) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)side->memory;
        /* Before the barrier: rank 0 may have added everything before this one leaves it. */
        uint64_t begun = atomic_load(word);
        pmi_barrier(&side->rig.pmi);
        if (side->rig.pmi.rank == 0) {
            add_meanwhile(side);
        } else {
            while (atomic_load(word) < begun + 100) {
                sched_yield();
            }
            unlink_entry(side, matching);
            uint64_t seen = atomic_load(word);
            for (int i = 0; i < 10000; i++) {
                SAME(atomic_load(word), seen);
            }
        }
        pmi_barrier(&side->rig.pmi);
        if (side->rig.pmi.rank == 1) {
            append(side, matching, PTL_ME_OP_PUT | PTL_ME_OP_GET);
        }
    }
}

static void disable_and_forbid(struct side *side, unsigned int matching)
{
    for (int step = 0; step < 4; step++) {
        if (side->rig.pmi.rank == 1) {
            switch (step) {
            case 0: OK(PtlPTDisable(side->rig.ni, PORTAL)); break;
            case 1: OK(PtlPTEnable(side->rig.ni, PORTAL)); break;
            case 2:
                unlink_entry(side, matching);
                append(side, matching, PTL_ME_OP_GET);
                break;
            default:
                unlink_entry(side, matching);
                append(side, matching, PTL_ME_OP_PUT | PTL_ME_OP_GET);
            }
        }
        pmi_barrier(&side->rig.pmi);
        if (side->rig.pmi.rank == 0 && step % 2 == 0) {
            is_refused(side, 8);
        } else if (side->rig.pmi.rank == 0) {
            put(side, 0, 8);
        }
        pmi_barrier(&side->rig.pmi);
    }
}

/* Puts and fetches are counted, one by one or by bytes; counts wake a sleeper and trigger. */
static void count_arrivals(struct side *side, unsigned int matching)
{
    for (unsigned int each = 1; each <= 8; each += 7) {
        ptl_handle_ct_t      arrived, triggered;
        const ptl_ct_event_t one = {.success = 1, .failure = 0};
        const unsigned int   how = PTL_ME_EVENT_CT_COMM | (each == 8 ? PTL_ME_EVENT_CT_BYTES : 0);
        if (side->rig.pmi.rank == 1) {
            OK(PtlCTAlloc(side->rig.ni, &arrived));
            OK(PtlCTAlloc(side->rig.ni, &triggered));
            unlink_entry(side, matching);
            append_counted(side, matching, PTL_ME_OP_PUT | PTL_ME_OP_GET | how, arrived);
        }
        for (unsigned int step = 1; step <= 3; step++) {
            if (side->rig.pmi.rank == 1 && step == 3) {
                OK(PtlTriggeredCTInc(triggered, one, arrived, 300 * each));
            }
            pmi_barrier(&side->rig.pmi);
            if (side->rig.pmi.rank == 0) {
                for (int i = 0; i < 50; i++) {
                    put(side, 0, 8);
                    fetch_add(side, 8, 1);
                }
            } else if (step == 3) {
                rig_count(triggered, 1);
            } else {
                rig_count(arrived, 100 * step * each);
            }
            pmi_barrier(&side->rig.pmi);
        }
        if (side->rig.pmi.rank == 1) {
            ptl_ct_event_t seen;
            unlink_entry(side, matching);
            OK(PtlCTGet(arrived, &seen));
            SAME(seen.success, 300 * each);
            append(side, matching, PTL_ME_OP_PUT | PTL_ME_OP_GET);
            OK(PtlCTFree(arrived));
            OK(PtlCTFree(triggered));
        }
        pmi_barrier(&side->rig.pmi);
    }
}

/* Waits for a byte without a call that makes progress. */
static void await_byte(const volatile unsigned char *byte, unsigned char value)
{
    const time_t until = time(NULL) + PATIENCE_MS / 1000;
    while (*byte != value && time(NULL) < until) {
        sched_yield();
    }
    SAME(*byte, value);
}

/* A message to itself that a direct operation triggers arrives without another call. */
static void trigger_a_message_to_itself(struct side *side, unsigned int matching)
{
    ptl_pt_index_t  portal;
    ptl_process_t   me;
    ptl_handle_le_t entry;
    const size_t    from = offsetof(struct side, out) + 64;
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, OWN, &portal));
    OK(PtlGetId(side->rig.ni, &me));
    if (matching == PTL_NI_MATCHING) {
        ptl_me_t any = {.start = side->in, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
        any.options           = PTL_ME_OP_PUT;
        any.match_id.phys.nid = PTL_NID_ANY;
        any.match_id.phys.pid = PTL_PID_ANY;
        OK(PtlMEAppend(side->rig.ni, OWN, &any, PTL_PRIORITY_LIST, NULL, &entry));
    } else {
        ptl_le_t any = {.start = side->in, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
        any.options = PTL_LE_OP_PUT;
        OK(PtlLEAppend(side->rig.ni, OWN, &any, PTL_PRIORITY_LIST, NULL, &entry));
    }
    for (unsigned char value = 1; value <= 3; value++) {
        memset(side->in, 0, 8);
        memset(side->out, value, 72);
        OK(PtlTriggeredPut(side->md, from, 8, PTL_NO_ACK_REQ, me, OWN, 0, 0, NULL, 0, side->ct, side->done + 1));
        OK(PtlPut(side->md, offsetof(struct side, out), 8, PTL_CT_ACK_REQ, rig_peer(&side->rig), PORTAL, 0x77, 0, NULL,
                  0));
        await_byte(side->in, value);
        rig_count(side->ct, ++side->done);
    }
    OK(matching == PTL_NI_MATCHING ? PtlMEUnlink(entry) : PtlLEUnlink(entry));
    OK(PtlPTFree(side->rig.ni, OWN));
}

static void try_all(struct side *side, unsigned int matching)
{
    ptl_pt_index_t portal;
    side->done = 0;
    if (side->rig.pmi.rank == 1) {
        OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, PORTAL, &portal));
        append(side, matching, PTL_ME_OP_PUT | PTL_ME_OP_GET);
    } else {
        bind(side);
    }
    pmi_barrier(&side->rig.pmi);
    if (side->rig.pmi.rank == 0) {
        move_bytes(side);
        move_few_bytes(side);
        compute(side);
        trigger_a_message_to_itself(side, matching);
    }
    unlink_under_fire(side, matching);
    disable_and_forbid(side, matching);
    count_arrivals(side, matching);
    if (side->rig.pmi.rank == 1) {
        unlink_entry(side, matching);
        OK(PtlPTFree(side->rig.ni, PORTAL));
    } else {
        OK(PtlMDRelease(side->md));
    }
}

static void refuse_bad_arguments(void)
{
    void *memory;
    ANSWERS(PTL_ARG_INVALID, PtlMemAlloc(0, &memory));
    ANSWERS(PTL_ARG_INVALID, PtlMemAlloc(1, NULL));
    ANSWERS(PTL_NO_SPACE, PtlMemAlloc((ptl_size_t)1 << 62, &memory));
    ANSWERS(PTL_ARG_INVALID, PtlMemFree(&memory));
}

int main(void)
{
    static struct side side;
    refuse_bad_arguments();
    void *memory;
    OK(PtlMemAlloc(BYTES, &memory));
    side.rig    = rig_begin(PTL_NI_NO_MATCHING);
    side.memory = memory;
    try_all(&side, PTL_NI_NO_MATCHING);

    ptl_handle_ni_t other;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other));
    ptl_handle_ni_t first = side.rig.ni;
    side.rig.ni           = other;
    try_all(&side, PTL_NI_MATCHING);
    pmi_barrier(&side.rig.pmi);
    OK(PtlNIFini(other));
    side.rig.ni = first;
    rig_end(&side.rig);
    OK(PtlMemFree(memory));
    ANSWERS(PTL_ARG_INVALID, PtlMemFree(memory));
    return 0;
}
