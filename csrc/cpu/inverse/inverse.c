/*
 * Inverses on the CPU: memory, and one matrix after another.  Mirrors cuda/inverse/inverse.cu.
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"
#include "cpu/matrix/lanes.h"
#include "cpu/tuning.h"
#include "math/balance.h"

/* In place of a reciprocal condition number: a pivot is zero; numbers left their range. */
#define SINGULAR (-1.)
#define OUT_OF_RANGE (-2.)

/* The share of a matrix's work that comes before refine(). */
#define FIRST_SHARE (TSVD_SINGLE ? 0.3 : 0.25)

static int64_t
chunk_most(const struct inverse_problem *p)
{
    const int64_t bytes = p->a.rows * p->a.rows * (int64_t)sizeof(scalar);

    return bytes < CPU_CHUNK_BYTES ? CPU_CHUNK_BYTES / bytes : 1;
}

/* ---- memory ---- */

/* Offsets of the parts of a worker's workspace, in bytes; all: its size, BYTES_TOO_MANY at most. */
struct layout {
    uint64_t sums, row, copy, tile, lanes, all;
};

static uint64_t
whole_lines(uint64_t bytes)
{
    return bytes_add(bytes, 63) / 64 * 64;
}

static struct layout
layout_of(const struct inverse_problem *p, int threads)
{
    const int64_t n = p->a.rows, block = inverse_block(n);
    const int refine = p->refine;
    struct layout at;

    at.sums = refine ? tsvdi_cpu_inverse_refine_bytes(n) : 0;
    at.row = bytes_add(at.sums, bytes_of(N_PARTS * n, sizeof(double)));
    at.copy = whole_lines(bytes_add(at.row, bytes_of(3 * n, sizeof(int))));
    at.tile = whole_lines(bytes_add(at.copy, bytes_of(n * block, sizeof(scalar))));
    at.lanes = at.tile;
    if (block < n) {
        at.lanes = bytes_add(at.tile, bytes_of(threads * block * block, sizeof(scalar)));
    }
    at.all = bytes_add(at.lanes, tsvdi_cpu_inverse_lanes_bytes(p));
    at.all = at.sums == BYTES_TOO_MANY ? BYTES_TOO_MANY : at.all;
    return at;
}

static struct inverse_workspace
workspace_of(const struct cpu_inverse *run, int worker)
{
    const struct layout at = layout_of(run->job->problem, run->dense.threads);
    char *base = (char *)run->dense.work + worker * run->workspace;
    struct inverse_workspace workspace;

    workspace.s = (scalar_double *)(void *)base;
    workspace.sums = (double *)(void *)(base + at.sums);
    workspace.row = (int *)(void *)(base + at.row);
    workspace.column = workspace.row + run->dense.rows;
    workspace.pivot = workspace.column + run->dense.rows;
    workspace.copy = (scalar *)(void *)(base + at.copy);
    workspace.tile = (scalar *)(void *)(base + at.tile);
    return workspace;
}

static void
end(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cpu_inverse *run = job->state;

    if (run != NULL) {
        tsvdi_free(ctx, run->dense.work);
        tsvdi_free(ctx, run->rcond);
    }
    tsvdi_free(ctx, run);
    job->state = NULL;
}

static uint64_t
held_bytes(int64_t count)
{
    return bytes_of(count, sizeof(double) + sizeof(real_int) + sizeof(char));
}

static tsvd_status
begin(struct tsvd_context *ctx, struct inverse_job *job)
{
    const struct inverse_problem *p = job->problem;
    const int64_t n = p->a.rows, count = job->count;
    struct cpu_inverse *run = NULL;
    struct dense_run *dense;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof *run, (void **)&run));
    memset(run, 0, sizeof *run);
    job->state = run;
    run->job = job;
    dense = &run->dense;
    dense->ctx = ctx;
    dense->a = &p->a;
    dense->rows = dense->columns = n;
    dense->transposed = 1;
    dense->workers = tsvdi_cpu_dense_workers(&p->a, count, ctx->threads);
    dense->threads = dense->workers > 1 ? 1 : ctx->threads;
    run->workspace = (int64_t)layout_of(p, dense->threads).all;
    TSVD_TRY(tsvdi_alloc(ctx, held_bytes(count), (void **)&run->rcond));
    dense->exponent = (real_int *)(void *)(run->rcond + count);
    dense->kind = (char *)(dense->exponent + count);
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(dense->workers, (uint64_t)run->workspace),
                         (void **)&dense->work));
out:
    return ret;
}

static struct bytes
inverse_bytes(const struct inverse_problem *p, int64_t count)
{
    const int threads = tsvdi_host_threads_for(p->call.handle->threads, INT64_MAX);
    const int workers = tsvdi_cpu_dense_workers(&p->a, count, threads);
    const struct layout at = layout_of(p, workers > 1 ? 1 : threads);
    struct bytes bytes = {sizeof(struct cpu_inverse) + held_bytes(count), 0};

    bytes.host = bytes_add(bytes.host, bytes_of(workers, at.all));
    bytes.host = bytes_add(bytes.host, tsvdi_cpu_inverse_qr_bytes(p->a.rows));
    return bytes;
}

/* ---- one matrix ---- */

/* How S is inverted. */
typedef tsvd_status (*inverter)(struct dense_run *run, int64_t n, scalar *s,
                                const struct inverse_workspace *workspace,
                                struct inverse_share share, int *outcome);

/* Inverts matrix i. */
static tsvd_status
invert_matrix(struct cpu_inverse *run, struct dense_run *dense, int worker,
              const struct inverse_workspace *workspace, int64_t i, inverter invert_s, int *outcome)
{
    const int64_t n = dense->rows, count = n * n;
    const int refine = run->job->problem->refine;
    const double part = 1 / (double)run->job->count, done = (double)i * part;
    const struct inverse_share first = {done, refine ? FIRST_SHARE * part : part},
                               second = {done + FIRST_SHARE * part, (1 - FIRST_SHARE) * part};
    scalar *x = dense->w + i * count;
    double norm, inverse_norm;
    int finite;
    tsvd_status ret = TSVD_OK;

    *outcome = INVERSE_FOUND;
    run->rcond[i] = SINGULAR;
    TSVD_TRY(tsvdi_cpu_dense_load(dense, worker, i, 0));
    if (dense->kind[i] == NONFINITE) {
        tsvdi_host_fill_nan(N_PARTS * count, (real *)x);
        goto out;
    }
    TSVD_TRY(
        tsvdi_cpu_inverse_balance(dense, n, (int)dense->exponent[i], x, workspace, done, &norm));
    for (int64_t k = 0; k < count && refine; k++) {
        workspace->s[k] = x[k];
    }
    TSVD_TRY(invert_s(dense, n, x, workspace, first, outcome));
    if (*outcome == INVERSE_UNDERFLOWED) {
        run->rcond[i] = OUT_OF_RANGE;
    }
    if (*outcome != INVERSE_FOUND) {
        goto out;
    }
    if (refine) {
        TSVD_TRY(tsvdi_cpu_inverse_refine(dense, n, workspace, x, (int)dense->exponent[i], norm,
                                          second));
    }
    TSVD_TRY(tsvdi_cpu_inverse_unbalance(dense, n, (int)dense->exponent[i], x, workspace,
                                         done + part, &inverse_norm, &finite));
    norm *= inverse_norm;
    run->rcond[i] = !finite ? OUT_OF_RANGE : norm > 0 ? 1 / norm : 0;
out:
    return ret;
}

/* As invert_matrix(), where numbers leave the range of real. */
static tsvd_status
invert_extended(struct cpu_inverse *run, struct dense_run *dense, int worker,
                const struct inverse_workspace *workspace, int64_t i)
{
    const int exponent = (int)run->dense.exponent[i];
    const double done = (double)i / (double)run->job->count;
    const int64_t n = dense->rows;
    scalar *x = dense->w + i * n * n;
    void *memory = NULL;
    double norm, inverse_norm;
    int outcome;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(dense->ctx, tsvdi_cpu_inverse_extended_bytes(n, dense->threads),
                         (void **)&memory));
    TSVD_TRY(tsvdi_cpu_dense_load(dense, worker, i, 0));
    run->rcond[i] = SINGULAR;
    TSVD_TRY(tsvdi_cpu_inverse_balance(dense, n, exponent, x, workspace, done, &norm));
    TSVD_TRY(tsvdi_cpu_inverse_extended(dense, n, exponent, x, workspace, memory, done,
                                        &inverse_norm, &outcome));
    if (outcome == INVERSE_FOUND) {
        norm *= inverse_norm;
        run->rcond[i] = norm > 0 ? 1 / norm : 0;
    }
out:
    tsvdi_free(dense->ctx, memory);
    return ret;
}

static tsvd_status
invert_one(void *arg, int worker, int64_t i)
{
    struct cpu_inverse *run = arg;
    const struct inverse_workspace workspace = workspace_of(run, worker);
    int outcome;
    tsvd_status ret = TSVD_OK;

    if (worker == 0) {
        TSVD_TRY(tsvdi_check(run->dense.ctx, (double)i / (double)run->job->count));
    }
    TSVD_TRY(
        invert_matrix(run, &run->dense, worker, &workspace, i, tsvdi_cpu_inverse_lu, &outcome));
    run->job->grown[i] = outcome == INVERSE_GREW || run->rcond[i] == OUT_OF_RANGE;
out:
    return ret;
}

/* Groups of lanes between two calls of tsvdi_check(): they take some 50 us. */
enum { GROUPS_PER_CHECK = 64 };

/* Inverts the matrices of a group of lanes. */
static tsvd_status
invert_group(void *arg, int worker, int64_t group)
{
    struct cpu_inverse *run = arg;
    const int64_t lanes = tsvdi_kernels()->lanes, begin = group * lanes;
    const int64_t rest = run->job->count - begin;
    const int count = (int)(rest < lanes ? rest : lanes);
    char *const work = (char *)run->dense.work + worker * run->workspace;
    char hard[LANES_MAX];
    tsvd_status ret = TSVD_OK;

    if (worker == 0 && group % GROUPS_PER_CHECK == 0) {
        TSVD_TRY(tsvdi_check(run->dense.ctx, (double)begin / (double)run->job->count));
    }
    tsvdi_cpu_inverse_lanes(run, begin, count,
                            work + layout_of(run->job->problem, run->dense.threads).lanes, hard);
    for (int lane = 0; lane < count; lane++) {
        run->job->grown[begin + lane] = 0;
        if (hard[lane]) {
            TSVD_TRY(invert_one(run, worker, begin + lane));
        }
    }
out:
    return ret;
}

/* Inverts all matrices in groups, by as many threads as they are worth. */
static tsvd_status
invert_groups(struct cpu_inverse *run)
{
    const int64_t lanes = tsvdi_kernels()->lanes, n = run->dense.rows;
    const int64_t worth = run->job->count * n * n * (n + 8) / CPU_LANES_SERIAL + 1;
    struct dense_run groups = run->dense;

    groups.count = (run->job->count + lanes - 1) / lanes;
    groups.workers = worth < groups.workers ? (int)worth : groups.workers;
    return tsvdi_cpu_dense_for_each(&groups, invert_group, run);
}

/* ---- all of them ---- */

/* Adds matrix i of the job to run->job->found. */
static void
add_findings(const struct cpu_inverse *run, int64_t i)
{
    struct inverse_findings *found = run->job->found;
    const int64_t matrix = run->job->begin + i;

    if (run->dense.kind[i] == NONFINITE) {
        found->nonfinite = matrix < found->nonfinite ? matrix : found->nonfinite;
    } else if (run->rcond[i] == SINGULAR) {
        found->singular = matrix < found->singular ? matrix : found->singular;
    } else if (run->rcond[i] < found->rcond) {
        found->rcond = run->rcond[i];
        found->matrix = matrix;
    }
}

static tsvd_status
invert(struct tsvd_context *ctx, struct inverse_job *job)
{
    struct cpu_inverse *run = job->state;
    struct dense_run *dense = &run->dense;
    tsvd_status ret = TSVD_OK;

    dense->ctx = ctx;
    dense->begin = job->begin;
    dense->count = job->count;
    dense->w = (scalar *)job->problem->X + job->begin * dense->rows * dense->columns;
    TSVD_TRY(tsvdi_cpu_inverse_has_lanes(job->problem)
                 ? invert_groups(run)
                 : tsvdi_cpu_dense_for_each(dense, invert_one, run));
    job->first_grown = job->count;
    for (int64_t i = 0; i < job->count; i++) {
        if (!job->grown[i]) {
            add_findings(run, i);
        } else if (i < job->first_grown) {
            job->first_grown = i;
        }
    }
out:
    return ret;
}

/* A matrix that is inverted once more. */
struct second_try {
    struct cpu_inverse *run;
    struct dense_run dense; /* with the workspace of QR */
    int64_t index;
};

/* By QR if pivots grew, and in long double if numbers left their range. */
static tsvd_status
rescue_one(void *arg, int worker, int64_t unused)
{
    struct second_try *t = arg;
    const struct inverse_workspace workspace = workspace_of(t->run, worker);
    int outcome;
    tsvd_status ret = TSVD_OK;

    (void)unused;
    if (t->run->rcond[t->index] != OUT_OF_RANGE) {
        TSVD_TRY(invert_matrix(t->run, &t->dense, worker, &workspace, t->index,
                               tsvdi_cpu_inverse_qr, &outcome));
    }
    if (t->run->rcond[t->index] == OUT_OF_RANGE) {
        TSVD_TRY(invert_extended(t->run, &t->dense, worker, &workspace, t->index));
    }
    add_findings(t->run, t->index);
out:
    return ret;
}

static tsvd_status
rescue(struct tsvd_context *ctx, struct inverse_job *job, int64_t i)
{
    struct cpu_inverse *run = job->state;
    struct second_try t = {run, run->dense, i};
    tsvd_status ret = TSVD_OK;

    t.dense.count = t.dense.workers = 1;
    t.dense.work = NULL;
    TSVD_TRY(tsvdi_alloc(ctx, tsvdi_cpu_inverse_qr_bytes(run->dense.rows), (void **)&t.dense.work));
    TSVD_TRY(tsvdi_cpu_dense_for_each(&t.dense, rescue_one, &t));
out:
    tsvdi_free(ctx, t.dense.work);
    return ret;
}

const struct inverse_ops tsvdi_cpu_inverse = {
    .chunk_most = chunk_most,
    .begin = begin,
    .end = end,
    .invert = invert,
    .rescue = rescue,
    .bytes = inverse_bytes,
};
