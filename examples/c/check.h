/* What the examples share: every call is checked, and an interface with all ranks' addresses. */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <portals4.h>
#include <portals4_job.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the whole job if a call of Portals or of the job doesn't return 0. */
#define CHECK(call)                                                                             \
    do {                                                                                        \
        int code_ = (call);                                                                     \
        if (code_ != 0) {                                                                       \
            fprintf(stderr, "rank %d: %s:%d: %s returned %d\n", ptljob_rank(), __FILE__, __LINE__, \
                    #call, code_);                                                              \
            ptljob_abort(1, ptljob_explain());                                                  \
        }                                                                                       \
    } while (0)

/* Ends the whole job if something isn't as it should be. */
#define EXPECT(condition)                                                                       \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", ptljob_rank(), __FILE__, __LINE__,   \
                    #condition);                                                                \
            ptljob_abort(1, NULL);                                                              \
        }                                                                                       \
    } while (0)

struct job {
    int             rank, size;
    ptl_handle_ni_t ni;
    ptl_process_t  *ranks; /* addresses by rank */
};

/* Joins the job and opens an interface. Ranks can be reached from job_ready on. */
static inline struct job job_open(unsigned int matching)
{
    struct job job;
    CHECK(ptljob_init());
    job.rank  = ptljob_rank();
    job.size  = ptljob_size();
    job.ranks = calloc((size_t)job.size, sizeof *job.ranks);
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, matching | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &job.ni));
    return job;
}

/* Returns when all ranks have posted what they receive into. */
static inline void job_ready(struct job *job)
{
    CHECK(ptljob_map(job->ni, job->ranks));
}

static inline void job_close(struct job *job)
{
    CHECK(ptljob_barrier());
    CHECK(PtlNIFini(job->ni));
    PtlFini();
    CHECK(ptljob_fini());
    free(job->ranks);
}

/* The next event of a queue, which must report success. */
static inline ptl_event_t next_event(ptl_handle_eq_t queue)
{
    ptl_event_t event;
    CHECK(PtlEQWait(queue, &event));
    EXPECT(event.ni_fail_type == PTL_NI_OK);
    return event;
}

#endif
