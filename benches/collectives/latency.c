/*
 * How long collective operations take: one line each of ranks, operation, bytes and
 * the median in microseconds of an operation's time, which is the mean of its ranks' times from
 * call to return (as in the OSU benchmarks: one rank alone may be the one that never waits),
 * with a barrier before each operation that isn't timed. Each rank stays on a core by its
 * number: ranks that a busy system puts on one core together measure the system.
 *
 * Compiled with -DWITH_MPI for MPI (mpicc), and without for libptlcoll, so that both
 * are measured by the same code. The first argument is the time for each point in
 * milliseconds. With the second argument "used", a rank writes each line of what it gives before the
 * barrier, and its time includes reading each line of what it gets, as programs do: where an operation
 * leaves the bytes, in which core's cache, counts then.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGEST (1 << 20)
#define LINE 64
#define MOST_SAMPLES 100000 /* all of them fit in LARGEST bytes */
#define LEAST_SAMPLES 15

static int    rank, ranks;
static double given[LARGEST / sizeof(double)];
static double *all; /* for all ranks */
static int     is_used;

#ifdef WITH_MPI
#include <mpi.h>

static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void end(void)
{
    MPI_Finalize();
}

static void barrier(size_t bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(size_t bytes)
{
    MPI_Bcast(given, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allreduce(size_t bytes)
{
    MPI_Allreduce(given, all, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(size_t bytes)
{
    MPI_Reduce(given, all, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void gather(size_t bytes)
{
    MPI_Gather(given, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(size_t bytes)
{
    MPI_Scatter(all, (int)bytes, MPI_BYTE, given, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

#else
#include <ptlcoll.h>

#include "../../tests/c/rig.h"

static struct rig      rig;
static ptlcoll_group_t group;

static void check(int code)
{
    if (code != PTLCOLL_OK) {
        fprintf(stderr, "rank %d: %s: %s\n", rank, ptlcoll_strerror(code), ptlcoll_explain());
        exit(1);
    }
}

static void begin(void)
{
    rig   = rig_begin_all(PTL_NI_MATCHING);
    rank  = rig.pmi.rank;
    ranks = rig.pmi.size;
    alarm(600);
    check(ptlcoll_group_create(rig.ni, 1, rig.peers, (ptl_size_t)ranks, (ptl_rank_t)rank, 0, &group));
}

static void end(void)
{
    check(ptlcoll_group_free(group));
    rig_end(&rig);
}

static void barrier(size_t bytes)
{
    (void)bytes;
    check(ptlcoll_barrier(group, PTLCOLL_AUTO));
}

static void broadcast(size_t bytes)
{
    check(ptlcoll_broadcast(group, given, bytes, 0, PTLCOLL_AUTO));
}

static void allreduce(size_t bytes)
{
    check(ptlcoll_allreduce(group, given, all, bytes / sizeof(double), PTL_SUM, PTL_DOUBLE, PTLCOLL_AUTO));
}

static void reduce(size_t bytes)
{
    check(ptlcoll_reduce(group, given, all, bytes / sizeof(double), PTL_SUM, PTL_DOUBLE, 0, PTLCOLL_AUTO));
}

static void gather(size_t bytes)
{
    check(ptlcoll_gather(group, given, all, bytes, 0, PTLCOLL_AUTO));
}

static void scatter(size_t bytes)
{
    check(ptlcoll_scatter(group, all, given, bytes, 0, PTLCOLL_AUTO));
}
#endif

enum who { NOBODY, ROOT, OTHERS, EVERYBODY };

/* What ranks give, or get: in `given`, or in `all`, as many bytes or those of all ranks. */
struct part {
    enum who who;
    int      is_in_all, is_of_all_ranks;
};

struct operation {
    const char *name;
    void (*call)(size_t bytes);
    struct part gives, gets;
};

static int has(const struct part *part)
{
    return part->who == EVERYBODY || part->who == (rank == 0 ? ROOT : OTHERS);
}

static size_t elements(const struct part *part, size_t bytes)
{
    return (part->is_of_all_ranks ? (size_t)ranks : 1) * bytes / sizeof(double);
}

static void write_part(const struct part *part, size_t bytes)
{
    volatile double *at = part->is_in_all ? all : given;
    for (size_t i = 0; has(part) && i < elements(part, bytes); i += LINE / sizeof *at) {
        at[i] = (double)i;
    }
}

static void read_part(const struct part *part, size_t bytes)
{
    const volatile double *at = part->is_in_all ? all : given;
    for (size_t i = 0; has(part) && i < elements(part, bytes); i += LINE / sizeof *at) {
        (void)at[i];
    }
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

/* Rank 0 says when it is enough: in a byte that it broadcasts after each batch. */
static int enough(int so_far)
{
    double kept = given[0];
    if (rank == 0) {
        given[0] = so_far ? 1 : 0;
    }
    broadcast(sizeof(double));
    int decision = given[0] != 0;
    given[0] = kept;
    return decision;
}

/* Rank 0 gets the mean of all ranks' samples. */
static void average(double *samples, int count)
{
    size_t bytes = (size_t)count * sizeof *samples;
    memcpy(given, samples, bytes);
    reduce(bytes);
    for (int sample = 0; rank == 0 && sample < count; sample++) {
        samples[sample] = all[sample] / ranks;
    }
    memset(given, 0, bytes);
}

static void measure(const struct operation *operation, size_t bytes, double budget_us)
{
    static double samples[MOST_SAMPLES];
    int           count = 0;
    double        until;
    for (int warm = 0; warm < 3; warm++) {
        operation->call(bytes);
    }
    until = now_us() + budget_us;
    do {
        for (int batch = 0; batch < LEAST_SAMPLES && count < MOST_SAMPLES; batch++) {
            if (is_used) {
                write_part(&operation->gives, bytes);
            }
            barrier(0);
            double begun = now_us();
            operation->call(bytes);
            if (is_used) {
                read_part(&operation->gets, bytes);
            }
            samples[count++] = now_us() - begun;
        }
    } while (!enough(now_us() > until || count == MOST_SAMPLES));
    average(samples, count);
    if (rank == 0) {
        qsort(samples, (size_t)count, sizeof *samples, by_size);
        printf("%d %s %zu %.2f\n", ranks, operation->name, bytes, samples[count / 2]);
        fflush(stdout);
    }
}

static void stay_on_a_core(void)
{
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET((size_t)(rank % sysconf(_SC_NPROCESSORS_ONLN)), &core);
    if (sched_setaffinity(0, sizeof core, &core) != 0) {
        perror("binding a rank to a core");
    }
}

int main(int argc, char **argv)
{
    static const struct operation BARRIER = {"barrier", barrier, {NOBODY, 0, 0}, {NOBODY, 0, 0}};
    static const struct operation OPERATIONS[] = {
        {"broadcast", broadcast, {ROOT, 0, 0}, {OTHERS, 0, 0}},
        {"allreduce", allreduce, {EVERYBODY, 0, 0}, {EVERYBODY, 1, 0}},
        {"reduce", reduce, {EVERYBODY, 0, 0}, {ROOT, 1, 0}},
        {"gather", gather, {EVERYBODY, 0, 0}, {ROOT, 1, 1}},
        {"scatter", scatter, {ROOT, 1, 1}, {EVERYBODY, 0, 0}},
    };
    static const size_t SIZES[] = {8, 1024, 16384, 262144};
    double              budget_us = (argc > 1 ? atof(argv[1]) : 100) * 1000;
    is_used = argc > 2 && strcmp(argv[2], "used") == 0;
    begin();
    stay_on_a_core();
    all = calloc((size_t)ranks, LARGEST);
    if (all == NULL) {
        fprintf(stderr, "no memory for %d ranks\n", ranks);
        return 1;
    }
    measure(&BARRIER, 0, budget_us);
    for (size_t which = 0; which < sizeof OPERATIONS / sizeof *OPERATIONS; which++) {
        for (size_t size = 0; size < sizeof SIZES / sizeof *SIZES; size++) {
            measure(&OPERATIONS[which], SIZES[size], budget_us);
        }
    }
    end();
    free(all);
    return 0;
}
