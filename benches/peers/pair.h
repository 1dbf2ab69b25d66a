/*
 * Two processes, each on a core of its own, which find each other through memory that both see.
 * What measures them includes this and defines the functions below:
 *
 *   PROGRAM BUDGET CORE0 CORE1 SIZE...
 *
 * BUDGET is the wall-clock time of each point in milliseconds. Every result is a line of measure,
 * bytes and value; values are medians of blocks.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench.h"
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGEST      (4u << 20)
#define MOST_SAMPLES 20000
#define MOST_ADDRESS 4096

/* What both processes see. */
struct shared {
    volatile int  state; /* of the measurement, from rank 0 */
    volatile long repeats;
    volatile int  ready[2];
    char          address[2][MOST_ADDRESS]; /* how the other process reaches this one */
    _Alignas(4096) char copied[LARGEST]; /* as far into its page as what is copied there */
};

static struct shared *shared;
static int            rank;
static char          *local;

/* --- by the library: */
/* Opens this process's side, with LARGEST bytes that the other one may access. */
static void open_side(void);
/* Reaches the other process, whose address is there. */
static void connect_sides(void);
static void poll_once(void);
static void close_side(void);

/* --- by what is measured: */
/* Rank 0. Both end once they have returned. */
static void measure(double budget, char **sizes);
/* Rank 1, meanwhile. */
static void serve(char **sizes);

/* Waits until both have come so far as often as this. */
static void both_are_there(void)
{
    int step = ++shared->ready[rank];
    while (shared->ready[!rank] < step)
        poll_once();
}

int main(int count, char **values)
{
    if (count < 5) {
        fprintf(stderr, "usage: %s BUDGET CORE0 CORE1 SIZE...\n", values[0]);
        return 2;
    }
    int protection = PROT_READ | PROT_WRITE;
    shared = mmap(NULL, sizeof *shared, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pid_t other = fork();
    if (other < 0)
        return 1;
    rank = other == 0;
    if (rank == 1)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(atoi(values[2 + rank]));
    local = aligned_alloc(4096, LARGEST);
    memset(local, 1, LARGEST);
    memset(shared->copied, rank, LARGEST);
    open_side();
    both_are_there();
    connect_sides();
    both_are_there();
    if (rank == 0)
        measure(strtod(values[1], NULL) * 1000, values + 4);
    else
        serve(values + 4);
    both_are_there();
    close_side();
    if (rank == 1)
        _exit(0);
    int status;
    return waitpid(other, &status, 0) == other && status == 0 ? 0 : 1;
}
