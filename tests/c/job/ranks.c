/*
 * Ranks learn who they are and who the others are: numbers, values that others have stored,
 * bytes gathered, addresses; and every misuse has the code that the header names.
 */
#include <portals4_job.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", ptljob_rank(), __FILE__, __LINE__, \
                    #condition, ptljob_explain());                                         \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static void misuse_before_init(void)
{
    char buffer[8];
    CHECK(ptljob_rank() == -1 && ptljob_size() == -1 && ptljob_node_rank() == -1);
    CHECK(ptljob_barrier() == PTLJOB_NO_INIT);
    CHECK(ptljob_put("key", "value") == PTLJOB_NO_INIT);
    CHECK(ptljob_get("key", buffer, sizeof buffer) == PTLJOB_NO_INIT);
    CHECK(ptljob_gather(buffer, 0, buffer) == PTLJOB_NO_INIT);
    CHECK(ptljob_fini() == PTLJOB_NO_INIT);
    CHECK(strstr(ptljob_explain(), "ptljob_init") != NULL);
}

static void numbers(void)
{
    int rank = ptljob_rank(), size = ptljob_size();
    CHECK(size >= 1 && rank >= 0 && rank < size);
    CHECK(ptljob_node_size() >= 1 && ptljob_node_size() <= size);
    CHECK(ptljob_node_rank() >= 0 && ptljob_node_rank() < ptljob_node_size());
}

static void values(void)
{
    char key[32], value[32], expected[32];
    int  next = (ptljob_rank() + 1) % ptljob_size();
    snprintf(key, sizeof key, "square-%d", ptljob_rank());
    snprintf(value, sizeof value, "%d", ptljob_rank() * ptljob_rank());
    CHECK(ptljob_put(key, value) == PTLJOB_OK);
    CHECK(ptljob_barrier() == PTLJOB_OK);
    snprintf(key, sizeof key, "square-%d", next);
    snprintf(expected, sizeof expected, "%d", next * next);
    CHECK(ptljob_get(key, value, sizeof value) == PTLJOB_OK);
    CHECK(strcmp(value, expected) == 0);
    CHECK(ptljob_get(key, value, strlen(expected)) == PTLJOB_NO_SPACE);
    CHECK(ptljob_get("absent", value, sizeof value) == PTLJOB_NOT_FOUND);
    CHECK(ptljob_put("with blanks", "value") == PTLJOB_ARG_INVALID);
    CHECK(ptljob_put("key", "with blanks") == PTLJOB_ARG_INVALID);
    CHECK(ptljob_put(NULL, "value") == PTLJOB_ARG_INVALID);
    CHECK(ptljob_get("key", NULL, 8) != PTLJOB_OK);
}

/* More than one value of the launcher's store can hold. */
#define LONG_SIZE 3000

static void gathers(void)
{
    int            size = ptljob_size(), rank = ptljob_rank();
    unsigned char *mine = malloc(LONG_SIZE), *all = malloc((size_t)size * LONG_SIZE);
    for (int at = 0; at < LONG_SIZE; at++) {
        mine[at] = (unsigned char)(at + 31 * rank);
    }
    CHECK(ptljob_gather(mine, LONG_SIZE, all) == PTLJOB_OK);
    for (int from = 0; from < size; from++) {
        for (int at = 0; at < LONG_SIZE; at++) {
            CHECK(all[from * LONG_SIZE + at] == (unsigned char)(at + 31 * from));
        }
    }
    CHECK(ptljob_gather(mine, 0, all) == PTLJOB_OK);
    CHECK(ptljob_gather(NULL, 1, all) == PTLJOB_ARG_INVALID);
    free(mine);
    free(all);
}

/* All notice that rank 0 passes another size; then they go on. */
static void other_sizes(void)
{
    char mine[8] = "", all[8 * 64];
    int  size = ptljob_size();
    if (size > 1 && size <= 64) {
        CHECK(ptljob_gather(mine, ptljob_rank() == 0 ? 4 : 8, all) == PTLJOB_ARG_INVALID);
        CHECK(ptljob_gather(mine, 8, all) == PTLJOB_OK);
    }
}

static void addresses(void)
{
    ptl_handle_ni_t ni;
    ptl_process_t   self, *map = calloc((size_t)ptljob_size(), sizeof *map);
    CHECK(PtlInit() == PTL_OK);
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
    CHECK(ptljob_map(PTL_INVALID_HANDLE, map) == PTLJOB_PORTALS);
    CHECK(ptljob_map(ni, map) == PTLJOB_OK);
    CHECK(PtlGetPhysId(ni, &self) == PTL_OK);
    for (int rank = 0; rank < ptljob_size(); rank++) {
        int same = map[rank].phys.nid == self.phys.nid && map[rank].phys.pid == self.phys.pid;
        CHECK(same == (rank == ptljob_rank()));
    }
    CHECK(ptljob_barrier() == PTLJOB_OK);
    PtlNIFini(ni);
    PtlFini();
    free(map);
}

int main(void)
{
    alarm(60);
    misuse_before_init();
    CHECK(ptljob_init() == PTLJOB_OK);
    CHECK(ptljob_init() == PTLJOB_OK);
    numbers();
    values();
    gathers();
    other_sizes();
    addresses();
    CHECK(ptljob_fini() == PTLJOB_OK);
    CHECK(ptljob_rank() >= 0);
    CHECK(ptljob_fini() == PTLJOB_OK);
    CHECK(ptljob_rank() == -1);
    return 0;
}
