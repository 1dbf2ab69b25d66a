/*
 * What the programs for Portals 3.3 share: checks that say where they failed, an interface with
 * everybody's name as yod passes it, and waits that end.
 */
#ifndef LINTEL_TESTS_RIG3_H
#define LINTEL_TESTS_RIG3_H

#include <portals3.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "../pmi.h"

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
        if (rc_ != (int)(code)) {                                            \
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

static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};

struct rig {
    struct pmi       pmi;
    ptl_handle_ni_t  ni;
    ptl_ni_limits_t  limits;
    ptl_process_id_t me;
    ptl_process_id_t peer;
};

/* An interface under the pid that the launcher has chosen, and the other of two ranks. */
static inline struct rig rig_begin(void)
{
    struct rig rig;
    unsigned   rank, size;
    rig.pmi = pmi_begin();
    rig_rank = rig.pmi.rank;
    OK(PtlInit(NULL));
    OK(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &rig.limits, &rig.ni));
    OK(PtlGetRank(rig.ni, &rank, &size));
    SAME(rank, rig.pmi.rank);
    SAME(size, 2);
    OK(PtlGetId(rig.ni, &rig.me));
    OK(PtlGetRankId(rig.ni, rank, &rig.peer));
    SAME(rig.me.nid, rig.peer.nid);
    SAME(rig.me.pid, rig.peer.pid);
    OK(PtlGetRankId(rig.ni, 1 - rank, &rig.peer));
    return rig;
}

static inline void rig_end(struct rig *rig)
{
    pmi_barrier(&rig->pmi);
    OK(PtlNIFini(rig->ni));
    PtlFini();
    pmi_end(&rig->pmi);
}

/* The next event of a queue, which is of this kind and has succeeded. */
static inline ptl_event_t rig_event(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
    ptl_event_t event;
    int         which = -1;
    OK(PtlEQPoll(&eq, 1, PATIENCE_MS, &event, &which));
    SAME(which, 0);
    if (event.type != kind) {
        fprintf(stderr, "rank %d: expected %s\n", rig_rank, PtlEventKindStr(kind));
        rig_fail(__FILE__, __LINE__, PtlEventKindStr(event.type), (long)event.type);
    }
    SAME(event.ni_fail_type, PTL_NI_OK);
    return event;
}

static inline void rig_no_event(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    ANSWERS(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
}

/* Waits until something holds that another thread brings about. */
#define rig_until(holds)                                                     \
    for (time_t end_ = time(NULL) + PATIENCE_MS / 1000; !(holds); thrd_yield()) { \
        SAME(time(NULL) <= end_, 1);                                         \
    }

/* A descriptor of some bytes. */
static inline ptl_md_t rig_md(void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq)
{
    ptl_md_t md;
    memset(&md, 0, sizeof md);
    md.start = start;
    md.length = length;
    md.threshold = PTL_MD_THRESH_INF;
    md.options = options;
    md.user_ptr = start;
    md.eq_handle = eq;
    return md;
}

/* An entry at the tail of a list, with a descriptor. */
static inline ptl_handle_me_t rig_attach(struct rig *rig, ptl_pt_index_t pt, ptl_match_bits_t bits,
                                  ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *handle)
{
    ptl_handle_me_t me;
    OK(PtlMEAttach(rig->ni, pt, anyone, bits, 0, unlink, PTL_INS_AFTER, &me));
    OK(PtlMDAttach(me, md, unlink, handle));
    return me;
}

#endif
