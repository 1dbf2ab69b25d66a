/*
 * A long message without a copy: the sender publishes its buffer and sends a short notice; the
 * receiver gets the bytes when it has room for them.
 *
 *     yod -n 2 ./rendezvous
 *
 * The put that carries the notice has the length in hdr_data; PtlGet fetches the body.
 */
#include "check.h"

#define NOTICE 1
#define BODY   2
#define LENGTH (4u << 20)

static ptl_me_t entry_of(void *start, size_t length, unsigned int options, ptl_match_bits_t bits)
{
    ptl_me_t me = {.start = start, .length = length, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                   .options    = options | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id   = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                   .match_bits = bits};
    return me;
}

int main(void)
{
    struct job      job = job_open(PTL_NI_MATCHING);
    ptl_handle_eq_t events;
    ptl_handle_me_t entry;
    ptl_handle_md_t md;
    ptl_pt_index_t  portal;
    unsigned char  *out = malloc(LENGTH), *in = calloc(LENGTH, 1);
    int             to = (job.rank + 1) % job.size, from = (job.rank + job.size - 1) % job.size;
    int             fetched = 0, given = 0;

    memset(out, job.rank + 1, LENGTH);
    CHECK(PtlEQAlloc(job.ni, 16, &events));
    CHECK(PtlPTAlloc(job.ni, 0, events, 0, &portal));
    ptl_me_t notice = entry_of(NULL, 0, PTL_ME_OP_PUT, NOTICE);
    ptl_me_t body   = entry_of(out, LENGTH, PTL_ME_OP_GET, BODY);
    CHECK(PtlMEAppend(job.ni, portal, &notice, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMEAppend(job.ni, portal, &body, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMDBind(job.ni, &(ptl_md_t){in, LENGTH, PTL_MD_EVENT_SEND_DISABLE, events, PTL_CT_NONE}, &md));
    job_ready(&job);

    CHECK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, job.ranks[to], portal, NOTICE, 0, NULL, LENGTH));
    while (!fetched || !given) {
        ptl_event_t event = next_event(events);
        switch (event.type) {
        case PTL_EVENT_PUT: /* the notice */
            EXPECT(event.hdr_data == LENGTH);
            CHECK(PtlGet(md, 0, event.hdr_data, event.initiator, portal, BODY, 0, NULL));
            break;
        case PTL_EVENT_REPLY: /* the body is here */
            EXPECT(event.mlength == LENGTH);
            fetched = 1;
            break;
        case PTL_EVENT_GET: /* the peer has ours */
            given = 1;
            break;
        default:
            EXPECT(!"an event that nobody asked for");
        }
    }
    for (size_t at = 0; at < LENGTH; at++) {
        EXPECT(in[at] == (unsigned char)(from + 1));
    }
    if (job.rank == 0) {
        printf("%u bytes, fetched by their receiver\n", LENGTH);
    }
    job_close(&job);
    free(out);
    free(in);
    return 0;
}
