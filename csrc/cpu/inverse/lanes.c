/*
 * The inverses of small matrices on the CPU: as many at once as the vector kernels have lanes
 * (cpu/kernels/inverse_lanes.h).  What is hard for them is left to the other files, one by one.
 */
#include "cpu/matrix/lanes.h"
#include "cpu/inverse/inverse_run.h"
#include "cpu/kernels/kernels.h"

int
tsvdi_cpu_inverse_has_lanes(const struct inverse_problem *p)
{
    return p->a.rows <= CPU_INVERSE_LANES_ORDER && !p->refine;
}

static struct inverse_lanes
arrays_of(int64_t n, int64_t lanes, real *work, int64_t *numbers)
{
    struct inverse_lanes q = {.n = n};
    const struct lanes_array arrays[] = {
        {&q.m, N_PARTS * n * n}, {&q.column, N_PARTS * n}, {&q.pivot, n},
        {(real **)&q.rows, n},   {(real **)&q.columns, n}, {(real **)&q.exponent, 1},
        {(real **)&q.kind, 1},   {(real **)&q.hard, 1},    {&q.norm, 1},
        {&q.inverse_norm, 1},
    };

    *numbers = lanes_place(arrays, sizeof arrays / sizeof *arrays, lanes, work);
    return q;
}

uint64_t
tsvdi_cpu_inverse_lanes_bytes(const struct inverse_problem *p)
{
    int64_t numbers = 0;

    if (tsvdi_cpu_inverse_has_lanes(p)) {
        (void)arrays_of(p->a.rows, tsvdi_kernels()->lanes, NULL, &numbers);
    }
    return bytes_of(numbers, sizeof(real));
}

/* Copies the inverse of M = A^T from a lane: X has its transpose. */
static void
store_lane(const struct inverse_lanes *q, int64_t lanes, int lane, scalar *x)
{
    const int64_t n = q->n;

    for (int64_t i = 0; i < n; i++) {
        const real *from = q->m + i * N_PARTS * lanes + lane;

        for (int64_t j = 0; j < n; j++, x++, from += n * N_PARTS * lanes) {
#if TSVD_COMPLEX
            *x = n_make(from[0], from[lanes]);
#else
            *x = *from;
#endif
        }
    }
}

void
tsvdi_cpu_inverse_lanes(const struct cpu_inverse *run, int64_t begin, int count, void *work,
                        char *hard)
{
    const struct inverse_problem *p = run->job->problem;
    const int64_t n = p->a.rows, lanes = tsvdi_kernels()->lanes;
    const struct lanes_source source = {&p->a, run->dense.begin + begin, count, 0, 0};
    int64_t numbers;
    const struct inverse_lanes q = arrays_of(n, lanes, work, &numbers);

    lanes_load(source, lanes, n, n, q.m);
    tsvdi_kernels()->inverse_lanes(&q);
    for (int lane = 0; lane < count; lane++) {
        const int64_t i = begin + lane;

        hard[lane] = q.kind[lane] != ORDINARY || q.hard[lane];
        if (!hard[lane]) {
            store_lane(&q, lanes, lane, run->dense.w + i * n * n);
            run->dense.kind[i] = ORDINARY;
            run->rcond[i] = 1 / ((double)q.norm[lane] * (double)q.inverse_norm[lane]);
        }
    }
}
