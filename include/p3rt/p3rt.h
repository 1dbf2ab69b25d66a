/*
 * p3rt.h - the ranks of a Portals 3.3 program, as its reference has them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A launcher passes rank and names in the environment: PTL_MY_RID is the rank, PTL_NIDMAP the nids
 * and PTL_PIDMAP the pids of all ranks, separated by colons (a nid is a number or an IPv4 address),
 * PTL_MY_JID the job. Before PtlNIInit the calls take PTL_INVALID_HANDLE, and what they set holds for
 * the interface that is opened next; its PTL_PID_ANY then means the pid of the rank. As long as a
 * program has set nothing, what the launcher has passed holds all the same; only if another process
 * has the pid of the rank, PTL_PID_ANY gives another one.
 */

#ifndef P3RT_P3RT_H
#define P3RT_P3RT_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Ranks (extension) ------------------------------------------------------------------------ */

/**
 * Sets the rank of the process, and the size of its group
 *
 * @param[in] ni          an interface, or PTL_INVALID_HANDLE
 * @param[in] rank        the rank, or -1 to read all from the environment
 * @param[in] group_size  the number of ranks, or -1 likewise
 * @return PTL_OK          set
 * @return PTL_NO_INIT     a variable of the environment is missing or isn't understood
 * @return PTL_NI_INVALID  `ni` is no interface, and not PTL_INVALID_HANDLE
 * @return PTL_FAIL        `rank` isn't below `group_size`, or a map has another size
 * @blocks never
 * @threads safe
 */
int PtlSetRank(ptl_handle_ni_t ni,
               unsigned rank,
               unsigned group_size);

/**
 * Sets the node of each rank
 *
 * @param[in] ni          an interface, or PTL_INVALID_HANDLE
 * @param[in] map         one for each rank
 * @param[in] group_size  the number of ranks
 * @return PTL_OK          set
 * @return PTL_NI_INVALID  `ni` is no interface, and not PTL_INVALID_HANDLE
 * @return PTL_FAIL        `group_size` is 0, or not that of PtlSetRank
 * @blocks never
 * @threads safe
 */
int PtlSetNIDMap(ptl_handle_ni_t ni,
                 ptl_nid_t *map,
                 unsigned group_size);

/**
 * Sets the pid of each rank
 *
 * @param[in] ni          an interface, or PTL_INVALID_HANDLE
 * @param[in] map         one for each rank
 * @param[in] group_size  the number of ranks
 * @return PTL_OK          set
 * @return PTL_NI_INVALID  `ni` is no interface, and not PTL_INVALID_HANDLE
 * @return PTL_FAIL        `group_size` is 0, or not that of PtlSetRank
 * @blocks never
 * @threads safe
 */
int PtlSetPIDMap(ptl_handle_ni_t ni,
                 ptl_pid_t *map,
                 unsigned group_size);

/**
 * Sets the job of the process, for the interface that is opened next
 *
 * @param[in] jid  the job
 * @return PTL_OK    set
 * @return PTL_FAIL  `jid` is PTL_JID_ANY
 * @blocks never
 * @threads safe
 */
int PtlSetJID(ptl_jid_t jid);

/**
 * Returns the rank of the process, and the size of its group
 *
 * @param[in] ni           an interface, or PTL_INVALID_HANDLE
 * @param[out] rank        the rank
 * @param[out] group_size  the number of ranks
 * @return PTL_OK       returned
 * @return PTL_NO_INIT  none is set
 * @blocks never
 * @threads safe
 */
int PtlGetRank(ptl_handle_ni_t ni,
               unsigned *rank,
               unsigned *group_size);

/**
 * Returns the name of a rank
 *
 * @param[in] ni    an interface, or PTL_INVALID_HANDLE
 * @param[in] rank  the rank
 * @param[out] id   its nid and pid
 * @return PTL_OK               returned
 * @return PTL_NO_INIT          no maps are set
 * @return PTL_PROCESS_INVALID  there is no such rank
 * @blocks never
 * @threads safe
 */
int PtlGetRankId(ptl_handle_ni_t ni,
                 unsigned rank,
                 ptl_process_id_t *id);

/**
 * Returns the node of each rank
 *
 * @param[in] ni          an interface, or PTL_INVALID_HANDLE
 * @param[out] map        room for `group_size` nids
 * @param[in] group_size  the number of ranks
 * @return PTL_OK       returned
 * @return PTL_NO_INIT  no map is set
 * @return PTL_FAIL     `group_size` is not the number of ranks
 * @blocks never
 * @threads safe
 */
int PtlGetNIDMap(ptl_handle_ni_t ni,
                 ptl_nid_t *map,
                 unsigned group_size);

/**
 * Returns the pid of each rank
 *
 * @param[in] ni          an interface, or PTL_INVALID_HANDLE
 * @param[out] map        room for `group_size` pids
 * @param[in] group_size  the number of ranks
 * @return PTL_OK       returned
 * @return PTL_NO_INIT  no map is set
 * @return PTL_FAIL     `group_size` is not the number of ranks
 * @blocks never
 * @threads safe
 */
int PtlGetPIDMap(ptl_handle_ni_t ni,
                 ptl_pid_t *map,
                 unsigned group_size);

#ifdef __cplusplus
}
#endif

#endif
