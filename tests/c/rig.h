/*
 * What the test programs share: checks that say where they failed, an
 * interface with everybody's address, and waits that end.
 */
#ifndef LINTEL_TESTS_RIG_H
#define LINTEL_TESTS_RIG_H

#include <portals4.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmi.h"

#define MAX_RANKS 128
#define PATIENCE_MS 20000

static int rig_rank = -1;

static void rig_fail(const char *file, int line, const char *what, long got)
{
    fprintf(stderr, "rank %d: %s:%d: %s (got %ld)\n", rig_rank, file, line, what, got);
    exit(1);
}

/* The call answers PTL_OK. */
#define OK(call) ANSWERS(PTL_OK, call)

/* The call answers this code. */
#define ANSWERS(code, call)                                                  \
    do {                                                                     \
        int rc_ = (call);                                                    \
        if (rc_ != (code)) {                                                 \
            rig_fail(__FILE__, __LINE__, #call " should be " #code, rc_);    \
        }                                                                    \
    } while (0)

/* Two integers are the same. */
#define SAME(left, right)                                                    \
    do {                                                                     \
        long long l_ = (long long)(left), r_ = (long long)(right);           \
        if (l_ != r_) {                                                      \
            rig_fail(__FILE__, __LINE__, #left " should be " #right, (long)l_); \
        }                                                                    \
    } while (0)

struct rig {
    struct pmi      pmi;
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t   me;
    ptl_process_t   peers[MAX_RANKS];
};

/* The other of two ranks. */
static inline ptl_process_t rig_peer(const struct rig *rig)
{
    return rig->peers[1 - rig->pmi.rank];
}

static void rig_exchange(struct rig *rig)
{
    char key[32], value[64];
    snprintf(key, sizeof key, "address-%d", rig->pmi.rank);
    snprintf(value, sizeof value, "%u:%u", rig->me.phys.nid, rig->me.phys.pid);
    pmi_put(&rig->pmi, key, value);
    pmi_barrier(&rig->pmi);
    for (int rank = 0; rank < rig->pmi.size; rank++) {
        ptl_process_t *peer = &rig->peers[rank];
        snprintf(key, sizeof key, "address-%d", rank);
        pmi_get(&rig->pmi, key, value, sizeof value);
        SAME(sscanf(value, "%u:%u", &peer->phys.nid, &peer->phys.pid), 2);
    }
}

/* A physical interface, matching or not, on which everybody knows everybody. */
static struct rig rig_begin_all(unsigned int matching)
{
    struct rig rig;
    memset(&rig, 0, sizeof rig);
    rig.pmi = pmi_begin();
    rig_rank = rig.pmi.rank;
    if (rig.pmi.size > MAX_RANKS) {
        fprintf(stderr, "this program wants %d ranks at most\n", MAX_RANKS);
        exit(1);
    }
    alarm(60); /* a hang ends here, not at the caller's patience */
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, matching | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, &rig.limits, &rig.ni));
    OK(PtlGetPhysId(rig.ni, &rig.me));
    rig_exchange(&rig);
    return rig;
}

/* The same with two ranks. */
static inline struct rig rig_begin(unsigned int matching)
{
    struct rig rig = rig_begin_all(matching);
    if (rig.pmi.size != 2) {
        fprintf(stderr, "this program wants two ranks: yod -n 2\n");
        exit(1);
    }
    return rig;
}

static inline void rig_end(const struct rig *rig)
{
    pmi_barrier(&rig->pmi);
    OK(PtlNIFini(rig->ni));
    PtlFini();
    pmi_end(&rig->pmi);
}

/* The next event, which must be of this kind and, unless said, successful. */
static inline ptl_event_t rig_event_failing(ptl_handle_eq_t eq, ptl_event_kind_t kind, ptl_ni_fail_t how)
{
    ptl_event_t  event;
    unsigned int which;
    OK(PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which));
    SAME(event.type, kind);
    SAME(event.ni_fail_type, how);
    return event;
}

static inline ptl_event_t rig_event(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
    return rig_event_failing(eq, kind, PTL_NI_OK);
}

/* Waits until a counter has this many successes, and no failure. */
static inline void rig_count(ptl_handle_ct_t ct, ptl_size_t successes)
{
    ptl_ct_event_t seen;
    unsigned int   which;
    OK(PtlCTPoll(&ct, &successes, 1, PATIENCE_MS, &seen, &which));
    SAME(seen.failure, 0);
}

/* A recognisable byte for each place of each message. */
static inline unsigned char rig_byte(size_t place, unsigned int salt)
{
    return (unsigned char)(place * 31 + place / 251 + salt * 17 + 1);
}

/* Appends an entry for puts of all processes, with `start` as its user pointer. */
static inline void rig_append_for_all(const struct rig *rig, ptl_pt_index_t portal, ptl_list_t list, ptl_me_t me)
{
    ptl_handle_me_t handle;
    me.uid               = PTL_UID_ANY;
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
    me.options |= PTL_ME_OP_PUT;
    OK(PtlMEAppend(rig->ni, portal, &me, list, me.start, &handle));
}

/* Microseconds since some moment. */
static inline double rig_now_us(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* Waits until memory holds a number, without a call of Portals. */
static inline void rig_await_word(const volatile uint64_t *word, uint64_t value)
{
    for (const double end = rig_now_us() + PATIENCE_MS * 1e3; *word != value;) {
        if (rig_now_us() > end) rig_fail(__FILE__, __LINE__, "it lands without a call of the target", (long)*word);
    }
}

static inline void rig_fill(unsigned char *buffer, size_t length, unsigned int salt)
{
    for (size_t place = 0; place < length; place++) {
        buffer[place] = rig_byte(place, salt);
    }
}

static inline void rig_check_fill(const unsigned char *buffer, size_t length, unsigned int salt)
{
    for (size_t place = 0; place < length; place++) {
        if (buffer[place] != rig_byte(place, salt)) {
            rig_fail(__FILE__, __LINE__, "wrong byte at this place", (long)place);
        }
    }
}

#endif
