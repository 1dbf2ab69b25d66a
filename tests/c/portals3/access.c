/*
 * Access control between two processes: a request that the entry which it names doesn't admit, by
 * process, user, job or portal table index, is dropped and counted, and changes nothing.
 */
#include "rig3.h"

#define PT 7
#define ENTRY 1

static unsigned char target[64], source[64];

/* What one case admits, and whether a put of the other rank passes. */
struct rule {
    ptl_process_id_t who;
    ptl_uid_t        uid;
    ptl_jid_t        jid;
    ptl_pt_index_t   pt;
    int              passes;
};

static ptl_sr_value_t dropped(struct rig *rig)
{
    ptl_sr_value_t value;
    OK(PtlNIStatus(rig->ni, PTL_SR_DROP_COUNT, &value));
    return value;
}

/* Rank 1 sets a rule; rank 0 puts a byte, and one more that is always let in. */
static void try_rule(struct rig *rig, ptl_handle_md_t from, ptl_handle_eq_t eq,
                     const struct rule *rule, unsigned char mark)
{
    ptl_sr_value_t before = dropped(rig);
    if (rig_rank == 1) {
        memset(target, 0, sizeof target);
        OK(PtlACEntry(rig->ni, ENTRY, rule->who, rule->uid, rule->jid, rule->pt));
    }
    pmi_barrier(&rig->pmi);
    if (rig_rank == 0) {
        source[0] = mark;
        OK(PtlPut(from, PTL_ACK_REQ, rig->peer, PT, ENTRY, 1, 0, 0));
        source[0] = 0;
        OK(PtlPut(from, PTL_ACK_REQ, rig->peer, PT, 0, 1, 1, 0));
        rig_event(eq, PTL_EVENT_ACK);
        if (rule->passes) {
            rig_event(eq, PTL_EVENT_ACK);
        }
        rig_no_event(eq);
    } else {
        if (rule->passes) {
            rig_event(eq, PTL_EVENT_PUT_END);
        }
        SAME(rig_event(eq, PTL_EVENT_PUT_END).offset, 1);
        rig_no_event(eq);
        SAME(target[0], rule->passes ? mark : 0);
        SAME(dropped(rig) - before, !rule->passes);
    }
    pmi_barrier(&rig->pmi);
}

int main(void)
{
    struct rig      rig = rig_begin();
    ptl_handle_eq_t eq;
    ptl_handle_md_t md;
    ptl_uid_t       uid;
    ptl_jid_t       jid;
    OK(PtlGetUid(rig.ni, &uid));
    OK(PtlGetJid(rig.ni, &jid));
    const ptl_process_id_t other_pid = {rig.peer.nid, rig.peer.pid + 1000};
    const ptl_process_id_t other_nid = {rig.peer.nid + 1, PTL_PID_ANY};
    const struct rule      rules[] = {
        {anyone, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, 1},
        {rig.peer, uid, jid, PT, 1},
        {other_pid, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, 0},
        {other_nid, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, 0},
        {anyone, uid + 1, PTL_JID_ANY, PTL_PT_INDEX_ANY, 0},
        {anyone, PTL_UID_ANY, jid + 1, PTL_PT_INDEX_ANY, 0},
        {anyone, PTL_UID_ANY, PTL_JID_ANY, PT + 1, 0},
        {anyone, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY, 1},
        {anyone, PTL_UID_ANY, jid, PTL_PT_INDEX_ANY, 1},
    };
    OK(PtlEQAlloc(rig.ni, 64, PTL_EQ_HANDLER_NONE, &eq));
    rig_attach(&rig, PT, 1, rig_md(target, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
                                   PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN, &md);
    OK(PtlMDBind(rig.ni, rig_md(source, 1, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
                                eq), PTL_RETAIN, &md));
    pmi_barrier(&rig.pmi);
    for (size_t at = 0; at < sizeof rules / sizeof *rules; at++) {
        try_rule(&rig, md, eq, &rules[at], (unsigned char)(at + 1));
    }
    /* An index beyond the target's table is dropped there as well. */
    ptl_sr_value_t before = dropped(&rig);
    pmi_barrier(&rig.pmi);
    if (rig_rank == 0) {
        OK(PtlPut(md, PTL_ACK_REQ, rig.peer, PT, (ptl_ac_index_t)rig.limits.max_ac_index + 1, 1, 0,
                  0));
        OK(PtlPut(md, PTL_ACK_REQ, rig.peer, PT, 0, 1, 1, 0));
        rig_event(eq, PTL_EVENT_ACK);
        rig_no_event(eq);
    } else {
        SAME(rig_event(eq, PTL_EVENT_PUT_END).offset, 1);
        SAME(dropped(&rig) - before, 1);
    }
    rig_end(&rig);
    return 0;
}
