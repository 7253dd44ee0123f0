/*
 * Dense matrices on the CPU: W = Q R by Householder's reflectors, a panel of columns at a time.
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"

enum {
    PANEL = 32,
    /* tsvdi_check() is called before each column of this many rows, and else before a panel. */
    LONG_COLUMN = 1 << 16,
    /* Columns of a panel where the matrix has more than PANEL columns, and NARROW_TO at most. */
    NARROW_PANEL = 16,
    NARROW_TO = 128
};

/* Columns of a panel.  After a panel products with V^H update the remaining columns, and these
   products round.  Narrow panels leave less to them, where the bound on the values' error is small.
   A matrix of few columns is one panel. */
static int64_t
panel_of(struct dense_matrix m)
{
    return m.columns > PANEL && m.columns <= NARROW_TO ? NARROW_PANEL : PANEL;
}

/* Terms of a partial sum in products with V^H.  The rounding errors of a long sum of equal terms
   add up, and are the same in all columns after a panel: so partial sums are short.  They may grow
   with the number of columns, as the bound on the values' error does.  They have to grow with the
   number of rows, or there would be too many of them to add up. */
static int64_t
terms_of(struct dense_matrix m)
{
    int64_t terms = 8;

    while (6 * terms < m.columns || (terms < 64 && 16 * terms * terms < m.rows)) {
        terms *= 2;
    }
    return terms;
}

/* Factors the panel of columns first .. last - 1, rows from `first` on. */
static tsvd_status
factor_panel(const struct dense_run *run, int worker, struct dense_matrix m, int64_t first,
             int64_t last, scalar *tau, double done)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    tsvd_status ret = TSVD_OK;

    for (int64_t j = first; j < last; j++) {
        const int64_t length = m.rows - j;
        scalar *v = m.a + j * (m.stride + 1), sum[PANEL];
        real beta;

        if (j == first || length >= LONG_COLUMN) {
            TSVD_TRY(dense_check(run, worker, done));
        }
        tau[j] = tsvdi_cpu_dense_reflector(length, v, &beta);
        kernels->dots(length, last - j - 1, v + m.stride, m.stride, v, sum);
        for (int64_t k = 0; k < last - j - 1 && tau[j] != 0; k++) {
            const scalar factor = n_conj(n_mul(-tau[j], sum[k]));

            kernels->accumulate(length, 1, &factor, v, length, v + (k + 1) * m.stride);
        }
        *v = beta;
    }
out:
    return ret;
}

tsvd_status
tsvdi_cpu_dense_qr(struct dense_run *run, int worker, struct dense_matrix m, scalar *tau,
                   double done, double share)
{
    const int64_t terms = terms_of(m), panel = panel_of(m);
    tsvd_status ret = TSVD_OK;

    for (int64_t first = 0; first < m.columns; first += panel) {
        const int64_t last = m.columns - first < panel ? m.columns : first + panel;
        const struct dense_reflectors reflectors = {.a = m.a + first * (m.stride + 1),
                                                    .tau = tau + first,
                                                    .stride = m.stride,
                                                    .count = last - first,
                                                    .length = m.rows - first,
                                                    .terms = terms};
        const double now = done + share * (double)first / (double)m.columns;
        const struct dense_block rest = {
            m.a + last * m.stride + first, m.rows - first, m.columns - last, m.stride, 1, 0};

        TSVD_TRY(factor_panel(run, worker, m, first, last, tau, now));
        TSVD_TRY(tsvdi_cpu_dense_multiply(run, worker, &reflectors, 1, rest, now, 0));
    }
out:
    return ret;
}

/* ---- as a stage ---- */

static int64_t
no_workspace(int64_t rows, int64_t columns, int threads)
{
    (void)rows, (void)columns, (void)threads;
    return 0;
}

/* M = Q R; R, with zeros below its diagonal, is the M of the next stage. */
static tsvd_status
factor(struct cpu_dense *state, int worker, const struct stage_run *own, int64_t i)
{
    const struct dense_matrix m = stage_matrix(own, i), r = stage_matrix(own + 1, i);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_dense_qr(&state->run, worker, m, own->tau_q + i * own->columns, own->done,
                                own->share));
    for (int64_t j = 0; j < r.columns; j++) {
        scalar *to = r.a + j * r.stride;

        memcpy(to, m.a + j * m.stride, (size_t)(j + 1) * sizeof *to);
        memset(to + j + 1, 0, (size_t)(r.rows - j - 1) * sizeof *to);
    }
out:
    return ret;
}

const struct stage tsvdi_cpu_dense_qr_stage = {
    .sides = 1,
    .work = 1,
    .numbers = tsvdi_cpu_dense_numbers,
    .workspace = no_workspace,
    .factor = factor,
    .multiply = tsvdi_cpu_dense_multiply_stage,
};
