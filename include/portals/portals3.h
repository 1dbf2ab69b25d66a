/*
 * portals/portals3.h - portals3.h, where programs for Cray look for it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "../portals3.h"
