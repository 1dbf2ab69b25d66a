/*
 * portals/p3api/debug.h - p3api/debug.h, where programs for Cray look for it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "../../p3api/debug.h"
