/* What the programs for CCI share: a check that says who failed, and where. */
#ifndef LINTEL_TESTS_CCI_CHECK_H
#define LINTEL_TESTS_CCI_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Which of the program's processes this is. */
static const char *who;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, who, #condition);         \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

#endif
