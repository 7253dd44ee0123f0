/*
 * Reads matrices from arrays in host memory, and fills results there: the same for every back end.
 */
#include <math.h>
#include <string.h>

#include "backend/ops.h"

static void
gather(const char *from, ptrdiff_t stride, int64_t count, real *x)
{
    if (stride == sizeof *x) {
        memcpy(x, from, (size_t)count * sizeof *x);
    } else {
        for (int64_t i = 0; i < count; i++) {
            memcpy(&x[i], from + i * stride, sizeof *x);
        }
    }
}

/* The largest magnitude, or infinity if there is NaN or infinity. */
static real
largest_of(int64_t count, const real *x)
{
    real_int largest = 0;

    for (int64_t i = 0; i < count; i++) { /* without the sign, bits have the order of magnitudes */
        const real_int bits = r_bits(x[i]) & ~(real_int)R_SIGN_BIT;

        largest = bits > largest ? bits : largest;
    }
    return r_from_bits(largest < R_INFINITY_BITS ? largest : R_INFINITY_BITS);
}

void
tsvdi_host_gather(const struct svd_problem *p, const struct svd_input *input, int64_t begin,
                  int64_t count, int64_t filled, real *to)
{
    for (int64_t i = 0; i < count; i++) {
        real *x = to + i * p->n;

        if (filled > 0) { /* e of order 1 is empty, and its data may be NULL */
            const char *at = input->data;

            at += batch_offset(&p->batch, input->batch_strides, begin + i);
            gather(at, input->stride, filled, x);
        }
        memset(x + filled, 0, (size_t)(p->n - filled) * sizeof *x);
    }
}

/* Reads one matrix.  Returns its largest magnitude, or infinity if it holds NaN or infinity. */
static real
read_matrix(const struct svd_problem *p, int64_t index, real *d, real *e)
{
    tsvdi_host_gather(p, &p->d, index, 1, p->n, d);
    tsvdi_host_gather(p, &p->e, index, 1, entries_of_e(p), e);
    return r_max(largest_of(p->n, d), largest_of(p->n, e));
}

void
tsvdi_host_load(const struct svd_problem *p, struct chunk *chunk)
{
    chunk->ordinary = 0;
    for (int64_t i = 0; i < chunk->count; i++) {
        real *d = chunk->d + i * p->n, *e = chunk->e + i * p->n;
        const real largest = read_matrix(p, chunk->begin + i, d, e);

        chunk->kind[i] = !r_isfinite(largest) ? NONFINITE : largest == 0 ? ZERO : ORDINARY;
        chunk->exponent[i] = 0;
        if (chunk->kind[i] == ORDINARY) {
            (void)r_split(largest, &chunk->exponent[i]);
            chunk->ordinary++;
        } else {
            memset(d, 0, (size_t)p->n * sizeof *d);
            memset(e, 0, (size_t)p->n * sizeof *e);
        }
    }
}

void
tsvdi_host_fill_nan(int64_t count, real *x)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = REAL(NAN);
    }
}

void
tsvdi_host_fill(const struct svd_problem *p, int64_t i, int kind, struct results to)
{
    const int64_t k = p->k, stride = p->left_stride;
    real *const s = to.s + i * k, *left, *right;
    const real entry = kind == NONFINITE ? REAL(NAN) : 0;

    for (int64_t j = 0; j < k; j++) {
        s[j] = entry;
    }
    if (to.L == NULL) {
        return;
    }
    left = to.L + i * p->rows * stride;
    right = to.R + i * k * p->columns;
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t j = 0; j < k; j++) {
            left[row * stride + j] = entry;
        }
    }
    for (int64_t j = 0; j < k * p->columns; j++) {
        right[j] = entry;
    }
    for (int64_t j = 0; j < k && kind != NONFINITE; j++) {
        left[(p->first + j) * stride + j] = right[j * p->columns + p->first + j] = 1;
    }
}
