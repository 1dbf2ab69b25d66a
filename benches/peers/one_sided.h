/*
 * What one_sided_portals.c and one_sided_ucx.c share: rank 0 puts to, gets from and adds to memory
 * of rank 1, one operation after the other, each until it is complete. Rank 1 polls, or computes and
 * makes no call. Every result is a line of measure, bytes and microseconds of one operation:
 *
 *   put-polling, get-polling, fetch-add-polling
 *   put-computing, get-computing, fetch-add-computing
 *   copy       a plain copy by memcpy into memory that both processes have mapped
 */
#include "pair.h"

/* The shortest stretch that is timed as one, in microseconds. */
#define BLOCK 50.0

enum operation { PUT, GET, FETCH_ADD };
enum state { POLLING, COMPUTING, ENDED };

/* --- by the library: one operation, until it is complete. */
static void operate(enum operation operation, size_t bytes);

static void copy(enum operation operation, size_t bytes)
{
    (void)operation;
    memcpy(shared->copied, local, bytes);
    __asm__ volatile("" ::: "memory");
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
    return median(samples, count);
}

static void serve(char **sizes)
{
    (void)sizes;
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
    shared->state = ENDED;
}
