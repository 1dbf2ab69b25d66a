/*
 * What one_sided_portals.c and one_sided_ucx.c share: two processes, each on a core of its own, of
 * which one puts to, gets from and adds to memory of the other one, one operation after the other,
 * each until it is complete. The other one polls, or computes and makes no call. Every result is a
 * line of measure, bytes and microseconds of one operation:
 *
 *   put-polling, get-polling, fetch-add-polling
 *   put-computing, get-computing, fetch-add-computing
 *   copy       a plain copy by memcpy into memory that both processes have mapped
 *
 *   one_sided BUDGET CORE0 CORE1 SIZE...
 *
 * BUDGET is the wall-clock time of each point in milliseconds. Values are medians of blocks.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LARGEST      (4u << 20)
#define MOST_SAMPLES 20000
#define MOST_ADDRESS 4096
/* The shortest stretch that is timed as one, in microseconds. */
#define BLOCK 50.0

enum operation { PUT, GET, FETCH_ADD };
enum state { POLLING, COMPUTING, ENDED };

/* What both processes see. */
struct shared {
    volatile int    state;
    volatile int    ready[2];
    char            address[2][MOST_ADDRESS]; /* how the other process reaches this one */
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
/* One operation, until it is complete. */
static void operate(enum operation operation, size_t bytes);
static void poll_once(void);
static void close_side(void);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void copy(enum operation operation, size_t bytes)
{
    (void)operation;
    memcpy(shared->copied, local, bytes);
    __asm__ volatile("" ::: "memory");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds of one operation: the median of blocks that fill the budget. */
static double repeated(void (*work)(enum operation, size_t), enum operation operation,
                       size_t bytes, double budget)
{
    static double samples[MOST_SAMPLES];
    double        end = now() + budget;
    long          repeats = 1;
    int           count = 0;
    while (count < MOST_SAMPLES && (count == 0 || now() < end)) {
        double start = now();
        for (long i = 0; i < repeats; i++)
            work(operation, bytes);
        double took = now() - start;
        if (took < BLOCK)
            repeats *= 2;
        else
            samples[count++] = took / (double)repeats;
    }
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    return samples[count / 2];
}

static void both_are_there(int step)
{
    shared->ready[rank] = step;
    while (shared->ready[!rank] < step)
        poll_once();
}

static void serve(void)
{
    volatile double sum = 0;
    while (shared->state != ENDED) {
        if (shared->state == POLLING)
            poll_once();
        else
            for (int i = 0; i < 1000; i++)
                sum = sum + 1;
    }
}

static void measure(double budget, char **sizes)
{
    static const char *const names[2][3] = {{"put-polling", "get-polling", "fetch-add-polling"},
                                            {"put-computing", "get-computing", "fetch-add-computing"}};
    for (int i = 0; i < 100; i++)
        for (int operation = PUT; operation <= FETCH_ADD; operation++)
            operate((enum operation)operation, 8);
    for (int state = POLLING; state <= COMPUTING; state++) {
        shared->state = state;
        for (char **size = sizes; *size != NULL; size++) {
            size_t bytes = strtoul(*size, NULL, 10);
            if (bytes == 0 || bytes > LARGEST)
                continue;
            for (int operation = PUT; operation <= GET; operation++)
                printf("%s %zu %.6f\n", names[state][operation], bytes,
                       repeated(operate, (enum operation)operation, bytes, budget));
            if (state == POLLING)
                printf("copy %zu %.6f\n", bytes, repeated(copy, PUT, bytes, budget));
        }
        printf("%s 8 %.6f\n", names[state][FETCH_ADD], repeated(operate, FETCH_ADD, 8, budget));
    }
    shared->state = POLLING;
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
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(strtoul(values[2 + rank], NULL, 10), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    local = aligned_alloc(4096, LARGEST);
    memset(local, 1, LARGEST);
    memset(shared->copied, rank, LARGEST);
    open_side();
    both_are_there(1);
    connect_sides();
    both_are_there(2);
    if (rank == 1) {
        serve();
    } else {
        measure(strtod(values[1], NULL) * 1000, values + 4);
        shared->state = ENDED;
    }
    both_are_there(3);
    close_side();
    if (rank == 1)
        _exit(0);
    int status;
    return waitpid(other, &status, 0) == other && status == 0 ? 0 : 1;
}
