/*
 * What the numerical files of the CUDA back end share: the header of the seam, seen from C++, and
 * functions that one file offers to others.  Compiled for each precision.
 *
 * On the device both sides of singular vectors are kept as rows: vector j is row j of a
 * C-ordered n x n array, so that a rotation of two vectors reads and writes them
 * coalesced.  Only the last step, order, transposes the left ones into columns.
 */
#ifndef TSVDI_CUDA_KERNELS_H
#define TSVDI_CUDA_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "math/scalar.h" /* before it comes again in extern "C", where templates cannot be */
#include "runtime/blas.h"
#include "runtime/sender.h"
#include "runtime/transfer.h"
#include "tuning.h"

extern "C" {
#include "backend/ops.h"
}

/* The kind of a scalar in products (runtime/blas.h); of a real it is TSVD_SINGLE. */
enum {
    SCALAR_KIND = !TSVD_COMPLEX ? TSVD_SINGLE
                  : TSVD_SINGLE ? TSVDI_COMPLEX64
                                : TSVDI_COMPLEX128
};

/* Threads of a warp.  A tile of a transpose has a row for each of them. */
enum { WARP = 32, TILE = WARP };

/* CUDA's bound on the blocks of a grid along its second and third dimensions. */
enum { GRID_MOST = 65535 };

/* Up to WAVE_SWEEPS consecutive sweeps of one direction that pass over the vectors together:
   in step w sweep k rotates rows w - k and w - k + 1, counted from `first` in that direction. */
struct device_wave {
    int64_t first;
    int64_t steps; /* positions spanned + WAVE_SWEEPS - 1 */
    int up;
    int sweeps;
    int64_t begin[WAVE_SWEEPS];  /* position at which sweep k starts, from `first` */
    int64_t count[WAVE_SWEEPS];  /* its rotations */
    int64_t offset[WAVE_SWEEPS]; /* of its first one in the log */
};

/* Vectors as rows of device memory, of one matrix of order n after another. */
struct device_rows {
    const real *x;
    int64_t n, stride; /* order of the matrices; numbers between rows */

    /* [rows] device memory.  Row j is defined in the columns low[j] .. high[j] - 1 only, and stands
       for zeros in all other columns.  Columns are numbered through all matrices: those of matrix m
       from m n on.  NULL: rows are defined everywhere. */
    const int64_t *low, *high;
};

/* The sum over a warp, in every lane.  The order of the additions fixes the bits of the result, so
   it is spelt here and not left to a library. */
template <typename number>
static __device__ __forceinline__ number
warp_sum(number x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    }
    return x;
}

/* The bits of n_size(x), those of infinity if x is NaN: they are ordered as the sizes are. */
static __device__ __forceinline__ real_int
size_bits(scalar x)
{
    const real_int bits = n_size_bits(x);

    return bits < R_INFINITY_BITS ? bits : R_INFINITY_BITS;
}

#if TSVD_COMPLEX
/* CUDA's exchanges between the lanes of a warp, of complex numbers. */
#define EXCHANGE(name)                                                                             \
    static __device__ __forceinline__ scalar name(unsigned lanes, scalar x, int from,              \
                                                  int width = WARP)                                \
    {                                                                                              \
        return {name(lanes, x.re, from, width), name(lanes, x.im, from, width)};                   \
    }
EXCHANGE(__shfl_sync)
EXCHANGE(__shfl_xor_sync)
#undef EXCHANGE
#endif

/* Blocks of `size` threads (or entries, rows, ...) that `count` of them take. */
static inline unsigned
blocks_for(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

/* Numbers between the rows of an array of order n that has aligned rows. */
static inline int64_t
device_stride(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* Takes the next array from the workspace at base + *at, with padding to 256 bytes.  base = NULL:
   only counts its bytes. */
template <typename T>
static T *
carve(char *base, size_t *at, int64_t count)
{
    T *array = (T *)(base + *at);

    *at += ((size_t)count * sizeof(T) + 255) / 256 * 256;
    return array;
}

/* The call under way on a handle's device. */
static inline struct cuda_call *
cuda_of(const struct tsvd_context *ctx)
{
    return &ctx->call->handle->cuda->call;
}

/* Where matrix `index` of a batch of this shape begins.  at: where matrix 0 begins; strides: in
   bytes. */
static __host__ __device__ __forceinline__ const char *
locate_matrix(const char *at, int batch_ndim, const int64_t *shape, const int64_t *strides,
              int64_t index)
{
    for (int k = batch_ndim - 1; k > 0; k--) {
        at += index % shape[k] * strides[k];
        index /= shape[k];
    }
    return batch_ndim > 0 ? at + index * strides[0] : at;
}

/* rotations/rotations.cu: applies waves to the right vectors (side 0) and to the left ones (side
   1). Group g of a side is its waves d_begin[side][g] .. d_begin[side][g + 1] - 1.  Groups share no
   vectors.  All arrays are device memory. */
tsvd_status tsvdi_cuda_rotations_rotate(struct tsvd_context *ctx,
                                        const struct device_wave *const d_wave[2],
                                        const struct rotation *const d_log[2],
                                        const int64_t *const d_begin[2], int64_t groups,
                                        const struct vectors vectors[2]);

/* rotations/rotations.cu: orders k vectors of each of `batch` matrices.  All arrays are device
   memory.
   d_from      [batch k] numbers of rows
   d_negative  [rows] 1 where the two sides of a vector have different signs; NULL: nowhere
   d_flip      [batch k] scratch
   to_columns  [batch][n, k] column i is row d_from[i] of `columns`; its entry of largest
               magnitude (the first at a tie) is made positive
   to_rows     [batch][k, n] row i is row d_from[i] of `rows`; its sign follows that of column i */
tsvd_status tsvdi_cuda_rotations_order(struct cuda_call *call, struct device_rows columns,
                                       struct device_rows rows, int64_t k, int64_t batch,
                                       const int64_t *d_from, const char *d_negative, char *d_flip,
                                       real *to_columns, real *to_rows);

/* values/values.cu: finds the values first .. last - 1 of each of `batch` matrices by bisection;
   0 is the largest.  All arrays are device memory.
   eps       width to which a value is found; 0: to neighbouring numbers
   d_d, d_e  [batch n] not scaled, e with a zero after the n - 1 entries of each matrix; zero
             matrices may occur, NaN and infinity do not
   d_hint    [batch (last - first)] approximations in descending order, which only save time, or
             NULL
   d_s       [batch (last - first)] the values, descending */
tsvd_status tsvdi_cuda_values_on_device(struct tsvd_context *ctx, int64_t n, int64_t batch,
                                        const real *d_d, const real *d_e, int64_t first,
                                        int64_t last, const real *d_hint, real eps, real *d_s,
                                        int64_t *counts);

/* values/values.cu: the same for matrices of doubles, also in float32. */
#if TSVD_SINGLE
tsvd_status tsvdi_cuda_values_on_device_f64(struct tsvd_context *ctx, int64_t n, int64_t batch,
                                            const double *d_d, const double *d_e, int64_t first,
                                            int64_t last, const double *d_hint, double eps,
                                            double *d_s, int64_t *counts);
#define tsvdi_cuda_double_values tsvdi_cuda_values_on_device_f64
#else
#define tsvdi_cuda_double_values tsvdi_cuda_values_on_device
#endif

/* The tables of operations. */
extern const struct values_ops tsvdi_cuda_values;
extern const struct vectors_ops tsvdi_cuda_vectors;
extern const struct dc_ops tsvdi_cuda_dc;
extern const struct twisted_ops tsvdi_cuda_twisted;
extern const struct givens_ops tsvdi_cuda_givens;
extern const struct dense_ops tsvdi_cuda_dense;
extern const struct jacobi_ops tsvdi_cuda_jacobi;
extern const struct extra_ops tsvdi_cuda_extra;
extern const struct small_dense_ops tsvdi_cuda_jacobi_tiny;
extern const struct inverse_ops tsvdi_cuda_inverse;

/* load/device_arrays.cu: whether a chunk from the host is staged: all host threads gather its
   entries and they are uploaded first, since there are so many that one thread would take long. */
bool tsvdi_cuda_load_needs_staging(const struct svd_plan *plan);

/* load/device_arrays.cu: backend.load(), fill() and fill_nan() for arrays of the device, and load()
   for those that are staged. */
tsvd_status tsvdi_cuda_load_chunk(struct tsvd_context *ctx, struct chunk *chunk);
tsvd_status tsvdi_cuda_load_fill(struct tsvd_context *ctx, int64_t i, int kind, struct results to);
tsvd_status tsvdi_cuda_load_fill_nan(struct tsvd_context *ctx, int64_t count, real *d_x);

/* Says that the results of a problem will go to the host, if they will and are large. */
static inline tsvd_status
cuda_prefault_results(struct tsvd_context *ctx, const struct svd_problem *p)
{
    const size_t values = (size_t)p->batch.matrices * (size_t)p->k * sizeof(real);
    size_t left = values * (size_t)p->rows, before = 0; /* bytes of L, and of them before our own */
    if (p->left_stride > left_vectors(p)) {             /* other calls touch the rest of the rows */
        const size_t all = (size_t)((p->rows - 1) * p->left_stride + p->k) * sizeof(real);

        before = (size_t)((double)(p->first - p->whole_first) / (double)p->whole_k * (double)all);
        left = (size_t)((double)p->k / (double)p->whole_k * (double)all);
        left = left < all - before ? left : all - before;
    }
    /* the first transfer of L has parts of all rows */
    void *const results[] = {p->L == NULL ? NULL : (char *)p->L + before, p->s, p->R};
    const size_t bytes[] = {left, values, values * (size_t)p->columns};
    const bool large = ctx->plan->reported.result_bytes > PREFAULT_BYTES;
    tsvd_status ret = TSVD_OK;

    for (int i = 0; i < 3 && large && p->call.to == TSVD_HOST; i++) {
        if (results[i] != NULL) {
            TSVD_TRY(tsvdi_cuda_prefault(cuda_of(ctx), results[i], bytes[i]));
        }
    }
out:
    return ret;
}

/* Copies results to the host.  Large ones are still in flight on return (runtime/sender.h):
   tsvdi_cuda_free_after_downloads() must give back their memory. */
static inline tsvd_status
cuda_send(struct cuda_call *call, void *to, const void *d_from, size_t bytes)
{
    const struct cuda_transfer transfer = {(char *)to, (const char *)d_from, bytes, 1, 0};

    return bytes > SENT_BYTES ? tsvdi_cuda_download_async(call, transfer)
                              : tsvdi_cuda_download(call, to, d_from, bytes);
}

/* Copies results from device memory to the caller's array; to the host as cuda_send(). */
static inline tsvd_status
cuda_deliver(struct tsvd_context *ctx, void *to, const void *d_from, size_t bytes)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    if (ctx->call->to == TSVD_HOST) {
        return cuda_send(call, to, d_from, bytes);
    }
    CUDA_TRY(call, cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToDevice, call->stream));
out:
    return ret;
}

/* The same for L or U [rows][width], whose rows are `stride` numbers apart on the host. */
static inline tsvd_status
cuda_deliver_left(struct tsvd_context *ctx, void *to, int64_t stride, const void *d_from,
                  int64_t rows, int64_t width, size_t number)
{
    const struct cuda_transfer transfer = {(char *)to, (const char *)d_from, (size_t)width * number,
                                           (size_t)rows, (size_t)stride * number};

    return ctx->call->to == TSVD_HOST && stride > width
               ? tsvdi_cuda_download_async(cuda_of(ctx), transfer)
               : cuda_deliver(ctx, to, d_from, (size_t)rows * (size_t)width * number);
}

/* Finds the chunk's entries on the device: where load() has put them, else they are uploaded to
   space[0] for d and space[1] for e. */
static inline tsvd_status
cuda_entries(struct cuda_call *call, const struct chunk *chunk, int64_t entries,
             real *const space[2], const real **d_d, const real **d_e)
{
    const size_t bytes = (size_t)entries * sizeof(real);
    tsvd_status ret = TSVD_OK;

    *d_d = chunk->d_d;
    *d_e = chunk->d_e;
    if (chunk->d_d == NULL) {
        TSVD_TRY(tsvdi_cuda_upload(call, space[0], chunk->d, bytes));
        TSVD_TRY(tsvdi_cuda_upload(call, space[1], chunk->e, bytes));
        *d_d = space[0];
        *d_e = space[1];
    }
out:
    return ret;
}

#endif
