/*
 * Twisted factorisations on the CPU: tasks of a run, shared out over threads, with their progress.
 */
#include "cpu/twisted/twisted_run.h"

tsvd_status
tsvdi_cpu_twisted_check(const struct cpu_twisted *run, int worker, int64_t index)
{
    return worker > 0
               ? TSVD_OK
               : tsvdi_check(run->ctx, run->share + run->part * (double)index / (double)run->tasks);
}

tsvd_status
tsvdi_cpu_twisted_for_each(struct cpu_twisted *run, double share, double part, int64_t tasks,
                           tsvd_task task)
{
    run->share = share;
    run->part = part;
    run->tasks = tasks;
    return tsvdi_host_for_each(run->workers, tasks, task, run);
}
