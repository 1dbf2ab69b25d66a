/*
 * Operations to a process that has ended fail by events, those that begin long after it
 * has ended too: a program that waits for them would wait for ever.
 */
#include "rig3.h"

enum { PORTAL = 4, BITS = 1, COUNT = 5 };

static char memory[64];

static void serve(struct rig *rig, ptl_handle_eq_t queue)
{
    ptl_handle_md_t md;
    unsigned options = PTL_MD_OP_GET | PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    rig_attach(rig, PORTAL, BITS, rig_md(memory, sizeof memory, options, queue), PTL_RETAIN, &md);
    pmi_barrier(&rig->pmi);
    rig_event(queue, PTL_EVENT_GET_END);
}

/* Without a barrier: one side ends long before the other. */
static int end(struct rig *rig)
{
    OK(PtlNIFini(rig->ni));
    PtlFini();
    pmi_end(&rig->pmi);
    return 0;
}

/* Gets from the peer until one fails: as long as its process lives without an interface, they are dropped. */
static void await_its_end(struct rig *rig, ptl_handle_eq_t queue, ptl_handle_md_t md)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 100) {
        ptl_event_t event;
        int         which;
        OK(PtlGet(md, rig->peer, PORTAL, 0, BITS, 0));
        if (PtlEQPoll(&queue, 1, 100, &event, &which) == PTL_OK) {
            SAME(event.type, PTL_EVENT_REPLY_END);
            if (event.ni_fail_type == PTL_NI_FAIL)
                return;
        }
    }
    rig_fail(__FILE__, __LINE__, "no get fails", 0);
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_eq_t queue;
    ptl_handle_md_t md;
    OK(PtlEQAlloc(rig.ni, 1024, NULL, &queue));
    if (rig_rank == 1) {
        serve(&rig, queue);
        return end(&rig);
    }
    OK(PtlMDBind(rig.ni, rig_md(memory, 8, PTL_MD_EVENT_START_DISABLE, queue), PTL_RETAIN, &md));
    pmi_barrier(&rig.pmi);
    OK(PtlGet(md, rig.peer, PORTAL, 0, BITS, 0));
    rig_event(queue, PTL_EVENT_REPLY_END);
    await_its_end(&rig, queue, md);
    /* Of a queue of its own: several gets may have waited for the end. */
    OK(PtlEQAlloc(rig.ni, 64, NULL, &queue));
    OK(PtlMDBind(rig.ni, rig_md(memory, 8, PTL_MD_EVENT_START_DISABLE, queue), PTL_RETAIN, &md));
    for (int i = 0; i < COUNT; i++) {
        OK(PtlGet(md, rig.peer, PORTAL, 0, BITS, 0));
        OK(PtlPut(md, PTL_ACK_REQ, rig.peer, PORTAL, 0, BITS, 0, 0));
    }
    /* A put that couldn't be sent has no acknowledgement. */
    int gets = 0, puts = 0;
    while (gets < COUNT || puts < COUNT) {
        ptl_event_t event;
        int         which;
        OK(PtlEQPoll(&queue, 1, PATIENCE_MS, &event, &which));
        gets += event.type == PTL_EVENT_REPLY_END && event.ni_fail_type == PTL_NI_FAIL;
        puts += event.type != PTL_EVENT_REPLY_END && event.ni_fail_type == PTL_NI_FAIL;
    }
    SAME(gets, COUNT);
    SAME(puts, COUNT);
    OK(PtlMDUnlink(md));
    printf("gone: ok\n");
    return end(&rig);
}
