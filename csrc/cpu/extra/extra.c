/*
 * The extra column of n x (n+1) matrices on the CPU, and the extra row of lower ones: the vectors
 * of the square matrices get its entries (math/extra_column.h).
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "host/environment.h"

/* Rows that are restored side by side, which hides the latency of the recurrence; and columns, of
   which a row fills a page of memory. */
enum { TOGETHER = 8, SLAB = 512 };

/* What the tasks of a chunk share. */
struct restoring {
    const struct extra_column *extra;
    const struct svd_problem *asked;
    struct results to;
    int64_t length, vectors; /* of a square matrix's vectors, and how many it has */
    int64_t count;           /* vectors that are wanted: with the null vector, one more */
    int64_t pieces;          /* of a matrix */
};

static int
is_lower(const struct svd_problem *asked)
{
    return asked->rows > asked->columns;
}

/* Whether the square matrix's vectors lie in the caller's memory from the beginning: L' is the
   first rows of L. */
static int
is_in_place(const struct svd_problem *asked, int64_t chunk)
{
    return is_lower(asked) && !asked->full && chunk == 1;
}

static tsvd_status
drop(struct tsvd_context *ctx, struct chunk *chunk, const struct svd_problem *asked,
     struct results to, struct extra_column *extra)
{
    tsvdi_host_drop_extra(asked->n, ctx->options->eps, chunk, extra);
    extra->square = to;
    if (to.L != NULL && extra->vectors != NULL) {
        *(is_lower(asked) ? &extra->square.L : &extra->square.R) = extra->vectors;
    }
    return TSVD_OK;
}

/* Rows first .. first + count - 1 of R [count][n+1]. */
static void
restore_rows(const struct restoring *q, const struct rotation *turn, const real *from,
             int64_t first, int64_t count, real *to)
{
    const int64_t n = q->length;
    real last[TOGETHER];

    for (int64_t r = 0; r < count; r++) {
        last[r] = first + r >= q->vectors;
    }
    from += first * n;
    to += first * (n + 1);
    if (count == TOGETHER && first + count <= q->vectors) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t r = 0; r < TOGETHER; r++) {
                to[r * (n + 1) + i] = extra_column_restored(turn[i], from[r * n + i], &last[r]);
            }
        }
    } else {
        for (int64_t r = 0; r < count; r++) {
            const int is_null = first + r >= q->vectors;

            for (int64_t i = 0; i < n; i++) {
                to[r * (n + 1) + i] =
                    extra_column_restored(turn[i], is_null ? 0 : from[r * n + i], &last[r]);
            }
        }
    }
    for (int64_t r = 0; r < count; r++) {
        to[r * (n + 1) + n] = last[r];
    }
}

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

/* Columns first .. first + count - 1 of L [n+1][count of all].  right: R [vectors][n]. */
static void
restore_columns(const struct restoring *q, const struct rotation *turn, const real *from,
                int64_t first, int64_t count, real *to, real *right)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t n = q->length, all = q->count;
    const int64_t there = first + count <= q->vectors ? count : q->vectors - first;
    real *last = to + n * all + first;

    for (int64_t j = 0; j < count; j++) {
        last[j] = j >= there;
    }
    for (int64_t i = 0; i < n; i++) {
        const struct rotation back = {turn[i].c, -turn[i].s};
        real *row = to + i * all + first;

        if (from != to) {
            memcpy(row, from + i * q->vectors + first, (size_t)there * sizeof *row);
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
restore_piece(void *arg, int worker, int64_t index)
{
    const struct restoring *q = arg;
    const int lower = is_lower(q->asked);
    const int64_t n = q->length, matrix = index / q->pieces, piece = index % q->pieces;
    const int64_t size = lower ? SLAB : TOGETHER, first = piece * size;
    const int64_t count = q->count - first < size ? q->count - first : size;
    const int64_t numbers = n * q->vectors, made = (n + 1) * q->count;
    const struct rotation *turn = q->extra->turn + matrix * n;
    const real *from = (lower ? q->extra->square.L : q->extra->square.R) + matrix * numbers;
    struct host_environment before;

    (void)worker;
    /* the entry of the extra column may become smaller with each turn: tiny ones would take long */
    tsvdi_environment_enter_flushing(&before);
    if (lower) {
        restore_columns(q, turn, from, first, count, q->to.L + matrix * made,
                        q->to.R + matrix * numbers);
    } else {
        restore_rows(q, turn, from, first, count, q->to.R + matrix * made);
    }
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

static tsvd_status
restore(struct tsvd_context *ctx, const struct chunk *chunk, const struct svd_problem *asked,
        struct extra_column *extra, struct results to)
{
    const int64_t size = is_lower(asked) ? SLAB : TOGETHER;
    struct restoring q = {.extra = extra,
                          .asked = asked,
                          .to = to,
                          .length = asked->n,
                          .vectors = asked->k,
                          .count = asked->k + asked->full};

    for (int64_t i = 0; i < chunk->count; i++) {
        r_scale(to.s + i * q.vectors, q.vectors, -extra->power[i], to.s + i * q.vectors);
    }
    if (to.L == NULL) {
        return TSVD_OK;
    }
    q.pieces = (q.count + size - 1) / size;
    return tsvdi_host_for_each(ctx->threads, chunk->count * q.pieces, restore_piece, &q);
}

static uint64_t
vector_bytes(const struct svd_problem *p, int64_t chunk)
{
    return p->vectors && !is_in_place(p, chunk)
               ? bytes_of(chunk, bytes_of(p->n, bytes_of(p->k, sizeof(real))))
               : 0;
}

static tsvd_status
begin(struct tsvd_context *ctx, const struct svd_problem *asked, struct extra_column *extra)
{
    return tsvdi_alloc(ctx, vector_bytes(asked, ctx->plan->reported.chunk),
                       (void **)&extra->vectors);
}

static void
end(struct tsvd_context *ctx, struct extra_column *extra)
{
    tsvdi_free(ctx, extra->vectors);
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const struct bytes own = {vector_bytes(plan->problem, plan->reported.chunk), 0};

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
