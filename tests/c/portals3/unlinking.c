/*
 * Thresholds, unlinking, PtlMDUpdate, handlers of queues, and what nothing takes: by messages of
 * a process to itself, whose events are there when the calls return or soon after.
 */
#include "rig3.h"

#include <stdatomic.h>

#define PT 5
/* More than a queue that was asked to hold one event holds. */
#define PUTS 2000

static unsigned char target[64], source[64];

static void put(struct rig *rig, ptl_handle_md_t md, ptl_match_bits_t bits)
{
    OK(PtlPut(md, PTL_NO_ACK_REQ, rig->me, PT, 0, bits, 0, 0));
}

/* A descriptor with PTL_UNLINK goes after its last operation, with its entry, and says so. */
static void threshold_unlinks(struct rig *rig, ptl_handle_eq_t eq, ptl_handle_md_t from)
{
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_event_t     last;
    ptl_md_t        two = rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq);
    two.threshold = 2;
    me = rig_attach(rig, PT, 1, two, PTL_UNLINK, &md);
    put(rig, from, 1);
    SAME(rig_event(eq, PTL_EVENT_PUT_END).md.threshold, 1);
    put(rig, from, 1);
    SAME(rig_event(eq, PTL_EVENT_PUT_END).md.threshold, 0);
    last = rig_event(eq, PTL_EVENT_UNLINK);
    SAME(last.md_handle, md);
    SAME(last.md.user_ptr == target, 1);
    ANSWERS(PTL_MD_INVALID, PtlMDUnlink(md));
    ANSWERS(PTL_ME_INVALID, PtlMEUnlink(me));
}

/* A descriptor that is used up stays with PTL_RETAIN until PtlMDUpdate arms it again. */
static void update_arms(struct rig *rig, ptl_handle_eq_t eq, ptl_handle_md_t from)
{
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_md_t        old, once = rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq);
    ptl_sr_value_t  dropped, later;
    once.threshold = 0;
    me = rig_attach(rig, PT, 2, once, PTL_RETAIN, &md);
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &dropped));
    put(rig, from, 2);
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &later));
    SAME(later, dropped + 1);
    once.threshold = 1;
    OK(PtlMDUpdate(md, &old, &once, eq));
    SAME(old.threshold, 0);
    put(rig, from, 2);
    ANSWERS(PTL_MD_NO_UPDATE, PtlMDUpdate(md, NULL, &once, eq));
    rig_event(eq, PTL_EVENT_PUT_END);
    OK(PtlMDUpdate(md, &old, NULL, eq));
    SAME(old.threshold, 0);
    OK(PtlMEUnlink(me));
    ANSWERS(PTL_MD_INVALID, PtlMDUpdate(md, NULL, NULL, PTL_EQ_NONE));
}

static void post_is_conditional(struct rig *rig, ptl_handle_eq_t eq, ptl_handle_md_t from)
{
    ptl_handle_md_t md, more;
    ptl_handle_me_t me, before;
    ptl_event_t     event;
    ptl_md_t        all = rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE |
                                 PTL_MD_TRUNCATE, eq);
    me = rig_attach(rig, PT, 3, all, PTL_RETAIN, &md);
    put(rig, from, 3);
    ANSWERS(PTL_MD_NO_UPDATE, PtlMEMDPost(rig->ni, me, anyone, 3, 0, PTL_UNLINK, PTL_INS_BEFORE, all,
                                          PTL_UNLINK, &before, &more, eq));
    OK(PtlEQPeek(eq, &event));
    SAME(rig_event(eq, PTL_EVENT_PUT_END).sequence, event.sequence);
    OK(PtlMEMDPost(rig->ni, me, anyone, 3, 0, PTL_RETAIN, PTL_INS_BEFORE, all, PTL_RETAIN, &before,
                   &more, eq));
    put(rig, from, 3);
    SAME(rig_event(eq, PTL_EVENT_PUT_END).md_handle, more);
    OK(PtlMEUnlink(before));
    OK(PtlMEUnlink(me));
}

static atomic_int handled;

static void count(ptl_event_t *event)
{
    SAME(event->type, PTL_EVENT_PUT_END);
    handled += 1;
}

/* The handler gets each event, and the queue keeps none. */
static void handler_is_called(struct rig *rig, ptl_handle_md_t from)
{
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(rig->ni, 1, count, &eq));
    me = rig_attach(rig, PT, 4, rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE |
                                       PTL_MD_MANAGE_REMOTE, eq), PTL_RETAIN, &md);
    put(rig, from, 4);
    put(rig, from, 4);
    rig_until(handled == 2);
    rig_no_event(eq);
    OK(PtlMEUnlink(me));
    OK(PtlEQFree(eq));
}

/* A full queue loses events and no data, and the next event reports it. */
static void full_queue_reports(struct rig *rig, ptl_handle_md_t from)
{
    unsigned        kept;
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_handle_eq_t eq;
    ptl_event_t     event;
    OK(PtlEQAlloc(rig->ni, 1, PTL_EQ_HANDLER_NONE, &eq));
    me = rig_attach(rig, PT, 6, rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE |
                                       PTL_MD_MANAGE_REMOTE, eq), PTL_RETAIN, &md);
    for (unsigned sent = 0; sent < PUTS; sent++) {
        put(rig, from, 6);
    }
    for (kept = 0; PtlEQGet(eq, &event) == PTL_OK; kept++) {
        SAME(event.sequence, kept);
    }
    SAME(kept >= 1 && kept < PUTS, 1);
    put(rig, from, 6);
    ANSWERS(PTL_EQ_DROPPED, PtlEQWait(eq, &event));
    SAME(event.sequence, PUTS);
    OK(PtlMEUnlink(me));
    OK(PtlEQFree(eq));
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_eq_t eq;
    ptl_handle_md_t from;
    OK(PtlEQAlloc(rig.ni, 16, PTL_EQ_HANDLER_NONE, &eq));
    OK(PtlMDBind(rig.ni, rig_md(source, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &from));
    threshold_unlinks(&rig, eq, from);
    update_arms(&rig, eq, from);
    post_is_conditional(&rig, eq, from);
    handler_is_called(&rig, from);
    full_queue_reports(&rig, from);
    rig_no_event(eq);
    rig_end(&rig);
    return 0;
}
