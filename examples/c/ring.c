/*
 * A token goes round the ranks, each of which adds its rank to it.
 *
 *     yod -n 4 ./ring
 *
 * Matching put, event queue at the target, counter at the origin.
 */
#include "check.h"

#define TAG 7

int main(void)
{
    struct job      job = job_open(PTL_NI_MATCHING);
    ptl_handle_eq_t arrivals;
    ptl_handle_me_t entry;
    ptl_handle_md_t from;
    ptl_pt_index_t  portal;
    long            token = 0, received = 0;
    int             next  = (job.rank + 1) % job.size;

    CHECK(PtlEQAlloc(job.ni, 16, &arrivals));
    CHECK(PtlPTAlloc(job.ni, 0, arrivals, 0, &portal));
    ptl_me_t me = {.start = &received, .length = sizeof received, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                   .options    = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id   = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                   .match_bits = TAG};
    CHECK(PtlMEAppend(job.ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){&token, sizeof token, 0, PTL_EQ_NONE, PTL_CT_NONE}, &from));
    job_ready(&job);

    /* Rank 0 begins; the others wait for the token first. */
    if (job.rank == 0) {
        CHECK(PtlPut(from, 0, sizeof token, PTL_NO_ACK_REQ, job.ranks[next], portal, TAG, 0, NULL, 0));
    }
    ptl_event_t event = next_event(arrivals);
    EXPECT(event.type == PTL_EVENT_PUT && event.mlength == sizeof token);
    if (job.rank == 0) {
        printf("the ranks' sum is %ld\n", received);
        EXPECT(received == (long)job.size * (job.size - 1) / 2);
    } else {
        token = received + job.rank;
        CHECK(PtlPut(from, 0, sizeof token, PTL_NO_ACK_REQ, job.ranks[next], portal, TAG, 0, NULL, 0));
    }
    job_close(&job);
    return 0;
}
