/*
 * The calls of libptlcoll that `cargo xtask instructions` counts: see counted.h. The counted
 * process is rank 0 of a group of two, the peer rank 1, on one node.
 */
#define _GNU_SOURCE
#include <portals4.h>
#include <ptlcoll.h>

#define NAME ptl_process_t
#include "counted.h"

#define PT_GROUP 1
/* By then the peer waits in an operation that it has been commanded to join. */
#define JOINED_MICROSECONDS 2000

enum { CREATE = FIRST_OWN, BROADCAST_OF_COUNTED, BROADCAST_OF_PEER, BARRIER, ALLREDUCE };
enum { COUNTED_RANK, PEER_RANK };

struct side {
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_process_t   me;
    ptlcoll_group_t group; /* 0 until it is created */
    double          given, got;
};

static ptl_process_t open_side(struct side *side)
{
    memset(side, 0, sizeof *side);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &side->ni));
    OK(PtlGetPhysId(side->ni, &side->me));
    OK(PtlCTAlloc(side->ni, &side->ct));
    return side->me;
}

static void close_side(struct side *side)
{
    OK(ptlcoll_group_free(side->group));
    OK(PtlNIFini(side->ni));
    PtlFini();
}

static void poll_once(struct side *side)
{
    ptl_ct_event_t seen;
    OK(PtlCTGet(side->ct, &seen));
}

static void take_events(struct side *side)
{
    (void)side;
}

/* The group's lock; no rank has failed. */
static void take_lock(struct side *side)
{
    ptl_rank_t failed;
    if (ptlcoll_failed_rank(side->group, &failed) == PTLCOLL_OK) fail("a rank has failed", (int)failed);
}

static void create(struct side *side, ptl_process_t counted, ptl_process_t peer, ptl_rank_t rank)
{
    const ptl_process_t ranks[] = { counted, peer };
    OK(ptlcoll_group_create(side->ni, PT_GROUP, ranks, 2, rank, 0, &side->group));
}

static int broadcast(struct side *side, ptl_rank_t root)
{
    return ptlcoll_broadcast(side->group, &side->given, sizeof side->given, root, PTLCOLL_AUTO);
}

static int allreduce(struct side *side)
{
    return ptlcoll_allreduce(side->group, &side->given, &side->got, 1, PTL_SUM, PTL_DOUBLE, PTLCOLL_AUTO);
}

static void carry_out(struct side *side, int command, ptl_process_t to)
{
    switch (command) {
    case CREATE: create(side, to, side->me, PEER_RANK); break;
    case BROADCAST_OF_COUNTED: OK(broadcast(side, COUNTED_RANK)); break;
    case BROADCAST_OF_PEER: OK(broadcast(side, PEER_RANK)); break;
    case BARRIER: OK(ptlcoll_barrier(side->group, PTLCOLL_AUTO)); break;
    case ALLREDUCE: OK(allreduce(side)); break;
    default: break;
    }
}

/* Has the peer join an operation, in which it waits for this process. */
static void join(struct shared *shared, int what)
{
    atomic_store(&shared->command, what);
    usleep(JOINED_MICROSECONDS);
}

static void await_peer(struct shared *shared)
{
    while (atomic_load(&shared->command) != IDLE) sched_yield();
}

static void count_calls(struct side *side, struct shared *shared)
{
    if (side->group == 0) {
        atomic_store(&shared->command, CREATE);
        create(side, side->me, shared->peer, COUNTED_RANK);
        await_peer(shared);
        settle(side);
    }
    COUNTED("collectives: broadcast", PTLCOLL_OK, broadcast(side, COUNTED_RANK));
    command(shared, BROADCAST_OF_COUNTED);
    command(shared, BROADCAST_OF_PEER);
    COUNTED("collectives: broadcast arrives", PTLCOLL_OK, broadcast(side, PEER_RANK));
    join(shared, BARRIER);
    COUNTED("collectives: barrier", PTLCOLL_OK, ptlcoll_barrier(side->group, PTLCOLL_AUTO));
    await_peer(shared);
    join(shared, ALLREDUCE);
    COUNTED("collectives: allreduce", PTLCOLL_OK, allreduce(side));
    await_peer(shared);
}

int main(int count, char **words)
{
    static struct side side;
    return run(&side, count, words);
}
