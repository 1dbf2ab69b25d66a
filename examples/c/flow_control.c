/*
 * A receiver that runs out of room, and senders that notice and resume.
 *
 *     yod -n 3 ./flow_control
 *
 * With PTL_PT_FLOWCTRL a message that finds no entry disables the portal table entry instead of
 * being lost: the sender's acknowledgement reports PTL_NI_PT_DISABLED and it sends again later. The
 * receiver gets PTL_EVENT_PT_DISABLED, makes room and calls PtlPTEnable.
 */
#include "check.h"

#define MESSAGES 50
#define POSTED   4

static void post(const struct job *job, ptl_pt_index_t portal, long *into)
{
    ptl_handle_me_t entry;
    ptl_me_t        me = {.start = into, .length = sizeof *into, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                          .options  = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                          .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
    CHECK(PtlMEAppend(job->ni, portal, &me, PTL_PRIORITY_LIST, into, &entry));
}

/* Rank 0: takes every message of the others, and makes room only once it has none. */
static void receive(const struct job *job, ptl_pt_index_t portal, ptl_handle_eq_t events)
{
    long expected = (long)(job->size - 1) * MESSAGES, sum = 0, taken = 0;
    int  used = 0, disabled = 0;
    long *empty[POSTED];
    while (taken < expected) {
        ptl_event_t event;
        CHECK(PtlEQWait(events, &event));
        if (event.type == PTL_EVENT_PUT) {
            EXPECT(event.ni_fail_type == PTL_NI_OK);
            empty[used] = event.user_ptr;
            sum += *empty[used++];
            taken++;
        } else if (event.type == PTL_EVENT_PT_DISABLED) {
            while (used > 0) {
                post(job, portal, empty[--used]);
            }
            CHECK(PtlPTEnable(job->ni, portal));
            disabled++;
        }
    }
    EXPECT(sum == expected * (MESSAGES - 1) / 2);
    EXPECT(job->size == 1 || disabled > 0);
    printf("%ld messages through room for %d, disabled in between\n", taken, POSTED);
}

/* The others: send each message until it has been taken. */
static void send(const struct job *job, ptl_pt_index_t portal, ptl_handle_eq_t events)
{
    long            value;
    ptl_handle_md_t from;
    ptl_md_t        md = {&value, sizeof value, PTL_MD_EVENT_SEND_DISABLE, events, PTL_CT_NONE};
    CHECK(PtlMDBind(job->ni, &md, &from));
    for (value = 0; value < MESSAGES; value++) {
        ptl_event_t ack;
        do {
            CHECK(PtlPut(from, 0, sizeof value, PTL_ACK_REQ, job->ranks[0], portal, 0, 0, NULL, 0));
            CHECK(PtlEQWait(events, &ack));
            EXPECT(ack.ni_fail_type == PTL_NI_OK || ack.ni_fail_type == PTL_NI_PT_DISABLED);
        } while (ack.ni_fail_type != PTL_NI_OK);
    }
    CHECK(PtlMDRelease(from));
}

int main(void)
{
    struct job      job = job_open(PTL_NI_MATCHING);
    ptl_handle_eq_t events;
    ptl_pt_index_t  portal;
    long            room[POSTED];

    CHECK(PtlEQAlloc(job.ni, 256, &events));
    CHECK(PtlPTAlloc(job.ni, PTL_PT_FLOWCTRL, events, 0, &portal));
    for (int at = 0; job.rank == 0 && at < POSTED; at++) {
        post(&job, portal, &room[at]);
    }
    job_ready(&job);
    if (job.rank == 0) {
        receive(&job, portal, events);
    } else {
        send(&job, portal, events);
    }
    job_close(&job);
    return 0;
}
