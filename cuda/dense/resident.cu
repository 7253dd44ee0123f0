/*
 * The reduction of reduce.cu for what fits the shared memory of all multiprocessors: from one
 * column to the last it is one kernel, and the trailing matrix is read from memory once.
 *
 * Block b keeps the columns l with l mod blocks = b.  A step updates them by the reflectors of the
 * step before, A -= v y^T + x u^T, while it makes their y; nothing is deferred.  The phases are
 * those of reduce.cu.  In the phase of the columns a warp has a column at a time for y, and then a
 * thread has a row for w.
 */
#include "dense/panel.h"
#include "dense/run.h"

/* The last columns of each of `count` matrices. */
struct resident {
    int64_t r, c, count, begin;  /* columns `begin` .. c - 1, and as many rows as are left */
    int blocks, groups;          /* of a group; of the grid */
    int columns;                 /* of a block, at most */
    int first;                   /* the first column of this block */
    real *w;                     /* [count][c][r] */
    real *tau_q, *tau_p, *d, *e; /* [count][c] */

    /* Of each group of blocks. */
    real *column, *x;  /* [r] the next column; x of the step before */
    real *before;      /* [r] the next column before that step */
    real *head;        /* [2] r and y of the next column */
    real *sums;        /* [blocks][r] parts of w */
    real *left;        /* [blocks] parts of the sum of squares behind the first entry of a column */
    real *right;       /* [blocks][2] the same of the row, and of y^T r */
    unsigned *arrived; /* [1] zero */
};

/* What a block keeps in shared memory. */
struct resident_shared {
    real *v[2], *x;    /* [rows] v of this step and of that before, by turns; x of that before */
    real *y, *u, *row; /* [columns] of the block's columns */
    real *scratch;     /* [threads] */
    real *both;        /* [2] */
    real *stage;       /* [columns][rows] */
};

static size_t
shared_numbers(int64_t rows, int64_t columns)
{
    return (size_t)(columns * rows + 3 * rows + 3 * columns + DENSE_THREADS + 2);
}

static __device__ struct resident_shared
share(char *base, int64_t rows, int64_t columns)
{
    struct resident_shared s;

    s.stage = (real *)base;
    s.v[0] = s.stage + columns * rows;
    s.v[1] = s.v[0] + rows;
    s.x = s.v[1] + rows;
    s.y = s.x + rows;
    s.u = s.y + columns;
    s.row = s.u + columns;
    s.scratch = s.row + columns;
    s.both = s.scratch + DENSE_THREADS;
    return s;
}

/* The part of a reduction that belongs to matrix m and this block's group. */
static __device__ struct resident
part_of(struct resident q, int64_t m, int group, int block)
{
    const int turn = (block - (int)(q.begin % q.blocks) + q.blocks) % q.blocks;

    q.first = (int)q.begin + turn;
    q.w += m * q.c * q.r;
    q.tau_q += m * q.c;
    q.tau_p += m * q.c;
    q.d += m * q.c;
    q.e += m * q.c;
    q.column += group * q.r;
    q.x += group * q.r;
    q.before += group * q.r;
    q.head += group * 2;
    q.sums += (int64_t)group * q.blocks * q.r;
    q.left += (int64_t)group * q.blocks;
    q.right += (int64_t)group * q.blocks * 2;
    return q;
}

/* The block's first row; that of the block behind the last is r. */
static __device__ __forceinline__ int64_t
slice_begin(const struct resident &q, int block)
{
    return q.begin + (q.r - q.begin) * block / q.blocks;
}

/* The place of the block's first column that is not before `column`. */
static __device__ __forceinline__ int
own_place(const struct resident &q, int64_t column)
{
    return column <= q.first ? 0 : ((int)column - q.first + q.blocks - 1) / q.blocks;
}

/* The column at a place. */
static __device__ __forceinline__ int
own_column(const struct resident &q, int place)
{
    return q.first + place * q.blocks;
}

/* The sum of part[block stride] over `active` blocks from block `first` on, by a warp. */
static __device__ __forceinline__ real
sum_of_blocks(const real *part, int stride, int blocks, int first, int active)
{
    real x = 0;

    for (int k = (int)threadIdx.x % WARP; k < active; k += WARP) {
        x += part[(int64_t)((first + k) % blocks) * stride];
    }
    return warp_sum(x);
}

/* The phase of the rows: column i as it is now. */
static __device__ void
make_column(const struct resident &q, const struct resident_shared &s, int block, int64_t i)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x;
    const int64_t high = slice_begin(q, block + 1);
    const int64_t first = slice_begin(q, block) > i ? slice_begin(q, block) : i;
    const int64_t rows = high - first;
    const int lines = (int)(rows < threads ? (rows > 0 ? rows : 1) : threads);
    const int shares = threads / lines, share = t / lines;
    const int active = (int)(q.c - i < q.blocks ? q.c - i : (int64_t)q.blocks);
    struct reflector h = {0, 0, 0};
    real y = 0, along = 0, squares = 0;

    if (i > q.begin) {
        if (t < 2 * WARP) {
            const real sum =
                sum_of_blocks(q.right + t / WARP, 2, q.blocks, (int)(i % q.blocks), active);

            if (t % WARP == 0) {
                s.both[t / WARP] = sum;
            }
        }
        __syncthreads();
        y = q.head[1];
        h = reflector_of(q.head[0], s.both[0]);
        along = (s.both[1] - h.beta * y) * h.inverse; /* y^T u */
        for (int m = own_place(q, i) + t; own_column(q, m) < q.c; m += threads) {
            const int64_t l = own_column(q, m);

            s.u[m] = l == i ? REAL(1) : s.row[m] * h.inverse;
            if (l > i) {
                q.w[l * q.r + i - 1] = s.u[m];
            }
        }
        if (block == 0 && t == 0) {
            q.e[i - 1] = h.beta;
            q.tau_p[i - 1] = h.tau;
        }
    }
    for (int64_t at = first; at < high; at += lines) {
        const int64_t row = at + t % lines;
        real sum = 0;

        for (int k = share; i > q.begin && share < shares && row < high && k < active;
             k += shares) {
            sum += q.sums[(i + k) % q.blocks * q.r + row];
        }
        s.scratch[t] = sum;
        __syncthreads();
        if (t < lines && row < high) {
            real a;

            if (i > q.begin) {
                const real before = q.before[row], v = q.w[(i - 1) * q.r + row];

                sum = 0;
                for (int k = 0; k < shares; k++) {
                    sum += s.scratch[k * lines + t];
                }
                sum = h.tau * r_fma(-v, along, (sum - h.beta * before) * h.inverse);
                q.x[row] = sum;
                a = r_fma(-v, y, before) - sum;
            } else {
                a = q.w[i * q.r + row];
            }
            q.column[row] = a;
            squares = row > i ? r_fma(a, a, squares) : squares;
        }
        __syncthreads();
    }
    squares = warp_sum(squares);
    if (t % WARP == 0) {
        s.scratch[t / WARP] = squares;
    }
    __syncthreads();
    if (t == 0) {
        squares = 0;
        for (int k = 0; k < threads / WARP; k++) {
            squares += s.scratch[k];
        }
        q.left[block] = squares;
    }
}

/* y and r of the column at a place, by a warp, and before that what the last step changes in it. */
static __device__ void
visit_column(const struct resident &q, const struct resident_shared &s, int64_t i, int m,
             struct reflector h)
{
    const int lane = (int)threadIdx.x % WARP, turn = (int)(i & 1);
    const int64_t rows = q.r - q.begin;
    const int l = own_column(q, m);
    const real *v = s.v[turn], *old = s.v[1 - turn];
    real *const a = s.stage + m * rows;
    real sum = 0, first = 0;

    for (int64_t k = i - q.begin + lane; k < rows; k += WARP) {
        real x = a[k];

        if (i > q.begin) {
            x = r_fma(-s.x[k], s.u[m], r_fma(-old[k], s.y[m], x));
            a[k] = x;
        }
        sum = r_fma(x, v[k], sum);
        first = k == i - q.begin ? x : first;
        if (l == i + 1) {
            q.before[q.begin + k] = x;
        }
    }
    sum = h.tau * warp_sum(sum);
    first = __shfl_sync(0xffffffffu, first, 0) - sum;
    if (lane == 0) {
        s.y[m] = sum;
        s.row[m] = first;
        if (l == i + 1) {
            q.head[0] = first;
            q.head[1] = sum;
        }
    }
}

/* The phase of the columns. */
static __device__ void
visit_columns(const struct resident &q, const struct resident_shared &s, int block, int64_t i)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x, turn = (int)(i & 1);
    const int place = own_place(q, i + 1);
    const int64_t rows = q.r - q.begin, begin = slice_begin(q, block),
                  end = slice_begin(q, block + 1);
    struct reflector h;
    int places = place;

    if (t < WARP) {
        const real squares = sum_of_blocks(q.left, 1, q.blocks, 0, q.blocks);

        if (t == 0) {
            s.both[0] = squares;
        }
    }
    __syncthreads();
    h = reflector_of(q.column[i], s.both[0]);
    for (int64_t k = i - q.begin + t; k < rows; k += threads) {
        const int64_t row = q.begin + k;
        const real v = row == i ? REAL(1) : q.column[row] * h.inverse;

        s.v[turn][k] = v;
        s.x[k] = i > q.begin ? q.x[row] : REAL(0);
        if (row > i && row >= begin && row < end) {
            q.w[i * q.r + row] = v;
        }
    }
    if (block == 0 && t == 0) {
        q.d[i] = h.beta;
        q.tau_q[i] = h.tau;
        if (i + 1 == q.c) {
            q.e[i] = q.tau_p[i] = 0;
        }
    }
    __syncthreads();
    while (own_column(q, places) < q.c) {
        if ((places - place) % (threads / WARP) == t / WARP) {
            visit_column(q, s, i, places, h);
        }
        places++;
    }
    __syncthreads();
    if (places == place) {
        return;
    }
    for (int64_t k = i + 1 - q.begin + t; k < rows; k += threads) {
        real sum = 0;

        for (int m = place; m < places; m++) {
            sum = r_fma(s.stage[m * rows + k], s.row[m], sum);
        }
        q.sums[(int64_t)block * q.r + q.begin + k] = sum;
    }
    if (t < 2 * WARP) {
        real sum = 0;

        for (int m = place + t % WARP; m < places; m += WARP) {
            const real other = t < WARP ? s.row[m] : s.y[m];

            if (t >= WARP || own_column(q, m) > i + 1) {
                sum = r_fma(other, s.row[m], sum);
            }
        }
        sum = warp_sum(sum);
        if (t % WARP == 0) {
            q.right[block * 2 + t / WARP] = sum;
        }
    }
}

static __global__ void
__launch_bounds__(DENSE_THREADS) resident_kernel(const struct resident all)
{
    extern __shared__ unsigned char shared[];
    const int64_t rows = all.r - all.begin;
    const struct resident_shared s = share((char *)shared, rows, all.columns);
    const int index = (int)blockIdx.x / all.blocks, block = (int)blockIdx.x % all.blocks;
    struct block_group group = {all.blocks, block, all.arrived + index, 0};

    for (int64_t number = index; number < all.count; number += all.groups) {
        const struct resident q = part_of(all, number, index, block);

        for (int m = 0; own_column(q, m) < q.c; m++) {
            const real *from = q.w + own_column(q, m) * q.r + q.begin;

            for (int64_t k = threadIdx.x; k < rows; k += blockDim.x) {
                copy_start(s.stage + m * rows + k, from + k);
            }
        }
        copies_commit();
        copies_wait(0); /* a barrier comes before the columns are read */
        for (int64_t i = q.begin; i < q.c; i++) {
            make_column(q, s, block, i);
            group_barrier(&group);
            visit_columns(q, s, block, i);
            group_barrier(&group);
        }
    }
}

/* ---- the launch ---- */

/* How many blocks a matrix takes, and how many matrices are under way at once.  False: it does not
   fit. */
static bool
share_blocks(const struct cuda_call *call, struct resident *q)
{
    const int64_t rows = q->r - q->begin, columns = q->c - q->begin;
    const int64_t room = call->shared_most / (int64_t)sizeof(real);
    const int64_t most = (room - (int64_t)shared_numbers(rows, 0)) / (rows + 3);
    const int64_t least = most > 0 ? blocks_for(columns, most) : INT32_MAX;
    const int64_t each = call->multiprocessors / q->count; /* if all are under way at once */
    int64_t blocks = blocks_for(columns, DENSE_RESIDENT_COLUMNS);

    if (least > call->multiprocessors) {
        return false;
    }
    blocks = blocks < each ? blocks : each;
    blocks = blocks > least ? blocks : least;
    q->blocks = (int)blocks;
    q->groups = (int)(call->multiprocessors / blocks);
    q->groups = q->count < q->groups ? (int)q->count : q->groups;
    q->columns = (int)blocks_for(columns, blocks);
    return true;
}

static size_t
lay_out(const struct cuda_call *call, struct resident *q, char *base)
{
    /* no more groups of blocks, and no more blocks, than there are multiprocessors */
    const int64_t most = call->multiprocessors, groups = q->count < most ? q->count : most;
    size_t at = 0;

    q->column = cut<real>(base, &at, groups * q->r);
    q->x = cut<real>(base, &at, groups * q->r);
    q->before = cut<real>(base, &at, groups * q->r);
    q->head = cut<real>(base, &at, groups * 2);
    q->sums = cut<real>(base, &at, most * q->r);
    q->left = cut<real>(base, &at, most);
    q->right = cut<real>(base, &at, most * 2);
    q->arrived = cut<unsigned>(base, &at, groups);
    return at;
}

uint64_t
tsvdi_cuda_dense_resident_bytes(const struct cuda_call *call, int64_t r, int64_t count)
{
    struct resident q = {};

    q.r = r;
    q.count = count;
    return lay_out(call, &q, NULL);
}

bool
tsvdi_cuda_dense_resident_fits(const struct cuda_call *call, const struct dense_reduction *to,
                               int64_t begin)
{
    struct resident q = {};

    q.r = to->r;
    q.c = to->c;
    q.count = to->count;
    q.begin = begin;
    return share_blocks(call, &q);
}

tsvd_status
tsvdi_cuda_dense_resident(struct cuda_call *call, const struct dense_reduction *to, int64_t begin,
                          char *d_work)
{
    struct resident q = {};
    void *args[] = {&q};
    size_t bytes;
    tsvd_status ret = TSVD_OK;

    q.r = to->r;
    q.c = to->c;
    q.count = to->count;
    q.begin = begin;
    q.w = to->w;
    q.tau_q = to->tau_q;
    q.tau_p = to->tau_p;
    q.d = to->d;
    q.e = to->e;
    (void)share_blocks(call, &q);
    (void)lay_out(call, &q, d_work);
    bytes = shared_numbers(q.r - begin, q.columns) * sizeof(real);
    CUDA_TRY(call,
             cudaMemsetAsync(q.arrived, 0, (size_t)q.groups * sizeof(*q.arrived), call->stream));
    CUDA_TRY(call,
             cudaFuncSetAttribute(resident_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  call->shared_most));
    CUDA_TRY(call,
             cudaLaunchCooperativeKernel(resident_kernel, dim3((unsigned)(q.groups * q.blocks)),
                                         dim3(DENSE_THREADS), args, bytes, call->stream));
out:
    return ret;
}
