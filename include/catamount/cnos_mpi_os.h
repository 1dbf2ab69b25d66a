/*
 * catamount/cnos_mpi_os.h - ranks, names and a barrier, for programs written for Cray's compute nodes.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Such programs take from these functions what others take from p3rt/p3rt.h or from PMI. Rank, size
 * and names are those of PtlGetRank and PtlGetRankId, which a launcher passes in the environment
 * (PTL_MY_RID, PTL_NIDMAP, PTL_PIDMAP, PTL_MY_JID); the barrier and the exchange of names go through
 * the launcher's PMI. A launcher with PMI alone is enough for programs that call cnos_register_ptlid.
 *
 * Link with -lcnos -lportals3. A function that fails prints the reason on standard error. The functions may be
 * called by several threads, and not in a child after fork.
 */

#ifndef CATAMOUNT_CNOS_MPI_OS_H
#define CATAMOUNT_CNOS_MPI_OS_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Catamount -------------------------------------------------------------------------------- */

/**
 * The name of a rank
 */
typedef struct {
    ptl_nid_t nid; /**< The node. */
    ptl_pid_t pid; /**< The process on that node. */
} cnos_nidpid_map_t;

#define CNOS_LAUNCHER_YOD   1 /**< The launcher of Catamount. */
#define CNOS_LAUNCHER_APRUN 2 /**< The launcher of Cray's Linux. */

/**
 * Returns the rank of the process
 *
 * @return the rank, from 0; 0 without a launcher; -1 if the launcher can't be asked
 * @blocks never
 * @threads safe; not in a child after fork
 */
int cnos_get_rank(void);

/**
 * Returns the number of ranks of the job
 *
 * @return the number; 1 without a launcher; -1 if the launcher can't be asked
 * @blocks never
 * @threads safe; not in a child after fork
 */
int cnos_get_size(void);

/**
 * Returns the names of all ranks
 *
 * After cnos_register_ptlid these are the names that the ranks have registered, and the first call waits
 * until each rank has called this function or cnos_barrier. Otherwise they are the launcher's.
 *
 * @param[out] map  an array, in the order of ranks; the caller releases it with free()
 * @return the number of ranks; -1 if a name is not known, or `map` is NULL
 * @blocks after cnos_register_ptlid, until each rank has called it or cnos_barrier
 * @threads safe; not in a child after fork
 */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);

/**
 * Prepares the barrier. Does nothing: the barrier needs no interface
 *
 * @param[in] ni_handle  ignored
 * @blocks never
 * @threads safe
 */
void cnos_barrier_init(ptl_handle_ni_t ni_handle);

/**
 * Publishes the name of this process to the other ranks
 *
 * Every rank calls it, or none. Returns without waiting for others.
 *
 * @param[in] id  what PtlGetId returned
 * @return 0, or -1 if the launcher can't be asked
 * @blocks never
 * @threads safe; not in a child after fork
 */
int cnos_register_ptlid(ptl_process_id_t id);

/**
 * Waits until all ranks have called it
 *
 * @return 0, or -1 if the launcher can't be asked or is ending the job
 * @blocks until all ranks have called it
 * @threads safe; not in a child after fork
 */
int cnos_barrier(void);

/**
 * Waits as cnos_barrier does
 *
 * @param[in] is_exiting  whether the program ends after it; ignored
 * @return 0, or -1 as cnos_barrier
 * @blocks until all ranks have called it
 * @threads safe; not in a child after fork
 */
int cnos_pm_barrier(int is_exiting);

/**
 * Returns the launcher whose conventions apply
 *
 * @return CNOS_LAUNCHER_APRUN, whatever started the program: such programs open an interface by Cray's
 * number, which follows Cray's rules, and register their name
 * @blocks never
 * @threads safe
 */
int cnos_launcher(void);

#ifdef __cplusplus
}
#endif

#endif
