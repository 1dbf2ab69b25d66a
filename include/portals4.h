/*
 * portals4.h - the Portals 4.3 programming interface, as Lintel carries it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Source and binary compatible with the 4.3 reference implementation: same names, values, sizes
 * and layouts. Sections follow the order of the specification, "The Portals 4.3 Network
 * Programming Interface", chapter 3.
 *
 * The comments have one grammar, from which the manual pages are made (tools/mangen):
 *   a block before a function or a type: a line that says what it is, paragraphs, then tags;
 *     @param[in|out] NAME text   what is passed, and who owns it
 *     @return CODE text          when this code comes back; text alone if no code but a value does
 *     @blocks text               may the call wait, and for what ("never" if it may not)
 *     @threads text              which threads may call it when ("safe" if all, always)
 *     @note text                 what else to know
 *     @see A, B                  related functions
 *   a comment that begins with an asterisk and a "<" after a constant, type or member: what it is;
 *   names in `backquotes`; "- " starts an item of a list.
 *
 * What holds for every function and is not repeated there: wherever a call fails it has changed
 * nothing, and output arguments are written on success only (PTL_EQ_DROPPED counts as success).
 * Structures and arrays passed by address are read or copied before the call returns and stay the
 * caller's. The memory that they describe is borrowed for as long as the descriptor or entry lives.
 * No function throws, installs a signal handler, or returns because a signal arrived.
 */

#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Base types ---------------------------------------------------------------------------- */

typedef uint64_t ptl_size_t;          /**< A length, an offset or a count, in bytes unless said. */
typedef uint32_t ptl_pt_index_t;      /**< An index of the portal table. */
typedef uint64_t ptl_match_bits_t;    /**< The tag by which a message finds its match entry. */
typedef uint64_t ptl_hdr_data_t;      /**< Eight bytes of the user's that travel in the header. */
typedef unsigned int ptl_time_t;      /**< A duration in milliseconds. */
typedef unsigned int ptl_interface_t; /**< The number of a network interface of the node. */
typedef uint32_t ptl_nid_t;           /**< A node, in physical addressing. */
typedef uint32_t ptl_pid_t;           /**< A process of a node, in physical addressing. */
typedef uint32_t ptl_rank_t;          /**< A process, in logical addressing: an index of the map. */
typedef uint32_t ptl_uid_t;           /**< A user, against whom entries are protected. */
typedef int ptl_sr_value_t;           /**< The value of a status register. */
typedef unsigned char ptl_ni_fail_t;    /**< How an operation ended: PTL_NI_OK and others. */
typedef unsigned char ptl_list_t;       /**< PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST. */
typedef unsigned char ptl_search_op_t;  /**< PTL_SEARCH_ONLY or PTL_SEARCH_DELETE. */
typedef unsigned char ptl_event_kind_t; /**< What a full event reports: PTL_EVENT_PUT and others. */
typedef unsigned char ptl_ack_req_t;    /**< Which acknowledgement a put asks for. */
typedef unsigned char ptl_op_t;         /**< An atomic operation: PTL_SUM and others. */
typedef unsigned char ptl_datatype_t;   /**< What an atomic works on: PTL_INT32_T and others. */

typedef uint32_t ptl_handle_any_t;        /**< A handle of any object. */
typedef ptl_handle_any_t ptl_handle_ni_t; /**< A handle of a network interface. */
typedef ptl_handle_any_t ptl_handle_eq_t; /**< A handle of an event queue. */
typedef ptl_handle_any_t ptl_handle_ct_t; /**< A handle of a counting event. */
typedef ptl_handle_any_t ptl_handle_md_t; /**< A handle of a memory descriptor. */
typedef ptl_handle_any_t ptl_handle_le_t; /**< A handle of a list entry. */
typedef ptl_handle_any_t ptl_handle_me_t; /**< A handle of a match list entry. */

#define PTL_EQ_NONE        ((ptl_handle_eq_t)0x3fffffff)  /**< No event queue. */
#define PTL_CT_NONE        ((ptl_handle_ct_t)0x5fffffff)  /**< No counting event. */
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff) /**< Never the handle of an object. */
#define PTL_IFACE_DEFAULT  ((ptl_interface_t)0xffffffff)  /**< The interface that the library, or
                                                           * its configuration, chooses. */
#define PTL_PID_ANY        ((ptl_pid_t)0xffff)       /**< In PtlNIInit: let the library choose. In a
                                                      * match entry: from any process. */
#define PTL_PID_MAX        ((ptl_pid_t)1024)         /**< As the reference has it. The pids that
                                                      * the library chooses may be larger; they
                                                      * are never 0 nor PTL_PID_ANY. */
#define PTL_NID_ANY        ((ptl_nid_t)0xffff)       /**< In a match entry: from any node. */
#define PTL_UID_ANY        ((ptl_uid_t)0xffffffff)   /**< In an entry: any user may reach it. */
#define PTL_RANK_ANY       ((ptl_rank_t)0xffffffff)  /**< In a match entry: from any rank. */
#define PTL_PT_ANY         ((ptl_pt_index_t)0xffffffff) /**< In PtlPTAlloc: any free index. */
#define PTL_TIME_FOREVER   ((ptl_time_t)0xffffffff)  /**< A timeout that never comes. */
#define PTL_SIZE_MAX       ((ptl_size_t)0xffffffffffffffffULL) /**< The largest ptl_size_t. A
                                                      * descriptor or entry with `start` NULL and
                                                      * this `length` spans the whole address
                                                      * space, and offsets are addresses. */

/**
 * Names a process, physically or by rank
 *
 * Which member counts is a matter of the interface that the name is used with: `rank` with
 * PTL_NI_LOGICAL, `phys` with PTL_NI_PHYSICAL.
 */
typedef union {
    ptl_rank_t rank; /**< The index in the map of PtlSetMap. */
    struct {
        ptl_nid_t nid; /**< The node. */
        ptl_pid_t pid; /**< The process on that node. */
    } phys; /**< The node and the process on it. */
} ptl_process_t;

/* --- Return codes -------------------------------------------------------------------------- */

/**
 * What a function returns
 *
 * Each function lists those that it can return.
 */
enum ptl_retvals {
    PTL_OK = 0,              /**< Done. */
    PTL_ARG_INVALID = 1,     /**< An argument is wrong: a handle that is invalid, freed or of
                              * another interface, a null pointer, an index or length out of
                              * range, an unknown option. */
    PTL_CT_NONE_REACHED = 2, /**< The time is over and no counter has reached its test. */
    PTL_EQ_DROPPED = 3,      /**< An event was returned, and some before it were lost. */
    PTL_EQ_EMPTY = 4,        /**< No event is there. */
    PTL_FAIL = 5,            /**< Something failed outside the library. */
    PTL_IGNORED = 6,         /**< The map was set before, and stays. */
    PTL_IN_USE = 7,          /**< Operations still use the descriptor, or messages the entry. */
    PTL_LIST_TOO_LONG = 8,   /**< The list has reached its limit. */
    PTL_NO_INIT = 9,         /**< The library is not initialized. */
    PTL_NO_SPACE = 10,       /**< A limit of the interface, or of memory, is reached. */
    PTL_PID_IN_USE = 11,     /**< Another process of the node has this pid. */
    PTL_PT_FULL = 12,        /**< Every index of the portal table is taken. */
    PTL_PT_EQ_NEEDED = 13,   /**< Flow control needs an event queue. */
    PTL_PT_IN_USE = 14,      /**< The index is taken, or entries are still attached to it. */
    PTL_ABORTED = 15         /**< PtlAbort ended the waiting. */
};
#define PTL_STATUS_LAST (PTL_PT_IN_USE + 1) /**< One past PTL_PT_IN_USE, as the reference has it. */
#define PTL_INTERRUPTED 16 /**< A code of 4.2, for programs that name it. Never returned. */

/* --- Initialization and cleanup ------------------------------------------------------------ */

/**
 * Starts the library
 *
 * A process calls it before any other function of this interface. Calls are counted, and each
 * one is answered by a PtlFini.
 *
 * @return PTL_OK    the library is ready
 * @return PTL_FAIL  the machine lacks something that the library needs, or an environment variable
 *                   has a value that isn't understood; a line on standard error says which
 * @blocks never
 * @threads safe
 * @see PtlFini, PtlNIInit
 */
int PtlInit(void);

/**
 * Ends the library's use
 *
 * The call that answers the first PtlInit frees everything: interfaces still open are closed as
 * by PtlNIFini, whatever their count. Further calls, beyond those that answer a PtlInit, do
 * nothing.
 *
 * @blocks until the library's own threads have ended, which is short
 * @threads no other thread may be inside a function of the library when the last one is called;
 *          PtlAbort gets those out that wait
 * @see PtlInit, PtlAbort
 */
void PtlFini(void);

/**
 * Ends all waiting, now and later
 *
 * Every call of PtlEQWait, PtlEQPoll, PtlCTWait and PtlCTPoll in progress returns PTL_ABORTED, and
 * so does every later one, at once, until the library has been ended and started again. When
 * PtlAbort has returned, PtlEQFree and PtlCTFree are safe even if threads were waiting.
 * Without PtlInit it does nothing.
 *
 * @blocks until the waiting threads have been notified, which is short
 * @threads safe
 * @see PtlEQFree, PtlCTFree, PtlFini
 */
void PtlAbort(void);

/* --- Network interfaces -------------------------------------------------------------------- */

#define PTL_NI_MATCHING          0x1 /**< Messages are matched: PtlMEAppend. */
#define PTL_NI_NO_MATCHING       0x2 /**< Messages take the first entry: PtlLEAppend. */
#define PTL_NI_LOGICAL           0x4 /**< Processes are named by rank. */
#define PTL_NI_PHYSICAL          0x8 /**< Processes are named by nid and pid. */
#define PTL_NI_INIT_OPTIONS_MASK 0xf /**< All options of PtlNIInit. */

#define PTL_NI_OK             0 /**< It went well. */
#define PTL_NI_UNDELIVERABLE  1 /**< The target doesn't exist, has died or can't be reached. */
#define PTL_NI_DROPPED        2 /**< Nothing at the target took the message. */
#define PTL_NI_PT_DISABLED    3 /**< The target's portal table entry was disabled, or flow control
                                 * disabled it now. */
#define PTL_NI_PERM_VIOLATION 4 /**< The entry belongs to another user. */
#define PTL_NI_OP_VIOLATION   5 /**< The entry doesn't allow this operation. */
#define PTL_NI_NO_MATCH       6 /**< The search found nothing. */
#define PTL_NI_SEGV           7 /**< The target's memory can't be accessed. */

#define PTL_TARGET_BIND_INACCESSIBLE 0x1 /**< Entries may span memory that isn't mapped, as long as
                                          * no message touches it. */
#define PTL_TOTAL_DATA_ORDERING      0x2 /**< Data of ordered messages is written in order, up to
                                          * the `max_waw_ordered_size` and so on. */
#define PTL_COHERENT_ATOMICS         0x4 /**< Portals' atomics and the processor's see each other
                                          * without PtlAtomicSync. Given to who asks for it:
                                          * long atomics then take longer. */

/**
 * The limits of an interface
 *
 * A program passes what it would like and gets what it has. A wish that is too large, or too
 * small to work, is moved to the nearest value that the library can give: it is clamped, never
 * refused.
 */
typedef struct {
    int max_entries;            /**< List and match list entries, on all lists together. */
    int max_unexpected_headers; /**< Headers kept of messages that came before their entry. */
    int max_mds;                /**< Memory descriptors. */
    int max_cts;                /**< Counting events. */
    int max_eqs;                /**< Event queues. */
    int max_pt_index;           /**< The largest index of the portal table. */
    int max_iovecs;             /**< Elements of one PTL_IOVEC array. */
    int max_list_size;          /**< Entries on one list of one portal table entry. */
    int max_triggered_ops;      /**< Triggered operations that wait at one time. */
    ptl_size_t max_msg_size;          /**< Bytes of one put or get. */
    ptl_size_t max_atomic_size;       /**< Bytes of one PtlAtomic. */
    ptl_size_t max_fetch_atomic_size; /**< Bytes of one PtlFetchAtomic or PtlSwap. */
    ptl_size_t max_waw_ordered_size;  /**< Bytes up to which a write after a write is ordered. */
    ptl_size_t max_war_ordered_size;  /**< Bytes up to which a write after a read is ordered. */
    ptl_size_t max_volatile_size;     /**< Bytes up to which PTL_MD_VOLATILE is honoured. */
    unsigned int features;            /**< The PTL_TARGET_BIND_INACCESSIBLE,
                                       * PTL_TOTAL_DATA_ORDERING and PTL_COHERENT_ATOMICS asked
                                       * for, and those given. One that isn't available is simply
                                       * absent from the latter. */
} ptl_ni_limits_t;

/**
 * The counters of trouble that an interface keeps
 */
typedef enum {
    PTL_SR_DROP_COUNT = 0,            /**< Messages dropped: nothing took them. */
    PTL_SR_PERMISSION_VIOLATIONS = 1, /**< Messages that came from a user without permission. */
    PTL_SR_OPERATION_VIOLATIONS = 2   /**< Messages whose operation the entry doesn't allow. */
} ptl_sr_index_t;
#define PTL_SR_LAST (PTL_SR_OPERATION_VIOLATIONS + 1) /**< The number of status registers. */

/**
 * Opens a network interface
 *
 * A process can open four interfaces of one `iface`: matching or not, logical or physical.
 * They share one nid and pid. Opening the same one again gives the same handle, the limits it
 * already has, and counts: each call is answered by a PtlNIFini. After the last PtlNIFini the
 * interface can be opened with other limits.
 *
 * From now on messages from other processes are delivered by themselves: the library needs
 * no call of the target's to make progress.
 *
 * @param[in] iface      the network: PTL_IFACE_DEFAULT, or 0 to 3, which name the same one
 * @param[in] options    one of PTL_NI_MATCHING and PTL_NI_NO_MATCHING, with one of PTL_NI_LOGICAL
 *                       and PTL_NI_PHYSICAL
 * @param[in] pid        the pid wanted, or PTL_PID_ANY to let the library choose. It never
 *                       chooses 0.
 * @param[in] desired    the limits wanted, or NULL for the defaults
 * @param[out] actual    the limits in force; may be NULL
 * @param[out] ni_handle the interface
 * @return PTL_OK           the interface is open
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `iface` doesn't exist, `options` isn't one of the four combinations,
 *                          `pid` isn't the one that the process already has, or `ni_handle` is
 *                          NULL
 * @return PTL_PID_IN_USE   another process of the node has `pid`
 * @return PTL_NO_SPACE     a limit of the system is reached: memory, shared memory, /dev/shm,
 *                          files, threads; a line on standard error says which, and how to raise it
 * @return PTL_FAIL         the network can't be opened; a line on standard error says why
 * @blocks never
 * @threads safe
 * @see PtlNIFini, PtlGetPhysId, PtlSetMap
 */
int PtlNIInit(ptl_interface_t iface,
              unsigned int options,
              ptl_pid_t pid,
              const ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni_handle);

/**
 * Closes a network interface
 *
 * The call that answers the first PtlNIInit frees the interface with all its queues, counters,
 * descriptors, entries and triggered operations. Their handles are invalid from then on, and the
 * memory that they described is the program's alone again: neither this process nor its peers nor
 * an agent reads or writes it any more. What peers still use is waited for; a peer that takes no
 * part for two seconds is given up, and finds nothing when it goes on. Messages still under way
 * fail at their initiators with PTL_NI_UNDELIVERABLE.
 *
 * @param[in] ni_handle the interface
 * @return PTL_OK           closed, or counted down
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface
 * @blocks until what is being copied into or out of the process's memory is finished, or its peer is
 *         given up
 * @threads safe, but no other thread may be waiting on one of the interface's queues or counters
 * @see PtlNIInit
 */
int PtlNIFini(ptl_handle_ni_t ni_handle);

/**
 * Reads a status register
 *
 * Status registers only grow. Searches never change one.
 *
 * @param[in] ni_handle        the interface
 * @param[in] status_register  which one: PTL_SR_DROP_COUNT and so on
 * @param[out] status          its value
 * @return PTL_OK           read
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, there is no such register, or
 *                          `status` is NULL
 * @blocks never
 * @threads safe
 */
int PtlNIStatus(ptl_handle_ni_t ni_handle,
                ptl_sr_index_t status_register,
                ptl_sr_value_t *status);

/**
 * Returns the interface that an object belongs to
 *
 * @param[in] handle      any handle: of a queue, counter, descriptor, entry, or of an interface,
 *                        which belongs to itself
 * @param[out] ni_handle  the interface
 * @return PTL_OK           found
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `handle` names nothing, or `ni_handle` is NULL
 * @blocks never
 * @threads safe
 * @see PtlHandleIsEqual
 */
int PtlNIHandle(ptl_handle_any_t handle,
                ptl_handle_ni_t *ni_handle);

/**
 * Defines which process each rank of a logical interface is
 *
 * A logical interface carries messages only after this. The map must contain the calling process
 * itself; its index there becomes the process's rank. The first map stays until the interface is
 * closed.
 *
 * @param[in] ni_handle  a logical interface
 * @param[in] map_size   the number of ranks
 * @param[in] mapping    `map_size` physical names, of rank 0, 1 and so on
 * @return PTL_OK           set
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open logical interface, `map_size` is 0, `mapping`
 *                          is NULL, or the calling process isn't in it
 * @return PTL_NO_SPACE     there isn't enough memory for the map
 * @return PTL_IGNORED      the interface has a map already; it stays as it was
 * @blocks never
 * @threads safe
 * @see PtlGetMap, PtlGetPhysId
 */
int PtlSetMap(ptl_handle_ni_t ni_handle,
              ptl_size_t map_size,
              const ptl_process_t *mapping);

/**
 * Reads the map that PtlSetMap set
 *
 * @param[in] ni_handle         a logical interface
 * @param[in] map_size          how many names `mapping` has room for
 * @param[out] mapping          the first `map_size` names of the map, or all if it has fewer; may
 *                              be NULL if `map_size` is 0
 * @param[out] actual_map_size  how many names the map has; may be NULL
 * @return PTL_OK           read
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open logical interface with a map, or `mapping` is
 *                          NULL although `map_size` isn't 0
 * @blocks never
 * @threads safe
 * @see PtlSetMap
 */
int PtlGetMap(ptl_handle_ni_t ni_handle,
              ptl_size_t map_size,
              ptl_process_t *mapping,
              ptl_size_t *actual_map_size);

/* --- Portal table -------------------------------------------------------------------------- */

#define PTL_PT_ONLY_USE_ONCE   0x1 /**< A hint: the priority list will hold use-once entries
                                    * only. */
#define PTL_PT_FLOWCTRL        0x2 /**< When a resource runs out the entry disables itself: the
                                    * target gets PTL_EVENT_PT_DISABLED, initiators get
                                    * PTL_NI_PT_DISABLED, and nothing is lost silently. */
#define PTL_PT_ONLY_TRUNCATE   0x4 /**< A hint: the priority list will hold no entry with
                                    * PTL_ME_NO_TRUNCATE. */
#define PTL_PT_MATCH_UNORDERED 0x8 /**< A hint, not of the specification: matching in the order of
                                    * appending isn't needed. It is kept all the same. */
#define PTL_PT_ALLOC_DISABLED  0x10 /**< The entry begins disabled, until PtlPTEnable. */
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1f /**< All options of PtlPTAlloc. */

/**
 * Takes an entry of the portal table
 *
 * @param[in] ni_handle     the interface
 * @param[in] options       PTL_PT_ONLY_USE_ONCE and so on, or 0
 * @param[in] eq_handle     where the events of its lists go, or PTL_EQ_NONE
 * @param[in] pt_index_req  the index wanted, from 0 to `max_pt_index`, or PTL_PT_ANY
 * @param[out] pt_index     the index taken: the one wanted, if one was
 * @return PTL_OK            taken
 * @return PTL_NO_INIT       the library isn't initialized
 * @return PTL_ARG_INVALID   `ni_handle` isn't an open interface, `options` has an unknown bit,
 *                           `eq_handle` isn't a queue of this interface, `pt_index_req` is out of
 *                           range, or `pt_index` is NULL
 * @return PTL_PT_IN_USE     the index wanted is taken
 * @return PTL_PT_FULL       any would do, and none is free
 * @return PTL_PT_EQ_NEEDED  PTL_PT_FLOWCTRL is set and there is no queue
 * @blocks never
 * @threads safe
 * @see PtlPTFree, PtlPTEnable
 */
int PtlPTAlloc(ptl_handle_ni_t ni_handle,
               unsigned int options,
               ptl_handle_eq_t eq_handle,
               ptl_pt_index_t pt_index_req,
               ptl_pt_index_t *pt_index);

/**
 * Gives an entry of the portal table back
 *
 * Unexpected headers that are still kept for it are dropped.
 *
 * @param[in] ni_handle  the interface
 * @param[in] pt_index   the index
 * @return PTL_OK           free again
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or the index isn't taken
 * @return PTL_PT_IN_USE    an entry is still on one of its lists, or a message is being delivered
 * @blocks never
 * @threads safe
 * @see PtlPTAlloc
 */
int PtlPTFree(ptl_handle_ni_t ni_handle,
              ptl_pt_index_t pt_index);

/**
 * Stops an entry of the portal table from taking messages
 *
 * When the call returns, messages already begun have been delivered and their events are posted.
 * Later ones are refused; their initiators get PTL_NI_PT_DISABLED. Disabling what is disabled
 * does nothing. No PTL_EVENT_PT_DISABLED is posted.
 *
 * @param[in] ni_handle  the interface
 * @param[in] pt_index   the index
 * @return PTL_OK           disabled
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or the index isn't taken
 * @blocks until the messages already begun are delivered
 * @threads safe
 * @see PtlPTEnable
 */
int PtlPTDisable(ptl_handle_ni_t ni_handle,
                 ptl_pt_index_t pt_index);

/**
 * Lets an entry of the portal table take messages again
 *
 * For an entry that PtlPTDisable or flow control disabled, or that began disabled. Enabling what
 * is enabled does nothing.
 *
 * @param[in] ni_handle  the interface
 * @param[in] pt_index   the index
 * @return PTL_OK           enabled
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or the index isn't taken
 * @blocks never
 * @threads safe
 * @see PtlPTDisable
 */
int PtlPTEnable(ptl_handle_ni_t ni_handle,
                ptl_pt_index_t pt_index);

/* --- User and process identification ------------------------------------------------------- */

/**
 * Returns the user that the process runs as
 *
 * It is the effective user id, and what entries of other processes are checked against.
 *
 * @param[in] ni_handle  the interface
 * @param[out] uid       the user
 * @return PTL_OK           returned
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or `uid` is NULL
 * @blocks never
 * @threads safe
 * @see PtlLEAppend, PtlMEAppend
 */
int PtlGetUid(ptl_handle_ni_t ni_handle,
              ptl_uid_t *uid);

/**
 * Returns the process's own name in the interface's addressing
 *
 * @param[in] ni_handle  the interface
 * @param[out] id        nid and pid if the interface is physical; the rank if it is logical,
 *                       which is PTL_RANK_ANY before PtlSetMap
 * @return PTL_OK           returned
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or `id` is NULL
 * @blocks never
 * @threads safe
 * @see PtlGetPhysId
 */
int PtlGetId(ptl_handle_ni_t ni_handle,
             ptl_process_t *id);

/**
 * Returns the process's own nid and pid
 *
 * On a logical interface it works before PtlSetMap: processes exchange what it returns, and make
 * the map of it. The pid is never 0.
 *
 * @param[in] ni_handle  the interface
 * @param[out] id        nid and pid
 * @return PTL_OK           returned
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or `id` is NULL
 * @blocks never
 * @threads safe
 * @see PtlGetId, PtlSetMap
 */
int PtlGetPhysId(ptl_handle_ni_t ni_handle,
                 ptl_process_t *id);

/* --- Memory descriptors -------------------------------------------------------------------- */

#define PTL_IOVEC 0x1 /**< `start` is an array of ptl_iovec_t and `length` its number of elements.
                       * The pieces, one after the other, are the region. Of MD, LE and ME. */

#define PTL_MD_EVENT_CT_SEND         0x2    /**< Count sends. */
#define PTL_MD_EVENT_CT_REPLY        0x4    /**< Count replies. */
#define PTL_MD_EVENT_CT_ACK          0x8    /**< Count acknowledgements. */
#define PTL_MD_UNORDERED             0x10   /**< Messages may overtake each other. */
#define PTL_MD_EVENT_SUCCESS_DISABLE 0x20   /**< No full events of success, only of failure. */
#define PTL_MD_VOLATILE              0x40   /**< The data has been taken when the call returns, and
                                             * may be overwritten, if it isn't longer than
                                             * `max_volatile_size`. Of longer ones the option is
                                             * ignored. */
#define PTL_MD_EVENT_SEND_DISABLE    0x80   /**< No PTL_EVENT_SEND of success. */
#define PTL_MD_UNRELIABLE            0x100  /**< Messages may be lost. Puts without full
                                             * acknowledgement only. */
#define PTL_MD_EVENT_CT_BYTES        0x4000 /**< Count bytes, not operations. Failures always count
                                             * as one. */
#define PTL_MD_OPTIONS_MASK          0x41ff /**< All options of PtlMDBind. */

/**
 * A region of memory that messages are sent from and replies arrive in
 *
 * `start` may be NULL if `length` is 0 or PTL_SIZE_MAX; the latter spans the address space.
 */
typedef struct {
    void *start;               /**< Where it begins, or the array of PTL_IOVEC. */
    ptl_size_t length;         /**< Its bytes, or the number of elements of that array. */
    unsigned int options;      /**< PTL_IOVEC and PTL_MD_EVENT_CT_SEND and so on. */
    ptl_handle_eq_t eq_handle; /**< Where full events go, or PTL_EQ_NONE. */
    ptl_handle_ct_t ct_handle; /**< What counts, or PTL_CT_NONE. */
} ptl_md_t;

/**
 * A piece of memory
 *
 * It has the layout of struct iovec.
 */
typedef struct {
    void *iov_base;     /**< Where it begins. */
    ptl_size_t iov_len; /**< Its bytes. */
} ptl_iovec_t;

/**
 * Makes a memory descriptor
 *
 * The structure is copied, an array of PTL_IOVEC too. The memory stays the program's; it must be
 * mapped whenever an operation uses it, which a descriptor of the whole address space allows to
 * change.
 *
 * @param[in] ni_handle   the interface
 * @param[in] md          the region, options, queue and counter
 * @param[out] md_handle  the descriptor
 * @return PTL_OK           made
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, `md` or `md_handle` is NULL, an
 *                          option is unknown, the queue or counter isn't of this interface, the
 *                          array has more than `max_iovecs` elements, or the region wraps around
 *                          the end of the address space
 * @return PTL_NO_SPACE     the interface has `max_mds` descriptors
 * @blocks never
 * @threads safe
 * @see PtlMDRelease, PtlPut, PtlGet
 */
int PtlMDBind(ptl_handle_ni_t ni_handle,
              const ptl_md_t *md,
              ptl_handle_md_t *md_handle);

/**
 * Releases a memory descriptor
 *
 * The handle is invalid from now on, and the memory is the program's alone again. Triggered
 * operations that name it are dropped when their time comes.
 *
 * @param[in] md_handle  the descriptor
 * @return PTL_OK           released
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `md_handle` isn't a descriptor
 * @return PTL_IN_USE       operations that it began are still under way; it stays
 * @blocks never
 * @threads safe
 * @see PtlMDBind
 */
int PtlMDRelease(ptl_handle_md_t md_handle);

/* --- List entries and lists ---------------------------------------------------------------- */

#define PTL_PRIORITY_LIST 0 /**< The list that messages look through first. */
#define PTL_OVERFLOW_LIST 1 /**< The list that takes what the priority list didn't. Headers of such
                             * messages are kept, for entries appended later. */

#define PTL_SEARCH_ONLY   0 /**< Look, and leave the header where it is. */
#define PTL_SEARCH_DELETE 1 /**< Look, and take the header out. */

#define PTL_LE_OP_PUT                 PTL_ME_OP_PUT                 /**< As PTL_ME_OP_PUT. */
#define PTL_LE_OP_GET                 PTL_ME_OP_GET                 /**< As PTL_ME_OP_GET. */
#define PTL_LE_USE_ONCE               PTL_ME_USE_ONCE               /**< As PTL_ME_USE_ONCE. */
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE /**< As
                                       * PTL_ME_UNEXPECTED_HDR_DISABLE. */
#define PTL_LE_IS_ACCESSIBLE          PTL_ME_IS_ACCESSIBLE          /**< As PTL_ME_IS_ACCESSIBLE. */
#define PTL_LE_EVENT_LINK_DISABLE     PTL_ME_EVENT_LINK_DISABLE     /**< As
                                       * PTL_ME_EVENT_LINK_DISABLE. */
#define PTL_LE_EVENT_COMM_DISABLE     PTL_ME_EVENT_COMM_DISABLE     /**< As
                                       * PTL_ME_EVENT_COMM_DISABLE. */
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE /**< As
                                       * PTL_ME_EVENT_FLOWCTRL_DISABLE. */
#define PTL_LE_EVENT_SUCCESS_DISABLE  PTL_ME_EVENT_SUCCESS_DISABLE  /**< As
                                       * PTL_ME_EVENT_SUCCESS_DISABLE. */
#define PTL_LE_EVENT_OVER_DISABLE     PTL_ME_EVENT_OVER_DISABLE     /**< As
                                       * PTL_ME_EVENT_OVER_DISABLE. */
#define PTL_LE_EVENT_UNLINK_DISABLE   PTL_ME_EVENT_UNLINK_DISABLE   /**< As
                                       * PTL_ME_EVENT_UNLINK_DISABLE. */
#define PTL_LE_EVENT_CT_COMM          PTL_ME_EVENT_CT_COMM          /**< As PTL_ME_EVENT_CT_COMM. */
#define PTL_LE_EVENT_CT_OVERFLOW      PTL_ME_EVENT_CT_OVERFLOW      /**< As
                                       * PTL_ME_EVENT_CT_OVERFLOW. */
#define PTL_LE_EVENT_CT_BYTES         PTL_ME_EVENT_CT_BYTES         /**< As
                                       * PTL_ME_EVENT_CT_BYTES. */
#define PTL_LE_APPEND_OPTIONS_MASK    0x7fff /**< All options of PtlLEAppend of 4.3. */
#define PTL_LE_ACK_DISABLE            PTL_ME_ACK_DISABLE /**< As PTL_ME_ACK_DISABLE. */

/**
 * A region of memory that messages reach, on an interface without matching
 *
 * The initiator's offset counts from its beginning, and what exceeds its end is cut off.
 */
typedef struct {
    void *start;               /**< Where it begins, or the array of PTL_IOVEC. May be NULL if
                                * `length` is 0 or PTL_SIZE_MAX. */
    ptl_size_t length;         /**< Its bytes, or the number of elements of that array. */
    ptl_handle_ct_t ct_handle; /**< What counts, or PTL_CT_NONE. Not looked at unless `options`
                                * asks for counting. */
    ptl_uid_t uid;             /**< The user who may reach it, or PTL_UID_ANY. */
    unsigned int options;      /**< PTL_IOVEC and PTL_LE_OP_PUT and so on. */
} ptl_le_t;

/**
 * Appends a list entry
 *
 * On the priority list, headers kept of messages that came before are given to it first: each
 * makes an overflow event, such as PTL_EVENT_PUT_OVERFLOW. A use-once entry takes one and isn't
 * linked then, but unlinked, as PTL_EVENT_AUTO_UNLINK reports; another takes all and is linked.
 * Otherwise, and on the overflow list always, it is linked at the end, which makes a
 * PTL_EVENT_LINK. Users and operations are not checked for headers kept.
 *
 * The structure is copied, an array of PTL_IOVEC too. The memory is lent to the library until
 * the entry is unlinked: by PtlLEUnlink, or by use, which PTL_EVENT_AUTO_UNLINK reports. On the
 * overflow list it stays lent until PTL_EVENT_AUTO_FREE.
 *
 * @param[in] ni_handle   an interface without matching
 * @param[in] pt_index    the portal table entry
 * @param[in] le          region, counter, user and options
 * @param[in] ptl_list    PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST
 * @param[in] user_ptr    anything; it comes back in the entry's events
 * @param[out] le_handle  the entry. It may already be unlinked, by use, when the call returns.
 * @return PTL_OK             appended, or used at once
 * @return PTL_NO_INIT        the library isn't initialized
 * @return PTL_ARG_INVALID    `ni_handle` isn't an open interface without matching, `pt_index` isn't
 *                            taken, `le` or `le_handle` is NULL, an option or the list is unknown,
 *                            the counter isn't of this interface, or the region is no region
 * @return PTL_NO_SPACE       the interface has `max_entries` entries
 * @return PTL_LIST_TOO_LONG  the list has `max_list_size` entries
 * @blocks never
 * @threads safe
 * @see PtlLEUnlink, PtlLESearch, PtlMEAppend
 */
int PtlLEAppend(ptl_handle_ni_t ni_handle,
                ptl_pt_index_t pt_index,
                const ptl_le_t *le,
                ptl_list_t ptl_list,
                void *user_ptr,
                ptl_handle_le_t *le_handle);

/**
 * Unlinks a list entry
 *
 * The handle is invalid from now on and the memory is the program's alone again. No event reports
 * it.
 *
 * @param[in] le_handle  the entry
 * @return PTL_OK           unlinked
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `le_handle` isn't an entry; it may have been unlinked by use
 * @return PTL_IN_USE       a message is being delivered to it, or headers of messages that it took
 *                          from the overflow list are still kept; it stays linked
 * @blocks never
 * @threads safe
 * @see PtlLEAppend
 */
int PtlLEUnlink(ptl_handle_le_t le_handle);

/**
 * Looks for messages that came before their entry
 *
 * The headers kept are searched just as PtlLEAppend would, but nothing is linked. The answer is
 * an event on the queue of the portal table entry, and never a change of a status register.
 *
 * - PTL_SEARCH_ONLY makes a PTL_EVENT_SEARCH with the first header found, or of each if the entry
 *   isn't use-once.
 * - PTL_SEARCH_DELETE takes headers out, all if the entry isn't use-once, and makes an overflow
 *   event of each.
 * - If there is none, either makes a PTL_EVENT_SEARCH with PTL_NI_NO_MATCH.
 *
 * If the entry counts overflow events, its counter counts each header found, and a failure when the
 * search came to the end: when nothing was found, or the entry isn't use-once.
 *
 * @param[in] ni_handle      an interface without matching
 * @param[in] pt_index       the portal table entry
 * @param[in] le             the entry that a message would have to reach
 * @param[in] ptl_search_op  PTL_SEARCH_ONLY or PTL_SEARCH_DELETE
 * @param[in] user_ptr       anything; it comes back in the event
 * @return PTL_OK           searched
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlLEAppend, or the operation is unknown
 * @blocks never
 * @threads safe
 * @see PtlLEAppend, PtlMESearch
 */
int PtlLESearch(ptl_handle_ni_t ni_handle,
                ptl_pt_index_t pt_index,
                const ptl_le_t *le,
                ptl_search_op_t ptl_search_op,
                void *user_ptr);

/* --- Match list entries and matching lists ------------------------------------------------- */

#define PTL_ME_OP_PUT                 0x2     /**< Puts may reach it; atomics too. */
#define PTL_ME_OP_GET                 0x4     /**< Gets may reach it. Fetching atomics and swaps
                                               * need PTL_ME_OP_PUT with it. */
#define PTL_ME_USE_ONCE               0x8     /**< The first message unlinks it. */
#define PTL_ME_UNEXPECTED_HDR_DISABLE 0x10    /**< On the overflow list: keep no header. */
#define PTL_ME_IS_ACCESSIBLE          0x20    /**< The whole region is mapped, whatever
                                               * PTL_TARGET_BIND_INACCESSIBLE says. */
#define PTL_ME_EVENT_LINK_DISABLE     0x40    /**< No PTL_EVENT_LINK. */
#define PTL_ME_EVENT_COMM_DISABLE     0x80    /**< No full events of communication. */
#define PTL_ME_EVENT_FLOWCTRL_DISABLE 0x100   /**< No PTL_EVENT_PT_DISABLED. */
#define PTL_ME_EVENT_SUCCESS_DISABLE  0x200   /**< No full events of success, only of failure. */
#define PTL_ME_EVENT_OVER_DISABLE     0x400   /**< No overflow events. */
#define PTL_ME_EVENT_UNLINK_DISABLE   0x800   /**< No PTL_EVENT_AUTO_UNLINK, no
                                               * PTL_EVENT_AUTO_FREE. */
#define PTL_ME_EVENT_CT_COMM          0x1000  /**< Count communication. */
#define PTL_ME_EVENT_CT_OVERFLOW      0x2000  /**< Count overflow events. */
#define PTL_ME_EVENT_CT_BYTES         0x4000  /**< Count bytes, not operations. Failures always
                                               * count as one. */
#define PTL_ME_MANAGE_LOCAL           0x8000  /**< The entry keeps its own offset: messages are laid
                                               * one behind the other, and `min_free` ends it. */
#define PTL_ME_NO_TRUNCATE            0x10000 /**< A message that doesn't fit doesn't match. */
#define PTL_ME_MAY_ALIGN              0x20000 /**< With PTL_ME_MANAGE_LOCAL the library may leave
                                               * gaps to align messages. */
#define PTL_ME_LOCAL_INC_UH_RLENGTH   0x40000 /**< With PTL_ME_MANAGE_LOCAL: a message that came
                                               * before the entry moves the offset by its `rlength`
                                               * when its header is given to the entry. */
#define PTL_ME_APPEND_OPTIONS_MASK    0x7ffff /**< All options of PtlMEAppend of 4.3. */
#define PTL_ME_ACK_DISABLE            0x80000 /**< No acknowledgements. An option of 4.2 that 4.3
                                               * dropped; accepted here, on a bit of its own. */

/**
 * A region of memory that messages reach by matching
 *
 * A message matches if its initiator is `match_id`, and its match bits are `match_bits` wherever
 * `ignore_bits` has a zero. The first five members are those of ptl_le_t.
 */
typedef struct {
    void *start;               /**< Where it begins, or the array of PTL_IOVEC. May be NULL if
                                * `length` is 0 or PTL_SIZE_MAX. */
    ptl_size_t length;         /**< Its bytes, or the number of elements of that array. */
    ptl_handle_ct_t ct_handle; /**< What counts, or PTL_CT_NONE. Not looked at unless `options`
                                * asks for counting. */
    ptl_uid_t uid;             /**< The user who may reach it, or PTL_UID_ANY. */
    unsigned int options;      /**< PTL_IOVEC and PTL_ME_OP_PUT and so on. */
    ptl_process_t match_id;    /**< From whom. PTL_RANK_ANY, PTL_NID_ANY and PTL_PID_ANY match
                                * all. */
    ptl_match_bits_t match_bits;  /**< The bits wanted. */
    ptl_match_bits_t ignore_bits; /**< Ones where any bit will do. */
    ptl_size_t min_free;       /**< With PTL_ME_MANAGE_LOCAL: unlink when fewer bytes than these
                                * are left. Not looked at otherwise. */
} ptl_me_t;

/**
 * Appends a match list entry
 *
 * On the priority list, headers kept of messages that came before and match are given to it
 * first, the oldest first: each makes an overflow event, such as PTL_EVENT_PUT_OVERFLOW. A
 * use-once entry takes one and isn't linked then, but unlinked, as PTL_EVENT_AUTO_UNLINK reports;
 * another takes all and is linked. Otherwise, and on the overflow list always, it is linked at the
 * end, which makes a PTL_EVENT_LINK. Users and operations are not checked for headers kept.
 *
 * The structure is copied, an array of PTL_IOVEC too. The memory is lent to the library until the
 * entry is unlinked: by PtlMEUnlink, or by use, which PTL_EVENT_AUTO_UNLINK reports. On the
 * overflow list it stays lent until PTL_EVENT_AUTO_FREE.
 *
 * @param[in] ni_handle   an interface with matching
 * @param[in] pt_index    the portal table entry
 * @param[in] me          region, counter, user, options and what to match
 * @param[in] ptl_list    PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST
 * @param[in] user_ptr    anything; it comes back in the entry's events
 * @param[out] me_handle  the entry. It may already be unlinked, by use, when the call returns.
 * @return PTL_OK             appended, or used at once
 * @return PTL_NO_INIT        the library isn't initialized
 * @return PTL_ARG_INVALID    `ni_handle` isn't an open interface with matching, `pt_index` isn't
 *                            taken, `me` or `me_handle` is NULL, an option or the list is unknown,
 *                            the counter isn't of this interface, or the region is no region
 * @return PTL_NO_SPACE       the interface has `max_entries` entries
 * @return PTL_LIST_TOO_LONG  the list has `max_list_size` entries
 * @blocks never
 * @threads safe
 * @see PtlMEUnlink, PtlMESearch, PtlTriggeredMEAppend
 */
int PtlMEAppend(ptl_handle_ni_t ni_handle,
                ptl_pt_index_t pt_index,
                const ptl_me_t *me,
                ptl_list_t ptl_list,
                void *user_ptr,
                ptl_handle_me_t *me_handle);

/**
 * Unlinks a match list entry
 *
 * The handle is invalid from now on and the memory is the program's alone again. No event reports
 * it.
 *
 * @param[in] me_handle  the entry
 * @return PTL_OK           unlinked
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `me_handle` isn't an entry; it may have been unlinked by use
 * @return PTL_IN_USE       a message is being delivered to it, or headers of messages that it took
 *                          from the overflow list are still kept; it stays linked
 * @blocks never
 * @threads safe
 * @see PtlMEAppend, PtlTriggeredMEUnlink
 */
int PtlMEUnlink(ptl_handle_me_t me_handle);

/**
 * Looks for messages that came before their entry and match
 *
 * The headers kept are searched just as PtlMEAppend would, but nothing is linked. The answer is
 * an event on the queue of the portal table entry, and never a change of a status register.
 *
 * - PTL_SEARCH_ONLY makes a PTL_EVENT_SEARCH with the first header that matches, or of each if the
 *   entry isn't use-once.
 * - PTL_SEARCH_DELETE takes headers out, all that match if the entry isn't use-once, and makes an
 *   overflow event of each. The message's data stays where the event says.
 * - If none matches, either makes a PTL_EVENT_SEARCH with PTL_NI_NO_MATCH.
 *
 * If the entry counts overflow events, its counter counts each header found, and a failure when the
 * search came to the end: when nothing was found, or the entry isn't use-once.
 *
 * @param[in] ni_handle      an interface with matching
 * @param[in] pt_index       the portal table entry
 * @param[in] me             what to match
 * @param[in] ptl_search_op  PTL_SEARCH_ONLY or PTL_SEARCH_DELETE
 * @param[in] user_ptr       anything; it comes back in the event
 * @return PTL_OK           searched
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlMEAppend, or the operation is unknown
 * @blocks never
 * @threads safe
 * @see PtlMEAppend, PtlLESearch
 */
int PtlMESearch(ptl_handle_ni_t ni_handle,
                ptl_pt_index_t pt_index,
                const ptl_me_t *me,
                ptl_search_op_t ptl_search_op,
                void *user_ptr);

/* --- Events and event queues --------------------------------------------------------------- */

#define PTL_EVENT_GET                   0 /**< Target: a get was answered from the priority list. */
#define PTL_EVENT_GET_OVERFLOW          1 /**< Target: an entry met a get that the overflow list
                                           * had answered. */
#define PTL_EVENT_PUT                   2 /**< Target: a put has arrived. */
#define PTL_EVENT_PUT_OVERFLOW          3 /**< Target: an entry met a put that the overflow list had
                                           * taken. */
#define PTL_EVENT_ATOMIC                4 /**< Target: an atomic was done. */
#define PTL_EVENT_ATOMIC_OVERFLOW       5 /**< Target: an entry met an atomic that the overflow list
                                           * had taken. */
#define PTL_EVENT_FETCH_ATOMIC          6 /**< Target: a fetching atomic or swap was done. */
#define PTL_EVENT_FETCH_ATOMIC_OVERFLOW 7 /**< Target: an entry met a fetching atomic or swap that
                                           * the overflow list had taken. */
#define PTL_EVENT_REPLY                 8 /**< Initiator: the data of a get, fetching atomic or swap
                                           * is there. */
#define PTL_EVENT_SEND                  9 /**< Initiator: the data has been taken; the memory may
                                           * be used again. */
#define PTL_EVENT_ACK                  10 /**< Initiator: the target has taken the message. */
#define PTL_EVENT_PT_DISABLED          11 /**< Target: flow control disabled the portal table
                                           * entry. */
#define PTL_EVENT_LINK                 12 /**< Target: an entry is linked. */
#define PTL_EVENT_AUTO_UNLINK          13 /**< Target: use has unlinked an entry. */
#define PTL_EVENT_AUTO_FREE            14 /**< Target: no header kept refers to an unlinked entry
                                           * of the overflow list any more; its memory is free. */
#define PTL_EVENT_SEARCH               15 /**< Target: a search has ended. */

/**
 * A full event
 *
 * Every event has `type`, `ni_fail_type` and, but for PTL_EVENT_PT_DISABLED, `user_ptr`. Events
 * of SEND, ACK and REPLY have `mlength`; ACK and REPLY also `remote_offset` and `ptl_list`. Events
 * of lists have `pt_index`, and those of a message also all the rest that the message has.
 * Members that an event doesn't have are zero.
 */
typedef struct {
    void *start;                 /**< Where the message's data begins at the target. */
    void *user_ptr;              /**< That of the call whose event this is. */
    ptl_hdr_data_t hdr_data;     /**< The initiator's eight bytes. */
    ptl_match_bits_t match_bits; /**< The initiator's match bits. */
    ptl_size_t rlength;          /**< The bytes that the initiator asked for. */
    ptl_size_t mlength;          /**< The bytes moved. */
    ptl_size_t remote_offset;    /**< The offset in the entry. */
    ptl_process_t initiator;     /**< Who began the operation. */
    ptl_uid_t uid;               /**< As which user. */
    ptl_pt_index_t pt_index;     /**< At which portal table entry. */
    ptl_event_kind_t type;       /**< PTL_EVENT_PUT and so on. */
    ptl_list_t ptl_list;         /**< The list that took the message. */
    ptl_ni_fail_t ni_fail_type;  /**< PTL_NI_OK, or why it failed. */
    ptl_op_t atomic_operation;   /**< Of atomics: which. */
    ptl_datatype_t atomic_type;  /**< Of atomics: on what. */
} ptl_event_t;

/**
 * Makes an event queue
 *
 * @param[in] ni_handle   the interface
 * @param[in] count       how many events it must hold. When more are waiting, the oldest are
 *                        overwritten; the next read says so once, by PTL_EQ_DROPPED.
 * @param[out] eq_handle  the queue
 * @return PTL_OK           made
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or `eq_handle` is NULL
 * @return PTL_NO_SPACE     the interface has `max_eqs` queues, `count` is above 1,048,576, or there
 *                          is no memory for so many events
 * @blocks never
 * @threads safe
 * @note A portal table entry with PTL_PT_FLOWCTRL is disabled before its queue overflows.
 * @see PtlEQFree, PtlEQGet, PtlEQWait, PtlEQPoll
 */
int PtlEQAlloc(ptl_handle_ni_t ni_handle,
               ptl_size_t count,
               ptl_handle_eq_t *eq_handle);

/**
 * Frees an event queue
 *
 * Events still in it are gone. Descriptors and portal table entries that name it work on, without
 * full events.
 *
 * @param[in] eq_handle  the queue
 * @return PTL_OK           freed
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `eq_handle` isn't a queue
 * @blocks never
 * @threads safe, but no other thread may be waiting on the queue: call PtlAbort first
 * @see PtlEQAlloc, PtlAbort
 */
int PtlEQFree(ptl_handle_eq_t eq_handle);

/**
 * Takes the next event, if there is one
 *
 * @param[in] eq_handle  the queue
 * @param[out] event     the event
 * @return PTL_OK           an event was taken
 * @return PTL_EQ_DROPPED   an event was taken, and between it and the one before it others were
 *                          lost, because the queue was full
 * @return PTL_EQ_EMPTY     no event is there
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `eq_handle` isn't a queue, or `event` is NULL
 * @blocks never
 * @threads safe; each event goes to one thread
 * @see PtlEQWait, PtlEQPoll
 */
int PtlEQGet(ptl_handle_eq_t eq_handle,
             ptl_event_t *event);

/**
 * Waits for the next event and takes it
 *
 * @param[in] eq_handle  the queue
 * @param[out] event     the event
 * @return PTL_OK           an event was taken
 * @return PTL_EQ_DROPPED   an event was taken, and between it and the one before it others were
 *                          lost, because the queue was full
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `eq_handle` isn't a queue, or `event` is NULL
 * @return PTL_ABORTED      PtlAbort was called
 * @blocks until an event is there: it spins briefly, then sleeps. Signals don't end it.
 * @threads safe; each event goes to one thread
 * @see PtlEQGet, PtlEQPoll, PtlAbort
 */
int PtlEQWait(ptl_handle_eq_t eq_handle,
              ptl_event_t *event);

/**
 * Waits for an event on any of several queues, for a time
 *
 * @param[in] eq_handles  `size` queues, which may be of different interfaces
 * @param[in] size        how many
 * @param[in] timeout     milliseconds to wait at most; 0 only looks, PTL_TIME_FOREVER waits on
 * @param[out] event      the event
 * @param[out] which      the index, in `eq_handles`, of the queue that it was taken from. Queues
 *                        earlier in the array aren't favoured.
 * @return PTL_OK           an event was taken
 * @return PTL_EQ_DROPPED   an event was taken, and between it and the one before it in that queue
 *                          others were lost, because the queue was full
 * @return PTL_EQ_EMPTY     the time is over and all queues are empty
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  one of the handles isn't a queue, `size` is 0, or a pointer is NULL
 * @return PTL_ABORTED      PtlAbort was called
 * @blocks for `timeout` milliseconds at most: it spins briefly, then sleeps. Signals don't end it.
 * @threads safe; each event goes to one thread
 * @see PtlEQGet, PtlEQWait, PtlAbort
 */
int PtlEQPoll(const ptl_handle_eq_t *eq_handles,
              unsigned int size,
              ptl_time_t timeout,
              ptl_event_t *event,
              unsigned int *which);

/* --- Counting events ----------------------------------------------------------------------- */

/**
 * The value of a counting event
 */
typedef struct {
    ptl_size_t success; /**< Operations, or bytes, that went well. */
    ptl_size_t failure; /**< Operations that failed. */
} ptl_ct_event_t;

/**
 * What a counter counts
 *
 * Kept for programs that name it. No function takes it: the options of a descriptor or entry,
 * such as PTL_MD_EVENT_CT_BYTES, decide.
 */
typedef enum {
    PTL_CT_OPERATION = 0, /**< Operations. */
    PTL_CT_BYTE = 1       /**< Bytes. */
} ptl_ct_type_t;

/**
 * Makes a counting event
 *
 * It begins with no success and no failure.
 *
 * @param[in] ni_handle   the interface
 * @param[out] ct_handle  the counter
 * @return PTL_OK           made
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface, or `ct_handle` is NULL
 * @return PTL_NO_SPACE     the interface has `max_cts` counters
 * @blocks never
 * @threads safe
 * @see PtlCTFree, PtlCTWait, PtlTriggeredPut
 */
int PtlCTAlloc(ptl_handle_ni_t ni_handle,
               ptl_handle_ct_t *ct_handle);

/**
 * Frees a counting event
 *
 * Triggered operations that wait for it are cancelled. Descriptors and entries that name it work
 * on, without counting.
 *
 * @param[in] ct_handle  the counter
 * @return PTL_OK           freed
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter
 * @blocks never
 * @threads safe, but no other thread may be waiting on the counter: call PtlAbort first
 * @see PtlCTAlloc, PtlCTCancelTriggered, PtlAbort
 */
int PtlCTFree(ptl_handle_ct_t ct_handle);

/**
 * Cancels the triggered operations that wait for a counter
 *
 * They are never executed, and no event reports them. The counter keeps its value. Operations
 * already triggered are not undone.
 *
 * @param[in] ct_handle  the counter
 * @return PTL_OK           cancelled
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter
 * @blocks never
 * @threads safe
 * @see PtlTriggeredPut, PtlCTFree
 */
int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);

/**
 * Reads a counter
 *
 * @param[in] ct_handle  the counter
 * @param[out] event     its value
 * @return PTL_OK           read
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter, or `event` is NULL
 * @blocks never
 * @threads safe; while another thread changes both fields, one may be read before and one after
 * @see PtlCTWait, PtlCTPoll
 */
int PtlCTGet(ptl_handle_ct_t ct_handle,
             ptl_ct_event_t *event);

/**
 * Waits until a counter reaches a value, or a failure
 *
 * It returns as soon as `success` is `test` or more, or `failure` isn't 0.
 *
 * @param[in] ct_handle  the counter
 * @param[in] test       the successes to wait for
 * @param[out] event     the value that ended the waiting
 * @return PTL_OK           reached, or failed: look at `failure`
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter, or `event` is NULL
 * @return PTL_ABORTED      PtlAbort was called
 * @blocks until then: it spins briefly, then sleeps. Signals don't end it.
 * @threads safe; all that wait for what is reached return
 * @see PtlCTGet, PtlCTPoll, PtlAbort
 */
int PtlCTWait(ptl_handle_ct_t ct_handle,
              ptl_size_t test,
              ptl_ct_event_t *event);

/**
 * Waits until any of several counters reaches its value, or a failure, for a time
 *
 * @param[in] ct_handles  `size` counters, which may be of different interfaces
 * @param[in] tests       `size` successes to wait for, one for each
 * @param[in] size        how many
 * @param[in] timeout     milliseconds to wait at most; 0 only looks, PTL_TIME_FOREVER waits on
 * @param[out] event      the value that ended the waiting
 * @param[out] which      the index, in `ct_handles`, of its counter
 * @return PTL_OK               one has reached its test, or failed: look at `failure`
 * @return PTL_CT_NONE_REACHED  the time is over and none has
 * @return PTL_NO_INIT          the library isn't initialized
 * @return PTL_ARG_INVALID      one of the handles isn't a counter, `size` is 0, or a pointer is
 *                              NULL
 * @return PTL_ABORTED          PtlAbort was called
 * @blocks for `timeout` milliseconds at most: it spins briefly, then sleeps. Signals don't end it.
 * @threads safe
 * @see PtlCTGet, PtlCTWait, PtlAbort
 */
int PtlCTPoll(const ptl_handle_ct_t *ct_handles,
              const ptl_size_t *tests,
              unsigned int size,
              ptl_time_t timeout,
              ptl_ct_event_t *event,
              unsigned int *which);

/**
 * Sets a counter
 *
 * Both fields change at once as other changes see it. Triggered operations whose threshold the new
 * value reaches are carried out.
 *
 * @param[in] ct_handle  the counter
 * @param[in] new_ct     its new value
 * @return PTL_OK           set
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter
 * @blocks never
 * @threads safe
 * @see PtlCTInc, PtlTriggeredCTSet
 */
int PtlCTSet(ptl_handle_ct_t ct_handle,
             ptl_ct_event_t new_ct);

/**
 * Adds to a counter
 *
 * No other change is lost. Triggered operations whose threshold the new value reaches are carried
 * out.
 *
 * @param[in] ct_handle  the counter
 * @param[in] increment  what to add; one of its fields is 0
 * @return PTL_OK           added
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ct_handle` isn't a counter, or neither field is 0
 * @blocks never
 * @threads safe
 * @see PtlCTSet, PtlTriggeredCTInc
 */
int PtlCTInc(ptl_handle_ct_t ct_handle,
             ptl_ct_event_t increment);

/* --- Data movement ------------------------------------------------------------------------- */

#define PTL_NO_ACK_REQ 0 /**< No acknowledgement. */
#define PTL_ACK_REQ    1 /**< A full one: an event with `mlength` and offset, and counting. */
#define PTL_CT_ACK_REQ 2 /**< One that counts, with `mlength`, and makes no event of success. */
#define PTL_OC_ACK_REQ 3 /**< One that counts that the operation is complete, without `mlength`. */

/**
 * Writes to another process
 *
 * The message looks through the lists of the target's portal table entry and is written where the
 * entry found says. The descriptor's queue gets PTL_EVENT_SEND when the local memory may be used
 * again, and PTL_EVENT_ACK if a full acknowledgement was asked for; they come in either order.
 * The target gets PTL_EVENT_PUT. Messages of one process to one portal table entry of another
 * match in the order of their calls, unless PTL_MD_UNORDERED is set. The target may be the process
 * itself.
 *
 * The local memory is lent to the library from the call until PTL_EVENT_SEND (or its counting)
 * and must not be changed meanwhile, unless PTL_MD_VOLATILE is set and honoured.
 *
 * @param[in] md_handle      the descriptor of the local memory
 * @param[in] local_offset   where the data begins in it
 * @param[in] length         the bytes to write
 * @param[in] ack_req        PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ or PTL_OC_ACK_REQ
 * @param[in] target_id      the target, named as the interface names processes
 * @param[in] pt_index       its portal table entry
 * @param[in] match_bits     what its match entry is to match; 0 without matching
 * @param[in] remote_offset  where to write in the entry, unless that manages its own offset
 * @param[in] user_ptr       anything; it comes back in the local events
 * @param[in] hdr_data       anything; the target's event has it
 * @return PTL_OK           started. Events and counters report completion: a target that has ended
 *                          is PTL_NI_UNDELIVERABLE there.
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `md_handle` isn't a descriptor; offset and length leave its region;
 *                          `length` is above `max_msg_size`; `ack_req` is unknown, is PTL_ACK_REQ
 *                          although the descriptor has no queue or is PTL_MD_UNRELIABLE, or is
 *                          PTL_CT_ACK_REQ although it has no counter; or `target_id` is no process
 *                          but a wildcard, or a rank outside of the map
 * @return PTL_NO_SPACE     there is no memory to begin it
 * @blocks while 8 MiB of short messages wait for the target, or 65,535 operations for answers; what
 *         else the network can't take at once is kept
 * @threads safe; calls of several threads have no order among them
 * @see PtlTriggeredPut, PtlGet, PtlAtomic, PtlMEAppend
 */
int PtlPut(ptl_handle_md_t md_handle,
           ptl_size_t local_offset,
           ptl_size_t length,
           ptl_ack_req_t ack_req,
           ptl_process_t target_id,
           ptl_pt_index_t pt_index,
           ptl_match_bits_t match_bits,
           ptl_size_t remote_offset,
           void *user_ptr,
           ptl_hdr_data_t hdr_data);

/**
 * Reads from another process
 *
 * The request looks through the lists of the target's portal table entry; the data of the entry
 * found is written to the local memory. The descriptor's queue gets PTL_EVENT_REPLY then, with the
 * bytes read in `mlength`. The target gets PTL_EVENT_GET. The target may be the process itself.
 *
 * The local memory is lent to the library until PTL_EVENT_REPLY (or its counting).
 *
 * @param[in] md_handle      the descriptor of the local memory
 * @param[in] local_offset   where to write in it
 * @param[in] length         the bytes to read
 * @param[in] target_id      the target, named as the interface names processes
 * @param[in] pt_index       its portal table entry
 * @param[in] match_bits     what its match entry is to match; 0 without matching
 * @param[in] remote_offset  where to read in the entry, unless that manages its own offset
 * @param[in] user_ptr       anything; it comes back in the local event
 * @return PTL_OK           started. Event and counter report completion.
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `md_handle` isn't a descriptor, offset and length leave its region,
 *                          `length` is above `max_msg_size`, or `target_id` is no process
 * @return PTL_NO_SPACE     there is no memory to begin it
 * @blocks while 8 MiB of short messages wait for the target, or 65,535 operations for answers; what
 *         else the network can't take at once is kept
 * @threads safe
 * @see PtlTriggeredGet, PtlPut
 */
int PtlGet(ptl_handle_md_t md_handle,
           ptl_size_t local_offset,
           ptl_size_t length,
           ptl_process_t target_id,
           ptl_pt_index_t pt_index,
           ptl_match_bits_t match_bits,
           ptl_size_t remote_offset,
           void *user_ptr);

/* PtlAtomic and PtlFetchAtomic take the first ten operations, PtlSwap the others. */
#define PTL_MIN       0 /**< The smaller one. Not of complex types. */
#define PTL_MAX       1 /**< The larger one. Not of complex types. */
#define PTL_SUM       2 /**< The sum. Of all types. */
#define PTL_PROD      3 /**< The product. Of all types. */
#define PTL_LOR       4 /**< Logical or. Of integers. */
#define PTL_LAND      5 /**< Logical and. Of integers. */
#define PTL_BOR       6 /**< Bitwise or. Of integers. */
#define PTL_BAND      7 /**< Bitwise and. Of integers. */
#define PTL_LXOR      8 /**< Logical exclusive or. Of integers. */
#define PTL_BXOR      9 /**< Bitwise exclusive or. Of integers. */
#define PTL_SWAP     10 /**< Write the new value. Of all types, any number of items. */
#define PTL_CSWAP    11 /**< Write it if the operand equals the target's value. Of all types. */
#define PTL_CSWAP_NE 12 /**< Write it if the operand differs from it. Of all types. */
#define PTL_CSWAP_LE 13 /**< Write it if the operand is at most it. Not of complex types. */
#define PTL_CSWAP_LT 14 /**< Write it if the operand is less. Not of complex types. */
#define PTL_CSWAP_GE 15 /**< Write it if the operand is at least it. Not of complex types. */
#define PTL_CSWAP_GT 16 /**< Write it if the operand is more. Not of complex types. */
#define PTL_MSWAP    17 /**< Write those bits that are one in the operand. Of integers. */
#define PTL_OP_LAST  18 /**< The number of operations. */

#define PTL_INT8_T              0 /**< int8_t. */
#define PTL_UINT8_T             1 /**< uint8_t. */
#define PTL_INT16_T             2 /**< int16_t. */
#define PTL_UINT16_T            3 /**< uint16_t. */
#define PTL_INT32_T             4 /**< int32_t. */
#define PTL_UINT32_T            5 /**< uint32_t. */
#define PTL_FLOAT               6 /**< float. */
#define PTL_INT64_T             7 /**< int64_t. */
#define PTL_UINT64_T            8 /**< uint64_t. */
#define PTL_DOUBLE              9 /**< double. */
#define PTL_FLOAT_COMPLEX      10 /**< float _Complex. */
#define PTL_DOUBLE_COMPLEX     11 /**< double _Complex. */
#define PTL_LONG_DOUBLE        12 /**< long double. */
#define PTL_LONG_DOUBLE_COMPLEX 13 /**< long double _Complex. */
#define PTL_DATATYPE_LAST      14 /**< The number of datatypes. */

/**
 * Combines data with that of another process, item by item
 *
 * As PtlPut, but at the target each item becomes the result of `operation` on what is there and
 * what was sent. No other Portals atomic comes between; the processor's own accesses may, until
 * PtlAtomicSync. The target gets PTL_EVENT_ATOMIC.
 *
 * @param[in] md_handle      the descriptor of the local memory
 * @param[in] local_offset   where the data begins in it
 * @param[in] length         its bytes
 * @param[in] ack_req        PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ or PTL_OC_ACK_REQ
 * @param[in] target_id      the target, named as the interface names processes
 * @param[in] pt_index       its portal table entry
 * @param[in] match_bits     what its match entry is to match; 0 without matching
 * @param[in] remote_offset  where in the entry, unless that manages its own offset. What results
 *                           is to be aligned to the datatype.
 * @param[in] user_ptr       anything; it comes back in the local events
 * @param[in] hdr_data       anything; the target's event has it
 * @param[in] operation      PTL_MIN to PTL_BXOR
 * @param[in] datatype       PTL_INT8_T and so on
 * @return PTL_OK           started. Events and counters report completion.
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlPut; or `length` is above `max_atomic_size` or no whole number of
 *                          items, `operation` or `datatype` is unknown, or the operation isn't
 *                          defined on that type
 * @return PTL_NO_SPACE     there is no memory to begin it
 * @blocks while 8 MiB of short messages wait for the target, or 65,535 operations for answers; what
 *         else the network can't take at once is kept
 * @threads safe
 * @see PtlFetchAtomic, PtlSwap, PtlTriggeredAtomic, PtlAtomicSync
 */
int PtlAtomic(ptl_handle_md_t md_handle,
              ptl_size_t local_offset,
              ptl_size_t length,
              ptl_ack_req_t ack_req,
              ptl_process_t target_id,
              ptl_pt_index_t pt_index,
              ptl_match_bits_t match_bits,
              ptl_size_t remote_offset,
              void *user_ptr,
              ptl_hdr_data_t hdr_data,
              ptl_op_t operation,
              ptl_datatype_t datatype);

/**
 * Combines data with that of another process and brings the former value back
 *
 * As PtlAtomic, and what the target's memory held before is written to the memory of
 * `get_md_handle`, whose queue gets PTL_EVENT_REPLY. The queue of `put_md_handle` gets
 * PTL_EVENT_SEND. If both are one descriptor, it gets the PTL_EVENT_REPLY and counts one
 * operation. There are no acknowledgements. The target gets PTL_EVENT_FETCH_ATOMIC; its entry
 * must allow puts and gets.
 *
 * @param[in] get_md_handle     the descriptor of the memory for the former value
 * @param[in] local_get_offset  where to write in it
 * @param[in] put_md_handle     the descriptor of the memory with the data
 * @param[in] local_put_offset  where the data begins in it. The two must not overlap.
 * @param[in] length            the bytes of the data, and of the former value
 * @param[in] target_id         the target, named as the interface names processes
 * @param[in] pt_index          its portal table entry
 * @param[in] match_bits        what its match entry is to match; 0 without matching
 * @param[in] remote_offset     where in the entry, unless that manages its own offset. What
 *                              results is to be aligned to the datatype.
 * @param[in] user_ptr          anything; it comes back in the local events
 * @param[in] hdr_data          anything; the target's event has it
 * @param[in] operation         PTL_MIN to PTL_BXOR
 * @param[in] datatype          PTL_INT8_T and so on
 * @return PTL_OK           started. Events and counters report completion.
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  one of the handles isn't a descriptor, they are of different interfaces,
 *                          an offset and length leave a region, `length` is above
 *                          `max_fetch_atomic_size` or no whole number of items, `target_id` is no
 *                          process, `operation` or `datatype` is unknown, or the operation isn't
 *                          defined on that type
 * @return PTL_NO_SPACE     there is no memory to begin it
 * @blocks while 8 MiB of short messages wait for the target, or 65,535 operations for answers; what
 *         else the network can't take at once is kept
 * @threads safe
 * @see PtlAtomic, PtlSwap, PtlTriggeredFetchAtomic
 */
int PtlFetchAtomic(ptl_handle_md_t get_md_handle,
                   ptl_size_t local_get_offset,
                   ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset,
                   ptl_size_t length,
                   ptl_process_t target_id,
                   ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset,
                   void *user_ptr,
                   ptl_hdr_data_t hdr_data,
                   ptl_op_t operation,
                   ptl_datatype_t datatype);

/**
 * Exchanges data with another process, on a condition or under a mask
 *
 * As PtlFetchAtomic, with the operations PTL_SWAP to PTL_MSWAP. The former value always comes
 * back, also when the condition didn't hold.
 *
 * @param[in] get_md_handle     the descriptor of the memory for the former value
 * @param[in] local_get_offset  where to write in it
 * @param[in] put_md_handle     the descriptor of the memory with the new value
 * @param[in] local_put_offset  where that begins in it. The two must not overlap.
 * @param[in] length            the bytes of the new value, and of the former
 * @param[in] target_id         the target, named as the interface names processes
 * @param[in] pt_index          its portal table entry
 * @param[in] match_bits        what its match entry is to match; 0 without matching
 * @param[in] remote_offset     where in the entry, unless that manages its own offset. What
 *                              results is to be aligned to the datatype.
 * @param[in] user_ptr          anything; it comes back in the local events
 * @param[in] hdr_data          anything; the target's event has it
 * @param[in] operand           what is compared, or the mask: one item, read before the call
 *                              returns. Not looked at for PTL_SWAP, and may be NULL there.
 * @param[in] operation         PTL_SWAP to PTL_MSWAP
 * @param[in] datatype          PTL_INT8_T and so on
 * @return PTL_OK           started. Events and counters report completion.
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlFetchAtomic; or `operand` is NULL and needed, or `length` is more
 *                          than one item and the operation isn't PTL_SWAP
 * @return PTL_NO_SPACE     there is no memory to begin it
 * @blocks while 8 MiB of short messages wait for the target, or 65,535 operations for answers; what
 *         else the network can't take at once is kept
 * @threads safe
 * @see PtlFetchAtomic, PtlTriggeredSwap
 */
int PtlSwap(ptl_handle_md_t get_md_handle,
            ptl_size_t local_get_offset,
            ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset,
            ptl_size_t length,
            ptl_process_t target_id,
            ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits,
            ptl_size_t remote_offset,
            void *user_ptr,
            ptl_hdr_data_t hdr_data,
            const void *operand,
            ptl_op_t operation,
            ptl_datatype_t datatype);

/**
 * Waits until the process may touch the targets of atomics itself
 *
 * Called at the target. When it returns, atomics begun before the call have finished with the
 * process's memory, and what they wrote is visible to the calling thread.
 *
 * @return PTL_OK       they have finished
 * @return PTL_NO_INIT  the library isn't initialized
 * @blocks until then, which is short
 * @threads safe
 * @see PtlAtomic
 */
int PtlAtomicSync(void);

/* --- Triggered operations ------------------------------------------------------------------ */

/**
 * Writes to another process once a counter reaches a threshold
 *
 * When the sum of the counter's successes and failures is `threshold` or more, the operation
 * begins as by PtlPut; nobody needs to make a call. If that is so already, it begins now.
 * Operations waiting for one counter begin in the order of their thresholds; those of one
 * threshold in the order of their calls. Each begins once.
 *
 * The arguments are checked now. The memory must be as it is to be sent when the operation begins,
 * and the descriptor must live until then: if it is gone, the operation is dropped silently.
 *
 * @param[in] md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits,
 *            remote_offset, user_ptr, hdr_data  as of PtlPut
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           begun or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlPut; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting, or there is no memory to begin it
 * @blocks never
 * @threads safe
 * @see PtlPut, PtlCTCancelTriggered, PtlTriggeredCTInc
 */
int PtlTriggeredPut(ptl_handle_md_t md_handle,
                    ptl_size_t local_offset,
                    ptl_size_t length,
                    ptl_ack_req_t ack_req,
                    ptl_process_t target_id,
                    ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset,
                    void *user_ptr,
                    ptl_hdr_data_t hdr_data,
                    ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold);

/**
 * Reads from another process once a counter reaches a threshold
 *
 * PtlGet, started as described for PtlTriggeredPut.
 *
 * @param[in] md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset,
 *            user_ptr  as of PtlGet
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           begun or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlGet; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting, or there is no memory to begin it
 * @blocks never
 * @threads safe
 * @see PtlGet, PtlTriggeredPut, PtlCTCancelTriggered
 */
int PtlTriggeredGet(ptl_handle_md_t md_handle,
                    ptl_size_t local_offset,
                    ptl_size_t length,
                    ptl_process_t target_id,
                    ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset,
                    void *user_ptr,
                    ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold);

/**
 * Combines data with that of another process once a counter reaches a threshold
 *
 * PtlAtomic, started as described for PtlTriggeredPut.
 *
 * @param[in] md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits,
 *            remote_offset, user_ptr, hdr_data, operation, datatype  as of PtlAtomic
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           begun or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlAtomic; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting, or there is no memory to begin it
 * @blocks never
 * @threads safe
 * @see PtlAtomic, PtlTriggeredPut, PtlCTCancelTriggered
 */
int PtlTriggeredAtomic(ptl_handle_md_t md_handle,
                       ptl_size_t local_offset,
                       ptl_size_t length,
                       ptl_ack_req_t ack_req,
                       ptl_process_t target_id,
                       ptl_pt_index_t pt_index,
                       ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset,
                       void *user_ptr,
                       ptl_hdr_data_t hdr_data,
                       ptl_op_t operation,
                       ptl_datatype_t datatype,
                       ptl_handle_ct_t trig_ct_handle,
                       ptl_size_t threshold);

/**
 * Combines data with that of another process, and fetches, once a counter reaches a threshold
 *
 * PtlFetchAtomic, started as described for PtlTriggeredPut.
 *
 * @param[in] get_md_handle, local_get_offset, put_md_handle, local_put_offset, length, target_id,
 *            pt_index, match_bits, remote_offset, user_ptr, hdr_data, operation,
 *            datatype  as of PtlFetchAtomic
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           begun or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlFetchAtomic; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting, or there is no memory to begin it
 * @blocks never
 * @threads safe
 * @see PtlFetchAtomic, PtlTriggeredPut, PtlCTCancelTriggered
 */
int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle,
                            ptl_size_t local_get_offset,
                            ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset,
                            ptl_size_t length,
                            ptl_process_t target_id,
                            ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset,
                            void *user_ptr,
                            ptl_hdr_data_t hdr_data,
                            ptl_op_t operation,
                            ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle,
                            ptl_size_t threshold);

/**
 * Exchanges data with another process once a counter reaches a threshold
 *
 * PtlSwap, started as described for PtlTriggeredPut. The operand is read now.
 *
 * @param[in] get_md_handle, local_get_offset, put_md_handle, local_put_offset, length, target_id,
 *            pt_index, match_bits, remote_offset, user_ptr, hdr_data, operand, operation,
 *            datatype  as of PtlSwap
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           begun or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlSwap; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting, or there is no memory to begin it
 * @blocks never
 * @threads safe
 * @see PtlSwap, PtlTriggeredPut, PtlCTCancelTriggered
 */
int PtlTriggeredSwap(ptl_handle_md_t get_md_handle,
                     ptl_size_t local_get_offset,
                     ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset,
                     ptl_size_t length,
                     ptl_process_t target_id,
                     ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits,
                     ptl_size_t remote_offset,
                     void *user_ptr,
                     ptl_hdr_data_t hdr_data,
                     const void *operand,
                     ptl_op_t operation,
                     ptl_datatype_t datatype,
                     ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold);

/**
 * Adds to a counter once another reaches a threshold
 *
 * PtlCTInc, done as described for PtlTriggeredPut. Chains of these order operations: what waits
 * for the second counter comes after what the first one triggered before. A counter may trigger a
 * change of itself.
 *
 * @param[in] ct_handle       the counter to add to
 * @param[in] increment       what to add; one of its fields is 0
 * @param[in] trig_ct_handle  the counter waited for, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           done or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  one of the handles isn't a counter, they are of different interfaces, or
 *                          neither field of `increment` is 0
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting
 * @blocks never
 * @threads safe
 * @see PtlCTInc, PtlTriggeredCTSet, PtlCTCancelTriggered
 */
int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle,
                      ptl_ct_event_t increment,
                      ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);

/**
 * Sets a counter once another reaches a threshold
 *
 * PtlCTSet, done as described for PtlTriggeredPut. So an algorithm built of triggered operations
 * can put its counters back for its next round.
 *
 * @param[in] ct_handle       the counter to set
 * @param[in] new_ct          its new value
 * @param[in] trig_ct_handle  the counter waited for, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           done or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  one of the handles isn't a counter, or they are of different interfaces
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting
 * @blocks never
 * @threads safe
 * @see PtlCTSet, PtlTriggeredCTInc, PtlCTCancelTriggered
 */
int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle,
                      ptl_ct_event_t new_ct,
                      ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);

/**
 * Appends a match list entry once a counter reaches a threshold
 *
 * PtlMEAppend, done as described for PtlTriggeredPut. The structure, and an array of PTL_IOVEC,
 * are copied now. The memory is lent from now on.
 *
 * @param[in] ni_handle, pt_index, me, ptl_list, user_ptr  as of PtlMEAppend
 * @param[out] me_handle      the entry. PtlMEUnlink of it, before it is appended, cancels it.
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           done or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  as PtlMEAppend; or `trig_ct_handle` isn't a counter of that interface
 * @return PTL_NO_SPACE     as PtlMEAppend; or `max_triggered_ops` are waiting
 * @blocks never
 * @threads safe
 * @note This function isn't of the specification; the reference implementation has it.
 * @see PtlMEAppend, PtlTriggeredMEUnlink, PtlCTCancelTriggered
 */
int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle,
                         ptl_pt_index_t pt_index,
                         const ptl_me_t *me,
                         ptl_list_t ptl_list,
                         void *user_ptr,
                         ptl_handle_me_t *me_handle,
                         ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold);

/**
 * Unlinks a match list entry once a counter reaches a threshold
 *
 * PtlMEUnlink, done as described for PtlTriggeredPut. If the entry is in use at that time, or
 * gone, nothing happens.
 *
 * @param[in] me_handle       the entry
 * @param[in] trig_ct_handle  the counter, of the same interface
 * @param[in] threshold       its value
 * @return PTL_OK           done or waiting
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `me_handle` isn't an entry, or `trig_ct_handle` isn't a counter of its
 *                          interface
 * @return PTL_NO_SPACE     `max_triggered_ops` are waiting
 * @blocks never
 * @threads safe
 * @note This function isn't of the specification; the reference implementation has it.
 * @see PtlMEUnlink, PtlTriggeredMEAppend, PtlCTCancelTriggered
 */
int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle,
                         ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold);

/* --- Deferred communication ---------------------------------------------------------------- */

/**
 * Announces a group of operations
 *
 * Operations of the interface may wait for PtlEndBundle from now on, and be sent together. Bundles
 * nest: calls are counted.
 *
 * @param[in] ni_handle  the interface
 * @return PTL_OK           begun
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface
 * @blocks never
 * @threads safe; a bundle is of the interface, not of the thread
 * @see PtlEndBundle
 */
int PtlStartBundle(ptl_handle_ni_t ni_handle);

/**
 * Ends a group of operations
 *
 * Operations that waited are begun, also if an outer bundle is still open.
 *
 * @param[in] ni_handle  the interface
 * @return PTL_OK           ended
 * @return PTL_NO_INIT      the library isn't initialized
 * @return PTL_ARG_INVALID  `ni_handle` isn't an open interface
 * @blocks never
 * @threads safe
 * @see PtlStartBundle
 */
int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* --- Operations on handles ----------------------------------------------------------------- */

/**
 * Returns whether two handles name the same object
 *
 * It works without PtlInit, and on handles that aren't valid.
 *
 * @param[in] handle1  a handle
 * @param[in] handle2  another
 * @return 1  they name the same object
 * @return 0  they don't
 * @blocks never
 * @threads safe
 * @see PtlNIHandle
 */
int PtlHandleIsEqual(ptl_handle_any_t handle1,
                     ptl_handle_any_t handle2);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_H */
