/*
 * Divide and conquer on the CPU: the finished vectors to the results.
 */
#include "cpu_dc.h"

/* Columns of a tile: so many entries of CPU_STORE_RANKS vectors, in order, then turn around. */
enum { TILE_COLUMNS = 32 };

/* Columns begin .. end - 1 of the vector in slot j, times its sign; zero outside of its range. */
static void
copy_vector(const struct dc_run *run, int side, const struct dc_node *root, int64_t j, real sign,
            int64_t begin, int64_t end, real *to)
{
    const struct dc_slots *slot = &run->slot;
    const real *x = row_of(run, side, root, j);
    int64_t low = slot->low[j] > begin ? slot->low[j] : begin;
    int64_t high = slot->high[j] < end ? slot->high[j] : end;

    low = low < end ? low : end;
    high = high > low ? high : low;
    if (low > begin) {
        memset(to, 0, (size_t)(low - begin) * sizeof *to);
    }
    for (int64_t i = low; i < high; i++) {
        to[i - begin] = sign * x[i];
    }
    if (high < end) {
        memset(to + (high - begin), 0, (size_t)(end - high) * sizeof *to);
    }
}

/* On one side. */
static void
store(const struct dc_run *run, int side, const struct dc_node *root, int64_t begin, int64_t end,
      const real *sign)
{
    const struct vectors v = side == RIGHT ? run->job->right : run->job->left;
    const int64_t n = v.n, base = root->base, ranks = end - begin;
    real *to = v.x + root->matrix * n * v.k;
    real tile[CPU_STORE_RANKS][TILE_COLUMNS];
    int64_t slot[CPU_STORE_RANKS];

    for (int64_t i = 0; i < ranks; i++) {
        slot[i] = slot_of(run, root->matrix, begin + i);
    }
    for (int64_t i = 0; i < ranks && !v.columns; i++) {
        copy_vector(run, side, root, slot[i], sign[i], base, base + n, to + (begin + i) * n);
    }
    for (int64_t column = 0; column < n && v.columns; column += TILE_COLUMNS) {
        const int64_t columns = n - column < TILE_COLUMNS ? n - column : TILE_COLUMNS;

        for (int64_t i = 0; i < ranks; i++) {
            copy_vector(run, side, root, slot[i], sign[i], base + column, base + column + columns,
                        tile[i]);
        }
        for (int64_t k = 0; k < columns; k++) {
            real *row = to + (column + k) * v.k + begin;

            for (int64_t i = 0; i < ranks; i++) {
                row[i] = tile[i][k];
            }
        }
    }
}

void
tsvdi_cpu_store(const struct dc_run *run, int64_t matrix, int64_t begin, int64_t end)
{
    const struct dc_node root = dc_node_at(run->job->tree.node, run->job->n, 0, matrix);
    const struct dc_slots *slot = &run->slot;
    const int side = run->ctx->options->lower ? RIGHT : LEFT; /* where L's columns are */
    real sign[CPU_STORE_RANKS];

    for (int64_t rank = begin; rank < end; rank++) {
        const int64_t j = slot_of(run, matrix, rank), low = slot->low[j];

        sign[rank - begin] = tsvdi_kernels()->sign_of_largest(slot->high[j] - low,
                                                              row_of(run, side, &root, j) + low);
    }
    store(run, RIGHT, &root, begin, end, sign);
    store(run, LEFT, &root, begin, end, sign);
}
