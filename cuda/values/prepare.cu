/*
 * Singular values on the device: kernels prepare a matrix for counts, without a look of the host at
 * it.  Layouts: csrc/math/sturm_polynomial.h, values/counts.h.
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

enum { TOP, BOTTOM, SIDES };

/* The entries of both sides for one form. */
template <class Form> struct sides {
    int64_t capacity[SIDES];
    typename Form::entry *d_entry[SIDES];
};

template <class Form>
static __global__ void
__launch_bounds__(PREPARE_THREADS)
    entry_kernel(int64_t n, const real *d_d, const real *d_e, const struct matrix_size *d_size,
                 struct sides<Form> sides)
{
    const int side = (int)blockIdx.y;
    const int64_t k = thread_index();
    const int64_t from = side == TOP ? k : k < n - 1 ? 2 * n - 2 - k : 2 * n; /* 2 n: none */

    if (k < sides.capacity[side]) {
        sides.d_entry[side][k] = Form::entry_of(n, d_d, d_e, from, matrix_scale_of(*d_size));
    }
}

/* A grid with a thread for each of `most` items of the top side; the bottom side has fewer. */
static dim3
sides_grid(int64_t most)
{
    return dim3(blocks_for(most, PREPARE_THREADS), SIDES);
}

/* Makes the entries of both sides for one form. */
template <class Form>
static tsvd_status
make_entries(struct cuda_call *call, const real *d_d, const real *d_e,
             const struct device_sturm *matrix, const typename Form::entry *d_top,
             const typename Form::entry *d_bottom)
{
    typedef typename Form::entry entry;
    const int64_t n = matrix->n;
    struct sides<Form> sides;
    tsvd_status ret = TSVD_OK;

    sides.capacity[TOP] = sturm_capacity(n, false);
    sides.capacity[BOTTOM] = sturm_capacity(n, true);
    sides.d_entry[TOP] = (entry *)d_top;
    sides.d_entry[BOTTOM] = (entry *)d_bottom;
    entry_kernel<Form><<<sides_grid(sides.capacity[TOP]), PREPARE_THREADS, 0, call->stream>>>(
        n, d_d, d_e, matrix->d_size, sides);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The entries of a side, and where their events go. */
struct side {
    int64_t capacity;
    const double *d_square;
    uint32_t *d_event;
};

/* Both sides. */
static __global__ void
__launch_bounds__(PREPARE_THREADS) event_kernel(int64_t n, struct side top, struct side bottom)
{
    const struct side side = blockIdx.y == 0 ? top : bottom;
    const int64_t k = thread_index() * STRETCH;

    for (int g = 0; g < (int)STRETCH / (int)GROUP && k < side.capacity; g++) {
        side.d_event[k / GROUP + g] = 0; /* none, also in the padding of the last tile */
    }
    if (k < 2 * n && k < side.capacity) { /* the bottom has fewer: n - 1 entries */
        plain_events(n, k, side.d_square + k, side.d_event + k / GROUP);
    }
}

/* Lays out what begin() makes, one allocation that begins with the size.  Returns its bytes. */
static size_t
lay_out(struct device_sturm *matrix, char *base)
{
    size_t at = 0;

    matrix->d_size = carve<struct matrix_size>(base, &at, 1);
    for (int i = 0; i < SIDES; i++) {
        struct device_entries *side = i == TOP ? &matrix->top : &matrix->bottom;
        const int64_t capacity = sturm_capacity(matrix->n, i == BOTTOM);

        side->d_square = carve<double>(base, &at, capacity);
        side->d_event = carve<uint32_t>(base, &at, capacity / GROUP);
    }
    return at;
}

/* Entries of both sides. */
static int64_t
all_capacity(int64_t n)
{
    return sturm_capacity(n, false) + sturm_capacity(n, true);
}

uint64_t
tsvdi_cuda_values_sturm_bytes(int64_t n)
{
    struct device_sturm matrix = {};

    matrix.n = n;
    return bytes_add(
        lay_out(&matrix, NULL),
        bytes_of(all_capacity(n), sizeof(struct twofold_entry) + sizeof(struct extended_entry)));
}

tsvd_status
tsvdi_cuda_values_sturm_begin(struct cuda_call *call, int64_t n, const real *d_d, const real *d_e,
                              struct device_sturm *matrix)
{
    const unsigned size_blocks = (unsigned)bracket_min(blocks_for(2 * n, PREPARE_THREADS),
                                                       (int64_t)call->device->multiprocessors * 4);
    const int64_t top = sturm_capacity(n, false), bottom = sturm_capacity(n, true);
    char *d_arrays = NULL;
    struct matrix_size *d_size;
    tsvd_status ret = TSVD_OK;

    memset(matrix, 0, sizeof(*matrix));
    matrix->n = n;
    TSVD_TRY(tsvdi_cuda_alloc(call, lay_out(matrix, NULL), (void **)&d_arrays));
    (void)lay_out(matrix, d_arrays);
    d_size = (struct matrix_size *)matrix->d_size;
    CUDA_TRY(call, cudaMemsetAsync(d_size, 0, sizeof(*d_size), call->stream));
    size_kernel<<<size_blocks, PREPARE_THREADS, 0, call->stream>>>(n, d_d, d_e, d_size);
    CUDA_LAUNCHED(call);
    TSVD_TRY(make_entries<plain_form>(call, d_d, d_e, matrix, matrix->top.d_square,
                                      matrix->bottom.d_square));
    event_kernel<<<sides_grid(top / STRETCH), PREPARE_THREADS, 0, call->stream>>>(
        n, {top, matrix->top.d_square, (uint32_t *)matrix->top.d_event},
        {bottom, matrix->bottom.d_square, (uint32_t *)matrix->bottom.d_event});
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* Makes the entries of both sides for one more form, one allocation, unless they are there. */
template <class Form>
static tsvd_status
add_form(struct cuda_call *call, const real *d_d, const real *d_e,
         const struct device_sturm *matrix, const typename Form::entry **d_top,
         const typename Form::entry **d_bottom)
{
    const int64_t n = matrix->n;
    tsvd_status ret = TSVD_OK;

    if (*d_top != NULL) {
        return TSVD_OK;
    }
    TSVD_TRY(tsvdi_cuda_alloc(call, (size_t)all_capacity(n) * sizeof(**d_top), (void **)d_top));
    *d_bottom = *d_top + sturm_capacity(n, false);
    TSVD_TRY(make_entries<Form>(call, d_d, d_e, matrix, *d_top, *d_bottom));
out:
    return ret;
}

tsvd_status
tsvdi_cuda_values_sturm_add(struct cuda_call *call, enum form form, const real *d_d,
                            const real *d_e, struct device_sturm *matrix)
{
    struct device_entries *top = &matrix->top, *bottom = &matrix->bottom;

    return form == EXTENDED ? add_form<extended_form>(call, d_d, d_e, matrix, &top->d_extended,
                                                      &bottom->d_extended)
                            : add_form<twofold_form>(call, d_d, d_e, matrix, &top->d_twofold,
                                                     &bottom->d_twofold);
}

void
tsvdi_cuda_values_sturm_end(struct cuda_call *call, struct device_sturm *matrix)
{
    tsvdi_cuda_free(call, (void *)matrix->d_size); /* and all arrays of the same allocation */
    tsvdi_cuda_free(call, (void *)matrix->top.d_twofold);
    tsvdi_cuda_free(call, (void *)matrix->top.d_extended);
}
