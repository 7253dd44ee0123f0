/*
 * Singular values on the device: kernels make a matrix ready for counts, and the host does not look
 * at it.  Layouts: csrc/math/sturm_polynomial.h, values/counts.h.
 */
#include "values/values.h"

enum { PREPARE_THREADS = 256 };

static __device__ __forceinline__ int64_t
thread_index(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* Raises a number to x.  Neither is negative, so their bits are ordered as the numbers are. */
static __device__ __forceinline__ void
raise_to(real *d_at, real x)
{
#if TSVD_SINGLE
    atomicMax((int *)d_at, r_bits(x));
#else
    atomicMax((long long *)d_at, (long long)r_bits(x));
#endif
}

/* Finds the matrix's size, which is zero before. */
static __global__ void
__launch_bounds__(PREPARE_THREADS)
    size_kernel(int64_t n, const real *d_d, const real *d_e, struct matrix_size *d_size)
{
    const int64_t step = (int64_t)gridDim.x * PREPARE_THREADS;
    struct matrix_size size = {0, 0};

    for (int64_t k = thread_index(); k < 2 * n - 1; k += step) {
        matrix_size_add(&size, n, d_d, d_e, k);
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        size.largest = r_max(size.largest, __shfl_xor_sync(~0U, size.largest, lanes));
        size.bound = r_max(size.bound, __shfl_xor_sync(~0U, size.bound, lanes));
    }
    if (threadIdx.x % WARP == 0) {
        raise_to(&d_size->largest, size.largest);
        raise_to(&d_size->bound, size.bound);
    }
}

/* The entries of one side. */
template <class Form>
static __global__ void
__launch_bounds__(PREPARE_THREADS)
    entry_kernel(int64_t n, const real *d_d, const real *d_e, bool is_bottom, int64_t room,
                 const struct matrix_size *d_size, typename Form::entry *d_entry)
{
    const int64_t k = thread_index();
    const int64_t from = !is_bottom ? k : k < n - 1 ? 2 * n - 2 - k : 2 * n; /* 2 n: none */

    if (k < room) {
        d_entry[k] = Form::entry_of(n, d_d, d_e, from, matrix_scale_of(*d_size));
    }
}

static __global__ void
__launch_bounds__(PREPARE_THREADS)
    event_kernel(int64_t n, const double *d_square, int64_t room, uint32_t *d_event)
{
    const int64_t k = thread_index() * STRETCH;

    for (int g = 0; g < (int)STRETCH / (int)GROUP && k < room; g++) {
        d_event[k / GROUP + g] = 0; /* none, also where the tile is only filled up */
    }
    if (k < 2 * n && k < room) { /* the room of the bottom is for n - 1 entries */
        plain_events(n, k, d_square + k, d_event + k / GROUP);
    }
}

/* Makes the entries of one side for one form. */
template <class Form>
static tsvd_status
add_side(struct cuda_call *call, const real *d_d, const real *d_e,
         const struct device_sturm *matrix, bool is_bottom, const typename Form::entry **d_entries)
{
    const int64_t room = sturm_room(matrix->n, is_bottom);
    typename Form::entry *d_entry = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)room * sizeof(*d_entry), (void **)&d_entry));
    *d_entries = d_entry;
    entry_kernel<Form><<<blocks_for(room, PREPARE_THREADS), PREPARE_THREADS, 0, call->stream>>>(
        matrix->n, d_d, d_e, is_bottom, room, matrix->d_size, d_entry);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Makes the plain entries of one side, and their events. */
static tsvd_status
begin_side(struct cuda_call *call, const real *d_d, const real *d_e,
           const struct device_sturm *matrix, bool is_bottom, struct device_entries *side)
{
    const int64_t room = sturm_room(matrix->n, is_bottom), stretches = room / STRETCH;
    uint32_t *d_event = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(add_side<plain_form>(call, d_d, d_e, matrix, is_bottom, &side->d_square));
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)room / GROUP * sizeof(*d_event), (void **)&d_event));
    side->d_event = d_event;
    event_kernel<<<blocks_for(stretches, PREPARE_THREADS), PREPARE_THREADS, 0, call->stream>>>(
        matrix->n, side->d_square, room, d_event);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_sturm_begin(struct cuda_call *call, int64_t n, const real *d_d, const real *d_e,
                       struct device_sturm *matrix)
{
    const unsigned size_blocks = (unsigned)bracket_min(blocks_for(2 * n, PREPARE_THREADS),
                                                       (int64_t)call->multiprocessors * 4);
    struct matrix_size *d_size = NULL;
    tsvd_status ret = TSVD_OK;

    memset(matrix, 0, sizeof(*matrix));
    matrix->n = n;
    TSVD_TRY(tsvdi_cuda_alloc(call, sizeof(*d_size), (void **)&d_size));
    matrix->d_size = d_size;
    CUDA_TRY(call, cudaMemsetAsync(d_size, 0, sizeof(*d_size), call->stream));
    size_kernel<<<size_blocks, PREPARE_THREADS, 0, call->stream>>>(n, d_d, d_e, d_size);
    CUDA_LAUNCHED(call);
    TSVD_TRY(begin_side(call, d_d, d_e, matrix, false, &matrix->top));
    TSVD_TRY(begin_side(call, d_d, d_e, matrix, true, &matrix->bottom));
out:
    return ret;
}

tsvd_status
tsvdi_cuda_sturm_add(struct cuda_call *call, enum form form, const real *d_d, const real *d_e,
                     struct device_sturm *matrix)
{
    tsvd_status ret = TSVD_OK;

    for (int is_bottom = 0; is_bottom < 2; is_bottom++) {
        struct device_entries *side = is_bottom ? &matrix->bottom : &matrix->top;

        if (form == WIDE && side->d_wide == NULL) {
            TSVD_TRY(add_side<wide_form>(call, d_d, d_e, matrix, is_bottom, &side->d_wide));
        } else if (form == TWOFOLD && side->d_twofold == NULL) {
            TSVD_TRY(add_side<twofold_form>(call, d_d, d_e, matrix, is_bottom, &side->d_twofold));
        }
    }
out:
    return ret;
}

void
tsvdi_cuda_sturm_end(struct cuda_call *call, struct device_sturm *matrix)
{
    const struct device_entries *const sides[2] = {&matrix->top, &matrix->bottom};

    tsvdi_cuda_free(call, (void *)matrix->d_size);
    for (const struct device_entries *side : sides) {
        tsvdi_cuda_free(call, (void *)side->d_square);
        tsvdi_cuda_free(call, (void *)side->d_event);
        tsvdi_cuda_free(call, (void *)side->d_twofold);
        tsvdi_cuda_free(call, (void *)side->d_wide);
    }
}
