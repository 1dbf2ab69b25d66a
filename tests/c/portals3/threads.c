/*
 * Threads of two ranks share an interface each: some put, get and swap, two take what arrives from
 * one queue, one sends to its own process, by entries that are used once. Each operation arrives
 * once, nothing is torn, and no swap is lost.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rig3.h"

#define PT 4
#define PT_OWN 5
#define MOVERS 3
#define TAKERS 2
#define ROUNDS 1500
#define OWN_ROUNDS 500
#define LONGEST 5000
/* Match bits of the words that are swapped, beside those of the movers' areas. */
#define WORDS 100
/* Room for each put, get and swap of all movers. */
#define EVENTS (4 * MOVERS * ROUNDS)

struct mover {
    struct rig     *rig;
    unsigned        ordinal;
    ptl_handle_eq_t eq;
    unsigned char   data[LONGEST], back[LONGEST];
    /* What was put into the other rank's word, and what came back for it. */
    uint64_t        given, taken;
};

static ptl_handle_eq_t arrivals;
static unsigned char   areas[MOVERS][LONGEST];
static uint64_t        words[MOVERS];
static atomic_uchar    has_arrived[MOVERS][ROUNDS];
static atomic_int      put, got, swapped, is_over;

static size_t length_of(unsigned number)
{
    return 1 + number * 997 % LONGEST;
}

static unsigned char pattern(unsigned rank, unsigned ordinal, unsigned number, size_t at)
{
    return (unsigned char)(rank * 101 + ordinal * 31 + number * 7 + at);
}

static void note(const ptl_event_t *event)
{
    SAME(event->ni_fail_type, PTL_NI_OK);
    switch (event->type) {
    case PTL_EVENT_PUT_END:
        SAME(event->match_bits < MOVERS && event->hdr_data < ROUNDS, 1);
        SAME(event->mlength, length_of((unsigned)event->hdr_data));
        SAME(atomic_exchange(&has_arrived[event->match_bits][event->hdr_data], 1), 0);
        atomic_fetch_add(&put, 1);
        break;
    case PTL_EVENT_GET_END:
        atomic_fetch_add(&got, 1);
        break;
    case PTL_EVENT_GETPUT_END:
        SAME(event->match_bits >= WORDS && event->match_bits < WORDS + MOVERS, 1);
        atomic_fetch_add(&swapped, 1);
        break;
    default:
        rig_fail(__FILE__, __LINE__, PtlEventKindStr(event->type), (long)event->type);
    }
}

/* One polls, the other takes what there is. */
static void *take(void *argument)
{
    int polls = argument != NULL;
    while (!atomic_load(&is_over)) {
        ptl_event_t event;
        int         which;
        int         rc = polls ? PtlEQPoll(&arrivals, 1, 1, &event, &which)
                               : PtlEQGet(arrivals, &event);
        if (rc == PTL_EQ_EMPTY) {
            sched_yield();
            continue;
        }
        SAME(rc, PTL_OK);
        note(&event);
    }
    return NULL;
}

static ptl_handle_md_t bind(struct rig *rig, void *start, size_t length, unsigned options,
                            ptl_handle_eq_t eq)
{
    ptl_handle_md_t md;
    options |= PTL_MD_EVENT_START_DISABLE;
    OK(PtlMDBind(rig->ni, rig_md(start, length, options, eq), PTL_RETAIN, &md));
    return md;
}

/* Puts into an area of the other rank, and gets it back. */
static void put_and_get(struct mover *mover, unsigned number)
{
    struct rig     *rig    = mover->rig;
    size_t          length = length_of(number);
    ptl_handle_md_t md     = bind(rig, mover->data, length, 0, mover->eq);
    for (size_t at = 0; at < length; at++) {
        mover->data[at] = pattern((unsigned)rig_rank, mover->ordinal, number, at);
    }
    OK(PtlPut(md, PTL_ACK_REQ, rig->peer, PT, 0, mover->ordinal, 0, number));
    rig_event(mover->eq, PTL_EVENT_SEND_END);
    SAME(rig_event(mover->eq, PTL_EVENT_ACK).mlength, length);
    OK(PtlMDUnlink(md));

    md = bind(rig, mover->back, length, 0, mover->eq);
    OK(PtlGet(md, rig->peer, PT, 0, mover->ordinal, 0));
    SAME(rig_event(mover->eq, PTL_EVENT_REPLY_END).mlength, length);
    SAME(memcmp(mover->data, mover->back, length), 0);
    OK(PtlMDUnlink(md));
}

/* Swaps a word of the other rank, as all movers do. */
static void swap(struct mover *mover, unsigned number)
{
    struct rig     *rig = mover->rig;
    unsigned        all = (unsigned)rig_rank * MOVERS + mover->ordinal + 1;
    uint64_t        old = 0, new = number | (uint64_t)all << 40;
    ptl_handle_md_t to   = bind(rig, &old, 8, 0, mover->eq);
    ptl_handle_md_t from = bind(rig, &new, 8, PTL_MD_EVENT_END_DISABLE, mover->eq);
    OK(PtlGetPut(to, from, rig->peer, PT, 0, WORDS + number % MOVERS, 0, 0));
    SAME(rig_event(mover->eq, PTL_EVENT_REPLY_END).mlength, 8);
    mover->given ^= new;
    mover->taken ^= old;
    OK(PtlMDUnlink(to));
    OK(PtlMDUnlink(from));
}

/* Each operation with a descriptor that comes and goes. */
static void *move(void *argument)
{
    struct mover *mover = argument;
    OK(PtlEQAlloc(mover->rig->ni, 16, PTL_EQ_HANDLER_NONE, &mover->eq));
    for (unsigned number = 0; number < ROUNDS; number++) {
        put_and_get(mover, number);
        swap(mover, number);
    }
    rig_no_event(mover->eq);
    OK(PtlEQFree(mover->eq));
    return NULL;
}

/* Sends to its own process: an entry and its descriptor go with what they receive. */
static void *send_to_own(void *argument)
{
    struct rig     *rig = argument;
    uint64_t        sent, received;
    ptl_handle_md_t from;
    ptl_handle_eq_t eq, sends;
    OK(PtlEQAlloc(rig->ni, 16, PTL_EQ_HANDLER_NONE, &eq));
    OK(PtlEQAlloc(rig->ni, 16, PTL_EQ_HANDLER_NONE, &sends));
    from = bind(rig, &sent, 8, 0, sends);
    for (uint64_t number = 1; number <= OWN_ROUNDS; number++) {
        ptl_handle_md_t into;
        ptl_md_t        md = rig_md(&received, 8, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq);
        md.threshold = 1;
        rig_attach(rig, PT_OWN, number, md, PTL_UNLINK, &into);
        sent     = number;
        received = 0;
        OK(PtlPut(from, PTL_NO_ACK_REQ, rig->me, PT_OWN, 0, number, 0, number));
        SAME(rig_event(eq, PTL_EVENT_PUT_END).hdr_data, number);
        SAME(received, number);
        SAME(rig_event(eq, PTL_EVENT_UNLINK).ni_fail_type, PTL_NI_OK);
        ANSWERS(PTL_MD_INVALID, PtlMDUnlink(into));
        rig_event(sends, PTL_EVENT_SEND_END);
    }
    OK(PtlMDUnlink(from));
    OK(PtlEQFree(sends));
    OK(PtlEQFree(eq));
    return NULL;
}

/* What the other rank's words hold in the end. */
static uint64_t last_words(struct rig *rig)
{
    uint64_t        all = 0, word;
    ptl_handle_md_t md;
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(rig->ni, 16, PTL_EQ_HANDLER_NONE, &eq));
    md = bind(rig, &word, 8, 0, eq);
    for (unsigned each = 0; each < MOVERS; each++) {
        OK(PtlGet(md, rig->peer, PT, 0, WORDS + each, 0));
        rig_event(eq, PTL_EVENT_REPLY_END);
        all ^= word;
    }
    OK(PtlMDUnlink(md));
    OK(PtlEQFree(eq));
    return all;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    SAME(pthread_create(thread, NULL, run, argument), 0);
}

static void attach(struct rig *rig)
{
    const unsigned options
        = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    ptl_handle_md_t md;
    OK(PtlEQAlloc(rig->ni, EVENTS, PTL_EQ_HANDLER_NONE, &arrivals));
    for (unsigned each = 0; each < MOVERS; each++) {
        ptl_md_t area = rig_md(areas[each], LONGEST, options, arrivals);
        ptl_md_t word = rig_md(&words[each], 8, options, arrivals);
        rig_attach(rig, PT, each, area, PTL_RETAIN, &md);
        rig_attach(rig, PT, WORDS + each, word, PTL_RETAIN, &md);
    }
}

int main(void)
{
    static struct mover movers[MOVERS];
    struct rig          rig = rig_begin();
    pthread_t           moving[MOVERS], taking[TAKERS], own;
    uint64_t            all = 0;
    attach(&rig);
    pmi_barrier(&rig.pmi);

    for (size_t each = 0; each < TAKERS; each++) {
        start(&taking[each], take, each ? &arrivals : NULL);
    }
    for (unsigned each = 0; each < MOVERS; each++) {
        movers[each].rig     = &rig;
        movers[each].ordinal = each;
        start(&moving[each], move, &movers[each]);
    }
    start(&own, send_to_own, &rig);
    for (size_t each = 0; each < MOVERS; each++) {
        SAME(pthread_join(moving[each], NULL), 0);
        all ^= movers[each].given ^ movers[each].taken;
    }
    SAME(pthread_join(own, NULL), 0);
    pmi_barrier(&rig.pmi);
    SAME(all, last_words(&rig));
    pmi_barrier(&rig.pmi);

    rig_until(atomic_load(&put) == MOVERS * ROUNDS);
    rig_until(atomic_load(&swapped) == MOVERS * ROUNDS);
    rig_until(atomic_load(&got) == MOVERS * ROUNDS + MOVERS);
    atomic_store(&is_over, 1);
    for (size_t each = 0; each < TAKERS; each++) {
        SAME(pthread_join(taking[each], NULL), 0);
    }
    rig_no_event(arrivals);
    rig_end(&rig);
    return 0;
}
