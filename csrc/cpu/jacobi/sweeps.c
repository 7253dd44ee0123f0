/*
 * One-sided Jacobi on the CPU: the sweeps.
 *
 * The columns are cut into blocks that fit in a cache.  A sweep begins with the pairs within each
 * block.  Then the blocks meet in the rounds of a tournament, each pair of blocks once (Brent & Luk
 * 1985).  The pairs of a round have no column in common, so several threads work on them, with the
 * same results as one.
 *
 * Columns are sorted by their norms between two sweeps (de Rijk 1989).  Columns of a cluster are
 * then neighbours, and meet one after another.  Of clusters of values from 1 to eps, n = 200, 19
 * sweeps become 13.
 */
#include <string.h>

#include "cpu/jacobi/jacobi_run.h"
#include "cpu/kernels/kernels.h"
#include "cpu/tuning.h"
#include "host/environment.h"

/* Columns that are looked at together where few rotations are left. */
enum { GROUP = 4 };

/* A column's scale is moved when its kept norm leaves this range. */
#define NORM_LEAST r_pow2(-10)
#define NORM_MOST r_pow2(10)

struct sweep {
    struct jacobi_matrix *m;
    int64_t block, blocks; /* columns of a block (the last may have fewer); number of blocks */
    int64_t round;         /* of the tournament */
    real tolerance;
    struct jacobi_swept *swept; /* [blocks] what each task did */
    int few;                    /* 1: few rotations are left */
};

/* The norm of a column from its entries, which are scaled to bring it to [1, 2) if it is far from
   there. */
static void
measure(struct jacobi_matrix *m, int64_t j)
{
    scalar *x = m->x + j * m->columns;
    real_int power = 0;

    m->norm[j] = tsvdi_cpu_jacobi_norm(m->columns, x);
    if (m->norm[j] > 0 && (m->norm[j] < NORM_LEAST || m->norm[j] > NORM_MOST)) {
        m->norm[j] = r_split(m->norm[j], &power);
        r_scale((real *)x, N_PARTS * m->columns, power, (real *)x);
        m->exponent[j] += power;
        m->most_norm[j] *= r_pow2((int)-power);
    }
}

/* Finds the norm of a column, which becomes zero if it is no more than rounding errors. */
static void
measure_or_drop(struct jacobi_matrix *m, int64_t j)
{
    measure(m, j);
    if (m->norm[j] <= jacobi_noise(m->columns) * m->most_norm[j]) {
        memset(m->x + j * m->columns, 0, (size_t)m->columns * sizeof *m->x);
        m->norm[j] = 0;
    }
}

/* The pair of columns i and j, the first of which is the longer; returns |g|. */
static real
rotate(struct jacobi_matrix *m, int64_t i, int64_t j, scalar cosine)
{
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t n = m->columns;
    const struct jacobi_turn turn =
        jacobi_turn_of(cosine, m->norm[i], m->norm[j], m->exponent[j] - m->exponent[i]);

    kernels->mix(n, turn.less, turn.forward, turn.back, m->x + i * n, m->x + j * n);
    if (m->v != NULL) {
        kernels->mix(n, turn.less, turn.s, n_conj(turn.s), m->v + i * n, m->v + j * n);
    }
    m->norm[i] *= turn.x_grows;
    if (turn.y_square < JACOBI_CANCELS) {
        measure_or_drop(m, j);
    } else {
        m->norm[j] *= r_sqrt(turn.y_square);
    }
    return r_abs(turn.g);
}

/* Where few rotations are left: how many of the columns from `first` on are orthogonal to column i,
   in groups that are looked at together. */
static int64_t
pass_over(const struct sweep *sweep, int64_t i, int64_t first, int64_t last)
{
    const struct jacobi_matrix *m = sweep->m;
    const int64_t n = m->columns;
    int64_t passed = 0;
    int good = 1;

    while (good && first + passed + GROUP <= last) {
        const int64_t j = first + passed;
        scalar sum[GROUP];

        tsvdi_kernels()->dots(n, GROUP, m->x + j * n, n, m->x + i * n, sum);
        for (int k = 0; k < GROUP; k++) {
            good &= n_abs(sum[k]) <= JACOBI_WORTH * sweep->tolerance * m->norm[i] * m->norm[j + k];
        }
        passed += good ? GROUP : 0;
    }
    return passed;
}

/* The pairs of column i with the columns first .. last - 1.  Adds what it does to `swept`. */
static void
meet(const struct sweep *sweep, int64_t i, int64_t first, int64_t last, struct jacobi_swept *swept)
{
    struct jacobi_matrix *m = sweep->m;
    const struct cpu_kernels *kernels = tsvdi_kernels();
    const int64_t n = m->columns;
    int64_t look = first;

    for (int64_t j = first; j < last; j++) {
        scalar cosine;
        real size;

        if (sweep->few && j == look) {
            j += pass_over(sweep, i, j, last);
            look = j + GROUP;
        }
        if (j == last || m->norm[i] == 0 || m->norm[j] == 0) {
            continue;
        }
        cosine = kernels->dot(n, m->x + i * n, m->x + j * n) / m->norm[i] / m->norm[j];
        size = n_abs(cosine);
        if (!(size > JACOBI_WORTH * sweep->tolerance)) {
            continue;
        }
        swept->due += size > sweep->tolerance;
        swept->cosine = r_max(swept->cosine, size);
        if (jacobi_is_less(m->norm[i], m->norm[j], m->exponent[j] - m->exponent[i])) {
            swept->turn += rotate(m, j, i, n_conj(cosine));
        } else {
            swept->turn += rotate(m, i, j, cosine);
        }
    }
}

/* The pairs within a block. */
static tsvd_status
meet_within(void *arg, int worker, int64_t index)
{
    const struct sweep *sweep = arg;
    const int64_t n = sweep->m->columns, first = index * sweep->block;
    const int64_t last = n - first < sweep->block ? n : first + sweep->block;
    struct jacobi_swept swept = {0, 0, 0};
    struct host_environment before;

    (void)worker;
    tsvdi_environment_enter_flushing(&before);
    for (int64_t j = first; j < last; j++) {
        measure_or_drop(sweep->m, j);
        sweep->m->most_norm[j] = r_max(sweep->m->most_norm[j], sweep->m->norm[j]);
    }
    for (int64_t i = first; i < last; i++) {
        meet(sweep, i, i + 1, last, &swept);
    }
    sweep->swept[index] = swept;
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

/* Pair `index` of a round: block 0 stays, and all other blocks go round.  With an odd number of
   blocks, an empty one takes part. */
static tsvd_status
meet_across(void *arg, int worker, int64_t index)
{
    const struct sweep *sweep = arg;
    const int64_t n = sweep->m->columns, circle = sweep->blocks - 1 + sweep->blocks % 2;
    const int64_t a = index == 0 ? 0 : 1 + (sweep->round + index) % circle;
    const int64_t b = 1 + (sweep->round + circle - index) % circle;
    const int64_t low = (a < b ? a : b) * sweep->block, high = (a < b ? b : a) * sweep->block;
    const int64_t last = n - high < sweep->block ? n : high + sweep->block;
    struct jacobi_swept swept = {0, 0, 0};
    struct host_environment before;

    (void)worker;
    tsvdi_environment_enter_flushing(&before);
    for (int64_t i = low; i < low + sweep->block && high < n; i++) {
        meet(sweep, i, high, last, &swept);
    }
    sweep->swept[index] = swept;
    tsvdi_environment_leave(&before);
    return TSVD_OK;
}

/* Runs tasks, and adds what they did. */
static void
run_tasks(struct sweep *sweep, int64_t count, tsvd_task task, struct jacobi_swept *all)
{
    const struct jacobi_matrix *m = sweep->m;
    const int many = m->threads > 1 && m->columns * m->columns > CPU_JACOBI_SHARED_NUMBERS;

    (void)tsvdi_host_for_each(many ? m->threads : 1, count, task, sweep);
    for (int64_t i = 0; i < count; i++) {
        all->due += sweep->swept[i].due;
        all->cosine = r_max(all->cosine, sweep->swept[i].cosine);
        all->turn += sweep->swept[i].turn;
    }
}

static void
swap_columns(struct jacobi_matrix *m, int64_t i, int64_t j)
{
    const int64_t n = m->columns, exponent = m->exponent[i];
    const size_t bytes = (size_t)n * sizeof(scalar);
    const real norm = m->norm[i], most_norm = m->most_norm[i];

    memcpy(m->spare, m->x + i * n, bytes);
    memcpy(m->x + i * n, m->x + j * n, bytes);
    memcpy(m->x + j * n, m->spare, bytes);
    if (m->v != NULL) {
        memcpy(m->spare, m->v + i * n, bytes);
        memcpy(m->v + i * n, m->v + j * n, bytes);
        memcpy(m->v + j * n, m->spare, bytes);
    }
    m->norm[i] = m->norm[j];
    m->norm[j] = norm;
    m->most_norm[i] = m->most_norm[j];
    m->most_norm[j] = most_norm;
    m->exponent[i] = m->exponent[j];
    m->exponent[j] = exponent;
}

/* Sorts the columns by their norms, zeros last. */
static void
sort_columns(struct jacobi_matrix *m)
{
    for (int64_t j = 0; j < m->columns; j++) {
        real_int power;
        const real mantissa = r_split(m->norm[j], &power);

        m->key[j] =
            (struct jacobi_key){mantissa == 0 ? INT64_MIN : m->exponent[j] + power, j, mantissa};
    }
    tsvdi_cpu_jacobi_sort(m->key, m->columns);
    for (int64_t j = 0; j < m->columns; j++) {
        int64_t from = m->key[j].index;

        while (from < j) { /* it was swapped */
            from = m->key[from].index;
        }
        if (from != j) {
            swap_columns(m, from, j);
        }
    }
}

/* Columns of a block.  They depend on the order alone, so that the results do not depend on the
   threads. */
static int64_t
block_for(int64_t n)
{
    int64_t block = CPU_JACOBI_BLOCK_MOST;

    while (block > CPU_JACOBI_BLOCK_LEAST &&
           4 * block * n * (int64_t)sizeof(scalar) > CPU_JACOBI_BLOCKS_BYTES) {
        block /= 2;
    }
    return block;
}

tsvd_status
tsvdi_cpu_jacobi_sweeps(struct jacobi_matrix *m, int64_t max_sweeps, struct jacobi_outcome *made)
{
    const int64_t block = block_for(m->columns), blocks = (m->columns + block - 1) / block;
    struct sweep sweep = {m, block, blocks, 0, jacobi_tolerance(m->columns), m->swept, 0};
    const int64_t rounds = blocks < 2 ? 0 : blocks - 1 + blocks % 2;
    double left = m->started ? 0.8 - JACOBI_STARTED : 0.6; /* the share of all sweeps to come */
    int64_t sweeps = 0;
    tsvd_status ret = TSVD_OK;

    made->unfinished = 1;
    memset(m->most_norm, 0, (size_t)m->columns * sizeof *m->most_norm);
    while (made->unfinished && sweeps < max_sweeps) {
        struct jacobi_swept all = {0, 0, 0};

        run_tasks(&sweep, blocks, meet_within, &all);
        for (sweep.round = 0; sweep.round < rounds; sweep.round++) {
            TSVD_TRY(dense_check(m->run, m->worker,
                                 0.8 - left + left / 2 * (double)sweep.round / (double)rounds));
            run_tasks(&sweep, (blocks + 1) / 2, meet_across, &all);
        }
        left /= 2;
        sort_columns(m);
        sweeps++;
        made->rotations += all.due;
        made->unfinished = all.due > 0 && !jacobi_settles(all.cosine, all.turn, sweep.tolerance);
        sweep.few = all.due * 2 * CPU_JACOBI_FEW < m->columns * m->columns;
    }
    made->sweeps = (int32_t)(sweeps < INT32_MAX ? sweeps : INT32_MAX);
out:
    return ret;
}
