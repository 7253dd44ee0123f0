/*
 * The memory of a log of rotations.
 */
#include "backend/rotation_log.h"

#include "backend/context.h"

tsvd_status
tsvdi_log_alloc(struct tsvd_context *ctx, int64_t sweeps, int64_t rotations,
                struct rotation_log *log)
{
    tsvd_status ret = TSVD_OK;

    log->sweeps = log->rotations = 0;
    log->max_sweeps = sweeps;
    log->rotations_max = rotations;
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(sweeps, sizeof *log->sweep), (void **)&log->sweep));
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(rotations, sizeof *log->rotation), (void **)&log->rotation));
out:
    return ret;
}

void
tsvdi_log_free(struct tsvd_context *ctx, struct rotation_log *log)
{
    tsvdi_free(ctx, log->sweep);
    tsvdi_free(ctx, log->rotation);
}
