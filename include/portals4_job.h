/*
 * portals4_job.h - the job of a parallel program: its rank, its peers, and what they exchange.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Portals names processes by node and process id, and leaves it to the launcher to say who
 * the others are. This library asks the launcher, over PMI-1, PMI-2 or PMIx: yod, MPICH's mpiexec,
 * Slurm's srun, Open MPI's mpirun. A program that no launcher has started is a job of one rank.
 *
 * Functions return PTLJOB_OK or another code of enum ptljob_retvals, unless said otherwise. After a
 * failure ptljob_explain returns what is wrong and how to mend it. Strings are copied. A process that
 * uses MPI shares its launcher with it: call ptljob_init only if MPI isn't initialized. Calls of
 * several threads follow one another. The comments follow the grammar that portals4.h explains.
 */

#ifndef PORTALS4_JOB_H
#define PORTALS4_JOB_H

#include <stddef.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Jobs: codes --------------------------------------------------------------------------- */

/**
 * What a function returns
 *
 * ptljob_explain returns an explanation.
 */
enum ptljob_retvals {
    PTLJOB_OK = 0,          /**< Success. */
    PTLJOB_ARG_INVALID = 1, /**< An argument is wrong: a null pointer, a key or a value that the
                             * launcher can't store, ranks that pass different sizes. */
    PTLJOB_NO_INIT = 2,     /**< ptljob_init hasn't been called, or ptljob_fini has. */
    PTLJOB_LAUNCHER = 3,    /**< The launcher can't be reached, or refused the request. */
    PTLJOB_NOT_FOUND = 4,   /**< No rank had stored a value under the key before the last
                             * barrier. */
    PTLJOB_NO_SPACE = 5,    /**< The buffer is too small. */
    PTLJOB_PORTALS = 6      /**< The Portals library refused the interface. */
};

/* --- Jobs: beginning and end --------------------------------------------------------------- */

/**
 * Connects with the launcher
 *
 * The process may call it several times; ptljob_fini then has to be called as often.
 *
 * @return PTLJOB_OK        rank and size are known
 * @return PTLJOB_LAUNCHER  a launcher has started this process and can't be reached
 * @blocks until the launcher has answered
 * @threads safe
 * @see ptljob_fini, ptljob_rank, ptljob_map
 */
int ptljob_init(void);

/**
 * Leaves the job
 *
 * The launcher then takes the end of this process as intended.
 *
 * @return PTLJOB_OK        done
 * @return PTLJOB_NO_INIT   ptljob_init hasn't been called
 * @return PTLJOB_LAUNCHER  the launcher has closed the connection
 * @blocks until the launcher has answered; under some launchers until all ranks have called it
 * @threads safe
 * @see ptljob_init
 */
int ptljob_fini(void);

/**
 * Ends the whole job, and this process
 *
 * It doesn't return.
 *
 * @param[in] exit_code  the exit code of this process, and the job's if the launcher passes it on
 * @param[in] message    written on standard error; nothing is for NULL and ""
 * @blocks never
 * @threads safe
 * @see ptljob_init
 */
void ptljob_abort(int exit_code,
                  const char *message);

/**
 * Returns what was wrong with the last call of this thread that failed
 *
 * @return a text, valid until the thread's next failure; "" if no call has failed
 * @blocks never
 * @threads safe
 * @see ptljob_init
 */
const char *ptljob_explain(void);

/* --- Jobs: ranks --------------------------------------------------------------------------- */

/**
 * Returns this process's rank
 *
 * @return the rank, from 0; -1 before ptljob_init
 * @blocks never
 * @threads safe
 * @see ptljob_size, ptljob_node_rank
 */
int ptljob_rank(void);

/**
 * Returns the number of ranks of the job
 *
 * @return the number; -1 before ptljob_init
 * @blocks never
 * @threads safe
 * @see ptljob_rank
 */
int ptljob_size(void);

/**
 * Returns this process's rank among those of its node
 *
 * @return the rank, from 0; -1 before ptljob_init, or if the launcher doesn't report it
 * @blocks until the launcher has answered
 * @threads safe
 * @see ptljob_node_size, ptljob_rank
 */
int ptljob_node_rank(void);

/**
 * Returns the number of ranks on this process's node
 *
 * @return the number; -1 before ptljob_init, or if the launcher doesn't report it
 * @blocks until the launcher has answered
 * @threads safe
 * @see ptljob_node_rank
 */
int ptljob_node_size(void);

/* --- Jobs: exchange ------------------------------------------------------------------------ */

/**
 * Waits until all ranks have called it
 *
 * @return PTLJOB_OK        all have
 * @return PTLJOB_NO_INIT   ptljob_init hasn't been called
 * @return PTLJOB_LAUNCHER  the connection is lost: the launcher is ending the job
 * @blocks until all ranks have called it
 * @threads one at a time; others wait
 * @see ptljob_put, ptljob_gather
 */
int ptljob_barrier(void);

/**
 * Stores a value for all ranks
 *
 * They can get it after the next barrier.
 *
 * @param[in] key    printable characters except blanks and "="
 * @param[in] value  printable characters except blanks
 * @return PTLJOB_OK           stored
 * @return PTLJOB_NO_INIT      ptljob_init hasn't been called
 * @return PTLJOB_ARG_INVALID  a null pointer, or text that the launcher can't store
 * @return PTLJOB_LAUNCHER     the launcher refused it, or the connection is lost
 * @blocks until the launcher has answered
 * @threads safe
 * @see ptljob_get, ptljob_barrier
 */
int ptljob_put(const char *key,
               const char *value);

/**
 * Gets a value that a rank has stored
 *
 * @param[in] key      the key
 * @param[out] value   the value and a terminating NUL
 * @param[in] size     the size of `value` in bytes
 * @return PTLJOB_OK           `value` is filled
 * @return PTLJOB_NO_INIT      ptljob_init hasn't been called
 * @return PTLJOB_ARG_INVALID  a null pointer, or a key that can't be one
 * @return PTLJOB_NOT_FOUND    no rank had stored one before the last barrier
 * @return PTLJOB_NO_SPACE     `value` is too small
 * @return PTLJOB_LAUNCHER     the connection is lost
 * @blocks until the launcher has answered
 * @threads safe
 * @see ptljob_put
 */
int ptljob_get(const char *key,
               char *value,
               size_t size);

/**
 * Gathers the same number of bytes from each rank at all ranks
 *
 * Collective: all ranks call it, in the same order among their other collective calls. Meant for
 * addresses: the bytes travel through the launcher, as text.
 *
 * @param[in] mine   this rank's bytes
 * @param[in] size   their number, the same at all ranks
 * @param[out] all   the bytes of all ranks by rank: `size` times ptljob_size bytes
 * @return PTLJOB_OK           `all` is filled
 * @return PTLJOB_NO_INIT      ptljob_init hasn't been called
 * @return PTLJOB_ARG_INVALID  a null pointer, or a rank passed another size
 * @return PTLJOB_LAUNCHER     the launcher refused a value, or the connection is lost
 * @blocks until all ranks have called it
 * @threads one at a time; others wait
 * @see ptljob_map
 */
int ptljob_gather(const void *mine,
                  size_t size,
                  void *all);

/**
 * Learns the physical addresses of all ranks
 *
 * Collective, as ptljob_gather. The addresses are what PtlPut takes on a physical interface, and what
 * PtlSetMap takes on a logical one.
 *
 * @param[in] ni_handle  an interface of this process
 * @param[out] map       the addresses by rank: ptljob_size elements
 * @return PTLJOB_OK           `map` is filled
 * @return PTLJOB_PORTALS      PtlGetPhysId refused the interface; nothing was exchanged
 * @return PTLJOB_NO_INIT      ptljob_init hasn't been called
 * @return PTLJOB_ARG_INVALID  a null pointer
 * @return PTLJOB_LAUNCHER     the launcher refused a value, or the connection is lost
 * @blocks until all ranks have called it
 * @threads one at a time; others wait
 * @note It is compiled into the program: the library itself calls no function of portals4.h.
 * @see ptljob_gather, PtlSetMap
 */
static inline int ptljob_map(ptl_handle_ni_t ni_handle, ptl_process_t *map)
{
    ptl_process_t self;
    if (PtlGetPhysId(ni_handle, &self) != PTL_OK) {
        return PTLJOB_PORTALS;
    }
    return ptljob_gather(&self, sizeof self, map);
}

#ifdef __cplusplus
}
#endif

#endif
