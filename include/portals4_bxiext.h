#include "portals4_ext.h" /* SPDX-License-Identifier: MIT OR Apache-2.0 - BXI's name for it */
