/*
 * Data movement between two ranks: put, get, getput and their regions, of short and long messages,
 * each with its START and END events, links and sequence numbers, and acknowledgements.
 */
#include "rig3.h"

#define PT 4
#define LONG (1 << 20)

static unsigned char local[LONG], remote[LONG];

static void fill(unsigned char *bytes, size_t length, unsigned char first)
{
    for (size_t at = 0; at < length; at++) {
        bytes[at] = (unsigned char)(first + at);
    }
}

static void check(const unsigned char *bytes, size_t length, unsigned char first)
{
    for (size_t at = 0; at < length; at++) {
        SAME(bytes[at], (unsigned char)(first + at));
    }
}

static void pair(ptl_handle_eq_t eq, ptl_event_kind_t start, ptl_event_t *end)
{
    ptl_event_t begun = rig_event(eq, start);
    *end = rig_event(eq, (ptl_event_kind_t)(start + 1));
    SAME(begun.link, begun.sequence);
    SAME(end->link, begun.sequence);
    SAME(end->sequence, begun.sequence + 1);
}

/* The initiator's side; the other rank's memory begins with `first`. */
static void move(struct rig *rig, size_t length, ptl_handle_eq_t eq)
{
    ptl_handle_md_t md;
    ptl_event_t     event;
    OK(PtlMDBind(rig->ni, rig_md(local, length, 0, eq), PTL_RETAIN, &md));
    fill(local, length, 1);
    OK(PtlPut(md, PTL_ACK_REQ, rig->peer, PT, 0, 7, 0, 99));
    pair(eq, PTL_EVENT_SEND_START, &event);
    SAME(event.mlength, length);
    event = rig_event(eq, PTL_EVENT_ACK);
    SAME(event.mlength, length);
    SAME(event.rlength, length);
    SAME(event.match_bits, 7);
    SAME(event.initiator.pid, rig->peer.pid);
    SAME(event.md_handle, md);
    SAME(event.md.user_ptr == local, 1);

    memset(local, 0, length);
    OK(PtlGet(md, rig->peer, PT, 0, 7, 0));
    pair(eq, PTL_EVENT_REPLY_START, &event);
    SAME(event.mlength, length);
    check(local, length, 1);

    OK(PtlPutRegion(md, 1, 3, PTL_NO_ACK_REQ, rig->peer, PT, 0, 7, 8, 5));
    pair(eq, PTL_EVENT_SEND_START, &event);
    memset(local, 0, length);
    OK(PtlGetRegion(md, 2, 3, rig->peer, PT, 0, 7, 8));
    pair(eq, PTL_EVENT_REPLY_START, &event);
    SAME(local[0] + local[1], 0);
    check(local + 2, 3, 2);
    rig_no_event(eq);
    OK(PtlMDUnlink(md));
}

static void receive(ptl_handle_eq_t eq, ptl_handle_md_t md, size_t length)
{
    ptl_event_t event;
    pair(eq, PTL_EVENT_PUT_START, &event);
    SAME(event.rlength, length);
    SAME(event.mlength, length);
    SAME(event.hdr_data, 99);
    SAME(event.match_bits, 7);
    SAME(event.pt_index, PT);
    SAME(event.md_handle, md);
    check(remote, 8, 1);
    pair(eq, PTL_EVENT_GET_START, &event);
    SAME(event.mlength, length);
    pair(eq, PTL_EVENT_PUT_START, &event);
    SAME(event.offset, 8);
    SAME(event.mlength, 3);
    SAME(event.hdr_data, 5);
    pair(eq, PTL_EVENT_GET_START, &event);
    SAME(event.offset, 8);
}

/* Swaps eight bytes with the other rank's, as a whole and in parts. */
static void swap(struct rig *rig, ptl_handle_eq_t eq)
{
    ptl_handle_md_t get, put;
    ptl_event_t     event;
    uint64_t        old = 0, new = 42;
    OK(PtlMDBind(rig->ni, rig_md(&old, 8, PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN, &get));
    OK(PtlMDBind(rig->ni, rig_md(&new, 8, PTL_MD_EVENT_END_DISABLE | PTL_MD_EVENT_START_DISABLE,
                                 eq), PTL_RETAIN, &put));
    OK(PtlGetPut(get, put, rig->peer, PT, 0, 8, 0, 3));
    event = rig_event(eq, PTL_EVENT_REPLY_END);
    SAME(event.mlength, 8);
    SAME(old, 17);
    OK(PtlGetPutRegion(get, 4, put, 4, 4, rig->peer, PT, 0, 8, 4, 3));
    rig_event(eq, PTL_EVENT_REPLY_END);
    rig_no_event(eq);
    OK(PtlMDUnlink(get));
    OK(PtlMDUnlink(put));
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_eq_t eq;
    ptl_handle_md_t md, word;
    ptl_event_t     event;
    uint64_t        value = 17;
    const unsigned  options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
    OK(PtlEQAlloc(rig.ni, 64, PTL_EQ_HANDLER_NONE, &eq));
    rig_attach(&rig, PT, 7, rig_md(remote, LONG, options, eq), PTL_RETAIN, &md);
    rig_attach(&rig, PT, 8, rig_md(&value, 8, options, eq), PTL_RETAIN, &word);
    pmi_barrier(&rig.pmi);
    for (size_t length = 16; length <= LONG; length *= 256) {
        if (rig_rank == 0) {
            move(&rig, length, eq);
        } else {
            receive(eq, md, length);
        }
        pmi_barrier(&rig.pmi);
    }
    if (rig_rank == 0) {
        swap(&rig, eq);
    } else {
        pair(eq, PTL_EVENT_GETPUT_START, &event);
        SAME(event.mlength, 8);
        SAME(value, 42);
        pair(eq, PTL_EVENT_GETPUT_START, &event);
        SAME(event.offset, 4);
    }
    rig_no_event(eq);
    rig_end(&rig);
    return 0;
}
