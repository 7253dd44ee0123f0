/*
 * Reduction to bidiagonal form on the device, which reads the trailing matrix once a column
 * (Howell, Demmel, Fulton, Hammarling & Marmol, ACM Trans. Math. Softw. 34 (2008)).
 *
 * In a panel the matrix is A - V Y^T - X U^T, where A is what the panel started with.  Step i makes
 * the reflectors v and u of column i and of row i:
 *
 *     y_l = tau (A_l^T v - Y_l V^T v - U_l X^T v)       of each column l > i
 *     r_l = row i of column l, less y_l                 the row that u is made of
 *     w   = sum of A_l r_l
 *     u   = (r - beta e_1) / (r_1 - beta)
 *     x   = tau' ((w - beta A_1) / (r_1 - beta) - V Y^T u - X U^T u)
 *
 * so that one visit to column l serves both A^T v and A u.  What is linear in u, or in v, is summed
 * over r, or over the column itself, before the norm is known.
 *
 * A kernel makes a panel.  Block b has the columns l with l mod blocks = b, and an equal share of
 * the rows.  A step has two phases, and a barrier behind each:
 *
 *     rows     x of the step before and the next column, in the block's rows; sums of V^T a, X^T a
 *     columns  v; y, r and w of the block's columns, which come through shared memory; sums of
 *              Y^T r, U^T r
 *
 * A product then updates the trailing matrix.  What is left when that fits shared memory is
 * resident.cu's.  Several groups of blocks work on several matrices.
 *
 * V X  [2 width][r] of each matrix: the v's, from `width` on the x's
 * Y U  [c][2 width] of each matrix: the y's and the u's of a column
 */
#include "dense/panel.h"
#include "dense/run.h"

/* A panel of each of `count` matrices. */
struct panel {
    int64_t r, c, count;
    int64_t begin, end;          /* its columns */
    int width;                   /* columns of a panel, at most; 2 width <= threads of a block */
    int blocks, groups;          /* of a group; of the grid */
    int stages;                  /* how many groups of columns are on their way; 0: none */
    real *w;                     /* [count][c][r] */
    real *tau_q, *tau_p, *d, *e; /* [count][c] */
    real *vx, *yu;               /* [count] as above */

    /* Of each group of blocks. */
    real *column;       /* [r] the next column */
    real *row;          /* [c] the row r */
    real *sums;         /* [blocks][r] parts of w */
    real *left, *right; /* [blocks][2 width] parts of V^T a, X^T a, and of Y^T r, U^T r.  The last
                          place is that of the sum of squares behind the first entry */
    unsigned *arrived;  /* [1] zero */
};

/* Bytes of shared memory before the numbers of a block: the panel itself. */
enum { PANEL_BYTES = (sizeof(struct panel) + 15) / 16 * 16 };

/* What a block keeps in shared memory. */
struct panel_shared {
    real *along;   /* [2 width] V^T v, X^T v */
    real *z, *y;   /* [2 width] Y^T u, U^T u; row i of Y U */
    real *scratch; /* [2 threads] */
    real *sums;    /* [2][2 columns of a visit][warps] */
    real *stage;   /* [stages][columns of a visit][rows] */
};

static inline __host__ __device__ size_t
panel_numbers(int width, int threads, int columns)
{
    return (size_t)(6 * width + 2 * threads + 4 * columns * (threads / WARP));
}

static __device__ struct panel_shared
share(char *base, int width, int columns)
{
    const int threads = DENSE_THREADS;
    real *const x = (real *)base;
    real *const sums = x + 6 * width + 2 * threads;

    return {x,
            x + 2 * width,
            x + 4 * width,
            x + 6 * width,
            sums,
            sums + 4 * columns * (threads / WARP)};
}

/* The part of a panel that belongs to matrix m and this block's group. */
static __device__ struct panel
part_of(struct panel q, int64_t m, int group)
{
    q.w += m * q.c * q.r;
    q.tau_q += m * q.c;
    q.tau_p += m * q.c;
    q.d += m * q.c;
    q.e += m * q.c;
    q.vx += m * 2 * q.width * q.r;
    q.yu += m * 2 * q.width * q.c;
    q.column += group * q.r;
    q.row += group * q.c;
    q.sums += (int64_t)group * q.blocks * q.r;
    q.left += (int64_t)group * q.blocks * 2 * q.width;
    q.right += (int64_t)group * q.blocks * 2 * q.width;
    return q;
}

/* The block's first row; that of the block behind the last is r. */
static __device__ __forceinline__ int64_t
slice_begin(const struct panel &q, int block)
{
    const int64_t rows = q.r - q.begin;

    return q.begin + rows * block / q.blocks;
}

/* The block's first column behind `column`. */
static __device__ __forceinline__ int64_t
own_column(const struct panel &q, int block, int64_t column)
{
    const int64_t next = column + 1;

    return next + ((block - next) % q.blocks + q.blocks) % q.blocks;
}

/* The phase of the rows: column i as it is now, from what steps begin .. i - 1 have left.  i = end:
   only x of the last step. */
static __device__ void
make_column(const struct panel &q, const struct panel_shared &s, int block, int64_t i)
{
    const int t = (int)threadIdx.x, threads = DENSE_THREADS, width = q.width;
    const int done = (int)(i - q.begin), terms = done > 0 ? 2 * done - 1 : 0;
    const int64_t low = slice_begin(q, block), high = slice_begin(q, block + 1);
    const int64_t first = low > i ? low : i, rows = high - first;
    const int lines = (int)(rows < threads ? (rows > 0 ? rows : 1) : threads);
    const int shares = threads / lines, share = t / lines;
    const int active = (int)(q.c - i < q.blocks ? q.c - i : (int64_t)q.blocks);
    struct reflector h = {0, 0, 0};

    if (done > 0) {
        sum_parts(q.right, 2 * width, q.blocks, (int)(i % q.blocks), active, s.scratch, s.z);
        h = reflector_of(q.row[i], s.z[2 * width - 1]);
        __syncthreads();
        if (t < 2 * width) {
            s.y[t] = t % width < (t < width ? done : done - 1) ? q.yu[i * 2 * width + t] : REAL(0);
            s.z[t] = (s.z[t] - h.beta * s.y[t]) * h.inverse;
        }
        for (int64_t l = own_column(q, block, i - 1) + (int64_t)t * q.blocks; l < q.c;
             l += (int64_t)threads * q.blocks) {
            const real u = l == i ? REAL(1) : q.row[l] * h.inverse;

            q.yu[l * 2 * width + width + done - 1] = u;
            if (l > i) {
                q.w[l * q.r + i - 1] = u;
            }
        }
        if (block == 0 && t == 0) {
            q.e[i - 1] = h.beta;
            q.tau_p[i - 1] = h.tau;
        }
        __syncthreads();
    }
    for (int64_t at = first; at < high; at += lines) {
        const int64_t row = at + t % lines;
        real x = 0, a = 0;

        if (share < shares && row < high) {
            for (int k = share; done > 0 && k < active; k += shares) {
                x += q.sums[(i + k) % q.blocks * q.r + row];
            }
            x *= h.inverse;
            for (int k = share; k < terms; k += shares) {
                const int slot = k < done ? k : width + k - done;
                const real value = q.vx[slot * q.r + row];

                x = r_fma(-value, s.z[slot], x);
                a = r_fma(-value, s.y[slot], a);
            }
            s.scratch[t] = x;
            s.scratch[threads + t] = a;
        }
        __syncthreads();
        if (t < lines && row < high) {
            const real before = q.w[i * q.r + row];

            x = a = 0;
            for (int k = 0; k < shares; k++) {
                x += s.scratch[k * lines + t];
                a += s.scratch[threads + k * lines + t];
            }
            if (done > 0) {
                x = h.tau * r_fma(-h.beta * h.inverse, before, x);
                q.vx[(width + done - 1) * q.r + row] = x;
            }
            q.column[row] = before + a - x;
        }
        __syncthreads();
    }
    if (i == q.end) {
        return;
    }
    for (int k = t / WARP; k <= 2 * done; k += threads / WARP) { /* a warp has a sum */
        const int slot = k == 2 * done ? 2 * width - 1 : k < done ? k : width + k - done;
        const real *with = k == 2 * done ? q.column : q.vx + slot * q.r;
        real sum = 0;

        for (int64_t row = first + t % WARP; row < high; row += WARP) {
            if (k < 2 * done || row > i) {
                sum = r_fma(with[row], q.column[row], sum);
            }
        }
        sum = warp_sum(sum);
        if (t % WARP == 0) {
            q.left[(int64_t)block * 2 * width + slot] = sum;
        }
    }
}

/* Starts the copies of a visit's columns, from column `l` on, to a stage. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void
fetch(const struct panel &q, int64_t l, real *stage)
{
    const int t = (int)threadIdx.x, threads = DENSE_THREADS, left = (int)(q.r - q.begin) - t;

#pragma unroll
    for (int k = 0; k < COLUMNS; k++, l += q.blocks) {
        if (l < q.c) {
            const real *from = q.w + l * q.r + q.begin;
            real *to = stage + k * ROWS * threads;

#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if (j * threads < left) {
                    copy_start(to + t + j * threads, from + t + j * threads);
                }
            }
        }
    }
    copies_commit();
}

/* Starts the first visits to the columns behind `column`. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void
fetch_first(const struct panel &q, const struct panel_shared &s, int block, int64_t column)
{
    const int64_t l = own_column(q, block, column);

    for (int k = 0; k < q.stages; k++) {
        fetch<ROWS, COLUMNS>(q, l + (int64_t)k * COLUMNS * q.blocks,
                             s.stage + k * COLUMNS * ROWS * DENSE_THREADS);
    }
}

/* Sums over the block of 2 COLUMNS numbers of each thread.  turn: 0 and 1 by turns. */
template <int COLUMNS>
static __device__ __forceinline__ void
block_sums(const struct panel_shared &s, int turn, real (&x)[2 * COLUMNS])
{
    const int t = (int)threadIdx.x, warps = DENSE_THREADS / WARP;
    real *sums = s.sums + turn * 2 * COLUMNS * warps;

#pragma unroll
    for (int k = 0; k < 2 * COLUMNS; k++) {
        x[k] = warp_sum(x[k]);
        if (t % WARP == 0) {
            sums[k * warps + t / WARP] = x[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 2 * COLUMNS; k++) {
        x[k] = 0;
        for (int j = 0; j < warps; j++) {
            x[k] += sums[k * warps + j];
        }
    }
}

/* What a thread adds to the sums for column l beside A_l: its place of Y U, and the last one's is
   row i of A. */
static __device__ __forceinline__ real
beside(const struct panel &q, int64_t i, int64_t l)
{
    const int t = (int)threadIdx.x, done = (int)(i - q.begin);

    if (t >= 2 * q.width || l >= q.c) {
        return 0;
    }
    return t == 2 * q.width - 1 ? q.w[l * q.r + i]
           : t % q.width < done ? q.yu[l * 2 * q.width + t]
                                : REAL(0);
}

/* The phase of the columns: v; y, r and w.  ROWS: rows that a thread has, in registers; 0: there
   are too many, and v and w are in memory.  COLUMNS: of a visit. */
template <int ROWS, int COLUMNS>
static __device__ void
visit_columns(const struct panel &q, const struct panel_shared &s, int block, int64_t i)
{
    const int t = (int)threadIdx.x, threads = DENSE_THREADS, width = q.width;
    const int done = (int)(i - q.begin);
    const int64_t first = own_column(q, block, i);
    const int lines = ROWS > 0 ? ROWS : (int)((q.r - q.begin + threads - 1) / threads);
    real *const sums = q.sums + (int64_t)block * q.r;
    real v[ROWS > 0 ? ROWS : 1], w[ROWS > 0 ? ROWS : 1], next[COLUMNS], z = 0;
    real along = 0, across = 0; /* the factors of this thread's place of Y U in y, and in row i */
    struct reflector h;
    int turn = 0;

    sum_parts(q.left, 2 * width, q.blocks, 0, q.blocks, s.scratch, s.along);
    h = reflector_of(q.column[i], s.along[2 * width - 1]);
    if (t < 2 * width) {
        const bool used = t % width < done;

        across = t == 2 * width - 1 ? REAL(-1) : used ? q.vx[t * q.r + i] : REAL(0);
        along = used ? (s.along[t] - h.beta * across) * h.inverse : REAL(0);
    }
    for (int64_t row = slice_begin(q, block) + t; row < slice_begin(q, block + 1); row += threads) {
        if (row >= i) {
            const real value = row == i ? REAL(1) : q.column[row] * h.inverse;

            q.vx[done * q.r + row] = value;
            if (row > i) {
                q.w[i * q.r + row] = value;
            }
        }
    }
    if (block == 0 && t == 0) {
        q.d[i] = h.beta;
        q.tau_q[i] = h.tau;
        if (i + 1 == q.c) {
            q.e[i] = q.tau_p[i] = 0;
        }
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int64_t row = q.begin + t + j * threads;

        v[j] = row < i || row >= q.r ? REAL(0) : row == i ? REAL(1) : q.column[row] * h.inverse;
        w[j] = 0;
    }
    for (int64_t row = q.begin + t; ROWS == 0 && first < q.c && row < q.r; row += threads) {
        sums[row] = 0;
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        next[k] = beside(q, i, first + (int64_t)k * q.blocks);
    }
    for (int64_t l = first, visit = 0; l < q.c; l += (int64_t)COLUMNS * q.blocks, visit++) {
        real *stage = ROWS > 0 ? s.stage + visit % q.stages * COLUMNS * ROWS * threads : NULL;
        real sum[2 * COLUMNS], mine[COLUMNS];

        copies_wait(q.stages - 1);
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int64_t column = l + (int64_t)k * q.blocks;
            const real *from = q.w + column * q.r + q.begin + t;

            mine[k] = next[k];
            next[k] = beside(q, i, column + (int64_t)COLUMNS * q.blocks);
            sum[2 * k] = -mine[k] * along; /* both are 0 where there is no place */
            sum[2 * k + 1] = -mine[k] * across;
            if (ROWS > 0) {
#pragma unroll
                for (int j = 0; j < ROWS; j++) {
                    sum[2 * k] = r_fma(stage[(k * ROWS + j) * threads + t], v[j], sum[2 * k]);
                }
            } else {
                for (int j = 0; j < lines && column < q.c; j++) {
                    const int64_t row = q.begin + t + (int64_t)j * threads;

                    if (row >= i && row < q.r) {
                        const real value = row == i ? REAL(1) : q.column[row] * h.inverse;

                        sum[2 * k] = r_fma(from[(int64_t)j * threads], value, sum[2 * k]);
                    }
                }
            }
        }
        block_sums<COLUMNS>(s, turn, sum);
        turn = 1 - turn;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int64_t column = l + (int64_t)k * q.blocks;
            const real *from = q.w + column * q.r + q.begin + t;
            const real y = h.tau * sum[2 * k], r = sum[2 * k + 1] - y;

            if (column >= q.c) {
                break;
            }
            if (t == 2 * width - 1) {
                mine[k] = column > i + 1 ? r : REAL(0);
            } else if (t == done) {
                mine[k] = y;
            }
            z = r_fma(mine[k], r, z);
            if (t == 0) {
                q.yu[column * 2 * width + done] = y;
                q.row[column] = r;
            }
            if (ROWS > 0) {
#pragma unroll
                for (int j = 0; j < ROWS; j++) {
                    w[j] = r_fma(stage[(k * ROWS + j) * threads + t], r, w[j]);
                }
            } else {
                for (int64_t row = q.begin + t, j = 0; row < q.r; row += threads, j += threads) {
                    sums[row] = r_fma(from[j], r, sums[row]);
                }
            }
        }
        if (ROWS > 0) {
            fetch<ROWS, COLUMNS>(q, l + (int64_t)q.stages * COLUMNS * q.blocks, stage);
        }
    }
    if (first < q.c && t < 2 * width) {
        q.right[(int64_t)block * 2 * width + t] = z;
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int64_t row = q.begin + t + j * threads;

        if (first < q.c && row < q.r) {
            sums[row] = w[j];
        }
    }
}

template <int ROWS, int COLUMNS>
static __global__ void
__launch_bounds__(DENSE_THREADS) panel_kernel(const struct panel all)
{
    extern __shared__ unsigned char shared[];
    struct panel &q = *(struct panel *)shared; /* it would take the registers of v and w */
    const struct panel_shared s = share((char *)shared + PANEL_BYTES, all.width, COLUMNS);
    const int index = (int)blockIdx.x / all.blocks, block = (int)blockIdx.x % all.blocks;
    struct block_group group = {all.blocks, block, all.arrived + index, 0};
    const int staged = all.stages * COLUMNS * ROWS * DENSE_THREADS;

    /* what lies behind the last row stays zero, and what no column has come to is no NaN */
    for (int k = (int)threadIdx.x; k < staged; k += DENSE_THREADS) {
        s.stage[k] = 0;
    }
    for (int64_t m = index; m < all.count; m += all.groups) {
        if (threadIdx.x == 0) {
            q = part_of(all, m, index);
        }
        __syncthreads();
        if (ROWS > 0) {
            fetch_first<ROWS, COLUMNS>(q, s, block, q.begin);
        }
        for (int64_t i = q.begin; i < q.end; i++) {
            make_column(q, s, block, i);
            group_barrier(&group);
            visit_columns<ROWS, COLUMNS>(q, s, block, i);
            if (ROWS > 0 && i + 1 < q.end) {
                fetch_first<ROWS, COLUMNS>(q, s, block, i + 1);
            }
            group_barrier(&group);
        }
        if (q.end < q.c) {
            make_column(q, s, block, q.end);
        }
        copies_wait(0);
        __syncthreads(); /* before the next matrix's numbers */
    }
}

/* ---- the panels ---- */

typedef void panel_function(struct panel);

/* A kernel, and what it takes. */
struct panel_choice {
    panel_function *kernel;
    int rows, columns; /* of a thread; of a visit */
};

/* Bytes of shared memory, but for stages, and of a stage. */
static size_t
least_bytes(struct panel_choice choice, int width)
{
    return PANEL_BYTES + panel_numbers(width, DENSE_THREADS, choice.columns) * sizeof(real);
}

static size_t
stage_bytes(struct panel_choice choice)
{
    return (size_t)(choice.columns * choice.rows * DENSE_THREADS) * sizeof(real);
}

/* The kernel for so many rows. */
static struct panel_choice
choose_kernel(const struct cuda_call *call, int width, int64_t rows)
{
    static const struct panel_choice choice[] = {
        {panel_kernel<2, 4>, 2, 4},
        {panel_kernel<4, 2>, 4, 2},
        {panel_kernel<8, 2>, 8, 2},
        {panel_kernel<16, 1>, 16, 1},
        {panel_kernel<20, 1>, 20, 1},
#if TSVD_SINGLE
        {panel_kernel<40, 1>, 40, 1},
#endif
    };
    const struct panel_choice any = {panel_kernel<0, 1>, 0, 1};

    for (struct panel_choice some : choice) {
        if ((int64_t)some.rows * DENSE_THREADS >= rows &&
            least_bytes(some, width) + stage_bytes(some) <= (size_t)call->shared_most) {
            return some;
        }
    }
    return any;
}

/* How blocks are shared out among matrices. */
static void
share_blocks(const struct cuda_call *call, int64_t count, struct panel *q)
{
    const int64_t blocks = count < call->multiprocessors ? call->multiprocessors / count : 1;
    const int64_t groups = call->multiprocessors / blocks;

    q->blocks = (int)blocks;
    q->groups = (int)(count < groups ? count : groups);
}

static size_t
lay_out(struct panel *q, char *base)
{
    const int64_t width = 2 * q->width, parts = (int64_t)q->groups * q->blocks;
    const int64_t panels = (q->c + q->width - 1) / q->width;
    size_t at = 0;

    q->vx = cut<real>(base, &at, q->count * width * q->r);
    q->yu = cut<real>(base, &at, q->count * width * q->c);
    q->column = cut<real>(base, &at, q->groups * q->r);
    q->row = cut<real>(base, &at, q->groups * q->c);
    q->sums = cut<real>(base, &at, parts * q->r);
    q->left = cut<real>(base, &at, parts * width);
    q->right = cut<real>(base, &at, parts * width);
    q->arrived = cut<unsigned>(base, &at, panels * q->groups);
    return at;
}

uint64_t
tsvdi_cuda_dense_reduce_bytes(const struct cuda_call *call, int64_t r, int64_t c, int64_t count)
{
    struct panel q = {};

    q.r = r;
    q.c = c;
    q.count = count;
    q.width = DENSE_WIDTH;
    share_blocks(call, count, &q);
    return lay_out(&q, NULL) + tsvdi_cuda_dense_resident_bytes(call, r, count);
}

static tsvd_status
launch_panel(struct cuda_call *call, struct panel q)
{
    const struct panel_choice choice = choose_kernel(call, q.width, q.r - q.begin);
    const size_t least = least_bytes(choice, q.width), stage = stage_bytes(choice);
    void *args[] = {&q};
    tsvd_status ret = TSVD_OK;

    q.stages = 1;
    while (choice.rows > 0 && q.stages < DENSE_STAGES &&
           least + (size_t)(q.stages + 1) * stage <= (size_t)call->shared_most) {
        q.stages++;
    }
    CUDA_TRY(call, cudaFuncSetAttribute(choice.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        call->shared_most));
    CUDA_TRY(call, cudaLaunchCooperativeKernel(choice.kernel, dim3((unsigned)(q.groups * q.blocks)),
                                               dim3(DENSE_THREADS), args,
                                               least + (size_t)q.stages * stage, call->stream));
out:
    return ret;
}

/* A -= V Y^T + X U^T behind the panel. */
static tsvd_status
update(struct cuda_call *call, const struct panel *q)
{
    const int64_t at = q->end, terms = 2 * q->width;
    const struct cuda_factor yu = {q->yu + at * terms, terms, q->c * terms, 0};
    const struct cuda_factor vx = {q->vx + at, q->r, q->r * terms, 0};

    return tsvdi_cuda_multiply_add(call, TSVD_SINGLE, q->c - at, q->r - at, terms, -1, yu, vx, 1,
                                   q->w + at * q->r + at, q->r, q->r * q->c, q->count);
}

tsvd_status
tsvdi_cuda_dense_reduce(struct tsvd_context *ctx, const struct dense_reduction *to, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct panel q = {};
    char *d_resident;
    tsvd_status ret = TSVD_OK;

    q.r = to->r;
    q.c = to->c;
    q.count = to->count;
    q.width = DENSE_WIDTH;
    q.w = to->w;
    q.tau_q = to->tau_q;
    q.tau_p = to->tau_p;
    q.d = to->d;
    q.e = to->e;
    share_blocks(call, q.count, &q);
    d_resident = d_work + lay_out(&q, d_work);
    CUDA_TRY(call, cudaMemsetAsync(q.arrived, 0,
                                   (size_t)((q.c + q.width - 1) / q.width * q.groups) *
                                       sizeof(*q.arrived),
                                   call->stream));
    for (q.begin = 0; q.begin < q.c; q.begin = q.end, q.arrived += q.groups) {
        if (tsvdi_cuda_dense_resident_fits(call, to, q.begin)) {
            TSVD_TRY(tsvdi_cuda_dense_resident(call, to, q.begin, d_resident));
            break;
        }
        q.end = q.begin + q.width < q.c ? q.begin + q.width : q.c;
        TSVD_TRY(launch_panel(call, q));
        if (q.end < q.c) {
            TSVD_TRY(update(call, &q));
        }
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}
