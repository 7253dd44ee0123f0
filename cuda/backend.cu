/*
 * The CUDA back end: its tables of operations, and how many matrices it works on at once.  Mirrors
 * csrc/cpu/backend.c.
 */
#include "matrix/matrix.h"

static tsvd_status
cuda_open(struct tsvd_context *ctx)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    ctx->worker_state = call->error; /* of the call that this one is part of, or of this one */
    call->error = ctx->error;
    call->threads = ctx->call->handle->threads;
    TSVD_TRY(cuda_prefault_results(ctx, ctx->problem));
out:
    return ret;
}

static tsvd_status
finish_downloads(struct tsvd_context *ctx)
{
    return tsvdi_cuda_finish_downloads(cuda_of(ctx));
}

static void
cuda_close(struct tsvd_context *ctx, struct chunk *chunk)
{
    struct cuda_call *call = cuda_of(ctx);

    tsvdi_cuda_free(call, chunk->d_d);
    chunk->d_d = chunk->d_e = NULL;
    chunk->d_exponent = NULL;
    if (ctx->worker_state != NULL) { /* open() was called */
        call->error = (tsvd_error *)ctx->worker_state;
    }
}

/* Matrices per chunk, limited by memory and grid size. */
static int64_t
chunk_most(const struct svd_problem *p)
{
    const int64_t n = p->n, leaf = tsvdi_cuda_dc.leaf_columns(n);
    const int64_t nodes = n / (leaf / 2) + 1; /* of a level, at most */
    const int64_t arrays = p->extra ? 10 : 6; /* n x n, of a matrix with vectors */
    const uint64_t row = (uint64_t)(p->vectors ? arrays * device_stride(n) : 0) + 48;
    const uint64_t logs = (uint64_t)LEAF_LOG_MIB << 21; /* of leaves, at most */
    uint64_t available = 0, most;

    if (tsvdi_cuda_memory_free(&p->call.handle->cuda->call, &available) != TSVD_OK) {
        return 1;
    }
    available /= 2;
    available = available > 2 * logs ? available - logs
                                     : available / 4; /* a small log is at most 3 times the rest */
    available = available < CUDA_CHUNK_BYTES ? available : CUDA_CHUNK_BYTES;
    most = available / bytes_of(n, bytes_of((int64_t)row, sizeof(real)));
    if (n > DC_LEAF_COLUMNS && most > (uint64_t)(GRID_MOST / nodes)) {
        most = (uint64_t)(GRID_MOST / nodes);
    }
    return most > 1 ? (int64_t)most : 1;
}

static tsvd_status
load(struct tsvd_context *ctx, struct chunk *chunk)
{
    tsvdi_cuda_wait_releases(cuda_of(ctx));
    if (ctx->problem->from == TSVD_CUDA || tsvdi_cuda_load_needs_staging(ctx->plan)) {
        return tsvdi_cuda_load_chunk(ctx, chunk);
    }
    tsvdi_host_load(ctx->problem, chunk);
    return TSVD_OK;
}

static struct bytes
load_bytes(const struct svd_plan *plan)
{
    const int64_t numbers = 2 * plan->reported.chunk * (plan->reported.n + 1);
    struct bytes bytes = {SENDER_BYTES, 0};

    if (plan->problem->from == TSVD_CUDA || tsvdi_cuda_load_needs_staging(plan)) {
        bytes.device = bytes_of(numbers, sizeof(real));
    }
    return bytes;
}

static tsvd_status
put_values(struct tsvd_context *ctx, const real *s, int64_t count, real *to)
{
    if (ctx->call->to == TSVD_CUDA) {
        return tsvdi_cuda_upload(cuda_of(ctx), to, s, (size_t)count * sizeof(*s));
    }
    memcpy(to, s, (size_t)count * sizeof(*s));
    return TSVD_OK;
}

static tsvd_status
fill(struct tsvd_context *ctx, int64_t i, int kind, struct results to)
{
    tsvd_status ret = TSVD_OK;

    if (ctx->call->to == TSVD_CUDA) {
        return tsvdi_cuda_load_fill(ctx, i, kind, to);
    }
    TSVD_TRY(
        tsvdi_cuda_finish_downloads(cuda_of(ctx))); /* or results in flight would overwrite it */
    tsvdi_host_fill(ctx->problem, i, kind, to);
out:
    return ret;
}

static tsvd_status
fill_nan(struct tsvd_context *ctx, tsvd_space space, int64_t count, real *x)
{
    tsvd_status ret = TSVD_OK;

    if (space == TSVD_CUDA) {
        return tsvdi_cuda_load_fill_nan(ctx, count, x);
    }
    TSVD_TRY(tsvdi_cuda_finish_downloads(cuda_of(ctx))); /* as in fill() */
    tsvdi_host_fill_nan(count, x);
out:
    return ret;
}

extern "C" const struct backend *
tsvdi_cuda(void)
{
    static const struct backend backend = {
        .name = "CUDA device",
        .number = 1,
        .open = cuda_open,
        .close = cuda_close,
        .chunk_most = chunk_most,
        .load = load,
        .put_values = put_values,
        .fill = fill,
        .fill_nan = fill_nan,
        .load_bytes = load_bytes,
        .extra = &tsvdi_cuda_extra,
        .has_memory = 1,
        .workers = 0,
        .blas_order = 0,
        .values_by_qr = 0,
        .host_values_order = VALUES_CPU_ORDER,
        .twisted_order = 1,
        .twisted_few_order = 1,
        .finish_downloads = finish_downloads,
        .orient_by_column = tsvdi_cuda_dense_orient_by_column,
        .values = &tsvdi_cuda_values,
        .vectors = &tsvdi_cuda_vectors,
        .dc = &tsvdi_cuda_dc,
        .twisted = &tsvdi_cuda_twisted,
        .givens = &tsvdi_cuda_givens,
        .dense = &tsvdi_cuda_dense,
        .jacobi = &tsvdi_cuda_jacobi,
        .small = &tsvdi_cuda_jacobi_tiny,
        .inverse = &tsvdi_cuda_inverse,
    };

    return &backend;
}
