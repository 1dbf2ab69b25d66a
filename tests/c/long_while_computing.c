/*
 * Long puts and gets while the target computes, polls or unlinks, and the initiator waits or computes,
 * too: whichever of them moves the bytes, all of them arrive without a call of the target, each operation has
 * its events, and nothing is written once an entry is unlinked.
 */
#include "rig.h"

/* Portal table indices. */
enum { BODIES = 4, WORDS = 5, TURN = 6 };
#define ROUNDS 120
#define LONGEST (3 << 20)
#define SEED 20261128

struct side {
    struct rig      rig;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t turn;
    ptl_handle_md_t md, word_md;
    /* The number of a round that is over at its initiator. */
    uint64_t        word;
    ptl_size_t      turns;
    uint64_t        random;
    unsigned char   memory[LONGEST], copy[LONGEST];
};

static int is_initiator(const struct side *side)
{
    return side->rig.pmi.rank == 0;
}

static uint64_t below(struct side *side, uint64_t bound)
{
    side->random ^= side->random << 13;
    side->random ^= side->random >> 7;
    side->random ^= side->random << 17;
    return side->random % bound;
}

static void compute(double us)
{
    for (const double end = rig_now_us() + us; rig_now_us() < end;) {}
}

static void begin(struct side *side)
{
    ptl_pt_index_t got;
    side->rig    = rig_begin(PTL_NI_MATCHING);
    side->random = SEED;
    OK(PtlEQAlloc(side->rig.ni, 64, &side->eq));
    OK(PtlCTAlloc(side->rig.ni, &side->turn));
    OK(PtlPTAlloc(side->rig.ni, 0, side->eq, BODIES, &got));
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, WORDS, &got));
    OK(PtlPTAlloc(side->rig.ni, 0, PTL_EQ_NONE, TURN, &got));
    ptl_me_t word = {.start = &side->word, .length = 8, .options = PTL_ME_OP_PUT};
    rig_append_for_all(&side->rig, WORDS, PTL_PRIORITY_LIST, word);
    ptl_me_t turn = {.ct_handle = side->turn, .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM};
    rig_append_for_all(&side->rig, TURN, PTL_PRIORITY_LIST, turn);
    ptl_md_t md = {side->memory, LONGEST, 0, side->eq, PTL_CT_NONE};
    OK(PtlMDBind(side->rig.ni, &md, &side->md));
    ptl_md_t word_md = {&side->word, 8, PTL_MD_EVENT_SUCCESS_DISABLE, side->eq, PTL_CT_NONE};
    OK(PtlMDBind(side->rig.ni, &word_md, &side->word_md));
    pmi_barrier(&side->rig.pmi);
}

static void say(struct side *side)
{
    OK(PtlPut(side->word_md, 0, 0, PTL_NO_ACK_REQ, rig_peer(&side->rig), TURN, 0, 0, NULL, 0));
}

static void hear(struct side *side)
{
    rig_count(side->turn, ++side->turns);
}

/* What a round does: both sides draw the same. */
struct plan {
    uint64_t     round;
    int          is_get, initiator_computes;
    enum { COMPUTES, POLLS, UNLINKS } target;
    size_t       offset, length;
    unsigned int salt;
};

static struct plan draw(struct side *side, uint64_t round)
{
    struct plan plan = {.round = round, .salt = (unsigned int)round};
    plan.is_get             = (int)below(side, 2);
    plan.initiator_computes = below(side, 3) == 0;
    plan.target             = (int)below(side, 3);
    plan.length             = below(side, 4) ? (1 << 20) + below(side, 2 << 20) : 1 + below(side, 100000);
    plan.offset             = below(side, LONGEST - plan.length + 1);
    return plan;
}

/* Whether the operation found the entry. */
static int initiate(struct side *side, const struct plan *plan)
{
    unsigned char *memory = side->memory + plan->offset;
    if (plan->is_get) memset(memory, 0, plan->length);
    else rig_fill(memory, plan->length, plan->salt);
    hear(side);
    if (plan->is_get) {
        OK(PtlGet(side->md, plan->offset, plan->length, rig_peer(&side->rig), BODIES, 0, plan->offset, NULL));
    } else {
        OK(PtlPut(side->md, plan->offset, plan->length, PTL_ACK_REQ, rig_peer(&side->rig), BODIES, 0, plan->offset,
                  NULL, plan->round));
    }
    if (plan->initiator_computes) compute(200);
    if (!plan->is_get) rig_event(side->eq, PTL_EVENT_SEND);
    ptl_event_t event;
    unsigned    which;
    OK(PtlEQPoll(&side->eq, 1, PATIENCE_MS, &event, &which));
    SAME(event.type, plan->is_get ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
    const int is_found = event.ni_fail_type == PTL_NI_OK;
    if (is_found) {
        SAME(event.mlength, plan->length);
        if (plan->is_get) rig_check_fill(memory, plan->length, plan->salt);
    } else {
        SAME(event.ni_fail_type, PTL_NI_DROPPED);
        SAME(plan->target, UNLINKS);
    }
    side->word = plan->round;
    OK(PtlPut(side->word_md, 0, 8, PTL_NO_ACK_REQ, rig_peer(&side->rig), WORDS, 0, 0, NULL, 0));
    return is_found;
}

static void unlink_soon(struct side *side, ptl_handle_me_t entry)
{
    compute((double)below(side, 100));
    int rc;
    do rc = PtlMEUnlink(entry);
    while (rc == PTL_IN_USE);
    SAME(rc, PTL_OK);
    memcpy(side->copy, side->memory, LONGEST);
}

static ptl_handle_me_t append(struct side *side, int is_used_once)
{
    ptl_me_t me = {.start = side->memory, .length = LONGEST, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
    me.match_id = rig_peer(&side->rig);
    me.options  = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
    if (is_used_once) me.options |= PTL_ME_USE_ONCE;
    ptl_handle_me_t entry;
    OK(PtlMEAppend(side->rig.ni, BODIES, &me, PTL_PRIORITY_LIST, NULL, &entry));
    return entry;
}

/* Whether the operation found the entry. */
static int serve(struct side *side, const struct plan *plan)
{
    unsigned char *memory = side->memory + plan->offset;
    if (plan->is_get) rig_fill(memory, plan->length, plan->salt);
    else memset(memory, 0, plan->length);
    const ptl_handle_me_t entry = append(side, plan->target != UNLINKS);
    say(side);
    if (plan->target == UNLINKS) unlink_soon(side, entry);
    if (plan->target != POLLS) rig_await_word(&side->word, plan->round);
    ptl_event_t event;
    unsigned    which;
    /* One that was unlinked may have been found or not. */
    const ptl_time_t patience = plan->target == UNLINKS ? 0 : PATIENCE_MS;
    const int        rc       = PtlEQPoll(&side->eq, 1, patience, &event, &which);
    if (rc == PTL_EQ_EMPTY) {
        SAME(plan->target, UNLINKS);
        SAME(memcmp(side->copy, side->memory, LONGEST), 0);
        return 0;
    }
    SAME(rc, PTL_OK);
    SAME(event.type, plan->is_get ? PTL_EVENT_GET : PTL_EVENT_PUT);
    SAME(event.ni_fail_type, PTL_NI_OK);
    SAME(event.mlength, plan->length);
    SAME(event.hdr_data, plan->is_get ? 0 : plan->round);
    if (!plan->is_get) rig_check_fill(memory, plan->length, plan->salt);
    if (plan->target == UNLINKS) SAME(memcmp(side->copy, side->memory, LONGEST), 0);
    if (plan->target == POLLS) rig_await_word(&side->word, plan->round);
    return 1;
}

int main(void)
{
    static struct side side;
    begin(&side);
    int found = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const struct plan plan = draw(&side, round);
        found += is_initiator(&side) ? initiate(&side, &plan) : serve(&side, &plan);
        /* Only the target draws how long it computes. */
        side.random = SEED + round * 7919;
    }
    printf("%d: %d of %d operations found their entry, seed %d\n", side.rig.pmi.rank, found, ROUNDS, SEED);
    OK(PtlMDRelease(side.md));
    OK(PtlMDRelease(side.word_md));
    rig_end(&side.rig);
    return 0;
}
