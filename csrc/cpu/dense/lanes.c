/*
 * Small dense matrices on the CPU: as many at once as the vector kernels have lanes
 * (cpu/kernels/svd_lanes.h).  Here are the copies between them and the lanes, and the threads.
 *
 * A matrix by itself takes a lane too, and the others hold zeros.  So it has the same bits alone
 * and at any place of a batch.
 */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/matrix/lanes.h"
#include "cpu/tuning.h"

/* Sweeps for each value before a matrix counts as one that does not converge.  Two are usual; a
   block may change its direction once or twice before that (QR_PATIENCE). */
enum { SWEEPS_PER_VALUE = 60 };

enum { SWEEPS_APART = 64 / (int)sizeof(int64_t) };

/* Nanoseconds between two looks at what the caller wants. */
enum { CHECK_NS = 50000 };

/* The work of all threads. */
struct lanes_run {
    struct tsvd_context *ctx;
    struct small_dense_job *job;
    int64_t lanes; /* of the kernels */
    int workers;
    int64_t groups_per_check; /* groups of matrices between two calls of tsvdi_check() */
    real *work;               /* [workers][numbers], each on a cache line's boundary */
    int64_t numbers;
    int64_t *sweeps; /* [workers SWEEPS_APART] sweeps made, each on a cache line of its own */
};

static int
is_wide(const struct dense_problem *p)
{
    return p->a.rows < p->a.columns;
}

static int
serves(const struct dense_problem *p)
{
    const int64_t rows = longer_of(&p->a), left = p->vectors && p->full ? rows : p->n;

    return p->n > 0 && p->n <= CPU_LANES_ORDER && rows <= CPU_LANES_ENTRIES / left;
}

/* Nanoseconds that a matrix takes, about. */
static int64_t
cost_of(const struct dense_problem *p)
{
    return longer_of(&p->a) * p->n * (p->n + 8);
}

static int
workers_of(const struct dense_problem *p, int threads)
{
    const int64_t lanes = tsvdi_kernels()->lanes;
    const int64_t most = p->a.batch.matrices / (CPU_LANES_SERIAL / cost_of(p) + lanes) + 1;

    return most < threads ? (int)most : threads;
}

/* ---- a worker's arrays ---- */

static struct svd_lanes
arrays_of(const struct dense_problem *p, real *work, int64_t *numbers)
{
    const int64_t lanes = tsvdi_kernels()->lanes, rows = longer_of(&p->a), n = p->n;
    struct svd_lanes q = {
        .rows = rows,
        .columns = n,
        .left_columns = p->full ? rows : n,
        .vectors = p->vectors,
        .orient_right = is_wide(p),
        .max_sweeps = SWEEPS_PER_VALUE * n,
    };
    const struct lanes_array arrays[] = {
        {&q.w, N_PARTS * rows * n},
        {&q.d, n + 1},
        {&q.e, n + 1},
        {&q.b[0], p->vectors ? n : 0},
        {&q.b[1], p->vectors ? n : 0},
        {&q.x[0], p->vectors ? n * n : 0},
        {&q.x[1], p->vectors ? n * n : 0},
        {&q.qd, p->vectors ? 0 : 6 * n},
        {&q.values, n},
        {(real **)&q.order, n},
        {(real **)&q.exponent, 1},
        {(real **)&q.kind, 1},
        {(real **)&q.sweeps, 1},
        {(real **)&q.unfinished, 1},
        {&q.left, p->vectors ? N_PARTS * rows * q.left_columns : 0},
        {&q.right, p->vectors ? N_PARTS * n * n : 0},
    };

    *numbers = lanes_place(arrays, sizeof arrays / sizeof *arrays, lanes, work);
    return q;
}

static uint64_t
bytes_of_run(int workers, int64_t numbers)
{
    const uint64_t own = bytes_of(numbers, sizeof(real)) + SWEEPS_APART * sizeof(int64_t);

    return bytes_of(workers, own);
}

static struct bytes
bytes(const struct dense_problem *p)
{
    const int threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    int64_t numbers;
    struct bytes bytes = {0, 0};

    (void)arrays_of(p, NULL, &numbers);
    bytes.host = bytes_of_run(workers_of(p, threads), numbers);
    return bytes;
}

/* ---- copies ---- */

/* Where a side of the results goes: entry i of vector j of a matrix to to + j next + i step. */
struct side {
    const real *from; /* the vectors in lanes, each of `length` scalars */
    int64_t length;
    scalar *to;               /* of the first matrix of the group */
    int64_t size, next, step; /* scalars of a matrix, between vectors, and between entries */
    int conjugated;
};

/* Copies one vector of each matrix from the lanes.  index [count]: which one in `from`.  j: which
   one of the results. */
static void
store_vector(const struct side *side, const real_int *index, int64_t j, int count, int64_t lanes)
{
    const real *from[LANES_MAX];
    scalar *to[LANES_MAX];

    for (int lane = 0; lane < count; lane++) {
        from[lane] = side->from + index[lane] * side->length * N_PARTS * lanes + lane;
        to[lane] = side->to + lane * side->size + j * side->next;
    }
    for (int64_t i = 0; i < side->length; i++) {
        for (int lane = 0; lane < count; lane++) {
            const real *x = from[lane] + i * N_PARTS * lanes;

#if TSVD_COMPLEX
            to[lane][i * side->step] = n_make(x[0], side->conjugated ? -x[lanes] : x[lanes]);
#else
            to[lane][i * side->step] = *x;
#endif
        }
    }
}

/* Copies the vectors of `count` matrices from matrix `begin` on.  W = A has columns of U and the
   rows of V^H in q->left and q->right; W = A^H those of V and U^H, to be conjugated. */
static void
store_vectors(const struct dense_problem *p, const struct svd_lanes *q, int64_t begin, int count,
              int64_t lanes)
{
    const int wide = is_wide(p);
    const int64_t long_vectors = p->full ? q->rows : p->k;
    const int64_t left_size = q->rows * long_vectors, right_size = p->k * q->columns;
    const struct side left = {q->left,
                              q->rows,
                              (scalar *)(wide ? p->Vh : p->U) + begin * left_size,
                              left_size,
                              wide ? q->rows : 1,
                              wide ? 1 : long_vectors,
                              wide};
    const struct side right = {q->right,
                               q->columns,
                               (scalar *)(wide ? p->U : p->Vh) + begin * right_size,
                               right_size,
                               wide ? 1 : q->columns,
                               wide ? p->k : 1,
                               wide};

    for (int64_t j = 0; j < p->k; j++) {
        const real_int *index = q->order + (p->first + j) * lanes;

        store_vector(&left, index, j, count, lanes);
        store_vector(&right, index, j, count, lanes);
    }
    for (int64_t j = p->k; j < long_vectors; j++) {
        real_int index[LANES_MAX];

        for (int lane = 0; lane < count; lane++) {
            index[lane] = (real_int)j;
        }
        store_vector(&left, index, j, count, lanes);
    }
}

static void
store_values(const struct dense_problem *p, const struct svd_lanes *q, int64_t begin, int count,
             int64_t lanes)
{
    for (int lane = 0; lane < count; lane++) {
        real *const S = (real *)p->S + (begin + lane) * p->k;

        for (int64_t j = 0; j < p->k; j++) {
            S[j] = q->values[(p->first + j) * lanes + lane];
        }
        r_scale(S, p->k, -q->exponent[lane], S);
    }
}

static void
fill_nan(const struct dense_problem *p, int64_t i)
{
    const int64_t left = p->a.rows * (p->full ? p->a.rows : p->k);
    const int64_t right = p->a.columns * (p->full ? p->a.columns : p->k);

    tsvdi_host_fill_nan(p->k, (real *)p->S + i * p->k);
    if (p->vectors) {
        tsvdi_host_fill_nan(N_PARTS * left, (real *)((scalar *)p->U + i * left));
        tsvdi_host_fill_nan(N_PARTS * right, (real *)((scalar *)p->Vh + i * right));
    }
}

/* ---- the work ---- */

static tsvd_status
solve_group(void *arg, int worker, int64_t group)
{
    const struct lanes_run *run = arg;
    struct small_dense_job *job = run->job;
    const struct dense_problem *p = job->problem;
    const int64_t lanes = run->lanes, begin = group * lanes, matrices = p->a.batch.matrices;
    const int count = (int)(matrices - begin < lanes ? matrices - begin : lanes);
    int64_t numbers, *const sweeps = run->sweeps + worker * SWEEPS_APART;
    const struct svd_lanes q = arrays_of(p, run->work + worker * run->numbers, &numbers);
    const struct lanes_source source = {&p->a, begin, count, is_wide(p), is_wide(p)};
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && group % run->groups_per_check == 0) {
        TSVD_TRY(tsvdi_check(run->ctx, (double)begin / (double)matrices));
    }
    lanes_load(source, lanes, q.rows, q.columns, q.w);
    tsvdi_kernels()->svd_lanes(&q);
    store_values(p, &q, begin, count, lanes);
    if (p->vectors) {
        store_vectors(p, &q, begin, count, lanes);
    }
    for (int lane = 0; lane < count; lane++) {
        if (q.kind[lane] == NONFINITE) {
            tsvdi_host_note_least(&job->nonfinite, begin + lane);
            fill_nan(p, begin + lane);
        }
        if (q.unfinished[lane]) {
            tsvdi_host_note_least(&job->unfinished, begin + lane);
        }
        *sweeps += q.sweeps[lane];
    }
out:
    return ret;
}

static tsvd_status
solve(struct tsvd_context *ctx, struct small_dense_job *job)
{
    const struct dense_problem *p = job->problem;
    struct lanes_run run = {
        .ctx = ctx,
        .job = job,
        .lanes = tsvdi_kernels()->lanes,
        .workers = workers_of(p, ctx->threads),
        .groups_per_check = 1 + CHECK_NS / (tsvdi_kernels()->lanes * cost_of(p)),
    };
    tsvd_status ret = TSVD_OK;

    (void)arrays_of(p, NULL, &run.numbers);
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of_run(run.workers, run.numbers), (void **)&run.work));
    run.sweeps = (int64_t *)(void *)(run.work + run.workers * run.numbers);
    memset(run.sweeps, 0, (size_t)(run.workers * SWEEPS_APART) * sizeof *run.sweeps);
    job->nonfinite = job->unfinished = p->a.batch.matrices;
    TSVD_TRY(tsvdi_host_for_each(run.workers, (p->a.batch.matrices + run.lanes - 1) / run.lanes,
                                 solve_group, &run));
    for (int i = 0; i < run.workers; i++) {
        job->sweeps += run.sweeps[i * SWEEPS_APART];
    }
out:
    tsvdi_free(ctx, run.work);
    return ret;
}

const struct small_dense_ops tsvdi_cpu_dense_lanes = {
    .method = TSVD_METHOD_QR,
    .serves = serves,
    .bytes = bytes,
    .solve = solve,
};
