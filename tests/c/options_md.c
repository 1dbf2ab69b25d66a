/*
 * What a descriptor's options and the kinds of acknowledgement decide: which events
 * the initiator hears, what its counter counts, where the bytes come from and go to,
 * and in which order messages match. Each option is tried with and without.
 */
#include "options.h"

#define MESSAGES 300

struct row {
    const char   *name;
    unsigned int  options;
    ptl_ack_req_t ack;
    const char   *posted;
    ptl_size_t    counted;
};

static const unsigned int count_bytes = PTL_MD_EVENT_CT_BYTES;

/* Puts and atomics that arrive. */
static const struct row sent[] = {
    {"NO_ACK_REQ", 0, PTL_NO_ACK_REQ, "SEND", 0},
    {"ACK_REQ", 0, PTL_ACK_REQ, "SEND ACK", 0},
    {"CT_ACK_REQ", 0, PTL_CT_ACK_REQ, "SEND", 0},
    {"OC_ACK_REQ", 0, PTL_OC_ACK_REQ, "SEND", 0},
    {"EVENT_SEND_DISABLE", PTL_MD_EVENT_SEND_DISABLE, PTL_ACK_REQ, "ACK", 0},
    {"EVENT_SUCCESS_DISABLE", PTL_MD_EVENT_SUCCESS_DISABLE, PTL_ACK_REQ, "", 0},
    {"EVENT_CT_SEND", PTL_MD_EVENT_CT_SEND, PTL_ACK_REQ, "SEND ACK", 1},
    {"EVENT_CT_SEND without acknowledgement", PTL_MD_EVENT_CT_SEND, PTL_NO_ACK_REQ, "SEND", 1},
    {"EVENT_CT_SEND and EVENT_CT_BYTES", PTL_MD_EVENT_CT_SEND | count_bytes, PTL_ACK_REQ, "SEND ACK", LENGTH},
    {"EVENT_CT_SEND and EVENT_SEND_DISABLE", PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SEND_DISABLE, PTL_NO_ACK_REQ, "", 1},
    {"EVENT_CT_ACK and NO_ACK_REQ", PTL_MD_EVENT_CT_ACK, PTL_NO_ACK_REQ, "SEND", 0},
    {"EVENT_CT_ACK and ACK_REQ", PTL_MD_EVENT_CT_ACK, PTL_ACK_REQ, "SEND ACK", 1},
    {"EVENT_CT_ACK and CT_ACK_REQ", PTL_MD_EVENT_CT_ACK, PTL_CT_ACK_REQ, "SEND", 1},
    {"EVENT_CT_ACK and OC_ACK_REQ", PTL_MD_EVENT_CT_ACK, PTL_OC_ACK_REQ, "SEND", 1},
    {"EVENT_CT_ACK, EVENT_CT_BYTES and ACK_REQ", PTL_MD_EVENT_CT_ACK | count_bytes, PTL_ACK_REQ, "SEND ACK", LENGTH},
    {"EVENT_CT_ACK, EVENT_CT_BYTES and CT_ACK_REQ", PTL_MD_EVENT_CT_ACK | count_bytes, PTL_CT_ACK_REQ, "SEND", LENGTH},
    {"EVENT_CT_ACK and EVENT_SUCCESS_DISABLE", PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE, PTL_ACK_REQ, "", 1},
    {"EVENT_CT_REPLY of what has none", PTL_MD_EVENT_CT_REPLY, PTL_ACK_REQ, "SEND ACK", 0},
    {"EVENT_CT_BYTES alone", count_bytes, PTL_ACK_REQ, "SEND ACK", 0},
};

/* Puts and atomics that nobody takes; what is counted are failures. */
static const struct row dropped[] = {
    {"ACK_REQ, dropped", 0, PTL_ACK_REQ, "SEND ACK!DROPPED", 0},
    {"EVENT_SEND_DISABLE, dropped", PTL_MD_EVENT_SEND_DISABLE, PTL_ACK_REQ, "ACK!DROPPED", 0},
    {"EVENT_SUCCESS_DISABLE, dropped", PTL_MD_EVENT_SUCCESS_DISABLE, PTL_ACK_REQ, "ACK!DROPPED", 0},
    {"EVENT_CT_ACK, dropped", PTL_MD_EVENT_CT_ACK, PTL_ACK_REQ, "SEND ACK!DROPPED", 1},
    {"EVENT_CT_ACK and EVENT_CT_BYTES, dropped", PTL_MD_EVENT_CT_ACK | count_bytes, PTL_ACK_REQ, "SEND ACK!DROPPED", 1},
};

/* Gets that are answered. */
static const struct row got[] = {
    {"a get", 0, 0, "REPLY", 0},
    {"EVENT_SEND_DISABLE, a get", PTL_MD_EVENT_SEND_DISABLE, 0, "REPLY", 0},
    {"EVENT_SUCCESS_DISABLE, a get", PTL_MD_EVENT_SUCCESS_DISABLE, 0, "", 0},
    {"EVENT_CT_REPLY, a get", PTL_MD_EVENT_CT_REPLY, 0, "REPLY", 1},
    {"EVENT_CT_REPLY and EVENT_CT_BYTES, a get", PTL_MD_EVENT_CT_REPLY | count_bytes, 0, "REPLY", LENGTH},
    {"EVENT_CT_REPLY and EVENT_SUCCESS_DISABLE, a get", PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SUCCESS_DISABLE, 0, "", 1},
    {"EVENT_CT_SEND and EVENT_CT_ACK, a get", PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK, 0, "REPLY", 0},
};

static const struct row got_nothing[] = {
    {"a get, dropped", 0, 0, "REPLY!DROPPED", 0},
    {"EVENT_SUCCESS_DISABLE, a get, dropped", PTL_MD_EVENT_SUCCESS_DISABLE, 0, "REPLY!DROPPED", 0},
    {"EVENT_CT_REPLY, a get, dropped", PTL_MD_EVENT_CT_REPLY, 0, "REPLY!DROPPED", 1},
    {"EVENT_CT_REPLY and EVENT_CT_BYTES, a get, dropped", PTL_MD_EVENT_CT_REPLY | count_bytes, 0, "REPLY!DROPPED", 1},
};

static void check_row(struct stage *stage, const struct row *row, int fails)
{
    options_about = row->name;
    if (!is_target(stage)) {
        ptl_md_t        md     = md_of(stage, row->options);
        ptl_handle_md_t handle = bind_md(stage, &md);
        send_one(stage, handle, row->ack);
        settle(stage);
        check_words(stage, __FILE__, __LINE__, row->posted);
        COUNTED(stage, fails ? 0 : row->counted, fails ? row->counted : 0);
        OK(PtlMDRelease(handle));
    } else {
        settle(stage);
    }
}

static const unsigned int quiet = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_COMM_DISABLE;

static void check_events_and_counts(struct stage *stage, int verb)
{
    int              replies = verb == PTL_EVENT_GET;
    size_t           number  = replies ? sizeof got / sizeof *got : sizeof sent / sizeof *sent;
    ptl_handle_any_t entry   = PTL_INVALID_HANDLE;
    stage->verb              = verb;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet);
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    for (size_t row = 0; row < number; row++) {
        check_row(stage, replies ? &got[row] : &sent[row], 0);
    }
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
    meet(stage);
    number = replies ? sizeof got_nothing / sizeof *got_nothing : sizeof dropped / sizeof *dropped;
    for (size_t row = 0; row < number; row++) {
        check_row(stage, replies ? &got_nothing[row] : &dropped[row], 1);
    }
}

/* --- Two descriptors: the one that is sent from, and the one that is replied to --- */

static void fetching_reports_each_descriptor_its_own(struct stage *stage)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    options_about          = "two descriptors of a fetching atomic";
    stage->verb            = PTL_EVENT_FETCH_ATOMIC;
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet);
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    if (!is_target(stage)) {
        ptl_md_t        from = md_of(stage, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SEND_DISABLE);
        ptl_md_t        into = md_of(stage, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES);
        ptl_handle_md_t source = bind_md(stage, &from), sink = bind_md(stage, &into);
        OK(PtlFetchAtomic(sink, LENGTH, source, 0, LENGTH, rig_peer(&stage->rig), PORTAL, 0, 0, stage, 0, PTL_SUM,
                          PTL_INT8_T));
    }
    POSTED(stage, "REPLY", "");
    COUNTED(stage, is_target(stage) ? 0 : 1 + LENGTH, 0);
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
}

/* --- IOVEC --- */

static void check_piece(const unsigned char *memory, size_t length, size_t first, unsigned int salt)
{
    for (size_t place = 0; place < length; place++) {
        SAME(memory[place], rig_byte(first + place, salt));
    }
}

static void send_and_fetch_pieces(struct stage *stage)
{
    unsigned char  *memory    = stage->memory;
    ptl_iovec_t     pieces[3] = {{memory + 300, 20}, {memory, 0}, {memory + 10, LENGTH - 20}};
    ptl_md_t        md        = {pieces, 3, PTL_IOVEC, stage->queue, PTL_CT_NONE};
    ptl_handle_md_t handle    = bind_md(stage, &md);
    memset(pieces, 0, sizeof pieces); /* the array was copied */
    for (size_t place = 0; place < LENGTH; place++) {
        memory[place < 20 ? 300 + place : 10 + place - 20] = rig_byte(place, 11);
    }
    stage->verb = PTL_EVENT_PUT;
    send_to(stage, handle, LENGTH, PTL_ACK_REQ, 0);
    settle(stage);
    check_words(stage, __FILE__, __LINE__, "SEND ACK");
    memset(memory, 0, sizeof stage->memory);
    ANSWERS(PTL_ARG_INVALID, PtlGet(handle, 0, LENGTH + 1, rig_peer(&stage->rig), PORTAL, 0, 0, NULL));
    OK(PtlGet(handle, 5, LENGTH - 5, rig_peer(&stage->rig), PORTAL, 0, 5, stage));
    settle(stage);
    check_words(stage, __FILE__, __LINE__, "REPLY");
    SAME(memory[304], 0);
    check_piece(memory + 305, 15, 5, 11);
    SAME(memory[320], 0);
    SAME(memory[9], 0);
    check_piece(memory + 10, LENGTH - 20, 20, 11);
    SAME(memory[10 + LENGTH - 20], 0);
    OK(PtlMDRelease(handle));
}

static void iovec_gathers_and_scatters(struct stage *stage)
{
    options_about = "IOVEC";
    if (is_target(stage)) {
        ptl_me_t         me    = entry_of(stage, quiet);
        ptl_handle_any_t entry = append(stage, &me, PTL_PRIORITY_LIST);
        meet(stage);
        settle(stage);
        rig_check_fill(stage->memory, LENGTH, 11);
        settle(stage);
        OK(unlink_entry(stage, entry));
    } else {
        meet(stage);
        send_and_fetch_pieces(stage);
    }
    meet(stage);
}

/* --- UNORDERED, and order without it --- */

/* Entries that each take one message of eight bytes, in the order of appending, and
 * count it. */
static void stand_in_line(struct stage *stage, uint64_t *places)
{
    unsigned int options = quiet | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM;
    for (int i = 0; i < MESSAGES; i++) {
        ptl_me_t me = entry_of(stage, options);
        me.start    = &places[i];
        me.length   = sizeof *places;
        append(stage, &me, PTL_PRIORITY_LIST);
    }
}

static void send_numbers(struct stage *stage, uint64_t *numbers, unsigned int options)
{
    ptl_md_t md = {numbers, MESSAGES * sizeof *numbers, options | PTL_MD_EVENT_SEND_DISABLE, stage->queue, PTL_CT_NONE};
    ptl_handle_md_t handle = bind_md(stage, &md);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        numbers[i] = i + 1;
        OK(PtlPut(handle, i * sizeof *numbers, sizeof *numbers, PTL_NO_ACK_REQ, rig_peer(&stage->rig), PORTAL, 0, 0,
                  stage, 0));
    }
}

static void check_numbers(const uint64_t *places, int ordered)
{
    unsigned char seen[MESSAGES + 1] = {0};
    for (uint64_t i = 0; i < MESSAGES; i++) {
        SAME(places[i] >= 1 && places[i] <= MESSAGES, 1);
        SAME(seen[places[i]]++, 0);
        if (ordered) {
            SAME(places[i], i + 1);
        }
    }
}

static void messages_match_in_order_unless_unordered(struct stage *stage)
{
    static uint64_t numbers[MESSAGES];
    for (int unordered = 0; unordered < 2; unordered++) {
        options_about = unordered ? "UNORDERED" : "no UNORDERED";
        memset(numbers, 0, sizeof numbers);
        if (is_target(stage)) {
            stand_in_line(stage, numbers);
        }
        meet(stage);
        if (is_target(stage)) {
            rig_count(stage->counter, MESSAGES);
            check_numbers(numbers, !unordered);
        } else {
            send_numbers(stage, numbers, unordered ? PTL_MD_UNORDERED : 0);
        }
        POSTED(stage, "", "");
        COUNTED(stage, is_target(stage) ? MESSAGES : 0, 0);
    }
}

/* --- UNRELIABLE --- */

/* What becomes of a put of LENGTH bytes of that salt, by the descriptor's options. */
static int try_put(struct stage *stage, unsigned int options, ptl_ack_req_t ack)
{
    ptl_md_t        md     = md_of(stage, options | PTL_MD_EVENT_SEND_DISABLE);
    ptl_handle_md_t handle = bind_md(stage, &md);
    return PtlPut(handle, 0, LENGTH, ack, rig_peer(&stage->rig), PORTAL, 0, 0, stage, 0);
}

/* It may be lost, but not in parts; and full acknowledgements go with certainty only. */
static void unreliable_puts_have_no_full_acknowledgement(struct stage *stage)
{
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    options_about          = "UNRELIABLE";
    memset(stage->memory, 0, sizeof stage->memory);
    if (is_target(stage)) {
        ptl_me_t me = entry_of(stage, quiet);
        entry       = append(stage, &me, PTL_PRIORITY_LIST);
    }
    meet(stage);
    if (!is_target(stage)) {
        rig_fill(stage->memory, LENGTH, 12);
        ANSWERS(PTL_ARG_INVALID, try_put(stage, PTL_MD_UNRELIABLE, PTL_ACK_REQ));
        OK(try_put(stage, PTL_MD_UNRELIABLE, PTL_NO_ACK_REQ));
        OK(try_put(stage, PTL_MD_UNRELIABLE, PTL_CT_ACK_REQ));
        OK(try_put(stage, PTL_MD_UNRELIABLE, PTL_OC_ACK_REQ));
    }
    POSTED(stage, "", "");
    if (is_target(stage) && stage->memory[0] != 0) {
        rig_check_fill(stage->memory, LENGTH, 12);
    }
    if (!is_target(stage)) {
        OK(try_put(stage, 0, PTL_ACK_REQ));
    }
    POSTED(stage, "ACK", "");
    if (is_target(stage)) {
        OK(unlink_entry(stage, entry));
    }
}

/* --- What there must be for an option --- */

static int put_of(struct stage *stage, ptl_handle_eq_t queue, ptl_handle_ct_t counter, ptl_ack_req_t ack)
{
    ptl_md_t md  = md_of(stage, 0);
    md.eq_handle = queue;
    md.ct_handle = counter;
    return PtlPut(bind_md(stage, &md), 0, 0, ack, rig_peer(&stage->rig), MARKS, 0, 0, NULL, 0);
}

static void acknowledgements_need_somewhere_to_go(struct stage *stage)
{
    options_about = "acknowledgements without queue or counter";
    if (!is_target(stage)) {
        ANSWERS(PTL_ARG_INVALID, put_of(stage, PTL_EQ_NONE, stage->counter, PTL_ACK_REQ));
        ANSWERS(PTL_ARG_INVALID, put_of(stage, stage->queue, PTL_CT_NONE, PTL_CT_ACK_REQ));
        ANSWERS(PTL_ARG_INVALID, put_of(stage, stage->queue, stage->counter, 4));
        OK(put_of(stage, PTL_EQ_NONE, stage->counter, PTL_CT_ACK_REQ));
        OK(put_of(stage, PTL_EQ_NONE, PTL_CT_NONE, PTL_OC_ACK_REQ));
        OK(put_of(stage, PTL_EQ_NONE, PTL_CT_NONE, PTL_NO_ACK_REQ));
    }
    POSTED(stage, "", "");
}

static void the_mask_holds_all_options(struct stage *stage)
{
    options_about = "each bit";
    for (int bit = 0; bit < 32; bit++) {
        unsigned int    option = 1u << bit;
        ptl_md_t        md     = md_of(stage, option);
        ptl_handle_md_t handle;
        md.length  = 0;
        int answer = PtlMDBind(stage->ni, &md, &handle);
        SAME(answer, option & PTL_MD_OPTIONS_MASK ? PTL_OK : PTL_ARG_INVALID);
        if (answer == PTL_OK) {
            OK(PtlMDRelease(handle));
        }
    }
}

static void checks(struct stage *stage)
{
    check_events_and_counts(stage, PTL_EVENT_PUT);
    check_events_and_counts(stage, PTL_EVENT_ATOMIC);
    check_events_and_counts(stage, PTL_EVENT_GET);
    fetching_reports_each_descriptor_its_own(stage);
    stage->verb = PTL_EVENT_PUT;
    iovec_gathers_and_scatters(stage);
    messages_match_in_order_unless_unordered(stage);
    unreliable_puts_have_no_full_acknowledgement(stage);
    acknowledgements_need_somewhere_to_go(stage);
    the_mask_holds_all_options(stage);
}

int main(void)
{
    return on_all_interfaces(checks);
}
