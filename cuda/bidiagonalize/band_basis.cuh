/*
 * A panel by Cholesky factors, and its reflectors from the basis that they make: see the head of
 * band_panel.cuh.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_BASIS_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_BASIS_CUH

#include "bidiagonalize/band_slice.cuh"

/* Whether no column has squares that count. */
static __device__ bool
is_nothing(const struct band_panel &q, const struct band_block &b)
{
    const int t = (int)threadIdx.x;

    return __syncthreads_and(t >= q.width || n_real(b.factor[t * (BAND + 1)]) < DENSE_NOTHING) != 0;
}

/* Q^H Q = I + E: whether the triangle of E has short columns. */
static __device__ bool
is_close(const struct band_block &b)
{
    const int t = (int)threadIdx.x;
    bool good = true;

    if (t < BAND) {
        real sum = 0;

        for (int i = 0; i <= t; i++) {
            sum = n_add_abs2(b.factor[i * BAND + t] - REAL(i == t), sum);
        }
        good = sum <= BAND_CLOSE; /* false for NaN */
    }
    return __syncthreads_and(good) != 0;
}

/* I + the triangle of E with half its diagonal, from I + E. */
static __device__ void
halve_diagonal(const struct band_block &b)
{
    if (threadIdx.x < BAND) {
        scalar *const at = &b.factor[threadIdx.x * (BAND + 1)];

        *at = (n_real(*at) + 1) / 2;
    }
    __syncthreads();
}

/* R of R^H R = G, whose upper triangle is in b.factor, with its diagonal times 1 + shift.  False: a
   pivot is not above the rounding of G.  A thread has its entries in registers. */
static __device__ bool
factor_gram(const struct band_block &b, real shift)
{
    const int t = (int)threadIdx.x, j = t % BAND, line = t / BAND;
    scalar *const f = b.factor;
    scalar own[EVERY];

#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        const int i = line + m * ACROSS_ROWS;

        own[m] = i <= j ? f[i * BAND + j] : scalar(REAL(0));
        if (i == j) {
            b.diagonal[j] = n_real(own[m]);
            own[m] = n_scale(1 + shift, own[m]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int first = 0; first < EVERY; first++) {
        for (int l = 0; l < ACROSS_ROWS; l++) {
            const int k = first * ACROSS_ROWS + l;
            real pivot;
            scalar factor;

            if (line == l) {
                f[k * BAND + j] = own[first];
            }
            __syncthreads();
            pivot = n_real(f[k * (BAND + 1)]);
            /* false for NaN; and the squares of a column may have underflowed */
            if (!(pivot > BAND * R_EPS * b.diagonal[k]) || !(b.diagonal[k] >= DENSE_NOTHING) ||
                !r_isfinite(pivot)) {
                return false;
            }
            factor = n_scale(-r_reciprocal(pivot), f[k * BAND + j]);
#pragma unroll
            for (int m = first; m < EVERY; m++) {
                if (m > first || line > l) {
                    own[m] = n_fma(n_conj(f[k * BAND + line + m * ACROSS_ROWS]), factor, own[m]);
                }
            }
        }
    }
#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        const int i = line + m * ACROSS_ROWS;
        real inverse;
        const real root = reflector_norm(n_real(f[i * (BAND + 1)]), &inverse);

        own[m] = i < j ? n_scale(inverse, own[m]) : scalar(i == j ? root : REAL(0));
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        f[(line + m * ACROSS_ROWS) * BAND + j] = own[m];
    }
    __syncthreads();
    return true;
}

/* The same with 1 / the diagonal of b.factor, which is real. */
static __device__ void
take_diagonal(const struct band_block &b)
{
    if (threadIdx.x < BAND) {
        b.pivot[threadIdx.x] = 1 / n_real(b.factor[threadIdx.x * (BAND + 1)]);
    }
    __syncthreads();
    scale_columns(b);
}

/* q.product := F times it, or F if it is the first; by one block. */
static __device__ void
multiply_product(const struct band_panel &q, const struct band_block &b, bool first)
{
    const int j = (int)threadIdx.x % BAND, line = (int)threadIdx.x / BAND;
    scalar sum[EVERY];

#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        const int i = line + m * ACROSS_ROWS;

        sum[m] = first && i <= j ? b.factor[i * BAND + j] : scalar(REAL(0));
    }
    if (!first) {
#pragma unroll 8 /* loads from the cache, all at once */
        for (int l = 0; l < BAND; l++) {
            const scalar entry = q.product[l * BAND + j]; /* zero for l > j */

#pragma unroll
            for (int m = 0; m < EVERY; m++) {
                const int i = line + m * ACROSS_ROWS;

                sum[m] = i <= l ? n_fma(b.factor[i * BAND + l], entry, sum[m]) : sum[m];
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        q.product[(line + m * ACROSS_ROWS) * BAND + j] = sum[m];
    }
    __syncthreads();
}

enum band_basis {
    BASIS_MADE,
    BASIS_NONE,   /* there is none yet, and the slices have changed */
    BASIS_NOTHING /* X is zero, or so small that its squares are */
};

/* Replaces X by an orthonormal basis. */
static __device__ enum band_basis
make_basis(const struct band_panel &q, struct band_block &b)
{
    for (int pass = 0; pass <= PASSES; pass++) {
        bool made = false, last;

        make_gram(q, b);
        load_gram(q, b);
        if (pass == 0 && is_nothing(q, b)) {
            return BASIS_NOTHING;
        }
        last = pass > 0 && is_close(b);
        if (last) {
            halve_diagonal(b);
            made = true;
        }
        for (int k = 0; k < (pass == 0 ? SHIFTS : 1) && !made && pass < PASSES; k++) {
            const real shift = k == 0 ? REAL(0) : r_pow2(4 + 4 * k) * BAND * R_EPS;

            if (k > 0) {
                __syncthreads(); /* all have found that there is no factor */
                load_gram(q, b);
            }
            made = factor_gram(b, shift);
        }
        if (!made) {
            break;
        }
        if (has_role(b, 1)) {
            multiply_product(q, b, pass == 0);
        }
        take_diagonal(b);
        solve_slice(q, b, 0);
        if (last) {
            return BASIS_MADE;
        }
    }
    return BASIS_NONE;
}

/* 1 / x, for a magnitude of 1 to 2 or so. */
static __device__ __forceinline__ scalar
inverse_of(scalar x)
{
#if TSVD_COMPLEX
    return n_scale(r_reciprocal(n_abs2(x)), n_conj(x));
#else
    return r_reciprocal(x);
#endif
}

/* Q - S on the diagonal, which makes its magnitude 1 or more. */
static __device__ __forceinline__ scalar
less_sign(scalar x)
{
    return x + scalar(n_real(x) >= 0 ? REAL(1) : REAL(-1));
}

/* V_1 U = Q_1 - S of the top of the basis, by block 0; to q.factor and q.pivot.  A thread has its
   entries in registers. */
static __device__ void
factor_top(const struct band_panel &q, const struct band_block &b)
{
    const int t = (int)threadIdx.x, j = t % BAND, line = t / BAND;
    scalar *const f = b.factor;
    scalar own[EVERY];

#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        const int i = line + m * ACROSS_ROWS;

        own[m] = i < q.slice ? b.slice[j * q.stride + i] : scalar(REAL(0));
    }
#pragma unroll
    for (int first = 0; first < EVERY; first++) {
        for (int l = 0; l < ACROSS_ROWS; l++) {
            const int k = first * ACROSS_ROWS + l;
            scalar inverse, factor;

            if (line == l && j >= k) {
                f[k * BAND + j] = own[first];
            }
            if (j == k) {
#pragma unroll
                for (int m = first; m < EVERY; m++) {
                    if (m > first || line > l) {
                        f[(line + m * ACROSS_ROWS) * BAND + k] = own[m];
                    }
                }
            }
            __syncthreads();
            inverse = inverse_of(less_sign(f[k * (BAND + 1)]));
            factor = -n_mul(f[k * BAND + j], inverse);
#pragma unroll
            for (int m = first; m < EVERY; m++) {
                if (j > k && (m > first || line > l)) {
                    own[m] = n_fma(f[(line + m * ACROSS_ROWS) * BAND + k], factor, own[m]);
                }
            }
            if (t == 0) {
                b.pivot[k] = inverse;
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < EVERY; m++) {
        const int i = line + m * ACROSS_ROWS;

        own[m] = i > j ? n_mul(own[m], b.pivot[j]) : i == j ? less_sign(own[m]) : own[m];
        q.factor[i * BAND + j] = own[m];
        if (i < q.slice) {
            b.slice[j * q.stride + i] = i > j ? own[m] : scalar(REAL(i == j));
        }
    }
    if (t < BAND) {
        q.pivot[t] = b.pivot[t];
    }
}

/* The sign in S of a column, from the diagonal of U = Q - S. */
static __device__ __forceinline__ real
sign_of(scalar pivot)
{
    return n_real(pivot) >= 0 ? REAL(-1) : REAL(1);
}

/* V, T and R from the basis. */
static __device__ void
reconstruct(const struct band_panel &q, struct band_block &b)
{
    const int t = (int)threadIdx.x;
    const bool top = b.group.index == 0;

    if (top) {
        factor_top(q, b);
    }
    group_arrive(&b.group);
    if (top) { /* while the others wait and solve: V_1^H in F's place */
        for (int k = t; k < SQUARE; k += BAND_THREADS) {
            const int i = k / BAND, j = k % BAND;

            b.factor[k] = j > i ? n_conj(q.factor[j * BAND + i]) : scalar(REAL(0));
        }
        if (t < BAND) {
            b.pivot[t] = 1;
        }
        __syncthreads();
        make_triangle(q, b, [&](int i, int j) {
            return i <= j ? n_scale(-sign_of(q.factor[j * (BAND + 1)]), q.factor[i * BAND + j])
                          : scalar(REAL(0));
        });
    }
    group_wait(&b.group);
    if (t < BAND) {
        b.pivot[t] = q.pivot[t];
    }
    for (int k = t; k < SQUARE; k += BAND_THREADS) {
        b.factor[k] = n_mul(q.factor[k], q.pivot[k % BAND]); /* U */
    }
    __syncthreads();
    solve_slice(q, b, top ? (int)BAND : 0);
    store_slice(q, b);
    if (has_role(b, 1)) {
        put_band(q, [&](int i, int j) {
            return n_scale(sign_of(q.factor[i * (BAND + 1)]), q.product[i * BAND + j]);
        });
    }
}

/* V, T and R of a panel that counts as zero: H = I. */
static __device__ void
put_nothing(const struct band_panel &q, const struct band_block &b)
{
    for (int j = (int)threadIdx.x / WARP; j < BAND; j += BAND_THREADS / WARP) {
        for (int i = (int)threadIdx.x % WARP; i < q.slice; i += WARP) {
            b.slice[j * q.stride + i] = REAL(b.first + i == j);
        }
    }
    __syncthreads();
    store_slice(q, b);
    if (has_role(b, 0)) {
        for (int k = (int)threadIdx.x; k < SQUARE; k += BAND_THREADS) {
            q.t[k] = 0;
        }
        if ((int)threadIdx.x < q.width) {
            q.tau[threadIdx.x] = 0;
        }
    }
    if (has_role(b, 1)) {
        put_band(q, [](int, int) { return scalar(REAL(0)); });
    }
}

#endif
