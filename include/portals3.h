/*
 * portals3.h - the Portals 3.3 programming interface, as Lintel carries it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Source compatible with the 3.3 reference implementation: same names, values, sizes and layouts.
 * Sections are those of "The Portals 3.3 Message Passing Interface". Names that only programs for
 * Cray's implementation use are marked "Cray"; calls that no section has are marked "extension".
 *
 * The comments follow the grammar that portals4.h explains. A program includes this header or
 * portals4.h, not both; a process can use both libraries, from different files.
 *
 * For every function, and not repeated there: PTL_NO_INIT before PtlInit; PTL_SEGV if an argument
 * is NULL that may not be; PTL_NI_INVALID, PTL_ME_INVALID, PTL_MD_INVALID and PTL_EQ_INVALID for a
 * handle that isn't live or is of another kind. If a call fails, it has changed nothing, and output
 * arguments are written on success only (PTL_EQ_DROPPED counts as success). Calls are atomic
 * towards each other, from any thread, and only PtlEQWait and PtlEQPoll wait. Memory that a
 * descriptor names is borrowed until the descriptor is unlinked.
 */

#ifndef PORTALS3_H
#define PORTALS3_H

#ifdef PORTALS4_H
#error "portals3.h and portals4.h declare the same names: include one of them"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Base types (3.2) ---------------------------------------------------------------------- */

typedef uint64_t ptl_size_t;       /**< A length, offset or count, in bytes unless said. */
typedef uint64_t ptl_match_bits_t; /**< The tag by which a message finds its match entry. */
typedef uint64_t ptl_hdr_data_t;   /**< Eight bytes of the user's that travel in the header. */
typedef uint64_t ptl_sr_value_t;   /**< The value of a status register. */
typedef uint32_t ptl_pt_index_t;   /**< An index of the portal table. */
typedef uint32_t ptl_ac_index_t;   /**< An index of the access control table. */
typedef uint32_t ptl_interface_t;  /**< The number of an interface, which chooses the dialect. */
typedef uint32_t ptl_nid_t;        /**< A node. */
typedef uint32_t ptl_pid_t;        /**< A process of a node. */
typedef uint32_t ptl_uid_t;        /**< A user. */
typedef uint32_t ptl_jid_t;        /**< A job. */
typedef uint32_t ptl_sr_index_t;   /**< A status register: PTL_SR_DROP_COUNT and others. */
typedef uint32_t ptl_ni_fail_t;    /**< How an operation ended: PTL_NI_OK and others. */
typedef uint32_t ptl_seq_t;        /**< The number of an event in its queue. */
typedef uint32_t ptl_time_t;       /**< A duration in milliseconds. */

typedef uint32_t ptl_handle_any_t;        /**< A handle of any object. */
typedef ptl_handle_any_t ptl_handle_ni_t; /**< A handle of a network interface. */
typedef ptl_handle_any_t ptl_handle_me_t; /**< A handle of a match entry. */
typedef ptl_handle_any_t ptl_handle_md_t; /**< A handle of a memory descriptor. */
typedef ptl_handle_any_t ptl_handle_eq_t; /**< A handle of an event queue. */

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff) /**< Never the handle of an object. */
#define PTL_HANDLE_NONE    ((ptl_handle_any_t)0x7fffffff) /**< No object (extension). */
#define PTL_EQ_NONE        ((ptl_handle_eq_t)0xbfffffff)  /**< No event queue. */
#define PTL_NID_ANY        ((ptl_nid_t)0xffffffff)        /**< Any node. */
#define PTL_PID_ANY        ((ptl_pid_t)0xffffffff)        /**< Any process. In PtlNIInit: let the
                                                           * library choose. */
#define PTL_UID_ANY        ((ptl_uid_t)0xffffffff)        /**< Any user. */
#define PTL_JID_ANY        ((ptl_jid_t)0xffffffff)        /**< Any job. */
#define PTL_PT_INDEX_ANY   ((ptl_pt_index_t)0xffffffff)   /**< In PtlACEntry: each index. */
#define PTL_TIME_FOREVER   ((ptl_time_t)0xffffffff)       /**< A timeout that never ends. */
#define PTL_MD_THRESH_INF  (-1)                           /**< A threshold that isn't counted. */
#define PTL_MAX_TRANS_SZ   ((ptl_size_t)0xffffffffffff)   /**< Bytes of the longest message
                                                           * (Cray). */

/**
 * Names a process (3.2.6)
 */
typedef struct {
    ptl_nid_t nid; /**< The node. */
    ptl_pid_t pid; /**< The process on that node. */
} ptl_process_id_t;

/* --- Interfaces by number (3.2.5) ---------------------------------------------------------- */

#define PTL_NALTYPE_NONE  0U           /**< No interface. */
#define PTL_NALTYPE_UTCP  0xf0f0f000U  /**< The first interface of the reference. */
#define PTL_NALTYPE_UTCP0 0xf0f0f000U  /**< The same. */
#define PTL_NALTYPE_UTCP1 0xf0f0f001U  /**< The reference's second. */
#define PTL_NALTYPE_UTCP2 0xf0f0f002U  /**< The reference's third. */
#define PTL_NALTYPE_UTCP3 0xf0f0f003U  /**< The reference's fourth. */
#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0xf0f0f000U  /**< The interface that speaks the specification. */
#endif

#define PTL_IFACE_SS       0x1U /**< SeaStar (Cray): this dialect's rules hold for unlinking and
                                 * gets. */
#define PTL_IFACE_SS_ACCEL 0x2U /**< SeaStar, accelerated (Cray); the same here. */
#define PTL_BRIDGE_UK      0x1U /**< A program of Linux (Cray). */
#define PTL_BRIDGE_QK      0x2U /**< A program of Catamount (Cray). */
/** The interface's number (Cray). */
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) (((ptl_interface_t)(bridge) << 16) | (nal))
/** What PTL_IFACE_SS and others are, given the interface's number (Cray). */
#define NALID_FROM_IFACE(iface) ((ptl_interface_t)(iface) & 0xffffU)
#define CRAY_USER_NAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS) /**< Cray. */
#define CRAY_KERN_NAL IFACE_FROM_BRIDGE_AND_NALID(0, PTL_IFACE_SS)             /**< Cray. */
#define CRAY_QK_NAL   IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS) /**< Cray. */
#define CRAY_UK_SSNAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS) /**< Cray. */
#define CRAY_ACCEL    IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS_ACCEL) /**< Cray. */

/* --- Return codes -------------------------------------------------------------------------- */

/**
 * What a function returns
 */
typedef enum {
    PTL_OK = 0,                 /**< Done. */
    PTL_AC_INDEX_INVALID = 1,   /**< There is no such entry of the access control table. */
    PTL_EQ_DROPPED = 2,         /**< An event was returned, and some before it were lost. */
    PTL_EQ_EMPTY = 3,           /**< No event is there. */
    PTL_EQ_INVALID = 4,         /**< No event queue, or of another interface. */
    PTL_FAIL = 5,               /**< Something failed outside the library. */
    PTL_HANDLE_INVALID = 6,     /**< The handle names nothing. */
    PTL_IFACE_INVALID = 7,      /**< There is no such interface. */
    PTL_MD_ILLEGAL = 8,         /**< The descriptor's members contradict the rules. */
    PTL_MD_INVALID = 9,         /**< No memory descriptor, or one that is inactive. */
    PTL_MD_IN_USE = 10,         /**< Operations still use the descriptor. */
    PTL_MD_NO_UPDATE = 11,      /**< The queue isn't empty, or the descriptor is in use. */
    PTL_ME_INVALID = 12,        /**< No match entry. */
    PTL_ME_IN_USE = 13,         /**< The entry has a descriptor, or operations use it. */
    PTL_ME_LIST_TOO_LONG = 14,  /**< The match list has reached its limit. */
    PTL_NI_INVALID = 15,        /**< No interface. */
    PTL_NO_INIT = 16,           /**< The library isn't initialized. */
    PTL_NO_SPACE = 17,          /**< A limit of the interface, or of memory, is reached. */
    PTL_PID_INVALID = 18,       /**< The process can't have this pid. */
    PTL_PROCESS_INVALID = 19,   /**< No process can have this name. */
    PTL_PT_FULL = 20,           /**< Each index of the portal table is used. */
    PTL_PT_INDEX_INVALID = 21,  /**< There is no such index of the portal table. */
    PTL_SEGV = 22,              /**< An argument is NULL, or memory can't be accessed. */
    PTL_SR_INDEX_INVALID = 23,  /**< There is no such status register. */
    PTL_UNKNOWN_ERROR = 24,     /**< Never returned. */
    PTL_IFACE_DUP = 25,         /**< Never returned: PtlNIInit counts (Cray). */
    PTL_EQ_IN_USE = 26,         /**< Never returned (Cray). */
    PTL_VAL_FAILED = 27,        /**< Never returned (Cray). */
    PTL_NAL_FAILED = 28,        /**< Never returned (Cray). */
    PTL_PID_IN_USE = 29,        /**< Never returned (Cray). */
    PTL_INV_EQ_SIZE = 30,       /**< Never returned (Cray). */
    PTL_AGAIN = 31,             /**< Never returned (Cray). */
    PTL_NOT_IMPLEMENTED = 32,   /**< Never returned (Cray). */
    PTL_IOV_INVALID = 33,       /**< Never returned (Cray). */
    PTL_MAX_ERRNO = 34          /**< The number of codes. */
} ptl_err_t;

#define PTL_NI_OK   0 /**< The operation has succeeded. */
#define PTL_NI_FAIL 1 /**< The operation has failed: the peer has ended or can't be reached. */

/** The names of the return codes, by value (extension). */
extern const char *ptl_err_str[];
/* ptl_event_str has those of the kinds of events. Programs declare it, as `const char *` or `char *`. */

/* --- Initialization and cleanup (3.4) ------------------------------------------------------ */

/**
 * Starts the library
 *
 * Calls are counted.
 *
 * @param[out] max_interfaces  how many interfaces a process can open; may be NULL
 * @return PTL_OK    the library is ready
 * @return PTL_FAIL  an environment variable has a value that isn't understood; a line on standard
 *                   error says which
 * @blocks never
 * @threads safe
 * @see PtlFini, PtlNIInit
 */
int PtlInit(int *max_interfaces);

/**
 * Ends the library's use
 *
 * The call that answers the first PtlInit closes interfaces that are still open. In the child of a
 * fork it gives up what the parent had, which stays the parent's, and the child can begin anew.
 *
 * @blocks as PtlNIFini, if an interface is open
 * @threads safe
 */
void PtlFini(void);

/* --- Network interfaces (3.5) -------------------------------------------------------------- */

/**
 * The limits of an interface (3.5.1)
 *
 * A program passes what it would like and gets what it has: wishes are clamped, never refused.
 */
typedef struct {
    int max_mes;       /**< Match entries. */
    int max_mds;       /**< Memory descriptors. */
    int max_eqs;       /**< Event queues. */
    int max_ac_index;  /**< The largest index of the access control table. */
    int max_pt_index;  /**< The largest index of the portal table. */
    int max_md_iovecs; /**< Elements of one PTL_MD_IOVEC array. */
    int max_me_list;   /**< Entries of one match list. */
    int max_getput_md; /**< Bytes of one PtlGetPut. */
} ptl_ni_limits_t;

#define PTL_SR_DROP_COUNT   0U  /**< Messages dropped. */
#define PTL_SR_DROP_LENGTH  1U  /**< Bytes of the messages dropped (extension, as all below). */
#define PTL_SR_RECV_COUNT   2U  /**< Requests that an entry has taken. */
#define PTL_SR_RECV_LENGTH  3U  /**< Their bytes. */
#define PTL_SR_SEND_COUNT   4U  /**< Operations started. */
#define PTL_SR_SEND_LENGTH  5U  /**< Their bytes. */
#define PTL_SR_PTLS_MAX     6U  /**< Indexes of the portal table. */
#define PTL_SR_PTLS_CUR     7U  /**< Those in use. */
#define PTL_SR_MSGS_ALLOC   8U  /**< Messages ever under way here. */
#define PTL_SR_MSGS_FREED   9U  /**< Those that have ended. */
#define PTL_SR_MSGS_MAX     10U /**< The most at one time. */
#define PTL_SR_MSGS_CUR     11U /**< Those under way now. */
#define PTL_SR_MES_ALLOC    12U /**< Match entries ever. */
#define PTL_SR_MES_FREED    13U /**< Those that are gone. */
#define PTL_SR_MES_MAX      14U /**< The most at one time. */
#define PTL_SR_MES_CUR      15U /**< Match entries in use. */
#define PTL_SR_MDS_ALLOC    16U /**< Memory descriptors ever. */
#define PTL_SR_MDS_FREED    17U /**< Those that are gone. */
#define PTL_SR_MDS_MAX      18U /**< The most at one time. */
#define PTL_SR_MDS_CUR      19U /**< Memory descriptors in use. */
#define PTL_SR_EQS_ALLOC    20U /**< Event queues ever. */
#define PTL_SR_EQS_FREED    21U /**< Those that are gone. */
#define PTL_SR_EQS_MAX      22U /**< The most at one time. */
#define PTL_SR_EQS_CUR      23U /**< Event queues in use. */
#define PTL_SR_MD_ALIGN_128 24U /**< Not kept here. */
#define PTL_SR_MD_ALIGN_64  25U /**< Not kept here. */
#define PTL_SR_MD_ALIGN_32  26U /**< Not kept here. */
#define PTL_SR_MD_ALIGN_16  27U /**< Not kept here. */
#define PTL_SR_MD_ALIGN_8   28U /**< Not kept here. */
#define PTL_SR_NAL_REGS_START 29U /**< One past the last register here. */
#define PTL_SR_MLIST_LEN(pt) ((ptl_sr_index_t)(pt) << 16 | PTL_SR_MES_CUR | 1U << 31) /**< The length
                                 * of a match list, by its index. */
#define PTL_SR_MLIST_MAX(pt) ((ptl_sr_index_t)(pt) << 16 | PTL_SR_MES_MAX | 1U << 31) /**< The greatest
                                 * length of a match list so far, by its index. */

/**
 * Opens a network interface
 *
 * Opening the interface again gives the same handle and the limits it has, and counts: each call is
 * answered by a PtlNIFini. The number chooses between two rules in which programs differ. With
 * PTL_IFACE_DEFAULT and the reference's numbers those of the specification hold. With Cray's
 * numbers a descriptor reports its unlinking only with PTL_MD_EVENT_AUTO_UNLINK_ENABLE, and a get
 * lowers the initiator's threshold at its start and at its reply, and reports SEND events.
 * The environment variable PTL_DIALECT (`specification`, `cray`) decides for all numbers.
 *
 * @param[in] iface    the number
 * @param[in] pid      the pid wanted, or PTL_PID_ANY
 * @param[in] desired  the limits wanted, or NULL for the defaults
 * @param[out] actual  the limits in force; may be NULL
 * @param[out] ni      the interface
 * @return PTL_OK             open
 * @return PTL_IFACE_INVALID  there is no such interface, or another one is open
 * @return PTL_PID_INVALID    the process can't have `pid`: another has it, or this one has another
 * @return PTL_NO_SPACE       a limit of the system is reached; a line on standard error says which
 * @return PTL_FAIL           the network can't be opened; a line on standard error says why
 * @blocks never
 * @threads safe
 * @see PtlNIFini, PtlGetId
 */
int PtlNIInit(ptl_interface_t iface,
              ptl_pid_t pid,
              ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni);

/**
 * Closes a network interface
 *
 * The last call frees the interface with all that it has. Threads that wait for one of its queues
 * return with PTL_EQ_INVALID.
 *
 * @param[in] ni  the interface
 * @return PTL_OK  closed, or counted down
 * @blocks at the last call, until peers have taken what was sent to them, at most two seconds
 * @threads safe
 */
int PtlNIFini(ptl_handle_ni_t ni);

/**
 * Reads a status register
 *
 * @param[in] ni      the interface
 * @param[in] reg     which one: PTL_SR_DROP_COUNT and others
 * @param[out] value  its value
 * @return PTL_OK                read
 * @return PTL_SR_INDEX_INVALID  there is no such register, or it isn't kept
 * @blocks never
 * @threads safe
 */
int PtlNIStatus(ptl_handle_ni_t ni,
                ptl_sr_index_t reg,
                ptl_sr_value_t *value);

/**
 * Returns how far away a process is
 *
 * @param[in] ni         the interface
 * @param[in] process    the process
 * @param[out] distance  0 for the process itself, 1 on the node, 2 beyond
 * @return PTL_OK               returned
 * @return PTL_PROCESS_INVALID  `process` has a wildcard
 * @blocks never
 * @threads safe
 */
int PtlNIDist(ptl_handle_ni_t ni,
              ptl_process_id_t process,
              unsigned long *distance);

/**
 * Returns the interface that an object belongs to
 *
 * @param[in] any  any handle: of an interface, entry, descriptor or queue
 * @param[out] ni  the interface
 * @return PTL_OK              found
 * @return PTL_HANDLE_INVALID  `any` names nothing
 * @blocks never
 * @threads safe
 */
int PtlNIHandle(ptl_handle_any_t any,
                ptl_handle_ni_t *ni);

/* --- User, process and job (3.6 to 3.8) ---------------------------------------------------- */

/**
 * Returns the user that the process runs as
 *
 * @param[in] ni    the interface
 * @param[out] uid  the user
 * @return PTL_OK  returned
 * @blocks never
 * @threads safe
 */
int PtlGetUid(ptl_handle_ni_t ni,
              ptl_uid_t *uid);

/**
 * Returns the name of the process
 *
 * @param[in] ni   the interface
 * @param[out] id  nid and pid
 * @return PTL_OK  returned
 * @blocks never
 * @threads safe
 */
int PtlGetId(ptl_handle_ni_t ni,
             ptl_process_id_t *id);

/**
 * Returns the job that the process belongs to
 *
 * The launcher sets it (PTL_MY_JID); without one it is 0.
 *
 * @param[in] ni    the interface
 * @param[out] jid  the job
 * @return PTL_OK  returned
 * @blocks never
 * @threads safe
 */
int PtlGetJid(ptl_handle_ni_t ni,
              ptl_jid_t *jid);

/* --- Match entries (3.9) ------------------------------------------------------------------- */

/**
 * What becomes of an entry or a descriptor when it is used up (3.9.1)
 */
typedef enum {
    PTL_RETAIN = 0, /**< It stays. */
    PTL_UNLINK = 1  /**< It is unlinked. */
} ptl_unlink_t;

/**
 * Where an entry goes (3.9.1)
 */
typedef enum {
    PTL_INS_BEFORE = 0, /**< Before the base, or at the head. */
    PTL_INS_AFTER = 1   /**< After the base, or at the tail. */
} ptl_ins_pos_t;

/**
 * Attaches a match entry to a match list
 *
 * @param[in] ni           the interface
 * @param[in] pt           whose list
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] unlink       PTL_UNLINK: the entry goes with its descriptor
 * @param[in] pos          at the head or at the tail
 * @param[out] me          the entry
 * @return PTL_OK                attached
 * @return PTL_PT_INDEX_INVALID  there is no such index
 * @return PTL_PROCESS_INVALID   no process can have the name `match_id`
 * @return PTL_NO_SPACE          the interface has no further entry
 * @return PTL_ME_LIST_TOO_LONG  the list has reached its limit
 * @blocks never
 * @threads safe
 */
int PtlMEAttach(ptl_handle_ni_t ni,
                ptl_pt_index_t pt,
                ptl_process_id_t match_id,
                ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink,
                ptl_ins_pos_t pos,
                ptl_handle_me_t *me);

/**
 * Attaches a match entry to an index whose list is empty (3.9.3)
 *
 * @param[in] ni           the interface
 * @param[out] pt          the index
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] unlink       PTL_UNLINK: the entry goes with its descriptor
 * @param[out] me          the entry
 * @return PTL_OK               attached
 * @return PTL_PT_FULL          each list has an entry
 * @return PTL_PROCESS_INVALID  no process can have the name `match_id`
 * @return PTL_NO_SPACE         the interface has no further entry
 * @blocks never
 * @threads safe
 */
int PtlMEAttachAny(ptl_handle_ni_t ni,
                   ptl_pt_index_t *pt,
                   ptl_process_id_t match_id,
                   ptl_match_bits_t match_bits,
                   ptl_match_bits_t ignore_bits,
                   ptl_unlink_t unlink,
                   ptl_handle_me_t *me);

/**
 * Inserts a match entry before or after another
 *
 * @param[in] base         an entry
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] unlink       PTL_UNLINK: the entry goes with its descriptor
 * @param[in] pos          before the base or after it
 * @param[out] me          the entry
 * @return PTL_OK                inserted
 * @return PTL_ME_INVALID        `base` is no entry
 * @return PTL_PROCESS_INVALID   no process can have the name `match_id`
 * @return PTL_NO_SPACE          the interface has no further entry
 * @return PTL_ME_LIST_TOO_LONG  the list has reached its limit
 * @blocks never
 * @threads safe
 */
int PtlMEInsert(ptl_handle_me_t base,
                ptl_process_id_t match_id,
                ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink,
                ptl_ins_pos_t pos,
                ptl_handle_me_t *me);

/**
 * Unlinks a match entry with its descriptor
 *
 * No event reports it.
 *
 * @param[in] me  the entry
 * @return PTL_OK         unlinked
 * @return PTL_ME_IN_USE  operations use its descriptor
 * @blocks never
 * @threads safe
 */
int PtlMEUnlink(ptl_handle_me_t me);

/* --- Memory descriptors (3.10) ------------------------------------------------------------- */

#define PTL_MD_OP_PUT              0x1   /**< Takes puts. */
#define PTL_MD_OP_GET              0x2   /**< Takes gets. */
#define PTL_MD_MANAGE_REMOTE       0x4   /**< The initiator's offset counts. */
#define PTL_MD_TRUNCATE            0x8   /**< Takes what is too long, cut. */
#define PTL_MD_ACK_DISABLE         0x10  /**< Sends no acknowledgements. */
#define PTL_MD_IOVEC               0x20  /**< `start` is an array of ptl_md_iovec_t, `length` its
                                          * number of elements. */
#define PTL_MD_MAX_SIZE            0x40  /**< Inactive once less than `max_size` is left. */
#define PTL_MD_EVENT_START_DISABLE 0x80  /**< Posts no START events. */
#define PTL_MD_EVENT_END_DISABLE   0x100 /**< Posts no END events. */
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0x200    /**< In Cray's dialect: reports the unlinking by
                                                  * the library. */
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE 0x400  /**< In Cray's dialect: reports PtlMDUnlink. */
#define PTL_MD_FLAG_AUTO_UNLINK    0x800         /**< Cray; not looked at. */
#define PTL_MD_PHYS                0x1000        /**< Cray; not looked at. */
#define PTL_MD_LOCAL_ALIGN8        0x2000        /**< Cray; not looked at. */
#define PTL_MD_LUSTRE_COMPLETION_SEMANTICS 0x4000 /**< Cray; not looked at. */

/**
 * Describes memory (3.10.1)
 */
typedef struct {
    void *start;               /**< The first byte, or the array of PTL_MD_IOVEC. */
    ptl_size_t length;         /**< Bytes, or elements of the array. */
    int threshold;             /**< Operations until it is inactive, or PTL_MD_THRESH_INF. */
    ptl_size_t max_size;       /**< For PTL_MD_MAX_SIZE, in bytes. */
    unsigned int options;      /**< PTL_MD_OP_PUT and others. */
    void *user_ptr;            /**< The user's own. */
    ptl_handle_eq_t eq_handle; /**< Where its events go, or PTL_EQ_NONE. */
} ptl_md_t;

/**
 * An element of an I/O vector (3.10.2), laid out as `struct iovec`
 */
typedef struct {
    void *iov_base;     /**< The first byte. */
    ptl_size_t iov_len; /**< Bytes. */
} ptl_md_iovec_t;

/**
 * Attaches a memory descriptor to a match entry
 *
 * @param[in] me       an entry without a descriptor
 * @param[in] md       the memory, its events and what it takes
 * @param[in] unlink   PTL_UNLINK: it is unlinked once it is inactive and nothing is pending
 * @param[out] handle  the descriptor
 * @return PTL_OK          attached
 * @return PTL_ME_IN_USE   the entry has a descriptor
 * @return PTL_MD_ILLEGAL  a member contradicts the rules: unknown options, a threshold below
 *                         PTL_MD_THRESH_INF, NULL with a length, too many elements, a queue of
 *                         another interface
 * @return PTL_EQ_INVALID  `eq_handle` is no queue
 * @return PTL_NO_SPACE    the interface has no further descriptor
 * @blocks never
 * @threads safe
 */
int PtlMDAttach(ptl_handle_me_t me,
                ptl_md_t md,
                ptl_unlink_t unlink,
                ptl_handle_md_t *handle);

/**
 * Makes a memory descriptor without an entry, for the initiator
 *
 * @param[in] ni       the interface
 * @param[in] md       the memory, its events and what it takes
 * @param[in] unlink   PTL_UNLINK: it is unlinked once it is inactive and nothing is pending
 * @param[out] handle  the descriptor
 * @return PTL_OK          made
 * @return PTL_MD_ILLEGAL  as PtlMDAttach
 * @return PTL_EQ_INVALID  `eq_handle` is no queue
 * @return PTL_NO_SPACE    the interface has no further descriptor
 * @blocks never
 * @threads safe
 */
int PtlMDBind(ptl_handle_ni_t ni,
              ptl_md_t md,
              ptl_unlink_t unlink,
              ptl_handle_md_t *handle);

/**
 * Unlinks a memory descriptor, and its entry if that was attached with PTL_UNLINK
 *
 * @param[in] md  the descriptor
 * @return PTL_OK         unlinked
 * @return PTL_MD_IN_USE  operations use it
 * @blocks never
 * @threads safe
 */
int PtlMDUnlink(ptl_handle_md_t md);

/**
 * Reads and replaces a memory descriptor, if a queue is empty
 *
 * Nothing arrives between the look at the queue and the replacement. The local offset begins at 0,
 * and the descriptor is active again.
 *
 * @param[in] md       the descriptor
 * @param[out] old_md  what it is now; may be NULL
 * @param[in] new_md   what replaces it, or NULL to read only
 * @param[in] testq    the queue that must be empty, or PTL_EQ_NONE
 * @return PTL_OK            done
 * @return PTL_MD_NO_UPDATE  an event is in `testq`, or operations use the descriptor
 * @return PTL_MD_ILLEGAL    as PtlMDAttach
 * @return PTL_EQ_INVALID    `testq` or the new queue is none
 * @blocks never
 * @threads safe
 */
int PtlMDUpdate(ptl_handle_md_t md,
                ptl_md_t *old_md,
                ptl_md_t *new_md,
                ptl_handle_eq_t testq);

/* --- Events (3.11) ------------------------------------------------------------------------- */

/**
 * What an event reports (3.11.1)
 */
typedef enum {
    PTL_EVENT_GET_START = 0,    /**< Target: a get has matched. */
    PTL_EVENT_GET_END = 1,      /**< Target: its data was read. */
    PTL_EVENT_PUT_START = 2,    /**< Target: a put has matched. */
    PTL_EVENT_PUT_END = 3,      /**< Target: its data is in place. */
    PTL_EVENT_GETPUT_START = 4, /**< Target: a getput has matched. */
    PTL_EVENT_GETPUT_END = 5,   /**< Target: the data was swapped. */
    PTL_EVENT_REPLY_START = 6,  /**< Initiator: a reply has begun. */
    PTL_EVENT_REPLY_END = 7,    /**< Initiator: its data is in place. */
    PTL_EVENT_SEND_START = 8,   /**< Initiator: a put has begun. */
    PTL_EVENT_SEND_END = 9,     /**< Initiator: the buffer may be used again. */
    PTL_EVENT_ACK = 10,         /**< Initiator: the target has the data. */
    PTL_EVENT_UNLINK = 11       /**< The library has unlinked the descriptor. */
} ptl_event_kind_t;

/**
 * An event (3.11.4)
 */
typedef struct {
    ptl_event_kind_t type;       /**< What it reports. */
    ptl_process_id_t initiator;  /**< The process that began the operation; with ACK and REPLY the
                                  * target. */
    ptl_uid_t uid;               /**< The initiator's user. */
    ptl_jid_t jid;               /**< The initiator's job. */
    ptl_pt_index_t pt_index;     /**< The index that the request named. */
    ptl_match_bits_t match_bits; /**< The request's match bits. */
    ptl_size_t rlength;          /**< Bytes asked for; with ACK, those moved. */
    ptl_size_t mlength;          /**< Bytes moved. */
    ptl_size_t offset;           /**< Where in the descriptor, bytes. */
    ptl_handle_md_t md_handle;   /**< The descriptor. */
    ptl_md_t md;                 /**< The descriptor after the operation. */
    ptl_hdr_data_t hdr_data;     /**< The initiator's eight bytes. */
    ptl_seq_t link;              /**< The `sequence` of the START event that belongs to it. */
    ptl_ni_fail_t ni_fail_type;  /**< PTL_NI_OK, or why it failed. */
    volatile ptl_seq_t sequence; /**< The number of the event in its queue. */
} ptl_event_t;

typedef void (*ptl_eq_handler_t)(ptl_event_t *event); /**< Called with each event of a queue
                                                       * (3.11.6). */

/* Without parentheses or cast: programs repeat this definition. */
#define PTL_EQ_HANDLER_NONE NULL /**< No handler. */

/**
 * Makes an event queue
 *
 * Events beyond `count` may be lost, the data of their messages isn't. With a handler events are
 * not queued: it is called with each, by a thread of the library or inside a call, as soon as the
 * event is complete. A handler may call all functions but PtlEQWait, PtlEQPoll, PtlNIInit,
 * PtlNIFini and PtlFini.
 *
 * @param[in] ni       the interface
 * @param[in] count    events that it holds at least
 * @param[in] handler  a function, or PTL_EQ_HANDLER_NONE
 * @param[out] eq      the queue
 * @return PTL_OK        made
 * @return PTL_NO_SPACE  the interface has no further queue, or `count` is too large
 * @blocks never
 * @threads safe
 */
int PtlEQAlloc(ptl_handle_ni_t ni,
               ptl_size_t count,
               ptl_eq_handler_t handler,
               ptl_handle_eq_t *eq);

/**
 * Frees an event queue
 *
 * Later events of descriptors that name it are lost. Threads that wait for it return with
 * PTL_EQ_INVALID.
 *
 * @param[in] eq  the queue
 * @return PTL_OK  freed
 * @blocks never
 * @threads safe
 */
int PtlEQFree(ptl_handle_eq_t eq);

/**
 * Takes the next event
 *
 * @param[in] eq      the queue
 * @param[out] event  the event
 * @return PTL_OK          taken
 * @return PTL_EQ_DROPPED  taken; at least one before it was lost
 * @return PTL_EQ_EMPTY    there is none
 * @blocks never
 * @threads safe
 */
int PtlEQGet(ptl_handle_eq_t eq,
             ptl_event_t *event);

/**
 * Takes the next event, and waits for it
 *
 * @param[in] eq      the queue
 * @param[out] event  the event
 * @return PTL_OK          taken
 * @return PTL_EQ_DROPPED  taken; at least one before it was lost
 * @return PTL_EQ_INVALID  no queue, or it was freed meanwhile
 * @blocks until there is an event
 * @threads safe
 */
int PtlEQWait(ptl_handle_eq_t eq,
              ptl_event_t *event);

/**
 * Takes the next event of several queues (3.11.12)
 *
 * The search begins behind the queue that was served last, so no queue starves another.
 *
 * @param[in] eqs      queues of one interface
 * @param[in] size     how many
 * @param[in] timeout  milliseconds; 0 to look once, PTL_TIME_FOREVER to wait without end
 * @param[out] event   the event
 * @param[out] which   the index of its queue
 * @return PTL_OK          taken
 * @return PTL_EQ_DROPPED  taken; at least one of that queue before it was lost
 * @return PTL_EQ_EMPTY    the time is over
 * @return PTL_EQ_INVALID  no queue, of another interface, freed meanwhile, or `size` below 1
 * @blocks until there is an event or the time is over
 * @threads safe
 */
int PtlEQPoll(ptl_handle_eq_t *eqs,
              int size,
              ptl_time_t timeout,
              ptl_event_t *event,
              int *which);

/* --- Access control (3.12) ----------------------------------------------------------------- */

/**
 * Sets an entry of the access control table (3.12.1)
 *
 * An initiator names an entry of the target's table with each request; a request that the entry
 * doesn't match is dropped. All entries begin open.
 *
 * @param[in] ni        the interface
 * @param[in] index     which entry
 * @param[in] match_id  the initiator; each member may be a wildcard
 * @param[in] uid       the initiator's user, or PTL_UID_ANY
 * @param[in] jid       the initiator's job, or PTL_JID_ANY
 * @param[in] pt        the index that may be reached, or PTL_PT_INDEX_ANY
 * @return PTL_OK                set
 * @return PTL_AC_INDEX_INVALID  there is no such entry
 * @return PTL_PROCESS_INVALID   no process can have the name `match_id`
 * @return PTL_PT_INDEX_INVALID  there is no such index
 * @blocks never
 * @threads safe
 */
int PtlACEntry(ptl_handle_ni_t ni,
               ptl_ac_index_t index,
               ptl_process_id_t match_id,
               ptl_uid_t uid,
               ptl_jid_t jid,
               ptl_pt_index_t pt);

/* --- Data movement (3.13) ------------------------------------------------------------------ */

/**
 * Whether a put asks for an acknowledgement (3.13.2)
 */
typedef enum {
    PTL_ACK_REQ = 0,                /**< It does. */
    PTL_NO_ACK_REQ = 1,             /**< It does not. */
    PTL_NOACK_REQ = PTL_NO_ACK_REQ  /**< The same, by its earlier name. */
} ptl_ack_req_t;

/**
 * Sends a descriptor's bytes
 *
 * Messages between two processes arrive and match in the order of the calls. PTL_OK means that the
 * put has begun; the bytes may be changed after SEND_END.
 *
 * @param[in] md             all of its bytes are sent
 * @param[in] ack            whether the target shall acknowledge
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @param[in] hdr_data       eight bytes for the target's event
 * @return PTL_OK               begun
 * @return PTL_MD_INVALID       no descriptor, or it is inactive
 * @return PTL_PROCESS_INVALID  no process can have the name `target`
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlPut(ptl_handle_md_t md,
           ptl_ack_req_t ack,
           ptl_process_id_t target,
           ptl_pt_index_t pt,
           ptl_ac_index_t ac,
           ptl_match_bits_t match_bits,
           ptl_size_t remote_offset,
           ptl_hdr_data_t hdr_data);

/**
 * As PtlPut, for a part of the descriptor (3.13.3)
 *
 * @param[in] md             a part of its bytes is sent
 * @param[in] local_offset   where the part begins, bytes
 * @param[in] length         bytes
 * @param[in] ack            whether the target shall acknowledge
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     the match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @param[in] hdr_data       eight bytes for the target's event
 * @return PTL_OK               begun
 * @return PTL_MD_ILLEGAL       the part isn't inside
 * @return PTL_MD_INVALID       no descriptor, or it is inactive
 * @return PTL_PROCESS_INVALID  no process can have the name `target`
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlPutRegion(ptl_handle_md_t md,
                 ptl_size_t local_offset,
                 ptl_size_t length,
                 ptl_ack_req_t ack,
                 ptl_process_id_t target,
                 ptl_pt_index_t pt,
                 ptl_ac_index_t ac,
                 ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset,
                 ptl_hdr_data_t hdr_data);

/**
 * Reads bytes of the target into a descriptor
 *
 * As many as the descriptor has.
 *
 * @param[in] md             its bytes are replaced
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     the match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @return PTL_OK               begun
 * @return PTL_MD_INVALID       no descriptor, or it is inactive
 * @return PTL_PROCESS_INVALID  no process can have the name `target`
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlGet(ptl_handle_md_t md,
           ptl_process_id_t target,
           ptl_pt_index_t pt,
           ptl_ac_index_t ac,
           ptl_match_bits_t match_bits,
           ptl_size_t remote_offset);

/**
 * As PtlGet, for a part of the descriptor (3.13.5)
 *
 * @param[in] md             a part of its bytes is replaced
 * @param[in] local_offset   where the part begins, bytes
 * @param[in] length         bytes
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     the match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @return PTL_OK               begun
 * @return PTL_MD_ILLEGAL       the part isn't inside
 * @return PTL_MD_INVALID       no descriptor, or it is inactive
 * @return PTL_PROCESS_INVALID  no process can have the name `target`
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlGetRegion(ptl_handle_md_t md,
                 ptl_size_t local_offset,
                 ptl_size_t length,
                 ptl_process_id_t target,
                 ptl_pt_index_t pt,
                 ptl_ac_index_t ac,
                 ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset);

/**
 * Swaps bytes with the target
 *
 * The put descriptor's bytes replace the target's, whose earlier ones come into the get descriptor.
 * No other PtlGetPut comes between.
 *
 * @param[in] get_md         takes the target's bytes
 * @param[in] put_md         its bytes are sent
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     the match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @param[in] hdr_data       eight bytes for the target's event
 * @return PTL_OK               begun
 * @return PTL_MD_ILLEGAL       the descriptors are of two interfaces, or longer than max_getput_md
 * @return PTL_MD_INVALID       no descriptor, or it is inactive
 * @return PTL_PROCESS_INVALID  no process can have the name `target`
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlGetPut(ptl_handle_md_t get_md,
              ptl_handle_md_t put_md,
              ptl_process_id_t target,
              ptl_pt_index_t pt,
              ptl_ac_index_t ac,
              ptl_match_bits_t match_bits,
              ptl_size_t remote_offset,
              ptl_hdr_data_t hdr_data);

/* --- Handles (3.14) ------------------------------------------------------------------------ */

/**
 * Compares two handles (3.14.1)
 *
 * @param[in] a, b  handles of any kind
 * @return  1 if they are equal, 0 if not
 * @blocks never
 * @threads safe
 */
int PtlHandleIsEqual(ptl_handle_any_t a,
                     ptl_handle_any_t b);

/* --- Extensions ---------------------------------------------------------------------------- */

/**
 * Inserts an entry with a descriptor, if a queue is empty (extension)
 *
 * As PtlMEInsert and PtlMDAttach in one step, against arriving messages too.
 *
 * @param[in] ni           the interface
 * @param[in] base         an entry
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] me_unlink    PTL_UNLINK: the entry goes with its descriptor
 * @param[in] pos          before the base or after it
 * @param[in] md           the memory, its events and what it takes
 * @param[in] md_unlink    PTL_UNLINK: the descriptor is unlinked once it is inactive and nothing
 *                         is pending
 * @param[out] me          the entry
 * @param[out] handle      the descriptor
 * @param[in] testq        the queue that must be empty, or PTL_EQ_NONE
 * @return PTL_OK            inserted and attached
 * @return PTL_MD_NO_UPDATE  an event is in `testq`
 * @return PTL_ME_INVALID    `base` is no entry
 * @blocks never
 * @threads safe
 */
int PtlMEMDPost(ptl_handle_ni_t ni,
                ptl_handle_me_t base,
                ptl_process_id_t match_id,
                ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits,
                ptl_unlink_t me_unlink,
                ptl_ins_pos_t pos,
                ptl_md_t md,
                ptl_unlink_t md_unlink,
                ptl_handle_me_t *me,
                ptl_handle_md_t *handle,
                ptl_handle_eq_t testq);

/**
 * PtlMEAttach and PtlMDAttach in one step (extension)
 *
 * @param[in] ni           the interface
 * @param[in] pt           whose list
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] me_unlink    PTL_UNLINK: the entry goes with its descriptor
 * @param[in] pos          at the head or at the tail
 * @param[in] md           the memory, its events and what it takes
 * @param[in] md_unlink    PTL_UNLINK: the descriptor is unlinked once it is inactive and nothing
 *                         is pending
 * @param[out] me          the entry
 * @param[out] handle      the descriptor
 * @return PTL_OK  attached; else as both
 * @blocks never
 * @threads safe
 */
int PtlMEMDAttach(ptl_handle_ni_t ni,
                  ptl_pt_index_t pt,
                  ptl_process_id_t match_id,
                  ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits,
                  ptl_unlink_t me_unlink,
                  ptl_ins_pos_t pos,
                  ptl_md_t md,
                  ptl_unlink_t md_unlink,
                  ptl_handle_me_t *me,
                  ptl_handle_md_t *handle);

/**
 * PtlMEInsert and PtlMDAttach in one step (extension)
 *
 * @param[in] base         an entry
 * @param[in] match_id     from which process messages are taken; each member may be a wildcard
 * @param[in] match_bits   the match bits
 * @param[in] ignore_bits  the bits that aren't compared
 * @param[in] me_unlink    PTL_UNLINK: the entry goes with its descriptor
 * @param[in] pos          before the base or after it
 * @param[in] md           the memory, its events and what it takes
 * @param[in] md_unlink    PTL_UNLINK: the descriptor is unlinked once it is inactive and nothing
 *                         is pending
 * @param[out] me          the entry
 * @param[out] handle      the descriptor
 * @return PTL_OK  inserted and attached; else as both
 * @blocks never
 * @threads safe
 */
int PtlMEMDInsert(ptl_handle_me_t base,
                  ptl_process_id_t match_id,
                  ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits,
                  ptl_unlink_t me_unlink,
                  ptl_ins_pos_t pos,
                  ptl_md_t md,
                  ptl_unlink_t md_unlink,
                  ptl_handle_me_t *me,
                  ptl_handle_md_t *handle);

/**
 * Reads the next event, which stays in the queue (extension)
 *
 * @param[in] eq      the queue
 * @param[out] event  the event
 * @return PTL_OK          read
 * @return PTL_EQ_DROPPED  read; at least one before it was lost
 * @return PTL_EQ_EMPTY    there is none
 * @blocks never
 * @threads safe
 */
int PtlEQPeek(ptl_handle_eq_t eq,
              ptl_event_t *event);

/**
 * As PtlGetPut, for parts of the descriptors (extension)
 *
 * @param[in] get_md         takes the target's bytes
 * @param[in] get_offset     where the part of `get_md` begins, bytes
 * @param[in] put_md         its bytes are sent
 * @param[in] put_offset     where the part of `put_md` begins, bytes
 * @param[in] length         bytes
 * @param[in] target         a process
 * @param[in] pt             an index of its portal table
 * @param[in] ac             an index of its access control table
 * @param[in] match_bits     the match bits
 * @param[in] remote_offset  counts where the target's descriptor has PTL_MD_MANAGE_REMOTE, bytes
 * @param[in] hdr_data       eight bytes for the target's event
 * @return PTL_OK          begun
 * @return PTL_MD_ILLEGAL  a part isn't inside, or as PtlGetPut
 * @blocks while too much waits for the target to take it
 * @threads safe
 */
int PtlGetPutRegion(ptl_handle_md_t get_md,
                    ptl_size_t get_offset,
                    ptl_handle_md_t put_md,
                    ptl_size_t put_offset,
                    ptl_size_t length,
                    ptl_process_id_t target,
                    ptl_pt_index_t pt,
                    ptl_ac_index_t ac,
                    ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset,
                    ptl_hdr_data_t hdr_data);

/**
 * Moves data (extension)
 *
 * The library does so by itself; a program needn't call it.
 *
 * @param[in] any      a handle of the interface
 * @param[in] timeout  milliseconds; one look is taken whatever it is
 * @return PTL_OK              looked
 * @return PTL_HANDLE_INVALID  `any` names nothing
 * @blocks never
 * @threads safe
 */
int PtlProgress(ptl_handle_any_t any,
                ptl_time_t timeout);

/**
 * Prints the event queues of an interface on standard error (extension)
 *
 * @param[in] ni  the interface
 * @return PTL_OK  printed
 * @blocks never
 * @threads safe
 */
int PtlNIEqDump(ptl_handle_ni_t ni);

/**
 * Returns the name of a return code (extension)
 *
 * @param[in] code  the code
 * @return  a name that stays, also for a number that is no code
 * @blocks never
 * @threads safe
 */
const char *PtlErrorStr(unsigned code);

/**
 * Returns the name of a failure (extension)
 *
 * @param[in] ni    the interface
 * @param[in] fail  `ni_fail_type` of an event
 * @return  a name that stays, also for a number that is none
 * @blocks never
 * @threads safe
 */
const char *PtlNIFailStr(ptl_handle_ni_t ni,
                         ptl_ni_fail_t fail);

/**
 * Returns the name of a kind of event (extension)
 *
 * @param[in] kind  `type` of an event
 * @return  a name that stays, also for a number that is none
 * @blocks never
 * @threads safe
 */
const char *PtlEventKindStr(ptl_event_kind_t kind);

#ifdef __cplusplus
}
#endif

#endif
