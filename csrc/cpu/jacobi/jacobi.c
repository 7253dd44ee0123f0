/*
 * One-sided Jacobi on the CPU: memory and results.
 */
#include <string.h>

#include "cpu/jacobi/jacobi_run.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"

enum { CACHE_LINE = 64 };

/* The work of all threads. */
struct cpu_jacobi {
    struct dense_run dense;
    struct jacobi_job *jacobi;
    struct jacobi_matrix *matrix; /* [dense.workers] */
    int prepared;                 /* 1: the matrix of the job is loaded */
};

static int64_t
chunk_most(const struct dense_problem *p)
{
    return longer_of(&p->a) * p->n <= CPU_SHARED_ENTRIES ? CPU_JACOBI_CHUNK : 1;
}

static int64_t
start_order(const struct dense_problem *p)
{
    return p->a.rows == p->a.columns && p->n >= CPU_JACOBI_START_ORDER ? p->n : 0;
}

/* ---- begin and end ---- */

/* Rounds bytes up to whole cache lines. */
static uint64_t
lined(uint64_t bytes)
{
    return bytes > BYTES_TOO_MANY - CACHE_LINE ? BYTES_TOO_MANY
                                               : (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Whether there is an array for J, which may be wanted for the start alone. */
static int
has_v(const struct dense_problem *p)
{
    return p->vectors || start_order(p) > 0;
}

/* Bytes of the numbers of a matrix's work: W, X, J, the arrays from tau to spare, and the workspace
   of products with reflectors. */
static uint64_t
number_bytes(const struct dense_problem *p)
{
    const int64_t rows = longer_of(&p->a), n = p->n;
    const int64_t workspace = tsvdi_cpu_dense_multiply_workspace(rows, 0);
    uint64_t bytes = bytes_of(rows, bytes_of(n, sizeof(scalar)));

    bytes = bytes_add(bytes, bytes_of(has_v(p) ? 2 * n : n, bytes_of(n, sizeof(scalar))));
    bytes = bytes_add(bytes, bytes_of(2 * n + rows + workspace, sizeof(scalar)));
    bytes = bytes_add(bytes, bytes_of(2 * n, sizeof(real)));
    return lined(bytes);
}

/* All bytes of a worker. */
static uint64_t
worker_bytes(const struct dense_problem *p)
{
    const int64_t rows = longer_of(&p->a);
    uint64_t bytes = bytes_of(2 * p->n + 2 * rows, sizeof(int64_t));

    bytes = bytes_add(bytes, bytes_of(rows, sizeof(struct jacobi_key)));
    bytes = lined(bytes_add(bytes, bytes_of(p->n, sizeof(struct jacobi_swept))));
    return bytes_add(bytes, number_bytes(p));
}

static struct bytes
jacobi_bytes(const struct dense_problem *p, int64_t count)
{
    const int workers = tsvdi_cpu_dense_workers(
        &p->a, count, tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX));
    struct bytes bytes = {sizeof(struct cpu_jacobi), 0};

    bytes.host = bytes_add(bytes.host, bytes_of(workers, sizeof(struct jacobi_matrix)));
    bytes.host = bytes_add(bytes.host, bytes_of(workers, worker_bytes(p)));
    return bytes;
}

/* Cuts the memory of a worker. */
static void
set_matrix(struct cpu_jacobi *run, int worker, char *memory)
{
    const struct dense_problem *p = run->jacobi->problem;
    const int64_t rows = run->dense.rows, n = run->dense.columns;
    struct jacobi_matrix *m = &run->matrix[worker];

    memset(m, 0, sizeof *m);
    m->run = &run->dense;
    m->worker = worker;
    m->threads = run->dense.threads;
    m->rows = rows;
    m->columns = n;
    m->w = (scalar *)memory;
    m->x = m->w + rows * n;
    m->v = has_v(p) ? m->x + n * n : NULL;
    m->tau = m->x + (has_v(p) ? 2 : 1) * n * n;
    m->tau_right = m->tau + n;
    m->norm = (real *)(m->tau_right + n);
    m->most_norm = m->norm + n;
    m->spare = (scalar *)(m->most_norm + n);
    m->workspace = m->spare + rows;
    m->exponent = (int64_t *)(memory + number_bytes(p));
    m->column = m->exponent + n;
    m->own = m->column + rows;
    m->row = m->own + n;
    m->key = (struct jacobi_key *)(m->row + rows);
    m->swept = (struct jacobi_swept *)(m->key + rows);
}

static tsvd_status
begin(struct tsvd_context *ctx, struct jacobi_job *jacobi)
{
    const struct dense_problem *p = jacobi->problem;
    struct cpu_jacobi *run = NULL;
    char *memory = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    jacobi->state = run;
    run->jacobi = jacobi;
    run->dense.ctx = ctx;
    run->dense.a = &p->a;
    run->dense.rows = longer_of(&p->a);
    run->dense.columns = p->n;
    run->dense.transposed = p->a.rows < p->a.columns;
    run->dense.conjugate = 1;
    run->dense.workers = tsvdi_cpu_dense_workers(&p->a, jacobi->count, ctx->threads);
    run->dense.threads = run->dense.workers > 1 ? 1 : ctx->threads;
    TSVD_TRY(
        tsvdi_alloc(ctx, bytes_of(run->dense.workers, sizeof *run->matrix), (void **)&run->matrix));
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(run->dense.workers, worker_bytes(p)), (void **)&memory));
    for (int i = 0; i < run->dense.workers; i++) {
        set_matrix(run, i, memory + (uint64_t)i * worker_bytes(p));
    }
    run->dense.work = run->matrix[0].workspace;
    run->dense.workspace = (int64_t)(worker_bytes(p) / sizeof(scalar));
out:
    return ret;
}

static void
end(struct tsvd_context *ctx, struct jacobi_job *jacobi)
{
    struct cpu_jacobi *run = jacobi->state;

    if (run != NULL && run->matrix != NULL) {
        tsvdi_free(ctx, run->dense.work != NULL ? run->matrix[0].w : NULL);
        tsvdi_free(ctx, run->matrix);
    }
    tsvdi_free(ctx, run);
    jacobi->state = NULL;
}

/* ---- results ---- */

/* U and Vh of matrix i of the job. */
static struct dense_array
left_of(const struct jacobi_job *job, int64_t i)
{
    const struct dense_problem *p = job->problem;
    const int64_t columns = p->full ? p->a.rows : p->k;
    const struct dense_array left = {(scalar *)p->U + (job->begin + i) * p->a.rows * columns,
                                     p->a.rows, columns};

    return left;
}

static struct dense_array
right_of(const struct jacobi_job *job, int64_t i)
{
    const struct dense_problem *p = job->problem;
    const int64_t rows = p->full ? p->a.columns : p->k;
    const struct dense_array right = {(scalar *)p->Vh + (job->begin + i) * rows * p->a.columns,
                                      rows, p->a.columns};

    return right;
}

/* The vectors of a piece, which are columns of its array, or whose conjugates are rows of it: entry
   i of vector j is at x[i * down + j * across]. */
struct vectors_at {
    scalar *x;
    int64_t down, across, count;
    int rows; /* 1: their conjugates are rows */
};

/* norm 2^exponent, rounded once; infinity if it is too large. */
static real
value_of(real norm, int64_t exponent)
{
    real_int power;
    const real mantissa = r_split(norm, &power);
    const int64_t whole = exponent + power;

    if (mantissa == 0 || whole < -R_BIAS - R_DIGITS - 2) {
        return 0;
    }
    if (whole > R_BIAS) {
        return r_from_bits(R_INFINITY_BITS);
    }
    return jacobi_shifted(jacobi_shifted(mantissa, whole / 2), whole - whole / 2);
}

/* Where the vectors of a side come from.  The first `count` are the columns of `own`, the next ones
   up to m->columns are those of m->v, and unit vectors come last.  All are multiplied by Q, and
   entry i becomes entry place[i]. */
struct jacobi_side {
    const scalar *own;
    int64_t count;
    struct dense_reflectors q;
    const int64_t *place;
    int64_t length;
};

static tsvd_status
make_side(struct jacobi_matrix *m, const struct jacobi_side *side, struct vectors_at at,
          int64_t first, double done)
{
    const int64_t n = m->columns;
    const struct dense_block block = {
        at.x, side->length, at.count, at.rows ? at.across : at.down, at.rows, at.rows};
    tsvd_status ret = TSVD_OK;

    for (int64_t j = 0; j < at.count; j++) {
        const int64_t index = first + j;
        const scalar *from = index >= n            ? NULL
                             : index < side->count ? side->own + index * n
                                                   : m->v + index * n;

        for (int64_t i = 0; i < side->length; i++) {
            at.x[i * at.down + j * at.across] = from == NULL ? (i == index ? 1 : 0)
                                                : i >= n     ? 0
                                                : at.rows    ? n_conj(from[i])
                                                             : from[i];
        }
    }
    TSVD_TRY(tsvdi_cpu_dense_multiply(m->run, m->worker, &side->q, 0, block, done, 0.05));
    for (int64_t j = 0; j < at.count; j++) {
        scalar *x = at.x + j * at.across;

        for (int64_t i = 0; i < side->length; i++) {
            m->spare[side->place[i]] = x[i * at.down];
        }
        for (int64_t i = 0; i < side->length; i++) {
            x[i * at.down] = m->spare[i];
        }
    }
out:
    return ret;
}

/* Brings the first `count` columns of X, those that are not zero, to norm 1.  Completes them to a
   basis in the columns of m->v from `count` on; J, which was there, is overwritten. */
static tsvd_status
complete(struct jacobi_matrix *m, int64_t count)
{
    const int64_t n = m->columns;
    const struct dense_matrix known = {m->v, n, count, n};
    const struct dense_reflectors q = {
        .a = m->v, .tau = m->tau_right, .stride = n, .count = count, .length = n};
    const struct dense_block block = {m->v + count * n, n, n - count, n, 1, 0};
    tsvd_status ret = TSVD_OK;

    for (int64_t j = 0; j < count; j++) {
        scalar *x = m->x + j * n;

        for (int64_t i = 0; i < n; i++) {
            x[i] /= m->norm[j];
        }
        memcpy(m->v + j * n, x, (size_t)n * sizeof *x);
    }
    if (count == n) {
        goto out;
    }
    TSVD_TRY(tsvdi_cpu_dense_qr(m->run, m->worker, known, m->tau_right, 0, DENSE_REDUCED / 2));
    memset(m->v + count * n, 0, (size_t)((n - count) * n) * sizeof *m->v);
    for (int64_t j = count; j < n; j++) {
        m->v[j * n + j] = 1;
    }
    TSVD_TRY(tsvdi_cpu_dense_multiply(m->run, m->worker, &q, 0, block, 0.9, 0.05));
out:
    return ret;
}

/* The vectors of matrix i, of which `count` values are not zero. */
static tsvd_status
make_vectors(struct cpu_jacobi *run, struct jacobi_matrix *m, int64_t i, int64_t count)
{
    const struct dense_problem *p = run->jacobi->problem;
    const struct dense_array left = left_of(run->jacobi, i), right = right_of(run->jacobi, i);
    const struct vectors_at u = {left.x, left.columns, 1, left.columns, 0};
    const struct vectors_at v = {right.x, 1, right.columns, right.rows, 1};
    const struct dense_reflectors reflectors = {
        .a = m->w, .tau = m->tau, .stride = m->rows, .count = m->rank, .length = m->rows};
    const struct jacobi_side of_rows = {m->x, count, reflectors, m->row, m->rows};
    struct jacobi_side of_columns = {m->v, m->columns, reflectors, m->column, m->lines};
    tsvd_status ret = TSVD_OK;

    of_columns.q.tau = m->tau_right;
    of_columns.q.length = m->columns;
    of_columns.q.in_rows = 1;
    TSVD_TRY(make_side(m, &of_columns, m->transposed ? u : v, p->first, 0.85));
    TSVD_TRY(complete(m, count));
    TSVD_TRY(make_side(m, &of_rows, m->transposed ? v : u, p->first, 0.95));
    tsvdi_cpu_dense_fix_signs(p->k, left, right);
out:
    return ret;
}

/* ---- a matrix ---- */

static void
fill_nan(const struct jacobi_job *job, int64_t i)
{
    const struct dense_problem *p = job->problem;

    tsvdi_host_fill_nan(p->k, (real *)p->S + (job->begin + i) * p->k);
    if (p->vectors) {
        const struct dense_array left = left_of(job, i), right = right_of(job, i);

        tsvdi_host_fill_nan(N_PARTS * left.rows * left.columns, (real *)left.x);
        tsvdi_host_fill_nan(N_PARTS * right.rows * right.columns, (real *)right.x);
    }
}

/* Adds the lines of these sizes that are not zero to `more`.  sign: 1 for rows, -1 for columns. */
static void
add_lines(int64_t count, const int64_t *size, int sign, struct jacobi_lines *more)
{
    for (int64_t i = 0; i < count; i++) {
        more->count += size[i] > INT64_MIN ? sign : 0;
        more->sum += size[i] > INT64_MIN ? sign * size[i] : 0;
    }
}

/* Makes the lines of these sizes the columns of W.  Lines of zeros come last in m->column, and are
   not among the columns. */
static void
set_lines(struct jacobi_matrix *m, int64_t count, const int64_t *size)
{
    int64_t zeros = count;

    m->lines = count;
    m->columns = 0;
    for (int64_t j = 0; j < count; j++) {
        if (size[j] > INT64_MIN) {
            m->exponent[m->columns] = size[j];
            m->column[m->columns++] = j;
        } else {
            m->column[--zeros] = j;
        }
    }
}

/* Reads matrix i, or its conjugate transpose where jacobi_by_rows() says so; returns its kind. */
static int
load(struct cpu_jacobi *run, struct jacobi_matrix *m, int64_t i)
{
    const int64_t rows = run->dense.rows, columns = run->dense.columns;
    const int kind = tsvdi_cpu_dense_sizes(&run->dense, i, m->row, m->own);
    struct jacobi_lines more = {0, 0};
    int by_rows;

    add_lines(rows, m->row, 1, &more);
    add_lines(columns, m->own, -1, &more);
    by_rows = jacobi_by_rows(more);
    m->transposed = run->dense.transposed ^ by_rows;
    m->started = 0;
    m->rows = by_rows ? columns : rows;
    set_lines(m, by_rows ? rows : columns, by_rows ? m->row : m->own);
    if (kind == ORDINARY) {
        tsvdi_cpu_dense_load_columns(&run->dense, m->transposed, i, m->rows, m->columns, m->column,
                                     m->exponent, m->w);
    }
    return kind;
}

/* Makes X of a matrix that is loaded.  J begins as I, or as the right vectors of the fast method if
   they are of use. */
static tsvd_status
make_x(struct cpu_jacobi *run, struct jacobi_matrix *m)
{
    const int64_t n = m->columns;
    const struct blas_product product = {.m = n,
                                         .n = n,
                                         .k = n,
                                         .overwrite = 1,
                                         .factor = 1,
                                         .a = m->w,
                                         .b = m->v,
                                         .c = m->x,
                                         .lda = n,
                                         .ldb = n,
                                         .ldc = n};
    tsvd_status ret = TSVD_OK;

    if (!m->started || m->norm[n - 1] < JACOBI_USELESS * m->norm[0]) {
        TSVD_TRY(tsvdi_cpu_jacobi_pivot(m));
        for (int64_t j = 0; m->v != NULL && j < n; j++) {
            memset(m->v + j * n, 0, (size_t)n * sizeof *m->v);
            m->v[j * n + j] = 1;
        }
        goto out;
    }
    for (int64_t i = 0; TSVD_COMPLEX && i < n * n; i++) {
        m->v[i] = n_conj(m->v[i]); /* they came as Vh */
    }
    tsvdi_cpu_dense_product(&run->dense, &product);
    m->rank = 0;
    for (int64_t j = 0; j < n; j++) {
        m->row[j] = m->column[j] = j;
    }
out:
    return ret;
}

static tsvd_status
solve_one(void *arg, int worker, int64_t i)
{
    struct cpu_jacobi *run = arg;
    const struct dense_problem *p = run->jacobi->problem;
    struct jacobi_matrix *m = &run->matrix[worker];
    struct jacobi_outcome *made = &run->jacobi->made[i];
    scalar *const v = m->v;
    int64_t count = 0;
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && run->dense.workers > 1) {
        TSVD_TRY(tsvdi_check(run->dense.ctx, (double)i / (double)run->jacobi->count));
    }
    if (!run->prepared) {
        memset(made, 0, sizeof *made);
        made->kind = (int8_t)load(run, m, i);
    }
    if (made->kind == NONFINITE) {
        fill_nan(run->jacobi, i);
        goto out;
    }
    TSVD_TRY(make_x(run, m));
    m->v = p->vectors ? v : NULL;
    ret = tsvdi_cpu_jacobi_sweeps(m, run->jacobi->max_sweeps, made);
    m->v = v;
    TSVD_TRY(ret);
    for (int64_t j = 0; j < m->columns; j++) {
        count += m->norm[j] > 0;
    }
    for (int64_t j = 0; j < p->k; j++) {
        const int64_t index = p->first + j;

        ((real *)p->S)[(run->jacobi->begin + i) * p->k + j] =
            index < m->columns ? value_of(m->norm[index], m->exponent[index]) : 0;
    }
    if (p->vectors && !made->unfinished) {
        TSVD_TRY(make_vectors(run, m, i, count));
    }
out:
    return ret;
}

static void
set_job(struct tsvd_context *ctx, const struct jacobi_job *jacobi)
{
    struct cpu_jacobi *run = jacobi->state;

    run->dense.ctx = ctx;
    run->dense.begin = jacobi->begin;
    run->dense.count = jacobi->count;
}

/* Whether the columns of W have nearly the same size.  If so, it brings them to one scale. */
static int
is_even(struct jacobi_matrix *m)
{
    const int64_t n = m->columns;
    int64_t low = INT64_MAX, high = INT64_MIN;

    for (int64_t j = 0; j < n; j++) {
        low = m->exponent[j] < low ? m->exponent[j] : low;
        high = m->exponent[j] > high ? m->exponent[j] : high;
    }
    if (high - low > JACOBI_EVEN_BITS) {
        return 0;
    }
    for (int64_t j = 0; j < n; j++) {
        real *column = (real *)(m->w + j * n);

        r_scale(column, N_PARTS * n, (real_int)(high - m->exponent[j]), column);
        m->exponent[j] = high;
    }
    return 1;
}

/* Loads a large square matrix.  If it is even, asks for the right vectors of W to begin with. */
static tsvd_status
prepare(struct tsvd_context *ctx, struct jacobi_job *jacobi)
{
    struct cpu_jacobi *run = jacobi->state;
    struct jacobi_matrix *m = &run->matrix[0];
    int64_t n;

    set_job(ctx, jacobi);
    run->prepared = start_order(jacobi->problem) > 0;
    if (!run->prepared) {
        return TSVD_OK;
    }
    memset(jacobi->made, 0, sizeof *jacobi->made);
    jacobi->made->kind = (int8_t)load(run, m, 0);
    n = m->columns;
    if (jacobi->made->kind == ORDINARY && n == m->lines && is_even(m)) {
        m->started = 1;
        /* make_x() judges the vectors by the values */
        jacobi->start = (struct jacobi_start){n, m->w, m->norm, m->x, m->v};
    }
    return TSVD_OK;
}

static tsvd_status
run_job(struct tsvd_context *ctx, struct jacobi_job *jacobi)
{
    struct cpu_jacobi *run = jacobi->state;

    set_job(ctx, jacobi);
    return tsvdi_cpu_dense_for_each(&run->dense, solve_one, run);
}

const struct jacobi_ops tsvdi_cpu_jacobi = {
    .space = TSVD_HOST,
    .pays = NULL,
    .chunk_most = chunk_most,
    .start_order = start_order,
    .begin = begin,
    .end = end,
    .prepare = prepare,
    .run = run_job,
    .bytes = jacobi_bytes,
};
