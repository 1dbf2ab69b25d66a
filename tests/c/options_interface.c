/*
 * The options of an interface: with matching or without, with ranks or with nids and
 * pids, and that there are no others.
 */
#include "options.h"

static const unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;

/* Each kind of interface has entries, and a map, of its own kind only. */
static void an_interface_has_its_kind_of_entries(struct stage *stage)
{
    ptl_handle_any_t entry;
    ptl_me_t         me      = entry_of(stage, quiet);
    ptl_le_t         le      = list_entry_of(&me);
    int              with    = stage->matching ? PTL_OK : PTL_ARG_INVALID;
    int              without = stage->matching ? PTL_ARG_INVALID : PTL_OK;
    options_about            = "MATCHING and NO_MATCHING";
    ANSWERS(with, PtlMEAppend(stage->ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &entry));
    if (with == PTL_OK) {
        OK(PtlMEUnlink(entry));
    }
    ANSWERS(without, PtlLEAppend(stage->ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry));
    if (without == PTL_OK) {
        OK(PtlLEUnlink(entry));
    }
    meet(stage);
}

static void an_interface_names_processes_in_its_way(struct stage *stage)
{
    ptl_process_t me, physical, map[2];
    options_about = "LOGICAL and PHYSICAL";
    OK(PtlGetId(stage->ni, &me));
    OK(PtlGetPhysId(stage->ni, &physical));
    SAME(physical.phys.pid != 0, 1);
    if (stage->logical) {
        SAME(me.rank, stage->rig.pmi.rank);
        ANSWERS(PTL_IGNORED, PtlSetMap(stage->ni, 1, &physical));
        OK(PtlGetMap(stage->ni, 2, map, NULL));
        SAME(map[me.rank].phys.nid, physical.phys.nid);
        SAME(map[me.rank].phys.pid, physical.phys.pid);
    } else {
        SAME(me.phys.nid, physical.phys.nid);
        SAME(me.phys.pid, physical.phys.pid);
        ANSWERS(PTL_ARG_INVALID, PtlSetMap(stage->ni, 1, &physical));
    }
}

/* Two entries with bits of their own: matching looks at them, and else the first one
 * takes everything. */
static void matching_looks_at_the_bits(struct stage *stage)
{
    ptl_handle_any_t first = PTL_INVALID_HANDLE, second = PTL_INVALID_HANDLE;
    options_about = "match bits";
    if (is_target(stage)) {
        ptl_me_t me    = entry_of(stage, quiet);
        me.length      = LENGTH;
        me.match_bits  = 0xf0;
        me.ignore_bits = 0x0f;
        first          = append(stage, &me, PTL_PRIORITY_LIST);
        me.start       = stage->memory + LENGTH;
        me.match_bits  = 0x5f0;
        second         = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    if (!is_target(stage)) {
        ptl_md_t        md     = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        ptl_handle_md_t handle = bind_md(stage, &md);
        ptl_process_t   to     = rig_peer(&stage->rig);
        OK(PtlPut(handle, 0, LENGTH, PTL_ACK_REQ, to, PORTAL, 0x5f3, 0, stage, 0));
        OK(PtlPut(handle, 0, LENGTH, PTL_ACK_REQ, to, PORTAL, 0x0f3, 0, stage, 0));
        OK(PtlPut(handle, 0, LENGTH, PTL_ACK_REQ, to, PORTAL, 0x1f3, 0, stage, 0));
    }
    if (stage->matching) {
        POSTED(stage, "ACK ACK ACK!DROPPED", "COMM COMM");
    } else {
        POSTED(stage, "ACK ACK ACK", "COMM COMM COMM");
    }
    if (is_target(stage)) {
        const unsigned char *place = stage->memory + (stage->matching ? LENGTH : 0);
        SAME((uintptr_t)stage->events[0].start, (uintptr_t)place);
        SAME((uintptr_t)stage->events[1].start, (uintptr_t)stage->memory);
        SAME(stage->events[0].match_bits, 0x5f3);
        OK(unlink_entry(stage, first));
        OK(unlink_entry(stage, second));
    }
    meet(stage);
}

/* A match entry takes the messages of one process, named as the interface names it. */
static void events_and_entries_name_the_initiator(struct stage *stage)
{
    ptl_process_t own = stage->rig.me, other = rig_peer(&stage->rig);
    options_about = "match_id and the event's initiator";
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet | PTL_ME_USE_ONCE);
        me.match_id = own;
        append(stage, &me, PTL_PRIORITY_LIST);
        me.match_id = other;
        me.start    = stage->memory + LENGTH;
        append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    if (!is_target(stage)) {
        ptl_md_t md = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        send_one(stage, bind_md(stage, &md), PTL_ACK_REQ);
    }
    POSTED(stage, "ACK", "COMM");
    if (is_target(stage)) {
        ptl_md_t             md    = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        const unsigned char *place = stage->memory + (stage->matching ? LENGTH : 0);
        SAME((uintptr_t)stage->events[0].start, (uintptr_t)place);
        SAME(memcmp(&stage->events[0].initiator, &other, stage->logical ? sizeof other.rank : sizeof other), 0);
        OK(PtlPut(bind_md(stage, &md), 0, LENGTH, PTL_NO_ACK_REQ, own, PORTAL, 0, 0, stage, 0));
    }
    POSTED(stage, "", "COMM");
    if (is_target(stage)) {
        SAME(memcmp(&stage->events[0].initiator, &own, stage->logical ? sizeof own.rank : sizeof own), 0);
    }
}

static void there_are_four_kinds_of_interfaces(struct stage *stage)
{
    options_about = "each combination of bits";
    for (unsigned int options = 0; options <= 2 * PTL_NI_INIT_OPTIONS_MASK; options++) {
        unsigned int    matching = options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
        unsigned int    naming   = options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
        ptl_handle_ni_t ni;
        int             right = (matching == PTL_NI_MATCHING || matching == PTL_NI_NO_MATCHING) &&
                    (naming == PTL_NI_LOGICAL || naming == PTL_NI_PHYSICAL) &&
                    (options & ~(unsigned int)PTL_NI_INIT_OPTIONS_MASK) == 0;
        int answer = PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni);
        SAME(answer, right ? PTL_OK : PTL_ARG_INVALID);
        if (answer == PTL_OK) {
            OK(PtlNIFini(ni));
        }
    }
    meet(stage);
}

static void checks(struct stage *stage)
{
    an_interface_has_its_kind_of_entries(stage);
    an_interface_names_processes_in_its_way(stage);
    matching_looks_at_the_bits(stage);
    events_and_entries_name_the_initiator(stage);
    there_are_four_kinds_of_interfaces(stage);
}

int main(void)
{
    return on_all_interfaces(checks);
}
