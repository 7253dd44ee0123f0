/*
 * Overlap in memory, by the first and the last byte of each array.  Addresses of the host and of
 * CUDA devices are compared alike: a process has one space of addresses for all.
 */
#include "api/overlap.h"

#include "host/dtype.h"
#include "host/host.h"

/* Most arrays of a call. */
enum { MOST_ARRAYS = 5 };

/* The addresses [low, high) between which all entries of an array lie; low == high if there are
   none. */
struct extent {
    const char *name; /* in errors */
    uintptr_t low, high;
};

/* The extent of `size` bytes. */
static struct extent
extent_of_bytes(const char *name, const void *data, size_t size)
{
    return (struct extent){name, (uintptr_t)data, (uintptr_t)data + size};
}

/* Repeats what an extent has `count` times, `stride` bytes apart.  No array is larger than the
   space of addresses: one that seems to be is taken to fill it. */
static void
repeat(struct extent *x, int64_t count, int64_t stride)
{
    int64_t reach;

    if (count == 0 || x->low == x->high) {
        x->high = x->low;
    } else if (count == 1 || stride == 0) {
        return;
    } else if (__builtin_mul_overflow(count - 1, stride, &reach)) {
        x->low = 0;
        x->high = UINTPTR_MAX;
    } else if (reach < 0) {
        x->low = x->low < (uintptr_t)0 - (uintptr_t)reach ? 0 : x->low + (uintptr_t)reach;
    } else {
        x->high =
            x->high > UINTPTR_MAX - (uintptr_t)reach ? UINTPTR_MAX : x->high + (uintptr_t)reach;
    }
}

/* Repeats it for all matrices of a batch. */
static void
repeat_batch(struct extent *x, const struct batch *batch, const ptrdiff_t *strides)
{
    for (int i = 0; i < batch->ndim; i++) {
        repeat(x, batch->shape[i], strides[i]);
    }
}

/* The extent of results: rows x columns numbers for each of the matrices, without gaps. */
static struct extent
extent_of_results(const char *name, const void *data, tsvd_dtype dtype, const struct batch *batch,
                  int64_t rows, int64_t columns)
{
    const int64_t size = (int64_t)dtype_size(dtype);

    if (data == NULL || batch->matrices == 0) { /* then the sizes may be any */
        return extent_of_bytes(name, data, 0);
    }
    return extent_of_bytes(name, data, (size_t)(batch->matrices * rows * columns * size));
}

static struct extent
extent_of_array(const char *name, const tsvd_array *array)
{
    struct extent x = extent_of_bytes(name, array->data, dtype_size(array->dtype));

    for (int i = 0; i < array->ndim; i++) {
        repeat(&x, array->shape[i], array->strides[i]);
    }
    return x;
}

static int
overlap(const struct extent *a, const struct extent *b)
{
    return a->low < a->high && b->low < b->high && a->low < b->high && b->low < a->high;
}

int
tsvd_arrays_overlap(const tsvd_array *a, const tsvd_array *b)
{
    const struct extent of_a = extent_of_array(NULL, a), of_b = extent_of_array(NULL, b);

    return overlap(&of_a, &of_b);
}

/* Refuses results among `count` arrays, those from `inputs` on, that overlap any of the others. */
static tsvd_status
check(const struct extent *x, int inputs, int count, tsvd_error *error)
{
    for (int i = inputs; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (overlap(&x[i], &x[j])) {
                return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "%s overlaps %s in memory", x[i].name,
                                  x[j].name);
            }
        }
    }
    return TSVD_OK;
}

static struct extent
extent_of_input(const char *name, const struct svd_input *input, const struct svd_problem *p,
                int64_t count)
{
    struct extent x = extent_of_bytes(name, input->data, dtype_size(p->dtype));

    repeat(&x, count, input->stride);
    repeat_batch(&x, &p->batch, input->batch_strides);
    return x;
}

tsvd_status
tsvdi_check_apart(const struct svd_problem *p, tsvd_error *error)
{
    const struct extent all[MOST_ARRAYS] = {
        extent_of_input("d", &p->d, p, p->n),
        extent_of_input("e", &p->e, p, entries_of_e(p)),
        extent_of_results("s", p->s, p->dtype, &p->batch, 1, p->k),
        extent_of_results("L", p->L, p->dtype, &p->batch, p->rows, left_vectors(p)),
        extent_of_results("R", p->R, p->dtype, &p->batch, right_vectors(p), p->columns),
    };

    return check(all, 2, p->vectors ? 5 : 3, error);
}

static struct extent
extent_of_matrices(const struct dense_matrices *a)
{
    struct extent x = extent_of_bytes("a", a->data, dtype_size(a->dtype));

    repeat(&x, a->rows, a->row_stride);
    repeat(&x, a->columns, a->column_stride);
    repeat_batch(&x, &a->batch, a->batch_strides);
    return x;
}

/* Refuses results that overlap `a`, or each other. */
static tsvd_status
check_dense(struct extent a, const struct dense_problem *p, tsvd_error *error)
{
    const struct dense_matrices *m = &p->a;
    const int64_t left = p->full ? m->rows : p->k, right = p->full ? m->columns : p->k;
    const struct extent all[MOST_ARRAYS] = {
        a,
        extent_of_results("S", p->S, dtype_of_reals(m->dtype), &m->batch, 1, p->k),
        extent_of_results("U", p->U, m->dtype, &m->batch, m->rows, left),
        extent_of_results("Vh", p->Vh, m->dtype, &m->batch, right, m->columns),
    };

    return check(all, 1, p->vectors ? 4 : 2, error);
}

tsvd_status
tsvdi_dense_check_apart(const struct dense_problem *p, tsvd_error *error)
{
    return check_dense(extent_of_matrices(&p->a), p, error);
}

tsvd_status
tsvdi_dense_check_results_apart(const struct dense_problem *p, tsvd_error *error)
{
    return check_dense(extent_of_bytes("a", NULL, 0), p, error);
}

tsvd_status
tsvdi_inverse_check_apart(const struct inverse_problem *p, tsvd_error *error)
{
    const struct extent all[MOST_ARRAYS] = {
        extent_of_matrices(&p->a),
        extent_of_results("X", p->X, p->a.dtype, &p->a.batch, p->a.rows, p->a.columns),
    };

    return check(all, 1, 2, error);
}

tsvd_status
tsvdi_check_two_apart(const tsvd_array *a, const char *a_name, const tsvd_array *b,
                      const char *b_name, tsvd_error *error)
{
    const struct extent all[MOST_ARRAYS] = {extent_of_array(a_name, a), extent_of_array(b_name, b)};

    return check(all, 0, 2, error);
}
