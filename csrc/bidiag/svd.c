/*
 * The driver: reads the matrices of a problem, runs a method on them, refines the values, and puts
 * values and vectors in order.  A batch is worked on in chunks, of as many matrices as the back end
 * takes at once; small ones are shared out over the threads, others follow one another.
 */
#include "backend/backend.h"
#include "bidiag/crossover.h"
#include "host/host.h"

/* Matrices up to this order are shared out over the threads, one thread each; larger
   ones follow one another with all threads at work on each. */
enum { BATCH_ORDER_MAX = 256 };

/* What a matrix holds. */
enum { ORDINARY, ZERO, NONFINITE };

/* Workspace of one worker. */
struct work {
    /* of the matrices of a chunk, one after another, n numbers each */
    real *d, *e;        /* as given, e with a zero at the end; zero if not finite */
    real_int *exponent; /* [chunk] of the largest magnitude */
    char *kind;         /* [chunk] */
    /* of one matrix, for the methods that take one at a time */
    real *sd, *se; /* scaled, overwritten by the method; sd then holds the values */
    real *hint;    /* |values|, descending, unscaled */
    int64_t *from; /* from[i]: which value has rank i */
    int64_t *spare;
    char *negative;
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
    int64_t chunk; /* of them at once */
};

static void
work_free(struct work *w)
{
    tsvdi_host_free(w->from);
}

static tsvd_status
work_alloc(struct tsvd_context *ctx, int64_t n, int64_t chunk, struct work *w)
{
    const size_t length = (size_t)n, all = (size_t)(n * chunk);
    tsvd_status ret = TSVD_OK;

    /* one piece, the widest types first */
    TSVD_TRY(tsvdi_host_alloc(2 * length * sizeof(int64_t) +
                                  (2 * all + 3 * length + (size_t)chunk) * sizeof(real) + length +
                                  (size_t)chunk,
                              ctx->error, (void **)&w->from));
    w->spare = w->from + length;
    w->d = (real *)(w->spare + length);
    w->e = w->d + all;
    w->sd = w->e + all;
    w->se = w->sd + length;
    w->hint = w->se + length;
    w->exponent = (real_int *)(w->hint + length);
    w->negative = (char *)(w->exponent + chunk);
    w->kind = w->negative + length;
out:
    return ret;
}

real
tsvdi_gather(const void *from, ptrdiff_t stride, int64_t count, real *x)
{
    const char *p = from;
    real_int largest = 0;

    if (stride == sizeof *x) {
        memcpy(x, p, (size_t)count * sizeof *x);
    } else {
        for (int64_t i = 0; i < count; i++) {
            memcpy(&x[i], p + i * stride, sizeof *x);
        }
    }
    for (int64_t i = 0; i < count; i++) { /* bits of magnitudes are ordered as these are */
        const real_int bits = r_bits(x[i]) & ~(real_int)R_SIGN_BIT;

        largest = bits > largest ? bits : largest;
    }
    return r_from_bits(largest < R_INFINITY_BITS ? largest : R_INFINITY_BITS);
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

/* The results of a matrix that holds NaN or infinity. */
static void
fill_nan(const tsvd_problem *p, real *s, real *left, real *right)
{
    for (int64_t i = 0; i < p->k; i++) {
        s[i] = REAL(NAN);
    }
    for (int64_t i = 0; left && i < p->n * p->k; i++) {
        left[i] = right[i] = REAL(NAN);
    }
}

/* Those of a zero matrix. */
static void
fill_zero(const tsvd_problem *p, real *s, real *left, real *right)
{
    memset(s, 0, (size_t)p->k * sizeof *s);
    if (left) {
        memset(left, 0, (size_t)(p->n * p->k) * sizeof *left);
        memset(right, 0, (size_t)(p->n * p->k) * sizeof *right);
        for (int64_t j = 0; j < p->k; j++) {
            left[(p->first + j) * p->k + j] = right[j * p->n + p->first + j] = 1;
        }
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
    r_scale(w->hint, n, -exponent, w->hint);
}

/* What "auto" stands for, and "dc" where no vectors are wanted; w holds the matrix that this is to
   depend on, NULL: none.  On CUDA devices only bisection works on many values at once.  On the CPU
   it is fast where its plain form applies; for a very small or very graded matrix QR, which the
   counts then only have to confirm, is faster. */
static tsvd_method
choose_method(const tsvd_options *options, const tsvd_problem *p, const struct work *w)
{
    if (options->method != TSVD_METHOD_AUTO && (p->L || options->method != TSVD_METHOD_DC)) {
        return options->method;
    }
    if (p->L) {
        return tsvdi_prefers_dc(options, p->n) ? TSVD_METHOD_DC : TSVD_METHOD_QR;
    }
    if (options->device < 0 && p->k == p->n && w &&
        (p->n <= VALUES_QR_ORDER || !tsvdi_sturm_is_plain(p->n, w->d, w->e))) {
        return TSVD_METHOD_QR;
    }
    return TSVD_METHOD_BISECT;
}

/* The matrices of a chunk by divide and conquer. */
static tsvd_status
run_dc(struct worker *own, const tsvd_problem *p, int64_t count, real eps, real *s, real *L,
       real *R)
{
    struct tsvd_context *ctx = &own->ctx;
    const struct tsvd_backend *backend = ctx->backend;
    struct dc_job job = {.n = p->n,
                         .batch = count,
                         .first = p->first,
                         .k = p->k,
                         .d = own->work.d,
                         .e = own->work.e,
                         .exponent = own->work.exponent,
                         .eps = eps,
                         .s = s};
    /* If e is the sub-diagonal the transpose is decomposed: L and R change roles. */
    const int lower = ctx->options->lower;
    struct vectors left, right;
    double clock;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(backend->vectors_begin(ctx, p->n, p->k, count, L, R, &left, &right));
    job.right = lower ? left : right;
    job.left = lower ? right : left;
    TSVD_TRY(tsvdi_dc(ctx, &job, &own->info));
    clock = tsvdi_host_seconds();
    TSVD_TRY(backend->vectors_end(ctx, left, right, L, R));
    own->info.seconds_vectors += tsvdi_host_seconds() - clock;
out:
    backend->vectors_free(ctx, &left, &right);
    own->error.matrix = job.failed;
    return ret;
}

/* Runs QR or the givens method on the matrix in w->d, w->e; leaves all values in w->hint,
   descending, and the vectors in L and R. */
static tsvd_status
run_rotations(struct worker *own, int64_t n, real eps, real *L, real *R)
{
    struct tsvd_context *ctx = &own->ctx;
    struct work *w = &own->work;
    const struct tsvd_backend *backend = ctx->backend;
    const real_int exponent = w->exponent[0];
    const int lower = ctx->options->lower;
    struct vectors left, right;
    double clock;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(backend->vectors_begin(ctx, n, n, 1, L, R, &left, &right));
    r_scale(w->d, n, exponent, w->sd);
    r_scale(w->e, n - 1, exponent, w->se);
    r_scale(&eps, 1, exponent, &eps);
    if (own->info.method == TSVD_METHOD_GIVENS) {
        TSVD_TRY(tsvdi_givens(ctx, n, w->sd, w->se, r_max(eps, R_EPS), lower ? left : right,
                              lower ? right : left, &own->info));
    } else {
        TSVD_TRY(tsvdi_qr(ctx, n, w->sd, w->se, eps, lower ? left : right, lower ? right : left,
                          &own->info));
    }
    clock = tsvdi_host_seconds();
    rank(w, n, exponent, w->se);
    if (L) {
        TSVD_TRY(backend->order(ctx, w->from, w->negative, left, right));
        TSVD_TRY(backend->vectors_end(ctx, left, right, L, R));
    }
    own->info.seconds_vectors += tsvdi_host_seconds() - clock;
out:
    backend->vectors_free(ctx, &left, &right);
    return ret;
}

/* The decompositions of the matrices in w->d, w->e, of which one alone is neither zero nor
   non-finite. */
static tsvd_status
decompose(struct worker *own, const tsvd_problem *p, int64_t count, real *s, real *L, real *R)
{
    struct tsvd_context *ctx = &own->ctx;
    struct work *w = &own->work;
    tsvd_info *info = &own->info;
    const real eps = REAL(fmin(fmax(ctx->options->eps, 0), R_LARGEST));
    struct values_job values = {.n = p->n,
                                .batch = count,
                                .first = p->first,
                                .last = p->first + p->k,
                                .d = w->d,
                                .e = w->e,
                                .eps = eps,
                                .s = s};
    double clock;
    tsvd_status ret = TSVD_OK;

    /* small matrices of a batch are bisected side by side, which serves all alike */
    info->method =
        choose_method(ctx->options, p, ctx->total > 1 && p->n <= DC_LEAF_COLUMNS ? NULL : w);
    if (info->method == TSVD_METHOD_DC) {
        return run_dc(own, p, count, eps, s, L, R);
    }
    if (info->method != TSVD_METHOD_BISECT) {
        TSVD_TRY(run_rotations(own, p->n, eps, L, R));
        if (info->method == TSVD_METHOD_GIVENS || eps > 0) { /* good to eps, as was asked */
            memcpy(s, w->hint + p->first, (size_t)p->k * sizeof *s);
            goto out;
        }
        values.hint = w->hint + p->first;
    }
    clock = tsvdi_host_seconds();
    TSVD_TRY(ctx->backend->values(ctx, &values));
    info->seconds_values += tsvdi_host_seconds() - clock;
    info->iterations += info->method == TSVD_METHOD_BISECT ? values.counts : 0;
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
    done = ((double)ctx->index + done * (double)ctx->count) / (double)ctx->total;
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
read_matrix(const tsvd_problem *p, int64_t index, real *d, real *e)
{
    ptrdiff_t d_offset, e_offset;
    real largest;

    locate(p, index, &d_offset, &e_offset);
    largest = tsvdi_gather((const char *)p->d + d_offset, p->d_stride, p->n, d);
    if (p->n > 1) {
        largest =
            r_max(largest, tsvdi_gather((const char *)p->e + e_offset, p->e_stride, p->n - 1, e));
    }
    e[p->n - 1] = 0;
    return largest;
}

static tsvd_status
refuse_nonfinite(tsvd_error *error)
{
    return tsvdi_fail(error, TSVD_ERR_NONFINITE, "%s", tsvd_strstatus(TSVD_ERR_NONFINITE));
}

/* Refuses NaN and infinity before any work on a batch that takes more than a chunk. */
static tsvd_status
check_finite(const tsvd_problem *p, int64_t total, struct work *w, tsvd_error *error)
{
    for (int64_t i = 0; i < total; i++) {
        if (!r_isfinite(read_matrix(p, i, w->d, w->e))) {
            error->matrix = total > 1 ? i : -1;
            return refuse_nonfinite(error);
        }
    }
    return TSVD_OK;
}

/* Reads the matrices of a chunk; returns how many of them are ordinary. */
static int64_t
read_chunk(const tsvd_problem *p, int64_t begin, int64_t count, struct work *w)
{
    int64_t ordinary = 0;

    for (int64_t i = 0; i < count; i++) {
        real *d = w->d + i * p->n, *e = w->e + i * p->n;
        real largest = read_matrix(p, begin + i, d, e);

        w->kind[i] = !r_isfinite(largest) ? NONFINITE : largest == 0 ? ZERO : ORDINARY;
        w->exponent[i] = 0;
        if (w->kind[i] == ORDINARY) {
            (void)r_split(largest, &w->exponent[i]);
            ordinary++;
        } else {
            memset(d, 0, (size_t)p->n * sizeof *d);
            memset(e, 0, (size_t)p->n * sizeof *e);
        }
    }
    return ordinary;
}

static tsvd_status
solve_chunk(void *arg, int worker, int64_t index)
{
    const struct job *job = arg;
    const tsvd_problem *p = job->problem;
    const int64_t begin = index * job->chunk, left = job->total - begin;
    const int64_t count = left < job->chunk ? left : job->chunk, matrix = p->n * p->k;
    struct worker *own = &job->worker[worker];
    real *s = (real *)p->s + begin * p->k;
    real *L = p->L ? (real *)p->L + begin * matrix : NULL;
    real *R = p->L ? (real *)p->R + begin * matrix : NULL;
    int64_t ordinary;
    tsvd_status ret = TSVD_OK;

    own->ctx.index = begin;
    own->ctx.count = count;
    own->ctx.done = 0;
    own->error.matrix = 0;
    ordinary = read_chunk(p, begin, count, &own->work);
    for (int64_t i = 0; own->ctx.options->check_finite && i < count; i++) {
        if (own->work.kind[i] == NONFINITE) {
            own->error.matrix = i;
            TSVD_TRY(refuse_nonfinite(&own->error));
        }
    }
    if (ordinary > 0) {
        TSVD_TRY(decompose(own, p, count, s, L, R));
    }
    for (int64_t i = 0; i < count; i++) {
        real *left_of = L ? L + i * matrix : NULL, *right_of = L ? R + i * matrix : NULL;

        if (own->work.kind[i] == NONFINITE) {
            fill_nan(p, s + i * p->k, left_of, right_of);
        } else if (own->work.kind[i] == ZERO) {
            fill_zero(p, s + i * p->k, left_of, right_of);
        }
    }
    TSVD_TRY(tsvdi_check(&own->ctx, 1));
out:
    if (ret != TSVD_OK) {
        own->error.matrix = job->total > 1 ? begin + own->error.matrix : -1;
    }
    return ret;
}

/* Adds up what the workers did; the error is that of the least matrix that failed, whose
   status for_each returned. */
static void
collect(const struct worker *worker, int64_t workers, tsvd_info *info, tsvd_error *error)
{
    int64_t failed = INT64_MAX;

    for (int64_t i = 0; i < workers; i++) {
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

/* A worker, zeroed before, that computes with its own error in the place of ctx's; its back end is
   open, memory for its work is not taken. */
static tsvd_status
worker_begin(struct worker *own, const struct tsvd_context *ctx)
{
    tsvd_status ret = TSVD_OK;

    own->error.matrix = -1;
    own->ctx = *ctx;
    own->ctx.error = &own->error;
    TSVD_TRY(own->ctx.backend->open(&own->ctx));
out:
    if (ret != TSVD_OK) {
        *ctx->error = own->error;
        worker_end(own);
    }
    return ret;
}

/* Matrices that each of the workers is given at once. */
static int64_t
chunk_for(struct tsvd_context *ctx, const tsvd_problem *p, int64_t total, int64_t workers)
{
    const tsvd_method method = choose_method(ctx->options, p, NULL);
    const int64_t share = (total + workers - 1) / workers;
    int64_t most = 1;

    if (method == TSVD_METHOD_DC || method == TSVD_METHOD_BISECT) {
        most = ctx->backend->batch_most(ctx, p->n, p->L != NULL);
    }
    return most < share ? most : share;
}

tsvd_status
tsvdi_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
          tsvd_error *error)
{
    enum { FEW = 4 }; /* workers that need no allocation */
    struct worker few[FEW];
    struct job job = {problem, few, 1, 1};
    struct tsvd_context ctx = {.options = options, .error = error, .is_caller = 1};
    const int threads = tsvdi_host_threads_for(options->threads);
    int64_t chunks, ready = 0, workers = 1;
    tsvd_status ret = TSVD_OK;

    ctx.backend = options->device < 0 ? &tsvdi_cpu : tsvdi_cuda();
    if (!ctx.backend) {
        return tsvdi_fail(error, TSVD_ERR_NO_DEVICE, "tsvd was built without CUDA");
    }
    for (int k = 0; k < problem->batch_ndim; k++) {
        job.total *= problem->batch_shape[k];
    }
    /* where there is nothing to do, nor to choose by */
    info->method = choose_method(options, problem, NULL);
    if (problem->n == 0 || job.total == 0) {
        goto out;
    }
    if (options->device < 0 && problem->n <= BATCH_ORDER_MAX) {
        workers = job.total < threads ? job.total : threads;
    }
    ctx.total = job.total;
    ctx.threads = workers > 1 ? 1 : threads;
    if (workers > FEW) {
        job.worker = NULL;
        TSVD_TRY(tsvdi_host_alloc((size_t)workers * sizeof *few, error, (void **)&job.worker));
    }
    memset(job.worker, 0, (size_t)workers * sizeof *few);
    for (; ready < workers; ready++) {
        TSVD_TRY(worker_begin(&job.worker[ready], &ctx));
        ctx.is_caller = 0;
    }
    job.chunk = chunk_for(&job.worker[0].ctx, problem, job.total, workers);
    chunks = (job.total + job.chunk - 1) / job.chunk;
    workers = workers < chunks ? workers : chunks;
    for (int64_t i = 0; i < workers; i++) {
        TSVD_TRY(work_alloc(&job.worker[i].ctx, problem->n, job.chunk, &job.worker[i].work));
    }
    if (options->check_finite && (chunks > 1 || problem->k == 0)) {
        TSVD_TRY(check_finite(problem, job.total, &job.worker[0].work, error));
    }
    if (problem->k > 0) {
        ret = tsvdi_host_for_each((int)workers, chunks, solve_chunk, &job);
    }
    collect(job.worker, workers, info, error);
out:
    for (int64_t i = 0; i < ready; i++) {
        worker_end(&job.worker[i]);
    }
    if (job.worker != few) {
        tsvdi_host_free(job.worker);
    }
    return ret;
}
