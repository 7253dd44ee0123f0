/*
 * Results that lie by columns.  They are those of the transposes, whose left vectors have the signs
 * that tsvd.h fixes: here the signs go by the other side.
 */
#include "backend/handle.h"
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

#if TSVD_COMPLEX

/* What is compared, and the direction of a number of that size. */
static real
size_of(scalar x)
{
    return n_abs2(x);
}

static scalar
direction_of(scalar x, real size)
{
    const real length = r_sqrt(size);

    return size > 0 ? n_make(n_real(x) / length, n_imag(x) / length) : n_make(1, 0);
}

#else

static real
size_of(scalar x)
{
    return n_abs(x);
}

static scalar
direction_of(scalar x, real size)
{
    return size > 0 && x < 0 ? -1 : 1;
}

#endif

/* Makes the entry of largest magnitude, of equals the first, real and positive.  Returns what the
   vector is divided by. */
static scalar
turn(int64_t count, scalar *x)
{
    int64_t at = 0;
    real most = 0;
    scalar direction;

    for (int64_t i = 0; i < count; i++) {
        const real here = size_of(x[i]);

        at = here > most ? i : at;
        most = here > most ? here : most;
    }
    direction = direction_of(x[at], most);
    for (int64_t i = 0; i < count && direction != 1; i++) {
        x[i] = i == at ? n_abs(x[i]) : n_mul(n_conj(direction), x[i]);
    }
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
    const int threads = tsvdi_host_threads_for(x->handle->threads, groups);

    if (x->space != TSVD_HOST) {
        return tsvdi_backend_of(x->handle)->orient_by_column(x);
    }
    return tsvdi_host_for_each(threads, groups, turn_task, (void *)&shared);
}
