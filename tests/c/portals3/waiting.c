/*
 * Callers that wait for events: an event wakes them, and so does the end of what they wait for, by
 * PtlEQFree and by PtlNIFini of another thread. A call for several queues serves each in turn.
 */
#include "rig3.h"

#include <stdatomic.h>

#define PT 6

static unsigned char target[64], source[64];

struct waiter {
    thrd_t          thread;
    ptl_handle_eq_t eq[2];
    int             count;
    atomic_int      begun;
    int             code;
};

static int wait_for_one(void *argument)
{
    struct waiter *waiter = argument;
    ptl_event_t    event;
    atomic_store(&waiter->begun, 1);
    waiter->code = PtlEQWait(waiter->eq[0], &event);
    return 0;
}

static int wait_for_any(void *argument)
{
    struct waiter *waiter = argument;
    ptl_event_t    event;
    int            which;
    atomic_store(&waiter->begun, 1);
    waiter->code = PtlEQPoll(waiter->eq, waiter->count, PTL_TIME_FOREVER, &event, &which);
    return 0;
}

static void start(struct waiter *waiter, thrd_start_t how)
{
    atomic_init(&waiter->begun, 0);
    waiter->code = -1;
    SAME(thrd_create(&waiter->thread, how, waiter), thrd_success);
    rig_until(atomic_load(&waiter->begun));
}

static void ends(struct waiter *waiter, int code)
{
    SAME(thrd_join(waiter->thread, NULL), thrd_success);
    SAME(waiter->code, code);
}

static void event_wakes(struct rig *rig, ptl_handle_eq_t eq)
{
    struct waiter   one = {.eq = {eq, eq}, .count = 1}, other = one;
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    me = rig_attach(rig, PT, 1, rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
                                       PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN, &md);
    start(&one, wait_for_one);
    start(&other, wait_for_any);
    OK(PtlMDBind(rig->ni, rig_md(source, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
    OK(PtlPut(md, PTL_NO_ACK_REQ, rig->me, PT, 0, 1, 0, 0));
    OK(PtlPut(md, PTL_NO_ACK_REQ, rig->me, PT, 0, 1, 0, 0));
    ends(&one, PTL_OK);
    ends(&other, PTL_OK);
    OK(PtlMDUnlink(md));
    OK(PtlMEUnlink(me));
}

static void freed_queue_wakes(struct rig *rig, ptl_handle_eq_t eq)
{
    struct waiter one = {.count = 1}, any = {.count = 2};
    OK(PtlEQAlloc(rig->ni, 4, PTL_EQ_HANDLER_NONE, &one.eq[0]));
    any.eq[0] = eq;
    any.eq[1] = one.eq[0];
    start(&one, wait_for_one);
    start(&any, wait_for_any);
    OK(PtlEQFree(one.eq[0]));
    ends(&one, PTL_EQ_INVALID);
    ends(&any, PTL_EQ_INVALID);
}

/* A queue that never runs empty doesn't keep another one waiting. */
static void queues_take_turns(struct rig *rig, ptl_handle_eq_t eq)
{
    ptl_handle_eq_t eqs[2] = {eq};
    ptl_handle_md_t md, from;
    ptl_event_t     event;
    int             which, served[2] = {0, 0};
    OK(PtlEQAlloc(rig->ni, 16, PTL_EQ_HANDLER_NONE, &eqs[1]));
    OK(PtlMDBind(rig->ni, rig_md(source, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &from));
    for (int at = 0; at < 2; at++) {
        ptl_handle_me_t me = rig_attach(rig, PT, 2 + at,
                                        rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
                                               PTL_MD_EVENT_START_DISABLE, eqs[at]),
                                        PTL_RETAIN, &md);
        for (int put = 0; put < 8; put++) {
            OK(PtlPut(from, PTL_NO_ACK_REQ, rig->me, PT, 0, 2 + at, 0, 0));
        }
        OK(PtlMEUnlink(me));
    }
    for (int taken = 0; taken < 8; taken++) {
        OK(PtlEQPoll(eqs, 2, PATIENCE_MS, &event, &which));
        served[which]++;
    }
    SAME(served[0], 4);
    SAME(served[1], 4);
    while (PtlEQPoll(eqs, 2, 0, &event, &which) == PTL_OK) {
    }
    OK(PtlMDUnlink(from));
    OK(PtlEQFree(eqs[1]));
}

static void closed_interface_wakes(struct rig *rig, ptl_handle_eq_t eq)
{
    struct waiter one = {.eq = {eq, eq}, .count = 1}, any = {.eq = {eq, eq}, .count = 2};
    start(&one, wait_for_one);
    start(&any, wait_for_any);
    OK(PtlNIFini(rig->ni));
    ends(&one, PTL_EQ_INVALID);
    ends(&any, PTL_EQ_INVALID);
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(rig.ni, 16, PTL_EQ_HANDLER_NONE, &eq));
    event_wakes(&rig, eq);
    freed_queue_wakes(&rig, eq);
    queues_take_turns(&rig, eq);
    pmi_barrier(&rig.pmi);
    closed_interface_wakes(&rig, eq);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &rig.ni));
    rig_end(&rig);
    return 0;
}
