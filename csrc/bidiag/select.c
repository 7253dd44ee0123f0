/*
 * Which singular values lie in an interval, by two Sturm counts; see tsvd_select() in tsvd.h.
 */
#include "cpu/kernels/kernels.h"
#include "host/host.h"

/* The least number above a bound >= 0.  A value beyond the largest number is infinity to
   whoever asked for it, and is what the largest counts. */
static real
next_above(double bound)
{
    real x = bound >= (double)R_LARGEST ? R_LARGEST : REAL(bound);

    return bound < (double)R_LARGEST && (double)x <= bound ? r_from_bits(r_bits(x) + 1) : x;
}

/* How many values of a matrix with finite entries, not all zero, are above a bound. */
static int64_t
count_above(const struct sturm *matrix, double bound)
{
    int64_t above = 0;
    real sigma;

    if (bound < 0) {
        return matrix->n;
    }
    sigma = next_above(bound + 0.0); /* -0 is 0 */
    if (!isinf(bound) && r_bits(sigma) < matrix->top) {
        tsvdi_kernels()->count(matrix, 1, 1, &sigma, &above);
    }
    return above;
}

tsvd_status
tsvdi_select(const tsvd_problem *problem, const tsvd_options *options, double low, double high,
             int64_t *first, int64_t *k, tsvd_error *error)
{
    const int64_t n = problem->n;
    struct sturm matrix;
    real *d = NULL, largest;
    void *room = NULL;
    tsvd_status ret = TSVD_OK;

    if (n == 0) {
        goto out;
    }
    TSVD_TRY(tsvdi_host_alloc(2 * (size_t)n * sizeof *d, error, (void **)&d));
    largest = r_max(tsvdi_gather(problem->d, problem->d_stride, n, d),
                    tsvdi_gather(problem->e, problem->e_stride, n - 1, d + n));
    if (!r_isfinite(largest)) {
        if (options->check_finite) {
            ret = tsvdi_fail(error, TSVD_ERR_NONFINITE, "%s", tsvd_strstatus(TSVD_ERR_NONFINITE));
        }
        goto out;
    }
    if (largest == 0) {
        *first = high < 0 ? n : 0;
        *k = low < 0 && high >= 0 ? n : 0;
        goto out;
    }
    TSVD_TRY(tsvdi_host_alloc(tsvdi_sturm_bytes(n), error, &room));
    tsvdi_sturm_prepare(n, d, d + n, room, &matrix);
    *first = count_above(&matrix, high);
    *k = count_above(&matrix, low) - *first;
    *k = *k < 0 ? 0 : *k; /* counts are monotone but for rounding */
out:
    tsvdi_host_free(room);
    tsvdi_host_free(d);
    return ret;
}
