/*
 * portals4/pmi.h - PMI-1, the process management interface, under the names of the Portals 4
 * reference's runtime library.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs written for the reference's libportals_runtime compile against this header and link
 * -lportals_runtime without change. Names and values are MPICH's PMI 1.1; the launcher may speak PMI-1,
 * PMI-2 or PMIx. New programs find portals4_job.h simpler. PMI_Spawn_multiple and the three functions of
 * published names return PMI_FAIL: no launcher of a job of Portals processes offers them.
 */

#ifndef PMI_H_INCLUDED
#define PMI_H_INCLUDED

#ifdef USE_PMI2_API
#error "portals4/pmi.h declares PMI 1; USE_PMI2_API asks for PMI 2"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_TRUE  1
#define PMI_FALSE 0

#define PMI_SUCCESS                0  /* Success. */
#define PMI_FAIL                  -1  /* The launcher can't be reached, or refused the request. */
#define PMI_ERR_INIT               1  /* PMI_Init hasn't been called. */
#define PMI_ERR_NOMEM              2  /* The buffer is too small. */
#define PMI_ERR_INVALID_ARG        3  /* A null pointer. */
#define PMI_ERR_INVALID_KEY        4  /* A key that can't be one. */
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL        6  /* A value that can't be one. */
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH     8  /* A length that isn't positive, or too small. */
#define PMI_ERR_INVALID_NUM_ARGS   9
#define PMI_ERR_INVALID_ARGS       10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP    12
#define PMI_ERR_INVALID_SIZE       13

/* A key with its value, for PMI_Spawn_multiple. */
typedef struct PMI_keyval_t {
    const char *key;
    char       *val;
} PMI_keyval_t;

/* Beginning and end. `spawned` is always PMI_FALSE. PMI_Abort doesn't return. */
int PMI_Init(int *spawned);
int PMI_Initialized(int *initialized);
int PMI_Finalize(void);
int PMI_Abort(int exit_code, const char *message);

/* The process and its job. The universe's size is the number of processes that the launcher could
 * run, INT_MAX if it has no limit. `appnum` is always 0. */
int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
int PMI_Get_universe_size(int *size);
int PMI_Get_appnum(int *appnum);

/* Waits until all ranks have called it; what they have put can be got then. */
int PMI_Barrier(void);

/* The job's key-value store. Lengths count a terminating NUL. */
int PMI_KVS_Get_my_name(char *store, int length);
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
int PMI_KVS_Put(const char *store, const char *key, const char *value);
int PMI_KVS_Commit(const char *store);
int PMI_KVS_Get(const char *store, const char *key, char *value, int length);

/* Refused: PMI_FAIL. */
int PMI_Publish_name(const char *service, const char *port);
int PMI_Unpublish_name(const char *service);
int PMI_Lookup_name(const char *service, char *port);
int PMI_Spawn_multiple(int count, const char **cmds, const char ***argvs, const int *maxprocs,
                       const int *info_keyval_sizesp, const PMI_keyval_t **info_keyval_vectors,
                       int preput_keyval_size, const PMI_keyval_t *preput_keyval_vector, int *errors);

#ifdef __cplusplus
}
#endif

#endif
