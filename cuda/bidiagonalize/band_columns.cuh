/*
 * A panel column by column, with a barrier each: see the head of band_panel.cuh.  For column a the
 * sums g_l of conj(a_row) b_row over the rows after row i, for each later column b, are made while
 * step i - 1 changes the panel, as in qr/qr.cu.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_COLUMNS_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_COLUMNS_CUH

#include "bidiagonalize/band_slice.cuh"

/* The sums of a row's lanes over the block's rows, of each column, to `to`.  Takes b.factor. */
static __device__ void
put_sums(const struct band_block &b, scalar (&sum)[EACH], scalar *to)
{
    const int t = (int)threadIdx.x, warps = BAND_THREADS / WARP;

#pragma unroll
    for (int m = 0; m < EACH; m++) {
        scalar all = sum[m];

        for (int lanes = WARP / 2; lanes >= LANES; lanes /= 2) {
            all += __shfl_xor_sync(0xffffffffu, all, lanes);
        }
        if (t % WARP < LANES) {
            b.factor[(m * LANES + t % WARP) * warps + t / WARP] = all;
        }
    }
    __syncthreads();
    if (t < BAND) {
        scalar all = 0;

        for (int k = 0; k < warps; k++) {
            all += b.factor[t * warps + k];
        }
        to[t] = all;
    }
    __syncthreads();
}

/* Step i in the block's rows: its reflector and what that does to the columns after it; and the
   sums over the rows below i + 1 that step i + 1 needs.  i = -1: only the sums.  As in qr/qr.cu. */
static __device__ void
reduce_column(const struct band_panel &q, struct band_block &b, int i, const scalar *g,
              const scalar *row, scalar *y)
{
    const int t = (int)threadIdx.x, lane = t % LANES, turn = (i + 1) & 1;
    struct reflector h = {};
    scalar sum[EACH] = {};

    if (i >= 0) {
        h = reflector_of(row[i], n_real(g[i]));
        if (t < BAND && t > i) {
            y[t] = n_mul(n_conj(h.tau), n_fma(n_conj(h.scale), g[t], row[t]));
        }
        if (t < BAND && t >= i && i >= b.first && i < b.first + b.rows) {
            b.slice[t * q.stride + i - b.first] =
                t == i ? scalar(h.beta)
                       : row[t] - n_mul(n_conj(h.tau), n_fma(n_conj(h.scale), g[t], row[t]));
        }
        if (b.group.index == 0 && t == 0) {
            q.tau[i] = h.tau;
        }
    }
    __syncthreads();
    for (int first = 0; first < b.rows; first += LINES) {
        const int at = first + t / LANES;
        const bool active = at < b.rows && b.first + at > i;
        scalar *const x = b.slice + at;
        scalar v = 0, next = 0;

        if (active) {
            v = i >= 0 ? n_mul(x[i * q.stride], h.scale) : scalar(REAL(0));
            if (i + 1 < q.width) {
                next = x[(i + 1) * q.stride];
                next = i >= 0 ? n_fma(-v, y[i + 1], next) : next;
            }
        }
        __syncwarp(); /* all have read column i before it changes */
#pragma unroll
        for (int m = 0; m < EACH; m++) {
            const int l = m * LANES + lane;

            if (active && l == i) {
                x[l * q.stride] = v;
            }
            if (active && l > i && l < q.width) {
                scalar entry = x[l * q.stride];

                if (i >= 0) {
                    entry = n_fma(-v, y[l], entry);
                    x[l * q.stride] = entry;
                }
                if (b.first + at == i + 1) {
                    q.row[turn * BAND + l] = entry;
                } else {
                    sum[m] = n_fma(n_conj(next), entry, sum[m]);
                }
            }
        }
    }
    __syncthreads();
    put_sums(b, sum, q.parts + (turn * b.group.blocks + b.group.index) * BAND);
}

/* V, T and R column by column. */
static __device__ void
reduce_columns(const struct band_panel &q, struct band_block &b)
{
    __shared__ scalar g[BAND], row[BAND], y[BAND];
    const int t = (int)threadIdx.x;

    load_slice(q, b);
    for (int i = -1; i < q.width; i++) {
        if (i >= 0) {
            const int turn = i & 1;

            group_barrier(&b.group);
            if (t >= i && t < q.width) { /* q.row has nothing before i */
                row[t] = q.row[turn * BAND + t];
            }
            sum_parts(q.parts + turn * b.group.blocks * BAND, BAND, b.group.blocks, b.factor, g);
        }
        reduce_column(q, b, i, g, row, y);
    }
    if (b.group.index == 0) {
        put_band(q, [&](int i, int j) { return b.slice[j * q.stride + i]; });
        __syncthreads();
        for (int k = t; k < SQUARE; k += BAND_THREADS) {
            const int i = k % BAND, j = k / BAND;

            if (i <= j && i < q.slice) {
                b.slice[j * q.stride + i] = REAL(i == j && j < q.width);
            }
        }
    }
    __syncthreads();
    store_slice(q, b);
    group_barrier(&b.group); /* all have read the sums of the last step */
    make_gram(q, b);
    if (has_role(b, 0)) { /* T's inverse has 1 / tau on the diagonal, and V^H V above */
        load_gram(q, b);
        if (t < BAND) {
            b.pivot[t] = t < q.width ? q.tau[t] : scalar(REAL(0));
        }
        __syncthreads();
        scale_columns(b);
        make_triangle(q, b, [](int i, int j) { return scalar(REAL(i == j)); });
    }
}

#endif
