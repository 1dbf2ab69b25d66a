/*
 * debug.h - what the Portals 3.3 reference offers for debugging, by its names.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Debugging (extension) -------------------------------------------------------------------- */

#define PTL_DBG_NONE     0x0U        /**< Nothing. */
#define PTL_DBG_API      0x1U        /**< Calls. */
#define PTL_DBG_PARSE    0x2U        /**< Messages as they are read. */
#define PTL_DBG_MOVE     0x4U        /**< Data movement. */
#define PTL_DBG_DROP     0x8U        /**< Messages dropped. */
#define PTL_DBG_REQUEST  0x10U       /**< Requests. */
#define PTL_DBG_DELIVERY 0x20U       /**< Deliveries. */
#define PTL_DBG_MD       0x40U       /**< Memory descriptors. */
#define PTL_DBG_ME       0x80U       /**< Match entries. */
#define PTL_DBG_UNLINK   0x100U      /**< Unlinking. */
#define PTL_DBG_EQ       0x200U      /**< Event queues. */
#define PTL_DBG_EVENT    0x400U      /**< Events. */
#define PTL_DBG_MEMORY   0x800U      /**< Memory. */
#define PTL_DBG_SETUP    0x1000U     /**< The beginning. */
#define PTL_DBG_SHUTDOWN 0x2000U     /**< The end. */
#define PTL_DBG_ALL      0xffffU     /**< All of these. */
#define PTL_DBG_NI_00    0x10000U    /**< Of the interface, as all below. */
#define PTL_DBG_NI_01    0x20000U    /**< Bit 17. */
#define PTL_DBG_NI_02    0x40000U    /**< Bit 18. */
#define PTL_DBG_NI_03    0x80000U    /**< Bit 19. */
#define PTL_DBG_NI_04    0x100000U   /**< Bit 20. */
#define PTL_DBG_NI_05    0x200000U   /**< Bit 21. */
#define PTL_DBG_NI_06    0x400000U   /**< Bit 22. */
#define PTL_DBG_NI_07    0x800000U   /**< Bit 23. */
#define PTL_DBG_NI_08    0x1000000U  /**< Bit 24. */
#define PTL_DBG_NI_09    0x2000000U  /**< Bit 25. */
#define PTL_DBG_NI_10    0x4000000U  /**< Bit 26. */
#define PTL_DBG_NI_11    0x8000000U  /**< Bit 27. */
#define PTL_DBG_NI_12    0x10000000U /**< Bit 28. */
#define PTL_DBG_NI_13    0x20000000U /**< Bit 29. */
#define PTL_DBG_NI_14    0x40000000U /**< Bit 30. */
#define PTL_DBG_NI_15    0x80000000U /**< Bit 31. */
#define PTL_DBG_NI_ALL   0xffff0000U /**< All of the interface. */
/* As numbers: programs define PTL_DBG_ALL by PTL_DEBUG_ALL. */
#define PTL_DEBUG_ALL    0xffffU     /**< PTL_DBG_ALL (Cray). */
#define PTL_DEBUG_NI_ALL 0xffff0000U /**< PTL_DBG_NI_ALL (Cray). */

/**
 * Sets what is logged (extension)
 *
 * The mask is kept and returned; what this library logs is a matter of PTL_LOG.
 *
 * @param[in] ni    an interface, or PTL_INVALID_HANDLE for later ones
 * @param[in] mask  PTL_DBG_API and others
 * @return  the mask before
 * @blocks never
 * @threads safe
 */
unsigned int PtlNIDebug(ptl_handle_ni_t ni,
                        unsigned int mask);

/**
 * Prints a match list on standard error (extension)
 *
 * @param[in] ni        the interface
 * @param[in] pt_index  whose list
 * @return PTL_OK                printed
 * @return PTL_PT_INDEX_INVALID  there is no such index
 * @blocks never
 * @threads safe
 */
int PtlTblDump(ptl_handle_ni_t ni,
               int pt_index);

/**
 * Prints a match entry on standard error (extension)
 *
 * @param[in] me  the entry
 * @return PTL_OK  printed
 * @blocks never
 * @threads safe
 */
int PtlMEDump(ptl_handle_me_t me);

#ifdef __cplusplus
}
#endif

#endif
