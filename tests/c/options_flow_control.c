/*
 * Flow control by a queue that is full: a portal table entry with PTL_PT_FLOWCTRL is
 * disabled before an event is lost, which PTL_EVENT_PT_DISABLED reports unless the list
 * entry says PTL_ME_EVENT_FLOWCTRL_DISABLE; without it events are lost.
 */
#include "options.h"

#define CONTROLLED 6
#define EVENTS 8    /* of the queue that runs full */
#define MOST 400    /* puts until it must have */

/* What the small queue has reported. */
struct said {
    int puts, disabled, lost;
};

static struct said hear(ptl_handle_eq_t queue)
{
    struct said said = {0, 0, 0};
    for (;;) {
        ptl_event_t event;
        int         answer = PtlEQGet(queue, &event);
        if (answer == PTL_EQ_EMPTY) {
            return said;
        }
        said.lost += answer == PTL_EQ_DROPPED;
        said.puts += event.type == PTL_EVENT_PUT;
        said.disabled += event.type == PTL_EVENT_PT_DISABLED;
        SAME(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PT_DISABLED, 1);
    }
}

/* Puts until one is refused; returns how many weren't. */
static int put_until_refused(struct stage *stage)
{
    ptl_md_t        md     = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
    ptl_handle_md_t handle = bind_md(stage, &md);
    for (int puts = 0; puts < MOST; puts++) {
        ptl_event_t  event;
        unsigned int which;
        OK(PtlPut(handle, 0, LENGTH, PTL_ACK_REQ, rig_peer(&stage->rig), CONTROLLED, 0, 0, stage, 0));
        OK(PtlEQPoll(&stage->queue, 1, PATIENCE_MS, &event, &which));
        SAME(event.type, PTL_EVENT_ACK);
        if (event.ni_fail_type != PTL_NI_OK) {
            SAME(event.ni_fail_type, PTL_NI_PT_DISABLED);
            return puts;
        }
    }
    return MOST;
}

static void report(const struct stage *stage, const char *key, int taken)
{
    char value[16];
    snprintf(value, sizeof value, "%d", taken);
    pmi_put(&stage->rig.pmi, key, value);
}

static int reported(const struct stage *stage, const char *key)
{
    char value[16];
    pmi_get(&stage->rig.pmi, key, value, sizeof value);
    return atoi(value);
}

static void check_target(struct stage *stage, const char *key, unsigned int portal_options, unsigned int options)
{
    ptl_handle_eq_t queue;
    ptl_pt_index_t  portal;
    int             controlled = portal_options == PTL_PT_FLOWCTRL;
    ptl_me_t        me         = entry_of(stage, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options);
    OK(PtlEQAlloc(stage->ni, EVENTS, &queue));
    OK(PtlPTAlloc(stage->ni, portal_options, queue, CONTROLLED, &portal));
    ptl_handle_any_t entry = append_at(stage, CONTROLLED, &me, PTL_PRIORITY_LIST);
    meet(stage);
    settle(stage);
    struct said said  = hear(queue);
    int         taken = reported(stage, key);
    SAME(said.lost, controlled ? 0 : 1);
    if (controlled) {
        SAME(taken >= 1 && taken < MOST, 1);
        SAME(said.puts, taken);
    } else {
        SAME(taken, MOST);
    }
    SAME(said.disabled, controlled && (options & PTL_ME_EVENT_FLOWCTRL_DISABLE) == 0);
    OK(unlink_entry(stage, entry));
    OK(PtlPTFree(stage->ni, portal));
    OK(PtlEQFree(queue));
}

static void check(struct stage *stage, const char *name, unsigned int portal_options, unsigned int options)
{
    static int round = 0;
    char       key[32];
    options_about = name;
    snprintf(key, sizeof key, "taken-%d", round++);
    if (is_target(stage)) {
        check_target(stage, key, portal_options, options);
    } else {
        meet(stage);
        report(stage, key, put_until_refused(stage));
        settle(stage);
    }
    meet(stage);
}

static void checks(struct stage *stage)
{
    check(stage, "no FLOWCTRL", 0, 0);
    check(stage, "FLOWCTRL", PTL_PT_FLOWCTRL, 0);
    check(stage, "FLOWCTRL and EVENT_FLOWCTRL_DISABLE", PTL_PT_FLOWCTRL, PTL_ME_EVENT_FLOWCTRL_DISABLE);
}

int main(void)
{
    return on_all_interfaces(checks);
}
