/*
 * Columns of a matrix on their way to shared memory, in a ring of buffers that are filled by turns.
 *
 * From Hopper on one thread starts bulk copies of whole columns, and a barrier in shared memory
 * counts the bytes that arrive.  Bulk copies begin and end at multiples of 16 bytes: a few numbers
 * before and after a column come along, and the column begins column_shift() numbers into its
 * place.  On older devices thread t copies the rows t, t + threads, ... of a column, and may read
 * only these rows.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_COLUMNS_H
#define TSVDI_CUDA_BIDIAGONALIZE_COLUMNS_H

#include <limits.h>

#include "barrier.h"
#include "matrix/panel.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define COLUMNS_BULK 1
#else
#define COLUMNS_BULK 0
#endif

/* Numbers in 16 bytes, the unit of a bulk copy. */
enum { COLUMN_UNIT = 16 / sizeof(scalar) };

/* A ring, as one thread sees it. */
struct ring {
    scalar *buffer; /* [buffers][size] */
    uint64_t *full; /* [buffers] barriers that count what has arrived */
    int buffers, size;
    int now;        /* the buffer whose turn it is */
    unsigned round; /* the parity that bulk_wait() waits for: 0 and 1 by turns */
};

/* Numbers of shared memory for a column of `rows` rows and what comes along with it. */
static inline __host__ __device__ int
column_stride(int rows)
{
    return (rows + 2 * (COLUMN_UNIT - 1)) / COLUMN_UNIT * COLUMN_UNIT;
}

/* Bytes of the bulk copy of a column that begins `shift` numbers into its place. */
static __device__ __forceinline__ unsigned
column_bytes(int rows, int shift)
{
    return (unsigned)((rows + shift + COLUMN_UNIT - 1) / COLUMN_UNIT) * 16;
}

/* The address divided by the size of a number, modulo 2^32: column_shift() needs its last bits. */
static __device__ __forceinline__ unsigned
column_at(const scalar *from)
{
    return (unsigned)((uintptr_t)from / sizeof(scalar));
}

/* Where a column begins in its place.  at: column_at() of its first number. */
static __device__ __forceinline__ int
column_shift(unsigned at)
{
    return COLUMNS_BULK ? (int)(at % COLUMN_UNIT) : 0;
}

#if COLUMNS_BULK
/* Prepares the barriers.  __syncthreads() must come between this and their first use. */
static __device__ __forceinline__ void
bulk_prepare(uint64_t *full, int buffers)
{
    if ((int)threadIdx.x < buffers) {
        barrier_make(full + threadIdx.x);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
}

/* Starts a copy whose bytes the barrier `full` counts.  kept: the data has the normal priority in
   the L2 cache; else it is evicted first. */
static __device__ __forceinline__ void
bulk_copy(scalar *to, const scalar *from, unsigned bytes, uint64_t *full, bool kept)
{
    uint64_t policy;

    if (kept) {
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    }
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full)),
                 "l"(policy)
                 : "memory");
}

/* Waits until all bytes of a round are there. */
static __device__ __forceinline__ void
bulk_wait(uint64_t *full, unsigned round)
{
    asm volatile("{\n"
                 ".reg .pred there;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
                 "@!there bra again;\n"
                 "}" ::"r"(shared_address(full)),
                 "r"(round)
                 : "memory");
}

/* The first warp waits here for all other warps; those do not wait. */
static __device__ __forceinline__ void
bulk_release(void)
{
    if (threadIdx.x < WARP) {
        asm volatile("bar.sync 1, %0;" ::"n"((int)DENSE_PANEL_THREADS) : "memory");
    } else {
        asm volatile("bar.arrive 1, %0;" ::"n"((int)DENSE_PANEL_THREADS) : "memory");
    }
}
#endif

/* Whether this thread fills buffers. */
static __device__ __forceinline__ bool
ring_fills(void)
{
    return !COLUMNS_BULK || threadIdx.x == 0;
}

/* The numbers of a column's place that are filled: from `begin`, a multiple of COLUMN_UNIT, up to
   `end`, another multiple or COLUMN_END. */
struct column_part {
    int begin, end;
};

enum { COLUMN_END = INT_MAX };

/* Starts the copies of `count` columns, up to COLUMNS, to a part of a buffer.  Column k begins at
   from + k next.  It need not stay in the L2 cache unless bit k of `kept` is set.  The parts of a
   buffer come in order, as the first one tells the barrier the bytes of all; without bulk copies
   there is only one part. */
template <int COLUMNS>
static __device__ __forceinline__ void
ring_fill(const struct ring &ring, int buffer, struct column_part part, const scalar *from,
          int64_t next, int count, unsigned kept, int rows)
{
    scalar *const to = ring.buffer + buffer * ring.size;
    const int stride = ring.size / COLUMNS;

#if COLUMNS_BULK
    if (count > 0) {
        const unsigned begin = (unsigned)part.begin * (unsigned)sizeof(scalar);
        unsigned all = 0;

#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int shift = column_shift(column_at(from + k * next));

            all += k < count ? column_bytes(rows, shift) : 0;
        }
        if (begin == 0) {
            barrier_expect(ring.full + buffer, all);
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int shift = column_shift(column_at(from + k * next));
            const unsigned bytes = column_bytes(rows, shift);
            const unsigned end = part.end == COLUMN_END
                                     ? bytes
                                     : min(bytes, (unsigned)part.end * (unsigned)sizeof(scalar));

            if (k < count && begin < end) {
                bulk_copy(to + k * stride + part.begin, from + k * next - shift + part.begin,
                          end - begin, ring.full + buffer, (kept >> k & 1) != 0);
            }
        }
    }
#else
    (void)part;
    (void)kept;
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        if (k < count) {
            for (int row = (int)threadIdx.x; row < rows; row += DENSE_PANEL_THREADS) {
                copy_start(to + k * stride + row, from + k * next + row);
            }
        }
    }
    copies_commit();
#endif
}

/* Prepares a ring; called by all threads. */
static __device__ __forceinline__ void
ring_prepare(const struct ring &ring)
{
#if COLUMNS_BULK
    bulk_prepare(ring.full, ring.buffers);
#else
    (void)ring;
#endif
    __syncthreads();
}

/* Waits for the columns of the present buffer. */
static __device__ __forceinline__ void
ring_wait(const struct ring &ring)
{
#if COLUMNS_BULK
    bulk_wait(ring.full + ring.now, ring.round);
#else
    copies_wait(ring.buffers - 1);
#endif
}

/* Called when this thread has read the present buffer.  The warp that fills it again waits for all
   others. */
static __device__ __forceinline__ void
ring_release(void)
{
#if COLUMNS_BULK
    bulk_release();
#endif
}

/* Goes on to the next buffer. */
static __device__ __forceinline__ void
ring_turn(struct ring &ring)
{
    if (++ring.now == ring.buffers) {
        ring.now = 0;
        ring.round ^= 1;
    }
}

#endif
