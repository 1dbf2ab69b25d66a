/*
 * A process that fails is reported to all ranks that wait for it, and revokes the group.
 * The last rank kills itself once all ranks have created the group. The others find that in a
 * nonblocking operation, or with the argument `blocking` in a blocking one.
 */
#include "collectives.h"

#include <signal.h>

int main(int argc, char **argv)
{
    int blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
    struct rig        rig   = rig_begin_all(PTL_NI_MATCHING);
    ptlcoll_group_t   group = group_of_all(&rig);
    ptlcoll_request_t request;
    ptl_rank_t        failed = 0;
    int               last  = rig.pmi.size - 1, done = 0;
    int64_t           given = 1, got = 0;
    DONE(ptlcoll_barrier(group, PTLCOLL_AUTO));
    if (rig.pmi.rank == last) {
        raise(SIGKILL);
    }
    if (blocking) {
        SAME(ptlcoll_allreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO), PTLCOLL_PROC_FAILED);
    } else if (rig.pmi.rank == 0) {
        DONE(ptlcoll_iallreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO, &request));
        SAME(ptlcoll_wait(&request), PTLCOLL_PROC_FAILED);
    } else {
        int code;
        DONE(ptlcoll_iallreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO, &request));
        do {
            code = ptlcoll_test(&request, &done);
        } while (code == PTLCOLL_OK && !done && usleep(1000) == 0);
        SAME(code, PTLCOLL_PROC_FAILED);
    }
    DONE(ptlcoll_failed_rank(group, &failed));
    SAME(failed, last);
    SAME(ptlcoll_barrier(group, PTLCOLL_AUTO), PTLCOLL_REVOKED);
    DONE(ptlcoll_group_free(group));
    /* The remaining ranks continue; none ends before all have found the failure. */
    group = group_of(&rig, rig.peers, last, rig.pmi.rank, PORTAL + 1);
    DONE(ptlcoll_allreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO));
    SAME(got, last);
    DONE(ptlcoll_group_free(group));
    printf("rank %d found the failure\n", rig.pmi.rank);
    return 0;
}
