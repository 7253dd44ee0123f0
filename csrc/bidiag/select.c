/*
 * Which singular values lie in an interval, by two Sturm counts on the host; see tsvd_select() in
 * tsvd.h.
 */
#include <math.h>

#include "bidiag/bidiag_call.h"

/* The least number above a bound >= 0; infinity is above the largest one. */
static real
next_above(double bound)
{
    const real x = bound >= (double)R_LARGEST ? R_LARGEST : REAL(bound);

    return (double)x <= bound ? r_from_bits(r_bits(x) + 1) : x;
}

/* The shift at which values 2^power s count as sigma or more, for a matrix that has the values s.
   That is decided in the units of sigma, where numbers may be farther apart: s lies between them,
   and in the middle it is given as the even one. */
static real
in_units(real sigma, int power)
{
    int twice;
    real shift = r_shift(sigma, &twice);

    r_scale(&shift, 1, power - twice, &shift);
    if (twice < 0 && r_bits(sigma) % 2 != 0) {
        shift = r_from_bits(r_bits(shift) + 1);
    }
    return r_max(shift, r_from_bits(1));
}

/* How many values of a matrix with finite entries, not all zero, are above a bound; the values of
   `matrix` times 2^power. */
static int64_t
count_above(const struct values_ops *values, const struct sturm *matrix, double bound, int power)
{
    int64_t above = 0;
    real sigma;

    if (bound < 0) {
        return matrix->n;
    }
    sigma = next_above(bound + 0.0); /* turns -0 into 0 */
    sigma = power != 0 ? in_units(sigma, power) : sigma;
    if (!isinf(bound) && r_bits(sigma) < matrix->top) {
        values->count(matrix, 1, &sigma, &above);
    }
    return above;
}

tsvd_status
tsvdi_select(const struct svd_problem *p, double low, double high, int64_t *first, int64_t *count,
             tsvd_error *error)
{
    struct svd_plan plan = {
        .problem = p, .backend = tsvdi_backend_of(p->call.handle), .host_entries = 1};
    struct tsvd_context ctx = {.call = &p->call,
                               .options = p->call.options,
                               .problem = p,
                               .plan = &plan,
                               .error = error,
                               .threads = 1,
                               .count = 1,
                               .total = 1};
    struct chunk chunk = {0};
    struct extra_column extra = {0};
    struct sturm matrix;
    void *memory = NULL;
    int power = 0;
    tsvd_status ret = TSVD_OK;

    if (p->n == 0) {
        goto out;
    }
    plan.reported.chunk = plan.reported.matrices = 1;
    plan.reported.n = p->n;
    TSVD_TRY(plan.backend->open(&ctx));
    TSVD_TRY(tsvdi_chunk_alloc(&ctx, &chunk));
    chunk.count = 1;
    TSVD_TRY(plan.backend->load(&ctx, &chunk));
    if (chunk.kind[0] == NONFINITE) {
        if (p->call.options->check_finite) {
            tsvdi_blame(&ctx, 0);
            ret = tsvdi_fail(error, TSVD_ERR_NONFINITE, "%s", tsvd_strstatus(TSVD_ERR_NONFINITE));
        }
        goto out;
    }
    if (chunk.kind[0] == ZERO) {
        *first = high < 0 ? p->n : 0;
        *count = low < 0 && high >= 0 ? p->n : 0;
        goto out;
    }
    if (p->extra) {
        TSVD_TRY(tsvdi_alloc(&ctx, bytes_of(p->n, sizeof *extra.turn), (void **)&extra.turn));
        extra.power = &power;
        tsvdi_host_drop_extra(p->n, 0, &chunk, &extra);
    }
    TSVD_TRY(tsvdi_alloc(&ctx, tsvdi_sturm_bytes(p->n), &memory));
    tsvdi_sturm_prepare(p->n, chunk.d, chunk.e, memory, &matrix);
    *first = count_above(tsvdi_host_values(), &matrix, high, power);
    *count = count_above(tsvdi_host_values(), &matrix, low, power) - *first;
    *count = *count < 0 ? 0 : *count; /* counts are monotone except for rounding */
out:
    tsvdi_free(&ctx, memory);
    tsvdi_free(&ctx, extra.turn);
    tsvdi_free(&ctx, chunk.d);
    plan.backend->close(&ctx, &chunk);
    return ret;
}
