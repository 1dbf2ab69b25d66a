/*
 * Messages arrive before anybody waits for them: they land on the overflow
 * list, a search finds them, and entries appended later meet them in order. A
 * message that nothing matches is dropped, counted, and reported to its sender.
 */
#include "rig.h"

#define PORTAL 9
#define MESSAGES 6
#define LENGTH 512

static void send_one(const struct rig *rig, ptl_handle_md_t md, ptl_handle_eq_t eq, unsigned int number, ptl_ni_fail_t how)
{
    OK(PtlPut(md, number * LENGTH, LENGTH, PTL_ACK_REQ, rig_peer(rig), PORTAL, number, 0, NULL, number * 1000));
    ptl_event_t event = rig_event_failing(eq, PTL_EVENT_ACK, how);
    if (how == PTL_NI_OK) {
        SAME(event.ptl_list, PTL_OVERFLOW_LIST);
        SAME(event.mlength, LENGTH);
    }
}

static void initiator(const struct rig *rig)
{
    static unsigned char out[(MESSAGES + 1) * LENGTH];
    ptl_handle_eq_t      eq;
    ptl_handle_md_t      handle;
    OK(PtlEQAlloc(rig->ni, 64, &eq));
    ptl_md_t md = {.start = out, .length = sizeof out, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
    md.options  = PTL_MD_EVENT_SEND_DISABLE;
    OK(PtlMDBind(rig->ni, &md, &handle));
    for (unsigned int number = 0; number < MESSAGES; number++) {
        rig_fill(out + number * LENGTH, LENGTH, number);
    }
    pmi_barrier(&rig->pmi); /* the overflow entry stands */
    for (unsigned int number = 0; number < MESSAGES; number++) {
        send_one(rig, handle, eq, number, PTL_NI_OK);
    }
    send_one(rig, handle, eq, MESSAGES, PTL_NI_DROPPED); /* the entry is full */
    pmi_barrier(&rig->pmi);
}

static ptl_me_t entry(void *start, size_t length, ptl_match_bits_t bits)
{
    ptl_me_t me = {.start = start, .length = length, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.match_bits        = bits;
    me.options           = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
    return me;
}

static void post_overflow(const struct rig *rig, unsigned char *overflow)
{
    ptl_handle_me_t handle;
    ptl_me_t        me = entry(overflow, MESSAGES * LENGTH, 0);
    me.ignore_bits     = ~(ptl_match_bits_t)0;
    me.min_free        = LENGTH;
    me.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_COMM_DISABLE;
    OK(PtlMEAppend(rig->ni, PORTAL, &me, PTL_OVERFLOW_LIST, overflow, &handle));
}

static void check_found(const ptl_event_t *event, const unsigned char *overflow, unsigned int number)
{
    SAME((uintptr_t)event->start, (uintptr_t)(overflow + number * LENGTH));
    SAME(event->mlength, LENGTH);
    SAME(event->rlength, LENGTH);
    SAME(event->match_bits, number);
    SAME(event->hdr_data, number * 1000);
    rig_check_fill(event->start, LENGTH, number);
}

static void search(const struct rig *rig, ptl_handle_eq_t eq, const unsigned char *overflow)
{
    ptl_me_t    me = entry(NULL, 0, 2);
    ptl_event_t event;
    OK(PtlMESearch(rig->ni, PORTAL, &me, PTL_SEARCH_ONLY, &me));
    event = rig_event(eq, PTL_EVENT_SEARCH);
    SAME(event.hdr_data, 2000);
    OK(PtlMESearch(rig->ni, PORTAL, &me, PTL_SEARCH_DELETE, &me));
    event = rig_event(eq, PTL_EVENT_PUT_OVERFLOW);
    check_found(&event, overflow, 2);
    OK(PtlMESearch(rig->ni, PORTAL, &me, PTL_SEARCH_ONLY, &me));
    rig_event_failing(eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
}

static void meet(const struct rig *rig, ptl_handle_eq_t eq, const unsigned char *overflow, unsigned int number)
{
    unsigned char   unused[LENGTH];
    ptl_handle_me_t handle;
    ptl_me_t        me = entry(unused, LENGTH, number);
    OK(PtlMEAppend(rig->ni, PORTAL, &me, PTL_PRIORITY_LIST, &me, &handle));
    ptl_event_t event = rig_event(eq, PTL_EVENT_PUT_OVERFLOW);
    SAME((uintptr_t)event.user_ptr, (uintptr_t)&me);
    check_found(&event, overflow, number);
}

static void target(const struct rig *rig)
{
    static unsigned char overflow[MESSAGES * LENGTH];
    ptl_handle_eq_t      eq;
    ptl_pt_index_t       portal;
    ptl_sr_value_t       drops;
    OK(PtlEQAlloc(rig->ni, 64, &eq));
    OK(PtlPTAlloc(rig->ni, 0, eq, PORTAL, &portal));
    post_overflow(rig, overflow);
    rig_event(eq, PTL_EVENT_LINK);
    pmi_barrier(&rig->pmi);
    pmi_barrier(&rig->pmi); /* everything was sent */
    rig_event(eq, PTL_EVENT_AUTO_UNLINK);
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &drops));
    SAME(drops, 1);
    search(rig, eq, overflow);
    for (unsigned int number = 0; number < MESSAGES; number++) {
        if (number != 2) {
            meet(rig, eq, overflow, number);
        }
    }
    ptl_event_t event = rig_event(eq, PTL_EVENT_AUTO_FREE);
    SAME((uintptr_t)event.user_ptr, (uintptr_t)overflow);
    ANSWERS(PTL_OK, PtlPTDisable(rig->ni, PORTAL));
}

int main(void)
{
    struct rig rig = rig_begin(PTL_NI_MATCHING);
    if (rig.pmi.rank == 0) {
        initiator(&rig);
    } else {
        target(&rig);
    }
    rig_end(&rig);
    return 0;
}
