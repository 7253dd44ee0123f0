/*
 * Sturm counts on the device, with both forms of csrc/sturm.h: the plain one in double for
 * either precision, the wide one as it stands.
 *
 * All threads of a block walk down the entries together, each for a few shifts.  The entries
 * pass through shared memory in tiles, the next of which is on its way meanwhile: there a
 * number that a whole warp reads costs one access.
 *
 * Layout: the entries b_k in groups of GROUP, filled up with zeros to a whole number of tiles;
 * each group has its events, bits for what follows each of its entries.
 */
#ifndef TSVDI_COUNTS_H
#define TSVDI_COUNTS_H

#include <cuda_pipeline_primitives.h>

#include "kernels.h"

enum {
    GROUP = 8,            /* entries */
    RESTART = 1,          /* event: the part ends; shifted by the entry's place in the group */
    RESCALE = 1 << GROUP, /* event: the plain form's pair is brought back to PAIR_SIZE */
    RESTARTS = RESCALE - 1
};

/*
 * The plain form in double: the larger of its pair starts at 2^PAIR_SIZE and may lose
 * PAIR_LOSS powers of two, or gain PAIR_GAIN, until it is brought back.  A product
 * underflows at 2^-1022, far below its neighbour then, for shifts of 2^PLAIN_LEAST and more
 * (of the largest entry).
 */
enum { PAIR_SIZE = 500, PAIR_LOSS = 1000, PAIR_GAIN = 480, PLAIN_LEAST = -500 };

/* A double from the upper half of its bits. */
TSVD_HD double
from_upper(uint32_t upper)
{
    const uint64_t bits = (uint64_t)upper << 32;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

TSVD_HD uint32_t
upper_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint32_t)(bits >> 32);
}

/* 2^k, -1023 < k < 1024. */
TSVD_HD double
double_pow2(int k)
{
    return from_upper((uint32_t)(k + 1023) << 20);
}

struct wide_entry {
    real square, rest, inverse;
    real_int twos;
};

/* The matrix on the device. */
struct device_sturm {
    const struct wide_entry *d_wide;
    const double *d_square; /* scaled so that the largest |b_k| lies in [1, 2) */
    const uint16_t *d_event;
    int64_t groups;
    double scale_down[2];
};

/* The same on the host, before it goes to the device in one piece. */
struct host_sturm {
    struct wide_entry *wide; /* [8 groups], and so on */
    double *square;
    uint16_t *event;
    int64_t room;   /* groups, with those that fill the last tile */
    real_int scale; /* the exponent of the largest |b_k| */
    int plain;      /* whether the plain form serves */
};

static void
lay_out(char *p, int64_t room, struct host_sturm *h)
{
    h->room = room;
    h->wide = (struct wide_entry *)p;
    h->square = (double *)(h->wide + room * GROUP);
    h->event = (uint16_t *)(h->square + room * GROUP);
}

static size_t
sturm_bytes(int64_t room)
{
    return (size_t)room * (GROUP * (sizeof(struct wide_entry) + sizeof(double)) + sizeof(uint16_t));
}

/* Fills zeroed arrays. */
static void
pack(const struct sturm *matrix, struct host_sturm *h)
{
    const struct sturm_chunk *chunk = matrix->chunk;
    int64_t loss = 0, gain = 0;
    real_int twos = matrix->wide_twos[0];

    for (int64_t k = 1; k < matrix->entries; k++) {
        twos = matrix->wide_twos[k] > twos ? matrix->wide_twos[k] : twos;
    }
    h->scale = twos / 2;
    h->plain = 1;
    for (int64_t k = 0; k < matrix->entries; k++) {
        const int64_t below = twos - matrix->wide_twos[k], next = below + 3; /* csrc/bisect.c */
        const int place = (int)(k % GROUP);
        uint16_t *event = &h->event[k / GROUP];

        h->wide[k].square = matrix->wide_square[k];
        h->wide[k].rest = matrix->wide_rest[k];
        h->wide[k].inverse = matrix->wide_inverse[k];
        h->wide[k].twos = matrix->wide_twos[k];
        if (next > PAIR_LOSS) {
            h->plain = 0;
        } else {
            h->square[k] =
                ((double)matrix->wide_square[k] + matrix->wide_rest[k]) * double_pow2((int)-below);
        }
        if (loss > 0 && loss + next > PAIR_LOSS) { /* the entry before, within the part */
            h->event[(k - 1) / GROUP] |= (uint16_t)(RESCALE << (k - 1) % GROUP);
            loss = gain = 0;
        }
        loss += next;
        gain += 3;
        while (chunk->end <= k) {
            chunk++;
        }
        if (chunk->end == k + 1 && chunk->restart) {
            *event |= (uint16_t)(RESTART << place);
            loss = gain = 0;
        } else if (place == GROUP - 1 && (loss > PAIR_LOSS / 2 || gain > PAIR_GAIN / 2)) {
            *event |= (uint16_t)(RESCALE << place);
            loss = gain = 0;
        }
    }
}

/* ---- counts ---- */

struct plain_form {
    typedef double entry;
    enum { SHIFTS = PLAIN_SHIFTS, TILE_GROUPS = 128 };

    double sigma, r, before;
    int above;

    static __device__ __forceinline__ const entry *entries(const struct device_sturm &m)
    {
        return m.d_square;
    }

    __device__ __forceinline__ void start(real shift, const struct device_sturm &m)
    {
        sigma = (double)shift * m.scale_down[0] * m.scale_down[1];
        above = 0;
        before = double_pow2(PAIR_SIZE);
        r = sigma * before;
    }

    __device__ __forceinline__ void step(double square)
    {
        double next = fma(-square, before, sigma * r);

        before = r;
        r = next;
    }

    /* An exact zero is an eigenvalue at sigma itself: it counts as a change of sign where its
       own sign bit made none. */
    __device__ __forceinline__ void restart()
    {
        above += r == 0 && (upper_of(r) ^ upper_of(before)) >> 31 == 0;
        before = double_pow2(PAIR_SIZE);
        r = sigma * before;
    }

    __device__ __forceinline__ void rescale()
    {
        uint32_t one = upper_of(r) & 0x7fffffff, other = upper_of(before) & 0x7fffffff;
        uint32_t exponent = (one > other ? one : other) & 0x7ff00000;
        double factor = from_upper(((uint32_t)(2 * 1023 + PAIR_SIZE) << 20) - exponent);

        r *= factor;
        before *= factor;
    }

    /* Loaded while the group before is under work. */
    struct group {
        const entry *at;
        double square[GROUP];
        uint32_t events;

        __device__ __forceinline__ void load(const entry *from, uint32_t events_)
        {
            at = from;
            events = events_;
#pragma unroll
            for (int i = 0; i < GROUP; i++) {
                square[i] = from[i];
            }
        }
    };

    /* The signs of a group are gathered first and their changes counted together. */
    static __device__ __forceinline__ void pass(const struct group &b,
                                                struct plain_form (&shift)[SHIFTS])
    {
        const uint32_t events = b.events;

        if ((events & ~(uint32_t)(RESCALE << (GROUP - 1))) == 0) {
            uint32_t signs[SHIFTS];

#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                signs[s] = upper_of(shift[s].r) >> 31;
            }
#pragma unroll
            for (int i = 0; i < GROUP; i++) {
#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    shift[s].step(b.square[i]);
                    signs[s] = __funnelshift_l(upper_of(shift[s].r), signs[s], 1);
                }
            }
#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                shift[s].above += __popc((signs[s] ^ signs[s] >> 1) & ((1 << GROUP) - 1));
            }
            if (events != 0) {
#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    shift[s].rescale();
                }
            }
            return;
        }
#pragma unroll 1
        for (int i = 0; i < GROUP; i++) {
#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                shift[s].step(b.at[i]);
                shift[s].above += (int)((upper_of(shift[s].r) ^ upper_of(shift[s].before)) >> 31);
                if (events >> i & RESTART) {
                    shift[s].restart();
                }
                if (events >> i & RESCALE) {
                    shift[s].rescale();
                }
            }
        }
    }
};

struct wide_form {
    typedef struct wide_entry entry;
    enum { SHIFTS = WIDE_SHIFTS, TILE_GROUPS = 32 };

    struct sturm_wide y;
    num_small above;

    static __device__ __forceinline__ const entry *entries(const struct device_sturm &m)
    {
        return m.d_wide;
    }

    __device__ __forceinline__ void start(real shift, const struct device_sturm &)
    {
        real_int exponent;
        real mantissa = r_split(shift, &exponent);

        y.mantissa = 1;
        y.rest = 0;
        y.exponent = above = 0;
        y.sigma_square = mantissa * mantissa;
        y.sigma_rest = r_fma(mantissa, mantissa, -(mantissa * mantissa));
        y.sigma_twos = (num_small)(2 * exponent);
    }

    __device__ __forceinline__ void step(const entry &b)
    {
        sturm_wide_step(b.square, b.rest, b.inverse, b.twos, &y, &above);
    }

    struct group {
        const entry *at;
        uint32_t events;

        __device__ __forceinline__ void load(const entry *from, uint32_t events_)
        {
            at = from;
            events = events_;
        }
    };

    static __device__ __forceinline__ void pass(const struct group &b,
                                                struct wide_form (&shift)[SHIFTS])
    {
        if ((b.events & RESTARTS) == 0) {
#pragma unroll 4
            for (int i = 0; i < GROUP; i++) {
                const entry here = b.at[i];

#pragma unroll
                for (int s = 0; s < SHIFTS; s++) {
                    shift[s].step(here);
                }
            }
            return;
        }
#pragma unroll 1
        for (int i = 0; i < GROUP; i++) {
            const entry here = b.at[i];

#pragma unroll
            for (int s = 0; s < SHIFTS; s++) {
                shift[s].step(here);
                if (b.events >> i & RESTART) {
                    sturm_wide_restart(&shift[s].y, &shift[s].above);
                }
            }
        }
    }
};

template <class Form> struct tile {
    typename Form::entry entry[Form::TILE_GROUPS * GROUP];
    uint16_t event[Form::TILE_GROUPS];
};

/* Shifts of a block. */
template <class Form> constexpr int64_t block_shifts = COUNT_THREADS *Form::SHIFTS;

/* Starts the copy of `bytes`, a multiple of 16. */
static __device__ __forceinline__ void
copy_ahead(void *to, const void *from, int bytes)
{
    for (int at = (int)threadIdx.x * 16; at < bytes; at += COUNT_THREADS * 16) {
        __pipeline_memcpy_async((char *)to + at, (const char *)from + at, 16);
    }
}

template <class Form>
static __device__ __forceinline__ void
fetch(const struct device_sturm &m, int64_t index, struct tile<Form> *to)
{
    copy_ahead(to->entry, Form::entries(m) + index * Form::TILE_GROUPS * GROUP,
               (int)sizeof(to->entry));
    copy_ahead(to->event, m.d_event + index * Form::TILE_GROUPS, (int)sizeof(to->event));
    __pipeline_commit();
}

/* A group of a tile, or its last one. */
template <class Form>
static __device__ __forceinline__ void
load(const struct tile<Form> *from, int index, int groups, typename Form::group *to)
{
    const int at = index < groups ? index : groups - 1;

    to->load(from->entry + at * GROUP, from->event[at]);
}

/* above[s] = number of singular values >= sigma[s]; the whole block calls this. */
template <class Form>
static __device__ __forceinline__ void
count_above(const struct device_sturm &m, const real (&sigma)[Form::SHIFTS],
            int64_t (&above)[Form::SHIFTS])
{
    __shared__ alignas(16) struct tile<Form> tiles[2];
    const int64_t last = (m.groups - 1) / Form::TILE_GROUPS;
    Form shift[Form::SHIFTS];
    typename Form::group even, odd;

#pragma unroll
    for (int s = 0; s < Form::SHIFTS; s++) {
        shift[s].start(sigma[s], m);
        above[s] = 0;
    }
    fetch<Form>(m, 0, &tiles[0]);
    for (int64_t i = 0; i <= last; i++) {
        const struct tile<Form> *here = &tiles[i % 2];
        const int groups =
            i < last ? (int)Form::TILE_GROUPS : (int)(m.groups - last * Form::TILE_GROUPS);

        if (i < last) {
            fetch<Form>(m, i + 1, &tiles[(i + 1) % 2]);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        load(here, 0, groups, &even);
        for (int g = 0; g < groups; g += 2) {
            load(here, g + 1, groups, &odd);
            Form::pass(even, shift);
            load(here, g + 2, groups, &even);
            if (g + 1 < groups) {
                Form::pass(odd, shift);
            }
        }
#pragma unroll
        for (int s = 0; s < Form::SHIFTS; s++) {
            above[s] += shift[s].above;
            shift[s].above = 0;
        }
        __syncthreads();
    }
}

#endif
