/*
 * The CPU back end: its tables of operations, and how many matrices it works on at once.  Mirrors
 * cuda/backend.cu.
 */
#include <string.h>

#include "cpu/dc/dc_run.h"
#include "cpu/tuning.h"

/* Larger than a leaf. */
enum { TWISTED_FEW_ORDER = DC_LEAF_COLUMNS + 1 };

static tsvd_status
cpu_open(struct tsvd_context *ctx)
{
    (void)ctx;
    return TSVD_OK;
}

static void
cpu_close(struct tsvd_context *ctx, struct chunk *chunk)
{
    (void)chunk;
    tsvdi_free(ctx, ctx->worker_state);
    ctx->worker_state = NULL;
}

/* Enough leaves to fill the SIMD lanes; values alone are found together only for matrices that are
   one leaf. */
static int64_t
chunk_most(const struct svd_problem *p)
{
    const int64_t leaves = (p->n + DC_LEAF_COLUMNS - 1) / DC_LEAF_COLUMNS;
    const int64_t lanes = tsvdi_cpu_dc_leaf_group_size();

    return (p->vectors || leaves == 1) && leaves < lanes ? lanes / leaves : 1;
}

static tsvd_status
load(struct tsvd_context *ctx, struct chunk *chunk)
{
    tsvdi_host_load(ctx->problem, chunk);
    return TSVD_OK;
}

static struct bytes
load_bytes(const struct svd_plan *plan)
{
    const struct bytes none = {0, 0};

    (void)plan;
    return none;
}

static tsvd_status
put_values(struct tsvd_context *ctx, const real *s, int64_t count, real *to)
{
    (void)ctx;
    memcpy(to, s, (size_t)count * sizeof *s);
    return TSVD_OK;
}

static tsvd_status
fill(struct tsvd_context *ctx, int64_t i, int kind, struct results to)
{
    tsvdi_host_fill(ctx->problem, i, kind, to);
    return TSVD_OK;
}

static tsvd_status
fill_nan(struct tsvd_context *ctx, tsvd_space space, int64_t count, real *x)
{
    (void)ctx, (void)space; /* a handle of the CPU has arrays on the host only */
    tsvdi_host_fill_nan(count, x);
    return TSVD_OK;
}

const struct backend tsvdi_cpu = {
    .name = "CPU",
    .number = 0,
    .open = cpu_open,
    .close = cpu_close,
    .chunk_most = chunk_most,
    .load = load,
    .put_values = put_values,
    .fill = fill,
    .fill_nan = fill_nan,
    .load_bytes = load_bytes,
    .extra = &tsvdi_cpu_extra,
    .workers = 1,
    .blas_order = BLAS_ORDER,
    .values_by_qr = 1,
    .twisted_order = CPU_TWISTED_ORDER,
    .twisted_few_order = TWISTED_FEW_ORDER,
    .values = &tsvdi_cpu_values,
    .vectors = &tsvdi_cpu_vectors,
    .dc = &tsvdi_cpu_dc,
    .twisted = &tsvdi_cpu_twisted,
    .givens = &tsvdi_cpu_givens,
    .dense = &tsvdi_cpu_dense,
    .jacobi = &tsvdi_cpu_jacobi,
    .small = &tsvdi_cpu_dense_lanes,
    .inverse = &tsvdi_cpu_inverse,
};
