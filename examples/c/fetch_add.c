/*
 * A counter at rank 0 that all ranks increment: each gets a number that nobody else has.
 *
 *     yod -n 4 ./fetch_add
 *
 * PtlFetchAtomic on a list entry; rank 0 needn't do anything.
 */
#include "check.h"

#define DRAWS 1000

int main(void)
{
    struct job      job = job_open(PTL_NI_NO_MATCHING);
    ptl_handle_ct_t replies;
    ptl_handle_le_t entry;
    ptl_handle_md_t operand, result;
    ptl_pt_index_t  portal;
    ptl_ct_event_t  count;
    uint64_t        shared = 0, one = 1, drawn = 0, last = 0;

    CHECK(PtlPTAlloc(job.ni, 0, PTL_EQ_NONE, 0, &portal));
    CHECK(PtlLEAppend(job.ni, portal,
                      &(ptl_le_t){&shared, sizeof shared, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_OP_GET},
                      PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlCTAlloc(job.ni, &replies));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){&one, sizeof one, 0, PTL_EQ_NONE, PTL_CT_NONE}, &operand));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){&drawn, sizeof drawn, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replies}, &result));
    job_ready(&job);

    for (ptl_size_t draw = 1; draw <= DRAWS; draw++) {
        CHECK(PtlFetchAtomic(result, 0, operand, 0, sizeof one, job.ranks[0], portal, 0, 0, NULL, 0, PTL_SUM,
                             PTL_UINT64_T));
        CHECK(PtlCTWait(replies, draw, &count));
        EXPECT(draw == 1 || drawn > last);
        last = drawn;
    }
    CHECK(ptljob_barrier());
    if (job.rank == 0) {
        printf("%llu numbers drawn\n", (unsigned long long)shared);
        EXPECT(shared == (uint64_t)job.size * DRAWS);
    }
    job_close(&job);
    return 0;
}
