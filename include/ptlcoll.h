/*
 * ptlcoll.h - collective operations that the Portals library carries out.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libptlcoll posts a whole operation up front, as triggered puts and atomics. The library below, or
 * the network interface, then progresses it: a rank that is busy computing delays no other. It calls
 * no function of the library but those of portals4.h, and works with any library that has that
 * interface. Blocking operations with PTLCOLL_AUTO don't use messages among ranks that run as one
 * user on one node, 256 at most: those load and store in memory that all of them have mapped. On
 * several nodes, only the lowest rank of each sends messages then, except in gathers and scatters.
 *
 * For every function, and not repeated there: all ranks of a group call the same operations in the
 * same order, with the same arguments except buffers; a blocking call doesn't match a nonblocking
 * one. Buffers belong to the caller and are read and
 * written during calls only. A rank may be ahead of the others by 32 operations, or by 32 segments
 * of long operations (64 KiB each, 16 KiB with PTLCOLL_HALVING); then it waits for them. If a call
 * fails, ptlcoll_explain returns what is wrong and how to mend it. After PTLCOLL_PROC_FAILED,
 * PTLCOLL_MSG_FAILED or PTLCOLL_PORTALS the group can only be freed. The comments follow the
 * grammar that portals4.h explains.
 */

#ifndef PTLCOLL_H
#define PTLCOLL_H

#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Collective operations: types and codes ------------------------------------------------ */

typedef uint32_t ptlcoll_group_t;     /**< A group of processes, each with a rank. */
typedef uint64_t ptlcoll_request_t;   /**< A nonblocking operation that hasn't completed. */
typedef uint32_t ptlcoll_algorithm_t; /**< The algorithm of an operation: PTLCOLL_AUTO and others. */

#define PTLCOLL_GROUP_NULL   ((ptlcoll_group_t)0)   /**< Never a group. */
#define PTLCOLL_REQUEST_NULL ((ptlcoll_request_t)0) /**< No request: it has completed. */
#define PTLCOLL_IN_PLACE     ((void *)-1) /**< As `sendbuf` or `recvbuf`: the caller's part is
                                           * already at its place in the other buffer. */

/**
 * What a function returns
 *
 * ptlcoll_strerror returns the name, ptlcoll_explain an explanation.
 */
enum ptlcoll_retvals {
    PTLCOLL_OK = 0,          /**< Success. */
    PTLCOLL_ARG_INVALID = 1, /**< An argument is wrong: no such group or request, a null pointer, a
                              * rank out of range, an operation that isn't defined on the type, an
                              * algorithm that doesn't support the operation. */
    PTLCOLL_PROC_FAILED = 2, /**< A process of the group has failed or can't be reached:
                              * ptlcoll_failed_rank returns its rank. */
    PTLCOLL_MSG_FAILED = 3,  /**< A message to this process failed. */
    PTLCOLL_REVOKED = 4,     /**< An earlier call failed; the group can only be freed. */
    PTLCOLL_ENVIRONMENT = 5, /**< PTLCOLL_PROGRESS, PTLCOLL_CREATE_TIMEOUT or PTLCOLL_EAGER has an
                              * invalid value. */
    PTLCOLL_NO_SPACE = 6,    /**< A limit of the interface, or of memory, is reached. */
    PTLCOLL_NO_INIT = 7,     /**< The Portals library isn't initialized. */
    PTLCOLL_PT_IN_USE = 8,   /**< The portal table index is taken. */
    PTLCOLL_ABORTED = 9,     /**< PtlAbort ended the wait. */
    PTLCOLL_PORTALS = 10     /**< The Portals library returned another error. */
};

#define PTLCOLL_OFFLOADED 0x1 /**< In ptlcoll_group_create: the Portals library performs the
                               * steps of all operations, whatever PTLCOLL_PROGRESS is. */
#define PTLCOLL_HOST      0x2 /**< In ptlcoll_group_create: the calling thread performs the same
                               * steps, as far as possible during calls. */

#define PTLCOLL_AUTO               ((ptlcoll_algorithm_t)0x00000) /**< Chosen by measuring: see
                                                                   * ptlcoll_group_create. */
#define PTLCOLL_DISSEMINATION      ((ptlcoll_algorithm_t)0x10000) /**< Each rank notifies one twice
                                                                   * as far as in the round before.
                                                                   * Barriers. */
#define PTLCOLL_RECURSIVE_DOUBLING ((ptlcoll_algorithm_t)0x20000) /**< Pairs exchange all they have.
                                                                   * Barriers, all-reduces. */
#define PTLCOLL_K_NOMIAL(k)        ((ptlcoll_algorithm_t)(0x30000 | ((k) & 0xffff))) /**< A k-nomial
                                                                   * tree, `k` 2 or more: 2 is the
                                                                   * binomial tree. Everything. */
#define PTLCOLL_K_ARY(k)           ((ptlcoll_algorithm_t)(0x40000 | ((k) & 0xffff))) /**< A tree with
                                                                   * `k` children at each rank: 1 is
                                                                   * a chain. Everything. */
#define PTLCOLL_PIPELINE(k)        ((ptlcoll_algorithm_t)(0x50000 | ((k) & 0xffff))) /**< As
                                                                   * PTLCOLL_K_ARY, in pieces of
                                                                   * 8 KiB. Broadcasts. */
#define PTLCOLL_HALVING            ((ptlcoll_algorithm_t)0x60000) /**< Recursive halving: each rank
                                                                   * combines a part, then the parts
                                                                   * are joined. For many bytes.
                                                                   * Reduces, all-reduces. */

/* --- Collective operations: groups --------------------------------------------------------- */

/**
 * Creates a group
 *
 * Collective: all ranks call it, and it returns when all have. A process may be in many groups, each
 * with a portal table index of its own. Unless `options` selects it, the environment variable
 * PTLCOLL_PROGRESS, `offloaded` or `host`, selects what performs the steps of operations. If neither
 * does, the Portals library performs those of nonblocking operations, and memory is shared for
 * blocking ones if it can be. Long ones are then copied through that memory, or once, straight from
 * the memory of who gives them: what is quicker is measured, unless PTLCOLL_EAGER says up to how many
 * bytes of a rank they are copied through it.
 *
 * Operations by messages with PTLCOLL_AUTO go by an algorithm that depends on the number of ranks and
 * bytes, until the group has called that operation sixteen times, blocking, with about as many bytes.
 * The next calls, ten for each of two to four algorithms, are timed by all ranks, and the quickest
 * algorithm is taken from then on, also by nonblocking calls; after 4096 more calls it is measured
 * again. All that are tried for a reduction of floating-point numbers give the same bits.
 *
 * @param[in] ni_handle  an interface with matching, which outlives the group
 * @param[in] pt_index   a free index of the portal table, the same at all ranks
 * @param[in] processes  the group's processes by rank, addressed as the interface addresses
 *                       processes; the same list at all ranks. It is copied.
 * @param[in] count      the size of the group
 * @param[in] rank       the caller's rank
 * @param[in] options    0, PTLCOLL_OFFLOADED or PTLCOLL_HOST
 * @param[out] group     the group
 * @return PTLCOLL_OK           the group exists
 * @return PTLCOLL_NO_INIT      the Portals library isn't initialized
 * @return PTLCOLL_ARG_INVALID  no such interface, or one without matching; the caller isn't the
 *                              process at `rank`, or a process is listed twice; `pt_index` is
 *                              PTL_PT_ANY or beyond the table
 * @return PTLCOLL_PT_IN_USE    `pt_index` is taken
 * @return PTLCOLL_NO_SPACE     the interface lacks counters, entries or descriptors
 * @return PTLCOLL_ENVIRONMENT  PTLCOLL_PROGRESS, PTLCOLL_CREATE_TIMEOUT or PTLCOLL_EAGER has an
 *                              invalid value
 * @return PTLCOLL_PROC_FAILED  a process doesn't exist, has failed, or has given up creating the
 *                              group; or it hasn't called within PTLCOLL_CREATE_TIMEOUT
 *                              milliseconds, by default ten minutes
 * @blocks until all ranks have called it
 * @threads safe
 * @see ptlcoll_group_free, ptlcoll_barrier, ptlcoll_allreduce
 */
int ptlcoll_group_create(ptl_handle_ni_t ni_handle,
                         ptl_pt_index_t pt_index,
                         const ptl_process_t *processes,
                         ptl_size_t count,
                         ptl_rank_t rank,
                         unsigned int options,
                         ptlcoll_group_t *group);

/**
 * Frees a group
 *
 * Collective: all ranks call it, and it returns when all have; no message of the group is in flight
 * then. A rank whose process ends before counts as failed. Outstanding requests are waited for, and
 * their results discarded. The group is freed whatever is returned.
 *
 * @param[in] group  the group
 * @return PTLCOLL_OK           it is freed
 * @return PTLCOLL_ARG_INVALID  there is no such group
 * @return PTLCOLL_PROC_FAILED  a rank failed before it called this
 * @blocks until all ranks have called it; not at all for a revoked group
 * @threads no other thread may use the group meanwhile
 * @see ptlcoll_group_create
 */
int ptlcoll_group_free(ptlcoll_group_t group);

/**
 * Returns the rank that has failed
 *
 * @param[in] group  a group of which a call returned PTLCOLL_PROC_FAILED
 * @param[out] rank  the rank that was found first. Others may have failed as well.
 * @return PTLCOLL_OK           `rank` is set
 * @return PTLCOLL_ARG_INVALID  there is no such group, or no rank of it is known to have failed
 * @blocks while another thread is inside a call with this group
 * @threads safe
 * @see ptlcoll_explain
 */
int ptlcoll_failed_rank(ptlcoll_group_t group,
                        ptl_rank_t *rank);

/* --- Collective operations: blocking ------------------------------------------------------- */

/**
 * Waits until all ranks have called it
 *
 * @param[in] group      the group
 * @param[in] algorithm  PTLCOLL_AUTO, or PTLCOLL_DISSEMINATION, PTLCOLL_RECURSIVE_DOUBLING or a
 *                       tree
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until all ranks have called it; a failed rank ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_ibarrier, ptlcoll_group_create
 */
int ptlcoll_barrier(ptlcoll_group_t group,
                    ptlcoll_algorithm_t algorithm);

/**
 * Sends bytes of one rank to all ranks
 *
 * @param[in] group       the group
 * @param[out] buffer     read at `root`, written at the other ranks
 * @param[in] bytes       the length, the same at all ranks; may be 0
 * @param[in] root        the rank that sends
 * @param[in] algorithm   PTLCOLL_AUTO, or a tree or PTLCOLL_PIPELINE
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done; a failed rank ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_ibroadcast, ptlcoll_group_create
 */
int ptlcoll_broadcast(ptlcoll_group_t group,
                      void *buffer,
                      ptl_size_t bytes,
                      ptl_rank_t root,
                      ptlcoll_algorithm_t algorithm);

/**
 * Reduces the elements of all ranks, and leaves the result at all of them
 *
 * All ranks get the same bits.
 *
 * @param[in] group      the group
 * @param[in] sendbuf    the caller's elements, or PTLCOLL_IN_PLACE, or the same as `recvbuf`
 * @param[out] recvbuf   the result
 * @param[in] count      elements, the same at all ranks; may be 0
 * @param[in] operation  PTL_MIN to PTL_BXOR
 * @param[in] datatype   PTL_INT8_T and so on
 * @param[in] algorithm  PTLCOLL_AUTO, or PTLCOLL_RECURSIVE_DOUBLING, PTLCOLL_HALVING or a tree
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until all ranks have called it; a failed rank ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_iallreduce, ptlcoll_group_create
 */
int ptlcoll_allreduce(ptlcoll_group_t group,
                      const void *sendbuf,
                      void *recvbuf,
                      ptl_size_t count,
                      ptl_op_t operation,
                      ptl_datatype_t datatype,
                      ptlcoll_algorithm_t algorithm);

/**
 * Reduces the elements of all ranks, and leaves the result at one of them
 *
 * The same inputs give the same bits each time.
 *
 * @param[in] group      the group
 * @param[in] sendbuf    the caller's elements; at `root` also PTLCOLL_IN_PLACE, or the same as
 *                       `recvbuf`
 * @param[out] recvbuf   the result, at `root`; ignored elsewhere
 * @param[in] count      elements, the same at all ranks; may be 0
 * @param[in] operation  PTL_MIN to PTL_BXOR
 * @param[in] datatype   PTL_INT8_T and so on
 * @param[in] root       the rank that receives
 * @param[in] algorithm  PTLCOLL_AUTO, or PTLCOLL_HALVING or a tree
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done, at `root` until all ranks have called it; a failed rank
 *         ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_ireduce, ptlcoll_group_create
 */
int ptlcoll_reduce(ptlcoll_group_t group,
                   const void *sendbuf,
                   void *recvbuf,
                   ptl_size_t count,
                   ptl_op_t operation,
                   ptl_datatype_t datatype,
                   ptl_rank_t root,
                   ptlcoll_algorithm_t algorithm);

/**
 * Gathers bytes of all ranks at one of them
 *
 * @param[in] group      the group
 * @param[in] sendbuf    the caller's bytes; at `root` also PTLCOLL_IN_PLACE if they are at their
 *                       place in `recvbuf`
 * @param[out] recvbuf   at `root`, `bytes` of each rank, in the order of ranks; ignored elsewhere
 * @param[in] bytes      the length that each rank sends, the same at all ranks; may be 0
 * @param[in] root       the rank that receives
 * @param[in] algorithm  PTLCOLL_AUTO, or a tree
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done, at `root` until all ranks have called it; a failed rank
 *         ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_igather, ptlcoll_group_create
 */
int ptlcoll_gather(ptlcoll_group_t group,
                   const void *sendbuf,
                   void *recvbuf,
                   ptl_size_t bytes,
                   ptl_rank_t root,
                   ptlcoll_algorithm_t algorithm);

/**
 * Scatters bytes of one rank to all ranks
 *
 * @param[in] group      the group
 * @param[in] sendbuf    at `root`, `bytes` for each rank, in the order of ranks; ignored elsewhere
 * @param[out] recvbuf   the caller's part; at `root` also PTLCOLL_IN_PLACE, which leaves it in
 *                       `sendbuf`
 * @param[in] bytes      the length that each rank receives, the same at all ranks; may be 0
 * @param[in] root       the rank that sends
 * @param[in] algorithm  PTLCOLL_AUTO, or a tree
 * @return PTLCOLL_OK           success
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done; a failed rank ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_iscatter, ptlcoll_group_create
 */
int ptlcoll_scatter(ptlcoll_group_t group,
                    const void *sendbuf,
                    void *recvbuf,
                    ptl_size_t bytes,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm);

/* --- Collective operations: nonblocking ---------------------------------------------------- */

/**
 * Starts ptlcoll_barrier, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; later segments
 * start when calls of the group find earlier ones complete.
 *
 * @param[in] group, algorithm  as of ptlcoll_barrier
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_barrier, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ibarrier(ptlcoll_group_t group,
                     ptlcoll_algorithm_t algorithm,
                     ptlcoll_request_t *request);

/**
 * Starts ptlcoll_broadcast, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; later segments
 * start when calls of the group find earlier ones complete.
 *
 * The ptlcoll_test or ptlcoll_wait that completes the request writes the result: until then the
 * request owns the receive buffer. The send buffer may be reused at once.
 *
 * @param[in] group, buffer, bytes, root, algorithm  as of ptlcoll_broadcast
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_broadcast, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ibroadcast(ptlcoll_group_t group,
                       void *buffer,
                       ptl_size_t bytes,
                       ptl_rank_t root,
                       ptlcoll_algorithm_t algorithm,
                       ptlcoll_request_t *request);

/**
 * Starts ptlcoll_allreduce, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB, or 16 KiB with PTLCOLL_HALVING, are posted at once and need
 * no further call; later segments start when calls of the group find earlier ones complete.
 *
 * The ptlcoll_test or ptlcoll_wait that completes the request writes the result: until then the
 * request owns the receive buffer. The send buffer may be reused at once.
 *
 * @param[in] group, sendbuf, recvbuf, count, operation, datatype, algorithm  as of ptlcoll_allreduce
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_allreduce, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_iallreduce(ptlcoll_group_t group,
                       const void *sendbuf,
                       void *recvbuf,
                       ptl_size_t count,
                       ptl_op_t operation,
                       ptl_datatype_t datatype,
                       ptlcoll_algorithm_t algorithm,
                       ptlcoll_request_t *request);

/**
 * Starts ptlcoll_reduce, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB, or 16 KiB with PTLCOLL_HALVING, are posted at once and need
 * no further call; later segments start when calls of the group find earlier ones complete.
 *
 * The ptlcoll_test or ptlcoll_wait that completes the request writes the result: until then the
 * request owns the receive buffer. The send buffer may be reused at once.
 *
 * @param[in] group, sendbuf, recvbuf, count, operation, datatype, root, algorithm  as of ptlcoll_reduce
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_reduce, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ireduce(ptlcoll_group_t group,
                    const void *sendbuf,
                    void *recvbuf,
                    ptl_size_t count,
                    ptl_op_t operation,
                    ptl_datatype_t datatype,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm,
                    ptlcoll_request_t *request);

/**
 * Starts ptlcoll_gather, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; later segments
 * start when calls of the group find earlier ones complete.
 *
 * The ptlcoll_test or ptlcoll_wait that completes the request writes the result: until then the
 * request owns the receive buffer. The send buffer may be reused at once.
 *
 * @param[in] group, sendbuf, recvbuf, bytes, root, algorithm  as of ptlcoll_gather
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_gather, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_igather(ptlcoll_group_t group,
                    const void *sendbuf,
                    void *recvbuf,
                    ptl_size_t bytes,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm,
                    ptlcoll_request_t *request);

/**
 * Starts ptlcoll_scatter, and returns before it completes
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; later segments
 * start when calls of the group find earlier ones complete.
 *
 * The ptlcoll_test or ptlcoll_wait that completes the request writes the result: until then the
 * request owns the receive buffer. The send buffer may be reused at once.
 *
 * @param[in] group, sendbuf, recvbuf, bytes, root, algorithm  as of ptlcoll_scatter
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           the operation is started
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_scatter, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_iscatter(ptlcoll_group_t group,
                     const void *sendbuf,
                     void *recvbuf,
                     ptl_size_t bytes,
                     ptl_rank_t root,
                     ptlcoll_algorithm_t algorithm,
                     ptlcoll_request_t *request);

/**
 * Tests whether an operation has completed
 *
 * @param[out] request  the request; PTLCOLL_REQUEST_NULL once it has completed. A null request has
 *                      completed.
 * @param[out] done     1 if it has completed, else 0
 * @return PTLCOLL_OK           `done` is set
 * @return PTLCOLL_ARG_INVALID  a null pointer, or no such request
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @blocks never
 * @threads one at a time in a group; others wait
 * @see ptlcoll_wait
 */
int ptlcoll_test(ptlcoll_request_t *request,
                 int *done);

/**
 * Waits until an operation has completed
 *
 * @param[out] request  the request; PTLCOLL_REQUEST_NULL afterwards. A null request has completed.
 * @return PTLCOLL_OK           it has completed
 * @return PTLCOLL_ARG_INVALID  a null pointer, or no such request
 * @return PTLCOLL_PROC_FAILED  a rank has failed: ptlcoll_failed_rank returns it
 * @return PTLCOLL_MSG_FAILED   a message to this process failed
 * @return PTLCOLL_REVOKED      an earlier call of the group failed
 * @return PTLCOLL_PORTALS      the Portals library returned another error
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until it has completed; a failed rank ends it within PTL_PEER_TIMEOUT
 * @threads one at a time in a group; others wait
 * @see ptlcoll_test
 */
int ptlcoll_wait(ptlcoll_request_t *request);

/* --- Collective operations: text ----------------------------------------------------------- */

/**
 * Returns the name of a code
 *
 * @param[in] code  what a function returned
 * @return the constant's name, such as "PTLCOLL_PROC_FAILED", or "Unknown". The string is
 *         constant and isn't to be freed.
 * @blocks never
 * @threads safe
 * @see ptlcoll_explain
 */
const char *ptlcoll_strerror(int code);

/**
 * Explains the calling thread's last call that failed
 *
 * @return a sentence, empty if none failed. The library owns it, and it lasts until the thread's
 *         next call that fails.
 * @blocks never
 * @threads safe: each thread has its own
 * @see ptlcoll_strerror
 */
const char *ptlcoll_explain(void);

#ifdef __cplusplus
}
#endif

#endif /* PTLCOLL_H */
