/*
 * Which events an entry's options silence, and what its counter counts: for each
 * option the events with it and without it, for puts, gets and atomics, on the
 * priority list, on the overflow list, and where the memory can't be reached.
 */
#include "options.h"

#define NOWHERE 4096 /* an address where nothing is */

struct row {
    const char  *name;
    unsigned int options;
    const char  *posted;
    ptl_size_t   counted;
};

static const int verbs[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC};

#define EACH(item, items) (size_t item = 0; item < sizeof(items) / sizeof *(items); item++)

static const unsigned int open_to_all = PTL_ME_OP_PUT | PTL_ME_OP_GET;
static const unsigned int silent      = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                                   PTL_ME_EVENT_UNLINK_DISABLE;

/* Events of a use-once entry: its own and of the message that it takes. */
static const struct row direct[] = {
    {"no option", 0, "LINK COMM AUTO_UNLINK", 0},
    {"EVENT_LINK_DISABLE", PTL_ME_EVENT_LINK_DISABLE, "COMM AUTO_UNLINK", 0},
    {"EVENT_COMM_DISABLE", PTL_ME_EVENT_COMM_DISABLE, "LINK AUTO_UNLINK", 0},
    {"EVENT_UNLINK_DISABLE", PTL_ME_EVENT_UNLINK_DISABLE, "LINK COMM", 0},
    {"EVENT_OVER_DISABLE", PTL_ME_EVENT_OVER_DISABLE, "LINK COMM AUTO_UNLINK", 0},
    {"EVENT_SUCCESS_DISABLE",
     PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE, "", 0},
    {"EVENT_CT_COMM", PTL_ME_EVENT_CT_COMM, "LINK COMM AUTO_UNLINK", 1},
    {"EVENT_CT_BYTES", PTL_ME_EVENT_CT_BYTES, "LINK COMM AUTO_UNLINK", 0},
    {"EVENT_CT_COMM and EVENT_CT_BYTES", PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES, "LINK COMM AUTO_UNLINK",
     LENGTH},
    {"EVENT_CT_OVERFLOW", PTL_ME_EVENT_CT_OVERFLOW, "LINK COMM AUTO_UNLINK", 0},
};

/* Events of a message that arrived before its entry. */
static const struct row late[] = {
    {"no option, late", 0, "OVER AUTO_UNLINK", 0},
    {"EVENT_OVER_DISABLE, late", PTL_ME_EVENT_OVER_DISABLE, "AUTO_UNLINK", 0},
    {"EVENT_UNLINK_DISABLE, late", PTL_ME_EVENT_UNLINK_DISABLE, "OVER", 0},
    {"EVENT_LINK_DISABLE, late", PTL_ME_EVENT_LINK_DISABLE, "OVER AUTO_UNLINK", 0},
    {"EVENT_CT_OVERFLOW, late", PTL_ME_EVENT_CT_OVERFLOW, "OVER AUTO_UNLINK", 1},
    {"EVENT_CT_OVERFLOW and EVENT_CT_BYTES, late", PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES,
     "OVER AUTO_UNLINK", LENGTH},
    {"EVENT_CT_OVERFLOW and EVENT_OVER_DISABLE, late", PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_OVER_DISABLE,
     "AUTO_UNLINK", 1},
    {"EVENT_CT_COMM, late", PTL_ME_EVENT_CT_COMM, "OVER AUTO_UNLINK", 0},
};

/* Events of a use-once entry of the overflow list, before and after a late one has
 * met its message. */
static const struct {
    const char  *name;
    unsigned int options;
    const char  *before, *after;
} overflow_rows[] = {
    {"no option, overflow", 0, "LINK COMM AUTO_UNLINK", "OVER AUTO_FREE"},
    {"EVENT_UNLINK_DISABLE, overflow", PTL_ME_EVENT_UNLINK_DISABLE, "LINK COMM", "OVER"},
    {"EVENT_LINK_DISABLE, overflow", PTL_ME_EVENT_LINK_DISABLE, "COMM AUTO_UNLINK", "OVER AUTO_FREE"},
    {"EVENT_COMM_DISABLE, overflow", PTL_ME_EVENT_COMM_DISABLE, "LINK AUTO_UNLINK", "OVER AUTO_FREE"},
    {"UNEXPECTED_HDR_DISABLE, overflow", PTL_ME_UNEXPECTED_HDR_DISABLE, "LINK COMM AUTO_UNLINK AUTO_FREE", "LINK"},
};

/* Events of a message to an unmapped address of an entry that spans all memory. */
static const struct {
    const char  *name;
    unsigned int options;
    const char  *posted;
    ptl_size_t   failures;
} failing[] = {
    {"no option, failing", 0, "COMM!SEGV", 0},
    {"EVENT_SUCCESS_DISABLE, failing", PTL_ME_EVENT_SUCCESS_DISABLE, "COMM!SEGV", 0},
    {"EVENT_COMM_DISABLE, failing", PTL_ME_EVENT_COMM_DISABLE, "", 0},
    {"EVENT_CT_COMM, failing", PTL_ME_EVENT_CT_COMM, "COMM!SEGV", 1},
    {"EVENT_CT_COMM and EVENT_CT_BYTES, failing", PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES, "COMM!SEGV", 1},
};

/* Rank 0's message, once rank 1 is ready; it hears of its end in one event. */
static void send_when_ready(struct stage *stage, ptl_size_t offset)
{
    meet(stage);
    if (!is_target(stage)) {
        ptl_md_t        md     = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        ptl_handle_md_t handle = bind_md(stage, &md);
        send_to(stage, handle, LENGTH, PTL_ACK_REQ, offset);
    }
}

static const char *answer(const struct stage *stage, int fails)
{
    if (stage->verb == PTL_EVENT_GET || stage->verb == PTL_EVENT_FETCH_ATOMIC) {
        return fails ? "REPLY!SEGV" : "REPLY";
    }
    return fails ? "ACK!SEGV" : "ACK";
}

static void check_direct(struct stage *stage, const struct row *row)
{
    options_about = row->name;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | PTL_ME_USE_ONCE | row->options);
        append(stage, &me, PTL_PRIORITY_LIST);
    }
    send_when_ready(stage, 0);
    POSTED(stage, answer(stage, 0), row->posted);
    COUNTED(stage, is_target(stage) ? row->counted : 0, 0);
}

static void check_late(struct stage *stage, const struct row *row)
{
    ptl_handle_any_t overflow = PTL_INVALID_HANDLE;
    options_about          = row->name;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | silent);
        overflow       = append(stage, &me, PTL_OVERFLOW_LIST);
    }
    send_when_ready(stage, 0);
    POSTED(stage, answer(stage, 0), "");
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | PTL_ME_USE_ONCE | row->options);
        append(stage, &me, PTL_PRIORITY_LIST);
    }
    POSTED(stage, "", row->posted);
    if (is_target(stage)) {
        COUNTED(stage, row->counted, 0);
        OK(unlink_entry(stage, overflow));
    }
}

static void check_overflow(struct stage *stage, size_t row)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    options_about          = overflow_rows[row].name;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | PTL_ME_USE_ONCE | overflow_rows[row].options);
        append(stage, &me, PTL_OVERFLOW_LIST);
    }
    send_when_ready(stage, 0);
    POSTED(stage, answer(stage, 0), overflow_rows[row].before);
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    POSTED(stage, "", overflow_rows[row].after);
    if (is_target(stage) && strcmp(overflow_rows[row].after, "LINK") == 0) {
        OK(unlink_entry(stage, entry)); /* it met nothing */
    }
}

static void check_failing(struct stage *stage, size_t row)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    options_about          = failing[row].name;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, open_to_all | PTL_ME_EVENT_LINK_DISABLE | failing[row].options);
        me.start    = NULL;
        me.length   = PTL_SIZE_MAX;
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    send_when_ready(stage, NOWHERE);
    POSTED(stage, answer(stage, 1), failing[row].posted);
    if (is_target(stage)) {
        COUNTED(stage, 0, failing[row].failures);
        OK(unlink_entry(stage, entry));
    }
}

static void checks(struct stage *stage)
{
    for EACH (verb, verbs) {
        stage->verb = verbs[verb];
        for EACH (row, direct) {
            check_direct(stage, &direct[row]);
        }
        for EACH (row, late) {
            check_late(stage, &late[row]);
        }
        for EACH (row, overflow_rows) {
            check_overflow(stage, row);
        }
        for EACH (row, failing) {
            check_failing(stage, row);
        }
    }
}

int main(void)
{
    return on_all_interfaces(checks);
}
