/*
 * Several threads of a process communicate at once, each with its own portal table entry, event queue
 * and descriptor.
 *
 *     yod -n 2 ./threads
 *
 * Every function of portals4.h may be called by any thread; threads that share no queue don't wait for
 * one another's events.
 */
#include "check.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  200

struct worker {
    const struct job *job;
    pthread_t         thread;
    ptl_pt_index_t    portal;
    ptl_handle_eq_t   events;
    ptl_handle_md_t   from;
    long              out, in;
};

static void prepare(struct worker *worker, const struct job *job, ptl_pt_index_t portal)
{
    ptl_handle_le_t entry;
    worker->job = job;
    CHECK(PtlEQAlloc(job->ni, 64, &worker->events));
    CHECK(PtlPTAlloc(job->ni, 0, worker->events, portal, &worker->portal));
    ptl_le_t le = {&worker->in, sizeof worker->in, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
    CHECK(PtlLEAppend(job->ni, worker->portal, &le, PTL_PRIORITY_LIST, NULL, &entry));
    CHECK(PtlMDBind(job->ni, &(ptl_md_t){&worker->out, sizeof worker->out, 0, PTL_EQ_NONE, PTL_CT_NONE}, &worker->from));
}

/* Exchanges numbers with the thread of the same number at the next rank. */
static void *exchange(void *argument)
{
    struct worker    *worker = argument;
    const struct job *job    = worker->job;
    ptl_process_t     next   = job->ranks[(job->rank + 1) % job->size];
    for (long round = 0; round < ROUNDS; round++) {
        worker->out = round * THREADS + (long)worker->portal;
        CHECK(PtlPut(worker->from, 0, sizeof worker->out, PTL_NO_ACK_REQ, next, worker->portal, 0, 0, NULL,
                     (ptl_hdr_data_t)worker->out));
        ptl_event_t event = next_event(worker->events);
        EXPECT(event.type == PTL_EVENT_PUT && event.hdr_data == (ptl_hdr_data_t)worker->out);
    }
    return NULL;
}

int main(void)
{
    struct job    job = job_open(PTL_NI_NO_MATCHING);
    struct worker workers[THREADS];
    for (int at = 0; at < THREADS; at++) {
        prepare(&workers[at], &job, (ptl_pt_index_t)at);
    }
    job_ready(&job);
    for (int at = 0; at < THREADS; at++) {
        EXPECT(pthread_create(&workers[at].thread, NULL, exchange, &workers[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++) {
        EXPECT(pthread_join(workers[at].thread, NULL) == 0);
    }
    if (job.rank == 0) {
        printf("%d threads, %d messages each\n", THREADS, ROUNDS);
    }
    job_close(&job);
    return 0;
}
