/*
 * Rank 1 exposes ordinary memory by an entry that posts events, and computes without a call; rank 0
 * puts and gets there, and has its acknowledgements meanwhile. Then rank 1 finds an event for each,
 * in order. Once an entry is unlinked or its portal table entry disabled, every put that was
 * acknowledged has its event, and memory stays as it is.
 */
#include "rig.h"

#include <sched.h>
#include <time.h>

#define PORTAL  3
#define BYTES   (1u << 20)
#define EVENTS  65536
#define ROUNDS  12
#define PASSES  3
#define BITS    0x77

struct side {
    struct rig      rig;
    ptl_handle_eq_t eq;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    int             matches;
    unsigned char   memory[BYTES], out[BYTES], in[BYTES];
};

static const size_t lengths[] = {8, 1, 65536, 100, 4096, 65537, 300000, 0};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static int is_target(const struct side *side)
{
    return side->rig.pmi.rank == 1;
}

static void meet(const struct side *side)
{
    pmi_barrier(&side->rig.pmi);
}

static void append(struct side *side)
{
    const unsigned int options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    if (side->matches) {
        ptl_me_t me = {.start = side->memory, .length = BYTES, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
        me.options           = options;
        me.match_bits        = BITS;
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
        OK(PtlMEAppend(side->rig.ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &side->entry));
    } else {
        ptl_le_t le = {.start = side->memory, .length = BYTES, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
        le.options = options;
        OK(PtlLEAppend(side->rig.ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &side->entry));
    }
}

static void unlink_entry(struct side *side)
{
    int rc;
    do {
        rc = side->matches ? PtlMEUnlink(side->entry) : PtlLEUnlink(side->entry);
    } while (rc == PTL_IN_USE);
    SAME(rc, PTL_OK);
}

static void put(struct side *side, size_t length, ptl_size_t offset, ptl_hdr_data_t number)
{
    OK(PtlPut(side->md, offsetof(struct side, out), length, PTL_ACK_REQ, rig_peer(&side->rig), PORTAL, BITS, offset,
              NULL, number));
}

/* Computes until a byte says that the peer is through. */
static void compute_until(const volatile unsigned char *byte, unsigned char value)
{
    const time_t until = time(NULL) + PATIENCE_MS / 1000;
    while (*byte != value && time(NULL) < until) {
        sched_yield();
    }
    SAME(*byte, value);
}

/* Whether an operation gets what the one before has put. */
static int is_get(unsigned int number)
{
    return number % 3 == 2;
}

static size_t length_of(unsigned int number)
{
    return lengths[(number - is_get(number)) % LENGTHS];
}

static ptl_size_t offset_of(unsigned int number)
{
    return 8 * (number - is_get(number));
}

static void move(struct side *side, unsigned int number)
{
    const size_t length = length_of(number);
    if (is_get(number)) {
        memset(side->in, 0, length);
        OK(PtlGet(side->md, offsetof(struct side, in), length, rig_peer(&side->rig), PORTAL, BITS, offset_of(number),
                  NULL));
        SAME(rig_event(side->eq, PTL_EVENT_REPLY).mlength, length);
        rig_check_fill(side->in, length, number - 1);
    } else {
        rig_fill(side->out, length, number);
        put(side, length, offset_of(number), number);
        SAME(rig_event(side->eq, PTL_EVENT_ACK).mlength, length);
    }
}

/* One after the other, each round's last byte at the end of the memory. */
static void move_while_it_computes(struct side *side)
{
    for (unsigned char round = 1; round <= ROUNDS; round++) {
        const unsigned int count = 2 * round;
        meet(side);
        if (!is_target(side)) {
            for (unsigned int number = 0; number < count; number++) {
                move(side, number);
            }
            side->out[0] = round;
            put(side, 1, BYTES - 1, count);
            rig_event(side->eq, PTL_EVENT_ACK);
            continue;
        }
        compute_until(&side->memory[BYTES - 1], round);
        for (unsigned int number = 0; number < count; number++) {
            const int   get   = is_get(number);
            ptl_event_t event = rig_event(side->eq, get ? PTL_EVENT_GET : PTL_EVENT_PUT);
            SAME(event.mlength, length_of(number));
            SAME(event.rlength, event.mlength);
            SAME(event.remote_offset, offset_of(number));
            SAME(event.hdr_data, get ? 0 : number);
            SAME((uintptr_t)event.start, (uintptr_t)(side->memory + event.remote_offset));
            SAME(event.initiator.phys.pid, rig_peer(&side->rig).phys.pid);
        }
        SAME(rig_event(side->eq, PTL_EVENT_PUT).hdr_data, count);
        ptl_event_t none;
        ANSWERS(PTL_EQ_EMPTY, PtlEQGet(side->eq, &none));
    }
}

/* Many at once: more than the target can leave unread. */
static void stream_while_it_computes(struct side *side)
{
    const unsigned int count = 500;
    meet(side);
    if (is_target(side)) {
        compute_until(&side->memory[BYTES - 1], 0xff);
        for (unsigned int number = 0; number <= count; number++) {
            SAME(rig_event(side->eq, PTL_EVENT_PUT).hdr_data, number);
        }
    } else {
        memset(side->out, 0xff, 64);
        for (unsigned int number = 0; number < count; number++) {
            put(side, number % 64, 0, number);
        }
        put(side, 1, BYTES - 1, count);
        for (unsigned int number = 0; number <= count; number++) {
            rig_event(side->eq, PTL_EVENT_ACK);
        }
    }
}

/*
 * Puts until some are refused; how many were acknowledged. A peer on the same processor has its turn
 * after each, so that it ends that before its queue is full.
 */
static unsigned int put_until_refused(struct side *side)
{
    unsigned int done = 0;
    for (unsigned int refused = 0; refused < 3;) {
        ptl_event_t  event;
        unsigned int which;
        memcpy(side->out, &done, sizeof done);
        put(side, 8, 64, done);
        sched_yield();
        OK(PtlEQPoll(&side->eq, 1, PATIENCE_MS, &event, &which));
        SAME(event.type, PTL_EVENT_ACK);
        if (event.ni_fail_type == PTL_NI_OK) {
            SAME(refused, 0);
            done++;
        } else {
            refused++;
        }
    }
    return done;
}

/* Ends what the peer puts to after a while: by unlinking the entry, or by disabling. */
static void end_under_fire(struct side *side, int unlinks)
{
    meet(side);
    if (!is_target(side)) {
        const unsigned int done = put_until_refused(side);
        meet(side);
        meet(side);
        put(side, 0, 0, done);
        rig_event(side->eq, PTL_EVENT_ACK);
        return;
    }
    const volatile unsigned int *word = (const volatile unsigned int *)(side->memory + 64);
    /* Perhaps more than the target can leave unread. */
    const unsigned int some  = 5 + side->rig.me.phys.pid % 200;
    const time_t       until = time(NULL) + PATIENCE_MS / 1000;
    *(volatile unsigned int *)(side->memory + 64) = 0;
    while (*word < some && time(NULL) < until) {
        sched_yield();
    }
    if (unlinks) {
        unlink_entry(side);
    } else {
        OK(PtlPTDisable(side->rig.ni, PORTAL));
    }
    const unsigned int seen = *word;
    unsigned int       events = 0;
    ptl_event_t        event;
    while (PtlEQGet(side->eq, &event) == PTL_OK) {
        SAME(event.type, PTL_EVENT_PUT);
        SAME(event.hdr_data, events);
        events++;
    }
    for (int look = 0; look < 10000; look++) {
        SAME(*word, seen);
    }
    SAME(seen + 1, events);
    meet(side);
    if (unlinks) {
        append(side);
    } else {
        OK(PtlPTEnable(side->rig.ni, PORTAL));
    }
    meet(side);
    SAME(rig_event(side->eq, PTL_EVENT_PUT).hdr_data, events);
}

static void try_all(struct side *side, int matches)
{
    ptl_pt_index_t portal;
    side->matches = matches;
    OK(PtlEQAlloc(side->rig.ni, EVENTS, &side->eq));
    if (is_target(side)) {
        memset(side->memory, 0, sizeof side->memory);
        OK(PtlPTAlloc(side->rig.ni, 0, side->eq, PORTAL, &portal));
        append(side);
    } else {
        ptl_md_t md = {.start = side, .length = sizeof *side, .eq_handle = side->eq, .ct_handle = PTL_CT_NONE};
        md.options  = PTL_MD_EVENT_SEND_DISABLE;
        OK(PtlMDBind(side->rig.ni, &md, &side->md));
    }
    for (int pass = 0; pass < PASSES; pass++) {
        move_while_it_computes(side);
        stream_while_it_computes(side);
        end_under_fire(side, 1);
        end_under_fire(side, 0);
        meet(side);
        if (is_target(side)) {
            memset(side->memory, 0, sizeof side->memory);
        }
    }
    if (is_target(side)) {
        unlink_entry(side);
        OK(PtlPTFree(side->rig.ni, PORTAL));
    } else {
        OK(PtlMDRelease(side->md));
    }
    OK(PtlEQFree(side->eq));
}

int main(void)
{
    static struct side side;
    side.rig = rig_begin(PTL_NI_NO_MATCHING);
    try_all(&side, 0);

    ptl_handle_ni_t other, first = side.rig.ni;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other));
    side.rig.ni = other;
    meet(&side);
    try_all(&side, 1);
    meet(&side);
    OK(PtlNIFini(other));
    side.rig.ni = first;
    rig_end(&side.rig);
    return 0;
}
