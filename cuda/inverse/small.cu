/*
 * Inverses of batches of small matrices, in registers.
 *
 * L lanes of a warp have a strip of N columns.  Each of them has R rows of it: those that leave the
 * remainder `lane` when divided by L.  Up to order 32 a strip is a matrix, and a warp has several.
 * Above that a block has a matrix, and each warp a strip of all rows.
 *
 * So the strip with the column of a step finds the pivot alone, and makes the factors of all rows.
 * The pivot's row is known within each strip, and goes to the other lanes by shared memory.  Each
 * number read there serves R entries.
 *
 * Registers cannot be indexed.  Those of the strip with the step's column turn by one column in a
 * step, so that this column is always the first.
 *
 * A step does not change the row of its pivot, but for the entry in its column, which becomes 1.
 * The row is divided by the pivot after the last step.
 */
#include <climits>

#include "inverse/probe.h"
#include "inverse/registers.cuh"

enum {
    LARGE = sizeof(scalar) > 8, /* 1: numbers take four registers */
    STRIP = LARGE ? 8 : 16,     /* columns of a strip, if a matrix has several */
    ALONE_ORDER = 32,           /* the largest order of a matrix that is one strip */
    ALONE_THREADS = 128,        /* of a block of such matrices */
    REGISTERS = 65536,          /* of a multiprocessor */
    /* of a thread, besides its part of a matrix */
    OWN_REGISTERS = LARGE          ? 76
                    : TSVD_COMPLEX ? 60
                                   : 42,
    BLOCK_ROWS = LARGE ? 3 : 4,     /* rows in a lane, at most */
    BLOCK_ORDER = BLOCK_ROWS * WARP /* the largest order */
};

/* What the kernel reads and writes. */
struct small_inverses {
    int64_t count;
    int n;
    bool only; /* as in inverse_run.h */
    const scalar *w;
    scalar *x;
    const char *kind; /* [count] of load(); NULL: w is what the caller has */
    char *singular, *grown;
    struct inverse_marks *marks;
};

/* What the lanes of a matrix share.  It has up to S strips; a single one shares no factors and no
   sums. */
template <int L, int R, int N, int S> struct alignas(16) team {
    enum { ROWS = L * R, SHARED_ROWS = S > 1 ? ROWS : 1 };
    scalar row[S][2][N];                /* of each strip, the pivot's row; [2] by turns */
    scalar factor[2][SHARED_ROWS];      /* of rows, from the strip with the column; by turns */
    scalar pivot[ROWS];                 /* the pivot in a row */
    scalar_double sums[S][SHARED_ROWS]; /* of a strip's part of a row */
    scalar_double probe[ROWS];          /* z of probe.h */
    int taken[ROWS];                    /* the row that a step takes */
    int step[ROWS];                     /* the step that takes a row */
    int row_exponent[ROWS];             /* of the largest entry of a row */
    int row_power[ROWS];                /* the power of the row that a step takes */
    int column_power[ROWS];
    int singular, far; /* 1: a pivot is zero; a power is above NEAR_POWER */
};

/* Teams of a block begin in different banks. */
template <typename T> struct spaced {
    T team;
    char space[144 - sizeof(T) % 128];
};

/* What lanes read from shared memory at once. */
enum { PACK = 16 / (int)sizeof(scalar) };

struct alignas(16) pack {
    scalar x[PACK];
};

/* Where a thread is in its matrix. */
struct place {
    int lane, strip;
    int base; /* the strip's first column */
};

static constexpr int
threads_of(int strips)
{
    return strips > 1 ? strips * WARP : ALONE_THREADS;
}

/* Blocks whose registers a multiprocessor has, with `numbers` of a matrix in a thread. */
static constexpr int
blocks_of(int strips, int numbers)
{
    const int registers = numbers * (int)sizeof(scalar) / 4 + OWN_REGISTERS;
    const int blocks = REGISTERS / registers / threads_of(strips);

    return blocks < 1 ? 1 : blocks < 8 ? blocks : 8;
}

template <int S>
static __device__ __forceinline__ void
sync_team(void)
{
    if (S > 1) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}

/* The sums of whole rows from those of the strip's parts. */
template <int L, int R, int N, int S, typename T>
static __device__ __forceinline__ void
sum_strips(struct team<L, R, N, S> &m, const struct place &at, T (&sums)[R])
{
    enum { ROWS = team<L, R, N, S>::SHARED_ROWS };

    if (S > 1) {
        const int strips = (int)blockDim.x / WARP;
        T(*const shared)[ROWS] = (T(*)[ROWS])m.sums;

        __syncthreads(); /* all have read the sums before */
#pragma unroll
        for (int i = 0; i < R; i++) {
            shared[at.strip][at.lane + L * i] = sums[i];
            sums[i] = 0;
        }
        __syncthreads();
        for (int strip = 0; strip < strips; strip++) {
#pragma unroll
            for (int i = 0; i < R; i++) {
                sums[i] += shared[strip][at.lane + L * i];
            }
        }
    }
}

/* The size of the largest sum of a row, from the sums of the strip's parts. */
template <int L, int R, int N, int S, typename T>
static __device__ __forceinline__ double
largest_sum(struct team<L, R, N, S> &m, const struct place &at, T (&sums)[R])
{
    double largest = 0;

    sum_strips(m, at, sums);
#pragma unroll
    for (int i = 0; i < R; i++) {
        largest = larger_sum(largest, probe_size(sums[i]));
    }
    for (int lanes = L / 2; lanes > 0; lanes /= 2) {
        largest = larger_sum(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    }
    return largest;
}

/* The first column becomes the last. */
template <int R, int N>
static __device__ __forceinline__ void
turn_columns(scalar (&a)[N][R])
{
#pragma unroll
    for (int i = 0; i < R; i++) {
        const scalar first = a[0][i];

#pragma unroll
        for (int j = 1; j < N; j++) {
            a[j - 1][i] = a[j][i];
        }
        a[N - 1][i] = first;
    }
}

/* Calls f(j, column) for the N columns of a strip.  NEAR: unrolled.  Else, which is rare, a loop
   turns the registers: N copies of the code would be too long. */
template <bool NEAR, int R, int N, typename F>
static __device__ __forceinline__ void
for_columns(scalar (&a)[N][R], F f)
{
    if (NEAR) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            f(j, a[j]);
        }
    } else {
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            f(j, a[0]);
            turn_columns(a);
        }
    }
}

/* ---- scaling ---- */

template <bool NEAR, int R, int N>
static __device__ __forceinline__ void
sum_rows(scalar (&a)[N][R], int power, double (&sums)[R])
{
    for_columns<NEAR>(a, [&](int, const scalar(&column)[R]) {
#pragma unroll
        for (int i = 0; i < R; i++) {
            sums[i] += modulus(scale_entry<NEAR>(column[i], power));
        }
    });
}

/* The exponents of columns, if those of rows are near.  Zero and what is not normal are far below
   what is near, so that their exponents do not matter.  Returns whether all are near. */
template <int L, int R, int N>
static __device__ __forceinline__ bool
find_near_columns(scalar (&a)[N][R], const struct place &at, int n, const int (&row)[R],
                  int *powers)
{
    bool near = true;

    for_columns<true>(a, [&](int j, const scalar(&column)[R]) {
        int power = INT_MIN;

#pragma unroll
        for (int i = 0; i < R; i++) {
            const int scaled = upper_half(column[i]) - (row[i] << UPPER_DIGITS);

            power = scaled > power ? scaled : power;
        }
        power = (largest_of_lanes(power, L) >> UPPER_DIGITS) - R_BIAS;
        power = at.base + j < n ? power : 0;
        near = near && is_near(power);
        if (at.lane == 0) {
            powers[j] = power;
        }
    });
    return near;
}

/* The exponents of the thread's rows, and that of the largest entry of the matrix, which is above
   R_BIAS if it is not finite. */
template <int L, int R, int N, int S>
static __device__ __forceinline__ int
find_rows(struct team<L, R, N, S> &m, const struct place &at, const scalar (&a)[N][R],
          unsigned rows, int (&row)[R])
{
    int most = BALANCE_NOTHING;

    find_exponents<R, N>(a, rows, row);
#pragma unroll
    for (int i = 0; i < R; i++) {
        atomicMax(&m.row_exponent[at.lane + L * i], row[i]);
    }
    sync_team<S>();
#pragma unroll
    for (int i = 0; i < R; i++) {
        row[i] = m.row_exponent[at.lane + L * i];
        most = row[i] > most ? row[i] : most;
        row[i] = balance_power(row[i]);
    }
    return largest_of_lanes(most, L);
}

/* S in place of M, with the exponents.  near: whether the power of the matrix is near. */
template <int L, int R, int N, int S>
static __device__ __forceinline__ void
balance_strip(struct team<L, R, N, S> &m, const struct place &at, int n, bool near,
              const int (&row)[R], scalar (&a)[N][R])
{
    int *powers = m.column_power + at.base;

#pragma unroll
    for (int i = 0; i < R; i++) {
        near = near && is_near(row[i]);
    }
    near = find_near_columns<L>(a, at, n, row, powers) && near;
    __syncwarp();
    if (!near) {
        m.far = 1;
    }
    if (__all_sync(0xffffffffu, near)) {
        for_columns<true>(a, [&](int j, scalar(&column)[R]) {
            const int power = powers[j];

#pragma unroll
            for (int i = 0; i < R; i++) {
                column[i] = scale_entry<true>(column[i], -row[i] - power);
            }
        });
        return;
    }
    for_columns<false>(a, [&](int j, scalar(&column)[R]) {
        int power = BALANCE_NOTHING;

#pragma unroll
        for (int i = 0; i < R; i++) {
            const int exponent = entry_exponent(column[i]) - row[i];

            power = exponent > power ? exponent : power;
        }
        power = balance_power(largest_of_lanes(power, L));
#pragma unroll
        for (int i = 0; i < R; i++) {
            column[i] = scale_entry<false>(column[i], -row[i] - power);
        }
        if (at.lane == 0) {
            powers[j] = power;
        }
    });
}

/* z of probe.h. */
template <int L, int R, int N, int S>
static __device__ __forceinline__ void
prepare_probe(struct team<L, R, N, S> &m, const struct place &at, scalar (&a)[N][R])
{
    scalar_double z[R] = {};

    for_columns<true>(a, [&](int j, const scalar(&column)[R]) {
        const double sign = probe_sign(at.base + j);

#pragma unroll
        for (int i = 0; i < R; i++) {
            z[i] = add_signed(z[i], sign, column[i]);
        }
    });
    sum_strips(m, at, z);
#pragma unroll
    for (int i = 0; i < R && at.strip == 0; i++) {
        m.probe[at.lane + L * i] = z[i];
    }
}

/* ---- elimination ---- */

struct pivot {
    int row;
    scalar value;
};

/* The pivot in the first column of a strip, in each of its lanes.  Bit i of `open`: no step had the
   lane's row i yet. */
template <int L, int R, int N>
static __device__ __forceinline__ struct pivot
find_pivot(const scalar (&a)[N][R], unsigned open, int lane)
{
    const int before = L < WARP ? (int)threadIdx.x % WARP - lane : 0; /* lanes of other strips */
    struct pivot best = {lane, 0};
    int key = -1, first;

#pragma unroll
    for (int i = 0; i < R; i++) {
        const int own = open >> i & 1 ? pivot_key(a[0][i]) : -1;

        if (own > key) {
            key = own;
            best.row = lane + L * i;
            best.value = a[0][i];
        }
    }
    first = __ballot_sync(0xffffffffu, key == largest_of_lanes(key, L)) >> before;
    first = __ffs(first) - 1;
    best.row = __shfl_sync(0xffffffffu, best.row, first, L);
    best.value = __shfl_sync(0xffffffffu, best.value, first, L);
    return best;
}

/* The multiple of the pivot's row that each row loses; 0 for that itself. */
template <int L, int R, int N>
static __device__ __forceinline__ void
find_factors(const scalar (&a)[N][R], const struct pivot &p, int lane, scalar (&factor)[R])
{
#pragma unroll
    for (int i = 0; i < R; i++) {
        factor[i] = p.row == lane + L * i ? REAL(0) : pivot_factor(a[0][i], p.value);
    }
}

/* Rows lose multiples of the pivot's row.  TURN: the first column is the step's; the registers
   turn.  No fused operation: small integers are exact then, and what depends on other rows is
   zero. */
template <bool TURN, int R, int N>
static __device__ __forceinline__ void
subtract_row(scalar (&a)[N][R], const scalar *row, const scalar (&factor)[R])
{
#pragma unroll
    for (int first = 0; first < N; first += PACK) {
        const struct pack other = *(const struct pack *)(row + first);

#pragma unroll
        for (int k = 0; k < PACK; k++) {
            const int j = first + k;

            if (TURN && j == 0) {
                continue;
            }
#pragma unroll
            for (int i = 0; i < R; i++) {
                a[TURN ? j - 1 : j][i] = a[j][i] - n_mul(factor[i], other.x[k]);
            }
        }
    }
}

/* Bit i of `open`: row i of the thread is one of the matrix. */
template <int L, int R, int N, int S>
static __device__ __forceinline__ void
eliminate(struct team<L, R, N, S> &m, const struct place &at, int n, unsigned open,
          scalar (&a)[N][R])
{
    for (int k = 0; k < n; k++) {
        const bool active = S == 1 || k / N == at.strip;
        scalar *row = m.row[at.strip][k % 2];
        struct pivot p;
        scalar factor[R];

        if (active) {
            p = find_pivot<L>(a, open, at.lane);
            find_factors<L>(a, p, at.lane, factor);
            if (at.lane == 0) {
                m.taken[k] = p.row;
                m.pivot[p.row] = p.value;
            }
        }
        if (S > 1) {
#pragma unroll
            for (int i = 0; i < R && active; i++) {
                m.factor[k % 2][at.lane + L * i] = factor[i];
            }
            __syncthreads();
            p.row = m.taken[k];
#pragma unroll
            for (int i = 0; i < R; i++) {
                factor[i] = m.factor[k % 2][at.lane + L * i];
            }
        }
#pragma unroll
        for (int i = 0; i < R; i++) {
            if (p.row == at.lane + L * i) {
#pragma unroll
                for (int first = 0; first < N; first += PACK) {
                    struct pack own;

#pragma unroll
                    for (int j = 0; j < PACK; j++) {
                        own.x[j] = a[first + j][i];
                    }
                    *(struct pack *)(row + first) = own;
                }
                open &= ~(1u << i);
            }
        }
        __syncwarp();
        if (active) {
            subtract_row<true>(a, row, factor);
#pragma unroll
            for (int i = 0; i < R; i++) {
                a[N - 1][i] = p.row == at.lane + L * i ? REAL(1) : -factor[i];
            }
        } else {
            subtract_row<false>(a, row, factor);
        }
    }
    sync_team<S>();
}

/* ---- results ---- */

/* Where the results of a matrix go. */
struct result {
    scalar *x; /* NULL: nowhere */
    int n, up;
    bool nonfinite;
};

/* m.step, m.row_power and m.singular from the pivots.  A pivot that is zero becomes 1. */
template <int L, int R, int N, int S>
static __device__ __forceinline__ void
survey_pivots(struct team<L, R, N, S> &m, const struct place &at, int n)
{
    const int members = S > 1 ? (int)blockDim.x : L;

    for (int k = at.strip * L + at.lane; k < n; k += members) {
        const int row = m.taken[k];

        m.step[row] = k;
        m.row_power[k] = balance_power(m.row_exponent[row]);
        if (m.pivot[row] == 0) {
            m.pivot[row] = 1;
            m.singular = 1;
        }
    }
    sync_team<S>();
}

/* The strip's parts of sums of rows. */
template <int R> struct row_sums {
    double norm[R];       /* magnitudes of 2^up times M's inverse */
    scalar_double off[R]; /* as in probe.h, and so is size */
    double size[R];
};

/* Writes the inverse of M. */
template <bool NEAR, int L, int R, int N, int S>
static __device__ __forceinline__ void
write_strip(const struct team<L, R, N, S> &m, const struct place &at, scalar (&a)[N][R],
            const struct result &to, struct row_sums<R> &sums)
{
    const int left = to.n - at.base, turned = left < N ? left : N;
    int step[R], power[R];
    scalar inverse[R];

#pragma unroll
    for (int i = 0; i < R; i++) {
        const int row = at.lane + L * i;

        step[i] = row < to.n ? m.step[row] : to.n;
        power[i] = row < to.n ? -m.column_power[step[i]] : 0;
        inverse[i] = row < to.n ? n_divide(1, n_divisor_of(m.pivot[row])) : REAL(0);
        inverse[i] = to.nonfinite ? no_inverse() : inverse[i];
        sums.norm[i] = sums.size[i] = 0;
        sums.off[i] = at.strip == 0 && row < to.n ? -probe_sign(step[i]) : 0;
    }
    for_columns<NEAR>(a, [&](int j, const scalar(&entries)[R]) {
        const int column = at.base + (j + turned) % N;

        if (column < to.n) {
            const int other = m.row_power[column];
            const scalar_double z = m.probe[m.taken[column]];
            scalar *x = to.x + m.taken[column] * to.n;

#pragma unroll
            for (int i = 0; i < R; i++) {
                const scalar y = n_mul(entries[i], inverse[i]);
                const scalar_double part = product(widened(y), z);

                sums.off[i] += part;
                sums.size[i] += probe_size(part);
                sums.norm[i] += modulus(scale_entry<NEAR>(y, power[i] - other + to.up));
                if (to.x != NULL && step[i] < to.n) {
                    x[step[i]] = scale_entry<NEAR>(y, power[i] - other);
                }
            }
        }
    });
}

template <int L, int R, int N, int S>
static __global__ void
__launch_bounds__(threads_of(S), blocks_of(S, R *N))
    small_kernel(const __grid_constant__ struct small_inverses q)
{
    enum { TEAMS = S > 1 ? 1 : ALONE_THREADS / L };
    __shared__ struct spaced<struct team<L, R, N, S>> teams[TEAMS];
    const int t = (int)threadIdx.x, strip = S > 1 ? t / WARP : 0, n = q.n;
    const struct place at = {t % L, strip, strip * N};
    const int64_t matrix = (int64_t)blockIdx.x * TEAMS + (S > 1 ? 0 : t / L);
    const bool present = matrix < q.count;
    bool finite = !present || q.kind == NULL || q.kind[matrix] != NONFINITE;
    struct team<L, R, N, S> &m = teams[S > 1 ? 0 : t / L].team;
    struct result to = {present ? q.x + matrix * n * n : NULL, n, 0, false};
    struct row_sums<R> sums = {
    };
    double norms = 0, off, size;
    unsigned rows = 0;
    bool grown;
    scalar a[N][R];

#pragma unroll
    for (int i = 0; i < R; i++) {
        const int row = at.lane + L * i;

        rows |= row < n ? 1u << i : 0u;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int column = at.base + j;
            const bool inside = present && row < n && column < n;

            a[j][i] = inside ? q.w[matrix * n * n + column * n + row] : REAL(0);
        }
        if (at.strip == 0) {
            m.row_exponent[row] = BALANCE_NOTHING;
            m.column_power[row] = 0;
        }
    }
    if (at.strip == 0 && at.lane == 0) {
        m.singular = m.far = 0;
    }
    sync_team<S>();
    if (!q.only) {
        int row[R];
        const int most = find_rows(m, at, a, rows, row);

        finite = finite && most <= R_BIAS;
        if (most > R_BIAS) {
            clear(a, row);
        }
        to.up = finite ? balance_power(most) : 0;
        if (is_near(to.up)) {
            sum_rows<true>(a, -to.up, sums.norm);
        } else {
            sum_rows<false>(a, -to.up, sums.norm);
        }
        norms = largest_sum(m, at, sums.norm);
        balance_strip(m, at, n, is_near(to.up), row, a);
        prepare_probe(m, at, a);
    }
    to.nonfinite = !finite;
    eliminate(m, at, n, rows, a);
    survey_pivots(m, at, n);
    if (m.far == 0) {
        write_strip<true>(m, at, a, to, sums);
    } else {
        write_strip<false>(m, at, a, to, sums);
    }
    norms *= largest_sum(m, at, sums.norm);
    off = largest_sum(m, at, sums.off);
    size = largest_sum(m, at, sums.size);
    grown = finite && (m.singular != 0 || probe_fails(off, size, n));
    if (present && at.strip == 0 && at.lane == 0) {
        if (q.only) {
            q.singular[matrix] = (char)m.singular;
        } else {
            q.grown[matrix] = grown;
            add_marks(q.marks, marks_of(matrix, finite, false, grown, norms));
        }
    }
}

/* ---- on the host ---- */

bool
tsvdi_cuda_inverse_small_fits(int64_t n)
{
    return n <= BLOCK_ORDER;
}

template <int L, int R, int N, int S>
static tsvd_status
launch_small(struct cuda_call *call, const struct small_inverses &q)
{
    const int threads = S > 1 ? (q.n + N - 1) / N * WARP : ALONE_THREADS;
    tsvd_status ret = TSVD_OK;

    small_kernel<L, R, N, S>
        <<<blocks_for(q.count, S > 1 ? 1 : ALONE_THREADS / L), threads, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Matrices that are one strip. */
template <int N>
static tsvd_status
launch_alone(struct cuda_call *call, const struct small_inverses &q)
{
    enum { ROWS = LARGE && N > 16 ? 1 : 2 }; /* in a lane */

    return launch_small<N / ROWS, ROWS, N, 1>(call, q);
}

/* Matrices of several strips, with R rows in a lane. */
template <int R>
static tsvd_status
launch_block(struct cuda_call *call, const struct small_inverses &q)
{
    return launch_small<WARP, R, STRIP, R * WARP / STRIP>(call, q);
}

tsvd_status
tsvdi_cuda_inverse_small(struct cuda_call *call, const struct cuda_inverse *run, bool only)
{
    const int64_t n = run->in.c;
    const struct small_inverses q = {run->in.count, (int)n,        only,       run->in.w, run->x,
                                     run->in.kind,  run->singular, run->grown, run->marks};

    if (n <= ALONE_ORDER) {
        return n <= 8    ? launch_alone<8>(call, q)
               : n <= 16 ? launch_alone<16>(call, q)
                         : launch_alone<32>(call, q);
    }
    return n <= 2 * WARP   ? launch_block<2>(call, q)
           : n <= 3 * WARP ? launch_block<3>(call, q)
                           : launch_block<BLOCK_ROWS>(call, q);
}
