/*
 * Dense matrices on the CPU: Householder's reduction to bidiagonal form (Golub & Kahan 1965).
 *
 * It goes in panels of columns and rows (Dongarra, Hammarling & Sorensen 1989).  Within a panel the
 * rest of the array keeps its old entries, A, and the matrix is
 *
 *     A - V Y^H - X U^H,
 *
 * where V and Y have a column for each reflector of the left, v, and X and U have one for each
 * reflector of the right, u.  The panel ends with two matrix products that bring A up to date.
 *
 * A column of the panel needs y = tau A^H v and x = tau A u, but u is known only after y.  Still
 * one pass over A is enough (Howell, Demmel, Fulton, Hammarling & Marmol, ACM TOMS 34, 2008): an
 * entry of y gives the entry of the row whose conjugate r makes u, and its column of A is added to
 * w = A r while it is in the cache.  u = (1, up scale (r_1, r_2, ...)), so
 *
 *     A u = (1 - up scale r_0) a_0 + up scale w.
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"
#include "cpu/tuning.h"
#include "math/reflector.h"

enum {
    /* Columns of A that are passed over together. */
    GROUP = 4,
    /* A pass over PARTS_COLUMNS columns or more is cut into PARTS parts, each with a w of its own,
       whatever threads there are: the results do not depend on them.  Rounding errors of long sums
       of equal terms add up, and these sums are an eighth as long. */
    PARTS = 8,
    PARTS_COLUMNS = 48,
    /* tsvdi_check() is called before each pass over this many numbers, and else before a panel. */
    LONG_PASS = 1 << 20
};

/* What it writes of a matrix: B, and the factors of the reflectors. */
struct dense_bidiagonal {
    real *d, *e;           /* [columns]; e[columns - 1] = 0 */
    scalar *tau_q, *tau_p; /* [columns] */
};

/* A panel under way.  Rows and columns have the numbers that they have in the matrix. */
struct slice {
    struct dense_matrix m;
    int64_t first, row; /* its first column; the one under work */
    scalar *x;          /* [CPU_REDUCE_PANEL][rows] */
    scalar *y, *u;      /* [CPU_REDUCE_PANEL][columns] */
    scalar *r, *above;  /* [columns] conjugates, of the row under work and of the row of
                           V Y^H + X U^H that is subtracted from A's */
    scalar *w;          /* [PARTS][rows] */
    const scalar *v;    /* [rows - row] the reflector of the left */
    scalar tau;         /* its factor */

    /* [CPU_REDUCE_PANEL] V^H v and X^H v; conjugates of the row under work of V, and of X. */
    scalar v_product[CPU_REDUCE_PANEL], x_product[CPU_REDUCE_PANEL];
    scalar v_row[CPU_REDUCE_PANEL], x_row[CPU_REDUCE_PANEL];
};

/* Whether the kernel for small matrices reduces it. */
static int
is_small(int64_t rows, int64_t columns)
{
    return tsvdi_kernels()->reduce != NULL && rows <= CPU_REDUCE_SMALL_NUMBERS / columns;
}

/* Numbers between the columns of a small matrix in the workspace. */
static int64_t
small_stride(int64_t rows)
{
    const int64_t lanes = tsvdi_kernels()->lanes;

    return (rows + lanes - 1) / lanes * lanes;
}

static int64_t
workspace(int64_t rows, int64_t columns, int threads)
{
    (void)threads;
    if (is_small(rows, columns)) {
        return (columns + 6) * small_stride(rows) + tsvdi_kernels()->lanes;
    }
    return (CPU_REDUCE_PANEL + PARTS) * rows + (2 * CPU_REDUCE_PANEL + 3) * columns;
}

static struct slice
slice_of(struct dense_matrix m, scalar *workspace)
{
    struct slice p = {.m = m, .x = workspace};

    p.w = p.x + CPU_REDUCE_PANEL * m.rows;
    p.y = p.w + PARTS * m.rows;
    p.u = p.y + CPU_REDUCE_PANEL * m.columns;
    p.r = p.u + CPU_REDUCE_PANEL * m.columns;
    p.above = p.r + m.columns;
    return p;
}

/* ---- the pass over A ---- */

/* y = (V Y^H + X U^H)^H v, and `above`, of the row under work of V Y^H + X U^H, in columns begin ..
   begin + count - 1. */
static void
begin_columns(const struct slice *p, int64_t begin, int64_t count)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t done = p->row - p->first, columns = p->m.columns;
    const scalar *of_y = p->y + begin, *of_u = p->u + begin;
    scalar *y = p->y + done * columns + begin, *above = p->above + begin;

    memset(y, 0, (size_t)count * sizeof *y);
    memset(above, 0, (size_t)count * sizeof *above);
    kernels->accumulate(count, done, p->v_product, of_y, columns, y);
    kernels->accumulate(count, done, p->x_product, of_u, columns, y);
    kernels->accumulate(count, done, p->v_row, of_y, columns, above);
    kernels->accumulate(count, done, p->x_row, of_u, columns, above);
}

/* Columns begin .. end - 1: their entries of y and r, and what these columns add to w = A r. */
static void
pass(const struct slice *p, int64_t begin, int64_t end, scalar *w)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t length = p->m.rows - p->row, stride = p->m.stride;
    scalar *y = p->y + (p->row - p->first) * p->m.columns;

    begin_columns(p, begin, end - begin);
    memset(w + p->row + 1, 0, (size_t)(length - 1) * sizeof *w);
    for (int64_t j = begin; j < end; j += GROUP) {
        const int64_t count = end - j < GROUP ? end - j : GROUP;
        const scalar *a = p->m.a + j * stride + p->row;
        scalar sum[GROUP];

        kernels->dots(length, count, a, stride, p->v, sum);
        for (int64_t k = 0; k < count; k++) {
            y[j + k] = n_mul(p->tau, sum[k] - y[j + k]);
            p->r[j + k] = n_conj(a[k * stride]) - p->above[j + k] - y[j + k];
        }
        kernels->accumulate(length - 1, count, p->r + j, a + 1, stride, w + p->row + 1);
    }
}

static int64_t
parts_of(const struct slice *p)
{
    return p->m.columns - p->row < PARTS_COLUMNS ? 1 : PARTS;
}

static int
threads_of(const struct dense_run *run, const struct slice *p)
{
    const int64_t numbers = (p->m.rows - p->row) * (p->m.columns - p->row);

    return numbers < CPU_REDUCE_SHARED_NUMBERS ? 1 : run->threads;
}

/* Part `part` of the columns after the one under work. */
static tsvd_status
pass_part(void *arg, int worker, int64_t part)
{
    const struct slice *p = arg;
    const int64_t first = p->row + 1, count = p->m.columns - first, parts = parts_of(p);

    (void)worker;
    pass(p, first + part * count / parts, first + (part + 1) * count / parts,
         p->w + part * p->m.rows);
    return TSVD_OK;
}

/* ---- a column and a row ---- */

/* to -= the sum of factor[c] times vector c: `count` vectors of `length` entries, `stride`
   apart. */
static void
subtract(int64_t length, int64_t count, const scalar *factor, const scalar *from, int64_t stride,
         scalar *to)
{
    scalar minus[CPU_REDUCE_PANEL];

    for (int64_t c = 0; c < count; c++) {
        minus[c] = -factor[c];
    }
    tsvdi_kernels()->accumulate(length, count, minus, from, stride, to);
}

/* The conjugates of entry `at` of `count` columns. */
static void
gather(int64_t count, const scalar *from, int64_t stride, int64_t at, scalar *to)
{
    for (int64_t c = 0; c < count; c++) {
        to[c] = n_conj(from[c * stride + at]);
    }
}

/* Brings the column under work up to date, and makes its reflector.  Then prepares the pass. */
static void
reduce_column(struct slice *p, const struct dense_bidiagonal *b)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t row = p->row, done = row - p->first, length = p->m.rows - row;
    const int64_t columns = p->m.columns;
    const scalar *v = p->m.a + p->first * p->m.stride + row, *x = p->x + row;
    scalar *column = p->m.a + row * (p->m.stride + 1);
    scalar at_y[CPU_REDUCE_PANEL], at_u[CPU_REDUCE_PANEL];

    gather(done, p->y, columns, row, at_y);
    gather(done, p->u, columns, row, at_u);
    subtract(length, done, at_y, v, p->m.stride, column);
    subtract(length, done, at_u, x, p->m.rows, column);
    b->tau_q[row] = tsvdi_cpu_dense_reflector(length, column, &b->d[row]);
    p->v = column;
    p->tau = b->tau_q[row];
    if (row + 1 < columns) {
        kernels->dots(length, done, v, p->m.stride, column, p->v_product);
        kernels->dots(length, done, x, p->m.rows, column, p->x_product);
        gather(done, v, p->m.stride, 0, p->v_row);
        gather(done, x, p->m.rows, 0, p->x_row);
    }
}

/* w again, from the row times `up`.  The row itself is so small that its products lie below the
   normal numbers and have lost digits.  u, of length 1, would carry that loss to the rest of the
   matrix. */
static void
pass_again(struct slice *p, real up)
{
    const int64_t row = p->row, stride = p->m.stride;
    const int64_t below = p->m.rows - row - 1, left = p->m.columns - row - 1;
    scalar *r = p->r + row + 1, *w = p->w + row + 1;

    for (int64_t j = 0; j < left; j++) {
        r[j] = n_scale(up, r[j]);
    }
    memset(w, 0, (size_t)below * sizeof *w);
    tsvdi_kernels()->accumulate(below, left, r, p->m.a + (row + 1) * (stride + 1), stride, w);
}

/* w from its parts, two by two. */
static void
add_parts(const struct slice *p, int64_t parts)
{
    for (int64_t step = 1; step < parts; step *= 2) {
        for (int64_t part = 0; part < parts; part += 2 * step) {
            scalar *w = p->w + part * p->m.rows;
            const scalar *other = w + step * p->m.rows;

            for (int64_t i = p->row + 1; i < p->m.rows; i++) {
                w[i] += other[i];
            }
        }
    }
}

/* The reflector of the row, and x. */
static void
reduce_row(struct slice *p, const struct dense_bidiagonal *b)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t row = p->row, done = row - p->first, columns = p->m.columns;
    const int64_t left = columns - row - 1, below = p->m.rows - row - 1;
    const scalar *a = p->m.a + (row + 1) * p->m.stride + row + 1;
    const scalar *v = p->m.a + p->first * p->m.stride + row + 1;
    scalar *r = p->r + row + 1, *u = p->u + done * columns + row + 1;
    scalar *x = p->x + done * p->m.rows + row + 1;
    scalar first, at_y[CPU_REDUCE_PANEL], at_u[CPU_REDUCE_PANEL];
    real square, up;
    int64_t parts = parts_of(p);
    struct reflector h;

    square = tsvdi_cpu_dense_square(left, r, &up);
    h = reflector_make(r[0], square, up);
    u[0] = 1;
    for (int64_t j = 1; j < left; j++) {
        u[j] = reflector_entry(h, r[j]);
    }
    b->e[row] = h.beta;
    b->tau_p[row] = h.tau;
    memset(x, 0, (size_t)below * sizeof *x);
    if (h.tau == 0 || below == 0) {
        return;
    }
    first = 1 - reflector_entry(h, r[0]);
    if (up != 1) {
        pass_again(p, up);
        parts = 1;
        h.up = 1; /* w has that factor already */
    }
    add_parts(p, parts);
    for (int64_t i = 0; i < below; i++) {
        x[i] = n_fma(first, a[i], reflector_entry(h, p->w[row + 1 + i]));
    }
    kernels->dots(left, done + 1, p->y + row + 1, columns, u, at_y);
    kernels->dots(left, done, p->u + row + 1, columns, u, at_u);
    subtract(below, done + 1, at_y, v, p->m.stride, x);
    subtract(below, done, at_u, p->x + row + 1, p->m.rows, x);
    for (int64_t i = 0; i < below; i++) {
        x[i] = n_mul(x[i], h.tau);
    }
}

/* ---- panels ---- */

/* Brings the trailing matrix up to date. */
static tsvd_status
update(const struct dense_run *run, int worker, const struct slice *p, int64_t next, double done)
{
    const scalar *v = p->m.a + p->first * p->m.stride + next;
    struct blas_product product = {
        .m = p->m.rows - next,
        .n = p->m.columns - next,
        .k = next - p->first,
        .b_transposed = 1,
        .factor = -1,
        .a = v,
        .b = p->y + next,
        .c = p->m.a + next * (p->m.stride + 1),
        .lda = p->m.stride,
        .ldb = p->m.columns,
        .ldc = p->m.stride,
    };
    tsvd_status ret = TSVD_OK;

    if (product.n == 0) {
        goto out;
    }
    TSVD_TRY(tsvdi_cpu_dense_long_product(run, worker, &product, done));
    product.a = p->x + next;
    product.b = p->u + next;
    product.lda = p->m.rows;
    TSVD_TRY(tsvdi_cpu_dense_long_product(run, worker, &product, done));
out:
    return ret;
}

/* Keeps the reflectors of the right in the panel's rows of A, whose entries are not read any
   more. */
static void
keep_rows(const struct slice *p, int64_t next)
{
    for (int64_t j = p->first + 2; j < p->m.columns; j++) {
        scalar *column = p->m.a + j * p->m.stride;

        for (int64_t row = p->first; row < next && row + 1 < j; row++) {
            column[row] = p->u[(row - p->first) * p->m.columns + j];
        }
    }
}

/* Reduces a small matrix, in a copy.  keep: reflectors take its place. */
static void
reduce_small(struct dense_matrix m, const struct dense_bidiagonal *b, int keep, scalar *work)
{
    const int64_t lanes = tsvdi_kernels()->lanes, stride = small_stride(m.rows);
    const uintptr_t size = (uintptr_t)lanes * sizeof(real);
    real *const a = (real *)(((uintptr_t)work + size - 1) / size * size);
    const struct small_reduction q = {
        .rows = m.rows,
        .columns = m.columns,
        .stride = stride,
        .a = a,
        .d = b->d,
        .e = b->e,
        .tau_q = (real *)b->tau_q,
        .tau_p = (real *)b->tau_p,
        .work = a + m.columns * stride,
    };

    for (int64_t j = 0; j < m.columns; j++) {
        memcpy(a + j * stride, m.a + j * m.stride, (size_t)m.rows * sizeof(real));
        memset(a + j * stride + m.rows, 0, (size_t)(stride - m.rows) * sizeof(real));
    }
    tsvdi_kernels()->reduce(&q);
    for (int64_t j = 0; j < m.columns && keep; j++) {
        memcpy(m.a + j * m.stride, a + j * stride, (size_t)m.rows * sizeof(real));
    }
}

static tsvd_status
factor(struct cpu_dense *state, int worker, const struct stage_run *own, int64_t i)
{
    struct dense_run *run = &state->run;
    const struct dense_matrix m = stage_matrix(own, i);
    const int64_t at = i * m.columns;
    const struct dense_bidiagonal b = {state->job->d + at, state->job->e + at, own->tau_q + at,
                                       own->tau_p + at};
    struct slice p = slice_of(m, worker_work(run, worker));
    tsvd_status ret = TSVD_OK;

    if (is_small(m.rows, m.columns)) {
        TSVD_TRY(dense_check(run, worker, own->done));
        reduce_small(m, &b, state->job->keep != KEEP_VALUES, worker_work(run, worker));
        return TSVD_OK;
    }
    while (p.first < m.columns) {
        const int64_t left = m.columns - p.first, most = left < CPU_REDUCE_PANELS_FROM
                                                             ? CPU_REDUCE_SMALL_PANEL
                                                             : CPU_REDUCE_PANEL;
        const int64_t next = p.first + (left < most ? left : most);
        const double part = (double)left / (double)m.columns;
        const double done = own->done + own->share * (1 - part * part * part);

        for (p.row = p.first; p.row < next; p.row++) {
            if (p.row == p.first || left * (m.rows - p.first) >= LONG_PASS) {
                TSVD_TRY(dense_check(run, worker, done));
            }
            reduce_column(&p, &b);
            if (p.row + 1 < m.columns) {
                TSVD_TRY(tsvdi_host_for_each(threads_of(run, &p), parts_of(&p), pass_part, &p));
                reduce_row(&p, &b);
            }
        }
        TSVD_TRY(update(run, worker, &p, next, done));
        if (state->job->keep != KEEP_VALUES) {
            keep_rows(&p, next);
        }
        p.first = next;
    }
    b.e[m.columns - 1] = 0;
    b.tau_p[m.columns - 1] = 0;
out:
    return ret;
}

const struct stage tsvdi_cpu_dense_bidiagonalize_stage = {
    .right = 1,
    .sides = 2,
    .superdiagonals = 1,
    .work = 1,
    .numbers = tsvdi_cpu_dense_numbers,
    .workspace = workspace,
    .factor = factor,
    .multiply = tsvdi_cpu_dense_multiply_stage,
};
