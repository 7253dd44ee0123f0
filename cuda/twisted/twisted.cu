/*
 * Twisted factorisations on the device: the operations of the seam, the matrix, and the values with
 * their gates.  Mirrors csrc/cpu/twisted/twisted.c.
 */
#include "twisted/twisted_run.h"

enum { THREADS = 256 };

/* The state of a run, on the host. */
struct cuda_twisted {
    struct twisted_device device;
    struct twisted_block block;
    void *d_arrays;       /* all device arrays but results, one allocation */
    real *d_workspace[2]; /* on the device, for d and e if they are on the host */
    struct vectors left, right;
    cudaEvent_t begin, end; /* of the device's work */
};

static struct cuda_twisted *
run_of(struct twisted_job *job)
{
    return (struct cuda_twisted *)job->state;
}

/* ---- begin and end ---- */

/* Values of a block. */
static int64_t
block_width(int64_t n, int64_t k)
{
    const uint64_t most = TWISTED_BLOCK_BYTES / bytes_of(2 * n, sizeof(double)) / WARP * WARP;
    const int64_t all = (k + WARP - 1) / WARP * WARP;

    return most < (uint64_t)all ? (int64_t)(most > WARP ? most : (uint64_t)WARP) : all;
}

/* How many segments the rows of T are cut into, and how many rows they have.  The walk takes
   longest with one segment, the join with many: a step of either takes about the same time.  More
   warps than a GPU can hold do not help. */
static void
cut_rows(int64_t n, int64_t width, struct twisted_segments *segments)
{
    const int64_t rows = 2 * n, groups = width / WARP;
    int64_t most = (int64_t)sqrt(SEGMENT_STEPS * (double)rows), each;

    most = most < SEGMENT_WARPS / groups ? most : SEGMENT_WARPS / groups;
    if (n <= VALUES_SMALL_ORDER || most < SEGMENTS_LEAST) {
        most = 1;
    }
    each = blocks_for(blocks_for(rows, most), WARP) * (int64_t)WARP;
    segments->rows = (int)each;
    segments->count = (int)blocks_for(rows, each);
}

/* Slices of the rows that find the signs of vectors: blocks for a whole GPU, of SIGN_ROWS rows or
   more. */
static int
sign_slices(int64_t n, int64_t width)
{
    const int64_t blocks = SIGN_BLOCKS / (width / WARP), most = n / SIGN_ROWS;
    const int64_t slices = blocks < most ? blocks : most;

    return slices > 1 ? (int)slices : 1;
}

/* Lays the arrays out from `base` on.  Returns their bytes.  Segments are those of the whole call,
   whose bits depend on them. */
static size_t
lay_out(struct cuda_twisted *run, char *base)
{
    struct twisted_device *r = &run->device;
    struct twisted_block *block = &run->block;
    struct twisted_segments *segments = &block->segments;
    const int64_t n = r->n, k = r->k, width = block_width(n, k);
    const int64_t down = blocks_for(n, probe_slice(n, k)) * k,
                  across = blocks_for(k, probe_slice(k, n)) * n;
    const int64_t parts = (down > across ? down : across) * PROBE_COLUMNS;
    size_t at = 0;

    r->facts = carve<struct twisted_facts>(base, &at, 1);
    run->d_workspace[0] = carve<real>(base, &at, n);
    run->d_workspace[1] = carve<real>(base, &at, n);
    r->b = carve<double>(base, &at, 2 * n);
    r->square = carve<double>(base, &at, 2 * n);
    r->rest = carve<double>(base, &at, 2 * n);
    r->double_d = carve<double>(base, &at, n);
    r->double_e = carve<double>(base, &at, n);
    r->found = carve<double>(base, &at, found_numbers(r->whole_k));
    r->value = carve<double>(base, &at, k);
    r->s = carve<real>(base, &at, k);
    r->probe = carve<double>(base, &at, k * PROBE_COLUMNS);
    r->sums[0] = carve<double>(base, &at, n * PROBE_COLUMNS);
    r->sums[1] = carve<double>(base, &at, n * PROBES);
    r->seen[0] = carve<double>(base, &at, k * PROBES);
    r->seen[1] = carve<double>(base, &at, k * PROBES);
    r->parts = carve<double>(base, &at, parts);
    block->width = width;
    block->z = carve<double>(base, &at, 2 * n * width);
    block->power = carve<int>(base, &at, (2 * n / LEAST_STRIDE + 1) * width);
    block->value = carve<int>(base, &at, width);
    block->twist = carve<int64_t>(base, &at, width);
    block->factor[0] = carve<double>(base, &at, width);
    block->factor[1] = carve<double>(base, &at, width);
    cut_rows(n, block_width(n, r->whole_k), segments);
    if (segments->count > 1) {
        segments->chain =
            carve<double>(base, &at, (int64_t)ENDS * segments->count * CHAIN_PARTS * width);
        segments->summary =
            carve<double>(base, &at, (int64_t)SUMMARY_PARTS * segments->count * width);
        segments->state = carve<struct twisted_value>(base, &at, width);
    }
    block->tied = carve<char>(base, &at, width);
    block->slices = sign_slices(n, width);
    block->largest = carve<struct twisted_largest>(base, &at, block->slices * width);
    return at;
}

/* The entries of T, their squares, and the least of them. */
static __global__ void
__launch_bounds__(THREADS) entry_kernel(struct twisted_device run)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const bool odd = k % 2 != 0;
    unsigned long long smallness = 0;

    if (k < 2 * run.n) {
        const double x = ldexp((double)(odd ? run.e[k / 2] : run.d[k / 2]), (int)-run.exponent);

        run.b[k] = twisted_entry(x, &run.square[k], &run.rest[k]);
        (odd ? run.double_e : run.double_d)[k / 2] = x;
        smallness = k < 2 * run.n - 1 ? ~(unsigned long long)__double_as_longlong(fabs(x)) : 0;
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, smallness, lanes);

        smallness = other > smallness ? other : smallness;
    }
    if (threadIdx.x % WARP == 0) {
        atomicMax(&run.facts->smallness, smallness);
    }
}

/* Memory for the vectors: the results' own, or as much on the device if they go to the host. */
static tsvd_status
take_vectors(struct tsvd_context *ctx, const struct twisted_job *job, struct cuda_twisted *run)
{
    const int64_t side = job->n * job->k;
    tsvd_status ret = TSVD_OK;

    run->left = run->right = {NULL, job->n, job->k, 1, 0};
    if (ctx->call->to == TSVD_CUDA) {
        run->left.x = job->to.L;
        run->right.x = job->to.R;
    } else {
        TSVD_TRY(tsvdi_cuda_alloc(cuda_of(ctx), bytes_of(2 * side, sizeof(real)),
                                  (void **)&run->left.x));
        run->right.x = run->left.x + side;
    }
out:
    return ret;
}

static void
twisted_end(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cuda_twisted *run = run_of(job);

    if (run == NULL) {
        return;
    }
    tsvdi_cuda_vectors.free(ctx, &run->left, &run->right);
    if ((uint64_t)job->k * sizeof(real) > SENT_BYTES) { /* the values may be in flight */
        tsvdi_cuda_free_after_downloads(cuda_of(ctx), run->d_arrays);
    } else {
        tsvdi_cuda_free(cuda_of(ctx), run->d_arrays);
    }
    if (run->begin != NULL) {
        (void)cudaEventDestroy(run->begin);
    }
    if (run->end != NULL) {
        (void)cudaEventDestroy(run->end);
    }
    tsvdi_free(ctx, run);
    job->state = NULL;
}

static tsvd_status
twisted_begin(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_twisted *run = NULL;
    struct twisted_device *r;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, sizeof(*run), (void **)&run));
    memset(run, 0, sizeof(*run));
    job->state = run;
    r = &run->device;
    r->n = job->n;
    r->first = job->first;
    r->k = job->k;
    r->whole_first = ctx->problem->whole_first;
    r->whole_k = ctx->problem->whole_k;
    r->lower = job->lower;
    r->exponent = job->chunk->exponent[0];
    TSVD_TRY(take_vectors(ctx, job, run));
    r->columns = run->left.x;
    r->rows = run->right.x;
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(run, NULL), &run->d_arrays));
    (void)lay_out(run, (char *)run->d_arrays);
    if (ctx->call->to == TSVD_CUDA) {
        r->s = job->to.s;
    }
    TSVD_TRY(cuda_entries(call, job->chunk, r->n, run->d_workspace, &r->d, &r->e));
    CUDA_TRY(call, cudaEventCreate(&run->begin));
    CUDA_TRY(call, cudaEventCreate(&run->end));
    CUDA_TRY(call, cudaEventRecord(run->begin, call->stream));
    if (r->n > VALUES_SMALL_ORDER) {
        CUDA_TRY(call, cudaMemsetAsync(r->facts, 0, sizeof(*r->facts), call->stream));
        entry_kernel<<<blocks_for(2 * r->n, THREADS), THREADS, 0, call->stream>>>(*r);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* Notes the device's time so far. */
static tsvd_status
note_time(struct cuda_call *call, struct twisted_job *job)
{
    const struct cuda_twisted *run = run_of(job);
    float milliseconds = 0;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaEventRecord(run->end, call->stream));
    CUDA_TRY(call, cudaEventSynchronize(run->end));
    CUDA_TRY(call, cudaEventElapsedTime(&milliseconds, run->begin, run->end));
    job->seconds_device = 1e-3 * (double)milliseconds;
out:
    return ret;
}

/* ---- whether it pays ---- */

/* The attempt itself is short for a small matrix, and for few values.  Else it pays if divide and
   conquer would have much to multiply. */
static tsvd_status
twisted_pays(struct tsvd_context *ctx, struct twisted_job *job, int *answer)
{
    struct cuda_twisted *run = run_of(job);
    double share = 1, least = 1;
    tsvd_status ret = TSVD_OK;

    if (job->n > VALUES_SMALL_ORDER && !few_wanted(job->n, run->device.whole_k)) {
        TSVD_TRY(tsvdi_cuda_twisted_share(cuda_of(ctx), &run->device, (char *)run->block.z, &share,
                                          &least));
    }
    *answer = share >= (least > TWISTED_GENTLE ? TWISTED_SURVIVORS : TWISTED_SURVIVORS_GRADED);
    if (!*answer) {
        TSVD_TRY(note_time(cuda_of(ctx), job));
    }
out:
    return ret;
}

/* ---- values ---- */

/* Of `count` values from number `begin` of the whole call on, counts in `refused` the wanted ones
   that are too small or too close to another one, and in `coarse` those that are closer than
   `margin` to another one or to zero: for them the error of `found` is too large. */
static __global__ void
__launch_bounds__(THREADS)
    gap_kernel(struct twisted_device run, int64_t begin, int64_t count, double margin)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t value = run.whole_first - run.first + begin + i; /* negative: before the wanted */
    const bool wanted = i < count && value >= 0 && value < run.k;

    if (i < count && twisted_takes(run)) {
        const double x = found_at(run, value), gap = gap_of(run, value);

        if (!(fmin(x, gap) >= margin)) {
            atomicAdd(&run.facts->coarse, 1ULL);
        }
        if (wanted && !twisted_parts(x, gap)) {
            atomicAdd(&run.facts->refused, 1ULL);
        }
    } else if (wanted) {
        atomicAdd(&run.facts->refused, 1ULL);
    }
}

/* Downloads what the kernels have found out. */
static tsvd_status
ask(struct cuda_call *call, struct twisted_job *job, struct twisted_facts *facts)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_download(call, facts, run_of(job)->device.facts, sizeof(*facts)));
    job->refused = (int64_t)facts->refused < job->k ? (int64_t)facts->refused : job->k;
    if (job->refused > 0) {
        TSVD_TRY(note_time(call, job));
    }
out:
    return ret;
}

/* `count` values of a larger matrix, from number `begin` of the whole call on: to TWISTED_WIDTH,
   which corrections need for most matrices.  If that is too coarse for a gap, again to neighbouring
   doubles. */
static tsvd_status
find_together(struct tsvd_context *ctx, struct twisted_job *job, int64_t begin, int64_t count)
{
    const struct twisted_device *r = &run_of(job)->device;
    const int64_t first = r->whole_first + begin, last = first + count;
    const int64_t from = first > 0 ? first - 1 : 0, to = last < r->n ? last + 1 : r->n;
    double *const d_found = r->found + found_place(begin) - (first - from);
    struct cuda_call *call = cuda_of(ctx);
    struct twisted_facts facts = {0, 0, 1};
    int64_t counts = 0;
    tsvd_status ret = TSVD_OK;

    for (int exact = 0; exact < 2 && facts.coarse > 0; exact++) {
        CUDA_TRY(call,
                 cudaMemsetAsync(&r->facts->refused, 0, 2 * sizeof(facts.refused), call->stream));
        TSVD_TRY(tsvdi_cuda_double_values(ctx, r->n, 1, r->double_d, r->double_e, from, to,
                                          exact ? d_found : NULL, exact ? 0 : TWISTED_WIDTH,
                                          d_found, &counts));
        gap_kernel<<<blocks_for(count, THREADS), THREADS, 0, call->stream>>>(
            *r, begin, count, exact ? 0 : TWISTED_MARGIN * TWISTED_WIDTH);
        CUDA_LAUNCHED(call);
        TSVD_TRY(ask(call, job, &facts));
    }
out:
    return ret;
}

/* The values of a larger matrix: those that are found together with a wanted one. */
static tsvd_status
find_values(struct tsvd_context *ctx, struct twisted_job *job)
{
    const struct twisted_device *r = &run_of(job)->device;
    const int64_t before = r->first - r->whole_first, last = before + r->k;
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = before / FOUND_TOGETHER * FOUND_TOGETHER;
         begin < last && job->refused == 0; begin += FOUND_TOGETHER) {
        const int64_t left = r->whole_k - begin, most = FOUND_TOGETHER;

        TSVD_TRY(find_together(ctx, job, begin, left < most ? left : most));
    }
out:
    return ret;
}

static tsvd_status
twisted_values(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct twisted_device *r = &run_of(job)->device;
    struct twisted_facts facts;
    tsvd_status ret = TSVD_OK;

    if (r->n > VALUES_SMALL_ORDER) {
        return find_values(ctx, job);
    }
    TSVD_TRY(tsvdi_cuda_twisted_values(call, r));
    if (r->n > PROBE_SMALL_ORDER) { /* else conclude() repeats this gate */
        gap_kernel<<<blocks_for(r->whole_k, THREADS), THREADS, 0, call->stream>>>(*r, 0, r->whole_k,
                                                                                  0);
        CUDA_LAUNCHED(call);
        TSVD_TRY(ask(call, job, &facts));
    }
out:
    return ret;
}

/* ---- vectors and probes ---- */

static tsvd_status
twisted_vectors(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cuda_twisted *run = run_of(job);
    struct twisted_block block = run->block;
    struct twisted_facts facts;
    tsvd_status ret = TSVD_OK;

    for (block.begin = 0; block.begin < job->k; block.begin += block.count) {
        const int64_t left = job->k - block.begin;

        block.count = left < run->block.width ? left : run->block.width;
        block.width = (block.count + WARP - 1) / WARP * WARP;
        TSVD_TRY(tsvdi_cuda_twisted_make(cuda_of(ctx), &run->device, &block));
    }
    if (job->n > PROBE_SMALL_ORDER) {
        TSVD_TRY(ask(cuda_of(ctx), job, &facts));
    }
    if (job->refused == 0 && job->n > PROBE_SMALL_ORDER) { /* sent while the probes read them */
        TSVD_TRY(tsvdi_cuda_vectors.end(ctx, run->left, run->right, job->to));
    }
out:
    return ret;
}

/* What the probes refuse may have been sent already: divide and conquer overwrites it. */
static tsvd_status
twisted_probe(struct tsvd_context *ctx, struct twisted_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    struct cuda_twisted *run = run_of(job);
    struct twisted_facts facts;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_twisted_probe(ctx, &run->device));
    TSVD_TRY(note_time(call, job));
    TSVD_TRY(ask(call, job, &facts));
    if (job->refused == 0 && job->n <= PROBE_SMALL_ORDER) {
        TSVD_TRY(tsvdi_cuda_vectors.end(ctx, run->left, run->right, job->to));
    }
    if (job->refused == 0 && ctx->call->to == TSVD_HOST) {
        TSVD_TRY(cuda_deliver(ctx, job->to.s, run->device.s, (size_t)job->k * sizeof(real)));
    }
out:
    return ret;
}

static struct bytes
twisted_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    /* a range may hold nothing */
    const int64_t k = plan->reported.count > 0 ? plan->reported.count : 1;
    const int64_t whole_k = plan->problem->whole_k > k ? plan->problem->whole_k : k;
    const struct bytes values = plan->backend->values->bytes(plan);
    struct bytes bytes = {sizeof(struct cuda_twisted), 0};
    struct cuda_twisted run;

    memset(&run, 0, sizeof(run));
    run.device.n = n;
    run.device.k = k;
    run.device.whole_k = whole_k;
    /* the vectors of a matrix may be in flight while those of the next one are made */
    bytes.device = bytes_of(2 * n, bytes_of(k, sizeof(real)));
    bytes.device = bytes_of(plan->reported.chunk < plan->reported.matrices ? 2 : 1, bytes.device);
    bytes.device = bytes_add(bytes.device, lay_out(&run, NULL));
    if (plan->problem->call.options->part != NULL) { /* what probes add up */
        bytes.host = bytes_add(bytes.host, bytes_of(n, PROBE_COLUMNS * sizeof(double)));
    }
    if (plan->problem->method == NULL && !few_wanted(n, whole_k)) {
        /* it may leave the matrix to divide and conquer */
        bytes = bytes_most(bytes, bytes_sum(plan->backend->dc->bytes(plan),
                                            plan->backend->vectors->begin_bytes(plan)));
    }
    return bytes_sum(bytes, values);
}

const struct twisted_ops tsvdi_cuda_twisted = {
    .begin = twisted_begin,
    .end = twisted_end,
    .pays = twisted_pays,
    .values = twisted_values,
    .vectors = twisted_vectors,
    .probe = twisted_probe,
    .bytes = twisted_bytes,
};
