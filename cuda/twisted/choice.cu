/*
 * Twisted factorisations on the device: whether divide and conquer would be faster.
 *
 * It is where most vectors are negligible in the row that its last merge cuts: those deflate.  One
 * pass over the matrix tells about how many are.  For a shift x, let z be the solution of
 * (T - x I) z = 0 from the top, in all rows but the last.  Where z grows, the vectors of values
 * near x fall off by as much.  And where the sign changes of z for two shifts part, there live the
 * vectors of the values between them.  So a value between two shifts, whose vector lives in some
 * rows, survives if z has grown little between those rows and the cut.
 */
#include "twisted/run.h"

enum { SHIFTS = 256, PIECE = 64 };

/* The shifts below top / 2^LOW_SHARE are powers of two apart, the others are evenly spaced. */
static const double LOW_SHARE = 8, POWER_STEP = 1.8;

/* What a shift has found at the end of a segment of rows. */
struct growth {
    float grown; /* log2 of z */
    int changes; /* of its sign, so far */
};

static __device__ __forceinline__ double
shift_of(int i, double top)
{
    const int half = SHIFTS / 2;

    return i < half ? top * exp2(-LOW_SHARE - POWER_STEP * (half - 1 - i))
                    : top * (i - half + 0.5) / half;
}

/* z in two rows that follow one another, so far. */
struct solution {
    struct twisted_minors z;
    double last;  /* the entry behind z.before */
    int64_t twos; /* that were taken out of both */
    int changes;
};

/* Across `count` entries, COUNT at a time, between which z cannot leave the range of doubles. FULL:
   a multiple of them. */
template <int COUNT, bool FULL>
static __device__ __forceinline__ void
cross(double x, int count, const double *b, const double *inverse, struct solution *s)
{
    for (int begin = 0; begin < count; begin += COUNT) {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const int k = begin + j;

            if (FULL || k < count) {
                /* the quotients of the entries are ready before z is */
                const double next =
                    fma(x * inverse[k], s->z.now, -(s->last * inverse[k]) * s->z.before);

                s->changes += (next < 0) != (s->z.now < 0);
                s->z.before = s->z.now;
                s->z.now = next;
                s->last = b[k];
            }
        }
        s->twos += twisted_minors_rescale(&s->z);
    }
}

/* A thread has a shift.  found: [segments][SHIFTS]. */
static __global__ void
__launch_bounds__(WARP)
    growth_kernel(struct twisted_device run, int64_t segment, struct growth *found)
{
    const int lane = (int)threadIdx.x, i = (int)blockIdx.x * WARP + lane;
    const double x = shift_of(i, 2.5); /* above all values, since entries are below 2 */
    const int64_t entries = 2 * run.n - 1;
    /* a step makes z larger or smaller by the inverse of an entry, or little more */
    const bool gentle = least_of(run) > 0x1p-40;
    __shared__ double b[PIECE], inverse[PIECE];
    struct solution s = {{1, 0}, 0, 0, 0};

    if (!twisted_takes(run)) {
        return;
    }
    for (int64_t begin = 0; begin < entries; begin += PIECE) {
        const int count = entries - begin < PIECE ? (int)(entries - begin) : (int)PIECE;

        __syncwarp();
        for (int k = lane; k < count; k += WARP) {
            b[k] = fabs(run.b[begin + k]);
            inverse[k] = 1 / b[k];
        }
        __syncwarp();
        if (!gentle) {
            cross<2, false>(x, count, b, inverse, &s);
        } else if (count == PIECE) {
            cross<8, true>(x, PIECE, b, inverse, &s);
        } else {
            cross<8, false>(x, count, b, inverse, &s);
        }
        if (begin + count == entries) { /* the count of all values above x is wanted */
            s.changes += (x * s.z.now < s.last * s.z.before) != (s.z.now < 0);
        }
        if ((begin + count) % segment == 0 || begin + count == entries) {
            const double size = fmax(fabs(s.z.now), fabs(s.z.before));
            const struct growth g = {(float)((double)s.twos + log2(size)), s.changes};

            found[(begin + count - 1) / segment * SHIFTS + i] = g;
        }
    }
}

/* The share of the values that survive a merge that cuts the matrix in its middle; 0 if one of
   the wanted values is all but zero.  One block. */
static __global__ void
__launch_bounds__(SHIFTS) share_kernel(struct twisted_device run, int64_t segments,
                                       const struct growth *found, double negligible, double *share)
{
    const int i = (int)threadIdx.x, j = i + 1 < SHIFTS ? i + 1 : i;
    __shared__ double sums[2][SHIFTS];
    int before = 0;
    double all = 0, alive = 0;
    float cut;

    if (!twisted_takes(run)) {
        if (i == 0) {
            *share = 0;
        }
        return;
    }
    cut = found[segments / 2 * SHIFTS + i].grown;
    for (int64_t c = 0; c < segments; c++) {
        const struct growth g = found[c * SHIFTS + i];
        const int parted = found[c * SHIFTS + j].changes;
        const int values = g.changes - parted - before;

        before = g.changes - parted;
        all += values > 0 ? values : 0;
        alive += values > 0 && fabsf(g.grown - cut) < (float)negligible ? values : 0;
    }
    sums[0][i] = all;
    sums[1][i] = alive;
    for (int half = SHIFTS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (i < half) {
            sums[0][i] += sums[0][i + half];
            sums[1][i] += sums[1][i + half];
        }
    }
    if (i == 0) {
        const bool enough = found[(segments - 1) * SHIFTS].changes >= run.first + run.k;

        *share = enough && sums[0][0] > 0 ? sums[1][0] / sums[0][0] : 0;
    }
}

tsvd_status
tsvdi_cuda_twisted_share(struct cuda_call *call, const struct twisted_device *run, char *d_room,
                         double *share, double *least)
{
    const int64_t entries = 2 * run->n - 1, most = 512, tiles = (entries + PIECE - 1) / PIECE;
    const int64_t segment = (tiles + most - 1) / most * PIECE;
    const int64_t segments = (entries + segment - 1) / segment;
    struct growth *found = (struct growth *)(d_room + sizeof(double));
    unsigned long long smallness = 0;
    const struct cuda_piece piece[] = {
        {share, d_room, sizeof(*share)},
        {&smallness, &run->facts->smallness, sizeof(smallness)},
    };
    tsvd_status ret = TSVD_OK;

    growth_kernel<<<(int)SHIFTS / (int)WARP, WARP, 0, call->stream>>>(*run, segment, found);
    CUDA_LAUNCHED(call);
    /* divide and conquer deflates by entries that are 32 eps beside the largest */
    share_kernel<<<1, SHIFTS, 0, call->stream>>>(*run, segments, found, -log2(32 * (double)R_EPS),
                                                 (double *)d_room);
    CUDA_LAUNCHED(call);
    TSVD_TRY(tsvdi_cuda_land_all(call, piece, 2));
    smallness = ~smallness;
    memcpy(least, &smallness, sizeof(*least));
out:
    return ret;
}
