/*
 * Results that lie by columns.  They are those of the transposes, whose left vectors have the signs
 * that tsvd.h fixes: here the signs go by the other side.
 */
#include "dense/dense_call.h"
#include "host/host.h"

enum {
    TOGETHER = 64 /* vectors that are turned together, in whole lines of memory of the other side */
};

/* Groups of vectors are shared out among threads. */
struct shared {
    const struct column_results *results;
    int64_t groups; /* of each matrix */
};

/* Makes the entry of largest magnitude, of equals the first, real and positive.  Returns what the
   vector is divided by. */
static scalar
turn(int64_t count, scalar *x)
{
    int64_t at = 0;
    real most = 0, size;
    scalar direction;

    for (int64_t i = 0; i < count; i++) {
        const real here = TSVD_COMPLEX ? n_abs2(x[i]) : n_abs(x[i]);

        at = here > most ? i : at;
        most = here > most ? here : most;
    }
    size = TSVD_COMPLEX ? r_sqrt(most) : most;
    if (!(size > 0) || (n_imag(x[at]) == 0 && n_real(x[at]) > 0)) {
        return n_make(1, 0);
    }
    direction = n_make(n_real(x[at]) / size, n_imag(x[at]) / size);
    for (int64_t i = 0; i < count; i++) {
        x[i] = n_mul(n_conj(direction), x[i]);
    }
    x[at] = n_make(size, 0);
    return direction;
}

static tsvd_status
turn_task(void *arg, int worker, int64_t index)
{
    const struct shared *shared = arg;
    const struct column_results *x = shared->results;
    const int64_t matrix = index / shared->groups, first = index % shared->groups * TOGETHER;
    const int64_t count = x->k - first < TOGETHER ? x->k - first : TOGETHER;
    scalar *left = (scalar *)x->left + (matrix * x->left_vectors + first) * x->rows;
    scalar *right = (scalar *)x->right + matrix * x->right_vectors * x->columns + first;
    scalar direction[TOGETHER];

    (void)worker;
    for (int64_t i = 0; i < count; i++) {
        direction[i] = turn(x->rows, left + i * x->rows);
    }
    for (int64_t j = 0; j < x->columns; j++) {
        for (int64_t i = 0; i < count; i++) {
            right[j * x->right_vectors + i] = n_mul(direction[i], right[j * x->right_vectors + i]);
        }
    }
    return TSVD_OK;
}

tsvd_status
tsvdi_dense_orient_by_column(const struct column_results *x)
{
    const struct shared shared = {x, (x->k + TOGETHER - 1) / TOGETHER};
    const int64_t groups = x->matrices * shared.groups;
    const int threads = tsvdi_host_threads_for(x->threads, groups);

    return tsvdi_host_for_each(threads, groups, turn_task, (void *)&shared);
}
