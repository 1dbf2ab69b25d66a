/*
 * Every operation on every datatype, every algorithm, lengths from nothing to many
 * segments, every root, in place and not: each result equals that of a plain loop. Run it
 * with any number of ranks up to 16; with the argument "logical", processes are addressed
 * by rank.
 */
#include "collectives.h"

#include <complex.h>

/* Above this many ranks, which then share cores, the longest buffers are left out. */
#define MANY_RANKS 5

static struct rig      rig;
static ptlcoll_group_t group;
static int             rank, ranks;

/* Small, so that sums and products are exact in every type. */
static int value(int of_rank, size_t place, unsigned int salt)
{
    unsigned int mixed = (unsigned int)of_rank * 7919u + (unsigned int)place * 104729u + salt * 31u;
    mixed ^= mixed >> 7;
    return (int)(mixed % 3);
}

#define MIN(a, b)  ((a) < (b) ? (a) : (b))
#define MAX(a, b)  ((a) > (b) ? (a) : (b))
#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define LOR(a, b)  ((a) || (b))
#define LAND(a, b) ((a) && (b))
#define BOR(a, b)  ((a) | (b))
#define BAND(a, b) ((a) & (b))
#define LXOR(a, b) (!(a) != !(b))
#define BXOR(a, b) ((a) ^ (b))

#define FOLD(T, how)                                              \
    for (size_t place = 0; place < count; place++) {              \
        T all = (T)value(0, place, salt);                         \
        for (int other = 1; other < ranks; other++) {             \
            all = (T)how(all, (T)value(other, place, salt));      \
        }                                                         \
        expected[place] = all;                                    \
    }                                                             \
    break;

#define REAL(T)                     \
    case PTL_MIN: FOLD(T, MIN)      \
    case PTL_MAX: FOLD(T, MAX)

#define ARITHMETIC(T)               \
    case PTL_SUM: FOLD(T, SUM)      \
    case PTL_PROD: FOLD(T, PROD)

#define BITS(T)                     \
    case PTL_LOR: FOLD(T, LOR)      \
    case PTL_LAND: FOLD(T, LAND)    \
    case PTL_BOR: FOLD(T, BOR)      \
    case PTL_BAND: FOLD(T, BAND)    \
    case PTL_LXOR: FOLD(T, LXOR)    \
    case PTL_BXOR: FOLD(T, BXOR)

/* Runs one reduction to all and one to a root, and compares element by element. */
#define CHECK(NAME, T, TYPE, OPERATIONS)                                                          \
    static void check_##NAME(ptl_op_t operation, size_t count, ptlcoll_algorithm_t how, unsigned int salt) \
    {                                                                                             \
        T *given = calloc(count + 1, sizeof(T)), *got = calloc(count + 1, sizeof(T));             \
        T *expected = calloc(count + 1, sizeof(T));                                               \
        ptl_rank_t root = salt % (unsigned int)ranks;                                             \
        switch (operation) {                                                                      \
            OPERATIONS                                                                            \
        default:                                                                                  \
            SAME(ptlcoll_allreduce(group, given, got, count, operation, TYPE, how), PTLCOLL_ARG_INVALID); \
            goto out;                                                                             \
        }                                                                                         \
        for (size_t place = 0; place < count; place++) {                                          \
            given[place] = (T)value(rank, place, salt);                                           \
        }                                                                                         \
        got[count] = (T)42;                                                                       \
        DONE(ptlcoll_allreduce(group, given, got, count, operation, TYPE, how));                  \
        for (size_t place = 0; place < count; place++) {                                          \
            if (got[place] != expected[place]) {                                                  \
                fprintf(stderr, "operation %d on " #T ", %zu elements, algorithm %#x\n", operation, count, how); \
                rig_fail(__FILE__, __LINE__, "wrong element", (long)place);                       \
            }                                                                                     \
        }                                                                                         \
        SAME(got[count] == (T)42, 1);                                                             \
        if (how == PTLCOLL_RECURSIVE_DOUBLING) {                                                  \
            how = PTLCOLL_AUTO;                                                                  \
        }                                                                                         \
        int in_place = rank == (int)root && salt % 2 == 0;                                        \
        if (in_place) {                                                                           \
            memcpy(got, given, count * sizeof(T));                                                \
        }                                                                                         \
        DONE(ptlcoll_reduce(group, in_place ? PTLCOLL_IN_PLACE : given, got, count, operation, TYPE, root, how)); \
        for (size_t place = 0; place < count && rank == (int)root; place++) {                     \
            if (got[place] != expected[place]) {                                                  \
                fprintf(stderr, "operation %d on " #T ", %zu elements, algorithm %#x\n", operation, count, how); \
                rig_fail(__FILE__, __LINE__, "wrong element at the root", (long)place);           \
            }                                                                                     \
        }                                                                                         \
    out:                                                                                          \
        free(given);                                                                              \
        free(got);                                                                                \
        free(expected);                                                                           \
    }

#define INTEGER(T) REAL(T) ARITHMETIC(T) BITS(T)
#define FLOATING(T) REAL(T) ARITHMETIC(T)

CHECK(int8, int8_t, PTL_INT8_T, INTEGER(int8_t))
CHECK(uint8, uint8_t, PTL_UINT8_T, INTEGER(uint8_t))
CHECK(int16, int16_t, PTL_INT16_T, INTEGER(int16_t))
CHECK(uint16, uint16_t, PTL_UINT16_T, INTEGER(uint16_t))
CHECK(int32, int32_t, PTL_INT32_T, INTEGER(int32_t))
CHECK(uint32, uint32_t, PTL_UINT32_T, INTEGER(uint32_t))
CHECK(int64, int64_t, PTL_INT64_T, INTEGER(int64_t))
CHECK(uint64, uint64_t, PTL_UINT64_T, INTEGER(uint64_t))
CHECK(float, float, PTL_FLOAT, FLOATING(float))
CHECK(double, double, PTL_DOUBLE, FLOATING(double))
CHECK(long_double, long double, PTL_LONG_DOUBLE, FLOATING(long double))
CHECK(float_complex, float complex, PTL_FLOAT_COMPLEX, ARITHMETIC(float complex))
CHECK(double_complex, double complex, PTL_DOUBLE_COMPLEX, ARITHMETIC(double complex))
CHECK(long_double_complex, long double complex, PTL_LONG_DOUBLE_COMPLEX, ARITHMETIC(long double complex))

typedef void checker(ptl_op_t, size_t, ptlcoll_algorithm_t, unsigned int);

static checker *const CHECKERS[] = {
    check_int8, check_uint8, check_int16, check_uint16, check_int32, check_uint32, check_int64,
    check_uint64, check_float, check_double, check_long_double, check_float_complex,
    check_double_complex, check_long_double_complex,
};

static void reductions(void)
{
    const ptlcoll_algorithm_t hows[] = {PTLCOLL_AUTO,       PTLCOLL_RECURSIVE_DOUBLING, PTLCOLL_HALVING,
                                        PTLCOLL_K_NOMIAL(2), PTLCOLL_K_NOMIAL(4),        PTLCOLL_K_ARY(1),
                                        PTLCOLL_K_ARY(2)};
    const size_t              many   = sizeof hows / sizeof *hows;
    unsigned int              salt   = 0;
    for (size_t type = 0; type < sizeof CHECKERS / sizeof *CHECKERS; type++) {
        for (ptl_op_t operation = PTL_MIN; operation <= PTL_BXOR; operation++) {
            const size_t counts[] = {0, 1, 37};
            salt++;
            CHECKERS[type](operation, counts[salt % 3], hows[salt % many], salt);
            if (ranks <= MANY_RANKS) {
                CHECKERS[type](operation, 1 + salt % 300, PTLCOLL_AUTO, salt);
            }
        }
    }
    if (ranks > MANY_RANKS) {
        return;
    }
    /* Several atomics, several segments, more segments than lanes. */
    for (size_t how = 0; how < many; how++) {
        check_double(PTL_SUM, 3000, hows[how], salt++);
        check_int32(PTL_BXOR, 20001, hows[how], salt++);
    }
    check_uint64(PTL_SUM, 150000, PTLCOLL_AUTO, salt++);
}

static void broadcast(size_t bytes, int root, ptlcoll_algorithm_t how)
{
    unsigned char *buffer = malloc(bytes + 1);
    rig_fill(buffer, bytes, rank == root ? (unsigned int)root : 99);
    buffer[bytes] = 42;
    DONE(ptlcoll_broadcast(group, buffer, bytes, (ptl_rank_t)root, how));
    rig_check_fill(buffer, bytes, (unsigned int)root);
    SAME(buffer[bytes], 42);
    free(buffer);
}

static void gather(size_t bytes, int root, ptlcoll_algorithm_t how, int in_place)
{
    unsigned char *mine = malloc(bytes + 1), *all = malloc(bytes * (size_t)ranks + 1);
    rig_fill(mine, bytes, (unsigned int)rank);
    if (in_place && rank == root) {
        memcpy(all + bytes * (size_t)rank, mine, bytes);
    }
    DONE(ptlcoll_gather(group, in_place && rank == root ? PTLCOLL_IN_PLACE : mine, all, bytes, (ptl_rank_t)root, how));
    for (int other = 0; other < ranks && rank == root; other++) {
        rig_check_fill(all + bytes * (size_t)other, bytes, (unsigned int)other);
    }
    free(mine);
    free(all);
}

static void scatter(size_t bytes, int root, ptlcoll_algorithm_t how, int in_place)
{
    unsigned char *mine = malloc(bytes + 1), *all = malloc(bytes * (size_t)ranks + 1);
    for (int other = 0; other < ranks && rank == root; other++) {
        rig_fill(all + bytes * (size_t)other, bytes, (unsigned int)other);
    }
    int kept = in_place && rank == root;
    DONE(ptlcoll_scatter(group, all, kept ? PTLCOLL_IN_PLACE : mine, bytes, (ptl_rank_t)root, how));
    rig_check_fill(kept ? all + bytes * (size_t)rank : mine, bytes, (unsigned int)rank);
    free(mine);
    free(all);
}

static void movements(void)
{
    const ptlcoll_algorithm_t hows[] = {PTLCOLL_AUTO, PTLCOLL_K_NOMIAL(2), PTLCOLL_K_NOMIAL(3), PTLCOLL_K_ARY(1),
                                        PTLCOLL_K_ARY(2), PTLCOLL_K_ARY(1000)};
    const size_t lengths[] = {0, 1, 100, 5000, 70000};
    int          turn = 0, many = ranks > MANY_RANKS;
    for (size_t how = 0; how < 6; how++) {
        for (size_t length = 0; length < (many ? 3u : 5u); length++) {
            int root = turn++ % ranks;
            broadcast(lengths[length], root, hows[how]);
            gather(lengths[length], root, hows[how], turn % 2);
            scatter(lengths[length], root, hows[how], turn % 2);
        }
    }
    if (many) {
        return;
    }
    broadcast(2500000, ranks - 1, PTLCOLL_PIPELINE(1));
    gather(100000, ranks - 1, PTLCOLL_AUTO, 0);
    scatter(100000, ranks / 2, PTLCOLL_AUTO, 0);
}

/* Nobody's back-to-back operation meets the one before. */
static void repeats(void)
{
    const ptlcoll_algorithm_t hows[] = {PTLCOLL_AUTO, PTLCOLL_DISSEMINATION, PTLCOLL_RECURSIVE_DOUBLING,
                                        PTLCOLL_K_NOMIAL(2)};
    for (int turn = 0; turn < (ranks > MANY_RANKS ? 10 : 50); turn++) {
        int64_t given = rank + turn, got = -1;
        DONE(ptlcoll_barrier(group, hows[turn % 4]));
        DONE(ptlcoll_allreduce(group, &given, &got, 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO));
        SAME(got, (int64_t)ranks * (ranks - 1) / 2 + (int64_t)ranks * turn);
        broadcast(8, turn % ranks, PTLCOLL_AUTO);
    }
}

/* More than may be under way, waited for in the other order, with others between. */
static void many_at_once(void)
{
    enum { MANY = 70 };
    static int64_t    given[MANY], got[MANY];
    ptlcoll_request_t requests[MANY], barrier;
    for (int turn = 0; turn < MANY; turn++) {
        given[turn] = rank * (turn + 1);
        DONE(ptlcoll_iallreduce(group, &given[turn], &got[turn], 1, PTL_SUM, PTL_INT64_T, PTLCOLL_AUTO,
                                &requests[turn]));
        given[turn] = -1; /* the caller's again */
    }
    DONE(ptlcoll_ibarrier(group, PTLCOLL_AUTO, &barrier));
    broadcast(200000, 0, PTLCOLL_AUTO);
    for (int turn = MANY - 1; turn >= 0; turn--) {
        DONE(ptlcoll_wait(&requests[turn]));
        SAME(requests[turn], PTLCOLL_REQUEST_NULL);
        SAME(got[turn], (int64_t)(turn + 1) * ranks * (ranks - 1) / 2);
    }
    int done = 0;
    while (!done) {
        DONE(ptlcoll_test(&barrier, &done));
    }
    DONE(ptlcoll_wait(&barrier)); /* ended long ago */
    SAME(ptlcoll_wait(NULL), PTLCOLL_ARG_INVALID);
    ptlcoll_request_t stale = (ptlcoll_request_t)group << 32 | 1;
    SAME(ptlcoll_wait(&stale), PTLCOLL_ARG_INVALID);
}

/* The odd ranks, the even ones in the other order, and everybody once more. */
static void several_groups(void)
{
    ptl_process_t processes[MAX_RANKS];
    int           count = 0, place = -1;
    for (int other = ranks - 1; other >= 0; other--) {
        if (other % 2 == rank % 2) {
            place            = other == rank ? count : place;
            processes[count++] = rig.peers[other];
        }
    }
    for (int again = 0; again < 2; again++) {
        ptlcoll_group_t half = group_of(&rig, processes, count, place, PORTAL + 1);
        ptlcoll_group_t all  = group_of(&rig, rig.peers, ranks, rank, PORTAL + 2);
        for (int turn = 0; turn < 10; turn++) {
            int32_t one = 1, of_half = 0, of_all = 0;
            DONE(ptlcoll_allreduce(half, &one, &of_half, 1, PTL_SUM, PTL_INT32_T, PTLCOLL_AUTO));
            DONE(ptlcoll_allreduce(all, &one, &of_all, 1, PTL_SUM, PTL_INT32_T, PTLCOLL_AUTO));
            SAME(of_half, count);
            SAME(of_all, ranks);
        }
        DONE(ptlcoll_group_free(half));
        DONE(ptlcoll_group_free(all));
        SAME(ptlcoll_barrier(all, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    }
}

static void errors(void)
{
    int32_t         word[4] = {0};
    ptlcoll_group_t none;
    ptl_rank_t      failed;
    SAME(ptlcoll_barrier(PTLCOLL_GROUP_NULL, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_broadcast(group, word, 4, (ptl_rank_t)ranks, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_broadcast(group, NULL, 4, 0, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_broadcast(group, word, 4, 0, PTLCOLL_DISSEMINATION), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_barrier(group, PTLCOLL_K_NOMIAL(1)), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_barrier(group, 0x70000), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_allreduce(group, word, word + 1, 2, PTL_SUM, PTL_INT32_T, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_allreduce(group, word, word + 2, 2, PTL_SWAP, PTL_INT32_T, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_allreduce(group, word, word + 2, 2, PTL_SUM, 200, PTLCOLL_AUTO), PTLCOLL_ARG_INVALID);
    SAME(strlen(ptlcoll_explain()) > 20, 1);
    SAME(ptlcoll_failed_rank(group, &failed), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_group_create(rig.ni, PORTAL, rig.peers, (ptl_size_t)ranks, (ptl_rank_t)rank, 0, &none), PTLCOLL_PT_IN_USE);
    SAME(ptlcoll_group_create(rig.ni, PTL_PT_ANY, rig.peers, (ptl_size_t)ranks, (ptl_rank_t)rank, 0, &none), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_group_create(rig.ni, PORTAL + 3, rig.peers, (ptl_size_t)ranks, (ptl_rank_t)ranks, 0, &none), PTLCOLL_ARG_INVALID);
    SAME(ptlcoll_group_create(rig.ni, PORTAL + 3, rig.peers, (ptl_size_t)ranks, (ptl_rank_t)rank, 7, &none), PTLCOLL_ARG_INVALID);
    SAME(strcmp(ptlcoll_strerror(PTLCOLL_PROC_FAILED), "PTLCOLL_PROC_FAILED"), 0);
    SAME(strcmp(ptlcoll_strerror(-1), "Unknown"), 0);
}

int main(int argc, char **argv)
{
    rig = rig_begin_all(PTL_NI_MATCHING);
    alarm(280);
    if (argc > 1 && strcmp(argv[1], "logical") == 0) {
        become_logical(&rig);
    }
    rank  = rig.pmi.rank;
    ranks = rig.pmi.size;
    group = group_of_all(&rig);
    errors();
    repeats();
    reductions();
    movements();
    many_at_once();
    several_groups();
    DONE(ptlcoll_group_free(group));
    rig_end(&rig);
    return 0;
}
