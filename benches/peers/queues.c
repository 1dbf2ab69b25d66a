/*
 * Two ranks of MPI with long queues: half a round trip of 8 bytes behind receives that are posted
 * and don't match, and receiving messages that have come before, the last one first. In
 * microseconds; the first is the median of 20 blocks.
 *
 *   mpicc -O2 queues.c -o queues
 *   mpiexec -n 2 ./queues 5000
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench.h"
#include <mpi.h>

#define BLOCKS 20
#define ROUNDS 200
/* The tag of the messages of the round trips; the others have those from 1 on. */
#define PING 0

static int  rank;
static char bytes[8];

static void send(int tag)
{
    MPI_Send(bytes, sizeof bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD);
}

static void receive(int tag)
{
    MPI_Recv(bytes, sizeof bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double round_trip(void)
{
    double blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        double begun = now();
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 0)
                send(PING);
            receive(PING);
            if (rank == 1)
                send(PING);
        }
        blocks[block] = (now() - begun) / ROUNDS;
    }
    return median(blocks, BLOCKS);
}

/* With so many other receives posted at both ranks, which are satisfied in the end. */
static void behind_posted(int count)
{
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    char(*places)[sizeof bytes] = malloc((size_t)count * sizeof *places);
    if (requests == NULL || places == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++)
        MPI_Irecv(places[i], sizeof bytes, MPI_BYTE, 1 - rank, 1 + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = round_trip();
    if (rank == 0)
        printf("half a round trip behind %d posted receives: %.3f us\n", count, took / 2);
    for (int i = 0; i < count; i++)
        send(1 + i);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(places);
    free(requests);
}

static void unexpected(int count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < count; i++)
        send(1 + i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        return;
    double begun = now();
    for (int i = count; i > 0; i--)
        receive(i);
    double took = (now() - begun) / count;
    printf("a receive of the last of up to %d unexpected messages: %.3f us\n", count, took);
}

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int count = argc > 1 ? atoi(argv[1]) : 0;
    if (ranks != 2 || count < 1) {
        fprintf(stderr, "usage: queues COUNT, in two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    stay_on(rank);
    behind_posted(count);
    unexpected(count);
    MPI_Finalize();
    return 0;
}
