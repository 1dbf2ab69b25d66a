/*
 * What an entry's options decide of a message: who may reach it and how often, where
 * its bytes go and how many, whether it is acknowledged and remembered. Each option
 * is tried with and without.
 */
#include "options.h"

static const unsigned int open_to_all = PTL_ME_OP_PUT | PTL_ME_OP_GET;
static const unsigned int silent      = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                                   PTL_ME_EVENT_UNLINK_DISABLE;
static const unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;

/* Rank 1 appends an entry of all its memory, cleared; both wait for that. */
static ptl_handle_any_t stand(struct stage *stage, unsigned int options, ptl_list_t list)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, options);
        memset(stage->memory, 0, sizeof stage->memory);
        entry = append(stage, &me, list);
    }
    meet(stage);
    return entry;
}

static void fall(struct stage *stage, ptl_handle_any_t entry)
{
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
    meet(stage);
}

/* Rank 0 puts bytes of that salt. */
static void put_salted(struct stage *stage, size_t length, unsigned int salt, ptl_size_t offset)
{
    if (!is_target(stage)) {
        ptl_md_t        md     = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        ptl_handle_md_t handle = bind_md(stage, &md);
        rig_fill(stage->memory, length, salt);
        stage->verb = PTL_EVENT_PUT;
        send_to(stage, handle, length, PTL_ACK_REQ, offset);
    }
}

/* --- OP_PUT and OP_GET: permission --- */

static ptl_sr_value_t violations(const struct stage *stage)
{
    ptl_sr_value_t value;
    OK(PtlNIStatus(stage->ni, PTL_SR_OPERATION_VIOLATIONS, &value));
    return value;
}

static void check_operation(struct stage *stage, int verb, unsigned int given, unsigned int needed)
{
    int              allowed = (given & needed) == needed;
    int              replies = verb == PTL_EVENT_GET || verb == PTL_EVENT_FETCH_ATOMIC;
    ptl_sr_value_t   before  = violations(stage);
    ptl_handle_any_t entry   = stand(stage, given | PTL_ME_EVENT_LINK_DISABLE, PTL_PRIORITY_LIST);
    stage->verb              = verb;
    if (!is_target(stage)) {
        ptl_md_t md = md_of(stage, PTL_MD_EVENT_SEND_DISABLE);
        send_one(stage, bind_md(stage, &md), PTL_ACK_REQ);
    }
    if (allowed) {
        POSTED(stage, replies ? "REPLY" : "ACK", "COMM");
    } else {
        POSTED(stage, replies ? "REPLY!OP_VIOLATION" : "ACK!OP_VIOLATION", "");
    }
    SAME(violations(stage) - before, is_target(stage) && !allowed);
    fall(stage, entry);
}

static void op_put_and_op_get_permit(struct stage *stage)
{
    static const unsigned int given[] = {0, PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_OP_PUT | PTL_ME_OP_GET};
    options_about                     = "OP_PUT and OP_GET";
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        check_operation(stage, PTL_EVENT_PUT, given[i], PTL_ME_OP_PUT);
        check_operation(stage, PTL_EVENT_GET, given[i], PTL_ME_OP_GET);
        check_operation(stage, PTL_EVENT_ATOMIC, given[i], PTL_ME_OP_PUT);
        check_operation(stage, PTL_EVENT_FETCH_ATOMIC, given[i], PTL_ME_OP_PUT | PTL_ME_OP_GET);
    }
}

/* --- USE_ONCE --- */

static void use_once_takes_one_message(struct stage *stage)
{
    options_about           = "USE_ONCE";
    ptl_handle_any_t entry = stand(stage, quiet, PTL_PRIORITY_LIST);
    put_salted(stage, LENGTH, 1, 0);
    put_salted(stage, LENGTH, 1, 0);
    POSTED(stage, "ACK ACK", "COMM COMM");
    fall(stage, entry);
    entry = stand(stage, quiet | PTL_ME_USE_ONCE, PTL_PRIORITY_LIST);
    put_salted(stage, LENGTH, 1, 0);
    put_salted(stage, LENGTH, 1, 0);
    POSTED(stage, "ACK ACK!DROPPED", "COMM");
    if (is_target(stage)) {
        ANSWERS(PTL_ARG_INVALID, unlink_entry(stage, entry));
    }
}

/* --- IOVEC --- */

static void iovec_scatters_and_gathers(struct stage *stage)
{
    ptl_iovec_t      pieces[3] = {{stage->memory + 500, 10}, {stage->memory + 100, 0}, {stage->memory + 8, 54}};
    ptl_handle_any_t entry     = PTL_INVALID_HANDLE;
    options_about              = "IOVEC";
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet | PTL_ME_OP_GET | PTL_IOVEC);
        me.start    = pieces;
        me.length   = 3;
        memset(stage->memory, 0, sizeof stage->memory);
        entry = append(stage, &me, PTL_PRIORITY_LIST);
        memset(pieces, 0, sizeof pieces); /* it was copied */
    }
    meet(stage);
    put_salted(stage, LENGTH + 1, 2, 0); /* one byte more than there is room */
    POSTED(stage, "ACK", "COMM");
    SAME(stage->events[0].mlength, LENGTH);
    if (is_target(stage)) {
        SAME((uintptr_t)stage->events[0].start, (uintptr_t)(stage->memory + 500));
        for (size_t place = 0; place < LENGTH; place++) {
            SAME(stage->memory[place < 10 ? 500 + place : 8 + place - 10], rig_byte(place, 2));
        }
        SAME(stage->memory[510], 0);
        SAME(stage->memory[62], 0);
    } else {
        ptl_md_t md = md_of(stage, 0);
        memset(stage->memory, 0, sizeof stage->memory);
        stage->verb = PTL_EVENT_GET;
        send_to(stage, bind_md(stage, &md), LENGTH, 0, 0);
    }
    stage->verb = PTL_EVENT_GET;
    POSTED(stage, "REPLY", "COMM");
    if (!is_target(stage)) {
        rig_check_fill(stage->memory, LENGTH, 2);
    }
    fall(stage, entry);
}

/* --- ACK_DISABLE --- */

static void ack_disable_silences_acknowledgements(struct stage *stage)
{
    options_about = "ACK_DISABLE";
    for (int disabled = 0; disabled < 2; disabled++) {
        unsigned int     options = open_to_all | silent | (disabled ? PTL_ME_ACK_DISABLE : 0);
        ptl_handle_any_t entry   = stand(stage, options, PTL_PRIORITY_LIST);
        if (!is_target(stage)) {
            ptl_md_t        md     = md_of(stage, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK);
            ptl_handle_md_t handle = bind_md(stage, &md);
            stage->verb            = PTL_EVENT_PUT;
            send_one(stage, handle, PTL_ACK_REQ);
            send_one(stage, handle, PTL_CT_ACK_REQ);
            send_one(stage, handle, PTL_OC_ACK_REQ);
            stage->verb = PTL_EVENT_ATOMIC;
            send_one(stage, handle, PTL_ACK_REQ);
            stage->verb = PTL_EVENT_GET; /* a reply is none */
            send_one(stage, handle, PTL_ACK_REQ);
        }
        POSTED(stage, disabled ? "REPLY" : "ACK ACK REPLY", "");
        COUNTED(stage, is_target(stage) || disabled ? 0 : 4, 0);
        fall(stage, entry);
    }
}

/* --- UNEXPECTED_HDR_DISABLE --- */

static void unexpected_hdr_disable_keeps_no_header(struct stage *stage)
{
    options_about = "UNEXPECTED_HDR_DISABLE";
    for (int disabled = 0; disabled < 2; disabled++) {
        unsigned int     options = quiet | (disabled ? PTL_ME_UNEXPECTED_HDR_DISABLE : 0);
        ptl_handle_any_t overflow   = stand(stage, options, PTL_OVERFLOW_LIST);
        put_salted(stage, LENGTH, 3, 0);
        POSTED(stage, "ACK", "COMM");
        if (is_target(stage)) {
            SAME(stage->events[0].ptl_list, PTL_OVERFLOW_LIST);
            rig_check_fill(stage->memory, LENGTH, 3);
            ptl_me_t wanted = entry_of(stage, PTL_ME_OP_PUT);
            search_at(stage, PORTAL, &wanted, PTL_SEARCH_DELETE, NULL);
        }
        POSTED(stage, "", disabled ? "SEARCH!NO_MATCH" : "OVER");
        fall(stage, overflow);
    }
}

/* --- IS_ACCESSIBLE, and users --- */

static void is_accessible_changes_nothing_where_it_is_true(struct stage *stage)
{
    options_about = "IS_ACCESSIBLE";
    for (int said = 0; said < 2; said++) {
        unsigned int     options = quiet | (said ? PTL_ME_IS_ACCESSIBLE : 0);
        ptl_handle_any_t entry   = stand(stage, options, PTL_PRIORITY_LIST);
        put_salted(stage, LENGTH, 4, 100);
        POSTED(stage, "ACK", "COMM");
        if (is_target(stage)) {
            rig_check_fill(stage->memory + 100, LENGTH, 4);
        }
        fall(stage, entry);
    }
}

static void uid_keeps_other_users_out(struct stage *stage)
{
    ptl_uid_t mine;
    options_about = "uid";
    OK(PtlGetUid(stage->ni, &mine));
    const ptl_uid_t uids[] = {PTL_UID_ANY, mine, mine + 1};
    for (size_t i = 0; i < 3; i++) {
        ptl_handle_any_t entry = PTL_INVALID_HANDLE;
        if (is_target(stage)) {
            ptl_me_t me = entry_of(stage, quiet);
            me.uid      = uids[i];
            entry       = append(stage, &me, PTL_PRIORITY_LIST);
        }
        meet(stage);
        put_salted(stage, LENGTH, 5, 0);
        POSTED(stage, i < 2 ? "ACK" : "ACK!PERM_VIOLATION", i < 2 ? "COMM" : "");
        fall(stage, entry);
    }
}

/* --- With matching alone --- */

static void manage_local_lays_messages_behind_each_other(struct stage *stage)
{
    options_about = "MANAGE_LOCAL";
    for (int managed = 0; managed < 2; managed++) {
        unsigned int     options = quiet | (managed ? PTL_ME_MANAGE_LOCAL : 0);
        ptl_handle_any_t entry   = stand(stage, options, PTL_PRIORITY_LIST);
        put_salted(stage, LENGTH, 6, 8);
        put_salted(stage, LENGTH, 6, 8);
        POSTED(stage, "ACK ACK", "COMM COMM");
        for (int i = 0; i < 2; i++) {
            ptl_size_t offset = managed ? (ptl_size_t)(i * LENGTH) : 8;
            if (is_target(stage)) {
                SAME((uintptr_t)stage->events[i].start, (uintptr_t)(stage->memory + offset));
                rig_check_fill(stage->memory + offset, LENGTH, 6);
            } else {
                SAME(stage->events[i].remote_offset, offset);
            }
        }
        fall(stage, entry);
    }
}

static void min_free_ends_a_managed_entry(struct stage *stage)
{
    static const struct {
        ptl_size_t  min_free;
        const char *posted;
    } rows[] = {{0, "COMM"}, {ROOM - LENGTH, "COMM"}, {ROOM - LENGTH + 1, "COMM AUTO_UNLINK"}};
    options_about = "MANAGE_LOCAL and min_free";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptl_handle_any_t entry = PTL_INVALID_HANDLE;
        if (is_target(stage)) {
            ptl_me_t me = entry_of(stage, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
            me.min_free = rows[i].min_free;
            entry       = append(stage, &me, PTL_PRIORITY_LIST);
        }
        meet(stage);
        put_salted(stage, LENGTH, 7, 0);
        POSTED(stage, "ACK", rows[i].posted);
        if (is_target(stage)) {
            ANSWERS(i < 2 ? PTL_OK : PTL_ARG_INVALID, unlink_entry(stage, entry));
        }
        meet(stage);
    }
}

static void no_truncate_lets_long_messages_pass_by(struct stage *stage)
{
    options_about = "NO_TRUNCATE";
    for (int whole = 0; whole < 2; whole++) {
        unsigned int     options = quiet | (whole ? PTL_ME_NO_TRUNCATE : 0);
        ptl_handle_any_t entry   = stand(stage, options, PTL_PRIORITY_LIST);
        put_salted(stage, LENGTH, 8, ROOM - LENGTH);      /* just fits */
        put_salted(stage, LENGTH, 8, ROOM - LENGTH + 10); /* ten bytes too long */
        POSTED(stage, whole ? "ACK ACK!DROPPED" : "ACK ACK", whole ? "COMM" : "COMM COMM");
        SAME(stage->events[0].mlength, LENGTH);
        if (!whole) {
            SAME(stage->events[1].mlength, LENGTH - 10);
        }
        if (is_target(stage)) {
            rig_check_fill(stage->memory + ROOM - LENGTH, 10, 8);
            rig_check_fill(stage->memory + ROOM - LENGTH + (whole ? 0 : 10), LENGTH - 10, 8);
        }
        fall(stage, entry);
    }
}

/* Gaps are allowed, overlaps and lost bytes aren't. */
static void may_align_keeps_messages_apart(struct stage *stage)
{
    options_about          = "MAY_ALIGN";
    ptl_handle_any_t entry = stand(stage, quiet | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN, PTL_PRIORITY_LIST);
    for (unsigned int i = 0; i < 4; i++) {
        put_salted(stage, 13, 9, 0);
    }
    POSTED(stage, "ACK ACK ACK ACK", "COMM COMM COMM COMM");
    const unsigned char *free_from = stage->memory;
    for (int i = 0; is_target(stage) && i < 4; i++) {
        const unsigned char *start = stage->events[i].start;
        SAME(start >= free_from, 1);
        rig_check_fill(start, 13, 9);
        free_from = start + 13;
    }
    SAME(free_from <= stage->memory + ROOM, 1);
    fall(stage, entry);
}

/* A header kept moves the entry's own offset, or doesn't. */
static void local_inc_uh_rlength_counts_what_came_before(struct stage *stage)
{
    options_about = "LOCAL_INC_UH_RLENGTH";
    for (int counted = 0; counted < 2; counted++) {
        ptl_handle_any_t entry = PTL_INVALID_HANDLE;
        ptl_handle_any_t overflow = stand(stage, PTL_ME_OP_PUT | silent, PTL_OVERFLOW_LIST);
        put_salted(stage, LENGTH, 10, 512);
        POSTED(stage, "ACK", "");
        if (is_target(stage)) {
            ptl_me_t me = entry_of(stage, quiet | PTL_ME_MANAGE_LOCAL | (counted ? PTL_ME_LOCAL_INC_UH_RLENGTH : 0));
            entry       = append(stage, &me, PTL_PRIORITY_LIST);
        }
        POSTED(stage, "", "OVER");
        put_salted(stage, LENGTH, 10, 0);
        POSTED(stage, "ACK", "COMM");
        if (is_target(stage)) {
            SAME((uintptr_t)stage->events[0].start, (uintptr_t)(stage->memory + (counted ? LENGTH : 0)));
        }
        fall(stage, entry);
        fall(stage, overflow);
    }
}

/* --- Which options there are --- */

static int try_append(struct stage *stage, unsigned int options)
{
    ptl_handle_any_t entry;
    ptl_me_t         me = entry_of(stage, options);
    ptl_le_t         le = list_entry_of(&me);
    me.length = le.length = 0; /* of PTL_IOVEC, too */
    int answer = stage->matching ? PtlMEAppend(stage->ni, PORTAL, &me, PTL_PRIORITY_LIST, NULL, &entry)
                                 : PtlLEAppend(stage->ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry);
    if (answer == PTL_OK) {
        OK(unlink_entry(stage, entry));
    }
    return answer;
}

static void the_masks_hold_all_options(struct stage *stage)
{
    unsigned int known = PTL_LE_ACK_DISABLE | PTL_ME_ACK_DISABLE;
    known |= stage->matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
    options_about = "each bit";
    for (int bit = 0; bit < 32; bit++) {
        unsigned int option = 1u << bit;
        int          answer = try_append(stage, option | PTL_ME_EVENT_LINK_DISABLE);
        SAME(answer, option & known ? PTL_OK : PTL_ARG_INVALID);
    }
}

static void checks(struct stage *stage)
{
    op_put_and_op_get_permit(stage);
    stage->verb = PTL_EVENT_PUT;
    use_once_takes_one_message(stage);
    iovec_scatters_and_gathers(stage);
    ack_disable_silences_acknowledgements(stage);
    stage->verb = PTL_EVENT_PUT;
    unexpected_hdr_disable_keeps_no_header(stage);
    is_accessible_changes_nothing_where_it_is_true(stage);
    uid_keeps_other_users_out(stage);
    if (stage->matching) {
        manage_local_lays_messages_behind_each_other(stage);
        min_free_ends_a_managed_entry(stage);
        no_truncate_lets_long_messages_pass_by(stage);
        may_align_keeps_messages_apart(stage);
        local_inc_uh_rlength_counts_what_came_before(stage);
    }
    the_masks_hold_all_options(stage);
}

int main(void)
{
    return on_all_interfaces(checks);
}
