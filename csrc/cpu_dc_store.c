/*
 * Divide and conquer on the CPU: the finished vectors to the results.
 */
#include "cpu_dc.h"

/* Columns of a tile: so many entries of CPU_STORE_RANKS vectors, in order, then turn around. */
enum { TILE_COLUMNS = 32 };

/* Entries begin .. end - 1 of the vector in slot j, times its sign; zero outside of its range. */
static void
copy_vector(const struct dc_run *run, int side, int64_t j, real sign, int64_t begin, int64_t end,
            real *to)
{
    const struct dc_slots *slot = &run->slot;
    const real *x = run->x[side] + j * run->stride;
    int64_t low = slot->low[j] > begin ? slot->low[j] : begin;
    int64_t high = slot->high[j] < end ? slot->high[j] : end;

    low = low < end ? low : end;
    high = high > low ? high : low;
    memset(to, 0, (size_t)(low - begin) * sizeof *to);
    for (int64_t i = low; i < high; i++) {
        to[i - begin] = sign * x[i];
    }
    memset(to + (high - begin), 0, (size_t)(end - high) * sizeof *to);
}

/* On one side. */
static void
store(const struct dc_run *run, int side, struct vectors to, const int64_t *order, int64_t begin,
      int64_t end, const real *sign)
{
    const int64_t n = to.n, ranks = end - begin;
    real tile[CPU_STORE_RANKS][TILE_COLUMNS];

    for (int64_t rank = begin; rank < end && !to.columns; rank++) {
        copy_vector(run, side, order[n - 1 - rank], sign[rank - begin], 0, n, to.x + rank * n);
    }
    for (int64_t i = 0; i < n && to.columns; i += TILE_COLUMNS) {
        const int64_t columns = n - i < TILE_COLUMNS ? n - i : TILE_COLUMNS;

        for (int64_t k = 0; k < ranks; k++) {
            copy_vector(run, side, order[n - 1 - begin - k], sign[k], i, i + columns, tile[k]);
        }
        for (int64_t column = 0; column < columns; column++) {
            real *row = to.x + (i + column) * n + begin;

            for (int64_t k = 0; k < ranks; k++) {
                row[k] = tile[k][column];
            }
        }
    }
}

/* That of x's entry of largest magnitude, of equals the first. */
static real
sign_of_largest(int64_t count, const real *x)
{
    const real largest = tsvdi_kernels()->largest(count, x);
    int64_t i = 0;

    while (i < count - 1 && r_abs(x[i]) != largest) {
        i++;
    }
    return count > 0 && x[i] < 0 ? R(-1) : R(1);
}

void
tsvdi_cpu_store(const struct dc_run *run, struct vectors right, struct vectors left,
                const int64_t *order, int64_t begin, int64_t end)
{
    const struct dc_slots *slot = &run->slot;
    const int side = run->ctx->options->lower ? RIGHT : LEFT; /* where L's columns are */
    real sign[CPU_STORE_RANKS];

    for (int64_t rank = begin; rank < end; rank++) {
        const int64_t j = order[left.n - 1 - rank], low = slot->low[j];

        sign[rank - begin] =
            sign_of_largest(slot->high[j] - low, run->x[side] + j * run->stride + low);
    }
    store(run, RIGHT, right, order, begin, end, sign);
    store(run, LEFT, left, order, begin, end, sign);
}
