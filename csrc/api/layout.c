#include "api/layout.h"

#include <string.h>

#include "api/api_call.h"
#include "backend/precision.h"
#include "host/dtype.h"
#include "host/host.h"

/* Rows and columns that are copied together. */
enum { TILE = 32 };

/* From this order on a CUDA device sends the rows of L one by one. */
enum { ROWS_APART_ORDER = 1024 };

/* ---- strides ---- */

int
tsvdi_layout_is_contiguous(const tsvd_array *x)
{
    int64_t stride = (int64_t)dtype_size(x->dtype);

    for (int i = 0; i < x->ndim; i++) {
        if (x->shape[i] == 0) {
            return 1;
        }
    }
    for (int i = x->ndim - 1; i >= 0; i--) {
        if (x->shape[i] != 1 && x->strides[i] != stride) {
            return 0;
        }
        stride *= x->shape[i];
    }
    return 1;
}

static void
swap_numbers(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;

    *a = *b;
    *b = kept;
}

/* Whether the transposes of matrices are C-contiguous. */
static int
is_by_column(const tsvd_array *x)
{
    tsvd_array transposed = *x;

    swap_numbers(&transposed.shape[x->ndim - 2], &transposed.shape[x->ndim - 1]);
    swap_numbers(&transposed.strides[x->ndim - 2], &transposed.strides[x->ndim - 1]);
    return tsvdi_layout_is_contiguous(&transposed);
}

static uint64_t
magnitude_of(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Whether no two entries share memory: from the smallest stride to the largest, each leads beyond
   all that the smaller ones reach.  No array reaches beyond the space of addresses. */
static int
is_apart(const tsvd_array *x)
{
    uint64_t reach = dtype_size(x->dtype), further; /* bytes that the strides so far span */
    unsigned char taken[TSVD_MAX_DIMS] = {0};

    for (int left = x->ndim; left > 0; left--) {
        int next = -1;

        for (int i = 0; i < x->ndim; i++) {
            if (!taken[i] &&
                (next < 0 || magnitude_of(x->strides[i]) < magnitude_of(x->strides[next]))) {
                next = i;
            }
        }
        taken[next] = 1;
        if (x->shape[next] > 1) {
            if (magnitude_of(x->strides[next]) < reach ||
                __builtin_mul_overflow((uint64_t)x->shape[next] - 1, magnitude_of(x->strides[next]),
                                       &further) ||
                __builtin_add_overflow(reach, further, &reach)) {
                return 0;
            }
        }
    }
    return 1;
}

/* ---- arrays of the call's own ---- */

/* A copy that threads share: tiles of rows of all matrices. */
struct copying {
    const tsvd_array *to;
    const char *from;
    int own;
    size_t size; /* bytes of a number */
    int64_t rows, columns, tiles;
};

static void
copy_number(char *to, const char *from, size_t size)
{
    switch (size) { /* so that each is a load and a store */
    case sizeof(float):
        memcpy(to, from, sizeof(float));
        break;
    case sizeof(double):
        memcpy(to, from, sizeof(double));
        break;
    default:
        memcpy(to, from, 2 * sizeof(double));
    }
}

static tsvd_status
copy_task(void *arg, int worker, int64_t index)
{
    const struct copying *c = arg;
    const tsvd_array *to = c->to;
    const int last = to->ndim - 1;
    const int64_t down = c->own == 2 ? to->strides[last - 1] : 0, along = to->strides[last];
    const int64_t first = index % c->tiles * TILE;
    const int64_t end = first + TILE < c->rows ? first + TILE : c->rows;
    const char *from = c->from + index / c->tiles * c->rows * c->columns * (int64_t)c->size;
    char *at = to->data;

    (void)worker;
    index /= c->tiles;
    for (int i = to->ndim - c->own - 1; i >= 0; i--) {
        at += index % to->shape[i] * to->strides[i];
        index /= to->shape[i];
    }
    for (int64_t left = 0; left < c->columns; left += TILE) {
        const int64_t right = left + TILE < c->columns ? left + TILE : c->columns;

        for (int64_t i = first; i < end; i++) {
            for (int64_t j = left; j < right; j++) {
                copy_number(at + i * down + j * along,
                            from + (i * c->columns + j) * (int64_t)c->size, c->size);
            }
        }
    }
    return TSVD_OK;
}

/* Copies a C-contiguous array to another one of its shape. */
static tsvd_status
copy_out(const tsvd_handle *handle, const char *from, int own, const tsvd_array *to)
{
    const int last = to->ndim - 1;
    const int64_t rows = own == 2 ? to->shape[last - 1] : 1;
    const struct copying c = {
        to, from, own, dtype_size(to->dtype), rows, to->shape[last], (rows + TILE - 1) / TILE};
    int64_t tasks = c.tiles;

    if (to->space != TSVD_HOST) {
        return tsvdi_cuda_copy_out(handle->cuda, from, to, own);
    }
    for (int i = 0; i <= last - own; i++) {
        tasks *= to->shape[i];
    }
    return tsvdi_host_for_each(tsvdi_host_threads_for(handle->threads, tasks), tasks, copy_task,
                               (void *)&c);
}

/* Puts an array of the call's own in the place of *data, unless `to` is C-contiguous. */
static tsvd_status
stage(struct layout *layout, const tsvd_array *to, const char *name, int own, void **data,
      tsvd_error *error)
{
    size_t bytes = dtype_size(to->dtype);
    tsvd_memory *memory = NULL;
    void *made = NULL;
    tsvd_status ret = TSVD_OK;

    if (tsvdi_layout_is_contiguous(to)) {
        goto out;
    }
    if (!is_apart(to)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "entries of %s may overlap in memory", name);
    }
    for (int i = 0; i < to->ndim; i++) {
        bytes *= (size_t)to->shape[i];
    }
    if (to->space == TSVD_HOST) {
        TSVD_TRY(tsvdi_host_alloc(&layout->handle->host, bytes, error, &made));
    } else {
        TSVD_TRY(tsvdi_cuda_memory_take(layout->handle->cuda, bytes, &memory, error));
        made = tsvd_memory_data(memory);
    }
    layout->staged[layout->count].to = to;
    layout->staged[layout->count].memory = memory;
    layout->staged[layout->count].own = own;
    layout->staged[layout->count++].made = *data = made;
out:
    return ret;
}

static void
begin(struct layout *layout, tsvd_handle *handle, tsvd_dtype dtype, tsvd_error *error)
{
    layout->handle = handle;
    layout->error = error;
    layout->dtype = dtype;
    layout->by_column = layout->count = 0;
}

/* The numbers between rows of L or U on the host, where only the rows of a single large matrix are
   apart, and the back end sends each by itself; else 0. */
static int64_t
row_stride(const tsvd_handle *handle, const tsvd_array *left, int64_t n)
{
    const int64_t size = (int64_t)dtype_size(left->dtype);
    const int last = left->ndim - 1;

    return handle->cuda != NULL && left->space == TSVD_HOST && last == 1 && n >= ROWS_APART_ORDER &&
                   left->shape[last] > 0 && left->strides[last] == size &&
                   left->strides[0] % size == 0 && left->strides[0] / size >= left->shape[last]
               ? left->strides[0] / size
               : 0;
}

/* Whether results lie by columns on both sides, and not by rows too. */
static int
are_by_column(const tsvd_array *left, const tsvd_array *right)
{
    return left != NULL &&
           !(tsvdi_layout_is_contiguous(left) && tsvdi_layout_is_contiguous(right)) &&
           is_by_column(left) && is_by_column(right);
}

static void
swap(void **a, void **b)
{
    void *const kept = *a;

    *a = *b;
    *b = kept;
}

/* ---- the calls ---- */

tsvd_status
tsvdi_layout_begin(const tsvd_array *L, const tsvd_array *s, const tsvd_array *R,
                   struct svd_problem *p, struct layout *layout, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    begin(layout, p->call.handle, p->dtype, error);
    if (are_by_column(L, R)) {
        layout->by_column = 1;
        layout->by_columns = (struct column_results){
            p->call.handle, p->call.to,      p->batch.matrices, p->rows, p->columns,
            p->k,           left_vectors(p), right_vectors(p),  p->L,    p->R};
        layout->options = *p->call.options;
        layout->options.lower = !layout->options.lower;
        p->call.options = &layout->options;
        swap_numbers(&p->rows, &p->columns);
        swap(&p->L, &p->R);
        p->left_stride = left_vectors(p);
    } else if (L != NULL) {
        if (!p->extra && row_stride(p->call.handle, L, p->n) > 0) {
            p->left_stride = row_stride(p->call.handle, L, p->n);
        } else {
            TSVD_TRY(stage(layout, L, "L", 2, &p->L, error));
        }
        TSVD_TRY(stage(layout, R, "R", 2, &p->R, error));
    }
    TSVD_TRY(stage(layout, s, "s", 1, &p->s, error));
out:
    return ret == TSVD_OK ? ret : tsvdi_layout_end(layout, ret);
}

/* The transposes of matrices. */
static void
transpose(struct dense_matrices *a)
{
    const ptrdiff_t stride = a->row_stride;

    a->row_stride = a->column_stride;
    a->column_stride = stride;
    swap_numbers(&a->rows, &a->columns);
}

tsvd_status
tsvdi_layout_begin_dense(const tsvd_array *U, const tsvd_array *S, const tsvd_array *Vh,
                         int may_transpose, struct dense_problem *p, struct layout *layout,
                         tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    begin(layout, p->call.handle, p->a.dtype, error);
    if (may_transpose && are_by_column(U, Vh)) {
        layout->by_column = 1;
        layout->by_columns = (struct column_results){
            p->call.handle, p->call.to, p->a.batch.matrices,        p->a.rows,
            p->a.columns,   p->k,       p->full ? p->a.rows : p->k, p->full ? p->a.columns : p->k,
            p->U,           p->Vh};
        transpose(&p->a);
        swap(&p->U, &p->Vh);
        p->left_stride = p->full ? p->a.rows : p->k;
    } else if (U != NULL) {
        if (row_stride(p->call.handle, U, p->n) > 0) {
            p->left_stride = row_stride(p->call.handle, U, p->n);
        } else {
            TSVD_TRY(stage(layout, U, "U", 2, &p->U, error));
        }
        TSVD_TRY(stage(layout, Vh, "Vh", 2, &p->Vh, error));
    }
    TSVD_TRY(stage(layout, S, "S", 1, &p->S, error));
out:
    return ret == TSVD_OK ? ret : tsvdi_layout_end(layout, ret);
}

tsvd_status
tsvdi_layout_begin_inverse(const tsvd_array *X, struct inverse_problem *p, struct layout *layout,
                           tsvd_error *error)
{
    begin(layout, p->call.handle, p->a.dtype, error);
    if (!tsvdi_layout_is_contiguous(X) && is_by_column(X)) {
        /* the inverse of the transpose is that of the inverse */
        transpose(&p->a);
        return TSVD_OK;
    }
    return stage(layout, X, "X", 2, &p->X, error);
}

static tsvd_status
bring(const struct layout *layout)
{
    tsvd_status ret = TSVD_OK;

    if (layout->by_column) {
        TSVD_TRY(tsvdi_precision_of(layout->dtype)->orient_by_column(&layout->by_columns));
    }
    for (int i = 0; i < layout->count; i++) {
        TSVD_TRY(copy_out(layout->handle, layout->staged[i].made, layout->staged[i].own,
                          layout->staged[i].to));
    }
out:
    return ret;
}

tsvd_status
tsvdi_layout_end(struct layout *layout, tsvd_status status)
{
    tsvd_handle *const handle = layout->handle;
    tsvd_status ret = status;

    if (ret == TSVD_OK && (layout->by_column || layout->count > 0)) {
        TSVD_CALL(handle, layout->error, bring(layout));
    }
    for (int i = 0; i < layout->count; i++) {
        if (layout->staged[i].memory != NULL) {
            tsvd_memory_release(layout->staged[i].memory);
        } else {
            tsvdi_host_free(&handle->host, layout->staged[i].made);
        }
    }
    layout->count = 0;
    return ret;
}
