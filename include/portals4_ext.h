/*
 * portals4_ext.h - memory that peers can map; names of codes and events as text, as programs
 * written for BXI expect them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Such programs include it as portals4_bxiext.h, which is the same. The comments follow the
 * grammar that portals4.h explains.
 */

#ifndef PORTALS4_EXT_H
#define PORTALS4_EXT_H

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Text ---------------------------------------------------------------------------------- */

#define PTL_EV_STR_SIZE 256 /**< The bytes that PtlEvToStr may write, the final NUL included. */

typedef unsigned int ptl_index_t; /**< A portal table index, as Portails4 calls ptl_pt_index_t. */
typedef void *ptl_addr_t;         /**< An address, as Portails4 calls it. */

/**
 * Which names PtlToStr looks through
 */
enum ptl_str_type {
    PTL_STR_ERROR = 0,    /**< Return codes: PTL_OK and so on. */
    PTL_STR_EVENT = 1,    /**< Kinds of events: PTL_EVENT_GET and so on. */
    PTL_STR_FAIL_TYPE = 2 /**< Kinds of failures: PTL_NI_OK and so on. */
};
typedef enum ptl_str_type ptl_str_type_t; /**< As enum ptl_str_type. */

/* Hints of BXI's match entries, which have no effect here. */
#define PTL_ME_MANAGE_LOCAL_STOP_IF_UH 0 /**< A hint of BXI. */
#define PTL_ME_OV_RDV_PUT_ONLY         0 /**< A hint of BXI. */
#define PTL_ME_OV_RDV_PUT_DISABLE      0 /**< A hint of BXI. */

/* --- Names of other implementations -------------------------------------------------------- */

#define PTL_NI_TARGET_INVALID  8 /**< A failure that BXI and Portals' forks report for a process that
                                  * doesn't exist; here it is PTL_NI_UNDELIVERABLE, never this. */
#define PTL_TRY_AGAIN         64 /**< What BXI's calls that end in NB return instead of waiting; none
                                  * returns it here. */
#define PTL_ACTIVE_SEARCH_ONLY PTL_SEARCH_ONLY /**< As PTL_SEARCH_ONLY. */

/* BXI's calls that don't wait. The plain calls don't wait for peers, so they are the same. */
#define PtlPTEnableNB             PtlPTEnable
#define PtlPTDisableNB            PtlPTDisable
#define PtlLEAppendNB             PtlLEAppend
#define PtlLESearchNB             PtlLESearch
#define PtlMEAppendNB             PtlMEAppend
#define PtlMESearchNB             PtlMESearch
#define PtlMDBindNB               PtlMDBind
#define PtlPutNB                  PtlPut
#define PtlGetNB                  PtlGet
#define PtlAtomicNB               PtlAtomic
#define PtlFetchAtomicNB          PtlFetchAtomic
#define PtlSwapNB                 PtlSwap
#define PtlTriggeredPutNB         PtlTriggeredPut
#define PtlTriggeredGetNB         PtlTriggeredGet
#define PtlTriggeredAtomicNB      PtlTriggeredAtomic
#define PtlTriggeredFetchAtomicNB PtlTriggeredFetchAtomic
#define PtlTriggeredSwapNB        PtlTriggeredSwap
#define PtlTriggeredCTIncNB       PtlTriggeredCTInc
#define PtlTriggeredCTSetNB       PtlTriggeredCTSet

/* --- Text of codes and events -------------------------------------------------------------- */

/**
 * Names a return code, an event or a failure
 *
 * The name is the constant's own, such as "PTL_NO_SPACE", "PTL_EVENT_PUT" or
 * "PTL_NI_UNDELIVERABLE". It works without PtlInit.
 *
 * @param[in] value  the code, `type` of an event, or `ni_fail_type` of an event
 * @param[in] type   which of these it is
 * @return the name, or "Unknown" if there is no such `value` or `type`. Never NULL. The string is
 *         constant and lives as long as the library is loaded; it isn't to be freed.
 * @blocks never
 * @threads safe
 * @see PtlEvToStr
 */
const char *PtlToStr(int value,
                     ptl_str_type_t type);

/**
 * Describes a full event in one line
 *
 * The line begins with "type=" and "fail=", both without the constants' prefixes, and goes on
 * with those members that this event has, each after a comma and a space, in this order:
 * "init" the initiator, "(nid,pid)" or "(rank)"; "uid"; "bits" the match bits; "rlen"; "pt"; "hdr";
 * "list"; "uptr"; "mlen"; "roffs" the remote offset; "start"; "aop" and "atyp" the atomic operation
 * and type. It ends with a line feed.
 * For example "type=LINK fail=OK, pt=4, uptr=0x0".
 * Bits, lengths, header data and offsets are in hexadecimal without prefix; pointers, "aop" and
 * "atyp" in hexadecimal with "0x"; the others in decimal. Of an event that failed, "rlen" and
 * "roffs" are left out, unless it is that of a search; of SEND, ACK and REPLY then all but "uptr".
 * It works without PtlInit.
 *
 * - GET and GET_OVERFLOW have init, uid, bits, rlen, pt, uptr, mlen, roffs and start.
 * - PUT and PUT_OVERFLOW have these and hdr.
 * - ATOMIC, FETCH_ATOMIC, both _OVERFLOW, and SEARCH have these, hdr, aop and atyp.
 * - REPLY and ACK have list, uptr, mlen and roffs; SEND has uptr and mlen.
 * - LINK, AUTO_UNLINK and AUTO_FREE have pt and uptr; PT_DISABLED has pt.
 *
 * @param[in] ni_options  the options of the event's interface. With PTL_NI_PHYSICAL, and without
 *                        PTL_NI_LOGICAL, "init" is nid and pid; otherwise, also with 0, it is the
 *                        rank.
 * @param[in] event       the event
 * @param[out] msg        the caller's, with room for PTL_EV_STR_SIZE bytes. No more than these are
 *                        written: a longer line is cut and always ends with a NUL, and it is the
 *                        line feed that is lost.
 * @return the length of the line without the final NUL, at most PTL_EV_STR_SIZE - 1
 * @return -1  `event` or `msg` is NULL, or the event's `type` or `ni_fail_type` is unknown. `msg`,
 *             unless NULL, is then the empty string.
 * @blocks never
 * @threads safe
 * @see PtlToStr, PtlEQGet
 */
int PtlEvToStr(unsigned int ni_options,
               const ptl_event_t *event,
               char *msg);

/* --- Memory that peers can map -------------------------------------------------------------- */

/**
 * Allocates memory that processes of the same user on this machine can map
 *
 * It is memory as any other to its owner. If a list or match list entry lies in it, initiators on
 * the same machine carry out puts, gets and atomics on it by themselves, without the target: in
 * the time of a memory access, whether or not the target makes a call. That takes
 *
 * - an entry of the priority list whose memory is contiguous, without PTL_ME_USE_ONCE,
 *   PTL_ME_MANAGE_LOCAL or a counting event, with PTL_ME_EVENT_COMM_DISABLE or
 *   PTL_ME_EVENT_SUCCESS_DISABLE unless its portal table entry has no event queue, with `uid`
 *   PTL_UID_ANY or the process's own, and from any source;
 * - a list entry that is the first of its list; a match list entry ahead of which none matches the
 *   same bits, and that, if it ignores bits, is alone on its list;
 * - a portal table entry that is enabled and has no PTL_PT_FLOWCTRL;
 * - that both processes have their engine within them (PTL_MODE=accelerated) and exchange messages
 *   through shared memory;
 * - a message of at most 1 MiB that the entry takes whole, or an atomic of at most 64 bytes on
 *   aligned elements of at most 8 bytes, after all that its initiator has sent to this target
 *   before has arrived.
 *
 * Everything else goes as a message, with the same result. At most 53 entries of a process are
 * accessed in this way. After PtlLEUnlink, PtlMEUnlink, PtlPTDisable or PtlNIFini has returned,
 * no peer accesses the entry's memory. Once a process has called this, all atomics on its memory
 * are coherent with those of the processor (PTL_COHERENT_ATOMICS).
 *
 * The memory is zeroed and aligned to a page. A fork's child shares it with its parent.
 * It works without PtlInit, and the memory outlives PtlFini.
 *
 * @param[in] length  bytes, more than 0; rounded up to pages
 * @param[out] start  the first byte, written on success only
 * @return PTL_OK           the memory is the caller's, until PtlMemFree
 * @return PTL_ARG_INVALID  `length` is 0 or `start` is NULL
 * @return PTL_NO_SPACE     the system refuses so much System V shared memory
 * @blocks never
 * @threads safe
 * @see PtlMemFree, PtlLEAppend, PtlMEAppend
 */
int PtlMemAlloc(ptl_size_t length,
                void **start);

/**
 * Frees memory that PtlMemAlloc has allocated
 *
 * The program has released all descriptors and unlinked all entries that name it. Peers that have
 * mapped it keep it until they next send a message to this process or end.
 *
 * @param[in] start  what PtlMemAlloc has written
 * @return PTL_OK           the addresses aren't the caller's any more
 * @return PTL_ARG_INVALID  it isn't the first byte of such memory, or was freed already
 * @return PTL_IN_USE       a peer accesses it and was stopped in the middle; nothing has changed
 * @blocks until peers' accesses under way have ended, two seconds at most
 * @threads safe
 * @see PtlMemAlloc
 */
int PtlMemFree(void *start);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_EXT_H */
