/*
 * Names of other implementations: numbered networks are the one that there is, and calls that end in
 * NB are the plain ones.
 */
#include "rig.h"

#include <portals4_bxiext.h>

static const char *name_of(int fail)
{
    switch (fail) {
    case PTL_NI_OK:
        return "none";
    case PTL_NI_UNDELIVERABLE:
        return "undeliverable";
    case PTL_NI_TARGET_INVALID: /* a value of its own */
        return "invalid";
    default:
        return "other";
    }
}

int main(void)
{
    struct rig      rig = rig_begin(PTL_NI_MATCHING);
    ptl_handle_ni_t same;
    ptl_handle_ct_t arrived;
    ptl_handle_me_t entry;
    ptl_handle_md_t from;
    ptl_pt_index_t  portal;
    long            out = 7, in = 0;

    for (ptl_interface_t iface = 0; iface < 4; iface++) {
        OK(PtlNIInit(iface, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &same));
        SAME(PtlHandleIsEqual(same, rig.ni), 1);
        OK(PtlNIFini(same));
    }
    ANSWERS(PTL_ARG_INVALID, PtlNIInit(4, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &same));

    OK(PtlPTAlloc(rig.ni, 0, PTL_EQ_NONE, 9, &portal));
    OK(PtlCTAlloc(rig.ni, &arrived));
    ptl_me_t me = {.start = &in, .length = sizeof in, .ct_handle = arrived, .uid = PTL_UID_ANY,
                   .options  = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
    OK(PtlMEAppendNB(rig.ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_md_t md = {&out, sizeof out, 0, PTL_EQ_NONE, PTL_CT_NONE};
    OK(PtlMDBindNB(rig.ni, &md, &from));
    OK(PtlPutNB(from, 0, sizeof out, PTL_NO_ACK_REQ, rig.me, portal, 0, 0, NULL, 0));
    rig_count(arrived, 1);
    SAME(in, 7);
    SAME(strcmp(name_of(PTL_NI_UNDELIVERABLE), "undeliverable"), 0);
    SAME(PTL_ACTIVE_SEARCH_ONLY, PTL_SEARCH_ONLY);
    rig_end(&rig);
    return 0;
}
