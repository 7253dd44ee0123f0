/*
 * Twisted factorisations on the device: whether divide and conquer would be faster.
 *
 * It is faster where most vectors are negligible in the row that its last merge cuts: those
 * deflate.  This file estimates how many are.  For a shift x, let z be the solution of
 * (T - x I) z = 0 from the top, in all rows but the last.  Where z grows, the vectors of values
 * near x fall off by as much.  And where the sign changes of z for two shifts part, there live the
 * vectors of the values between them.  So a value between two shifts, whose vector lives in some
 * rows, survives if z has grown little between those rows and the cut.
 *
 * z after a part of the rows is linear in z before it.  So all parts are crossed at once, from both
 * unit vectors.  This gives z before each part, and then all parts are crossed once more.
 */
#include "twisted/twisted_run.h"

enum {
    SHIFTS = 256,
    PIECE = 64,     /* rows that are in shared memory */
    SEGMENTS = 512, /* at most; each has whole pieces */
    PARTS = 128,    /* at most; each has whole segments */
    GROUPS = 4      /* threads of a shift that add up segments */
};

/* The shifts below top / 2^LOW_SHARE are a factor of 2^POWER_STEP apart, those above evenly
   spaced. */
static const double LOW_SHARE = 8, POWER_STEP = 1.8;

/* z in two rows that follow one another, so far. */
struct solution {
    struct twisted_minors z;
    int64_t twos; /* that were taken out of both */
    int changes;  /* of its sign, in a segment */
};

/* The solutions that begin before a part with (z.now, z.before) = (1, 0) and (0, 1). */
enum { BY_NOW, BY_BEFORE, BASIS };

/* Both of them after the part. */
struct crossing {
    struct twisted_minors z[BASIS];
    int64_t twos[BASIS];
};

/* What a shift has found in a segment. */
struct growth {
    float grown; /* log2 of z at its end */
    int changes; /* of the sign of z */
};

struct look {
    int64_t entries;
    int64_t segment, segments; /* entries of one, how many */
    int64_t part, parts;
    struct growth *found;      /* [segments][SHIFTS] */
    struct crossing *crossing; /* [parts][SHIFTS] */
};

static __device__ __forceinline__ double
shift_of(int i, double top)
{
    const int half = SHIFTS / 2;

    return i < half ? top * exp2(-LOW_SHARE - POWER_STEP * (half - 1 - i))
                    : top * (i - half + 0.5) / half;
}

/* Crosses `count` entries.  z is rescaled after COUNT of them, in which it cannot leave the range
   of doubles.  FULL: count is a multiple of COUNT.  *last: the entry before them. */
template <int COUNT, bool FULL, int SOLUTIONS>
static __device__ __forceinline__ void
cross(double x, int count, const double *b, const double *inverse, double *last, struct solution *s)
{
    for (int begin = 0; begin < count; begin += COUNT) {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const int k = begin + j;

            if (FULL || k < count) {
                /* the quotients of the entries are ready before z is */
                const double now = x * inverse[k], before = *last * inverse[k];

#pragma unroll
                for (int i = 0; i < SOLUTIONS; i++) {
                    const double next = fma(now, s[i].z.now, -before * s[i].z.before);

                    s[i].changes += (next < 0) != (s[i].z.now < 0);
                    s[i].z.before = s[i].z.now;
                    s[i].z.now = next;
                }
                *last = b[k];
            }
        }
#pragma unroll
        for (int i = 0; i < SOLUTIONS; i++) {
            s[i].twos += twisted_minors_rescale(&s[i].z);
        }
    }
}

/* Crosses a piece, by a warp that has a shift in each lane. */
template <int SOLUTIONS>
static __device__ __forceinline__ void
cross_piece(const struct twisted_device &run, double x, int64_t begin, int count, double *last,
            struct solution *s)
{
    /* a step changes z by a factor of the inverse of an entry, or little more */
    const bool gentle = least_of(run) > 0x1p-40;
    __shared__ double b[PIECE], inverse[PIECE];

    __syncwarp();
    for (int k = (int)threadIdx.x; k < count; k += WARP) {
        b[k] = fabs(run.b[begin + k]);
        inverse[k] = 1 / b[k];
    }
    __syncwarp();
    if (!gentle) {
        cross<2, false, SOLUTIONS>(x, count, b, inverse, last, s);
    } else if (count == PIECE) {
        cross<8, true, SOLUTIONS>(x, PIECE, b, inverse, last, s);
    } else {
        cross<8, false, SOLUTIONS>(x, count, b, inverse, last, s);
    }
}

/* The entry before a part. */
static __device__ __forceinline__ double
entry_before(const struct twisted_device &run, int64_t begin)
{
    return begin > 0 ? fabs(run.b[begin - 1]) : 0;
}

/* Crosses all parts but the last one.  A block has a part, and a warp of shifts. */
static __global__ void
__launch_bounds__(WARP) crossing_kernel(struct twisted_device run, struct look look)
{
    const int i = (int)(blockIdx.y * WARP + threadIdx.x);
    const double x = shift_of(i, 2.5); /* above all values, since entries are below 2 */
    const int64_t begin = blockIdx.x * look.part;
    struct solution s[BASIS] = {};
    struct crossing c;
    double last;

    if (!twisted_takes(run)) {
        return;
    }
    s[BY_NOW].z.now = 1;
    s[BY_BEFORE].z.before = 1;
    last = entry_before(run, begin);
    for (int64_t k = begin; k < begin + look.part; k += PIECE) {
        cross_piece<BASIS>(run, x, k, PIECE, &last, s);
    }
    for (int way = 0; way < BASIS; way++) {
        c.z[way] = s[way].z;
        c.twos[way] = s[way].twos;
    }
    look.crossing[blockIdx.x * SHIFTS + i] = c;
}

/* 2^twos, twos <= 0; 0 below the normal numbers. */
static __device__ __forceinline__ double
power_of_two(int64_t twos)
{
    return twos > -WIDE_BIAS ? wide_power((int)twos) : 0;
}

/* z after a part, from z before it. */
static __device__ __forceinline__ void
follow(const struct crossing &c, struct solution *s)
{
    const struct twisted_minors z = s->z;
    const int64_t twos[BASIS] = {z.now != 0 ? c.twos[BY_NOW] : c.twos[BY_BEFORE],
                                 z.before != 0 ? c.twos[BY_BEFORE] : c.twos[BY_NOW]};
    const int64_t most = twos[BY_NOW] > twos[BY_BEFORE] ? twos[BY_NOW] : twos[BY_BEFORE];
    const double now = z.now * power_of_two(twos[BY_NOW] - most);
    const double before = z.before * power_of_two(twos[BY_BEFORE] - most);

    s->z.now = now * c.z[BY_NOW].now + before * c.z[BY_BEFORE].now;
    s->z.before = now * c.z[BY_NOW].before + before * c.z[BY_BEFORE].before;
    s->twos += most + twisted_minors_rescale(&s->z);
}

/* Crosses all parts once more, and finds growth and sign changes of z in each segment.  A block has
   a part, and a warp of shifts. */
static __global__ void
__launch_bounds__(WARP) growth_kernel(struct twisted_device run, struct look look)
{
    const int i = (int)(blockIdx.y * WARP + threadIdx.x);
    const double x = shift_of(i, 2.5);
    const int64_t begin = blockIdx.x * look.part;
    const int64_t end = begin + look.part < look.entries ? begin + look.part : look.entries;
    struct solution s = {{1, 0}, 0, 0};
    double last;

    if (!twisted_takes(run)) {
        return;
    }
#pragma unroll 4
    for (int64_t part = 0; part < blockIdx.x; part++) {
        follow(look.crossing[part * SHIFTS + i], &s);
    }
    last = entry_before(run, begin);
    for (int64_t k = begin; k < end; k += PIECE) {
        const int count = end - k < PIECE ? (int)(end - k) : (int)PIECE;

        cross_piece<1>(run, x, k, count, &last, &s);
        if (k + count == look.entries) { /* the last row completes the count of values above x */
            s.changes += (x * s.z.now < last * s.z.before) != (s.z.now < 0);
        }
        if ((k + count) % look.segment == 0 || k + count == look.entries) {
            const double size = fmax(fabs(s.z.now), fabs(s.z.before));
            const struct growth g = {(float)((double)s.twos + log2(size)), s.changes};

            look.found[k / look.segment * SHIFTS + i] = g;
            s.changes = 0;
        }
    }
}

/* The share of the values that survive a merge that cuts the matrix in its middle; 0 if one of
   the wanted values is all but zero.  One block. */
static __global__ void
__launch_bounds__(GROUPS *SHIFTS)
    share_kernel(struct twisted_device run, struct look look, double negligible, double *share)
{
    const int thread = (int)threadIdx.x, i = thread % SHIFTS, j = i + 1 < SHIFTS ? i + 1 : i;
    __shared__ int all[GROUPS * SHIFTS], alive[GROUPS * SHIFTS], above[GROUPS];
    float cut;

    if (!twisted_takes(run)) {
        if (thread == 0) {
            *share = 0;
        }
        return;
    }
    all[thread] = alive[thread] = 0;
    if (i == 0) {
        above[thread / SHIFTS] = 0;
    }
    cut = look.found[look.segments / 2 * SHIFTS + i].grown;
#pragma unroll 4
    for (int64_t c = thread / SHIFTS; c < look.segments; c += GROUPS) {
        const struct growth g = look.found[c * SHIFTS + i];
        const int values = g.changes - look.found[c * SHIFTS + j].changes;

        all[thread] += values > 0 ? values : 0;
        alive[thread] += values > 0 && fabsf(g.grown - cut) < (float)negligible ? values : 0;
        if (i == 0) {
            above[thread / SHIFTS] += g.changes;
        }
    }
    for (int half = GROUPS * SHIFTS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            all[thread] += all[thread + half];
            alive[thread] += alive[thread + half];
        }
    }
    if (thread == 0) {
        int64_t counted = 0;

        for (int group = 0; group < GROUPS; group++) {
            counted += above[group];
        }
        *share =
            counted >= run.whole_first + run.whole_k && all[0] > 0 ? (double)alive[0] / all[0] : 0;
    }
}

static int64_t
share_out(int64_t all, int64_t most)
{
    return (all + most - 1) / most;
}

tsvd_status
tsvdi_cuda_twisted_share(struct cuda_call *call, const struct twisted_device *run,
                         char *d_workspace, double *share, double *least)
{
    const unsigned groups = (int)SHIFTS / (int)WARP;
    unsigned long long smallness = 0;
    struct cuda_piece piece[] = {
        {share, NULL, sizeof(*share)},
        {&smallness, &run->facts->smallness, sizeof(smallness)},
    };
    struct look look;
    double *d_share;
    size_t at = 0;
    tsvd_status ret = TSVD_OK;

    look.entries = 2 * run->n - 1;
    look.segment = PIECE * share_out(look.entries, (int64_t)SEGMENTS * PIECE);
    look.segments = share_out(look.entries, look.segment);
    look.part = look.segment * share_out(look.segments, PARTS);
    look.parts = share_out(look.entries, look.part);
    /* 2.6 MB at most, and never more than a block of 32 values has for z */
    d_share = carve<double>(d_workspace, &at, 1);
    look.crossing = carve<struct crossing>(d_workspace, &at, look.parts * SHIFTS);
    look.found = carve<struct growth>(d_workspace, &at, look.segments * SHIFTS);
    if (look.parts > 1) {
        crossing_kernel<<<dim3((unsigned)look.parts - 1, groups), WARP, 0, call->stream>>>(*run,
                                                                                           look);
        CUDA_LAUNCHED(call);
    }
    growth_kernel<<<dim3((unsigned)look.parts, groups), WARP, 0, call->stream>>>(*run, look);
    CUDA_LAUNCHED(call);
    /* divide and conquer deflates by entries that are 32 eps relative to the largest */
    share_kernel<<<1, GROUPS * SHIFTS, 0, call->stream>>>(*run, look, -log2(32 * (double)R_EPS),
                                                          d_share);
    CUDA_LAUNCHED(call);
    piece[0].d_from = d_share;
    TSVD_TRY(tsvdi_cuda_download_all(call, piece, 2));
    smallness = ~smallness;
    memcpy(least, &smallness, sizeof(*least));
out:
    return ret;
}
