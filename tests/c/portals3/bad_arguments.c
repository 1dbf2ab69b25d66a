/*
 * Bad arguments get the specified code and change nothing; handles that are gone name nothing.
 */
#include "rig3.h"

/* The header leaves it to programs, some of which declare it so. */
extern char *ptl_event_str[];

static unsigned char bytes[64];

static void before_init(void)
{
    ptl_handle_ni_t ni;
    ptl_event_t     event;
    ANSWERS(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
    ANSWERS(PTL_NO_INIT, PtlEQGet(0, &event));
    ANSWERS(PTL_NO_INIT, PtlMDUnlink(0));
    SAME(strcmp(PtlErrorStr(PTL_NO_INIT), "PTL_NO_INIT"), 0);
    SAME(strcmp(ptl_err_str[PTL_EQ_DROPPED], "PTL_EQ_DROPPED"), 0);
    SAME(strcmp(ptl_event_str[PTL_EVENT_ACK], "PTL_EVENT_ACK"), 0);
    PtlFini();
}

static void interfaces(struct rig *rig)
{
    ptl_handle_ni_t  again, other;
    ptl_sr_value_t   value;
    ptl_process_id_t wrong = {PTL_NID_ANY, 0};
    unsigned long    distance;
    ANSWERS(PTL_IFACE_INVALID, PtlNIInit(0xdead, PTL_PID_ANY, NULL, NULL, &other));
    ANSWERS(PTL_IFACE_INVALID, PtlNIInit(CRAY_USER_NAL, PTL_PID_ANY, NULL, NULL, &other));
    ANSWERS(PTL_PID_INVALID, PtlNIInit(PTL_IFACE_DEFAULT, 1 << 20, NULL, NULL, &other));
    ANSWERS(PTL_PID_INVALID, PtlNIInit(PTL_IFACE_DEFAULT, rig->me.pid + 1, NULL, NULL, &other));
    ANSWERS(PTL_SEGV, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, rig->me.pid, NULL, NULL, &again));
    SAME(PtlHandleIsEqual(again, rig->ni), 1);
    OK(PtlNIFini(again));
    ANSWERS(PTL_NI_INVALID, PtlNIStatus(PTL_INVALID_HANDLE, PTL_SR_DROP_COUNT, &value));
    ANSWERS(PTL_SR_INDEX_INVALID, PtlNIStatus(rig->ni, 1000, &value));
    ANSWERS(PTL_SEGV, PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, NULL));
    ANSWERS(PTL_PROCESS_INVALID, PtlNIDist(rig->ni, wrong, &distance));
    OK(PtlNIDist(rig->ni, rig->me, &distance));
    SAME(distance, 0);
    ANSWERS(PTL_HANDLE_INVALID, PtlNIHandle(PTL_INVALID_HANDLE, &other));
    ANSWERS(PTL_AC_INDEX_INVALID, PtlACEntry(rig->ni, rig->limits.max_ac_index + 1, anyone,
                                             PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
    ANSWERS(PTL_PT_INDEX_INVALID, PtlACEntry(rig->ni, 1, anyone, PTL_UID_ANY, PTL_JID_ANY,
                                             rig->limits.max_pt_index + 1));
}

static void entries(struct rig *rig)
{
    ptl_handle_me_t me, other;
    ptl_pt_index_t  pt;
    ANSWERS(PTL_PT_INDEX_INVALID, PtlMEAttach(rig->ni, rig->limits.max_pt_index + 1, anyone, 0, 0,
                                              PTL_RETAIN, PTL_INS_AFTER, &me));
    ANSWERS(PTL_NI_INVALID, PtlMEAttach(PTL_INVALID_HANDLE, 1, anyone, 0, 0, PTL_RETAIN,
                                        PTL_INS_AFTER, &me));
    ANSWERS(PTL_SEGV, PtlMEAttach(rig->ni, 1, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL));
    OK(PtlMEAttachAny(rig->ni, &pt, anyone, 0, 0, PTL_RETAIN, &me));
    OK(PtlMEInsert(me, anyone, 1, 0, PTL_RETAIN, PTL_INS_BEFORE, &other));
    OK(PtlMEUnlink(other));
    OK(PtlMEUnlink(me));
    ANSWERS(PTL_ME_INVALID, PtlMEUnlink(me));
    ANSWERS(PTL_ME_INVALID, PtlMEInsert(me, anyone, 1, 0, PTL_RETAIN, PTL_INS_BEFORE, &other));
}

static void descriptors(struct rig *rig)
{
    ptl_handle_md_t md;
    ptl_handle_eq_t gone;
    ptl_md_iovec_t  pieces[2] = {{bytes, 8}, {bytes + 16, 8}};
    ptl_md_t        good = rig_md(bytes, 64, 0, PTL_EQ_NONE), bad;
    OK(PtlEQAlloc(rig->ni, 1, PTL_EQ_HANDLER_NONE, &gone));
    OK(PtlEQFree(gone));
    ANSWERS(PTL_EQ_INVALID, PtlEQFree(gone));
    bad = good;
    bad.eq_handle = gone;
    ANSWERS(PTL_EQ_INVALID, PtlMDBind(rig->ni, bad, PTL_RETAIN, &md));
    bad = good;
    bad.start = NULL;
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, bad, PTL_RETAIN, &md));
    bad = good;
    bad.threshold = -2;
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, bad, PTL_RETAIN, &md));
    bad = good;
    bad.options = 1u << 30;
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, bad, PTL_RETAIN, &md));
    bad = rig_md(pieces, (ptl_size_t)rig->limits.max_md_iovecs + 1, PTL_MD_IOVEC, PTL_EQ_NONE);
    bad.start = calloc(bad.length, sizeof *pieces);
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, bad, PTL_RETAIN, &md));
    free(bad.start);
    OK(PtlMDBind(rig->ni, rig_md(pieces, 2, PTL_MD_IOVEC, PTL_EQ_NONE), PTL_RETAIN, &md));
    ANSWERS(PTL_MD_ILLEGAL, PtlPutRegion(md, 9, 8, PTL_NO_ACK_REQ, rig->me, 0, 0, 0, 0, 0));
    OK(PtlMDUnlink(md));
    ANSWERS(PTL_MD_INVALID, PtlMDUnlink(md));
}

static void moves(struct rig *rig)
{
    ptl_handle_md_t  md, off;
    ptl_process_id_t wild = rig->me;
    ptl_md_t         none = rig_md(bytes, 64, 0, PTL_EQ_NONE);
    OK(PtlMDBind(rig->ni, none, PTL_RETAIN, &md));
    none.threshold = 0;
    OK(PtlMDBind(rig->ni, none, PTL_RETAIN, &off));
    wild.pid = PTL_PID_ANY;
    ANSWERS(PTL_PROCESS_INVALID, PtlPut(md, PTL_NO_ACK_REQ, wild, 0, 0, 0, 0, 0));
    ANSWERS(PTL_MD_INVALID, PtlPut(off, PTL_NO_ACK_REQ, rig->me, 0, 0, 0, 0, 0));
    ANSWERS(PTL_MD_INVALID, PtlGet(PTL_INVALID_HANDLE, rig->me, 0, 0, 0, 0));
    ANSWERS(PTL_MD_ILLEGAL, PtlGetRegion(md, 60, 5, rig->me, 0, 0, 0, 0));
    ANSWERS(PTL_MD_ILLEGAL, PtlPutRegion(md, 1, ~(ptl_size_t)0, PTL_NO_ACK_REQ, rig->me, 0, 0, 0, 0,
                                         0));
    OK(PtlMDUnlink(md));
    OK(PtlMDUnlink(off));
}

/* Pieces whose lengths or addresses no message can have. */
static void vectors(struct rig *rig)
{
    const ptl_size_t half = (ptl_size_t)1 << 63;
    ptl_handle_md_t  md;
    ptl_md_iovec_t   null[2] = {{bytes, 8}, {NULL, 8}};
    ptl_md_iovec_t   wraps[2] = {{bytes, 8}, {bytes, ~(ptl_size_t)0}};
    ptl_md_iovec_t   overlong[3] = {{bytes, half - 1}, {bytes, half - 1}, {bytes, 8}};
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, rig_md(null, 2, PTL_MD_IOVEC, PTL_EQ_NONE),
                                      PTL_RETAIN, &md));
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, rig_md(wraps, 2, PTL_MD_IOVEC, PTL_EQ_NONE),
                                      PTL_RETAIN, &md));
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, rig_md(NULL, 2, PTL_MD_IOVEC, PTL_EQ_NONE),
                                      PTL_RETAIN, &md));
    ANSWERS(PTL_MD_ILLEGAL, PtlMDBind(rig->ni, rig_md(bytes, ~(ptl_size_t)0, 0, PTL_EQ_NONE),
                                      PTL_RETAIN, &md));
    OK(PtlMDBind(rig->ni, rig_md(overlong, 3, PTL_MD_IOVEC, PTL_EQ_NONE), PTL_RETAIN, &md));
    ANSWERS(PTL_MD_ILLEGAL, PtlPut(md, PTL_NO_ACK_REQ, rig->me, 0, 0, 0, 0, 0));
    ANSWERS(PTL_MD_ILLEGAL, PtlGet(md, rig->me, 0, 0, 0, 0));
    ANSWERS(PTL_MD_ILLEGAL, PtlGetPut(md, md, rig->me, 0, 0, 0, 0, 0));
    ANSWERS(PTL_MD_ILLEGAL, PtlPutRegion(md, ~(ptl_size_t)0, 2, PTL_NO_ACK_REQ, rig->me, 0, 0, 0, 0,
                                         0));
    OK(PtlMDUnlink(md));
    OK(PtlMDBind(rig->ni, rig_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &md));
    OK(PtlMDUnlink(md));
}

/* A remote offset that overflows with the length fits nowhere: the message is dropped. */
static void remote_offsets(struct rig *rig)
{
    const ptl_size_t offsets[] = {64, ~(ptl_size_t)0, ~(ptl_size_t)0 - 7, (ptl_size_t)1 << 63};
    ptl_handle_md_t  md, from;
    ptl_handle_me_t  me;
    ptl_sr_value_t   before, after;
    me = rig_attach(rig, 3, 1, rig_md(bytes, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
                    PTL_RETAIN, &md);
    OK(PtlMDBind(rig->ni, rig_md(bytes, 8, 0, PTL_EQ_NONE), PTL_RETAIN, &from));
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &before));
    for (size_t at = 0; at < sizeof offsets / sizeof *offsets; at++) {
        OK(PtlPut(from, PTL_NO_ACK_REQ, rig->me, 3, 0, 1, offsets[at], 0));
    }
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &after));
    SAME(after - before, sizeof offsets / sizeof *offsets);
    OK(PtlMDUnlink(from));
    OK(PtlMEUnlink(me));
}

/* No call takes a handle of another kind, or one that names nothing. */
static void foreign_handles(struct rig *rig)
{
    ptl_handle_any_t   all[10];
    const size_t       count = sizeof all / sizeof *all;
    ptl_handle_any_t   out;
    ptl_event_t        event;
    ptl_md_t           good = rig_md(bytes, 64, PTL_MD_OP_PUT, PTL_EQ_NONE);
    ptl_process_id_t   id;
    ptl_handle_md_t    md;
    enum { NI, ME, MD, EQ };
    all[NI] = rig->ni;
    all[ME] = rig_attach(rig, 2, 1, good, PTL_RETAIN, &md);
    all[MD] = md;
    OK(PtlEQAlloc(rig->ni, 4, PTL_EQ_HANDLER_NONE, &all[EQ]));
    all[4] = PTL_INVALID_HANDLE;
    all[5] = PTL_HANDLE_NONE;
    all[6] = PTL_EQ_NONE;
    all[7] = 0x12345678;
    all[8] = md ^ 1;        /* another slot */
    all[9] = md ^ (1 << 17); /* another generation, or kind */
    for (size_t at = 0; at < count; at++) {
        const ptl_handle_any_t handle = all[at];
        out = 77;
        if (at != NI) {
            ANSWERS(PTL_NI_INVALID, PtlGetId(handle, &id));
            ANSWERS(PTL_NI_INVALID, PtlNIFini(handle));
            ANSWERS(PTL_NI_INVALID, PtlEQAlloc(handle, 4, PTL_EQ_HANDLER_NONE, &out));
            ANSWERS(PTL_NI_INVALID, PtlMDBind(handle, good, PTL_RETAIN, &out));
            ANSWERS(PTL_NI_INVALID, PtlMEAttach(handle, 2, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
                                                &out));
            ANSWERS(PTL_NI_INVALID, PtlACEntry(handle, 0, anyone, 0, 0, 0));
        }
        if (at != ME) {
            ANSWERS(PTL_ME_INVALID, PtlMEUnlink(handle));
            ANSWERS(PTL_ME_INVALID, PtlMDAttach(handle, good, PTL_RETAIN, &out));
            ANSWERS(PTL_ME_INVALID, PtlMEInsert(handle, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
                                                &out));
        }
        if (at != MD) {
            ANSWERS(PTL_MD_INVALID, PtlMDUnlink(handle));
            ANSWERS(PTL_MD_INVALID, PtlMDUpdate(handle, NULL, NULL, PTL_EQ_NONE));
            ANSWERS(PTL_MD_INVALID, PtlPut(handle, PTL_NO_ACK_REQ, rig->me, 2, 0, 1, 0, 0));
            ANSWERS(PTL_MD_INVALID, PtlGetPut(handle, md, rig->me, 2, 0, 1, 0, 0));
        }
        if (at != EQ) {
            ANSWERS(PTL_EQ_INVALID, PtlEQFree(handle));
            ANSWERS(PTL_EQ_INVALID, PtlEQGet(handle, &event));
            ANSWERS(PTL_EQ_INVALID, PtlEQWait(handle, &event));
        }
        if (at > EQ) {
            ANSWERS(PTL_HANDLE_INVALID, PtlNIHandle(handle, &out));
        }
        SAME(out, 77);
    }
    OK(PtlEQFree(all[EQ]));
    OK(PtlMEUnlink(all[ME]));
}

/* What interfaces, entries, descriptors and queues there are. */
static void inventory(struct rig *rig, ptl_sr_value_t *counts)
{
    const ptl_sr_index_t current[4] = {PTL_SR_MES_CUR, PTL_SR_MDS_CUR, PTL_SR_EQS_CUR,
                                       PTL_SR_MSGS_CUR};
    for (int at = 0; at < 4; at++) {
        OK(PtlNIStatus(rig->ni, current[at], &counts[at]));
    }
}

static void queues(struct rig *rig)
{
    ptl_handle_eq_t eq[2];
    ptl_event_t     event;
    int             which = 7;
    OK(PtlEQAlloc(rig->ni, 4, PTL_EQ_HANDLER_NONE, &eq[0]));
    eq[1] = PTL_EQ_NONE;
    ANSWERS(PTL_EQ_EMPTY, PtlEQPoll(eq, 1, 0, &event, &which));
    ANSWERS(PTL_EQ_EMPTY, PtlEQPoll(eq, 1, 1, &event, &which));
    ANSWERS(PTL_EQ_INVALID, PtlEQPoll(eq, 2, 0, &event, &which));
    ANSWERS(PTL_EQ_INVALID, PtlEQPoll(eq, 0, 0, &event, &which));
    ANSWERS(PTL_EQ_INVALID, PtlEQGet(PTL_INVALID_HANDLE, &event));
    ANSWERS(PTL_SEGV, PtlEQGet(eq[0], NULL));
    ANSWERS(PTL_NO_SPACE, PtlEQAlloc(rig->ni, (ptl_size_t)1 << 40, PTL_EQ_HANDLER_NONE, &eq[1]));
    SAME(which, 7);
    OK(PtlEQFree(eq[0]));
}

int main(void)
{
    struct rig      rig;
    ptl_handle_ni_t gone;
    ptl_sr_value_t  before[4], after[4];
    before_init();
    rig = rig_begin();
    inventory(&rig, before);
    interfaces(&rig);
    entries(&rig);
    descriptors(&rig);
    moves(&rig);
    queues(&rig);
    vectors(&rig);
    remote_offsets(&rig);
    foreign_handles(&rig);
    inventory(&rig, after);
    SAME(memcmp(before, after, sizeof before), 0);
    gone = rig.ni;
    OK(PtlNIFini(rig.ni));
    ANSWERS(PTL_NI_INVALID, PtlNIFini(gone));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &rig.ni));
    SAME(PtlHandleIsEqual(gone, rig.ni), 0);
    rig_end(&rig);
    return 0;
}
