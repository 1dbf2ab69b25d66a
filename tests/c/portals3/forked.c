/*
 * Both ranks fork: parents go on with the interface that they have, children give it up and open
 * one of their own, under pids that the program chooses. Parents put to parents and children to
 * children, into memory that was shared until one of the two wrote to it. All end by a return
 * from main.
 */
#include "rig3.h"

#include <sys/wait.h>

#define PT 4
#define BITS 7
#define WORDS 4096

static uint64_t source[WORDS], target[WORDS];

/* What a process opens to exchange with another one. */
struct family {
    ptl_handle_ni_t  ni;
    ptl_handle_eq_t  eq;
    ptl_handle_md_t  md;
    ptl_process_id_t peer;
};

static uint64_t word(int rank, int is_child, size_t at)
{
    return (uint64_t)rank << 40 | (uint64_t)is_child << 32 | at;
}

static void attach(struct family *family, ptl_handle_ni_t ni, unsigned other)
{
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    family->ni = ni;
    OK(PtlGetRankId(ni, other, &family->peer));
    OK(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &family->eq));
    OK(PtlMEAttach(ni, PT, family->peer, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    OK(PtlMDAttach(me, rig_md(target, sizeof target, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                              family->eq), PTL_RETAIN, &md));
    OK(PtlMDBind(ni, rig_md(source, sizeof source, PTL_MD_EVENT_START_DISABLE, family->eq), PTL_RETAIN, &family->md));
}

/* Exchanges all words with the other one of its kind, which is ready. */
static void exchange(struct family *family, int rank, int is_child)
{
    int sent = 0, acknowledged = 0, received = 0;
    for (size_t at = 0; at < WORDS; at++) {
        source[at] = word(rank, is_child, at);
    }
    OK(PtlPut(family->md, PTL_ACK_REQ, family->peer, PT, 0, BITS, 0, 0));
    while (!(sent && acknowledged && received)) {
        ptl_event_t event;
        int         which;
        OK(PtlEQPoll(&family->eq, 1, PATIENCE_MS, &event, &which));
        SAME(event.ni_fail_type, PTL_NI_OK);
        sent |= event.type == PTL_EVENT_SEND_END;
        acknowledged |= event.type == PTL_EVENT_ACK;
        received |= event.type == PTL_EVENT_PUT_END;
    }
    for (size_t at = 0; at < WORDS; at++) {
        SAME(target[at], word(1 - rank, is_child, at));
    }
}

static void byte_from(int pipe)
{
    char byte;
    SAME(read(pipe, &byte, 1), 1);
}

static void byte_to(int pipe)
{
    SAME(write(pipe, "", 1), 1);
}

/* A child reports that it can be reached, and begins once its parent says that both can. */
static int run_child(struct pmi *pmi, ptl_nid_t *nids, ptl_pid_t *pids, const int *ready, const int *go)
{
    struct family   family;
    ptl_handle_ni_t ni;
    PtlFini();
    for (int rank = 0; rank < 2; rank++) {
        pids[rank] += 2;
    }
    OK(PtlInit(NULL));
    OK(PtlSetRank(PTL_INVALID_HANDLE, (unsigned)pmi->rank, 2));
    OK(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 2));
    OK(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 2));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
    attach(&family, ni, (unsigned)(1 - pmi->rank));
    byte_to(ready[1]);
    byte_from(go[0]);
    exchange(&family, pmi->rank, 1);
    byte_to(ready[1]);
    byte_from(go[0]);
    OK(PtlNIFini(ni));
    PtlFini();
    return 0;
}

int main(void)
{
    struct rig    rig = rig_begin();
    struct family family;
    ptl_nid_t     nids[2];
    ptl_pid_t     pids[2];
    int           ready[2], go[2], status;
    pid_t         child;
    attach(&family, rig.ni, (unsigned)(1 - rig_rank));
    OK(PtlGetNIDMap(rig.ni, nids, 2));
    OK(PtlGetPIDMap(rig.ni, pids, 2));
    pmi_barrier(&rig.pmi);
    exchange(&family, rig_rank, 0);
    SAME(pipe(ready) == 0 && pipe(go) == 0, 1);
    child = fork();
    if (child == 0) {
        return run_child(&rig.pmi, nids, pids, ready, go);
    }
    /* Now parent and child have memory of their own. */
    memset(target, 0, sizeof target);
    byte_from(ready[0]);
    pmi_barrier(&rig.pmi);
    byte_to(go[1]);
    exchange(&family, rig_rank, 0);
    byte_from(ready[0]);
    pmi_barrier(&rig.pmi);
    byte_to(go[1]);
    SAME(waitpid(child, &status, 0), child);
    SAME(status, 0);
    exchange(&family, rig_rank, 0);
    rig_end(&rig);
    return 0;
}
