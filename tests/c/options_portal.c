/*
 * The options of a portal table entry: it begins disabled, it is disabled when
 * resources run out, and hints that change nothing that a program sees.
 */
#include "options.h"

#define HINTED 20

static const unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;

/* Rank 1's portal table entry again, with these options. */
static void take_portal(struct stage *stage, unsigned int options)
{
    ptl_pt_index_t portal;
    if (is_target(stage)) {
        OK(PtlPTFree(stage->ni, PORTAL));
        OK(PtlPTAlloc(stage->ni, options, stage->queue, PORTAL, &portal));
        SAME(portal, PORTAL);
    }
    meet(stage);
}

static void put_from(struct stage *stage, int number)
{
    static unsigned char numbers[HINTED];
    if (!is_target(stage)) {
        ptl_md_t md     = {&numbers[number], 1, PTL_MD_EVENT_SEND_DISABLE, stage->queue, PTL_CT_NONE};
        numbers[number] = (unsigned char)(number + 1);
        OK(PtlPut(bind_md(stage, &md), 0, 1, PTL_ACK_REQ, rig_peer(&stage->rig), PORTAL, 0, 0, stage, 0));
    }
}

static ptl_handle_any_t stand(struct stage *stage, unsigned int options)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, options);
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    return entry;
}

static void alloc_disabled_begins_disabled(struct stage *stage)
{
    for (int disabled = 0; disabled < 2; disabled++) {
        options_about = disabled ? "ALLOC_DISABLED" : "no ALLOC_DISABLED";
        take_portal(stage, disabled ? PTL_PT_ALLOC_DISABLED : 0);
        ptl_handle_any_t entry = stand(stage, quiet);
        put_from(stage, 0);
        POSTED(stage, disabled ? "ACK!PT_DISABLED" : "ACK", disabled ? "" : "COMM");
        if (is_target(stage)) {
            OK(PtlPTEnable(stage->ni, PORTAL));
        }
        meet(stage);
        put_from(stage, 1);
        POSTED(stage, "ACK", "COMM");
        if (is_target(stage)) {
            OK(unlink_entry(stage, entry));
        }
    }
}

/* A message that no entry takes. */
static void flowctrl_disables_where_others_drop(struct stage *stage)
{
    for (int controlled = 0; controlled < 2; controlled++) {
        options_about = controlled ? "FLOWCTRL" : "no FLOWCTRL";
        take_portal(stage, controlled ? PTL_PT_FLOWCTRL : 0);
        put_from(stage, 0);
        POSTED(stage, controlled ? "ACK!PT_DISABLED" : "ACK!DROPPED", controlled ? "PT_DISABLED!PT_DISABLED" : "");
        ptl_handle_any_t entry = stand(stage, quiet);
        put_from(stage, 1); /* too late, if it was disabled */
        POSTED(stage, controlled ? "ACK!PT_DISABLED" : "ACK", controlled ? "" : "COMM");
        if (is_target(stage)) {
            OK(PtlPTEnable(stage->ni, PORTAL));
        }
        meet(stage);
        put_from(stage, 2);
        POSTED(stage, "ACK", "COMM");
        if (is_target(stage)) {
            OK(unlink_entry(stage, entry));
        }
    }
    take_portal(stage, 0);
}

static void flowctrl_needs_a_queue(struct stage *stage)
{
    ptl_pt_index_t portal;
    options_about = "FLOWCTRL without a queue";
    ANSWERS(PTL_PT_EQ_NEEDED, PtlPTAlloc(stage->ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &portal));
}

/* With a hint, or without, messages match the entries in the order of appending. */
static void check_order(struct stage *stage)
{
    if (is_target(stage)) {
        for (int i = 0; i < HINTED; i++) {
            ptl_me_t me = entry_of(stage, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                              PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
            me.start    = stage->memory + i;
            me.length   = 1;
            append(stage, &me, PTL_PRIORITY_LIST);
        }
    }
    meet(stage);
    for (int i = 0; i < HINTED; i++) {
        put_from(stage, i);
    }
    settle(stage);
    for (int i = 0; is_target(stage) && i < HINTED; i++) {
        SAME(stage->memory[i], i + 1);
    }
}

static void hints_change_nothing(struct stage *stage)
{
    static const struct {
        const char  *name;
        unsigned int option;
    } hints[] = {{"no hint", 0},
                 {"ONLY_USE_ONCE", PTL_PT_ONLY_USE_ONCE},
                 {"ONLY_TRUNCATE", PTL_PT_ONLY_TRUNCATE},
                 {"MATCH_UNORDERED", PTL_PT_MATCH_UNORDERED}};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        options_about = hints[i].name;
        memset(stage->memory, 0, sizeof stage->memory);
        take_portal(stage, hints[i].option);
        check_order(stage);
    }
    take_portal(stage, 0);
}

static void the_mask_holds_all_options(struct stage *stage)
{
    options_about = "each bit";
    for (int bit = 0; bit < 32; bit++) {
        ptl_pt_index_t portal;
        unsigned int   option = 1u << bit;
        int            answer = PtlPTAlloc(stage->ni, option, stage->queue, PTL_PT_ANY, &portal);
        SAME(answer, option & PTL_PT_ALLOC_OPTIONS_MASK ? PTL_OK : PTL_ARG_INVALID);
        if (answer == PTL_OK) {
            OK(PtlPTFree(stage->ni, portal));
        }
    }
}

static void checks(struct stage *stage)
{
    alloc_disabled_begins_disabled(stage);
    flowctrl_disables_where_others_drop(stage);
    flowctrl_needs_a_queue(stage);
    hints_change_nothing(stage);
    the_mask_holds_all_options(stage);
}

int main(void)
{
    return on_all_interfaces(checks);
}
