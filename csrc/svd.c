/*
 * The driver: reads one matrix, scales it, runs a method, refines the values, and
 * puts values and vectors in order; a batch is shared out over the threads or
 * its matrices follow one another, by their size.
 */
#include "backend.h"
#include "blas.h"
#include "crossover.h"
#include "host.h"

/* Matrices up to this order are shared out over the threads, one thread each; larger
   ones follow one another with all threads at work on each. */
enum { BATCH_ORDER_MAX = 256 };

/* Workspace of one worker, all of order n. */
struct work {
    real *d, *e;   /* the matrix as given */
    real *sd, *se; /* scaled, overwritten by the method; sd then holds the values */
    real *hint;    /* |values|, descending, unscaled */
    int64_t *from; /* from[i]: which value has rank i */
    int64_t *spare;
    char *negative;
    void *sturm;
};

/* One thread's share of a call. */
struct worker {
    struct tsvd_context ctx;
    struct work work;
    tsvd_error error;
    tsvd_info info;
};

struct job {
    const tsvd_problem *problem;
    struct worker *worker;
    int64_t total; /* matrices */
};

static void
work_free(struct work *w)
{
    tsvdi_host_free(w->from);
    tsvdi_host_free(w->sturm);
}

static tsvd_status
work_alloc(struct tsvd_context *ctx, int64_t n, struct work *w)
{
    const size_t length = (size_t)n;
    tsvd_status ret = TSVD_OK;
    char *p;

    /* one piece: five real vectors, the permutation, room to sort it, the signs */
    TSVD_TRY(tsvdi_host_alloc(length * (2 * sizeof(int64_t) + 5 * sizeof(real) + 1), ctx->error,
                              (void **)&p));
    w->from = (int64_t *)p;
    w->spare = w->from + length;
    w->d = (real *)(w->spare + length);
    TSVD_TRY(tsvdi_host_alloc(tsvdi_sturm_bytes(n), ctx->error, &w->sturm));
    w->e = w->d + length;
    w->sd = w->e + length;
    w->se = w->sd + length;
    w->hint = w->se + length;
    w->negative = (char *)(w->hint + length);
out:
    return ret;
}

real
tsvdi_gather(const void *from, ptrdiff_t stride, int64_t count, real *x)
{
    const char *p = from;
    real largest = 0;
    int finite = 1;

    for (int64_t i = 0; i < count; i++) {
        memcpy(&x[i], p + i * stride, sizeof *x);
        largest = r_max(largest, r_abs(x[i]));
        finite &= r_isfinite(x[i]);
    }
    return finite ? largest : r_from_bits(R_INFINITY_BITS);
}

/* x 2^-exponent, in two steps where one power is out of range. */
static void
scale(const real *x, int64_t count, real_int exponent, real *y)
{
    real half = r_pow2((int)(-exponent / 2)), rest = r_pow2((int)(-(exponent - exponent / 2)));

    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * half * rest;
    }
}

/* from[] such that key[from[i]] descends; stable, by merging. */
static void
sort_descending(const real *key, int64_t n, int64_t *from, int64_t *buffer)
{
    for (int64_t i = 0; i < n; i++) {
        from[i] = i;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n;
            int64_t end = middle + width < n ? middle + width : n;
            int64_t a = begin, b = middle;

            for (int64_t i = begin; i < end; i++) {
                buffer[i] = b >= end || (a < middle && key[from[a]] >= key[from[b]]) ? from[a++]
                                                                                     : from[b++];
            }
        }
        memcpy(from, buffer, (size_t)n * sizeof *from);
    }
}

/* Fills the results of a matrix that holds NaN or infinity. */
static void
fill_nan(int64_t n, real *s, real *left, real *right)
{
    for (int64_t i = 0; i < n; i++) {
        s[i] = R(NAN);
    }
    for (int64_t i = 0; left && i < n * n; i++) {
        left[i] = right[i] = R(NAN);
    }
}

/* The values of sd in descending order: from, negative, and hint (unscaled, >= 0). */
static void
rank(struct work *w, int64_t n, real_int exponent, real *magnitude)
{
    for (int64_t i = 0; i < n; i++) {
        w->negative[i] = w->sd[i] < 0;
        magnitude[i] = r_abs(w->sd[i]);
    }
    sort_descending(magnitude, n, w->from, w->spare);
    for (int64_t i = 0; i < n; i++) {
        w->hint[i] = magnitude[w->from[i]];
    }
    scale(w->hint, n, -exponent, w->hint);
}

/* What "auto" stands for, and "dc" where no vectors are wanted.  On CUDA devices only bisection
   works on many values at once.  On the CPU it is fast where its plain form applies; for very
   small or very graded matrices QR, which the counts then only have to confirm, is faster. */
static tsvd_method
choose_method(const tsvd_options *options, int64_t n, int vectors, const struct sturm *matrix)
{
    if (options->method != TSVD_METHOD_AUTO && (vectors || options->method != TSVD_METHOD_DC)) {
        return options->method;
    }
    if (vectors) {
        return tsvdi_prefers_dc(options, n) ? TSVD_METHOD_DC : TSVD_METHOD_QR;
    }
    if (options->device < 0 && (n <= VALUES_QR_ORDER || !r_isfinite(matrix->plain_from))) {
        return TSVD_METHOD_QR;
    }
    return TSVD_METHOD_BISECT;
}

/* Runs a method on the matrix in w->d, w->e, whose largest magnitude is `largest`; leaves the
   values in w->hint, descending, and the vectors in L and R. */
static tsvd_status
run_method(struct tsvd_context *ctx, struct work *w, int64_t n, tsvd_method method, real largest,
           real eps, real *L, real *R_, tsvd_info *info)
{
    const struct tsvd_backend *backend = ctx->backend;
    /* If e is the sub-diagonal the transpose is decomposed: L and R change roles. */
    const int lower = ctx->options->lower;
    struct vectors left, right;
    real_int exponent;
    double clock;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(backend->vectors_begin(ctx, n, L, R_, &left, &right));
    (void)r_split(largest, &exponent);
    scale(w->d, n, exponent, w->sd);
    scale(w->e, n - 1, exponent, w->se);
    scale(&eps, 1, exponent, &eps);
    if (method == TSVD_METHOD_DC) {
        TSVD_TRY(
            tsvdi_dc(ctx, n, w->sd, w->se, eps, lower ? left : right, lower ? right : left, info));
        scale(w->sd, n, -exponent, w->hint);
    } else if (method == TSVD_METHOD_GIVENS) {
        TSVD_TRY(tsvdi_givens(ctx, n, w->sd, w->se, r_max(eps, R_EPS), lower ? left : right,
                              lower ? right : left, info));
    } else {
        TSVD_TRY(
            tsvdi_qr(ctx, n, w->sd, w->se, eps, lower ? left : right, lower ? right : left, info));
    }
    clock = tsvdi_host_seconds();
    if (method != TSVD_METHOD_DC) {
        rank(w, n, exponent, w->se);
        if (L) {
            TSVD_TRY(backend->order(ctx, w->from, w->negative, left, right));
        }
    }
    TSVD_TRY(backend->vectors_end(ctx, left, right, L, R_));
    info->seconds_vectors += tsvdi_host_seconds() - clock;
out:
    backend->vectors_free(ctx, &left, &right);
    return ret;
}

/* The decomposition of a zero matrix. */
static tsvd_status
decompose_zero(struct tsvd_context *ctx, int64_t n, real *s, real *L, real *R_)
{
    const struct tsvd_backend *backend = ctx->backend;
    struct vectors left, right;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(backend->vectors_begin(ctx, n, L, R_, &left, &right));
    memset(s, 0, (size_t)n * sizeof *s);
    if (L) {
        TSVD_TRY(backend->identity(ctx, left));
        TSVD_TRY(backend->identity(ctx, right));
        TSVD_TRY(backend->vectors_end(ctx, left, right, L, R_));
    }
out:
    backend->vectors_free(ctx, &left, &right);
    return ret;
}

/* The decomposition of the matrix in w->d, w->e, which is neither empty, zero nor
   non-finite. */
static tsvd_status
decompose(struct worker *worker, int64_t n, real largest, real *s, real *L, real *R_)
{
    struct tsvd_context *ctx = &worker->ctx;
    struct work *w = &worker->work;
    tsvd_info *info = &worker->info;
    const real eps = R(fmin(fmax(ctx->options->eps, 0), R_LARGEST));
    int64_t counts = 0;
    struct sturm matrix;
    double clock;
    tsvd_status ret = TSVD_OK;

    tsvdi_sturm_prepare(n, w->d, w->e, w->sturm, &matrix);
    info->method = choose_method(ctx->options, n, L != NULL, &matrix);
    if (info->method != TSVD_METHOD_BISECT) {
        TSVD_TRY(run_method(ctx, w, n, info->method, largest, eps, L, R_, info));
    }
    if (info->method == TSVD_METHOD_GIVENS || (info->method != TSVD_METHOD_BISECT && eps > 0)) {
        memcpy(s, w->hint, (size_t)n * sizeof *s); /* good to eps, as was asked */
        goto out;
    }
    clock = tsvdi_host_seconds();
    if (info->method == TSVD_METHOD_BISECT) {
        TSVD_TRY(ctx->backend->values(ctx, &matrix, NULL, eps, s, &counts));
        info->iterations += counts;
    } else {
        TSVD_TRY(ctx->backend->values(ctx, &matrix, w->hint, 0, s, &counts));
    }
    clock = tsvdi_host_seconds() - clock;
    info->seconds_values += clock;
    if (info->method == TSVD_METHOD_DC && ctx->options->device >= 0) {
        info->seconds_device += clock; /* with the way of d and e there and of s back */
    }
out:
    return ret;
}

tsvd_status
tsvdi_check(struct tsvd_context *ctx, double done)
{
    const tsvd_options *o = ctx->options;

    ctx->done = done;
    if (!o->check || !ctx->is_caller) {
        return TSVD_OK;
    }
    done = ((double)ctx->index + done) / (double)ctx->total;
    return o->check(o->check_arg, done) ? TSVD_ERR_INTERRUPTED : TSVD_OK;
}

/* Offsets, in bytes, of matrix `index` of the batch. */
static void
locate(const tsvd_problem *p, int64_t index, ptrdiff_t *d, ptrdiff_t *e)
{
    *d = *e = 0;
    for (int k = p->batch_ndim - 1; k >= 0; k--) {
        int64_t i = index % p->batch_shape[k];

        *d += (ptrdiff_t)i * p->d_batch_strides[k];
        *e += (ptrdiff_t)i * p->e_batch_strides[k];
        index /= p->batch_shape[k];
    }
}

/* Reads one matrix; returns its largest magnitude, infinity where it holds NaN or infinity. */
static real
read_matrix(const tsvd_problem *p, int64_t index, struct work *w)
{
    ptrdiff_t d, e;
    real largest;

    locate(p, index, &d, &e);
    largest = tsvdi_gather((const char *)p->d + d, p->d_stride, p->n, w->d);
    if (p->n > 1) {
        largest = r_max(largest, tsvdi_gather((const char *)p->e + e, p->e_stride, p->n - 1, w->e));
    }
    return largest;
}

/* Refuses NaN and infinity before any work. */
static tsvd_status
check_finite(const tsvd_problem *p, int64_t total, struct work *w, tsvd_error *error)
{
    for (int64_t i = 0; i < total; i++) {
        if (!r_isfinite(read_matrix(p, i, w))) {
            error->matrix = total > 1 ? i : -1;
            return tsvdi_fail(error, TSVD_ERR_NONFINITE, "%s", tsvd_strstatus(TSVD_ERR_NONFINITE));
        }
    }
    return TSVD_OK;
}

static tsvd_status
solve_one(void *arg, int worker, int64_t index)
{
    const struct job *job = arg;
    const tsvd_problem *p = job->problem;
    const int64_t n = p->n;
    struct worker *own = &job->worker[worker];
    real *s = (real *)p->s + index * n;
    real *L = p->L ? (real *)p->L + index * n * n : NULL;
    real *R_ = p->L ? (real *)p->R + index * n * n : NULL;
    real largest = read_matrix(p, index, &own->work);
    tsvd_status ret = TSVD_OK;

    own->ctx.index = index;
    own->ctx.done = 0;
    if (!r_isfinite(largest)) { /* check_finite is off */
        fill_nan(n, s, L, R_);
    } else if (largest == 0) {
        ret = decompose_zero(&own->ctx, n, s, L, R_);
    } else {
        ret = decompose(own, n, largest, s, L, R_);
    }
    if (ret == TSVD_OK) {
        ret = tsvdi_check(&own->ctx, 1);
    }
    if (ret != TSVD_OK) {
        own->error.matrix = job->total > 1 ? index : -1;
    }
    return ret;
}

/* Adds up what the workers did; the error is that of the least matrix that failed, whose
   status for_each returned. */
static void
collect(const struct worker *worker, int workers, tsvd_info *info, tsvd_error *error)
{
    int64_t failed = INT64_MAX;

    for (int i = 0; i < workers; i++) {
        const tsvd_info *own = &worker[i].info;

        info->method = own->method && own->method < info->method ? own->method : info->method;
        info->sweeps += own->sweeps;
        info->iterations += own->iterations;
        info->iterations_saved += own->iterations_saved;
        info->rotations += own->rotations;
        info->deflated += own->deflated;
        info->seconds_iterate += own->seconds_iterate;
        info->seconds_vectors += own->seconds_vectors;
        info->seconds_values += own->seconds_values;
        info->seconds_device += own->seconds_device;
        if (worker[i].error.text[0] && worker[i].error.matrix < failed) {
            failed = worker[i].error.matrix;
            *error = worker[i].error;
        }
    }
}

static void
worker_end(struct worker *own)
{
    own->ctx.backend->close(&own->ctx);
    work_free(&own->work);
}

/* A worker, zeroed before, that computes with its own error in the place of ctx's. */
static tsvd_status
worker_begin(struct worker *own, const struct tsvd_context *ctx, int64_t n)
{
    tsvd_status ret = TSVD_OK;

    own->error.matrix = -1;
    own->ctx = *ctx;
    own->ctx.error = &own->error;
    TSVD_TRY(work_alloc(&own->ctx, n, &own->work));
    TSVD_TRY(own->ctx.backend->open(&own->ctx));
out:
    if (ret != TSVD_OK) {
        *ctx->error = own->error;
        worker_end(own);
    }
    return ret;
}

tsvd_status
tsvdi_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
          tsvd_error *error)
{
    enum { FEW = 4 }; /* workers that need no allocation */
    struct worker few[FEW];
    struct job job = {problem, few, 1};
    struct tsvd_context ctx = {.options = options, .error = error};
    const int threads = tsvdi_host_threads_for(options->threads);
    int workers = 1, ready = 0;
    tsvd_status ret = TSVD_OK;

    ctx.backend = options->device < 0 ? &tsvdi_cpu : tsvdi_cuda();
    if (!ctx.backend) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE, "tsvd was built without CUDA");
    }
    if (problem->k < problem->n) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED, "a part of the values is not computed yet");
    }
    info->method = options->method; /* where there is nothing to choose by, nor to do */
    if (info->method == TSVD_METHOD_AUTO || (info->method == TSVD_METHOD_DC && !problem->L)) {
        info->method = !problem->L                             ? TSVD_METHOD_BISECT
                       : tsvdi_prefers_dc(options, problem->n) ? TSVD_METHOD_DC
                                                               : TSVD_METHOD_QR;
    }
    for (int k = 0; k < problem->batch_ndim; k++) {
        job.total *= problem->batch_shape[k];
    }
    if (problem->n == 0 || job.total == 0) {
        goto out;
    }
    if (options->device < 0 && problem->n <= BATCH_ORDER_MAX && job.total > 1) {
        workers = job.total < threads ? (int)job.total : threads;
    }
    if (workers > FEW) {
        job.worker = NULL;
        TSVD_TRY(tsvdi_host_alloc((size_t)workers * sizeof *few, error, (void **)&job.worker));
    }
    memset(job.worker, 0, (size_t)workers * sizeof *few);
    for (; ready < workers; ready++) {
        ctx.is_caller = ready == 0;
        ctx.threads = workers > 1 ? 1 : threads;
        ctx.total = job.total;
        TSVD_TRY(worker_begin(&job.worker[ready], &ctx, problem->n));
    }
    if (options->check_finite) {
        TSVD_TRY(check_finite(problem, job.total, &job.worker[0].work, error));
    }
    ret = tsvdi_host_for_each(workers, job.total, solve_one, &job);
    collect(job.worker, workers, info, error);
out:
    for (int i = 0; i < ready; i++) {
        worker_end(&job.worker[i]);
    }
    if (workers > FEW) {
        tsvdi_host_free(job.worker);
    }
    return ret;
}
