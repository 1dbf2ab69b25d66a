/*
 * An entry that spans all memory, and messages of every way of travelling that
 * name an address where nothing is: each is answered with PTL_NI_SEGV, and the
 * target goes on.
 */
#include "rig.h"

#define PORTAL 2
#define LONGEST 200000

static const size_t lengths[] = {8, 5000, 20000, 65536, LONGEST};

static unsigned char here[LONGEST];

static void answer(ptl_handle_eq_t queue, int kind, int fail)
{
    ptl_event_t  event;
    unsigned int which;
    do {
        OK(PtlEQPoll(&queue, 1, PATIENCE_MS, &event, &which));
    } while (event.type == PTL_EVENT_SEND);
    SAME(event.type, kind);
    SAME(event.ni_fail_type, fail);
}

static void aim(const struct rig *rig, ptl_handle_md_t md, ptl_handle_eq_t queue, size_t length, uint64_t address,
                int fail)
{
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, rig_peer(rig), PORTAL, 0, address, NULL, 0));
    answer(queue, PTL_EVENT_ACK, fail);
    OK(PtlGet(md, 0, length, rig_peer(rig), PORTAL, 0, address, NULL));
    answer(queue, PTL_EVENT_REPLY, fail);
}

int main(void)
{
    struct rig      rig = rig_begin(PTL_NI_NO_MATCHING);
    ptl_pt_index_t  portal;
    ptl_handle_le_t entry;
    ptl_handle_md_t md;
    ptl_handle_eq_t queue;
    char            address[32];
    ptl_le_t        le = {.length = PTL_SIZE_MAX, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_OP_GET};
    OK(PtlPTAlloc(rig.ni, 0, PTL_EQ_NONE, PORTAL, &portal));
    OK(PtlLEAppend(rig.ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry));
    OK(PtlEQAlloc(rig.ni, 16, &queue));
    ptl_md_t whole = {.start = here, .length = LONGEST, .eq_handle = queue, .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(rig.ni, &whole, &md));
    snprintf(address, sizeof address, "%llu", (unsigned long long)(uintptr_t)here);
    pmi_put(&rig.pmi, rig.pmi.rank ? "here-1" : "here-0", address);
    pmi_barrier(&rig.pmi);
    if (rig.pmi.rank == 0) {
        pmi_get(&rig.pmi, "here-1", address, sizeof address);
        uint64_t there = strtoull(address, NULL, 10);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            aim(&rig, md, queue, lengths[i], 4096, PTL_NI_SEGV);
            aim(&rig, md, queue, lengths[i], there, PTL_NI_OK);
        }
    }
    rig_end(&rig);
    return 0;
}
