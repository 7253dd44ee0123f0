/*
 * The driver: reads one matrix, scales it, runs a method, refines the values, and
 * puts values and vectors in order; a batch is shared out over the threads or
 * its matrices follow one another, by their size.
 */
#include "backend.h"
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
    char *negative;
    void *sturm;
};

struct job {
    struct tsvd_context ctx; /* of the calling thread */
    const tsvd_problem *problem;
    struct work *work;         /* [workers] */
    struct tsvd_context *each; /* [workers] */
    tsvd_error *error;         /* [workers] */
    tsvd_info *info;           /* [workers] */
    tsvd_method method;
    int64_t total;
};

static void
work_free(struct tsvd_context *ctx, struct work *w)
{
    ctx->backend->free(w->from);
    ctx->backend->free(w->sturm);
}

static tsvd_status
work_alloc(struct tsvd_context *ctx, int64_t n, struct work *w)
{
    const size_t length = (size_t)n;
    tsvd_status ret = TSVD_OK;
    char *p;

    /* one piece: five real vectors, the permutation, the signs */
    TSVD_TRY(ctx->backend->alloc(ctx, length * (sizeof(int64_t) + 5 * sizeof(real) + 1),
                                 (void **)&p));
    w->from = (int64_t *)p;
    w->d = (real *)(w->from + length);
    TSVD_TRY(ctx->backend->alloc(ctx, tsvdi_sturm_bytes(n), &w->sturm));
    w->e = w->d + length;
    w->sd = w->e + length;
    w->se = w->sd + length;
    w->hint = w->se + length;
    w->negative = (char *)(w->hint + length);
out:
    return ret;
}

/* Gathers a strided vector; returns its largest magnitude, infinity or NaN where it holds one. */
static real
gather(const char *p, ptrdiff_t stride, int64_t count, real *x)
{
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

static void
fill_identity(int64_t n, real *x)
{
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i * (n + 1)] = 1;
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
    /* the Sturm workspace is idle until the refinement, and larger */
    sort_descending(magnitude, n, w->from, w->sturm);
    for (int64_t i = 0; i < n; i++) {
        w->hint[i] = magnitude[w->from[i]];
    }
    scale(w->hint, n, -exponent, w->hint);
}

/* The decomposition of the matrix in w->d, w->e, which is neither empty, zero nor
   non-finite and has the largest magnitude `largest`. */
static tsvd_status
decompose(struct tsvd_context *ctx, struct work *w, int64_t n, tsvd_method method, real largest,
          real *s, real *L, real *R_, tsvd_info *info)
{
    const tsvd_options *options = ctx->options;
    const struct vectors columns_of_L = {L, n, 1}, rows_of_R = {R_, n, 0};
    const real eps = options->eps > 0 ? R(options->eps) : R(0);
    struct sturm matrix;
    real_int exponent;
    double clock;
    tsvd_status ret = TSVD_OK;

    if (method != TSVD_METHOD_BISECT) {
        /* If e is the sub-diagonal the transpose is decomposed: L and R change roles. */
        struct vectors right = options->lower ? columns_of_L : rows_of_R;
        struct vectors left = options->lower ? rows_of_R : columns_of_L;
        real scaled_eps = eps;

        (void)r_split(largest, &exponent);
        scale(w->d, n, exponent, w->sd);
        scale(w->e, n - 1, exponent, w->se);
        scale(&scaled_eps, 1, exponent, &scaled_eps);
        if (method == TSVD_METHOD_GIVENS) {
            TSVD_TRY(tsvdi_givens(ctx, n, w->sd, w->se, r_max(scaled_eps, R_EPS), right, left,
                                  info));
        } else {
            TSVD_TRY(tsvdi_qr(ctx, n, w->sd, w->se, scaled_eps, right, left, info));
        }
        rank(w, n, exponent, w->se);
        if (L) {
            clock = tsvdi_host_seconds();
            TSVD_TRY(ctx->backend->order(ctx, w->from, w->negative, columns_of_L, rows_of_R));
            info->seconds_vectors += tsvdi_host_seconds() - clock;
        }
    }
    if (method == TSVD_METHOD_GIVENS || (method == TSVD_METHOD_QR && eps > 0)) {
        memcpy(s, w->hint, (size_t)n * sizeof *s); /* good to eps, as was asked */
    } else {
        int64_t counts = 0;

        clock = tsvdi_host_seconds();
        tsvdi_sturm_prepare(n, w->d, w->e, w->sturm, &matrix);
        TSVD_TRY(ctx->backend->values(ctx, &matrix, method == TSVD_METHOD_BISECT ? NULL : w->hint,
                                      eps, s, &counts));
        info->iterations += method == TSVD_METHOD_BISECT ? counts : 0;
        info->seconds_values += tsvdi_host_seconds() - clock;
    }
out:
    return ret;
}

tsvd_status
tsvdi_check(struct tsvd_context *ctx, double done)
{
    const tsvd_options *o = ctx->options;

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

static tsvd_status
solve_one(void *arg, int worker, int64_t index)
{
    const struct job *job = arg;
    const tsvd_problem *p = job->problem;
    const int64_t n = p->n;
    struct tsvd_context *ctx = &job->each[worker];
    struct work *w = &job->work[worker];
    real *s = (real *)p->s + index * n;
    real *L = p->L ? (real *)p->L + index * n * n : NULL;
    real *R_ = p->L ? (real *)p->R + index * n * n : NULL;
    real largest;
    ptrdiff_t d, e;
    tsvd_status ret = TSVD_OK;

    ctx->index = index;
    locate(p, index, &d, &e);
    largest = gather((const char *)p->d + d, p->d_stride, n, w->d);
    if (n > 1) {
        largest = r_max(largest, gather((const char *)p->e + e, p->e_stride, n - 1, w->e));
    }
    if (!r_isfinite(largest)) {
        if (ctx->options->check_finite) {
            ret = tsvdi_fail(ctx->error, TSVD_ERR_NONFINITE, "d and e must not hold NaN or infinity");
        } else {
            fill_nan(n, s, L, R_);
        }
    } else if (largest == 0) {
        memset(s, 0, (size_t)n * sizeof *s);
        if (L) {
            fill_identity(n, L);
            fill_identity(n, R_);
        }
    } else {
        ret = decompose(ctx, w, n, job->method, largest, s, L, R_, &job->info[worker]);
    }
    if (ret == TSVD_OK) {
        ret = tsvdi_check(ctx, 1);
    }
    if (ret != TSVD_OK) {
        ctx->error->matrix = job->total > 1 ? index : -1;
    }
    return ret;
}

/* What "auto" stands for: bisection where only values are wanted, else QR. */
static tsvd_method
choose_method(const tsvd_problem *problem, const tsvd_options *options)
{
    if (options->method != TSVD_METHOD_AUTO) {
        return options->method;
    }
    return problem->L ? TSVD_METHOD_QR : TSVD_METHOD_BISECT;
}

tsvd_status
tsvdi_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
          tsvd_error *error)
{
    enum { FEW = 4 }; /* workers that need no allocation */
    struct work few_work[FEW];
    struct tsvd_context few_contexts[FEW];
    tsvd_error few_errors[FEW];
    tsvd_info few_infos[FEW];
    struct job job = {{&tsvdi_cpu, options, error, 1, 1, 0, 1}, problem, few_work, few_contexts,
                      few_errors, few_infos, choose_method(problem, options), 1};
    const struct tsvd_backend *backend = job.ctx.backend;
    const int threads = options->threads > 0 ? options->threads : tsvd_host_threads();
    int workers = 1, ready = 0;
    int64_t failed = -1;
    tsvd_status ret = TSVD_OK;

    for (int k = 0; k < problem->batch_ndim; k++) {
        job.total *= problem->batch_shape[k];
    }
    info->method = job.method;
    if (problem->n == 0 || job.total == 0) {
        goto out;
    }
    if (problem->n <= BATCH_ORDER_MAX && job.total > 1) {
        workers = job.total < threads ? (int)job.total : threads;
    }
    if (workers > FEW) {
        job.work = NULL;
        job.each = NULL;
        job.error = NULL;
        job.info = NULL;
        TSVD_TRY(backend->alloc(&job.ctx, (size_t)workers * sizeof *job.work, (void **)&job.work));
        TSVD_TRY(backend->alloc(&job.ctx, (size_t)workers * sizeof *job.each, (void **)&job.each));
        TSVD_TRY(backend->alloc(&job.ctx, (size_t)workers * sizeof *job.error,
                                (void **)&job.error));
        TSVD_TRY(backend->alloc(&job.ctx, (size_t)workers * sizeof *job.info, (void **)&job.info));
    }
    for (; ready < workers; ready++) {
        memset(&job.work[ready], 0, sizeof *job.work);
        memset(&job.error[ready], 0, sizeof *job.error);
        memset(&job.info[ready], 0, sizeof *job.info);
        job.error[ready].matrix = -1;
        job.each[ready] = (struct tsvd_context){backend, options, &job.error[ready],
                                                workers > 1 ? 1 : threads, ready == 0, 0,
                                                job.total};
        TSVD_TRY(work_alloc(&job.ctx, problem->n, &job.work[ready]));
    }
    ret = backend->for_each(workers, job.total, solve_one, &job);
    for (int i = 0; i < workers; i++) {
        info->sweeps += job.info[i].sweeps;
        info->iterations += job.info[i].iterations;
        info->rotations += job.info[i].rotations;
        info->deflated += job.info[i].deflated;
        info->seconds_iterate += job.info[i].seconds_iterate;
        info->seconds_vectors += job.info[i].seconds_vectors;
        info->seconds_values += job.info[i].seconds_values;
        /* the least failing index is the one that for_each returned the status of */
        if (job.error[i].text[0] && (failed < 0 || job.error[i].matrix < failed)) {
            failed = job.error[i].matrix;
            *error = job.error[i];
        }
    }
out:
    for (int i = 0; i < ready; i++) {
        work_free(&job.ctx, &job.work[i]);
    }
    if (workers > FEW) {
        backend->free(job.work);
        backend->free(job.each);
        backend->free(job.error);
        backend->free(job.info);
    }
    return ret;
}
