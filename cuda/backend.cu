/*
 * The CUDA back end: its table of operations, and the results' way to the host.
 * Mirrors csrc/cpu/backend.c.
 */
#include "kernels.h"

/* Workspace of matrices that are worked on together. */
static const uint64_t BATCH_BYTES = (uint64_t)8 << 30;

/* Blocks of a grid in its second dimension. */
enum { GRID_MOST = 65535 };

static tsvd_status
cuda_open(struct tsvd_context *ctx)
{
    struct cuda_call *call = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(sizeof(*call), ctx->error, (void **)&call));
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
        tsvdi_host_free(ctx->device);
        ctx->device = NULL;
    }
}

static void
cuda_vectors_free(struct tsvd_context *ctx, struct vectors *left, struct vectors *right)
{
    tsvdi_cuda_free(cuda_of(ctx), left->x);
    left->x = right->x = NULL;
}

/* As many as fit, of bounded workspace, and no more than a grid takes of the nodes of a level. */
static int64_t
cuda_batch_most(struct tsvd_context *ctx, int64_t n, int vectors)
{
    const int64_t nodes = n / (DC_LEAF_COLUMNS / 2) + 1; /* of a level, at most */
    const uint64_t order = (uint64_t)n, row = (uint64_t)(vectors ? 6 * device_stride(n) : 0) + 48;
    const uint64_t logs = (uint64_t)LEAF_LOG_MIB << 21; /* of leaves, at most */
    uint64_t room = 0, most;

    if (tsvdi_cuda_memory_free(cuda_of(ctx), &room) != TSVD_OK) {
        return 1;
    }
    room /= 2;
    room = room > 2 * logs ? room - logs : room / 4; /* a small log is not three times as large */
    room = room < BATCH_BYTES ? room : BATCH_BYTES;
    most = room / (order * row * sizeof(real));
    if (n > DC_LEAF_COLUMNS && most > (uint64_t)(GRID_MOST / nodes)) {
        most = (uint64_t)(GRID_MOST / nodes);
    }
    return most > 1 ? (int64_t)most : 1;
}

/* One piece for both sides, with room for aligned rows, which divide and conquer works in. */
static tsvd_status
cuda_vectors_begin(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch, real *L, real *R,
                   struct vectors *left, struct vectors *right)
{
    const size_t side = (size_t)batch * (size_t)n * (size_t)device_stride(n);
    tsvd_status ret = TSVD_OK;

    (void)R;
    *left = *right = {NULL, n, k, batch, 0};
    if (L != NULL) {
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), 2 * side * sizeof(real), (void **)&left->x));
        right->x = left->x + side;
    }
out:
    return ret;
}

static tsvd_status
cuda_vectors_end(struct tsvd_context *ctx, struct vectors left, struct vectors right, real *L,
                 real *R)
{
    const size_t bytes = (size_t)left.batch * (size_t)left.n * (size_t)left.k * sizeof(real);
    tsvd_status ret = TSVD_OK;

    if (L != NULL) {
        TSVD_TRY(tsvdi_cuda_download(cuda_of(ctx), ctx->threads, L, left.x, bytes));
        TSVD_TRY(tsvdi_cuda_download(cuda_of(ctx), ctx->threads, R, right.x, bytes));
    }
out:
    return ret;
}

extern "C" const struct tsvd_backend *
tsvdi_cuda(void)
{
    static const struct tsvd_backend backend = {
        .open = cuda_open,
        .close = cuda_close,
        .batch_most = cuda_batch_most,
        .vectors_begin = cuda_vectors_begin,
        .vectors_end = cuda_vectors_end,
        .vectors_free = cuda_vectors_free,
        .identity = tsvdi_cuda_identity,
        .rotate = tsvdi_cuda_rotate,
        .order = tsvdi_cuda_order,
        .orthonormalize = tsvdi_cuda_orthonormalize,
        .values = tsvdi_cuda_values,
        .dc_begin = tsvdi_cuda_dc_begin,
        .dc_end = tsvdi_cuda_dc_end,
        .dc_leaves = tsvdi_cuda_dc_leaves,
        .dc_merge = tsvdi_cuda_dc_merge,
        .dc_finish = tsvdi_cuda_dc_finish,
        .givens_small_rows = FINISH_ROWS,
        .givens_round_sweeps = tsvdi_cuda_givens_round_sweeps,
        .givens_round = tsvdi_cuda_givens_round,
        .givens_finish = tsvdi_cuda_givens_finish,
    };

    return &backend;
}
