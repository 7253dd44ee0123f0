/*
 * The CUDA back end: its table of operations, and the results' way to the host.
 * Mirrors csrc/cpu.c.
 */
#include "kernels.h"

static tsvd_status
cuda_open(struct tsvd_context *ctx)
{
    struct cuda_call *call = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ctx->backend->alloc(ctx, sizeof(*call), (void **)&call));
    ctx->device = call;
    TSVD_TRY(tsvdi_cuda_open(ctx->options->device, ctx->error, call));
out:
    return ret;
}

static void
cuda_close(struct tsvd_context *ctx)
{
    if (ctx->device != NULL) {
        tsvdi_cuda_close(cuda_of(ctx));
        ctx->backend->free(ctx->device);
        ctx->device = NULL;
    }
}

static tsvd_status
cuda_alloc_host(struct tsvd_context *ctx, size_t bytes, void **p)
{
    return tsvdi_host_alloc(bytes, ctx->error, p);
}

static void
cuda_vectors_free(struct tsvd_context *ctx, struct vectors *left, struct vectors *right)
{
    tsvdi_cuda_free(cuda_of(ctx), left->x);
    tsvdi_cuda_free(cuda_of(ctx), right->x);
    left->x = right->x = NULL;
}

static tsvd_status
cuda_vectors_begin(struct tsvd_context *ctx, int64_t n, real *L, real *R_, struct vectors *left,
                   struct vectors *right)
{
    const size_t matrix = (size_t)n * (size_t)n * sizeof(real);
    tsvd_status ret = TSVD_OK;

    (void)R_;
    left->n = right->n = n;
    left->columns = right->columns = 0;
    left->x = right->x = NULL;
    if (L != NULL) {
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), matrix, (void **)&left->x));
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), matrix, (void **)&right->x));
    }
out:
    if (ret != TSVD_OK) {
        cuda_vectors_free(ctx, left, right);
    }
    return ret;
}

static tsvd_status
cuda_vectors_end(struct tsvd_context *ctx, struct vectors left, struct vectors right, real *L,
                 real *R_)
{
    const size_t matrix = (size_t)left.n * (size_t)left.n * sizeof(real);
    tsvd_status ret = TSVD_OK;

    if (L != NULL) {
        TSVD_TRY(tsvdi_cuda_download(cuda_of(ctx), ctx->threads, L, left.x, matrix));
        TSVD_TRY(tsvdi_cuda_download(cuda_of(ctx), ctx->threads, R_, right.x, matrix));
    }
out:
    return ret;
}

static tsvd_status
host_for_each(int workers, int64_t count, tsvd_task task, void *arg)
{
    return tsvdi_host_for_each(workers, count, task, arg);
}

extern "C" const struct tsvd_backend *
tsvdi_cuda(void)
{
    static const struct tsvd_backend backend = {
        .name = "cuda",
        .open = cuda_open,
        .close = cuda_close,
        .alloc = cuda_alloc_host,
        .free = tsvdi_host_free,
        .for_each = host_for_each,
        .vectors_begin = cuda_vectors_begin,
        .vectors_end = cuda_vectors_end,
        .vectors_free = cuda_vectors_free,
        .identity = tsvdi_cuda_identity,
        .rotate = tsvdi_cuda_rotate,
        .order = tsvdi_cuda_order,
        .orthonormalize = tsvdi_cuda_orthonormalize,
        .values = tsvdi_cuda_values,
        .givens_small_rows = FINISH_ROWS,
        .givens_round_sweeps = tsvdi_cuda_givens_round_sweeps,
        .givens_round = tsvdi_cuda_givens_round,
        .givens_finish = tsvdi_cuda_givens_finish,
    };

    return &backend;
}
