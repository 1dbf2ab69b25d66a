/*
 * p3nal_utcp.h - the interfaces of the Portals 3.3 reference, by its names.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef P3NAL_UTCP_H
#define P3NAL_UTCP_H

#define PTL_IFACE_UTCP  0xf0f0f000U /**< PTL_IFACE_DEFAULT. */
#define PTL_IFACE_UTCP0 0xf0f0f000U /**< The same. */
#define PTL_IFACE_UTCP1 0xf0f0f001U /**< The reference's second interface. */
#define PTL_IFACE_UTCP2 0xf0f0f002U /**< The reference's third. */
#define PTL_IFACE_UTCP3 0xf0f0f003U /**< The reference's fourth. */

#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0xf0f0f000U /**< The interface that speaks the specification. */
#endif

#endif
