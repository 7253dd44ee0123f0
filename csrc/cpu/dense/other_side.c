/*
 * Dense matrices on the CPU: vectors of one side from those of the other.
 *
 *     U = A V S^-1,   V^H = S^-1 U^H A
 *
 * That is one product, where reflectors take three or four.  A column is off by its residual over
 * its value.  So only the vectors of large values are made like this: s_1 / OTHER_SIDE_SHARE and
 * more.
 */
#include "cpu/dense/other_side.h"
#include "backend/other_side.h"
#include "cpu/tuning.h"

int
tsvdi_cpu_dense_can_make_side(const struct dense_problem *p, int keep)
{
    const double longer = (double)longer_of(&p->a);

    /* with eps the SVD of B is so far from exact; and of a tall matrix A is large beside U or V */
    return keep == KEEP_VECTORS && p->vectors && p->n >= CPU_OTHER_SIDE_FROM &&
           !(p->call.options->eps > 0) && longer < CPU_QR_RATIO * (double)p->n;
}

tsvd_status
tsvdi_cpu_dense_large_values(const struct tsvd_context *ctx, const struct dense_job *job, int64_t i,
                             int64_t *large)
{
    const struct dense_problem *p = job->problem;

    return large_values(ctx, p, job->b.s + i * p->k, job->d + i * p->n, job->e + i * p->n, large);
}

tsvd_status
tsvdi_cpu_dense_make_side(const struct dense_run *run, int worker, int64_t i, int64_t count,
                          const real *s, int right, struct dense_array left,
                          struct dense_array right_rows, double done)
{
    const int64_t m = left.rows, n = right_rows.columns;
    struct dense_run transposed = *run;
    scalar *a = worker_work(run, worker);
    struct blas_product product = {.overwrite = 1, .factor = 1};
    tsvd_status ret = TSVD_OK;

    /* A^T, by columns */
    transposed.begin += i;
    transposed.kind += i;
    transposed.exponent += i;
    transposed.rows = n;
    transposed.columns = m;
    transposed.transposed = 1;
    transposed.conjugate = 0;
    transposed.w = a;
    TSVD_TRY(tsvdi_cpu_dense_load(&transposed, worker, 0, 1));
    /* to BLAS U is U^T, and V^H is the conjugate of V: V^H's transpose = A^T conj(U) S^-1, and
       U^T = S^-1 V^T A^T */
    if (right) {
        product.m = n;
        product.n = count;
        product.k = m;
        product.a = a;
        product.lda = n;
        product.b = left.x;
        product.ldb = left.columns;
        product.b_transposed = 1;
        product.c = right_rows.x;
        product.ldc = n;
    } else {
        product.m = count;
        product.n = m;
        product.k = n;
        product.a = right_rows.x;
        product.lda = n;
        product.a_transposed = 1;
        product.b = a;
        product.ldb = n;
        product.c = left.x;
        product.ldc = left.columns;
    }
    TSVD_TRY(tsvdi_cpu_dense_long_product(run, worker, &product, done));
    if (right) {
        for (int64_t j = 0; j < count; j++) {
            real *row = (real *)(right_rows.x + j * n);

            for (int64_t c = 0; c < N_PARTS * n; c++) {
                row[c] /= s[j];
            }
        }
    } else {
        for (int64_t r = 0; r < m; r++) {
            scalar *row = left.x + r * left.columns;

            for (int64_t j = 0; j < count; j++) {
                row[j] = n_scale(1 / s[j], row[j]);
            }
        }
    }
out:
    return ret;
}
