/*
 * portals/p3nal_utcp.h - p3nal_utcp.h, where programs for Cray look for it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "../p3nal_utcp.h"
