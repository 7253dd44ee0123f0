/*
 * Dense matrices on the CPU: W from A, as it is, scaled by a power of two, or each column by a
 * power of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/matrix/matrix.h"
#include "cpu/tuning.h"

enum {
    /* tsvdi_check() is called again after reading this many numbers. */
    NUMBERS_PER_CHECK = 1 << 22
};

/* Counts numbers that were read, and asks whether to go on when it is due. */
static tsvd_status
count_read(const struct dense_run *run, int worker, int64_t numbers, int64_t *read)
{
    *read += numbers;
    if (*read < NUMBERS_PER_CHECK) {
        return TSVD_OK;
    }
    *read = 0;
    return dense_check(run, worker, 0);
}

/* W as it lies in A: where its first entry is, and the bytes between rows and between columns. */
struct source {
    const char *at;
    ptrdiff_t row, column;
    int conjugated; /* 1: W has the conjugates of A's entries */
};

static struct source
source_of(const struct dense_run *run, int transposed, int64_t index)
{
    const struct dense_matrices *a = run->a;
    struct source source = {a->data, a->row_stride, a->column_stride, transposed && run->conjugate};

    if (a->data != NULL) { /* matrices without entries may have no memory */
        source.at += batch_offset(&a->batch, a->batch_strides, index);
    }
    if (transposed) {
        source.row = a->column_stride;
        source.column = a->row_stride;
    }
    return source;
}

/* The largest size among `count` entries, as n_size_bits(). */
static real_int
largest_bits(const char *at, ptrdiff_t stride, int64_t count)
{
    real_int largest = 0;

    if (stride == sizeof(scalar)) {
        const real *x = (const real *)(const void *)at;

        for (int64_t i = 0; i < N_PARTS * count; i++) {
            const real_int bits = r_bits(x[i]) & ~(real_int)R_SIGN_BIT;

            largest = bits > largest ? bits : largest;
        }
        return largest;
    }
    for (int64_t i = 0; i < count; i++) {
        const real_int bits = n_size_bits(*(const scalar *)(const void *)(at + i * stride));

        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* The largest size in a whole matrix, as bits.  It is read along the dimension whose entries
   lie closer together. */
static tsvd_status
largest_of(const struct dense_run *run, int worker, struct source source, real_int *largest)
{
    const int by_columns = labs(source.row) <= labs(source.column);
    const int64_t lines = by_columns ? run->columns : run->rows;
    const int64_t count = by_columns ? run->rows : run->columns;
    int64_t read = 0;
    tsvd_status ret = TSVD_OK;

    *largest = 0;
    for (int64_t i = 0; i < lines; i++) {
        const real_int bits =
            largest_bits(source.at + i * (by_columns ? source.column : source.row),
                         by_columns ? source.row : source.column, count);

        *largest = bits > *largest ? bits : *largest;
        TSVD_TRY(count_read(run, worker, count, &read));
    }
out:
    return ret;
}

/* 2^-exponent as a product, since one power may be out of range. */
static void
split_power(real_int exponent, real factor[2])
{
    factor[0] = r_pow2((int)-(exponent / 2));
    factor[1] = r_pow2((int)-(exponent - exponent / 2));
}

static void
copy_tile(struct source source, int64_t rows, int64_t columns, const real factor[2], scalar *w,
          int64_t stride)
{
    for (int64_t j = 0; j < columns; j++) {
        const char *at = source.at + j * source.column;

        for (int64_t i = 0; i < rows; i++) {
            const scalar x = *(const scalar *)(const void *)(at + i * source.row);
            const scalar y = n_scale(factor[1], n_scale(factor[0], x));

            w[j * stride + i] = TSVD_COMPLEX && source.conjugated ? n_conj(y) : y;
        }
    }
}

tsvd_status
tsvdi_cpu_dense_load(const struct dense_run *run, int worker, int64_t i, int scaled)
{
    const int64_t rows = run->rows, columns = run->columns;
    const struct source source = source_of(run, run->transposed, run->begin + i);
    scalar *w = run->w + i * rows * columns;
    real factor[2];
    real_int largest, exponent = 0;
    int64_t read = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(largest_of(run, worker, source, &largest));
    run->kind[i] = largest >= R_INFINITY_BITS ? NONFINITE : largest == 0 ? ZERO : ORDINARY;
    if (run->kind[i] == ORDINARY) {
        (void)r_split(r_from_bits(largest), &exponent);
    }
    run->exponent[i] = exponent;
    if (run->kind[i] != ORDINARY) {
        memset(w, 0, (size_t)(rows * columns) * sizeof *w);
        goto out;
    }
    split_power(scaled ? exponent : 0, factor);
    for (int64_t j = 0; j < columns; j += CPU_LOAD_TILE) {
        for (int64_t k = 0; k < rows; k += CPU_LOAD_TILE) {
            const struct source tile = {source.at + k * source.row + j * source.column, source.row,
                                        source.column, source.conjugated};

            copy_tile(tile, rows - k < CPU_LOAD_TILE ? rows - k : CPU_LOAD_TILE,
                      columns - j < CPU_LOAD_TILE ? columns - j : CPU_LOAD_TILE, factor,
                      w + j * rows + k, rows);
        }
        TSVD_TRY(count_read(run, worker, CPU_LOAD_TILE * rows, &read));
    }
out:
    return ret;
}

/* The largest size in a line, as bits.  Updates those of the lines that cross it, `across`. */
static int64_t
look_along(const char *at, ptrdiff_t stride, int64_t count, int64_t *across)
{
    int64_t largest = 0;

    for (int64_t i = 0; i < count; i++) {
        const int64_t bits = n_size_bits(*(const scalar *)(const void *)(at + i * stride));

        largest = bits > largest ? bits : largest;
        across[i] = bits > across[i] ? bits : across[i];
    }
    return largest;
}

/* Replaces the bits of largest sizes by their exponents. */
static void
find_sizes(int64_t count, int64_t *size)
{
    for (int64_t i = 0; i < count; i++) {
        real_int exponent;

        size[i] = r_split(r_from_bits((real_int)size[i]), &exponent) != 0 ? exponent : INT64_MIN;
    }
}

int
tsvdi_cpu_dense_sizes(const struct dense_run *run, int64_t i, int64_t *row, int64_t *column)
{
    const struct source source = source_of(run, run->transposed, run->begin + i);
    const int by_columns = labs(source.row) <= labs(source.column);
    const int64_t lines = by_columns ? run->columns : run->rows;
    const int64_t count = by_columns ? run->rows : run->columns;
    int64_t *const own = by_columns ? column : row, *const across = by_columns ? row : column;
    int64_t largest = 0;

    memset(across, 0, (size_t)count * sizeof *across);
    for (int64_t j = 0; j < lines; j++) {
        const char *at = source.at + j * (by_columns ? source.column : source.row);
        const ptrdiff_t stride = by_columns ? source.row : source.column;

        own[j] = stride == sizeof(scalar) ? look_along(at, sizeof(scalar), count, across)
                                          : look_along(at, stride, count, across);
        largest = own[j] > largest ? own[j] : largest;
    }
    find_sizes(run->rows, row);
    find_sizes(run->columns, column);
    return largest >= R_INFINITY_BITS ? NONFINITE : largest == 0 ? ZERO : ORDINARY;
}

void
tsvdi_cpu_dense_load_columns(const struct dense_run *run, int transposed, int64_t i, int64_t rows,
                             int64_t columns, const int64_t *index, const int64_t *exponent,
                             scalar *w)
{
    const struct source source = source_of(run, transposed, run->begin + i);

    for (int64_t first = 0; first < columns; first += CPU_LOAD_TILE) {
        const int64_t last = columns - first < CPU_LOAD_TILE ? columns : first + CPU_LOAD_TILE;

        for (int64_t k = 0; k < rows; k += CPU_LOAD_TILE) {
            for (int64_t j = first; j < last; j++) {
                const struct source part = {source.at + k * source.row + index[j] * source.column,
                                            source.row, source.column, source.conjugated};
                real factor[2];

                split_power((real_int)exponent[j], factor);
                copy_tile(part, rows - k < CPU_LOAD_TILE ? rows - k : CPU_LOAD_TILE, 1, factor,
                          w + j * rows + k, rows);
            }
        }
    }
}
