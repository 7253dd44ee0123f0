/*
 * CPU back end: the givens method.  A round walks the segments in the order of the pipeline's
 * threads.  A small segment is finished with its rotations gathered in two small orthogonal
 * factors, which are applied to the vectors once.  Mirrors cuda/givens/givens.cu.
 */
#include "backend/ops.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"

static int64_t
round_sweeps(const struct givens_job *job, const struct givens_segment *segment, int64_t segments)
{
    int64_t rows = 0, sweeps;

    for (int64_t i = 0; i < segments; i++) {
        rows += segment[i].rows;
    }
    sweeps = CPU_ROUND_ROTATIONS / rows * 2;
    sweeps = sweeps > job->in_flight ? job->in_flight : sweeps;
    return sweeps < 2 ? 2 : sweeps / 2 * 2;
}

/* A segment in the packed layout, and the log of its half sweeps. */
struct band {
    int64_t steps, blocks, half_sweeps;  /* rows less one; blocks of rows; half sweeps to make */
    real *packed;                        /* [3 (rows + blocks - 1)], see givens_sweep.h */
    real eps;                            /* entries up to this are dropped */
    struct rotation *log[2];             /* [half_sweeps / 2, steps] right, left; NULL: not kept */
    int64_t active, rotations, deflated; /* out: as in givens_ops.round() and givens_counts */
};

static void
pack(struct band *band, const real *d, const real *e)
{
    for (int64_t b = 0; b < band->blocks; b++) {
        int64_t end = givens_block_start(band->steps, band->blocks, b + 1);

        for (int64_t i = givens_block_start(band->steps, band->blocks, b); i <= end; i++) {
            real *p = band->packed + 3 * (i + b);

            p[0] = d[i];
            p[1] = 0;
            p[2] = i < band->steps ? e[i] : REAL(0);
        }
    }
}

static void
unpack(const struct band *band, real *d, real *e)
{
    for (int64_t b = 0; b < band->blocks; b++) {
        int64_t end = givens_block_start(band->steps, band->blocks, b + 1);

        for (int64_t i = givens_block_start(band->steps, band->blocks, b); i <= end; i++) {
            const real *p = band->packed + 3 * (i + b);

            d[i] = p[0];
            if (i < end) {
                e[i] = p[2];
            }
        }
    }
}

/* After step i of a block: copies a diagonal entry that it shares with a neighbour to the
   neighbour's copy. */
static void
hand_over(struct band *band, int64_t block, int64_t i)
{
    real *p = band->packed + 3 * (i + block);

    if (block > 0 && i == givens_block_start(band->steps, band->blocks, block)) {
        p[-3] = p[0];
    }
    if (block + 1 < band->blocks &&
        i + 1 == givens_block_start(band->steps, band->blocks, block + 1)) {
        p[6] = p[3];
    }
}

/*
 * Half sweeps in the order of the pipeline's threads: in each tick every half sweep that is
 * under way makes one step, two rows above the half sweep before it.  The steps of a tick touch
 * disjoint entries and could be made at once.
 */
static void
walk(struct band *band)
{
    const int64_t ticks = band->steps + 2 * (band->half_sweeps - 1);
    int64_t front = 0; /* block of the foremost half sweep */

    for (int64_t tick = 0; tick < ticks; tick++) {
        int64_t k = tick < band->steps ? 0 : (tick - band->steps) / 2 + 1;
        int64_t block;

        while (front + 1 < band->blocks &&
               tick - 2 * k >= givens_block_start(band->steps, band->blocks, front + 1)) {
            front++;
        }
        block = front;
        for (; k < band->half_sweeps && 2 * k <= tick; k++) {
            int64_t i = tick - 2 * k;
            struct rotation q;
            int dropped;

            while (block > 0 && i < givens_block_start(band->steps, band->blocks, block)) {
                block--;
            }
            if (givens_step(band->packed + 3 * (i + block), k & 1, band->eps, &q, &dropped)) {
                band->rotations++;
                band->active = k + 1 > band->active ? k + 1 : band->active;
            }
            band->deflated += dropped;
            if (band->blocks > 1) {
                hand_over(band, block, i);
            }
            if (band->log[k & 1] != NULL) {
                band->log[k & 1][k / 2 * band->steps + i] = q;
            }
        }
    }
}

/* Appends the rows of a segment's log as sweeps, leaving out long runs of identities. */
static void
compress(const struct rotation *rows, int64_t count, int64_t steps, int64_t first,
         struct rotation_log *log)
{
    for (int64_t k = 0; k < count; k++) {
        const struct rotation *row = rows + k * steps;
        int64_t end = 0;

        for (int64_t i = 0; i < steps; i++) {
            if (row[i].c == 1 && row[i].s == 0) {
                continue;
            }
            if (end == 0 || i - end > CPU_LOG_GAP) {
                log->sweep[log->sweeps++] = (struct qr_sweep){first + i, 0, 0};
                end = i;
            }
            for (; end <= i; end++) {
                log->rotation[log->rotations++] = row[end];
                log->sweep[log->sweeps - 1].count++;
            }
        }
    }
}

static tsvd_status
givens_round(struct tsvd_context *ctx, const struct givens_job *job,
             const struct givens_segment *segment, int64_t segments, int64_t half_sweeps,
             int64_t *active, struct givens_counts *counts)
{
    const int64_t rows = (half_sweeps + 1) / 2;
    struct rotation_log log[2] = {{0}, {0}};
    struct rotation *raw = NULL;
    real *packed = NULL;
    int64_t longest = 0, total = 0;
    double clock;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < segments; i++) {
        longest = segment[i].rows > longest ? segment[i].rows : longest;
        total += segment[i].rows;
    }
    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(6 * longest, sizeof *packed), (void **)&packed));
    if (job->right.x != NULL) {
        TSVD_TRY(tsvdi_alloc(ctx, bytes_of(2 * rows * longest, sizeof *raw), (void **)&raw));
        for (int side = 0; side < 2; side++) {
            TSVD_TRY(tsvdi_log_alloc(ctx, rows * (total / CPU_LOG_GAP + segments), rows * total,
                                     &log[side]));
        }
    }
    for (int64_t i = 0; i < segments; i++) {
        struct band band = {.steps = segment[i].rows - 1, .half_sweeps = half_sweeps};

        band.blocks = job->blocks < 1 ? 1 : job->blocks > band.steps ? band.steps : job->blocks;
        band.packed = packed;
        band.eps = job->eps;
        band.log[0] = raw;
        band.log[1] = raw != NULL ? raw + rows * band.steps : NULL;
        pack(&band, job->d + segment[i].first, job->e + segment[i].first);
        walk(&band);
        unpack(&band, job->d + segment[i].first, job->e + segment[i].first);
        if (raw != NULL) {
            compress(band.log[0], rows, band.steps, segment[i].first, &log[0]);
            compress(band.log[1], half_sweeps / 2, band.steps, segment[i].first, &log[1]);
        }
        *active = band.active > *active ? band.active : *active;
        counts->steps += half_sweeps * segment[i].rows;
        counts->rotations += band.rotations;
        counts->deflated += band.deflated;
    }
    if (raw != NULL) {
        clock = tsvdi_host_seconds();
        TSVD_TRY(tsvdi_cpu_vectors.rotate(ctx, &log[0], &log[1], job->right, job->left, 0));
        counts->seconds_vectors += tsvdi_host_seconds() - clock;
    }
out:
    tsvdi_free(ctx, packed);
    tsvdi_free(ctx, raw);
    tsvdi_log_free(ctx, &log[0]);
    tsvdi_log_free(ctx, &log[1]);
    return ret;
}

static_assert(CPU_FACTOR_COLUMNS >= CPU_FINISH_ROWS, "`spare` also holds a copy of a factor");

/* One worker's workspace of finish(). */
struct workspace {
    real packed[3 * CPU_FINISH_ROWS];
    real factor[2][CPU_FINISH_ROWS * CPU_FINISH_ROWS]; /* right, left */
    real spare[CPU_FINISH_ROWS * CPU_FACTOR_COLUMNS];
    struct givens_counts counts;
};

struct finish_task {
    struct tsvd_context *ctx;
    const struct givens_job *job;
    const struct givens_segment *segment;
    int64_t *half_sweeps;
    struct workspace *workspace; /* [workers] */
};

/* Rotates rows i and i + 1 of a factor of m columns. */
static void
rotate_rows(real *factor, int64_t m, int64_t i, struct rotation q)
{
    real *x = factor + i * m, *y = x + m;

    for (int64_t j = 0; j < m; j++) {
        real below = q.c * y[j] - q.s * x[j];

        x[j] = q.c * x[j] + q.s * y[j];
        y[j] = below;
    }
}

/* As vectors_ops.orthonormalize(), on a small factor. */
static void
orthonormalize_factor(real *factor, int64_t m, real *old)
{
    memcpy(old, factor, (size_t)(m * m) * sizeof *old);
    for (int64_t i = 0; i < m; i++) {
        real defect[CPU_FINISH_ROWS];

        for (int64_t j = 0; j < m; j++) {
            defect[j] = (REAL(i == j) - tsvdi_kernels()->dot(m, old + i * m, old + j * m)) / 2;
        }
        tsvdi_kernels()->accumulate(m, m, defect, old, m, factor + i * m);
    }
}

/* Half sweeps of the segment in workspace->packed until one makes no rotation; returns how many
   made one, or -1.  *drifted = half sweeps since the factors were brought back to orthogonality. */
static int64_t
run_to_end(struct workspace *workspace, int64_t m, real eps, int64_t bound, int64_t *drifted)
{
    int64_t low = 0, high = m - 1; /* entries outside are zero, and stay so */

    *drifted = 0;
    for (int64_t k = 0; k < bound; k++) {
        int64_t lowest = m, highest = 0, odd = k & 1;

        for (int64_t i = low; i < high; i++) {
            struct rotation q;
            int dropped;

            if (givens_step(workspace->packed + 3 * i, (int)odd, eps, &q, &dropped)) {
                rotate_rows(workspace->factor[odd], m, i, q);
                lowest = i < lowest ? i : lowest;
                highest = i + 1;
                workspace->counts.rotations++;
            }
            workspace->counts.deflated += dropped;
        }
        workspace->counts.steps += high - low + 1;
        if (highest == 0) {
            return k;
        }
        low = lowest;
        high = highest;
        if (++*drifted == DRIFT_SWEEPS_MAX) {
            orthonormalize_factor(workspace->factor[0], m, workspace->spare);
            orthonormalize_factor(workspace->factor[1], m, workspace->spare);
            *drifted = 0;
        }
    }
    return -1;
}

/* Vectors first .. first + m - 1 become the factor times them. */
static void
apply_factor(const real *factor, int64_t m, struct vectors v, int64_t first, real *old)
{
    if (v.columns) {
        for (int64_t i = 0; i < v.n; i++) {
            real *x = v.x + i * v.n + first;

            memcpy(old, x, (size_t)m * sizeof *x);
            for (int64_t j = 0; j < m; j++) {
                x[j] = tsvdi_kernels()->dot(m, factor + j * m, old);
            }
        }
        return;
    }
    for (int64_t column = 0; column < v.n; column += CPU_FACTOR_COLUMNS) {
        int64_t width = v.n - column < CPU_FACTOR_COLUMNS ? v.n - column : CPU_FACTOR_COLUMNS;

        for (int64_t j = 0; j < m; j++) {
            real *x = v.x + (first + j) * v.n + column;

            memcpy(old + j * width, x, (size_t)width * sizeof *x);
            memset(x, 0, (size_t)width * sizeof *x);
        }
        for (int64_t j = 0; j < m; j++) {
            tsvdi_kernels()->accumulate(width, m, factor + j * m, old, width,
                                        v.x + (first + j) * v.n + column);
        }
    }
}

static tsvd_status
finish_segment(void *arg, int worker, int64_t index)
{
    const struct finish_task *task = arg;
    const struct givens_job *job = task->job;
    const struct givens_segment segment = task->segment[index];
    const int64_t m = segment.rows;
    const struct vectors side[2] = {job->right, job->left};
    struct workspace *workspace = &task->workspace[worker];
    struct band band = {.steps = m - 1, .blocks = 1, .packed = workspace->packed};
    int64_t drifted;

    pack(&band, job->d + segment.first, job->e + segment.first);
    for (int k = 0; k < 2; k++) {
        memset(workspace->factor[k], 0, (size_t)(m * m) * sizeof(real));
        for (int64_t i = 0; i < m; i++) {
            workspace->factor[k][i * (m + 1)] = 1;
        }
    }
    task->half_sweeps[index] =
        run_to_end(workspace, m, job->eps, task->half_sweeps[index], &drifted);
    unpack(&band, job->d + segment.first, job->e + segment.first);
    for (int k = 0; k < 2 && side[k].x != NULL; k++) {
        if (drifted > DRIFT_SWEEPS_PER_ROW * m) {
            orthonormalize_factor(workspace->factor[k], m, workspace->spare);
        }
        apply_factor(workspace->factor[k], m, side[k], segment.first, workspace->spare);
    }
    return worker == 0 ? tsvdi_check(task->ctx, task->ctx->done) : TSVD_OK;
}

static tsvd_status
givens_finish(struct tsvd_context *ctx, const struct givens_job *job,
              const struct givens_segment *segment, int64_t segments, int64_t *half_sweeps,
              struct givens_counts *counts)
{
    struct finish_task task = {ctx, job, segment, half_sweeps, NULL};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(
        tsvdi_alloc(ctx, bytes_of(ctx->threads, sizeof *task.workspace), (void **)&task.workspace));
    for (int i = 0; i < ctx->threads; i++) {
        memset(&task.workspace[i].counts, 0, sizeof task.workspace[i].counts);
    }
    TSVD_TRY(tsvdi_host_for_each(ctx->threads, segments, finish_segment, &task));
    for (int i = 0; i < ctx->threads; i++) {
        counts->steps += task.workspace[i].counts.steps;
        counts->rotations += task.workspace[i].counts.rotations;
        counts->deflated += task.workspace[i].counts.deflated;
    }
out:
    tsvdi_free(ctx, task.workspace);
    return ret;
}

/* Workspace of a round or of finish(), whichever needs more.  A round makes at most as many half
   sweeps as run at once.  It logs at most CPU_ROUND_ROTATIONS rotations of a side, or one sweep. */
static struct bytes
givens_bytes(const struct svd_plan *plan)
{
    const tsvd_options *options = plan->problem->call.options;
    const int64_t n = plan->reported.n, asked = options->givens_threads;
    const int64_t threads = asked > 0 ? asked : n / 2;
    /* rows of a log: the shortest segment that is not small has the most */
    const int64_t most =
        CPU_ROUND_ROTATIONS / (options->givens_split ? CPU_FINISH_ROWS + 1 : n) + 1;
    const int64_t sides = threads / 2 > most ? most : threads / 2 > 1 ? threads / 2 : 1;
    struct bytes round = {bytes_of(6 * n, sizeof(real)), 0};
    struct bytes end = {bytes_of(plan->reported.threads, sizeof(struct workspace)), 0};
    int64_t logged = sides < CPU_ROUND_ROTATIONS / n ? sides * n : CPU_ROUND_ROTATIONS, sweeps;

    if (plan->problem->vectors && (n > CPU_FINISH_ROWS || !options->givens_split)) {
        logged = logged > n ? logged : n;
        /* one for each row of a segment's log, and one after each gap */
        sweeps = logged / CPU_LOG_GAP + logged / CPU_FINISH_ROWS + sides;
        round.host = bytes_add(round.host, bytes_of(4 * logged, sizeof(struct rotation)));
        round.host = bytes_add(round.host, bytes_of(2 * sweeps, sizeof(struct qr_sweep)));
        round = bytes_sum(round, tsvdi_cpu_vectors.rotate_bytes(plan, sweeps, logged));
    }
    return bytes_most(round, end);
}

const struct givens_ops tsvdi_cpu_givens = {
    .small_rows = CPU_FINISH_ROWS,
    .round_sweeps = round_sweeps,
    .round = givens_round,
    .finish = givens_finish,
    .bytes = givens_bytes,
};
