/*
 * The CPU back end: its table of operations and the choice of kernels.  Vectors are in
 * cpu/vectors.c, values in cpu/values.c, divide and conquer in cpu/dc/dc.c, the givens method in
 * cpu/givens.c.
 */
#include "cpu/dc/dc.h"
#include "host/host.h"

const struct cpu_kernels *
tsvdi_kernels(void)
{
#if TSVD_X86_KERNELS
    switch (tsvdi_host_isa()) {
    case HOST_AVX512:
        return &tsvdi_kernels_avx512;
    case HOST_AVX2:
        return &tsvdi_kernels_avx2;
    case HOST_GENERIC:
        break;
    }
#endif
    return &tsvdi_kernels_generic;
}

static tsvd_status
cpu_open(struct tsvd_context *ctx)
{
    (void)ctx;
    return TSVD_OK;
}

static void
cpu_close(struct tsvd_context *ctx)
{
    tsvdi_host_free(ctx->device); /* the workspace of leaves */
    ctx->device = NULL;
}

/* As many small ones as give every lane a leaf; without vectors larger ones are none. */
static int64_t
cpu_batch_most(struct tsvd_context *ctx, int64_t n, int vectors)
{
    const int64_t leaves = (n + DC_LEAF_COLUMNS - 1) / DC_LEAF_COLUMNS;
    const int64_t lanes = tsvdi_cpu_leaf_group_size();

    (void)ctx;
    return (vectors || leaves == 1) && leaves < lanes ? lanes / leaves : 1;
}

/* The results' own memory: columns of L, rows of R. */
static tsvd_status
cpu_vectors_begin(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch, real *L, real *R,
                  struct vectors *left, struct vectors *right)
{
    (void)ctx;
    *left = (struct vectors){L, n, k, batch, 1};
    *right = (struct vectors){R, n, k, batch, 0};
    return TSVD_OK;
}

static tsvd_status
cpu_vectors_end(struct tsvd_context *ctx, struct vectors left, struct vectors right, real *L,
                real *R)
{
    (void)ctx, (void)left, (void)right, (void)L, (void)R;
    return TSVD_OK;
}

static void
cpu_vectors_free(struct tsvd_context *ctx, struct vectors *left, struct vectors *right)
{
    (void)ctx, (void)left, (void)right;
}

const struct tsvd_backend tsvdi_cpu = {
    .open = cpu_open,
    .close = cpu_close,
    .batch_most = cpu_batch_most,
    .vectors_begin = cpu_vectors_begin,
    .vectors_end = cpu_vectors_end,
    .vectors_free = cpu_vectors_free,
    .identity = tsvdi_cpu_identity,
    .rotate = tsvdi_cpu_rotate,
    .order = tsvdi_cpu_order,
    .orthonormalize = tsvdi_cpu_orthonormalize,
    .values = tsvdi_cpu_values,
    .dc_begin = tsvdi_cpu_dc_begin,
    .dc_end = tsvdi_cpu_dc_end,
    .dc_leaves = tsvdi_cpu_dc_leaves,
    .dc_merge = tsvdi_cpu_dc_merge,
    .dc_finish = tsvdi_cpu_dc_finish,
    .givens_small_rows = CPU_GIVENS_SMALL_ROWS,
    .givens_round_sweeps = tsvdi_cpu_givens_round_sweeps,
    .givens_round = tsvdi_cpu_givens_round,
    .givens_finish = tsvdi_cpu_givens_finish,
};
