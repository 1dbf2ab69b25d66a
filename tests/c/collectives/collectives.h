/*
 * Shared by the programs that test collectives: a group of all ranks, and inputs
 * that every rank can compute for every other.
 */
#ifndef LINTEL_TESTS_COLLECTIVES_H
#define LINTEL_TESTS_COLLECTIVES_H

#define _DEFAULT_SOURCE /* usleep, alarm */

#include <ptlcoll.h>
#include <unistd.h>

#include "../rig.h"

#define PORTAL 20

/* The call returns PTLCOLL_OK; otherwise the program prints libptlcoll's explanation and ends. */
#define DONE(call)                                                                 \
    do {                                                                           \
        int rc_ = (call);                                                          \
        if (rc_ != PTLCOLL_OK) {                                                   \
            fprintf(stderr, "rank %d: %s: %s\n", rig_rank, ptlcoll_strerror(rc_), ptlcoll_explain()); \
            rig_fail(__FILE__, __LINE__, #call, rc_);                              \
        }                                                                          \
    } while (0)

static inline ptlcoll_group_t group_of(struct rig *rig, const ptl_process_t *processes, int count, int rank, ptl_pt_index_t portal)
{
    ptlcoll_group_t group;
    DONE(ptlcoll_group_create(rig->ni, portal, processes, (ptl_size_t)count, (ptl_rank_t)rank, 0, &group));
    return group;
}

/* The rig's interface becomes one that addresses processes by rank. */
static inline void become_logical(struct rig *rig)
{
    ptl_handle_ni_t physical = rig->ni;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &rig->ni));
    OK(PtlSetMap(rig->ni, (ptl_size_t)rig->pmi.size, rig->peers));
    OK(PtlNIFini(physical));
    for (int rank = 0; rank < rig->pmi.size; rank++) {
        rig->peers[rank].rank = (ptl_rank_t)rank;
    }
    pmi_barrier(&rig->pmi); /* no rank is sent to before it exists */
}

static inline ptlcoll_group_t group_of_all(struct rig *rig)
{
    return group_of(rig, rig->peers, rig->pmi.size, rig->pmi.rank, PORTAL);
}

#endif
