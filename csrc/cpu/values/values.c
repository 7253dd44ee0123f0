/*
 * CPU back end: singular values by bisection, in two passes.  bracket.h has the rules of the
 * brackets, and says why this search differs from the device's.
 *
 * The first pass finds all values to an ulp or two with plain counts.  It starts from the root
 * [0, top) and halves intervals, which values share as long as they lie together.  Where another
 * method found approximations, it starts from brackets around them.  So it does for the small
 * matrices of a batch: QR approximates the values of several such matrices side by side.
 *
 * The second pass brackets each value around its approximation, and halves the bracket down to
 * neighbouring numbers with exact counts.  Two counts are usually enough.  So a value depends
 * neither on the approximation nor on how the work was shared out.  The exception is where exact
 * counts are not monotone: a number may be an eigenvalue of the matrix that rounding makes of it.
 */
#include "backend/ops.h"
#include "cpu/dc/dc_run.h"
#include "cpu/tuning.h"
#include "math/bracket.h"

/* tsvdi_check() is called again after counting this many entries times shifts. */
enum { CHECK_STEPS = 1 << 27 };

/* A bracket with sure ends that values share. */
struct interval {
    real_int low, high;
    int64_t first, last; /* the values first .. last - 1, counted from the largest */
};

/* The bracket of one value. */
struct bracket {
    struct bracket_ends ends;
    real_int reach; /* how far an end that is not sure is put from the other */
    int64_t value;  /* counted from the largest */
};

/* The search for the values of one matrix. */
struct search {
    struct tsvd_context *ctx;
    const struct sturm *matrix;
    const real *hint;    /* [last - first] approximations, or NULL */
    int64_t first, last; /* the values first .. last - 1 are wanted */
    real eps;            /* as in struct values_job */
    real *s;             /* [last - first] the values */
    int64_t per_task;    /* values of a task */
    int64_t tasks;
    double done;       /* share of the work that was done before this matrix */
    double share;      /* share of the work that one matrix is */
    struct task *task; /* [workers] too large for the stack of a small thread */
};

/* The task that a worker has under work. */
struct task {
    const struct search *job;
    int worker;
    int64_t counts;    /* Sturm counts made in all tasks of the worker */
    int64_t index;     /* of the task */
    int64_t counted;   /* entries times shifts since the last call of tsvdi_check() */
    int64_t intervals; /* open ones */
    union {
        struct interval interval[CPU_VALUES_PER_TASK]; /* in the first pass */
        struct bracket bracket[CPU_VALUES_PER_TASK];   /* in the second */
    } open;
    real sigma[CPU_VALUES_PER_TASK];    /* shifts to be counted at */
    int64_t above[CPU_VALUES_PER_TASK]; /* the counts at these shifts */
};

/* Counts at the first `shifts` of task->sigma. */
static tsvd_status
count(struct task *task, int exact, int64_t shifts)
{
    const struct search *job = task->job;

    tsvdi_kernels()->count(job->matrix, exact, shifts, task->sigma, task->above);
    task->counts += shifts;
    task->counted += shifts * job->matrix->entries * (exact ? 4 : 1);
    if (task->worker > 0 || task->counted < CHECK_STEPS) {
        return TSVD_OK;
    }
    task->counted = 0;
    return tsvdi_check(job->ctx, job->done + job->share * (double)task->index / (double)job->tasks);
}

/* Writes the values of the narrow intervals.  Keeps all other intervals, and puts their midpoints
   in task->sigma.  Returns how many it keeps. */
static int64_t
take_midpoints(struct task *task)
{
    const real eps = task->job->eps;
    int64_t kept = 0;

    for (int64_t i = 0; i < task->intervals; i++) {
        struct interval v = task->open.interval[i];

        if (bracket_is_narrow(v.low, v.high, eps)) {
            for (int64_t k = v.first; k < v.last; k++) {
                task->job->s[k - task->job->first] = r_from_bits(v.low);
            }
        } else {
            task->open.interval[kept] = v;
            task->sigma[kept++] = r_from_bits((real_int)bracket_middle(v.low, v.high));
        }
    }
    return kept;
}

/* The first pass for the values first .. last - 1. */
static tsvd_status
approximate(struct task *task, int64_t first, int64_t last)
{
    tsvd_status ret = TSVD_OK;

    task->open.interval[0] = (struct interval){0, task->job->matrix->top, first, last};
    task->intervals = 1;
    while ((task->intervals = take_midpoints(task)) > 0) {
        int64_t halved = task->intervals;

        TSVD_TRY(count(task, 0, task->intervals));
        /* An interval with values in both halves becomes two.  Each holds a value, so there are
           never more intervals than values. */
        for (int64_t i = 0; i < task->intervals; i++) {
            struct interval v = task->open.interval[i], upper = v;
            const int64_t cut = bracket_min(bracket_max(task->above[i], v.first), v.last);

            upper.low = v.high = r_bits(task->sigma[i]);
            upper.last = v.first = cut;
            if (upper.first == upper.last) {
                task->open.interval[i] = v;
            } else {
                task->open.interval[i] = upper;
                if (v.first < v.last) {
                    task->open.interval[halved++] = v;
                }
            }
        }
        task->intervals = halved;
    }
out:
    return ret;
}

/* The bracket around an approximation. */
static struct bracket
start_bracket(real_int near, real_int reach, struct bracket_range range, int64_t value)
{
    struct bracket b = {.reach = reach, .value = value};

    b.ends = bracket_within((int64_t)near - reach, (int64_t)near + reach, range);
    return b;
}

/* The shift of the next count for a bracket, as bits. */
static real_int
probe(struct bracket_ends b)
{
    return !b.low_sure ? b.low : !b.high_sure ? b.high : (real_int)bracket_middle(b.low, b.high);
}

/* A longer reach.  From zero it grows by single ulps at first. */
static real_int
extend(real_int reach)
{
    return reach < 2 ? reach + 1 : bracket_reach_further(reach, CPU_BRACKET_GROWTH);
}

/* Moves the ends of a bracket after a count at the probe `at`.  above: whether the value is at or
   above the probe. */
static void
move_bracket(struct bracket *b, real_int at, int above, struct bracket_range range)
{
    struct bracket_ends *ends = &b->ends;

    if (above) {
        ends->low = at;
        ends->low_sure = 1;
        if (!ends->high_sure && ends->high <= at) { /* the approximation was too small */
            b->reach = extend(b->reach);
            ends->high = (real_int)bracket_end_above(at, b->reach, range.top);
        }
    } else {
        ends->high = at;
        ends->high_sure = 1;
        if (!ends->low_sure) { /* the approximation was too large */
            b->reach = extend(b->reach);
            ends->low = (real_int)bracket_end_below(at, b->reach, range.floor);
        }
    }
    ends->low_sure |= ends->low == 0;
    ends->high_sure |= ends->high == range.top;
}

/* Brackets the values first .. last - 1 down to neighbouring numbers, starting from near[0] .. */
static tsvd_status
refine(struct task *task, int exact, int64_t first, int64_t last, const real *near)
{
    const struct bracket_range range = {0, task->job->matrix->top, 0};
    const real_int reach = exact ? CPU_EXACT_REACH : CPU_PLAIN_REACH;
    int64_t open = last - first;
    tsvd_status ret = TSVD_OK;

    for (int64_t i = 0; i < open; i++) {
        task->open.bracket[i] = start_bracket(r_bits(near[i]), reach, range, first + i);
    }
    while (open > 0) {
        int64_t kept = 0;

        for (int64_t i = 0; i < open; i++) {
            const struct bracket b = task->open.bracket[i];

            if (b.ends.low_sure && b.ends.high_sure &&
                bracket_is_narrow(b.ends.low, b.ends.high, range.eps)) {
                task->job->s[b.value - task->job->first] = r_from_bits(b.ends.low);
            } else {
                task->open.bracket[kept] = b;
                task->sigma[kept++] = r_from_bits(probe(b.ends));
            }
        }
        open = kept;
        TSVD_TRY(count(task, exact, open));
        for (int64_t i = 0; i < open; i++) {
            struct bracket *b = &task->open.bracket[i];

            move_bracket(b, r_bits(task->sigma[i]), task->above[i] > b->value, range);
        }
    }
out:
    return ret;
}

static tsvd_status
find_values(void *arg, int worker, int64_t index)
{
    const struct search *job = arg;
    const int64_t at = index * job->per_task, first = job->first + at;
    const int64_t last = first + job->per_task < job->last ? first + job->per_task : job->last;
    const int plain = r_isfinite(job->matrix->plain_from);
    struct task *task = &job->task[worker];
    tsvd_status ret = TSVD_OK;

    task->job = job;
    task->worker = worker;
    task->index = index;
    task->counted = 0;
    if (job->hint == NULL) {
        TSVD_TRY(approximate(task, first, last));
    } else if (plain) {
        TSVD_TRY(refine(task, 0, first, last, job->hint + at));
    } else {
        memcpy(job->s + at, job->hint + at, (size_t)(last - first) * sizeof *job->s);
    }
    if (job->eps == 0) {
        TSVD_TRY(refine(task, 1, first, last, job->s + at));
    }
    if (worker == 0) {
        TSVD_TRY(
            tsvdi_check(job->ctx, job->done + job->share * (double)index / (double)job->tasks));
    }
out:
    return ret;
}

/* The values of one matrix. */
static tsvd_status
search_matrix(struct search *search, int workers)
{
    const int64_t n = search->last - search->first;
    int64_t per_task = n / (4 * (int64_t)workers) + 1;

    per_task = (per_task + CPU_VALUES_PER_TASK_MIN - 1) / CPU_VALUES_PER_TASK_MIN *
               CPU_VALUES_PER_TASK_MIN;
    search->per_task = per_task < CPU_VALUES_PER_TASK ? per_task : CPU_VALUES_PER_TASK;
    search->tasks = (n + search->per_task - 1) / search->per_task;
    return tsvdi_host_for_each(workers, search->tasks, find_values, search);
}

/* The hints of matrix m, or NULL.  It is called for one matrix after another.  made: NULL, or
   workspace for the hints of a group of small matrices, which QR makes together at the first of
   them. */
static const real *
hints_for(struct tsvd_context *ctx, const struct values_job *job, int64_t m, real *made)
{
    const int64_t n = job->n, size = tsvdi_cpu_dc_leaf_group_size(), left = job->count - m;

    if (made == NULL) {
        return job->hint != NULL ? job->hint + m * (job->last - job->first) : NULL;
    }
    if (m % size == 0) {
        tsvdi_cpu_dc_leaf_values(ctx, n, left < size ? left : size, job->chunk->d + m * n,
                                 job->chunk->e + m * n, made);
    }
    return made + m % size * n + job->first;
}

static tsvd_status
find(struct tsvd_context *ctx, struct values_job *job)
{
    const int64_t n = job->n, k = job->last - job->first;
    const int workers = 2 * n * k < CPU_VALUES_SERIAL_STEPS ? 1 : ctx->threads;
    void *work = NULL;
    real *hints = NULL;
    struct sturm matrix;
    struct search search = {.ctx = ctx,
                            .matrix = &matrix,
                            .first = job->first,
                            .last = job->last,
                            .eps = job->eps,
                            .share = (1 - ctx->done) / (double)job->count};
    const double done = ctx->done;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(workers, sizeof *search.task), (void **)&search.task));
    for (int i = 0; i < workers; i++) {
        search.task[i].counts = 0;
    }
    TSVD_TRY(tsvdi_alloc(ctx, tsvdi_sturm_bytes(n), &work));
    if (job->hint == NULL && ctx->plan->side_by_side) {
        TSVD_TRY(tsvdi_cpu_dc_leaves_begin(ctx));
        TSVD_TRY(tsvdi_alloc(ctx, bytes_of(tsvdi_cpu_dc_leaf_group_size() * n, sizeof *hints),
                             (void **)&hints));
    }
    for (int64_t m = 0; m < job->count; m++) {
        tsvdi_sturm_prepare(n, job->chunk->d + m * n, job->chunk->e + m * n, work, &matrix);
        search.s = job->s + m * k;
        search.done = done + search.share * (double)m;
        search.hint = hints_for(ctx, job, m, hints);
        if (matrix.entries == 0) {
            memset(search.s, 0, (size_t)k * sizeof *search.s);
            continue;
        }
        TSVD_TRY(search_matrix(&search, workers));
        /* Counts are monotone only up to rounding: neighbours may have crossed by an ulp. */
        for (int64_t i = 1; i < k; i++) {
            search.s[i] = r_min(search.s[i], search.s[i - 1]);
        }
    }
    for (int i = 0; i < workers; i++) {
        job->counts += search.task[i].counts;
    }
out:
    tsvdi_free(ctx, hints);
    tsvdi_free(ctx, work);
    tsvdi_free(ctx, search.task);
    return ret;
}

/* Exact counts at any shifts. */
static void
count_exactly(const struct sturm *matrix, int64_t count, const real *sigma, int64_t *above)
{
    tsvdi_kernels()->count(matrix, 1, count, sigma, above);
}

static struct bytes
values_bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    struct bytes bytes = {bytes_of(plan->reported.threads, sizeof(struct task)), 0};

    bytes.host = bytes_add(bytes.host, tsvdi_sturm_bytes(n));
    if (plan->side_by_side) {
        bytes.host =
            bytes_add(bytes.host, bytes_of(plan->reported.threads, tsvdi_cpu_dc_leaf_bytes()));
        bytes.host =
            bytes_add(bytes.host, bytes_of(tsvdi_cpu_dc_leaf_group_size() * n, sizeof(real)));
    }
    return bytes;
}

const struct values_ops tsvdi_cpu_values = {
    .find = find,
    .count = count_exactly,
    .bytes = values_bytes,
};

const struct values_ops *
tsvdi_host_values(void)
{
    return &tsvdi_cpu_values;
}
