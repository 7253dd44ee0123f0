/*
 * Divide and conquer on the CPU: the secular equations (secular.h), the vectors of M, and the
 * products with them.  Mirrors cuda/dc/vectors.cu.
 */
#include "cpu/dc/dc_run.h"
#include "host/blas.h"
#include "math/secular.h"

static struct secular_sums
evaluate(struct secular_root *r, int64_t k, const real *pole, const real *square)
{
    struct cpu_sums lanes;
    struct secular_sums sums;

    secular_split(r, pole);
    lanes = tsvdi_kernels()->secular(secular_summed(r, k), pole, square, r->base, r->tau, r->below,
                                     r->above);
    sums = (struct secular_sums){lanes.psi, lanes.psi_slope, lanes.phi, lanes.phi_slope};

    secular_add_last(r, square, &sums);
    return sums;
}

void
tsvdi_cpu_dc_solve_roots(const struct cpu_dc *run, struct part part)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = part.node.first, k = part.merge->count.survivors;
    const real *pole = slot->pole + first, *square = slot->square + first;
    real norm = 0;

    for (int64_t j = 0; j < k && part.end == k; j++) {
        norm += square[j];
    }
    for (int64_t i = part.begin; i < part.end; i++) {
        struct secular_root r = {0};

        if (k == 1) {
            r.tau = r_sqrt(norm);
        } else {
            r = secular_start(k, i, pole, norm);
            secular_place(&r, pole, square, evaluate(&r, k, pole, square));
            while (!secular_step(&r, pole, evaluate(&r, k, pole, square))) {
            }
        }
        slot->base[first + i] = r.base;
        slot->tau[first + i] = r.tau;
    }
}

void
tsvdi_cpu_dc_find_weights(const struct cpu_dc *run, struct part part)
{
    const struct dc_slots *slot = &run->slot;
    const int64_t first = part.node.first, k = part.merge->count.survivors;
    const real *pole = slot->pole + first, *base = slot->base + first, *tau = slot->tau + first;

    for (int64_t j = part.begin; j < part.end && k > 1; j++) {
        real *weight = &slot->placed_weight[first + slot->place[first + j]];
        real square = secular_root_difference(pole[j], base[k - 1], tau[k - 1]);

        square *= tsvdi_kernels()->ratios(j, pole[j], pole, base, tau);
        square *= tsvdi_kernels()->ratios(k - 1 - j, pole[j], pole + j + 1, base + j, tau + j);
        *weight = r_copysign(r_sqrt(square), *weight);
    }
}

/* Copies columns begin .. end - 1 of the vector in slot j.  It is zero outside of its range. */
static void
gather(const struct cpu_dc *run, int side, const struct dc_node *node, int64_t j, int64_t begin,
       int64_t end, real *to)
{
    const real *x = row_of(run, side, node, j);
    const int64_t low = run->slot.low[j], high = run->slot.high[j];

    for (int64_t i = begin; i < end; i++) {
        to[i] = 0;
    }
    begin = begin < low ? low : begin;
    end = end > high ? high : end;
    if (begin < end) {
        memcpy(to + begin, x + begin, (size_t)(end - begin) * sizeof *to);
    }
}

void
tsvdi_cpu_dc_fill_factors(const struct cpu_dc *run, struct part part)
{
    const struct dc_slots *slot = &run->slot;
    const struct dc_count count = part.merge->count;
    const int64_t first = part.node.first, center = first + part.node.left;
    const int64_t end = first + part.node.columns;

    for (int64_t i = part.begin; i < part.end; i++) {
        const int64_t j = slot->source[first + i];
        const int64_t row = (first + i) * run->stride + (first - part.node.base);

        if (count.survivors == 1) { /* M = (z_0), which may be zero */
            run->q[RIGHT][row] = r_copysign(1, slot->placed_weight[first]);
            run->q[LEFT][row] = 1;
        } else {
            tsvdi_kernels()->coefficients(count.survivors, slot->place[first],
                                          slot->placed_pole + first, slot->placed_weight + first,
                                          slot->base[first + i], slot->tau[first + i],
                                          run->q[RIGHT] + row, run->q[LEFT] + row);
        }
        for (int side = 0; side < SIDES; side++) {
            real *to = run->gathered[side] + ((first + i) * run->job->n - part.node.base);
            const int64_t cut = center + 1;

            if (side == LEFT && j == center) {
                memset(to + first, 0, (size_t)(end - first) * sizeof *to);
                to[center] = 1;
                continue;
            }
            gather(run, side, &part.node, j, i < count.top + count.dense ? first : cut,
                   i < count.top ? cut : end, to);
        }
    }
}

/* The order of the square blocks of the products.  They are small enough that the threads share
   them evenly, and large enough that their parts are used again while they are in the cache. */
static int64_t
block_of(int64_t survivors)
{
    return survivors < 1024 ? 128 : 256;
}

static int64_t
blocks_in(int64_t count, int64_t block)
{
    return (count + block - 1) / block;
}

/* Each side has blocks of the columns up to the cut, and blocks of the columns after it. */
int64_t
tsvdi_cpu_dc_count_blocks(const struct dc_node *node, struct dc_count count)
{
    const int64_t block = block_of(count.survivors), cut = node->left + 1;

    return SIDES * blocks_in(count.end - count.begin, block) *
           (blocks_in(cut, block) + blocks_in(node->columns - cut, block));
}

void
tsvdi_cpu_dc_multiply_block(const struct cpu_dc *run, const struct dc_node *node,
                            struct dc_count count, int64_t index, real *panel)
{
    const int64_t first = node->first, n = run->job->n, cut = node->left + 1;
    const int64_t block = block_of(count.survivors);
    const int64_t down = blocks_in(count.end - count.begin, block), before = blocks_in(cut, block);
    const int64_t across = before + blocks_in(node->columns - cut, block);
    const int64_t row = count.begin + index / across % down * block;
    const int side = index / across / down == 0 ? RIGHT : LEFT;
    const int left = index % across < before;
    const int64_t column = left ? index % across * block : cut + (index % across - before) * block;
    const int64_t term = left ? 0 : count.top;
    const int64_t terms = left ? count.top + count.dense : count.survivors - count.top;
    const int64_t rows = count.end - row, columns = (left ? cut : node->columns) - column;
    const int64_t corner = (first + row) * run->stride + (first - node->base);
    const struct product product = {
        .rows = rows < block ? rows : block,
        .columns = columns < block ? columns : block,
        .terms = terms,
        .a = run->q[side] + corner + term,
        .b = run->gathered[side] + (first + term) * n + (first - node->base) + column,
        .c = run->x[side] + corner + column,
        .lda = run->stride,
        .ldb = n,
        .ldc = run->stride,
    };

    if (node->columns <= BLAS_ORDER) {
        tsvdi_kernels()->multiply(&product, panel);
    } else {
        tsvdi_blas_multiply(&run->ctx->call->handle->blas, REAL_DTYPE, product.rows,
                            product.columns, terms, product.a, product.lda, product.b, product.ldb,
                            product.c, product.ldc);
    }
}
