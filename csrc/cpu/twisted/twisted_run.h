/*
 * Twisted factorisations on the CPU: what its files share.
 *
 *   cpu/twisted/twisted.c   the operations of the seam: workspace, and the vectors
 *   cpu/twisted/tasks.c     tasks on all threads
 *   cpu/twisted/values.c    the search for values
 *   cpu/twisted/pays.c      whether AUTO takes twisted factorisations
 *   cpu/twisted/probe.c     probes of the results
 *
 * The lanes of vectors are in cpu/kernels/twisted_lanes.h, the mathematics in math/twisted.h.
 */
#ifndef TSVDI_CPU_TWISTED_TWISTED_RUN_H
#define TSVDI_CPU_TWISTED_TWISTED_RUN_H

#include <stdatomic.h>

#include "cpu/kernels/kernels.h"
#include "host/host.h"
#include "math/probe.h"
#include "math/twisted.h"

/* Doubles of a cache line. */
enum { TWISTED_CACHE_LINE = 8 };

/* What a run holds. */
struct cpu_twisted {
    struct tsvd_context *ctx;
    struct twisted_job *job;
    int workers;
    double share; /* of the whole work that was done before this operation */
    double part;  /* of the whole work that it is */
    int64_t tasks;
    struct twisted_matrix matrix;
    double least, top;  /* the least shift that counts are right for; one above all values */
    int64_t from, to;   /* shifts are kept of these values: the wanted ones and their neighbours */
    double *shift;      /* [to - from] */
    double *gap;        /* [k] */
    int has_null;       /* 1: the last wanted value is as good as 0 */
    double *value;      /* [k] the values, scaled */
    double *work;       /* [workers workspace] */
    int64_t workspace;  /* numbers of work for a thread */
    double *x, *scaled; /* [k PROBES] X, and S X */
    double *sums[2];    /* [n PROBES] V^T X of L and of R, one after the other */
    double *image;      /* [n PROBES] L (S X), behind them */
    atomic_llong refused;
    void *memory;
};

/* tasks.c: runs a task on all threads.  share, part: of the whole work, what was done before, and
   what this is. */
tsvd_status tsvdi_cpu_twisted_for_each(struct cpu_twisted *run, double share, double part,
                                       int64_t tasks, tsvd_task task);

/* tasks.c: each task begins with this: tells how much is done, and whether the caller asks to stop.
   */
tsvd_status tsvdi_cpu_twisted_check(const struct cpu_twisted *run, int worker, int64_t index);

/* Finds the values with the ascending indices want[count], at most CPU_TWISTED_TASK_VALUES.  width:
   NULL, or out: how wide the bracket was in which a value was alone first; 0: it never was.  In
   the worker's `work`, of search_workspace() numbers: stacks may be small. */
int64_t tsvdi_cpu_twisted_search_workspace(void);
void tsvdi_cpu_twisted_search(const struct cpu_twisted *run, int worker, int64_t count,
                              const int64_t *want, double *found, double *width);

/* Whether a value can be worked on: no other is too close to it, and it is not too small. */
int tsvdi_cpu_twisted_stands_apart(const struct cpu_twisted *run, int64_t index, double x,
                                   double gap);

/* The operations of struct twisted_ops. */
tsvd_status tsvdi_cpu_twisted_values(struct tsvd_context *ctx, struct twisted_job *job);
tsvd_status tsvdi_cpu_twisted_pays(struct tsvd_context *ctx, struct twisted_job *job, int *answer);
tsvd_status tsvdi_cpu_twisted_probe(struct tsvd_context *ctx, struct twisted_job *job);

#endif
