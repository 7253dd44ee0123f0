/*
 * A band on the CPU: N = Q B P^H, B bidiagonal, by chasing (Lang 1996).
 *
 * Sweep i makes row i of B.  Its step k works on the CPU_BAND columns and rows from
 * i + 1 + k CPU_BAND on.  A reflector from the right clears a row of them, row i in step 0, and
 * fills a block below the diagonal; one from the left clears the first column of that block, and
 * fills a block beyond the band, whose first row step k + 1 clears.
 *
 * Of step k of sweep i + 1 the reflector from the right may follow as soon as sweep i has made its
 * step k + 1, and that from the left when sweep i has made its reflector from the right of step
 * k + 2: they meet in one entry.  So sweeps run side by side.  CPU_CHASE_SWEEPS of them are a
 * group, which is made together, each sweep two steps behind the one before.  The next group
 * follows three steps behind the last of them.
 *
 * Threads share out the steps, not the groups: each has a region of the band, which stays in its
 * cache, and all groups pass through it.
 *
 * Reflectors are kept by their sides, and in groups of CPU_CHASE_DIAMOND sweeps: those of a group
 * and of one k are the columns of a parallelogram, each a row below the one before.  They become
 * one factor I - V T V^H.  Q X is made with k ascending, and for each k with the groups
 * descending: what has to come first then does, and X passes by once for each k.
 */
#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "cpu/bidiagonalize/band.h"
#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"

enum {
    /* A thread whose region waits looks this often before it sleeps: some fifty microseconds. */
    LOOKS = 1 << 15,
    /* Steps that a thread makes between two calls of tsvdi_check(), at most. */
    STEPS_PER_CHECK = 512
};

static_assert(CPU_BAND % CPU_CHASE_DIAMOND == 0, "a step is as long as several groups are wide");

/* ---- where the reflectors are ---- */

/* Steps of sweep i. */
static int64_t
steps_of(int64_t n, int64_t sweep)
{
    return (n - 1 - sweep + CPU_BAND - 1) / CPU_BAND;
}

static int64_t
diamonds_of(int64_t n)
{
    return (n - 1 + CPU_CHASE_DIAMOND - 1) / CPU_CHASE_DIAMOND;
}

/* The sum of ceil(t / PARTS) for 1 <= t <= last. */
static int64_t
sum_of_parts(int64_t last)
{
    enum { PARTS = CPU_BAND / CPU_CHASE_DIAMOND };
    const int64_t whole = last / PARTS, rest = last % PARTS;

    return PARTS * whole * (whole + 1) / 2 + rest * (whole + 1);
}

/* Reflectors of a side in the groups before `diamond`, with places for those that are missing.
   Group j has ceil((diamonds - j) CPU_CHASE_DIAMOND / CPU_BAND) steps. */
static int64_t
reflectors_before(int64_t n, int64_t diamond)
{
    const int64_t diamonds = diamonds_of(n);

    return (sum_of_parts(diamonds) - sum_of_parts(diamonds - diamond)) * CPU_CHASE_DIAMOND;
}

/* The reflectors of one side.  Each has CPU_BAND numbers, from its 1 on, and its factor in
   `tau`.  Those that are missing are zero. */
struct side {
    scalar *v, *tau;
};

static struct side
side_of(const struct stage_run *own, int64_t i, int right)
{
    const int64_t count = reflectors_before(own->columns, diamonds_of(own->columns));
    scalar *first =
        own->m + i * own->numbers + band_numbers(own->columns) + right * count * (CPU_BAND + 1);
    const struct side side = {first, first + count * CPU_BAND};

    return side;
}

static int64_t
numbers(int64_t rows, int64_t columns, int keep)
{
    const int64_t kept = keep == KEEP_VALUES ? 0 : reflectors_before(columns, diamonds_of(columns));

    (void)rows;
    return band_numbers(columns) + 2 * kept * (CPU_BAND + 1);
}

/* ---- the chase ---- */

/* The steps from `region` / regions of each group on.  Who has set `busy` may work there. */
struct region {
    alignas(64) atomic_int busy;
    int64_t group, step; /* where it goes on; group: all of them, and it is done */
};

struct chase {
    struct dense_run *run;
    int worker; /* that of the run */
    double done, share;
    int64_t n, groups;
    scalar *band;
    struct side left, right; /* v: NULL if they are not wanted */
    _Atomic int64_t *made;   /* [groups] steps that each group has made; INT64_MAX: all */
    struct region *region;   /* [regions] */
    int regions;
    _Atomic int64_t begun;     /* groups that have left the first region */
    atomic_int finished, stop; /* regions that are done; 1: the call has failed */
};

/* Keeps a reflector of sweep i, step k. */
static void
keep_reflector(const struct chase *c, struct side side, int64_t i, int64_t k, int64_t length,
               const scalar *v, scalar tau)
{
    const int64_t diamond = i / CPU_CHASE_DIAMOND, first = diamond * CPU_CHASE_DIAMOND;
    const int64_t at = reflectors_before(c->n, diamond) + k * CPU_CHASE_DIAMOND + i - first;

    memcpy(side.v + at * CPU_BAND, v, (size_t)length * sizeof *v);
    side.tau[at] = tau;
}

/* Clears row `row` behind column `first`, and multiplies the rows after it up to last - 1. */
static void
clear_row(const struct chase *c, int64_t i, int64_t k, int64_t row, int64_t first, int64_t last)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t length = last - first, rows = last - row - 1;
    scalar *x = band_at(c->band, row, first), *below = x + BAND_DOWN;
    scalar v[CPU_BAND], conjugate[CPU_BAND], sum[2 * CPU_BAND], tau;
    real beta;

    for (int64_t j = 0; j < length; j++) {
        v[j] = n_conj(x[j]);
    }
    tau = tsvdi_cpu_dense_reflector(length, v, &beta);
    memset(x, 0, (size_t)length * sizeof *x);
    x[0] = beta;
    if (c->right.v != NULL) {
        keep_reflector(c, c->right, i, k, length, v, tau);
    }
    if (tau == 0) {
        return;
    }
    for (int64_t j = 0; j < length; j++) {
        conjugate[j] = n_conj(v[j]);
    }
    kernels->dots(length, rows, below, BAND_DOWN, conjugate, sum);
    for (int64_t j = 0; j < rows; j++) {
        sum[j] = -n_mul(n_conj(sum[j]), tau);
    }
    kernels->outer(rows, length, sum, conjugate, BAND_DOWN, below);
}

/* Clears column `first` below row `first`, and multiplies the columns after it up to last - 1. */
static void
clear_column(const struct chase *c, int64_t i, int64_t k, int64_t first, int64_t length,
             int64_t last)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t columns = last - first - 1;
    scalar *x = band_at(c->band, first, first);
    scalar v[CPU_BAND], factor[CPU_BAND], sum[2 * CPU_BAND], tau;
    real beta;

    for (int64_t j = 0; j < length; j++) {
        v[j] = x[j * BAND_DOWN];
        x[j * BAND_DOWN] = 0;
    }
    tau = tsvdi_cpu_dense_reflector(length, v, &beta);
    x[0] = beta;
    if (c->left.v != NULL) {
        keep_reflector(c, c->left, i, k, length, v, tau);
    }
    if (tau == 0) {
        return;
    }
    memset(sum, 0, (size_t)columns * sizeof *sum);
    for (int64_t j = 0; j < length; j++) {
        factor[j] = n_conj(v[j]);
    }
    kernels->accumulate(columns, length, factor, x + 1, BAND_DOWN, sum);
    for (int64_t j = 0; j < length; j++) {
        factor[j] = -n_mul(n_conj(tau), v[j]);
    }
    kernels->outer(length, columns, factor, sum, BAND_DOWN, x + 1);
}

static void
make_step(const struct chase *c, int64_t i, int64_t k)
{
    const int64_t first = i + 1 + k * CPU_BAND, row = k == 0 ? i : first - CPU_BAND;
    const int64_t end = c->n - first < CPU_BAND ? c->n : first + CPU_BAND;
    const int64_t beyond = c->n - end < CPU_BAND ? c->n : end + CPU_BAND;

    clear_row(c, i, k, row, first, end);
    clear_column(c, i, k, first, end - first, beyond);
}

/* ---- regions ---- */

/* Sweeps and steps of a group.  Its sweep q makes its step s - 2 q as step s of the group. */
static int64_t
group_sweeps(const struct chase *c, int64_t group)
{
    const int64_t left = c->n - 1 - group * CPU_CHASE_SWEEPS;

    return left < CPU_CHASE_SWEEPS ? left : CPU_CHASE_SWEEPS;
}

static int64_t
group_steps(const struct chase *c, int64_t group)
{
    return steps_of(c->n, group * CPU_CHASE_SWEEPS) + 2 * (group_sweeps(c, group) - 1);
}

static void
make_group_step(const struct chase *c, int64_t group, int64_t step)
{
    const int64_t first = group * CPU_CHASE_SWEEPS, sweeps = group_sweeps(c, group);

    for (int64_t q = 0; q < sweeps && 2 * q <= step; q++) {
        if (step - 2 * q < steps_of(c->n, first + q)) {
            make_step(c, first + q, step - 2 * q);
        }
    }
}

/* Whether step `step` of a group may be made: those before it are made, and the group before is far
   enough ahead. */
static int
is_ready(const struct chase *c, int64_t group, int64_t step)
{
    return atomic_load_explicit(&c->made[group], memory_order_acquire) >= step &&
           (group == 0 || atomic_load_explicit(&c->made[group - 1], memory_order_acquire) >
                              step + 2 * CPU_CHASE_SWEEPS);
}

/* Where the region's part of a group begins. */
static int64_t
part_of(const struct chase *c, int64_t steps, int64_t region)
{
    return steps * region / c->regions;
}

/* Makes the steps of a region that are ready; returns how many. */
static int64_t
advance(struct chase *c, int64_t index)
{
    struct region *r = &c->region[index];
    int64_t count = 0;

    while (r->group < c->groups && count < STEPS_PER_CHECK) {
        const int64_t steps = group_steps(c, r->group), end = part_of(c, steps, index + 1);

        for (; r->step < end && count < STEPS_PER_CHECK; r->step++) {
            if (!is_ready(c, r->group, r->step)) {
                return count;
            }
            make_group_step(c, r->group, r->step);
            count++;
            atomic_store_explicit(&c->made[r->group], r->step + 1 < steps ? r->step + 1 : INT64_MAX,
                                  memory_order_release);
        }
        if (r->step >= end) {
            r->group++;
            if (index == 0) {
                atomic_store_explicit(&c->begun, r->group, memory_order_relaxed);
            }
            r->step = r->group < c->groups ? part_of(c, group_steps(c, r->group), index) : 0;
            if (r->group == c->groups) {
                atomic_fetch_add(&c->finished, 1);
            }
        }
    }
    return count;
}

/* Works in a region, if nobody else does, once something is ready there within so many looks.
   Returns the steps made. */
static int64_t
work_in(struct chase *c, int64_t index, int looks)
{
    struct region *r = &c->region[index];
    int64_t count = 0;

    if (atomic_exchange_explicit(&r->busy, 1, memory_order_acquire)) {
        return 0;
    }
    for (int look = 0; look < looks && count == 0 && r->group < c->groups; look++) {
        count = advance(c, index);
    }
    atomic_store_explicit(&r->busy, 0, memory_order_release);
    return count;
}

/* Works until the band is bidiagonal: in the region `own` if it can, and else in others, whose
   threads may not have got a processor.  If there is nothing to do it sleeps: other programs, or a
   BLAS whose threads spin, may have the processor of a thread that it waits for, and the system
   gives that one the free processor. */
static tsvd_status
make_regions(void *arg, int thread, int64_t own)
{
    const struct timespec nap = {0, 20000};
    struct chase *c = arg;
    tsvd_status ret = TSVD_OK;

    while (atomic_load(&c->finished) < c->regions && !atomic_load(&c->stop)) {
        int64_t made = work_in(c, own, LOOKS);

        for (int64_t i = 1; made == 0 && i < c->regions; i++) {
            made = work_in(c, (own + i) % c->regions, 1);
        }
        if (made == 0) {
            (void)nanosleep(&nap, NULL);
        }
        if (thread == 0) {
            const double left = 1 - (double)atomic_load(&c->begun) / (double)c->groups;

            TSVD_TRY(dense_check(c->run, c->worker, c->done + c->share * (1 - left * left)));
        }
    }
out:
    if (ret != TSVD_OK) {
        atomic_store(&c->stop, 1);
    }
    return ret;
}

static int64_t
groups_of(int64_t n)
{
    return (n - 1 + CPU_CHASE_SWEEPS - 1) / CPU_CHASE_SWEEPS;
}

/* A region is longer than the distance between groups, or its thread would wait for the next. */
static int
regions_of(int64_t n, int threads)
{
    const int64_t most = steps_of(n, 0) / (2 * CPU_CHASE_SWEEPS + 4);

    return most < 1 ? 1 : most < threads ? (int)most : threads;
}

static tsvd_status
factor(struct cpu_dense *state, int worker, const struct stage_run *own, int64_t i)
{
    struct dense_run *run = &state->run;
    const int64_t n = own->columns;
    real *d = state->job->d + i * n, *e = state->job->e + i * n;
    const struct side none = {NULL, NULL};
    const int keep = own->keep != KEEP_VALUES;
    const double clock = tsvdi_host_seconds();
    struct chase c = {.run = run,
                      .worker = worker,
                      .done = own->done,
                      .share = own->share,
                      .n = n,
                      .groups = groups_of(n),
                      .band = own->m + i * own->numbers,
                      .left = keep ? side_of(own, i, 0) : none,
                      .right = keep ? side_of(own, i, 1) : none,
                      .region = (struct region *)(void *)worker_work(run, worker),
                      .regions = regions_of(n, run->threads)};
    tsvd_status ret = TSVD_OK;

    if (keep) { /* what is missing of reflectors near the end, and whole ones, is zero */
        memset(side_of(own, i, 0).v, 0, (size_t)(own->numbers - band_numbers(n)) * sizeof(scalar));
    }
    c.made = (_Atomic int64_t *)(void *)(c.region + c.regions);
    for (int64_t group = 0; group < c.groups; group++) {
        atomic_init(&c.made[group], 0);
    }
    for (int r = 0; r < c.regions && c.groups > 0; r++) {
        atomic_init(&c.region[r].busy, 0);
        c.region[r].group = 0;
        c.region[r].step = part_of(&c, group_steps(&c, 0), r);
    }
    TSVD_TRY(tsvdi_host_for_each(c.regions, c.groups > 0 ? c.regions : 0, make_regions, &c));
    for (int64_t j = 0; j < n; j++) {
        d[j] = n_real(*band_at(c.band, j, j));
        e[j] = j + 1 < n ? n_real(*band_at(c.band, j, j + 1)) : 0;
    }
    add_seconds(run, clock, &state->job->chase);
out:
    return ret;
}

/* ---- products with Q and P ---- */

/* Vectors that threads share out. */
struct shared_vectors {
    const struct dense_run *run;
    int worker; /* that of the run */
    const struct stage_run *own;
    struct side side;
    int64_t slice;   /* numbers of a thread's workspace */
    int64_t vectors; /* that a thread multiplies together */
    int transposed;
    struct dense_block block;
    double done, share;
};

/* Whether the vectors of a thread are copied to a slab, for the kernel: groups of vectors, each
   [slab_rows()][group_lanes], with the entries of its vectors side by side.  The rows after the
   last entry are those that a diamond at the end has beyond it. */
static int
has_slabs(void)
{
    return tsvdi_kernels()->diamond != NULL;
}

static int64_t
slab_rows(int64_t n)
{
    return n + DIAMOND_ROWS;
}

/* Copies vectors to a slab, or from there. */
static void
copy_slab(int64_t n, struct dense_block block, int back, scalar *x)
{
    const int64_t lanes = tsvdi_kernels()->group_lanes, rows = slab_rows(n);
    const int64_t down = block.rows ? 1 : block.stride, right = block.rows ? block.stride : 1;

    for (int64_t first = 0; first < block.count; first += lanes, x += rows * lanes) {
        const int64_t count = block.count - first < lanes ? block.count - first : lanes;
        scalar *vectors = block.x + first * right;

        if (!back) { /* also the lanes without a vector, and the rows after the last entry */
            memset(x, 0, (size_t)(rows * lanes) * sizeof *x);
        }
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < count; j++) {
                if (back) {
                    vectors[i * down + j * right] = x[i * lanes + j];
                } else {
                    x[i * lanes + j] = vectors[i * down + j * right];
                }
            }
        }
    }
}

/* Vectors that a thread multiplies together.  The kernel treats all alike, so that bits do not
   depend on how many there are. */
static int64_t
vectors_of(int64_t n, int threads)
{
    const int64_t most = threads * CPU_CHASE_VECTORS, parts = threads * ((n + most - 1) / most);
    const int64_t lanes = tsvdi_kernels()->group_lanes;

    return has_slabs() ? ((n + parts - 1) / parts + lanes - 1) / lanes * lanes : CPU_CHASE_VECTORS;
}

/* Numbers of the workspace of one thread. */
static int64_t
slice_workspace(int64_t n, int threads)
{
    const int64_t numbers =
        has_slabs() ? slab_rows(n) * vectors_of(n, threads)
                    : tsvdi_cpu_dense_multiply_workspace(CPU_BAND + CPU_CHASE_DIAMOND, 0);

    return (numbers + CPU_REFLECTORS_BLOCK - 1) / CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
}

/* Numbers of the workspace of so many threads, or fewer. */
static int64_t
slices_workspace(int64_t n, int threads)
{
    const int64_t all = threads * CPU_CHASE_VECTORS, lanes = tsvdi_kernels()->group_lanes;

    return has_slabs() ? slab_rows(n) * ((n < all ? n : all) + threads * (lanes + 1)) +
                             threads * CPU_REFLECTORS_BLOCK
                       : threads * slice_workspace(n, threads);
}

static int64_t
workspace(int64_t rows, int64_t columns, int threads)
{
    const int64_t size = groups_of(columns) * (int64_t)sizeof(int64_t) +
                         regions_of(columns, threads) * (int64_t)sizeof(struct region);
    const int64_t flags = size / (int64_t)sizeof(scalar) + 1;
    const int64_t slices = slices_workspace(columns, threads);

    (void)rows;
    return flags > slices ? flags : slices;
}

/* The parallelogram of a group and of one k. */
static struct dense_reflectors
diamond_of(const struct shared_vectors *shared, int64_t diamond, int64_t k)
{
    const int64_t n = shared->own->columns, first = diamond * CPU_CHASE_DIAMOND;
    const int64_t at = reflectors_before(n, diamond) + k * CPU_CHASE_DIAMOND;
    const int64_t from = first + 1 + k * CPU_BAND, left = n - from;
    const int64_t sweeps = left < CPU_CHASE_DIAMOND ? left : CPU_CHASE_DIAMOND;
    const int64_t rows = CPU_BAND + sweeps - 1;

    return (struct dense_reflectors){.a = shared->side.v + at * CPU_BAND,
                                     .tau = shared->side.tau + at,
                                     .stride = CPU_BAND - 1,
                                     .count = sweeps,
                                     .length = left < rows ? left : rows,
                                     .from = from,
                                     .reach = CPU_BAND};
}

/* Multiplies the vectors of a thread with a diamond.  x: its slab, if there is one. */
static tsvd_status
multiply_diamond(const struct shared_vectors *shared, struct dense_run *run,
                 struct dense_block block, int64_t diamond, int64_t k, scalar *x)
{
    const struct dense_reflectors r = diamond_of(shared, diamond, k);

    if (x != NULL) {
        const struct cpu_kernels *kernels = tsvdi_kernels();
        const int64_t lanes = kernels->group_lanes;

        kernels->diamond(r.a, r.tau, shared->transposed, (block.count + lanes - 1) / lanes,
                         slab_rows(shared->own->columns) * lanes, x + r.from * lanes);
        return TSVD_OK;
    }
    return tsvdi_cpu_dense_multiply(run, 0, &r, shared->transposed, block, shared->done, 0);
}

/* Part `part` of the vectors, by one thread. */
static tsvd_status
multiply_vectors(void *arg, int thread, int64_t part)
{
    const struct shared_vectors *shared = arg;
    const int64_t n = shared->own->columns, diamonds = diamonds_of(n),
                  first = part * shared->vectors;
    const int64_t steps = steps_of(n, 0), left = shared->block.count - first;
    struct dense_block block = shared->block;
    struct dense_run run = run_of_thread(shared->run);
    scalar *slab = NULL;
    tsvd_status ret = TSVD_OK;

    block.count = left < shared->vectors ? left : shared->vectors;
    block.x += first * (block.rows ? block.stride : 1);
    run.work = worker_work(shared->run, shared->worker) + thread * shared->slice;
    if (has_slabs()) {
        slab = run.work;
        copy_slab(n, block, 0, slab);
    }
    for (int64_t step = 0; step < steps; step++) {
        const int64_t k = shared->transposed ? steps - 1 - step : step;

        if (thread == 0) {
            TSVD_TRY(dense_check(shared->run, shared->worker,
                                 shared->done +
                                     shared->share * (double)first / (double)shared->block.count));
        }
        for (int64_t j = 0; j < diamonds; j++) {
            const int64_t diamond = shared->transposed ? j : diamonds - 1 - j;

            if (k < steps_of(n, diamond * CPU_CHASE_DIAMOND)) {
                TSVD_TRY(multiply_diamond(shared, &run, block, diamond, k, slab));
            }
        }
    }
    if (slab != NULL) {
        copy_slab(n, block, 1, slab);
    }
out:
    return ret;
}

static tsvd_status
multiply(struct dense_run *run, int worker, const struct stage_run *own, int64_t i, int right,
         int transposed, struct dense_block block, double done, double share)
{
    struct shared_vectors shared = {.run = run,
                                    .worker = worker,
                                    .own = own,
                                    .side = side_of(own, i, right),
                                    .slice = slice_workspace(own->columns, run->threads),
                                    .vectors = vectors_of(own->columns, run->threads),
                                    .transposed = transposed,
                                    .block = block,
                                    .done = done,
                                    .share = share};

    return tsvdi_host_for_each(run->threads, (block.count + shared.vectors - 1) / shared.vectors,
                               multiply_vectors, &shared);
}

const struct stage tsvdi_cpu_dense_chase_stage = {
    .right = 1,
    .sides = 0,
    .work = 1,
    .numbers = numbers,
    .workspace = workspace,
    .factor = factor,
    .multiply = multiply,
};
