/*
 * PTL_MD_VOLATILE: the caller's memory is its own again when the call returns. Puts
 * and atomics of every length that is honoured are overwritten at once, and arrive as
 * they were; without the option, and above max_volatile_size, the same holds after
 * PTL_EVENT_SEND. All on descriptors of one place, of pieces and of all memory, to the
 * peer and to the process itself.
 */
#include "options.h"

#define PUTS 2000
#define MOST 4096 /* bytes of the longest put that is tried */

/* How a descriptor names the memory that is sent from. */
enum shape { WHOLE, PIECES, EVERYTHING, SHAPES };

static const char *const shapes[] = {"one place", "pieces", "all memory"};

/* Aligned, so that an atomic finds its items. */
static uint64_t arrived[PUTS * MOST / sizeof(uint64_t)];
static uint64_t source[MOST / sizeof(uint64_t)];
static uint64_t replies[MOST / sizeof(uint64_t)];

static size_t length_of(unsigned int number, ptl_size_t most)
{
    static const size_t lengths[] = {8, 16, 24, 64, 120, 256, 1000, 2048, 4000, MOST};
    size_t              length    = lengths[number % (sizeof lengths / sizeof *lengths)];
    return length < most ? length : most;
}

static ptl_handle_md_t bind_source(struct stage *stage, enum shape shape, unsigned int options)
{
    unsigned char *bytes     = (unsigned char *)source;
    ptl_iovec_t    pieces[2] = {{bytes, 12}, {bytes + 12, MOST - 12}};
    ptl_md_t       md        = {source, sizeof source, options, stage->queue, stage->counter};
    if (shape == PIECES) {
        md.start  = pieces;
        md.length = 2;
        md.options |= PTL_IOVEC;
    } else if (shape == EVERYTHING) {
        md.start  = NULL;
        md.length = PTL_SIZE_MAX;
    }
    return bind_md(stage, &md);
}

static ptl_size_t offset_in(enum shape shape)
{
    return shape == EVERYTHING ? (ptl_size_t)(uintptr_t)source : 0;
}

static void overwrite_source(size_t length)
{
    memset(source, 0xee, length);
}

/* The entry that puts and atomics reach, at the process that is sent to. */
static ptl_handle_any_t expose(struct stage *stage)
{
    ptl_me_t me = entry_of(stage, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                      PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    me.start    = arrived;
    me.length   = sizeof arrived;
    memset(arrived, 0, sizeof arrived);
    return append(stage, &me, PTL_PRIORITY_LIST);
}

/* --- Puts --- */

struct run {
    enum shape    shape;
    unsigned int  options; /* of the descriptor */
    ptl_size_t    most;    /* bytes of the longest put */
    int           waits;   /* for PTL_EVENT_SEND, before it overwrites */
    ptl_process_t to;
};

static void put_and_overwrite(struct stage *stage, const struct run *run)
{
    ptl_handle_md_t md = bind_source(stage, run->shape, run->options | PTL_MD_EVENT_CT_SEND);
    for (unsigned int number = 0; number < PUTS; number++) {
        size_t length = length_of(number, run->most);
        rig_fill((unsigned char *)source, length, number);
        OK(PtlPut(md, offset_in(run->shape), length, PTL_NO_ACK_REQ, run->to, PORTAL, 0, (ptl_size_t)number * MOST,
                  stage, 0));
        if (run->waits) {
            rig_count(stage->counter, number + 1);
        }
        overwrite_source(length);
    }
    rig_count(stage->counter, PUTS);
}

static void check_arrived(ptl_size_t most)
{
    for (unsigned int number = 0; number < PUTS; number++) {
        rig_check_fill((unsigned char *)arrived + (size_t)number * MOST, length_of(number, most), number);
    }
}

static void forget_counts(struct stage *stage)
{
    ptl_ct_event_t zero = {0, 0};
    OK(PtlCTSet(stage->counter, zero));
    meet(stage);
}

static void check_puts(struct stage *stage, const struct run *run)
{
    options_about = shapes[run->shape];
    if (is_target(stage)) {
        ptl_handle_any_t entry = expose(stage);
        meet(stage);
        rig_count(stage->counter, PUTS);
        check_arrived(run->most);
        OK(unlink_entry(stage, entry));
    } else {
        meet(stage);
        put_and_overwrite(stage, run);
    }
    forget_counts(stage);
}

static void puts_keep_what_they_took(struct stage *stage)
{
    const unsigned int quiet = PTL_MD_EVENT_SEND_DISABLE;
    for (int shape = 0; shape < SHAPES; shape++) {
        struct run run = {(enum shape)shape, quiet | PTL_MD_VOLATILE, stage->rig.limits.max_volatile_size, 0,
                          rig_peer(&stage->rig)};
        check_puts(stage, &run);
        run.options = quiet;
        run.most    = MOST;
        run.waits   = 1;
        check_puts(stage, &run);
    }
}

/* To itself, where the counter counts sends and arrivals. */
static void puts_to_oneself_keep_what_they_took(struct stage *stage)
{
    ptl_handle_any_t entry = expose(stage);
    ptl_handle_md_t  md    = bind_source(stage, WHOLE, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_VOLATILE);
    ptl_size_t       most  = stage->rig.limits.max_volatile_size;
    options_about          = "a put to itself";
    for (unsigned int number = 0; number < PUTS; number++) {
        size_t length = length_of(number, most);
        rig_fill((unsigned char *)source, length, number);
        OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, stage->rig.me, PORTAL, 0, (ptl_size_t)number * MOST, stage, 0));
        overwrite_source(length);
    }
    rig_count(stage->counter, PUTS);
    check_arrived(most);
    OK(unlink_entry(stage, entry));
    forget_counts(stage);
}

/* --- Atomics --- */

/* Adds `number` to each of the items at the target, and overwrites them at once. */
static void add(struct stage *stage, ptl_handle_md_t md, ptl_handle_md_t sink, uint64_t number, size_t length)
{
    ptl_process_t to = rig_peer(&stage->rig);
    for (size_t item = 0; item < length / sizeof *source; item++) {
        source[item] = number;
    }
    if (number % 3 == 0) {
        OK(PtlFetchAtomic(sink, 0, md, 0, length, to, PORTAL, 0, 0, stage, 0, PTL_SUM, PTL_UINT64_T));
    } else {
        OK(PtlAtomic(md, 0, length, PTL_ACK_REQ, to, PORTAL, 0, 0, stage, 0, PTL_SUM, PTL_UINT64_T));
    }
    overwrite_source(length);
}

static void check_atomics(struct stage *stage, size_t length)
{
    options_about = "atomics";
    if (is_target(stage)) {
        ptl_handle_any_t entry = expose(stage);
        meet(stage);
        rig_count(stage->counter, PUTS);
        for (size_t item = 0; item < length / sizeof *arrived; item++) {
            SAME(arrived[item], (uint64_t)PUTS * (PUTS + 1) / 2);
        }
        OK(unlink_entry(stage, entry));
    } else {
        unsigned int    counts = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
        ptl_md_t        into   = {replies, sizeof replies, counts, stage->queue, stage->counter};
        ptl_handle_md_t sink   = bind_md(stage, &into);
        ptl_handle_md_t md     = bind_source(stage, WHOLE, counts | PTL_MD_VOLATILE);
        meet(stage);
        for (uint64_t number = 1; number <= PUTS; number++) {
            add(stage, md, sink, number, length);
        }
        rig_count(stage->counter, PUTS);
    }
    forget_counts(stage);
}

static void atomics_keep_what_they_took(struct stage *stage)
{
    ptl_ni_limits_t *limits = &stage->rig.limits;
    ptl_size_t       most   = limits->max_volatile_size < MOST ? limits->max_volatile_size : MOST;
    most                    = most < limits->max_fetch_atomic_size ? most : limits->max_fetch_atomic_size;
    check_atomics(stage, 8);
    check_atomics(stage, 120);
    check_atomics(stage, most / 8 * 8);
}

/* Each swap puts its number where the one before put its own, and fetches that. */
static void swaps_keep_what_they_took(struct stage *stage)
{
    options_about = "swaps";
    if (is_target(stage)) {
        ptl_handle_any_t entry = expose(stage);
        meet(stage);
        rig_count(stage->counter, PUTS);
        SAME(arrived[0], PUTS);
        OK(unlink_entry(stage, entry));
    } else {
        static uint64_t fetched[PUTS];
        unsigned int    counts  = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY;
        ptl_md_t        into    = {fetched, sizeof fetched, counts, stage->queue, stage->counter};
        ptl_handle_md_t sink    = bind_md(stage, &into);
        ptl_handle_md_t md      = bind_source(stage, WHOLE, counts | PTL_MD_VOLATILE);
        uint64_t        operand = 0;
        meet(stage);
        for (uint64_t number = 0; number < PUTS; number++) {
            source[0] = number + 1;
            operand   = number; /* what is there, if the one before was right */
            OK(PtlSwap(sink, number * 8, md, 0, 8, rig_peer(&stage->rig), PORTAL, 0, 0, stage, 0, &operand, PTL_CSWAP,
                       PTL_UINT64_T));
            source[0] = operand = 0xeeee;
        }
        rig_count(stage->counter, PUTS);
        for (uint64_t number = 0; number < PUTS; number++) {
            SAME(fetched[number], number);
        }
    }
    forget_counts(stage);
}

/* --- The limit --- */

/* The program has at least what it wants, and is served up to what it has. */
static void the_limit_is_honoured(struct rig *rig)
{
    static struct stage     stage;
    static const ptl_size_t wanted[] = {8, 64, 1000};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        ptl_ni_limits_t desired   = rig->limits;
        desired.max_volatile_size = wanted[i];
        open_stage(&stage, rig, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, &desired);
        ptl_size_t most = stage.rig.limits.max_volatile_size;
        SAME(most >= wanted[i], 1);
        struct run run = {WHOLE, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_VOLATILE, most, 0, rig_peer(rig)};
        check_puts(&stage, &run);
        run.most  = MOST; /* of longer ones the option is ignored: the memory is lent until it is sent */
        run.waits = 1;
        check_puts(&stage, &run);
        close_stage(&stage);
    }
}

int main(void)
{
    static struct stage stage;
    struct rig          rig = rig_begin(PTL_NI_MATCHING);
    atexit(options_tell_about);
    SAME(rig.limits.max_volatile_size >= 8, 1);
    open_stage(&stage, &rig, PTL_NI_MATCHING | PTL_NI_PHYSICAL, NULL);
    puts_keep_what_they_took(&stage);
    puts_to_oneself_keep_what_they_took(&stage);
    atomics_keep_what_they_took(&stage);
    swaps_keep_what_they_took(&stage);
    close_stage(&stage);
    the_limit_is_honoured(&rig);
    options_about = NULL;
    rig_end(&rig);
    return 0;
}
