/*
 * Inverses on the CPU, by the handle's LAPACK.  Mirrors cuda/inverse/inverse.cu.
 */
#include <string.h>

#include "cpu/inverse/run.h"
#include "math/balance.h"

/* In place of a reciprocal condition. */
#define SINGULAR (-1.)

/* Matrices of a chunk have so many bytes, or there is one: tsvdi_check() is asked between two. */
#define CHUNK_BYTES ((int64_t)32 << 20)

/* Shares of a matrix's work that are done behind the LU decomposition, and behind the inverse. */
#define FACTORED 0.4
#define INVERTED 0.9

static int64_t
chunk_most(const struct dense_problem *p, int refine)
{
    const int64_t bytes = p->b.n * p->b.n * (int64_t)sizeof(real);

    (void)refine;
    return bytes < CHUNK_BYTES ? CHUNK_BYTES / bytes : 1;
}

/* ---- memory ---- */

/* What a worker's room holds. */
struct room {
    double *s;         /* [n][n] S, and what refine() takes behind it; nothing without it */
    double *sums;      /* [n] */
    int *row, *column; /* [n] exponents */
    void *lapack;      /* what LAPACK takes */
};

/* Where these lie, in bytes, and how many there are in all: BYTES_TOO_MANY at most. */
struct layout {
    uint64_t sums, row, lapack, all;
};

static struct layout
layout_of(int64_t n, int refine)
{
    const uint64_t lapack_bytes = ((uint64_t)tsvdi_lapack_room(n) + 63) / 64 * 64;
    struct layout at;

    at.sums = refine ? tsvdi_cpu_inverse_refine_room(n) : 0;
    at.row = bytes_add(at.sums, bytes_of(n, sizeof(double)));
    at.lapack = bytes_add(at.row, bytes_of(2 * n, sizeof(int)) + 63) / 64 * 64;
    at.all = at.sums == BYTES_TOO_MANY ? BYTES_TOO_MANY : bytes_add(at.lapack, lapack_bytes);
    return at;
}

static struct room
room_of(const struct inverse_run *run, int worker)
{
    const struct layout at = layout_of(run->dense.rows, run->job->refine);
    char *base = (char *)run->dense.work + worker * run->room;
    struct room room;

    room.s = (double *)(void *)base;
    room.sums = (double *)(void *)(base + at.sums);
    room.row = (int *)(void *)(base + at.row);
    room.column = room.row + run->dense.rows;
    room.lapack = base + at.lapack;
    return room;
}

static void
end(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct inverse_run *run = job->held;

    if (run != NULL) {
        tsvdi_free(ctx, run->dense.work);
        tsvdi_free(ctx, run->rcond);
    }
    tsvdi_free(ctx, run);
    job->held = NULL;
}

static uint64_t
held_bytes(int64_t count)
{
    return bytes_of(count, sizeof(double) + sizeof(real_int) + sizeof(char));
}

static tsvd_status
begin(struct tsvd_context *ctx, struct inverse_job *job)
{
    const struct dense_problem *p = job->load.problem;
    const int64_t n = p->b.n, count = job->load.count;
    struct inverse_run *run = NULL;
    struct dense_run *dense;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    job->held = run;
    run->job = job;
    run->room = (int64_t)layout_of(n, job->refine).all;
    dense = &run->dense;
    dense->ctx = ctx;
    dense->job = &job->load;
    dense->rows = dense->columns = n;
    dense->flipped = 1;
    dense->plain = 1;
    dense->workers = tsvdi_cpu_dense_workers(p, count, ctx->threads);
    dense->threads = dense->workers > 1 ? 1 : ctx->threads;
    TSVD_TRY(tsvdi_alloc(ctx, held_bytes(count), (void **)&run->rcond));
    job->load.exponent = (real_int *)(void *)(run->rcond + count);
    job->load.kind = (char *)(job->load.exponent + count);
    TSVD_TRY(
        tsvdi_alloc(ctx, bytes_of(dense->workers, (uint64_t)run->room), (void **)&dense->work));
out:
    return ret;
}

static struct bytes
inverse_bytes(const struct dense_problem *p, int64_t count, int refine)
{
    const int threads = tsvdi_host_threads_for(p->b.handle->threads, INT64_MAX);
    struct bytes bytes = {sizeof(struct inverse_run) + held_bytes(count), 0};

    bytes.host = bytes_add(bytes.host, bytes_of(tsvdi_cpu_dense_workers(p, count, threads),
                                                layout_of(p->b.n, refine).all));
    return bytes;
}

/* ---- one matrix ---- */

/* The largest sum; sums that are NaN are above all others. */
static double
largest_sum(int64_t n, const double *sums)
{
    double largest = 0;

    for (int64_t i = 0; i < n; i++) {
        largest = sums[i] <= largest || largest != largest ? largest : sums[i];
    }
    return largest;
}

/* The largest sum of magnitudes of a row of 2^-exponent M; sums [n] is for work. */
static double
row_norm(int64_t n, const real *m, int exponent, double *sums)
{
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            sums[i] += fabs((double)balance_scale(m[j * n + i], -exponent));
        }
    }
    return largest_sum(n, sums);
}

/* S from M, with the exponents of rows and columns. */
static void
balance(int64_t n, real *m, int *row, int *column)
{
    for (int64_t i = 0; i < n; i++) {
        row[i] = BALANCE_NOTHING;
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            const int exponent = balance_exponent(m[j * n + i]);

            row[i] = exponent > row[i] ? exponent : row[i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        row[i] = balance_power(row[i]);
    }
    for (int64_t j = 0; j < n; j++) {
        int largest = BALANCE_NOTHING;

        for (int64_t i = 0; i < n; i++) {
            const int exponent = balance_exponent(m[j * n + i]) - row[i];

            largest = exponent > largest ? exponent : largest;
        }
        column[j] = balance_power(largest);
        for (int64_t i = 0; i < n; i++) {
            m[j * n + i] = balance_scale(m[j * n + i], -row[i] - column[j]);
        }
    }
}

/* The inverse of M from that of S.  Returns the largest sum of magnitudes of a row of 2^exponent
   times it: infinity, or NaN, if that is too large. */
static double
undo_balance(int64_t n, const struct room *room, int exponent, real *y)
{
    memset(room->sums, 0, (size_t)n * sizeof *room->sums);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            const int power = -room->column[i] - room->row[j];
            const real x = y[j * n + i];

            room->sums[i] += fabs((double)balance_scale(x, power + exponent));
            y[j * n + i] = balance_scale(x, power);
        }
    }
    return largest_sum(n, room->sums);
}

static tsvd_status
invert_one(void *arg, int worker, int64_t i)
{
    struct inverse_run *run = arg;
    const struct dense_run *dense = &run->dense;
    const struct dense_job *load = &run->job->load;
    const tsvd_blas *blas = &load->problem->b.handle->blas;
    const int64_t n = dense->rows, count = n * n;
    const int alone = worker == 0 && dense->workers == 1;
    const double part = 1 / (double)load->count, done = (double)i * part;
    real *x = dense->w + i * count;
    const struct room room = room_of(run, worker);
    double norm;
    tsvd_status ret = TSVD_OK;

    if (worker == 0) {
        TSVD_TRY(tsvdi_check(dense->ctx, done));
    }
    tsvdi_cpu_dense_load(dense, i);
    if (load->kind[i] == NONFINITE) {
        tsvdi_host_fill_nan(count, x);
        goto out;
    }
    norm = row_norm(n, x, (int)load->exponent[i], room.sums);
    balance(n, x, room.row, room.column);
    for (int64_t k = 0; k < count && run->job->refine; k++) {
        room.s[k] = x[k];
    }
    run->rcond[i] = SINGULAR;
    if (!tsvdi_lapack_factor(blas, TSVD_SINGLE, n, x, room.lapack)) {
        goto out;
    }
    if (alone) {
        TSVD_TRY(tsvdi_check(dense->ctx, done + FACTORED * part));
    }
    if (!tsvdi_lapack_invert(blas, TSVD_SINGLE, n, x, room.lapack)) {
        goto out;
    }
    if (run->job->refine) {
        if (alone) {
            TSVD_TRY(tsvdi_check(dense->ctx, done + INVERTED * part));
        }
        tsvdi_cpu_inverse_refine(dense, n, room.s, x);
    }
    norm *= undo_balance(n, &room, (int)load->exponent[i], x);
    run->rcond[i] = norm > 0 ? 1 / norm : 0;
out:
    return ret;
}

/* ---- all of them ---- */

/* Adds what was found of the job's matrices. */
static void
find(const struct inverse_run *run, struct inverse_findings *found)
{
    const struct dense_job *load = &run->job->load;

    for (int64_t i = 0; i < load->count; i++) {
        const int64_t matrix = load->begin + i;

        if (load->kind[i] == NONFINITE) {
            found->nonfinite = matrix < found->nonfinite ? matrix : found->nonfinite;
        } else if (run->rcond[i] == SINGULAR) {
            found->singular = matrix < found->singular ? matrix : found->singular;
        } else if (run->rcond[i] < found->rcond) {
            found->rcond = run->rcond[i];
            found->matrix = matrix;
        }
    }
}

static tsvd_status
invert(struct tsvd_context *ctx, struct inverse_job *job)
{
    const struct dense_problem *p = job->load.problem;
    struct inverse_run *run = job->held;
    tsvd_status ret = TSVD_OK;

    run->dense.ctx = ctx;
    run->dense.w = (real *)p->b.L + job->load.begin * p->b.n * p->b.n;
    TSVD_TRY(tsvdi_cpu_dense_for_each(&run->dense, invert_one, run));
    find(run, job->found);
out:
    return ret;
}

const struct inverse_ops tsvdi_cpu_inverse = {
    .chunk_most = chunk_most,
    .begin = begin,
    .end = end,
    .invert = invert,
    .bytes = inverse_bytes,
};
