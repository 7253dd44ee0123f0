/*
 * Sturm counts on the device.  The plain form is that of csrc/math/sturm_polynomial.h.  The twofold
 * and the extended form are those of csrc/math/sturm.h; the twofold one takes the plain form's
 * scaled entries.
 *
 * A thread counts at a few shifts at once, and passes over groups of entries in shared memory,
 * where a number that a whole warp reads costs one access.  A short matrix lies there as a whole.
 * A longer one comes in tiles; the next tile is copied asynchronously meanwhile.  values/halves.h
 * counts from both ends of a matrix at once.
 */
#ifndef TSVDI_CUDA_VALUES_COUNTS_H
#define TSVDI_CUDA_VALUES_COUNTS_H

#include <cuda_pipeline_primitives.h>

#include "kernels.h"
#include "math/multisection.h"
#include "math/sturm_polynomial.h"

/* The square of a scaled entry for the twofold form. */
struct twofold_entry {
    real square; /* plain_square() */
    real rest;   /* what the rounding of square left */
};

static __device__ __forceinline__ struct twofold_entry
twofold_entry_of(int64_t n, const real *d, const real *e, int64_t k, struct matrix_scale m)
{
    const real b = sturm_entry(n, d, e, k) * REAL(m.down[0]) * REAL(m.down[1]);
    const real square = REAL(plain_square(n, d, e, k, m));

    return {square, square == b * b ? r_fma(b, b, -square) : REAL(0)};
}

/* An entry b_k for the extended form, as in struct sturm; square, rest and inverse are 0 if
   b_k is. */
struct extended_entry {
    real square, rest, inverse;
    real_int twos;
};

static __device__ __forceinline__ struct extended_entry
extended_entry_of(real b)
{
    struct extended_entry x;

    x.square = sturm_extended_square(b, &x.rest, &x.twos);
    x.inverse = b == 0 ? b : 1 / x.square;
    return x;
}

/* Entries on the device.  They fill whole tiles. */
struct device_entries {
    const double *d_square;                  /* [entries] for the plain form */
    const uint32_t *d_event;                 /* [entries / GROUP] */
    const struct twofold_entry *d_twofold;   /* [entries] NULL until they are needed */
    const struct extended_entry *d_extended; /* [entries] NULL until they are needed */
};

/* A matrix on the device. */
struct device_sturm {
    int64_t n;
    const struct matrix_size *d_size;
    struct device_entries top;    /* all 2n of them, the first one first */
    struct device_entries bottom; /* b_{2n-2} .. b_n, in this order */
};

/* Reopens the bracket if the extended form must decide it: it lies below the floor of the plain
   form.  Returns whether it does. */
TSVD_HD int
bracket_widen(struct bracket *b, struct bracket_range range)
{
    if (b->low_sure) {
        return 0;
    }
    bracket_open_down(b, range);
    b->polynomial[0] = b->polynomial[1] = REAL(NAN); /* the forms' factors differ */
    return 1;
}

/* Reopens the bracket of value v if the twofold form must decide it: the value is so small that the
   error of the plain form could show.  Returns whether it does. */
TSVD_HD int
bracket_refine(struct bracket *b, int64_t v, int64_t n, struct matrix_scale scale,
               struct bracket_range range)
{
    if (range.eps != 0 || b->low < scale.floor || plain_is_exact(n, b->low, scale)) {
        return 0;
    }
    *b = bracket_around_found(v, b->low, range);
    return 1;
}

/* ---- the forms ---- */

struct plain_form {
    typedef double entry;
    enum { TILE = PLAIN_TILE, HALF = GROUP / 2 };

    struct plain x;

    static __device__ __forceinline__ entry entry_of(int64_t n, const real *d, const real *e,
                                                     int64_t k, struct matrix_scale scale)
    {
        return plain_square(n, d, e, k, scale);
    }

    static __device__ __forceinline__ const entry *entries(const struct device_entries &m)
    {
        return m.d_square;
    }

    __device__ __forceinline__ void start(real shift, struct matrix_scale scale)
    {
        plain_start(&x, shift, scale);
    }

    /* Returns what was counted since the last call. */
    __device__ __forceinline__ int take()
    {
        const int above = x.above;

        x.above = 0;
        return above;
    }

    __device__ __forceinline__ void end(struct evaluation *at)
    {
        at->value = plain_polynomial(&x);
        at->exponent = (int32_t)x.exponent;
    }

    static __device__ __forceinline__ void load(const entry *from, double (&square)[HALF])
    {
#pragma unroll
        for (int i = 0; i < HALF; i += 2) {
            const double2 two = *(const double2 *)(from + i);

            square[i] = two.x;
            square[i + 1] = two.y;
        }
    }

    /* Half a group.  The signs are gathered first, and their changes are counted together. */
    template <int SHIFTS>
    static __device__ __forceinline__ void half(const double (&square)[HALF],
                                                struct plain_form (&shift)[SHIFTS],
                                                uint32_t (&signs)[SHIFTS])
    {
#pragma unroll
        for (int i = 0; i < HALF; i++) {
#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                plain_step(&shift[s].x, i, square[i]);
                signs[s] = __funnelshift_l(upper_of(shift[s].x.r), signs[s], 1);
            }
        }
    }

    /* Passes over any entries, one by one. */
    template <int SHIFTS>
    static __device__ void pass_each(const entry *square, uint32_t events, int count,
                                     struct plain_form (&shift)[SHIFTS])
    {
#pragma unroll 1
        for (int i = 0; i < count; i++) {
            const uint32_t event = events >> i;

#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                plain_pass(&shift[s].x, i, square[i], event & RESTART, (event & RESCALE) != 0);
            }
        }
    }

    /* Passes over consecutive entries from the beginning of a group on.  They lie in shared memory,
       aligned to 16 bytes. */
    template <int SHIFTS>
    static __device__ __forceinline__ void pass(const entry *square, const uint32_t *event,
                                                int count, struct plain_form (&shift)[SHIFTS])
    {
        const uint32_t last = (uint32_t)RESCALE << (GROUP - 1);
        const int groups = count / GROUP;
        double low[HALF], high[HALF];

        load(square, low);
        for (int g = 0; g < groups; g++) {
            const uint32_t events = event[g];
            const entry *next = square + (g + 1 < groups ? GROUP : 0);

            load(square + HALF, high);
            if ((events & ~last) == 0) {
                uint32_t signs[SHIFTS];

#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    signs[s] = upper_of(shift[s].x.r) >> 31;
                }
                half(low, shift, signs);
                load(next, low);
                half(high, shift, signs);
#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    shift[s].x.above += __popc((signs[s] ^ signs[s] >> 1) & ((1U << GROUP) - 1));
                    if (events != 0) {
                        plain_rescale(&shift[s].x);
                    }
                }
            } else {
                pass_each(square, events, GROUP, shift);
                load(next, low);
            }
            square += GROUP;
        }
        if (count % GROUP > 0) {
            pass_each(square, event[groups], count % GROUP, shift);
        }
    }
};

/* What the other forms have in common.  Counts from one end know no polynomial; halves.h has that
   of the extended form. */
struct unguided_form {
    num_small above;

    __device__ __forceinline__ int take()
    {
        const int here = above;

        above = 0;
        return here;
    }

    __device__ __forceinline__ void end(struct evaluation *at)
    {
        at->value = (double)NAN;
        at->exponent = 0;
    }
};

/* This form is not used in single precision, where the plain form is in double. */
struct twofold_form : unguided_form {
    typedef struct twofold_entry entry;
    enum { TILE = TWOFOLD_TILE };

    struct sturm_twofold y;
    real sigma;

    static __device__ __forceinline__ entry entry_of(int64_t n, const real *d, const real *e,
                                                     int64_t k, struct matrix_scale scale)
    {
        return twofold_entry_of(n, d, e, k, scale);
    }

    static __device__ __forceinline__ const entry *entries(const struct device_entries &m)
    {
        return m.d_twofold;
    }

    /* The power of two that a pair starts from, and is rescaled to. */
    static __device__ __forceinline__ real pair_size()
    {
        return REAL(double_pow2(TWOFOLD_SIZE));
    }

    __device__ __forceinline__ void start(real shift, struct matrix_scale scale)
    {
        const real down[2] = {REAL(scale.down[0]), REAL(scale.down[1])};

        sigma = sturm_scaled_shift(shift, down);
        above = 0;
        y = sturm_twofold_start(sigma, pair_size());
    }

    template <int SHIFTS>
    static __device__ __forceinline__ void pass(const entry *entry, const uint32_t *event,
                                                int count, struct twofold_form (&shift)[SHIFTS])
    {
        for (int begin = 0; begin < count; begin += GROUP) {
            const uint32_t events = event[begin / GROUP];

            if (events == 0 && begin + GROUP <= count) {
#pragma unroll 4
                for (int i = 0; i < GROUP; i++) {
                    const struct twofold_entry here = entry[begin + i];

#pragma unroll
                    for (int s = 0; s < SHIFTS; s++) {
                        sturm_twofold_step(shift[s].sigma, here.square, here.rest, &shift[s].y,
                                           &shift[s].above);
                    }
                }
                continue;
            }
#pragma unroll 1
            for (int i = 0; i < GROUP && begin + i < count; i++) {
                const struct twofold_entry here = entry[begin + i];

#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    if (events >> i & RESTART) {
                        sturm_twofold_restart(shift[s].sigma, pair_size(), &shift[s].y,
                                              &shift[s].above);
                    } else {
                        sturm_twofold_step(shift[s].sigma, here.square, here.rest, &shift[s].y,
                                           &shift[s].above);
                    }
                    if (events >> i & RESCALE) {
                        sturm_twofold_rescale(pair_size(), &shift[s].y);
                    }
                }
            }
        }
    }
};

struct extended_form : unguided_form {
    typedef struct extended_entry entry;
    enum { TILE = EXTENDED_TILE };

    struct sturm_extended y;
    double product;    /* product 2^exponent is the product of all y, for halves.h */
    uint32_t exponent; /* modulo 2^32; |product| is in [1, 2) */

    static __device__ __forceinline__ entry entry_of(int64_t n, const real *d, const real *e,
                                                     int64_t k, struct matrix_scale)
    {
        return extended_entry_of(sturm_entry(n, d, e, k));
    }

    static __device__ __forceinline__ const entry *entries(const struct device_entries &m)
    {
        return m.d_extended;
    }

    __device__ __forceinline__ void start(real shift, struct matrix_scale)
    {
        real_int twos;

        y.mantissa = 1;
        y.rest = 0;
        y.exponent = above = 0;
        product = 1;
        exponent = 0;
        y.sigma_square = sturm_extended_shift(shift, &y.sigma_rest, &twos);
        y.sigma_twos = (num_small)twos;
    }

    __device__ __forceinline__ void multiply(double x, num_small twos)
    {
        product = plain_mantissa(product * x, &exponent);
        exponent += (uint32_t)twos;
    }

    template <int SHIFTS>
    static __device__ __forceinline__ void pass(const entry *entry, const uint32_t *, int count,
                                                struct extended_form (&shift)[SHIFTS])
    {
#pragma unroll 1
        for (int i = 0; i < count; i++) {
            const extended_form::entry here = entry[i];

            if (here.square == 0) {
#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    sturm_extended_restart(&shift[s].y, &shift[s].above);
                }
                continue;
            }
#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                sturm_extended_step(here.square, here.rest, here.inverse, here.twos, &shift[s].y,
                                    &shift[s].above);
                shift[s].multiply((double)shift[s].y.mantissa, shift[s].y.exponent);
            }
        }
    }
};

/* ---- a long matrix ---- */

template <class Form> struct alignas(16) tile {
    typename Form::entry entry[Form::TILE];
    uint32_t event[Form::TILE / GROUP];
};

/* Starts an asynchronous copy of `bytes` bytes, a multiple of 16. */
static __device__ __forceinline__ void
copy_ahead(void *to, const void *from, int bytes)
{
    for (int at = (int)threadIdx.x * 16; at < bytes; at += COUNT_THREADS * 16) {
        __pipeline_memcpy_async((char *)to + at, (const char *)from + at, 16);
    }
}

template <class Form>
static __device__ __forceinline__ void
fetch(const struct device_entries &m, int64_t index, struct tile<Form> *to)
{
    copy_ahead(to->entry, Form::entries(m) + index * Form::TILE, (int)sizeof(to->entry));
    copy_ahead(to->event, m.d_event + index * (Form::TILE / GROUP), (int)sizeof(to->event));
}

/* Copies the tiles of all sides, and passes over `entries` entries of side number `side`: the
   shifts and at[s].above go on from what they hold.  tiles: shared memory for the current and the
   next tile of each side.  The whole block of COUNT_THREADS calls this. */
template <class Form, int SIDES, int SHIFTS>
static __device__ __forceinline__ void
pass_tiles(const struct device_entries *const (&sides)[SIDES], int side, int64_t entries,
           struct tile<Form> (&tiles)[SIDES][2], Form (&shift)[SHIFTS],
           struct evaluation (&at)[SHIFTS])
{
    const int64_t count = (entries + Form::TILE - 1) / Form::TILE;

#pragma unroll
    for (int k = 0; k < SIDES; k++) {
        fetch<Form>(*sides[k], 0, &tiles[k][0]);
    }
    __pipeline_commit();
    for (int64_t i = 0; i < count; i++) {
        const struct tile<Form> *here = &tiles[side][i % 2];

        if (i + 1 < count) {
#pragma unroll
            for (int k = 0; k < SIDES; k++) {
                fetch<Form>(*sides[k], i + 1, &tiles[k][(i + 1) % 2]);
            }
            __pipeline_commit();
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        Form::pass(here->entry, here->event,
                   (int)bracket_min(entries - i * Form::TILE, (int64_t)Form::TILE), shift);
#pragma unroll
        for (int s = 0; s < SHIFTS; s++) {
            at[s].above += shift[s].take();
        }
        __syncthreads();
    }
}

/* Counts at the shifts at[s].at.  The whole block of COUNT_THREADS calls this. */
template <class Form, int SHIFTS>
static __device__ __forceinline__ void
evaluate(const struct device_sturm &m, struct evaluation (&at)[SHIFTS])
{
    __shared__ struct tile<Form> tiles[1][2];
    const struct device_entries *const sides[1] = {&m.top};
    const struct matrix_scale scale = matrix_scale_of(*m.d_size);
    Form shift[SHIFTS];

#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        shift[s].start(r_from_bits(at[s].at), scale);
        at[s].above = 0;
    }
    pass_tiles(sides, 0, 2 * m.n, tiles, shift, at);
#pragma unroll
    for (int s = 0; s < SHIFTS; s++) {
        shift[s].end(&at[s]);
    }
}

#endif
