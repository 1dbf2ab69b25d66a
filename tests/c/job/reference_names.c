/*
 * A program that was written for the reference's runtime library: PMI_ names, -lportals_runtime.
 */
#include <portals4/pmi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static char *room(int length)
{
    char *room = malloc((size_t)length);
    CHECK(length > 0 && room != NULL);
    return room;
}

int main(void)
{
    int flag, rank, size, universe, name_max, key_max, value_max;
    alarm(60);
    CHECK(PMI_Initialized(&flag) == PMI_SUCCESS && flag == 0);
    CHECK(PMI_Get_rank(&rank) == PMI_ERR_INIT);
    CHECK(PMI_Init(NULL) == PMI_ERR_INVALID_ARG);
    CHECK(PMI_Init(&flag) == PMI_SUCCESS && flag == 0);
    CHECK(PMI_Initialized(&flag) == PMI_SUCCESS && flag == 1);
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS && PMI_Get_size(&size) == PMI_SUCCESS);
    CHECK(rank >= 0 && rank < size);
    CHECK(PMI_Get_universe_size(&universe) == PMI_SUCCESS && universe >= 1);
    CHECK(PMI_Get_appnum(&flag) == PMI_SUCCESS && flag == 0);
    CHECK(PMI_KVS_Get_name_length_max(&name_max) == PMI_SUCCESS);
    CHECK(PMI_KVS_Get_key_length_max(&key_max) == PMI_SUCCESS);
    CHECK(PMI_KVS_Get_value_length_max(&value_max) == PMI_SUCCESS);

    char *name = room(name_max), *key = room(key_max), *value = room(value_max);
    char  expected[16];
    int   from = (rank + size - 1) % size;
    CHECK(PMI_KVS_Get_my_name(name, 1) == PMI_ERR_NOMEM);
    CHECK(PMI_KVS_Get_my_name(name, name_max) == PMI_SUCCESS);
    snprintf(key, (size_t)key_max, "rank-%d", rank);
    snprintf(value, (size_t)value_max, "%d", rank + 100);
    CHECK(PMI_KVS_Put(name, key, value) == PMI_SUCCESS);
    CHECK(PMI_KVS_Put(name, "a key", value) == PMI_ERR_INVALID_KEY);
    CHECK(PMI_KVS_Put(name, key, "a value") == PMI_ERR_INVALID_VAL);
    CHECK(PMI_KVS_Commit(name) == PMI_SUCCESS);
    CHECK(PMI_Barrier() == PMI_SUCCESS);
    snprintf(key, (size_t)key_max, "rank-%d", from);
    snprintf(expected, sizeof expected, "%d", from + 100);
    CHECK(PMI_KVS_Get(name, key, value, value_max) == PMI_SUCCESS);
    CHECK(strcmp(value, expected) == 0);
    CHECK(PMI_KVS_Get(name, key, value, 2) == PMI_ERR_NOMEM);
    CHECK(PMI_KVS_Get(name, key, value, 0) == PMI_ERR_INVALID_LENGTH);
    CHECK(PMI_Publish_name("service", "port") == PMI_FAIL);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
    CHECK(PMI_Finalize() == PMI_ERR_INIT);
    free(name);
    free(key);
    free(value);
    return 0;
}
