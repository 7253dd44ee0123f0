/*
 * The LU decomposition on the CPU, with partial pivoting, and the inverse from it.
 *
 * Columns are eliminated in blocks.  Within a block they are halved (Toledo, "Locality of reference
 * in LU decomposition with partial pivoting", 1997).  All columns after a block are a task for each
 * block of them; the first of these tasks eliminates the next block as soon as it is up to date,
 * while other threads work on the rest.
 *
 * S = P L U, and Y = U^-1 L^-1 P^T: U is inverted in its place, block after block, Z_J = -Z W
 * U_JJ^-1 with W what stood there, and Y L = Z is solved from the last block of columns to the
 * first (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 14.3.2, method B).
 * The residual Y S - I is then small wherever that of P L U is.  Strips of rows are tasks.
 *
 * The cutting into blocks and strips does not depend on the threads.  So the bits of the inverse do
 * not, either.
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "math/growth.h"

enum { LANES = 8 }; /* maxima that are sought side by side */

/* ---- a panel, in the calling thread ---- */

/* The first entry of largest size.  NaN counts as zero. */
static int64_t
find_pivot(int64_t count, const scalar *x)
{
    real most[LANES] = {0}, largest = 0;
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            const real size = n_size(x[i + lane]);

            most[lane] = size > most[lane] ? size : most[lane];
        }
    }
    for (; i < count; i++) {
        most[0] = n_size(x[i]) > most[0] ? n_size(x[i]) : most[0];
    }
    for (int lane = 0; lane < LANES; lane++) {
        largest = most[lane] > largest ? most[lane] : largest;
    }
    i = 0;
    while (i < count - 1 && n_size(x[i]) != largest) {
        i++;
    }
    return n_size(x[i]) == largest ? i : 0;
}

static void
swap(scalar *x, scalar *y)
{
    const scalar kept = *x;

    *x = *y;
    *y = kept;
}

/* Swaps row i and row pivot[i] of some columns, for begin <= i < end in turn. */
static void
swap_rows(int64_t columns, const int *pivot, int64_t begin, int64_t end, scalar *a, int64_t lda)
{
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = begin; i < end; i++) {
            swap(a + j * lda + i, a + j * lda + pivot[i]);
        }
    }
}

/* L and U of n <= CPU_INVERSE_LEAF columns.  Each column is updated by the columns before it, and
   then eliminated.  0: a pivot is zero. */
static int
factor_leaf(int64_t rows, int64_t n, scalar *a, int64_t lda, int *pivot)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    scalar factor[CPU_INVERSE_LEAF];

    for (int64_t j = 0; j < n; j++) {
        scalar *column = a + j * lda;

        swap_rows(1, pivot, 0, j, column, lda);
        for (int64_t k = 0; k < j; k++) {
            factor[k] = -column[k];
            for (int64_t i = k + 1; i < j; i++) {
                column[i] += n_mul(factor[k], a[k * lda + i]);
            }
        }
        kernels->accumulate(rows - j, j, factor, a + j, lda, column + j);
        pivot[j] = (int)(j + find_pivot(rows - j, column + j));
        swap_rows(j + 1, pivot, j, j + 1, a, lda);
        if (column[j] == 0) {
            return 0;
        }
        inverse_divide(rows - j - 1, column + j + 1, column[j]);
    }
    return 1;
}

/* L and U of rows x n, rows >= n, in their place; 0: a pivot is zero. */
static int
factor_panel(const tsvd_blas *blas, int64_t rows, int64_t n, scalar *a, int64_t lda, int *pivot)
{
    const int64_t half = inverse_half(n);
    scalar *right = a + half * lda;

    if (n <= CPU_INVERSE_LEAF) {
        return factor_leaf(rows, n, a, lda, pivot);
    }
    if (!factor_panel(blas, rows, half, a, lda, pivot)) {
        return 0;
    }
    swap_rows(n - half, pivot, 0, half, right, lda);
    tsvdi_cpu_inverse_left_lower(blas, half, n - half, a, lda, right, lda);
    tsvdi_cpu_inverse_subtract(blas, rows - half, n - half, half, a + half, lda, right, lda,
                               right + half, lda);
    if (!factor_panel(blas, rows - half, n - half, right + half, lda, pivot + half)) {
        return 0;
    }
    for (int64_t i = half; i < n; i++) {
        pivot[i] += (int)half;
    }
    swap_rows(half, pivot, half, n, a, lda);
    return 1;
}

/* ---- all of S ---- */

struct lu {
    struct dense_run *run;
    const tsvd_blas *blas;
    int64_t n, block;
    scalar *a;
    const struct inverse_workspace *workspace;
    int64_t begin, width;     /* the block of columns under work */
    double done;              /* what tsvdi_check() is told */
    int singular, grew, tiny; /* tiny: products may have underflowed before a pivot became zero */
};

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
blocks_of(const struct lu *lu, int64_t columns)
{
    return (columns + lu->block - 1) / lu->block;
}

/* Eliminates columns begin .. begin + width - 1, which are up to date. */
static void
eliminate(struct lu *lu, int64_t begin, int64_t width)
{
    int *pivot = lu->workspace->pivot + begin;

    if (!factor_panel(lu->blas, lu->n - begin, width, lu->a + begin * (lu->n + 1), lu->n, pivot)) {
        lu->singular = 1;
        return;
    }
    for (int64_t i = 0; i < width; i++) {
        pivot[i] += (int)begin;
    }
}

/* Applies the panel to a block of columns after it. */
static tsvd_status
update(void *arg, int worker, int64_t index)
{
    struct lu *lu = arg;
    const int64_t n = lu->n, begin = lu->begin, end = begin + lu->width;
    const int64_t first = end + index * lu->block, columns = least(lu->block, n - first);
    const scalar *panel = lu->a + begin * n;
    scalar *a = lu->a + first * n;

    swap_rows(columns, lu->workspace->pivot, begin, end, a, n);
    tsvdi_cpu_inverse_left_lower(lu->blas, lu->width, columns, panel + begin, n, a + begin, n);
    tsvdi_cpu_inverse_subtract(lu->blas, n - end, columns, lu->width, panel + end, n, a + begin, n,
                               a + end, n);
    if (index == 0) {
        eliminate(lu, first, columns);
    }
    return inverse_check(lu->run, worker, lu->n, lu->done);
}

/* Swaps the rows of L in a block of columns as the pivots of later blocks say.  Looks for growth in
   U there, relative to 1: S has an entry of 1 or more. */
static tsvd_status
settle(void *arg, int worker, int64_t index)
{
    struct lu *lu = arg;
    const int64_t n = lu->n, first = index * lu->block, end = least(first + lu->block, n);
    int grew = 0;

    for (int64_t j = first; j < end; j++) {
        const scalar *column = lu->a + j * n;

        for (int64_t i = 0; i <= j; i++) {
            grew |= growth_is_large((double)n_size(column[i]), n);
        }
    }
    swap_rows(end - first, lu->workspace->pivot, end, n, lu->a + first * n, n);
    if (grew) {
        __atomic_store_n(&lu->grew, 1, __ATOMIC_RELAXED);
    }
    return inverse_check(lu->run, worker, lu->n, lu->done);
}

/* After a pivot that is zero: looks for growth, and whether the zero may come from underflow.
   After overflow NaN may be anywhere, so all entries are looked at. */
static void
look_for_reasons(struct lu *lu)
{
    for (int64_t i = 0; i < lu->n * lu->n; i++) {
        const real size = n_size(lu->a[i]);

        lu->grew |= growth_is_large((double)size, lu->n);
        lu->tiny |= size > 0 && size < r_pow2(-R_BIAS / 2);
    }
}

static tsvd_status
decompose(struct lu *lu, struct inverse_share share)
{
    const int64_t n = lu->n;
    tsvd_status ret = TSVD_OK;

    lu->done = share.from;
    eliminate(lu, 0, least(lu->block, n));
    for (int64_t begin = 0; begin + lu->block < n && !lu->singular; begin += lu->block) {
        const int64_t left = n - begin - lu->block;

        lu->begin = begin;
        lu->width = lu->block;
        lu->done = share.from + share.part * (double)begin / (double)n;
        TSVD_TRY(tsvdi_host_for_each(inverse_threads(lu->run, left * left * lu->block),
                                     blocks_of(lu, left), update, lu));
    }
    if (lu->singular) {
        look_for_reasons(lu);
        goto out;
    }
    TSVD_TRY(tsvdi_host_for_each(inverse_threads(lu->run, n * n), blocks_of(lu, n), settle, lu));
out:
    return ret;
}

/* ---- the inverse of U ---- */

/* A strip of rows of Z_J = -Z W U_JJ^-1: `begin` columns of Z, and `width` of W. */
static tsvd_status
invert_strip(void *arg, int worker, int64_t index)
{
    struct lu *lu = arg;
    const int64_t n = lu->n, begin = lu->begin, block = lu->block, first = index * block;
    const int64_t end = first + block; /* up to `begin`, which is a multiple of a block */
    const scalar *w = lu->workspace->copy, *z = lu->a + first;
    scalar *tile = lu->workspace->tile + worker * block * block;
    scalar *to = lu->a + begin * n + first;
    struct blas_product product = {.m = block,
                                   .n = lu->width,
                                   .k = block,
                                   .overwrite = 1,
                                   .factor = -1,
                                   .a = tile,
                                   .b = w + first,
                                   .c = to,
                                   .lda = block,
                                   .ldb = begin,
                                   .ldc = n};

    for (int64_t j = 0; j < block; j++) { /* the entries below the diagonal are not of Z */
        memcpy(tile + j * block, z + (first + j) * n, (size_t)(j + 1) * sizeof *tile);
        memset(tile + j * block + j + 1, 0, (size_t)(block - j - 1) * sizeof *tile);
    }
    dense_product(lu->blas, &product);
    tsvdi_cpu_inverse_subtract(lu->blas, block, lu->width, begin - end, z + end * n, n, w + end,
                               begin, to, n);
    tsvdi_cpu_inverse_right_upper(lu->blas, block, lu->width, lu->a + begin * (n + 1), n, to, n);
    return inverse_check(lu->run, worker, lu->n, lu->done);
}

static tsvd_status
invert_upper(struct lu *lu, struct inverse_share share)
{
    const int64_t n = lu->n;
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = 0; begin < n; begin += lu->block) {
        scalar *a = lu->a + begin * n;

        lu->begin = begin;
        lu->width = least(lu->block, n - begin);
        lu->done = share.from + share.part * (double)begin / (double)n;
        for (int64_t j = 0; j < lu->width; j++) {
            memcpy(lu->workspace->copy + j * begin, a + j * n, (size_t)begin * sizeof *a);
        }
        TSVD_TRY(tsvdi_host_for_each(inverse_threads(lu->run, begin * begin / 2 * lu->width),
                                     begin / lu->block, invert_strip, lu));
        tsvdi_cpu_inverse_small_upper(lu->width, a + begin, n);
    }
out:
    return ret;
}

/* ---- Y L = Z ---- */

/* A strip of rows of block J: the columns after it are done. */
static tsvd_status
solve_strip(void *arg, int worker, int64_t index)
{
    struct lu *lu = arg;
    const int64_t n = lu->n, first = index * lu->block, rows = least(lu->block, n - first);
    const int64_t end = lu->begin + lu->width;
    const scalar *l = lu->workspace->copy; /* from the diagonal on */
    const int64_t ldl = n - lu->begin;
    scalar *y = lu->a + first;

    tsvdi_cpu_inverse_subtract(lu->blas, rows, lu->width, n - end, y + end * n, n, l + lu->width,
                               ldl, y + lu->begin * n, n);
    tsvdi_cpu_inverse_right_lower(lu->blas, rows, lu->width, l, ldl, y + lu->begin * n, n);
    return inverse_check(lu->run, worker, lu->n, lu->done);
}

/* Swaps the columns of Y in a strip of rows, which undoes the pivoting. */
static tsvd_status
reorder_strip(void *arg, int worker, int64_t index)
{
    struct lu *lu = arg;
    const int64_t n = lu->n, first = index * lu->block, rows = least(lu->block, n - first);

    for (int64_t j = n - 1; j >= 0; j--) {
        scalar *x = lu->a + j * n + first, *y = lu->a + lu->workspace->pivot[j] * n + first;

        for (int64_t i = 0; i < rows && x != y; i++) {
            swap(x + i, y + i);
        }
    }
    return inverse_check(lu->run, worker, lu->n, lu->done);
}

static tsvd_status
solve_lower(struct lu *lu, struct inverse_share share)
{
    const int64_t n = lu->n, strips = blocks_of(lu, n);
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = (strips - 1) * lu->block; begin >= 0; begin -= lu->block) {
        const int64_t left = n - begin;

        lu->begin = begin;
        lu->width = least(lu->block, left);
        lu->done = share.from + share.part * (double)left / (double)n;
        for (int64_t j = 0; j < lu->width; j++) {
            scalar *below = lu->a + (begin + j) * (n + 1) + 1,
                   *copy = lu->workspace->copy + j * left;

            memcpy(copy + j + 1, below, (size_t)(left - j - 1) * sizeof *below);
            memset(below, 0, (size_t)(left - j - 1) * sizeof *below);
        }
        TSVD_TRY(tsvdi_host_for_each(inverse_threads(lu->run, n * left * lu->width), strips,
                                     solve_strip, lu));
    }
    TSVD_TRY(tsvdi_host_for_each(inverse_threads(lu->run, n * n), strips, reorder_strip, lu));
out:
    return ret;
}

/* ---- together ---- */

static struct lu
lu_of(struct dense_run *run, int64_t n, scalar *a, const struct inverse_workspace *workspace)
{
    const struct lu lu = {.run = run,
                          .blas = &run->ctx->call->handle->blas,
                          .n = n,
                          .block = inverse_block(n),
                          .a = a,
                          .workspace = workspace};

    return lu;
}

tsvd_status
tsvdi_cpu_inverse_upper(struct dense_run *run, int64_t n, scalar *u,
                        const struct inverse_workspace *workspace, struct inverse_share share)
{
    struct lu lu = lu_of(run, n, u, workspace);

    return invert_upper(&lu, share);
}

tsvd_status
tsvdi_cpu_inverse_lu(struct dense_run *run, int64_t n, scalar *s,
                     const struct inverse_workspace *workspace, struct inverse_share share,
                     int *outcome)
{
    const double third = share.part / 3; /* LU has a third of all operations, U^-1 a sixth */
    const struct inverse_share first = {share.from, third},
                               second = {share.from + third, third / 2},
                               last = {share.from + 1.5 * third, 1.5 * third};
    struct lu lu = lu_of(run, n, s, workspace);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(decompose(&lu, first));
    *outcome = lu.grew       ? INVERSE_GREW
               : lu.tiny     ? INVERSE_UNDERFLOWED
               : lu.singular ? INVERSE_SINGULAR
                             : INVERSE_FOUND;
    if (*outcome == INVERSE_FOUND) {
        TSVD_TRY(invert_upper(&lu, second));
        TSVD_TRY(solve_lower(&lu, last));
    }
out:
    return ret;
}
