/*
 * A band on the device: N = Q B P^H, B bidiagonal, by chasing (Lang, Parallel Comput. 25 (1999)).
 *
 *     chase_systolic.cuh   where all of its cells run at once
 *     chase_ordinary.cuh   else, or where a message has not come in time
 *     chase_step.cuh       what both have
 */
#include "bidiagonalize/chase_ordinary.cuh"
#include "bidiagonalize/chase_systolic.cuh"
#include "matrix/stages.h"

/* Clears the places of reflectors that there are not, at the end of each step's last group, and
   writes what no sweep does.  A block a step. */
static __global__ void
__launch_bounds__(BAND) rest_kernel(const __grid_constant__ struct chase run)
{
    const int64_t k = blockIdx.x, first = diamonds_before(run.n, k) * CHASE_SWEEPS;

    if (k == 0 && threadIdx.x == 0) {
        run.d[0] = n_real(run.band[0]);
        run.e[run.n - 1] = 0;
    }
    if (run.q != NULL && k < run.steps) {
        for (int64_t i = run.n - 1 - BAND * k; i < chase_groups(run.n, k) * CHASE_SWEEPS; i++) {
            run.q[(first + i) * BAND + threadIdx.x] = 0;
            run.p[(first + i) * BAND + threadIdx.x] = 0;
        }
    }
}

/* Arrays of both chases.  The first `cleared` bytes must be zero when one begins. */
static size_t
lay_out(int64_t n, char *base, struct chase *run, size_t *cleared)
{
    const int64_t steps = chase_steps(n);
    size_t at = 0;

    run->failed = carve<unsigned>(base, &at, 1);
    run->taken = carve<unsigned>(base, &at, 1);
    run->done = carve<unsigned>(base, &at, n);
    run->mail = carve<struct message>(base, &at, (steps + 1) * 2 * MAIL);
    *cleared = at;
    run->lines = carve<scalar>(base, &at, (n + BAND) * LINE);
    return at;
}

/* What a chase has is written, and its workspace cleared. */
static tsvd_status
prepare(struct cuda_call *call, const struct cuda_chase *to, char *d_work, struct chase *run)
{
    const unsigned blocks = to->n > 1 ? (unsigned)chase_steps(to->n) : 1;
    size_t cleared;
    tsvd_status ret = TSVD_OK;

    run->n = (int)to->n;
    run->steps = (int)chase_steps(to->n);
    run->band = to->band;
    run->q = to->q;
    run->p = to->p;
    run->d = to->d;
    run->e = to->e;
    (void)lay_out(to->n, d_work, run, &cleared);
    CUDA_TRY(call, cudaMemsetAsync(d_work, 0, cleared, call->stream));
    rest_kernel<<<blocks, BAND, 0, call->stream>>>(*run);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

typedef void chase_function(struct chase);

/* *kernel: the systolic one whose cells and source run at once; NULL: there are too many
   cells. */
static tsvd_status
choose_systolic(struct cuda_call *call, const struct chase *run, chase_function **kernel)
{
    const int multiprocessors = call->device->multiprocessors;
    int blocks = 0;
    tsvd_status ret = TSVD_OK;

    *kernel = run->q != NULL ? systolic_kernel<true, 1> : systolic_kernel<false, 1>;
#if !TSVD_COMPLEX || TSVD_SINGLE
    if (run->steps >= multiprocessors) {
        *kernel = run->q != NULL ? systolic_kernel<true, 2> : systolic_kernel<false, 2>;
    }
#endif
    CUDA_TRY(call,
             cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, *kernel, CHASE_THREADS, 0));
    if ((int64_t)blocks * multiprocessors <= run->steps) {
        *kernel = NULL;
    }
out:
    return ret;
}

/* *done: 0 if the chase has not been made, since it does not fit the device, or since a message has
   not come in time. */
static tsvd_status
chase_systolic(struct cuda_call *call, const struct cuda_chase *to, char *d_work, int *done)
{
    struct chase run;
    chase_function *kernel;
    void *args[] = {&run};
    unsigned failed = 0;
    cudaError_t code;
    tsvd_status ret = TSVD_OK;

    *done = 0;
    TSVD_TRY(prepare(call, to, d_work, &run));
    TSVD_TRY(choose_systolic(call, &run, &kernel));
    if (kernel == NULL) {
        goto out;
    }
    code = cudaLaunchCooperativeKernel((void *)kernel, dim3((unsigned)run.steps + 1),
                                       dim3(CHASE_THREADS), args, 0, call->stream);
    if (code == cudaErrorCooperativeLaunchTooLarge) { /* a part of the device is all that it has */
        (void)cudaGetLastError();
        goto out;
    }
    CUDA_TRY_AS(call, code, "cudaLaunchCooperativeKernel");
    TSVD_TRY(tsvdi_cuda_download(call, &failed, run.failed, sizeof failed));
    *done = failed == 0;
out:
    return ret;
}

static tsvd_status
chase_ordinary(struct cuda_call *call, const struct cuda_chase *to, char *d_work)
{
    const int64_t most = (int64_t)CELLS_MOST * call->device->multiprocessors;
    struct chase run;
    int64_t blocks;
    unsigned failed = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(prepare(call, to, d_work, &run));
    /* a sweep follows another at two steps */
    blocks = run.steps / 2 + 1 < most ? run.steps / 2 + 1 : most;
    lines_kernel<<<(unsigned)(to->n + BAND), LINE, 0, call->stream>>>(run);
    CUDA_LAUNCHED(call);
    if (run.q != NULL) {
        ordinary_kernel<true><<<(unsigned)blocks, CHASE_THREADS, 0, call->stream>>>(run);
    } else {
        ordinary_kernel<false><<<(unsigned)blocks, CHASE_THREADS, 0, call->stream>>>(run);
    }
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_download(call, &failed, run.failed, sizeof failed));
    if (failed != 0) {
        ret = tsvdi_cuda_fail(call, cudaErrorLaunchTimeout, "the chase of a band", __FILE__,
                              __LINE__);
    }
out:
    return ret;
}

uint64_t
tsvdi_cuda_dense_chase_bytes(const struct cuda_device *device, int64_t n)
{
    struct chase run;
    size_t cleared;

    (void)device;
    return lay_out(n, NULL, &run, &cleared);
}

tsvd_status
tsvdi_cuda_dense_chase(struct tsvd_context *ctx, const struct cuda_chase *to, char *d_work)
{
    struct cuda_call *call = cuda_of(ctx);
    struct chase run;
    int done = 0;
    tsvd_status ret = TSVD_OK;

    if (to->n == 1) {
        TSVD_TRY(prepare(call, to, d_work, &run));
        goto out;
    }
    TSVD_TRY(chase_systolic(call, to, d_work, &done));
    if (!done) {
        TSVD_TRY(chase_ordinary(call, to, d_work));
    }
out:
    return ret;
}

/* ---- as a stage ---- */

/* The band, and the reflectors of both sides. */
static int64_t
numbers(int64_t r, int64_t c, int keep)
{
    (void)r;
    return band_numbers(c) + (keep == KEEP_VALUES ? 0 : 2 * chase_numbers(c));
}

static uint64_t
factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    return tsvdi_cuda_dense_chase_bytes(device, own->c); /* one matrix after another */
}

/* Reflectors of one side of matrix i. */
static scalar *
side_of(const struct stage_run *own, int64_t i, int right)
{
    scalar *const m = own->team != NULL ? own->m_of[0] : own->m;

    return m + i * own->numbers + band_numbers(own->c) + (right ? chase_numbers(own->c) : 0);
}

/* Where a member of a team has B. */
struct bidiagonal {
    real *d, *e;
};

/* The first member of a team has made B, and the others copy it. */
static tsvd_status
copy_first(struct cuda_call *call, const struct stage_run *own, struct bidiagonal to)
{
    struct bidiagonal of[TEAM_MOST];
    const size_t bytes = (size_t)own->c * sizeof(real);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_team_tell(own->team, &to, sizeof to, of));
    if (own->team->self > 0) {
        CUDA_TRY(call, cudaMemcpyAsync(to.d, of[0].d, bytes, cudaMemcpyDefault, call->stream));
        CUDA_TRY(call, cudaMemcpyAsync(to.e, of[0].e, bytes, cudaMemcpyDefault, call->stream));
    }
out:
    return ret;
}

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    const bool makes = own->team == NULL || own->team->self == 0;
    tsvd_status ret = TSVD_OK;

    *outcome = STAGE_MADE;
    for (int64_t i = 0; makes && i < own->count; i++) {
        struct cuda_chase chase = {};

        chase.n = own->c;
        chase.band = own->m + i * own->numbers;
        chase.d = run->d + i * own->c;
        chase.e = run->e + i * own->c;
        if (run->keep != KEEP_VALUES) {
            chase.q = side_of(own, i, 0);
            chase.p = side_of(own, i, 1);
        }
        TSVD_TRY(tsvdi_check(ctx, BAND_PROGRESS));
        TSVD_TRY(tsvdi_cuda_dense_chase(ctx, &chase, d_work));
    }
    if (own->team != NULL) {
        TSVD_TRY(copy_first(cuda_of(ctx), own, {run->d, run->e}));
    }
out:
    return ret;
}

static uint64_t
apply_bytes(const struct cuda_device *device, const struct stage_run *own, int64_t vectors)
{
    return tsvdi_cuda_dense_diamonds_bytes(device, own->c, vectors);
}

static tsvd_status
apply(struct tsvd_context *ctx, const struct stage_run *own, int right, int transposed,
      struct dense_block x, char *d_work)
{
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < own->count; i++) {
        struct dense_block one = x;

        one.d_x += i * x.next;
        TSVD_TRY(tsvdi_cuda_dense_diamonds_apply(ctx, own->c, side_of(own, i, right), transposed,
                                                 one, d_work));
    }
out:
    return ret;
}

const struct stage tsvdi_cuda_dense_chase_stage = {
    .number = 0,
    .right = true,
    .superdiagonals = 0,
    .otherwise = NULL,
    .numbers = numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = apply_bytes,
    .factor = factor_stage,
    .apply = apply,
    .expand = NULL,
};
