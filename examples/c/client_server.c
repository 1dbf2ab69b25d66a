/*
 * A server that any number of clients call: requests go into one long buffer, answers straight into
 * the client's memory.
 *
 *     yod -n 4 ./client_server        rank 0 serves
 *
 * A locally managed entry packs requests one behind the other; hdr_data carries the number of the call.
 */
#include "check.h"

#define CALLS    200
#define REQUESTS 0
#define ANSWERS  1

static void append(const struct job *job, ptl_pt_index_t portal, void *start, size_t length, unsigned int options)
{
    ptl_handle_me_t entry;
    ptl_me_t        me = {.start = start, .length = length, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                          .options  = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | options,
                          .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
    CHECK(PtlMEAppend(job->ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

/* Answers each number with its square. */
static void serve(const struct job *job, ptl_handle_eq_t requests)
{
    long            answer;
    ptl_handle_md_t from;
    ptl_md_t        md = {&answer, sizeof answer, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE};
    CHECK(PtlMDBind(job->ni, &md, &from));
    for (int served = 0; served < (job->size - 1) * CALLS; served++) {
        ptl_event_t request = next_event(requests);
        EXPECT(request.type == PTL_EVENT_PUT);
        long number;
        memcpy(&number, request.start, sizeof number);
        answer = number * number;
        CHECK(PtlPut(from, 0, sizeof answer, PTL_NO_ACK_REQ, request.initiator, ANSWERS, 0, 0, NULL, request.hdr_data));
    }
    printf("%d calls answered\n", (job->size - 1) * CALLS);
}

static void call(const struct job *job, ptl_handle_eq_t answers, const long *answer)
{
    long            number;
    ptl_handle_md_t from;
    ptl_md_t        md = {&number, sizeof number, 0, PTL_EQ_NONE, PTL_CT_NONE};
    CHECK(PtlMDBind(job->ni, &md, &from));
    for (number = 0; number < CALLS; number++) {
        CHECK(PtlPut(from, 0, sizeof number, PTL_NO_ACK_REQ, job->ranks[0], REQUESTS, 0, 0, NULL, (ptl_hdr_data_t)number));
        ptl_event_t event = next_event(answers);
        EXPECT(event.hdr_data == (ptl_hdr_data_t)number && *answer == number * number);
    }
}

int main(void)
{
    struct job      job = job_open(PTL_NI_MATCHING);
    ptl_handle_eq_t events;
    ptl_pt_index_t  index;
    long            answer = 0;
    size_t          length = (size_t)job.size * CALLS * sizeof(long);
    char           *room   = malloc(length);

    CHECK(PtlEQAlloc(job.ni, 1024, &events));
    CHECK(PtlPTAlloc(job.ni, 0, events, REQUESTS, &index));
    CHECK(PtlPTAlloc(job.ni, 0, events, ANSWERS, &index));
    append(&job, REQUESTS, room, length, PTL_ME_MANAGE_LOCAL);
    append(&job, ANSWERS, &answer, sizeof answer, 0);
    job_ready(&job);
    if (job.rank == 0) {
        serve(&job, events);
    } else {
        call(&job, events, &answer);
    }
    job_close(&job);
    free(room);
    return 0;
}
