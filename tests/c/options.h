/*
 * What the programs about options share: an interface with a portal table entry at
 * each rank, messages from rank 0 to rank 1, and what each rank's queue reports
 * them, as words that a check compares.
 */
#ifndef LINTEL_TESTS_OPTIONS_H
#define LINTEL_TESTS_OPTIONS_H

#include "rig.h"

#define PORTAL 4
#define MARKS 5     /* portal table entry of the messages that end a check */
#define LENGTH 64   /* bytes of a message */
#define ROOM 1024   /* bytes of each memory */
#define MOST_EVENTS 64

struct stage {
    struct rig      rig;
    ptl_handle_ni_t ni;
    int             matching, logical;
    ptl_handle_eq_t queue;        /* rank 0: of its descriptors; rank 1: of its portal table entries */
    ptl_handle_ct_t counter;
    ptl_handle_md_t marker;       /* its address marks the end in the queue */
    int             verb;         /* PTL_EVENT_PUT and so on: reported as COMM, a further one as OVER */
    int             count;
    ptl_event_t     events[MOST_EVENTS];
    unsigned char   memory[ROOM]; /* rank 0: sent; rank 1: reached. Aligned as the events are. */
    char            words[1024];
};

/* What is being checked, printed when the program fails. */
static const char *options_about = NULL;

static void options_tell_about(void)
{
    if (options_about != NULL) {
        fprintf(stderr, "rank %d: that was with: %s\n", rig_rank, options_about);
    }
}

static inline int is_target(const struct stage *stage)
{
    return stage->rig.pmi.rank == 1;
}

static inline void meet(const struct stage *stage)
{
    pmi_barrier(&stage->rig.pmi);
}

/* --- Entries --- */

/* An entry of all the memory that takes every message. */
static inline ptl_me_t entry_of(struct stage *stage, unsigned int options)
{
    ptl_me_t me;
    memset(&me, 0, sizeof me);
    me.start             = stage->memory;
    me.length            = sizeof stage->memory;
    me.ct_handle         = stage->counter;
    me.uid               = PTL_UID_ANY;
    me.options           = options;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.ignore_bits       = ~(ptl_match_bits_t)0;
    if (stage->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    }
    return me;
}

static inline ptl_le_t list_entry_of(const ptl_me_t *me)
{
    ptl_le_t le = {me->start, me->length, me->ct_handle, me->uid, me->options};
    return le;
}

static inline ptl_handle_any_t append_at(struct stage *stage, ptl_pt_index_t portal, const ptl_me_t *me,
                                         ptl_list_t list)
{
    ptl_handle_any_t handle;
    ptl_le_t         le = list_entry_of(me);
    if (stage->matching) {
        OK(PtlMEAppend(stage->ni, portal, me, list, stage, &handle));
    } else {
        OK(PtlLEAppend(stage->ni, portal, &le, list, stage, &handle));
    }
    return handle;
}

static inline ptl_handle_any_t append(struct stage *stage, const ptl_me_t *me, ptl_list_t list)
{
    return append_at(stage, PORTAL, me, list);
}

/* What PtlMEUnlink or PtlLEUnlink answers. */
static inline int unlink_entry(const struct stage *stage, ptl_handle_any_t entry)
{
    return stage->matching ? PtlMEUnlink(entry) : PtlLEUnlink(entry);
}

static inline void search_at(struct stage *stage, ptl_pt_index_t portal, const ptl_me_t *me, ptl_search_op_t how,
                             void *user_ptr)
{
    ptl_le_t le = list_entry_of(me);
    if (stage->matching) {
        OK(PtlMESearch(stage->ni, portal, me, how, user_ptr));
    } else {
        OK(PtlLESearch(stage->ni, portal, &le, how, user_ptr));
    }
}

/* --- Messages --- */

static inline ptl_md_t md_of(struct stage *stage, unsigned int options)
{
    ptl_md_t md = {stage->memory, sizeof stage->memory, options, stage->queue, stage->counter};
    return md;
}

static inline ptl_handle_md_t bind_md(const struct stage *stage, const ptl_md_t *md)
{
    ptl_handle_md_t handle;
    OK(PtlMDBind(stage->ni, md, &handle));
    return handle;
}

/* A message of the stage's verb, of that descriptor's first bytes, to that offset. */
static inline void send_to(struct stage *stage, ptl_handle_md_t md, ptl_size_t length, ptl_ack_req_t ack,
                           ptl_size_t offset)
{
    ptl_process_t to = rig_peer(&stage->rig);
    switch (stage->verb) {
    case PTL_EVENT_PUT:
        OK(PtlPut(md, 0, length, ack, to, PORTAL, 0, offset, stage, 0));
        break;
    case PTL_EVENT_GET:
        OK(PtlGet(md, 0, length, to, PORTAL, 0, offset, stage));
        break;
    case PTL_EVENT_ATOMIC:
        OK(PtlAtomic(md, 0, length, ack, to, PORTAL, 0, offset, stage, 0, PTL_BXOR, PTL_UINT8_T));
        break;
    default:
        OK(PtlFetchAtomic(md, 0, md, 0, length, to, PORTAL, 0, offset, stage, 0, PTL_BXOR, PTL_UINT8_T));
        break;
    }
}

static inline void send_one(struct stage *stage, ptl_handle_md_t md, ptl_ack_req_t ack)
{
    send_to(stage, md, LENGTH, ack, 0);
}

/* --- Events --- */

static inline const char *word_of(const struct stage *stage, const ptl_event_t *event)
{
    static const char *const names[] = {"GET",  "GET_OVERFLOW",  "PUT",          "PUT_OVERFLOW",
                                        "ATOMIC", "ATOMIC_OVERFLOW", "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW",
                                        "REPLY", "SEND",         "ACK",          "PT_DISABLED",
                                        "LINK", "AUTO_UNLINK",   "AUTO_FREE",    "SEARCH"};
    if (event->type == stage->verb) {
        return "COMM";
    }
    if (event->type == stage->verb + 1) {
        return "OVER";
    }
    return event->type < sizeof names / sizeof *names ? names[event->type] : "?";
}

static inline void add_word(struct stage *stage, const ptl_event_t *event)
{
    static const char *const fails[] = {"", "!UNDELIVERABLE", "!DROPPED",  "!PT_DISABLED", "!PERM_VIOLATION",
                                        "!OP_VIOLATION", "!NO_MATCH", "!SEGV"};
    size_t used = strlen(stage->words);
    SAME(event->ni_fail_type < sizeof fails / sizeof *fails, 1);
    SAME(stage->count < MOST_EVENTS, 1);
    snprintf(stage->words + used, sizeof stage->words - used, "%s%s%s", used == 0 ? "" : " ",
             word_of(stage, event), fails[event->ni_fail_type]);
    stage->events[stage->count++] = *event;
}

/* Takes what is in the queue, up to the mark that stands behind it. */
static inline void listen_to_mark(struct stage *stage)
{
    stage->words[0] = '\0';
    stage->count     = 0;
    for (;;) {
        ptl_event_t  event;
        unsigned int which;
        OK(PtlEQPoll(&stage->queue, 1, PATIENCE_MS, &event, &which));
        if (event.user_ptr == &stage->marker) {
            return;
        }
        add_word(stage, &event);
    }
}

/* At the target: a search that finds nothing marks the end. */
static inline void mark_end(struct stage *stage)
{
    ptl_me_t nothing = entry_of(stage, 0);
    search_at(stage, MARKS, &nothing, PTL_SEARCH_ONLY, &stage->marker);
}

/* When it returns, what was sent before is finished on both sides, and its events are posted. */
static inline void settle(struct stage *stage)
{
    if (is_target(stage)) {
        meet(stage);
        mark_end(stage);
        listen_to_mark(stage);
    } else {
        OK(PtlPut(stage->marker, 0, 0, PTL_ACK_REQ, rig_peer(&stage->rig), MARKS, 0, 0, &stage->marker, 0));
        listen_to_mark(stage);
        meet(stage);
    }
    meet(stage);
}

static inline void check_words(const struct stage *stage, const char *file, int line, const char *want)
{
    if (strcmp(stage->words, want) != 0) {
        fprintf(stderr, "rank %d: %s:%d: posted \"%s\", should be \"%s\"\n", rig_rank, file, line, stage->words, want);
        exit(1);
    }
}

/* These events are posted for everything sent so far, at rank 0 and at rank 1. */
#define POSTED(stage, initiator, target)                                                          \
    do {                                                                                         \
        settle(stage);                                                                           \
        check_words(stage, __FILE__, __LINE__, is_target(stage) ? (target) : (initiator));       \
    } while (0)

/* This side's counter has come to these values; it begins again. */
#define COUNTED(stage, successes, failures)                 \
    do {                                                    \
        ptl_ct_event_t seen_, zero_ = {0, 0};               \
        OK(PtlCTGet((stage)->counter, &seen_));             \
        SAME(seen_.success, successes);                     \
        SAME(seen_.failure, failures);                      \
        OK(PtlCTSet((stage)->counter, zero_));              \
    } while (0)

/* --- The stage --- */

static inline void place_marks(struct stage *stage)
{
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
        append_at(stage, MARKS, &me, PTL_PRIORITY_LIST);
    } else {
        ptl_md_t md   = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        stage->marker = bind_md(stage, &md);
    }
}

/* Ranks are named by their places in the map, if the interface is logical. */
static inline void name_ranks(struct stage *stage)
{
    if (stage->logical) {
        OK(PtlSetMap(stage->ni, (ptl_size_t)stage->rig.pmi.size, stage->rig.peers));
        for (ptl_rank_t rank = 0; rank < (ptl_rank_t)stage->rig.pmi.size; rank++) {
            stage->rig.peers[rank].rank = rank;
        }
        stage->rig.me = stage->rig.peers[stage->rig.pmi.rank];
    }
}

/* An interface with these options of PtlNIInit and these limits; NULL are the defaults. */
static inline void open_stage(struct stage *stage, const struct rig *rig, unsigned int options,
                              const ptl_ni_limits_t *desired)
{
    ptl_pt_index_t portal;
    memset(stage, 0, sizeof *stage);
    stage->rig      = *rig;
    stage->matching = (options & PTL_NI_MATCHING) != 0;
    stage->logical  = (options & PTL_NI_LOGICAL) != 0;
    stage->verb     = PTL_EVENT_PUT;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, desired, &stage->rig.limits, &stage->ni));
    name_ranks(stage);
    OK(PtlEQAlloc(stage->ni, 4 * MOST_EVENTS, &stage->queue));
    OK(PtlCTAlloc(stage->ni, &stage->counter));
    OK(PtlPTAlloc(stage->ni, 0, stage->queue, PORTAL, &portal));
    OK(PtlPTAlloc(stage->ni, 0, stage->queue, MARKS, &portal));
    place_marks(stage);
    meet(stage);
}

static inline void close_stage(struct stage *stage)
{
    meet(stage);
    OK(PtlNIFini(stage->ni));
    meet(stage);
}

/* Runs the checks on each of the four interfaces. */
static inline int on_all_interfaces(void (*checks)(struct stage *))
{
    static struct stage       stage;
    static const unsigned int kinds[] = {
        PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL,
        PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL};
    struct rig rig = rig_begin(PTL_NI_MATCHING);
    atexit(options_tell_about);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        open_stage(&stage, &rig, kinds[kind], NULL);
        checks(&stage);
        close_stage(&stage);
    }
    options_about = NULL;
    rig_end(&rig);
    return 0;
}

#endif
