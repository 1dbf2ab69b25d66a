/* What the programs here share: the clock, medians, and the core that a process stays on. */
#ifndef BENCH_H
#define BENCH_H
#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before all else, for sched_setaffinity"
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Microseconds. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Whether what is sent is written before, and what has arrived is read, as programs do: if USED is set. */
static inline int is_used(void)
{
    static int known = -1;
    if (known < 0)
        known = getenv("USED") != NULL;
    return known;
}

#define LINE 64

/* Each line of them, if bytes are used. */
static inline void write_lines(volatile char *at, size_t bytes)
{
    for (size_t i = 0; is_used() && i < bytes; i += LINE)
        at[i] = (char)i;
}

static inline void read_lines(const volatile char *at, size_t bytes)
{
    for (size_t i = 0; is_used() && i < bytes; i += LINE)
        (void)at[i];
}

static void stay_on(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0)
        perror("sched_setaffinity");
}
#endif
