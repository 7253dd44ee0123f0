/*
 * Results that lie by columns.  They are those of the transposes, whose left vectors have the signs
 * that tsvd.h fixes: here the signs go by the other side.
 */
#include "cpu/kernels/kernels.h"
#include "cpu/matrix/matrix.h"
#include "host/host.h"

/* Groups of vectors are shared out among threads. */
struct shared {
    const struct column_results *results;
    int64_t groups; /* of each matrix */
};

/* The first vectors of a group are `first`; see matrix.h. */
static void
orient_group(const struct column_results *x, scalar *left, scalar *right, int64_t first,
             int64_t count)
{
    scalar sign[CPU_SIGNS_TOGETHER];

    for (int64_t i = 0; i < count; i++) {
        tsvdi_kernels()->orient(1, x->rows, left + (first + i) * x->rows, 1, &sign[i]);
    }
    for (int64_t j = 0; j < x->columns; j++) {
        scalar *entries = right + j * x->right_vectors + first;

        for (int64_t i = 0; i < count; i++) {
            entries[i] = n_mul(sign[i], entries[i]);
        }
    }
}

static tsvd_status
orient_task(void *arg, int worker, int64_t index)
{
    const struct shared *shared = arg;
    const struct column_results *x = shared->results;
    const int64_t matrix = index / shared->groups;
    const int64_t first = index % shared->groups * CPU_SIGNS_TOGETHER;
    const int64_t left = x->k - first;

    (void)worker;
    orient_group(x, (scalar *)x->left + matrix * x->left_vectors * x->rows,
                 (scalar *)x->right + matrix * x->right_vectors * x->columns, first,
                 left < CPU_SIGNS_TOGETHER ? left : CPU_SIGNS_TOGETHER);
    return TSVD_OK;
}

tsvd_status
tsvdi_cpu_orient_by_column(const struct column_results *x)
{
    const struct shared shared = {x, (x->k + CPU_SIGNS_TOGETHER - 1) / CPU_SIGNS_TOGETHER};
    const int64_t groups = x->matrices * shared.groups;
    const int threads = tsvdi_host_threads_for(x->threads, groups);

    return tsvdi_host_for_each(threads, groups, orient_task, (void *)&shared);
}
