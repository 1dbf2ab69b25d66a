/*
 * What `lintel perf` measures, over MPI: two ranks, each on a core of its own. Every result is
 * a line of measure, bytes and value:
 *
 *   latency    half a round trip of blocking messages, in microseconds; with USED set, each line is
 *              written before, and read afterwards
 *   rate       messages of 8 bytes with 64 in flight, in 10^6 a second
 *   bandwidth  the same with large messages, in 10^9 bytes a second
 *   overlap-origin, overlap-target
 *              how much of a transfer hides behind one side's computing, in percent: with
 *              the times T of the transfer, C of the computing and B of both at once,
 *              (T + C - B) / min(T, C)
 *   delivered, acknowledged
 *              a put to a rank that computes and makes no call, until it sees the bytes and
 *              until the origin's flush returns, in microseconds
 *   gups       RandomAccess by MPI_Accumulate, in 10^9 updates a second of both ranks
 *
 *   mpi BUDGET CORE0 CORE1 SIZE...
 *
 * BUDGET is the wall-clock time of each point in milliseconds. Where it is used up, a point has
 * fewer samples, but one at least; values are medians.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench.h"
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#define LARGEST      (4 << 20)
#define MOST_SAMPLES 20000
#define WINDOW       64
/* The shortest stretch that is timed as one, in microseconds. */
#define BLOCK 200.0
/* Both halves of RandomAccess' table together, in bytes, as lintel perf gups has it. */
#define TABLE (16 << 20)
/* How long a target computes, in microseconds. */
#define COMPUTING 10000.0

enum tag { CONTROL, DATA, REPLY };

static int         rank;
static double      budget; /* microseconds */
static char       *given, *got;
static double      samples[3][MOST_SAMPLES];
static MPI_Request requests[WINDOW];

static void print(const char *measure, size_t bytes, double value)
{
    if (rank == 0) {
        printf("%s %zu %.6f\n", measure, bytes, value);
        fflush(stdout);
    }
}

/* What rank 0 wants next, in both ranks. */
static long agreed(long number)
{
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return number;
}

static void send_one(size_t bytes)
{
    write_lines(given, bytes);
    MPI_Send(given, (int)bytes, MPI_BYTE, !rank, DATA, MPI_COMM_WORLD);
}

static void receive_one(size_t bytes)
{
    MPI_Recv(got, (int)bytes, MPI_BYTE, !rank, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    read_lines(got, bytes);
}

static void ping_pong(size_t bytes, long repeats)
{
    for (long i = 0; i < repeats; i++) {
        if (rank == 0)
            send_one(bytes);
        receive_one(bytes);
        if (rank == 1)
            send_one(bytes);
    }
}

/* `repeats` windows of messages to rank 1, which answers the last. */
static void stream(size_t bytes, long repeats)
{
    for (long i = 0; i < repeats; i++) {
        for (int slot = 0; slot < WINDOW; slot++) {
            if (rank == 0)
                MPI_Isend(given, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[slot]);
            else
                MPI_Irecv(got, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &requests[slot]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        MPI_Recv(got, 0, MPI_BYTE, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(given, 0, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD);
}

/* Microseconds of one repetition of `work`: the median of blocks that fill the budget. */
static double repeated(void (*work)(size_t, long), size_t bytes)
{
    double end = now() + budget;
    long   repeats = 1, next = 1;
    int    count = 0;
    while ((repeats = agreed(next)) != 0) {
        work(bytes, 1); /* both sides are awake */
        double start = now();
        work(bytes, repeats);
        double took = now() - start;
        if (took < BLOCK && now() < end) {
            next = 2 * repeats;
            continue;
        }
        samples[0][count++] = took / (double)repeats;
        next = now() < end && count < MOST_SAMPLES ? repeats : 0;
    }
    return median(samples[0], count);
}

/* Additions that nothing shortens. */
static void compute(long rounds)
{
    volatile double sum = 0;
    for (long i = 0; i < rounds; i++)
        sum = sum + 1;
}

/* One transfer or none, and computing or none at one side; over with rank 1's reply. */
static double exchange(size_t bytes, int moves, int computer, long rounds)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    if (moves && rank == 0)
        MPI_Isend(given, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    if (moves && rank == 1)
        MPI_Irecv(got, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
    if (rank == computer)
        compute(rounds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
        MPI_Recv(got, 0, MPI_BYTE, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(given, 0, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD);
    return now() - start;
}

static void overlap(const char *measure, size_t bytes, int computer)
{
    double end = now() + budget;
    int    count = 0;
    do
        samples[0][count++] = exchange(bytes, 1, computer, 0);
    while (agreed(now() < end - budget * 0.75 && count < MOST_SAMPLES));
    double start = now();
    compute(1000000);
    double each = (now() - start) / 1e6;
    long   rounds = agreed((long)(median(samples[0], count) / each) + 1);
    count = 0;
    do {
        samples[0][count] = exchange(bytes, 1, computer, 0);
        samples[1][count] = exchange(bytes, 0, computer, rounds);
        samples[2][count++] = exchange(bytes, 1, computer, rounds);
    } while (agreed(now() < end && count < MOST_SAMPLES));
    double t = median(samples[0], count), c = median(samples[1], count),
           b = median(samples[2], count);
    double share = 100 * (t + c - b) / (t < c ? t : c);
    print(measure, bytes, share < 0 ? 0 : share > 100 ? 100 : share);
}

/* Rank 1's side: computes, looking at its own memory; when that changed. */
static double see(volatile uint64_t *word, uint64_t trial)
{
    double end = now() + COMPUTING, seen = 0;
    while (now() < end)
        if (seen == 0 && *word == trial)
            seen = now();
    for (int flag; seen == 0;) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (*word == trial)
            seen = now();
    }
    return seen;
}

static void computing_target(void)
{
    uint64_t *memory;
    MPI_Win   window;
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, 4096);
    MPI_Win_lock_all(0, window);
    double   end = now() + 4 * budget;
    uint64_t trial = 0;
    do {
        double struck = 0, seen = 0, took = 0;
        trial++;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            /* Never the same moment, so that no rhythm of the target hides. */
            double begin = now() + COMPUTING * (double)(trial % 7 + 2) / 16;
            while (now() < begin)
                ;
            struck = now();
            MPI_Put(&trial, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window);
            MPI_Win_flush(1, window);
            took = now() - struck;
            MPI_Recv(&seen, 1, MPI_DOUBLE, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            seen = see(memory, trial);
            MPI_Send(&seen, 1, MPI_DOUBLE, 0, REPLY, MPI_COMM_WORLD);
        }
        samples[0][trial - 1] = seen - struck;
        samples[1][trial - 1] = took;
    } while (agreed(now() < end && trial < 100));
    print("delivered", 8, median(samples[0], (int)trial));
    print("acknowledged", 8, median(samples[1], (int)trial));
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* HPCC's sequence: a shift register over x^63 + x^2 + x + 1. */
static uint64_t next_random(uint64_t value)
{
    return value << 1 ^ (value >> 63 ? 7 : 0);
}

#define UPDATES 4096

/* One block of updates by each rank, applied when it returns. */
static uint64_t update(uint64_t random, MPI_Win window)
{
    static uint64_t operands[UPDATES];
    uint64_t        half = TABLE / 2 / sizeof(uint64_t);
    for (int i = 0; i < UPDATES; i++) {
        random = next_random(random);
        operands[i] = random;
        uint64_t place = random & (2 * half - 1);
        MPI_Accumulate(&operands[i], 1, MPI_UINT64_T, (int)(place / half), (MPI_Aint)(place % half),
                       1, MPI_UINT64_T, MPI_BXOR, window);
    }
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    return random;
}

/* Each update is done twice, which undoes it: what is left is wrong. */
static void random_access(void)
{
    uint64_t *table;
    MPI_Win   window;
    MPI_Win_allocate(TABLE / 2, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &table, &window);
    memset(table, 0, TABLE / 2);
    uint64_t first = rank == 0 ? 0x123456789abcdef1 : 0xfedcba9876543217;
    uint64_t random = first;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    double end = now() + budget;
    long   blocks = 0;
    do {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        random = update(random, window);
        samples[0][blocks++] = now() - start;
    } while (agreed(now() < end && blocks < MOST_SAMPLES));
    random = first;
    for (long block = 0; block < blocks; block++)
        random = update(random, window);
    MPI_Win_unlock_all(window);
    long wrong = 0, all;
    for (size_t i = 0; i < TABLE / 2 / sizeof *table; i++)
        wrong += table[i] != 0;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all != 0)
        fprintf(stderr, "mpi: %ld words of RandomAccess are wrong\n", all);
    else
        print("gups", 8, 2 * UPDATES / median(samples[0], (int)blocks) / 1e3);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5 || ranks != 2) {
        fprintf(stderr, "usage: mpi BUDGET CORE0 CORE1 SIZE..., in two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    budget = atof(argv[1]) * 1e3;
    stay_on(atoi(argv[2 + rank]));
    given = malloc(LARGEST);
    got = malloc(LARGEST);
    if (given == NULL || got == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    /* Memory that was never written is one page of zeros, which stays in the cache. */
    memset(given, 1, LARGEST);
    memset(got, 2, LARGEST);
    for (int i = 4; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        if (bytes > LARGEST)
            continue;
        print("latency", bytes, repeated(ping_pong, bytes) / 2);
        if (bytes >= 1024)
            print("bandwidth", bytes, (double)(WINDOW * bytes) / repeated(stream, bytes) / 1e3);
    }
    print("rate", 8, WINDOW / repeated(stream, 8));
    for (size_t bytes = 64 << 10; bytes <= LARGEST; bytes <<= 6) {
        overlap("overlap-origin", bytes, 0);
        overlap("overlap-target", bytes, 1);
    }
    computing_target();
    random_access();
    MPI_Finalize();
    return 0;
}
