/*
 * CPU back end: singular vectors.  Logged rotations are applied to panels that
 * stay in cache, the panels of both sides shared out over the threads.
 */
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"

/* One side: its waves over the vectors that they touch. */
struct side {
    struct vectors vectors;
    struct wave *wave;     /* [waves] */
    real *coefficients;    /* those of all waves, see struct wave */
    int64_t waves;         /* how many there are */
    int64_t row0, rows;    /* vectors that the waves touch */
    int64_t width, panels; /* columns of a panel, and number of panels */
};

/* Writes the coefficients of one wave; returns how many rotations its sweeps have. */
static int64_t
fill_wave(const struct rotation_log *log, struct sweep_group g, const struct rotation *rotation,
          real *coefficients)
{
    const int64_t steps = g.high - g.low + WAVE - 1;
    int64_t used = 0;

    memset(coefficients, 0, (size_t)(steps * WAVE * 2) * sizeof *coefficients);
    for (int64_t k = g.begin; k < g.end; k++) {
        const struct qr_sweep *s = &log->sweep[k];
        /* the step at which the sweep makes its first rotation */
        const int64_t start =
            k - g.begin + (s->up ? g.high - (s->first + s->count) : s->first - g.low);
        real *to = coefficients + start * WAVE + k - g.begin;

        tsvdi_kernels()->lift(s->count, rotation + used, to, to + steps * WAVE);
        used += s->count;
    }
    return used;
}

/* Cuts a log into waves. */
static tsvd_status
side_prepare(struct tsvd_context *ctx, const struct rotation_log *log, struct vectors vectors,
             int fresh, struct side *side)
{
    const int64_t lanes = tsvdi_kernels()->lanes;
    const struct rotation *rotation = log->rotation;
    int64_t waves = 0, steps = 0, low = vectors.n, high = 0, widest;
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = 0; begin < log->sweeps;) {
        struct sweep_group g = log_next_group(log, begin, WAVE);

        waves++;
        steps += g.high - g.low + WAVE - 1;
        low = g.low < low ? g.low : low;
        high = g.high + 1 > high ? g.high + 1 : high;
        begin = g.end;
    }
    if (fresh) { /* every vector is written */
        low = 0;
        high = vectors.n;
    }
    side->vectors = vectors;
    side->waves = waves;
    side->row0 = low;
    side->rows = high > low ? high - low : 0;
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)waves * sizeof *side->wave, (void **)&side->wave));
    TSVD_TRY(
        tsvdi_alloc(ctx, (size_t)steps * WAVE * 2 * sizeof(real), (void **)&side->coefficients));
    waves = steps = 0;
    for (int64_t begin = 0; begin < log->sweeps;) {
        struct sweep_group g = log_next_group(log, begin, WAVE);
        struct wave *w = &side->wave[waves++];

        w->up = log->sweep[begin].up;
        w->first = w->up ? g.high : g.low;
        w->steps = g.high - g.low + WAVE - 1;
        w->offset = steps * WAVE * 2;
        steps += w->steps;
        rotation += fill_wave(log, g, rotation, side->coefficients + w->offset);
        begin = g.end;
    }
    widest = CPU_PANEL_BYTES / (int64_t)sizeof(real) / (side->rows + 2 * WAVE);
    widest = widest > CPU_PANEL_WIDTH_MAX ? CPU_PANEL_WIDTH_MAX : widest < 1 ? 1 : widest;
    widest = widest > vectors.n ? vectors.n : widest;
    side->width = (widest + lanes - 1) / lanes * lanes;
    side->panels = side->rows > 0 ? (vectors.n + side->width - 1) / side->width : 0;
out:
    return ret;
}

/* Copies the entries column .. column + width - 1 of the vectors to the panel; panel_store()
   copies them back. */
static void
panel_load(const struct side *side, int64_t column, int64_t width, int fresh, real *x)
{
    const struct vectors *v = &side->vectors;
    const int64_t n = v->n;

    if (fresh) {
        memset(x, 0, (size_t)(side->rows * side->width) * sizeof *x);
        for (int64_t i = 0; i < width; i++) {
            x[(column + i - side->row0) * side->width + i] = 1;
        }
    } else if (v->columns) {
        for (int64_t j = 0; j < side->rows; j++) {
            for (int64_t i = 0; i < width; i++) {
                x[j * side->width + i] = v->x[(column + i) * n + side->row0 + j];
            }
        }
    } else {
        for (int64_t j = 0; j < side->rows; j++) {
            memcpy(x + j * side->width, v->x + (side->row0 + j) * n + column,
                   (size_t)width * sizeof *x);
        }
    }
}

static void
panel_store(const struct side *side, int64_t column, int64_t width, const real *x)
{
    const struct vectors *v = &side->vectors;
    const int64_t n = v->n;

    if (v->columns) {
        for (int64_t i = 0; i < width; i++) {
            for (int64_t j = 0; j < side->rows; j++) {
                v->x[(column + i) * n + side->row0 + j] = x[j * side->width + i];
            }
        }
    } else {
        for (int64_t j = 0; j < side->rows; j++) {
            memcpy(v->x + (side->row0 + j) * n + column, x + j * side->width,
                   (size_t)width * sizeof *x);
        }
    }
}

/* Between tasks, worker 0 asks the caller whether to go on. */
static tsvd_status
ask(struct tsvd_context *ctx, int worker)
{
    return worker == 0 ? tsvdi_check(ctx, ctx->done) : TSVD_OK;
}

struct rotate_job {
    struct tsvd_context *ctx;
    struct side side[2];
    real *work; /* a panel for each worker */
    int64_t panel_reals;
    int fresh;
};

static tsvd_status
rotate_panel(void *arg, int worker, int64_t index)
{
    const struct rotate_job *job = arg;
    const struct side *side = &job->side[index >= job->side[0].panels];
    int64_t column = (index - (side == job->side ? 0 : job->side[0].panels)) * side->width;
    int64_t rest = side->vectors.n - column, width = rest < side->width ? rest : side->width;
    int64_t margin = WAVE * side->width, body = side->rows * side->width;
    real *x = job->work + worker * job->panel_reals;
    struct panel panel = {x, side->row0, side->rows, side->width};

    memset(x, 0, (size_t)margin * sizeof *x);
    memset(x + margin + body, 0, (size_t)margin * sizeof *x);
    if (width < side->width) { /* padding columns, rotated but never stored */
        memset(x + margin, 0, (size_t)body * sizeof *x);
    }
    panel_load(side, column, width, job->fresh, x + margin);
    tsvdi_kernels()->rotate(panel, side->wave, side->waves, side->coefficients);
    panel_store(side, column, width, x + margin);
    return ask(job->ctx, worker);
}

static tsvd_status
rotate(struct tsvd_context *ctx, const struct rotation_log *right, const struct rotation_log *left,
       struct vectors right_vectors, struct vectors left_vectors, int fresh)
{
    const int64_t n = right_vectors.n;
    struct rotate_job job = {0};
    int workers = ctx->threads;
    tsvd_status ret = TSVD_OK;

    job.ctx = ctx;
    job.fresh = fresh;
    TSVD_TRY(side_prepare(ctx, right, right_vectors, fresh, &job.side[0]));
    TSVD_TRY(side_prepare(ctx, left, left_vectors, fresh, &job.side[1]));
    if ((right->rotations + left->rotations + n) * n < CPU_SERIAL_PAIRS) {
        workers = 1;
    }
    for (int i = 0; i < 2; i++) {
        int64_t reals = (job.side[i].rows + 2 * WAVE) * job.side[i].width;

        job.panel_reals = reals > job.panel_reals ? reals : job.panel_reals;
    }
    TSVD_TRY(
        tsvdi_alloc(ctx, (size_t)(workers * job.panel_reals) * sizeof(real), (void **)&job.work));
    TSVD_TRY(
        tsvdi_host_for_each(workers, job.side[0].panels + job.side[1].panels, rotate_panel, &job));
out:
    for (int i = 0; i < 2; i++) {
        tsvdi_free(ctx, job.side[i].wave);
        tsvdi_free(ctx, job.side[i].coefficients);
    }
    tsvdi_free(ctx, job.work);
    return ret;
}

static tsvd_status
identity(struct tsvd_context *ctx, struct vectors vectors)
{
    const int64_t n = vectors.n;

    (void)ctx;
    memset(vectors.x, 0, (size_t)(n * n) * sizeof *vectors.x);
    for (int64_t i = 0; i < n; i++) {
        vectors.x[i * (n + 1)] = 1;
    }
    return TSVD_OK;
}

struct order_job {
    struct tsvd_context *ctx;
    struct vectors left, right;
    const int64_t *from;
    const char *negative;
    real *sign; /* [n], of the left vectors before the move */
    real *work; /* for each worker CPU_ORDER_COLUMNS n reals */
};

/* Brings `width` <= CPU_ORDER_COLUMNS columns, whose rows are n numbers apart, to norm 1. */
static void
normalize_columns(int64_t n, int64_t width, real *x)
{
    real change[CPU_ORDER_COLUMNS] = {0};

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) {
            change[j] += x[i * n + j] * x[i * n + j];
        }
    }
    for (int64_t j = 0; j < width; j++) {
        change[j] = unit_change(change[j]);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) {
            x[i * n + j] += change[j] * x[i * n + j];
        }
    }
}

/* Brings CPU_ORDER_COLUMNS columns of L and rows of R to norm 1.  Finds the signs of the columns,
   and multiplies them by their signs. */
static tsvd_status
orient_left(void *arg, int worker, int64_t index)
{
    const struct order_job *job = arg;
    const int64_t n = job->left.n, begin = index * CPU_ORDER_COLUMNS;
    const int64_t width = begin + CPU_ORDER_COLUMNS < n ? CPU_ORDER_COLUMNS : n - begin;

    normalize_columns(n, width, job->left.x + begin);
    for (int64_t i = begin; i < begin + width; i++) {
        tsvdi_kernels()->normalize(n, 1, job->right.x + i * n, job->right.x + i * n);
    }
    tsvdi_kernels()->orient(width, n, job->left.x + begin, n, job->sign + begin);
    return ask(job->ctx, worker);
}

/* Permutes the entries of some rows of L. */
static tsvd_status
order_left(void *arg, int worker, int64_t index)
{
    const struct order_job *job = arg;
    const int64_t n = job->left.n, begin = index * CPU_ORDER_COLUMNS;
    const int64_t end = begin + CPU_ORDER_COLUMNS < n ? begin + CPU_ORDER_COLUMNS : n;
    real *old = job->work + worker * CPU_ORDER_COLUMNS * n;

    for (int64_t i = begin; i < end; i++) {
        real *row = job->left.x + i * n;

        memcpy(old, row, (size_t)n * sizeof *old);
        for (int64_t j = 0; j < n; j++) {
            row[j] = old[job->from[j]];
        }
    }
    return ask(job->ctx, worker);
}

/* A copy of columns begin .. begin + width - 1, row after row. */
static void
copy_columns(const struct vectors *v, int64_t begin, int64_t width, real *copy)
{
    for (int64_t i = 0; i < v->n; i++) {
        memcpy(copy + i * width, v->x + i * v->n + begin, (size_t)width * sizeof *copy);
    }
}

/* Permutes the rows of R in some of its columns, and fixes their signs. */
static tsvd_status
order_right(void *arg, int worker, int64_t index)
{
    const struct order_job *job = arg;
    const int64_t n = job->right.n, begin = index * CPU_ORDER_COLUMNS;
    const int64_t width = begin + CPU_ORDER_COLUMNS < n ? CPU_ORDER_COLUMNS : n - begin;
    real *old = job->work + worker * CPU_ORDER_COLUMNS * n;

    copy_columns(&job->right, begin, width, old);
    for (int64_t i = 0; i < n; i++) {
        const real *x = old + job->from[i] * width;
        real *row = job->right.x + i * n + begin;
        const real sign =
            job->negative[job->from[i]] ? -job->sign[job->from[i]] : job->sign[job->from[i]];

        for (int64_t j = 0; j < width; j++) {
            row[j] = sign * x[j];
        }
    }
    return ask(job->ctx, worker);
}

static tsvd_status
order(struct tsvd_context *ctx, const int64_t *from, const char *negative,
      struct vectors left_vectors, struct vectors right_vectors)
{
    const int64_t n = left_vectors.n, chunks = (n + CPU_ORDER_COLUMNS - 1) / CPU_ORDER_COLUMNS;
    const int workers = 8 * n * n < CPU_SERIAL_PAIRS ? 1 : ctx->threads;
    struct order_job job = {ctx, left_vectors, right_vectors, from, negative, NULL, NULL};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, (size_t)n * sizeof(real), (void **)&job.sign));
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)(workers * CPU_ORDER_COLUMNS * n) * sizeof(real),
                         (void **)&job.work));
    TSVD_TRY(tsvdi_host_for_each(workers, chunks, orient_left, &job));
    TSVD_TRY(tsvdi_host_for_each(workers, chunks, order_left, &job));
    TSVD_TRY(tsvdi_host_for_each(workers, chunks, order_right, &job));
out:
    tsvdi_free(ctx, job.sign);
    tsvdi_free(ctx, job.work);
    return ret;
}

struct orthonormalize_job {
    struct tsvd_context *ctx;
    struct vectors vectors;
    real *defect; /* [n, n] (I - X X^T) / 2 */
    real *work;   /* for each worker CPU_ORDER_COLUMNS n reals */
};

/* Rows of `defect` up to the diagonal, mirrored above it. */
static tsvd_status
find_defect(void *arg, int worker, int64_t index)
{
    const struct orthonormalize_job *job = arg;
    const int64_t n = job->vectors.n, begin = index * CPU_ORDER_COLUMNS;
    const int64_t end = begin + CPU_ORDER_COLUMNS < n ? begin + CPU_ORDER_COLUMNS : n;
    const real *x = job->vectors.x;

    for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j <= i; j++) {
            real defect = (REAL(i == j) - tsvdi_kernels()->dot(n, x + i * n, x + j * n)) / 2;

            job->defect[i * n + j] = job->defect[j * n + i] = defect;
        }
    }
    return ask(job->ctx, worker);
}

/* Corrects CPU_ORDER_COLUMNS columns of X. */
static tsvd_status
correct_columns(void *arg, int worker, int64_t index)
{
    const struct orthonormalize_job *job = arg;
    const int64_t n = job->vectors.n, begin = index * CPU_ORDER_COLUMNS;
    const int64_t width = begin + CPU_ORDER_COLUMNS < n ? CPU_ORDER_COLUMNS : n - begin;
    real *old = job->work + worker * CPU_ORDER_COLUMNS * n;

    copy_columns(&job->vectors, begin, width, old);
    for (int64_t i = 0; i < n; i++) {
        tsvdi_kernels()->accumulate(width, n, job->defect + i * n, old, width,
                                    job->vectors.x + i * n + begin);
    }
    return ask(job->ctx, worker);
}

static tsvd_status
orthonormalize(struct tsvd_context *ctx, struct vectors vectors)
{
    const int64_t n = vectors.n, chunks = (n + CPU_ORDER_COLUMNS - 1) / CPU_ORDER_COLUMNS;
    const int workers = n * n * n < CPU_SERIAL_PAIRS ? 1 : ctx->threads;
    struct orthonormalize_job job = {ctx, vectors, NULL, NULL};
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, (size_t)(n * n) * sizeof(real), (void **)&job.defect));
    TSVD_TRY(tsvdi_alloc(ctx, (size_t)(workers * CPU_ORDER_COLUMNS * n) * sizeof(real),
                         (void **)&job.work));
    TSVD_TRY(tsvdi_host_for_each(workers, chunks, find_defect, &job));
    TSVD_TRY(tsvdi_host_for_each(workers, chunks, correct_columns, &job));
out:
    tsvdi_free(ctx, job.defect);
    tsvdi_free(ctx, job.work);
    return ret;
}

/* ---- where the vectors are: in the results' own memory, columns of L and rows of R ---- */

static tsvd_status
begin(struct tsvd_context *ctx, int64_t n, int64_t k, int64_t batch, struct results to,
      struct vectors *left, struct vectors *right)
{
    (void)ctx;
    *left = (struct vectors){to.L, n, k, batch, 1};
    *right = (struct vectors){to.R, n, k, batch, 0};
    return TSVD_OK;
}

static tsvd_status
end(struct tsvd_context *ctx, struct vectors left, struct vectors right, struct results to)
{
    (void)ctx, (void)left, (void)right, (void)to;
    return TSVD_OK;
}

static void
no_free(struct tsvd_context *ctx, struct vectors *left, struct vectors *right)
{
    (void)ctx, (void)left, (void)right;
}

static struct bytes
begin_bytes(const struct svd_plan *plan)
{
    const struct bytes none = {0, 0};

    (void)plan;
    return none;
}

/* The larger of two workspaces.  rotate() takes a panel for each worker, and for each side its
   waves and their coefficients, which are identities where sweeps are shorter than their wave.
   order() takes the signs, and for each worker the rows or columns that it orders at a time. */
static struct bytes
rotate_bytes(const struct svd_plan *plan, int64_t sweeps, int64_t rotations)
{
    const int64_t n = plan->reported.n, threads = plan->reported.threads;
    /* a step of a wave has 2 WAVE coefficients; a sweep that begins a wave or joins it
       (log_next_group()) adds its own length and WAVE steps at most */
    const int64_t coefficients = 2 * WAVE * (rotations + 2 * WAVE * sweeps);
    int64_t panel = CPU_PANEL_BYTES / (int64_t)sizeof(real);
    struct bytes turn = {0, 0}, put = {0, 0};

    panel =
        panel > CPU_PANEL_WIDTH_MAX * (n + 2 * WAVE) ? CPU_PANEL_WIDTH_MAX * (n + 2 * WAVE) : panel;
    panel += (n + 2 * WAVE) * tsvdi_kernels()->lanes;
    turn.host = bytes_of(threads * panel, sizeof(real));
    turn.host = bytes_add(turn.host, bytes_of(2 * sweeps, sizeof(struct wave)));
    turn.host = bytes_add(turn.host, bytes_of(2 * coefficients, sizeof(real)));
    put.host = bytes_of(n + threads * CPU_ORDER_COLUMNS * n, sizeof(real));
    return bytes_most(turn, put);
}

static struct bytes
orthonormalize_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    struct bytes bytes = {bytes_of(n * n, sizeof(real)), 0};

    bytes.host = bytes_add(bytes.host,
                           bytes_of(plan->reported.threads * CPU_ORDER_COLUMNS * n, sizeof(real)));
    return bytes;
}

const struct vectors_ops tsvdi_cpu_vectors = {
    .begin = begin,
    .end = end,
    .free = no_free,
    .identity = identity,
    .rotate = rotate,
    .order = order,
    .orthonormalize = orthonormalize,
    .begin_bytes = begin_bytes,
    .rotate_bytes = rotate_bytes,
    .orthonormalize_bytes = orthonormalize_bytes,
};
