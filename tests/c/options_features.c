/*
 * What an interface is asked for, and given: entries over memory that isn't all there,
 * writes in order, atomics that the processor takes part in. What wasn't asked for
 * isn't reported.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "options.h"

#include <sys/mman.h>

#define ROUNDS 100
#define MOST 4096 /* bytes of the longest write that order is tried with */

static const unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_COMM_DISABLE;

/* Rank 0: what it sends, or gets; rank 1: what is reached. */
static unsigned char memory[ROUNDS * MOST];
static unsigned char first[ROUNDS * MOST];
static unsigned char second[ROUNDS * MOST];

static void only_what_was_requested_is_reported(const struct rig *rig)
{
    static const unsigned int features[] = {0, PTL_TARGET_BIND_INACCESSIBLE, PTL_TOTAL_DATA_ORDERING,
                                            PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING,
                                            PTL_COHERENT_ATOMICS};
    options_about = "features";
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        ptl_handle_ni_t ni;
        ptl_ni_limits_t wanted = rig->limits, given;
        wanted.features        = features[i];
        OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &wanted, &given, &ni));
        if (features[i] == PTL_COHERENT_ATOMICS) { /* not in every placement */
            SAME(given.features == 0 || given.features == PTL_COHERENT_ATOMICS, 1);
        } else {
            SAME(given.features, features[i]);
        }
        OK(PtlNIFini(ni));
    }
    pmi_barrier(&rig->pmi);
}

static void open_with(struct stage *stage, const struct rig *rig, unsigned int feature)
{
    ptl_ni_limits_t desired = rig->limits;
    desired.features        = feature;
    open_stage(stage, rig, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, &desired);
}

static ptl_handle_any_t expose(struct stage *stage, void *start, size_t length)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet);
        me.start    = start;
        me.length   = length;
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    return entry;
}

static ptl_handle_md_t bind_bytes(struct stage *stage, unsigned char *bytes, size_t length)
{
    ptl_md_t md = {bytes, length, PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY, stage->queue, stage->counter};
    return bind_md(stage, &md);
}

/* --- TARGET_BIND_INACCESSIBLE --- */

/* Entries end in a page that isn't there; what reaches the one before arrives. */
static void entries_may_span_what_is_not_there(const struct rig *rig)
{
    static struct stage stage;
    size_t              page  = (size_t)sysconf(_SC_PAGESIZE);
    char               *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SAME(pages != MAP_FAILED, 1);
    OK(mprotect(pages + page, page, PROT_NONE));
    options_about = "TARGET_BIND_INACCESSIBLE";
    open_with(&stage, rig, PTL_TARGET_BIND_INACCESSIBLE);
    SAME(stage.rig.limits.features, PTL_TARGET_BIND_INACCESSIBLE);
    ptl_handle_any_t entry = expose(&stage, pages, 2 * page);
    if (!is_target(&stage)) {
        rig_fill(memory, page, 1);
        OK(PtlPut(bind_bytes(&stage, memory, page), 0, page, PTL_NO_ACK_REQ, rig_peer(rig), PORTAL, 0, 0, &stage, 0));
    }
    POSTED(&stage, "", "");
    if (is_target(&stage)) {
        rig_check_fill((unsigned char *)pages, page, 1);
        OK(unlink_entry(&stage, entry));
    }
    close_stage(&stage);
    munmap(pages, 2 * page);
}

/* --- TOTAL_DATA_ORDERING --- */

/* The later of two writes to one place stays, be it shorter or longer. */
static void writes_after_writes_are_ordered(struct stage *stage, size_t early, size_t late)
{
    size_t most = early > late ? early : late;
    options_about = "TOTAL_DATA_ORDERING, write after write";
    memset(memory, 0, sizeof memory);
    ptl_handle_any_t entry = expose(stage, memory, sizeof memory);
    if (!is_target(stage)) {
        ptl_handle_md_t old = bind_bytes(stage, first, MOST), new = bind_bytes(stage, second, MOST);
        rig_fill(first, MOST, 2);
        rig_fill(second, MOST, 3);
        for (ptl_size_t round = 0; round < ROUNDS; round++) {
            OK(PtlPut(old, 0, early, PTL_NO_ACK_REQ, rig_peer(&stage->rig), PORTAL, 0, round * MOST, stage, 0));
            OK(PtlPut(new, 0, late, PTL_NO_ACK_REQ, rig_peer(&stage->rig), PORTAL, 0, round * MOST, stage, 0));
        }
    }
    POSTED(stage, "", "");
    for (size_t round = 0; is_target(stage) && round < ROUNDS; round++) {
        rig_check_fill(memory + round * MOST, late, 3);
        for (size_t place = late; place < most; place++) {
            SAME(memory[round * MOST + place], rig_byte(place, 2));
        }
    }
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
}

/* A read sees what was there before the write that follows it. */
static void writes_after_reads_are_ordered(struct stage *stage, size_t length)
{
    options_about = "TOTAL_DATA_ORDERING, write after read";
    for (size_t round = 0; round < ROUNDS; round++) {
        rig_fill(memory + round * MOST, MOST, is_target(stage) ? 4 : 5);
    }
    ptl_handle_any_t entry = expose(stage, memory, sizeof memory);
    if (!is_target(stage)) {
        ptl_handle_md_t sink = bind_bytes(stage, first, sizeof first), md = bind_bytes(stage, memory, sizeof memory);
        for (ptl_size_t at = 0; at < sizeof memory; at += MOST) {
            OK(PtlGet(sink, at, length, rig_peer(&stage->rig), PORTAL, 0, at, stage));
            OK(PtlPut(md, at, length, PTL_NO_ACK_REQ, rig_peer(&stage->rig), PORTAL, 0, at, stage, 0));
        }
        rig_count(stage->counter, ROUNDS);
    }
    POSTED(stage, "", "");
    COUNTED(stage, is_target(stage) ? 0 : ROUNDS, 0);
    for (size_t round = 0; round < ROUNDS; round++) {
        rig_check_fill((is_target(stage) ? memory : first) + round * MOST, length, is_target(stage) ? 5 : 4);
    }
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
}

static void short_writes_are_ordered(const struct rig *rig)
{
    static struct stage stage;
    open_with(&stage, rig, PTL_TOTAL_DATA_ORDERING);
    ptl_ni_limits_t *limits = &stage.rig.limits;
    SAME(limits->features, PTL_TOTAL_DATA_ORDERING);
    size_t after_write = limits->max_waw_ordered_size < MOST ? limits->max_waw_ordered_size : MOST;
    size_t after_read  = limits->max_war_ordered_size < MOST ? limits->max_war_ordered_size : MOST;
    writes_after_writes_are_ordered(&stage, 8, 8);
    writes_after_writes_are_ordered(&stage, after_write, 8);
    writes_after_writes_are_ordered(&stage, 8, after_write);
    writes_after_writes_are_ordered(&stage, after_write, after_write);
    writes_after_reads_are_ordered(&stage, 8);
    writes_after_reads_are_ordered(&stage, after_read);
    close_stage(&stage);
}

/* --- COHERENT_ATOMICS --- */

#define ATOMICS 10000
#define ITEMS 512
#define ATTEMPTS 4 /* where it is ignored, each may go well on few processors */

/* Rank 1's; the word behind the sums says that all atomics have been sent. */
static uint64_t sums[ITEMS + 1];

/* Rank 1 adds where rank 0's atomics add, for as long as they come, and makes no call:
 * they are another thread's. */
static void add_meanwhile(struct stage *stage)
{
    uint64_t added = 0;
    memset(sums, 0, sizeof sums);
    ptl_handle_any_t entry = expose(stage, sums, sizeof sums);
    while (__atomic_load_n(&sums[ITEMS], __ATOMIC_ACQUIRE) == 0) {
        for (int i = 0; i < ITEMS; i++) {
            __atomic_fetch_add(&sums[i], 1, __ATOMIC_SEQ_CST);
        }
        added++;
    }
    settle(stage);
    for (int i = 0; i < ITEMS; i++) {
        SAME(sums[i], added + (i == 0 ? ATOMICS : ATOMICS / 2));
    }
    OK(unlink_entry(stage, entry));
}

/* Every other atomic adds to all items, the others to the first. */
static void add_remotely(struct stage *stage)
{
    static uint64_t ones[ITEMS];
    ptl_handle_md_t md = bind_bytes(stage, (unsigned char *)ones, sizeof ones);
    ptl_process_t   to = rig_peer(&stage->rig);
    for (int i = 0; i < ITEMS; i++) {
        ones[i] = 1;
    }
    meet(stage);
    for (int i = 0; i < ATOMICS; i++) {
        size_t length = i % 2 == 0 ? sizeof ones : sizeof *ones;
        OK(PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, to, PORTAL, 0, 0, stage, 0, PTL_SUM, PTL_UINT64_T));
    }
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, PORTAL, 0, ITEMS * sizeof *sums, stage, 0));
    settle(stage);
}

/* No addition is lost; where the feature isn't given nothing is promised. */
static void atomics_and_the_processor_see_each_other(const struct rig *rig)
{
    static struct stage stage;
    options_about = "COHERENT_ATOMICS";
    open_with(&stage, rig, PTL_COHERENT_ATOMICS);
    int given = (stage.rig.limits.features & PTL_COHERENT_ATOMICS) != 0;
    for (int attempt = 0; given && attempt < ATTEMPTS; attempt++) {
        if (is_target(&stage)) {
            add_meanwhile(&stage);
        } else {
            add_remotely(&stage);
        }
    }
    close_stage(&stage);
}

int main(void)
{
    struct rig rig = rig_begin(PTL_NI_MATCHING);
    atexit(options_tell_about);
    only_what_was_requested_is_reported(&rig);
    entries_may_span_what_is_not_there(&rig);
    short_writes_are_ordered(&rig);
    atomics_and_the_processor_see_each_other(&rig);
    options_about = NULL;
    rig_end(&rig);
    return 0;
}
