/*
 * Half a round trip of 8-byte counted puts between ranks 0 and 1, each on a core of its own, beside
 * ranks that have sent them something before and now sleep: what a look at many senders costs.
 * Prints the number of ranks, and the median of blocks of 1,000 round trips in microseconds.
 *
 *   cc -O2 idle_ranks.c -o idle_ranks $(pkg-config --cflags --libs portals4_job)
 *   for n in 2 4 16 64; do yod -n $n ./idle_ranks; done
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench.h"
#include <portals4.h>
#include <portals4_job.h>

#define BLOCKS 100
#define ROUNDS 1000

static ptl_handle_ct_t arrived;
static ptl_handle_md_t from;
static ptl_pt_index_t  portal;
static ptl_process_t  *ranks;

static void check(int code, const char *call)
{
    if (code != 0) {
        fprintf(stderr, "%s returned %d\n", call, code);
        ptljob_abort(1, ptljob_explain());
    }
}
#define CHECK(call) check(call, #call)

static void put(int rank)
{
    CHECK(PtlPut(from, 0, 8, PTL_NO_ACK_REQ, ranks[rank], portal, 0, 0, NULL, 0));
}

/* Polls until so many puts have arrived in all. */
static void await(ptl_size_t puts)
{
    ptl_ct_event_t count;
    do {
        CHECK(PtlCTGet(arrived, &count));
    } while (count.success < puts);
}

static void expose(ptl_handle_ni_t ni)
{
    static char     memory[64];
    ptl_handle_le_t entry;
    ptl_le_t        le = { memory, sizeof memory, PTL_CT_NONE, PTL_UID_ANY,
                           PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_COMM_DISABLE };
    CHECK(PtlCTAlloc(ni, &arrived));
    le.ct_handle = arrived;
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
    CHECK(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMDBind(ni, &(ptl_md_t){ memory, sizeof memory, 0, PTL_EQ_NONE, PTL_CT_NONE }, &from));
}

/* Ranks 0 and 1, which have received `puts` before. */
static void ping_pong(int rank, ptl_size_t puts)
{
    double blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        double begun = now();
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 0)
                put(1);
            await(++puts);
            if (rank == 1)
                put(0);
        }
        blocks[block] = (now() - begun) / (2 * ROUNDS);
    }
    if (rank == 0)
        printf("%d ranks: %.4f us\n", ptljob_size(), median(blocks, BLOCKS));
}

int main(void)
{
    ptl_handle_ni_t ni;
    ptl_ct_event_t  count;
    CHECK(ptljob_init());
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    expose(ni);
    int rank = ptljob_rank(), size = ptljob_size();
    ranks = calloc((size_t)size, sizeof *ranks);
    if (ranks == NULL || size < 2)
        ptljob_abort(2, "idle_ranks takes 2 ranks or more");
    CHECK(ptljob_map(ni, ranks));
    ptl_size_t idle = (ptl_size_t)size - 2;
    if (rank < 2) {
        stay_on(rank);
        await(idle);
    } else {
        put(0);
        put(1);
    }
    CHECK(ptljob_barrier());
    if (rank < 2)
        ping_pong(rank, idle);
    for (int other = 2; rank == 0 && other < size; other++)
        put(other);
    if (rank >= 2)
        CHECK(PtlCTWait(arrived, 1, &count));
    CHECK(ptljob_barrier());
    CHECK(PtlNIFini(ni));
    PtlFini();
    CHECK(ptljob_fini());
    free(ranks);
    return 0;
}
