/*
 * Without PtlSetRank a process has the rank and the names that its launcher has passed, and a child
 * whose parent has the pid gets another one.
 */
#include "rig3.h"

#include <sys/wait.h>

static ptl_process_id_t open_interface(ptl_handle_ni_t *ni)
{
    ptl_process_id_t me;
    OK(PtlInit(NULL));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, ni));
    OK(PtlGetId(*ni, &me));
    return me;
}

/* What a child does: it gives up its parent's interface and opens its own. */
static int child(ptl_pid_t parents)
{
    ptl_handle_ni_t  ni;
    ptl_process_id_t me;
    PtlFini();
    me = open_interface(&ni);
    OK(PtlNIFini(ni));
    PtlFini();
    return me.pid == parents;
}

int main(void)
{
    struct pmi       pmi = pmi_begin();
    ptl_handle_ni_t  ni;
    ptl_process_id_t me = open_interface(&ni), named;
    unsigned         rank, size;
    int              status;
    pid_t            forked;
    rig_rank = pmi.rank;
    OK(PtlGetRank(ni, &rank, &size));
    SAME(rank, pmi.rank);
    SAME(size, pmi.size);
    OK(PtlGetRankId(ni, rank, &named));
    SAME(named.nid, me.nid);
    SAME(named.pid, me.pid);
    ANSWERS(PTL_PROCESS_INVALID, PtlGetRankId(ni, size, &named));
    forked = fork();
    if (forked == 0) {
        _exit(child(me.pid));
    }
    SAME(waitpid(forked, &status, 0), forked);
    SAME(status, 0);
    /* What the program sets replaces all of it. */
    OK(PtlSetRank(ni, 0, 1));
    OK(PtlGetRank(ni, &rank, &size));
    SAME(size, 1);
    ANSWERS(PTL_NO_INIT, PtlGetRankId(ni, 0, &named));
    pmi_barrier(&pmi);
    OK(PtlNIFini(ni));
    PtlFini();
    pmi_end(&pmi);
    return 0;
}
