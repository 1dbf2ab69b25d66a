/*
 * Cray's rules, which an interface opened by one of Cray's numbers follows: a get posts SEND events
 * and counts twice, and a descriptor says that it is unlinked only if its options ask for that.
 */
#include "rig3.h"

#include <portals/portals3.h>

#define PT 37

static unsigned char target[64], source[64];

static void get_counts_twice(struct rig *rig, ptl_handle_eq_t eq)
{
    ptl_handle_md_t md, at;
    ptl_handle_me_t me;
    ptl_event_t     event;
    ptl_md_t        twice = rig_md(source, 64, 0, eq);
    me = rig_attach(rig, PT, 1, rig_md(target, 64, PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN, &at);
    twice.threshold = 2;
    OK(PtlMDBind(rig->ni, twice, PTL_UNLINK, &md));
    OK(PtlGet(md, rig->me, PT, 0, 1, 0));
    rig_event(eq, PTL_EVENT_SEND_START);
    SAME(rig_event(eq, PTL_EVENT_SEND_END).md.threshold, 1);
    rig_event(eq, PTL_EVENT_REPLY_START);
    event = rig_event(eq, PTL_EVENT_REPLY_END);
    SAME(event.md.threshold, 0);
    SAME(event.mlength, 64);
    /* It has gone, and no event says so. */
    rig_no_event(eq);
    ANSWERS(PTL_MD_INVALID, PtlMDUnlink(md));
    OK(PtlMEUnlink(me));
}

static void unlink_events_are_asked_for(struct rig *rig, ptl_handle_eq_t eq)
{
    ptl_handle_md_t md, from;
    ptl_handle_me_t me;
    ptl_md_t        once = rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq);
    OK(PtlMDBind(rig->ni, rig_md(source, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &from));
    once.threshold = 1;
    me = rig_attach(rig, PT, 2, once, PTL_UNLINK, &md);
    OK(PtlPut(from, PTL_NO_ACK_REQ, rig->me, PT, 0, 2, 0, 0));
    rig_event(eq, PTL_EVENT_PUT_END);
    rig_no_event(eq);
    ANSWERS(PTL_ME_INVALID, PtlMEUnlink(me));

    once.options |= PTL_MD_EVENT_AUTO_UNLINK_ENABLE;
    rig_attach(rig, PT, 2, once, PTL_UNLINK, &md);
    OK(PtlPut(from, PTL_NO_ACK_REQ, rig->me, PT, 0, 2, 0, 0));
    rig_event(eq, PTL_EVENT_PUT_END);
    SAME(rig_event(eq, PTL_EVENT_UNLINK).md_handle, md);

    once.options |= PTL_MD_EVENT_MANUAL_UNLINK_ENABLE;
    rig_attach(rig, PT, 2, once, PTL_UNLINK, &md);
    OK(PtlMDUnlink(md));
    SAME(rig_event(eq, PTL_EVENT_UNLINK).md_handle, md);
    rig_no_event(eq);
    OK(PtlMDUnlink(from));
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_ni_t other;
    ptl_handle_eq_t eq;
    pmi_barrier(&rig.pmi);
    OK(PtlNIFini(rig.ni));
    OK(PtlNIInit(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS), rig.me.pid, NULL, NULL,
                 &rig.ni));
    ANSWERS(PTL_IFACE_INVALID, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &other));
    OK(PtlEQAlloc(rig.ni, 16, PTL_EQ_HANDLER_NONE, &eq));
    get_counts_twice(&rig, eq);
    unlink_events_are_asked_for(&rig, eq);
    rig_end(&rig);
    return 0;
}
