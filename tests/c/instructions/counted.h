/*
 * What the programs share whose calls `cargo xtask instructions` counts.
 *
 * A process runs under callgrind, which counts the instructions of one call at a time and
 * writes them down under the call's name. It starts a peer, the same program outside valgrind,
 * which polls all the time and sends on command. Nothing waits within a counted call.
 * Both tell each other by words in memory that they share when a message is on its way, so
 * that the counted call finds it.
 *
 * A program includes the header of its Portals and defines NAME, the type of a process's name,
 * first, and the functions declared here.
 */
#ifndef LINTEL_TESTS_COUNTED_H
#define LINTEL_TESTS_COUNTED_H

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* Of each call; the most frequent count is what it costs. */
#define ROUNDS 25
/* Polls after which a process is known to poll all the time, so that nobody rings it. */
#define WARM_POLLS 300
/* Calls after which the library's lock is biased to the thread that makes them. */
#define WARM_CALLS 1100
#define LIMIT_SECONDS 100

/* Commands that every program has; its own lie between. */
enum { IDLE, POLL, FIRST_OWN, END = 100 };

/* Memory that both processes share. */
struct shared {
    NAME       counted, peer;
    atomic_int ready;
    atomic_int command;
};

/* What a process opens, and closes at its end. */
struct side;

/* Opens what a process needs; returns its name. */
static NAME open_side(struct side *side);
static void close_side(struct side *side);
/* Makes progress once. */
static void poll_once(struct side *side);
/* Takes all events that are there. */
static void take_events(struct side *side);
/* Takes the library's lock, once. */
static void take_lock(struct side *side);
/* What the peer does on command: one operation. */
static void carry_out(struct side *side, int command, NAME to);
/* Counts each call once. */
static void count_calls(struct side *side, struct shared *shared);

static void fail(const char *what, int got)
{
    fprintf(stderr, "calls: %s (%d)\n", what, got);
    exit(1);
}

#define ANSWERS(code, call)                          \
    do {                                             \
        int rc_ = (call);                            \
        if (rc_ != (int)(code)) fail(#call, rc_);    \
    } while (0)
#define OK(call) ANSWERS(PTL_OK, call)

/* Counts one call under a name. One that should have found a message and hasn't, because
 * the helper was about to take it, counts elsewhere. */
#define COUNTED(name, code, call)                               \
    do {                                                        \
        CALLGRIND_TOGGLE_COLLECT;                               \
        int rc_ = (call);                                       \
        CALLGRIND_TOGGLE_COLLECT;                               \
        if (rc_ == (code)) {                                    \
            CALLGRIND_DUMP_STATS_AT(name);                      \
        } else {                                                \
            CALLGRIND_DUMP_STATS_AT("elsewhere");               \
            if (rc_ != PTL_EQ_EMPTY) fail(#call, rc_);          \
        }                                                       \
    } while (0)

/* Has the peer send something, which is in the ring once this returns. At a system call, and
 * after 100,000 jumps, valgrind would run the library's helper, which would take the message;
 * so this waits by arithmetic. */
static void command(struct shared *shared, int what)
{
    atomic_store(&shared->command, what);
    while (atomic_load(&shared->command) != IDLE) {
        __asm__ volatile(".rept 40\n\timul %%rax, %%rax\n\t.endr" ::: "rax", "cc");
    }
}

/* Polls until the peer rings no bell any more, and all that was under way has ended. The
 * helper may hold the library's lock where valgrind has interrupted it: it goes on first. */
static void settle(struct side *side)
{
    for (int poll = 0; poll < WARM_POLLS; poll++) {
        if (poll < WARM_POLLS / 2) sched_yield();
        poll_once(side);
        take_events(side);
    }
    for (int call = 0; call < WARM_CALLS; call++) take_lock(side);
}

static int nothing(void)
{
    return PTL_OK;
}

static int run_peer(struct side *side, struct shared *shared)
{
    int command;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shared->peer = open_side(side);
    atomic_store(&shared->ready, 1);
    for (;;) {
        do {
            poll_once(side);
        } while ((command = atomic_load(&shared->command)) == IDLE);
        if (command == END) break;
        carry_out(side, command, shared->counted);
        atomic_store(&shared->command, IDLE);
    }
    close_side(side);
    return 0;
}

static pid_t start_peer(const char *program, int memory)
{
    char number[16];
    snprintf(number, sizeof number, "%d", memory);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, number, (char *)NULL);
        _exit(127);
    }
    return child;
}

static struct shared *map_shared(int memory)
{
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED) fail("mmap", -1);
    return shared;
}

static int run_counted(struct side *side, const char *program)
{
    int            memory = memfd_create("calls", 0), status;
    struct shared *shared;
    char           job[32];
    snprintf(job, sizeof job, "instructions-%d", (int)getpid());
    setenv("LINTEL_JOB", job, 1);
    if (memory < 0 || ftruncate(memory, sizeof *shared) != 0) fail("memfd_create", memory);
    shared = map_shared(memory);
    shared->counted = open_side(side);
    pid_t child = start_peer(program, memory);
    while (!atomic_load(&shared->ready)) sched_yield();
    for (int round = 0; round < ROUNDS; round++) {
        settle(side);
        COUNTED("nothing", PTL_OK, nothing());
        count_calls(side, shared);
    }
    atomic_store(&shared->command, END);
    close_side(side);
    if (waitpid(child, &status, 0) != child || status != 0) fail("the peer ended", status);
    return 0;
}

/* Under callgrind a program is called without arguments; it calls itself with one. */
static int run(struct side *side, int count, char **words)
{
    alarm(LIMIT_SECONDS);
    return count > 1 ? run_peer(side, map_shared(atoi(words[1]))) : run_counted(side, words[0]);
}

#endif
