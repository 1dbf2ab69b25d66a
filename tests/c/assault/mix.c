/*
 * Threads that call everything at once, with handles that may be another thread's,
 * freed, or none: mix KIND SECONDS THREADS PID NID SEED [OTHER].
 *
 * `calls` keeps the interface open; `cycles` has a thread that closes and opens it.
 * Whatever the calls answer, nothing may crash, hang or touch memory that isn't offered.
 * Where PID is 0 the library chooses, and the process talks to itself.
 */
#define _GNU_SOURCE
#include <portals4.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 64
#define MEMORY 65536
#define PORTALS 4
#define GUARD 4096
#define MOST_THREADS 64

enum { NI, EQ, CT, MD, ME, KINDS };

static _Atomic ptl_handle_any_t handles[KINDS][SLOTS];
/* Between two guards that nobody may write. */
static unsigned char memory[GUARD + MEMORY + GUARD];
static ptl_process_t target;
static atomic_int    finished;
static atomic_ulong  calls;
static int           cycles;
static ptl_pid_t     wanted;

static uint64_t random_number(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t bound)
{
    return random_number(state) % bound;
}

/* One of a kind; now and then of another kind, or none. */
static ptl_handle_any_t any(uint64_t *state, int kind)
{
    uint64_t luck = below(state, 100);
    if (luck == 0) {
        return (ptl_handle_any_t)random_number(state);
    }
    if (luck < 3) {
        kind = (int)below(state, KINDS);
    }
    return handles[kind][below(state, SLOTS)];
}

static void keep(uint64_t *state, int kind, ptl_handle_any_t handle)
{
    handles[kind][below(state, SLOTS)] = handle;
}

static int open_interface(uint64_t *state)
{
    static const unsigned int options[] = {PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};
    ptl_handle_ni_t           handle;
    ptl_ni_limits_t           limits;
    int code = PtlNIInit(PTL_IFACE_DEFAULT, options[cycles ? below(state, 2) : 0], wanted, NULL, &limits, &handle);
    if (code == PTL_OK) {
        keep(state, NI, handle);
        ptl_process_t me;
        if (target.phys.pid == 0 && PtlGetPhysId(handle, &me) == PTL_OK) {
            target = me;
        }
    }
    return code;
}

/* What names a part of the memory. */
static void make_region(uint64_t *state)
{
    ptl_handle_any_t handle;
    ptl_pt_index_t   portal = (ptl_pt_index_t)below(state, PORTALS);
    ptl_list_t       list = (ptl_list_t)below(state, 2);
    unsigned char   *start = memory + GUARD + below(state, MEMORY);
    size_t           length = below(state, (uint64_t)(memory + GUARD + MEMORY - start) + 1);
    ptl_md_t         md = {.start = start, .length = length, .eq_handle = any(state, EQ), .ct_handle = any(state, CT)};
    ptl_me_t         me = {
                .start = start,
                .length = length,
                .ct_handle = any(state, CT),
                .uid = PTL_UID_ANY,
                .options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
                .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                .match_bits = below(state, 4),
                .ignore_bits = below(state, 4),
    };
    ptl_le_t le = {start, length, me.ct_handle, PTL_UID_ANY, me.options};
    int      code, kind = ME;
    switch (below(state, 3)) {
    case 0:
        md.options = below(state, 2) ? PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY : 0;
        code = PtlMDBind(any(state, NI), &md, &handle);
        kind = MD;
        break;
    case 1:
        me.options |= below(state, 2) ? PTL_ME_USE_ONCE : PTL_ME_EVENT_CT_COMM;
        code = PtlMEAppend(any(state, NI), portal, &me, list, NULL, &handle);
        break;
    default: code = PtlLEAppend(any(state, NI), portal, &le, list, NULL, &handle);
    }
    if (code == PTL_OK) {
        keep(state, kind, handle);
    }
}

static void make(uint64_t *state)
{
    ptl_handle_any_t handle;
    ptl_pt_index_t   index = (ptl_pt_index_t)below(state, PORTALS);
    switch (below(state, 6)) {
    case 0:
        if (PtlEQAlloc(any(state, NI), below(state, 100), &handle) == PTL_OK) {
            keep(state, EQ, handle);
        }
        break;
    case 1:
        if (PtlCTAlloc(any(state, NI), &handle) == PTL_OK) {
            keep(state, CT, handle);
        }
        break;
    case 2: PtlPTAlloc(any(state, NI), (unsigned int)below(state, 4), any(state, EQ), index, &index); break;
    default: make_region(state);
    }
}

static void release(uint64_t *state)
{
    ptl_pt_index_t index = (ptl_pt_index_t)below(state, PORTALS);
    switch (below(state, 8)) {
    case 0: PtlEQFree(any(state, EQ)); break;
    case 1: PtlCTFree(any(state, CT)); break;
    case 2: PtlMDRelease(any(state, MD)); break;
    case 3: PtlMEUnlink(any(state, ME)); break;
    case 4: PtlLEUnlink(any(state, ME)); break;
    case 5: PtlPTFree(any(state, NI), index); break;
    case 6: PtlPTDisable(any(state, NI), index); break;
    default: PtlPTEnable(any(state, NI), index);
    }
}

static void move(uint64_t *state)
{
    ptl_pt_index_t   portal = (ptl_pt_index_t)below(state, PORTALS);
    ptl_size_t       at = below(state, 4096), length = below(state, 2) ? below(state, 64) : below(state, 20000);
    ptl_match_bits_t bits = below(state, 4);
    ptl_handle_md_t  md = any(state, MD), other = any(state, MD);
    ptl_size_t       threshold = below(state, 50);
    ptl_handle_ct_t  ct = any(state, CT);
    ptl_ct_event_t   one = {1, 0};
    switch (below(state, 10)) {
    case 0:
    case 1:
    case 2: PtlPut(md, at, length, (ptl_ack_req_t)below(state, 4), target, portal, bits, at, NULL, 0); break;
    case 3:
    case 4: PtlGet(md, at, length, target, portal, bits, at, NULL); break;
    case 5: PtlAtomic(md, at, length & ~7ul, PTL_ACK_REQ, target, portal, bits, at, NULL, 0, PTL_SUM, PTL_INT64_T); break;
    case 6:
        PtlFetchAtomic(md, at, other, at, 8, target, portal, bits, at, NULL, 0, PTL_SUM, PTL_INT64_T);
        break;
    case 7:
        PtlTriggeredPut(md, at, length, PTL_NO_ACK_REQ, target, portal, bits, at, NULL, 0, ct, threshold);
        break;
    case 8: PtlTriggeredGet(md, at, length, target, portal, bits, at, NULL, ct, threshold); break;
    default: PtlTriggeredCTInc(any(state, CT), one, ct, threshold);
    }
}

static void look(uint64_t *state)
{
    ptl_event_t     event;
    ptl_ct_event_t  count = {below(state, 100), 0};
    unsigned int    which;
    ptl_handle_eq_t queues[2] = {any(state, EQ), any(state, EQ)};
    ptl_handle_ct_t counters[2] = {any(state, CT), any(state, CT)};
    ptl_size_t      tests[2] = {below(state, 100), below(state, 100)};
    ptl_sr_value_t  status;
    ptl_process_t   id;
    ptl_uid_t       uid;
    ptl_handle_ni_t ni;
    /* Nobody may wait on what another thread closes. */
    ptl_time_t patience = cycles ? 0 : (ptl_time_t)below(state, 2);
    switch (below(state, 12)) {
    case 0:
    case 1:
    case 2: PtlEQGet(queues[0], &event); break;
    case 3: PtlEQPoll(queues, 2, patience, &event, &which); break;
    case 4: PtlCTGet(counters[0], &count); break;
    case 5: PtlCTPoll(counters, tests, 2, patience, &count, &which); break;
    case 6: PtlCTInc(counters[0], (ptl_ct_event_t){1, 0}); break;
    case 7: PtlCTSet(counters[0], count); break;
    case 8: PtlCTCancelTriggered(counters[0]); break;
    case 9: PtlNIStatus(any(state, NI), (ptl_sr_index_t)below(state, 4), &status); break;
    case 10: PtlGetPhysId(any(state, NI), &id); break;
    default:
        PtlGetUid(any(state, NI), &uid);
        PtlNIHandle(any(state, (int)below(state, KINDS)), &ni);
        PtlHandleIsEqual(any(state, MD), any(state, ME));
        PtlAtomicSync();
    }
}

static void *call(void *seed)
{
    uint64_t      state = (uint64_t)(uintptr_t)seed;
    unsigned long made = 0;
    while (!finished) {
        switch (below(&state, 8)) {
        case 0: make(&state); break;
        case 1: release(&state); break;
        case 2:
        case 3: look(&state); break;
        default: move(&state);
        }
        made++;
    }
    calls += made;
    return NULL;
}

static void *cycle(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!finished) {
        open_interface(&state);
        PtlNIFini(any(&state, NI));
        calls += 2;
    }
    return NULL;
}

static int guards_hold(void)
{
    for (size_t at = 0; at < GUARD; at++) {
        if (memory[at] != 0x5a || memory[GUARD + MEMORY + at] != 0x5a) {
            fprintf(stderr, "mix: memory beside what was offered has changed\n");
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "mix calls|cycles SECONDS THREADS PID NID SEED [OTHER]\n");
        return 2;
    }
    cycles = strcmp(argv[1], "cycles") == 0;
    unsigned int seconds = (unsigned int)atoi(argv[2]);
    int          count = atoi(argv[3]);
    uint64_t     seed = strtoull(argv[6], NULL, 0);
    wanted = atoi(argv[4]) == 0 ? PTL_PID_ANY : (ptl_pid_t)atoi(argv[4]);
    target.phys.nid = (ptl_nid_t)strtoul(argv[5], NULL, 0);
    target.phys.pid = argc > 7 ? (ptl_pid_t)atoi(argv[7]) : 0;
    memset(memory, 0x5a, sizeof memory);
    int code = PtlInit();
    if (code != PTL_OK || (code = open_interface(&seed)) != PTL_OK) {
        fprintf(stderr, "mix: the interface isn't opened: %d\n", code);
        return 1;
    }
    /* Each further opening counts: random ends hardly ever close it. */
    for (int slot = 0; !cycles && slot < 4 * SLOTS; slot++) {
        open_interface(&seed);
    }
    pthread_t threads[MOST_THREADS];
    for (int at = 0; at < count && at < MOST_THREADS; at++) {
        void *(*body)(void *) = cycles && at == 0 ? cycle : call;
        if (pthread_create(&threads[at], NULL, body, (void *)(uintptr_t)random_number(&seed)) != 0) {
            perror("mix: thread");
            return 1;
        }
    }
    sleep(seconds);
    finished = 1;
    for (int at = 0; at < count && at < MOST_THREADS; at++) {
        pthread_join(threads[at], NULL);
    }
    PtlFini();
    printf("%lu calls\n", (unsigned long)calls);
    return guards_hold() ? 0 : 1;
}
