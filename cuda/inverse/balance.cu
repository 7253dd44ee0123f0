/*
 * What is done to large matrices before and after they are eliminated: S from M, and M's inverse
 * from Y, with all that is found on the way: norms, and whether Y passes its probe.
 *
 * All is done by passes over the matrices, with a thread for each row and blocks of
 * INVERSE_SCALE_COLUMNS columns; small.cu does the same in registers.
 */
#include "inverse/inverse_run.h"
#include "inverse/probe.h"

enum {
    SCALE_THREADS = 256, /* rows of a block, which has INVERSE_SCALE_COLUMNS columns */
    PROBE_THREADS = 1024 /* of a block that has WARP rows of all columns: many, since there are few
                            such blocks.  [untuned] */
};

/* How matrices are cut into blocks of SCALE_THREADS rows and INVERSE_SCALE_COLUMNS columns. */
struct cutting {
    int64_t n, down, across;
};

static struct cutting
cut_matrix(int64_t n)
{
    const struct cutting c = {n, blocks_for(n, SCALE_THREADS),
                              blocks_for(n, INVERSE_SCALE_COLUMNS)};

    return c;
}

/* The thread's row, the number of the block's INVERSE_SCALE_COLUMNS columns, and its matrix. */
static __device__ __forceinline__ int64_t
find_place(const struct cutting &c, int64_t *row, int64_t *across)
{
    const int64_t place = blockIdx.x % (c.down * c.across);

    *row = place % c.down * SCALE_THREADS + threadIdx.x;
    *across = place / c.down;
    return blockIdx.x / (c.down * c.across);
}

/* Sums over the columns of a block, [count][across][n]. */
struct part_sums {
    double *norm; /* of magnitudes of rows of 2^-exponent M, or of 2^exponent times its inverse */
    scalar_double *off; /* as in probe.h, and so is size */
    double *size;
    int *largest; /* exponents */
};

static size_t
lay_out(int64_t n, int64_t count, char *base, struct part_sums *to)
{
    const int64_t parts = count * cut_matrix(n).across * n;
    size_t at = 0;

    to->norm = carve<double>(base, &at, parts);
    to->off = carve<scalar_double>(base, &at, parts);
    to->size = carve<double>(base, &at, parts);
    to->largest = carve<int>(base, &at, parts);
    return at;
}

uint64_t
tsvdi_cuda_inverse_scale_bytes(int64_t n, int64_t count)
{
    struct part_sums sums;

    return lay_out(n, count, NULL, &sums);
}

/* Keeps the largest magnitude: the bits of a number >= 0 are ordered as numbers are; NaN is above
   all. */
static __device__ __forceinline__ void
keep_largest(double *to, double x)
{
    atomicMax((unsigned long long *)to, (unsigned long long)__double_as_longlong(fabs(x)));
}

/* ---- S ---- */

/* Of each row and INVERSE_SCALE_COLUMNS columns of M: the sum of magnitudes, of 2^-exponent M, and
   the largest exponent. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    survey_kernel(const struct cutting c, const scalar *m, const real_int *exponents,
                  const struct part_sums sums)
{
    int64_t i, part, matrix = find_place(c, &i, &part);
    const int64_t end = part * INVERSE_SCALE_COLUMNS + INVERSE_SCALE_COLUMNS;
    double sum = 0;
    int most = BALANCE_NOTHING;

    if (i < c.n) {
        m += matrix * c.n * c.n;
        for (int64_t j = part * INVERSE_SCALE_COLUMNS; j < end && j < c.n; j++) {
            const scalar x = m[j * c.n + i];
            const int exponent = entry_exponent(x);

            sum += modulus(balance_scale(x, -(int)exponents[matrix]));
            most = exponent > most ? exponent : most;
        }
        sums.norm[(matrix * c.across + part) * c.n + i] = sum;
        sums.largest[(matrix * c.across + part) * c.n + i] = most;
    }
}

/* The largest of the rows' sums of each matrix, as `norms`, which begin with zeros; and the
   exponents of the rows. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    rows_kernel(const struct cutting c, const struct part_sums sums, double *norms, int *row)
{
    const int64_t matrix = blockIdx.x / c.down;
    const int64_t i = blockIdx.x % c.down * SCALE_THREADS + threadIdx.x;
    double sum = 0;
    int most = BALANCE_NOTHING;

    if (i < c.n) {
        for (int64_t part = 0; part < c.across; part++) {
            const int64_t at = (matrix * c.across + part) * c.n + i;

            sum += sums.norm[at];
            most = sums.largest[at] > most ? sums.largest[at] : most;
        }
        row[matrix * c.n + i] = balance_power(most);
        keep_largest(norms + matrix, sum);
    }
}

/* The exponent of a column, and S in place of M. */
static __global__ void
__launch_bounds__(SCALE_THREADS) columns_kernel(int64_t n, scalar *m, const int *row, int *column)
{
    __shared__ int part[SCALE_THREADS / WARP];
    const int t = (int)threadIdx.x;
    const int64_t matrix = blockIdx.x / n;
    int most = BALANCE_NOTHING;

    m += blockIdx.x * n;
    row += matrix * n;
    for (int64_t i = t; i < n; i += SCALE_THREADS) {
        const int exponent = entry_exponent(m[i]) - row[i];

        most = exponent > most ? exponent : most;
    }
    most = largest_of_lanes(most, WARP);
    if (t % WARP == 0) {
        part[t / WARP] = most;
    }
    __syncthreads();
    for (int i = 0; i < SCALE_THREADS / WARP; i++) {
        most = part[i] > most ? part[i] : most;
    }
    most = balance_power(most);
    for (int64_t i = t; i < n; i += SCALE_THREADS) {
        m[i] = balance_scale(m[i], -row[i] - most);
    }
    if (t == 0) {
        column[blockIdx.x] = most;
    }
}

/* z of probe.h, [count][n].  A lane has a row, and a warp every 32nd column. */
static __global__ void
__launch_bounds__(PROBE_THREADS)
    probe_kernel(int64_t n, int64_t down, const scalar *s, scalar_double *z)
{
    enum { WARPS = PROBE_THREADS / WARP };
    __shared__ scalar_double part[WARPS][WARP];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t matrix = blockIdx.x / down, i = blockIdx.x % down * WARP + lane;
    scalar_double sum = 0;

    if (i < n) {
        const scalar *own = s + matrix * n * n + i;

#pragma unroll 8
        for (int j = warp; j < n; j += WARPS) {
            sum = add_signed(sum, probe_sign(j), own[j * n]);
        }
    }
    part[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && i < n) {
        for (int k = 1; k < WARPS; k++) {
            sum += part[k][lane];
        }
        z[matrix * n + i] = sum;
    }
}

tsvd_status
tsvdi_cuda_inverse_balance(struct cuda_call *call, const struct cuda_inverse *run, char *d_work)
{
    const int64_t n = run->in.c, count = run->in.count, down = blocks_for(n, WARP);
    const struct cutting c = cut_matrix(n);
    struct part_sums sums;
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, count, d_work, &sums);
    for (double *sizes : {run->norms, run->x_norms, run->off, run->size}) {
        CUDA_TRY(call, cudaMemsetAsync(sizes, 0, (size_t)count * sizeof(double), call->stream));
    }
    survey_kernel<<<(unsigned)(count * c.down * c.across), SCALE_THREADS, 0, call->stream>>>(
        c, run->in.w, run->in.exponent, sums);
    CUDA_LAUNCHED(call);
    rows_kernel<<<(unsigned)(count * c.down), SCALE_THREADS, 0, call->stream>>>(c, sums, run->norms,
                                                                                run->row);
    CUDA_LAUNCHED(call);
    columns_kernel<<<(unsigned)(count * n), SCALE_THREADS, 0, call->stream>>>(
        n, run->in.w, run->row, run->column);
    CUDA_LAUNCHED(call);
    probe_kernel<<<(unsigned)(count * down), PROBE_THREADS, 0, call->stream>>>(n, down, run->in.w,
                                                                               run->z);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- the inverse ---- */

/* What the last steps read and write. */
struct finishing {
    struct cutting c;
    const int *p; /* [count][n] pivots; NULL: `from` is in order */
    const int *row, *column;
    const real_int *exponent;
    const char *kind;
    const scalar_double *z; /* as in probe.h; NULL: only undo the pivoting of Y, without scaling */
    const scalar *from;
    scalar *to; /* may be `from` if that is in order */
    struct part_sums sums;
};

static __global__ void
__launch_bounds__(SCALE_THREADS) finish_kernel(const __grid_constant__ struct finishing q)
{
    int64_t s, part, matrix = find_place(q.c, &s, &part);
    const int64_t n = q.c.n, end = part * INVERSE_SCALE_COLUMNS + INVERSE_SCALE_COLUMNS,
                  rows = matrix * n;
    double norm = 0;
    scalar_double off = 0;
    double size = 0;
    int64_t i;

    if (s >= n) {
        return;
    }
    i = q.p != NULL ? q.p[rows + s] : s;
    for (int64_t j = part * INVERSE_SCALE_COLUMNS; j < end && j < n; j++) {
        const int64_t to = q.p != NULL ? q.p[rows + j] : j;
        scalar x = q.from[(rows + j) * n + i];

        if (q.z != NULL) {
            const int power = -q.column[rows + s] - q.row[rows + to];
            const scalar_double term = product(widened(x), q.z[rows + to]);

            off += term;
            size += probe_size(term);
            norm += modulus(balance_scale(x, power + (int)q.exponent[matrix]));
            x = balance_scale(x, power);
            x = q.kind[matrix] == NONFINITE ? no_inverse() : x;
        }
        q.to[(rows + to) * n + s] = x;
    }
    if (q.z != NULL) {
        const int64_t at = (matrix * q.c.across + part) * n + s;

        q.sums.norm[at] = norm;
        q.sums.off[at] = off;
        q.sums.size[at] = size;
    }
}

/* The largest of the rows' sums of each matrix; they begin with zeros. */
static __global__ void
__launch_bounds__(SCALE_THREADS) sums_kernel(const struct cutting c, const struct part_sums sums,
                                             double *norms, double *offs, double *sizes)
{
    const int64_t matrix = blockIdx.x / c.down;
    const int64_t i = blockIdx.x % c.down * SCALE_THREADS + threadIdx.x;
    double norm = 0;
    scalar_double off = 0;
    double size = 0;

    if (i < c.n) {
        for (int64_t part = 0; part < c.across; part++) {
            const int64_t at = (matrix * c.across + part) * c.n + i;

            norm += sums.norm[at];
            off += sums.off[at];
            size += sums.size[at];
        }
        keep_largest(norms + matrix, norm);
        keep_largest(offs + matrix, probe_size(off - probe_sign((int)i)));
        keep_largest(sizes + matrix, size);
    }
}

/* Tells what the matrices are found to be. */
static __global__ void
__launch_bounds__(SCALE_THREADS)
    mark_kernel(const __grid_constant__ struct cuda_inverse run, const bool last)
{
    const int64_t matrix = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x;

    if (matrix < run.in.count) {
        const bool finite = run.in.kind[matrix] != NONFINITE, singular = run.singular[matrix] != 0;
        const bool grown = !last && finite &&
                           (singular ? run.in.c <= INVERSE_COMPLETE_ORDER || run.grown[matrix] != 0
                                     : probe_fails(run.off[matrix], run.size[matrix], run.in.c));

        run.grown[matrix] = grown;
        add_marks(run.marks, marks_of(matrix, finite, singular, grown,
                                      run.norms[matrix] * run.x_norms[matrix]));
    }
}

tsvd_status
tsvdi_cuda_inverse_mark(struct cuda_call *call, const struct cuda_inverse *run, bool last)
{
    tsvd_status ret = TSVD_OK;

    mark_kernel<<<blocks_for(run->in.count, SCALE_THREADS), SCALE_THREADS, 0, call->stream>>>(*run,
                                                                                              last);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_finish(struct cuda_call *call, const struct cuda_inverse *run, const int *d_p,
                          const scalar *d_from, char *d_work)
{
    const int64_t n = run->in.c, count = run->in.count;
    struct finishing q = {cut_matrix(n), d_p,    run->row, run->column, run->in.exponent,
                          run->in.kind,  run->z, d_from,   run->x,      {}};
    tsvd_status ret = TSVD_OK;

    (void)lay_out(n, count, d_work, &q.sums);
    finish_kernel<<<(unsigned)(count * q.c.down * q.c.across), SCALE_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
    sums_kernel<<<(unsigned)(count * q.c.down), SCALE_THREADS, 0, call->stream>>>(
        q.c, q.sums, run->x_norms, run->off, run->size);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_inverse_mark(call, run, false));
out:
    return ret;
}

tsvd_status
tsvdi_cuda_inverse_arrange(struct cuda_call *call, const struct cuda_inverse *run, const int *d_p)
{
    struct finishing q = {};
    tsvd_status ret = TSVD_OK;

    q.c = cut_matrix(run->in.c);
    q.p = d_p;
    q.from = run->in.w;
    q.to = run->x;
    finish_kernel<<<(unsigned)(run->in.count * q.c.down * q.c.across), SCALE_THREADS, 0,
                    call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
