/*
 * Divide and conquer on the CPU: copies the finished vectors to the results.
 */
#include "cpu/dc/dc_run.h"
#include "cpu/tuning.h"

/* Copies columns begin .. end - 1 of the vector in slot j, times its sign.  The vector is zero
   outside of its range. */
static void
copy_vector(const struct cpu_dc *run, int side, const struct dc_node *root, int64_t j, real sign,
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

/* Copies the vectors in some slots, times their signs, as columns.  stride: numbers from one row of
   the result to the next. */
static void
copy_columns(const struct cpu_dc *run, int side, const struct dc_node *root, int64_t ranks,
             const int64_t *slot, const real *sign, real *to, int64_t stride)
{
    const int64_t n = run->job->n, base = root->base;
    real tile[CPU_STORE_RANKS][CPU_STORE_COLUMNS];

    for (int64_t column = 0; column < n; column += CPU_STORE_COLUMNS) {
        const int64_t columns = n - column < CPU_STORE_COLUMNS ? n - column : CPU_STORE_COLUMNS;
        const int64_t low = base + column, high = low + columns;

        for (int64_t i = 0; i < ranks; i++) {
            copy_vector(run, side, root, slot[i], sign[i], low, high, tile[i]);
        }
        for (int64_t k = 0; k < columns; k++, to += stride) {
            for (int64_t i = 0; i < ranks; i++) {
                to[i] = tile[i][k];
            }
        }
    }
}

void
tsvdi_cpu_dc_store(const struct cpu_dc *run, int64_t matrix, int64_t begin, int64_t end)
{
    const struct dc_job *job = run->job;
    const struct dc_node root = dc_node_at(job->tree.node, job->n, 0, matrix);
    const int64_t n = job->n, k = job->k, ranks = end - begin;
    const int side = job->right.columns ? RIGHT : LEFT; /* the side that becomes L's columns */
    real *columns = (side == RIGHT ? job->right.x : job->left.x) + matrix * n * k + begin;
    real *rows = (side == RIGHT ? job->left.x : job->right.x) + (matrix * k + begin) * n;
    int64_t slot[CPU_STORE_RANKS] = {0};
    real sign[CPU_STORE_RANKS] = {0};

    for (int64_t i = 0; i < ranks; i++) {
        const int64_t j = slot[i] = slot_of(run, matrix, begin + i), low = run->slot.low[j];

        sign[i] = n <= CPU_STORE_COLUMNS
                      ? 1
                      : tsvdi_kernels()->sign_of_largest(run->slot.high[j] - low,
                                                         row_of(run, side, &root, j) + low);
    }
    copy_columns(run, side, &root, ranks, slot, sign, columns, k);
    if (n <= CPU_STORE_COLUMNS) { /* the result is in the cache, and signs are found side by side */
        tsvdi_kernels()->orient(ranks, n, columns, k, sign);
    }
    for (int64_t i = 0; i < ranks; i++, rows += n) {
        copy_vector(run, side == RIGHT ? LEFT : RIGHT, &root, slot[i], sign[i], root.base,
                    root.base + n, rows);
    }
}
