/*
 * CUDA back end: the givens method.  Mirrors csrc/cpu/givens/givens.c.
 *
 * A round runs the published pipeline of Givens rotations (Semylitko & Malaschonok 2021) over all
 * large segments at once.  A segment is cut into blocks of rows that share one diagonal entry.  One
 * thread block holds each in shared memory, in the packed layout of givens_sweep.h.  Thread t of T
 * makes half sweeps t, t + T, ...; in each tick every half sweep under way makes one step.
 *
 * The published program spins on a shared value until it changes.  Here neighbouring blocks have
 * mailboxes: a value for each half sweep, and the count of half sweeps posted, which is released
 * after the value.  All blocks are resident (cooperative launch), so whatever a block waits for is
 * under way.  The rotations are logged, and the wave kernel applies them to the vectors.
 *
 * A small segment is finished by one thread block.  One warp makes the steps.  The others gather
 * the rotations in two orthogonal factors in shared memory, one tick later.
 */
#include "kernels.h"

enum { PIPELINE_THREADS_MAX = 1024 };

struct pipeline_block {
    int64_t first;      /* its first row, as a row of the matrix */
    int64_t steps;      /* of a half sweep in the block */
    int64_t log_offset; /* place of its first step in the first row of the segment's log */
    int64_t log_rows;   /* length of such a row: the steps of the segment */
    int left, right;    /* mailboxes shared with the neighbours; -1: there is no neighbour */
};

/* Mailboxes between neighbouring blocks. */
struct mail {
    real *to_right, *to_left;        /* [boxes][half_sweeps] values */
    int *posted_right, *posted_left; /* [boxes] counts */
};

struct pipeline_counts {
    unsigned long long active; /* half sweeps up to the last that made a rotation */
    unsigned long long rotations, deflated;
};

static __device__ __forceinline__ void
post(real *value, int *posted, int64_t half_sweep, real x)
{
    value[half_sweep] = x;
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(posted), "r"((int)half_sweep + 1)
                 : "memory");
}

static __device__ __forceinline__ real
await(const real *value, const int *posted, int64_t half_sweep)
{
    int count;

    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(count) : "l"(posted) : "memory");
    } while (count <= (int)half_sweep);
    return *(const volatile real *)&value[half_sweep];
}

static __global__ void
pipeline_kernel(const struct pipeline_block *blocks, int64_t half_sweeps, int64_t threads, real eps,
                struct mail mail, real *d, real *e, struct rotation *right_log,
                struct rotation *left_log, struct pipeline_counts *counts)
{
    extern __shared__ unsigned char shared[];
    real *p = (real *)shared;
    const struct pipeline_block b = blocks[blockIdx.x];
    /* ticks between two half sweeps of a thread: it has finished the first one, and all other
       threads have begun theirs, two ticks apart */
    const int64_t period = 2 * threads > b.steps ? 2 * threads : b.steps;
    const int64_t ticks =
        (half_sweeps - 1) / threads * period + 2 * ((half_sweeps - 1) % threads) + b.steps;
    int64_t j = threadIdx.x < threads ? threadIdx.x : half_sweeps;
    int64_t start = 2 * j, active = 0, rotations = 0, deflated = 0;

    for (int64_t i = threadIdx.x; i <= b.steps; i += blockDim.x) {
        p[3 * i] = d[b.first + i];
        p[3 * i + 1] = 0;
        p[3 * i + 2] = i < b.steps ? e[b.first + i] : REAL(0);
    }
    for (int64_t tick = 0; tick < ticks; tick++) {
        int64_t i = tick - start;

        __syncthreads();
        if (i >= 0 && i < b.steps && j < half_sweeps) {
            struct rotation q, *log = j & 1 ? left_log : right_log;
            int dropped;

            if (i == 0 && b.left >= 0) {
                p[0] = await(mail.to_right + b.left * half_sweeps, &mail.posted_right[b.left], j);
            }
            if (i + 1 == b.steps && b.right >= 0 && j > 0) {
                p[3 * b.steps] =
                    await(mail.to_left + b.right * half_sweeps, &mail.posted_left[b.right], j - 1);
            }
            if (givens_step(p + 3 * i, (int)(j & 1), eps, &q, &dropped)) {
                rotations++;
                active = j + 1;
            }
            deflated += dropped;
            if (i == 0 && b.left >= 0) {
                post(mail.to_left + b.left * half_sweeps, &mail.posted_left[b.left], j, p[0]);
            }
            if (i + 1 == b.steps && b.right >= 0) {
                post(mail.to_right + b.right * half_sweeps, &mail.posted_right[b.right], j,
                     p[3 * b.steps]);
            }
            if (log != NULL) {
                log[b.log_offset + j / 2 * b.log_rows + i] = q;
            }
            if (i + 1 == b.steps) {
                j += threads;
                start += period;
            }
        }
    }
    __syncthreads();
    /* of an entry shared by two blocks the right one changed it last, and writes it */
    for (int64_t i = threadIdx.x; i <= b.steps; i += blockDim.x) {
        if (i < b.steps || b.right < 0) {
            d[b.first + i] = p[3 * i];
        }
        if (i < b.steps) {
            e[b.first + i] = p[3 * i + 2];
        }
    }
    atomicMax(&counts->active, (unsigned long long)active);
    atomicAdd(&counts->rotations, (unsigned long long)rotations);
    atomicAdd(&counts->deflated, (unsigned long long)deflated);
}

static int64_t
round_sweeps(const struct givens_job *job, const struct givens_segment *segment, int64_t segments)
{
    (void)job;
    (void)segment;
    (void)segments;
    return PIPELINE_SWEEPS;
}

/* How a round's segments are cut. */
struct cut {
    struct pipeline_block *block; /* [blocks] */
    struct device_wave *wave[2];  /* waves of each side */
    int64_t *begin[2];            /* [segments + 1] first wave of each segment */
    int64_t blocks;
    int64_t boxes;         /* mailboxes in each direction */
    int64_t longest;       /* the most steps of a block */
    int64_t log_rotations; /* entries of each side's log */
};

/* How many blocks a segment is cut into.  All blocks of a round must be resident at once. */
static int64_t
segment_blocks(const struct cuda_device *device, const struct givens_job *job, int64_t steps)
{
    int64_t blocks = job->blocks > 0 ? job->blocks : (steps + PIPELINE_ROWS - 1) / PIPELINE_ROWS;
    int64_t most = 2 * (int64_t)device->multiprocessors;
    /* the rows that fit in shared memory, less the one that is shared with the neighbour */
    int64_t rows = device->shared_most / (int64_t)(3 * sizeof(real)) - 1;
    int64_t least = (steps + rows - 1) / rows;

    blocks = blocks < most ? blocks : most;
    blocks = blocks > least ? blocks : least;
    return blocks < steps ? blocks : steps;
}

static void
cut_segment(const struct cuda_device *device, const struct givens_job *job,
            struct givens_segment segment, int64_t half_sweeps, struct cut *cut)
{
    const int64_t steps = segment.rows - 1, blocks = segment_blocks(device, job, steps);

    for (int64_t b = 0; b < blocks; b++) {
        struct pipeline_block *block = &cut->block[cut->blocks++];
        int64_t start = givens_block_start(steps, blocks, b);

        block->first = segment.first + start;
        block->steps = givens_block_start(steps, blocks, b + 1) - start;
        block->log_offset = cut->log_rotations + start;
        block->log_rows = steps;
        block->left = b > 0 ? (int)cut->boxes - 1 : -1;
        block->right = b + 1 < blocks ? (int)cut->boxes++ : -1;
        cut->longest = block->steps > cut->longest ? block->steps : cut->longest;
    }
    cut->log_rotations += (half_sweeps + 1) / 2 * steps;
}

/* Makes the waves of a segment's log, which has `rows` sweeps of `steps` rotations each.  Returns
   their number. */
static int64_t
cut_waves(struct givens_segment segment, int64_t rows, int64_t offset, struct device_wave *wave)
{
    const int64_t steps = segment.rows - 1;
    int64_t waves = 0;

    for (int64_t k = 0; k < rows; k += WAVE_SWEEPS) {
        struct device_wave *w = &wave[waves++];

        memset(w, 0, sizeof(*w));
        w->first = segment.first;
        w->steps = steps + WAVE_SWEEPS - 1;
        w->sweeps = rows - k < WAVE_SWEEPS ? (int)(rows - k) : (int)WAVE_SWEEPS;
        for (int i = 0; i < w->sweeps; i++) {
            w->count[i] = steps;
            w->offset[i] = offset + (k + i) * steps;
        }
    }
    return waves;
}

static tsvd_status
cut_round(struct tsvd_context *ctx, const struct givens_job *job,
          const struct givens_segment *segment, int64_t segments, int64_t half_sweeps,
          struct cut *cut)
{
    const int64_t rows[2] = {(half_sweeps + 1) / 2, half_sweeps / 2};
    int64_t blocks = 0;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < segments; i++) {
        blocks += segment_blocks(cuda_of(ctx)->device, job, segment[i].rows - 1);
    }
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)blocks * sizeof(*cut->block), (void **)&cut->block));
    for (int side = 0; side < 2; side++) {
        size_t waves = (size_t)(segments * (rows[side] / WAVE_SWEEPS + 1));

        TSVD_TRY(tsvdi_alloc(ctx, waves * sizeof(**cut->wave), (void **)&cut->wave[side]));
        TSVD_TRY(
            tsvdi_alloc(ctx, (size_t)(segments + 1) * sizeof(int64_t), (void **)&cut->begin[side]));
        cut->begin[side][0] = 0;
    }
    for (int64_t i = 0; i < segments; i++) {
        int64_t offset = cut->log_rotations;

        cut_segment(cuda_of(ctx)->device, job, segment[i], half_sweeps, cut);
        for (int side = 0; side < 2; side++) {
            int64_t begin = cut->begin[side][i];

            cut->begin[side][i + 1] =
                begin + cut_waves(segment[i], rows[side], offset, cut->wave[side] + begin);
        }
    }
out:
    return ret;
}

/* Makes a copy of a host array on the device. */
static tsvd_status
copy_up(struct cuda_call *call, const void *from, size_t bytes, void **d_to)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, bytes, d_to));
    TSVD_TRY(tsvdi_cuda_upload(call, *d_to, from, bytes));
out:
    return ret;
}

/* What one round holds on the device. */
struct device_round {
    struct pipeline_block *d_block;
    struct pipeline_counts *d_counts;
    real *d_d, *d_e;  /* one allocation */
    struct mail mail; /* one allocation */

    /* Of each side; NULL without vectors. */
    struct rotation *d_log[2];
    struct device_wave *d_wave[2];
    int64_t *d_begin[2];
};

static void
free_round(struct cuda_call *call, const struct device_round *round)
{
    tsvdi_cuda_free(call, round->d_block);
    tsvdi_cuda_free(call, round->d_counts);
    tsvdi_cuda_free(call, round->d_d);
    tsvdi_cuda_free(call, round->mail.to_right);
    for (int side = 0; side < 2; side++) {
        tsvdi_cuda_free(call, round->d_log[side]);
        tsvdi_cuda_free(call, round->d_wave[side]);
        tsvdi_cuda_free(call, round->d_begin[side]);
    }
}

/* Takes empty mailboxes. */
static tsvd_status
make_mail(struct cuda_call *call, int64_t boxes, int64_t half_sweeps, struct mail *mail)
{
    const size_t values = (size_t)(boxes * half_sweeps), counts = 2 * (size_t)boxes * sizeof(int);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * values * sizeof(real) + counts, (void **)&mail->to_right));
    mail->to_left = mail->to_right + values;
    mail->posted_right = (int *)(mail->to_left + values);
    mail->posted_left = mail->posted_right + boxes;
    CUDA_TRY(call, cudaMemsetAsync(mail->posted_right, 0, counts, call->stream));
out:
    return ret;
}

/* Uploads the matrix and its blocks and waves, and takes memory for logs and mailboxes.
   free_round() is due also after a failure. */
static tsvd_status
make_round(struct cuda_call *call, const struct givens_job *job, const struct cut *cut,
           int64_t segments, int64_t half_sweeps, struct device_round *round)
{
    const struct pipeline_counts none = {0, 0, 0};
    const int64_t n = job->n;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(copy_up(call, cut->block, (size_t)cut->blocks * sizeof(*cut->block),
                     (void **)&round->d_block));
    TSVD_TRY(copy_up(call, &none, sizeof(none), (void **)&round->d_counts));
    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * (size_t)n * sizeof(real), (void **)&round->d_d));
    round->d_e = round->d_d + n;
    TSVD_TRY(tsvdi_cuda_upload(call, round->d_d, job->d, (size_t)n * sizeof(real)));
    TSVD_TRY(tsvdi_cuda_upload(call, round->d_e, job->e, (size_t)(n - 1) * sizeof(real)));
    for (int side = 0; side < 2 && job->right.x != NULL; side++) {
        int64_t waves = cut->begin[side][segments];

        TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)cut->log_rotations * sizeof(struct rotation),
                                  (void **)&round->d_log[side]));
        TSVD_TRY(copy_up(call, cut->wave[side], (size_t)waves * sizeof(**cut->wave),
                         (void **)&round->d_wave[side]));
        TSVD_TRY(copy_up(call, cut->begin[side], (size_t)(segments + 1) * sizeof(int64_t),
                         (void **)&round->d_begin[side]));
    }
    TSVD_TRY(make_mail(call, cut->boxes, half_sweeps, &round->mail));
out:
    return ret;
}

/* Launches one block of threads for each block of rows, all resident at once. */
static tsvd_status
launch_pipeline(struct cuda_call *call, const struct givens_job *job, const struct cut *cut,
                int64_t half_sweeps, struct device_round *round)
{
    const size_t shared = 3 * (size_t)(cut->longest + 1) * sizeof(real);
    int64_t threads = (cut->longest + 1) / 2; /* no more half sweeps are ever under way at once */
    real eps = job->eps;
    void *args[] = {&round->d_block,  &half_sweeps,    &threads,    &eps,
                    &round->mail,     &round->d_d,     &round->d_e, &round->d_log[0],
                    &round->d_log[1], &round->d_counts};
    dim3 grid((unsigned)cut->blocks), block;
    int resident = 0;
    tsvd_status ret = TSVD_OK;

    threads = threads < half_sweeps ? threads : half_sweeps;
    threads = threads < job->in_flight ? threads : job->in_flight;
    threads = threads < PIPELINE_THREADS_MAX ? threads : (int64_t)PIPELINE_THREADS_MAX;
    block.x = (unsigned)((threads + WARP - 1) / WARP * WARP);
    /* the attribute belongs to the kernel, which other host threads launch too: all set the same */
    CUDA_TRY(call,
             cudaFuncSetAttribute(pipeline_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  call->device->shared_most));
    CUDA_TRY(call, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, pipeline_kernel,
                                                                 (int)block.x, shared));
    if (cut->blocks > (int64_t)resident * call->device->multiprocessors) {
        tsvdi_advise(call->error, "ask for fewer with options.givens_blocks");
        TSVD_TRY(tsvdi_fail(call->error, TSVD_ERR_ARGUMENT,
                            "the givens pipeline would need %lld thread blocks at once and the "
                            "device holds %lld",
                            (long long)cut->blocks,
                            (long long)resident * call->device->multiprocessors));
    }
    CUDA_TRY(call, cudaLaunchCooperativeKernel((void *)pipeline_kernel, grid, block, args, shared,
                                               call->stream));
out:
    return ret;
}

/* Downloads a round's d and e, and its counts.  Returns when they have arrived. */
static tsvd_status
read_round(struct cuda_call *call, const struct givens_job *job, const struct device_round *round,
           struct pipeline_counts *found)
{
    const size_t vector = (size_t)job->n * sizeof(real);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call,
             cudaMemcpyAsync(job->d, round->d_d, vector, cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(job->e, round->d_e, vector - sizeof(real),
                                   cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(found, round->d_counts, sizeof(*found), cudaMemcpyDeviceToHost,
                                   call->stream));
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
out:
    return ret;
}

/* Makes a round of segments, of which one launch takes all. */
static tsvd_status
run_round(struct tsvd_context *ctx, const struct givens_job *job,
          const struct givens_segment *segment, int64_t segments, int64_t half_sweeps,
          int64_t *active, struct givens_counts *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct vectors vectors[2] = {job->right, job->left};
    struct pipeline_counts found;
    struct cut cut;
    struct device_round round;
    tsvd_status ret = TSVD_OK;

    memset(&cut, 0, sizeof(cut));
    memset(&round, 0, sizeof(round));
    TSVD_TRY(cut_round(ctx, job, segment, segments, half_sweeps, &cut));
    TSVD_TRY(make_round(call, job, &cut, segments, half_sweeps, &round));
    TSVD_TRY(launch_pipeline(call, job, &cut, half_sweeps, &round));
    if (job->right.x != NULL) {
        TSVD_TRY(tsvdi_cuda_rotations_rotate(ctx, round.d_wave, round.d_log, round.d_begin,
                                             segments, vectors));
    }
    TSVD_TRY(read_round(call, job, &round, &found));
    *active = (int64_t)found.active > *active ? (int64_t)found.active : *active;
    counts->rotations += (int64_t)found.rotations;
    counts->deflated += (int64_t)found.deflated;
    for (int64_t i = 0; i < segments; i++) {
        counts->steps += half_sweeps * segment[i].rows;
    }
out:
    free_round(call, &round);
    for (int side = 0; side < 2; side++) {
        tsvdi_free(ctx, cut.wave[side]);
        tsvdi_free(ctx, cut.begin[side]);
    }
    tsvdi_free(ctx, cut.block);
    return ret;
}

static tsvd_status
givens_round(struct tsvd_context *ctx, const struct givens_job *job,
             const struct givens_segment *segment, int64_t segments, int64_t half_sweeps,
             int64_t *active, struct givens_counts *counts)
{
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < segments && ret == TSVD_OK; i += PIPELINE_SEGMENTS) {
        int64_t here = segments - i < PIPELINE_SEGMENTS ? segments - i : (int64_t)PIPELINE_SEGMENTS;

        ret = run_round(ctx, job, segment + i, here, half_sweeps, active, counts);
    }
    return ret;
}

/* ---- small segments ---- */

struct finish_result {
    long long half_sweeps; /* in: the bound on them; out: as givens_ops.finish() returns it */
    unsigned long long steps, rotations, deflated;
};

struct small_rotation {
    struct rotation q;
    int row;
};

/* Shared memory of the finish kernel.  Three factors of FINISH_ROWS^2 reals follow. */
struct finish_shared {
    real p[3 * FINISH_ROWS];             /* the segment, packed */
    struct small_rotation made[2][WARP]; /* by the lanes, in the current tick and the last one */
    unsigned right[2], left[2];          /* bit i: lane i made a right or a left one */
    int low, high;                       /* the rows low .. high have nonzero entries left */
};

/* The helper warps apply the rotations of a tick to the rows of the factors. */
static __device__ void
follow(const struct finish_shared *at, int which, int m, real *right, real *left)
{
    const int warp = (int)threadIdx.x / WARP - 1, lane = (int)threadIdx.x % WARP;
    unsigned both = at->right[which] | at->left[which];

    for (int turn = 0; both != 0; turn++, both &= both - 1) {
        int t = __ffs((int)both) - 1;

        if (turn % (FINISH_THREADS / WARP - 1) == warp) {
            const struct small_rotation made = at->made[which][t];
            real *x = (at->right[which] >> t & 1 ? right : left) + made.row * m;

            for (int j = lane; j < m; j += WARP) {
                real below = r_fma(made.q.c, x[m + j], -(made.q.s * x[j]));

                x[j] = r_fma(made.q.c, x[j], made.q.s * x[m + j]);
                x[m + j] = below;
            }
        }
    }
}

/* Finds the rows low .. high that have nonzero off-diagonal entries left; all of these are above
   the diagonal.  low = high: there are none. */
static __device__ void
find_range(struct finish_shared *at, int m)
{
    if (threadIdx.x == 0) {
        int low = 0, high = m - 1;

        while (low < high && at->p[3 * low + 2] == 0) {
            low++;
        }
        while (high > low && at->p[3 * (high - 1) + 2] == 0) {
            high--;
        }
        at->low = low;
        at->high = high;
        at->right[0] = at->right[1] = at->left[0] = at->left[1] = 0;
    }
}

/* factor += (I - factor factor^T) factor / 2. */
static __device__ void
correct_factor(real *factor, real *spare, int m)
{
    __syncthreads();
    for (int at = (int)threadIdx.x; at < m * m; at += FINISH_THREADS) {
        int i = at / m, j = at % m;
        real sum = 0;

        for (int k = 0; k < m; k++) {
            sum = r_fma(factor[i * m + k], factor[j * m + k], sum);
        }
        spare[at] = (REAL(i == j) - sum) / 2;
    }
    __syncthreads();
    /* a thread owns a column: it copies its old column to a local array first */
    for (int j = (int)threadIdx.x; j < m; j += FINISH_THREADS) {
        real old[FINISH_ROWS];

        for (int k = 0; k < m; k++) {
            old[k] = factor[k * m + j];
        }
        for (int i = 0; i < m; i++) {
            real sum = old[i];

            for (int k = 0; k < m; k++) {
                sum = r_fma(spare[i * m + k], old[k], sum);
            }
            factor[i * m + j] = sum;
        }
    }
    __syncthreads();
}

/* The state of a thread in a block that finishes a segment. */
struct finish_work {
    struct finish_shared *at;
    real *right, *left; /* the factors, of order m */
    int m;              /* rows of the segment */
    real eps;
    int64_t made; /* half sweeps that are over */

    /* Of the thread's own half sweeps: their number up to the last that made a rotation. */
    int64_t last;
    unsigned long long rotations, deflated;
};

/* Loads the segment to shared memory.  The factors start as identities. */
static __device__ __forceinline__ void
load_segment(const struct finish_work &work, const real *d, const real *e)
{
    const int m = work.m;

    for (int i = (int)threadIdx.x; i < m; i += FINISH_THREADS) {
        work.at->p[3 * i] = d[i];
        work.at->p[3 * i + 1] = 0;
        work.at->p[3 * i + 2] = i + 1 < m ? e[i] : REAL(0);
    }
    for (int i = (int)threadIdx.x; i < m * m; i += FINISH_THREADS) {
        work.right[i] = work.left[i] = i / m == i % m ? REAL(1) : REAL(0);
    }
    __syncthreads();
}

/* The lead warp's part of a tick: a step of each half sweep under way.  The thread's half sweep is
 *j, and its step is i, of `steps` from row `low` on. */
static __device__ __forceinline__ void
lead_tick(struct finish_work &work, int parity, int64_t i, int low, int steps, int64_t sweeps,
          int *j)
{
    struct finish_shared *at = work.at;
    bool rotated = false, odd = *j & 1;

    if (i >= 0 && i < steps && *j < sweeps) {
        struct small_rotation *mine = &at->made[parity][threadIdx.x];
        int dropped;

        mine->row = low + (int)i;
        rotated = givens_step(at->p + 3 * mine->row, odd, work.eps, &mine->q, &dropped);
        work.deflated += (unsigned)dropped;
        work.rotations += rotated;
        work.last = rotated && work.made + *j + 1 > work.last ? work.made + *j + 1 : work.last;
        if (i + 1 == steps) {
            *j += WARP;
        }
    }
    at->right[parity] = __ballot_sync(0xffffffffu, rotated && !odd);
    at->left[parity] = __ballot_sync(0xffffffffu, rotated && odd);
}

/* The whole block makes half sweeps over the rows low .. low + steps. */
static __device__ __forceinline__ void
make_half_sweeps(struct finish_work &work, int low, int steps, int64_t sweeps)
{
    const int lag = steps > 1 ? 2 : 1; /* ticks between half sweeps; one suffices for one step */
    const bool lead = threadIdx.x < WARP;
    int j = (int)threadIdx.x, parity = 0;

    for (int64_t tick = 0; tick < steps + lag * (sweeps - 1); tick++, parity ^= 1) {
        if (lead) {
            lead_tick(work, parity, tick - (int64_t)lag * j, low, steps, sweeps, &j);
        } else {
            follow(work.at, parity ^ 1, work.m, work.right, work.left);
        }
        __syncthreads();
    }
    if (!lead) {
        follow(work.at, parity ^ 1, work.m, work.right, work.left);
    }
    work.made += sweeps;
    __syncthreads();
}

/* Adds up what the threads of the lead warp did; each gets the result. */
static __device__ __forceinline__ void
add_up(struct finish_work &work)
{
    for (int half = WARP / 2; half > 0; half /= 2) {
        int64_t other = __shfl_xor_sync(0xffffffffu, (long long)work.last, half);

        work.last = other > work.last ? other : work.last;
        work.rotations += __shfl_xor_sync(0xffffffffu, work.rotations, half);
        work.deflated += __shfl_xor_sync(0xffffffffu, work.deflated, half);
    }
}

static __global__ void
__launch_bounds__(FINISH_THREADS)
    finish_kernel(const struct givens_segment *segments, real eps, real *d, real *e, real *factors,
                  struct finish_result *results)
{
    extern __shared__ unsigned char shared[];
    struct finish_shared *at = (struct finish_shared *)shared;
    real *right = (real *)(shared + (sizeof(*at) + 15) / 16 * 16);
    real *left = right + FINISH_ROWS * FINISH_ROWS, *spare = left + FINISH_ROWS * FINISH_ROWS;
    const struct givens_segment segment = segments[blockIdx.x];
    struct finish_result *result = &results[blockIdx.x];
    const int m = (int)segment.rows;
    const int64_t bound = result->half_sweeps;
    struct finish_work work = {at, right, left, m, eps, 0, 0, 0, 0};
    unsigned long long steps_made = 0;
    int64_t orthogonal = 0; /* half sweeps up to the last correction of the factors */
    real *out = factors == NULL ? NULL : factors + blockIdx.x * 2 * FINISH_ROWS * FINISH_ROWS;

    d += segment.first;
    e += segment.first;
    load_segment(work, d, e);
    for (;;) {
        const int64_t sweeps =
            bound - work.made < FINISH_SWEEPS ? bound - work.made : FINISH_SWEEPS;
        int low, steps;

        find_range(at, m);
        __syncthreads();
        low = at->low;
        steps = at->high - low;
        if (steps == 0 || sweeps == 0) {
            break;
        }
        make_half_sweeps(work, low, steps, sweeps);
        steps_made += (unsigned long long)(sweeps * (steps + 1));
        if (work.made - orthogonal >= DRIFT_SWEEPS_MAX) {
            correct_factor(right, spare, m);
            correct_factor(left, spare, m);
            orthogonal = work.made;
        }
    }
    for (int i = (int)threadIdx.x; i < m; i += FINISH_THREADS) {
        d[i] = at->p[3 * i];
        if (i + 1 < m) {
            e[i] = at->p[3 * i + 2];
        }
    }
    if (threadIdx.x < WARP) {
        add_up(work);
    }
    if (threadIdx.x == 0) {
        result->half_sweeps = work.last < bound ? work.last : -1;
        result->steps = steps_made;
        result->rotations = work.rotations;
        result->deflated = work.deflated;
    }
    if (out != NULL) {
        if (work.made - orthogonal > DRIFT_SWEEPS_PER_ROW * m) {
            correct_factor(right, spare, m);
            correct_factor(left, spare, m);
        }
        for (int i = (int)threadIdx.x; i < m * m; i += FINISH_THREADS) {
            out[i] = right[i];
            out[FINISH_ROWS * FINISH_ROWS + i] = left[i];
        }
    }
}

/* Multiplies the vectors first .. first + m - 1 of each side by the segment's factor. */
static __global__ void
factor_kernel(const struct givens_segment *segments, int64_t n, const real *factors, real *right,
              real *left)
{
    extern __shared__ unsigned char shared[];
    real *factor = (real *)shared, *old = factor + FINISH_ROWS * FINISH_ROWS;
    const struct givens_segment segment = segments[blockIdx.z];
    const int m = (int)segment.rows, column = (int)threadIdx.x % FACTOR_COLUMNS;
    const int64_t at = (int64_t)blockIdx.x * FACTOR_COLUMNS + column;
    const real *source = factors + (2 * blockIdx.z + blockIdx.y) * FINISH_ROWS * FINISH_ROWS;
    real *x = (blockIdx.y == 0 ? right : left) + segment.first * n;

    for (int i = (int)threadIdx.x; i < m * m; i += (int)blockDim.x) {
        factor[i] = source[i];
    }
    for (int j = (int)threadIdx.x / FACTOR_COLUMNS; j < m; j += (int)blockDim.x / FACTOR_COLUMNS) {
        old[j * FACTOR_COLUMNS + column] = at < n ? x[j * n + at] : REAL(0);
    }
    __syncthreads();
    for (int j = (int)threadIdx.x / FACTOR_COLUMNS; j < m; j += (int)blockDim.x / FACTOR_COLUMNS) {
        real sum = 0;

        for (int k = 0; k < m; k++) {
            sum = r_fma(factor[j * m + k], old[k * FACTOR_COLUMNS + column], sum);
        }
        if (at < n) {
            x[j * n + at] = sum;
        }
    }
}

static tsvd_status
givens_finish(struct tsvd_context *ctx, const struct givens_job *job,
              const struct givens_segment *segment, int64_t segments, int64_t *half_sweeps,
              struct givens_counts *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t n = job->n;
    const size_t factor = FINISH_ROWS * FINISH_ROWS * sizeof(real);
    const size_t shared = (sizeof(struct finish_shared) + 15) / 16 * 16 + 3 * factor;
    const size_t tile = factor + FINISH_ROWS * FACTOR_COLUMNS * sizeof(real);
    struct finish_result *result = NULL, *d_result = NULL;
    struct givens_segment *d_segment = NULL;
    real *d_matrix = NULL, *d_e, *d_factors = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, (size_t)segments * sizeof(*result), (void **)&result));
    memset(result, 0, (size_t)segments * sizeof(*result));
    for (int64_t i = 0; i < segments; i++) {
        result[i].half_sweeps = half_sweeps[i];
    }
    TSVD_TRY(copy_up(call, result, (size_t)segments * sizeof(*result), (void **)&d_result));
    TSVD_TRY(copy_up(call, segment, (size_t)segments * sizeof(*segment), (void **)&d_segment));
    TSVD_TRY(tsvdi_cuda_alloc(call, 2 * (size_t)n * sizeof(real), (void **)&d_matrix));
    d_e = d_matrix + n;
    TSVD_TRY(tsvdi_cuda_upload(call, d_matrix, job->d, (size_t)n * sizeof(real)));
    TSVD_TRY(tsvdi_cuda_upload(call, d_e, job->e, (size_t)(n - 1) * sizeof(real)));
    if (job->right.x != NULL) {
        TSVD_TRY(tsvdi_cuda_alloc(call, 2 * (size_t)segments * factor, (void **)&d_factors));
    }
    CUDA_TRY(call, cudaFuncSetAttribute(finish_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)shared));
    finish_kernel<<<(unsigned)segments, FINISH_THREADS, shared, call->stream>>>(
        d_segment, job->eps, d_matrix, d_e, d_factors, d_result);
    CUDA_LAUNCHED(call);
    if (job->right.x != NULL) {
        CUDA_TRY(call, cudaFuncSetAttribute(
                           factor_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)tile));
        for (int64_t begin = 0; begin < segments; begin += GRID_MOST) {
            int64_t here = segments - begin < GRID_MOST ? segments - begin : (int64_t)GRID_MOST;
            dim3 grid(blocks_for(n, FACTOR_COLUMNS), 2, (unsigned)here);

            factor_kernel<<<grid, 256, tile, call->stream>>>(
                d_segment + begin, n, d_factors + begin * 2 * FINISH_ROWS * FINISH_ROWS,
                job->right.x, job->left.x);
            CUDA_LAUNCHED(call);
        }
    }
    CUDA_TRY(call, cudaMemcpyAsync(job->d, d_matrix, (size_t)n * sizeof(real),
                                   cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(job->e, d_e, (size_t)(n - 1) * sizeof(real),
                                   cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaMemcpyAsync(result, d_result, (size_t)segments * sizeof(*result),
                                   cudaMemcpyDeviceToHost, call->stream));
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    for (int64_t i = 0; i < segments; i++) {
        half_sweeps[i] = result[i].half_sweeps;
        counts->steps += (int64_t)result[i].steps;
        counts->rotations += (int64_t)result[i].rotations;
        counts->deflated += (int64_t)result[i].deflated;
    }
out:
    tsvdi_cuda_free(call, d_result);
    tsvdi_cuda_free(call, d_segment);
    tsvdi_cuda_free(call, d_matrix);
    tsvdi_cuda_free(call, d_factors);
    tsvdi_free(ctx, result);
    return ret;
}

/* Workspace of a round: logs of both sides, their waves, and a mailbox for each half sweep between
   blocks; or of finish(), if that is more: two factors for each small segment. */
static struct bytes
givens_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n, sweeps = PIPELINE_SWEEPS / 2;
    const int64_t waves = PIPELINE_SEGMENTS * (sweeps / WAVE_SWEEPS + 1);
    const int64_t blocks =
        2 * plan->problem->call.handle->cuda->multiprocessors + PIPELINE_SEGMENTS;
    const int64_t segments = n / 2 + 1;
    struct bytes round = {0, 0}, end = {0, 0};

    round.host = bytes_of(blocks, sizeof(struct pipeline_block));
    round.host = bytes_add(round.host, bytes_of(2 * waves, sizeof(struct device_wave)));
    round.host = bytes_add(round.host, bytes_of(2 * (PIPELINE_SEGMENTS + 1), sizeof(int64_t)));
    round.device = bytes_add(round.host, bytes_of(2 * n, sizeof(real)));
    round.device = bytes_add(round.device, sizeof(struct pipeline_counts));
    round.device = bytes_add(
        round.device, bytes_of(blocks, 2 * PIPELINE_SWEEPS * sizeof(real) + 2 * sizeof(int)));
    end.host = bytes_of(segments, sizeof(struct finish_result));
    end.device = bytes_of(segments, sizeof(struct finish_result) + sizeof(struct givens_segment));
    end.device = bytes_add(end.device, bytes_of(2 * n, sizeof(real)));
    if (plan->problem->vectors) {
        round.device =
            bytes_add(round.device, bytes_of(2 * (sweeps + 1) * n, sizeof(struct rotation)));
        end.device = bytes_add(
            end.device, bytes_of(segments, 2 * (uint64_t)FINISH_ROWS * FINISH_ROWS * sizeof(real)));
    }
    return bytes_most(round, end);
}

const struct givens_ops tsvdi_cuda_givens = {
    .small_rows = FINISH_ROWS,
    .round_sweeps = round_sweeps,
    .round = givens_round,
    .finish = givens_finish,
    .bytes = givens_bytes,
};
