/*
 * ptlcoll.h - collective operations that the Portals library carries out.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libptlcoll posts an operation whole, as triggered puts and atomics. From then on the library
 * below, or the network interface, goes through it: a process that computes holds up nobody. It
 * calls no function but those of portals4.h, and any library with that interface will do.
 *
 * What holds for every function and is not repeated there: all members of a group call the same
 * operations in the same order, with the same arguments but for buffers. Buffers are the caller's
 * and are read and written during calls only. A member may be ahead of the others by 32 operations,
 * or segments of long ones (64 KiB, by halving 16 KiB); then it waits for them. Where a call fails,
 * ptlcoll_explain tells what is wrong and how to mend it. After PTLCOLL_DEAD, PTLCOLL_LOST or
 * PTLCOLL_PORTALS the group can only be freed. The comments follow the grammar that portals4.h
 * explains.
 */

#ifndef PTLCOLL_H
#define PTLCOLL_H

#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Collective operations: types and codes ------------------------------------------------ */

typedef uint32_t ptlcoll_group_t;     /**< A group of processes. */
typedef uint64_t ptlcoll_request_t;   /**< An operation that was begun and not waited for. */
typedef uint32_t ptlcoll_algorithm_t; /**< How an operation is done: PTLCOLL_USUAL and others. */

#define PTLCOLL_GROUP_NULL   ((ptlcoll_group_t)0)   /**< Never a group. */
#define PTLCOLL_REQUEST_NULL ((ptlcoll_request_t)0) /**< No request: it has ended. */
#define PTLCOLL_IN_PLACE     ((void *)-1) /**< As `from` or `to`: the caller's own part is already
                                           * where it belongs in the other buffer. */

/**
 * What a function returns
 *
 * ptlcoll_strerror names them, ptlcoll_explain tells more.
 */
enum ptlcoll_retvals {
    PTLCOLL_OK = 0,          /**< Done. */
    PTLCOLL_ARG_INVALID = 1, /**< An argument is wrong: no such group or request, a null pointer, a
                              * rank out of range, an operation that isn't defined on the type, an
                              * algorithm that is for something else. */
    PTLCOLL_DEAD = 2,        /**< A member has died or can't be reached: ptlcoll_dead tells
                              * which. */
    PTLCOLL_LOST = 3,        /**< A message into this process failed. */
    PTLCOLL_FAILED = 4,      /**< The group failed before, and can only be freed. */
    PTLCOLL_ENVIRONMENT = 5, /**< PTLCOLL_PLACEMENT has a value that isn't understood. */
    PTLCOLL_NO_SPACE = 6,    /**< A limit of the interface, or of memory, is reached. */
    PTLCOLL_NO_INIT = 7,     /**< The Portals library isn't initialized. */
    PTLCOLL_PT_IN_USE = 8,   /**< The portal table index is taken. */
    PTLCOLL_ABORTED = 9,     /**< PtlAbort ended the waiting. */
    PTLCOLL_PORTALS = 10     /**< The Portals library refused something else. */
};

#define PTLCOLL_OFFLOADED 0x1 /**< In ptlcoll_group_create: the Portals library goes through the
                               * steps, whatever PTLCOLL_PLACEMENT says. */
#define PTLCOLL_HOST      0x2 /**< In ptlcoll_group_create: the calling thread goes through the same
                               * steps, as far as they can be taken during calls. */

#define PTLCOLL_USUAL              ((ptlcoll_algorithm_t)0x00000) /**< By number of members and
                                                                   * bytes. */
#define PTLCOLL_DISSEMINATION      ((ptlcoll_algorithm_t)0x10000) /**< Each tells one twice as far as
                                                                   * before. Barriers. */
#define PTLCOLL_RECURSIVE_DOUBLING ((ptlcoll_algorithm_t)0x20000) /**< Pairs exchange all they have.
                                                                   * Barriers, all-reduces. */
#define PTLCOLL_K_NOMIAL(k)        ((ptlcoll_algorithm_t)(0x30000 | ((k) & 0xffff))) /**< A k-nomial
                                                                   * tree, `k` 2 or more: 2 is the
                                                                   * binomial tree. All. */
#define PTLCOLL_K_ARY(k)           ((ptlcoll_algorithm_t)(0x40000 | ((k) & 0xffff))) /**< A tree of
                                                                   * `k` branches at each member: 1
                                                                   * is a chain. All. */
#define PTLCOLL_PIPELINE(k)        ((ptlcoll_algorithm_t)(0x50000 | ((k) & 0xffff))) /**< As
                                                                   * PTLCOLL_K_ARY, in pieces of
                                                                   * 8 KiB. Broadcasts. */
#define PTLCOLL_HALVING            ((ptlcoll_algorithm_t)0x60000) /**< Each combines a part, and the
                                                                   * parts are joined: for many
                                                                   * bytes. Reduces,
                                                                   * all-reduces. */

/* --- Collective operations: groups --------------------------------------------------------- */

/**
 * Makes a group
 *
 * All members call it; it returns when all have. A process may be in many groups, each with a
 * portal table index of its own. The environment variable PTLCOLL_PLACEMENT, `offloaded` or `host`,
 * says who goes through the steps of operations unless `options` do.
 *
 * @param[in] ni_handle  an interface with matching, which outlives the group
 * @param[in] pt_index   a free index of the portal table, the same at all members
 * @param[in] members    the members by rank, named as the interface names processes; the same list
 *                       at all members. It is copied.
 * @param[in] count      how many they are
 * @param[in] rank       which of them is the caller
 * @param[in] options    0, PTLCOLL_OFFLOADED or PTLCOLL_HOST
 * @param[out] group     the group
 * @return PTLCOLL_OK           the group is made
 * @return PTLCOLL_NO_INIT      the Portals library isn't initialized
 * @return PTLCOLL_ARG_INVALID  no such interface, or one without matching; the caller isn't the
 *                              member at `rank`, or a member is listed twice; `pt_index` is
 *                              PTL_PT_ANY or beyond the table
 * @return PTLCOLL_PT_IN_USE    `pt_index` is taken
 * @return PTLCOLL_NO_SPACE     the interface lacks counters, entries or descriptors
 * @return PTLCOLL_ENVIRONMENT  PTLCOLL_PLACEMENT isn't understood
 * @return PTLCOLL_DEAD         a member doesn't exist, or has died
 * @blocks until all members have called it
 * @threads safe
 * @see ptlcoll_group_free, ptlcoll_barrier, ptlcoll_allreduce
 */
int ptlcoll_group_create(ptl_handle_ni_t ni_handle,
                         ptl_pt_index_t pt_index,
                         const ptl_process_t *members,
                         ptl_size_t count,
                         ptl_rank_t rank,
                         unsigned int options,
                         ptlcoll_group_t *group);

/**
 * Ends a group
 *
 * All members call it; it returns when all have, and no message of the group is under way then. A
 * member that ends its process before counts as dead. Requests that weren't waited for are waited
 * for, and their results forgotten. The group is gone whatever is returned.
 *
 * @param[in] group  the group
 * @return PTLCOLL_OK           it is gone
 * @return PTLCOLL_ARG_INVALID  there is no such group
 * @return PTLCOLL_DEAD         a member has died before it called this
 * @blocks until all members have called it; not at all for a group that has failed
 * @threads no other thread may use the group meanwhile
 * @see ptlcoll_group_create
 */
int ptlcoll_group_free(ptlcoll_group_t group);

/**
 * Tells which member has died
 *
 * @param[in] group  a group of which a call returned PTLCOLL_DEAD
 * @param[out] rank  the member's rank. Others may have died as well.
 * @return PTLCOLL_OK           `rank` tells
 * @return PTLCOLL_ARG_INVALID  there is no such group, or nobody has been found dead
 * @blocks while another thread is inside a call with this group
 * @threads safe
 * @see ptlcoll_explain
 */
int ptlcoll_dead(ptlcoll_group_t group,
                 ptl_rank_t *rank);

/* --- Collective operations: blocking ------------------------------------------------------- */

/**
 * Waits until all members have begun to wait
 *
 * @param[in] group      the group
 * @param[in] algorithm  PTLCOLL_USUAL, or PTLCOLL_DISSEMINATION, PTLCOLL_RECURSIVE_DOUBLING or a
 *                       tree
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until all members have called it; a dead member ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_ibarrier, ptlcoll_group_create
 */
int ptlcoll_barrier(ptlcoll_group_t group,
                    ptlcoll_algorithm_t algorithm);

/**
 * Gives all members what one has
 *
 * @param[in] group       the group
 * @param[out] buffer     what `root` gives; at the others, where it goes
 * @param[in] bytes       how much, the same at all members; may be 0
 * @param[in] root        who gives
 * @param[in] algorithm   PTLCOLL_USUAL, or a tree or PTLCOLL_PIPELINE
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done; a dead member ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_ibroadcast, ptlcoll_group_create
 */
int ptlcoll_broadcast(ptlcoll_group_t group,
                      void *buffer,
                      ptl_size_t bytes,
                      ptl_rank_t root,
                      ptlcoll_algorithm_t algorithm);

/**
 * Combines what all members have, element by element, for all of them
 *
 * All members get the same bits.
 *
 * @param[in] group      the group
 * @param[in] from       what the caller gives, or PTLCOLL_IN_PLACE, or the same as `to`
 * @param[out] to        where the result goes
 * @param[in] count      elements, the same at all members; may be 0
 * @param[in] operation  PTL_MIN to PTL_BXOR
 * @param[in] datatype   PTL_INT8_T and so on
 * @param[in] algorithm  PTLCOLL_USUAL, or PTLCOLL_RECURSIVE_DOUBLING, PTLCOLL_HALVING or a tree
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until all members have called it; a dead member ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_iallreduce, ptlcoll_group_create
 */
int ptlcoll_allreduce(ptlcoll_group_t group,
                      const void *from,
                      void *to,
                      ptl_size_t count,
                      ptl_op_t operation,
                      ptl_datatype_t datatype,
                      ptlcoll_algorithm_t algorithm);

/**
 * Combines what all members have, element by element, for one of them
 *
 * The same inputs give the same bits each time.
 *
 * @param[in] group      the group
 * @param[in] from       what the caller gives; at `root` also PTLCOLL_IN_PLACE, or the same as `to`
 * @param[out] to        at `root`, where the result goes; elsewhere not looked at
 * @param[in] count      elements, the same at all members; may be 0
 * @param[in] operation  PTL_MIN to PTL_BXOR
 * @param[in] datatype   PTL_INT8_T and so on
 * @param[in] root       who gets
 * @param[in] algorithm  PTLCOLL_USUAL, or PTLCOLL_HALVING or a tree
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done, at `root` until all members have called it; a dead member
 *         ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_ireduce, ptlcoll_group_create
 */
int ptlcoll_reduce(ptlcoll_group_t group,
                   const void *from,
                   void *to,
                   ptl_size_t count,
                   ptl_op_t operation,
                   ptl_datatype_t datatype,
                   ptl_rank_t root,
                   ptlcoll_algorithm_t algorithm);

/**
 * Lays what all members have side by side at one of them
 *
 * @param[in] group      the group
 * @param[in] from       what the caller gives; at `root` also PTLCOLL_IN_PLACE, where it lies in
 *                       `to` already
 * @param[out] to        at `root`, where `bytes` of each member go, by rank; elsewhere not looked
 *                       at
 * @param[in] bytes      of each member, the same at all members; may be 0
 * @param[in] root       who gets
 * @param[in] algorithm  PTLCOLL_USUAL, or a tree
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done, at `root` until all members have called it; a dead member
 *         ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_igather, ptlcoll_group_create
 */
int ptlcoll_gather(ptlcoll_group_t group,
                   const void *from,
                   void *to,
                   ptl_size_t bytes,
                   ptl_rank_t root,
                   ptlcoll_algorithm_t algorithm);

/**
 * Gives each member its part of what one has
 *
 * @param[in] group      the group
 * @param[in] from       at `root`, `bytes` for each member, by rank; elsewhere not looked at
 * @param[out] to        where the caller's part goes; at `root` also PTLCOLL_IN_PLACE, where it
 *                       stays in `from`
 * @param[in] bytes      for each member, the same at all members; may be 0
 * @param[in] root       who gives
 * @param[in] algorithm  PTLCOLL_USUAL, or a tree
 * @return PTLCOLL_OK           done
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until the caller's part is done; a dead member ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_iscatter, ptlcoll_group_create
 */
int ptlcoll_scatter(ptlcoll_group_t group,
                    const void *from,
                    void *to,
                    ptl_size_t bytes,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm);

/* --- Collective operations: begun, and waited for later ------------------------------------ */

/**
 * Begins ptlcoll_barrier
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; what is more
 * begins as calls of the group find the earlier ones done.
 *
 * @param[in] group, algorithm  as of ptlcoll_barrier
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_barrier, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ibarrier(ptlcoll_group_t group,
                     ptlcoll_algorithm_t algorithm,
                     ptlcoll_request_t *request);

/**
 * Begins ptlcoll_broadcast
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; what is more
 * begins as calls of the group find the earlier ones done.
 *
 * Results are written by the ptlcoll_test or ptlcoll_wait that ends the request: until then the
 * result's buffer stays the request's. What is given may be changed at once.
 *
 * @param[in] group, buffer, bytes, root, algorithm  as of ptlcoll_broadcast
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_broadcast, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ibroadcast(ptlcoll_group_t group,
                       void *buffer,
                       ptl_size_t bytes,
                       ptl_rank_t root,
                       ptlcoll_algorithm_t algorithm,
                       ptlcoll_request_t *request);

/**
 * Begins ptlcoll_allreduce
 *
 * Up to 32 segments, of at most 64 KiB or by halving 16 KiB, are posted at once and need no further
 * call; what is more begins as calls of the group find the earlier ones done.
 *
 * Results are written by the ptlcoll_test or ptlcoll_wait that ends the request: until then the
 * result's buffer stays the request's. What is given may be changed at once.
 *
 * @param[in] group, from, to, count, operation, datatype, algorithm  as of ptlcoll_allreduce
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_allreduce, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_iallreduce(ptlcoll_group_t group,
                       const void *from,
                       void *to,
                       ptl_size_t count,
                       ptl_op_t operation,
                       ptl_datatype_t datatype,
                       ptlcoll_algorithm_t algorithm,
                       ptlcoll_request_t *request);

/**
 * Begins ptlcoll_reduce
 *
 * Up to 32 segments, of at most 64 KiB or by halving 16 KiB, are posted at once and need no further
 * call; what is more begins as calls of the group find the earlier ones done.
 *
 * Results are written by the ptlcoll_test or ptlcoll_wait that ends the request: until then the
 * result's buffer stays the request's. What is given may be changed at once.
 *
 * @param[in] group, from, to, count, operation, datatype, root, algorithm  as of ptlcoll_reduce
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_reduce, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_ireduce(ptlcoll_group_t group,
                    const void *from,
                    void *to,
                    ptl_size_t count,
                    ptl_op_t operation,
                    ptl_datatype_t datatype,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm,
                    ptlcoll_request_t *request);

/**
 * Begins ptlcoll_gather
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; what is more
 * begins as calls of the group find the earlier ones done.
 *
 * Results are written by the ptlcoll_test or ptlcoll_wait that ends the request: until then the
 * result's buffer stays the request's. What is given may be changed at once.
 *
 * @param[in] group, from, to, bytes, root, algorithm  as of ptlcoll_gather
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_gather, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_igather(ptlcoll_group_t group,
                    const void *from,
                    void *to,
                    ptl_size_t bytes,
                    ptl_rank_t root,
                    ptlcoll_algorithm_t algorithm,
                    ptlcoll_request_t *request);

/**
 * Begins ptlcoll_scatter
 *
 * Up to 32 segments of at most 64 KiB are posted at once and need no further call; what is more
 * begins as calls of the group find the earlier ones done.
 *
 * Results are written by the ptlcoll_test or ptlcoll_wait that ends the request: until then the
 * result's buffer stays the request's. What is given may be changed at once.
 *
 * @param[in] group, from, to, bytes, root, algorithm  as of ptlcoll_scatter
 * @param[out] request  for ptlcoll_test or ptlcoll_wait
 * @return PTLCOLL_OK           begun
 * @return PTLCOLL_ARG_INVALID  an argument is wrong
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_scatter, ptlcoll_test, ptlcoll_wait
 */
int ptlcoll_iscatter(ptlcoll_group_t group,
                     const void *from,
                     void *to,
                     ptl_size_t bytes,
                     ptl_rank_t root,
                     ptlcoll_algorithm_t algorithm,
                     ptlcoll_request_t *request);

/**
 * Looks whether an operation has ended
 *
 * @param[out] request  the request; PTLCOLL_REQUEST_NULL once it has ended, which it also may be
 *                      before: then it has ended long ago
 * @param[out] done     1 if it has ended, else 0
 * @return PTLCOLL_OK           `done` tells
 * @return PTLCOLL_ARG_INVALID  a null pointer, or no such request
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @blocks never
 * @threads one at a time for a group; others wait
 * @see ptlcoll_wait
 */
int ptlcoll_test(ptlcoll_request_t *request,
                 int *done);

/**
 * Waits until an operation has ended
 *
 * @param[out] request  the request; PTLCOLL_REQUEST_NULL afterwards, which it also may be before
 * @return PTLCOLL_OK           it has ended
 * @return PTLCOLL_ARG_INVALID  a null pointer, or no such request
 * @return PTLCOLL_DEAD         a member has died: ptlcoll_dead tells which
 * @return PTLCOLL_LOST         a message into this process failed
 * @return PTLCOLL_FAILED       the group failed before
 * @return PTLCOLL_PORTALS      the Portals library refused something
 * @return PTLCOLL_ABORTED      PtlAbort was called
 * @blocks until it has ended; a dead member ends it within PTL_PEER_TIMEOUT
 * @threads one at a time for a group; others wait
 * @see ptlcoll_test
 */
int ptlcoll_wait(ptlcoll_request_t *request);

/* --- Collective operations: text ----------------------------------------------------------- */

/**
 * Names a code
 *
 * @param[in] code  what a function returned
 * @return the constant's name, such as "PTLCOLL_DEAD", or "Unknown". The string is constant and
 *         isn't to be freed.
 * @blocks never
 * @threads safe
 * @see ptlcoll_explain
 */
const char *ptlcoll_strerror(int code);

/**
 * Tells what was wrong in the calling thread's last call that failed
 *
 * @return a sentence, empty if none failed. It is the library's and lasts until the thread's next
 *         call that fails.
 * @blocks never
 * @threads safe: each has its own
 * @see ptlcoll_strerror
 */
const char *ptlcoll_explain(void);

#ifdef __cplusplus
}
#endif

#endif /* PTLCOLL_H */
