/*
 * What the programs about collectives share: a group of all ranks, and inputs
 * that every rank can tell of every other.
 */
#ifndef LINTEL_TESTS_COLLECTIVES_H
#define LINTEL_TESTS_COLLECTIVES_H

#define _DEFAULT_SOURCE /* usleep, alarm */

#include <ptlcoll.h>
#include <unistd.h>

#include "../rig.h"

#define PORTAL 20

/* The call answers PTLCOLL_OK, or what libptlcoll has to tell ends the program. */
#define DONE(call)                                                                 \
    do {                                                                           \
        int rc_ = (call);                                                          \
        if (rc_ != PTLCOLL_OK) {                                                   \
            fprintf(stderr, "rank %d: %s: %s\n", rig_rank, ptlcoll_strerror(rc_), ptlcoll_explain()); \
            rig_fail(__FILE__, __LINE__, #call, rc_);                              \
        }                                                                          \
    } while (0)

static inline ptlcoll_group_t group_of(struct rig *rig, const ptl_process_t *members, int count, int rank, ptl_pt_index_t portal)
{
    ptlcoll_group_t group;
    DONE(ptlcoll_group_create(rig->ni, portal, members, (ptl_size_t)count, (ptl_rank_t)rank, 0, &group));
    return group;
}

static inline ptlcoll_group_t group_of_all(struct rig *rig)
{
    return group_of(rig, rig->peers, rig->pmi.size, rig->pmi.rank, PORTAL);
}

#endif
