/*
 * Messages arrive before anybody waits for them; a receive that is posted later finds them.
 *
 *     yod -n 2 ./unexpected
 *
 * The overflow list takes what matches no entry of the priority list. PtlMEAppend then posts
 * PTL_EVENT_PUT_OVERFLOW with the address of the bytes, which the program copies.
 */
#include "check.h"

#define MESSAGES 8
#define ROOM     4096

int main(void)
{
    struct job      job = job_open(PTL_NI_MATCHING);
    ptl_handle_eq_t events;
    ptl_handle_me_t overflow, entry;
    ptl_handle_md_t from;
    ptl_pt_index_t  portal;
    static char     room[ROOM];
    char            text[64], wanted[64];
    int             peer = (job.rank + 1) % job.size;

    CHECK(PtlEQAlloc(job.ni, 64, &events));
    CHECK(PtlPTAlloc(job.ni, 0, events, 0, &portal));
    ptl_me_t all = {.start = room, .length = ROOM, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                    .options     = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE,
                    .match_id    = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                    .ignore_bits = ~0ull,
                    .min_free    = sizeof text};
    CHECK(PtlMEAppend(job.ni, portal, &all, PTL_OVERFLOW_LIST, NULL, &overflow));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){text, sizeof text, PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE}, &from));
    job_ready(&job);

    for (int tag = 0; tag < MESSAGES; tag++) {
        snprintf(text, sizeof text, "message %d from rank %d", tag, job.rank);
        CHECK(PtlPut(from, 0, sizeof text, PTL_NO_ACK_REQ, job.ranks[peer], portal, (ptl_match_bits_t)tag, 0, NULL, 0));
    }
    CHECK(ptljob_barrier());

    /* In another order than they were sent. */
    for (int tag = MESSAGES - 1; tag >= 0; tag--) {
        char     into[64] = "";
        ptl_me_t one = {.start = into, .length = sizeof into, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                        .options    = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                        .match_id   = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                        .match_bits = (ptl_match_bits_t)tag};
        CHECK(PtlMEAppend(job.ni, portal, &one, PTL_PRIORITY_LIST, into, &entry));
        ptl_event_t event;
        do {
            event = next_event(events);
        } while (event.type != PTL_EVENT_PUT && event.type != PTL_EVENT_PUT_OVERFLOW);
        EXPECT(event.user_ptr == into);
        if (event.type == PTL_EVENT_PUT_OVERFLOW) {
            memcpy(into, event.start, event.mlength);
        }
        snprintf(wanted, sizeof wanted, "message %d from rank %d", tag, (job.rank + job.size - 1) % job.size);
        EXPECT(strcmp(into, wanted) == 0);
    }
    if (job.rank == 0) {
        printf("%d messages found, the last one first\n", MESSAGES);
    }
    CHECK(PtlMEUnlink(overflow));
    job_close(&job);
    return 0;
}
