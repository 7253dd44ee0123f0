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

/* Sweeps for each value before a matrix counts as one that does not converge; two are usual. */
enum { SWEEPS_PER_VALUE = 30 };

/* The work of all threads. */
struct lanes_run {
    struct tsvd_context *ctx;
    struct small_job *job;
    int64_t lanes;        /* of the kernels */
    int64_t rows;         /* of W */
    int64_t left_columns; /* columns of its U */
    int workers;
    real *work; /* [workers][numbers], each on a cache line's boundary */
    int64_t numbers;
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
    struct {
        real **at;
        int64_t numbers;
    } const array[] = {
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

    *numbers = 0;
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) {
        *array[i].at = work == NULL ? NULL : work + *numbers;
        *numbers += array[i].numbers * lanes;
    }
    return q;
}

static struct bytes
bytes(const struct dense_problem *p)
{
    const int threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    int64_t numbers;
    struct bytes bytes = {0, 0};

    (void)arrays_of(p, NULL, &numbers);
    bytes.host = bytes_of(workers_of(p, threads), bytes_of(numbers, sizeof(real)));
    return bytes;
}

/* ---- copies ---- */

/* Copies vector j of a side, of `count` entries, from a lane: entry i to `to[i step]`. */
static void
store_vector(const real *from, int64_t count, int64_t lanes, int conjugated, scalar *to,
             int64_t step)
{
    for (int64_t i = 0; i < count; i++) {
#if TSVD_COMPLEX
        *to = n_make(from[0], conjugated ? -from[lanes] : from[lanes]);
#else
        (void)conjugated;
        *to = *from;
#endif
        from += N_PARTS * lanes;
        to += step;
    }
}

/* Copies the vectors from a lane.  W = A has the rows of V^H and the columns of U in q->right and
   q->left; W = A^H those of V and U, which are exchanged and conjugated. */
static void
store_vectors(const struct dense_problem *p, const struct svd_lanes *q, int64_t lanes, int lane,
              scalar *U, scalar *Vh)
{
    const int64_t scalars = N_PARTS * lanes, left = q->rows * scalars, right = q->columns * scalars;
    const int wide = is_wide(p);
    const int64_t long_vectors = p->full ? q->rows : p->k;
    scalar *const tall = wide ? Vh : U, *const square = wide ? U : Vh;
    /* steps of the array of q->left: from vector to vector, and from entry to entry */
    const int64_t tall_next = wide ? q->rows : 1, tall_step = wide ? 1 : long_vectors;
    const int64_t square_next = wide ? 1 : q->columns, square_step = wide ? p->k : 1;

    for (int64_t j = 0; j < long_vectors; j++) {
        const int64_t from = j < p->k ? (int64_t)q->order[(p->first + j) * lanes + lane] : j;

        store_vector(q->left + from * left + lane, q->rows, lanes, wide, tall + j * tall_next,
                     tall_step);
        if (j < p->k) {
            store_vector(q->right + from * right + lane, q->columns, lanes, wide,
                         square + j * square_next, square_step);
        }
    }
}

static void
store_lane(const struct lanes_run *run, const struct svd_lanes *q, int lane, int64_t i)
{
    const struct dense_problem *p = run->job->problem;
    const int64_t lanes = run->lanes, columns = p->full ? p->a.rows : p->k;
    const int64_t rows = p->full ? p->a.columns : p->k;
    scalar *const U = (scalar *)p->U + (p->vectors ? i * p->a.rows * columns : 0);
    scalar *const Vh = (scalar *)p->Vh + (p->vectors ? i * rows * p->a.columns : 0);
    real *const S = (real *)p->S + i * p->k;

    if (q->kind[lane] == NONFINITE) {
        tsvdi_host_fill_nan(p->k, S);
        if (p->vectors) {
            tsvdi_host_fill_nan(N_PARTS * p->a.rows * columns, (real *)U);
            tsvdi_host_fill_nan(N_PARTS * rows * p->a.columns, (real *)Vh);
        }
        return;
    }
    for (int64_t j = 0; j < p->k; j++) {
        S[j] = q->values[(p->first + j) * lanes + lane];
    }
    r_scale(S, p->k, -q->exponent[lane], S);
    if (p->vectors) {
        store_vectors(p, q, lanes, lane, U, Vh);
    }
}

/* ---- the work ---- */

/* The matrix with the least index of those that something happened to; threads may call this at
   once. */
static void
note(int64_t *first, int64_t i)
{
    int64_t before = __atomic_load_n(first, __ATOMIC_RELAXED);

    while (i < before &&
           !__atomic_compare_exchange_n(first, &before, i, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static tsvd_status
solve_group(void *arg, int worker, int64_t group)
{
    const struct lanes_run *run = arg;
    struct small_job *job = run->job;
    const struct dense_problem *p = job->problem;
    const int64_t lanes = run->lanes, begin = group * lanes, matrices = p->a.batch.matrices;
    const int count = (int)(matrices - begin < lanes ? matrices - begin : lanes);
    int64_t numbers, sweeps = 0;
    const struct svd_lanes q = arrays_of(p, run->work + worker * run->numbers, &numbers);
    const struct lanes_source source = {&p->a, begin, count, is_wide(p), is_wide(p)};
    tsvd_status ret = TSVD_OK;

    if (worker == 0) {
        TSVD_TRY(tsvdi_check(run->ctx, (double)begin / (double)matrices));
    }
    lanes_load(source, lanes, q.rows, q.columns, q.w);
    tsvdi_kernels()->svd_lanes(&q);
    for (int lane = 0; lane < count; lane++) {
        if (q.kind[lane] == NONFINITE) {
            note(&job->nonfinite, begin + lane);
        }
        if (q.unfinished[lane]) {
            note(&job->unfinished, begin + lane);
        }
        store_lane(run, &q, lane, begin + lane);
        sweeps += q.sweeps[lane];
    }
    (void)__atomic_fetch_add(&job->sweeps, sweeps, __ATOMIC_RELAXED);
out:
    return ret;
}

static tsvd_status
solve(struct tsvd_context *ctx, struct small_job *job)
{
    const struct dense_problem *p = job->problem;
    struct lanes_run run = {
        .ctx = ctx,
        .job = job,
        .lanes = tsvdi_kernels()->lanes,
        .workers = workers_of(p, ctx->threads),
    };
    tsvd_status ret = TSVD_OK;

    (void)arrays_of(p, NULL, &run.numbers);
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(run.workers, bytes_of(run.numbers, sizeof(real))),
                         (void **)&run.work));
    job->nonfinite = job->unfinished = p->a.batch.matrices;
    TSVD_TRY(tsvdi_host_for_each(run.workers, (p->a.batch.matrices + run.lanes - 1) / run.lanes,
                                 solve_group, &run));
out:
    tsvdi_free(ctx, run.work);
    return ret;
}

const struct small_ops tsvdi_cpu_dense_lanes = {
    .serves = serves,
    .bytes = bytes,
    .solve = solve,
};
