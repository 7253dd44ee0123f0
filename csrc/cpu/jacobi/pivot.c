/*
 * One-sided Jacobi on the CPU: QR with column pivoting of kept columns, and QR of R^H.
 *
 * The norms of the remaining columns are updated step by step, and found anew from the entries
 * where an update would lose digits (Drmac & Bujanovic, ACM Trans. Math. Softw. 35 (2008)).
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/jacobi/jacobi_run.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "host/environment.h"
#include "math/reflector.h"

real
tsvdi_cpu_jacobi_norm(int64_t count, const scalar *x)
{
    real square = 0;

    if (count > 0) {
        square = n_real(tsvdi_kernels()->dot(count, x, x));
    }
    if (square < REFLECTOR_SMALL) {
        return r_sqrt(reflector_square_up(N_PARTS * count, (const real *)x)) * REFLECTOR_DOWN;
    }
    return r_sqrt(square);
}

/* ---- rows ---- */

static int
compare(const void *a, const void *b)
{
    const struct jacobi_key *x = a, *y = b;

    if (x->exponent != y->exponent) {
        return x->exponent > y->exponent ? -1 : 1;
    }
    if (x->mantissa != y->mantissa) {
        return x->mantissa > y->mantissa ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

void
tsvdi_cpu_jacobi_sort(struct jacobi_key *key, int64_t count)
{
    int64_t sorted = 1;

    while (sorted < count && compare(&key[sorted - 1], &key[sorted]) < 0) {
        sorted++;
    }
    if (sorted < count) { /* qsort() would take its full time on sorted keys too */
        qsort(key, (size_t)count, sizeof *key, compare);
    }
}

/* Sorts the rows by their largest entries. */
static void
sort_rows(struct jacobi_matrix *m)
{
    struct jacobi_key *key = m->key;
    const int64_t rows = m->rows;
    int sorted = 1;

    for (int64_t i = 0; i < rows; i++) {
        key[i] = (struct jacobi_key){0, i, 0};
    }
    for (int64_t j = 0; j < m->columns; j++) {
        for (int64_t i = 0; i < rows; i++) {
            key[i].mantissa = r_max(key[i].mantissa, n_size(m->w[j * rows + i]));
        }
    }
    tsvdi_cpu_jacobi_sort(key, rows);
    for (int64_t i = 0; i < rows; i++) {
        m->row[i] = key[i].index;
        sorted &= key[i].index == i;
    }
    for (int64_t j = 0; j < m->columns && !sorted; j++) {
        scalar *column = m->w + j * rows;

        memcpy(m->spare, column, (size_t)rows * sizeof *column);
        for (int64_t i = 0; i < rows; i++) {
            column[i] = m->spare[m->row[i]];
        }
    }
}

/* ---- columns ---- */

/* The pivot: the column of the largest norm among the columns from `step` on. */
static int64_t
find_pivot(const struct jacobi_matrix *m, int64_t step)
{
    int64_t pivot = step, highest = INT64_MIN;
    real most = 0;

    for (int64_t j = step; j < m->columns; j++) {
        real_int own;
        const real mantissa = r_split(m->norm[j], &own);
        const int64_t exponent = m->exponent[j] + own;

        if (mantissa != 0 && (exponent > highest || (exponent == highest && mantissa > most))) {
            pivot = j;
            highest = exponent;
            most = mantissa;
        }
    }
    return pivot;
}

static void
swap_columns(struct jacobi_matrix *m, int64_t i, int64_t j)
{
    const size_t bytes = (size_t)m->rows * sizeof *m->w;
    const int64_t exponent = m->exponent[i], column = m->column[i];

    if (i == j) {
        return;
    }
    memcpy(m->spare, m->w + i * m->rows, bytes);
    memcpy(m->w + i * m->rows, m->w + j * m->rows, bytes);
    memcpy(m->w + j * m->rows, m->spare, bytes);
    m->exponent[i] = m->exponent[j];
    m->exponent[j] = exponent;
    m->column[i] = m->column[j];
    m->column[j] = column;
    m->norm[j] = m->norm[i]; /* norm[i] is not read again */
    m->most_norm[j] = m->most_norm[i];
}

/* Updates norm[j], the norm of column j from row `step` on, to that of the rows below `step`. */
static void
take_down(struct jacobi_matrix *m, int64_t step, int64_t j)
{
    const scalar *below = m->w + j * m->rows + step + 1;
    real share, left, lost;

    if (m->norm[j] == 0) {
        return;
    }
    share = n_abs(below[-1]) / m->norm[j];
    left = r_max((1 - share) * (1 + share), 0);
    lost = m->norm[j] / m->most_norm[j];
    if (left * lost * lost <= r_sqrt(R_EPS)) {
        m->norm[j] = m->most_norm[j] = tsvdi_cpu_jacobi_norm(m->rows - step - 1, below);
    } else {
        m->norm[j] *= r_sqrt(left);
    }
}

/* A step's work on the columns after it. */
struct update {
    struct jacobi_matrix *m;
    int64_t step;
};

static tsvd_status
update_share(void *arg, int worker, int64_t index)
{
    const struct update *update = arg;
    struct jacobi_matrix *m = update->m;
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t step = update->step, length = m->rows - step;
    const int64_t first = step + 1 + index * CPU_PIVOT_SHARE;
    const int64_t count =
        m->columns - first < CPU_PIVOT_SHARE ? m->columns - first : CPU_PIVOT_SHARE;
    const scalar *v = m->w + step * (m->rows + 1);
    scalar *to = m->w + first * m->rows + step, sum[CPU_PIVOT_SHARE];
    struct host_environment before;

    (void)worker;
    tsvdi_environment_enter_flushing(&before);
    for (int64_t j = 0; j < count; j += 4) { /* four columns stay in the cache */
        const int64_t some = count - j < 4 ? count - j : 4;

        kernels->dots(length, some, to + j * m->rows, m->rows, v, sum);
        for (int64_t k = j; k < j + some; k++) {
            const scalar factor = n_conj(n_mul(-m->tau[step], sum[k - j]));

            kernels->accumulate(length, 1, &factor, v, length, to + k * m->rows);
            take_down(m, step, first + k);
        }
    }
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

/* ---- R^H, and L ---- */

/* Makes column i of X, a lower triangle, from the conjugates of row i of an upper one, scaled so
   that the size of its largest entry is in [1, 2).  Entry j of the row, j < count, is
   from[j * stride] times 2^exponent[j].  Both triangles may lie in one array. */
static void
take_row(const struct jacobi_matrix *m, int64_t i, int64_t count, const scalar *from,
         int64_t stride)
{
    const int64_t columns = m->columns;
    scalar *x = m->x + i * columns;
    int64_t highest = INT64_MIN;

    for (int64_t j = i; j < count; j++) {
        real_int power;

        x[j] = n_conj(from[j * stride]);
        if (r_split(n_size(x[j]), &power) != 0 && m->exponent[j] + power > highest) {
            highest = m->exponent[j] + power;
        }
    }
    for (int64_t j = i; j < count && highest > INT64_MIN; j++) {
        const int64_t shift = m->exponent[j] - highest;

        real *part = (real *)&x[j];

        for (int k = 0; k < N_PARTS; k++) {
            part[k] = jacobi_shifted(jacobi_shifted(part[k], shift / 2), shift - shift / 2);
        }
    }
    memset(x, 0, (size_t)i * sizeof *x);
    memset(x + count, 0, (size_t)(columns - count) * sizeof *x);
    m->own[i] = highest > INT64_MIN ? highest : 0;
}

/* X becomes L, from R^H.  The reflectors of Q2 go to W, if they are wanted. */
static tsvd_status
factor_again(struct jacobi_matrix *m)
{
    const int64_t columns = m->columns, rank = m->rank;
    const struct dense_matrix x = {m->x, columns, rank, columns};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cpu_dense_qr(m->run, m->worker, x, m->tau_right, 0, DENSE_REDUCED / 2));
    for (int64_t i = 0; i < rank && m->v != NULL; i++) {
        for (int64_t j = i + 1; j < columns; j++) {
            m->w[j * m->rows + i] = m->x[i * columns + j];
        }
    }
    for (int64_t i = 0; i < rank; i++) {
        take_row(m, i, rank, m->x + i, columns);
    }
    memcpy(m->exponent, m->own, (size_t)columns * sizeof *m->exponent);
out:
    return ret;
}

tsvd_status
tsvdi_cpu_jacobi_pivot(struct jacobi_matrix *m)
{
    struct update update = {m, 0};
    const int64_t columns = m->columns;
    tsvd_status ret = TSVD_OK;

    sort_rows(m);
    for (int64_t j = 0; j < columns; j++) {
        m->norm[j] = m->most_norm[j] = tsvdi_cpu_jacobi_norm(m->rows, m->w + j * m->rows);
        m->tau[j] = 0;
    }
    for (m->rank = 0; m->rank < columns; m->rank++) {
        const int64_t step = m->rank, pivot = find_pivot(m, step), rest = columns - step - 1;
        const int many = m->threads > 1 && rest * (m->rows - step) > CPU_PIVOT_SHARED_NUMBERS;
        scalar *v = m->w + step * (m->rows + 1);
        real beta;

        if (m->norm[pivot] == 0) {
            break;
        }
        if (step % CPU_PIVOT_SHARE == 0) {
            TSVD_TRY(dense_check(m->run, m->worker, 0.2 * (double)step / (double)columns));
        }
        swap_columns(m, step, pivot);
        m->tau[step] = tsvdi_cpu_dense_reflector(m->rows - step, v, &beta);
        update.step = step;
        TSVD_TRY(tsvdi_host_for_each(many ? m->threads : 1,
                                     (rest + CPU_PIVOT_SHARE - 1) / CPU_PIVOT_SHARE, update_share,
                                     &update));
        *v = beta;
    }
    /* X's exponents wait in m->own: every row needs those of W */
    for (int64_t i = 0; i < columns; i++) {
        if (i < m->rank) {
            take_row(m, i, columns, m->w + i, m->rows);
        } else {
            memset(m->x + i * columns, 0, (size_t)columns * sizeof *m->x);
            m->own[i] = 0;
        }
    }
    memcpy(m->exponent, m->own, (size_t)columns * sizeof *m->exponent);
    TSVD_TRY(factor_again(m));
out:
    return ret;
}
