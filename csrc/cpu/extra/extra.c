/*
 * The extra column of n x (n+1) matrices on the CPU, and the extra row of lower ones: the vectors
 * of the square matrices get its entries (math/extra_column.h).
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "host/environment.h"

static int
is_lower(const struct svd_problem *asked)
{
    return asked->rows > asked->columns;
}

/* ---- rows of R ---- */

/* What the tasks of a block of rows share. */
struct rows {
    const struct rotation *turn; /* [n] */
    int64_t n, count;            /* entries of a row of R', and rows of the block */
    const real *from;            /* R' [count][n]; NULL: the null vector is made */
    real *to;                    /* R [count][n+1] */
};

/* Rows of R from those of R', `count` at most CPU_EXTRA_ROWS.  from NULL: the null vector. */
static void
restore_rows(const struct rotation *turn, int64_t n, int64_t count, const real *from, real *to)
{
    real last[CPU_EXTRA_ROWS];

    for (int64_t r = 0; r < count; r++) {
        last[r] = from == NULL;
    }
    if (count == CPU_EXTRA_ROWS) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t r = 0; r < CPU_EXTRA_ROWS; r++) {
                to[r * (n + 1) + i] = extra_column_restored(turn[i], from[r * n + i], &last[r]);
            }
        }
    } else {
        for (int64_t r = 0; r < count; r++) {
            for (int64_t i = 0; i < n; i++) {
                const real x = from != NULL ? from[r * n + i] : 0;

                to[r * (n + 1) + i] = extra_column_restored(turn[i], x, &last[r]);
            }
        }
    }
    for (int64_t r = 0; r < count; r++) {
        to[r * (n + 1) + n] = last[r];
    }
}

/* The entry of the extra column may become smaller with each turn.  Tiny ones would take long. */
static tsvd_status
rows_task(void *arg, int worker, int64_t index)
{
    const struct rows *q = arg;
    const int64_t first = index * CPU_EXTRA_ROWS, left = q->count - first;
    struct host_environment before;

    (void)worker;
    tsvdi_environment_enter_flushing(&before);
    restore_rows(q->turn, q->n, left < CPU_EXTRA_ROWS ? left : CPU_EXTRA_ROWS,
                 q->from != NULL ? q->from + first * q->n : NULL, q->to + first * (q->n + 1));
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

/* Rows of R' that are restored as a block. */
static int64_t
block_rows(int threads)
{
    return CPU_EXTRA_ROWS * (threads > 1 ? CPU_EXTRA_PIECES * (int64_t)threads : 1);
}

/* The R' of a chunk lie at the end of the memory of its R: as many numbers after R's beginning. */
static int64_t
square_offset(const struct svd_problem *asked, int64_t count)
{
    const int64_t made = asked->k + asked->full;

    return count * (made * (asked->n + 1) - asked->k * asked->n);
}

/* R of a matrix, from first to last row.  So R grows into the place of rows of R' that are restored
   already: a block of them is copied before.  from: R', block: room for the copy. */
static tsvd_status
restore_right(const struct svd_problem *asked, const struct rotation *turn, int threads,
              const real *from, real *block, real *to)
{
    const int64_t n = asked->n, most = block_rows(threads);
    tsvd_status ret = TSVD_OK;

    for (int64_t first = 0; first < asked->k; first += most) {
        const int64_t count = asked->k - first < most ? asked->k - first : most;
        struct rows q = {turn, n, count, block, to + first * (n + 1)};

        memcpy(block, from + first * n, (size_t)(count * n) * sizeof *block);
        TSVD_TRY(tsvdi_host_for_each(threads, (count + CPU_EXTRA_ROWS - 1) / CPU_EXTRA_ROWS,
                                     rows_task, &q));
    }
    if (asked->full) {
        struct rows q = {turn, n, 1, NULL, to + asked->k * (n + 1)};

        TSVD_TRY(rows_task(&q, 0, 0));
    }
out:
    return ret;
}

/* ---- columns of L ---- */

/* What the tasks of a matrix share. */
struct columns {
    const struct rotation *turn; /* [n] */
    int64_t n, k, made;          /* rows of L', columns of L' and of L, with the null vector */
    const real *from;            /* L' [n][k] */
    real *to;                    /* L [n+1][made]; may begin where L' does if made = k */
    real *right;                 /* R [k][n] */
};

/* Makes the largest entry of each of `count` columns of L positive, and changes the sign of R's row
   with it: the last row of L changes which entry that is. */
static void
fix_signs(const struct cpu_kernels *kernels, int64_t n, int64_t count, real *left, int64_t stride,
          real *right)
{
    real sign[CPU_SIGNS_TOGETHER];

    kernels->orient(count, n + 1, left, stride, sign);
    for (int64_t j = 0; j < count; j++) {
        for (int64_t i = 0; i < n && sign[j] < 0; i++) {
            right[j * n + i] = -right[j * n + i];
        }
    }
}

/* Columns first .. first + count - 1 of L. */
static void
restore_columns(const struct columns *q, int64_t first, int64_t count)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t n = q->n, all = q->made;
    const real *from = q->from;
    real *to = q->to, *right = q->right;
    const int64_t there = first + count <= q->k ? count : q->k - first;
    real *last = to + n * all + first;

    for (int64_t j = 0; j < count; j++) {
        last[j] = j >= there;
    }
    for (int64_t i = 0; i < n; i++) {
        const struct rotation back = {q->turn[i].c, -q->turn[i].s};
        real *row = to + i * all + first;

        if (from != to) {
            memcpy(row, from + i * q->k + first, (size_t)there * sizeof *row);
            memset(row + there, 0, (size_t)(count - there) * sizeof *row);
        }
        kernels->turn(count, back, row, last);
    }
    for (int64_t j = 0; j < there; j += CPU_SIGNS_TOGETHER) {
        const int64_t left = there - j < CPU_SIGNS_TOGETHER ? there - j : CPU_SIGNS_TOGETHER;

        fix_signs(kernels, n, left, to + first + j, all, right + (first + j) * n);
    }
}

static tsvd_status
columns_task(void *arg, int worker, int64_t index)
{
    const struct columns *q = arg;
    const int64_t first = index * CPU_EXTRA_COLUMNS, left = q->made - first;
    struct host_environment before;

    (void)worker;
    tsvdi_environment_enter_flushing(&before);
    restore_columns(q, first, left < CPU_EXTRA_COLUMNS ? left : CPU_EXTRA_COLUMNS);
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

/* ---- the seam ---- */

/* Whether L' lies in the memory of L from the beginning, of which it is the first rows. */
static int
is_left_in_place(const struct svd_problem *asked, int64_t chunk)
{
    return !asked->full && chunk == 1;
}

/* Numbers of workspace. */
static uint64_t
numbers_of(const struct svd_problem *p, const tsvd_plan *reported)
{
    if (!p->vectors) {
        return 0;
    }
    if (!is_lower(p)) {
        return bytes_of(block_rows(reported->threads), (uint64_t)p->n);
    }
    return is_left_in_place(p, reported->chunk)
               ? 0
               : bytes_of(reported->chunk, bytes_of(p->n, (uint64_t)p->k));
}

static tsvd_status
begin(struct tsvd_context *ctx, const struct svd_problem *asked, struct extra_column *extra)
{
    return tsvdi_alloc(ctx, numbers_of(asked, &ctx->plan->reported) * sizeof(real),
                       (void **)&extra->vectors);
}

static void
end(struct tsvd_context *ctx, struct extra_column *extra)
{
    tsvdi_free(ctx, extra->vectors);
}

static tsvd_status
drop(struct tsvd_context *ctx, struct chunk *chunk, const struct svd_problem *asked,
     struct results to, struct extra_column *extra)
{
    tsvdi_host_drop_extra(asked->n, ctx->options->eps, chunk, extra);
    extra->square = to;
    if (to.L != NULL && !is_lower(asked)) {
        extra->square.R += square_offset(asked, chunk->count);
    } else if (to.L != NULL && !is_left_in_place(asked, ctx->plan->reported.chunk)) {
        extra->square.L = extra->vectors;
    }
    return TSVD_OK;
}

static tsvd_status
restore(struct tsvd_context *ctx, const struct chunk *chunk, const struct svd_problem *asked,
        struct extra_column *extra, struct results to)
{
    const int64_t n = asked->n, k = asked->k, made = k + asked->full;
    const int threads = n * k > CPU_EXTRA_SERIAL ? ctx->threads : 1;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < chunk->count; i++) {
        const struct rotation *turn = extra->turn + i * n;

        r_scale(to.s + i * k, k, -extra->power[i], to.s + i * k);
        if (to.L != NULL && is_lower(asked)) {
            struct columns q = {turn,
                                n,
                                k,
                                made,
                                extra->square.L + i * n * k,
                                to.L + i * (n + 1) * made,
                                to.R + i * k * n};

            TSVD_TRY(tsvdi_host_for_each(
                threads, (made + CPU_EXTRA_COLUMNS - 1) / CPU_EXTRA_COLUMNS, columns_task, &q));
        } else if (to.L != NULL) {
            TSVD_TRY(restore_right(asked, turn, threads, extra->square.R + i * k * n,
                                   extra->vectors, to.R + i * made * (n + 1)));
        }
    }
out:
    return ret;
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const uint64_t numbers = numbers_of(plan->problem, &plan->reported);
    const struct bytes own = {numbers == BYTES_TOO_MANY ? numbers : numbers * sizeof(real), 0};

    return own;
}

const struct extra_ops tsvdi_cpu_extra = {
    .space = TSVD_HOST,
    .begin = begin,
    .end = end,
    .drop = drop,
    .restore = restore,
    .bytes = bytes,
};
