/*
 * Ranks, names and barrier of catamount/cnos_mpi_os.h: in the order of programs for Catamount, whose
 * names are the launcher's, then in that of programs for Linux, which register theirs.
 */
#include <catamount/cnos_mpi_os.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PT 6

static int rank = -1, size;

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

/* A counter in which every rank's put leaves an event. */
static ptl_handle_eq_t expose(ptl_handle_ni_t ni, uint64_t *slots)
{
    const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
    ptl_handle_eq_t        eq;
    ptl_handle_me_t        me;
    ptl_handle_md_t        handle;
    ptl_md_t               md;
    memset(&md, 0, sizeof md);
    md.start = slots;
    md.length = size * sizeof *slots;
    md.threshold = PTL_MD_THRESH_INF;
    md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
    CHECK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
    md.eq_handle = eq;
    CHECK(PtlMEAttach(ni, PT, anyone, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me) == PTL_OK);
    CHECK(PtlMDAttach(me, md, PTL_RETAIN, &handle) == PTL_OK);
    return eq;
}

/* Each rank puts its number into its place at every rank, by the names of the map. */
static void put_to_all(ptl_handle_ni_t ni, const cnos_nidpid_map_t *map)
{
    uint64_t       *slots = calloc(size, sizeof *slots), own = rank + 1;
    ptl_handle_eq_t eq = expose(ni, slots);
    ptl_handle_md_t from;
    ptl_event_t     event;
    ptl_md_t        md;
    int             peer;
    memset(&md, 0, sizeof md);
    md.start = &own;
    md.length = sizeof own;
    md.threshold = PTL_MD_THRESH_INF;
    md.eq_handle = PTL_EQ_NONE;
    CHECK(PtlMDBind(ni, md, PTL_RETAIN, &from) == PTL_OK);
    CHECK(cnos_barrier() == 0);
    for (peer = 0; peer < size; peer++) {
        ptl_process_id_t to = {map[peer].nid, map[peer].pid};
        CHECK(PtlPut(from, PTL_NO_ACK_REQ, to, PT, 0, 1, rank * sizeof own, 0) == PTL_OK);
    }
    for (peer = 0; peer < size; peer++) {
        CHECK(PtlEQWait(eq, &event) == PTL_OK);
    }
    for (peer = 0; peer < size; peer++) {
        CHECK(slots[peer] == (uint64_t)peer + 1);
    }
    CHECK(cnos_barrier() == 0);
    free(slots);
}

/* Opens an interface, compares the map with the own name, and talks to all by it. */
static void one_life(int registers)
{
    cnos_nidpid_map_t *map = NULL, *again = NULL;
    ptl_handle_ni_t    ni;
    ptl_process_id_t   id;
    int                others;
    CHECK(PtlInit(&others) == PTL_OK);
    rank = cnos_get_rank();
    size = cnos_get_size();
    CHECK(rank >= 0 && rank < size);
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
    CHECK(PtlGetId(ni, &id) == PTL_OK);
    cnos_barrier_init(ni);
    if (registers) {
        CHECK(cnos_register_ptlid(id) == 0);
    }
    CHECK(cnos_get_nidpid_map(&map) == size);
    CHECK(map[rank].nid == id.nid && map[rank].pid == id.pid);
    /* Once exchanged, the names are there without the others. */
    if (rank == 0) {
        CHECK(cnos_get_nidpid_map(&again) == size);
        CHECK(memcmp(map, again, size * sizeof *map) == 0);
        free(again);
    }
    put_to_all(ni, map);
    free(map);
    CHECK(cnos_pm_barrier(0) == 0);
    CHECK(PtlNIFini(ni) == PTL_OK);
    PtlFini();
}

int main(void)
{
    CHECK(cnos_get_nidpid_map(NULL) == -1);
    CHECK(cnos_launcher() == CNOS_LAUNCHER_APRUN);
    one_life(0);
    one_life(1);
    CHECK(size == 4);
    return 0;
}
