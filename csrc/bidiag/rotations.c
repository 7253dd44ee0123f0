/*
 * What QR and the givens method have in common: the matrix is scaled, brought to diagonal form by
 * rotations, and its values and vectors are put in order.
 */
#include <string.h>

#include "bidiag/parts.h"

/* Workspace for one matrix of order n. */
struct work {
    int64_t *from;  /* from[i]: which value has rank i */
    int64_t *spare; /* for sorting */
    real *d, *e;    /* scaled; the iteration overwrites them, and d then holds the values */
    real *hint;     /* |values|, descending, unscaled */
    char *negative; /* 1 where a value is negative, in the order of the iteration */
};

/* All arrays are in one piece, which `from` begins, the widest types first. */
static tsvd_status
work_alloc(struct tsvd_context *ctx, int64_t n, struct work *w)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(n, 2 * sizeof(int64_t) + 3 * sizeof(real) + 1),
                         (void **)&w->from));
    w->spare = w->from + n;
    w->d = (real *)(w->spare + n);
    w->e = w->d + n;
    w->hint = w->e + n;
    w->negative = (char *)(w->hint + n);
out:
    return ret;
}

struct bytes
tsvdi_rotations_bytes(const struct svd_plan *plan)
{
    struct bytes work = {bytes_of(plan->reported.n, 2 * sizeof(int64_t) + 4 * sizeof(real) + 1), 0};

    return plan->problem->vectors ? bytes_sum(work, plan->backend->vectors->begin_bytes(plan))
                                  : work;
}

/* from[] such that key[from[i]] descends; stable, by merging. */
static void
sort_descending(const real *key, int64_t n, int64_t *from, int64_t *buffer)
{
    for (int64_t i = 0; i < n; i++) {
        from[i] = i;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n;
            int64_t end = middle + width < n ? middle + width : n;
            int64_t a = begin, b = middle;

            for (int64_t i = begin; i < end; i++) {
                buffer[i] = b >= end || (a < middle && key[from[a]] >= key[from[b]]) ? from[a++]
                                                                                     : from[b++];
            }
        }
        memcpy(from, buffer, (size_t)n * sizeof *from);
    }
}

/* Ranks the values: from, negative and hint. */
static void
rank(struct work *w, int64_t n, real_int exponent)
{
    real *magnitude = w->e;

    for (int64_t i = 0; i < n; i++) {
        w->negative[i] = w->d[i] < 0;
        magnitude[i] = r_abs(w->d[i]);
    }
    sort_descending(magnitude, n, w->from, w->spare);
    for (int64_t i = 0; i < n; i++) {
        w->hint[i] = magnitude[w->from[i]];
    }
    r_scale(w->hint, n, -exponent, w->hint);
}

/* Puts all values into w->hint, and the vectors into `to`. */
static tsvd_status
decompose(struct tsvd_context *ctx, const struct chunk *chunk, struct work *w, struct results to,
          svd_iteration *run, tsvd_info *info)
{
    const struct vectors_ops *ops = ctx->plan->backend->vectors;
    const int64_t n = ctx->problem->n;
    const real_int exponent = chunk->exponent[0];
    const int lower = ctx->options->lower, vectors = to.L != NULL;
    struct vectors left = {0}, right = {0};
    real eps = tsvdi_eps(ctx);
    double clock;
    tsvd_status ret = TSVD_OK;

    if (vectors) {
        TSVD_TRY(ops->begin(ctx, n, n, 1, to, &left, &right));
    }
    r_scale(chunk->d, n, exponent, w->d);
    r_scale(chunk->e, n - 1, exponent, w->e);
    r_scale(&eps, 1, exponent, &eps);
    TSVD_TRY(run(ctx, n, w->d, w->e, eps, lower ? left : right, lower ? right : left, info));
    clock = tsvdi_host_seconds();
    rank(w, n, exponent);
    if (vectors) {
        TSVD_TRY(ops->order(ctx, w->from, w->negative, left, right));
        TSVD_TRY(ops->end(ctx, left, right, to));
    }
    info->seconds_vectors += tsvdi_host_seconds() - clock;
out:
    if (vectors) {
        ops->free(ctx, &left, &right);
    }
    return ret;
}

/* How far the rotations may have moved the values, or further.  The errors of a value's few sweeps
   add up at random; 2.6 (8 + n / 8) u s_1 was seen, of order 300.  An eps below this is not what
   bounds the errors. */
static real
rounding_errors(const struct work *w, int64_t n)
{
    return (real)(n + 8) * R_EPS * w->hint[0];
}

tsvd_status
tsvdi_rotations(struct tsvd_context *ctx, const struct chunk *chunk, struct results to,
                svd_iteration *iterate, tsvd_info *info)
{
    const int64_t first = ctx->problem->first, k = ctx->problem->k;
    struct work w = {0};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(work_alloc(ctx, ctx->problem->n, &w));
    TSVD_TRY(decompose(ctx, chunk, &w, to, iterate, info));
    if (tsvdi_eps(ctx) <= rounding_errors(&w, ctx->problem->n) || chunk_may_overflow(chunk, 0)) {
        TSVD_TRY(tsvdi_find_values(ctx, chunk, w.hint + first, 0, to.s, info));
    } else { /* accurate to eps, as was asked, and far from overflow */
        TSVD_TRY(ctx->plan->backend->put_values(ctx, w.hint + first, k, to.s));
    }
out:
    tsvdi_free(ctx, w.from);
    return ret;
}
