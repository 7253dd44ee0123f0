/*
 * CUDA back end: singular values by Sturm counts.  Mirrors csrc/cpu_values.c.
 *
 * Values are few and recurrences long, so a round cuts the bracket of every value at several
 * points at once (bracket.h), as many as fill the device, one thread for a few of them.  The
 * values that are still open are listed anew after each round.
 *
 * The first search counts with the plain form of sturm.h, in double for both precisions; the
 * second looks around what it found, with the wide form: its counts alone decide, and they
 * are the CPU's.
 */
#include "bracket.h"
#include "counts.h"

extern "C" {
#include "cpu_kernels.h"
}

enum {
    LIST_THREADS = 1024,
    LIST_EACH = 8, /* places of a thread */
    DIGITS = 64    /* of the bits of a real, and one */
};

/* In the first round from scratch: powers of two below the largest value. */
enum { SAMPLED_BINADES = 64 };

/* How finely the number of rounds that are left is told. */
static const double ROUNDS_STEP = 1. / 64;

/* Of the work of a search that is left, so much is taken to be left after another round. */
static const double SHARE_LEFT = 0.9;

/* Entries times shifts of one launch, about half a second. */
static const double PLAIN_STEPS = 2e12, WIDE_STEPS = 2e11;

/* One round: each bracket listed is cut. */
struct values_round {
    struct bracket *d_bracket; /* of all values */
    const int64_t *d_list;     /* [open] the values that are open, ascending */
    const int64_t *d_begin;    /* [open + 1] where the points of each begin */
    int64_t *d_above;          /* [points] counts */
    int64_t open, points;
    struct bracket_range range;
};

/* The cut of the bracket listed at i, and the place of its first point. */
static __device__ __forceinline__ struct bracket_grid
cut_of(const struct values_round &q, int64_t i, const struct bracket *b, int64_t *first)
{
    const int64_t each = q.d_begin[i + 1] - q.d_begin[i];

    /* the members of a cluster are all open, and so listed one after another */
    *first = q.d_begin[i] - (q.d_list[i] - b->first) * each;
    return bracket_cut(b, each, q.range);
}

/* The shift at a point; the last one's beyond the points. */
static __device__ real
shift_at(const struct values_round &q, int64_t point)
{
    const int64_t at = bracket_min(point, q.points - 1);
    int64_t i = 0, end = q.open, first;
    struct bracket b;
    struct bracket_grid cut;

    while (end - i > 1) {
        int64_t middle = i + (end - i) / 2;

        if (q.d_begin[middle] <= at) {
            i = middle;
        } else {
            end = middle;
        }
    }
    b = q.d_bracket[q.d_list[i]];
    cut = cut_of(q, i, &b, &first);
    return r_from_bits(bracket_point(&cut, at - first));
}

/* Counts at the points from `begin` on. */
template <class Form>
static __global__ void
__launch_bounds__(COUNT_THREADS)
    count_kernel(struct device_sturm m, struct values_round q, int64_t begin)
{
    const int64_t point = begin + (int64_t)blockIdx.x * block_shifts<Form> + threadIdx.x;
    real sigma[Form::SHIFTS];
    int64_t above[Form::SHIFTS];

#pragma unroll
    for (int s = 0; s < Form::SHIFTS; s++) {
        sigma[s] = shift_at(q, point + s * COUNT_THREADS);
    }
    count_above<Form>(m, sigma, above);
#pragma unroll
    for (int s = 0; s < Form::SHIFTS; s++) {
        if (point + s * COUNT_THREADS < q.points) {
            q.d_above[point + s * COUNT_THREADS] = above[s];
        }
    }
}

/* ---- brackets ---- */

enum { CLOSED = -1 }; /* in the place of the digits of a bracket */

static __device__ __forceinline__ signed char
digits_of(const struct bracket &b, struct bracket_range range)
{
    return (signed char)(bracket_is_closed(&b, range) ? (int)CLOSED : bracket_digits(&b));
}

/* The bracket of each listed value after a round. */
static __global__ void
narrow_kernel(struct values_round q, signed char *d_digits)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < q.open) {
        const int64_t value = q.d_list[i];
        struct bracket b = q.d_bracket[value];
        int64_t first;
        const struct bracket_grid cut = cut_of(q, i, &b, &first);

        bracket_narrow(&b, value, &cut, q.d_above + first);
        q.d_bracket[value] = b;
        d_digits[i] = digits_of(b, q.range);
    }
}

/* Brackets to start from: of all values, or around hints in descending order. */
static __global__ void
start_kernel(int64_t n, const real *d_hint, real error, real_int lowest, struct bracket_range range,
             struct bracket *d_bracket, signed char *d_digits)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        struct bracket b = d_hint != NULL
                               ? bracket_around_hint(i, d_hint[i], error, HINT_ULPS, range)
                               : bracket_of_all(n, lowest, range);

        d_bracket[i] = b;
        d_digits[i] = digits_of(b, range);
    }
}

/* Brackets for the wide form after those of the plain form. */
static __global__ void
restart_kernel(int64_t n, struct bracket_errors errors, struct bracket_range range,
               struct bracket *d_bracket, signed char *d_digits)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        struct bracket b = bracket_around_found(i, &d_bracket[i], errors, range);

        d_bracket[i] = b;
        d_digits[i] = digits_of(b, range);
    }
}

/* The sum of x over the threads before this one, and in sum[LIST_THREADS - 1] over all. */
static __device__ __forceinline__ int64_t
sum_before(int64_t x, int64_t (&sum)[LIST_THREADS])
{
    const int thread = (int)threadIdx.x;

    sum[thread] = x;
    for (int step = 1; step < LIST_THREADS; step *= 2) {
        int64_t before;

        __syncthreads();
        before = thread >= step ? sum[thread - step] : 0;
        __syncthreads();
        sum[thread] += before;
    }
    __syncthreads();
    return sum[thread] - x;
}

/* A thread's LIST_EACH places of a list, and the sum of the weights of all places before.  Each
   block adds up what precedes its part by itself. */
template <class Weight>
static __device__ __forceinline__ int64_t
stretch_of(int64_t count, const signed char *d_digits, Weight weight, int64_t *begin, int64_t *end)
{
    __shared__ int64_t sum[LIST_THREADS];
    const int64_t part = (int64_t)blockIdx.x * LIST_THREADS * LIST_EACH;
    int64_t before = 0, here = 0;

    for (int64_t i = threadIdx.x; i < part; i += LIST_THREADS) {
        before += weight(d_digits[i]);
    }
    (void)sum_before(before, sum);
    before = sum[LIST_THREADS - 1];
    __syncthreads();
    *begin = bracket_min(part + (int64_t)threadIdx.x * LIST_EACH, count);
    *end = bracket_min(*begin + LIST_EACH, count);
    for (int64_t i = *begin; i < *end; i++) {
        here += weight(d_digits[i]);
    }
    return before + sum_before(here, sum);
}

/* What is open, for the host. */
struct census {
    unsigned long long open;
    unsigned long long digits[DIGITS]; /* brackets by their digits */
};

/* Lists the values that are open, of `count` that were listed before (NULL: all), in their
   order, and their digits, and adds them to the census. */
static __global__ void
__launch_bounds__(LIST_THREADS)
    list_kernel(int64_t count, const int64_t *d_before, const signed char *d_digits_before,
                int64_t *d_list, signed char *d_digits, struct census *d_census)
{
    __shared__ unsigned long long digits[DIGITS];
    const int thread = (int)threadIdx.x;
    int64_t begin, end, at;

    if (thread < DIGITS) {
        digits[thread] = 0;
    }
    at = stretch_of(
        count, d_digits_before, [](signed char x) { return x != CLOSED; }, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        if (d_digits_before[i] != CLOSED) {
            d_list[at] = d_before != NULL ? d_before[i] : i;
            d_digits[at++] = d_digits_before[i];
            atomicAdd(&digits[d_digits_before[i]], 1ULL);
        }
    }
    __syncthreads();
    if (thread < DIGITS && digits[thread] > 0) {
        atomicAdd(&d_census->digits[thread], digits[thread]);
        atomicAdd(&d_census->open, digits[thread]);
    }
}

/* Points of a bracket by its digits. */
struct share {
    int64_t each[DIGITS];
};

/* Where the points of each of `open` brackets begin, and where the last one's end. */
static __global__ void
__launch_bounds__(LIST_THREADS)
    share_kernel(int64_t open, const signed char *d_digits, struct share share, int64_t *d_begin)
{
    int64_t begin, end, at;

    at = stretch_of(
        open, d_digits, [&share](signed char x) { return share.each[x]; }, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        d_begin[i] = at;
        at += share.each[d_digits[i]];
    }
    if (begin < end && end == open) {
        d_begin[open] = at;
    }
}

static __global__ void
value_kernel(int64_t n, const struct bracket *d_bracket, real *d_s)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        d_s[i] = bracket_value(&d_bracket[i]);
    }
}

/* ---- rounds ---- */

struct values_job {
    struct tsvd_context *ctx;
    int64_t n, *counts;
    struct device_sturm m;
    struct values_round q;
    struct census census;
    int64_t *d_list[2], *d_begin;
    signed char *d_digits[2];
    struct census *d_census;
    int latest;        /* of d_list and d_digits */
    double begin, end; /* share of the work that is done before and after the search */
};

static unsigned
blocks_for(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

/* Points of `blocks` blocks for each multiprocessor. */
template <class Form>
static int64_t
points_that_fill(const struct values_job *job, int64_t blocks)
{
    return cuda_of(job->ctx)->multiprocessors * blocks * block_shifts<Form>;
}

/* Lists the open ones of `count` values: of all, or of those listed before. */
static tsvd_status
list_open(struct values_job *job, int64_t count, int all)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const int from = job->latest, to = 1 - from;
    tsvd_status ret = TSVD_OK;

    TSVD_CUDA(call, cudaMemsetAsync(job->d_census, 0, sizeof(job->census), call->stream));
    list_kernel<<<blocks_for(count, LIST_THREADS * LIST_EACH), LIST_THREADS, 0, call->stream>>>(
        count, all ? NULL : job->d_list[from], job->d_digits[from], job->d_list[to],
        job->d_digits[to], job->d_census);
    TSVD_LAUNCHED(call);
    TSVD_CUDA(call, cudaMemcpyAsync(call->pinned[0], job->d_census, sizeof(job->census),
                                    cudaMemcpyDeviceToHost, call->stream));
    TSVD_CUDA(call, cudaStreamSynchronize(call->stream));
    memcpy(&job->census, call->pinned[0], sizeof(job->census));
    job->latest = to;
    job->q.open = (int64_t)job->census.open;
    job->q.d_list = job->d_list[to];
out:
    return ret;
}

/* Points by digits so that all brackets close within the same number of rounds, and their
   sum. */
static int64_t
points_for(const struct census *census, double rounds, int64_t least, struct share *share)
{
    int64_t sum = 0;

    for (int k = 0; k < DIGITS; k++) {
        share->each[k] =
            census->digits[k] > 0 ? bracket_max((int64_t)fmin(exp2(k / rounds), 1e9), least) : 0;
        sum += (int64_t)census->digits[k] * share->each[k];
    }
    return sum;
}

/* Shares out the points of a round: about so many that `budget` allows, `least` or more for each
   bracket. */
static tsvd_status
share_out(struct values_job *job, int64_t budget, int64_t least)
{
    struct cuda_call *call = cuda_of(job->ctx);
    double low = 1, high = 1; /* rounds that are left */
    struct share share;
    tsvd_status ret = TSVD_OK;

    if (budget < job->q.open * least) { /* a little more for the widest */
        budget = job->q.open * least + job->q.open / 4;
    }
    if (points_for(&job->census, high, least, &share) > budget) {
        high = DIGITS; /* `least` for each: within every budget */
        while (high - low > ROUNDS_STEP) {
            double middle = (low + high) / 2;

            if (points_for(&job->census, middle, least, &share) <= budget) {
                high = middle;
            } else {
                low = middle;
            }
        }
    }
    job->q.points = points_for(&job->census, high, least, &share);
    share_kernel<<<blocks_for(job->q.open, LIST_THREADS * LIST_EACH), LIST_THREADS, 0,
                   call->stream>>>(job->q.open, job->d_digits[job->latest], share, job->d_begin);
    TSVD_LAUNCHED(call);
    job->q.d_begin = job->d_begin;
out:
    return ret;
}

/* Counts at all points of a round, in launches of at most so many entries times shifts. */
template <class Form>
static tsvd_status
count_points(struct values_job *job, double steps, double done)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const int64_t points = job->q.points, block = block_shifts<Form>;
    const int64_t most =
        bracket_max((int64_t)(steps / (double)(job->m.groups * GROUP)) / block, 1) * block;
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = 0; begin < points; begin += most) {
        const int64_t here = bracket_min(points - begin, most);

        count_kernel<Form>
            <<<blocks_for(here, block), COUNT_THREADS, 0, call->stream>>>(job->m, job->q, begin);
        TSVD_LAUNCHED(call);
        if (points > most) {
            TSVD_CUDA(call, cudaStreamSynchronize(call->stream));
            TSVD_TRY(tsvdi_check(job->ctx, done));
        }
    }
    *job->counts += points;
out:
    return ret;
}

/* Narrows brackets, which may be closed from the start, until all are; `budget` points a
   round, in the first one `least` or more for each. */
template <class Form>
static tsvd_status
search(struct values_job *job, double steps, int64_t budget, int64_t least)
{
    struct cuda_call *call = cuda_of(job->ctx);
    double left = job->end - job->begin;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(list_open(job, job->n, 1));
    while (job->q.open > 0) {
        TSVD_TRY(share_out(job, budget, least));
        TSVD_TRY(count_points<Form>(job, steps, job->end - left));
        narrow_kernel<<<blocks_for(job->q.open, 256), 256, 0, call->stream>>>(
            job->q, job->d_digits[job->latest]);
        TSVD_LAUNCHED(call);
        TSVD_TRY(list_open(job, job->q.open, 0));
        left *= SHARE_LEFT;
        TSVD_TRY(tsvdi_check(job->ctx, job->end - left));
        least = 1;
    }
out:
    return ret;
}

static void
free_all(struct values_job *job, char *d_matrix, real *d_values)
{
    struct cuda_call *call = cuda_of(job->ctx);

    tsvdi_cuda_free(call, d_matrix);
    tsvdi_cuda_free(call, d_values);
    tsvdi_cuda_free(call, job->q.d_bracket);
    tsvdi_cuda_free(call, job->q.d_above);
    tsvdi_cuda_free(call, job->d_begin);
    tsvdi_cuda_free(call, job->d_census);
    for (int i = 0; i < 2; i++) {
        tsvdi_cuda_free(call, job->d_list[i]);
        tsvdi_cuda_free(call, job->d_digits[i]);
    }
}

/* Room on the device for all but the matrix. */
static tsvd_status
alloc_all(struct values_job *job, real **d_values)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const size_t n = (size_t)job->n;
    const int64_t points = bracket_max(job->n * 2 + job->n / 4,
                                       bracket_max(points_that_fill<plain_form>(job, PLAIN_BLOCKS),
                                                   points_that_fill<wide_form>(job, WIDE_BLOCKS)));
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, n * sizeof(real), (void **)d_values));
    TSVD_TRY(tsvdi_cuda_alloc(call, n * sizeof(struct bracket), (void **)&job->q.d_bracket));
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)points * sizeof(int64_t), (void **)&job->q.d_above));
    TSVD_TRY(tsvdi_cuda_alloc(call, (n + 1) * sizeof(int64_t), (void **)&job->d_begin));
    TSVD_TRY(tsvdi_cuda_alloc(call, sizeof(struct census), (void **)&job->d_census));
    for (int i = 0; i < 2; i++) {
        TSVD_TRY(tsvdi_cuda_alloc(call, n * sizeof(int64_t), (void **)&job->d_list[i]));
        TSVD_TRY(tsvdi_cuda_alloc(call, n, (void **)&job->d_digits[i]));
    }
out:
    return ret;
}

/* The matrix to the device; *plain: whether the plain form serves, for values from
 *plain_from (bits) on. */
static tsvd_status
upload(struct values_job *job, const struct sturm *matrix, char **d_matrix, int *plain,
       real_int *plain_from)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const int64_t groups = (matrix->entries + GROUP - 1) / GROUP, whole = plain_form::TILE_GROUPS;
    const int64_t room = (groups + whole - 1) / whole * whole;
    const size_t bytes = sturm_bytes(room);
    struct host_sturm h;
    void *p = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(bytes, job->ctx->error, &p));
    memset(p, 0, bytes);
    lay_out((char *)p, room, &h);
    pack(matrix, &h);
    *plain = h.plain;
    *plain_from = (real_int)bracket_max(r_bits(R(ldexp(1, (int)h.scale + PLAIN_LEAST))), 1);
    TSVD_TRY(tsvdi_cuda_alloc(call, bytes, (void **)d_matrix));
    TSVD_TRY(tsvdi_cuda_upload(call, *d_matrix, p, bytes));
    lay_out(*d_matrix, room, &h);
    job->m.d_wide = h.wide;
    job->m.d_square = h.square;
    job->m.d_event = h.event;
    job->m.groups = groups;
    job->m.scale_down[0] = matrix->scale_down[0];
    job->m.scale_down[1] = matrix->scale_down[1];
out:
    tsvdi_host_free(p);
    return ret;
}

/*
 * Where the wide form looks at first.  Of 10,000 values of random, chi, Toeplitz and graded
 * matrices, 80 to 99 % came right out of the plain form, and all but a few off by one ulp;
 * those were small.  In single precision, where the plain form has twice the digits, all
 * came right.  As long as a round does not fill the device, it may as well settle them all:
 * what it leaves to another costs the whole latency of the recurrence again.
 */
static struct bracket_errors
errors_of_plain(const struct values_job *job)
{
    const int64_t room = points_that_fill<wide_form>(job, WIDE_BLOCKS) / job->n;
    struct bracket_errors errors = {{0, 0, 0}, 1};

    if (!TSVD_SINGLE && room >= 5) {
        errors = {{room >= 20 ? 3 : 1, 3, 31}, 1023};
    } else {
        while (errors.reach * 2 < room * 4) { /* a quarter of the values */
            errors.reach *= 2;
        }
    }
    return errors;
}

/* Finds all brackets and leaves the values in d_values, which may hold hints. */
static tsvd_status
find_values(struct values_job *job, const real *d_hint, int plain, real *d_values)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const int64_t n = job->n;
    const unsigned blocks = blocks_for(n, 256);
    const real_int top = job->q.range.top;
    /* what an algorithm that is backward stable leaves */
    const real error = R(HINT_ULPS) * R_EPS * r_from_bits(top < R_INFINITY_BITS ? top : top - 1);
    const int64_t lowest = (int64_t)top - ((int64_t)SAMPLED_BINADES << R_DIGITS);
    int64_t least = d_hint != NULL ? 2 : 1;
    tsvd_status ret = TSVD_OK;

    start_kernel<<<blocks, 256, 0, call->stream>>>(
        n, d_hint, error, (real_int)(plain ? bracket_max(lowest, 0) : 0), job->q.range,
        job->q.d_bracket, job->d_digits[job->latest]);
    TSVD_LAUNCHED(call);
    if (plain) {
        TSVD_TRY(search<plain_form>(job, PLAIN_STEPS,
                                    points_that_fill<plain_form>(job, PLAIN_BLOCKS), least));
        job->q.range.floor = 0;
        restart_kernel<<<blocks, 256, 0, call->stream>>>(
            n, errors_of_plain(job), job->q.range, job->q.d_bracket, job->d_digits[job->latest]);
        TSVD_LAUNCHED(call);
        least = 2;
    }
    job->begin = job->end;
    job->end = 1;
    TSVD_TRY(
        search<wide_form>(job, WIDE_STEPS, points_that_fill<wide_form>(job, WIDE_BLOCKS), least));
    value_kernel<<<blocks, 256, 0, call->stream>>>(n, job->q.d_bracket, d_values);
    TSVD_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_values(struct tsvd_context *ctx, const struct sturm *matrix, const real *hint, real eps,
                  real *s, int64_t *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = matrix->n;
    struct values_job job;
    char *d_matrix = NULL;
    real *d_values = NULL;
    real_int plain_from = 0;
    int plain = 0;
    tsvd_status ret = TSVD_OK;

    if (n <= VALUES_CPU_ORDER) {
        return tsvdi_cpu_values(ctx, matrix, hint, eps, s, counts);
    }
    memset(&job, 0, sizeof(job));
    job.ctx = ctx;
    job.n = n;
    job.counts = counts;
    job.begin = ctx->done;
    TSVD_TRY(alloc_all(&job, &d_values));
    TSVD_TRY(upload(&job, matrix, &d_matrix, &plain, &plain_from));
    if (hint != NULL) {
        TSVD_TRY(tsvdi_cuda_upload(call, d_values, hint, (size_t)n * sizeof(real)));
    }
    job.q.range.floor = plain ? plain_from : 0;
    job.q.range.top = matrix->top;
    job.q.range.eps = eps;
    job.end = plain ? (1 + job.begin) / 2 : job.begin;
    TSVD_TRY(find_values(&job, hint != NULL ? d_values : NULL, plain, d_values));
    TSVD_TRY(tsvdi_cuda_download(call, ctx->threads, s, d_values, (size_t)n * sizeof(real)));
    /* Counts are monotone but for rounding: neighbours may have crossed by an ulp. */
    for (int64_t i = 1; i < n; i++) {
        s[i] = r_min(s[i], s[i - 1]);
    }
out:
    free_all(&job, d_matrix, d_values);
    return ret;
}
