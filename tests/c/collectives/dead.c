/*
 * A member that dies is told to all that wait for it, and the group is of no use
 * any more. The last rank kills itself, once everybody has made the group.
 */
#include "collectives.h"

#include <signal.h>

int main(void)
{
    struct rig        rig   = rig_begin_all(PTL_NI_MATCHING);
    ptlcoll_group_t   group = group_of_all(&rig);
    ptlcoll_request_t request;
    ptl_rank_t        dead  = 0;
    int               last  = rig.pmi.size - 1, done = 0;
    int64_t           given = 1, got = 0;
    DONE(ptlcoll_barrier(group, PTLCOLL_USUAL));
    if (rig.pmi.rank == last) {
        raise(SIGKILL);
    }
    DONE(ptlcoll_iallreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_USUAL, &request));
    if (rig.pmi.rank == 0) {
        SAME(ptlcoll_wait(&request), PTLCOLL_DEAD);
    } else {
        int code;
        do {
            code = ptlcoll_test(&request, &done);
        } while (code == PTLCOLL_OK && !done && usleep(1000) == 0);
        SAME(code, PTLCOLL_DEAD);
    }
    DONE(ptlcoll_dead(group, &dead));
    SAME(dead, last);
    SAME(ptlcoll_barrier(group, PTLCOLL_USUAL), PTLCOLL_FAILED);
    DONE(ptlcoll_group_free(group));
    /* Those that are left go on; nobody ends before all have been told. */
    group = group_of(&rig, rig.peers, last, rig.pmi.rank, PORTAL + 1);
    DONE(ptlcoll_allreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_USUAL));
    SAME(got, last);
    DONE(ptlcoll_group_free(group));
    printf("rank %d was told\n", rig.pmi.rank);
    return 0;
}
