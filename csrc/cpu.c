/*
 * The CPU back end: memory, threads, the choice of kernels, and the pipeline of
 * the givens method.  Vectors are in cpu_vectors.c, values in cpu_values.c.
 */
#include "cpu_kernels.h"
#include "host.h"

const struct cpu_kernels *
tsvdi_kernels(void)
{
#if TSVD_X86_KERNELS
    switch (tsvdi_host_isa()) {
    case HOST_AVX512:
        return &tsvdi_kernels_avx512;
    case HOST_AVX2:
        return &tsvdi_kernels_avx2;
    case HOST_GENERIC:
        break;
    }
#endif
    return &tsvdi_kernels_generic;
}

static tsvd_status
cpu_alloc(struct tsvd_context *ctx, size_t bytes, void **p)
{
    *p = NULL;
    return tsvdi_host_alloc(bytes, ctx->error, p);
}

static void
cpu_free(void *p)
{
    tsvdi_host_free(p);
}

static tsvd_status
cpu_for_each(int workers, int64_t count, tsvd_task task, void *arg)
{
    return tsvdi_host_for_each(workers, count, task, arg);
}

/* Copies a diagonal entry that two blocks share to the other's copy. */
static void
hand_over(struct givens_band *band, int64_t block, int64_t i)
{
    real *p = band->packed + 3 * (i + block);

    if (block > 0 && i == band->start[block]) {
        p[-3] = p[0];
    }
    if (block + 1 < band->blocks && i + 1 == band->start[block + 1]) {
        p[6] = p[3];
    }
}

/*
 * The half sweeps of a round in the order of the seed's threads: in each tick
 * every half sweep that is under way makes one step, two rows behind the one before
 * it.  Their steps touch disjoint entries and could be made at once.
 */
static tsvd_status
cpu_givens_round(struct tsvd_context *ctx, struct givens_band *band, int64_t sweeps,
                 struct rotation_log *right, struct rotation_log *left, int64_t *made)
{
    const int64_t steps = band->n - 1, ticks = steps + 2 * (sweeps - 1);
    struct rotation_log *log[2] = {right, left};
    int64_t front = 0; /* block of the foremost half sweep */

    (void)ctx;
    memset(made, 0, (size_t)sweeps * sizeof *made);
    for (int64_t tick = 0; tick < ticks; tick++) {
        int64_t k = tick < steps ? 0 : (tick - steps) / 2 + 1;
        int64_t block;

        while (front + 1 < band->blocks && tick - 2 * k >= band->start[front + 1]) {
            front++;
        }
        block = front;
        for (; k < sweeps && 2 * k <= tick; k++) {
            int64_t i = tick - 2 * k;
            int odd = (int)((band->next + k) & 1);
            struct rotation q;

            while (i < band->start[block]) {
                block--;
            }
            made[k] +=
                givens_step(band->packed + 3 * (i + block), odd, band->eps, &q, &band->deflated);
            hand_over(band, block, i);
            if (log[odd]) {
                log[odd]->rotation[k / 2 * steps + i] = q;
            }
        }
    }
    band->next += sweeps;
    return TSVD_OK;
}

const struct tsvd_backend tsvdi_cpu = {
    .name = "cpu",
    .alloc = cpu_alloc,
    .free = cpu_free,
    .for_each = cpu_for_each,
    .rotate = tsvdi_cpu_rotate,
    .order = tsvdi_cpu_order,
    .orthonormalize = tsvdi_cpu_orthonormalize,
    .values = tsvdi_cpu_values,
    .givens_round = cpu_givens_round,
};
