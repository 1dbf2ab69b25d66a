/*
 * A rank in the midst of a tree that makes no call holds up nobody: what it has
 * begun is carried on by the library. Three ranks in a chain; the one between
 * waits for the others outside of Portals, and they for the operations.
 */
#include "collectives.h"

#define BYTES 100000

int main(void)
{
    static unsigned char buffer[BYTES];
    struct rig           rig   = rig_begin_all(PTL_NI_MATCHING);
    ptlcoll_group_t      group = group_of_all(&rig);
    ptlcoll_request_t    down = PTLCOLL_REQUEST_NULL, sum = PTLCOLL_REQUEST_NULL;
    int64_t              given = rig.pmi.rank + 1, got = 0;
    SAME(rig.pmi.size, 3);
    if (rig.pmi.rank == 0) {
        rig_fill(buffer, BYTES, 7);
    }
    if (rig.pmi.rank == 1) {
        DONE(ptlcoll_ibroadcast(group, buffer, BYTES, 0, PTLCOLL_K_ARY(1), &down));
        DONE(ptlcoll_iallreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_K_ARY(1), &sum));
    }
    pmi_barrier(&rig.pmi);
    if (rig.pmi.rank != 1) {
        DONE(ptlcoll_broadcast(group, buffer, BYTES, 0, PTLCOLL_K_ARY(1)));
        DONE(ptlcoll_allreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_K_ARY(1)));
    }
    pmi_barrier(&rig.pmi);
    DONE(ptlcoll_wait(&down));
    DONE(ptlcoll_wait(&sum));
    rig_check_fill(buffer, BYTES, 7);
    SAME(got, 6);
    DONE(ptlcoll_group_free(group));
    rig_end(&rig);
    return 0;
}
