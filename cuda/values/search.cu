/*
 * Singular values of one matrix, with the whole device.  csrc/cpu/values/values.c does the same by
 * other means.
 *
 * Values may be few, and recurrences are long.  So a round cuts the bracket of every value at
 * several points at once (multisection.h): at as many as keep the device at work for the time of
 * one recurrence, or at one point if there are more values than that.  The values that are still
 * open are listed anew after each round, and the device plans the next one.  Where values are few
 * and rounds are short the host enqueues several before it asks how many are left.
 *
 * A round with few points lasts as long as one recurrence.  It counts from both ends at once
 * (halves.h), in half the time.  The first round, whose points all values share, has no more points
 * than that: a point for each value would tell little more.
 *
 * The first search counts with the plain form.  Two others take up what it leaves, side by side,
 * since neither has enough points to keep the device at work.  One, with the twofold form, looks
 * around the values for which the plain form's error could show (plain_is_exact()).  The other,
 * with the extended form, finds what lies below the reach of both.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "values/halves.h"
#include "values/values.h"

enum {
    LIST_THREADS = 256,
    LIST_EACH = 8, /* flags of a thread, a byte each, which it reads at once */
    VALUE_THREADS = 64
};

typedef cub::BlockReduce<int64_t, LIST_THREADS> block_reduce;
typedef cub::BlockScan<int64_t, LIST_THREADS, cub::BLOCK_SCAN_WARP_SCANS> block_scan;

/* Progress estimate: fraction left after a round. */
static const double SHARE_LEFT = 0.9;

/* Progress estimate: fraction of all work that is left to the other searches. */
static const double OTHERS_SHARE = 0.1;

/* The most entries times shifts of one launch, which take about half a second.  With plain counts
   that is a point for each value of n = 10^6. */
static const double PLAIN_STEPS = 2.1e12, TWOFOLD_STEPS = 5e11, EXTENDED_STEPS = 2e11;

/* What a round has to do. */
struct plan {
    int64_t open;   /* brackets that are open */
    int64_t each;   /* points of each of them */
    int64_t points; /* of all of them; fewer if all values share a first cut */
    int64_t before; /* points of all rounds before */
};

/* One round. */
struct round {
    struct bracket *d_bracket;   /* [values] */
    const struct plan *d_plan;   /* made by the list of open brackets */
    const int64_t *d_list;       /* [open] the brackets that are open, ascending */
    struct evaluation *d_beyond; /* [2 values] what is known below and above each bracket */
    struct evaluation *d_at;     /* [points] */
    int64_t first;               /* value of the first bracket */
    int64_t values;              /* number of brackets */
    int64_t fill;                /* points that keep the device at work, at most */
    real eps;                    /* as in struct values_device */
    enum form form;              /* of the counts */
};

/* Whether q.fill / PLAIN_MORE points are enough for `open` brackets: FEW_POINTS or more for each.
   With plain counts more points take longer, which pays where there would be only one or two for a
   value. */
static __host__ __device__ bool
part_is_enough(const struct round &q, int64_t open)
{
    return q.form == PLAIN && open * FEW_POINTS * PLAIN_MORE <= q.fill;
}

/* The plan of a round.  With twofold counts each value has the nearest number of points to its
   share, as a second point for each may save a round.  is_first: all values share one bracket that
   has not been cut yet. */
static __device__ struct plan
plan_for(const struct round &q, int64_t open, bool is_first)
{
    const int64_t fill = part_is_enough(q, open) ? q.fill / PLAIN_MORE : q.fill;
    const int64_t more = q.form == TWOFOLD ? open / 2 : 0;
    struct plan plan = {open, open > 0 ? bracket_max((fill + more) / open, 1) : 0, 0, 0};

    plan.points = open * plan.each;
    if (is_first) {
        plan.points = bracket_min(plan.points, fill);
    }
    return plan;
}

/* The range of a search. */
static __device__ __forceinline__ struct bracket_range
range_of(const struct round &q, struct matrix_scale scale)
{
    const real_int floor = q.form == EXTENDED  ? 0
                           : q.form == TWOFOLD ? twofold_floor(scale)
                                               : scale.floor;

    return {floor, scale.top, q.eps};
}

/* The cut of the bracket listed at i.  *begin: the first point of its cluster. */
static __device__ __forceinline__ struct bracket_grid
cut_of(const struct round &q, struct plan plan, int64_t i, const struct bracket *b,
       struct bracket_range range, int64_t *begin)
{
    struct bracket_grid cut = bracket_cut(b, plan.each, range);

    /* the members of a cluster are all open, and so they are listed one after another */
    *begin = (i - (q.first + q.d_list[i] - b->first)) * plan.each;
    if (cut.fresh) {
        cut.points = plan.points;
    }
    return cut;
}

/* The shift at a point.  Beyond the last point it is that of the last. */
static __device__ real_int
shift_at(const struct round &q, struct plan plan, int64_t point, struct bracket_range range)
{
    const int64_t at = bracket_min(point, plan.points - 1), i = at / plan.each;
    const struct bracket b = q.d_bracket[q.d_list[i]];
    int64_t begin;
    const struct bracket_grid cut = cut_of(q, plan, i, &b, range, &begin);

    return bracket_point(&cut, at - begin);
}

/* Counts at the points from `begin` on. */
template <class Form, int SHIFTS>
static __global__ void
__launch_bounds__(COUNT_THREADS) count_kernel(struct device_sturm m, struct round q, int64_t begin)
{
    const int64_t first = begin + (int64_t)blockIdx.x * COUNT_THREADS * SHIFTS;
    const int64_t point = first + threadIdx.x;
    const struct bracket_range range = range_of(q, matrix_scale_of(*m.d_size));
    const struct plan plan = *q.d_plan;
    struct evaluation at[SHIFTS];

    if (first >= plan.points) {
        return;
    }
#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        at[s].at = shift_at(q, plan, point + s * COUNT_THREADS, range);
    }
    evaluate<Form>(m, at);
#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        if (point + s * COUNT_THREADS < plan.points) {
            q.d_at[point + s * COUNT_THREADS] = at[s];
        }
    }
}

/* The same from both ends of the matrix, for the points of one block. */
template <class Form>
static __device__ __forceinline__ void
count_halves(const struct device_sturm &m, const struct round &q, int64_t begin,
             struct halves_memory<Form> &memory)
{
    const int64_t point = begin + (int)threadIdx.x % HALVES_POINTS;
    const struct plan plan = *q.d_plan;
    struct evaluation at[1];

    if (begin >= plan.points) {
        return;
    }
    at[0].at = shift_at(q, plan, point, range_of(q, matrix_scale_of(*m.d_size)));
    if (evaluate_halves(m, memory, at) && point < plan.points) {
        q.d_at[point] = at[0];
    }
}

template <class Form>
static __global__ void
__launch_bounds__(COUNT_THREADS) halves_kernel(struct device_sturm m, struct round q, int64_t begin)
{
    __shared__ struct halves_memory<Form> memory;

    count_halves(m, q, begin + (int64_t)blockIdx.x * HALVES_POINTS, memory);
}

/* Counts at all points of a round of both searches at once.  The first `blocks` blocks have the
   points of the twofold search. */
static __global__ void
__launch_bounds__(COUNT_THREADS)
    both_kernel(struct device_sturm m, struct round twofold, struct round extended, unsigned blocks)
{
    __shared__ union {
        struct halves_memory<twofold_form> twofold;
        struct halves_memory<extended_form> extended;
    } memory;

    if (blockIdx.x < blocks) {
        count_halves(m, twofold, (int64_t)blockIdx.x * HALVES_POINTS, memory.twofold);
    } else {
        count_halves(m, extended, (int64_t)(blockIdx.x - blocks) * HALVES_POINTS, memory.extended);
    }
}

/* ---- brackets ---- */

/* The bracket of each listed value after a round. */
static __global__ void
__launch_bounds__(VALUE_THREADS)
    narrow_kernel(struct device_sturm m, struct round q, char *d_is_open)
{
    const int64_t i = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x;
    const struct plan plan = *q.d_plan;

    if (i < plan.open) {
        const struct bracket_range range = range_of(q, matrix_scale_of(*m.d_size));
        struct bracket b = q.d_bracket[q.d_list[i]];
        int64_t begin;
        const struct bracket_grid cut = cut_of(q, plan, i, &b, range, &begin);

        bracket_narrow(&b, q.first + q.d_list[i], &cut, q.d_at + begin, range.eps,
                       q.d_beyond + 2 * q.d_list[i]);
        q.d_bracket[q.d_list[i]] = b;
        d_is_open[i] = (char)!bracket_is_closed(&b, range);
    }
}

/* Guesses the listed values that are open from what is known around their brackets, after a round
   with few points for each.  Of a bracket only the guess is written, which no other thread reads.
 */
static __global__ void
__launch_bounds__(VALUE_THREADS) guess_kernel(struct round q, const char *d_is_open)
{
    const int64_t i = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x;
    const struct plan plan = *q.d_plan;

    if (i < plan.open && plan.each < FEW_POINTS && d_is_open[i]) {
        bracket_guess_around(q.d_bracket, q.d_beyond, q.d_list[i], q.values, q.eps);
    }
}

/* The brackets to start from. */
static __global__ void
__launch_bounds__(VALUE_THREADS)
    start_kernel(struct device_sturm m, struct round q, const real *d_hint, char *d_is_open)
{
    const int64_t i = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x;

    if (i < q.values) {
        const struct bracket_range range = range_of(q, matrix_scale_of(*m.d_size));
        const struct bracket b = bracket_start(q.first + i, d_hint != NULL ? &d_hint[i] : NULL,
                                               q.first, q.first + q.values, range);

        q.d_bracket[i] = b;
        q.d_beyond[2 * i] = q.d_beyond[2 * i + 1] = {0, 0, 0, (double)NAN};
        d_is_open[i] = (char)!bracket_is_closed(&b, range);
    }
}

/* The brackets that another form starts from, after the plain form. */
static __global__ void
__launch_bounds__(VALUE_THREADS)
    restart_kernel(struct device_sturm m, struct round q, char *d_is_open)
{
    const int64_t i = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x;

    if (i < q.values) {
        const struct matrix_scale scale = matrix_scale_of(*m.d_size);
        const struct bracket_range range = range_of(q, scale);
        struct bracket b = q.d_bracket[i];
        const int reopened = q.form == EXTENDED
                                 ? bracket_widen(&b, range)
                                 : bracket_refine(&b, q.first + i, m.n, scale, range);

        q.d_bracket[i] = b;
        d_is_open[i] = (char)(reopened && !bracket_is_closed(&b, range));
    }
}

static __global__ void
__launch_bounds__(VALUE_THREADS) value_kernel(struct round q, real *d_s)
{
    const int64_t i = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x;

    if (i < q.values) {
        d_s[i] = bracket_value(&q.d_bracket[i]);
    }
}

/* Lists the brackets that are open after a round, in their order, and plans the next round: to
   *d_plan, and to *next_plan for the host.  Before the first round q.d_plan and q.d_list are NULL,
   and all brackets are looked at.  d_is_open is aligned to 8 flags.  Each block counts by itself
   the open brackets before its part. */
static __global__ void
__launch_bounds__(LIST_THREADS)
    list_kernel(struct round q, const char *d_is_open, bool is_first, int64_t *d_list,
                struct plan *d_plan, struct plan *next_plan)
{
    __shared__ block_reduce::TempStorage reduce;
    __shared__ block_scan::TempStorage scan;
    const struct plan last = q.d_plan != NULL ? *q.d_plan : plan{q.values, 0, 0, 0};
    const int64_t count = last.open;
    const int64_t part = (int64_t)blockIdx.x * LIST_THREADS * LIST_EACH;
    const int64_t begin = bracket_min(part + (int64_t)threadIdx.x * LIST_EACH, count);
    const int64_t end = bracket_min(begin + LIST_EACH, count);
    const uint64_t *eight = (const uint64_t *)d_is_open;
    uint64_t flags = 0;
    int64_t before = 0, here, at;

    if (part >= count && blockIdx.x > 0) {
        return;
    }
    for (int64_t i = threadIdx.x; i < part / LIST_EACH; i += LIST_THREADS) {
        before += __popcll(eight[i]);
    }
    before = block_reduce(reduce).Sum(before); /* in the first thread */
    if (end - begin == LIST_EACH) {
        flags = eight[begin / LIST_EACH];
    } else {
        for (int64_t i = begin; i < end; i++) {
            flags |= (uint64_t)d_is_open[i] << (8 * (i - begin));
        }
    }
    here = __popcll(flags);
    block_scan(scan).InclusiveSum(here + (threadIdx.x == 0 ? before : 0), at);
    if (end == count && (begin < end || (begin == 0 && threadIdx.x == 0))) {
        struct plan next = plan_for(q, at, is_first);

        next.before = last.before + last.points;
        *d_plan = next;
        *next_plan = next;
    }
    at -= here;
#pragma unroll
    for (int i = 0; i < LIST_EACH; i++) {
        if (flags >> (8 * i) & 1) {
            d_list[at++] = q.d_list != NULL ? q.d_list[begin + i] : begin + i;
        }
    }
}

/* ---- rounds ---- */

struct search {
    struct tsvd_context *ctx;
    struct values_device v;
    int64_t *counts; /* Sturm counts made are added */
    struct device_sturm m;
    struct round q;
    struct plan plan;       /* that of the next round when the host last asked */
    int64_t *d_list[2];     /* [values] lists of open brackets, old and new in turn */
    struct plan *d_plan[2]; /* the plans that belong to them */
    int latest;             /* number of the new one */
    struct plan *next_plan; /* the new list's plan, in pinned memory */
    char *d_is_open;        /* [open] whether the brackets listed are still open */
    void *d_arrays;         /* all device arrays but the matrix, one allocation */
    double end;             /* share of the work that is done after the search */
    double left;            /* estimated part of `end` that is not done yet */
};

/* How many points keep the device at work, at most. */
static int64_t
points_that_fill(const struct cuda_device *device, enum form form)
{
    const int64_t fill = form == PLAIN     ? PLAIN_MORE * (int64_t)PLAIN_FILL
                         : form == TWOFOLD ? (int64_t)TWOFOLD_FILL
                                           : (int64_t)EXTENDED_FILL;

    return device->multiprocessors * fill;
}

/* The most points of a round, or of two rounds at once, if they do not have one for each value.
   With twofold counts plan_for() may take a third more than fills the device. */
static int64_t
most_points(const struct cuda_device *device)
{
    return bracket_max(points_that_fill(device, PLAIN), 4 * points_that_fill(device, TWOFOLD) / 3 +
                                                            points_that_fill(device, EXTENDED));
}

/* Enqueues list_kernel: after it job->next_plan has the number of open brackets.  is_first: as for
   plan_for(). */
static tsvd_status
launch_list(struct search *job, bool is_first)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const int to = 1 - job->latest;
    const int64_t count = job->q.d_plan == NULL ? job->q.values : job->plan.open;
    tsvd_status ret = TSVD_OK;

    list_kernel<<<blocks_for(count, LIST_THREADS * LIST_EACH), LIST_THREADS, 0, call->stream>>>(
        job->q, job->d_is_open, is_first, job->d_list[to], job->d_plan[to], job->next_plan);
    CUDA_LAUNCHED(call);
    job->latest = to;
    job->q.d_plan = job->d_plan[to];
    job->q.d_list = job->d_list[to];
out:
    return ret;
}

/* Asks how many brackets are open. */
static tsvd_status
ask(struct search *job)
{
    struct cuda_call *call = cuda_of(job->ctx);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    job->plan = *job->next_plan;
    TSVD_TRY(tsvdi_check(job->ctx, job->end - job->left));
out:
    return ret;
}

/* A kernel that counts at the points of a round. */
struct counter {
    void (*kernel)(struct device_sturm m, struct round q, int64_t begin);
    int64_t points; /* of a block */
    double steps;   /* the most entries times shifts of a launch */
    int least;      /* least time of a round, in one unit for all plain counters */
    int more;       /* time of a round for each block of a multiprocessor */
};

/* Counters of the plain form, which tuning.h has the times of. */
static const struct counter PLAIN_COUNTERS[] = {
    {halves_kernel<plain_form>, HALVES_POINTS, PLAIN_STEPS, HALVES_LEAST, HALVES_MORE},
    {count_kernel<plain_form, 1>, COUNT_THREADS, PLAIN_STEPS, COUNT_1_LEAST, COUNT_1_MORE},
    {count_kernel<plain_form, 2>, 2 * (int)COUNT_THREADS, PLAIN_STEPS, COUNT_2_LEAST, COUNT_2_MORE},
    {count_kernel<plain_form, 4>, 4 * (int)COUNT_THREADS, PLAIN_STEPS, COUNT_4_LEAST, COUNT_4_MORE},
};
static const struct counter TWOFOLD_COUNTER = {halves_kernel<twofold_form>, HALVES_POINTS,
                                               TWOFOLD_STEPS, 0, 0};
static const struct counter EXTENDED_COUNTER = {halves_kernel<extended_form>, HALVES_POINTS,
                                                EXTENDED_STEPS, 0, 0};

/* The counter for `points` points: of the plain form's counters the one that takes the least
   time. */
static const struct counter *
counter_for(const struct search *job, int64_t points)
{
    const int64_t multiprocessors = cuda_of(job->ctx)->device->multiprocessors;
    const struct counter *best = NULL;
    int64_t least = INT64_MAX;

    if (job->q.form != PLAIN) {
        return job->q.form == TWOFOLD ? &TWOFOLD_COUNTER : &EXTENDED_COUNTER;
    }
    for (const struct counter &by : PLAIN_COUNTERS) {
        const int64_t blocks = (points + by.points - 1) / by.points;
        const int64_t each = (blocks + multiprocessors - 1) / multiprocessors;
        const int64_t time = bracket_max(by.least, each * by.more);

        if (time < least) {
            least = time;
            best = &by;
        }
    }
    return best;
}

/* The most points of a launch. */
static int64_t
points_of_launch(const struct search *job, const struct counter *by)
{
    const double points = by->steps / (double)(2 * job->m.n);

    return bracket_max((int64_t)points / by->points, 1) * by->points;
}

/* Counts at all points of a round, which has at most `points` of them. */
static tsvd_status
count_points(struct search *job, int64_t points)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const struct counter *by = counter_for(job, points);
    const int64_t most = points_of_launch(job, by);
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = 0; begin < points; begin += most) {
        const int64_t here = bracket_min(points - begin, most);

        by->kernel<<<blocks_for(here, by->points), COUNT_THREADS, 0, call->stream>>>(job->m, job->q,
                                                                                     begin);
        CUDA_LAUNCHED(call);
        if (points > most) {
            CUDA_TRY(call, cudaStreamSynchronize(call->stream));
            TSVD_TRY(tsvdi_check(job->ctx, job->end - job->left));
        }
    }
out:
    return ret;
}

/* Counts at all points of a round of both searches, at once if each round is one launch. */
static tsvd_status
count_both(struct search *twofold, struct search *extended)
{
    struct cuda_call *call = cuda_of(twofold->ctx);
    const int64_t points = twofold->plan.points, others = extended->plan.points;
    const unsigned blocks = blocks_for(points, HALVES_POINTS);
    tsvd_status ret = TSVD_OK;

    if (points <= points_of_launch(twofold, &TWOFOLD_COUNTER) &&
        others <= points_of_launch(extended, &EXTENDED_COUNTER)) {
        both_kernel<<<blocks + blocks_for(others, HALVES_POINTS), COUNT_THREADS, 0, call->stream>>>(
            extended->m, twofold->q, extended->q, blocks);
        CUDA_LAUNCHED(call);
    } else {
        TSVD_TRY(count_points(twofold, points));
        TSVD_TRY(count_points(extended, others));
    }
out:
    return ret;
}

/* Narrows the listed brackets by the counts of a round, and lists those that are still open. */
static tsvd_status
end_round(struct search *job)
{
    struct cuda_call *call = cuda_of(job->ctx);
    const unsigned blocks = blocks_for(job->plan.open, VALUE_THREADS);
    tsvd_status ret = TSVD_OK;

    narrow_kernel<<<blocks, VALUE_THREADS, 0, call->stream>>>(job->m, job->q, job->d_is_open);
    CUDA_LAUNCHED(call);
    /* the plan may be some rounds old (ROUNDS_AHEAD); since then `each` has only grown */
    if (job->q.form == PLAIN && job->plan.each < FEW_POINTS) {
        guess_kernel<<<blocks, VALUE_THREADS, 0, call->stream>>>(job->q, job->d_is_open);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(launch_list(job, false));
    job->left *= SHARE_LEFT;
out:
    return ret;
}

/* Whether ROUNDS_AHEAD rounds may be enqueued at once.  Few brackets stay few, so that the next
   rounds need no more points.  Together they must not take longer than one launch may: a call can
   be stopped only when the host asks. */
static bool
may_go_ahead(const struct search *job)
{
    const int64_t points = job->q.fill / PLAIN_MORE;

    return part_is_enough(job->q, job->plan.open) &&
           ROUNDS_AHEAD * points <= points_of_launch(job, counter_for(job, points));
}

/* Narrows the listed brackets until all are closed. */
static tsvd_status
search_all(struct search *job)
{
    tsvd_status ret = TSVD_OK;

    while (job->plan.open > 0) {
        const bool ahead = may_go_ahead(job);
        const int64_t points = ahead ? job->q.fill / PLAIN_MORE : job->plan.points;

        for (int i = 0; i < (ahead ? (int)ROUNDS_AHEAD : 1); i++) {
            TSVD_TRY(count_points(job, points));
            TSVD_TRY(end_round(job));
        }
        TSVD_TRY(ask(job));
    }
    *job->counts += job->plan.before;
out:
    return ret;
}

/* Narrows the listed brackets of both searches until all are closed. */
static tsvd_status
search_both(struct search *twofold, struct search *extended)
{
    tsvd_status ret = TSVD_OK;

    while (twofold->plan.open > 0 && extended->plan.open > 0) {
        TSVD_TRY(count_both(twofold, extended));
        TSVD_TRY(end_round(twofold));
        TSVD_TRY(end_round(extended));
        TSVD_TRY(ask(twofold));
        TSVD_TRY(ask(extended));
    }
    TSVD_TRY(search_all(twofold));
    TSVD_TRY(search_all(extended));
out:
    return ret;
}

/* Bytes of the flags of all values, which two searches may share. */
static size_t
flag_bytes(int64_t values)
{
    return (size_t)(values + 2 * LIST_EACH - 1) / LIST_EACH * LIST_EACH;
}

/* Lays out all device arrays but the matrix.  Returns their bytes. */
static size_t
lay_out(struct search *job, const struct cuda_device *device, char *base)
{
    struct round *q = &job->q;
    const int64_t values = q->values;
    size_t at = 0;

    q->d_bracket = carve<struct bracket>(base, &at, values);
    q->d_beyond = carve<struct evaluation>(base, &at, 2 * values);
    q->d_at = carve<struct evaluation>(base, &at, values + most_points(device));
    for (int i = 0; i < 2; i++) {
        job->d_plan[i] = carve<struct plan>(base, &at, 2); /* of two searches */
    }
    job->d_is_open = carve<char>(base, &at, flag_bytes(values));
    for (int i = 0; i < 2; i++) {
        job->d_list[i] = carve<int64_t>(base, &at, values);
    }
    return at;
}

/* Makes `part`, a search with another form, and reopens the brackets that are left to it.  list: 0
   or 1, which list and plans it begins with. */
static tsvd_status
take_up(struct search *job, enum form form, int list, struct search *part)
{
    struct cuda_call *call = cuda_of(job->ctx);
    tsvd_status ret = TSVD_OK;

    *part = *job;
    part->q.form = form;
    part->q.fill = points_that_fill(call->device, form);
    part->q.d_plan = NULL;
    part->q.d_list = NULL;
    part->next_plan += list;
    part->d_plan[0] += list;
    part->d_plan[1] += list;
    part->latest = 1 - list;
    restart_kernel<<<blocks_for(job->q.values, VALUE_THREADS), VALUE_THREADS, 0, call->stream>>>(
        part->m, part->q, part->d_is_open);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Asks how many brackets are left to each search, and divides the memory of `job` between them: no
   value belongs to both. */
static tsvd_status
share_out(struct search *job, struct search *extended, struct search *twofold)
{
    struct cuda_call *call = cuda_of(job->ctx);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(ask(extended));
    TSVD_TRY(ask(twofold));
    extended->d_list[1] += twofold->plan.open;
    twofold->d_list[0] += extended->plan.open;
    twofold->d_is_open += (extended->plan.open + LIST_EACH - 1) / LIST_EACH * LIST_EACH;
    if (extended->plan.open > 0) {
        twofold->q.d_at += bracket_max(extended->plan.open, extended->q.fill);
        TSVD_TRY(tsvdi_cuda_values_sturm_add(call, EXTENDED, job->v.d_d, job->v.d_e, &job->m));
    }
    if (twofold->plan.open > 0) {
        TSVD_TRY(tsvdi_cuda_values_sturm_add(call, TWOFOLD, job->v.d_d, job->v.d_e, &job->m));
    }
    extended->m = twofold->m = job->m;
out:
    return ret;
}

/* Searches for all that the plain form left.  In single precision that is at most zeros, whose
   brackets restart_kernel closes. */
static tsvd_status
take_up_rest(struct search *job)
{
    struct search extended, twofold;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(take_up(job, EXTENDED, 0, &extended));
    if (!TSVD_SINGLE) {
        TSVD_TRY(launch_list(&extended, false));
        TSVD_TRY(take_up(job, TWOFOLD, 1, &twofold));
        TSVD_TRY(launch_list(&twofold, false));
        TSVD_TRY(share_out(job, &extended, &twofold));
        TSVD_TRY(search_both(&twofold, &extended));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_values_search(struct tsvd_context *ctx, struct values_device v, double done,
                         int64_t *counts)
{
    struct cuda_call *call = cuda_of(ctx);
    const int64_t values = v.last - v.first;
    const unsigned blocks = blocks_for(values, VALUE_THREADS);
    struct search job;
    tsvd_status ret = TSVD_OK;

    memset(&job, 0, sizeof(job));
    job.ctx = ctx;
    job.v = v;
    job.q.values = values;
    job.counts = counts;
    static_assert(2 * sizeof(struct plan) <= PINNED_RESULT_BYTES, "those of two searches land");
    job.next_plan = (struct plan *)call->device->pinned_results;
    job.q.fill = points_that_fill(call->device, PLAIN);
    job.q.first = v.first;
    job.q.eps = v.eps;
    job.left = (done - ctx->done) * (1 - OTHERS_SHARE);
    job.end = ctx->done + job.left;
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(&job, call->device, NULL), &job.d_arrays));
    (void)lay_out(&job, call->device, (char *)job.d_arrays);
    TSVD_TRY(tsvdi_cuda_values_sturm_begin(call, v.n, v.d_d, v.d_e, &job.m));
    start_kernel<<<blocks, VALUE_THREADS, 0, call->stream>>>(job.m, job.q, v.d_hint, job.d_is_open);
    CUDA_LAUNCHED(call);
    TSVD_TRY(launch_list(&job, v.d_hint == NULL));
    TSVD_TRY(ask(&job));
    TSVD_TRY(search_all(&job));
    job.left = done - job.end;
    job.end = done;
    TSVD_TRY(take_up_rest(&job));
    value_kernel<<<blocks, VALUE_THREADS, 0, call->stream>>>(job.q, v.d_s);
    CUDA_LAUNCHED(call);
out:
    tsvdi_cuda_values_sturm_end(call, &job.m);
    tsvdi_cuda_free(call, job.d_arrays);
    return ret;
}

uint64_t
tsvdi_cuda_values_search_bytes(const struct svd_plan *plan)
{
    struct search job;

    memset(&job, 0, sizeof(job));
    job.q.values = plan->reported.count;
    return bytes_add(lay_out(&job, plan->problem->call.handle->cuda, NULL),
                     tsvdi_cuda_values_sturm_bytes(plan->reported.n));
}
