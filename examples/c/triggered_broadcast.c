/*
 * A broadcast along a binomial tree that progresses by itself: each rank sets up in advance that what
 * arrives is passed on, then computes.
 *
 *     yod -n 8 ./triggered_broadcast
 *
 * PtlTriggeredPut: the put to each child starts when the counter of arrivals reaches 1.
 */
#include "check.h"

int main(void)
{
    struct job      job = job_open(PTL_NI_NO_MATCHING);
    ptl_handle_ct_t arrived;
    ptl_handle_le_t entry;
    ptl_handle_md_t from;
    ptl_pt_index_t  portal;
    ptl_ct_event_t  count;
    double          value = job.rank == 0 ? 2.5 : 0;

    CHECK(PtlCTAlloc(job.ni, &arrived));
    CHECK(PtlPTAlloc(job.ni, 0, PTL_EQ_NONE, 0, &portal));
    CHECK(PtlLEAppend(job.ni, portal,
                      &(ptl_le_t){&value, sizeof value, arrived, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM},
                      PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){&value, sizeof value, 0, PTL_EQ_NONE, PTL_CT_NONE}, &from));
    job_ready(&job);

    /* The children of a rank are the ranks that differ from it in one bit above its highest. */
    for (int bit = 1; bit < job.size; bit *= 2) {
        if (bit > job.rank && job.rank + bit < job.size) {
            CHECK(PtlTriggeredPut(from, 0, sizeof value, PTL_NO_ACK_REQ, job.ranks[job.rank + bit], portal, 0, 0, NULL,
                                  0, arrived, 1));
        }
    }
    if (job.rank == 0) {
        CHECK(PtlCTInc(arrived, (ptl_ct_event_t){.success = 1})); /* the value is there: start */
    }
    CHECK(PtlCTWait(arrived, 1, &count));
    EXPECT(value == 2.5);
    CHECK(ptljob_barrier());
    if (job.rank == 0) {
        printf("%d ranks have the value\n", job.size);
    }
    job_close(&job);
    return 0;
}
