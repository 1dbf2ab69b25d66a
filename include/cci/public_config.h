/* What cci.h needs of its compiler.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef CCI_PUBLIC_CONFIG_H
#define CCI_PUBLIC_CONFIG_H

/* Around declarations, so that C++ links them as C. */
#undef BEGIN_C_DECLS
#undef END_C_DECLS
#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

/* Before declarations of exported functions; nothing on Linux. */
#ifndef CCI_DECLSPEC
#define CCI_DECLSPEC
#endif

#endif /* CCI_PUBLIC_CONFIG_H */
