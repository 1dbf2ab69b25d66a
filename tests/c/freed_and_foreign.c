/*
 * A thread that waits for an object that another thread frees is woken. A counter that isn't
 * one is refused, even where nothing would be counted. A descriptor is free once
 * the acknowledgement has arrived, though the program hasn't looked since.
 */
#include "rig.h"

#include <pthread.h>

struct waiter {
    pthread_t       thread;
    ptl_handle_ct_t ct;
    ptl_handle_eq_t eq;
    int             ct_answer, eq_answer;
};

static void *wait_for_counter(void *of)
{
    struct waiter *waiter = of;
    ptl_ct_event_t seen;
    waiter->ct_answer = PtlCTWait(waiter->ct, 1, &seen);
    return NULL;
}

static void *wait_for_event(void *of)
{
    struct waiter *waiter = of;
    ptl_event_t    seen;
    waiter->eq_answer = PtlEQWait(waiter->eq, &seen);
    return NULL;
}

static void freeing_ends_waiting(const struct rig *rig)
{
    for (int round = 0; round < 20; round++) {
        struct waiter waiter;
        OK(PtlCTAlloc(rig->ni, &waiter.ct));
        OK(pthread_create(&waiter.thread, NULL, wait_for_counter, &waiter));
        OK(PtlCTFree(waiter.ct));
        OK(pthread_join(waiter.thread, NULL));
        SAME(waiter.ct_answer, PTL_ARG_INVALID);

        OK(PtlEQAlloc(rig->ni, 8, &waiter.eq));
        OK(pthread_create(&waiter.thread, NULL, wait_for_event, &waiter));
        OK(PtlEQFree(waiter.eq));
        OK(pthread_join(waiter.thread, NULL));
        SAME(waiter.eq_answer, PTL_ARG_INVALID);
    }
}

static void foreign_counters_are_refused(const struct rig *rig)
{
    ptl_handle_ni_t other;
    ptl_handle_ct_t freed, foreign;
    ptl_handle_eq_t queue;
    ptl_pt_index_t  pt;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other));
    OK(PtlCTAlloc(other, &foreign));
    OK(PtlCTAlloc(rig->ni, &freed));
    OK(PtlCTFree(freed));
    OK(PtlEQAlloc(rig->ni, 8, &queue));
    OK(PtlPTAlloc(rig->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));

    ptl_handle_le_t entry;
    ptl_le_t        le = { .uid = PTL_UID_ANY, .options = PTL_LE_OP_PUT };
    const ptl_handle_ct_t wrong[] = { PTL_INVALID_HANDLE, foreign, freed, queue };
    for (size_t which = 0; which < sizeof wrong / sizeof *wrong; which++) {
        le.ct_handle = wrong[which];
        ANSWERS(PTL_ARG_INVALID, PtlLEAppend(rig->ni, pt, &le, PTL_PRIORITY_LIST, NULL, &entry));
    }
    const ptl_handle_ct_t none[] = { PTL_CT_NONE, 0 };
    for (size_t which = 0; which < sizeof none / sizeof *none; which++) {
        le.ct_handle = none[which];
        OK(PtlLEAppend(rig->ni, pt, &le, PTL_PRIORITY_LIST, NULL, &entry));
        OK(PtlLEUnlink(entry));
    }
    OK(PtlPTFree(rig->ni, pt));
    OK(PtlEQFree(queue));
    OK(PtlNIFini(other));
}

/* Rank 0 looks at nothing between the put and the end of the descriptor. */
static void acknowledged_descriptors_are_free(const struct rig *rig)
{
    ptl_handle_ct_t ct;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    ptl_pt_index_t  pt;
    OK(PtlCTAlloc(rig->ni, &ct));
    OK(PtlPTAlloc(rig->ni, 0, PTL_EQ_NONE, 1, &pt));
    if (rig->pmi.rank == 1) {
        ptl_le_t le = { .uid = PTL_UID_ANY, .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM, .ct_handle = ct };
        OK(PtlLEAppend(rig->ni, pt, &le, PTL_PRIORITY_LIST, NULL, &entry));
    }
    for (int round = 1; round <= 100; round++) {
        ptl_handle_md_t put;
        ptl_md_t        md = { .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = ct };
        OK(PtlMDBind(rig->ni, &md, &put));
        pmi_barrier(&rig->pmi);
        if (rig->pmi.rank == 0) {
            OK(PtlPut(put, 0, 0, PTL_CT_ACK_REQ, rig_peer(rig), pt, 0, 0, NULL, 0));
        } else {
            rig_count(ct, (ptl_size_t)round);
            OK(PtlAtomicSync()); /* what is begun has ended: the answer is out */
        }
        pmi_barrier(&rig->pmi);
        OK(PtlMDRelease(put));
    }
    if (rig->pmi.rank == 0) {
        rig_count(ct, 100);
    } else {
        OK(PtlLEUnlink(entry));
    }
    OK(PtlPTFree(rig->ni, pt));
    OK(PtlCTFree(ct));
}

int main(void)
{
    OK(PtlInit());
    ANSWERS(PTL_ARG_INVALID, PtlNIFini(PTL_INVALID_HANDLE));
    struct rig rig = rig_begin(PTL_NI_NO_MATCHING);
    freeing_ends_waiting(&rig);
    foreign_counters_are_refused(&rig);
    acknowledged_descriptors_are_free(&rig);
    rig_end(&rig);
    PtlFini();
    return 0;
}
