/*
 * Puts of every size class go back and forth between two ranks; each arrives
 * whole, with every field of its event as the initiator gave it.
 */
#include "rig.h"

#define PORTAL 5
#define ROUNDS 20
#define LARGEST (1u << 22)

static const size_t sizes[] = {0, 1, 8, 63, 64, 65, 1000, 4096, 4097, 65536, 100003, 1u << 20, LARGEST};

struct court {
    struct rig      rig;
    ptl_handle_eq_t arrivals;
    ptl_handle_eq_t departures;
    ptl_handle_md_t md;
    unsigned char  *out;
    unsigned char  *in;
    int             marker; /* its address is the entry's user pointer */
};

static void open_court(struct court *court)
{
    ptl_pt_index_t  portal;
    ptl_handle_me_t entry;
    court->out = malloc(LARGEST);
    court->in  = malloc(LARGEST);
    OK(PtlEQAlloc(court->rig.ni, 64, &court->arrivals));
    OK(PtlEQAlloc(court->rig.ni, 64, &court->departures));
    OK(PtlPTAlloc(court->rig.ni, 0, court->arrivals, PORTAL, &portal));
    SAME(portal, PORTAL);

    ptl_md_t md  = {.start = court->out, .length = LARGEST, .eq_handle = court->departures, .ct_handle = PTL_CT_NONE};
    ptl_me_t me  = {.start = court->in, .length = LARGEST, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
    me.options   = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    me.match_id  = rig_peer(&court->rig);
    me.match_bits  = 0xabcd0000;
    me.ignore_bits = 0xffff;
    OK(PtlMDBind(court->rig.ni, &md, &court->md));
    OK(PtlMEAppend(court->rig.ni, PORTAL, &me, PTL_PRIORITY_LIST, &court->marker, &entry));
    pmi_barrier(&court->rig.pmi);
}

static void serve(struct court *court, size_t length, unsigned int round)
{
    rig_fill(court->out, length, round);
    OK(PtlPut(court->md, 0, length, PTL_ACK_REQ, rig_peer(&court->rig), PORTAL, 0xabcd0000 + round, 0, &court->out,
              0x1122334455667788u + round));
}

/* SEND and ACK come in either order. */
static void await_departure(struct court *court, size_t length)
{
    int sent = 0, acknowledged = 0;
    while (!sent || !acknowledged) {
        ptl_event_t  event;
        unsigned int which;
        OK(PtlEQPoll(&court->departures, 1, PATIENCE_MS, &event, &which));
        SAME(event.ni_fail_type, PTL_NI_OK);
        SAME((uintptr_t)event.user_ptr, (uintptr_t)&court->out);
        if (event.type == PTL_EVENT_ACK) {
            SAME(event.mlength, length);
            SAME(event.ptl_list, PTL_PRIORITY_LIST);
            SAME(acknowledged++, 0);
        } else {
            SAME(event.type, PTL_EVENT_SEND);
            SAME(sent++, 0);
        }
    }
}

static void receive(struct court *court, size_t length, unsigned int round)
{
    ptl_event_t event = rig_event(court->arrivals, PTL_EVENT_PUT);
    SAME(event.rlength, length);
    SAME(event.mlength, length);
    SAME(event.remote_offset, 0);
    SAME(event.match_bits, 0xabcd0000 + round);
    SAME(event.hdr_data, 0x1122334455667788u + round);
    SAME(event.pt_index, PORTAL);
    SAME(event.initiator.phys.nid, rig_peer(&court->rig).phys.nid);
    SAME(event.initiator.phys.pid, rig_peer(&court->rig).phys.pid);
    SAME((uintptr_t)event.start, (uintptr_t)court->in);
    SAME((uintptr_t)event.user_ptr, (uintptr_t)&court->marker);
    rig_check_fill(court->in, length, round);
}

int main(void)
{
    struct court court;
    court.rig = rig_begin(PTL_NI_MATCHING);
    open_court(&court);
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
        for (unsigned int round = 0; round < ROUNDS; round++) {
            if (court.rig.pmi.rank == 0) {
                serve(&court, sizes[size], round);
                await_departure(&court, sizes[size]);
                receive(&court, sizes[size], round);
            } else {
                receive(&court, sizes[size], round);
                serve(&court, sizes[size], round);
                await_departure(&court, sizes[size]);
            }
        }
    }
    rig_end(&court.rig);
    free(court.out);
    free(court.in);
    return 0;
}
